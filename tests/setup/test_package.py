"""What a wheel holds, and what importing the package loads."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("mini_engine", "judge")


def run_python(code: str, cwd: Path, path: Path) -> str:
    """Run code in a fresh interpreter that finds packages in `path` first; returns its output."""
    environment = dict(os.environ, PYTHONPATH=str(path), PYTHONDONTWRITEBYTECODE="1")
    result = subprocess.run(
        [sys.executable, "-c", code], cwd=cwd, env=environment, capture_output=True, text=True
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder into which a wheel built from the sources was installed."""
    source, site = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("site")
    for name in PACKAGES:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    offline = ["--no-deps", "--no-build-isolation", "--no-index"]
    subprocess.run([*pip, "wheel", *offline, "--wheel-dir", source, source], check=True)
    (wheel,) = source.glob("*.whl")
    subprocess.run([*pip, "install", *offline, "--target", site, wheel], check=True)
    return site


def test_the_wheel_holds_every_file_of_the_packages(installed: Path) -> None:
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert (installed / path.relative_to(ROOT)).is_file(), f"{path} is not in the wheel"


def test_the_wheel_runs_from_another_directory(installed: Path, tmp_path: Path) -> None:
    code = (
        "import mini_engine, judge, mini_engine.control.block_pool as block_pool\n"
        "print(mini_engine.__file__, judge.__file__, block_pool.__file__, sep='\\n')"
    )
    files = run_python(code, tmp_path, installed).splitlines()
    assert all(Path(file).is_relative_to(installed) for file in files), files


def loaded_by(imports: str, tmp_path: Path) -> set[str]:
    code = f"import sys, importlib\n{imports}\nprint(*sys.modules)"
    return {name.partition(".")[0] for name in run_python(code, tmp_path, ROOT).split()}


def test_importing_the_package_loads_no_torch_and_prints_nothing(tmp_path: Path) -> None:
    assert not loaded_by("import mini_engine", tmp_path) & {"torch", "numpy", "transformers"}
    assert run_python("import mini_engine", tmp_path, ROOT) == ""


def test_the_control_plane_loads_no_torch_and_no_numpy(tmp_path: Path) -> None:
    modules = [
        f"mini_engine.control.{path.stem}" for path in (ROOT / "mini_engine/control").glob("*.py")
    ]
    modules += ["mini_engine.interfaces", "mini_engine.config", "mini_engine.trace"]
    assert "mini_engine.control.block_pool" in modules
    loaded = loaded_by(f"for name in {modules}: importlib.import_module(name)", tmp_path)
    assert not loaded & {"torch", "numpy"}


def test_reading_checkpoints_needs_no_transformers_at_import_time(tmp_path: Path) -> None:
    """GPU machines may hold torch, numpy, safetensors and pytest alone."""
    modules = [f"mini_engine.text.{path.stem}" for path in (ROOT / "mini_engine/text").glob("*.py")]
    absent = ["transformers", "huggingface_hub", "platformdirs", "filelock", "rich", "gguf"]
    code = f"for name in {absent}: sys.modules[name] = None\n"
    code += f"for name in {modules}: importlib.import_module(name)"
    assert "mini_engine" in loaded_by(code, tmp_path)
