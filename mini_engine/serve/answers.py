"""Owns the answers of OpenAI's API: objects for whole answers, chunks for streams."""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from mini_engine.interfaces import TokenLogprobs
from mini_engine.outputs import RequestOutput

Json = dict[str, Any]
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
    """The form of one request's answers: chat or completion, with the ids that all parts share."""

    model: str
    chat: bool
    tokenizer: Any
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
                "logprobs": self._logprobs(output.logprobs, ""),
            }
            if self.chat:
                choice["message"] = {"role": "assistant", "content": output.text, "refusal": None}
            else:
                choice["text"] = output.text
            choices.append(choice)
        kind = "chat.completion" if self.chat else "text_completion"
        counts = usage(prompt_tokens, sum(len(output.token_ids) for _, output in finals))
        return {**self._envelope(kind, choices), "usage": counts}

    def first_chunk(self, index: int) -> Json:
        """A chat stream begins with the role."""
        delta = {"role": "assistant", "content": ""}
        return self._chunk({"index": index, "delta": delta, "finish_reason": None})

    def chunk(self, index: int, output: RequestOutput) -> Json:
        """What a stream says about one output."""
        new = None
        if output.logprobs is not None and output.new_token_ids:
            new = output.logprobs[-len(output.new_token_ids) :]
        before = output.text[: len(output.text) - len(output.new_text)]
        choice: Json = {
            "index": index,
            "finish_reason": REASONS.get(output.finish_reason or ""),
            "logprobs": self._logprobs(new, before),
        }
        if self.chat:
            choice["delta"] = {"content": output.new_text} if output.new_text else {}
        else:
            choice["text"] = output.new_text
        return self._chunk(choice)

    def _chunk(self, choice: Json) -> Json:
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return self._envelope(kind, [choice])

    def usage_chunk(self, prompt_tokens: int, output_tokens: int) -> Json:
        """The last chunk of a stream that asked for it."""
        kind = "chat.completion.chunk" if self.chat else "text_completion"
        return {**self._envelope(kind, []), "usage": usage(prompt_tokens, output_tokens)}

    def _logprobs(self, entries: Sequence[TokenLogprobs] | None, before: str) -> Json | None:
        if entries is None:
            return None
        if self.chat:
            return {"content": [self._chat_entry(entry) for entry in entries], "refusal": None}
        tokens = [self._piece(entry.token_id) for entry in entries]
        offsets, place = [], len(before)
        for token in tokens:
            offsets.append(place)
            place += len(token)
        return {
            "tokens": tokens,
            "token_logprobs": [entry.logprob for entry in entries],
            "top_logprobs": [{self._piece(t): v for t, v in entry.top} for entry in entries],
            "text_offset": offsets,
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
