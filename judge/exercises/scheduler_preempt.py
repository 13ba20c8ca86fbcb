"""Owns the checks, hints and known mistakes of `scheduler.preempt`: a pool that is too small."""

from __future__ import annotations

import random
from collections.abc import Sequence

from judge import engine_checks
from judge.api import Case, Details, Mistake
from judge.scheduler_cases import VOCAB, random_script, request, script
from judge.scheduler_checks import (
    contract,
    inside_the_engine,
    reference_schedule,
    vllm_schedule,
)


def victims(rng: random.Random) -> Sequence[Case]:
    """Blocks run out while requests decode."""
    pair = [request("a", 6, 6), request("b", 6, 6)]
    three = [request(name, 7, 6) for name in "abc"]
    four = [request(name, 7, 6) for name in "abcd"]
    late = [request("a", 7, 9), request("b", 5, 9, step=1), request("c", 2, 3, step=2)]
    chunks = [request("a", 3, 3), request("long", 16, 2, step=1)]
    two_go = [request("a", 4, 14), request("b", 3, 9), request("c", 3, 9)]
    return [
        script(rng, "4 blocks of 4: two prompts of 6, 6 outputs each", pair, num_blocks=4),
        script(rng, "6 blocks of 4: three prompts of 7, 6 outputs each", three, num_blocks=6),
        script(rng, "8 blocks of 4: four prompts of 7, 6 outputs each", four, num_blocks=8),
        script(rng, "4 blocks of 4: a third request waits when b is preempted", late, num_blocks=4),
        script(rng, "4 blocks of 4: two victims, one after the other", two_go, num_blocks=4),
        script(rng, "5 blocks, budget 5: a prompt of 16 in chunks, nobody need go", chunks,
               num_blocks=5, max_num_batched_tokens=5),
        script(rng, "blocks of 1, 9 of them", [request("a", 3, 6), request("b", 2, 6)],
               num_blocks=9, block_size=1),
    ]  # fmt: skip


def recompute(rng: random.Random) -> Sequence[Case]:
    """A victim computes its prompt and its outputs again, but for what is hit."""
    on = {"enable_prefix_caching": True, "num_blocks": 6}
    common = [rng.randrange(VOCAB) for _ in range(8)]
    shared = [request("a", common, 9), request("b", [*common, 1, 2], 8)]
    return [
        script(rng, "6 blocks: the victim finds some of its own blocks again",
               [request(name, 7, 6) for name in "abc"], **on),
        script(rng, "6 blocks: the victim shares blocks with a", shared, **on),
        script(rng, "4 blocks, budget 5: the victim computes again in chunks",
               [request("a", 6, 6), request("b", 6, 6)], num_blocks=4, max_num_batched_tokens=5),
        script(rng, "chunked prefill off: all of it again in one step",
               [request("a", 6, 6), request("b", 6, 6)], num_blocks=4, max_model_len=24,
               max_num_batched_tokens=24, enable_chunked_prefill=False),
    ]  # fmt: skip


def reserve(rng: random.Random) -> Sequence[Case]:
    """The head of the queue waits until all its known tokens fit."""
    queue = [request("a", 8, 3), request("b", 12, 3, step=1), request("c", 4, 3, step=1)]
    chunks = [request("a", 6, 12), request("b", 5, 12), request("long", 24, 2, step=1)]
    marked = [request("a", 9, 8), request("b", 9, 3, step=1), request("c", 2, 2, step=1)]
    half = [rng.randrange(VOCAB) for _ in range(8)]
    revived = [request("a", half, 1), request("b", 9, 5, step=1),
               request("c", [*half, 5, 6, 7], 2, step=1)]  # fmt: skip
    return [
        script(rng, "4 blocks: a prompt of 12 does not fit beside a, one of 4 would", queue,
               num_blocks=4),
        script(rng, "8 blocks, budget 6: a prompt of 24 would be admitted chunk by chunk", chunks,
               num_blocks=8, max_num_batched_tokens=6),
        script(rng, "8 blocks, watermark of 2 blocks", marked, num_blocks=8, watermark=0.25),
        script(rng, "watermark of all blocks but one: a request alone needs none",
               [request("a", 9, 2)], num_blocks=4, watermark=0.9),
        script(rng, "5 blocks: c hits blocks of a that are free, and taking them costs blocks",
               revived, num_blocks=5, enable_prefix_caching=True),
    ]  # fmt: skip


def capacity(rng: random.Random) -> Sequence[Case]:
    """What outgrows the pool ends; a prompt that just fits is served."""
    prompt = [rng.randrange(VOCAB) for _ in range(4)]
    longer = [*prompt, *[rng.randrange(VOCAB) for _ in range(8)]]
    return [
        script(rng, "3 blocks of 4: a prompt of 7, 50 outputs wanted", [request("a", 7, 50)],
               num_blocks=3),
        script(rng, "3 blocks: beside one that shares its first block",
               [request("a", prompt, 3), request("b", longer, 3)], num_blocks=3,
               enable_prefix_caching=True),
        script(rng, "4 blocks: a prompt of 15, 1 output", [request("a", 15, 1)], num_blocks=4),
        script(rng, "4 blocks: two that both want more than the pool", [request("a", 5, 40),
               request("b", 6, 40)], num_blocks=4),
    ]  # fmt: skip


def tight(rng: random.Random) -> Sequence[Case]:
    cases = []
    for number in range(10):
        cases.append(
            random_script(rng, num_blocks=rng.randint(10, 14),
                          max_num_batched_tokens=rng.choice([5, 9, 16, 64]),
                          max_num_seqs=rng.choice([3, 8]),
                          long_prefill_token_threshold=rng.choice([0, 0, 4]),
                          watermark=rng.choice([0.0, 0.0, 0.2]),
                          enable_prefix_caching=number % 2 == 0)
        )  # fmt: skip
    return cases


RANDOM = contract("random", "random requests, a pool that is too small", tight)
EXERCISE = Details(
    checks=(
        contract("victims", "the request admitted last goes, nobody goes without need", victims),
        contract("recompute", "a victim keeps its outputs and computes again", recompute),
        contract("reserve", "the head waits until all its known tokens fit", reserve),
        contract("capacity", "who outgrows the pool ends with capacity", capacity),
        RANDOM,
        vllm_schedule("04_preempt_no_cache", "06_prefix_shared"),
        reference_schedule(RANDOM),
        *inside_the_engine(num_blocks=14, budget=12),
        engine_checks.smollm2_check(),
    ),
    hints=(
        "Three requests run, the pool is full, and the first of them needs a block. Whose blocks "
        "does it get, and what of that request is still known afterwards, what is not?",
        "Looping over a list that shrinks under your hands skips somebody. And the one that needs "
        "a block may be the last one itself: then it is the victim, and gets no chunk. After the "
        "pass, everybody in `running` has a chunk, and nobody in `waiting` "
        "has blocks or computed tokens. Admission is undone soon if it only asks for "
        "the blocks of the first chunk.",
        "go over a copy of those that run; skip who has been thrown out meanwhile\n"
        "  as long as the blocks don't suffice:\n"
        "    take the last one out, blocks back, zero computed, to the front of the queue, noted\n"
        "    was it this one? then go on with the next one\n"
        "anybody thrown out: admit nobody in this step\n"
        "admit: blocks of all known tokens, less those hit, plus hit ones that are free,\n"
        "  plus the watermark if anybody runs: more than the free ones? the head waits\n"
        "update: all its tokens would need more blocks than there are: that is its end",
    ),
    mistakes=tuple(
        Mistake(name, {"Scheduler": f"judge.mistakes.scheduler_preempt:{kind}"})
        for name, kind in (
            ("the victim keeps its computed tokens", "ComputedKept"),
            ("the victim keeps its computed tokens", "CountKept"),
            ("the victim is the first of the running requests", "FirstGoes"),
            ("the victim is the first of the running requests", "FirstGoesChunkStays"),
            ("the victim is whoever needs a block", "ItselfGoes"),
            ("can_grow is asked about all known tokens, not those of the chunk", "AsksForAll"),
            ("several victims of one step wait in the wrong order", "VictimsInOrder"),
            ("the victim goes to the back of the queue", "ToTheBack"),
            ("the victim loses its outputs", "OutputsLost"),
            ("the victim loses its outputs", "OutputsCleared"),
            ("the victim keeps its blocks", "BlocksKept"),
            ("admission asks for the blocks of the first chunk only", "NoReservation"),
            ("hit blocks that are free are not counted at admission", "FreeHitsForNothing"),
            ("hit blocks are paid for again at admission", "HitsPaidTwice"),
            ("the watermark is not looked at", "NoWatermark"),
            ("the watermark is kept free for a request alone, too", "WatermarkAlways"),
            ("two are preempted where one is enough", "OneMore"),
            ("somebody is skipped because the list shrinks in the loop", "SkipsOne"),
            ("nobody ends with capacity", "NoCapacity"),
            ("capacity is measured one token too early", "CapacityEarly"),
            ("the pass ends with the first preemption", "PassEnds"),
            ("a resumed request is listed as new", "ResumedIsNew"),
        )
    ),
)
