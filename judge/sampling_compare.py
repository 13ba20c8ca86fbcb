"""Owns the comparison of filtered logits and of drawn tokens. No torch."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from judge import compare, engine_verdict, sampling_oracle, tensor_compare
from judge.api import Ask, Case, Difference
from judge.wire import Array, Raised

NUMBERS = ("temperature", "min_p", "top_k", "top_p")
OFF = 1e-5  # relative to the largest logit of a row: a few float32 roundings
NEAR = 1e-4  # of scores: a rounded logit may choose another token only if they are this close
NOWHERE = -1e5  # below it lie only the scores of dropped tokens


def filtered(case: Case, expected: Any, got: Any) -> Difference | None:
    """The same tokens kept in each row, with the divided logits up to one number per row."""
    wanted, value = expected["value"], got["value"]
    if not isinstance(value, Array):
        return compare.error_or_wrong(wanted, value, (case.label,))
    lines = tensor_compare.form_lines(wanted, value)
    if not lines:
        have = value.numpy().astype(np.float64)
        lines = next((found for found in _wrong_rows(case.payload, have) if found), [])
    if lines:
        return Difference((case.label, *lines))
    if got.get("changed"):
        return Difference((case.label, *tensor_compare.changed_lines(got["changed"])))
    return None


def by_row(case: Case, answer: Any) -> Any:
    """The same draws, the same form: the best token that a row keeps gets 0."""
    value = answer.get("value")
    if not isinstance(value, Array) or value.dtype != "float32" or len(value.shape) != 2:
        return answer
    rows = value.numpy()
    best = np.where(np.isfinite(rows), rows, -np.inf).max(axis=1, keepdims=True, initial=-np.inf)
    best[~np.isfinite(best)] = 0.0
    data = np.ascontiguousarray(rows - best, dtype="<f4").tobytes()
    return {**answer, "value": replace(value, data=data)}


def numbers_of(payload: Any, row: int) -> dict[str, float]:
    """The four numbers of one row."""
    columns = dict(zip(payload["names"][1:], payload["args"][1:], strict=True))
    return {name: columns[name][row].item() for name in NUMBERS}


def worded(numbers: Mapping[str, Any]) -> str:
    """Numbers of a row, those that are off left out."""
    off = sampling_oracle.OFF
    shown = [f"{n} {v:g}" for n, v in numbers.items() if n in NUMBERS and v != off[n]]
    return ", ".join(shown) or "nothing set"


def _wrong_rows(payload: Any, have: Any) -> Any:
    logits = payload["args"][0]
    for number, row in enumerate(logits):
        numbers = numbers_of(payload, number)
        truth = sampling_oracle.filtered(row, numbers)
        name = f"row {number} ({worded(numbers)})" if len(logits) > 1 else worded(numbers)
        yield _kept_lines(name, truth, have[number]) or _value_lines(name, truth, have[number])


def _kept_lines(name: str, truth: sampling_oracle.Row, have: Any) -> list[str]:
    """Which tokens should be left, and the first in order of probability that is wrong."""
    kept = have != -np.inf
    if np.isnan(have).any():
        return [f"{name}: {int(np.isnan(have).sum())} of {len(have)} numbers are NaN"]
    wrong = kept != truth.kept
    if not wrong.any():
        return []
    rank = int(np.flatnonzero(wrong[truth.order])[0])
    token = int(truth.order[rank])
    place = f"token {token}, the {_nth(rank + 1)} best with probability {truth.shares[rank]:.4g}"
    what = "dropped, expected to be kept" if truth.kept[token] else "kept, expected to be dropped"
    return [
        f"{name}: expected to keep {_ids(truth.kept)}, got {_ids(kept)}",
        f"{place}, is {what}",
        f"the tokens better than it have {truth.shares[:rank].sum():.4g} together",
    ]


def _value_lines(name: str, truth: sampling_oracle.Row, have: Any) -> list[str]:
    """Kept logits, apart from one number that may be added to all of a row."""
    want = truth.scaled[truth.kept]
    found = have[truth.kept] - have[truth.kept].max()
    off = abs(found - (want - want.max()))
    bad = ~(off <= OFF * (1 + abs(have[truth.kept]).max() + abs(want).max()))
    if not bad.any():
        return []
    ids = np.flatnonzero(truth.kept)
    at, best = int(np.flatnonzero(bad)[0]), int(truth.order[0])
    below = want.max() - want[at]
    return [
        f"{name}: the right tokens are kept, but with other logits",
        f"token {ids[at]} lies {-found[at]:.6g} below the best, token {best}; expected {below:.6g}",
    ]


def ties_together(case: Case, expected: Any, got: Any) -> Difference | None:
    """Policy: of equal logits all are kept or none, so that no order of sorting decides."""
    value = got["value"]
    if not isinstance(value, Array) or value.shape != expected["value"].shape:
        return compare.error_or_wrong(expected["value"], value, (case.label,))
    for row, (logits, have) in enumerate(zip(case.payload["args"][0], value.numpy(), strict=True)):
        for logit in np.unique(logits):
            kept = have[logits == logit] != -np.inf
            if kept.any() and not kept.all():
                line = (
                    f"row {row}: of {len(kept)} tokens with logit {logit:g}, {kept.sum()} are kept"
                )
                return Difference((case.label, line))
    return None


def _nth(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if 10 < number % 100 < 14 else ending}"


def _ids(kept: Any) -> str:
    ids = np.flatnonzero(kept).tolist()
    if len(ids) > 8:
        return f"{len(ids)} of {len(kept)} tokens"
    return f"the token{'s' * (len(ids) != 1)} {', '.join(map(str, ids))}" if ids else "none"


def tokens(case: Case, expected: Any, got: Any) -> Difference | None:
    """The reference's token in every row of every group, where no rounding decides."""
    payload, chosen = case.payload, got["tokens"]
    for number, (group, want) in enumerate(zip(payload["groups"], expected["tokens"], strict=True)):
        place = f"{case.label}; {_called(payload, number)}"
        have = chosen[number]
        if isinstance(have, Raised) or not isinstance(have, list) or len(have) != len(want):
            return compare.error_or_wrong(want, have, (place,))
        for row, token, found in zip(group, want, have, strict=True):
            if type(found) is not int:
                return Difference((place, f"expected a list of ints, got {compare.show(have)}"))
            if found != token and not _tied(payload, expected, row, token, found):
                return Difference((place, *_token_lines(payload, expected, row, token, found)))
    if got.get("changed"):
        return Difference((case.label, *tensor_compare.changed_lines(got["changed"])))
    return None


def _called(payload: Any, number: int) -> str:
    group = payload["groups"][number]
    if len(payload["groups"]) == 1:
        return f"{len(group)} rows in one call" if len(group) > 1 else "one row"
    rows = f"rows {', '.join(map(str, group))} together" if len(group) > 1 else f"row {group[0]}"
    return f"call {number + 1} of {len(payload['groups'])}: {rows if group else 'no rows'}"


def _tied(payload: Any, expected: Any, row: int, token: int, found: int) -> bool:
    scores = _scores(expected)
    if not payload["requests"][row]["params"].get("temperature") or scores is None:
        return False
    if not 0 <= found < scores.shape[1]:
        return False
    return bool(scores[row, token] - scores[row, found] < NEAR)


def _scores(expected: Any) -> Any:
    return expected["scores"].numpy() if "scores" in expected else None


def _token_lines(payload: Any, expected: Any, row: int, token: int, found: int) -> list[str]:
    entry = payload["requests"][row]
    greedy = not entry["params"].get("temperature")
    kind = "greedy" if greedy else worded({**sampling_oracle.OFF, **entry["params"]})
    kind = "temperature 1" if kind == "nothing set" else kind
    lines = [
        f"row {row} ({kind}; seed {entry['seed']}, output {entry['outputs']}): expected token "
        f"{token}, got {found}"
    ]
    scores = _scores(expected)
    if scores is None:
        return lines
    if not 0 <= found < scores.shape[1]:
        return [*lines, f"there are {scores.shape[1]} tokens"]
    want, have = float(scores[row, token]), float(scores[row, found])
    if have < NOWHERE:
        lines.append(f"token {found} is dropped by the filters, so it can't be drawn")
    elif greedy:
        lines.append(f"the logit of {token} is {want:.6g}, that of {found} is {have:.6g}")
    else:
        lines.append(
            f"divided logit plus noise: {want:.4f} for {token}, {have:.4f} for {found} (the best "
            "logit of the row as 0)"
        )
    return lines


def look(case: Case, expected: Any, got: Any, ask: Ask) -> Difference | None:
    """The verdict inside the engine, with a word on how the token of a request is chosen."""
    return _with_params(case, engine_verdict.look(case, expected, got, ask))


def in_engine(case: Case, expected: Any, got: Any) -> Difference | None:
    """The same of two answers alone."""
    return _with_params(case, engine_verdict.tokens_and_trace(case, expected, got))


def _with_params(case: Case, found: Difference | None) -> Difference | None:
    if found is None:
        return None
    lines: list[str] = []
    for line in found.lines:
        line = re.sub(r"-\d{6,}\.\d+", "(dropped)", line)
        lines.append(line.replace("best logits, ", "best scores, "))
        match = re.match(r"(\S+), output \d+ \(position", line)
        if match:
            lines += _request_lines(case.payload["requests"], match.group(1))
    return replace(found, lines=tuple(lines))


def _request_lines(requests: Sequence[Any], name: str) -> list[str]:
    params: dict[str, Any] = next((r["params"] for r in requests if r["id"] == name), {})
    asked = ", ".join(f"{key} {value}" for key, value in params.items()) or "nothing: it is greedy"
    penalized = any(key.endswith(("penalty", "bias")) for key in params)
    what = "a logit" + " after penalties" * penalized
    if params.get("temperature"):
        what += ", divided and filtered, plus noise"
    return [f"{name} asks for {asked}; a score is {what}"]
