"""The engine with graphs gives the tokens that each request gets alone, and a replay is one."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from mini_engine import LLMEngine, SamplingParams
from mini_engine.assemble import resolve_sizes
from mini_engine.compute.batch import build_batch
from mini_engine.compute.cuda_graphs import GraphRunner
from mini_engine.compute.graph_buckets import choose_bucket
from mini_engine.compute.graph_emulator import EmulatedGraph
from mini_engine.compute.kv_cache import PagedKVCache
from mini_engine.compute.launches import LaunchCounter
from mini_engine.compute.model import Model
from mini_engine.compute.random_model import TINY_LLAMA, TINY_QWEN3, random_model
from mini_engine.config import EngineConfig
from mini_engine.control.request import Request
from mini_engine.interfaces import Chunk
from tests.compute.harness import TIE_BAND, alone, logits_of, margins_of, random_prompt
from tests.graphs.devices import on_each_device

MODELS = {"llama": TINY_LLAMA, "qwen3": TINY_QWEN3}
MAX_TOKENS = 12
SIZES: dict[str, Any] = {"block_size": 4, "max_model_len": 32, "max_num_seqs": 13}


def answers(model: Model, prompts: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Each prompt's greedy tokens alone, on the CPU, up to the first near tie or `most`."""
    found = []
    for prompt in prompts:
        tokens = alone(model, prompt, min(most, 32 - len(prompt)))
        margins = margins_of(logits_of(model, [*prompt, *tokens])[len(prompt) - 1 : -1])
        ties = (margins < 10 * TIE_BAND).nonzero().flatten().tolist()
        found.append(tokens[: ties[0]] if ties else tokens)
    assert sum(map(len, found)) > 0.7 * sum(min(most, 32 - len(p)) for p in prompts)
    return found


class Case:
    """A model on a device, prompts around the borders of blocks and of the longest length."""

    def __init__(self, name: str, device: str) -> None:
        self.device = device
        self.on_cpu = random_model(MODELS[name], 4)
        self.model = self.on_cpu if device == "cpu" else random_model(MODELS[name], 4, device)
        lengths = (1, 3, 4, 5, 7, 8, 9, 15, 16, 19, 20, 28, 29, 30, 31)
        self.prompts = [random_prompt(seed, length) for seed, length in enumerate(lengths)]
        self.answers = answers(self.on_cpu, self.prompts, MAX_TOKENS)

    def engine(self, **options: Any) -> LLMEngine:
        defaults = {**SIZES, "num_blocks": 120, "device": self.device, "cuda_graphs": True}
        return LLMEngine(self.model, **(defaults | options))

    def check(self, engine: LLMEngine, which: Sequence[int]) -> None:
        """Serve these prompts together; the answers must be those of each alone."""
        params = SamplingParams(MAX_TOKENS, ignore_eos=True)
        outputs = engine.generate([self.prompts[i] for i in which], params)
        for output, index in zip(outputs, which, strict=True):
            expected = self.answers[index]
            assert output.token_ids[: len(expected)] == expected
            assert len(output.token_ids) == min(MAX_TOKENS, 32 - len(self.prompts[index]))


CASES: dict[tuple[str, str], Case] = {}


@pytest.fixture(params=list(MODELS))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def case_of(name: str, device: str) -> Case:
    if (name, device) not in CASES:
        CASES[name, device] = Case(name, device)
    return CASES[name, device]


@on_each_device
def test_every_batch_size_up_to_13_and_every_border(name: str, device: str) -> None:
    """Decodes run up to the last token that fits `max_model_len`; every one is replayed."""
    case = case_of(name, device)
    with case.engine(enable_prefix_caching=False) as engine:
        buckets = engine.runner.graph_runner.buckets
        assert buckets == (1, 2, 4, 8, 13)
        seen = set()
        for count in range(1, 14):
            case.check(engine, [(count + 5 * i) % 13 for i in range(count)])
        case.check(engine, [14, 13, 0])
        for record in engine.trace:
            decodes = all(n == 1 for n in record.scheduled.values())
            assert record.graph_bucket == (
                choose_bucket(buckets, len(record.scheduled)) if decodes else None
            )
            seen.add(len(record.scheduled) if decodes else None)
        assert seen == {None, *range(1, 14)}


@on_each_device
def test_preemption_prefix_hits_and_chunks_in_between(name: str, device: str) -> None:
    case = case_of(name, device)
    shared = {"num_blocks": 22, "max_num_batched_tokens": 16, "debug": True}
    with case.engine(**shared) as engine:
        for which in (range(13), [12, 3, 9, 9, 7, 12, 11]):
            case.check(engine, list(which))
        trace = engine.trace
        assert any(record.preempted for record in trace)
        assert any(sum(record.cached.values()) for record in trace)
        assert {None, 1, 2, 4, 8} <= {record.graph_bucket for record in trace}


@on_each_device
def test_five_engines_one_after_the_other_give_the_same(device: str) -> None:
    case = case_of("llama", device)
    for seqs in (13, 3, 1, 5, 13):
        with case.engine(max_num_seqs=seqs) as engine:
            assert engine.runner.graph_runner.buckets[-1] == seqs
            case.check(engine, [2, 5, 11, 7, 0, 9])
            bucket = choose_bucket(engine.runner.graph_runner.buckets, min(seqs, 6))
            assert any(record.graph_bucket == bucket for record in engine.trace)


@on_each_device
def test_seeded_draws_are_the_same_with_and_without_graphs(device: str) -> None:
    case = case_of("llama", device)
    params = [SamplingParams(8, temperature=t, seed=i) for i, t in enumerate((0.0, 0.8, 0.9))]
    drawn = []
    for graphs in (False, True):
        with case.engine(cuda_graphs=graphs) as engine:
            outputs = engine.generate(case.prompts[2:5], params)
            drawn.append([output.token_ids for output in outputs])
            assert any(r.graph_bucket == 4 for r in engine.trace) == graphs
    assert drawn[0] == drawn[1]


def test_case_38_poison_changes_no_bit() -> None:
    case, logits = case_of("llama", "cpu"), []
    for poison in (1e4, -1e4):
        seen: list[torch.Tensor] = []
        with case.engine(num_blocks=22, debug=True, poison=poison) as engine:
            engine.runner.observe = lambda schedule, rows, seen=seen: seen.append(rows.clone())
            case.check(engine, list(range(13)))
        logits.append(seen)
    assert len(logits[0]) == len(logits[1])
    assert all(map(torch.equal, *logits))


class Bare:
    """A graph runner and its cache, without scheduler: batches are made by hand."""

    def __init__(self, device: str) -> None:
        self.model = case_of("llama", device).model
        self.config = EngineConfig(num_blocks=120, **SIZES)
        self.cache = PagedKVCache(self.model.config, 121, 4, device=device)
        self.runner = GraphRunner(self.model, self.cache, self.config)
        generator = torch.Generator(device).manual_seed(0)
        self.cache.keys.normal_(generator=generator)
        self.cache.values.normal_(generator=generator)

    def batch(self, lengths: Sequence[int], first_block: int = 0):
        """Decodes at these lengths, the new token included; blocks counted up from the first."""
        chunks = []
        for index, length in enumerate(lengths):
            request = Request(str(index), random_prompt(index, length))
            width = -(-length // 4)
            request.block_table = list(range(first_block, first_block + width))
            first_block += width
            chunks.append(Chunk(request, length - 1, 1, True))
        return build_batch(chunks, 4)

    def slots(self) -> torch.Tensor:
        return self.cache.keys.flatten(1, 2).clone()


@on_each_device
def test_a_graph_captured_at_one_length_follows_every_other(device: str) -> None:
    """Captured at length 1; compared with attention that reads just what is there."""
    bare = Bare(device)
    plain = case_of("llama", device).engine(cuda_graphs=False).runner
    plain.kv_cache = bare.cache
    for lengths in ([1, 2], [31, 32], [4, 5], [32, 1], [8, 17]):
        batch = bare.batch(lengths)
        hidden = bare.runner.run(batch)
        assert hidden is not None
        with torch.inference_mode():
            # A GPU adds up in another order for another shape, perhaps in fewer bits.
            atol = 1e-4 if device == "cpu" else 1e-2
            assert torch.allclose(hidden, plain._hidden(batch), atol=atol)


@on_each_device
def test_a_replayed_step_allocates_nothing_and_waits_for_nothing(device: str) -> None:
    bare = Bare(device)
    batches = [bare.batch([5, 9, 32]), bare.batch([2] * 9), bare.batch([31])]
    addresses: dict[int | None, set[int]] = {}
    for batch in batches:
        hidden = bare.runner.run(batch)
        addresses.setdefault(bare.runner.bucket, set()).add(hidden.data_ptr())
    before = torch.cuda.memory_stats()["allocation.all.allocated"] if device == "cuda" else 0
    if device == "cuda":
        torch.cuda.set_sync_debug_mode("error")
    try:
        for batch in batches * 2:
            with LaunchCounter() as counter:
                hidden = bare.runner.run(batch)
            assert counter.launches == {"copy_": 5}
            assert (counter.allocations, counter.waits) == (0, 0)
            assert addresses[bare.runner.bucket] == {hidden.data_ptr()}
    finally:
        if device == "cuda":
            torch.cuda.set_sync_debug_mode("default")
    if device == "cuda":
        assert torch.cuda.memory_stats()["allocation.all.allocated"] == before


@on_each_device
def test_padding_rows_touch_nothing_but_the_scratch_block(device: str) -> None:
    """A full batch first, whose rows must not live on in a smaller one."""
    bare = Bare(device)
    bare.runner.run(bare.batch([30] * 13))
    before = bare.slots()
    bare.runner.run(bare.batch([6] * 9, first_block=2))  # a bucket of 13
    changed = (bare.slots() != before).any(dim=-1).any(dim=-1).any(dim=0).nonzero().flatten()
    own = [(2 + 2 * i + 1) * 4 + 1 for i in range(9)]  # position 5: second block, offset 1
    assert set(changed.tolist()) <= {*own, 120 * 4}
    assert set(own) <= set(changed.tolist())
    for name, rest in (("token_ids", 0), ("positions", 0), ("slot_mapping", 480), ("seq_lens", 1)):
        assert getattr(bare.runner.buffers.views(13), name)[9:].tolist() == [rest] * 4
    tables = bare.runner.buffers.views(13).block_tables
    assert (tables[9:] == 120).all()
    assert (tables[:, 2:] == 120).all()  # columns that longer requests left behind


def test_what_no_graph_was_captured_for_runs_eagerly() -> None:
    bare = Bare("cpu")
    chunk = Chunk(Request("a", [1, 2, 3]), 0, 3, True)
    chunk.request.block_table = [0]
    assert bare.runner.run(build_batch([chunk], 4)) is None
    assert bare.runner.run(bare.batch([2] * 14)) is None  # more than max_num_seqs
    assert bare.runner.run(bare.batch([33])) is None  # longer than max_model_len
    assert bare.runner.bucket is None
    assert bare.runner.run(bare.batch([2] * 13)) is not None
    assert bare.runner.bucket == 13


def test_a_replay_stands_for_the_launches_of_the_step() -> None:
    bare = Bare("cpu")
    for bucket, graph in bare.runner.graphs.items():
        assert isinstance(graph, EmulatedGraph)
        with LaunchCounter() as counter, torch.inference_mode():
            bare.runner._forward(bare.runner.buffers.views(bucket))
        assert graph.num_launches == counter.total > 100


def test_the_longest_length_is_chosen_with_care_where_every_step_reads_it() -> None:
    cpu = torch.device("cpu")
    for options, expected in (
        ({}, 1024), ({"max_model_len": 1500}, 1500), ({"cuda_graphs": False}, 2048),
    ):  # fmt: skip
        config = EngineConfig(num_blocks=8, **{"cuda_graphs": True, **options})
        assert resolve_sizes(config, TINY_LLAMA, cpu, torch.float32).max_model_len == expected


@on_each_device
def test_closing_the_engine_gives_up_its_graphs(device: str) -> None:
    engine = case_of("llama", device).engine(max_num_seqs=2)
    engine.generate([[1, 2, 3]], SamplingParams(3))
    runner = engine.runner.graph_runner
    held = [weakref.ref(runner), weakref.ref(runner.kv_cache), weakref.ref(runner.buffers)]
    del runner
    engine.close()
    assert [ref() for ref in held] == [None] * 3


def test_without_the_flag_there_is_neither_a_graph_nor_a_scratch_block() -> None:
    case = case_of("llama", "cpu")
    with case.engine(cuda_graphs=False) as engine:
        assert engine.runner.graph_runner is None
        assert engine.runner.kv_cache.num_blocks == 120
        case.check(engine, [0, 5])
        assert {record.graph_bucket for record in engine.trace} == {None}
    with pytest.raises(TypeError, match="cuda_graphs must be True or False"):
        case.engine(cuda_graphs="yes")
