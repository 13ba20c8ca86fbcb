"""Owns the generic ways to run a learner's part. Runs in the child; knows no expected value."""

from __future__ import annotations

import linecache
import os
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from judge import wire
from judge.api import Context
from judge.wire import Frame, Raised, Ref

HERE = os.path.dirname(os.path.abspath(__file__))
MAX_FRAMES = 30


def raised(error: BaseException) -> Raised:
    """An exception as data. A learner's exception may itself misbehave when it is printed."""
    try:
        message = str(error)
        message = message[:2000] if type(message) is str else "(no text)"
    except (
        BaseException
    ):  # str() of a learner's exception can raise anything, and the verdict goes on
        message = "(str() of this exception raises)"
    types = tuple(kind.__name__ for kind in type(error).__mro__ if kind is not object)
    frames = [_frame(entry) for entry in _entries(error)]
    if isinstance(error, SyntaxError) and error.filename:
        source = (error.text or "").strip()
        frames.append(Frame(error.filename, error.lineno or 0, "<module>", source, True))
    return Raised(types, message, tuple(frames[:5] + frames[5:][-MAX_FRAMES:]))


def _entries(error: BaseException) -> list[traceback.FrameSummary]:
    linecache.checkcache()
    return list(traceback.extract_tb(error.__traceback__, limit=-200))


def _frame(entry: traceback.FrameSummary) -> Frame:
    own = os.path.dirname(os.path.abspath(entry.filename)) == OWN_FOLDER.get("path")
    return Frame(entry.filename, entry.lineno or 0, entry.name, entry.line or "", own)


OWN_FOLDER: dict[str, str] = {}  # set by the child: where the learner's files lie


def attempt(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What the call returns, or a `Raised`. Also catches sys.exit: it must not end the child."""
    try:
        return function(*args, **kwargs)
    except BaseException as error:  # whatever a learner's code raises is the verdict's business
        return raised(error)


def call_function(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Call a function of the exercise once.

    payload: {"function": symbol, "args": [...], "kwargs": {...}, "iterators": [...]}; arguments
    whose numbers stand in "iterators" are handed over as iterators, which can be read once. The
    answer is {"value": ...} and "changed": True if the call changed its arguments.
    """
    args, kwargs = payload["args"], payload.get("kwargs", {})
    once = payload.get("iterators", ())
    before = wire.encode([args, kwargs])
    given = [iter(value) if number in once else value for number, value in enumerate(args)]
    value = attempt(parts[payload["function"]], *given, **kwargs)
    answer = {"value": value}
    if wire.encode([args, kwargs]) != before:
        answer["changed"] = True
    return answer


def call_script(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Make an object and drive it with a script of calls.

    payload: {"class": symbol, "args": [...], "calls": [[name, args, kwargs], ...], "observe":
    [[name, args], ...], "spoil": bool}. Arguments may be `Ref`s to what earlier calls returned.
    The answer is a list: the outcome of making the object ({"value": None} or a Raised), then for
    each call {"value": ..., "state": [...]} with what the observing calls return afterwards. With
    `spoil` every list that a call returned is overwritten right after it was recorded: a part must
    not depend on it. A name without arguments that is no method is read as an attribute.
    """
    part = attempt(parts[payload["class"]], *payload["args"])
    if isinstance(part, Raised):
        return [{"value": part}]
    answers: list[Any] = [{"value": None, "state": _observe(part, payload)}]
    kept: list[Any] = []
    for name, args, kwargs in payload["calls"]:
        try:
            arguments = [_argument(item, kept) for item in args]
        except (LookupError, TypeError):
            answers.append({"value": wire.Foreign("missing", "an earlier call did not return it")})
            break
        value = _call(part, name, arguments, kwargs)
        answers.append({"value": wire.copy(value), "state": None})
        kept.append(list(value) if type(value) is list else value)
        if payload.get("spoil") and type(value) is list:
            value[:] = [-1]
        answers[-1]["state"] = _observe(part, payload)
    return answers


def _observe(part: Any, payload: Any) -> list[Any]:
    return [wire.copy(_call(part, name, args, {})) for name, args in payload.get("observe", [])]


def _call(part: Any, name: str, args: list[Any], kwargs: Mapping[str, Any]) -> Any:
    member = attempt(getattr, part, name)
    if isinstance(member, Raised) or not callable(member):
        return member
    return attempt(member, *args, **kwargs)


def _argument(item: Any, kept: list[Any]) -> Any:
    if not isinstance(item, Ref):
        return item
    value = kept[item.call]
    if isinstance(value, Raised):
        raise LookupError(f"call {item.call} returned nothing")
    return value if item.item is None else value[item.item]
