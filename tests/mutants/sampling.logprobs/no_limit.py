# mistake: none
"""topk fails if more are asked than there are."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    table = torch.log_softmax(logits.float(), dim=-1)
    entries = []
    for row, token, count in zip(table, token_ids, counts, strict=True):
        best, ids = row.topk(count)
        top = tuple(zip(ids.tolist(), best.tolist(), strict=True))
        rank = int((row > row[token]).sum()) + 1
        entries.append(TokenLogprobs(token, float(row[token]), rank, top))
    return entries
