# mistake: none
# Pairs halves of the whole row of heads, which is right for one head only.

import torch


def apply_rope(x, cos, sin):
    num_tokens, heads, head_dim = x.shape
    flat = x.reshape(num_tokens, heads * head_dim)
    a, b = flat.chunk(2, dim=-1)
    cos, sin = cos.repeat_interleave(heads, dim=1), sin.repeat_interleave(heads, dim=1)
    out = torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1)
    return out.reshape(num_tokens, heads, head_dim)
