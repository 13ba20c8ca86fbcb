"""Noise for the kept tokens only."""

import torch

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits


def sample(logits, requests):
    tokens = [int(row.argmax()) for row in logits]
    for i, r in enumerate(requests):
        if r.params.temperature == 0:
            continue
        p = r.params
        kept = filter_logits(
            logits[i : i + 1],
            torch.tensor([p.temperature]),
            torch.tensor([p.min_p]),
            torch.tensor([p.top_k]),
            torch.tensor([p.top_p]),
        )
        few = int(kept.isfinite().sum())
        values, ids = kept.topk(few)
        sums = values + gumbel(draw_keys([r], logits.device), ids)
        tokens[i] = int(ids[0, sums[0].argmax()])
    return tokens
