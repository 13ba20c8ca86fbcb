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

from mini_engine.config import DEFAULT_MODEL, EngineConfig, from_kwargs
from mini_engine.control.request import Request
from mini_engine.intake import Intake, Prompt
from mini_engine.interfaces import Schedule
from mini_engine.outputs import OutputStream, RequestOutput
from mini_engine.parts import EngineParts
from mini_engine.recorder import Recorder
from mini_engine.sampling_params import SamplingParams
from mini_engine.trace import StepRecord

if TYPE_CHECKING:
    from mini_engine.compute.model import Model

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
    given; `tokenizer` says what they mean. With `tokens_only` no tokenizer is loaded: prompts are
    token ids, outputs have no text. A context manager: leaving it gives the memory back.
    """

    def __init__(
        self,
        model: str | Path | Model = DEFAULT_MODEL,
        *,
        parts: EngineParts | None = None,
        runner: Runner | None = None,
        tokenizer: Any = None,
        trace_limit: int | None = 10_000,
        tokens_only: bool = False,
        **options: Any,
    ) -> None:
        if tokenizer is not None and runner is None:
            raise ValueError("tokenizer goes with a runner; a model brings its own")
        parts = parts or EngineParts()
        name = str(model) if isinstance(model, (str, Path)) else type(model).__name__
        config = from_kwargs(EngineConfig, {"model": name, **options})
        self.tokenizer: Any = tokenizer
        self.eos_token_ids: tuple[int, ...] = ()
        self.vocab_size: int | None = None
        if runner is None:
            from mini_engine.assemble import assemble

            built = assemble(model, config, parts, tokens_only=tokens_only)
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
        self._intake = Intake(parts, self.tokenizer, self.eos_token_ids, self.vocab_size)
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

        Raises ValueError, with the numbers, for a prompt that can never be served, and for
        parameters that this engine or model can't follow.
        """
        self._check_open()
        params = params or SamplingParams()
        if params.n != 1:
            raise ValueError(f"add_request queues one choice, n is {params.n}; use add_choices")
        if request_id is None:
            request_id = f"request-{self._num_requests}"
        return self.add(self._intake.request(request_id, prompt, params, priority, cache_salt))

    def add_choices(
        self,
        prompt: Prompt,
        params: SamplingParams,
        *,
        request_id: str | None = None,
        priority: int = 0,
        cache_salt: str | None = None,
    ) -> list[str]:
        """Queue `params.n` requests for one prompt; returns their ids, "ID.0" and so on.

        With prefix caching they share the prompt's full blocks. All are queued, or none.
        """
        self._check_open()
        name = f"request-{self._num_requests}" if request_id is None else request_id
        ids: list[str] = []
        try:
            for request in self._intake.choices(name, prompt, params, priority, cache_salt):
                ids.append(self.add(request))
        except BaseException:
            for own in ids:
                self.abort(own)
            raise
        return ids

    def add(self, request: Request) -> str:
        """Queue a request that was made elsewhere, as the server's front end does."""
        self._check_open()
        self.scheduler.add(request)
        self._num_requests += 1
        self._streams[request.request_id] = self._intake.stream(request)
        self._recorder.arrived(request.request_id)
        return request.request_id

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
        self._take_logprobs()
        outputs = [self._streams[request_id].take() for request_id in alive]
        ended += self._end_at_stop_strings(outputs)
        for request in ended:
            del self._streams[request.request_id]
        check_invariants = getattr(self.scheduler, "check_invariants", None)
        if self.config.debug and check_invariants is not None:  # a learner's has none
            check_invariants()
        self._recorder.mark()
        bucket = getattr(self.runner, "graph_bucket", None) if schedule.chunks else None
        self._recorder.finished(alive, ended, self.scheduler, self.cache.pool.num_free, bucket)
        return outputs

    def _take_logprobs(self) -> None:
        for request_id, entry in getattr(self.runner, "logprobs", {}).items():
            if request_id in self._streams:
                self._streams[request_id].logprobs.append(entry)
        for request_id, entries in getattr(self.runner, "prompt_logprobs", {}).items():
            if request_id in self._streams:
                self._streams[request_id].prompt_logprobs.update(entries)

    def _end_at_stop_strings(self, outputs: list[RequestOutput]) -> list[Request]:
        """Only text tells that a stop string is complete, so the scheduler doesn't know yet."""
        ended = []
        for output in outputs:
            request = self._streams[output.request_id].request
            if output.finished and request.finish_reason is None:
                self.scheduler.abort(request.request_id)
                request.finish_reason = output.finish_reason
                ended.append(request)
        return ended

    def generate(
        self,
        prompts: Sequence[Prompt],
        params: SamplingParams | Sequence[SamplingParams] | None = None,
    ) -> list[RequestOutput]:
        """Serve all prompts together; returns their final outputs in the order given.

        A prompt whose params ask for n choices has n outputs, one after another. A request added
        by others before is served along the way and its outputs are not returned.
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
                if one is not None and one.n > 1:
                    ids += self.add_choices(prompt, one)
                else:
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
        return self._intake.encode(prompt)

    def chat_prompt(self, messages: str | list[dict[str, str]]) -> list[int]:
        """Token ids of a chat (or of one user message) in the model's own chat template."""
        return self._intake.chat_prompt(messages)

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
