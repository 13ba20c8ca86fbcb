"""Owns what the engine returns for a request after a step, and the streaming text behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mini_engine.control.request import Request
from mini_engine.interfaces import Detokenizer


@dataclass(frozen=True)
class RequestOutput:
    """One request after a step: what is new, and all so far.

    `finish_reason` is None while it runs, then "stop", "length", "capacity" or "abort". `text` is
    empty for an engine without a tokenizer. The token that ended it with "stop" is in the ids and
    not in the text.
    """

    request_id: str
    prompt_token_ids: list[int]
    new_token_ids: list[int]
    new_text: str
    token_ids: list[int]
    text: str
    finish_reason: str | None = None

    @property
    def finished(self) -> bool:
        """Whether this is the request's last output."""
        return self.finish_reason is not None


@dataclass
class OutputStream:
    """Collects one request's tokens and text while it runs."""

    request: Request
    detokenizer: Detokenizer | None = None
    text: str = ""
    num_sent: int = field(default=0)

    def take(self) -> RequestOutput:
        """The tokens sampled since the last call, with the text that they complete."""
        request = self.request
        new = request.output_token_ids[self.num_sent :]
        self.num_sent += len(new)
        new_text = self._text_of(new)
        self.text += new_text
        return RequestOutput(
            request_id=request.request_id,
            prompt_token_ids=list(request.prompt_token_ids),
            new_token_ids=list(new),
            new_text=new_text,
            token_ids=list(request.output_token_ids),
            text=self.text,
            finish_reason=request.finish_reason,
        )

    def _text_of(self, token_ids: list[int]) -> str:
        if self.detokenizer is None:
            return ""
        reason = self.request.finish_reason
        visible = token_ids[:-1] if reason == "stop" else token_ids
        text = self.detokenizer.add(visible)
        return text + self.detokenizer.finish() if reason is not None else text
