"""Measures a batch of requests from start to end: mini_engine against transformers, in one run.

Run `python -m mini_engine.benchmarks.offline`. The workload is 16 prompts of 16 to 256 tokens with
64 new tokens each, and the first of them alone. The contenders take turns and each figure is a
median, so a busy machine is busy for all alike; quote the ratios.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import random
import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from mini_engine.config import DEFAULT_MODEL, DTYPES
from mini_engine.engine import LLMEngine
from mini_engine.sampling_params import SamplingParams
from mini_engine.text.checkpoint import find_model

NUM_PROMPTS, SHORTEST, LONGEST, NEW_TOKENS = 16, 16, 256, 64
Serve = Callable[[list[list[int]]], list[list[int]]]


def make_prompts(vocab_size: int, seed: int = 0) -> list[list[int]]:
    """Prompts of random tokens, evenly spread from the shortest to the longest, shuffled."""
    rng = random.Random(seed)
    lengths = [SHORTEST + (LONGEST - SHORTEST) * i // (NUM_PROMPTS - 1) for i in range(NUM_PROMPTS)]
    rng.shuffle(lengths)
    return [[rng.randrange(10, vocab_size) for _ in range(length)] for length in lengths]


def with_mini_engine(folder: Path, dtype: str) -> Serve:
    """The reference engine, prefix cache emptied before each run."""
    engine = LLMEngine(folder, device="cpu", dtype=dtype, max_model_len=1024)  # type: ignore[arg-type]
    params = SamplingParams(max_tokens=NEW_TOKENS, ignore_eos=True)

    def serve(prompts: list[list[int]]) -> list[list[int]]:
        engine.cache.reset()
        return [output.token_ids for output in engine.generate(prompts, params)]

    return serve


def with_padded_generate(model: Any) -> Serve:
    """transformers' `generate` on one batch, filled up to the longest prompt on the left."""

    @torch.inference_mode()
    def serve(prompts: list[list[int]]) -> list[list[int]]:
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(p)) + p for p in prompts])
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts])
        out = model.generate(
            ids,
            attention_mask=mask,
            max_new_tokens=NEW_TOKENS,
            min_new_tokens=NEW_TOKENS,
            do_sample=False,
            pad_token_id=0,
        )
        answers: list[list[int]] = out[:, width:].tolist()
        return answers

    return serve


def with_generate_batch(model: Any) -> Serve:
    """transformers' continuous batching."""
    from transformers import ContinuousBatchingConfig, GenerationConfig

    config = GenerationConfig(
        max_new_tokens=NEW_TOKENS, do_sample=False, eos_token_id=-1, pad_token_id=0
    )
    # It sizes these two from the memory of a GPU; on a CPU it has to be told.
    batching = ContinuousBatchingConfig(num_blocks=64, max_batch_tokens=2048)

    def serve(prompts: list[list[int]]) -> list[list[int]]:
        outputs = model.generate_batch(
            prompts, generation_config=config, continuous_batching_config=batching
        )
        by_prompt = {tuple(o.prompt_ids): list(o.generated_tokens) for o in outputs.values()}
        return [by_prompt[tuple(prompt)] for prompt in prompts]

    return serve


def measure(contenders: dict[str, Serve], prompts: list[list[int]], rounds: int) -> dict[str, Any]:
    """Median tokens per second of each contender, and of mini_engine over each other one."""
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    agreeing: dict[str, int] = {}
    reference: list[list[int]] | None = None
    for number in range(rounds + 1):  # the first round warms up
        for name, serve in contenders.items():
            start = time.perf_counter()
            answers = serve(prompts)
            elapsed = time.perf_counter() - start
            assert [len(a) for a in answers] == [NEW_TOKENS] * len(prompts), name
            reference = reference or answers
            agreeing[name] = sum(a == r for a, r in zip(answers, reference, strict=True))
            if number:
                seconds[name].append(elapsed)
    total = NEW_TOKENS * len(prompts)
    speed = {name: total / statistics.median(times) for name, times in seconds.items()}
    first = next(iter(contenders))
    return {
        "tokens_per_second": {name: round(value, 2) for name, value in speed.items()},
        "ratio": {n: round(speed[first] / value, 3) for n, value in speed.items() if n != first},
        "seconds": {name: [round(s, 3) for s in times] for name, times in seconds.items()},
        "answers_equal_to_ours": agreeing,
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Print a table per workload and, with --json, keep the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default=DEFAULT_MODEL)
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--rounds", type=int, default=5, help="measured rounds; medians are shown")
    parser.add_argument("--threads", type=int, help="torch threads (default: torch's own choice)")
    parser.add_argument("--without", nargs="*", default=[], choices=["generate", "generate_batch"])
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    if args.threads:
        torch.set_num_threads(args.threads)
    from transformers import AutoModelForCausalLM

    folder = find_model(args.model)
    contenders = {"mini_engine": with_mini_engine(folder, args.dtype)}
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, args.dtype)).eval()
    if "generate" not in args.without:
        contenders["generate"] = with_padded_generate(model)
    if "generate_batch" not in args.without:
        contenders["generate_batch"] = with_generate_batch(model)
    prompts = make_prompts(model.config.vocab_size)
    result: dict[str, Any] = {
        "command": "python -m mini_engine.benchmarks.offline",
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "torch": torch.__version__,
        "dtype": args.dtype,
        "workloads": {},
    }
    for name, batch in (("16 requests", prompts), ("1 request", prompts[:1])):
        figures = measure(contenders, batch, args.rounds)
        result["workloads"][name] = figures
        print(f"{name}, {args.dtype}, {NEW_TOKENS} new tokens each")
        for contender, speed in figures["tokens_per_second"].items():
            ratio = figures["ratio"].get(contender)
            same = f"{figures['answers_equal_to_ours'][contender]} of {len(batch)} answers equal"
            faster = f"mini_engine is {ratio:.2f} times as fast" if ratio else ""
            print(f"  {contender:<16}{speed:8.1f} tokens/s   {same}   {faster}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
