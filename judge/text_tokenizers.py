"""Owns the tokenizers that text exercises are graded with: small ones of three kinds, made here.

They need the `tokenizers` library only, which loads in a blink; transformers takes seconds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers

WORDS = ["he", "hell", "hello", "wor", "world", "is", "user", "the"]
END = "<|end|>"
EMOJI = "\N{WAVING HAND SIGN}"


def byte_level() -> Tokenizer:
    """GPT-2's kind: 256 bytes, a few merges, some of which end inside a character."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: index for index, character in enumerate(alphabet)}
    emoji = list(_spell(EMOJI))
    pairs = [("h", "e"), ("l", "l"), ("\u0120", "w"), (emoji[0], emoji[1]), (emoji[2], emoji[3])]
    pairs.append(("a", _spell("\u4f60")[0]))  # a whole character and a part of the next
    for left, right in pairs:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _with_added_tokens(tokenizer)


def _spell(text: str) -> str:
    """The text as a byte-level vocabulary writes it."""
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    return str(splitter.pre_tokenize_str(text)[0][0])


def sentencepiece_like() -> Tokenizer:
    """Llama 2's kind: words that carry their space, and byte tokens for everything else."""
    pieces = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "\u2581", "\u2581\u2581"]
    pieces += [*WORDS, *("\u2581" + word for word in WORDS), *"abcdehlorstuwx", "\ufffd"]
    scores = [(piece, -float(index)) for index, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0, byte_fallback=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")]
    )
    tokenizer.decoder = decoders.Sequence(
        [
            decoders.Replace("\u2581", " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    return _with_added_tokens(tokenizer)


def metaspace() -> Tokenizer:
    """T5's kind: words that carry their space, no byte tokens."""
    pieces = ["<unk>", "\u2581", *WORDS, *("\u2581" + word for word in WORDS), *"abcdehlorstuw"]
    scores = [(piece, -float(index)) for index, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _with_added_tokens(tokenizer)


def _with_added_tokens(tokenizer: Tokenizer) -> Tokenizer:
    tokenizer.add_special_tokens([AddedToken(END, special=True)])
    tokenizer.add_tokens([AddedToken("<think now>", special=False, normalized=False)])
    return tokenizer


KINDS: dict[str, Callable[[], Tokenizer]] = {
    "byte_level": byte_level,
    "sentencepiece_like": sentencepiece_like,
    "metaspace": metaspace,
}


class LightTokenizer:
    """What a detokenizer needs of a transformers tokenizer, without transformers.

    Counts in `decoded` how many tokens it was asked to decode or to spell.
    """

    def __init__(self, backend: Tokenizer) -> None:
        self.backend_tokenizer = backend
        self.added_tokens_decoder = backend.get_added_tokens_decoder()
        self.all_special_ids = [i for i, t in self.added_tokens_decoder.items() if t.special]
        self.decoded = 0

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size())

    def encode(self, text: str, add_special_tokens: bool = True) -> list[int]:
        """The ids of a text."""
        return list(self.backend_tokenizer.encode(text, add_special_tokens=add_special_tokens).ids)

    def decode(
        self,
        token_ids: int | Sequence[int],
        skip_special_tokens: bool = False,
        clean_up_tokenization_spaces: bool = False,
    ) -> str:
        """The text of these ids; never cleans up spaces."""
        ids = [token_ids] if isinstance(token_ids, int) else list(token_ids)
        self.decoded += len(ids)
        return str(self.backend_tokenizer.decode(ids, skip_special_tokens=skip_special_tokens))

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> Any:
        """How the vocabulary spells an id (None if it has none), or a list of these."""
        if isinstance(ids, int):
            self.decoded += 1
            return self.backend_tokenizer.id_to_token(ids)
        return [self.convert_ids_to_tokens(token_id) for token_id in ids]


def light_tokenizer(name: str) -> LightTokenizer:
    """One of `KINDS`, or that of a payload's real model."""
    if name in KINDS:
        return LightTokenizer(KINDS[name]())
    from judge.models import tokenizer_file

    file = tokenizer_file(name)
    if file is None:
        raise ValueError(f"there is no tokenizer {name!r}; known: {', '.join(KINDS)} and models")
    return LightTokenizer(Tokenizer.from_file(str(file)))
