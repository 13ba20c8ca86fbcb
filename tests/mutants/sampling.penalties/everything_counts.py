# mistake: presence and frequency count the prompt, too
"""The outputs are the whole request."""

import torch


def count(rows, logits):
    table = torch.zeros_like(logits)
    for number, tokens in enumerate(rows):
        ids = torch.tensor(tokens, dtype=torch.int64)
        table[number].scatter_add_(0, ids, torch.ones(len(tokens)))
    return table


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    asked = count(prompts, logits)
    given = count(outputs, logits) + asked
    used = (asked > 0) | (given > 0)
    r = repetition.unsqueeze(1)
    result = torch.where(used & (logits > 0), logits / r, logits)
    result = torch.where(used & (logits <= 0), result * r, result)
    result = result - frequency.unsqueeze(1) * given
    result = result - presence.unsqueeze(1) * (given > 0)
    return result
