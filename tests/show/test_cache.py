"""The map of the prefix cache says what pool and cache themselves say."""

from __future__ import annotations

import random

import pytest

from mini_engine import show
from mini_engine.show.cache import cache_state
from tests.control.workloads import add, control_engine, run_to_end


@pytest.mark.parametrize("seed", range(12))
def test_the_replay_agrees_with_pool_and_cache_after_every_step(seed: int) -> None:
    rng = random.Random(seed)
    engine = control_engine(
        rng.randint(8, 14), 4, max_num_batched_tokens=rng.choice([6, 24, 100]), max_num_seqs=5
    )
    common, tokens = [rng.randrange(3) for _ in range(20)], {}
    seen = []
    for number in range(60):
        if rng.random() < 0.5:
            prompt = common[: rng.randrange(16)] + [rng.randrange(9) for _ in range(1, 8)]
            add(engine, f"request {number}", prompt, rng.randint(1, 8))
            tokens[f"request {number}"] = prompt
        if rng.random() < 0.1 and engine.scheduler.running:
            engine.abort(rng.choice(engine.scheduler.running).request_id)
        if engine.has_unfinished:
            engine.step()
            pool = engine.cache.pool
            named = [b for b in range(pool.num_blocks) if engine.cache.is_named(b)]
            counts = {b: pool.ref_count(b) for b in range(pool.num_blocks) if pool.ref_count(b)}
            seen.append((engine.trace[-1].step, pool.free_block_ids(), named, counts))
    assert sum(sum(record.cached.values()) for record in engine.trace) > 0
    for step, free, named, counts in seen[:-1]:  # an abort before the next step is recorded there
        state = cache_state(engine.trace, step, 4)
        if not engine.trace[step + 1].aborted:
            assert state.free == free, f"step {step}"
            assert sorted(state.content) == named, f"step {step}"
            assert {b: len(held) for b, held in state.holders().items()} == counts


def test_a_block_is_labelled_with_the_tokens_that_it_holds() -> None:
    engine = control_engine(6, 4)
    add(engine, "first one", range(9))
    add(engine, "second one", [*range(8), 50, 51])
    run_to_end(engine)
    texts = {"first one": [f"<{t}>" for t in range(9)], "second one": ["no"] * 10}
    state = cache_state(engine.trace, 0, 4)
    assert state.content == {0: ("first one", 0), 1: ("first one", 1)}
    figure = show.cache_map(engine.trace, 0, block_size=4, texts=texts)
    assert "A1 <i>&lt;4&gt;&lt;5&gt;&lt;6&gt;&lt;7&gt;</i>" in figure.html
    assert figure.sentence == (
        "After step 0: 0 of 6 blocks are held; 6 are free, 2 of these still named."
    )


def test_shared_blocks_show_all_holders_and_free_ones_their_turn() -> None:
    engine = control_engine(6, 4)
    add(engine, "A", range(9), 3)
    add(engine, "B", [*range(8), 50, 51], 3)
    engine.step()
    texts = {"A": ["a"] * 12, "B": ["b"] * 12}
    figure = show.cache_map(engine.trace, 0, block_size=4, texts=texts)
    assert "<b>AB</b> x2" in figure.html
    assert '<small style="color:#555555">4</small> <b>free, no. 1</b>' in figure.html
    assert "Free list, reused first: 4, 5." in figure.html
    assert "2 of them shared" in figure.sentence


def test_a_step_that_is_not_there_is_an_error() -> None:
    engine = control_engine(6, 4)
    add(engine, "A", range(3))
    run_to_end(engine)
    with pytest.raises(ValueError, match="no step 7; its steps: 0 to 0"):
        cache_state(engine.trace, 7, 4)
    with pytest.raises(ValueError, match="the trace is empty"):
        cache_state([], 0, 4)
