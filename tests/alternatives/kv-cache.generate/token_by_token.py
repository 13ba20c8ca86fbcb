"""A class keeps lists of rows; the prompt goes through one token at a time."""

import torch

from mini_engine.compute.attention_single import attention_over_contiguous


class Cache:
    def __init__(self, config):
        self.scale = config.head_dim**-0.5
        self.rows = [([], []) for _ in range(config.num_layers)]

    def attend(self, layer, query, key, value):
        keys, values = self.rows[layer]
        keys.extend(key)
        values.extend(value)
        return attention_over_contiguous(query, torch.stack(keys), torch.stack(values), self.scale)


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    cache = Cache(model.config)
    text = list(prompt_ids)
    position = 0
    while True:
        ids, where = torch.tensor(text[position : position + 1]), torch.tensor([position])
        hidden = model(ids, where, cache.attend)
        position += 1
        if position < len(prompt_ids):
            continue
        text.append(int(model.logits(hidden)[-1].argmax()))
        outputs = text[len(prompt_ids) :]
        if len(outputs) >= max_tokens or outputs[-1] in end_token_ids:
            return outputs
