"""Owns the Python files of vLLM and SGLang: pip fetches a wheel once, only its .py files are kept.

Nothing is installed and nothing of them is run. The files lie in the cache folder that the default
model lies in, one folder per version, which appears by one rename: whole or absent.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import filelock

from mini_engine.text.default_model import cache_dir

# The Python files are the same in every wheel of a version, so all machines take these.
PLATFORMS = ("manylinux2014_x86_64", "manylinux_2_28_x86_64", "manylinux_2_34_x86_64", "any")
MEGABYTES = {"vllm": 340, "sglang": 40}


class NotFetched(RuntimeError):
    """A version's files are neither cached nor to be had; the message says why."""


def source_folder(engine: str, version: str) -> Path:
    """Where the files of a version are kept; the folder need not exist."""
    return cache_dir() / "sources" / f"{engine}-{version}"


def fetch(engine: str, version: str, *, offline: bool = False) -> Path:
    """The folder that holds the package's Python files, fetched first if need be.

    Raises NotFetched if they are not cached and `offline` is set or pip can't get them.
    """
    folder = source_folder(engine, version)
    if folder.is_dir():
        return folder
    if offline:
        raise NotFetched(f"{engine} {version} is not in {folder.parent}, and this run is offline")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_name(folder.name + ".lock")):
        if not folder.is_dir():  # another process may have fetched it while we waited
            partial = Path(tempfile.mkdtemp(prefix=f"{folder.name}.partial-", dir=folder.parent))
            try:
                wheel = _download(engine, version, partial)
                unpack(wheel, partial / "files")
                (partial / "files").rename(folder)
            finally:
                shutil.rmtree(partial, ignore_errors=True)
    return folder


def _download(engine: str, version: str, folder: Path) -> Path:
    """Let pip fetch the wheel, so that whatever index or mirror the user configured applies."""
    size = f"about {MEGABYTES[engine]} MB" if engine in MEGABYTES else "once"
    print(f"fetching {engine} {version} ({size}); only its Python files are kept", flush=True)
    command = [sys.executable, "-m", "pip", "download", f"{engine}=={version}", "--no-deps"]
    command += ["--only-binary=:all:", "--python-version", "3.11", "--implementation", "cp"]
    for platform in PLATFORMS:
        command += ["--platform", platform]
    command += ["--dest", str(folder), "--no-input", "--disable-pip-version-check", "--quiet"]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    wheels = list(folder.glob("*.whl"))
    if result.returncode or len(wheels) != 1:
        last = "\n".join(result.stderr.strip().splitlines()[-3:])
        raise NotFetched(f"pip could not download {engine} {version}:\n{last}")
    return wheels[0]


def unpack(wheel: Path, folder: Path) -> None:
    """Take the Python files, and the name and version beside them, out of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        members = [
            name
            for name in archive.namelist()
            if name.endswith(".py") or name.endswith(".dist-info/METADATA")
        ]
        archive.extractall(folder, members)
