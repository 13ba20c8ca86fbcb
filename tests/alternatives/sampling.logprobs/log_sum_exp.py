"""One number per row is enough."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    logits = logits.to(torch.float32)
    totals = torch.logsumexp(logits, dim=1).tolist()
    values, ids = logits.sort(dim=1, descending=True)
    entries = []
    for row, (token, count) in enumerate(zip(token_ids, counts, strict=True)):
        top = [
            (int(i), float(v) - totals[row])
            for i, v in zip(ids[row, :count], values[row, :count], strict=True)
        ]
        mine = logits[row, token].item()
        rank = 1 + sum(1 for value in logits[row].tolist() if value > mine)
        entries.append(TokenLogprobs(token, mine - totals[row], rank, tuple(top)))
    return entries
