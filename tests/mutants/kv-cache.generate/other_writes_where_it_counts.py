# mistake: none
# Moves on as soon as one layer has written, so all later layers leave a gap.

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    config = model.config
    room = 2 * (len(prompt_ids) + max_tokens)
    shape = (config.num_layers, room, config.num_kv_heads, config.head_dim)
    keys = torch.zeros(shape, dtype=model.dtype, device=model.device)
    values = torch.zeros_like(keys)
    filled = 0

    def attend(layer, query, key, value):
        nonlocal filled
        begin, end = filled, filled + key.shape[0]
        keys[layer, begin:end], values[layer, begin:end] = key, value
        if layer == 0:
            filled = end
        return attention_over_contiguous(
            query, keys[layer, :end], values[layer, :end], config.head_dim**-0.5
        )

    new, outputs, start = list(prompt_ids), [], 0
    while True:
        ids = torch.tensor(new, device=model.device)
        positions = torch.arange(start, start + len(new), device=model.device)
        hidden = model(ids, positions, attend)
        start += len(new)
        token = int(model.logits(hidden[-1:])[0].argmax())
        outputs.append(token)
        if len(outputs) >= max_tokens or token in end_token_ids:
            return outputs
        new = [token]
