"""Cuts the prompt at the multiples of the room."""


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    arguments = {"prompt_tokens": prompt_tokens, "num_decodes": num_decodes, "budget": budget}
    for name, value in arguments.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} is {value!r}")
        if value < (0 if name == "num_decodes" else 1):
            raise ValueError(f"{name} is {value}")
    if budget <= num_decodes:
        raise ValueError(f"budget {budget} <= decodes {num_decodes}")
    starts = range(0, prompt_tokens, budget - num_decodes)
    return [min(start + starts.step, prompt_tokens) - start for start in starts]
