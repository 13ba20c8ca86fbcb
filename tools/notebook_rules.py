"""Owns the rules for committed chapters; each is a function from a notebook to complaints.

A notebook is the dictionary of its JSON. `RULES` holds all; `tools/notebooks.py` applies them.
"""

from __future__ import annotations

import ast
import json
import re
import statistics
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Notebook = dict[str, Any]
Cell = dict[str, Any]
Limits = tuple[int, int]
Rule = Callable[[Notebook, Path], Iterator[str]]

CELLS = (25, 45)
WORDS = (1200, 2500)
WALKTHROUGH = re.compile(r"^(08|09)_")  # guided readings of vLLM and SGLang
WALKTHROUGH_CELLS = (25, 70)
WALKTHROUGH_WORDS = (1200, 5000)
RECAP = re.compile(
    r"^\d\db_recap"
)  # a page between two chapters, which repeats and teaches nothing new
RECAP_CELLS = (12, 30)
RECAP_WORDS = (300, 1200)
CODE_LINES = 12
MEDIAN_CODE_LINES = 8
MAX_BYTES = 300 * 1024
MAX_IGNORED_OUTPUTS = 8
IGNORE_TAG = "nbval-ignore-output"
ERROR_TAG = "raises-exception"
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
RAW_WIDGET = re.compile(r"[A-Z]\w+\((?=.*\b(?:children|continuous_update|description|layout)=)")
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
NOTEBOOK_KEYS = {"kernelspec", "language_info", "mini_engine"}
CELL_KEYS = {"tags"}
FOLDERS = "assets|chapters|judge|mini_engine|practice|tests|tools"

FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#{1,6}) +(.+?) *$", re.MULTILINE)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)[^)]*\)|<a[^>]+href=\"([^\"]+)\"")
MARKDOWN_IMAGE = re.compile(r"!\[([^\]]*)\]\(([^)\s]+)[^)]*\)")
IMAGE_TAG = re.compile(r"<img\b[^>]*>", re.IGNORECASE)
SVG_TAG = re.compile(r"<svg\b[^>]*>", re.IGNORECASE)
FILE_NAME = re.compile(rf"`((?:{FOLDERS})/[\w./-]+)(?::\d+)?`")
LOCAL_PATH = re.compile(r"(?<![\w.])(?:/(?:home|root|Users|tmp|mnt|opt)/|[A-Za-z]:\\+Users)")
INSTALL = re.compile(r"^\s*[!%]\s*(?:pip|conda|uv|apt)\b", re.MULTILINE)


def text_of(source: str | list[str]) -> str:
    """A cell's source or an output's text, which JSON keeps as a string or as a list of lines."""
    return source if isinstance(source, str) else "".join(source)


def cells_of(notebook: Notebook, kind: str) -> Iterator[tuple[int, str, Cell]]:
    """(index, source, cell) of the cells of a kind; fenced examples are cut out of markdown."""
    for index, cell in enumerate(notebook["cells"]):
        if cell["cell_type"] == kind:
            source = text_of(cell["source"])
            yield index, FENCE.sub("", source) if kind == "markdown" else source, cell


def outputs_of(notebook: Notebook) -> Iterator[tuple[int, Cell, dict[str, Any]]]:
    """(cell index, cell, output) of all outputs."""
    for index, _, cell in cells_of(notebook, "code"):
        for output in cell["outputs"]:
            yield index, cell, output


def tags_of(cell: Cell) -> list[str]:
    """The tags of a cell."""
    return list(cell["metadata"].get("tags", []))


def count_words(notebook: Notebook) -> int:
    """Words in the markdown cells; tags, link targets and fenced code do not count."""
    total = 0
    for _, source, _ in cells_of(notebook, "markdown"):
        text = re.sub(r"<[^>]+>", " ", re.sub(r"\]\([^)]*\)", "]", source))
        total += sum(1 for word in text.split() if re.search(r"\w", word))
    return total


def _limits(path: Path, usual: Limits, walkthrough: Limits, recap: Limits) -> Limits:
    """Which of three limits is meant for a notebook of that name."""
    if RECAP.match(path.name):
        return recap
    return walkthrough if WALKTHROUGH.match(path.name) else usual


def number_of_cells(notebook: Notebook, path: Path) -> Iterator[str]:
    """25 to 45 cells."""
    low, high = _limits(path, CELLS, WALKTHROUGH_CELLS, RECAP_CELLS)
    if not low <= len(notebook["cells"]) <= high:
        yield f"{len(notebook['cells'])} cells; a chapter has {low} to {high}"


def number_of_words(notebook: Notebook, path: Path) -> Iterator[str]:
    """1,200 to 2,500 words."""
    low, high = _limits(path, WORDS, WALKTHROUGH_WORDS, RECAP_WORDS)
    words = count_words(notebook)
    if not low <= words <= high:
        yield f"{words} words; a chapter has {low} to {high}"


def length_of_code(notebook: Notebook, path: Path) -> Iterator[str]:
    """Code cells of at most 12 lines, the median under 8; the formatter's blank lines are free."""
    lengths = []
    for index, source, _ in cells_of(notebook, "code"):
        lengths.append(sum(1 for line in source.splitlines() if line.strip()))
        if lengths[-1] > CODE_LINES:
            yield f"cell {index}: {lengths[-1]} lines of code; at most {CODE_LINES}"
    if lengths and statistics.median(lengths) >= MEDIAN_CODE_LINES:
        median = statistics.median(lengths)
        yield f"the median code cell has {median} lines; it must be under {MEDIAN_CODE_LINES}"


def headings(notebook: Notebook, path: Path) -> Iterator[str]:
    """One H1, at the very top; no level is skipped."""
    first = notebook["cells"][0] if notebook["cells"] else None
    if (
        first is None
        or first["cell_type"] != "markdown"
        or not text_of(first["source"]).startswith("# ")
    ):
        yield "the first cell does not begin with the H1"
    previous = 0
    for index, source, _ in cells_of(notebook, "markdown"):
        for marks, title in HEADING.findall(source):
            level = len(marks)
            if level == 1 and previous:
                yield f"cell {index}: a second H1, {title!r}"
            if level > previous + 1:
                yield f"cell {index}: heading {title!r} goes from level {previous} to {level}"
            previous = level


def cell_ids(notebook: Notebook, path: Path) -> Iterator[str]:
    """Ids are cell-00, cell-01, ... in order."""
    for index, cell in enumerate(notebook["cells"]):
        if cell.get("id") != f"cell-{index:02d}":
            yield f"cell {index} has id {cell.get('id')!r}, expected 'cell-{index:02d}'; use --fix"
            return


def metadata(notebook: Notebook, path: Path) -> Iterator[str]:
    """Kernel python3; no widget state, no timing, nothing of the author's machine."""
    found = notebook["metadata"]
    if found.get("kernelspec") != KERNEL:
        yield f"kernelspec is {found.get('kernelspec')}, expected {KERNEL}; use --fix"
    if found.get("language_info") != {"name": "python"}:
        yield "language_info says more than the name python; use --fix"
    for key in sorted(set(found) - NOTEBOOK_KEYS):
        yield f"notebook metadata {key!r} must go; use --fix"
    for index, cell in enumerate(notebook["cells"]):
        for key in sorted(set(cell["metadata"]) - CELL_KEYS):
            yield f"cell {index}: metadata {key!r} must go; use --fix"


def clean_outputs(notebook: Notebook, path: Path) -> Iterator[str]:
    """No stderr, no unannounced error, no widget view (another session can't find its model).

    Nor a widget's own text: a reader without a kernel needs a sentence instead.
    """
    for index, cell, output in outputs_of(notebook):
        if output.get("name") == "stderr":
            yield f"cell {index} wrote to stderr: {text_of(output['text'])[:60]!r}"
        if output["output_type"] == "error" and ERROR_TAG not in tags_of(cell):
            yield f"cell {index} ended with {output['ename']}; tag it {ERROR_TAG} if that is meant"
        if WIDGET_VIEW in output.get("data", {}):
            yield f"cell {index} keeps a widget view; use --fix"
        shown = text_of(output.get("data", {}).get("text/plain", ""))
        if RAW_WIDGET.match(shown):
            yield f"cell {index} shows the raw widget {shown[:40]!r}; describe it in words, --run"


def size(notebook: Notebook, path: Path) -> Iterator[str]:
    """At most 300 KB."""
    if path.exists() and path.stat().st_size > MAX_BYTES:
        yield f"{path.stat().st_size // 1024} KB; at most {MAX_BYTES // 1024} KB"


def alt_texts(notebook: Notebook, path: Path) -> Iterator[str]:
    """Every picture, in markdown and in outputs, says in words what it shows."""
    html = [(index, source) for index, source, _ in cells_of(notebook, "markdown")]
    for index, source in html:
        for alt, target in MARKDOWN_IMAGE.findall(source):
            if not alt.strip():
                yield f"cell {index}: the image {target} has no alt text"
    for index, _, output in outputs_of(notebook):
        data = output.get("data", {})
        html.append((index, text_of(data.get("text/html", ""))))
        for kind in (key for key in data if key.startswith("image/")):
            if not output.get("metadata", {}).get(kind, {}).get("alt"):
                yield f"cell {index}: its {kind} output has no 'alt' in the output's metadata"
    for index, text in html:
        for tag in IMAGE_TAG.findall(text):
            if not re.search(r"\balt=\"[^\"]+\"", tag):
                yield f"cell {index}: an <img> has no alt text"
        for tag in SVG_TAG.findall(text):
            if not re.search(r"\baria-label=\"[^\"]+\"", tag):
                yield f"cell {index}: an <svg> has no aria-label"


def _anchors(notebook: Notebook) -> set[str]:
    """The anchors JupyterLab gives to headings, and ids written by hand."""
    found = set()
    for _, source, _ in cells_of(notebook, "markdown"):
        found |= {title.replace(" ", "-") for _, title in HEADING.findall(source)}
        found |= set(re.findall(r"\bid=\"([^\"]+)\"", source))
    return found


def links(notebook: Notebook, path: Path) -> Iterator[str]:
    """Links inside the project lead somewhere, and stay where learners' copies can follow them."""
    for index, source, _ in cells_of(notebook, "markdown"):
        targets = [a or b for a, b in LINK.findall(source)]
        for target in targets + [image for _, image in MARKDOWN_IMAGE.findall(source)]:
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            found = (path.parent / name).resolve() if name else path.resolve()
            if not found.exists():
                yield f"cell {index}: link to {target}, which does not exist"
            elif found.parent.name not in ("chapters", "practice"):
                yield f"cell {index}: link to {target} breaks in a copy; name the file instead"
            elif anchor and not name and anchor not in _anchors(notebook):
                yield f"cell {index}: no heading for the link #{anchor}"


def file_names(notebook: Notebook, path: Path) -> Iterator[str]:
    """Files of the project that the text names exist."""
    root = path.resolve().parent.parent
    for index, source, _ in cells_of(notebook, "markdown"):
        for name in FILE_NAME.findall(source):
            if not (root / name).exists():
                yield f"cell {index}: names {name}, which does not exist"


def _shows_something(source: str) -> bool:
    """True if the cell must have an output: it prints, or ends with a value to look at."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return True  # IPython magic; it was run, so it says something
    calls = [node.value for node in body if isinstance(node, ast.Expr)]
    if any(isinstance(c, ast.Call) and getattr(c.func, "id", "") == "print" for c in calls):
        return True
    last = body[-1] if body else None
    if not isinstance(last, ast.Expr) or source.rstrip().endswith(";"):
        return False
    # A method may return None (`slider.observe(...)`), so only other values are sure to be shown.
    value = last.value
    return isinstance(value, ast.Name | ast.Attribute) or (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    )


def executed(notebook: Notebook, path: Path) -> Iterator[str]:
    """Code cells were run in order from the top and their outputs kept."""
    for expected, (index, source, cell) in enumerate(cells_of(notebook, "code"), start=1):
        if cell["execution_count"] != expected:
            count = cell["execution_count"]
            yield f"cell {index} has execution count {count}, expected {expected}; use --run"
            return
        if not cell["outputs"] and _shows_something(source):
            yield f"cell {index} has no output; use --run"


def ignored_outputs(notebook: Notebook, path: Path) -> Iterator[str]:
    """As many cells escape the comparison as the notebook's metadata declares, and few."""
    declared = notebook["metadata"].get("mini_engine", {}).get("ignored_outputs", 0)
    found = sum(IGNORE_TAG in tags_of(cell) for _, _, cell in cells_of(notebook, "code"))
    if found != declared:
        yield (
            f"{found} cells are tagged {IGNORE_TAG}, but metadata.mini_engine.ignored_outputs "
            f"says {declared}"
        )
    if found > MAX_IGNORED_OUTPUTS:
        yield f"{found} cells are tagged {IGNORE_TAG}; at most {MAX_IGNORED_OUTPUTS}"


def portable(notebook: Notebook, path: Path) -> Iterator[str]:
    """No path of the author's machine; nothing is installed from a notebook."""
    for index, cell in enumerate(notebook["cells"]):
        text = text_of(cell["source"]) + json.dumps(cell.get("outputs", []), ensure_ascii=False)
        for local in sorted(set(LOCAL_PATH.findall(text))):
            yield f"cell {index}: {local} is a path of one machine"
        if cell["cell_type"] == "code" and INSTALL.search(text_of(cell["source"])):
            yield f"cell {index} installs something; that is the set-up's task"


RULES: tuple[Rule, ...] = (
    number_of_cells,
    number_of_words,
    length_of_code,
    headings,
    cell_ids,
    metadata,
    clean_outputs,
    size,
    alt_texts,
    links,
    file_names,
    executed,
    ignored_outputs,
    portable,
)
