# mistake: none
# Kept answers are found by value, so True and 1.0 find the answer of 1.

from functools import cache, lru_cache


@cache
def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    for value in (prompt_tokens, num_decodes, budget):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{value!r} is not an int")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("prompt_tokens and budget must be 1 or more, num_decodes 0 or more")

    if num_decodes >= budget:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    full, rest = divmod(prompt_tokens, budget - num_decodes)
    return [budget - num_decodes] * full + ([rest] if rest else [])
