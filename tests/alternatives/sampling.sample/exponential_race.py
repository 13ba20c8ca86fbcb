"""The smallest of exponential time / probability: the same draw, told in another way."""

import torch

from mini_engine.compute.noise import draw_keys, gumbel
from mini_engine.compute.plain_sampler import filter_logits


def sample(logits, requests):
    greedy = torch.tensor([r.params.greedy for r in requests], dtype=torch.bool)
    columns = []
    for name in ("temperature", "min_p", "top_k", "top_p"):
        columns.append(torch.tensor([getattr(r.params, name) for r in requests]))
    if not requests:
        return []
    columns[0] = columns[0].masked_fill(greedy, 1.0)
    probs = filter_logits(logits, *columns).double().softmax(-1)
    every_id = torch.arange(logits.shape[1]).expand(len(requests), -1)
    times = torch.exp(-gumbel(draw_keys(requests, logits.device), every_id).double())
    drawn = (times / probs).argmin(-1)
    return torch.where(greedy, logits.argmax(-1), drawn).tolist()
