# mistake: the salt's text stands for it, so None is the salt 'None'
"""An f-string makes None and 'None' the same."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], f"start of {salt}"
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = list(token_ids[i : i + block_size])
        parent = hashlib.sha256(f"{parent}|{own}".encode()).hexdigest()
        names.append(parent)
    return names
