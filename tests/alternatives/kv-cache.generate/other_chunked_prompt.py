"""Prefills in chunks of three tokens and keeps one small tensor per token."""

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    kept = [([], []) for _ in range(model.config.num_layers)]

    def attend(layer, query, key, value):
        for where, rows in zip(kept[layer], (key, value), strict=False):
            where.extend(rows.unbind())
        keys, values = (torch.stack(rows) for rows in kept[layer])
        return attention_over_contiguous(query, keys, values, model.config.head_dim**-0.5)

    def compute(tokens):
        first = len(kept[0][0])
        positions = first + torch.arange(len(tokens), device=model.device)
        return model(torch.tensor(tokens, device=model.device), positions, attend)[-1:]

    prompt = list(prompt_ids)
    for begin in range(0, len(prompt), 3):
        hidden = compute(prompt[begin : begin + 3])
    outputs = [model.logits(hidden).argmax(dim=-1).item()]
    while len(outputs) < max_tokens and outputs[-1] not in set(end_token_ids):
        outputs.append(model.logits(compute(outputs[-1:])).argmax(dim=-1).item())
    return outputs
