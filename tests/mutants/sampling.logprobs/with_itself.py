# mistake: the chosen token is put in front of top
"""As OpenAI's old API shows it."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    table = torch.log_softmax(logits.float(), dim=-1)
    entries = []
    for row, token, count in zip(table, token_ids, counts, strict=True):
        best, ids = row.topk(min(count, len(row)))
        top = tuple(zip(ids.tolist(), best.tolist(), strict=True))
        top = ((token, float(row[token])), *(p for p in top if p[0] != token))
        rank = int((row > row[token]).sum()) + 1
        entries.append(TokenLogprobs(token, float(row[token]), rank, top))
    return entries
