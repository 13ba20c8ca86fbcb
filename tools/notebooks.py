"""Checks, normalizes and runs the committed chapters.

    python tools/notebooks.py --check [PATTERN]   list everything that breaks a rule
    python tools/notebooks.py --fix [PATTERN]     normalize ids, kernel, metadata and outputs
    python tools/notebooks.py --run [PATTERN]     run from the top, keep the outputs, normalize

PATTERN selects chapters whose file name contains it, as in `--run 00`. The .ipynb files are the
only source of the chapters: edit them in JupyterLab, then --run. The rules: notebook_rules.py.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import nbformat
from notebook_rules import CELL_KEYS, KERNEL, NOTEBOOK_KEYS, RULES, WIDGET_VIEW, Notebook

ROOT = Path(__file__).resolve().parent.parent
SLOW_CELL = 5.0
SLOW_CHAPTER = 60.0


def read(path: Path) -> Notebook:
    """The notebook's JSON. Raises ValueError if the file is no notebook of format 4."""
    try:
        notebook = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ValueError(f"{path} is no notebook: {error}") from error
    if not isinstance(notebook, dict) or notebook.get("nbformat") != 4:
        raise ValueError(f"{path} is no notebook of format 4")
    return notebook


def write(notebook: Notebook, path: Path) -> None:
    """Write the JSON as Jupyter does, so that opening and saving changes no line."""
    text = json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True)
    path.write_text(text + "\n", encoding="utf-8")


def check(notebook: Notebook, path: Path) -> list[str]:
    """Everything that is wrong with a chapter, one line each, beginning with the rule's name."""
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [f"format: {error.message}"]
    return [f"{rule.__name__}: {complaint}" for rule in RULES for complaint in rule(notebook, path)]


def fix(notebook: Notebook) -> Notebook:
    """Normalize in place what needs no judgement; returns the notebook."""
    notebook["nbformat_minor"] = 5
    meta = notebook["metadata"]
    notebook["metadata"] = {key: meta[key] for key in sorted(NOTEBOOK_KEYS & set(meta))}
    notebook["metadata"] |= {"kernelspec": dict(KERNEL), "language_info": {"name": "python"}}
    for index, cell in enumerate(notebook["cells"]):
        cell["id"] = f"cell-{index:02d}"
        cell["metadata"] = {k: v for k, v in cell["metadata"].items() if k in CELL_KEYS}
        cell.pop("attachments", None)
        if isinstance(cell["source"], str):
            cell["source"] = cell["source"].splitlines(keepends=True)
        if cell["cell_type"] == "code":
            cell["outputs"] = _fix_outputs(cell["outputs"])
    return notebook


def _fix_outputs(outputs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Join the pieces in which a stream arrived; drop stderr and views of widgets."""
    fixed: list[dict[str, Any]] = []
    for output in outputs:
        if output["output_type"] == "stream":
            if output["name"] == "stderr":
                continue
            if fixed and fixed[-1]["output_type"] == "stream":
                fixed[-1]["text"] = _lines("".join([*fixed[-1]["text"], *output["text"]]))
                continue
            output["text"] = _lines(output["text"])
        data = output.get("data", {})
        data.pop(WIDGET_VIEW, None)
        for kind, value in data.items():
            if isinstance(value, str):
                data[kind] = _lines(value)
        fixed.append(output)
    return fixed


def _lines(text: str | list[str]) -> list[str]:
    return ("".join(text) if isinstance(text, list) else text).splitlines(keepends=True)


def run(path: Path) -> tuple[Notebook, list[float]]:
    """Execute a chapter in its own folder; returns it and the seconds of each code cell.

    The project's root is put on the kernel's path, so nothing needs to be installed. Raises
    nbclient's CellExecutionError when a cell fails that is not tagged for it.
    """
    from nbclient import NotebookClient  # loads the whole Jupyter client; --check does without

    notebook = nbformat.reads(json.dumps(read(path)), as_version=4)
    seconds: list[float] = []
    started = [0.0]
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name=KERNEL["name"],
        resources={"metadata": {"path": str(path.parent)}},
        record_timing=False,
        on_cell_execute=lambda cell, cell_index: started.__setitem__(0, time.perf_counter()),
        on_cell_executed=lambda cell, cell_index, execute_reply: seconds.append(
            time.perf_counter() - started[0]
        ),
    )
    python_path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    # Threads that wait without spinning: on a busy machine torch is otherwise many times slower.
    env = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONPATH": python_path}
    client.execute(env=env)
    return json.loads(json.dumps(notebook)), seconds


def _select(pattern: str) -> list[Path]:
    chapters = sorted((ROOT / "chapters").glob("*.ipynb"))
    found = [path for path in chapters if pattern in path.name]
    if not found:
        names = ", ".join(path.name for path in chapters) or "none"
        raise ValueError(f"no chapter's name contains {pattern!r}; chapters: {names}")
    return found


def _run_and_write(path: Path) -> None:
    notebook, seconds = run(path)
    write(fix(notebook), path)
    print(f"{path.name}: ran in {sum(seconds):.1f} s, slowest cell {max(seconds):.1f} s")
    for number, spent in enumerate(seconds, start=1):
        if spent > SLOW_CELL:
            print(f"  code cell [{number}] took {spent:.1f} s; at most {SLOW_CELL:.0f}")
    if sum(seconds) > SLOW_CHAPTER:
        print(f"  the chapter took {sum(seconds):.1f} s; at most {SLOW_CHAPTER:.0f}")


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status, 1 if a chapter breaks a rule."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    action = parser.add_mutually_exclusive_group(required=True)
    for name, text in (("check", "list"), ("fix", "normalize"), ("run", "execute")):
        action.add_argument(f"--{name}", nargs="?", const="", metavar="PATTERN", help=text)
    given = parser.parse_args(arguments)
    pattern = next(p for p in (given.check, given.fix, given.run) if p is not None)
    complaints = 0
    for path in _select(pattern):
        if given.run is not None:
            _run_and_write(path)
        elif given.fix is not None:
            write(fix(read(path)), path)
        for complaint in check(read(path), path):
            complaints += 1
            print(f"{path.name}: {complaint}")
    print(f"{complaints} complaints" if complaints else "all chapters obey the rules")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
