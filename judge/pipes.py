"""Owns the pipes between the judge and a child: requests out, answers and printed text in.

Nothing here waits longer than it is told to, whatever the child writes or doesn't read.
"""

from __future__ import annotations

import os
import selectors
from typing import IO, Any

from judge import wire

KEPT_OUTPUT = 20_000


class Pipes:
    """The judge's ends. `output` is the end of what was printed, `printed` counts all its bytes."""

    def __init__(self, request: int, result: int, stdout: IO[bytes] | None) -> None:
        self.output = ""
        self.printed = 0
        self._request, self._result, self._stdout = request, result, stdout
        self._outgoing = bytearray()
        self._incoming = bytearray()
        self._selector = selectors.DefaultSelector()
        for fd in (request, result):
            os.set_blocking(fd, False)
        self._selector.register(result, selectors.EVENT_READ, "result")
        if stdout is not None:
            os.set_blocking(stdout.fileno(), False)
            self._selector.register(stdout, selectors.EVENT_READ, "output")

    @property
    def partial(self) -> bool:
        """Whether something has come that is no whole message yet."""
        return bool(self._incoming)

    def forget_output(self) -> None:
        self.output, self.printed = "", 0

    def send(self, frame: bytes) -> None:
        """Write as much as the pipe takes now; `pump` writes the rest."""
        self._outgoing += frame
        self._flush()

    def message(self) -> tuple[Any] | None:
        """A whole message, if one has arrived. Raises WireError for one that can't be read."""
        size = wire.HEADER.size
        if len(self._incoming) < size:
            return None
        text, blob = wire.sizes(bytes(self._incoming[:size]))
        if len(self._incoming) < size + text + blob:
            return None
        body = bytes(self._incoming[size : size + text + blob])
        del self._incoming[: size + text + blob]
        return (wire.decode(body[:text], body[text:]),)

    def pump(self, timeout: float) -> bool:
        """Move bytes; False once the result channel is closed."""
        self._flush()
        for key, _ in self._selector.select(timeout):
            piece = _read(key.fd)
            if piece is None:
                continue
            if not piece:
                self._selector.unregister(key.fileobj)
                if key.data == "result":
                    return False
            elif key.data == "result":
                self._incoming += piece
            else:
                self._take(piece)
        return True

    def read_output(self) -> bool:
        """Take a piece of printed text if there is one; False if there is none left."""
        piece = _read(self._stdout.fileno()) if self._stdout is not None else None
        if piece:
            self._take(piece)
        return bool(piece)

    def close(self) -> None:
        self._selector.close()
        for fd in (self._request, self._result):
            os.close(fd)
        if self._stdout is not None:
            self._stdout.close()

    def _take(self, piece: bytes) -> None:
        self.printed += len(piece)
        self.output = (self.output + piece.decode("utf-8", "replace"))[-KEPT_OUTPUT:]

    def _flush(self) -> None:
        while self._outgoing:
            try:
                written = os.write(self._request, self._outgoing[: 1 << 16])
            except BlockingIOError:
                return
            except BrokenPipeError:  # the child has ended; whoever waits for its answer sees that
                self._outgoing.clear()
                return
            del self._outgoing[:written]


def _read(fd: int) -> bytes | None:
    """Bytes at hand; None if there are none yet, empty at the end."""
    try:
        return os.read(fd, 1 << 20)
    except BlockingIOError:
        return None
