# mistake: chunks of equal size instead of full steps
"""As even as possible."""


def prefill_chunks(prompt_tokens, num_decodes, budget):
    for value in (prompt_tokens, num_decodes, budget):
        if type(value) is not int:
            raise TypeError(f"expected an int, got {value!r}")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("out of range")
    space = budget - num_decodes
    if space <= 0:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    steps = -(-prompt_tokens // space)
    return [(prompt_tokens + steps - 1 - i) // steps for i in range(steps)]
