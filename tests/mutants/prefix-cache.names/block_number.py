# mistake: the position stands for the parent
"""Which block it is, but not what came before."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    return [
        hashlib.sha256(
            repr((i, list(token_ids[i * block_size : (i + 1) * block_size]), salt)).encode()
        ).digest()
        for i in range(len(token_ids) // block_size)
    ]
