# mistake: none
# Only one of the end tokens ends the text.

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    keys, values = {}, {}

    def attend(layer, query, key, value):
        if layer in keys:
            key = torch.cat((keys[layer], key))
            value = torch.cat((values[layer], value))
        keys[layer], values[layer] = key, value
        return attention_over_contiguous(query, key, value, model.config.head_dim**-0.5)

    new, outputs, start = list(prompt_ids), [], 0
    while True:
        ids = torch.tensor(new, device=model.device)
        positions = torch.arange(start, start + len(new), device=model.device)
        hidden = model(ids, positions, attend)
        start += len(new)
        token = int(model.logits(hidden[-1:])[0].argmax())
        outputs.append(token)
        if len(outputs) >= max_tokens or token == next(iter(end_token_ids), None):
            return outputs
        new = [token]
