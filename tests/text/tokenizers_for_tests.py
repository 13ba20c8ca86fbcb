"""The judge's small tokenizers as transformers wraps them: nothing is downloaded."""

from __future__ import annotations

from typing import Any

from transformers import PreTrainedTokenizerFast

from judge import text_tokenizers
from judge.text_tokenizers import END


def byte_level() -> Any:
    """GPT-2's kind."""
    return _wrap("byte_level")


def sentencepiece_like() -> Any:
    """Llama 2's kind."""
    return _wrap("sentencepiece_like")


def metaspace() -> Any:
    """T5's kind."""
    return _wrap("metaspace")


def _wrap(kind: str) -> Any:
    backend = text_tokenizers.KINDS[kind]()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token=END)
