"""Owns one HTTP request's way through the engine: prompts and choices, whole or streamed."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from mini_engine.outputs import RequestOutput
from mini_engine.sampling_params import SamplingParams
from mini_engine.serve.answers import Answer
from mini_engine.serve.errors import as_api_error
from mini_engine.serve.metrics import RequestClock
from mini_engine.serve.protocol import ChatRequest, CompletionRequest

if TYPE_CHECKING:
    from mini_engine.serve.app import Serving

DONE = "data: [DONE]\n\n"
COMPLETION_TOKENS = 16  # OpenAI's default for completions; a chat may fill what room is left


class Generation:
    """Serves a request; choice `c` of prompt `p` has the index p * n + c, as in OpenAI's API."""

    def __init__(
        self,
        serving: Serving,
        body: ChatRequest | CompletionRequest,
        prompts: list[list[int]],
        form: Answer,
    ) -> None:
        self._serving = serving
        self._body = body
        self._prompts = prompts
        self._form = form
        self._n = body.n or 1
        self._params = [self._params_for(prompt) for prompt in prompts]
        self._finals: dict[int, RequestOutput] = {}
        self._outputs = self._run()

    def _params_for(self, prompt: list[int]) -> SamplingParams:
        body = self._body
        room = max(self._serving.engine.described["max_model_len"] - len(prompt), 1)
        if isinstance(body, ChatRequest):
            given = body.max_completion_tokens
            most = given if given is not None else body.max_tokens
            logprobs = body.num_logprobs()
            default = room
        else:
            most, logprobs, default = body.max_tokens, body.logprobs, COMPLETION_TOKENS
        return body.params(default if most is None else most, logprobs)

    async def _run(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        """(choice index, output) of all prompts and choices, mixed as they come."""
        arrived = time.monotonic()
        count = len(self._prompts) * self._n
        clocks = [RequestClock(self._serving.metrics, arrived) for _ in range(count)]
        queue: asyncio.Queue[tuple[int, RequestOutput] | Exception | None] = asyncio.Queue()

        async def serve(number: int) -> None:
            body, name = self._body, f"{self._form.request_id}-{number}"
            outputs = self._serving.engine.generate(
                self._prompts[number], self._params[number], request_id=name,
                priority=body.priority or 0, cache_salt=body.cache_salt,
            )  # fmt: skip
            try:
                async with aclosing(outputs):  # type: ignore[type-var]
                    async for output in outputs:
                        queue.put_nowait((number * self._n + output.choice, output))
            except Exception as error:
                queue.put_nowait(error)
            queue.put_nowait(None)

        tasks = [asyncio.create_task(serve(number)) for number in range(len(self._prompts))]
        try:
            open_tasks = len(tasks)
            while open_tasks:
                found = await self._before_deadline(queue, arrived)
                if isinstance(found, Exception):
                    raise found
                if found is None:
                    open_tasks -= 1
                    continue
                clocks[found[0]].saw(found[1])
                yield found
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _before_deadline(self, queue: asyncio.Queue[Any], arrived: float) -> Any:
        limit = self._serving.options.timeout_s
        if limit is None:
            return await queue.get()
        try:
            return await asyncio.wait_for(queue.get(), arrived + limit - time.monotonic())
        except TimeoutError as error:
            raise TimeoutError(f"the request took longer than {limit:g} s") from error

    async def first(self) -> tuple[int, RequestOutput]:
        """The first output of a stream: errors up to here still get a status of their own."""
        return await anext(self._outputs)  # type: ignore[no-any-return]

    async def whole(self) -> dict[str, Any]:
        """The answer as one object."""
        async with aclosing(self._outputs):  # type: ignore[type-var]
            async for index, output in self._outputs:
                if output.finished:
                    self._finals[index] = output
        return self._form.whole(sorted(self._finals.items()), self._prompt_tokens)

    @property
    def _prompt_tokens(self) -> int:
        return sum(map(len, self._prompts))

    async def events(self, first: tuple[int, RequestOutput]) -> AsyncIterator[str]:
        """The answer as server-sent events, from its first output on."""
        form, num_tokens = self._form, 0
        try:
            async with aclosing(self._outputs):  # type: ignore[type-var]
                if form.chat:
                    for index in range(len(self._prompts) * self._n):
                        yield _event(form.first_chunk(index))
                async for index, output in _chain(first, self._outputs):
                    num_tokens += len(output.new_token_ids)
                    if output.new_text or output.new_token_ids or output.finished:
                        yield _event(form.chunk(index, output))
            options = self._body.stream_options
            if options is not None and options.include_usage:
                yield _event(form.usage_chunk(self._prompt_tokens, num_tokens))
        except Exception as error:  # too late for a status: the stream itself has to say it
            yield _event(as_api_error(error).body())
        yield DONE


async def _chain(first: Any, others: AsyncIterator[Any]) -> AsyncIterator[Any]:
    yield first
    async for one in others:
        yield one


def _event(data: dict[str, Any]) -> str:
    return f"data: {json.dumps(data, ensure_ascii=False)}\n\n"
