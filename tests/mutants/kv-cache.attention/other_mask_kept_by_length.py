# mistake: none
# Keeps the mask of each length L and uses it again for another n.

import torch

_masks = {}


def attention_over_contiguous(query, key, value, scale):
    n, num_heads, head_dim = query.shape
    length, num_kv_heads, _ = key.shape
    if n > length:
        raise ValueError(f"{n} queries, but only {length} positions")
    if length not in _masks:
        visible = torch.ones(length, length, dtype=torch.bool, device=query.device).tril()
        _masks[length] = visible[length - n :]
    group = num_heads // num_kv_heads
    key = key.repeat_interleave(group, dim=1)
    value = value.repeat_interleave(group, dim=1)

    scores = torch.einsum("qhd,khd->hqk", query, key) * scale
    visible = _masks[length][-n:]
    weights = scores.masked_fill(~visible, float("-inf")).softmax(dim=-1)
    return torch.einsum("hqk,khd->qhd", weights, value)
