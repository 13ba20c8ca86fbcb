"""Writes constraints.txt from what is installed in the environment that runs it.

Meant for a fresh environment: `make clean`, `make setup-test` with the pins removed or raised, then
`make constraints`, then the same check on the other Python versions.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TARGET = Path(__file__).resolve().parent.parent / "constraints.txt"
HEADER = """\
# Exact versions of everything that `make` installs: a fresh environment's `pip freeze`, for Python
# 3.11 to 3.13. pyproject.toml holds the ranges; `make constraints` writes this file again.
"""


def main() -> None:
    """Freeze, without the project itself, pip, and the suffix that marks a build of torch."""
    command = [sys.executable, "-m", "pip", "freeze", "--all", "--exclude-editable"]
    result = subprocess.run(
        [*command, "--exclude", "pip"], check=True, stdout=subprocess.PIPE, text=True
    )
    # nvidia-* and triton come with one build of torch and are not there for the others.
    lines = [
        re.sub(r"^(torch==[^+]+)\+.*", r"\1", line)
        for line in result.stdout.splitlines()
        if re.match(r"[A-Za-z0-9._-]+==", line) and not re.match(r"(nvidia|cuda|triton)[-=]", line)
    ]
    TARGET.write_text(HEADER + "\n".join(sorted(lines, key=str.lower)) + "\n", encoding="utf-8")
    print(f"{TARGET.name}: {len(lines)} pins")


if __name__ == "__main__":
    main()
