"""A class of its own: the digest finds it, the tokens are compared as well."""

import hashlib
from dataclasses import dataclass


@dataclass(frozen=True)
class Name:
    digest: bytes
    tokens: tuple
    salt: object

    def __hash__(self):
        return int.from_bytes(self.digest[:8], "little")


def block_names(token_ids, block_size, salt=None):
    if not block_size > 0:
        raise ValueError("a block has one token or more")
    names = []
    tokens = tuple(token_ids)
    while len(tokens) - block_size * len(names) >= block_size:
        start = block_size * len(names)
        own = tokens[start : start + block_size]
        before = names[-1].digest if names else b"root"
        text = before.hex() + repr(own) + repr(salt)
        names.append(Name(hashlib.sha512(text.encode()).digest(), own, salt))
    return names
