"""Owns the comparison of one pass through the engine with the reference, output by output."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from judge import engine_report, tie_band
from judge.engine_report import Output


@dataclass(frozen=True)
class Pass:
    """One pass compared: outputs that differ, first those sampled first; `ties` are the excused.

    `apart` is the largest difference of logits at outputs with the same tokens before them,
    `compared` how many outputs were looked at.
    """

    wrong: Sequence[Output]
    ties: Sequence[Output]
    apart: float
    compared: int

    @property
    def clean(self) -> bool:
        """Nothing differs, not even within the tie band."""
        return not self.wrong and not self.ties


def free_running(expected: Any, got: Any, band: float) -> Pass:
    """Each request up to its first token that is not the reference's."""
    own = {request: tokens for request, (tokens, _) in got["outputs"].items()}
    return _compared(expected, own, got.get("tops", {}), band, to_the_end=False)


def teacher_forced(expected: Any, got: Any, band: float) -> Pass:
    """Every output; `got` is a run with the reference's tokens put in."""
    return _compared(expected, got["own"], got.get("tops", {}), band, to_the_end=True)


def _compared(expected: Any, own: Any, theirs: Any, band: float, *, to_the_end: bool) -> Pass:
    wrong, ties, furthest, compared = [], [], 0.0, 0
    for request_id, (tokens, _) in expected["outputs"].items():
        ours, tops = expected.get("tops", {}).get(request_id, []), theirs.get(request_id, [])
        have = own.get(request_id, [])
        for number in range(max(len(tokens), len(have))):
            want, found = (part[number] if number < len(part) else None for part in (tokens, have))
            step = engine_report.sampling_step(expected["trace"], request_id, number)
            output = Output(request_id, number, step, want, found)
            off = 0.0
            if number < len(ours) and number < len(tops):
                off = tie_band.apart(ours[number], tops[number])
            compared, furthest = compared + 1, max(furthest, off)
            right = type(found) is type(want) and found == want  # True is not 1
            tied = number < len(ours) and engine_report.near_tie(ours[number], found, band)
            if off > band or not (right or tied):
                wrong.append(output)
            elif not right:
                ties.append(output)
            if not right and not to_the_end:
                break
    wrong.sort(key=lambda output: output.step)
    return Pass(wrong, ties, furthest, compared)
