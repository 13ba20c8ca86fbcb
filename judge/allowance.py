"""Owns how long a child may take: seconds of computing, of waiting, and by the clock.

A busy machine must not fail an honest slow learner, so what counts is the CPU time that the child
used, or the time for which it slept although it could have computed. The clock has the last word,
much later, so that nothing hangs.
"""

from __future__ import annotations

from dataclasses import dataclass

BY_THE_CLOCK = 8  # a child that gets no CPU has up to this many times its limit


@dataclass
class Allowance:
    """What is left of one limit, which may serve several answers.

    `limit_s` bounds seconds of CPU time, and likewise seconds asleep; `why` says where the limit
    comes from, for the verdict.
    """

    limit_s: float
    why: str = ""
    computed: float = 0.0
    slept: float = 0.0
    passed: float = 0.0

    def spend(self, seconds: float, cpu: float, *, active: bool) -> None:
        """Note a stretch of time: how long it was, how much CPU time the child used in it, and
        whether any of its threads was running, or ready to."""
        self.passed += seconds
        self.computed += cpu
        if not active:
            self.slept += max(0.0, seconds - cpu)

    def used_up(self) -> tuple[str, ...]:
        """Lines that say which limit was reached; none if time is left."""
        limit = f"{self.limit_s:.3g} s"
        if self.computed > self.limit_s:
            what = f"it was still computing after {self.computed:.1f} s of CPU time"
        elif self.slept > self.limit_s:
            what = (
                f"it was waiting, not computing: {self.slept:.1f} s asleep, {self.computed:.1f} s "
                "of CPU time"
            )
        elif self.passed > BY_THE_CLOCK * self.limit_s:
            what = f"in {self.passed:.0f} s it got only {self.computed:.1f} s of CPU time"
            limit = f"{limit} of CPU time, or {BY_THE_CLOCK} times that by the clock"
            return (what, f"the limit is {limit}; this machine may be too busy: run it again")
        else:
            return ()
        return (what, f"the limit is {limit}{', ' + self.why if self.why else ''}")
