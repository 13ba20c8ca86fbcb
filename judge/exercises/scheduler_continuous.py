"""Owns the checks, hints and known mistakes of `scheduler.continuous`: a roomy pool, no chunks."""

from __future__ import annotations

import random
from collections.abc import Sequence

from judge.api import Case, Details, Mistake
from judge.scheduler_cases import VOCAB, random_script, request, script, stopping
from judge.scheduler_checks import contract, inside_the_engine, vllm_schedule

WHOLE = {"enable_chunked_prefill": False}


def alone(rng: random.Random) -> Sequence[Case]:
    """One request, to each of its possible ends."""
    length = rng.randint(3, 9)
    one, few = [request("a", length, 1)], [request("a", length, 4)]
    limit = {"max_model_len": length + 3, "max_num_batched_tokens": length + 3}
    return [
        script(rng, f"a prompt of {length} tokens, 1 output", one, **WHOLE),
        script(rng, f"a prompt of {length} tokens, 4 outputs", few, **WHOLE),
        stopping(script(rng, "a stop token as output 2 of 4", few, **WHOLE), "a", 2),
        stopping(script(rng, "a stop token as the last output allowed", few, **WHOLE), "a", 4),
        script(rng, f"max_model_len {length + 3}, a prompt of {length}, 9 outputs wanted",
               [request("a", length, 9)], **WHOLE, **limit),
    ]  # fmt: skip


def refused(rng: random.Random) -> Sequence[Case]:
    """What can never be served, beside what just can."""
    longest = rng.randint(12, 20)
    limit = {"max_model_len": longest, "max_num_batched_tokens": longest, **WHOLE}
    small = {"num_blocks": 3, "max_model_len": 40, "max_num_batched_tokens": 40, **WHOLE}
    return [
        script(rng, f"max_model_len {longest}, prompts one below, at, and 3 above it",
               [request("a", longest - 1, 5), request("b", longest, 1),
                request("c", longest + 3, 1)], **limit),
        script(rng, "prompts of 11 and 13 in a pool of 3 blocks of 4",
               [request("a", 11, 1), request("b", 13, 1, step=2)], **small),
        script(rng, "an empty prompt", [request("a", 0, 3), request("b", 2, 2)], **WHOLE),
        script(rng, "an id that is being served, and that id again once it is free",
               [request("a", 5, 3), request("a", 4, 2, step=1), request("a", 6, 2, step=6)],
               **WHOLE),
    ]  # fmt: skip


def together(rng: random.Random) -> Sequence[Case]:
    """Requests join those that run and leave when they are done; seats are limited."""
    five = [request(f"r{i}", 5, 3) for i in range(6)]
    three = [request(name, 3, 2) for name in "abc"]
    long, short = rng.randint(9, 12), rng.randint(2, 3)
    joins = [request("a", 6, long), request("b", 4, short, step=2), request("c", 7, 4, step=3)]
    mixed = [request(f"r{i}", rng.randint(2, 9), rng.randint(1, 8)) for i in range(5)]
    return [
        script(rng, "b and c join while a decodes", joins, **WHOLE),
        script(rng, "six requests of 5 tokens, two may run", five, max_num_seqs=2, **WHOLE),
        script(rng, "three prompts of 3, two may run", three, max_num_seqs=2, **WHOLE),
        script(rng, "five requests of different lengths, three may run", mixed, max_num_seqs=3,
               **WHOLE),
        script(rng, "one may run", mixed[:3], max_num_seqs=1, **WHOLE),
    ]  # fmt: skip


def head(rng: random.Random) -> Sequence[Case]:
    """The head of the queue does not fit into what is left of the budget; others would."""
    big = rng.randint(10, 13)
    limit = {"max_model_len": 16, "max_num_batched_tokens": 16, **WHOLE}
    queue = [request("a", big, 3), request("b", big + 1, 3), request("c", 2, 3), request("d", 3, 2)]
    exact = [request("a", 6, 3), request("b", 10, 3), request("c", 1, 2)]
    many = [request(f"r{i}", 7, 5) for i in range(5)]
    late = [request("a", 3, 9), request("b", 3, 9), request("c", 15, 1, step=2),
            request("d", 1, 2, step=2)]  # fmt: skip
    return [
        script(rng, f"budget 16: prompts of {big}, {big + 1}, 2 and 3", queue, **limit),
        script(rng, "budget 16: prompts of 6 and 10 fill it", exact, **limit),
        script(rng, "budget 16: five prompts of 7", many, **limit),
        script(rng, "budget 16: a prompt of 15 behind two decodes, and one of 1", late, **limit),
    ]


def hits(rng: random.Random) -> Sequence[Case]:
    """Some blocks of a prompt hold already what it needs."""
    on = {"enable_prefix_caching": True, **WHOLE}
    common = [rng.randrange(VOCAB) for _ in range(9)]
    longer = [request("a", common, 3), request("b", [*common, 7, 7], 3, step=1)]
    same = [request("a", common, 2), request("b", common, 2)]
    again = [request("a", common[:8], 2), request("b", common[:8], 2, step=4)]
    return [
        script(rng, "b begins with the 9 tokens of a, blocks of 4", longer, **on),
        script(rng, "two equal prompts of 9 in one step", same, **on),
        script(rng, "a prompt of 8, two full blocks, once more after its end", again, **on),
    ]


def roomy(rng: random.Random) -> Sequence[Case]:
    cases = []
    for number in range(6):
        cases.append(
            random_script(rng, num_blocks=200, max_num_batched_tokens=rng.choice([40, 48, 200]),
                          max_num_seqs=rng.choice([2, 3, 8]),
                          enable_prefix_caching=number % 2 == 0, **WHOLE)
        )  # fmt: skip
    return cases


EXERCISE = Details(
    checks=(
        contract("alone", "a request alone: its prompt, its decodes, its end", alone),
        contract("refused", "what can never be served is refused, with the numbers", refused),
        contract("together", "requests join and leave at any step; seats are limited", together),
        contract("head", "nobody overtakes the head of the queue, the budget is kept", head),
        contract("hits", "tokens that blocks hold already are not computed again", hits),
        contract("random", "random requests that arrive over time", roomy),
        vllm_schedule(
            "01_single",
            "08_max_num_seqs",
            "17_no_chunked_prefill",
            "20_max_model_len",
            "23_stop_token",
        ),
        *inside_the_engine(num_blocks=200, budget=64, **WHOLE),
    ),
    hints=(
        "Write down, for one step, who is offered tokens first and who next. When a request has "
        "just ended, which of your lists, blocks and counts still know it?",
        "Between two steps every running request has num_computed == num_tokens - 1: all but the "
        "token sampled last. `schedule` only plans; num_computed moves in `update`, after the "
        "model ran. A request is in exactly one of the two lists until it ends.",
        "schedule: say that a step begins; left = the budget\n"
        "  for each running request: its chunk is what is missing; get blocks for all of it\n"
        "  while somebody waits, seats and budget are left:\n"
        "    look at the head only; what is missing after its hit? more than left: stop\n"
        "    blocks lack: stop; else move it over, admit it with its hit, set num_computed to the\n"
        "    tokens of the hit (admit doesn't), give it its blocks, note it\n"
        "update: for each chunk: move the count; add the token; a reason to end?\n"
        "  then out of the list, blocks back, reason set, into the answer",
    ),
    mistakes=tuple(
        Mistake(name, {"Scheduler": f"judge.mistakes.scheduler_continuous:{kind}"})
        for name, kind in (
            ("nobody joins before all that run have ended (static batching)", "Static"),
            ("one request at a time", "OneAtATime"),
            ("the cap counts who is admitted in a step, not who runs", "CapPerStep"),
            ("one more runs than max_num_seqs", "SeatTooMany"),
            ("one less runs than max_num_seqs", "SeatTooFew"),
            ("somebody overtakes the head of the queue", "Overtakes"),
            ("waiting requests come before the running ones", "WaitingFirst"),
            ("the newest waiting request is admitted first", "NewestFirst"),
            ("the budget counts requests instead of tokens", "CountsRequests"),
            ("running requests are not counted against the budget", "DecodesAreFree"),
            ("a request gets one token more than max_tokens", "OneTokenMore"),
            ("a request ends one token before max_tokens", "OneTokenLess"),
            ("stop tokens are not looked at", "DeafToStop"),
            ("the stop token is not kept", "StopDropped"),
            ("length wins over stop", "LengthFirst"),
            ("max_model_len does not end a request", "NoLimit"),
            ("the sampled token counts as computed", "CountsSampled"),
            ("a request that ended keeps its blocks", "KeepsBlocks"),
            ("the hit is computed again", "IgnoresHit"),
            ("what blocks hold of a prompt is never looked up", "NeverLooks"),
            ("only the first block of a hit is used", "PartOfHit"),
            ("num_computed is not set to the hit at admission", "CountNotSet"),
            ("num_computed is not set to the hit at admission", "CountNotSetAndAdds"),
            ("num_computed is not set to the hit at admission", "CountNotSetNorSamples"),
            ("a prompt of max_model_len tokens is accepted", "AcceptsFullLength"),
            ("a prompt larger than the pool is accepted", "AcceptsTooLarge"),
            ("an empty prompt is accepted", "AcceptsEmpty"),
            ("an id that is being served is accepted again", "AcceptsTwice"),
        )
    ),
)
