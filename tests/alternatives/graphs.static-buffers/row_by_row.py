"""Resets each row, then writes each request."""

import torch

from mini_engine.interfaces import Batch


class StaticBuffers:
    def __init__(self, most_rows, width, scratch_block, block_size, device):
        self.scratch, self.first_slot = scratch_block, scratch_block * block_size

        def make(*shape):
            return torch.zeros(shape, dtype=torch.long, device=device)

        self.static = Batch(
            make(most_rows),
            make(most_rows),
            make(most_rows),
            make(most_rows + 1),
            make(most_rows),
            make(most_rows, width),
            make(most_rows),
        )
        for row in range(most_rows):
            self._clear(row)
            self.static.query_starts[row + 1] = row + 1
            self.static.logits_rows[row] = row

    def _clear(self, row):
        for name, value in (
            ("token_ids", 0),
            ("positions", 0),
            ("slot_mapping", self.first_slot),
            ("seq_lens", 1),
            ("block_tables", self.scratch),
        ):
            getattr(self.static, name)[row] = value

    def views(self, bucket):
        fields = {name: tensor[:bucket] for name, tensor in vars(self.static).items()}
        fields["query_starts"] = self.static.query_starts[: bucket + 1]
        return Batch(**fields)

    def fill(self, batch, bucket):
        tables = batch.block_tables.tolist()
        if len(tables) > bucket or len(tables[0]) > self.static.block_tables.shape[1]:
            raise ValueError("too many rows or columns")
        for row in range(bucket):
            self._clear(row)
            if row < len(tables):
                for name in ("token_ids", "positions", "slot_mapping", "seq_lens"):
                    getattr(self.static, name)[row] = getattr(batch, name)[row].item()
                for column, block in enumerate(tables[row]):
                    self.static.block_tables[row, column] = block
