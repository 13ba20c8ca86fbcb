# mistake: none
# One running request ends in every step, so the chunks grow.


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    for value in (prompt_tokens, num_decodes, budget):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{value!r} is not an int")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("prompt_tokens and budget must be 1 or more, num_decodes 0 or more")

    if num_decodes >= budget:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    chunks = []
    while prompt_tokens > 0:
        chunk = min(prompt_tokens, budget - num_decodes)
        chunks.append(chunk)
        prompt_tokens -= chunk
        num_decodes = max(num_decodes - 1, 0)
    return chunks
