"""Owns the way in: from a prompt and its parameters to a checked Request and its output stream."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from typing import Any

from mini_engine.control.request import Request
from mini_engine.outputs import OutputStream
from mini_engine.parts import EngineParts
from mini_engine.sampling_params import SamplingParams

Prompt = str | Sequence[int]


def new_seed() -> int:
    """A seed for a request that asked for none."""
    return random.SystemRandom().getrandbits(63)


class Intake:
    """Makes requests for one model. Without a tokenizer, prompts are token ids."""

    def __init__(
        self,
        parts: EngineParts,
        tokenizer: Any,
        eos_token_ids: Sequence[int],
        vocab_size: int | None,
    ) -> None:
        self._parts = parts
        self._tokenizer = tokenizer
        self._eos_token_ids = eos_token_ids
        self._vocab_size = vocab_size

    def request(
        self,
        request_id: str,
        prompt: Prompt,
        params: SamplingParams,
        priority: int = 0,
        cache_salt: str | None = None,
        choice: int = 0,
    ) -> Request:
        """Raises TypeError or ValueError for a prompt or parameters that make no sense here."""
        self._check(params)
        ends = set(params.stop_token_ids)
        if not params.ignore_eos:
            ends.update(self._eos_token_ids)
        if params.prompt_logprobs is not None:
            # Tokens of a prefix hit get no logits, so this prompt must hit none: a salt of its own.
            cache_salt = f"{cache_salt}, prompt logprobs of {request_id}"
        return Request(
            request_id=request_id,
            prompt_token_ids=self.encode(prompt),
            params=params,
            priority=priority,
            cache_salt=cache_salt,
            end_token_ids=frozenset(ends),
            seed=new_seed() if params.seed is None else params.seed,
            choice=choice,
        )

    def choices(
        self,
        name: str,
        prompt: Prompt,
        params: SamplingParams,
        priority: int = 0,
        cache_salt: str | None = None,
    ) -> list[Request]:
        """A request for each of the `n` choices, "NAME.0" and so on. Raises as `request` does.

        They have one seed: the number of the choice makes the difference.
        """
        if params.seed is None:
            params = dataclasses.replace(params, seed=new_seed())
        prompt = self.encode(prompt)
        return [
            self.request(f"{name}.{choice}", prompt, params, priority, cache_salt, choice)
            for choice in range(params.n)
        ]

    def stream(self, request: Request) -> OutputStream:
        """What turns the request's tokens into text as they come."""
        detokenizer = stop_checker = None
        if self._tokenizer is not None:
            make = self._parts.resolve("detokenizer")
            detokenizer = make(self._tokenizer, request.prompt_token_ids)
        params = request.params
        if params.stop:
            make = self._parts.resolve("stop_checker")
            stop_checker = make(params.stop, params.include_stop_str_in_output)
        return OutputStream(request, detokenizer, stop_checker)

    def _check(self, params: SamplingParams) -> None:
        if params.stop and self._tokenizer is None:
            raise ValueError("stop strings need text, and this engine has no tokenizer")
        for name in ("stop_token_ids", "logit_bias"):
            tokens = getattr(params, name)
            if self._vocab_size is not None and tokens and max(tokens) >= self._vocab_size:
                raise ValueError(
                    f"{name} names token {max(tokens)}; the vocabulary has {self._vocab_size}"
                )

    def encode(self, prompt: Prompt) -> list[int]:
        """Token ids of a prompt; ids are checked and passed through."""
        if isinstance(prompt, str):
            if self._tokenizer is None:
                raise ValueError("this engine has no tokenizer; give the prompt as token ids")
            return list(self._tokenizer.encode(prompt))
        for token in prompt:
            if isinstance(token, bool) or not isinstance(token, int) or token < 0:
                raise TypeError(f"token ids must be ints of 0 or more, got {token!r}")
            if self._vocab_size is not None and token >= self._vocab_size:
                raise ValueError(
                    f"token id {token}, the vocabulary has {self._vocab_size}; was the prompt made "
                    "with another model's tokenizer?"
                )
        return list(prompt)

    def chat_prompt(self, messages: str | list[dict[str, str]]) -> list[int]:
        """Token ids of a chat (or of one user message) in the model's own chat template."""
        from mini_engine.text.checkpoint import encode_chat

        if self._tokenizer is None:
            raise ValueError("this engine has no tokenizer, so it has no chat template either")
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        return encode_chat(self._tokenizer, messages)
