"""Owns the engine: requests go in, and every `step()` schedules, runs and updates.

The engine itself is bookkeeping between the parts; the decisions are in control/, the arithmetic in
compute/. Compare vLLM's `vllm/v1/engine/core.py`, `EngineCore.step`.
"""

from __future__ import annotations

import dataclasses
import gc
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol

from mini_engine.config import DEFAULT_MODEL, EngineConfig, SamplingParams, from_kwargs
from mini_engine.control.request import Request
from mini_engine.interfaces import Schedule
from mini_engine.outputs import OutputStream, RequestOutput
from mini_engine.parts import EngineParts
from mini_engine.recorder import Recorder
from mini_engine.trace import StepRecord

if TYPE_CHECKING:
    from mini_engine.compute.model import Model

Prompt = str | Sequence[int]
MOST_EMPTY_STEPS = 3


class Runner(Protocol):
    """Computes a step: chunks in, one sampled token out for each chunk that samples."""

    def run(self, schedule: Schedule) -> dict[str, int]:
        """Returns {request id: token id}."""


class LLMEngine:
    """Serves many requests at once with one model.

    `model` is a Hugging Face folder, a hub id, the default's name, or a loaded compute.model.Model.
    `options` are those of EngineConfig. With a `runner` no model is loaded: it makes up the sampled
    tokens (tests, and the judge's torch-free checks), and num_blocks and max_model_len must be
    given. A context manager: leaving it gives the memory back.
    """

    def __init__(
        self,
        model: str | Path | Model = DEFAULT_MODEL,
        *,
        parts: EngineParts | None = None,
        runner: Runner | None = None,
        trace_limit: int | None = 10_000,
        **options: Any,
    ) -> None:
        parts = parts or EngineParts()
        name = str(model) if isinstance(model, (str, Path)) else type(model).__name__
        config = from_kwargs(EngineConfig, {"model": name, **options})
        self.tokenizer: Any = None
        self.eos_token_ids: tuple[int, ...] = ()
        self.vocab_size: int | None = None
        if runner is None:
            from mini_engine.assemble import assemble

            built = assemble(model, config, parts)
            config, runner = built.config, built.runner
            self.tokenizer, self.eos_token_ids = built.tokenizer, built.eos_token_ids
            self.vocab_size = built.vocab_size
        self.config = config
        self.runner: Any = runner
        pool = parts.resolve("block_pool")(config.num_blocks)
        cache = parts.resolve("prefix_cache")(
            pool, config.block_size, enabled=config.enable_prefix_caching
        )
        self.scheduler: Any = parts.resolve("scheduler")(config, cache)
        self.cache = cache
        self._parts = parts
        self._recorder = Recorder(trace_limit)
        self._streams: dict[str, OutputStream] = {}
        self._num_requests = 0  # never starts again, so ids of two calls cannot be mixed up
        self._empty_steps = 0
        self._closed = False

    # Requests come and go

    def add_request(
        self,
        prompt: Prompt,
        params: SamplingParams | None = None,
        *,
        request_id: str | None = None,
        priority: int = 0,
        cache_salt: str | None = None,
    ) -> str:
        """Queue a prompt (text, or token ids) and return its request id.

        Raises ValueError, with the numbers, for a prompt that can never be served.
        """
        self._check_open()
        params = params or SamplingParams()
        if request_id is None:
            request_id = f"request-{self._num_requests}"
        ends = set(params.stop_token_ids)
        if not params.ignore_eos:
            ends.update(self.eos_token_ids)
        request = Request(
            request_id=request_id,
            prompt_token_ids=self.encode(prompt),
            params=params,
            priority=priority,
            cache_salt=cache_salt,
            end_token_ids=frozenset(ends),
        )
        self.scheduler.add(request)
        self._num_requests += 1
        self._streams[request_id] = OutputStream(request, self._detokenizer(request))
        self._recorder.arrived(request_id)
        return request_id

    def abort(self, request_id: str) -> RequestOutput | None:
        """End a request at once; returns what it had, or None if there is none by that id."""
        self._check_open()
        if not self.scheduler.abort(request_id):
            return None
        self._recorder.aborted(request_id)
        return self._streams.pop(request_id).take()

    @property
    def has_unfinished(self) -> bool:
        """Whether any request waits or runs."""
        return bool(self._streams)

    @property
    def trace(self) -> list[StepRecord]:
        """What happened in every step so far (the last `trace_limit` of them)."""
        return list(self._recorder.records)

    # The loop

    def step(self) -> list[RequestOutput]:
        """Compute one step; returns an output for every request that got a token.

        If the forward pass raises, the step's requests are queued again with nothing computed, and
        the exception goes on: calling `step` again tries once more.
        """
        self._check_open()
        if not self.has_unfinished:
            return []
        schedule = self._schedule()
        sampled = self._run(schedule)
        return self._update(schedule, sampled)

    def _schedule(self) -> Schedule:
        self._recorder.mark()
        schedule: Schedule = self.scheduler.schedule()
        self._recorder.mark()
        self._recorder.scheduled(schedule, self.scheduler, self.cache.pool.num_free)
        self._empty_steps = 0 if schedule.chunks else self._empty_steps + 1
        if self._empty_steps >= MOST_EMPTY_STEPS:
            raise RuntimeError(
                f"the scheduler chose no tokens in {self._empty_steps} steps in a row while "
                f"{len(self._streams)} requests are unfinished; it would never end"
            )
        return schedule

    def _run(self, schedule: Schedule) -> dict[str, int]:
        try:
            if self.config.debug:
                self._poison(schedule)
            sampled: dict[str, int] = self.runner.run(schedule) if schedule.chunks else {}
        except BaseException:
            self.scheduler.roll_back(schedule)
            self._recorder.dropped()
            raise
        self._recorder.mark()
        return sampled

    def _update(self, schedule: Schedule, sampled: dict[str, int]) -> list[RequestOutput]:
        ended = self.scheduler.update(schedule, sampled)
        alive = {rid: token for rid, token in sampled.items() if rid in self._streams}
        outputs = [self._streams[request_id].take() for request_id in alive]
        for request in ended:
            del self._streams[request.request_id]
        check_invariants = getattr(self.scheduler, "check_invariants", None)
        if self.config.debug and check_invariants is not None:  # a learner's has none
            check_invariants()
        self._recorder.mark()
        self._recorder.finished(alive, ended, self.scheduler, self.cache.pool.num_free)
        return outputs

    def generate(
        self,
        prompts: Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[RequestOutput]:
        """Serve all prompts together; returns their final outputs in the order given.

        A request added by others before is served along the way and its outputs are not returned.
        If anything raises, the requests of this call are aborted.
        """
        if isinstance(prompts, str):
            raise TypeError(f"generate takes a list of prompts, got one string: {prompts[:40]!r}")
        many = [params] * len(prompts) if not isinstance(params, Sequence) else list(params)
        if len(many) != len(prompts):
            raise ValueError(f"{len(prompts)} prompts but {len(many)} sampling params")
        ids: list[str] = []
        final: dict[str, RequestOutput] = {}
        try:
            for prompt, one in zip(prompts, many, strict=True):
                ids.append(self.add_request(prompt, one))
            while len(final.keys() & set(ids)) < len(ids):
                final.update({o.request_id: o for o in self.step() if o.finished})
        except BaseException:
            for request_id in ids:
                self.abort(request_id)
            raise
        return [final[request_id] for request_id in ids]

    # Text

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; ids are checked and passed through."""
        if isinstance(prompt, str):
            if self.tokenizer is None:
                raise ValueError("this engine has no tokenizer; give the prompt as token ids")
            return list(self.tokenizer.encode(prompt))
        for token in prompt:
            if isinstance(token, bool) or not isinstance(token, int) or token < 0:
                raise TypeError(f"token ids must be ints of 0 or more, got {token!r}")
            if self.vocab_size is not None and token >= self.vocab_size:
                raise ValueError(
                    f"token id {token}, the vocabulary has {self.vocab_size}; was the prompt made "
                    "with another model's tokenizer?"
                )
        return list(prompt)

    def chat_prompt(self, messages: str | list[dict[str, str]]) -> list[int]:
        """Token ids of a chat (or of one user message) in the model's own chat template."""
        from mini_engine.text.checkpoint import encode_chat

        if self.tokenizer is None:
            raise ValueError("this engine has no tokenizer, so it has no chat template either")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return encode_chat(self.tokenizer, messages)

    def _detokenizer(self, request: Request) -> Any:
        if self.tokenizer is None:
            return None
        return self._parts.resolve("detokenizer")(self.tokenizer, request.prompt_token_ids)

    # Housekeeping

    def _poison(self, schedule: Schedule) -> None:
        """Debug mode: what nobody has written yet must not be readable without being noticed."""
        poison = getattr(self.runner, "poison", None)
        if poison is not None:
            free = [b for b in self.cache.pool.free_block_ids() if not self.cache.is_named(b)]
            poison(schedule.chunks, free, self.config.poison)

    def describe(self) -> dict[str, Any]:
        """The configuration as plain data, for the header of a trace."""
        return dataclasses.asdict(self.config)

    def close(self) -> None:
        """Abort what is unfinished and give the memory back. Closing twice is allowed."""
        if self._closed:
            return
        for request_id in list(self._streams):
            self.abort(request_id)
        self._closed = True
        self.runner = self.tokenizer = None
        gc.collect()

    def __enter__(self) -> LLMEngine:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _check_open(self) -> None:
        if self._closed:
            raise RuntimeError("this engine is closed; make a new one")
