"""One row at a time, with topk and plain numbers."""

import torch


def filter_logits(logits, temperature, min_p, top_k, top_p):
    out = torch.full_like(logits, float("-inf"))
    size = logits.shape[1]
    for row in range(logits.shape[0]):
        x = (logits[row] - logits[row].max()) / temperature[row]
        k, p, least = int(top_k[row]), float(top_p[row]), float(min_p[row])
        probs = torch.softmax(x, dim=-1)
        best, ids = probs.topk(k if 0 < k < size else size)
        best = best[best >= least * best[0]]
        if p < 1:
            total, kept = float(best.sum()), 0.0
            for number, share in enumerate(best.tolist()):
                kept += share / total
                if kept >= p:
                    best = best[: number + 1]
                    break
        ids = ids[: len(best)]
        out[row, ids] = x[ids]
    return out
