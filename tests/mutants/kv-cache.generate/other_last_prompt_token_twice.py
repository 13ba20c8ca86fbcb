# mistake: none
# Computes the whole prompt, then its last token once more to start the loop.

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

    def run(tokens, start):
        ids = torch.tensor(tokens, device=model.device)
        positions = torch.arange(start, start + len(tokens), device=model.device)
        return model(ids, positions, attend)

    prompt_ids = list(prompt_ids)
    run(prompt_ids, 0)
    token, position, outputs = prompt_ids[-1], len(prompt_ids) - 1, []
    while len(outputs) < max_tokens:
        hidden = run([token], position)
        token = int(model.logits(hidden).argmax())
        outputs.append(token)
        position += 1
        if token in end_token_ids:
            break
    return outputs
