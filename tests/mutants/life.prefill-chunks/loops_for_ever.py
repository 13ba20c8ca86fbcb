# mistake: endless loop where the budget only covers the decodes
"""A room of 0 is let through, and the loop never ends."""


def prefill_chunks(prompt_tokens, num_decodes, budget):
    for value in (prompt_tokens, num_decodes, budget):
        if type(value) is not int:
            raise TypeError(f"expected an int, got {value!r}")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("out of range")
    space = budget - num_decodes
    if space < 0:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    chunks = []
    while sum(chunks) < prompt_tokens:
        if space:
            chunks.append(min(space, prompt_tokens - sum(chunks)))
    return chunks
