"""Owns the conversion of a GGUF file to a Hugging Face folder; runs in a process of its own.

    python convert.py MODEL.gguf FOLDER

transformers reads the quantized file and undoes GGUF's reordering of the query and key rows; the
folder then holds float32 safetensors, the configuration, the tokenizer and the chat template.
A child process gives the gigabytes that this takes back and leaves no trace in the caller.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any


def convert(gguf_file: Path, folder: Path) -> None:
    """Write the model of `gguf_file` to `folder` in float32; `folder` must not hold a model yet."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    source = {"pretrained_model_name_or_path": str(gguf_file.parent), "gguf_file": gguf_file.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    # transformers refuses to save a model that came from GGUF, so its weights move to a fresh one.
    settings = loaded.config.to_dict()
    for name in ("quantization_config", "_name_or_path"):
        settings.pop(name, None)
    model = LlamaForCausalLM(LlamaConfig(**settings))
    model.load_state_dict(loaded.state_dict())
    model.generation_config = loaded.generation_config
    model.save_pretrained(folder)

    tokenizer = AutoTokenizer.from_pretrained(**source)
    restore_pre_tokenizer(tokenizer, pre_tokenizer_name(gguf_file))
    tokenizer.save_pretrained(folder)


def pre_tokenizer_name(gguf_file: Path) -> str | None:
    """How the file says its text was cut into words, for example "smollm"; None if it does not."""
    from gguf import GGUFReader

    field = GGUFReader(gguf_file).get_field("tokenizer.ggml.pre")
    return None if field is None else str(field.contents())


def restore_pre_tokenizer(tokenizer: Any, name: str | None) -> None:
    """Give SmolLM's tokenizer its rule "every digit is a token" back.

    GGUF keeps that rule as a name only and transformers 5 reads every such tokenizer as GPT-2's;
    the model was trained on single digits and adds 123 + 456 worse when it sees them joined.
    """
    if name != "smollm":
        return
    from tokenizers import pre_tokenizers

    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True),
        ]
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: convert.py MODEL.gguf FOLDER")
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
