"""One block, then the rest."""


def longest_hit(names, num_tokens, block_size, blocks_of):
    def rest(index):
        if (index + 1) * block_size >= num_tokens or index >= len(names):
            return []
        blocks = blocks_of.get(names[index], ())
        return [blocks[0], *rest(index + 1)] if blocks else []

    return rest(0)
