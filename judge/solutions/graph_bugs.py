"""Owns the answers to `graphs.find-the-bug`, and the six steps repaired.

A repair changes what breaks the rule and nothing else; that it answers rightly is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from judge import graph_bugs
from judge.graph_bugs import LONGEST, NOBODY, ROWS, Decode


def broken_rules() -> dict[str, str]:
    """The rule that each step breaks."""
    return {
        "A": "numbers",
        "B": "waits",
        "C": "padding",
        "D": "shapes",
        "E": "results",
        "F": "addresses",
    }


class A(graph_bugs.A):
    """The width is that of the cache, in every step."""

    def fill(self, decodes: Sequence[Decode]) -> None:
        super().fill(decodes)
        self.width = LONGEST


class B(graph_bugs.B):
    """The whole cache is read: nothing is asked of the GPU."""

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners], 0.0).sum(1)


class C(graph_bugs.C):
    """All four rows are filled."""

    def fill(self, decodes: Sequence[Decode]) -> None:
        super().fill([*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))])


class D(graph_bugs.D):
    """All rows are computed, those of nobody too."""

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners], 0.0).sum(1)


class E(graph_bugs.E):
    """What is kept is a copy."""

    def answer(self, result: Tensor, count: int) -> Tensor:
        return super().answer(result, count).clone()


class F(graph_bugs.F):
    """The new numbers are written into the tensors that were there."""

    def fill(self, decodes: Sequence[Decode]) -> None:
        before = self.owners, self.tokens, self.positions
        super().fill(decodes)
        for old, new in zip(before, (self.owners, self.tokens, self.positions), strict=True):
            old.copy_(new)
        self.owners, self.tokens, self.positions = before


REPAIRED: dict[str, Any] = {"A": A, "B": B, "C": C, "D": D, "E": E, "F": F}
