# mistake: all rows get as many as the largest count
"""One topk for all, never cut."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    table = torch.log_softmax(logits.float(), dim=-1)
    entries = []
    for row, token in zip(table, token_ids, strict=True):
        best, ids = row.topk(min(max(counts), len(row)))
        top = tuple(zip(ids.tolist(), best.tolist(), strict=True))
        rank = int((row > row[token]).sum()) + 1
        entries.append(TokenLogprobs(token, float(row[token]), rank, top))
    return entries
