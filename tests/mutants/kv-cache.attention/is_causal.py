# mistake: the mask starts in the upper left corner, not in the lower right
"""SDPA's is_causal, which starts at the upper left."""

import torch.nn.functional as F


def attention_over_contiguous(query, key, value, scale):
    n, length = len(query), len(key)
    if n > length:
        raise ValueError(f"{n} > {length}")
    q, k, v = (x.transpose(0, 1)[None] for x in (query, key, value))
    out = F.scaled_dot_product_attention(
        q, k, v, is_causal=n > 1, scale=scale, enable_gqa=True
    )
    return out[0].transpose(0, 1)
