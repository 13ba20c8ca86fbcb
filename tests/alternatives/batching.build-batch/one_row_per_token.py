"""A list of (request, position) first; every tensor is read off it."""

import itertools

import torch

from mini_engine.interfaces import Batch


def build_batch(chunks, block_size):
    places = []
    for number, chunk in enumerate(chunks):
        if chunk.num_tokens < 1:
            raise ValueError(chunk.request.request_id)
        for position in range(chunk.start, chunk.start + chunk.num_tokens):
            places.append((number, position))
    token_ids, slots, rows = [], [], []
    for row, (number, position) in enumerate(places):
        request = chunks[number].request
        block, offset = divmod(position, block_size)
        try:
            token_ids.append(request.token_ids[position])
            slots.append(request.block_table[block] * block_size + offset)
        except IndexError:
            raise ValueError(f"{request.request_id} has no position {position}") from None
        if position == len(request.token_ids) - 1:
            rows.append(row)
    groups = [list(group) for _, group in itertools.groupby(places, key=lambda place: place[0])]
    starts = [0, *itertools.accumulate(map(len, groups))]
    lens = [group[-1][1] + 1 for group in groups]
    tables = [
        c.request.block_table[: (n - 1) // block_size + 1]
        for c, n in zip(chunks, lens, strict=False)
    ]
    columns = itertools.zip_longest(*tables, fillvalue=0)
    return Batch(
        torch.LongTensor(token_ids),
        torch.LongTensor([position for _, position in places]),
        torch.LongTensor(slots),
        torch.LongTensor(starts),
        torch.LongTensor(lens),
        torch.LongTensor(list(columns)).T.contiguous(),
        torch.LongTensor(rows),
    )
