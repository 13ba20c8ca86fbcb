"""Owns the configuration: what a model looks like, and how the engine runs.

Every class here is frozen and checks itself when it is made, so the code that uses it need not.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

DEFAULT_MODEL = "smollm2-135m-instruct"
DEVICES = ("auto", "cpu", "cuda")
DTYPES = ("float32", "bfloat16")
POLICIES = ("fcfs", "priority")

T = TypeVar("T")


def from_kwargs(cls: type[T], kwargs: dict[str, Any]) -> T:
    """Build the dataclass `cls` from keyword arguments.

    Raises TypeError that names every unknown argument and the closest known one.
    """
    known = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
    for name in kwargs:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(known)}"
            raise TypeError(f"{cls.__name__} has no argument {name!r}; {hint}")
    return cls(**kwargs)


def require_int(owner: str, name: str, value: object, at_least: int) -> None:
    """Raise TypeError or ValueError unless `value` is an int (no bool) of `at_least` or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{owner}.{name} must be an int, got {value!r} ({type(value).__name__})")
    if value < at_least:
        raise ValueError(f"{owner}.{name} must be {at_least} or more, got {value}")


def require_choice(owner: str, name: str, value: object, choices: Iterable[str]) -> None:
    """Raise ValueError unless `value` is one of `choices`."""
    choices = tuple(choices)
    if value not in choices:
        raise ValueError(f"{owner}.{name} must be one of {', '.join(choices)}, got {value!r}")


@dataclass(frozen=True)
class ModelConfig:
    """The shape of a decoder-only model of the Llama or Qwen3 family.

    `head_dim` need not be `hidden_size / num_heads` (Qwen3). `qk_norm` is Qwen3's RMSNorm over each
    head of the queries and keys. `rope_scaling` is None, ("linear", factor) or
    ("llama3", factor, low_freq_factor, high_freq_factor, original_max_positions).
    """

    architecture: str
    vocab_size: int
    hidden_size: int
    intermediate_size: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    max_position_embeddings: int
    rope_theta: float = 10000.0
    rms_norm_eps: float = 1e-6
    tie_word_embeddings: bool = False
    attention_bias: bool = False
    mlp_bias: bool = False
    qk_norm: bool = False
    rope_scaling: tuple[Any, ...] | None = None
    eos_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in (
            "vocab_size",
            "hidden_size",
            "intermediate_size",
            "num_layers",
            "num_heads",
            "num_kv_heads",
            "head_dim",
            "max_position_embeddings",
        ):
            require_int("ModelConfig", name, getattr(self, name), 1)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                "ModelConfig.num_heads must be a multiple of num_kv_heads, got "
                f"{self.num_heads} and {self.num_kv_heads}"
            )
        if self.head_dim % 2:
            raise ValueError(f"ModelConfig.head_dim must be even for RoPE, got {self.head_dim}")

    def kv_bytes_per_token(self, bytes_per_number: int) -> int:
        """Bytes of keys and values that one token keeps, all layers together."""
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * bytes_per_number


@dataclass(frozen=True)
class EngineConfig:
    """How an engine runs.

    `num_blocks` (usable KV blocks of `block_size` tokens) and `max_model_len` (prompt and output
    together) may be None: the engine then chooses them from the model and says what it chose.
    `max_num_batched_tokens` is the budget, the most tokens computed in one step.
    `cuda_graphs` captures decode steps for every batch size up to `max_num_seqs` when the engine is
    made, and replays them; on a CPU an emulator of CUDA graphs does, slower than without, for tests
    and learners. Their attention reads `max_model_len` tokens of every request, so set no more
    than is needed; the engine chooses 1024 at most.
    `watermark` is the share of the pool kept free when a request is admitted beside others.
    `debug` fills every unwritten KV slot with `poison` before each step and checks all invariants
    after it; slow, for tests and for learners who hunt a bug.
    """

    model: str = DEFAULT_MODEL
    device: Literal["auto", "cpu", "cuda"] = "auto"
    dtype: Literal["float32", "bfloat16"] = "float32"
    block_size: int = 16
    num_blocks: int | None = None
    max_model_len: int | None = None
    max_num_batched_tokens: int = 2048
    max_num_seqs: int = 64
    enable_prefix_caching: bool = True
    enable_chunked_prefill: bool = True
    policy: Literal["fcfs", "priority"] = "fcfs"
    long_prefill_token_threshold: int = 0
    watermark: float = 0.0
    cuda_graphs: bool = False
    debug: bool = False
    poison: float = 1e4

    def __post_init__(self) -> None:
        owner = "EngineConfig"
        require_choice(owner, "device", self.device, DEVICES)
        require_choice(owner, "dtype", self.dtype, DTYPES)
        require_choice(owner, "policy", self.policy, POLICIES)
        for name in ("block_size", "max_num_batched_tokens", "max_num_seqs"):
            require_int(owner, name, getattr(self, name), 1)
        require_int(owner, "long_prefill_token_threshold", self.long_prefill_token_threshold, 0)
        if not isinstance(self.cuda_graphs, bool):
            raise TypeError(f"{owner}.cuda_graphs must be True or False, got {self.cuda_graphs!r}")
        if self.num_blocks is not None:
            require_int(owner, "num_blocks", self.num_blocks, 1)
        if self.max_model_len is not None:
            require_int(owner, "max_model_len", self.max_model_len, 1)
        if not 0.0 <= self.watermark < 1.0:
            raise ValueError(
                f"{owner}.watermark is a share of the pool, 0 <= w < 1, got {self.watermark}"
            )
        if not self.enable_chunked_prefill:
            self._check_without_chunks(owner)

    def _check_without_chunks(self, owner: str) -> None:
        if self.long_prefill_token_threshold:
            raise ValueError(
                f"{owner}.long_prefill_token_threshold={self.long_prefill_token_threshold} cuts "
                "prompts into chunks, but enable_chunked_prefill is False; set one of the two"
            )
        longest = self.max_model_len
        if longest is not None and self.max_num_batched_tokens < longest:
            raise ValueError(
                f"without chunked prefill a prompt must fit one step: {owner}."
                f"max_num_batched_tokens={self.max_num_batched_tokens} must be "
                f"max_model_len={longest} or more"
            )

    @property
    def watermark_blocks(self) -> int:
        """Blocks kept free at admission, `int(watermark * num_blocks)`."""
        return int(self.watermark * (self.num_blocks or 0))
