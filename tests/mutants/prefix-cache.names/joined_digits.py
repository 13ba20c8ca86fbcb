# mistake: numbers are joined without a separator
"""1 and 23 read like 12 and 3."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], ""
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = "".join(str(token) for token in token_ids[i : i + block_size])
        parent = hashlib.sha256(f"{parent}/{own}/{salt!r}".encode()).hexdigest()
        names.append(parent)
    return names
