"""Owns what the engine returns for a request after a step, and the streaming text behind it."""

from __future__ import annotations

from dataclasses import dataclass, field

from mini_engine.control.request import Request
from mini_engine.interfaces import Detokenizer, StopChecker, TokenLogprobs


@dataclass(frozen=True)
class RequestOutput:
    """One request after a step: what is new, and all so far.

    `finish_reason` is None while it runs, then "stop", "length", "capacity" or "abort". `stop` is
    the stop string or the token id that ended it with "stop". `text` is empty for an engine without
    a tokenizer. The token that ended it is in the ids and not in the text; a stop string is in the
    text only if the request asked for it. While it runs, tokens whose text is held back (it may
    become a stop string, or is half a character) are held back, too: the ids never say more than
    the text. `logprobs` has an entry per token, if asked for. `choice` counts those of `n` from 0.
    """

    request_id: str
    prompt_token_ids: list[int]
    new_token_ids: list[int]
    new_text: str
    token_ids: list[int]
    text: str
    finish_reason: str | None = None
    stop: str | int | None = None
    logprobs: list[TokenLogprobs] | None = None
    prompt_logprobs: list[TokenLogprobs | None] | None = None
    choice: int = 0

    @property
    def finished(self) -> bool:
        """Whether this is the request's last output."""
        return self.finish_reason is not None


@dataclass
class OutputStream:
    """Collects one request's tokens and text while it runs; `finish_reason` once it has ended."""

    request: Request
    detokenizer: Detokenizer | None = None
    stop_checker: StopChecker | None = None
    logprobs: list[TokenLogprobs] = field(default_factory=list)
    prompt_logprobs: dict[int, TokenLogprobs] = field(default_factory=dict)  # by position
    text: str = ""
    finish_reason: str | None = None
    stop: str | int | None = None
    _num_read: int = 0
    _num_shown: int = 0
    _num_characters: int = 0  # of the text of all tokens read, shown or held back
    # (tokens, characters of their text): up to here the text is whole, but not all of it is shown
    _borders: list[tuple[int, int]] = field(default_factory=list)

    def take(self) -> RequestOutput:
        """The tokens that may be shown and were not yet, with their text.

        If their text completes a stop string, `finish_reason` is "stop" from then on, and whoever
        runs the request has to end it.
        """
        new = self.request.output_token_ids[self._num_read :]
        new_text = "".join(map(self._read, new)) + self._end()
        self.text += new_text
        return self._output(self._show(), new_text)

    def _read(self, token_id: int) -> str:
        """Take in a token; returns the text that may now be shown."""
        self._num_read += 1
        ends_it = self._num_read == len(self.request.output_token_ids)
        if ends_it and self.request.finish_reason == "stop":
            self.stop = token_id
            return ""  # it stands for the end, not for text
        if self.detokenizer is None:
            return ""
        text = self.detokenizer.add([token_id])
        self._num_characters += len(text)
        if not self.detokenizer.pending:
            self._borders.append((self._num_read, self._num_characters))
        return self._check(text)

    def _check(self, text: str) -> str:
        """The part of new text that can't belong to a stop string any more."""
        checker = self.stop_checker
        # Text of the first min_tokens tokens never ends a request, nor begins a stop string.
        if checker is None or self._num_read <= self.request.params.min_tokens:
            return text
        shown = checker.add(text)
        if checker.matched is not None:
            self.finish_reason, self.stop = "stop", checker.matched
        return shown

    def _end(self) -> str:
        """If the request has ended: what detokenizer and stop checker still hold."""
        if self.finish_reason is not None or self.request.finish_reason is None:
            return ""
        text = "" if self.detokenizer is None else self._check(self.detokenizer.finish())
        if self.finish_reason is None:  # else its last characters completed a stop string
            self.finish_reason = self.request.finish_reason
            text += "" if self.stop_checker is None else self.stop_checker.finish()
        return text

    def _show(self) -> int:
        """Move on to the tokens whose text is shown; returns how many were shown before."""
        before = self._num_shown
        if self.detokenizer is None or self.finish_reason is not None:
            self._num_shown = self._num_read
        while self._borders and self._borders[0][1] <= len(self.text):
            self._num_shown = max(self._num_shown, self._borders.pop(0)[0])
        return before

    def _output(self, first: int, new_text: str) -> RequestOutput:
        request, params = self.request, self.request.params
        token_ids = request.output_token_ids[: self._num_shown]
        prompt_logprobs = None
        if params.prompt_logprobs is not None:
            positions = range(len(request.prompt_token_ids))
            prompt_logprobs = [self.prompt_logprobs.get(position) for position in positions]
        return RequestOutput(
            request_id=request.request_id,
            prompt_token_ids=list(request.prompt_token_ids),
            new_token_ids=token_ids[first:],
            new_text=new_text,
            token_ids=token_ids,
            text=self.text,
            finish_reason=self.finish_reason,
            stop=self.stop,
            logprobs=None if params.logprobs is None else self.logprobs[: self._num_shown],
            prompt_logprobs=prompt_logprobs,
            choice=request.choice,
        )
