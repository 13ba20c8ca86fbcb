"""Owns errors as OpenAI's clients expect them: a status, and {"error": {...}}."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from mini_engine.serve.async_engine import EngineDead, QueueFull

RETRY_AFTER_S = 1
TYPES = {401: "authentication_error", 404: "not_found_error", 429: "rate_limit_error"}


class ApiError(Exception):
    """An answer other than 2xx. `param` names the field at fault."""

    def __init__(self, status: int, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.param = status, message, param

    def body(self) -> dict[str, Any]:
        """OpenAI's error object."""
        kind = TYPES.get(self.status)
        kind = kind or ("invalid_request_error" if self.status < 500 else "server_error")
        error = {"message": self.message, "type": kind, "param": self.param, "code": self.status}
        return {"error": error}

    def response(self) -> JSONResponse:
        """The same as an HTTP response."""
        headers = {"Retry-After": str(RETRY_AFTER_S)} if self.status in (429, 503) else None
        return JSONResponse(self.body(), self.status, headers)


def as_api_error(error: Exception) -> ApiError:
    """What to answer when serving a request raised this."""
    if isinstance(error, ApiError):
        return error
    if isinstance(error, QueueFull):
        return ApiError(429, str(error))
    if isinstance(error, EngineDead):
        return ApiError(503, f"the engine is not running: {error}")
    if isinstance(error, TimeoutError):
        return ApiError(504, str(error))
    if isinstance(error, (ValueError, TypeError)):
        message = str(error)
        field = message.partition(":")[0].removeprefix("SamplingParams.").partition(" ")[0]
        return ApiError(400, message, field if field.replace("_", "").isalpha() else None)
    return ApiError(500, f"{type(error).__name__}: {error}")


def install(app: FastAPI) -> None:
    """Have every error of the app answered in this form."""

    @app.exception_handler(ApiError)
    async def on_api_error(request: Request, error: ApiError) -> JSONResponse:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def on_validation(request: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"] if part != "body")
        return ApiError(400, f"{place or 'body'}: {first['msg']}", place or None).response()

    @app.exception_handler(HTTPException)
    async def on_http(request: Request, error: HTTPException) -> JSONResponse:
        message = f"{error.detail}: {request.method} {request.url.path}"
        return ApiError(error.status_code, message).response()
