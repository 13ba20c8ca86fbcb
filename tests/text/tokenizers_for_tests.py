"""Small tokenizers of the three common kinds, built on the spot: nothing is downloaded."""

from __future__ import annotations

from typing import Any

from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

WORDS = ["he", "hell", "hello", "wor", "world", "is", "user", "the"]


def _wrap(tokenizer: Tokenizer) -> Any:
    tokenizer.add_special_tokens([AddedToken("<|end|>", special=True)])
    tokenizer.add_tokens([AddedToken("<think now>", special=False, normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>")


def byte_level() -> Any:
    """GPT-2's kind: 256 bytes, a few merges, some of which end inside a character."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocab = {character: index for index, character in enumerate(alphabet)}
    emoji = list(_spell("\N{WAVING HAND SIGN}"))
    pairs = [("h", "e"), ("l", "l"), ("\u0120", "w"), (emoji[0], emoji[1]), (emoji[2], emoji[3])]
    for left, right in pairs:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return _wrap(tokenizer)


def _spell(text: str) -> str:
    """The text as a byte-level vocabulary writes it."""
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)[
        0
    ][0]


def sentencepiece_like() -> Any:
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
    return _wrap(tokenizer)


def metaspace() -> Any:
    """T5's kind: words that carry their space, no byte tokens."""
    pieces = ["<unk>", "\u2581", *WORDS, *("\u2581" + word for word in WORDS), *"abcdehlorstuw"]
    scores = [(piece, -float(index)) for index, piece in enumerate(pieces)]
    tokenizer = Tokenizer(models.Unigram(scores, unk_id=0))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return _wrap(tokenizer)
