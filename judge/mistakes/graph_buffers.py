"""Owns the known mistakes of `graphs.static-buffers`: each is wrong in one way."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from mini_engine.interfaces import Batch


class Plain:
    """Right, in steps that the mistakes replace one by one."""

    dtype = torch.int64

    def __init__(self, most_rows: int, width: int, scratch: int, size: int, device: Any) -> None:
        self.width = width
        self.padding = {
            "token_ids": 0,
            "positions": 0,
            "slot_mapping": scratch * size,
            "seq_lens": 1,
            "block_tables": scratch,
        }
        self.tensors = {
            name: torch.full(
                (most_rows, width) if name == "block_tables" else (most_rows,),
                number,
                dtype=self.dtype,
                device=device,
            )
            for name, number in self.padding.items()
        }
        self.rows = torch.arange(most_rows + 1, dtype=self.dtype, device=device)

    def views(self, bucket: int) -> Batch:
        fields = {name: tensor[:bucket] for name, tensor in self.tensors.items()}
        return Batch(**fields, query_starts=self.rows[: bucket + 1], logits_rows=self.rows[:bucket])

    def fill(self, batch: Batch, bucket: int) -> None:
        requests, width = batch.block_tables.shape
        self.refuse(requests > bucket or width > self.width)
        for name, tensor in self.tensors.items():
            values = getattr(batch, name)
            if name == "block_tables":
                tensor[:requests, :width] = values
                self.columns(tensor[:requests, width:])
            else:
                tensor[:requests] = values
            self.pad(name, tensor[requests:bucket])

    def refuse(self, too_large: bool) -> None:
        if too_large:
            raise ValueError("the batch does not fit")

    def columns(self, rest: Tensor) -> None:
        rest.fill_(self.padding["block_tables"])

    def pad(self, name: str, rest: Tensor) -> None:
        rest.fill_(self.padding[name])


class StaleRows(Plain):
    def pad(self, name: str, rest: Tensor) -> None:
        pass


class StaleSlots(Plain):
    def pad(self, name: str, rest: Tensor) -> None:
        if name != "slot_mapping":
            super().pad(name, rest)


class StaleColumns(Plain):
    def columns(self, rest: Tensor) -> None:
        pass


class ColumnsZero(Plain):
    def columns(self, rest: Tensor) -> None:
        rest.fill_(0)


class NewTensors(Plain):
    def fill(self, batch: Batch, bucket: int) -> None:
        self.tensors = {name: tensor.clone() for name, tensor in self.tensors.items()}
        super().fill(batch, bucket)


class Copies(Plain):
    def views(self, bucket: int) -> Batch:
        return Batch(**{name: x.clone() for name, x in vars(super().views(bucket)).items()})


class OtherPadding(Plain):
    """The right class with another number for padding."""

    name, number = "", 0

    def __init__(self, most_rows: int, width: int, scratch: int, size: int, device: Any) -> None:
        super().__init__(most_rows, width, scratch, size, device)
        number = scratch if self.number < 0 else self.number
        self.padding[self.name] = number
        self.tensors[self.name].fill_(number)


class SlotZero(OtherPadding):
    name = "slot_mapping"


class SlotIsBlock(OtherPadding):
    name, number = "slot_mapping", -1


class LengthZero(OtherPadding):
    name = "seq_lens"


class BlockZero(OtherPadding):
    name = "block_tables"


class ZerosAtFirst(Plain):
    def __init__(self, most_rows: int, width: int, scratch: int, size: int, device: Any) -> None:
        super().__init__(most_rows, width, scratch, size, device)
        for tensor in self.tensors.values():
            tensor.zero_()


class Int32(Plain):
    dtype = torch.int32


class CutsOff(Plain):
    def refuse(self, too_large: bool) -> None:
        pass

    def fill(self, batch: Batch, bucket: int) -> None:
        cut = {name: getattr(batch, name)[:bucket] for name in self.tensors}
        cut["block_tables"] = cut["block_tables"][:, : self.width]
        rest = {"query_starts": batch.query_starts, "logits_rows": batch.logits_rows}
        super().fill(Batch(**cut, **rest), bucket)
