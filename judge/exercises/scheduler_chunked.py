"""Owns the checks, hints and known mistakes of `scheduler.chunked`: roomy pool, small budget."""

from __future__ import annotations

import random
from collections.abc import Sequence

from judge.api import Case, Details, Mistake
from judge.scheduler_cases import VOCAB, random_script, request, script, stopping
from judge.scheduler_checks import contract, inside_the_engine, vllm_schedule


def alone(rng: random.Random) -> Sequence[Case]:
    """One prompt, cut; only its last chunk samples."""
    budget, chunks = rng.randint(3, 6), rng.randint(2, 4)
    length, rest = budget * chunks, rng.randint(1, budget - 1)
    limit = {"max_num_batched_tokens": budget}
    return [
        script(rng, f"budget {budget}, a prompt of {length}", [request("a", length, 3)], **limit),
        script(rng, f"budget {budget}, a prompt of {length + rest}",
               [request("a", length + rest, 3)], **limit),
        script(rng, f"budget {budget}, a prompt of {budget + 1}, 1 output",
               [request("a", budget + 1, 1)], **limit),
        stopping(script(rng, f"budget {budget}, a prompt of {length}, stop as output 1",
                        [request("a", length, 3)], **limit), "a", 1),
        script(rng, "budget 1", [request("a", 4, 2)], max_num_batched_tokens=1),
    ]  # fmt: skip


def beside(rng: random.Random) -> Sequence[Case]:
    """A long prompt arrives while others decode."""
    decodes = [request("d0", 1, 12), request("d1", 1, 12)]
    shorts = [request(f"s{i}", 12, 12) for i in range(3)]
    long = rng.randint(90, 141)
    return [
        script(rng, "a prompt of 10 beside two decodes, budget 6",
               [*decodes, request("long", 10, 2, step=1)], max_num_batched_tokens=6),
        script(rng, "a prompt of 10 beside two decodes, budget 12",
               [*decodes, request("long", 10, 2, step=1)], max_num_batched_tokens=12),
        script(rng, f"a prompt of {long} behind three short ones, budget 64",
               [*shorts, request("long", long, 6, step=3)], max_num_batched_tokens=64,
               max_model_len=256),
        script(rng, "three decodes, a prompt of 9, budget 3: no token is left for it",
               [*[request(f"d{i}", 1, 6) for i in range(3)], request("long", 9, 2, step=1)],
               max_num_batched_tokens=3),
    ]  # fmt: skip


def several(rng: random.Random) -> Sequence[Case]:
    """More than one prompt in pieces; budget 1024 with prompts of 800, 800, 10 and 10."""
    sizes = [rng.randint(8, 16) for _ in range(3)]
    wide = {"max_num_batched_tokens": 1024, "max_num_seqs": 3, "max_model_len": 1024,
            "num_blocks": 200, "block_size": 16}  # fmt: skip
    big = [request(f"r{i}", size, 5) for i, size in enumerate((800, 800, 10, 10))]
    gone = [request("a", 2, 2), request("b", 2, 8), request("c", 2, 8), request("d", 11, 3)]
    return [
        script(rng, f"budget 7, prompts of {sizes}", [request(f"r{i}", size, 4)
               for i, size in enumerate(sizes)], max_num_batched_tokens=7),
        script(rng, "budget 1024, three may run: prompts of 800, 800, 10 and 10", big, **wide),
        script(rng, "budget 2: two decodes fill it, the others wait until one ends", gone,
               max_num_batched_tokens=2),
    ]  # fmt: skip


def threshold(rng: random.Random) -> Sequence[Case]:
    """Nobody gets more than the threshold in a step, unless nobody else is there."""
    cap = rng.randint(3, 5)
    options = {"max_num_batched_tokens": 16, "long_prefill_token_threshold": cap}
    two = [request("a", 14, 3), request("b", 12, 3)]
    return [
        script(rng, f"threshold {cap}, budget 16: prompts of 14 and 12 together", two, **options),
        script(rng, f"threshold {cap}: a prompt of 14 alone", [request("a", 14, 3)], **options),
        script(rng, f"threshold {cap}: alone at first, then not", [request("a", 20, 3),
               request("b", 9, 2, step=1)], **options),
        script(rng, f"threshold {cap}: one runs, and one waits for the only seat",
               [request("a", 13, 3), request("b", 9, 2)], max_num_seqs=1, **options),
    ]  # fmt: skip


def switched_off(rng: random.Random) -> Sequence[Case]:
    """Without chunked prefill a prompt is admitted whole or not at all."""
    wide = {"max_num_batched_tokens": 1024, "max_num_seqs": 3, "max_model_len": 1024,
            "block_size": 16, "enable_chunked_prefill": False}  # fmt: skip
    big = [request(f"r{i}", size, 5) for i, size in enumerate((800, 800, 10, 10))]
    sizes = [rng.randint(5, 14) for _ in range(5)]
    return [
        script(rng, "off, budget 1024: prompts of 800, 800, 10 and 10", big, **wide),
        script(rng, f"off, budget 16: prompts of {sizes}", [request(f"r{i}", size, 3)
               for i, size in enumerate(sizes)], max_model_len=16, max_num_batched_tokens=16,
               enable_chunked_prefill=False),
    ]  # fmt: skip


def hits(rng: random.Random) -> Sequence[Case]:
    """The second of two equal prompts hits what the chunks of the first have filled."""
    common = [rng.randrange(VOCAB) for _ in range(20)]
    on = {"enable_prefix_caching": True, "max_num_batched_tokens": 8}
    return [
        script(rng, "budget 8: a prompt of 20, the same one step later",
               [request("a", common, 2), request("b", common, 2, step=1)], **on),
        script(rng, "budget 8: a prompt of 20, later one that goes on after 17 of its tokens",
               [request("a", common, 2), request("b", [*common[:17], *common], 2, step=4)], **on),
        script(rng, "threshold 4: the second comes while the first is in pieces",
               [request("a", common, 2), request("c", 9, 2), request("b", common, 2, step=1)],
               enable_prefix_caching=True, long_prefill_token_threshold=4),
    ]  # fmt: skip


def roomy(rng: random.Random) -> Sequence[Case]:
    cases = []
    for number in range(8):
        cases.append(
            random_script(rng, num_blocks=200, max_num_batched_tokens=rng.choice([3, 5, 9, 16]),
                          max_num_seqs=rng.choice([2, 4, 8]),
                          long_prefill_token_threshold=rng.choice([0, 0, 4]),
                          enable_prefix_caching=number % 2 == 0)
        )  # fmt: skip
    return cases


EXERCISE = Details(
    checks=(
        contract("alone", "a prompt alone, cut by the budget; its last chunk samples", alone),
        contract("beside", "decodes go on, a long prompt gets what is left", beside),
        contract("several", "several prompts in pieces, in their order", several),
        contract("threshold", "the threshold cuts too, unless one is alone", threshold),
        contract("off", "with chunked prefill off, prompts stay whole", switched_off),
        contract("hits", "chunks and hits together", hits),
        contract("random", "random requests, small budgets", roomy),
        vllm_schedule(
            "02_chunks_budget6",
            "03_chunks_budget12",
            "09_handbook_long_prompt",
            "18_long_prefill_threshold",
            "17_no_chunked_prefill",
        ),
        *inside_the_engine(num_blocks=200, budget=9),
    ),
    hints=(
        "Two requests decode and the budget is 6. Which tokens of a prompt of 10 can this step "
        "compute, and what do the scores of the last of them predict: something new, or something "
        "that you know already?",
        "Nothing tells a half computed prompt from a decode: both run, both have fewer computed "
        "tokens than known ones, and both get what is missing, or what the budget still allows. "
        "Only a chunk that ends at the last known token has a next token to sample.",
        "what is missing, then cut: by the threshold (unless one request is all there is), then by "
        "what is left of the budget\n"
        "the same cut for those that run and for the head of the queue\n"
        "chunks switched off, and the cut would leave something: the head waits\n"
        "grow: for what is computed after this chunk, not for all of the prompt\n"
        "update: a chunk that stops short of the end only moves the count",
    ),
    mistakes=tuple(
        Mistake(name, {"Scheduler": f"judge.mistakes.scheduler_chunked:{kind}"})
        for name, kind in (
            ("a chunk that is not the last one samples", "AlwaysSamples"),
            ("prompts are admitted whole or not at all, though they may be cut", "NeverCuts"),
            ("the budget is not kept when a prompt is longer than it", "WholeOverBudget"),
            ("waiting prompts take the budget before the running requests", "PromptsFirst"),
            ("only one prompt at a time is computed", "OnePrompt"),
            ("the threshold counts only at admission", "ThresholdAtAdmission"),
            ("the threshold is not looked at", "NoThreshold"),
            ("the threshold holds for a request alone, too", "ThresholdAlways"),
            ("who waits is not counted when the threshold asks who is there", "ForgetsWaiting"),
            ("prompts are cut although chunked prefill is off", "CutsAlways"),
            ("blocks for all known tokens are taken with the first chunk", "GrowsForAll"),
            ("alone is who runs alone, though others wait", "AloneAmongRunning"),
            ("a cut prompt starts again from its beginning", "StartsAgain"),
        )
    ),
)
