"""Owns one HTTP request's way through the engine: prompts and choices, whole or streamed."""

from __future__ import annotations

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
            return body.params(room if most is None else most, body.num_logprobs())
        most = COMPLETION_TOKENS if body.max_tokens is None else body.max_tokens
        return body.params(most, body.logprobs, body.logprobs if body.echo else None)

    async def _run(self) -> AsyncIterator[tuple[int, RequestOutput]]:
        """(choice index, output) of all prompts and choices, mixed as they come."""
        arrived, body = time.monotonic(), self._body
        clocks: dict[int, RequestClock] = {}
        outputs = self._serving.engine.generate(
            self._prompts, self._params, request_id=self._form.request_id,
            priority=body.priority or 0, cache_salt=body.cache_salt,
            timeout_s=self._serving.options.timeout_s,
        )  # fmt: skip
        async with aclosing(outputs):  # type: ignore[type-var]
            async for number, output in outputs:
                index = number * self._n + output.choice
                if index not in clocks:
                    clocks[index] = RequestClock(self._serving.metrics, arrived)
                clocks[index].saw(output)
                yield index, output

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
