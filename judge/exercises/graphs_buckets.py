"""Owns the checks, hints and known mistakes of `graphs.buckets`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from judge import compare
from judge.api import Case, Check, Details, Difference, Mistake
from judge.solutions.graphs import bucket_sizes
from judge.wire import Raised

CALL = "judge.execute:call_function"


def case(batch_sizes: list[int], max_graphs: int, max_num_seqs: int) -> Case:
    shown = str(batch_sizes)
    if len(shown) > 120:
        shown = f"[{', '.join(map(str, batch_sizes[:12]))}, ... {len(batch_sizes)} steps]"
    label = f"bucket_sizes({shown}, {max_graphs}, {max_num_seqs})"
    args = [batch_sizes, max_graphs, max_num_seqs]
    return Case(label, {"function": "bucket_sizes", "args": args})


def by_hand(rng: random.Random) -> Sequence[Case]:
    return [
        case([1, 1, 1, 5, 6], 2, 8),
        case([1, 1, 1, 5, 6], 3, 8),
        case([3], 2, 4),
        case([4, 4, 3, 2, 1], 2, 4),
        case([2, 7, 7, 7, 8], 2, 8),
        case([1], 1, 1),
    ]


def counted(rng: random.Random) -> Sequence[Case]:
    """A common size beside rare ones: how often a size occurs decides."""
    cases = []
    for _ in range(8):
        most = rng.randint(12, 40)
        common, *rare = rng.sample(range(1, most), 4)
        sizes = [common] * rng.randint(20, 60) + rare
        rng.shuffle(sizes)
        cases.append(case(sizes, rng.randint(2, 3), most))
    return cases


def rare_but_far(rng: random.Random) -> Sequence[Case]:
    """Sizes side by side are common; one far below all is not, and still worth a graph."""
    cases = []
    for _ in range(6):
        most = rng.randint(30, 64)
        near = [most - 1] * 9 + [most - 2] * 8 + [most - 3] * 7
        sizes = near + [rng.randint(1, 4)] * rng.randint(2, 3)
        rng.shuffle(sizes)
        cases.append(case(sizes, 2, most))
    return cases


def no_full_step(rng: random.Random) -> Sequence[Case]:
    """Traces whose fullest step has fewer requests than could come; one has no step at all."""
    cases = [case([], 3, rng.randint(2, 9)), case([], 1, 1)]
    for _ in range(6):
        most = rng.randint(8, 64)
        sizes = [rng.randint(1, most // 2) for _ in range(rng.randint(3, 30))]
        cases.append(case(sizes, rng.randint(1, 4), most))
    return cases


def graphs_enough(rng: random.Random) -> Sequence[Case]:
    """One graph, and as many as there are sizes, one less and more."""
    cases = []
    for _ in range(4):
        most = rng.randint(5, 20)
        different = rng.sample(range(1, most), rng.randint(2, 4))
        sizes = [rng.choice(different) for _ in range(10)] + different
        for graphs in (1, len(different), len(different) + 1, len(different) + 5):
            cases.append(case(sizes, graphs, most))
    return cases


def random_cases(rng: random.Random) -> Sequence[Case]:
    cases = []
    for _ in range(30):
        most = rng.randint(1, 24)
        sizes = [rng.randint(1, most) for _ in range(rng.randint(1, 25))]
        cases.append(case(sizes, rng.randint(1, 5), most))
    return cases


def real_traces(rng: random.Random) -> Sequence[Case]:
    """Decode steps that the engine's own scheduler made of requests that come and go."""
    return [case(scheduled_sizes(rng, 12), 3, 12)]


def scheduled_sizes(rng: random.Random, most: int) -> list[int]:
    from judge.engine_run import MadeUpTokens
    from mini_engine.engine import LLMEngine
    from mini_engine.sampling_params import SamplingParams

    runner = MadeUpTokens(rng.randrange(1000), vocab_size=100)
    engine = LLMEngine(runner=runner, num_blocks=400, max_model_len=200, max_num_seqs=most)
    arrivals = sorted(rng.randint(0, 40) for _ in range(2 * most))
    step = 0
    while arrivals or engine.has_unfinished:
        while arrivals and arrivals[0] <= step:
            arrivals.pop(0)
            length, outputs = rng.randint(1, 30), rng.choice([3, 10, rng.randint(20, 40)])
            engine.add_request([1] * length, SamplingParams(outputs, ignore_eos=True))
        engine.step()
        step += 1
    steps = [list(record.scheduled.values()) for record in engine.trace]
    return [len(tokens) for tokens in steps if tokens and max(tokens) == 1]


def large(rng: random.Random) -> Sequence[Case]:
    """Too many lists to try them all."""
    sizes = [rng.randint(1, 40) for _ in range(400)] + list(range(1, 41))
    rng.shuffle(sizes)
    return [case(sizes, 8, 40)]


def refused(rng: random.Random) -> Sequence[Case]:
    n = rng.randint(2, 50)
    return [
        case([1, 1], 0, 2), case([1], -n, 2), case([1], 1, 0), case([], 2, -n),
        case([1, n + 1], 2, n), case([0, 1], 2, n), case([1, -1, 1], 2, n),
    ]  # fmt: skip


def problem(value: Any, max_graphs: int, max_num_seqs: int) -> str | None:
    """Why no engine could take these sizes, or None."""
    if type(value) is not list or any(type(size) is not int for size in value):
        return "a list of ints is asked for"
    if any(a >= b for a, b in pairwise(value)):
        return "the sizes must ascend, none twice"
    if not value or value[-1] != max_num_seqs:
        return f"the last size must be max_num_seqs: a step of {max_num_seqs} requests can come"
    if value[0] < 1:
        return f"no step has {value[0]} requests"
    if len(value) > max_graphs:
        graphs = compare.counted(max_graphs, "graph")
        return f"these are {len(value)} sizes, but {graphs} may be captured"
    return None


def wasted(sizes: Sequence[int], batch_sizes: Sequence[int]) -> int:
    """Empty rows of all steps together."""
    return sum(min(size for size in sizes if size >= n) - n for n in batch_sizes)


def one_form(case: Case, answer: Any) -> Any:
    """A list that is as good as the reference's becomes the reference's."""
    batch_sizes, max_graphs, max_num_seqs = case.payload["args"]
    value = answer["value"]
    if isinstance(value, Raised) or problem(value, max_graphs, max_num_seqs) is not None:
        return answer
    best = bucket_sizes(batch_sizes, max_graphs, max_num_seqs)
    if wasted(value, batch_sizes) == wasted(best, batch_sizes):
        return {**answer, "value": best}
    return answer


def fewest_rows(case: Case, expected: Any, got: Any) -> Difference | None:
    """Compare, once both are in one form, and say how many rows too many are wasted."""
    found = compare.function_answer(case, expected, got)
    want: Any = expected["value"]
    have: Any = got.get("value") if isinstance(got, dict) else got
    if found is None or isinstance(want, Raised) or isinstance(have, Raised):
        return found
    batch_sizes, max_graphs, max_num_seqs = case.payload["args"]
    why = problem(have, max_graphs, max_num_seqs)
    if why is not None:
        return Difference((*found.lines, why), found.status, found.frames)
    if have == want:
        return found  # right, but the arguments are changed
    rows = compare.counted(wasted(want, batch_sizes), "row")
    lines = (
        case.label,
        f"{have} wastes {wasted(have, batch_sizes)} rows of padding",
        f"{want} wastes {rows}, the fewest",
    )
    return Difference(lines)


def _check(name: str, title: str, cases: Any) -> Check:
    return Check(name, title, CALL, cases, fewest_rows, normalize=one_form)


EXERCISE = Details(
    checks=(
        _check("by-hand", "small cases that can be done by hand", by_hand),
        _check("no-full-step", "max_num_seqs is a size, whatever the trace", no_full_step),
        _check("graphs", "one graph, and enough for every size", graphs_enough),
        _check("counted", "common sizes weigh more than rare ones", counted),
        _check("far", "a rare size far from the others may be worth a graph", rare_but_far),
        _check("random", "random traces", random_cases),
        _check("scheduler", "decode steps of the engine's scheduler", real_traces),
        Check("large", "hundreds of steps of 40 sizes", CALL, large, fewest_rows,
              normalize=one_form, limit_s=2.0),
        Check("refuses", "what makes no sense is a ValueError", CALL, refused,
              compare.function_answer),
    ),
    hints=(
        "Take the best list for a trace and change one size in it to a number that no step has. "
        "Can that waste fewer rows? And the largest size is given: which choice is left?",
        "Only sizes that occur, and max_num_seqs, are worth a graph. If the second largest graph "
        "has size s, then what is best for the steps of s and less does not depend on the larger "
        "steps: they all run in the largest one. So the same question comes again for a shorter "
        "list of sizes and one graph less.",
        "sort the different sizes, max_num_seqs with them; count the steps of each\n"
        "waste of a range of sizes that all run in its largest: from running sums\n"
        "table: for each size, the least waste of all steps up to it, it being the last graph\n"
        "begin with one graph; then, once for each further graph, for each size:\n"
        "    try every smaller size as the graph before it, keep the best\n"
        "read off the row of max_num_seqs, and remember the choices that led there",
    ),
    mistakes=tuple(
        Mistake(name, {"bucket_sizes": f"judge.mistakes.graphs:{function}"})
        for name, function in (
            ("max_num_seqs is left out where no step needs it", "largest_of_trace"),
            ("how often a size occurs is not counted", "each_size_once"),
            ("the most frequent sizes are taken", "most_frequent"),
            ("the sizes are spread evenly, whatever the trace", "evenly"),
            ("powers of two, whatever the trace", "powers"),
            ("the sizes split the steps into groups of equally many", "quantiles"),
            ("max_num_seqs comes on top of the graphs that are allowed", "one_on_top"),
            ("one graph less than allowed is used", "one_less"),
            ("the best next size is added again and again", "greedy"),
            ("padding is measured as a share of the bucket", "shares"),
            ("the sizes descend", "descending"),
            ("nothing is refused", "takes_anything"),
        )
    ),
)  # fmt: skip
