"""Exercises of chapter 04: the scheduler. One class, which grows from exercise to exercise.

Write between the two marks; helpers of your own may stand there too. Everything else in this file
stays as it is. Grade with

    python practice/judge.py scheduler.continuous
    python practice/judge.py scheduler.chunked
    python practice/judge.py scheduler.preempt
    python practice/judge.py scheduler.abort
    python practice/judge.py scheduler.priority

Each is graded by what it asks for itself. So leave `abort` and `roll_back` as they are until you
come to them, and don't think of a full pool before `preempt`. When a later exercise has changed the
class, what had passed before is graded once more, so that nothing breaks unnoticed.
"""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk, ExerciseNotStarted, PrefixCache, Schedule

__all__ = ["Chunk", "Schedule", "Scheduler"]

# --- scheduler: edit from here ---


class Scheduler:
    """Decides, step by step, which tokens of which requests are computed.

    The engine calls `schedule()`, runs the model on what it returned, and calls `update()` with the
    sampled tokens; then again. There is no prefill phase and no decode phase: a request has
    *computed* tokens and a *total* of known ones, and each step moves computed towards total.

    The request keeps its own state; you read and change these fields
        request_id, prompt_token_ids         its name; the tokens of its prompt (read only)
        num_tokens        all known tokens, prompt and outputs: the total (read only)
        num_computed      how many of them, from the first, are computed
        output_token_ids  what was sampled so far; `append_output(token)` adds one
        params.max_tokens, request.end_token_ids (not of params)
                          when it ends: at most so many outputs, or after one of these tokens
        finish_reason     why it ended: "stop", "length", "capacity" or "abort"
        num_preemptions   how often it lost its place
        arrival, priority  its number, which you set in `add`, counting up; its urgency, small first

    The cache owns all blocks (chapter 02: a block holds the keys and values of `config.block_size`
    tokens). It also remembers what full blocks hold, so that a later request with the same
    beginning need not compute it again. Chapter 05 builds it; here it is given, and these calls are
    all you need
        begin_step()            say that a new step begins; the first thing in `schedule`
        lookup(request)         the list of blocks that already hold the start of the request's
                                tokens, perhaps []; they are always full, and at least one token is
                                left to compute. Looking changes nothing
        admit(request, hit)     make these blocks the start of its block table. They hold its first
                                len(hit) * block_size tokens; num_computed is not touched: set it
                                to that number yourself
        can_grow(request, n)    are enough blocks free to hold its first n tokens?
        grow(request, n)        give it the blocks for its first n tokens, n being those that are
                                computed at the end of this step; OutOfBlocks if too few are free
        release(request)        take all its blocks back (what they hold may still be hit later)
        take_back_names(request)  a full block can be hit from the moment it is given, since the
                                step will fill it. If that won't happen, this takes back what was
                                given in this step to that request, or to all: take_back_names()
        pool.num_free, pool.ref_count(block)  free blocks; in how many tables a block is (0: free)

    Of the config you need max_num_batched_tokens (the budget: the most tokens that one step
    computes), max_num_seqs (how many requests may run), max_model_len (prompt and outputs
    together), num_blocks and block_size, and later enable_chunked_prefill,
    long_prefill_token_threshold, watermark_blocks and policy.
    """

    waiting: Sequence[Request]  # in the order in which they will be considered
    running: Sequence[Request]  # in order of admission; only these hold blocks

    def __init__(self, config: EngineConfig, cache: PrefixCache) -> None:
        """Nobody waits and nobody runs."""
        raise ExerciseNotStarted("Scheduler.__init__")

    def add(self, request: Request) -> None:
        """Queue a request. Raises ValueError, and queues nothing, if it can never be served.

        That is: its request_id is being served already; its prompt is empty; its prompt has
        max_model_len tokens or more (at least one output must fit); its prompt needs more blocks
        than the pool has. Of the last two the message names both numbers. Else its arrival is set.
        """
        raise ExerciseNotStarted("Scheduler.add")

    def schedule(self) -> Schedule:
        """Choose the chunks of the next step and give them their blocks.

        `scheduler.continuous` (as long as blocks and budget suffice, nothing is cut)
            Every running request gets a chunk with all its tokens that are not computed: one, when
            it decodes. Then waiting requests are admitted, first come, first served, while budget
            is left and fewer than max_num_seqs run. A prompt is admitted whole or not at all, and
            nobody overtakes the head of the queue.
            Chunk(request, start, num_tokens, samples): from `start` on, what was computed so far;
            `samples` is True if it reaches the last known token. The Schedule lists the chunks in
            `chunks`, the ids of those admitted in `new`, and in `cached` {id: tokens of its hit}.
        `scheduler.chunked`
            A chunk is cut to what is left of the budget; the rest follows in later steps. Blocks
            are taken chunk by chunk, and no chunk is empty.
            With long_prefill_token_threshold t > 0, no chunk is longer than t, unless only one
            request is there, running or waiting.
            With enable_chunked_prefill False a prompt is still admitted whole or not at all.
        `scheduler.preempt`
            If blocks lack for a running request, the request admitted last is preempted, and again,
            until there are enough or it was the request itself. Nobody is preempted without need.
            A victim loses its blocks and computed tokens (it computes them again later: recompute),
            keeps its outputs, goes to the *front* of the queue, and is listed in `preempted`; add 1
            to its num_preemptions. All others that run still get their chunks. A step that
            preempted admits nobody (under "fcfs" nobody would fit anyway; only under "priority"
            can you see this rule at work).
            The head of the queue is admitted only if blocks for *all* its known tokens are free
            (not just for its first chunk), beside watermark_blocks while others run. What it hits
            counts as there already, except that a hit block that is free is taken, too.
            Who is admitted again after a preemption is listed in `resumed` instead of `new`.
        `scheduler.priority`
            With config.policy "priority" the smallest (priority, arrival) is admitted first, and
            the largest of those that run is the victim, wherever it stands. A victim goes back to
            its own place in the queue: arrival stays. If it had a chunk in this very step, the
            chunk goes, its tokens go back to the budget, and take_back_names(victim) is due. Chunks
            that were cut before it went are not cut anew. With policy "fcfs" priorities mean
            nothing.
        """
        raise ExerciseNotStarted("Scheduler.schedule")

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        """Take in what the step computed; returns the requests that ended, in the order of chunks.

        `scheduler.continuous`: the tokens of each chunk now count as computed. `sampled` maps ids
            to tokens, for chunks that sample. A request ends with "stop" if its token is one of
            end_token_ids (the token is kept), else with "length" if it has max_tokens outputs or
            max_model_len tokens in all. Whoever ended gives its blocks back and runs no more.
        `scheduler.chunked`: from a chunk that does not sample nothing is added.
        `scheduler.preempt`: it also ends, with "capacity", if all its tokens would not fit into the
            whole pool: alone there, it would preempt itself for ever.
        `scheduler.abort`: skips requests that were aborted since `schedule`.
        """
        raise ExerciseNotStarted("Scheduler.update")

    def abort(self, request_id: str) -> bool:
        """`scheduler.abort`: end a request at once, with reason "abort".

        Its blocks come back, once. It may wait or run, and this may come between `schedule` and
        `update`: then the chunk still runs, and the token sampled from it is dropped. False if
        nobody of that id waits or runs.
        """
        raise ExerciseNotStarted("Scheduler.abort")

    def roll_back(self, schedule: Schedule) -> None:
        """`scheduler.abort`: called instead of `update` if the forward pass failed.

        Nothing of the step was computed. The names that it gave are taken back, and each of its
        requests that was not aborted is as if preempted: num_preemptions grows, and it waits again,
        with nothing computed and its outputs kept, in front (under "priority" in its own place).
        """
        raise ExerciseNotStarted("Scheduler.roll_back")


# --- end of scheduler ---
