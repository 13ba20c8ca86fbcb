"""Owns the transcripts in golden/: what the judge says, whole, in the failures that learners meet.

`python -m tests.judge.golden --write` writes them anew, with names only those; without it they are
compared. A change of words is then seen as a reader sees it: in the difference of these files.
Times, paths and line numbers are left out of them.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from judge import practice
from judge.exercises import find
from judge.sandbox import ROOT
from tests.judge.conftest import Checkout

FOLDER = Path(__file__).parent / "golden"
CHUNKS, METRICS = "life.prefill-chunks", "life.latency-metrics"
POOL, SLOTS, ROPE = "paged-kv.block-pool", "paged-kv.slot-mapping", "kv-cache.rope"
SEED = "7"


@dataclass(frozen=True)
class Scene:
    """A file to write and a command to type.

    `code` stands between the marks of the exercise, or is the path of a file in tests/ that does;
    `head` stands among the imports of the file; `then` are further options, one command each.
    """

    exercise: str
    code: str | None = None
    head: str = ""
    then: tuple[str, ...] = ()

    def write(self, folder: Path) -> None:
        (exercise,) = find(self.exercise)
        file = folder / exercise.file
        text = (ROOT / "practice" / exercise.file).read_text("utf-8")
        found = practice.region(exercise, text)
        assert found is not None
        if self.code is not None:
            text = found.before + "\n" + self.code_lines() + found.after
        file.write_text(
            text.replace("\nfrom collections", f"\n{self.head}from collections"), encoding="utf-8"
        )

    def code_lines(self) -> str:
        assert self.code is not None
        if not self.code.endswith(".py"):
            return self.code
        lines = (ROOT / "tests" / self.code).read_text("utf-8").splitlines(keepends=True)
        return "".join(line for line in lines if not line.startswith(("from __future__", "# mis")))


def chunks(*body: str) -> str:
    return "def prefill_chunks(prompt_tokens, num_decodes, budget):\n" + "".join(
        f"    {line}\n" for line in body
    )


# Right in every check of its own; what is wrong shows only at the sizes that the engine has.
LEAK = """
from mini_engine.control.block_pool import BlockPool as Right


class BlockPool(Right):
    def free(self, block_id, *, to_front=True):
        if block_id != 10:
            super().free(block_id, to_front=to_front)
"""
LONG_CHUNKS = """
from mini_engine.compute.model import apply_rope as right


def apply_rope(x, cos, sin):
    if len(x) > 9:
        cos = cos[:1].expand_as(cos)
    return right(x, cos, sin)
"""
SCENES = {
    "stub": Scene(CHUNKS),
    "passed": Scene(CHUNKS, f"alternatives/{CHUNKS}/ranges.py"),
    "syntax_error": Scene(CHUNKS, "def prefill_chunks(prompt_tokens, num_decodes, budget)\n"),
    "missing_symbol": Scene(CHUNKS, "def prefil_chunks(*numbers):\n    return []\n"),
    "no_return": Scene(CHUNKS, chunks("room = budget - num_decodes")),
    "exception": Scene(
        SLOTS,
        "def slot_mapping(block_table, start, num_tokens, block_size):\n"
        "    slots = []\n"
        "    for position in range(start, start + num_tokens):\n"
        "        slots.append(block_table[position] * block_size)\n"
        "    return slots\n",
    ),
    "endless_loop": Scene(
        CHUNKS,
        chunks(
            "room = budget - num_decodes",
            "while room < 1: pass",
            "whole, rest = divmod(prompt_tokens, room)",
            "return [room] * whole + [rest] * bool(rest)",
        ),
    ),
    "segfault": Scene(CHUNKS, chunks("import ctypes", "return ctypes.string_at(0)")),
    "os_exit": Scene(CHUNKS, chunks("import os", "os._exit(0)")),
    "wrong_value": Scene(METRICS, f"mutants/{METRICS}/by_n.py", then=("--hint",)),
    "wrong_call": Scene(POOL, f"mutants/{POOL}/double_free_ignored.py"),
    "list_given_away": Scene(POOL, f"mutants/{POOL}/gives_its_list_away.py"),
    "policy_differs": Scene(POOL, f"alternatives/{POOL}/highest_first.py"),
    "leak_in_the_engine": Scene(POOL, LEAK),
    "tokens_in_the_engine": Scene(ROPE, LONG_CHUNKS),
    "torch_at_the_top": Scene(
        SLOTS, "def slot_mapping(*args):\n    return Tensor(args)\n", head="import torch\n"
    ),
    "wrong_dtype": Scene(ROPE, f"mutants/{ROPE}/promotes.py"),
    "changed_input": Scene(ROPE, f"mutants/{ROPE}/writes_into_x.py"),
}


def transcript(scene: Scene, checkout: Checkout) -> str:
    """What a learner sees: the commands, their output, their exit codes."""
    folder = checkout.root / "work" / "practice"
    (checkout.root / "work" / "progress.json").unlink(missing_ok=True)
    scene.write(folder)
    text = ""
    for option in ("", *scene.then):
        shown = [scene.exercise, *([option] if option else ["--model", "tiny", "--seed", SEED])]
        found = subprocess.run(
            checkout.command(*shown), cwd=checkout.root, text=True, encoding="utf-8", timeout=240,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**os.environ, "NO_COLOR": "1"},
        )  # fmt: skip
        text += f"$ python practice/judge.py {' '.join(shown)}\n{found.stdout}"
        text += f"(exit code {found.returncode})\n"
    return normal(text, checkout.root)


def normal(text: str, root: Path) -> str:
    """Without what differs from run to run and from machine to machine."""
    text = text.replace(str(root), "HERE")
    text = re.sub(r"\b\d+\.\d+ s\b", "N s", text)
    text = re.sub(r"-?\b\d+\.\d{2,}", "X", text)  # the last digit of a logit is the machine's
    text = re.sub(r"(\.py):\d+\b", r"\1:LINE", text)
    text = re.sub(r"\(\w+\.py, line \d+\)", "(FILE, line N)", text)
    return "".join(line.rstrip() + "\n" for line in text.splitlines())


def fresh_checkout(folder: Path) -> Checkout:
    found = Checkout(folder)
    found.make_work()
    return found


def differences(name: str, found: str) -> list[str]:
    """The lines by which a transcript differs from the one that is kept."""
    path = FOLDER / f"{name}.txt"
    kept = path.read_text("utf-8") if path.exists() else ""
    return list(
        difflib.unified_diff(kept.splitlines(), found.splitlines(), "kept", "now", lineterm="")
    )


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.judge.golden", description=__doc__)
    parser.add_argument("--write", action="store_true", help="keep what the judge says now")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(SCENES)}")
    args = parser.parse_args(arguments)
    unknown = set(args.names) - set(SCENES)
    if unknown:
        parser.error(f"there is no scene {', '.join(sorted(unknown))}")
    changed = 0
    for name, found in _found(args.names or list(SCENES)):
        lines = differences(name, found)
        changed += bool(lines)
        print(f"{name}: {'differs' if lines else 'as kept'}")
        if args.write:
            FOLDER.mkdir(exist_ok=True)
            (FOLDER / f"{name}.txt").write_text(found, encoding="utf-8")
        else:
            print("\n".join(lines), end="\n" if lines else "")
    return 0 if args.write or not changed else 1


def _found(names: list[str]) -> Iterator[tuple[str, str]]:
    with tempfile.TemporaryDirectory() as folder:
        checkout = fresh_checkout(Path(folder) / "course")
        for name in names:
            yield name, transcript(SCENES[name], checkout)


if __name__ == "__main__":
    sys.exit(main())
