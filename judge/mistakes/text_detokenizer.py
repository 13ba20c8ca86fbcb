"""Owns the known mistakes of `text.detokenizer`: each is wrong in one way."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
MOST_HELD, KEPT = 8, 4  # a character has at most four bytes


class PlainDetokenizer:
    """Right, and written so that one line at a time can be made wrong."""

    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        self.tokenizer = tokenizer
        self.special = frozenset(tokenizer.all_special_ids)
        self.out = list(prompt_token_ids)  # tokens whose text is out
        self.out_text = self.decode(self.out).rstrip(REPLACEMENT)
        self.held: list[int] = []

    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(
            list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text

    @property
    def pending(self) -> bool:
        return bool(self.held)

    def has_text(self, token: int) -> bool:
        return token not in self.special and bool(self.tokenizer.convert_ids_to_tokens(token))

    def waits(self, text: str) -> bool:
        """Whether the held tokens may still change their text."""
        spelled = self.tokenizer.convert_ids_to_tokens(self.held[-1])
        return text.endswith(REPLACEMENT) or bool(BYTE.fullmatch(spelled))

    def add(self, token_ids: Iterable[int]) -> str:
        return "".join([self.one(token) for token in token_ids])

    def one(self, token: int) -> str:
        if not self.has_text(token):
            return ""
        self.held.append(token)
        text = self.decode([*self.out, *self.held])
        if not self.waits(text):
            return self.release(text)
        spelled = self.tokenizer.convert_ids_to_tokens(token)
        return "" if len(self.held) <= MOST_HELD or BYTE.fullmatch(spelled) else self.shorten(text)

    def shorten(self, text: str) -> str:
        """Release all but the last replacement character: nothing else is uncertain."""
        new = text[len(self.out_text) : -1]
        self.out, self.held = [], self.held[-KEPT:]
        self.out_text = self.decode(self.held)[:-1]
        return new

    def release(self, text: str) -> str:
        new = text[len(self.out_text) :]
        self.out = self.held[-1:] or self.out
        self.out_text = self.decode(self.out)
        self.held = []
        return new

    def finish(self) -> str:
        return self.release(self.decode([*self.out, *self.held])) if self.held else ""


class EachAlone(PlainDetokenizer):
    def one(self, token: int) -> str:
        return self.decode([token])

    def finish(self) -> str:
        return ""


class ShowsHalf(PlainDetokenizer):
    def waits(self, text: str) -> bool:
        return False


class DropsHalf(PlainDetokenizer):
    """Takes the replacement character away, and with it the beginning of the character."""

    def one(self, token: int) -> str:
        if not self.has_text(token):
            return ""
        self.held.append(token)
        return self.release(self.decode([*self.out, *self.held])).replace(REPLACEMENT, "")


class NothingAtEnd(PlainDetokenizer):
    def finish(self) -> str:
        return ""


class NoPrompt(PlainDetokenizer):
    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer)


class SendsPrompt(PlainDetokenizer):
    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, prompt_token_ids)
        self.out_text = ""


class ShowsSpecial(PlainDetokenizer):
    def decode(self, ids: Sequence[int]) -> str:
        text: str = self.tokenizer.decode(list(ids), clean_up_tokenization_spaces=False)
        return text

    def has_text(self, token: int) -> bool:
        return bool(self.tokenizer.convert_ids_to_tokens(token))


class StripsHalf(PlainDetokenizer):
    """Shows what stands before the replacement character, and forgets that it has."""

    def one(self, token: int) -> str:
        if not self.has_text(token):
            return ""
        self.held.append(token)
        text = self.decode([*self.out, *self.held])
        if self.waits(text):
            return text[len(self.out_text) :].rstrip(REPLACEMENT)
        return self.release(text)


class DecodesAll(PlainDetokenizer):
    def release(self, text: str) -> str:
        new = text[len(self.out_text) :]
        self.out, self.out_text, self.held = [*self.out, *self.held], text, []
        return new


class ShowsRuns(PlainDetokenizer):
    def waits(self, text: str) -> bool:
        return text.endswith(REPLACEMENT)


class NeverPending(PlainDetokenizer):
    @property
    def pending(self) -> bool:
        return False


class AlwaysPending(PlainDetokenizer):
    @property
    def pending(self) -> bool:
        return True


class StaysPending(PlainDetokenizer):
    ever = False

    @property
    def pending(self) -> bool:
        self.ever = self.ever or bool(self.held)
        return self.ever


class _OfThread(threading.local):
    """The self-test grades in several threads: what requests share stays in one of them."""

    def __init__(self) -> None:
        self.held: list[int] = []


class SharedList(PlainDetokenizer):
    of_thread: ClassVar[_OfThread] = _OfThread()

    @property
    def shared(self) -> list[int]:
        return self.of_thread.held

    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, prompt_token_ids)
        self.shared.clear()  # as if the program had just started
        self.held = self.shared

    def release(self, text: str) -> str:
        new = super().release(text)
        self.shared.clear()
        self.held = self.shared
        return new


class KeepsPromptList(PlainDetokenizer):
    """Appends the output to the request's own prompt."""

    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, prompt_token_ids)
        self.prompt = prompt_token_ids

    def one(self, token: int) -> str:
        if self.has_text(token) and isinstance(self.prompt, list):
            self.prompt.append(token)
        return super().one(token)


class LastOfGroup(PlainDetokenizer):
    def add(self, token_ids: Iterable[int]) -> str:
        return super().add(list(token_ids)[-1:])


class AllAtEnd(PlainDetokenizer):
    def one(self, token: int) -> str:
        if self.has_text(token):
            self.held.append(token)
        return ""


class TextSoFar(PlainDetokenizer):
    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, prompt_token_ids)
        self.text = ""

    def add(self, token_ids: Iterable[int]) -> str:
        self.text += super().add(token_ids)
        return self.text


class ForgetsHalfPrompt(PlainDetokenizer):
    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        super().__init__(tokenizer, prompt_token_ids)
        self.out_text = self.decode(self.out)
