"""One hasher runs through the prompt; a copy of it ends at each block."""

import hashlib


def block_names(token_ids, block_size, salt=None):
    if block_size <= 0:
        raise ValueError(f"blocks of {block_size}")
    secret = b"-" if salt is None else b"+" + salt.encode()
    hasher = hashlib.blake2b(len(secret).to_bytes(8, "big") + secret, digest_size=24)
    names = []
    for number, token in enumerate(token_ids, start=1):
        hasher.update(int(token).to_bytes(8, "big"))
        if number % block_size == 0:
            names.append(hasher.copy().hexdigest())
    return names
