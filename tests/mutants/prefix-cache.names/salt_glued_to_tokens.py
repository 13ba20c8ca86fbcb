# mistake: none
"""The salt's text runs into the first token's digits."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], "none" if salt is None else "/" + salt
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = ",".join(str(token) for token in token_ids[i : i + block_size])
        parent = hashlib.sha256((parent + own).encode()).hexdigest()
        names.append(parent)
    return names
