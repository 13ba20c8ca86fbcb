"""The lab: vLLM's own scheduler on your CPU, beside mini_engine's and yours.

    python tools/vllm_lab.py setup                     once; a folder of its own, no CUDA
    python tools/vllm_lab.py run WORKLOAD.json         vLLM's steps beside mini_engine's
    python tools/vllm_lab.py run WORKLOAD.json --mine  and beside yours (work/practice)
    python tools/vllm_lab.py run 17                    one of the random workloads, by its number
    python tools/vllm_lab.py record                    vLLM's traces of all of those, for the tests

A workload is a JSON file; tests/data/vllm_traces/README.md explains it and has examples beside it.
`--picture FILE.html` writes the steps around the first difference as a picture.
Exit code 0: the same schedule. 1: another one. 2: wrong usage, or no lab here.
"""

from __future__ import annotations

import argparse
import json
import lzma
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from source_map_wheels import NotFetched  # noqa: E402
from vllm_lab_environment import VLLM, LabFailed, drive, set_up  # noqa: E402
from vllm_lab_workloads import COUNT, SEED, make_exceptions, make_workload, make_workloads  # noqa: E402

from mini_engine.benchmarks.replay import (  # noqa: E402
    Replay,
    as_records,
    first_difference,
)
from mini_engine.learner_parts import engine_parts, load_parts, written_parts  # noqa: E402
from mini_engine.parts import EngineParts  # noqa: E402
from mini_engine.show import schedule_diff  # noqa: E402
from mini_engine.trace import StepRecord  # noqa: E402

RANDOM = ROOT / "tests" / "data" / "vllm_random.json.xz"
CONTROL = {"block_pool", "prefix_cache", "scheduler"}  # the slots that a schedule depends on
NEEDED = ("block_size", "num_blocks", "max_num_batched_tokens", "max_num_seqs", "requests")
NEEDED_OF_A_REQUEST = ("id", "arrival_step", "prompt", "output")
DEFAULTS = {
    "max_model_len": 100_000,
    "enable_prefix_caching": True,
    "enable_chunked_prefill": True,
    "policy": "fcfs",
}
SAME = "="


def main() -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    setup = commands.add_parser("setup", help="make the lab's environment")
    setup.add_argument("--vllm", type=Path, metavar="DIR", help="a folder that holds vLLM's files")
    run = commands.add_parser("run", help="run a workload on both schedulers, and on yours")
    run.add_argument("workload", help="a JSON file, or the number of a random workload")
    mine = "a folder of practice files; without one, work/practice"
    run.add_argument("--mine", nargs="?", const=ROOT / "work" / "practice", type=Path, help=mine)
    run.add_argument("--picture", type=Path, metavar="FILE", help="write the difference as HTML")
    commands.add_parser("record", help="write vLLM's traces of the random workloads")
    chosen = parser.parse_args()
    try:
        if chosen.command == "setup":
            print(f"the lab is ready in {set_up(chosen.vllm)}")
            return 0
        if chosen.command == "record":
            return record()
        return run_workload(load_workload(chosen.workload), chosen.mine, chosen.picture)
    except (LabFailed, NotFetched, FileNotFoundError, ValueError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2


def load_workload(name: str) -> dict[str, Any]:
    """The workload in a file, or the random one of that number."""
    if name.isdecimal():
        return make_workload(int(name))
    workload = json.loads(Path(name).read_text(encoding="utf-8"))
    missing = [key for key in NEEDED if key not in workload]
    requests = workload.get("requests")
    if isinstance(requests, list):
        missing += [key for one in requests for key in NEEDED_OF_A_REQUEST if key not in one]
    if missing or not isinstance(requests, list) or not requests:
        what = f"it lacks {', '.join(dict.fromkeys(missing))}" if missing else "no list of requests"
        raise ValueError(f"{name} is no workload: {what}; see tests/data/vllm_traces/README.md")
    return DEFAULTS | workload


def trace_by_vllm(workloads: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What vLLM's scheduler does with these workloads, in the lab's environment."""
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder, "workloads.json"), Path(folder, "traces.json")
        asked.write_text(json.dumps(workloads), encoding="utf-8")
        drive([str(ROOT / "tools" / "vllm_lab_driver.py"), str(asked), str(told)])
        traces: list[dict[str, Any]] = json.loads(told.read_text(encoding="utf-8"))
        return traces


def record() -> int:
    """Write vLLM's traces of the random workloads, with the workloads, compressed."""
    workloads, exceptions = make_workloads(), make_exceptions()
    traces = trace_by_vllm([*workloads, *exceptions.values()])
    content = {
        "vllm": VLLM,
        "seed": SEED,
        "workloads": workloads,
        "traces": traces[: len(workloads)],
        "exceptions": dict(zip(exceptions, traces[len(workloads) :], strict=True)),
    }
    data = json.dumps(content, separators=(",", ":")).encode()
    RANDOM.write_bytes(lzma.compress(data, preset=9))
    print(f"{COUNT} traces, {RANDOM.stat().st_size:,} bytes: {RANDOM.relative_to(ROOT)}")
    return 0


def run_workload(workload: dict[str, Any], mine: Path | None, picture: Path | None) -> int:
    """Show the schedules side by side; returns 1 if one differs from vLLM's."""
    (trace,) = trace_by_vllm([workload])
    theirs = as_records(trace["steps"])
    runs = {"mini_engine": replay(workload, None)}
    if mine is not None:
        runs["yours"] = replay(workload, learner_parts(mine))
    if trace["stuck"]:
        print("vLLM goes on for ever without computing anything; its steps are cut off here")
    print_steps(theirs, runs)
    found = {name: first_difference(theirs, run) for name, run in runs.items()}
    for name, difference in found.items():
        if difference is None:
            print(f"{name}: the same schedule as vLLM's in all {len(theirs)} steps")
        else:
            print(f"{name}: differs from vLLM's in step {difference[0]} (vLLM, then {name}):")
            print("\n".join(f"  {line}" for line in difference[1]))
    if picture is not None:
        last = list(runs)[-1]
        step = (found[last] or (0, []))[0]
        html = schedule_diff(theirs, runs[last], step, after=3).html
        picture.write_text(f"<!doctype html><meta charset='utf-8'>{html}", encoding="utf-8")
        print(f"the steps around {step}, vLLM's and {last}: {picture}")
    return 1 if any(found.values()) else 0


def learner_parts(folder: Path) -> EngineParts:
    """The learner's parts that a schedule depends on; what is not written stays mini_engine's."""
    written, _ = written_parts(folder.resolve())
    rows = [row for row in written if row.slot in CONTROL]
    if not rows:
        raise ValueError(f"nothing in {folder} fills {', '.join(sorted(CONTROL))} yet")
    print(f"yours: {', '.join(row.symbol for row in rows)}")
    return engine_parts(load_parts(folder.resolve(), rows))


def replay(workload: dict[str, Any], parts: EngineParts | None) -> list[StepRecord]:
    """The records of a run; those up to the error if a learner's part raises one."""
    run = Replay(workload, parts)
    try:
        run.run()
    except Exception:
        if parts is None:
            raise
        print(f"yours stopped in step {len(run.engine.trace)}:")
        traceback.print_exc(limit=-3, file=sys.stdout)
    return run.engine.trace


def print_steps(theirs: Sequence[StepRecord], runs: dict[str, list[StepRecord]]) -> None:
    """One line per step: vLLM's, and the others' where they differ."""
    width = max([len(describe(step)) for step in theirs] + [len("vLLM")])
    print(f"step  {'vLLM':<{width}}  " + "  ".join(runs))
    longest = max(len(theirs), *(len(run) for run in runs.values()))
    for number in range(longest):
        expected = describe(theirs[number]) if number < len(theirs) else "(ended)"
        line = f"{number:>4}  {expected:<{width}}"
        for name, run in runs.items():
            got = describe(run[number]) if number < len(run) else "(ended)"
            line += f"  {SAME if got == expected else got:<{len(name)}}"
        print(line.rstrip())


def describe(step: StepRecord) -> str:
    """A step in a line: tokens per request, hits, victims, free blocks."""
    parts = []
    for name, tokens in step.scheduled.items():
        hit = step.cached.get(name, 0)
        parts.append(f"{name}:{tokens}" + (f"(hit {hit})" if hit else ""))
    line = " ".join(parts) or "nothing"
    line += f" out {','.join(step.preempted)}" if step.preempted else ""
    return f"{line} f{step.free_blocks}"


if __name__ == "__main__":
    sys.exit(main())
