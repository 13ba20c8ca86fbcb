"""A plain dict, and KeyError as the end."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    found, index = [], 0
    try:
        while index < len(names) and num_tokens - (index + 1) * block_size >= 1:
            name = names[index]
            if name not in blocks_of:
                raise KeyError(name)
            found += blocks_of[name][:1]
            index += 1
    except KeyError:
        pass
    return found
