# mistake: tokens are packed into 4 bytes, so 2**32 and more do not fit
"""Right for every vocabulary that there is, and an OverflowError where a token is larger."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], repr(salt).encode()
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        own = b"".join(t.to_bytes(4, "little") for t in token_ids[i : i + block_size])
        parent = hashlib.sha256(parent + b"/" + own).digest()
        names.append(parent)
    return names
