"""One list of dependencies: pyproject.toml; everything else agrees with it."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
BASE = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = {
    name: [Requirement(line) for line in lines]
    for name, lines in PROJECT["optional-dependencies"].items()
}
PINS = {
    canonicalize_name(name): version
    for name, version in re.findall(
        r"^([A-Za-z0-9._-]+)==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE
    )
}


def names(*lists: list[Requirement]) -> set[str]:
    return {canonicalize_name(requirement.name) for found in lists for requirement in found}


def test_conda_takes_its_dependencies_from_pyproject() -> None:
    environment = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    conda = [entry for entry in environment["dependencies"] if isinstance(entry, str)]
    (pip,) = (entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict))
    assert sorted(Requirement(entry).name for entry in conda) == ["pip", "python"]
    (python,) = (Requirement(entry) for entry in conda if entry.startswith("python"))
    assert python.specifier == SpecifierSet(PROJECT["requires-python"])
    (line,) = pip
    match = re.fullmatch(r"-e \.\[([a-z,]+)\]", line)
    assert match is not None, f"environment.yml must install the project itself, got {line!r}"
    assert set(match[1].split(",")) == set(EXTRAS)


def test_every_dependency_is_pinned_inside_its_range() -> None:
    for requirement in [*BASE, *(r for extra in EXTRAS.values() for r in extra)]:
        name = canonicalize_name(requirement.name)
        if name == canonicalize_name(PROJECT["name"]):
            continue
        assert name in PINS, f"constraints.txt does not pin {name}"
        assert requirement.specifier.contains(PINS[name]), f"{name} {PINS[name]}, {requirement}"


def test_ranges_take_the_torch_and_python_versions_promised() -> None:
    (torch,) = (requirement for requirement in BASE if requirement.name == "torch")
    assert all(torch.specifier.contains(f"2.{minor}.0") for minor in (11, 12, 13, 14))
    pythons = SpecifierSet(PROJECT["requires-python"])
    assert [minor for minor in range(9, 16) if f"3.{minor}.1" in pythons] == [11, 12, 13]
    (transformers,) = (requirement for requirement in BASE if requirement.name == "transformers")
    assert transformers.specifier.contains("5.17.0")


def imported_modules(folder: Path) -> dict[str, Path]:
    """Top-level names that the files below a folder import, each with one file that does."""
    found: dict[str, Path] = {}
    for path in folder.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            modules: list[str] = []
            if isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                modules = [node.module]
            found |= {module.partition(".")[0]: path for module in modules}
    return found


@pytest.mark.parametrize(
    ("folder", "lists"),
    [
        ("mini_engine", [BASE, EXTRAS["lab"], EXTRAS["serve"]]),
        ("judge", [BASE, EXTRAS["lab"]]),
        ("tests", [BASE, *EXTRAS.values()]),
    ],
)
def test_what_is_imported_is_declared(folder: str, lists: list[list[Requirement]]) -> None:
    declared = names(*lists)
    own = {"mini_engine", "judge", "tests", "practice", "__future__"}
    own |= {path.stem for path in (ROOT / "tools").glob("*.py")}
    distributions = packages_distributions()
    for module, path in imported_modules(ROOT / folder).items():
        if module in own or module in sys.stdlib_module_names:
            continue
        offered_by = {canonicalize_name(name) for name in distributions.get(module, [])}
        assert offered_by & declared, f"{path} imports {module}, which pyproject.toml lacks"
