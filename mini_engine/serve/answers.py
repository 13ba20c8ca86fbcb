"""Owns the answers of OpenAI's API: objects for whole answers, chunks for streams."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from mini_engine.interfaces import TokenLogprobs
from mini_engine.outputs import RequestOutput

Json = dict[str, Any]
Scored = list[tuple[int, TokenLogprobs | None]]
REASONS = {"stop": "stop", "length": "length", "capacity": "length"}  # abort has none to send


def usage(prompt_tokens: int, output_tokens: int) -> Json:
    """Tokens in and out."""
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": output_tokens,
        "total_tokens": prompt_tokens + output_tokens,
    }


@dataclass
class Answer:
    """The form of one request's answers: chat or completion, with the ids that all parts share.

    `echoes` are texts to put in front of the choices, one for each, or None.
    """

    model: str
    chat: bool
    tokenizer: Any
    echoes: list[str] | None = None
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    created: int = field(default_factory=lambda: int(time.time()))

    @property
    def request_id(self) -> str:
        """OpenAI's id of this answer."""
        return f"{'chatcmpl' if self.chat else 'cmpl'}-{self.id}"

    def _envelope(self, kind: str, choices: list[Json]) -> Json:
        return {
            "id": self.request_id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }

    def whole(self, finals: Sequence[tuple[int, RequestOutput]], prompt_tokens: int) -> Json:
        """The answer to a request that did not ask for a stream; finals by choice index."""
        choices = []
        for index, output in finals:
            choice: Json = {
                "index": index,
                "finish_reason": REASONS.get(output.finish_reason or ""),
                "stop_reason": output.stop,
                "logprobs": self._logprobs(self._scored(output, output.token_ids, True), ""),
            }
            if self.chat:
                choice["message"] = {"role": "assistant", "content": output.text, "refusal": None}
            else:
                choice["text"] = self._echo(index) + output.text
            choices.append(choice)
        kind = "chat.completion" if self.chat else "text_completion"
        counts = usage(prompt_tokens, sum(len(output.token_ids) for _, output in finals))
        return {**self._envelope(kind, choices), "usage": counts}

    def first_chunk(self, index: int) -> Json:
        """A chat stream begins with the role."""
        delta = {"role": "assistant", "content": ""}
        return self._chunk({"index": index, "delta": delta, "finish_reason": None})

    def chunk(self, index: int, output: RequestOutput) -> Json:
        """What a stream says about one output; a choice's first chunk brings the echo, if any."""
        before = output.text[: len(output.text) - len(output.new_text)]
        first = not before and len(output.token_ids) == len(output.new_token_ids)
        scored = self._scored(output, output.new_token_ids, first)
        choice: Json = {
            "index": index,
            "finish_reason": REASONS.get(output.finish_reason or ""),
            "logprobs": self._logprobs(scored, "" if first else self._echo(index) + before),
        }
        if self.chat:
            choice["delta"] = {"content": output.new_text} if output.new_text else {}
        else:
            choice["text"] = (self._echo(index) if first else "") + output.new_text
        return self._chunk(choice)

    def _echo(self, index: int) -> str:
        return "" if self.echoes is None else self.echoes[index]

    def _scored(self, output: RequestOutput, last: Sequence[int], first: bool) -> Scored | None:
        """The `last` of the output's tokens with their log probabilities; None if not asked for.

        With an echo, those of the prompt come before the first ones. Nothing stands before the
        prompt's first token, so it has none.
        """
        if output.logprobs is None or not last:
            return None
        scored: Scored = list(zip(last, output.logprobs[-len(last) :], strict=True))
        if first and output.prompt_logprobs is not None:
            prompt = zip(output.prompt_token_ids, output.prompt_logprobs, strict=True)
            return [*prompt, *scored]
        return scored

    def _chunk(self, choice: Json) -> Json:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._envelope(kind, [choice])

    def usage_chunk(self, prompt_tokens: int, output_tokens: int) -> Json:
        """The last chunk of a stream that asked for it."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._envelope(kind, []), "usage": usage(prompt_tokens, output_tokens)}

    def _logprobs(self, scored: Scored | None, before: str) -> Json | None:
        if scored is None:
            return None
        entries = [entry for _, entry in scored]
        if self.chat:
            told = [self._chat_entry(entry) for entry in entries if entry is not None]
            return {"content": told, "refusal": None}
        tokens = [self._piece(token_id) for token_id, _ in scored]
        return {
            "tokens": tokens,
            "token_logprobs": [entry and entry.logprob for entry in entries],
            "top_logprobs": [
                entry and {self._piece(token_id): value for token_id, value in entry.top}
                for entry in entries
            ],
            "text_offset": list(accumulate(map(len, tokens[:-1]), initial=len(before))),
        }

    def _chat_entry(self, entry: TokenLogprobs) -> Json:
        return {
            **self._named(entry.token_id, entry.logprob),
            "top_logprobs": [self._named(token, value) for token, value in entry.top],
        }

    def _named(self, token_id: int, logprob: float) -> Json:
        piece = self._piece(token_id)
        return {"token": piece, "logprob": logprob, "bytes": list(piece.encode("utf-8"))}

    def _piece(self, token_id: int) -> str:
        return str(self.tokenizer.decode([token_id], clean_up_tokenization_spaces=False))
