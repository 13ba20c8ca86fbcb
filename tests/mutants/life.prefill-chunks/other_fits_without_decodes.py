# mistake: none
# A prompt within the budget is taken in one step, though decodes take part of it.


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    for value in (prompt_tokens, num_decodes, budget):
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{value!r} is not an int")
    if prompt_tokens < 1 or num_decodes < 0 or budget < 1:
        raise ValueError("prompt_tokens and budget must be 1 or more, num_decodes 0 or more")

    if num_decodes >= budget:
        raise ValueError(f"{num_decodes} decodes use up the budget of {budget}")
    if prompt_tokens <= budget:
        return [prompt_tokens]
    room = budget - num_decodes
    return [min(room, prompt_tokens - done) for done in range(0, prompt_tokens, room)]
