"""A generator over passes with its own attention; all logits rows are computed."""

import itertools

import torch


def attention(query, key, value):
    n, heads, dim = query.shape
    share = heads // key.shape[1]
    key, value = key.repeat_interleave(share, 1), value.repeat_interleave(share, 1)
    scores = torch.einsum("nhd,lhd->hnl", query, key) / dim**0.5
    mask = torch.ones(n, len(key), dtype=torch.bool).triu(len(key) - n + 1)
    return torch.einsum("hnl,lhd->nhd", scores.masked_fill(mask, -torch.inf).softmax(-1), value)


def tokens(model, prompt_ids):
    past = {}

    def attend(layer, query, key, value):
        if layer in past:
            key, value = torch.cat((past[layer][0], key)), torch.cat((past[layer][1], value))
        past[layer] = key, value
        return attention(query, key, value)

    ids, start = torch.tensor(prompt_ids), 0
    while True:
        logits = model.logits(model(ids, torch.arange(start, start + len(ids)), attend))
        start += len(ids)
        ids = logits.argmax(-1)[-1:]
        yield ids.item()


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    outputs = []
    for token in itertools.islice(tokens(model, prompt_ids), max_tokens):
        outputs.append(token)
        if token in end_token_ids:
            break
    return outputs
