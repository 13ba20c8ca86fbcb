"""Owns the model: the layers of the Llama and Qwen3 families, from token ids to logits.

The model knows of no cache. In each layer it hands its queries, keys and values to `attend`, a
function that the caller gives, and goes on with what comes back; so the same model serves a naive
loop, a contiguous cache and the paged engine. Names and numbers follow transformers'
`modeling_llama.py` and `modeling_qwen3.py`, against which the tests compare it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from mini_engine.compute.weights import fuse_weights
from mini_engine.config import ModelConfig
from mini_engine.interfaces import Attend

ApplyRope = Callable[[Tensor, Tensor, Tensor], Tensor]


class RMSNorm(nn.Module):
    """Scale each vector to a root mean square of 1, then each of its numbers by a learned weight.

    x / sqrt(mean(x^2) + eps) * weight over the last dimension (Zhang and Sennrich, 2019). No mean
    is subtracted and no bias added: that is what sets it apart from LayerNorm.
    """

    def __init__(self, size: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size), requires_grad=False)
        self.eps = eps

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


def rope_frequencies(config: ModelConfig) -> Tensor:
    """The angle in radians by which each pair of numbers turns per position: [head_dim / 2].

    Pair i turns by theta^(-2i / head_dim): the first a full radian, the last hardly at all. Scaled
    models were trained on short texts and stretched afterwards: "linear" slows every pair down by
    the factor, "llama3" only those that turn less than `low_freq_factor` times within the original
    context, with a smooth passage up to `high_freq_factor` turns.
    """
    exponents = torch.arange(0, config.head_dim, 2, dtype=torch.int64).float() / config.head_dim
    frequencies = 1.0 / (config.rope_theta**exponents)
    if config.rope_scaling is None:
        return frequencies
    kind, factor, *rest = config.rope_scaling
    if kind == "linear":
        return frequencies / factor
    if kind != "llama3":
        raise ValueError(
            f"rope scaling {kind!r} is not supported; supported are None, 'linear' and 'llama3'"
        )
    low_freq_factor, high_freq_factor, original_max_positions = rest
    turns = original_max_positions * frequencies / (2 * math.pi)
    keep = ((turns - low_freq_factor) / (high_freq_factor - low_freq_factor)).clamp(0.0, 1.0)
    return (1.0 - keep) * frequencies / factor + keep * frequencies


def apply_rope(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Turn each head's pairs of numbers by the angle of their position (RoPE, Su et al., 2021).

    x is [num_tokens, heads, head_dim], cos and sin are [num_tokens, head_dim / 2]; returns x's
    shape. Number i is paired with number i + head_dim / 2, the two *halves* of the head, because
    the checkpoints' q and k weights are stored in that order. The paper pairs neighbours, 2i with
    2i + 1; that is the same model with permuted weights, but on these weights it gives text that is
    fluent and wrong.
    """
    first, second = x.chunk(2, dim=-1)  # each [num_tokens, heads, head_dim / 2]
    cos, sin = cos[:, None], sin[:, None]  # the same angle for all heads of a token
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


class SelfAttention(nn.Module):
    """Queries, keys and values of each token; what attends to what is the business of `attend`.

    Grouped-query attention (Ainslie et al., 2023): `num_heads` query heads share `num_kv_heads`
    heads of keys and values, so the cache is smaller by that factor. One fused matrix makes all
    three, because reading one large matrix is faster than reading three small ones.
    """

    def __init__(self, config: ModelConfig, layer: int, apply_rope: ApplyRope) -> None:
        super().__init__()
        self.layer = layer
        self.head_dim = config.head_dim
        self.num_heads, self.num_kv_heads = config.num_heads, config.num_kv_heads
        self.apply_rope = apply_rope
        width = config.num_heads * config.head_dim
        kv_width = config.num_kv_heads * config.head_dim
        bias = config.attention_bias
        self.qkv_proj = nn.Linear(config.hidden_size, width + 2 * kv_width, bias=bias)
        self.o_proj = nn.Linear(width, config.hidden_size, bias=bias)
        self.q_norm = RMSNorm(self.head_dim, config.rms_norm_eps) if config.qk_norm else None
        self.k_norm = RMSNorm(self.head_dim, config.rms_norm_eps) if config.qk_norm else None

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        num_tokens = x.shape[0]
        qkv = self.qkv_proj(x).view(num_tokens, -1, self.head_dim)
        query_key, value = qkv.split((self.num_heads + self.num_kv_heads, self.num_kv_heads), dim=1)
        if self.q_norm is not None and self.k_norm is not None:
            query, key = query_key.split((self.num_heads, self.num_kv_heads), dim=1)
            query_key = torch.cat((self.q_norm(query), self.k_norm(key)), dim=1)
        # Queries and keys turn by the same angles, so one call turns both; values never turn.
        query_key = self.apply_rope(query_key, cos, sin)  # [num_tokens, both heads, head_dim]
        query, key = query_key.split((self.num_heads, self.num_kv_heads), dim=1)
        out = attend(self.layer, query, key, value)  # [num_tokens, num_heads, head_dim]
        return self.o_proj(out.reshape(num_tokens, -1))


class MLP(nn.Module):
    """SwiGLU (Shazeer, 2020): down(silu(gate(x)) * up(x)). Gate and up are one fused matrix."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        hidden, inner, bias = config.hidden_size, config.intermediate_size, config.mlp_bias
        self.gate_up_proj = nn.Linear(hidden, 2 * inner, bias=bias)
        self.down_proj = nn.Linear(inner, hidden, bias=bias)

    def forward(self, x: Tensor) -> Tensor:
        gate, up = self.gate_up_proj(x).chunk(2, dim=-1)  # each [num_tokens, intermediate_size]
        return self.down_proj(F.silu(gate).mul_(up))  # in place: the largest tensor of a layer


class DecoderLayer(nn.Module):
    """Attention, then MLP; each reads a normed copy of the residual stream and adds to it."""

    def __init__(self, config: ModelConfig, layer: int, apply_rope: ApplyRope) -> None:
        super().__init__()
        self.input_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.attention = SelfAttention(config, layer, apply_rope)
        self.post_attention_norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        self.mlp = MLP(config)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor, attend: Attend) -> Tensor:
        x = x + self.attention(self.input_norm(x), cos, sin, attend)
        return x + self.mlp(self.post_attention_norm(x))


class _NoInit(TorchFunctionMode):
    """Leaves out torch's random initial weights, which the checkpoint replaces anyway.

    On the meta device they would cost more than a second: torch imports its compiler for them.
    """

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        if getattr(func, "__module__", None) == "torch.nn.init":
            return args[0] if args else kwargs["tensor"]
        return func(*args, **kwargs)


class Model(nn.Module):
    """A decoder-only transformer over a flat list of tokens, made by `Model.from_tensors`.

    `apply_rope` may be another function of the same contract: a learner's own is judged in here.
    """

    def __init__(self, config: ModelConfig, apply_rope: ApplyRope = apply_rope) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.hidden_size)
        self.layers = nn.ModuleList(
            DecoderLayer(config, layer, apply_rope) for layer in range(config.num_layers)
        )
        self.norm = RMSNorm(config.hidden_size, config.rms_norm_eps)
        # Tied: the matrix that reads token ids in also reads logits out, one copy in memory.
        self.lm_head = nn.Linear(config.hidden_size, config.vocab_size, bias=False)
        if config.tie_word_embeddings:
            self.lm_head.weight = self.embed.weight
        self.frequencies: Tensor  # [head_dim / 2], float32 whatever the model's dtype
        with torch.device("cpu"):  # numbers, even where the weights are shapes only
            self.register_buffer("frequencies", rope_frequencies(config), persistent=False)
        self.requires_grad_(False)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of weights and hidden states."""
        return self.embed.weight.dtype

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return self.embed.weight.device

    def forward(self, token_ids: Tensor, positions: Tensor, attend: Attend) -> Tensor:
        """token_ids and positions [num_tokens] -> final hidden states [num_tokens, hidden_size].

        The tokens may belong to many requests; only `attend` knows. Positions count from 0 in each.
        """
        x = self.embed(token_ids)
        # Angles in float32: in bfloat16 position 257 would be rounded to 256.
        angles = positions.float()[:, None] * self.frequencies  # [num_tokens, head_dim / 2]
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin, attend)
        return self.norm(x)

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of every possible next token: [rows, hidden_size] -> [rows, vocab_size], float32.

        The vocabulary is the largest matrix of a small model: pass only the rows that are sampled.
        """
        return self.lm_head(hidden).float()

    @classmethod
    def from_tensors(
        cls,
        config: ModelConfig,
        tensors: Mapping[str, Tensor],
        device: torch.device | str = "cpu",
        dtype: torch.dtype = torch.float32,
        apply_rope: ApplyRope = apply_rope,
    ) -> Model:
        """A model with the weights of a checkpoint, given under their Hugging Face names.

        Raises ValueError for missing or unexpected tensors and for wrong shapes.
        """
        with torch.device("meta"), _NoInit():  # shapes only: no memory, no random numbers
            model = cls(config, apply_rope)
        weights = fuse_weights(config, tensors, device, dtype)
        model.load_state_dict(weights, strict=False, assign=True)
        if config.tie_word_embeddings:
            model.lm_head.weight = model.embed.weight
        model.frequencies = model.frequencies.to(device)
        return model.requires_grad_(False).eval()
