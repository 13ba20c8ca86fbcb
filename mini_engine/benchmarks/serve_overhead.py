"""Measures what serving costs: the engine alone, its server, and its server in one process.

Run `python -m mini_engine.benchmarks.serve_overhead`. All serve the same prompts in turns, and
throughput is that of the best of several rounds, which other programs disturbed least: threads that
compute one matrix together all wait for the one that lost its processor, so a disturbed round can
take many times as long, unless OMP_NUM_THREADS=1. The clients run on this machine and take
processor time from the server, which real ones do not; so each is as light as can be, a socket that
notes when something comes.

With --json the figures are kept; the format, version 1. The contenders are "engine" (LLMEngine in
this process), "server" (its core in a process of its own) and "one process" (serve --in-process):

    format, version   "mini_engine serve overhead", 1
    command, date, machine, torch, threads   where the numbers come from
    workload          {"streams", "prompt_tokens", "output_tokens", "rounds", "first_tokens"}
    throughput        {"seconds": {contender: [a round, ...]}, "output_tokens_per_s": {contender},
                       "ratio_to_engine": {contender}, "one_process_to_server"}
    ttft              {"seconds": {contender: median}, "added_by_http_s": {contender}}
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import torch

from mini_engine.benchmarks.serve_client import Target, served_model
from mini_engine.benchmarks.serve_workload import LoadRequest, random_text
from mini_engine.engine import LLMEngine
from mini_engine.latency import time_to_first_token
from mini_engine.sampling_params import SamplingParams
from mini_engine.serve.background import BackgroundServer

STREAMS, SHORTEST, LONGEST, NEW_TOKENS = 16, 16, 96, 32
FIRST_PROMPT = 32  # tokens of the prompt whose time to first token is measured
SIZES: dict[str, Any] = {"max_model_len": 256, "max_num_seqs": STREAMS, "num_blocks": 256}
Contender = Callable[[Sequence[LoadRequest]], list[list[float]]]


def make_requests(count: int, new_tokens: int, seed: int = 0) -> list[LoadRequest]:
    """Prompts evenly spread from the shortest to the longest; one alone has FIRST_PROMPT tokens."""
    rng = random.Random(seed)
    lengths = [SHORTEST + (LONGEST - SHORTEST) * i // max(count - 1, 1) for i in range(count)]
    lengths = lengths if count > 1 else [FIRST_PROMPT]
    return [LoadRequest(random_text(rng, length), new_tokens) for length in lengths]


def with_engine(engine: LLMEngine) -> Contender:
    """The engine alone; text in and text out, as the server has it."""

    def serve(requests: Sequence[LoadRequest]) -> list[list[float]]:
        start = time.perf_counter()
        times: dict[str, list[float]] = {}
        for one in requests:
            params = SamplingParams(max_tokens=one.max_tokens, ignore_eos=True)
            times[engine.add_request(one.prompt, params)] = [start]
        while engine.has_unfinished:
            outputs = engine.step()
            now = time.perf_counter()
            for output in outputs:
                times[output.request_id] += [now] * len(output.new_token_ids)
        return list(times.values())

    return serve


class LightClient(asyncio.Protocol):
    """Sends one request and notes when each event of its answer came; `gone` once it has ended."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._answer: list[bytes] = []
        self.times: list[float] = []
        self.gone = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the request."""
        assert isinstance(transport, asyncio.Transport)
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        """One event as a rule; each begins with "data: {" and carries one token."""
        self.times += [time.perf_counter()] * data.count(b"data: {")
        self._answer.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """The answer is whole, or it failed."""
        answer = b"".join(self._answer)
        if exc is None and answer.startswith(b"HTTP/1.1 200 ") and b"data: [DONE]" in answer:
            self.gone.set_result(None)
        else:
            self.gone.set_exception(RuntimeError(f"a request failed: {exc or answer[:500]!r}"))


def with_server(url: str) -> Contender:
    """A server, asked by as many clients as there are requests, each for a stream."""
    target = Target(f"{url}/v1", served_model(f"{url}/v1", None), extra={"ignore_eos": True})
    address = urlsplit(url)
    host, port = address.hostname or "127.0.0.1", address.port or 80

    def written(request: LoadRequest) -> bytes:
        body = json.dumps({**target.body(request), "stream_options": None}).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nHost: {address.netloc}\r\nConnection: close\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body

    async def ask(request: bytes) -> list[float]:
        start = time.perf_counter()
        loop = asyncio.get_running_loop()
        _, client = await loop.create_connection(lambda: LightClient(request), host, port)
        await client.gone
        return [start, *client.times]

    async def ask_all(requests: list[bytes]) -> list[list[float]]:
        return await asyncio.gather(*map(ask, requests))

    return lambda requests: asyncio.run(ask_all([written(one) for one in requests]))


def measure_throughput(contenders: dict[str, Contender], rounds: int) -> dict[str, Any]:
    """Seconds of each round from the first request to the last token; speeds of the best ones."""
    requests = make_requests(STREAMS, NEW_TOKENS)
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(rounds + 1):  # the first round warms up
        for name, serve in contenders.items():
            times = serve(requests)
            assert [len(found) - 1 for found in times] == [NEW_TOKENS] * STREAMS, name
            elapsed = max(t[-1] for t in times) - min(t[0] for t in times)
            print(f"round {number}, {name}: {elapsed:.2f} s", file=sys.stderr, flush=True)
            if number:
                seconds[name].append(elapsed)
    return {
        "seconds": {name: [round(s, 4) for s in found] for name, found in seconds.items()},
        "output_tokens_per_s": {
            name: round(STREAMS * NEW_TOKENS / min(found), 2) for name, found in seconds.items()
        },
        "ratio_to_engine": {
            name: ratio(seconds["engine"], found) for name, found in seconds.items()
        },
        "one_process_to_server": ratio(seconds["server"], seconds["one process"]),
    }


def ratio(base: Sequence[float], other: Sequence[float]) -> float:
    """How many times as fast `other` was as `base`, the best round of each."""
    return round(min(base) / min(other), 4)


def measure_first_token(contenders: dict[str, Contender], repeats: int) -> dict[str, Any]:
    """Median seconds to the first token of one request alone, and what HTTP adds to it."""
    requests = make_requests(1, 2)
    found: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(repeats + 2):  # the first two warm up
        for name, serve in contenders.items():
            ((arrival, *token_times),) = serve(requests)
            if number >= 2:
                found[name].append(time_to_first_token(arrival, token_times))
    engine = found["engine"]
    return {
        "seconds": {name: round(statistics.median(times), 6) for name, times in found.items()},
        "added_by_http_s": {
            name: round(statistics.median(t - e for t, e in zip(times, engine, strict=True)), 6)
            for name, times in found.items()
            if name != "engine"
        },
    }


def measure(rounds: int, first_tokens: int) -> dict[str, Any]:
    """All figures; starts both servers and the engine."""
    arguments = ["--device", "cpu", "--no-prefix-caching"]
    for name, value in SIZES.items():
        arguments += ["--" + name.replace("_", "-"), str(value)]
    with contextlib.ExitStack() as stack:
        enter = stack.enter_context
        server = enter(BackgroundServer(*arguments))
        one_process = enter(BackgroundServer(*arguments, "--in-process"))
        engine = enter(LLMEngine(device="cpu", enable_prefix_caching=False, trace_limit=1, **SIZES))
        contenders = {
            "engine": with_engine(engine),
            "server": with_server(server.url),
            "one process": with_server(one_process.url),
        }
        return {
            "throughput": measure_throughput(contenders, rounds),
            "ttft": measure_first_token(contenders, first_tokens),
        }


def main(argv: Sequence[str] | None = None) -> None:
    """Print the figures and, with --json, keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8, help="measured rounds of 16 streams")
    parser.add_argument("--first-tokens", type=int, default=25, help="measured single requests")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args(argv)
    figures = measure(args.rounds, args.first_tokens)
    throughput, ttft = figures["throughput"], figures["ttft"]
    print(f"{STREAMS} streams, {NEW_TOKENS} new tokens each; one request's first token")
    for name, speed in throughput["output_tokens_per_s"].items():
        added = ttft["added_by_http_s"].get(name)
        more = "" if added is None else f" ({added * 1000:+.1f} ms by HTTP)"
        print(
            f"  {name:<12}{speed:8.1f} tokens/s, {throughput['ratio_to_engine'][name]:.3f} of the "
            f"engine alone   TTFT {ttft['seconds'][name] * 1000:.1f} ms{more}"
        )
    print(f"  one process is {throughput['one_process_to_server']:.3f} times as fast as two")
    if args.json:
        result = {
            "format": "mini_engine serve overhead",
            "version": 1,
            "command": f"OMP_NUM_THREADS={torch.get_num_threads()} "
            "python -m mini_engine.benchmarks.serve_overhead"
            f" --rounds {args.rounds} --first-tokens {args.first_tokens} --json {args.json}",
            "date": datetime.date.today().isoformat(),
            "machine": f"{platform.machine()}, {os.cpu_count()} cores",
            "torch": torch.__version__,
            "threads": torch.get_num_threads(),
            "workload": {
                "streams": STREAMS,
                "prompt_tokens": [SHORTEST, LONGEST],
                "output_tokens": NEW_TOKENS,
                "rounds": args.rounds,
                "first_tokens": args.first_tokens,
            },
            **figures,
        }
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
