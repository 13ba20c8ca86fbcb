"""Measures a server under load: any that speaks OpenAI's API, or mini_engine's own.

Run `python -m mini_engine.benchmarks.serve`. Without --base-url it starts mini_engine's server and
passes it what stands behind `--`. The load is closed (--concurrency N: so many clients, each with
one request under way) or open (--rate R: requests per second that come at their own moments), or a
trace from a file. Several numbers, or --sweep, measure one point after the other.

With --json the points are kept; the format, version 1:

    format, version   "mini_engine serve load", 1
    command, date, machine, python      where the numbers come from
    threads           OMP_NUM_THREADS, which our own server's engine follows, or null
    server            {"base_url" (null: our own), "arguments", "model"}
    workload          {"prompt_tokens", "output_tokens", "trace", "requests", "duration_s",
                       "warmup", "burst", "seed", "chat", "ignore_eos"}
    slo               {"ttft_ms", "tpot_ms"}
    sweeps            [{"mode": "closed" or "open", "knee": load or null, "points": [...]}]

A point is described in `serve_report`, arrivals and lengths in `serve_workload`. Every point draws
prompts of its own, so that no point finds its prompts in the server's prefix cache.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import datetime
import json
import os
import platform
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from mini_engine.benchmarks.serve_client import Target, served_model
from mini_engine.benchmarks.serve_report import Slo, describe_sweep
from mini_engine.benchmarks.serve_runs import CONCURRENCIES, RATES, REQUESTS, Runs
from mini_engine.benchmarks.serve_workload import ARRIVALS
from mini_engine.serve.background import BackgroundServer


def build_parser() -> argparse.ArgumentParser:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m mini_engine.benchmarks.serve",
        description="Put a server under load and report latency, throughput and goodput.",
        epilog="Behind -- stand arguments for mini_engine's own server, as -- --max-num-seqs 16.",
    )
    add = parser.add_argument
    add("--base-url", help="of an OpenAI-compatible server, ending in /v1; without, our own starts")
    add("--model", help="what the server calls its model; without, the first that it lists")
    add("--api-key", help="sent as a bearer token")
    add("--chat", action="store_true", help="ask /chat/completions instead of /completions")
    add("--concurrency", type=int, nargs="+", metavar="N", help="closed loop with N clients")
    add("--rate", type=float, nargs="+", metavar="R", help="open loop, R requests per second")
    add("--arrivals", choices=ARRIVALS, default="poisson", help="of the open loop")
    add("--burst", type=int, default=4, metavar="N", help="requests of one burst")
    add(
        "--sweep",
        action="store_true",
        help=f"measure {CONCURRENCIES} clients, then {RATES} requests/s, or those given",
    )
    add(
        "--trace",
        type=Path,
        metavar="FILE",
        help="JSON lines: timestamp, prompt or "
        "prompt_tokens, max_tokens; replayed by its timestamps unless a load is given",
    )
    add(
        "--prompt-tokens",
        default="uniform:16:256",
        metavar="LENGTHS",
        help="about so many: 128, uniform:LOWEST:HIGHEST or lognormal:MEDIAN:SIGMA[:MOST]",
    )
    add("--output-tokens", default="64", metavar="LENGTHS", help="the same, for max_tokens")
    add(
        "--respect-eos",
        action="store_true",
        help="let answers end early (servers that do not know ignore_eos)",
    )
    add("--requests", type=int, metavar="N", help=f"of each point; {REQUESTS}, or all that fit")
    add("--duration", type=float, metavar="S", help="send nothing new after so many seconds")
    add("--warmup", type=int, default=4, metavar="N", help="requests before, not measured")
    add("--timeout", type=float, default=300.0, metavar="S", help="for one request")
    add("--slo-ttft-ms", type=float, default=Slo.ttft_ms, metavar="MS")
    add("--slo-tpot-ms", type=float, default=Slo.tpot_ms, metavar="MS")
    add("--seed", type=int, default=0)
    add("--json", type=Path, metavar="FILE", help="write the points to this file")
    add("--plot", type=Path, metavar="FILE", help="write a page with the curves of a sweep")
    return parser  # fmt: skip


@contextlib.contextmanager
def target_of(args: argparse.Namespace, server_arguments: Sequence[str]) -> Iterator[Target]:
    """The server to measure; our own runs as long as the block."""
    with contextlib.ExitStack() as stack:
        base_url = args.base_url
        if base_url is None:
            base_url = stack.enter_context(BackgroundServer(*server_arguments)).base_url
        model = args.model or served_model(base_url, args.api_key)
        extra = {} if args.respect_eos else {"ignore_eos": True}
        yield Target(base_url, model, args.api_key, args.chat, args.timeout, extra)


def document(
    args: argparse.Namespace, target: Target, argv: Sequence[str], sweeps: list[dict[str, Any]]
) -> dict[str, Any]:
    """What --json writes."""
    own, words = list(argv), list(argv)
    if args.api_key is not None:
        words = [word.replace(args.api_key, "KEY") for word in words]
    arguments = own[own.index("--") + 1 :] if "--" in own else []
    threads = os.environ.get("OMP_NUM_THREADS")
    names = ("prompt_tokens", "output_tokens", "requests", "warmup", "burst", "seed", "chat")
    return {
        "format": "mini_engine serve load",
        "version": 1,
        "command": " ".join(["python -m mini_engine.benchmarks.serve", *words]),
        "date": datetime.date.today().isoformat(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "python": platform.python_version(),
        "threads": None if threads is None else int(threads),
        "server": {"base_url": args.base_url, "arguments": arguments, "model": target.model},
        "workload": {
            **{name: getattr(args, name) for name in names},
            "trace": None if args.trace is None else args.trace.name,
            "duration_s": args.duration,
            "ignore_eos": not args.respect_eos,
        },
        "slo": {"ttft_ms": args.slo_ttft_ms, "tpot_ms": args.slo_tpot_ms},
        "sweeps": sweeps,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Print the points and, with --json and --plot, keep them. Returns 0, 1 or 2 (wrong input)."""
    argv = sys.argv[1:] if argv is None else argv
    border = list(argv).index("--") if "--" in argv else len(argv)
    args = build_parser().parse_args(argv[:border])
    try:
        with target_of(args, argv[border + 1 :]) as target:
            sweeps = asyncio.run(Runs(args, target).run())
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nstopped; nothing is kept", file=sys.stderr)
        return 130
    for sweep in sweeps:
        print(describe_sweep(sweep["points"]) + "\n")
    result = document(args, target, argv, sweeps)
    if args.json:
        args.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if args.plot:
        from mini_engine.benchmarks.serve_plot import page

        args.plot.write_text(page(result), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
