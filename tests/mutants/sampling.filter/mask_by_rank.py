# mistake: the mask is in sorted order, the logits are not
"""The mask meets the wrong tokens."""

import torch


def filter_logits(logits, temperature, min_p, top_k, top_p):
    logits = logits - logits.max(dim=-1, keepdim=True).values
    logits = logits / temperature.unsqueeze(1)
    values, order = torch.sort(logits, dim=-1, descending=True)
    probs = torch.softmax(values, dim=-1)
    keep = probs >= min_p.unsqueeze(1) * probs[:, :1]
    k = torch.where(top_k <= 0, torch.full_like(top_k, logits.shape[1]), top_k)
    keep &= torch.arange(logits.shape[1]) < k.unsqueeze(1)
    probs = torch.where(keep, probs, torch.zeros_like(probs))
    probs = probs / probs.sum(dim=-1, keepdim=True)
    before = torch.cumsum(probs, dim=-1) - probs
    keep &= (before < top_p.unsqueeze(1)) | (top_p.unsqueeze(1) >= 1)
    return logits.masked_fill(~keep, float("-inf"))
