"""Owns the way back from tokens to text, one token at a time, without ever splitting a character.

Decoding each token alone breaks every character that spans tokens, and decoding the whole output
again after each token costs more with every token. So only what is not yet text is kept: a few
bytes for byte-level tokenizers (Llama 3, Qwen3, SmolLM2), a few tokens for all others.
Compare vLLM's `vllm/v1/engine/detokenizer.py`.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Sequence
from typing import Any, Protocol

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
BYTE_TOKEN = re.compile(r"<0x[0-9A-Fa-f]{2}>")  # SentencePiece's spelling of a single byte


class IncrementalDetokenizer:
    """One request's detokenizer; see interfaces.Detokenizer.

    Always: all pieces joined are what `tokenizer.decode(ids, skip_special_tokens=True)` gives for
    all output ids, or, with `prompt_token_ids`, what the output adds to the decoded prompt: the
    prompt decides about a leading space, and a character that it begins belongs to the output.
    The time per token does not depend on the length of the text.
    """

    def __init__(self, tokenizer: Any, prompt_token_ids: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        added = tokenizer.added_tokens_decoder
        self._special = frozenset(i for i, token in added.items() if token.special)
        backend = getattr(tokenizer, "backend_tokenizer", None)
        is_byte_level = type(getattr(backend, "decoder", None)).__name__ == "ByteLevel"
        self._decoder: _Decoder = _ByteLevel() if is_byte_level else _Window(tokenizer)
        self._decoder.start(self._last_pieces(prompt_token_ids))
        self._has_output = self._finished = False

    @property
    def pending(self) -> bool:
        """Whether some text is held back because its last character is not complete."""
        return self._decoder.pending

    def add(self, token_ids: Iterable[int]) -> str:
        """The text that these tokens complete; may be empty.

        Special tokens and ids that the tokenizer does not know have no text.
        """
        if self._finished:
            raise RuntimeError("this detokenizer is finished; each request needs its own")
        pieces = []
        for token_id in token_ids:
            piece = self._piece(token_id)
            if piece is not None:
                self._has_output = True
                pieces.append(self._decoder.add(token_id, piece))
        return "".join(pieces)

    def finish(self) -> str:
        """What was held back; an incomplete character comes out as decoding everything shows it.

        That is one replacement character, or with SentencePiece's byte tokens one for each byte.
        """
        if self._finished or not self._has_output:
            self._finished = True
            return ""
        self._finished = True
        return self._decoder.finish()

    def _piece(self, token_id: int) -> str | None:
        """The token as the vocabulary spells it; None if it has no text."""
        if token_id in self._special:
            return None
        piece = self._tokenizer.convert_ids_to_tokens(token_id)
        return piece or None

    def _last_pieces(self, token_ids: Sequence[int]) -> list[tuple[int, str]]:
        """The end of the prompt: enough tokens to know the state in which the output begins.

        A character has at most four bytes, and a run of byte tokens is decoded as one.
        """
        found: list[tuple[int, str]] = []
        for token_id in reversed(token_ids):
            piece = self._piece(token_id)
            if piece is not None:
                found.append((token_id, piece))
                if len(found) >= 4 and not BYTE_TOKEN.fullmatch(piece):
                    break
        return found[::-1]


class _Decoder(Protocol):
    """Turns (id, vocabulary piece) of one token after the other into text."""

    @property
    def pending(self) -> bool: ...

    def start(self, prompt: Sequence[tuple[int, str]]) -> None: ...

    def add(self, token_id: int, piece: str) -> str: ...

    def finish(self) -> str: ...


class _ByteLevel:
    """For vocabularies that spell each byte as one printable character, as GPT-2's does.

    Python's UTF-8 decoder keeps the at most three bytes of a character that is not complete yet.
    """

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")

    @property
    def pending(self) -> bool:
        return self._utf8.getstate()[0] != b""

    def start(self, prompt: Sequence[tuple[int, str]]) -> None:
        for token_id, piece in prompt:
            self.add(token_id, piece)

    def add(self, token_id: int, piece: str) -> str:
        return self._utf8.decode(piece_bytes(piece))

    def finish(self) -> str:
        return self._utf8.decode(b"", final=True)


def _byte_alphabet() -> dict[str, int]:
    """The character that stands for each byte: itself if printable, else one from 256 upwards."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet = {chr(byte): byte for byte in printable}
    return alphabet | {chr(256 + index): byte for index, byte in enumerate(others)}


BYTE_ALPHABET = _byte_alphabet()


def piece_bytes(piece: str) -> bytes:
    """The bytes of a byte-level vocabulary entry; an added token outside the alphabet is text."""
    try:
        return bytes(BYTE_ALPHABET[character] for character in piece)
    except KeyError:
        return piece.encode("utf-8")


class _Window:
    """For all other tokenizers: decodes the new tokens together with the few before them.

    The tokens before (`_context`) make spaces come out right, because many tokenizers drop the
    first one of a text. SentencePiece's byte tokens are valid or invalid as a whole run, so a run
    is held back until it ends.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._context: list[int] = []
        self._context_text = ""
        self._held: list[int] = []

    @property
    def pending(self) -> bool:
        return bool(self._held)

    def start(self, prompt: Sequence[tuple[int, str]]) -> None:
        self._context = [token_id for token_id, _ in prompt]
        # A character that the prompt leaves incomplete is the output's to show.
        self._context_text = self._decode(self._context).rstrip(REPLACEMENT)

    def add(self, token_id: int, piece: str) -> str:
        self._held.append(token_id)
        if BYTE_TOKEN.fullmatch(piece):
            return ""
        text = self._decode(self._context + self._held)
        if text.endswith(REPLACEMENT) and not piece.endswith(REPLACEMENT):
            return ""  # how decoders say that a character is not complete
        return self._release(text)

    def finish(self) -> str:
        return self._release(self._decode(self._context + self._held))

    def _release(self, text: str) -> str:
        new = text[len(self._context_text) :]
        # The last token alone is context enough, as it is a whole piece of text.
        self._context = self._held[-1:] or self._context
        self._context_text = self._decode(self._context)
        self._held = []
        return new

    def _decode(self, token_ids: list[int]) -> str:
        text: str = self._tokenizer.decode(
            token_ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
        )
        return text
