"""A sample of the random workloads of fuzz.py, and the proof that they can fail.

They hold for all of these reports (REPORTS.md) at once, on every step of every workload:
1 a prompt sent twice is never read whole from the cache ....... each chunk computes 1 token or more
2, 14 a reused block serves no other prompt .................... every read of the shadow model
3, 24, 25 full pools, the cap on what runs, starved decodes .... chunks, number of steps, answers
4 a resumed request counts from its new hit .................... chunks start where KV is written
13, 28, 29 names and counts neither grow nor go wrong .......... invariants, and the end of each run
5 and, by hand, all of these: test_reports.py; 15: test_invariants.py.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from mini_engine.control.prefix_cache import PrefixCache
from mini_engine.control.request import Request
from mini_engine.control.scheduler import Scheduler
from mini_engine.interfaces import Chunk
from mini_engine.parts import EngineParts
from tests.control.fuzz import Run, make_workload, run_many

SEED = 21


@pytest.mark.parametrize("part", range(4))
def test_no_step_reads_kv_that_is_not_its_own(part: int) -> None:
    seen = run_many(SEED, range(100 * part, 100 * part + 100))
    kinds = ("refused", "aborted", "aborted inside a step", "failed", "preempted", "hit")
    for kind in (*kinds, "stop", "length", "capacity"):
        assert seen[kind] > 0, f"these workloads have nothing that is {kind}"


class NamesOutliveTheirBlock(PrefixCache):
    """A reused block is still listed under its old name."""

    def _forget(self, block_id: int) -> None:
        pass


class NamesOfFailedStepsStay(PrefixCache):
    def take_back_names(self, request: Request | None = None) -> None:
        pass


class WholePromptHits(PrefixCache):
    """A cached prompt of full blocks leaves no token to compute."""

    def lookup(self, request: Request) -> list[int]:
        hit = super().lookup(request)
        if self.enabled and len(hit) == (request.num_tokens - 1) // self.block_size:
            request.token_ids.append(0)  # as if there were one more token to compute
            hit = super().lookup(request)
            request.token_ids.pop()
        return hit


class KeptLookupsNeverAge(PrefixCache):
    """What a lookup found is used when the request is admitted, whatever was evicted since."""

    def lookup(self, request: Request) -> list[int]:
        self.kept: dict[str, list[int]] = getattr(self, "kept", {})
        return list(self.kept.setdefault(request.request_id, super().lookup(request)))

    def admit(self, request: Request, hit: list[int]) -> None:
        super().admit(request, hit)
        del self.kept[request.request_id]


class SaltsAreIgnored(PrefixCache):
    def lookup(self, request: Request) -> list[int]:
        with _without_salt(request):
            return super().lookup(request)

    def grow(self, request: Request, num_tokens: int) -> None:
        with _without_salt(request):
            super().grow(request, num_tokens)


@contextlib.contextmanager
def _without_salt(request: Request) -> Iterator[None]:
    salt, request.cache_salt = request.cache_salt, None
    yield
    request.cache_salt = salt


class BlocksAreNamedTooEarly(PrefixCache):
    """A block is named one token before the step that fills it."""

    def grow(self, request: Request, num_tokens: int) -> None:
        super().grow(request, num_tokens)
        full = min(num_tokens + 1, request.num_tokens) // self.block_size
        if self.enabled and full <= len(request.block_table):
            self._name_full_blocks(request, max(full, request.num_named))


class TokensNobodyKept(Scheduler):
    """A preempted request goes on where it was, although its blocks are gone."""

    def _wait_again(self, request: Request) -> None:
        self.kept = {**getattr(self, "kept", {}), request.request_id: request.num_computed}
        super()._wait_again(request)

    def _admit_waiting(self, step: Any) -> None:
        super()._admit_waiting(step)
        for index, chunk in enumerate(step.schedule.chunks):
            start = getattr(self, "kept", {}).pop(chunk.request.request_id, 0)
            skipped = start - chunk.start
            if 0 < skipped < chunk.num_tokens:
                chunk.request.num_computed = start
                step.schedule.chunks[index] = Chunk(
                    chunk.request, start, chunk.num_tokens - skipped, chunk.samples
                )


MISTAKES: dict[type, tuple[dict[str, Any], str]] = {
    NamesOutliveTheirBlock: ({"prefix_cache": NamesOutliveTheirBlock}, "reads foreign KV"),
    NamesOfFailedStepsStay: (
        {"prefix_cache": NamesOfFailedStepsStay},
        "reads (foreign|unwritten) KV",
    ),
    KeptLookupsNeverAge: ({"prefix_cache": KeptLookupsNeverAge}, "reads foreign KV"),
    WholePromptHits: ({"prefix_cache": WholePromptHits}, "computes nothing"),
    SaltsAreIgnored: ({"prefix_cache": SaltsAreIgnored}, "reads foreign KV"),
    BlocksAreNamedTooEarly: (
        {"prefix_cache": BlocksAreNamedTooEarly},
        "reads (foreign|unwritten) KV",
    ),
    TokensNobodyKept: ({"scheduler": TokensNobodyKept}, "reads (foreign|unwritten) KV"),
}


@pytest.mark.parametrize("mistake", list(MISTAKES), ids=lambda mistake: mistake.__name__)
def test_a_planted_mistake_is_caught_by_what_a_step_reads(mistake: type) -> None:
    """Without the help of check_invariants, so that a part that has none is tested as well."""
    parts, message = MISTAKES[mistake]
    with pytest.raises(AssertionError, match=message):
        _run_all(EngineParts(**parts))


def _run_all(parts: EngineParts) -> None:
    for number in range(200):
        Run(make_workload(SEED, number), parts, invariants=False).to_end()
