# mistake: frequency is subtracted once, whatever the count
"""Frequency like presence."""

import torch


def count(rows, logits):
    table = torch.zeros_like(logits)
    for number, tokens in enumerate(rows):
        ids = torch.tensor(tokens, dtype=torch.int64)
        table[number].scatter_add_(0, ids, torch.ones(len(tokens)))
    return table


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    asked = count(prompts, logits)
    given = count(outputs, logits)
    used = (asked > 0) | (given > 0)
    r = repetition.unsqueeze(1)
    result = torch.where(used & (logits > 0), logits / r, logits)
    result = torch.where(used & (logits <= 0), result * r, result)
    result = result - frequency.unsqueeze(1) * (given > 0)
    result = result - presence.unsqueeze(1) * (given > 0)
    return result
