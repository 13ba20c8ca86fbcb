"""Owns those who take part in the offline benchmark, each as a function from prompts to answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from mini_engine.benchmarks.workloads import Prompts, Workload
from mini_engine.engine import LLMEngine
from mini_engine.sampling_params import SamplingParams
from mini_engine.trace import StepRecord

Serve = Callable[[Workload], Prompts]


class MiniEngine:
    """The reference engine; its prefix cache is emptied before each run.

    `steps` are the records of the last run.
    """

    def __init__(self, folder: Path, dtype: str, longest: int, *, prefix_caching: bool = True):
        self.engine = LLMEngine(
            folder,
            device="cpu",
            dtype=dtype,  # type: ignore[arg-type]
            max_model_len=longest,
            enable_prefix_caching=prefix_caching,
        )
        self.steps: list[StepRecord] = []

    def __call__(self, workload: Workload) -> Prompts:
        """The answers, in the order of the prompts."""
        self.engine.cache.reset()
        params = SamplingParams(max_tokens=workload.new_tokens, ignore_eos=True)
        last = self.engine.trace[-1].step if self.engine.trace else -1
        outputs = self.engine.generate(workload.prompts, params)
        self.steps = [record for record in self.engine.trace if record.step > last]
        return [output.token_ids for output in outputs]


def padded_generate(model: Any) -> Serve:
    """transformers' `generate` on one batch, filled up to the longest prompt on the left."""

    @torch.inference_mode()
    def serve(workload: Workload) -> Prompts:
        width = max(map(len, workload.prompts))
        ids = torch.tensor([[0] * (width - len(p)) + p for p in workload.prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in workload.prompts])
        out = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=workload.new_tokens,
            min_new_tokens=workload.new_tokens,
            do_sample=False,
            pad_token_id=0,
        )
        answers: Prompts = out[:, width:].tolist()
        return answers

    return serve


def generate_batch(model: Any) -> Serve:
    """transformers' continuous batching."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    def serve(workload: Workload) -> Prompts:
        config = GenerationConfig(
            max_new_tokens=workload.new_tokens, do_sample=False, eos_token_id=-1, pad_token_id=0
        )
        # It sizes these two from the memory of a GPU; on a CPU it has to be told.
        batching = ContinuousBatchingConfig(max_batch_tokens=2048)
        lengths = [len(prompt) + workload.new_tokens for prompt in workload.prompts]
        batching.num_blocks = 16 + sum(-(-length // batching.page_size) for length in lengths)
        outputs = model.generate_batch(
            workload.prompts, generation_config=config, continuous_batching_config=batching
        )
        by_prompt = {tuple(o.prompt_ids): list(o.generated_tokens) for o in outputs.values()}
        return [by_prompt[tuple(prompt)] for prompt in workload.prompts]

    return serve
