"""Owns the lab's environment: vLLM's Python files and what they import, beside this torch.

No CUDA and no compiled part of vLLM: its scheduler is plain Python. The environment is a folder of
its own in the cache folder, so nothing of this is installed with the project's dependencies; torch,
transformers and what else is there already are those of the Python that runs this.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

from source_map_wheels import fetch

from mini_engine.text.default_model import cache_dir

VLLM = "0.33.0"
# Small packages that vLLM's scheduler imports and this project does not. What they depend on is
# listed too, or not imported.
PACKAGES = (
    "aiohappyeyeballs==2.7.1",
    "aiohttp==3.14.5",
    "aiosignal==1.4.0",
    "apache-tvm-ffi==0.1.15.post2",
    "blake3==1.0.11",
    "cachetools==8.0.2",
    "cbor2==6.3.0",
    "cloudpickle==3.1.3",
    "diskcache==5.6.3",
    "einops==0.8.2",
    "frozenlist==1.8.0",
    "llguidance==1.9.1",
    "msgspec==0.23.0",
    "multidict==7.2.1",
    "openai-harmony==0.0.8",
    "opentelemetry-api==1.45.2",
    "opentelemetry-sdk==1.45.2",
    "opentelemetry-semantic-conventions==0.66b2",
    "partial-json-parser==0.2.1.1.post7",
    "propcache==0.5.4",
    "py-cpuinfo==9.0.0",
    "pybase64==1.5.1",
    "uvloop==0.23.0",
    "xgrammar==0.2.9",
    "yarl==1.25.1",
)
# Any version serves: what this Python has already stays, the rest comes with what it needs.
LOOSE = ("fastapi", "openai", "prometheus-client", "psutil", "pyzmq", "regex")
QUIET = {
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
}
PROBE = "from vllm.v1.core.sched.scheduler import Scheduler"


class LabFailed(RuntimeError):
    """The lab could not be set up or run; the message says what to do."""


def lab_folder() -> Path:
    """Where the environment lies; the folder need not exist."""
    tag = f"cp{sys.version_info[0]}{sys.version_info[1]}"
    return cache_dir() / f"vllm-lab-{VLLM}-{tag}"


def lab_python() -> Path:
    """The interpreter of the environment. Raises LabFailed if it was not set up."""
    python = lab_folder() / "bin" / "python"
    if not python.exists():
        raise LabFailed(f"there is no lab in {lab_folder()}; run: python tools/vllm_lab.py setup")
    return python


def set_up(sources: Path | None = None) -> Path:
    """Make the environment and prove that vLLM's scheduler can be imported in it.

    `sources` is a folder that holds vLLM's Python files; without one they are fetched, once. What
    was made is taken away again if anything fails. Raises LabFailed or NotFetched.
    """
    sources = sources or fetch("vllm", VLLM)
    folder = lab_folder()
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
        _see(folder, [str(sources), *packages_of_this_python()])
        print(f"installing {len(PACKAGES)} small packages into {folder}", flush=True)
        _pip(folder, ["--no-deps", *PACKAGES])
        _pip(folder, list(LOOSE))
        drive(["-c", PROBE])
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return folder


def packages_of_this_python() -> list[str]:
    """The folders that this Python takes packages from, the standard library's left out."""
    paths = sysconfig.get_paths()
    standard = {paths["stdlib"], paths["platstdlib"], f"{paths['platstdlib']}/lib-dynload"}
    own = {str(Path(__file__).parent), str(Path(__file__).parents[1])}
    return [p for p in sys.path if Path(p).is_dir() and p not in standard | own]


def _see(folder: Path, paths: list[str]) -> None:
    """Let the environment import from these folders, after its own packages."""
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "mini_engine_lab.pth").write_text("\n".join(paths) + "\n", encoding="utf-8")


def _pip(folder: Path, packages: list[str]) -> None:
    command = [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install"]
    command += ["--quiet", "--disable-pip-version-check", "--no-input", *packages]
    result = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace")
    if result.returncode:
        last = "\n".join(result.stderr.strip().splitlines()[-4:])
        raise LabFailed(f"pip could not install the lab's packages; later, try again:\n{last}")


def drive(arguments: list[str]) -> str:
    """Run the lab's Python; returns what it printed. Raises LabFailed with its last lines."""
    result = subprocess.run(
        [str(lab_python()), *arguments],
        env={**{k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, **QUIET},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
    )
    if result.returncode:
        last = "\n".join(result.stderr.strip().splitlines()[-6:])
        raise LabFailed(f"vLLM's scheduler did not run (exit code {result.returncode}):\n{last}")
    return result.stdout
