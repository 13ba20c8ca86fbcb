"""Owns the proof that each notebook rule catches its breach, and that --fix and --run normalize."""

from __future__ import annotations

import copy
import importlib
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
notebooks = importlib.import_module("notebooks")
rules = importlib.import_module("notebook_rules")

Notebook = dict[str, Any]


def markdown(source: str) -> Notebook:
    return {"cell_type": "markdown", "metadata": {}, "source": source}


def code(source: str, count: int | None = None, **metadata: Any) -> Notebook:
    outputs = [{"output_type": "stream", "name": "stdout", "text": "1\n"}]
    return {
        "cell_type": "code",
        "metadata": metadata,
        "source": source,
        "execution_count": count,
        "outputs": outputs if count else [],
    }


def good() -> Notebook:
    """The smallest notebook that breaks no rule."""
    cells = [markdown("# Title\n\n" + "word " * 100)]
    for number in range(1, 13):
        cells.append(markdown(f"## Part {number}\n\n" + "word " * 100))
        cells.append(code("print(1)", number))
    for index, cell in enumerate(cells):
        cell["id"] = f"cell-{index:02d}"
    meta = {"kernelspec": dict(rules.KERNEL), "language_info": {"name": "python"}}
    return {"nbformat": 4, "nbformat_minor": 5, "metadata": meta, "cells": cells}


def complaints(notebook: Notebook, folder: Path, name: str = "00_test.ipynb") -> list[str]:
    path = folder / "chapters" / name
    path.parent.mkdir(exist_ok=True)
    notebooks.write(notebook, path)
    return notebooks.check(notebooks.read(path), path)


def text(notebook: Notebook, index: int, addition: str) -> None:
    notebook["cells"][index]["source"] += addition


def output(notebook: Notebook, value: dict[str, Any]) -> None:
    notebook["cells"][2]["outputs"] = [value]


def html(content: str) -> dict[str, Any]:
    return {"output_type": "display_data", "metadata": {}, "data": {"text/html": content}}


PNG = {"output_type": "display_data", "metadata": {}, "data": {"image/png": "AAAA"}}
STDERR = {"output_type": "stream", "name": "stderr", "text": "careful\n"}
ERROR = {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": []}
VIEW = {
    "output_type": "display_data",
    "metadata": {},
    "data": {rules.WIDGET_VIEW: {"model_id": "1"}, "text/plain": "slider"},
}

RAW = {
    "output_type": "execute_result",
    "execution_count": 1,
    "metadata": {},
    "data": {"text/plain": "RadioButtons(description='Yours:', layout=Layout(width='9px'), \u2026"},
}

BREAK: list[tuple[str, str, Callable[[Notebook], object]]] = [
    ("number_of_cells", "24 cells", lambda n: n["cells"].pop()),
    ("number_of_words", "words", lambda n: text(n, 1, "word " * 1300)),
    (
        "number_of_words",
        "words",
        lambda n: [cell.update(source="few") for cell in n["cells"][1:4:2]],
    ),
    ("length_of_code", "13 lines", lambda n: text(n, 2, "\nprint(1)" * 12)),
    (
        "length_of_code",
        "median",
        lambda n: [text(n, i, "\nprint(1)" * 7) for i in range(2, 25, 2)],
    ),
    ("headings", "does not begin", lambda n: n["cells"][0].update(source="Hello\n\n# Title")),
    ("headings", "second H1", lambda n: text(n, 3, "\n\n# Again")),
    ("headings", "level 2 to 4", lambda n: text(n, 3, "\n\n#### Deep")),
    ("cell_ids", "expected 'cell-03'", lambda n: n["cells"][3].update(id="a1b2c3")),
    ("metadata", "kernelspec", lambda n: n["metadata"]["kernelspec"].update(name="mine")),
    ("metadata", "language_info", lambda n: n["metadata"]["language_info"].update(version="3")),
    ("metadata", "'widgets'", lambda n: n["metadata"].update(widgets={})),
    ("metadata", "'execution'", lambda n: n["cells"][2]["metadata"].update(execution={})),
    ("clean_outputs", "stderr", lambda n: output(n, copy.deepcopy(STDERR))),
    ("clean_outputs", "ended with ValueError", lambda n: output(n, copy.deepcopy(ERROR))),
    ("clean_outputs", "widget view", lambda n: output(n, copy.deepcopy(VIEW))),
    ("clean_outputs", "raw widget", lambda n: output(n, copy.deepcopy(RAW))),
    ("size", "at most 300 KB", lambda n: output(n, html("x" * 310_000))),
    ("alt_texts", "figure.png has no alt", lambda n: text(n, 1, "![](figure.png)")),
    ("alt_texts", "an <img>", lambda n: text(n, 1, '<img src="data:x" alt="">')),
    ("alt_texts", "an <img>", lambda n: output(n, html('<img src="data:x">'))),
    ("alt_texts", "an <svg>", lambda n: output(n, html("<svg></svg>"))),
    ("alt_texts", "image/png output", lambda n: output(n, copy.deepcopy(PNG))),
    ("links", "does not exist", lambda n: text(n, 1, "[next](01_missing.ipynb)")),
    ("links", "breaks in a copy", lambda n: text(n, 1, "[code](../mini_engine/trace.py)")),
    ("links", "no heading", lambda n: text(n, 1, "[up](#Nowhere)")),
    ("file_names", "gone.py", lambda n: text(n, 1, "see `mini_engine/gone.py`")),
    ("executed", "expected 1", lambda n: n["cells"][2].update(execution_count=7)),
    ("executed", "expected 2", lambda n: n["cells"][4].update(execution_count=None)),
    ("executed", "no output", lambda n: n["cells"][2].update(outputs=[])),
    ("executed", "no output", lambda n: n["cells"][2].update(outputs=[], source="draw(1)")),
    (
        "ignored_outputs",
        "says 0",
        lambda n: n["cells"][2]["metadata"].update(tags=[rules.IGNORE_TAG]),
    ),
    (
        "ignored_outputs",
        "says 2",
        lambda n: n["metadata"].update(mini_engine={"ignored_outputs": 2}),
    ),
    ("portable", "/home/", lambda n: text(n, 2, "\n# /home/someone/model")),
    ("portable", "/tmp/", lambda n: output(n, html("in /tmp/x"))),
    ("portable", "installs", lambda n: text(n, 2, "\n%pip install torch")),
]


def test_the_good_notebook_breaks_no_rule(tmp_path: Path) -> None:
    (tmp_path / "mini_engine").mkdir()
    (tmp_path / "mini_engine" / "trace.py").touch()
    assert complaints(good(), tmp_path) == []


@pytest.mark.parametrize(("rule", "words", "change"), BREAK)
def test_each_rule_catches_its_breach(
    rule: str, words: str, change: Callable[[Notebook], object], tmp_path: Path
) -> None:
    (tmp_path / "mini_engine").mkdir()
    (tmp_path / "mini_engine" / "trace.py").touch()
    notebook = good()
    change(notebook)
    found = [line for line in complaints(notebook, tmp_path) if line.startswith(f"{rule}: ")]
    assert any(words in line for line in found), found


def test_every_rule_has_a_failing_example() -> None:
    assert {rule.__name__ for rule in rules.RULES} == {rule for rule, _, _ in BREAK}


def test_invalid_format_is_a_complaint(tmp_path: Path) -> None:
    notebook = good()
    del notebook["cells"][2]["outputs"]
    assert complaints(notebook, tmp_path)[0].startswith("format: ")


def test_what_is_allowed_stays_allowed(tmp_path: Path) -> None:
    notebook = good()
    text(notebook, 1, "\n```\n# no heading\n[no link](nowhere)\n```\n[up](#Part-3)")
    text(notebook, 3, " ![a map](data:image/png;base64,AAAA) [self](00_test.ipynb)")
    notebook["cells"][2]["outputs"] = [copy.deepcopy(ERROR)]
    notebook["cells"][2]["metadata"] = {"tags": [rules.ERROR_TAG, rules.IGNORE_TAG]}
    notebook["metadata"]["mini_engine"] = {"ignored_outputs": 1}
    notebook["cells"][4].update(source="slider.observe(f)", outputs=[])
    text(notebook, 6, "\n\n\nprint(1)" * 11)
    assert complaints(notebook, tmp_path) == []


def test_walkthroughs_may_be_longer(tmp_path: Path) -> None:
    notebook = good()
    text(notebook, 1, "word " * 1300)
    assert complaints(notebook, tmp_path, "08_reading_vllm.ipynb") == []


def test_a_recap_may_be_shorter(tmp_path: Path) -> None:
    notebook = good()
    notebook["cells"] = notebook["cells"][:15]
    assert complaints(notebook, tmp_path, "05b_recap.ipynb") == []
    assert len(complaints(notebook, tmp_path, "05_recap.ipynb")) > 0
    text(notebook, 1, "word " * 1200)
    assert complaints(notebook, tmp_path, "05b_recap.ipynb") != []


def test_fix_repairs_what_needs_no_judgement(tmp_path: Path) -> None:
    notebook = good()
    notebook["metadata"].update(widgets={}, kernelspec={"name": "mine"})
    notebook["cells"][2]["metadata"] = {"execution": {"start": "now"}, "tags": ["a"]}
    notebook["cells"][5]["id"] = "a1b2"
    pieces = [{"output_type": "stream", "name": "stdout", "text": part} for part in ("a", "b\n")]
    notebook["cells"][2]["outputs"] = [
        pieces[0],
        copy.deepcopy(STDERR),
        pieces[1],
        copy.deepcopy(VIEW),
    ]
    notebooks.fix(notebook)
    assert complaints(notebook, tmp_path) == []
    stream, view = notebook["cells"][2]["outputs"]
    assert stream["text"] == ["ab\n"]
    assert view["data"] == {"text/plain": ["slider"]}
    assert notebook["cells"][2]["metadata"] == {"tags": ["a"]}
    again = json.dumps(notebook)
    assert json.dumps(notebooks.fix(notebook)) == again


def test_run_writes_outputs_and_counts(tmp_path: Path) -> None:
    path = tmp_path / "chapter.ipynb"
    notebook = good()
    notebook["cells"][2].update(source="import sys\nprint(2 + 3)", outputs=[])
    notebook["cells"][4].update(source="'value'", execution_count=None, outputs=[])
    notebooks.write(notebook, path)
    ran, seconds = notebooks.run(path)
    assert len(seconds) == 12
    notebooks.fix(ran)
    assert ran["cells"][2]["outputs"][0]["text"] == ["5\n"]
    assert ran["cells"][4]["outputs"][0]["data"] == {"text/plain": ["'value'"]}
    assert [cell["execution_count"] for cell in ran["cells"][2::2]] == list(range(1, 13))
    assert "execution" not in ran["cells"][2]["metadata"]


def test_an_unknown_pattern_names_the_chapters() -> None:
    with pytest.raises(ValueError, match="no chapter's name contains 'zz'"):
        notebooks.main(["--check", "zz"])


def test_a_broken_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "x.ipynb"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(ValueError, match=r"x\.ipynb is no notebook"):
        notebooks.read(path)
