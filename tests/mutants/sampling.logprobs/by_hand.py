# mistake: large logits overflow: exp of the logits themselves
"""Softmax written out."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    e = logits.float().exp()
    table = (e / e.sum(-1, keepdim=True)).log()
    entries = []
    for row, token, count in zip(table, token_ids, counts, strict=True):
        best, ids = row.topk(min(count, len(row)))
        top = tuple(zip(ids.tolist(), best.tolist(), strict=True))
        rank = int((row > row[token]).sum()) + 1
        entries.append(TokenLogprobs(token, float(row[token]), rank, top))
    return entries
