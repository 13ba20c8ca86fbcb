"""Owns writing down what each layer computed for one request, small enough to travel. In the child.

A row of keys, values or attention output becomes a sketch: its products with a few fixed rows of
signs. Two rows differ in their sketches by about as much as in a typical number, so the judge can
compare the layers of two engines without their tensors.
"""

from __future__ import annotations

from typing import Any

import torch

KINDS = ("K", "V", "cached K", "cached V", "attention output")
SIGNS = 4  # numbers of a sketch


def sketch(rows: Any) -> Any:
    """[n, ...] -> [n, SIGNS] float64 on the CPU."""
    flat = rows.detach().reshape(rows.shape[0], -1).double().cpu()
    signs = torch.randint(0, 2, (flat.shape[1], SIGNS), generator=torch.Generator().manual_seed(0))
    return flat @ (signs.double() * 2 - 1) / flat.shape[1] ** 0.5


class Record:
    """Stands in for the runner's cache and attention, and hands everything on to them.

    `wanted` is {"request": id, "number": of the output, "positions": known before it}.
    Written down per layer and position, `seen` where this request computed it: K and V as they are
    written, attention output, and, in the step that samples the output, what the slots of its
    block table then hold. `forms` are shape, dtype and device of each kind.
    """

    def __init__(self, runner: Any, wanted: Any) -> None:
        self.wanted = wanted
        self.cache, self.attention, self._run = runner.kv_cache, runner.attention, runner.run
        shape = runner.model.config.num_layers, wanted["positions"], SIGNS
        self.rows = {kind: torch.zeros(shape, dtype=torch.float64) for kind in KINDS}
        self.seen = {kind: torch.zeros(shape[:2], dtype=torch.bool) for kind in KINDS}
        self.forms: dict[str, str] = {}
        self.chunk: Any = None  # of the request, in this step
        self.first_row = self.layer = 0
        self.done = False
        runner.kv_cache, runner.attention = _Cache(self), _Attention(self)
        runner.run = self.run

    def run(self, schedule: Any) -> Any:
        """One step: note which rows are the request's."""
        self.chunk, row = None, 0
        for chunk in schedule.chunks:
            if chunk.request.request_id == self.wanted["request"] and not self.done:
                self.chunk, self.first_row = chunk, row
            row += chunk.num_tokens
        last = self._is_last()
        sampled = self._run(schedule)
        self.done = self.done or last
        return sampled

    def _is_last(self) -> bool:
        chunk = self.chunk
        return (
            chunk is not None
            and chunk.samples
            and len(chunk.request.output_token_ids) == self.wanted["number"]
        )

    def note(self, layer: int, kind: str, tensor: Any) -> None:
        """Rows of a tensor [num_tokens, ...] of this step."""
        self.forms.setdefault(kind, form(tensor))
        if self.chunk is None:
            return
        rows = tensor[self.first_row : self.first_row + self.chunk.num_tokens]
        self._put(layer, kind, self.chunk.start, rows)

    def note_cache(self, layer: int, keys: Any, values: Any) -> None:
        """What lies in the slots of the block table, in the step that samples the output."""
        if not self._is_last():
            return
        size, end = keys.shape[1], self.chunk.start + self.chunk.num_tokens
        blocks = torch.tensor(self.chunk.request.block_table[: -(-end // size)])
        for kind, tensor in (("cached K", keys), ("cached V", values)):
            held = tensor[blocks.to(tensor.device)].flatten(0, 1)[:end]
            self._put(layer, kind, 0, held)

    def _put(self, layer: int, kind: str, start: int, rows: Any) -> None:
        self.rows[kind][layer, start : start + len(rows)] = sketch(rows)
        self.seen[kind][layer, start : start + len(rows)] = True

    def answer(self) -> dict[str, Any]:
        """Plain data: sketches [layers, positions, SIGNS] per kind, `seen`, and the forms."""
        return {"rows": self.rows, "seen": self.seen, "forms": self.forms}


def form(tensor: Any) -> str:
    """Shape without the tokens, dtype and device, in words."""
    dtype = str(tensor.dtype).removeprefix("torch.")
    return f"{dtype}, {list(tensor.shape[1:])} per token, on {tensor.device}"


class _Cache:
    def __init__(self, record: Record) -> None:
        self._record, self._cache = record, record.cache

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cache, name)

    def write(self, layer: int, key: Any, value: Any, slot_mapping: Any) -> None:
        self._record.layer = layer
        self._record.note(layer, "K", key)
        self._record.note(layer, "V", value)
        self._cache.write(layer, key, value, slot_mapping)


class _Attention:
    def __init__(self, record: Record) -> None:
        self._record, self._attention = record, record.attention

    def __getattr__(self, name: str) -> Any:
        return getattr(self._attention, name)

    def __call__(self, query: Any, keys: Any, values: Any, plan: Any) -> Any:
        layer = self._record.layer
        self._record.note_cache(layer, keys, values)
        out = self._attention(query, keys, values, plan)
        self._record.note(layer, "attention output", out)
        return out
