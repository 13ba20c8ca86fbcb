"""Two tensors for all layers, filled from the left."""

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    config = model.config
    room = len(prompt_ids) + max_tokens
    store = torch.zeros(
        2, config.num_layers, room, config.num_kv_heads, config.head_dim,
        dtype=model.dtype, device=model.device,
    )
    done = 0

    def attend(layer, query, key, value):
        end = done + len(key)
        store[0, layer, done:end] = key
        store[1, layer, done:end] = value
        k, v = store[0, layer, :end], store[1, layer, :end]
        return attention_over_contiguous(query, k, v, config.head_dim**-0.5)

    todo, outputs = list(prompt_ids), []
    for _ in range(max_tokens):
        ids = torch.tensor(todo, device=model.device)
        hidden = model(ids, done + torch.arange(len(todo), device=model.device), attend)
        done += len(todo)
        todo = [model.logits(hidden[-1:]).argmax().item()]
        outputs += todo
        if todo[0] in end_token_ids:
            break
    return outputs
