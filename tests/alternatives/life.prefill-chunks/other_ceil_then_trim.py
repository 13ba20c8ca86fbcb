"""Counts the steps, fills all of them, and takes the surplus from the last."""


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    arguments = {"prompt_tokens": prompt_tokens, "num_decodes": num_decodes, "budget": budget}
    for name, value in arguments.items():
        if type(value) is not int:
            raise TypeError(f"{name} must be an int, got {type(value).__name__}")
        if value < (name != "num_decodes"):
            raise ValueError(f"{name} is too small: {value}")
    if budget - num_decodes < 1:
        raise ValueError(f"nothing of {budget} is left by {num_decodes} decodes")
    room = budget - num_decodes
    steps = -(-prompt_tokens // room)
    chunks = [room for _ in range(steps)]
    chunks[-1] -= steps * room - prompt_tokens
    return chunks
