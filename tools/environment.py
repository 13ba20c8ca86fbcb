"""Owns .venv: makes it, chooses where torch comes from, installs, and knows when all that is done.

Standard library only: it runs before anything is installed.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

STAMP = "mini-engine-setup.json"
EXTRAS = {"lab": "lab,serve", "test": "lab,serve,test"}  # each contains the one before
TORCH_RANGE = re.compile(r'"torch>=(\d+)\.(\d+),<(\d+)\.(\d+)"')


class Failed(RuntimeError):
    """A set-up step could not be done; the message says what to do."""


def venv_python(root: Path) -> Path:
    """The interpreter of the project's environment."""
    return root / ".venv" / "bin" / "python"


def make_environment(root: Path, extras: str, torch_index: str = "") -> None:
    """Bring .venv to what pyproject.toml and constraints.txt say; returns at once if it is there.

    `extras` is "lab" or "test". A torch that is installed already and in range stays, in .venv or
    in the Python that runs this, unless `torch_index` names an index to take another one from.
    The stamp is written last, so the next run takes up where an interrupted one stopped.
    """
    _leave_own_environment(root)
    stamp, files = read_stamp(root), digest(root / "pyproject.toml", root / "constraints.txt")
    other_torch = bool(torch_index) and stamp.get("torch_index") != torch_index
    if is_current(root, stamp, files, extras) and not other_torch:
        return
    if stamp.get("root", str(root)) != str(root) or not _has_pip(root):
        _create(root, look_for_torch=not torch_index)
    _stamp_path(root).unlink(missing_ok=True)
    torch_version = _settle_torch(root, torch_index, replace=other_torch)
    _install_rest(root, EXTRAS[extras], torch_version)
    new = {"root": str(root), "files": files, "extras": extras}
    new["torch_index"] = torch_index or stamp.get("torch_index", "")
    temporary = _stamp_path(root).with_suffix(".partial")
    temporary.write_text(json.dumps(new, indent=1) + "\n", encoding="utf-8")
    temporary.replace(_stamp_path(root))


def is_current(root: Path, stamp: dict[str, str], files: str, extras: str) -> bool:
    """Whether the stamp says that all is installed: same place, same lists, enough extras."""
    return (
        venv_python(root).exists()
        and stamp.get("root") == str(root)  # scripts in .venv hold absolute paths
        and stamp.get("files") == files
        and stamp.get("extras") in (extras, "test")
    )


def digest(*paths: Path) -> str:
    """One hash over the content of files."""
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in paths)).hexdigest()


def read_stamp(root: Path) -> dict[str, str]:
    """What the last complete set-up recorded; empty if there was none."""
    try:
        stamp = json.loads(_stamp_path(root).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp if isinstance(stamp, dict) else {}


def _stamp_path(root: Path) -> Path:
    return root / ".venv" / STAMP


def _leave_own_environment(root: Path) -> None:
    """Go on with the Python below if .venv is the active environment: it may have to be remade."""
    if Path(sys.prefix).resolve() == (root / ".venv").resolve():
        base = getattr(sys, "_base_executable", "")
        if not base or Path(base).parent == venv_python(root).parent:
            raise Failed("leave the project's own environment first: deactivate")
        os.execv(base, [base, *sys.argv])


def _has_pip(root: Path) -> bool:
    python = venv_python(root)
    command = [str(python), "-m", "pip", "--version"]
    return python.exists() and not subprocess.run(command, capture_output=True).returncode


def _create(root: Path, look_for_torch: bool) -> None:
    try:
        import ensurepip  # noqa: F401 (Debian splits it off, and venv fails without it)
    except ImportError:
        raise Failed(
            f"{sys.executable} can't make environments; on Debian and Ubuntu: "
            "apt-get install python3-venv"
        ) from None
    found = _torch_of_this_python() if look_for_torch else None
    usable = found is not None and in_range(found[0], root)
    if found and usable:
        print(f"set-up: torch {found[0]} of {sys.prefix} is kept; .venv sees its packages")
    elif found:
        print(
            f"set-up: torch {found[0]} of {sys.prefix} is not used: {_range_text(root)} is needed"
        )
    print(f"set-up: making {root / '.venv'} with Python {platform.python_version()}", flush=True)
    venv.EnvBuilder(clear=True, with_pip=True, symlinks=True, system_site_packages=usable).create(
        root / ".venv"
    )
    if found and usable and sys.prefix != sys.base_prefix:
        # "System" packages are the base Python's; those of an active environment need a path.
        folder = _site_packages(root)
        (folder / "torch_of_outer_environment.pth").write_text(f"{found[1]}\n", encoding="utf-8")


def _site_packages(root: Path) -> Path:
    return next((root / ".venv" / "lib").glob("python3*/site-packages"))


def _torch_of_this_python() -> tuple[str, Path] | None:
    """(version, folder it is installed in) of a torch that this Python could import."""
    try:
        torch = importlib.metadata.distribution("torch")
    except importlib.metadata.PackageNotFoundError:
        return None
    return torch.version, Path(str(torch.locate_file("")))


def in_range(version: str, root: Path) -> bool:
    """Whether pyproject.toml accepts this version of torch."""
    oldest, beyond = _torch_range(root)
    return oldest <= tuple(int(part) for part in version.split(".")[:2]) < beyond


def _torch_range(root: Path) -> tuple[tuple[int, ...], tuple[int, ...]]:
    found = TORCH_RANGE.search((root / "pyproject.toml").read_text(encoding="utf-8"))
    if found is None:
        raise Failed("pyproject.toml does not say which torch is needed")
    numbers = tuple(int(number) for number in found.groups())
    return numbers[:2], numbers[2:]


def _range_text(root: Path) -> str:
    (major, minor), (next_major, next_minor) = _torch_range(root)
    return f"{major}.{minor} or newer, older than {next_major}.{next_minor},"


def _settle_torch(root: Path, torch_index: str, replace: bool) -> str:
    """Make sure that .venv has a torch in range, or `replace` it; returns its version."""
    present = _torch_of_environment(root)
    if present and in_range(present, root) and not replace:
        return present
    pinned = re.search(r"^torch==(\S+)$", (root / "constraints.txt").read_text(), re.MULTILINE)
    if pinned is None:
        raise Failed("constraints.txt pins no torch")
    options = ["--index-url", torch_index, "--force-reinstall"] if torch_index else []
    if not torch_index and warn_about_cuda_build():
        print(CUDA_BUILD_WARNING, flush=True)
    _pip(root, "install", *options, f"torch=={pinned[1]}")
    installed = _torch_of_environment(root)
    if not installed:
        raise Failed(
            "pip installed torch, but .venv does not have it; try again after `make clean`"
        )
    return installed


def _torch_of_environment(root: Path) -> str:
    code = (
        "import importlib.metadata as m\ntry: print(m.version('torch'))\n"
        "except m.PackageNotFoundError: print('')"
    )
    result = subprocess.run([str(venv_python(root)), "-c", code], capture_output=True, text=True)
    return result.stdout.strip()


CUDA_BUILD_WARNING = """\
set-up: installing torch. On Linux the usual index serves the CUDA build, about 3 GB with its
set-up: libraries, and this machine shows no NVIDIA GPU. To take the small CPU build instead, stop
set-up: here (Ctrl-C) and run: make lab TORCH_INDEX=ADDRESS
set-up: with the address that PyTorch's installation page gives for Linux, pip, CPU."""


def warn_about_cuda_build() -> bool:
    """Whether this machine would get the CUDA build of torch without a use for it."""
    has_gpu = shutil.which("nvidia-smi") or Path("/proc/driver/nvidia").exists()
    return platform.system() == "Linux" and platform.machine() == "x86_64" and not has_gpu


def _install_rest(root: Path, extras: str, torch_version: str) -> None:
    """Install the project in place, at the pinned versions, around the torch that is there."""
    pins = (root / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pins = [pin for pin in pins if not pin.startswith("torch==")]
    pins.append(f"torch=={torch_version.partition('+')[0]}")
    constraints = root / ".venv" / "constraints.txt"
    constraints.write_text("\n".join(pins) + "\n", encoding="utf-8")
    _pip(root, "install", "--constraint", str(constraints), "--editable", f"{root}[{extras}]")


def _pip(root: Path, *arguments: str) -> None:
    quiet = [] if sys.stdout.isatty() else ["--quiet", "--progress-bar", "off"]
    command = [str(venv_python(root)), "-m", "pip", "--disable-pip-version-check", *arguments]
    print(f"set-up: pip {' '.join(arguments)}", flush=True)
    if subprocess.run([*command, *quiet], cwd=root).returncode:
        raise Failed(
            f"pip could not do that: {' '.join(arguments)}\nIts message stands above. If it is the "
            "network, run the same command again later: what was installed stays"
        )
