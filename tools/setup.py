"""Makes everything that `make` needs: the environment, the model, the learner's space.

    python3 tools/setup.py env [--extras lab|test] [--torch-index ADDRESS]
    python3 tools/setup.py model
    python3 tools/setup.py space
    python3 tools/setup.py lab [--host HOST] [--port PORT]

Runs on the plain Python that make finds, so it uses the standard library only. Every step may be
interrupted and repeated: what is done already is recognised and takes no time.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)


def check_python() -> None:
    """Leave with a sentence instead of a traceback if this Python can't run the project."""
    if OLDEST <= sys.version_info[:2] <= NEWEST:
        return
    sys.exit(
        "mini-engine needs Python 3.11, 3.12 or 3.13; {} is Python {}.{}.\n"
        "Name another one: make lab PYTHON=python3.12".format(sys.executable, *sys.version_info[:2])
    )


def main() -> None:
    """Run one step as the command line says."""
    check_python()
    from environment import Failed, make_environment, venv_python
    from learner_space import copy_learner_space
    from start_lab import start_lab

    parser = argparse.ArgumentParser(description="Set mini-engine up, step by step.")
    steps = parser.add_subparsers(dest="step", required=True)
    env = steps.add_parser("env", help="make .venv and install what pyproject.toml lists")
    env.add_argument("--extras", choices=("lab", "test"), default="lab")
    env.add_argument("--torch-index", default="", help="package index for torch alone")
    steps.add_parser("model", help="fetch and convert the default model, once")
    steps.add_parser("space", help="copy chapters and exercises to work/")
    lab = steps.add_parser("lab", help="open JupyterLab on the first chapter")
    lab.add_argument("--host", default="", help="address to listen on; no browser is opened")
    lab.add_argument("--port", default="", help="port to listen on; no browser is opened")
    chosen = parser.parse_args()

    began = time.monotonic()
    try:
        if chosen.step == "env":
            make_environment(ROOT, chosen.extras, chosen.torch_index)
        elif chosen.step == "model":
            own = venv_python(ROOT)  # absent where conda or pip alone set things up
            fetch_model(own if own.exists() else Path(sys.executable))
        elif chosen.step == "space":
            for line in copy_learner_space(ROOT):
                print(line)
        else:
            start_lab(ROOT, chosen.host, chosen.port)
    except Failed as error:
        sys.exit(f"set-up: {error}")
    except KeyboardInterrupt:
        sys.exit("\nset-up: interrupted; the same command goes on from here")
    print(f"set-up: {chosen.step} ready in {time.monotonic() - began:.1f} s", flush=True)


def fetch_model(python: Path) -> None:
    """Have the package fetch and convert its default model; a second later if it is there."""
    code = (
        "from mini_engine.config import DEFAULT_MODEL as name\n"
        "from mini_engine.text.fetch import ModelNotAvailable, find_model\n"
        "try:\n    print(f'model {name}: {find_model(name)}')\n"
        "except ModelNotAvailable as error:\n    raise SystemExit(f'set-up: {error}')\n"
    )
    result = subprocess.run([str(python), "-c", code], cwd=ROOT, check=False)
    if result.returncode:
        sys.exit(result.returncode)


if __name__ == "__main__":
    main()
