"""Owns the checks, hints and known mistakes of `scheduler.abort`: `abort` and `roll_back`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from judge import engine_checks
from judge.api import Case, Details, Mistake
from judge.scheduler_cases import VOCAB, random_script, request, script
from judge.scheduler_checks import contract, vllm_schedule


def between(rng: random.Random) -> Sequence[Case]:
    """Aborts between two steps, of requests that wait, run, or are not there."""
    length = rng.randint(5, 9)
    two = [request("a", length, 6), request("b", 4, 6)]
    queue = [request(name, length, 4) for name in "abcd"]
    chunked = {"max_num_batched_tokens": 6}
    return [
        script(rng, "a decodes", two, aborts=[[2, "a", "before"]]),
        script(rng, "a is the only one", two[:1], aborts=[[2, "a", "before"]]),
        script(rng, "b and c wait for a seat, b goes, then c", queue, max_num_seqs=1,
               aborts=[[1, "b", "before"], [2, "c", "before"]]),
        script(rng, "in the step in which it arrives", two, aborts=[[0, "b", "before"]]),
        script(rng, "in the middle of its prompt", [request("a", 20, 3), request("b", 4, 3)],
               aborts=[[2, "a", "before"]], **chunked),
        script(rng, "an id that never was, one that has ended, one that was aborted", two,
               aborts=[[1, "x", "before"], [1, "b", "before"], [2, "b", "before"],
                       [5, "b", "during"]]),
        script(rng, "its id comes again", [*two, request("a", 3, 2, step=4)],
               aborts=[[2, "a", "before"]]),
    ]  # fmt: skip


def during(rng: random.Random) -> Sequence[Case]:
    """Aborts between `schedule` and `update`: the step is under way."""
    length = rng.randint(5, 9)
    three = [request("a", length, 5), request("b", 4, 5), request("c", 6, 3)]
    last = [request("a", 4, 3), request("b", 4, 4)]
    return [
        script(rng, "a decodes", three, aborts=[[2, "a", "during"]]),
        script(rng, "b computes its prompt", three, aborts=[[0, "b", "during"]]),
        script(rng, "all of them", three, aborts=[[1, name, "during"] for name in "abc"]),
        script(rng, "a, in the step of its last token", last, aborts=[[2, "a", "during"]]),
        script(rng, "the chunk is not the last of its prompt", [request("a", 20, 3),
               request("b", 3, 3)], aborts=[[1, "a", "during"]], max_num_batched_tokens=6),
        script(rng, "a waits while b's step is under way", [request("b", 4, 4),
               request("a", 4, 2)], aborts=[[1, "a", "during"]], max_num_seqs=1),
        script(rng, "its id comes again in the next step", [*last, request("a", 5, 2, step=2)],
               aborts=[[1, "a", "during"]]),
    ]  # fmt: skip


def sharing(rng: random.Random) -> Sequence[Case]:
    """Aborted requests share blocks with others."""
    common = [rng.randrange(VOCAB) for _ in range(rng.randint(9, 14))]
    both = [request("a", common, 6), request("b", [*common, 1, 2], 6)]
    on = {"enable_prefix_caching": True, "num_blocks": 12, "check": True}
    later = [*both, request("c", [*common, 3], 3, step=4)]
    return [
        script(rng, "a goes, b holds the same blocks", both, aborts=[[2, "a", "before"]], **on),
        script(rng, "both go", both, aborts=[[2, "a", "before"], [3, "b", "before"]], **on),
        script(rng, "a goes in the step in which b and c hit its new blocks",
               [*both, request("c", [*common, 3], 3)], aborts=[[0, "a", "during"]], **on),
        script(rng, "c comes later with the same beginning", later,
               aborts=[[2, "a", "during"], [2, "b", "before"]], **on),
    ]  # fmt: skip


def failing(rng: random.Random) -> Sequence[Case]:
    """The forward pass fails: nothing of the step was computed."""
    length = rng.randint(9, 12)
    common = [rng.randrange(VOCAB) for _ in range(length)]
    two = [request("a", 6, 5), request("b", 5, 4)]
    same = [request("a", common, 3), request("b", [*common, 1], 3, step=1)]
    on = {"enable_prefix_caching": True}
    return [
        script(rng, "in a step of decodes", two, failures=[2]),
        script(rng, "in the first step, and in the next one", two, failures=[0, 1]),
        script(rng, "the prompt of a was to fill named blocks; b begins like it", same,
               failures=[0], **on),
        script(rng, "blocks of an earlier step keep their names", same, failures=[1], **on),
        script(rng, "in the middle of a prompt", [request("a", 17, 3), request("b", 4, 2)],
               failures=[1], max_num_batched_tokens=8, **on),
        script(rng, "one is aborted before it fails", two, failures=[1],
               aborts=[[1, "a", "during"]]),
        script(rng, "others wait", [request(name, 5, 3) for name in "abcd"], failures=[1],
               max_num_seqs=2),
    ]  # fmt: skip


def anything(rng: random.Random) -> Sequence[Case]:
    cases = []
    for number in range(8):
        cases.append(
            random_script(rng, aborts=True, failures=number % 2 == 1, num_blocks=200,
                          max_num_batched_tokens=rng.choice([6, 16, 64]),
                          max_num_seqs=rng.choice([2, 4, 8]),
                          enable_prefix_caching=number % 3 > 0)
        )  # fmt: skip
    return cases


def tight(rng: random.Random) -> Sequence[Case]:
    return [
        random_script(rng, aborts=True, failures=True, check=True, num_blocks=rng.randint(10, 14),
                      max_num_batched_tokens=rng.choice([6, 16, 64]),
                      enable_prefix_caching=number % 3 > 0)
        for number in range(8)
    ]  # fmt: skip


EXERCISE = Details(
    checks=(
        contract("between", "abort between two steps: waiting, running, or nobody", between),
        contract("during", "abort while the step is under way", during),
        contract("sharing", "what others hold stays theirs", sharing),
        contract("failing", "after a failed step nothing of it counts", failing),
        contract("random", "random aborts and failures", anything),
        replace(
            contract("tight", "the same in a pool that is too small (needs preemption)", tight),
            last=True,
        ),
        vllm_schedule("10_aborts"),
        *engine_checks.control_plane_checks(),
        engine_checks.tiny_check(spare=True, aborts=True),
    ),
    hints=(
        "In which lists, sets and block tables can a request stand when its client hangs up? And "
        "if its chunk is being computed right now, who will meet it again, and must not be "
        "surprised?",
        "An aborted request is released exactly once, at once. `update` gets the same schedule "
        "that `schedule` returned, so it must be able to tell whom it lost in between; that memory "
        "holds for one step only, since an id may come again. After a failed step the names given "
        "in it stand for blocks that nobody filled.",
        "abort: look in both lists; not there: False\n"
        "  out of its list; blocks back; reason; remember it until the next schedule; True\n"
        "update: pass over those remembered\n"
        "roll back: names of this step away\n"
        "  from the last chunk to the first, unless it was aborted: like a victim of preemption",
    ),
    mistakes=tuple(
        Mistake(name, {"Scheduler": f"judge.mistakes.scheduler_abort:{kind}"})
        for name, kind in (
            ("the token of an aborted request is kept", "TokenKept"),
            ("update does not skip who was aborted", "NotSkipped"),
            ("update does not skip who was aborted", "NotSkippedReasonSet"),
            ("the blocks of an aborted request come back only in update", "ReleasedInUpdate"),
            ("abort only finds running requests", "RunningOnly"),
            ("abort only finds waiting requests", "WaitingOnly"),
            ("an aborted request keeps its blocks", "BlocksKept"),
            ("abort says True for a request that is not there", "AlwaysTrue"),
            ("finish_reason is not set by abort", "NoReason"),
            ("who was aborted is remembered for ever", "RemembersForever"),
            ("abort takes the names of this step back", "TakesNames"),
            ("names given in a failed step stay", "NamesStay"),
            ("a failed step counts as computed", "CountsAsComputed"),
            ("after a failed step its requests go to the back of the queue", "ToTheBack"),
            ("after a failed step its requests stand in reverse order", "Reversed"),
            ("after a failed step aborted requests come back", "AbortedComeBack"),
            ("a failed step keeps the blocks of its requests", "KeepsTables"),
        )
    ),
)
