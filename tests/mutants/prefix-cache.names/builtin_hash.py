# mistake: hash() is taken for a name
"""64 bits that anybody can make collide."""


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names = []
    parent = hash(salt)
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        parent = hash((parent, tuple(token_ids[i : i + block_size]), salt))
        names.append(parent)
    return names
