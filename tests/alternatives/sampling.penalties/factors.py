"""A factor for every token, chosen by the sign."""

import torch
import torch.nn.functional as F


def apply_penalties(logits, prompts, outputs, repetition, frequency, presence):
    if len(logits) == 0:
        return logits.clone()
    size = logits.shape[1]
    asked, given = (
        torch.stack([F.one_hot(torch.tensor(i, dtype=torch.int64), size).sum(0) for i in rows])
        for rows in (prompts, outputs)
    )
    factor = torch.where(logits > 0, 1 / repetition[:, None], repetition[:, None])
    factor = torch.where((asked + given) > 0, factor, 1.0)
    return logits * factor - (frequency[:, None] * given + presence[:, None] * given.clamp(max=1))
