"""Owns driving the functions of `text.sse` with scripts. Runs in the child; decides nothing."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator, Mapping
from typing import Any

from judge import wire
from judge.api import Context
from judge.execute import attempt
from judge.wire import Raised


class Outputs:
    """A source of outputs that notes how far it was read."""

    def __init__(self, payload: Any) -> None:
        self.taken = 0
        self._payload = payload

    def run(self) -> Generator[tuple[str, str | None]]:
        """The outputs; with "fails" an exception of that text after the last of them."""
        for text, reason in self._payload["outputs"]:
            self.taken += 1
            yield text, reason
        if self._payload["fails"] is not None:
            raise RuntimeError(self._payload["fails"])


def frame(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Read `chat_events` to its end, or close it after "leaves" events.

    payload: "outputs" ([text, reason] each), "fails", "envelope", "usage", "leaves". The answer has
    "events" ([event, outputs asked for so far] each), "end" (what was raised, or None), "closed",
    and "changed".
    """
    outputs = Outputs(payload)
    envelope, usage = dict(payload["envelope"]), payload["usage"]
    given = None if usage is None else dict(usage)
    source = outputs.run()  # held here, so that nobody else's end closes it
    events: list[Any] = []
    end = attempt(
        _read_frames, parts, (source, envelope, given), payload["leaves"], outputs, events
    )
    closed = inspect.getgeneratorstate(source) == inspect.GEN_CLOSED
    source.close()
    changed = envelope != payload["envelope"] or given != usage
    return {"events": events, "end": end, "closed": closed, "changed": changed}


def _read_frames(
    parts: Mapping[str, Any], args: Any, leaves: int | None, outputs: Outputs, events: list[Any]
) -> None:
    stream = parts["chat_events"](*args)
    if leaves == 0:
        stream.close()
        return
    for event in stream:
        events.append([wire.copy(event), outputs.taken])
        if len(events) == leaves:
            stream.close()
            return


def read(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Read `read_events` to its end.

    payload: "pieces", each the numbers of its bytes. The answer has "events" ([event, pieces asked
    for so far] each), "end" (what was raised, or None) and "taken", the pieces asked for in all.
    """
    taken = 0

    def pieces() -> Iterator[bytes]:
        nonlocal taken
        for piece in payload["pieces"]:
            taken += 1
            yield bytes(piece)

    events: list[Any] = []

    def drive() -> None:
        for event in parts["read_events"](pieces()):
            events.append([wire.copy(event), taken])

    end = attempt(drive)
    return {"events": events, "end": end if isinstance(end, Raised) else None, "taken": taken}
