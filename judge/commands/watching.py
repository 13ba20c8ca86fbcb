"""Owns `--watch`: a fresh verdict after each save, until Ctrl-C."""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace

from judge import practice
from judge.api import Exercise, ExerciseResult
from judge.changes import Snapshot, changed, snapshot
from judge.commands import show
from judge.commands.grade import grade_and_record, new_seed
from judge.doctor import missing_models
from judge.exercises import EXERCISES, find
from judge.growing import within_reach
from judge.progress import Progress
from judge.reference import JudgeFault
from judge.report import LABELS, Reporter
from judge.runner import learner_source, reference_source
from judge.sandbox import ChildFailed
from judge.workers import Workers

POLL_S = 0.2
SETTLED_S = 0.05  # an editor may write in several pieces
MISSING_AFTER = 10  # polls: editors that replace a file take it away for a moment


class Watch:
    """Grades what was saved. `target` limits it to an exercise, a topic or a chapter."""

    def __init__(
        self, args: argparse.Namespace, folder: practice.Folder, reporter: Reporter
    ) -> None:
        if args.json:
            raise ValueError("--watch prints verdicts as they come; it has no --json")
        self.args = args
        self.folder = folder
        self.reporter = reporter
        self.exercises = find(args.target) if args.target else list(EXERCISES)
        if args.only and len(self.exercises) > 1:
            raise ValueError(
                "--watch with --only needs one exercise: --watch EXERCISE --only CHECK"
            )
        if args.model is None:  # SmolLM2 once at the end is enough: --watch is for short rounds
            args.model = "tiny"
        self.workers = (
            Workers()
        )  # kept from save to save: importing torch takes longer than grading
        self.latest: dict[str, ExerciseResult] = {}
        self.rounds = 0

    def run(self, sleep: Callable[[float], None] = time.sleep) -> int:
        """Watch until Ctrl-C, then say what came out; returns 0: stopping is how it ends."""
        with self.workers:
            try:
                self._run(sleep)
            except KeyboardInterrupt:
                self._summary()
        return 0

    def _run(self, sleep: Callable[[float], None]) -> None:
        seen = snapshot(self.folder.path, self.exercises)
        self.reporter.line(f"watching {self.folder.describe()}; Ctrl-C ends it")
        first = self._first()
        self._grade(first)
        for exercise in first[:1]:
            self._warm(exercise)
        patience = MISSING_AFTER
        while True:
            sleep(POLL_S)
            if seen.missing and not seen.moved():
                patience -= 1
                if patience == 0:
                    names = ", ".join(practice.shown(path) for path in seen.missing)
                    self.reporter.line(f"{names} is not there; waiting for it")
                continue
            patience = MISSING_AFTER
            if not seen.moved():
                continue
            now = self._settled(sleep)
            saved = changed(seen, now, self.exercises)
            now.digests = seen.digests | now.digests  # a file away for a moment is not forgotten
            seen = now
            self._grade(within_reach(Progress(self.folder), saved))

    def _warm(self, exercise: Exercise) -> None:
        """Let torch be imported while the learner types, if this exercise will need it."""
        needs = {need for check in exercise.details().checks for need in check.needs}
        file = self.folder.path / exercise.file
        if not (exercise.needs_torch or "tiny" in needs) or "tiny" in missing_models():
            return
        device = "cuda" if self.args.device == "cuda" else "cpu"
        source = replace(reference_source(exercise), torch=True, device=device)
        reference = self.workers.reference(source)
        learner = self.workers.learner(
            replace(learner_source(exercise, file), torch=True, device=device)
        )
        with contextlib.suppress(ChildFailed, JudgeFault):  # the next verdict is about that
            learner.ready()
            reference.ready()

    def _settled(self, sleep: Callable[[float], None]) -> Snapshot:
        """The files once nobody writes them any more."""
        while True:
            found = snapshot(self.folder.path, self.exercises)
            sleep(SETTLED_S)
            if not found.moved():
                return found

    def _first(self) -> list[Exercise]:
        """With a target all of it; else the next exercise that has not passed."""
        if self.args.target:
            return self.exercises
        progress = Progress(self.folder)
        todo = [e for e in self.exercises if progress.status(e) != "passed"]
        if not todo:
            self.reporter.line("every exercise has passed; each save is graded all the same")
            return []
        return [show.next_exercise(progress, self.exercises)]

    def _grade(self, exercises: list[Exercise]) -> None:
        if not exercises:
            return
        seed = self.args.seed if self.args.seed is not None else new_seed()
        progress = Progress(self.folder)  # as other judges left it
        for exercise in exercises:
            try:
                result = grade_and_record(
                    exercise, seed, self.args, progress, self.reporter, self.workers
                )
            except FileNotFoundError as error:  # taken away just now: its return is a change
                self.reporter.line(str(error))
                continue
            self.latest[exercise.id] = result
            self.rounds += 1
        if progress.note:
            self.reporter.line(f"note: {progress.note}")
        self.reporter.line()
        self.reporter.line(
            f"{time.strftime('%H:%M:%S')}  waiting for a save; {self._next(progress)}"
        )

    def _next(self, progress: Progress) -> str:
        todo = [e for e in self.exercises if progress.status(e) != "passed"]
        if not todo:
            return "all that is watched has passed"
        following = show.next_exercise(progress, self.exercises)
        return f"next is {following.id}, {show.where(following, progress)}"

    def _summary(self) -> None:
        self.reporter.line()
        runs = "1 verdict" if self.rounds == 1 else f"{self.rounds} verdicts"
        self.reporter.line(f"stopped after {runs}; the latest of each exercise:")
        for exercise_id, result in self.latest.items():
            label = LABELS[result.status]
            self.reporter.labelled(f"  {label:<11}", exercise_id)
        self.reporter.line("nothing is left running")
