"""Owns the command line: `python -m mini_engine "What is a KV cache?"` answers in the terminal.

`python -m mini_engine serve` is the server's, in serve/command.py.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mini_engine.config import DEFAULT_MODEL, DEVICES, DTYPES, POLICIES
from mini_engine.engine import LLMEngine
from mini_engine.learner_parts import use_folder
from mini_engine.sampling_params import SamplingParams
from mini_engine.text.default_model import ModelNotAvailable
from mini_engine.trace import TRACE_VERSION, StepRecord

ENGINE_OPTIONS = (
    "block_size", "num_blocks", "max_model_len", "max_num_batched_tokens", "max_num_seqs",
)  # fmt: skip


def build_parser() -> argparse.ArgumentParser:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m mini_engine",
        description="Answer prompts with the reference engine; several are served together.",
        epilog="python -m mini_engine serve starts a server; see its --help.",
    )
    parser.add_argument("prompt", nargs="*", help="what to ask; without it, standard input is read")
    parser.add_argument("--model", default=DEFAULT_MODEL, help="folder, hub id or the default")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--max-tokens", type=int, default=256, help="most tokens of an answer")
    parser.add_argument("--temperature", type=float, default=0.0, help="0, the default, is greedy")
    parser.add_argument("--top-p", type=float, default=1.0, help="draw from this share of the best")
    parser.add_argument("--seed", type=int, help="draw the same again")
    parser.add_argument("--stop", action="append", default=[], help="end at this text; repeatable")
    parser.add_argument("--raw", action="store_true", help="complete the text, no chat template")
    parser.add_argument("--trace", action="store_true", help="show what each step scheduled")
    parser.add_argument("--json", action="store_true", help="print one JSON object at the end")
    parser.add_argument("--policy", choices=POLICIES, default="fcfs")
    parser.add_argument("--parts", metavar="FOLDER", help="use the parts written in a folder of "
        "exercises, as work/practice; the reference fills in for the others")  # fmt: skip
    for name in ENGINE_OPTIONS:
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=int, help=f"EngineConfig.{name}")
    parser.add_argument("--cuda-graphs", action="store_true", help="replay decode steps as CUDA "
        "graphs; on a CPU an emulator shows how, slower than without")  # fmt: skip
    parser.add_argument("--debug", action="store_true", help="poison and check every step (slow)")
    return parser


def describe_step(record: StepRecord, budget: int) -> str:
    """One line of text about a step: who got how many tokens, what was hit, preempted, ended."""
    parts = []
    for request_id, num_tokens in record.scheduled.items():
        word = f"{request_id} {num_tokens}"
        if record.cached.get(request_id):
            word += f" (hit {record.cached[request_id]})"
        parts.append(word)
    line = f"step {record.step}: {', '.join(parts) or 'nothing'}"
    line += f" | {record.total} of {budget} tokens | {record.free_blocks_end} blocks free"
    if record.graph_bucket is not None:
        line += f" | graph of {record.graph_bucket}"
    if record.preempted:
        line += f" | preempted: {', '.join(record.preempted)}"
    for request_id, reason in record.finished.items():
        line += f" | {request_id} ended: {reason}"
    return line


def serve_prompts(engine: LLMEngine, args: argparse.Namespace) -> dict[str, Any]:
    """Run all prompts together; a single one streams to standard output while it is made."""
    params = SamplingParams(
        max_tokens=args.max_tokens,
        temperature=args.temperature,
        top_p=args.top_p,
        seed=args.seed,
        stop=tuple(args.stop),
    )
    ids = [
        engine.add_request(prompt if args.raw else engine.chat_prompt(prompt), params)
        for prompt in args.prompt
    ]
    streams = len(ids) == 1 and not args.json and not args.trace
    final = {}
    while engine.has_unfinished:
        outputs = engine.step()
        final.update({o.request_id: o for o in outputs if o.finished})
        if streams:
            print("".join(o.new_text for o in outputs), end="", flush=True)
        if args.trace and not args.json:
            pieces = " ".join(f"{o.request_id}:{o.new_text!r}" for o in outputs)
            line = describe_step(engine.trace[-1], engine.config.max_num_batched_tokens)
            print(f"{line} | {pieces}" if pieces else line, file=sys.stderr, flush=True)
    if streams:
        print()
    elif not args.json:
        for prompt, request_id in zip(args.prompt, ids, strict=True):
            print(f"> {prompt}\n{final[request_id].text}\n")
    return {
        "model": engine.config.model,
        "outputs": [
            {"prompt": prompt, **dataclasses.asdict(final[request_id])}
            for prompt, request_id in zip(args.prompt, ids, strict=True)
        ],
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Returns the exit status: 0, or 2 for input that cannot be served."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["serve"]:
        from mini_engine.serve.command import main as serve

        return serve(argv[1:])
    parser = build_parser()
    args = parser.parse_args(argv)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that cannot show a character
    if not args.prompt and not sys.stdin.isatty():
        args.prompt = [sys.stdin.read().strip()]
    if not any(args.prompt):
        parser.error('nothing to answer; try: python -m mini_engine "What is a KV cache?"')
    options = {name: getattr(args, name) for name in ENGINE_OPTIONS}
    options = {name: value for name, value in options.items() if value is not None}
    if args.cuda_graphs:
        options.setdefault("max_num_seqs", len(args.prompt))  # so many graphs, and no more
    parts = None
    try:
        if args.parts is not None:
            parts, lines = use_folder(Path(args.parts))
            print("\n".join(lines), file=sys.stderr)
        with LLMEngine(
            args.model,
            parts=parts,
            device=args.device,
            dtype=args.dtype,
            policy=args.policy,
            cuda_graphs=args.cuda_graphs,
            debug=args.debug,
            **options,
        ) as engine:
            result = serve_prompts(engine, args)
            if args.trace:
                steps = [dataclasses.asdict(record) for record in engine.trace]
                result |= {"trace_version": TRACE_VERSION, "config": engine.describe()}
                result["trace"] = steps
    except (ValueError, FileNotFoundError, ModelNotAvailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130
    if args.json:
        print(json.dumps(result, ensure_ascii=False, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
