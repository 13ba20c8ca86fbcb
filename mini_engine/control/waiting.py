"""Owns the waiting queue: who is considered next, for both policies."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Sequence
from typing import overload

from mini_engine.control.request import Request


def urgency(request: Request) -> tuple[int, int]:
    """Sort key of policy "priority": the smallest is admitted first, the largest is the victim."""
    return (request.priority, request.arrival)


class WaitingQueue(Sequence[Request]):
    """Requests in the order in which they will be considered.

    Under "fcfs" new ones join at the back and preempted ones at the front. Under "priority" both
    go to the place of their (priority, arrival), so a victim returns to where it came from.
    """

    def __init__(self, policy: str) -> None:
        self._by_priority = policy == "priority"
        self._requests: list[Request] = []  # last is first: popping and preempting are cheap

    def push(self, request: Request) -> None:
        """Queue a new request."""
        self._insert(request, behind_all=True)

    def push_preempted(self, request: Request) -> None:
        """Queue a request that was running."""
        self._insert(request, behind_all=False)

    def _insert(self, request: Request, behind_all: bool) -> None:
        if self._by_priority:
            bisect.insort(self._requests, request, key=lambda r: tuple(-k for k in urgency(r)))
        else:
            self._requests.insert(0 if behind_all else len(self._requests), request)

    def pop(self) -> Request:
        """Take the head of the queue."""
        return self._requests.pop()

    def remove(self, request: Request) -> None:
        """Take a request out, wherever it stands."""
        self._requests.remove(request)

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[Request]:
        return reversed(self._requests)

    @overload
    def __getitem__(self, index: int) -> Request: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Request]: ...
    def __getitem__(self, index: int | slice) -> Request | Sequence[Request]:
        if isinstance(index, slice):
            return self._requests[::-1][index]
        return self._requests[-1 - index]
