"""Owns the reference of `life.prefill-chunks`: the chunks of one prompt beside decodes."""

from __future__ import annotations


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    """How many tokens of a prompt each step computes while `num_decodes` other requests decode.

    Every decode takes one token of the budget in every step, before the prompt gets the rest.
    Raises TypeError for anything but ints, ValueError for a prompt or budget below 1, a negative
    number of decodes, and a budget that the decodes use up (the prompt would never finish).
    """
    for name, value, least in (
        ("prompt_tokens", prompt_tokens, 1),
        ("num_decodes", num_decodes, 0),
        ("budget", budget, 1),
    ):
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError(f"{name} must be an int, got {value!r}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more, got {value}")
    room = budget - num_decodes
    if room < 1:
        raise ValueError(
            f"a budget of {budget} leaves nothing beside {num_decodes} decodes: the prompt never "
            "finishes; raise the budget"
        )
    chunks = []
    left = prompt_tokens
    while left:
        chunks.append(min(room, left))
        left -= chunks[-1]
    return chunks
