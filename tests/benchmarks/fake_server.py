"""A server of OpenAI's API that misbehaves on demand: the model's name says how."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator
from typing import Any

import uvicorn
from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse, StreamingResponse


class FakeServer:
    """A context manager: the server runs in a thread of this process, on a port of its own.

    `bodies` are those of all requests; `most_open` is how many were open at the same time. Requests
    for the model "together" are answered once `party` of them are there.
    """

    def __init__(self, party: int = 1) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.open = self.most_open = 0
        self.party = party
        self.refuse_all = False
        self.app = FastAPI()
        self.app.add_api_route("/v1/models", self.models)
        self.app.add_api_route("/v1/completions", self.answer, methods=["POST"])
        self.app.add_api_route("/v1/chat/completions", self.answer, methods=["POST"])
        config = uvicorn.Config(self.app, port=0, log_level="critical", lifespan="off")
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run)

    def __enter__(self) -> FakeServer:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            threading.Event().wait(0.01)
        (port,) = {s.getsockname()[1] for one in self._server.servers for s in one.sockets}
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *unused: object) -> None:
        self._server.should_exit = True
        self._thread.join()

    def models(self) -> dict[str, Any]:
        return {"object": "list", "data": [{"id": "good"}]}

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        self.bodies.append(body)
        self.keys.append(request.headers.get("authorization"))
        how = body["model"]
        if self.refuse_all or how.isdigit():
            return JSONResponse({"error": {"message": "no"}}, 503 if self.refuse_all else int(how))
        return StreamingResponse(self._stream(how, body), media_type="text/event-stream")

    async def _stream(self, how: str, body: dict[str, Any]) -> AsyncIterator[str]:
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        try:
            while how == "together" and len(self.bodies) < self.party:
                await asyncio.sleep(0.001)
            for number in range(body["max_tokens"]):
                if number == 2 and how == "cut":
                    raise ConnectionError("cut on purpose")
                if number == 2 and how == "ends early":
                    return
                if number == 2 and how == "hangs":
                    await asyncio.sleep(60)
                if number == 2 and how == "error event":
                    yield event({"error": {"message": "engine gone", "code": 503}})
                if number == 2 and how == "malformed":
                    yield 'data: {"choices": [\n\n'
                yield ": a comment\n\n" + event(self._chunk(body, f" {number}", None))
                await asyncio.sleep(0)
            yield event(self._chunk(body, "", "length"))
            if how != "no usage":
                count = body["max_tokens"] + (3 if how == "more tokens" else 0)
                yield event(
                    {
                        "choices": [],
                        "usage": {
                            "prompt_tokens": 7,
                            "completion_tokens": count,
                            "total_tokens": 7 + count,
                        },
                    }
                )
            yield "data: [DONE]\n\n"
        finally:
            self.open -= 1

    def _chunk(self, body: dict[str, Any], text: str, reason: str | None) -> dict[str, Any]:
        said: dict[str, Any] = (
            {"delta": {"content": text}} if "messages" in body else {"text": text}
        )
        return {"choices": [{"index": 0, "finish_reason": reason, **said}]}


def event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data)}\n\n"
