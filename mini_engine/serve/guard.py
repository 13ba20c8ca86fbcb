"""Owns what is checked before a request is read: its size, and its API key."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from mini_engine.serve.errors import ApiError

OPEN_PATHS = ("/", "/health")  # need no API key


@dataclass(frozen=True)
class ServerOptions:
    """How the server behaves. `timeout_s` is the deadline of one request, None for no deadline."""

    model: str
    api_key: str | None = None
    timeout_s: float | None = 600.0
    max_body_bytes: int = 4 * 1024 * 1024
    cors_origins: tuple[str, ...] = ()


class Guard:
    """An ASGI middleware. Messages pass untouched, so a client that goes away is noticed."""

    def __init__(self, app: ASGIApp, options: ServerOptions) -> None:
        self._app = app
        self._options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer with an error, or pass the request on."""
        if scope["type"] == "http":
            error = self._refusal(scope["method"], scope["path"], Headers(scope=scope))
            if error is not None:
                await error.response()(scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _refusal(self, method: str, path: str, headers: Headers) -> ApiError | None:
        length, most = headers.get("content-length", ""), self._options.max_body_bytes
        if method == "POST" and not length.isdigit():
            return ApiError(411, "the request needs a Content-Length")
        if length.isdigit() and int(length) > most:
            return ApiError(413, f"the body has {length} bytes; at most {most} are read")
        key = self._options.api_key
        if key is not None and path not in OPEN_PATHS:
            given = headers.get("authorization", "").removeprefix("Bearer ")
            if not hmac.compare_digest(given.encode(), key.encode()):
                return ApiError(401, "wrong API key; send the header Authorization: Bearer KEY")
        return None
