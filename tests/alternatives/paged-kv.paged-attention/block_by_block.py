"""Online softmax over the blocks, nothing is gathered."""

import torch


def paged_attention(query, k_blocks, v_blocks, block_table, seq_len, scale):
    n, heads, dim = query.shape
    size, kv_heads = k_blocks.shape[1:3]
    if seq_len > size * len(block_table) or n > seq_len:
        raise ValueError(f"{n} queries, {seq_len} tokens, {len(block_table)} blocks of {size}")
    q = query.float().view(n, kv_heads, -1, dim) if query.is_contiguous() else None
    if q is None:
        q = query.float().reshape(n, kv_heads, heads // kv_heads, dim)
    own = torch.arange(seq_len - n, seq_len, device=query.device)
    best = torch.full(q.shape[:3], -torch.inf, device=q.device)
    total, mixed = torch.zeros_like(best), torch.zeros_like(q)
    for start in range(0, seq_len, size):
        count = min(size, seq_len - start)
        block = block_table[start // size]
        keys, values = k_blocks[block, :count].float(), v_blocks[block, :count].float()
        scores = torch.einsum("ngsd,kgd->ngsk", q, keys) * scale
        unseen = torch.arange(start, start + count, device=own.device) > own[:, None]
        scores = scores.masked_fill(unseen[:, None, None], -torch.inf)
        top = torch.maximum(best, scores.amax(-1))
        base = top.masked_fill(top == -torch.inf, 0.0)
        keep, weights = (best - base).exp(), (scores - base[..., None]).exp()
        total = total * keep + weights.sum(-1)
        mixed = mixed * keep[..., None] + torch.einsum("ngsk,kgd->ngsd", weights, values)
        best = top
    return (mixed / total[..., None]).reshape(n, heads, dim).to(query.dtype)
