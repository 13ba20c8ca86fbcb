# mistake: repetition looks at the output only, not at the prompt
"""Forgets the prompt."""

import torch


def count(rows, logits):
    table = torch.zeros_like(logits)
    for number, tokens in enumerate(rows):
        ids = torch.tensor(tokens, dtype=torch.int64)
        table[number].scatter_add_(0, ids, torch.ones(len(tokens)))
    return table


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    given = count(outputs, logits)
    used = given > 0
    r = repetition.unsqueeze(1)
    result = torch.where(used & (logits > 0), logits / r, logits)
    result = torch.where(used & (logits <= 0), result * r, result)
    result = result - frequency.unsqueeze(1) * given
    result = result - presence.unsqueeze(1) * (given > 0)
    return result
