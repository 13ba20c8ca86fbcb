"""Measures the padding limit of CPU attention: one decode step of one layer, lengths of many kinds.

Run `python -m mini_engine.benchmarks.padding`. Prints microseconds of processor time per limit; 0
serves each request by itself and infinity gathers all requests at the width of the longest.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace

import torch

from mini_engine.compute.attention import PagedAttention
from mini_engine.compute.batch import build_batch
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.compute.random_model import SMOLLM2_135M
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk

BLOCK_SIZE = 16
LIMITS = (0.0, 1.05, 1.1, 1.25, 1.5, 2.0, float("inf"))
LENGTHS = {
    "16 from 48 to 288": [48 + 16 * i for i in range(16)],
    "8 of 512": [512] * 8,
    "16 very ragged": [16, 20, 30, 40, 64, 64, 70, 100, 100, 120, 150, 200, 300, 500, 900, 1500],
    "8 from 64 to 1024": [64 + 137 * i for i in range(8)],
    "64 from 50 to 150": [50 + 100 * i // 63 for i in range(64)],
}


def decode_step(seq_lens: list[int], limit: float) -> Callable[[], object]:
    """A call that attends once for requests of these lengths, over blocks in shuffled order."""
    config = replace(SMOLLM2_135M, num_layers=1)
    generator = torch.Generator().manual_seed(0)
    widths = [-(-length // BLOCK_SIZE) for length in seq_lens]
    order = torch.randperm(sum(widths), generator=generator).tolist()
    chunks = []
    for number, (length, width) in enumerate(zip(seq_lens, widths, strict=True)):
        request = Request(str(number), [0] * length)
        request.block_table = [order.pop() for _ in range(width)]
        chunks.append(Chunk(request, length - 1, 1, True))
    keys, values = PagedKVCache(config, sum(widths), BLOCK_SIZE).layer(0)
    keys.normal_(generator=generator)
    values.normal_(generator=generator)
    query = torch.randn(len(seq_lens), config.num_heads, config.head_dim, generator=generator)
    attention = PagedAttention(config, "cpu", limit)
    plan = attention.plan(build_batch(chunks, BLOCK_SIZE))
    return lambda: attention(query, keys, values, plan)


def main() -> None:
    """Print a table: a line per kind of lengths, a column per limit, the best marked."""
    torch.set_num_threads(1)
    print(f"{'microseconds per layer':<22}" + "".join(f"{limit:>9}" for limit in LIMITS))
    for name, seq_lens in LENGTHS.items():
        calls = {limit: decode_step(seq_lens, limit) for limit in LIMITS}
        best = dict.fromkeys(LIMITS, float("inf"))
        with torch.inference_mode():
            for _ in range(12):  # in turns, so that a busy machine is busy for all alike
                for limit, call in calls.items():
                    call()
                    start = time.process_time()
                    for _ in range(10):
                        call()
                    best[limit] = min(best[limit], (time.process_time() - start) / 10 * 1e6)
        cells = [
            f"{value:>8.0f}{'*' if value == min(best.values()) else ' '}" for value in best.values()
        ]
        print(f"{name:<22}" + "".join(cells))


if __name__ == "__main__":
    main()
