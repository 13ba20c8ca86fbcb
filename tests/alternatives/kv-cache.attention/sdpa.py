"""scaled_dot_product_attention with its own grouping and a boolean mask."""

import torch
import torch.nn.functional as F


def attention_over_contiguous(query, key, value, scale):
    n, length = query.shape[0], key.shape[0]
    if n > length:
        raise ValueError(f"{n} queries do not fit {length} keys")
    mask = torch.ones(n, length, dtype=torch.bool, device=query.device).tril(length - n)
    out = F.scaled_dot_product_attention(
        query.transpose(0, 1)[None], key.transpose(0, 1)[None], value.transpose(0, 1)[None],
        attn_mask=mask, scale=scale, enable_gqa=True,
    )
    return out[0].transpose(0, 1).contiguous()
