# mistake: one greedy row makes all rows greedy
"""Draws only if all do."""

import torch

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits


def sample(logits, requests):
    if not requests:
        return []
    result = torch.argmax(logits, dim=-1)
    rows = [i for i, r in enumerate(requests) if not r.params.greedy]
    if len(rows) == len(requests):
        chosen = [requests[i] for i in rows]
        temperature = torch.tensor([r.params.temperature for r in chosen])
        min_p = torch.tensor([r.params.min_p for r in chosen])
        top_k = torch.tensor([r.params.top_k for r in chosen])
        top_p = torch.tensor([r.params.top_p for r in chosen])
        kept = filter_logits(logits[rows], temperature, min_p, top_k, top_p)
        keys = draw_keys(chosen, logits.device)
        noise = gumbel(keys, torch.arange(logits.shape[1]).unsqueeze(0))
        result[rows] = torch.argmax(kept + noise, dim=-1)
    return result.tolist()
