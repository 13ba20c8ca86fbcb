# mistake: none
# Attends over the whole reserved cache, the slots not written yet included.

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    config = model.config
    shape = (config.num_layers, len(prompt_ids) + max_tokens, config.num_kv_heads, config.head_dim)
    keys = torch.zeros(shape, dtype=model.dtype, device=model.device)
    values = torch.zeros_like(keys)
    start = 0

    def attend(layer, query, key, value):
        end = start + key.shape[0]
        keys[layer, start:end], values[layer, start:end] = key, value
        return attention_over_contiguous(query, keys[layer], values[layer], config.head_dim**-0.5)

    new, outputs = list(prompt_ids), []
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
