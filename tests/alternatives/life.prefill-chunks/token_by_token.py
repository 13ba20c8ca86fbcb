"""Plays the steps token by token, as a scheduler with a counter would."""


class StuckPrompt(ValueError):
    pass


def prefill_chunks(prompt_tokens, num_decodes, budget):
    if {type(prompt_tokens), type(num_decodes), type(budget)} != {int}:
        raise TypeError(f"ints wanted: {prompt_tokens!r}, {num_decodes!r}, {budget!r}")
    if min(prompt_tokens, budget, num_decodes + 1) < 1:
        raise ValueError("too small")
    if num_decodes >= budget:
        raise StuckPrompt(f"decodes: {num_decodes}, budget: {budget}")
    steps, left = [0], budget - num_decodes
    for _ in range(prompt_tokens):
        if not left:
            steps.append(0)
            left = budget - num_decodes
        steps[-1] += 1
        left -= 1
    return steps
