"""Owns the table of exercises. Ids never change and carry no numbers; `chNN` is a whole chapter."""

from __future__ import annotations

import difflib

from judge.api import Exercise

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        id="life.prefill-chunks",
        chapter=0,
        title="How a long prompt is cut beside running decodes",
        file="life.py",
        symbols=("prefill_chunks",),
        slot=None,
        needs_torch=False,
        minutes=15,
        reference="judge.solutions.life",
        module="judge.exercises.life_prefill_chunks",
    ),
    Exercise(
        id="life.latency-metrics",
        chapter=0,
        title="TTFT, TPOT, ITL, percentiles and goodput",
        file="life.py",
        symbols=(
            "time_to_first_token",
            "inter_token_latencies",
            "time_per_output_token",
            "percentile",
            "goodput",
        ),
        slot=None,
        needs_torch=False,
        minutes=25,
        reference="mini_engine.latency",
        module="judge.exercises.life_latency_metrics",
    ),
    Exercise(
        id="kv-cache.rope",
        chapter=1,
        title="Rotary positions",
        file="kv_cache.py",
        symbols=("apply_rope",),
        slot=None,
        needs_torch=True,
        minutes=15,
        reference="mini_engine.compute.model",
        module="judge.exercises.kv_cache_rope",
    ),
    Exercise(
        id="kv-cache.attention",
        chapter=1,
        title="Causal attention over kept keys and values",
        file="kv_cache.py",
        symbols=("attention_over_contiguous",),
        slot="attention",
        needs_torch=True,
        minutes=30,
        reference="mini_engine.compute.attention_single",
        module="judge.exercises.kv_cache_attention",
    ),
    Exercise(
        id="kv-cache.generate",
        chapter=1,
        title="A generate loop that computes every token once",
        file="kv_cache.py",
        symbols=("generate_cached",),
        slot=None,
        needs_torch=True,
        minutes=30,
        reference="mini_engine.compute.naive",
        module="judge.exercises.kv_cache_generate",
    ),
    Exercise(
        id="paged-kv.block-pool",
        chapter=2,
        title="A pool of KV blocks with reference counts",
        file="paged_kv.py",
        symbols=("BlockPool",),
        slot="block_pool",
        needs_torch=False,
        minutes=30,
        reference="mini_engine.control.block_pool",
        module="judge.exercises.paged_kv_block_pool",
    ),
    Exercise(
        id="paged-kv.slot-mapping",
        chapter=2,
        title="From positions to slots through a block table",
        file="paged_kv.py",
        symbols=("slot_mapping",),
        slot="build_batch",
        needs_torch=False,
        minutes=15,
        reference="mini_engine.compute.slots",
        module="judge.exercises.paged_kv_slot_mapping",
    ),
    Exercise(
        id="paged-kv.paged-attention",
        chapter=2,
        title="Attention of one request over scattered blocks",
        file="paged_kv.py",
        symbols=("paged_attention",),
        slot="attention",
        needs_torch=True,
        minutes=30,
        reference="mini_engine.compute.attention_single",
        module="judge.exercises.paged_kv_paged_attention",
    ),
    Exercise(
        id="batching.logits-rows",
        chapter=3,
        title="Which rows of a flat batch are sampled from",
        file="batching.py",
        symbols=("logits_rows",),
        slot="build_batch",
        needs_torch=False,
        minutes=15,
        reference="mini_engine.compute.rows",
        module="judge.exercises.batching_logits_rows",
    ),
    Exercise(
        id="batching.build-batch",
        chapter=3,
        title="The chunks of a step as one flat batch",
        file="batching.py",
        symbols=("build_batch",),
        slot="build_batch",
        needs_torch=True,
        minutes=40,
        reference="mini_engine.compute.batch",
        module="judge.exercises.batching_build_batch",
    ),
    Exercise(
        id="batching.varlen-attention",
        chapter=3,
        title="Attention of a flat batch over the paged cache",
        file="batching.py",
        symbols=("varlen_attention",),
        slot="attention",
        needs_torch=True,
        minutes=45,
        reference="mini_engine.compute.attention_varlen",
        module="judge.exercises.batching_varlen_attention",
    ),
    Exercise(
        id="scheduler.continuous",
        chapter=4,
        title="Continuous batching: who computes what in each step",
        file="scheduler.py",
        symbols=("Scheduler",),
        slot="scheduler",
        needs_torch=False,
        minutes=45,
        reference="mini_engine.control.scheduler",
        module="judge.exercises.scheduler_continuous",
        region="scheduler",
    ),
    Exercise(
        id="scheduler.chunked",
        chapter=4,
        title="Long prompts in chunks",
        file="scheduler.py",
        symbols=("Scheduler",),
        slot="scheduler",
        needs_torch=False,
        minutes=25,
        reference="mini_engine.control.scheduler",
        module="judge.exercises.scheduler_chunked",
        region="scheduler",
    ),
    Exercise(
        id="scheduler.preempt",
        chapter=4,
        title="When blocks run out: preemption by recomputation",
        file="scheduler.py",
        symbols=("Scheduler",),
        slot="scheduler",
        needs_torch=False,
        minutes=45,
        reference="mini_engine.control.scheduler",
        module="judge.exercises.scheduler_preempt",
        region="scheduler",
    ),
    Exercise(
        id="scheduler.abort",
        chapter=4,
        title="Ending a request at any moment, and a failed step",
        file="scheduler.py",
        symbols=("Scheduler",),
        slot="scheduler",
        needs_torch=False,
        minutes=20,
        reference="mini_engine.control.scheduler",
        module="judge.exercises.scheduler_abort",
        region="scheduler",
    ),
    Exercise(
        id="scheduler.priority",
        chapter=4,
        title="Priorities",
        file="scheduler.py",
        symbols=("Scheduler",),
        slot="scheduler",
        needs_torch=False,
        minutes=30,
        reference="mini_engine.control.scheduler",
        module="judge.exercises.scheduler_priority",
        region="scheduler",
        in_engine=False,
    ),
    Exercise(
        id="prefix-cache.names",
        chapter=5,
        title="Names of blocks, as a chain",
        file="prefix_cache.py",
        symbols=("block_names",),
        slot=None,
        needs_torch=False,
        minutes=20,
        reference="judge.solutions.prefix_cache",
        module="judge.exercises.prefix_cache_names",
    ),
    Exercise(
        id="prefix-cache.lookup",
        chapter=5,
        title="The longest run of blocks that are known",
        file="prefix_cache.py",
        symbols=("longest_hit",),
        slot=None,
        needs_torch=False,
        minutes=15,
        reference="judge.solutions.prefix_cache",
        module="judge.exercises.prefix_cache_lookup",
    ),
    Exercise(
        id="prefix-cache.cache",
        chapter=5,
        title="A prefix cache with LRU eviction, inside the engine",
        file="prefix_cache.py",
        symbols=("PrefixCache",),
        slot="prefix_cache",
        needs_torch=False,
        minutes=60,
        reference="mini_engine.control.prefix_cache",
        module="judge.exercises.prefix_cache_cache",
    ),
    Exercise(
        id="sampling.filter",
        chapter=6,
        title="What temperature, min-p, top-k and top-p leave of the logits",
        file="sampling.py",
        symbols=("filter_logits",),
        slot="sampler",
        needs_torch=True,
        minutes=35,
        reference="mini_engine.compute.plain_sampler",
        module="judge.exercises.sampling_filter",
    ),
    Exercise(
        id="sampling.sample",
        chapter=6,
        title="A token per row: greedy, or a draw that nobody else changes",
        file="sampling.py",
        symbols=("sample",),
        slot="sampler",
        needs_torch=True,
        minutes=30,
        reference="mini_engine.compute.plain_sampler",
        module="judge.exercises.sampling_sample",
    ),
    Exercise(
        id="sampling.penalties",
        chapter=6,
        title="Repetition, frequency and presence penalties",
        file="sampling.py",
        symbols=("apply_penalties",),
        slot="sampler",
        needs_torch=True,
        minutes=25,
        reference="mini_engine.compute.plain_sampler",
        module="judge.exercises.sampling_penalties",
    ),
    Exercise(
        id="sampling.logprobs",
        chapter=6,
        title="Log probabilities of the chosen tokens and of the best",
        file="sampling.py",
        symbols=("token_logprobs",),
        slot="token_logprobs",
        needs_torch=True,
        minutes=20,
        reference="mini_engine.compute.logprobs",
        module="judge.exercises.sampling_logprobs",
    ),
)


def sharing(exercise: Exercise) -> list[Exercise]:
    """The exercises whose code stands in the same region of the same file, itself included."""
    place = exercise.file, exercise.mark
    return [e for e in EXERCISES if (e.file, e.mark) == place]


def stub_lines(exercise: Exercise, name: str) -> list[str]:
    """A stub's name; where it belongs to another exercise, also what to do about it."""
    symbol = name.partition(".")[0]
    owners = [e for e in EXERCISES if symbol in e.symbols and symbol not in exercise.symbols]
    if not owners:
        return [name]
    where, reference = owners[0].file, owners[0].reference
    return [name, f"write it in practice/{where} first, or import it from {reference}"]


def find(name: str) -> list[Exercise]:
    """The exercises that an id, a topic ("paged-kv") or a chapter ("ch02") names.

    Raises ValueError with the closest known name.
    """
    if name.startswith("ch") and name[2:].isdigit():
        found = [e for e in EXERCISES if e.chapter == int(name[2:])]
    else:
        found = [e for e in EXERCISES if name in (e.id, e.topic)]
    if found:
        return found
    known = sorted({e.id for e in EXERCISES} | {e.topic for e in EXERCISES})
    chapters = sorted({f"ch{e.chapter:02d}" for e in EXERCISES})
    close = difflib.get_close_matches(name, known + chapters, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(chapters + known)}"
    raise ValueError(f"there is no exercise {name!r}; {hint}")
