"""Owns the checks, hints and known mistakes of `scheduler.priority`: policy "priority"."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge.api import Case, Details, Mistake
from judge.scheduler_cases import VOCAB, random_script, request, script
from judge.scheduler_checks import contract, reference_schedule, vllm_schedule

ON: dict[str, Any] = {"policy": "priority"}


def queue(rng: random.Random) -> Sequence[Case]:
    """Who is admitted first."""
    numbers = rng.sample(range(-3, 9), 4)
    numbers = [max(numbers), *[n for n in numbers if n < max(numbers)]]
    mixed = [request(f"r{i}", 4, 3, priority=p) for i, p in enumerate(numbers)]
    ties = [request(name, 4, 3, priority=2) for name in "abc"]
    late = [request("a", 4, 6, priority=5), request("b", 4, 3, priority=5),
            request("c", 4, 3, priority=1, step=1), request("d", 4, 2, priority=5, step=1),
            request("e", 4, 2, priority=3, step=2)]  # fmt: skip
    return [
        script(rng, f"one may run, priorities {numbers}", mixed, max_num_seqs=1, **ON),
        script(rng, "equal priorities: first come, first served", ties, max_num_seqs=1, **ON),
        script(rng, "urgent ones arrive while others wait", late, max_num_seqs=1, **ON),
        script(rng, "running requests go on, urgent or not", late, max_num_seqs=2,
               max_num_batched_tokens=5, **ON),
        script(rng, "policy fcfs: priorities mean nothing", mixed, max_num_seqs=1),
    ]  # fmt: skip


def victims(rng: random.Random) -> Sequence[Case]:
    """Who goes when blocks run out, and where to."""
    low_first = [request("low", 6, 9, priority=5), request("high", 6, 9, priority=1, step=1)]
    middle = [request("a", 6, 8, priority=2), request("b", 6, 8, priority=7),
              request("c", 6, 8, priority=4)]  # fmt: skip
    ties = [request("a", 6, 8, priority=3), request("b", 6, 8, priority=3)]
    place = [request("a", 6, 9, priority=1), request("b", 6, 9, priority=6),
             request("c", 3, 4, 2, priority=3), request("d", 3, 4, 2, priority=8)]  # fmt: skip
    again = [request("a", 5, 12, priority=2), request("b", 4, 9, priority=2),
             request("c", 4, 3, priority=2, step=1)]  # fmt: skip
    return [
        script(rng, "4 blocks: the one that runs longer is less urgent", low_first, num_blocks=4,
               **ON),
        script(rng, "6 blocks: the least urgent stands in the middle", middle, num_blocks=6, **ON),
        script(rng, "4 blocks: equal priorities, the later one goes", ties, num_blocks=4, **ON),
        script(rng, "4 blocks: b goes back to its place, between c and d", place, num_blocks=4,
               **ON),
        script(rng, "4 blocks: b came before c and keeps that place", again, num_blocks=4, **ON),
        script(rng, "4 blocks, policy fcfs: the last one goes", low_first, num_blocks=4),
    ]  # fmt: skip


def in_this_step(rng: random.Random) -> Sequence[Case]:
    """The victim had a chunk in this very step."""
    low, mid = (request(n, 4, 30, s, priority=p) for n, s, p in (("low", 0, 5), ("mid", 5, 3)))
    high = request("high", 12, 9, 10, priority=0)
    wide = [request("low", 32, 20, priority=5), request("short", 2, 1, priority=9),
            request("high", 7, 6, 1, priority=0)]  # fmt: skip
    common = [rng.randrange(VOCAB) for _ in range(14)]
    named = [request("low", common, 9, priority=5), request("high", 7, 9, 1, priority=1),
             request("same", [*common, 3], 2, 2, priority=6)]  # fmt: skip
    three = [request("first", 6, 12, priority=0), request("low", 4, 6, priority=5),
             request("high", 4, 6, 1, priority=1)]  # fmt: skip
    cached: dict[str, Any] = {"enable_prefix_caching": True}
    return [
        script(rng, "budget 3, 10 blocks: its tokens go back to the budget", [low, mid, high],
               num_blocks=10, max_num_batched_tokens=3, **ON),
        script(rng, "threshold 8, 10 blocks: low is in the middle of its prompt", wide,
               num_blocks=10, long_prefill_token_threshold=8, max_num_batched_tokens=64,
               **cached, **ON),
        script(rng, "5 blocks: it goes, and first's names of this step stay", three, num_blocks=5,
               **cached, **ON),
        script(rng, "its blocks were named in this step and are not filled", named, num_blocks=6,
               max_num_batched_tokens=8, **cached, **ON),
    ]  # fmt: skip


def starvation(rng: random.Random) -> Sequence[Case]:
    """Urgent requests keep arriving. Who runs goes on; who waits may wait long."""
    urgent = [request(f"u{i}", rng.randint(8, 14), 2, i, priority=0) for i in range(1, 12)]
    decode = request("decode", 5, 12, priority=0)
    low = request("low", 6, 3, priority=9)
    return [
        script(rng, "a decode beside prompts that keep arriving", [decode, *urgent],
               max_num_batched_tokens=12, max_num_seqs=6, **ON),
        script(rng, "a request of no urgency waits for the only seat", [*urgent, low],
               max_num_batched_tokens=12, max_num_seqs=1, **ON),
    ]  # fmt: skip


def anything(rng: random.Random) -> Sequence[Case]:
    cases = []
    for number in range(14):
        cases.append(
            random_script(rng, count=9, aborts=number % 2 == 1, failures=number % 4 == 3,
                          priorities=rng.choice([2, 5]), num_blocks=rng.randint(9, 13),
                          max_num_batched_tokens=rng.choice([5, 9, 16, 64]),
                          max_num_seqs=rng.choice([3, 8]),
                          long_prefill_token_threshold=rng.choice([0, 0, 4]),
                          enable_prefix_caching=number % 3 > 0, **ON)
        )  # fmt: skip
    return cases


RANDOM = contract("random", "random priorities, aborts and failures in a small pool", anything)
EXERCISE = Details(
    checks=(
        contract("queue", "the most urgent is admitted first, then the earliest", queue),
        contract("victims", "the least urgent goes, and back to its own place", victims),
        contract("this-step", "a victim gives back what it got in this step", in_this_step),
        contract("starvation", "urgent requests that keep arriving", starvation),
        RANDOM,
        vllm_schedule("13_priority"),
        reference_schedule(RANDOM),
    ),
    hints=(
        "The victim may stand before the request for which it goes. What has this step already "
        "promised to it: which chunk, how many tokens of the budget, which names?",
        "One pair of numbers, (priority, arrival), orders everything: the smallest of those that "
        "wait is admitted next, the largest of those that run goes first. arrival is given once, "
        "in `add`. `running` stays in order of admission. Whoever is thrown out leaves no trace "
        "in the step.",
        "queue: whenever somebody joins or comes back, order it by (priority, arrival)\n"
        "victim: the largest of those that run\n"
        "  does it have a chunk already? chunk away, tokens back to the budget, young names away\n"
        "  then as before\n"
        "policy fcfs: all as it was",
    ),
    mistakes=tuple(
        Mistake(name, {"Scheduler": f"judge.mistakes.scheduler_priority:{kind}"})
        for name, kind in (
            ("large numbers are urgent", "SignWrong"),
            ("of equal priorities the latest comes first", "LatestFirst"),
            ("the victim is the last of the running requests, whatever its priority", "LastGoes"),
            ("the most urgent running request is the victim", "MostUrgentGoes"),
            ("a victim goes to the front of the queue", "ToTheFront"),
            ("a victim gets a new arrival", "NewArrival"),
            ("a victim's chunk stays in the schedule", "ChunkStays"),
            ("a victim's chunk stays in the schedule", "ChunkStaysAndAdds"),
            ("a victim's tokens are not given back to the budget", "BudgetGone"),
            ("a victim's names of this step stay", "NamesStay"),
            ("the names of everybody are taken back, not just the victim's", "EverybodysNames"),
            ("somebody is skipped when a victim stood earlier in the list", "SkipsAfterVictim"),
            ("somebody is skipped when a victim stood earlier in the list", "IndexNotShifted"),
            ("add gives no arrival", "NoArrival"),
            ("a step that preempted admits somebody", "AdmitsAfterwards"),
            ("priorities count although the policy is fcfs", "Always"),
            ("the queue is ordered only when requests arrive", "OrderedAtArrival"),
            ("running requests are served by priority instead of admission", "RunningSorted"),
        )
    ),
)
