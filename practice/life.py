"""Exercises of chapter 00: the life of a request.

Plain functions, no engine and no torch. Write between the two marks of an exercise; helpers of your
own may stand there too. Everything else in this file stays as it is. Grade with

    python practice/judge.py life.prefill-chunks
    python practice/judge.py life.latency-metrics
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mini_engine.interfaces import ExerciseNotStarted

# --- life.prefill-chunks: edit from here ---


def prefill_chunks(prompt_tokens: int, num_decodes: int, budget: int) -> list[int]:
    """How many tokens of one long prompt each step computes, first step first.

    In every step each of `num_decodes` running requests takes one token of the budget before the
    prompt gets what is left. They outlive the prompt: their number does not change.

    Example: prefill_chunks(10, 2, 6) is [4, 4, 2]; prefill_chunks(10, 2, 12) is [10].

    Raises
        TypeError   if an argument is not an int (a bool or a float is not one)
        ValueError  if prompt_tokens < 1, num_decodes < 0 or budget < 1
        ValueError  if the decodes use up the budget, so that the prompt would never finish; the
                    message names the budget and the number of decodes
    """
    raise ExerciseNotStarted("prefill_chunks")


# --- end of life.prefill-chunks ---

# --- life.latency-metrics: edit from here ---


def time_to_first_token(arrival: float, token_times: Sequence[float]) -> float:
    """TTFT in seconds: from the arrival of a request to its first token.

    `token_times` are the moments at which its tokens came, in order, on the clock of `arrival`.

    Raises ValueError for no tokens, times that decrease, or a first token before the arrival.
    """
    raise ExerciseNotStarted("time_to_first_token")


def inter_token_latencies(token_times: Sequence[float]) -> list[float]:
    """ITL in seconds: the gap before every token but the first. Empty for no token and for one.

    Raises ValueError for times that decrease.
    """
    raise ExerciseNotStarted("inter_token_latencies")


def time_per_output_token(token_times: Sequence[float]) -> float | None:
    """TPOT in seconds: the mean gap between tokens. The first token belongs to TTFT, not to this.

    None if there is no gap (fewer than two tokens). Raises ValueError for times that decrease.
    """
    raise ExerciseNotStarted("time_per_output_token")


def percentile(values: Iterable[float], q: float) -> float:
    """The q-th percentile, 0 <= q <= 100, with linear interpolation.

    The values need not be sorted and are not changed. Sorted, with positions from 0 to n - 1, the
    percentile stands at position q / 100 * (n - 1); between two values it lies on the straight
    line.

    Raises ValueError for no values and for q outside 0 to 100.
    """
    raise ExerciseNotStarted("percentile")


def goodput(
    requests: Iterable[tuple[float, Sequence[float]]],
    duration: float,
    *,
    max_ttft: float,
    max_tpot: float,
) -> float:
    """Good requests per second, over a measurement of `duration` seconds.

    Each request is (arrival, token_times). It is good if its TTFT is at most `max_ttft` and its
    TPOT is at most `max_tpot`. One token: there is no TPOT that could be too long. No token: not
    good.

    Raises ValueError unless duration is above 0.
    """
    raise ExerciseNotStarted("goodput")


# --- end of life.latency-metrics ---
