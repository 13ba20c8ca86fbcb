"""Owns which runs a load test makes: its points one after the other, each with its own prompts."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from mini_engine.benchmarks.serve_client import Target
from mini_engine.benchmarks.serve_load import LoadResult, closed_loop, open_loop
from mini_engine.benchmarks.serve_report import Point, Slo, describe_point, knee, make_point
from mini_engine.benchmarks.serve_workload import (
    Lengths,
    LoadRequest,
    arrivals,
    random_requests,
    read_trace,
)

CONCURRENCIES = (1, 2, 4, 8, 16)
RATES = (0.25, 0.5, 1.0, 1.5, 2.0)
REQUESTS, MOST_REQUESTS = 64, 100_000
CLIENTS = 8


class Runs:
    """Runs the points that the command line asks for, each with requests of its own."""

    def __init__(self, args: argparse.Namespace, target: Target) -> None:
        self.args, self.target = args, target
        self.slo = Slo(args.slo_ttft_ms, args.slo_tpot_ms)
        self.lengths = Lengths.parse(args.prompt_tokens), Lengths.parse(args.output_tokens)
        self._seed = args.seed

    def requests(self, count: int) -> list[LoadRequest]:
        """Requests that no other call made."""
        self._seed += 1
        if self.args.trace is not None:
            return read_trace(self.args.trace, self._seed)[:count]
        return random_requests(*self.lengths, count, self._seed)

    @property
    def count(self) -> int:
        """Requests of one point."""
        args = self.args
        default = REQUESTS if args.duration is None and args.trace is None else MOST_REQUESTS
        return default if args.requests is None else int(args.requests)

    async def warm_up(self) -> None:
        """Requests whose times nobody reads. Raises RuntimeError if one fails."""
        if self.args.warmup:
            warm = self.requests(self.args.warmup)
            result = await closed_loop(self.target, warm, len(warm))
            for one in result.sent:
                if one.failure is not None:
                    raise RuntimeError(f"a first request failed: {one.failure}, {one.detail}")

    async def closed(self, concurrency: int) -> Point:
        """So many clients."""
        wanted = self.requests(self.count)
        result = await closed_loop(self.target, wanted, concurrency, self.args.duration)
        return self._point(result, "closed", concurrency)

    async def open(self, rate: float) -> Point:
        """Requests at random moments, so many a second."""
        args, seconds = self.args, self.args.duration
        count = self.count if seconds is None else min(self.count, int(2 * rate * seconds) + 10)
        wanted = self.requests(count)
        moments = arrivals(args.arrivals, len(wanted), rate, args.burst, self._seed)
        kept = [moment for moment in moments if seconds is None or moment < seconds]
        result = await open_loop(self.target, wanted[: len(kept)], kept)
        return self._point(result, "open", rate, args.arrivals)

    async def replay(self) -> Point:
        """The trace at its own moments."""
        wanted = self.requests(self.count)
        moments = [one.timestamp for one in wanted if one.timestamp is not None]
        if len(moments) != len(wanted):
            raise ValueError(f"{self.args.trace} has no timestamps; give --concurrency or --rate")
        seconds = self.args.duration
        kept = [moment for moment in moments if seconds is None or moment < seconds]
        result = await open_loop(self.target, wanted[: len(kept)], kept)
        return self._point(result, "open", round(len(kept) / max(kept[-1], 1e-9), 4), "trace")

    def _point(self, result: LoadResult, mode: str, load: float, kind: str | None = None) -> Point:
        point = make_point(result, self.slo, mode=mode, load=load, arrivals=kind)
        print(describe_point(point, self.slo) + "\n", flush=True)
        details = {one.failure: one.detail for one in result.sent if one.failure is not None}
        for failure, detail in details.items():
            print(f"a {failure}: {detail}", file=sys.stderr)
        return point

    async def run(self) -> list[dict[str, Any]]:
        """All points, as the sweeps of the JSON."""
        args = self.args
        closed, opened = args.concurrency or [], args.rate or []
        if args.sweep and not closed and not opened:
            closed, opened = list(CONCURRENCIES), list(RATES)
        if not closed and not opened and args.trace is None:
            closed = [CLIENTS]
        await self.warm_up()
        curves = [[await self.closed(number) for number in closed]]
        curves.append([await self.open(rate) for rate in opened])
        if not closed and not opened:
            curves = [[await self.replay()]]
        return [{"mode": points[0]["mode"], "knee": knee(points), "points": points}
                for points in curves if points]  # fmt: skip
