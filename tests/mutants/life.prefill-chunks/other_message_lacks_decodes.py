# mistake: none
# The message names the budget, but not the number of decodes.


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    for value in (prompt_tokens, num_decodes, budget):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{value!r} is not an int")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("prompt_tokens and budget must be 1 or more, num_decodes 0 or more")

    room = budget - num_decodes
    if room <= 0:
        raise ValueError(f"the decodes use up the budget of {budget}")
    chunks = []
    while prompt_tokens > 0:
        chunks.append(min(room, prompt_tokens))
        prompt_tokens -= room
    return chunks
