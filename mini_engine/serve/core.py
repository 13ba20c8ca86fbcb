"""Owns the engine's own loop: takes in requests between steps, and sends what each step made.

Compare `EngineCoreProc` in vLLM's `vllm/v1/engine/core.py`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, Protocol

from mini_engine.engine import LLMEngine
from mini_engine.outputs import RequestOutput
from mini_engine.serve import messages
from mini_engine.serve.messages import Message


class Inbox(Protocol):
    """Where the core's messages come from."""

    def receive(self, wait: bool) -> list[Message]:
        """All messages that are there; with `wait` at least one."""


class EngineCore:
    """Runs an engine, which needs no tokenizer and no long trace, until a "stop" message comes."""

    def __init__(self, engine: LLMEngine, inbox: Inbox, send: Callable[[Message], None]) -> None:
        self.engine = engine
        self.inbox = inbox
        self.send = send
        self._wants_trace = False
        self._stopped = False
        self._prompt_tokens: dict[str, int] = {}  # of requests that were not admitted yet
        self._hit_tokens = self._asked_tokens = self._preemptions = self._sampled_tokens = 0

    def run(self) -> None:
        """The loop. Raises what a step raises: the engine is then in no state to go on."""
        self.send({"kind": "ready", "engine": self._describe()})
        while True:
            idle = not self.engine.has_unfinished
            changed = False
            for message in self.inbox.receive(wait=idle):
                self._handle(message)
                changed = changed or message["kind"] == "abort"
            if self._stopped:
                return
            if self.engine.has_unfinished:
                self._step()
            elif changed:
                self.send({"kind": "outputs", "outputs": [], "state": self._state()})

    def _describe(self) -> dict[str, Any]:
        described = self.engine.describe()
        described["vocab_size"] = self.engine.vocab_size
        described["eos_token_ids"] = list(self.engine.eos_token_ids)
        return described

    def _handle(self, message: Message) -> None:
        kind = message["kind"]
        if kind == "add":
            request = messages.added(message)
            try:
                self.engine.add(request)
                self._prompt_tokens[request.request_id] = request.num_tokens
            except ValueError as error:
                self.send({"kind": "refused", "id": request.request_id, "error": str(error)})
        elif kind == "abort":
            for request_id in message["ids"]:
                self.engine.abort(request_id)
                self._prompt_tokens.pop(request_id, None)
        elif kind == "trace":
            self._wants_trace = bool(message["on"])
        elif kind == "stop":
            self._stopped = True
        else:
            raise ValueError(f"the engine core knows no message {kind!r}")

    def _step(self) -> None:
        outputs = self.engine.step()
        record = self.engine.trace[-1]
        self._preemptions += len(record.preempted)
        self._sampled_tokens += len(record.sampled)
        for request_id in record.new:
            self._asked_tokens += self._prompt_tokens.pop(request_id)
            self._hit_tokens += record.cached[request_id]
        message: Message = {
            "kind": "outputs",
            "outputs": [_packed(output) for output in outputs],
            "state": self._state(),
        }
        if self._wants_trace:
            message["record"] = dataclasses.asdict(record)
        self.send(message)

    def _state(self) -> dict[str, int]:
        """Numbers for the metrics."""
        engine = self.engine
        return {
            "running": len(engine.scheduler.running),
            "waiting": len(engine.scheduler.waiting),
            "free_blocks": engine.cache.pool.num_free,
            "num_blocks": engine.cache.pool.num_blocks,
            "hit_tokens": self._hit_tokens,
            "asked_tokens": self._asked_tokens,
            "preemptions": self._preemptions,
            "sampled_tokens": self._sampled_tokens,
        }


def _packed(output: RequestOutput) -> dict[str, Any]:
    """What is new of a request: tokens, and their log probabilities if asked for."""
    packed: dict[str, Any] = {
        "id": output.request_id,
        "tokens": output.new_token_ids,
        "reason": output.finish_reason,
    }
    if output.logprobs is not None and output.new_token_ids:
        new = output.logprobs[-len(output.new_token_ids) :]
        packed["logprobs"] = [dataclasses.astuple(entry) for entry in new]
    if output.prompt_logprobs is not None and len(output.token_ids) == len(output.new_token_ids):
        packed["prompt_logprobs"] = {
            position: dataclasses.astuple(entry)
            for position, entry in enumerate(output.prompt_logprobs)
            if entry is not None
        }
    return packed
