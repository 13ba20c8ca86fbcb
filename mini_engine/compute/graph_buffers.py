"""Owns the inputs of captured decode steps: tensors whose addresses never change, filled per step.

Compare `DecodeInputBuffers` of SGLang's graph runner and `InputBuffers` of vLLM's.
"""

from __future__ import annotations

import numpy as np
import torch

from mini_engine.interfaces import Batch

PER_REQUEST = ("token_ids", "positions", "slot_mapping", "seq_lens", "block_tables")


class StaticBuffers:
    """Room for `most_rows` requests with one token each and block tables of `width` blocks.

    Rows that no request uses are padding: token 0 at position 0, 1 token long, whose keys and
    values go to slot 0 of `scratch_block`, a block that belongs to nobody. Each number of theirs
    matters: a slot left over from an earlier step would overwrite another request's keys.
    """

    def __init__(
        self,
        most_rows: int,
        width: int,
        scratch_block: int,
        block_size: int,
        device: torch.device | str,
    ) -> None:
        self.most_rows, self.width = most_rows, width
        self._padding = {
            "token_ids": 0,
            "positions": 0,
            "slot_mapping": scratch_block * block_size,
            "seq_lens": 1,
            "block_tables": scratch_block,
        }
        shapes = {name: (most_rows, width)[: 1 + (name == "block_tables")] for name in PER_REQUEST}
        # Filled on the CPU first and then copied as a whole: each copy is one launch, whatever the
        # number of pieces. NumPy, so that filling launches nothing.
        self._host = {
            name: np.full(shapes[name], self._padding[name], dtype=np.int64) for name in PER_REQUEST
        }
        self._staged = {name: torch.from_numpy(array) for name, array in self._host.items()}
        self._device = {name: x.to(device, copy=True) for name, x in self._staged.items()}
        self._rows = torch.arange(most_rows + 1, device=device)

    def views(self, bucket: int) -> Batch:
        """The first `bucket` rows: what a graph of this size reads. Views, no copies."""
        return Batch(
            **{name: tensor[:bucket] for name, tensor in self._device.items()},
            query_starts=self._rows[: bucket + 1],
            logits_rows=self._rows[:bucket],
        )

    def fill(self, batch: Batch, bucket: int) -> None:
        """Put a CPU batch of decodes into the first rows; those up to `bucket` become padding.

        Raises ValueError if the batch has more requests than `bucket`, or wider block tables.
        """
        num_requests, width = batch.block_tables.shape
        if num_requests > bucket or width > self.width:
            raise ValueError(
                f"{num_requests} requests with block tables of {width} do not fit {bucket} rows "
                f"with tables of {self.width}"
            )
        for name, host in self._host.items():
            host[num_requests:bucket] = self._padding[name]
            if name == "block_tables":
                host[:num_requests, :width] = batch.block_tables.numpy()
                host[:num_requests, width:] = self._padding[name]
            else:
                host[:num_requests] = getattr(batch, name).numpy()
            # Pageable memory on purpose: the driver takes its copy before this returns, so the next
            # step may write here. Pinned memory would be read later, and has to be waited for.
            self._device[name][:bucket].copy_(self._staged[name][:bucket], non_blocking=True)
