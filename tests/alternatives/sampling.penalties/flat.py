"""One long row and unique places, as the engine does it."""

import torch


def places(rows, size):
    return torch.tensor([n * size + t for n, row in enumerate(rows) for t in row], dtype=torch.long)


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    size = logits.shape[1]
    flat = logits.reshape(-1).clone()
    used = torch.cat([places(prompts, size), places(outputs, size)]).unique()
    factor = repetition[used // size]
    flat[used] = torch.where(flat[used] > 0, flat[used] / factor, flat[used] * factor)
    given, counts = places(outputs, size).unique(return_counts=True)
    flat[given] -= frequency[given // size] * counts + presence[given // size]
    return flat.view_as(logits)
