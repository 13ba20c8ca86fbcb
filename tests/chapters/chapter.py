"""Owns reading a committed chapter: its prose and the text of its outputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


class Chapter:
    """A chapter as committed."""

    def __init__(self, name: str) -> None:
        text = (ROOT / "chapters" / name).read_text(encoding="utf-8")
        self.cells: list[dict[str, Any]] = json.loads(text)["cells"]

    @property
    def prose(self) -> str:
        """All markdown, white space made single."""
        parts = ["".join(c["source"]) for c in self.cells if c["cell_type"] == "markdown"]
        return " ".join(" ".join(parts).split())

    def section(self, heading: str) -> str:
        """The prose from a heading to the next of any level."""
        text = "\n".join("".join(c["source"]) for c in self.cells if c["cell_type"] == "markdown")
        match = re.search(rf"^#+ {re.escape(heading)}$(.*?)(?=^#|\Z)", text, re.M | re.S)
        assert match, f"no heading {heading!r}"
        return " ".join(match.group(1).split())

    def output_of(self, code: str) -> str:
        """The printed text, and the cells of HTML tables, of the cell whose source has `code`."""
        found = [c for c in self.cells if c["cell_type"] == "code" and code in "".join(c["source"])]
        assert len(found) == 1, f"{len(found)} cells contain {code!r}"
        parts = []
        for output in found[0]["outputs"]:
            parts.append("".join(output.get("text", "")))
            html = "".join(output.get("data", {}).get("text/html", ""))
            parts.append(re.sub(r"<[^>]+>", " ", html.replace("</tr>", "\n")))
        return "\n".join(" ".join(line.split()) for line in "\n".join(parts).splitlines())
