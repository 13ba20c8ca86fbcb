"""Owns six small decode steps for `graphs.find-the-bug`. Each breaks one rule of CUDA graphs.

A step has four rows. Each row is a token of one request: its key goes into the cache, at the
request's own row and the token's position, and the answer of the row is the sum of the request's
keys up to there. Requests 0 to 3 have a row of the cache; the fifth belongs to nobody, for padding.

`fill` gets (request, token, position) of up to four decodes, `forward` is what is captured, and
`answer` is what the caller keeps until all steps are done. `happens` shows what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from mini_engine.compute.cuda_graphs import capture, new_graph, warm_up

ROWS, NOBODY, LONGEST = 4, 4, 8
Decode = tuple[int, int, int]  # request, token, position
# Before each replay: prompts, computed eagerly, by request; then the decodes of the step, as
# (request, token). Before the third, requests 0 and 1 have ended; in the fourth, another one is 1.
SCRIPT: tuple[tuple[dict[int, list[int]], list[tuple[int, int]]], ...] = (
    ({0: [5, 1], 2: [7], 1: [3, 3]}, [(0, 2), (2, 1), (1, 6)]),
    ({}, [(0, 4), (2, 8), (1, 1)]),
    ({}, [(2, 4)]),
    ({1: [9, 2, 5, 7]}, [(2, 3), (1, 8)]),
    ({}, [(2, 6), (1, 2)]),
)


class Step:
    """What all steps have: the cache, the keys of all tokens, and the inputs of four rows."""

    def __init__(self, device: Any) -> None:
        self.keys = torch.tensor([float(token) for token in range(10)], device=device)
        self.cache = torch.zeros(NOBODY + 1, LONGEST, device=device)
        self.places = torch.arange(LONGEST, device=device)
        self.tokens = torch.zeros(ROWS, dtype=torch.int64, device=device)
        self.owners = torch.full((ROWS,), NOBODY, device=device)
        self.positions = torch.zeros(ROWS, dtype=torch.int64, device=device)


class A(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        rows = [*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))]
        self.owners.copy_(torch.tensor([owner for owner, _, _ in rows]))
        self.tokens.copy_(torch.tensor([token for _, token, _ in rows]))
        self.positions.copy_(torch.tensor([position for _, _, position in rows]))
        self.width = 1 + max(position for _, _, position in rows)

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places[: self.width] <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners, : self.width], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count].clone()


class B(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        rows = [*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))]
        self.owners.copy_(torch.tensor([owner for owner, _, _ in rows]))
        self.tokens.copy_(torch.tensor([token for _, token, _ in rows]))
        self.positions.copy_(torch.tensor([position for _, _, position in rows]))

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        short = self.positions.max() < LONGEST // 2
        width = LONGEST // 2 if short else LONGEST
        seen = self.places[:width] <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners, :width], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count].clone()


class C(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        count = len(decodes)
        if count == 0:
            return
        owners, tokens, positions = zip(*decodes, strict=True)
        self.owners[:count].copy_(torch.tensor(owners))
        self.tokens[:count].copy_(torch.tensor(tokens))
        self.positions[:count].copy_(torch.tensor(positions))

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count].clone()


class D(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        rows = [*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))]
        self.owners.copy_(torch.tensor([owner for owner, _, _ in rows]))
        self.tokens.copy_(torch.tensor([token for _, token, _ in rows]))
        self.positions.copy_(torch.tensor([position for _, _, position in rows]))

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        busy = self.owners != NOBODY
        seen = self.places <= self.positions[busy][:, None]
        return torch.where(seen, self.cache[self.owners[busy]], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count].clone()


class E(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        rows = [*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))]
        self.owners.copy_(torch.tensor([owner for owner, _, _ in rows]))
        self.tokens.copy_(torch.tensor([token for _, token, _ in rows]))
        self.positions.copy_(torch.tensor([position for _, _, position in rows]))

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count]


class F(Step):
    def fill(self, decodes: Sequence[Decode]) -> None:
        rows = [*decodes, *[(NOBODY, 0, 0)] * (ROWS - len(decodes))]
        device = self.tokens.device
        self.owners = torch.tensor([owner for owner, _, _ in rows], device=device)
        self.tokens = torch.tensor([token for _, token, _ in rows], device=device)
        self.positions = torch.tensor([position for _, _, position in rows], device=device)

    def forward(self) -> Tensor:
        self.cache.index_put_((self.owners, self.positions), self.keys[self.tokens])
        seen = self.places <= self.positions[:, None]
        return torch.where(seen, self.cache[self.owners], 0.0).sum(1)

    def answer(self, result: Tensor, count: int) -> Tensor:
        return result[:count].clone()


STEPS: dict[str, Any] = {"A": A, "B": B, "C": C, "D": D, "E": E, "F": F}


def replayed(step: Any, device: torch.device) -> list[list[float]]:
    """Capture the step once, replay it through the script; the answers of each step.

    Raises RuntimeError if the capture is refused.
    """
    step.fill([])
    first = step.tokens, step.owners, step.positions  # the graph's inputs stay alive
    warm_up(step.forward, device)
    graph = new_graph(device)
    with capture(graph):
        result = step.forward()
    kept, lengths = [], {}
    for prompts, decodes in SCRIPT:
        for request, tokens in prompts.items():
            step.cache[request, : len(tokens)] = step.keys[torch.tensor(tokens, device=device)]
            lengths[request] = len(tokens)
        step.fill([(request, token, lengths[request]) for request, token in decodes])
        graph.replay()
        kept.append(step.answer(result, len(decodes)))
        for request, _ in decodes:
            lengths[request] += 1
    del first
    return [answers.tolist() for answers in kept]


def right_answers() -> list[list[float]]:
    """Each request's answers without any graph: key of a token is the token itself."""
    known: dict[int, list[int]] = {}
    answers = []
    for prompts, decodes in SCRIPT:
        known |= {request: list(tokens) for request, tokens in prompts.items()}
        for request, token in decodes:
            known[request].append(token)
        answers.append([float(sum(known[request])) for request, _ in decodes])
    return answers


def happens(name: str, device: str = "cpu") -> list[str]:
    """What comes of capturing step `name` and replaying it, in lines to read."""
    try:
        got = replayed(STEPS[name](device), torch.device(device))
    except RuntimeError as error:
        message = str(error).splitlines()[0]
        return ["the capture is refused:", message]
    for number, (want, have) in enumerate(zip(right_answers(), got, strict=True)):
        if want != have:
            return [f"captured, but replay {number} answers {have} instead of {want}"]
    return ["captured, and every replay answers rightly"]
