# mistake: decodes are counted in the first step only
"""Decodes are forgotten after the first chunk."""


def prefill_chunks(prompt_tokens, num_decodes, budget):
    for value in (prompt_tokens, num_decodes, budget):
        if type(value) is not int:
            raise TypeError(f"expected an int, got {value!r}")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("out of range")
    space = budget - num_decodes
    if space <= 0:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    chunks = [min(space, prompt_tokens)]
    while sum(chunks) < prompt_tokens:
        chunks.append(min(budget, prompt_tokens - sum(chunks)))
    return chunks
