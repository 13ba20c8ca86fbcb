"""Makes a padded batch on the CPU and copies each tensor as a whole."""

import torch
import torch.nn.functional as F

from mini_engine.interfaces import Batch

NAMES = ("token_ids", "positions", "slot_mapping", "seq_lens", "block_tables")


class StaticBuffers:
    def __init__(self, most_rows, width, scratch_block, block_size, device):
        self.values = (0, 0, scratch_block * block_size, 1, scratch_block)
        self.width = width
        self.tensors = {}
        for name, value in zip(NAMES, self.values, strict=True):
            shape = (most_rows, width) if name == "block_tables" else (most_rows,)
            self.tensors[name] = torch.full(shape, value, device=device)
        self.tensors["query_starts"] = torch.arange(most_rows + 1, device=device)
        self.tensors["logits_rows"] = torch.arange(most_rows, device=device)

    def views(self, bucket):
        sizes = {name: bucket + (name == "query_starts") for name in self.tensors}
        return Batch(**{name: x.narrow(0, 0, sizes[name]) for name, x in self.tensors.items()})

    def fill(self, batch, bucket):
        missing, narrow = bucket - len(batch.token_ids), self.width - batch.block_tables.shape[1]
        if missing < 0 or narrow < 0:
            raise ValueError("the batch is larger than the bucket")
        for name, value in zip(NAMES, self.values, strict=True):
            sides = (0, narrow, 0, missing) if name == "block_tables" else (0, missing)
            padded = F.pad(getattr(batch, name), sides, value=value)
            self.tensors[name][:bucket].copy_(padded)
