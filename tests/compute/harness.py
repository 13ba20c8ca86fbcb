"""Owns what the tests of the data plane share: the transformers oracle and a runner on its own."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from mini_engine.compute.attention import PagedAttention, attention_over_contiguous
from mini_engine.compute.batch import build_batch
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.compute.model import Model
from mini_engine.compute.naive import generate_cached
from mini_engine.compute.runner import ModelRunner
from mini_engine.compute.sampler import Sampler
from mini_engine.config import ModelConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, Schedule

# Logits of the tiny models closer than this may change places with the order of additions;
# test_numbers.py derives it.
TIE_BAND = 2e-3


def load_oracle(config: ModelConfig, tensors: dict[str, Tensor], folder: Path) -> Any:
    """Save the weights as a Hugging Face folder and load it with transformers, in float32."""
    from transformers import LlamaForCausalLM, Qwen3ForCausalLM

    rope: dict[str, Any] = {"rope_type": "default"}
    if config.rope_scaling is not None:
        kind, factor, *rest = config.rope_scaling
        rope = {"rope_type": kind, "factor": factor}
        names = ("low_freq_factor", "high_freq_factor", "original_max_position_embeddings")
        rope.update(zip(names, rest, strict=False))
    classes = {"LlamaForCausalLM": LlamaForCausalLM, "Qwen3ForCausalLM": Qwen3ForCausalLM}
    described = {
        "architectures": [config.architecture],
        "model_type": "llama" if config.architecture == "LlamaForCausalLM" else "qwen3",
        "vocab_size": config.vocab_size,
        "hidden_size": config.hidden_size,
        "intermediate_size": config.intermediate_size,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "num_key_value_heads": config.num_kv_heads,
        "head_dim": config.head_dim,
        "max_position_embeddings": config.max_position_embeddings,
        "rms_norm_eps": config.rms_norm_eps,
        "rope_theta": config.rope_theta,
        "rope_parameters": {**rope, "rope_theta": config.rope_theta},
        "tie_word_embeddings": config.tie_word_embeddings,
        "attention_bias": config.attention_bias,
        "mlp_bias": config.mlp_bias,
        "bos_token_id": None,
        "eos_token_id": None,
        "torch_dtype": "float32",
    }
    (folder / "config.json").write_text(json.dumps(described), encoding="utf-8")
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    model, info = classes[config.architecture].from_pretrained(
        folder, dtype=torch.float32, output_loading_info=True
    )
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    return model.eval()


@torch.inference_mode()
def oracle_tokens(oracle: Any, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """Greedy continuation by transformers, with no end token."""
    ids = torch.tensor([list(prompt)])
    out = oracle.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=max_tokens,
        do_sample=False,
        eos_token_id=None,
        pad_token_id=0,
    )
    return out[0, len(prompt) :].tolist()


def logits_of(model: Model, token_ids: Sequence[int]) -> Tensor:
    """Logits at every position of one text: [len(token_ids), vocab_size]."""
    scale = model.config.head_dim**-0.5
    with torch.inference_mode():
        hidden = model(
            torch.tensor(list(token_ids)),
            torch.arange(len(token_ids)),
            lambda layer, q, k, v: attention_over_contiguous(q, k, v, scale),
        )
        return model.logits(hidden)


def margins_of(logits: Tensor) -> Tensor:
    """How far the best token of each row leads the second."""
    top = logits.topk(2).values
    return top[:, 0] - top[:, 1]


def random_prompt(seed: int, length: int, vocab_size: int = 512) -> list[int]:
    """Token ids that depend on the seed only."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(0, vocab_size, (length,), generator=generator).tolist()


class Bench:
    """A runner with blocks of its own: feeds chunks as told and keeps the logits of every step.

    Physical blocks are handed out in the order of `free_blocks`.
    """

    def __init__(
        self,
        model: Model,
        block_size: int = 4,
        num_blocks: int = 128,
        attention: Any = None,
        free_blocks: Sequence[int] | None = None,
    ) -> None:
        self.cache = PagedKVCache(model.config, num_blocks, block_size, model.dtype, model.device)
        self.free_blocks = list(range(num_blocks) if free_blocks is None else free_blocks)
        self.logits: list[Tensor] = []
        self.runner = ModelRunner(
            model,
            self.cache,
            build_batch,
            attention or PagedAttention(model.config, model.device),
            Sampler(),
            observe=lambda schedule, logits: self.logits.append(logits.clone()),
        )
        self.poison: float | None = None

    def request(self, name: str, prompt: Sequence[int]) -> Request:
        """A new request without blocks."""
        return Request(name, list(prompt))

    def step(self, parts: Sequence[tuple[Request, int]]) -> dict[str, int]:
        """Compute the next tokens (at most so many) of each request; append what is sampled."""
        chunks = []
        for request, most in parts:
            count = min(most, request.num_tokens - request.num_computed)
            end = request.num_computed + count
            while len(request.block_table) * self.cache.block_size < end:
                request.block_table.append(self.free_blocks.pop(0))
            chunks.append(Chunk(request, request.num_computed, count, end == request.num_tokens))
        if self.poison is not None:
            self.runner.poison(chunks, self.free_blocks, self.poison)
        sampled = self.runner.run(Schedule(chunks=chunks))
        for chunk in chunks:
            chunk.request.num_computed += chunk.num_tokens
            if chunk.samples:
                chunk.request.append_output(sampled[chunk.request.request_id])
        return sampled

    def generate(
        self, prompts: Sequence[Sequence[int]], max_tokens: int, chunk: int = 10_000
    ) -> list[list[int]]:
        """All prompts together until each has its outputs, at most `chunk` tokens each a step."""
        requests = [self.request(f"r{i}", prompt) for i, prompt in enumerate(prompts)]
        while alive := [r for r in requests if len(r.output_token_ids) < max_tokens]:
            self.step([(request, chunk) for request in alive])
        return [request.output_token_ids for request in requests]


def alone(model: Model, prompt: Sequence[int], max_tokens: int) -> list[int]:
    """The tokens of one prompt by the contiguous reference loop."""
    return generate_cached(model, prompt, max_tokens)
