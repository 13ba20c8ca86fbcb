"""Owns the checks, hints and known mistakes of `life.prefill-chunks`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.wire import Raised

CALL = "judge.execute:call_function"
HANG = "endless loop where the budget only covers the decodes"


def case(prompt: Any, decodes: Any, budget: Any, **notes: Any) -> Case:
    label = f"prefill_chunks(prompt_tokens={prompt!r}, num_decodes={decodes!r}, budget={budget!r})"
    payload = {"function": "prefill_chunks", "args": [prompt, decodes, budget]}
    return Case(label, payload, notes)


def worked_examples(rng: random.Random) -> Sequence[Case]:
    return [case(10, 2, 6), case(10, 2, 12), case(7, 0, 3), case(1, 0, 1), case(1, 5, 64)]


def exact_multiples(rng: random.Random) -> Sequence[Case]:
    """Prompts that the room fills exactly, and one token more and less."""
    cases = []
    for _ in range(8):
        room, decodes, times = rng.randint(2, 40), rng.randint(0, 20), rng.randint(1, 6)
        cases += [case(room * times + extra, decodes, room + decodes) for extra in (0, 1, -1)]
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(40):
        decodes = rng.choice([0, 1, rng.randint(2, 200)])
        budget = decodes + rng.choice([1, 2, rng.randint(3, 900)])
        cases.append(case(rng.randint(1, 3000), decodes, budget))
    return cases


def engine_cases(rng: random.Random) -> Sequence[Case]:
    """The chunks that the engine's own scheduler makes of the same situation."""
    cases = []
    for _ in range(6):
        decodes, room, prompt = rng.randint(0, 6), rng.randint(1, 20), rng.randint(1, 70)
        chunks = scheduled_chunks(prompt, decodes, room + decodes)
        cases.append(case(prompt, decodes, room + decodes, chunks=chunks))
    return cases


def scheduled_chunks(prompt: int, decodes: int, budget: int) -> list[int]:
    """Run the real scheduler: decodes that outlive a prompt which arrives beside them."""
    from judge.engine_run import MadeUpTokens
    from mini_engine.engine import LLMEngine
    from mini_engine.sampling_params import SamplingParams

    engine = LLMEngine(
        runner=MadeUpTokens(0, vocab_size=100),
        block_size=16,
        num_blocks=64,
        max_model_len=512,
        max_num_batched_tokens=budget,
    )
    for _ in range(decodes):
        engine.add_request([1], SamplingParams(max_tokens=200))
    while engine.scheduler.waiting:  # a budget of decodes + 1 admits them over several steps
        engine.step()
    engine.add_request(list(range(prompt)), SamplingParams(max_tokens=1), request_id="long")
    while any(
        r.request_id == "long" for r in (*engine.scheduler.waiting, *engine.scheduler.running)
    ):
        engine.step()
    return [r.scheduled["long"] for r in engine.trace if "long" in r.scheduled]


def refused(rng: random.Random) -> Sequence[Case]:
    n = rng.randint(3, 90)
    stuck = [case(10, n, n - 1), case(10, n, 1)]
    bounds = [case(0, 2, 6), case(-n, 2, 6), case(10, -1, 6), case(10, 0, 0), case(10, 0, -n)]
    return [*stuck, *bounds, case(10, n, n, if_timeout=HANG)]


def wrong_types(rng: random.Random) -> Sequence[Case]:
    return [
        case(10.0, 2, 6), case(10, 2.0, 6), case(10, 2, 6.0), case("10", 2, 6), case(10, 2, None),
        case(True, 0, 6), case(10, True, 6), case(10, 0, True),
    ]  # fmt: skip


def stuck_numbers(rng: random.Random) -> Sequence[Case]:
    pairs = [(rng.randint(50, 70), rng.randint(11, 40)) for _ in range(3)]
    return [case(10, decodes, budget) for decodes, budget in pairs]


def same_as_scheduler(case: Case, expected: Any, got: Any) -> Difference | None:
    return compare.function_answer(case, {"value": list(case.notes["chunks"])}, got)


def names_the_numbers(case: Case, expected: Any, got: Any) -> Difference | None:
    """The message of the ValueError must hold the budget and the number of decodes."""
    found = compare.function_answer(case, expected, got)
    if found is not None:
        return found
    error = got["value"]
    assert isinstance(error, Raised)
    _, decodes, budget = case.payload["args"]
    missing = [str(number) for number in (budget, decodes) if str(number) not in error.message]
    if not missing:
        return None
    wanted = f"expected a message with {' and '.join(missing)} in it, got {error.message!r}"
    return Difference((case.label, wanted), "wrong", error.frames)


def _check(name: str, title: str, cases: Any, compare_with: Any = compare.function_answer) -> Check:
    return Check(name, title, CALL, cases, compare_with)


EXERCISE = Details(
    checks=(
        _check("worked-examples", "small cases that can be done by hand", worked_examples),
        _check("multiples", "prompts that fill whole steps, one more and one less",
        exact_multiples), _check("random", "random prompts, decodes and budgets", random_cases),
        _check("scheduler", "the same chunks as the engine's scheduler", engine_cases,
               same_as_scheduler),
        _check("refuses", "what can never finish or makes no sense is a ValueError", refused),
        _check("types", "anything but an int is a TypeError", wrong_types),
        _check("error-text", "the ValueError names budget and decodes", stuck_numbers,
               names_the_numbers),
    ),
    hints=(
        "In the step in which the prompt's first chunk runs, who else needs tokens of the budget, "
        "and how many each? Does that change from step to step?",
        "Every step has the same room for the prompt: the budget without one token per decode. All "
        "chunks fill that room, except the last, which is what is left and never 0. The chunks "
        "add up to the prompt. Without room nothing ever gets done, so say so instead of looping.",
        "check the three arguments (type first, then range)\n"
        "room is what the decodes leave of the budget; no room: ValueError with both numbers\n"
        "as long as tokens of the prompt remain:\n"
        "    this step takes the smaller of room and remaining tokens",
    ),
    mistakes=tuple(
        Mistake(name, {"prefill_chunks": f"judge.mistakes.life:{function}"})
        for name, function in (
            ("decodes take nothing of the budget", "decodes_are_free"),
            ("decodes are counted in the first step only", "decodes_in_first_step"),
            ("chunks of equal size instead of full steps", "equal_chunks"),
            ("the short chunk comes first", "short_chunk_first"),
            ("the last chunk is not cut to what is left", "last_chunk_full"),
            ("a chunk of 0 at the end", "zero_chunk"),
            ("the rest of the prompt is dropped", "rest_dropped"),
            ("one token of the budget kept for the prompt's own sample", "keeps_one"),
            ("bool counts as int", "takes_bools"),
            ("no check of types", "takes_anything"),
        )
    ),
)  # fmt: skip
