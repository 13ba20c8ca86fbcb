"""Grades your exercises: python practice/judge.py, with --help for all it can do.

Works from a checkout without installation, here and as work/practice/judge.py.
"""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent

# Python puts this folder first on the path, where this very file would hide the package `judge`.
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != HERE]
for folder in HERE.parents:
    if (folder / "judge" / "__init__.py").is_file() and (folder / "mini_engine").is_dir():
        sys.path.insert(0, str(folder))
        break

if __name__ == "__main__":
    if sys.version_info < (3, 11):  # noqa: UP036  (this file may be run by any Python)
        raise SystemExit("the course needs Python 3.11 or newer; see README")
    try:
        from judge.cli import main
    except ModuleNotFoundError as error:
        raise SystemExit(
            f"{error}; run this with the course's own Python (.venv/bin/python, made by make lab)"
        ) from error
    raise SystemExit(main(sys.argv[1:]))
