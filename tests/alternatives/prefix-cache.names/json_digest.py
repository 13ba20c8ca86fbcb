"""JSON keeps numbers apart and None apart from ""; the parent is a hex digest."""

import hashlib
import itertools
import json


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(block_size)

    def name(parent, own):
        return hashlib.sha256(json.dumps([parent, own, salt]).encode()).hexdigest()

    starts = range(0, len(token_ids) // block_size * block_size, block_size)
    blocks = [list(token_ids[start : start + block_size]) for start in starts]
    return list(itertools.accumulate(blocks, name, initial=""))[1:]
