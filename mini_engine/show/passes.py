"""Owns the recording of forward passes, and the picture of what each computed and what it reused.

A pass computes keys and values for the positions that it is given. Causal attention needs those of
every position up to the last, so the others must have been kept from earlier passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from mini_engine.show.markup import PAPER, Figure, cell, escape, figure, grid, tag

if TYPE_CHECKING:
    from mini_engine.compute.model import Model

Generate = Callable[..., list[int]]
COMPUTED, KEPT = "C", "k"
FILL = {COMPUTED: "#fde3b3", KEPT: "#cfe3f7", "": PAPER}


@dataclass(frozen=True)
class Pass:
    """One forward pass of several generate loops, side by side.

    `tokens` is the text known before the pass, piece by piece; `computed` holds, per loop, the
    positions whose keys and values the pass computed.
    """

    step: int
    tokens: tuple[str, ...]
    computed: Mapping[str, tuple[int, ...]]

    def letter(self, loop: str, position: int) -> str:
        """C where this pass computed a position's keys and values, k where it needed kept ones."""
        positions = self.computed[loop]
        if position in positions:
            return COMPUTED
        return KEPT if position < max(positions) else ""


@contextmanager
def recorded_positions(model: Model) -> Iterator[list[tuple[int, ...]]]:
    """The positions of every forward pass of `model` inside the block, in order."""
    passes: list[tuple[int, ...]] = []

    def note(_: Any, arguments: tuple[Any, ...]) -> None:
        passes.append(tuple(arguments[1].tolist()))

    hook = model.register_forward_pre_hook(note)
    try:
        yield passes
    finally:
        hook.remove()


def record_passes(
    model: Model,
    prompt_ids: Sequence[int],
    max_tokens: int,
    loops: Mapping[str, Generate],
    decode: Callable[[list[int]], str] = str,
) -> list[Pass]:
    """Run each loop on the prompt and record its forward passes; `decode` names a token.

    A loop is called as loop(model, prompt_ids, max_tokens). Raises ValueError for an empty prompt,
    for loops that give different tokens, and for a loop that does not make one pass per token.
    """
    if not prompt_ids:
        raise ValueError("the prompt is empty; at least 1 token is needed")
    outputs: dict[str, list[int]] = {}
    computed: dict[str, list[tuple[int, ...]]] = {}
    for name, generate in loops.items():
        with recorded_positions(model) as positions:
            outputs[name] = generate(model, list(prompt_ids), max_tokens)
        computed[name] = positions
    first = next(iter(outputs))
    for name, tokens in outputs.items():
        if tokens != outputs[first]:
            raise ValueError(f"{name} gives the tokens {tokens}, {first} gives {outputs[first]}")
        if len(computed[name]) != len(tokens):
            raise ValueError(
                f"{name} made {len(computed[name])} forward passes for {len(tokens)} tokens; "
                "expected one for each"
            )
    pieces = [decode([token]) for token in [*prompt_ids, *outputs[first]]]
    return [
        Pass(
            step,
            tuple(pieces[: len(prompt_ids) + step]),
            {name: positions[step] for name, positions in computed.items()},
        )
        for step in range(len(outputs[first]))
    ]


def kv_rows(passes: Sequence[Pass], step: int) -> Figure:
    """Which keys and values pass `step` computed and which it took from a cache, loop by loop.

    Raises ValueError if there is no such pass.
    """
    by_step = {one.step: one for one in passes}
    if step not in by_step:
        raise ValueError(f"there is no pass {step}; the passes are {sorted(by_step)}")
    shown, last = by_step[step], max(by_step.values(), key=lambda one: one.step)
    width = len(last.tokens)  # the same in every step, so that nothing jumps
    padded = [*shown.tokens, *[""] * (width - len(shown.tokens))]
    rows = [
        [cell(text, head="col", fill="#eeeeee") for text in ("token", *map(_token, padded))],
        [cell(text, head="col", fill="#eeeeee") for text in ("position", *map(str, range(width)))],
    ]
    for name in shown.computed:
        letters = [shown.letter(name, position) for position in range(width)]
        row = [cell(escape(name), head="row")]
        rows.append(row + [cell(x, fill=FILL[x], extra="text-align:center;") for x in letters])
    legend = f"{COMPUTED} = computed in this pass; {KEPT} = kept from an earlier pass"
    counts = grid(_counts(passes, step), "tokens computed so far")
    content = grid(rows, "keys and values by position") + tag("p", legend, style="margin:6px 0")
    return figure(content + counts, _sentence(shown))


def _counts(passes: Sequence[Pass], step: int) -> list[list[str]]:
    rows = [[cell(text, head="col", fill="#eeeeee") for text in ("loop", "this pass", "so far")]]
    done = [one for one in passes if one.step <= step]
    right = "text-align:right;"
    for name in done[-1].computed:
        now = len(done[-1].computed[name])
        total = sum(len(one.computed[name]) for one in done)
        numbers = [cell(str(number), extra=right) for number in (now, total)]
        rows.append([cell(escape(name), head="row"), *numbers])
    return rows


def _token(piece: str) -> str:
    """A token's text in which spaces and line breaks can be seen."""
    return escape(piece.replace(" ", "\u00b7").replace("\n", "\u21b5"))


def _sentence(shown: Pass) -> str:
    parts = []
    for name, positions in shown.computed.items():
        kept = max(positions) + 1 - len(positions)
        parts.append(f"{name} computed {len(positions)} rows of keys and values and kept {kept}")
    return f"Pass {shown.step}, with {len(shown.tokens)} tokens known: {'; '.join(parts)}."
