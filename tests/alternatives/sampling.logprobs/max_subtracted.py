"""exp after the largest logit was taken off."""

import torch

from mini_engine.interfaces import TokenLogprobs


def token_logprobs(logits, token_ids, counts):
    x = logits.float()
    x = x - x.max(dim=-1, keepdim=True).values
    x = x - x.exp().sum(dim=-1, keepdim=True).log()
    chosen = x.gather(1, torch.tensor(token_ids)[:, None])
    ranks = (x > chosen).sum(1).add(1).tolist()
    best = x.topk(min(max(counts), x.shape[1]), dim=-1)
    result = []
    for n, count in enumerate(counts):
        pairs = zip(best.indices[n].tolist()[:count], best.values[n].tolist()[:count], strict=True)
        result.append(TokenLogprobs(token_ids[n], chosen[n].item(), ranks[n], tuple(pairs)))
    return result
