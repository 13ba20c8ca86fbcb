"""Owns the reading of a Hugging Face model folder: its configuration and its tokenizer.

The weights are read in `weights`, folders are found in `fetch`; both are offered here as well.

Whatever the engine can't serve faithfully is refused here, by name, before anything is computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from mini_engine.config import ModelConfig
from mini_engine.text.default_model import ModelNotAvailable
from mini_engine.text.fetch import find_model
from mini_engine.text.weights import load_weights, read_json

__all__ = [
    "ARCHITECTURES",
    "ModelNotAvailable",
    "encode_chat",
    "find_model",
    "load_config",
    "load_tokenizer",
    "load_weights",
]

ARCHITECTURES = ("LlamaForCausalLM", "Qwen3ForCausalLM")


def load_config(folder: Path) -> ModelConfig:
    """The shape of the model in `folder`, from config.json and generation_config.json.

    Reads both the layout of transformers 5 (`rope_parameters`) and the older one (`rope_theta`,
    `rope_scaling`). The end-of-sequence tokens are those of the two files together. Raises
    ValueError for an architecture or an option that the engine does not compute.
    """
    folder = Path(folder)
    settings = read_json(folder / "config.json")
    architecture = _check_architecture(folder, settings)
    is_qwen3 = architecture == "Qwen3ForCausalLM"
    _check_options(folder, settings)
    try:
        hidden_size, num_heads = settings["hidden_size"], settings["num_attention_heads"]
        theta, scaling = _rope(folder, settings)
        return ModelConfig(
            architecture=architecture,
            vocab_size=settings["vocab_size"],
            hidden_size=hidden_size,
            intermediate_size=settings["intermediate_size"],
            num_layers=settings["num_hidden_layers"],
            num_heads=num_heads,
            num_kv_heads=settings.get("num_key_value_heads") or num_heads,
            # Qwen3 without head_dim means 128, whatever hidden_size / num_heads is.
            head_dim=settings.get("head_dim") or (128 if is_qwen3 else hidden_size // num_heads),
            max_position_embeddings=settings["max_position_embeddings"],
            rope_theta=theta,
            rms_norm_eps=float(settings.get("rms_norm_eps", 1e-6)),
            tie_word_embeddings=bool(settings.get("tie_word_embeddings", False)),
            attention_bias=bool(settings.get("attention_bias", False)),
            mlp_bias=not is_qwen3 and bool(settings.get("mlp_bias", False)),
            qk_norm=is_qwen3,
            rope_scaling=scaling,
            eos_token_ids=_eos_token_ids(folder, settings),
        )
    except KeyError as error:
        raise ValueError(f"{folder / 'config.json'} lacks {error}") from error


def _check_architecture(folder: Path, settings: Mapping[str, Any]) -> str:
    found = settings.get("architectures")
    names = [found] if isinstance(found, str) else list(found or [])
    for name in names:
        if name in ARCHITECTURES:
            return str(name)
    raise ValueError(
        f"{folder} holds the architecture {', '.join(map(str, names)) or '(none named)'}; "
        f"supported: {', '.join(ARCHITECTURES)}"
    )


def _check_options(folder: Path, settings: Mapping[str, Any]) -> None:
    """Refuse what would silently change the numbers: the engine computes none of these."""
    refused = []
    if settings.get("use_sliding_window") or "sliding_attention" in (
        settings.get("layer_types") or ()
    ):
        refused.append("sliding-window attention")
    if settings.get("quantization_config"):
        method = settings["quantization_config"].get("quant_method", "unknown")
        refused.append(f"quantized weights ({method})")
    activation = settings.get("hidden_act", "silu")
    if activation not in ("silu", "swish"):
        refused.append(f"hidden_act {activation!r} (only silu)")
    if settings.get("partial_rotary_factor", 1.0) != 1.0:
        refused.append(f"partial_rotary_factor {settings['partial_rotary_factor']}")
    if refused:
        raise ValueError(f"the model in {folder} uses {', '.join(refused)}, which is not supported")


def _rope(folder: Path, settings: Mapping[str, Any]) -> tuple[float, tuple[Any, ...] | None]:
    """(theta, scaling as in ModelConfig.rope_scaling)."""
    rope = dict(settings.get("rope_scaling") or {}) | dict(settings.get("rope_parameters") or {})
    theta = float(rope.get("rope_theta") or settings.get("rope_theta") or 10000.0)
    kind = rope.get("rope_type") or rope.get("type") or "default"
    if rope.get("partial_rotary_factor", 1.0) != 1.0:
        raise ValueError(f"{folder}: partial_rotary_factor must be 1, got {rope}")
    if kind == "default":
        return theta, None
    if kind == "linear":
        return theta, ("linear", float(rope["factor"]))
    if kind == "llama3":
        factors = [float(rope[f]) for f in ("factor", "low_freq_factor", "high_freq_factor")]
        return theta, ("llama3", *factors, int(rope["original_max_position_embeddings"]))
    raise ValueError(f"{folder} scales RoPE by {kind!r}; supported: default, linear, llama3")


def _eos_token_ids(folder: Path, settings: Mapping[str, Any]) -> tuple[int, ...]:
    generation_path = folder / "generation_config.json"
    generation = read_json(generation_path) if generation_path.is_file() else {}
    found: set[int] = set()
    for value in (settings.get("eos_token_id"), generation.get("eos_token_id")):
        ids = value if isinstance(value, list) else [] if value is None else [value]
        if any(isinstance(token, bool) or not isinstance(token, int) for token in ids):
            raise ValueError(f"eos_token_id in {folder} must be an int or a list, got {value!r}")
        found.update(ids)
    return tuple(sorted(found))


def load_tokenizer(folder: Path) -> Any:
    """The tokenizer in `folder` (a transformers tokenizer); never looks anywhere else.

    tokenizer.json says all that is needed. Only without it transformers is asked which class reads
    the folder, and that imports torch: seconds, and memory, which a server's front end can spare.
    """
    folder = Path(folder)
    names = ("tokenizer.json", "tokenizer.model", "vocab.json")
    if not any((folder / name).is_file() for name in names):
        raise ValueError(f"{folder} has no tokenizer: none of {', '.join(names)} is there")
    if (folder / "tokenizer.json").is_file():
        from transformers import PreTrainedTokenizerFast

        return PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder, local_files_only=True)


def encode_chat(tokenizer: Any, messages: Iterable[Mapping[str, str]]) -> list[int]:
    """The tokens of a conversation, up to where the assistant's answer begins.

    `messages` are dicts with "role" and "content". Raises ValueError if the tokenizer has no chat
    template, TypeError or ValueError for messages of another form.
    """
    if isinstance(messages, (str, bytes, Mapping)):
        raise TypeError(f"messages must be a list of dicts with role and content, got {messages!r}")
    conversation = [dict(message) for message in messages]
    for message in conversation:
        if not isinstance(message.get("role"), str) or not isinstance(message.get("content"), str):
            raise ValueError(f"a message needs a role and a content, both strings; got {message!r}")
    if not conversation:
        raise ValueError("a conversation needs at least one message")
    if not getattr(tokenizer, "chat_template", None):
        raise ValueError(
            "this model's tokenizer has no chat template, so it takes plain prompts only; "
            "encode the text yourself or use an instruct model"
        )
    text = tokenizer.apply_chat_template(conversation, tokenize=False, add_generation_prompt=True)
    return [int(token) for token in tokenizer.encode(text, add_special_tokens=False)]
