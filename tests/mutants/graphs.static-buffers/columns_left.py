# mistake: columns behind the batch's keep blocks of longer requests
"""Only the batch's columns are written."""

import torch

from mini_engine.interfaces import Batch


class StaticBuffers:
    def __init__(self, most_rows, width, scratch_block, block_size, device):
        self.width, self.scratch = width, scratch_block
        self.slot = scratch_block * block_size
        kind = {"dtype": torch.int64, "device": device}
        self.token_ids = torch.zeros(most_rows, **kind)
        self.positions = torch.zeros(most_rows, **kind)
        self.slot_mapping = torch.full((most_rows,), self.slot, **kind)
        self.seq_lens = torch.ones(most_rows, **kind)
        self.block_tables = torch.full((most_rows, width), scratch_block, **kind)
        self.counting = torch.arange(most_rows + 1, **kind)

    def views(self, bucket):
        return Batch(
            token_ids=self.token_ids[:bucket],
            positions=self.positions[:bucket],
            slot_mapping=self.slot_mapping[:bucket],
            query_starts=self.counting[: bucket + 1],
            seq_lens=self.seq_lens[:bucket],
            block_tables=self.block_tables[:bucket],
            logits_rows=self.counting[:bucket],
        )

    def fill(self, batch, bucket):
        n, columns = batch.block_tables.shape
        if n > bucket or columns > self.width:
            raise ValueError("does not fit")
        self.token_ids[:n] = batch.token_ids
        self.positions[:n] = batch.positions
        self.slot_mapping[:n] = batch.slot_mapping
        self.seq_lens[:n] = batch.seq_lens
        self.block_tables[:n, :columns] = batch.block_tables
        self.token_ids[n:bucket] = 0
        self.positions[n:bucket] = 0
        self.slot_mapping[n:bucket] = self.slot
        self.seq_lens[n:bucket] = 1
        self.block_tables[n:bucket] = self.scratch
