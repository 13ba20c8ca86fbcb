"""One row after the other."""

import torch

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits


def one(row, request):
    params = request.params
    if params.greedy:
        return int(row.argmax())
    numbers = [
        torch.tensor([getattr(params, name)]) for name in ("temperature", "min_p", "top_k", "top_p")
    ]
    kept = filter_logits(row[None], *numbers)[0]
    ids = kept.isfinite().nonzero().flatten()
    noise = gumbel(draw_keys([request], row.device), ids[None])[0]
    return int(ids[(kept[ids] + noise).argmax()])


def sample(logits, requests):
    return [one(row, request) for row, request in zip(logits, requests, strict=True)]
