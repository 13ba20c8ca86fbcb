"""One matrix with a row per request; every tensor is a column of it, or several."""

import torch

from mini_engine.interfaces import Batch


class StaticBuffers:
    def __init__(self, most_rows, width, scratch_block, block_size, device):
        row = [0, 0, scratch_block * block_size, 1, *[scratch_block] * width]
        self.empty = torch.tensor([row], device=device)
        self.matrix = self.empty.repeat(most_rows, 1)
        self.numbers = torch.arange(most_rows + 1, device=device)

    def views(self, bucket):
        rows = self.matrix[:bucket]
        return Batch(
            rows[:, 0],
            rows[:, 1],
            rows[:, 2],
            self.numbers[: bucket + 1],
            rows[:, 3],
            rows[:, 4:],
            self.numbers[:bucket],
        )

    def fill(self, batch, bucket):
        n, columns = batch.block_tables.shape
        if n > bucket or columns > self.matrix.shape[1] - 4:
            raise ValueError(f"{n} rows with {columns} columns do not fit")
        self.matrix[:bucket] = self.empty
        single = (batch.token_ids, batch.positions, batch.slot_mapping, batch.seq_lens)
        step = torch.cat((torch.stack(single, dim=1), batch.block_tables), dim=1)
        self.matrix[:n, : 4 + columns].copy_(step)
