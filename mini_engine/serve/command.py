"""Owns `python -m mini_engine serve`: an OpenAI-compatible server on this machine."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mini_engine.config import DEFAULT_MODEL, DEVICES, DTYPES, POLICIES

ENGINE_OPTIONS = (
    "block_size", "num_blocks", "max_model_len", "max_num_batched_tokens", "max_num_seqs",
    "long_prefill_token_threshold",
)  # fmt: skip
GRACE_S = 10


def build_parser() -> argparse.ArgumentParser:
    """The command line's options."""
    parser = argparse.ArgumentParser(
        prog="python -m mini_engine serve", description="Serve OpenAI's API with this engine."
    )
    parser.add_argument("--model", default=DEFAULT_MODEL, help="folder, hub id or the default")
    parser.add_argument("--served-model-name", help="what clients call it; the model's own name")
    parser.add_argument("--host", default="127.0.0.1", help="0.0.0.0 lets other machines in")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--api-key", help="clients must send it; without, anyone here may ask")
    parser.add_argument("--cors-origin", action="append", default=[], metavar="ORIGIN",
                        help="a web page's origin that may ask; may be repeated")  # fmt: skip
    parser.add_argument("--max-waiting", type=int, default=256,
                        help="requests that may wait; one more gets status 429")  # fmt: skip
    parser.add_argument("--timeout", type=float, default=600.0, help="seconds for one request")
    parser.add_argument("--grace", type=int, default=GRACE_S,
                        help="seconds that open requests have left at the end")  # fmt: skip
    parser.add_argument("--in-process", action="store_true",
                        help="the engine in a thread instead of a process of its own")  # fmt: skip
    parser.add_argument("--parts", metavar="FOLDER", help="use the parts written in this folder")
    parser.add_argument("--device", choices=DEVICES, default="auto")
    parser.add_argument("--dtype", choices=DTYPES, default="float32")
    parser.add_argument("--policy", choices=POLICIES, default="fcfs")
    parser.add_argument("--no-prefix-caching", action="store_true")
    parser.add_argument("--cuda-graphs", action="store_true", help="EngineConfig.cuda_graphs")
    for name in ENGINE_OPTIONS:
        flag = "--" + name.replace("_", "-")
        parser.add_argument(flag, type=int, help=f"EngineConfig.{name}")
    return parser


def engine_options(args: argparse.Namespace) -> dict[str, Any]:
    """What the engine core is made with, as plain data."""
    options = {name: getattr(args, name) for name in ("model", "device", "dtype", "policy")}
    options |= {n: getattr(args, n) for n in ENGINE_OPTIONS if getattr(args, n) is not None}
    if args.no_prefix_caching:
        options["enable_prefix_caching"] = False
    if args.cuda_graphs:
        options["cuda_graphs"] = True
    if args.parts is not None:
        options["parts"] = args.parts
    return options


def main(argv: Sequence[str]) -> int:
    """Serve until a signal comes. Returns 0, or 2 for what can't be served."""
    args = build_parser().parse_args(argv)
    try:
        from mini_engine.serve.app import build_app
        from mini_engine.serve.listen import listen
    except ImportError as error:
        print(f"error: {error}; the server needs more: pip install 'mini-engine[serve]'",
              file=sys.stderr)  # fmt: skip
        return 2
    from mini_engine.learner_parts import use_folder
    from mini_engine.parts import EngineParts
    from mini_engine.serve.async_engine import AsyncEngine
    from mini_engine.serve.guard import ServerOptions
    from mini_engine.serve.links import ProcessLink, ThreadLink
    from mini_engine.text.checkpoint import find_model, load_tokenizer
    from mini_engine.text.default_model import ModelNotAvailable

    try:
        tokenizer = load_tokenizer(find_model(args.model))
        parts = EngineParts() if args.parts is None else use_folder(Path(args.parts))[0]
    except (ValueError, FileNotFoundError, ModelNotAvailable) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    make_link = ThreadLink if args.in_process else ProcessLink
    engine = AsyncEngine(make_link(engine_options(args)), tokenizer, args.max_waiting, parts)
    served = args.served_model_name or Path(args.model).name
    options = ServerOptions(
        served, args.api_key, args.timeout, cors_origins=tuple(args.cors_origin)
    )
    listen(build_app(engine, options), engine, args.host, args.port, args.grace)
    return 0 if engine.started else 2
