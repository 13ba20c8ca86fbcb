"""Owns the verdict on a run inside the engine: two passes, free-running and teacher-forced.

Free-running, the learner's engine goes on with its own tokens; a token that is not the reference's
is excused only inside the reference's tie band. If anything differs, the same workload runs again
with the reference's tokens put in the place of the sampled ones, and every output is compared, so
that one early divergence hides nothing; after an excused token this is the free-running pass too,
brought back in line. The learner's process could read those tokens: the second pass therefore
only adds failures. Where nothing differs, one pass is both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from judge import engine_report, tie_band
from judge.api import Ask, Case, Difference
from judge.compare import about_raised, show
from judge.engine_invariants import broken_invariant, leak
from judge.engine_report import Output, Words
from judge.passes import Pass, free_running, teacher_forced
from judge.sandbox import ChildFailed
from judge.schedule_table import first_difference, side_by_side
from judge.wire import Raised


def tokens_and_trace(case: Case, expected: Any, got: Any) -> Difference | None:
    """Contract: every request gets the reference's tokens, and the trace breaks no invariant.

    Compares these two answers only; where further runs are possible, `look` decides.
    """
    return _verdict(case, expected, got, None)


def look(case: Case, expected: Any, got: Any, ask: Ask) -> Difference | None:
    """The contract with both passes, and what can be found out about a failure."""
    return _verdict(case, expected, got, ask)


def fingerprint(answer: Any) -> Any:
    """What one mistake shows in every run of it: tokens and trace, not the last bits of logits.

    An error counts as the same only with the same text: shapes say more than a class of errors.
    """
    if isinstance(answer, Raised):
        return [answer.type_name, answer.message]
    if not isinstance(answer, dict):
        return answer
    return {name: answer.get(name) for name in ("outputs", "trace", "free")}


def _verdict(case: Case, expected: Any, got: Any, ask: Ask | None) -> Difference | None:
    place = f"inside the engine: {case.label}"
    if isinstance(got, Raised):
        return _stopped(case, expected, got, ask)
    problem = _illegal(case, expected, got)
    if problem is not None:
        step, line = problem
        schedules = side_by_side(expected["trace"], got["trace"], step)
        return Difference((place, line), schedules=schedules)
    first = free_running(expected, got, tie_band.FLOOR)
    if first.clean:
        return None
    return _explained(case, expected, got, ask)


def _illegal(case: Case, expected: Any, got: Any) -> tuple[int, str] | None:
    """(step, line): a broken invariant, a leak, or a request that ended in another way."""
    trace = got["trace"]
    broken = broken_invariant(trace, case.payload)
    if broken is not None:
        return broken
    lost = leak(got["free"], case.payload)
    if lost is not None:
        step = first_difference(expected["trace"], trace)
        return (len(trace) - 1 if step is None else step), lost
    for request_id, (tokens, reason) in expected["outputs"].items():
        step = engine_report.sampling_step(expected["trace"], request_id, len(tokens))
        if request_id not in got["outputs"]:
            return step, f"{request_id} never ended"
        have, have_reason = got["outputs"][request_id]
        agree = tokens[: len(have)] == have[: len(tokens)]
        if agree and (reason != have_reason or len(tokens) != len(have)):
            return step, (
                f"{request_id}: expected {len(tokens)} tokens and reason {reason}, got "
                f"{len(have)} and {show(have_reason, 40)}; the tokens agree as far as they go"
            )
    return None


def _stopped(case: Case, expected: Any, got: Raised, ask: Ask | None) -> Difference:
    """The engine raised: where, and what it had scheduled until then."""
    lines = [f"inside the engine: {case.label}", f"the engine stopped: {show(got)}"]
    lines += about_raised(got)
    trace: Any = None
    if ask is not None:
        try:
            trace = _trace_of(ask.theirs({**case.payload, "partial": True}))
        except ChildFailed as failure:
            lines.append(f"run again, it gave no answer: {failure.lines[0]}")
    if trace is None:
        return Difference(tuple(lines), "error", got.frames)
    step = trace[-1]["step"] + 1 if trace else 0
    lines[1] = f"the engine stopped in step {step}: {show(got)}"
    earlier = first_difference(expected["trace"][:step], trace[:step])
    if earlier is not None and earlier < step:
        lines.append(f"the schedules differ first in step {earlier}")
    schedules = side_by_side(expected["trace"], trace, step, stopped=True)
    return Difference(tuple(lines), "error", got.frames, schedules=schedules)


def _trace_of(answer: Any) -> Any:
    return answer.get("trace") if isinstance(answer, dict) and "raised" in answer else None


def _explained(case: Case, expected: Any, got: Any, ask: Ask | None) -> Difference | None:
    """Both passes once something differs; None if all of it lies within the tie band."""
    place = f"inside the engine: {case.label}"
    band = tie_band.FLOOR if ask is None else tie_band.tie_band(case.payload, expected, ask)
    free, forced, died = free_running(expected, got, band), None, None
    if ask is not None:
        forced, died = _forced_pass(case, expected, band, ask)
    if not free.wrong and died is not None:
        return Difference((place, *_tie_lines(free, band), *died.lines), died.status, died.frames)
    if not free.wrong and (forced is None or not forced[0].wrong):
        return None
    words = engine_report.pieces(case.payload.get("model", ""))
    lines, theirs = [place], got
    if free.wrong:
        output = free.wrong[0]
        lines += _output_lines(case, expected, got, output, words, band)
        lines += _before(free, output)
    else:
        assert forced is not None
        output, theirs = forced[0].wrong[0], forced[1]
        lines += _tie_lines(free, band)
        lines += _output_lines(case, expected, theirs, output, words, band)
    if forced is not None:
        lines.append(_forced_line(forced[0], free))
    if died is not None:
        lines += [f"teacher-forced: {line}" for line in died.lines]
    lines += engine_report.place_lines(case.payload, expected["trace"], theirs["trace"], output)
    if ask is not None and forced is not None and "tops" in expected:
        lines += _layer_lines(case, expected, output, forced[0], ask)
    schedules = side_by_side(expected["trace"], theirs["trace"], output.step)
    return Difference(tuple(lines), schedules=schedules)


def _layer_lines(case: Case, expected: Any, output: Output, forced: Pass, ask: Ask) -> list[str]:
    """The bisection, of the first output that is wrong with the right tokens before it."""
    from judge import layers  # numpy, which a check without torch does not wait for

    first = forced.wrong[0] if forced.wrong else output
    lines = layers.bisect(case, expected, first, ask)
    if (first.request_id, first.number) == (output.request_id, output.number):
        return lines
    return [f"before {_names([first])}: {line}" for line in lines]


def _forced_pass(
    case: Case, expected: Any, band: float, ask: Ask
) -> tuple[tuple[Pass, Any] | None, Difference | None]:
    """(the pass and its answer, None), or (None, why there is none)."""
    tokens = {request: tokens for request, (tokens, _) in expected["outputs"].items()}
    try:
        got = ask.theirs({**case.payload, "force": tokens})
    except ChildFailed as failure:
        line = "with the reference's tokens put in, your engine gave no answer"
        return None, Difference((line, *failure.lines), failure.status)
    if isinstance(got, Raised):
        line = f"with the reference's tokens put in, your engine stopped: {show(got)}"
        return None, Difference((line, *about_raised(got)), "error", got.frames)
    return (teacher_forced(expected, got, band), got), None


def _output_lines(
    case: Case, expected: Any, got: Any, output: Output, words: Words, band: float
) -> list[str]:
    lines = [engine_report.token_line(case.payload, output, words)]
    ours = expected.get("tops", {}).get(output.request_id, [])
    theirs = got.get("tops", {}).get(output.request_id, [])
    lines += engine_report.top_lines(ours, theirs, output.number, words, band)
    if output.expected == output.got:
        off = tie_band.apart(ours[output.number], theirs[output.number])
        lines[0] += ", the same token from other logits"
        lines[-1] = f"the logits differ by {off:.2g} or more, tie band {band:.2g}"
    return lines


def _before(free: Pass, output: Output) -> list[str]:
    earlier = [tie for tie in free.ties if tie.step <= output.step]
    if not earlier:
        return ["no output before it differs, in any request"]
    return [f"before it only near ties differ: {_names(earlier)}"]


def _tie_lines(free: Pass, band: float) -> list[str]:
    if not free.ties:
        return []
    return [
        f"free-running, the tokens are the reference's but for near ties (tie band {band:.2g}): "
        f"{_names(free.ties)}"
    ]


def _forced_line(forced: Pass, free: Pass) -> str:
    what = "teacher-forced (the reference's tokens put in after each step)"
    if not forced.wrong:
        return f"{what}: all {forced.compared} outputs agree"
    line = f"{what}: {len(forced.wrong)} of {forced.compared} outputs differ"
    if not free.wrong or forced.wrong[0] != free.wrong[0]:
        line += f", first {_names(forced.wrong[:1])}"
    return line + (f"; logits by up to {forced.apart:.2g}" if forced.apart else "")


def _names(outputs: Sequence[Output]) -> str:
    shown = [f"{output.request_id} output {output.number}" for output in outputs[:3]]
    more = len(outputs) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
