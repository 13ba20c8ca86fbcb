"""Owns the known mistakes of `life.prefill-chunks`: each is wrong in the one way its name says."""

from __future__ import annotations

from judge.solutions.life import prefill_chunks


def decodes_are_free(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    prefill_chunks(prompt_tokens, num_decodes, budget)  # the same errors
    return prefill_chunks(prompt_tokens, 0, budget)


def decodes_in_first_step(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    first = prefill_chunks(prompt_tokens, num_decodes, budget)[0]
    left = prompt_tokens - first
    return [first, *(prefill_chunks(left, 0, budget) if left else [])]


def equal_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    steps = len(prefill_chunks(prompt_tokens, num_decodes, budget))
    size, larger = divmod(prompt_tokens, steps)
    return [size + 1] * larger + [size] * (steps - larger)


def short_chunk_first(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    return prefill_chunks(prompt_tokens, num_decodes, budget)[::-1]


def last_chunk_full(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    chunks = prefill_chunks(prompt_tokens, num_decodes, budget)
    return [budget - num_decodes] * len(chunks)


def zero_chunk(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    chunks = prefill_chunks(prompt_tokens, num_decodes, budget)
    return [*chunks, 0] if chunks[-1] == budget - num_decodes else chunks


def rest_dropped(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    chunks = prefill_chunks(prompt_tokens, num_decodes, budget)
    return [size for size in chunks if size == budget - num_decodes]


def keeps_one(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    prefill_chunks(prompt_tokens, num_decodes, budget)
    return prefill_chunks(prompt_tokens, num_decodes + 1, budget)


def takes_bools(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    numbers = [int(x) if isinstance(x, bool) else x for x in (prompt_tokens, num_decodes, budget)]
    return prefill_chunks(*numbers)


def takes_anything(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    """No check at all of the types: what Python itself makes of floats and strings."""
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1 or budget <= num_decodes:
        raise ValueError("out of range")
    chunks = []
    while prompt_tokens > 0:
        chunks.append(min(budget - num_decodes, prompt_tokens))
        prompt_tokens -= chunks[-1]
    return chunks
