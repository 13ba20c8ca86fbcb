"""Owns the routes of the HTTP server: OpenAI's API, health, metrics, and the page that shows all.

Compare `build_app` in vLLM's `vllm/entrypoints/launchers/app.py`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.responses import FileResponse, JSONResponse, StreamingResponse

from mini_engine import __version__
from mini_engine.serve import errors
from mini_engine.serve.answers import Answer
from mini_engine.serve.async_engine import AsyncEngine, EngineDead
from mini_engine.serve.errors import ApiError
from mini_engine.serve.generation import Generation
from mini_engine.serve.guard import Guard, ServerOptions
from mini_engine.serve.metrics import Metrics
from mini_engine.serve.protocol import ChatRequest, CompletionRequest, TokenizeRequest

PAGE = Path(__file__).parent / "page.html"
MOST_UNREAD_STEPS = 1000


def build_app(engine: AsyncEngine, options: ServerOptions) -> FastAPI:
    """The server as an ASGI application; it starts and ends the engine."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        await engine.start()
        try:
            yield
        finally:
            await engine.close()

    app = FastAPI(title="mini-engine", version=__version__, lifespan=lifespan)
    metrics = Metrics(engine)
    errors.install(app)
    app.add_middleware(Guard, options=options)
    if options.cors_origins:
        origins = list(options.cors_origins)
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["*"], allow_headers=["*"]
        )
    _add_openai_routes(app, Serving(engine, metrics, options))
    _add_other_routes(app, engine, metrics)
    return app


@dataclass(frozen=True)
class Serving:
    """What the routes that generate text share."""

    engine: AsyncEngine
    metrics: Metrics
    options: ServerOptions

    async def answer(
        self, http: Request, body: ChatRequest | CompletionRequest, prompts: list[list[int]]
    ) -> Response:
        """Serve the prompts of one request, as a stream or whole. Raises ApiError."""
        chat = isinstance(body, ChatRequest)
        form = Answer(self.options.model, chat, self.engine.tokenizer, self._echoes(body, prompts))
        generation = Generation(self, body, prompts, form)
        if body.stream:
            first = await _unless_gone(http, generation.first())
            return StreamingResponse(
                generation.events(first), media_type="text/event-stream",
                headers={"Cache-Control": "no-cache", "X-Accel-Buffering": "no"},
            )  # fmt: skip
        return JSONResponse(await _unless_gone(http, generation.whole()))

    def _echoes(
        self, body: ChatRequest | CompletionRequest, prompts: list[list[int]]
    ) -> list[str] | None:
        """The prompt's text for each choice, if the request wants it back."""
        if isinstance(body, ChatRequest) or not body.echo:
            return None
        decode = self.engine.tokenizer.decode
        texts = [
            given if isinstance(given, str) else decode(ids, clean_up_tokenization_spaces=False)
            for given, ids in zip(body.prompts(), prompts, strict=True)
        ]
        return [text for text in texts for _ in range(body.n or 1)]

    def check(self, body: ChatRequest | CompletionRequest) -> None:
        """Refuse what this server can't do. Raises ApiError."""
        if body.model not in (None, self.options.model):
            message = f"model: there is no {body.model!r} here, only {self.options.model!r}"
            raise ApiError(404, message, "model")
        body.refuse_unsupported()


async def _unless_gone(http: Request, work: Any) -> Any:
    """The result of `work`, which is cancelled if the client goes away."""
    task = asyncio.ensure_future(work)

    async def watch() -> None:
        while (await http.receive())["type"] != "http.disconnect":
            pass
        task.cancel()

    watcher = asyncio.create_task(watch())
    try:
        return await task
    except asyncio.CancelledError as error:
        raise ApiError(499, "the client has gone away") from error
    finally:
        watcher.cancel()


def _add_openai_routes(app: FastAPI, serving: Serving) -> None:
    engine, options = serving.engine, serving.options

    @app.get("/v1/models")
    async def models() -> dict[str, Any]:
        """The one model that is served."""
        longest = engine.described.get("max_model_len")
        model = {"id": options.model, "object": "model", "created": 0, "owned_by": "mini-engine"}
        return {"object": "list", "data": [{**model, "max_model_len": longest}]}

    @app.post("/v1/chat/completions", response_model=None)
    async def chat(http: Request, body: ChatRequest) -> Response:
        """Answer a conversation."""
        try:
            serving.check(body)
            prompt = await asyncio.to_thread(engine.intake.chat_prompt, body.conversation())
            return await serving.answer(http, body, [prompt])
        except Exception as error:
            raise errors.as_api_error(error) from error

    @app.post("/v1/completions", response_model=None)
    async def completions(http: Request, body: CompletionRequest) -> Response:
        """Continue one or several texts."""
        try:
            serving.check(body)
            encode = engine.intake.encode
            prompts = [await asyncio.to_thread(encode, prompt) for prompt in body.prompts()]
            return await serving.answer(http, body, prompts)
        except Exception as error:
            raise errors.as_api_error(error) from error

    @app.post("/tokenize")
    async def tokenize(body: TokenizeRequest) -> dict[str, Any]:
        """The tokens of a text, or of a conversation in the chat template."""
        try:
            if (body.prompt is None) == (body.messages is None):
                raise ValueError("prompt: give either a prompt or messages")
            if body.messages is not None:
                told = ChatRequest(messages=body.messages).conversation()
                tokens = await asyncio.to_thread(engine.intake.chat_prompt, told)
            else:
                tokens = await asyncio.to_thread(engine.intake.encode, body.prompt or "")
        except Exception as error:
            raise errors.as_api_error(error) from error
        return {"tokens": tokens, "count": len(tokens),
                "max_model_len": engine.described["max_model_len"]}  # fmt: skip


def _add_other_routes(app: FastAPI, engine: AsyncEngine, metrics: Metrics) -> None:
    @app.get("/health")
    async def health() -> JSONResponse:
        """200 while the engine core runs, else 503 and the reason."""
        if engine.error is None:
            return JSONResponse({"status": "ok"})
        return JSONResponse({"status": "the engine is not running", "reason": engine.error}, 503)

    @app.get("/metrics")
    async def show_metrics() -> Response:
        """Prometheus' text format."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/", include_in_schema=False)
    async def page() -> FileResponse:
        return FileResponse(PAGE, media_type="text/html")

    @app.get("/trace", include_in_schema=False)
    async def trace() -> StreamingResponse:
        """Every step record from now on, as server-sent events."""
        if engine.error is not None:
            raise errors.as_api_error(EngineDead(engine.error))
        return StreamingResponse(_records(engine), media_type="text/event-stream")


async def _records(engine: AsyncEngine) -> AsyncIterator[str]:
    queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    def take(record: dict[str, Any] | None) -> None:
        # A reader that is too slow misses steps, and nobody waits for it.
        if record is None or queue.qsize() < MOST_UNREAD_STEPS:
            queue.put_nowait(record)

    engine.watch(take)
    try:
        yield f"event: engine\ndata: {json.dumps(engine.described)}\n\n"
        while (record := await queue.get()) is not None:
            yield f"data: {json.dumps(record)}\n\n"
    finally:
        engine.unwatch(take)
