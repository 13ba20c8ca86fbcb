# mistake: a name holds its parent, and with it the whole prefix
"""The value that holds all of it: (parent, tokens), the salt at the root."""


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError("block_size")
    name, names = (salt,), []
    for end in range(block_size, len(token_ids) + 1, block_size):
        name = (name, tuple(token_ids[end - block_size : end]))
        names.append(name)
    return names
