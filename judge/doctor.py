"""Owns the look at this machine: versions, devices, model, the reference against itself."""

from __future__ import annotations

import importlib
import importlib.util
import os
import platform
import sys
from typing import TYPE_CHECKING

from judge import practice
from judge.api import CheckResult, Exercise
from judge.exercises import EXERCISES
from judge.models import RealModel
from judge.reference import JudgeFault
from judge.runner import Grader, Options, reference_source
from judge.workers import Workers

if TYPE_CHECKING:
    from judge.report import Reporter

PACKAGES = ("torch", "transformers", "numpy", "rich", "jupyterlab", "ipywidgets")


def missing_models(real: RealModel | None = None) -> dict[str, str]:
    """Which of the judge's models can't be used here, and why. Loads no torch.

    `real` stands in SmolLM2's place.
    """
    if importlib.util.find_spec("torch") is None:
        why = "torch is not installed here"
        return {"tiny": why, "smollm2": why}
    return {} if real is not None or smollm2_present() else {
        "smollm2": "SmolLM2 is not on this machine; make lab fetches it"
    }  # fmt: skip


def smollm2_present() -> bool:
    """Whether the default model has been fetched and converted."""
    from mini_engine.config import DEFAULT_MODEL
    from mini_engine.text import default_model

    folder = default_model.cache_dir() / f"{DEFAULT_MODEL}-{default_model.CONVERSION}"
    return not default_model.damage(folder)


def examine(reporter: Reporter) -> int:
    """Print what was found; exit code 0 if the reference passes on this machine, else 1."""
    import importlib.metadata

    reporter.line(f"Python {platform.python_version()} ({sys.executable}), {platform.platform()}")
    for name in PACKAGES:
        try:
            version = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            version = "not installed"
        reporter.line(f"{name} {version}")
    reporter.line(
        f"CPU cores: {len(os.sched_getaffinity(0)) if sys.platform == 'linux' else os.cpu_count()}"
    )
    if importlib.util.find_spec("torch") is not None:
        torch = importlib.import_module("torch")
        built = torch.version.cuda
        reporter.line(f"torch is built {'for CUDA ' + built if built else 'for CPU only'}; "
                      f"{torch.get_num_threads()} threads")  # fmt: skip
        if torch.cuda.is_available():
            reporter.line(f"GPU: {torch.cuda.get_device_name()}")
        else:
            reporter.line("GPU: none that torch can use; checks that need one are skipped")
    missing = missing_models()
    reporter.line(f"SmolLM2: {missing.get('smollm2', 'present')}")
    try:
        reporter.line(f"practice folder: {practice.folder().describe()}")
    except FileNotFoundError as error:
        reporter.line(f"practice folder: {error}")
    reporter.line()
    reporter.line("the reference against itself:")
    models = tuple(m for m in ("tiny",) if m not in missing)
    with Workers() as workers:
        fine = [_reference_passes(exercise, models, workers, reporter) for exercise in EXERCISES]
    healthy = all(fine)
    sorry = "this machine or this release has a fault; please report the lines above"
    reporter.line("this machine is ready" if healthy else sorry)
    return 0 if healthy else 1


def _why_not_run(found: CheckResult) -> str:
    """SmolLM2 takes long and is left out of this look; for all else the verdict says why."""
    missing = missing_models()
    for model in set(found.check.needs) & set(missing):
        return missing[model]
    if "smollm2" in found.check.needs:
        return "SmolLM2 is left out of this look; grading uses it"
    return found.lines[0]


def _reference_passes(
    exercise: Exercise, models: tuple[str, ...], workers: Workers, reporter: Reporter
) -> bool:
    from judge.report import LABELS, counts

    options = Options(0, models=models)
    try:
        result = Grader(exercise, reference_source(exercise), options, workers).run()
    except JudgeFault as fault:
        reporter.labelled("ERROR", f"{exercise.id}: {fault}")
        return False
    reporter.labelled(LABELS[result.status], f"{exercise.id}: {counts(result.results)}, "
                      f"{result.seconds:.1f} s")  # fmt: skip
    for found in result.results:
        if found.status in ("skipped", "not run"):
            reporter.line(f"  not run: {found.check.name} ({_why_not_run(found)})")
    failed = result.first_failure
    for line in failed.lines if failed else []:
        reporter.line(f"  {line}")
    return result.status == "passed"
