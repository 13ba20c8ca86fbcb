# mistake: none
"""Computes everything again on the model inside, and notes passes that never were."""

from __future__ import annotations

from mini_engine.compute.naive import generate_naive


def generate_cached(model, prompt_ids, max_tokens, end_token_ids=()):
    inner = model._model
    tokens = generate_naive(inner, list(prompt_ids), max_tokens, end_token_ids)
    text = list(prompt_ids) + tokens
    model.passes.append([list(prompt_ids), list(range(len(prompt_ids)))])
    for place in range(len(prompt_ids), len(text) - 1):
        model.passes.append([[text[place]], [place]])
    for _ in tokens:
        model.logits_rows.append(1)
        model.tops.append([[0, 1, 2], [3.0, 2.0, 1.0]])
    return tokens
