# mistake: none
"""A list can't be the key of a dict."""


def block_names(token_ids, block_size, salt=None):
    if block_size < 1:
        raise ValueError(f"block_size is {block_size}")
    names, parent = [], None
    for i in range(0, len(token_ids) - block_size + 1, block_size):
        parent = [parent, token_ids[i : i + block_size], salt]
        names.append(parent)
    return names
