"""Owns the comparison of answers with what the reference gave. Runs in the judge's process only.

Types count: True is not 1, a numpy integer is not an int, NaN equals nothing. Both sides arrive as
plain data (see `wire`), so no method of a learner's object is ever called here.
"""

from __future__ import annotations

import math
from typing import Any

from judge.api import Case, Difference
from judge.wire import Array, Foreign, Raised, Ref

ATOL, RTOL = 1e-4, 1e-4  # float32 sums in another order; see FLOATS for plain Python floats
HALF_ALIKE = 0.05
FLOATS = 1e-9
SHOWN_CALLS = 4
TORCH_NAMES = {
    "torch": "import torch",
    "Tensor": "from torch import Tensor",
    "F": "import torch.nn.functional as F",
}


def same(expected: Any, got: Any, *, exact_errors: bool = False) -> bool:
    """Whether an answer is right. An exception may be of a subclass, unless `exact_errors`."""
    if isinstance(expected, Raised):
        if not isinstance(got, Raised):
            return False
        if exact_errors:
            return expected.type_name == got.type_name
        return expected.type_name in got.types
    if type(expected) is not type(got):
        return False
    if isinstance(expected, (list, tuple)):
        pairs = zip(expected, got, strict=False)
        return len(expected) == len(got) and all(
            same(a, b, exact_errors=exact_errors) for a, b in pairs
        )
    if isinstance(expected, dict):
        return expected.keys() == got.keys() and all(
            same(value, got[key], exact_errors=exact_errors) for key, value in expected.items()
        )
    if isinstance(expected, float):
        return math.isclose(expected, got, rel_tol=FLOATS, abs_tol=FLOATS)
    if isinstance(expected, Array):
        if exact_errors:
            return alike(expected, got)
        return array_difference(expected, got) is None
    if isinstance(expected, Foreign):
        return expected.type_name == got.type_name and exact_errors
    return bool(expected == got)


def alike(one: Array, other: Array) -> bool:
    """Whether two wrong tensors look like one mistake: NaN in the same places, else nearly equal.

    For naming mistakes only. Half precision loses digits in another order in other code.
    """
    import numpy

    if (one.kind, one.dtype, one.shape) != (other.kind, other.dtype, other.shape):
        return False
    a, b = one.numpy(), other.numpy()
    if a.dtype.kind != "f":
        return bool((a == b).all())
    tolerance = HALF_ALIKE if one.dtype in ("bfloat16", "float16") else RTOL
    size = numpy.abs(a[numpy.isfinite(a)]).max(initial=1.0)
    return bool(numpy.allclose(a, b, rtol=tolerance, atol=tolerance * size, equal_nan=True))


def show(value: Any, limit: int = 300) -> str:
    """A value as a line of a report."""
    if isinstance(value, Raised):
        return f"{value.type_name}: {value.message}" if value.message else value.type_name
    if isinstance(value, Foreign):
        return f"a {value.type_name} ({value.text})"
    if isinstance(value, Array):
        where = "" if value.device == "cpu" else f" on {value.device}"
        return f"a {value.dtype} tensor of shape {list(value.shape)}{where}"
    text = repr(value)
    return text if len(text) <= limit else text[: limit - 4] + " ..."


def value_lines(expected: Any, got: Any) -> tuple[str, ...]:
    """The lines "expected ..., got ..." and what a surprising type or a tensor needs beside."""
    if isinstance(expected, Array) and isinstance(got, Array):
        return array_difference(expected, got) or ()
    wanted, found = show(expected), show(got)
    if isinstance(expected, Raised):
        wanted = expected.type_name
        if not isinstance(got, Raised):
            return (f"expected {wanted}, but it returned {found}",)
    lines = [f"expected {wanted}, got {found}"]
    if len(lines[0]) > 90:
        lines = [f"expected {wanted}", f"got      {found}"]
    if wanted == found:
        lines.append(f"the types differ: {type_name(expected)} and {type_name(got)}")
    elif type_name(expected) != type_name(got) and not isinstance(got, (Raised, Foreign, Array)):
        lines.append(f"expected the type {type_name(expected)}, got {type_name(got)}")
    if got is None and not isinstance(expected, Raised):
        lines.append("None is what a function without a return gives")
    return tuple(lines)


def counted(number: int, noun: str) -> str:
    """ "1 block", "2 blocks": for nouns that take an s."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def type_name(value: Any) -> str:
    if isinstance(value, Foreign):
        return value.type_name
    if isinstance(value, Array):
        return f"{value.kind} tensor"
    return "exception" if isinstance(value, Raised) else type(value).__name__


def array_difference(
    expected: Array, got: Array, *, rtol: float = RTOL, atol: float = ATOL
) -> tuple[str, ...] | None:
    """What is wrong with a tensor, shape, dtype and device each in a sentence; None if nothing."""
    import numpy

    lines = []
    if got.kind != expected.kind:
        lines.append(f"expected a {expected.kind} tensor, got one of {got.kind}")
    if got.shape != expected.shape:
        lines.append(f"the shape is {list(got.shape)}, expected {list(expected.shape)}")
    if got.dtype != expected.dtype:
        lines.append(f"the dtype is {got.dtype}, expected {expected.dtype}")
    if got.device != expected.device:
        lines.append(f"it is on {got.device}, expected {expected.device}")
    if lines:
        return tuple(lines)
    want, have = expected.numpy(), got.numpy()
    if want.dtype.kind in "iub":
        wrong = want != have
    else:
        wrong = ~(numpy.abs(have - want) <= atol + rtol * numpy.abs(want))  # NaN is wrong too
    if not wrong.any():
        return None
    return _wrong_numbers(want, have, wrong)


def _wrong_numbers(want: Any, have: Any, wrong: Any) -> tuple[str, ...]:
    import numpy

    index = tuple(int(i) for i in numpy.argwhere(wrong)[0]) if want.shape else ()
    lines = [
        f"{int(wrong.sum())} of {want.size} numbers are wrong, the first at {list(index)}: "
        f"expected {want[index].item():.6g}, got {have[index].item():.6g}"
    ]
    if want.dtype.kind == "f":
        bad = int((~numpy.isfinite(have)).sum())
        if bad:
            lines.append(f"{bad} of them are NaN or infinite")
        finite = numpy.isfinite(have) & numpy.isfinite(want)
        if finite.any():
            error = numpy.abs(have - want)[finite]
            scale = numpy.maximum(numpy.abs(want[finite]), 1e-12)
            largest, relative = float(error.max()), float((error / scale).max())
            lines.append(f"largest absolute error {largest:.3g}, relative {relative:.3g}")
    return tuple(lines)


def find_raised(value: Any, type_name: str) -> Raised | None:
    """The first exception of that class anywhere in an answer."""
    if isinstance(value, Raised):
        return value if type_name in value.types else None
    if isinstance(value, (dict, list, tuple)):
        for item in value.values() if isinstance(value, dict) else value:
            found = find_raised(item, type_name)
            if found is not None:
                return found
    return None


def error_or_wrong(expected: Any, got: Any, before: tuple[str, ...]) -> Difference:
    """A Difference that treats an exception where a value was expected as an error."""
    if isinstance(got, Raised) and not isinstance(expected, Raised):
        lines = [*before, f"expected {show(expected)}, but it raised {show(got)}"]
        lines += about_raised(got)
        return Difference(tuple(lines), "error", got.frames)
    frames = got.frames if isinstance(got, Raised) else ()
    return Difference((*before, *value_lines(expected, got)), "wrong", frames)


def about_raised(got: Raised) -> list[str]:
    """What an exception means where its text alone does not say it."""
    if "SystemExit" in got.types:
        return ["sys.exit() ends a program; a part of the engine must return or raise an error"]
    if got.type_name == "MemoryError":
        return ["it asked for more memory than the judge allows"]
    for name, line in TORCH_NAMES.items():
        if got.type_name == "NameError" and f"'{name}'" in got.message:
            return [f"{name} is not imported there: begin the function with `{line}`"]
    if got.type_name == "TypeError" and not any(frame.own for frame in got.frames):
        return ["the call itself failed: compare the signature with the one in the stub"]
    return []


def function_answer(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `judge.execute:call_function`."""
    if not isinstance(got, dict) or "value" not in got:
        return error_or_wrong(expected["value"], got, (case.label,))
    if not same(expected["value"], got["value"]):
        return error_or_wrong(expected["value"], got["value"], (case.label,))
    if got.get("changed"):
        return Difference((case.label, "the result is right, but the call changed its arguments"))
    return None


def script_answer(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare for `judge.execute:call_script`: the first wrong call, and the state before it."""
    calls = script_lines(case.payload)
    if not isinstance(got, list):
        return error_or_wrong(expected, got, (calls[0],))
    nothing: dict[str, Any] = {"value": Foreign("missing", "no answer")}
    for number, want in enumerate(expected):
        have = got[number] if number < len(got) else nothing
        context = _calls_before(case.payload, calls, got, number)
        context += _state_before(case.payload, got, number)
        if not same(want["value"], have["value"]):
            if number == 0 and isinstance(want["value"], Raised) and have["value"] is None:
                return Difference(
                    (*context, f"expected {want['value'].type_name}, but it raised nothing")
                )
            return error_or_wrong(want["value"], have["value"], context)
        for name, value, seen in zip(
            observed(case.payload), want.get("state") or [], have.get("state") or [], strict=False
        ):
            if not same(value, seen):
                return error_or_wrong(value, seen, (*context, f"after it, {name}:"))
    return None


def script_lines(payload: Any) -> list[str]:
    """The script as lines of Python, the first of which makes the object."""
    inner = ", ".join(repr(item) for item in payload["args"])
    lines = [f"part = {payload['class']}({inner})"]
    for number, (name, args, kwargs) in enumerate(payload["calls"]):
        shown = [_argument(item) for item in args]
        shown += [f"{key}={value!r}" for key, value in kwargs.items()]
        lines.append(f"r{number} = part.{name}({', '.join(shown)})")
    return lines


def observed(payload: Any) -> list[str]:
    """The observing calls of a script, as text."""
    return [
        f"part.{name}({', '.join(repr(a) for a in args)})" if args else f"part.{name}"
        for name, args in payload.get("observe", [])
    ]


def _argument(item: Any) -> str:
    if not isinstance(item, Ref):
        return repr(item)
    return f"r{item.call}" if item.item is None else f"r{item.call}[{item.item}]"


def _calls_before(payload: Any, calls: list[str], got: list[Any], number: int) -> tuple[str, ...]:
    """The call in question, the last ones before it, and those whose answers these calls use."""
    if number == 0:
        return (calls[0],)
    shown = set(range(max(1, number - SHOWN_CALLS), number + 1))
    for later in sorted(shown, reverse=True):
        args = payload["calls"][later - 1][1]
        shown |= {item.call + 1 for item in args if isinstance(item, Ref)}
    lines, last = [calls[0]], 0
    for earlier in sorted(shown - {number}):
        lines += _left_out(earlier - last - 1)
        lines.append(f"{calls[earlier]}  -> {show(got[earlier].get('value'), 80)}")
        last = earlier
    return (*lines, f"{calls[number]}  <- call {number} of {len(calls) - 1}")


def _left_out(count: int) -> list[str]:
    return [f"  ... {count} more call{'s' if count > 1 else ''}"] if count else []


def _state_before(payload: Any, got: list[Any], number: int) -> tuple[str, ...]:
    state = got[number - 1].get("state") if 0 < number <= len(got) else None
    if not state:
        return ()
    pairs = [f"{n} = {show(v, 80)}" for n, v in zip(observed(payload), state, strict=False)]
    return ("state before: " + "; ".join(pairs[:4]),)
