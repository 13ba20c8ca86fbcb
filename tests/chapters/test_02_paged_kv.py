"""Chapter 02: the numbers in its prose are those of the engine, of its cells, or of arithmetic."""

from __future__ import annotations

import re
from ast import literal_eval

import pytest

from mini_engine.compute.batch import slot_mapping
from mini_engine.compute.kv_cache import CPU_LIMIT, CPU_SHARE, CUDA_SHARE, GIB
from mini_engine.config import EngineConfig, ModelConfig
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("02_paged_kv.ipynb")


def rows_of(text: str) -> list[list[str]]:
    return [line.split() for line in text.splitlines() if line]


def used_slots(chapter: Chapter) -> list[int]:
    """The third number column of the table of reservations, the total left out."""
    shown = chapter.output_of("# The last token of an answer")
    return [int(used) for used in re.findall(r" 512 (\d+) \d+", shown)]


def test_reserving_wastes_what_the_table_says(chapter: Chapter) -> None:
    used, shown = used_slots(chapter), chapter.output_of("# The last token of an answer")
    assert len(used) == 12
    assert f"all twelve 6144 {sum(used)} {6144 - sum(used)}" in shown
    assert f"{sum(used) / 6144:.0%} of the reserved are used" in shown
    lengths = literal_eval(chapter.output_of("questions = (").splitlines()[0].split(" tokens")[0])
    assert all(0 <= n - prompt < 10 for n, prompt in zip(used, lengths, strict=True))


def test_four_reservations_but_twelve_requests_in_blocks(chapter: Chapter) -> None:
    shown = chapter.output_of("paged_outputs, paged_trace = serve")
    assert re.search(r"one block of 512 4 \d+", shown)
    assert re.search(r"blocks of 16 12 10", shown)
    assert "all twelve answers the same: True" in shown
    assert "is then four reservations" in chapter.prose
    assert 2048 // 512 == 4


def test_the_loss_at_each_block_size(chapter: Chapter) -> None:
    used, shown = used_slots(chapter), chapter.output_of("for size in (1, 4, 16, 64, 256):\n    b")
    alike = int(shown.split(" common tokens")[0].split()[-1])
    assert alike < min(used[-2:])
    for size in (1, 4, 16, 64, 256):
        blocks = sum(-(-n // size) for n in used)
        lost = blocks * size - sum(used)
        share = f"{lost / (blocks * size):.0%}"
        assert f"{size} {blocks} {lost} {share} {alike // size * size}" in shown
    near_the_end = [n for n in used if 40 < n < 48]
    assert len(near_the_end) == 10
    assert sum(-n % 16 for n in used) / len(used) < 16 / 2
    assert "Ten of them end just below 48, so blocks of 16 lose less" in chapter.prose


def test_slots_worked_by_hand(chapter: Chapter) -> None:
    assert slot_mapping([7, 2, 9], 6, 1, 4) == [10]
    assert "`2 * 4 + 2 = 10`" in chapter.prose
    assert slot_mapping([5, 0, 3], 37, 1, 16) == [3 * 16 + 5]
    forgot_the_table, wrong_entries = 37, [table * 16 + 5 for table in (5, 0)]
    assert "If you found 37" in chapter.prose
    assert f"If you found {forgot_the_table}" in chapter.prose
    assert "If you found {1} or {0}".format(*wrong_entries) in chapter.prose.replace("  ", " ")
    assert slot_mapping([4, 9], 11, 3, 8) == [75, 76, 77]
    assert "slots 75, 76, 77" in chapter.prose


def test_attention_does_not_depend_on_where_blocks_lie(chapter: Chapter) -> None:
    assert "textbook: 0.000000" in chapter.output_of("textbook = torch")
    assert "bitwise like contiguous attention: True" in chapter.output_of("textbook = torch")
    assert "bitwise the same: True" in chapter.output_of("moved_table = ")


def test_unwritten_slots_change_the_result_and_poison_shows_it(chapter: Chapter) -> None:
    changes = literal_eval(chapter.output_of("def change(content)").split("tokens; ")[1])
    assert float(changes["zeros"]) > 0.01
    assert float(changes["tokens of B"]) > 0.01
    assert float(changes["poison"]) > 100
    lines = chapter.output_of("def answer(function, debug)").splitlines()
    correct, wrong = (literal_eval(line.split(" ", 1)[1]) for line in lines[:2])
    assert correct[0] == correct[1]
    assert wrong[0] != wrong[1]


def test_shared_blocks_come_back_with_the_last_holder(chapter: Chapter) -> None:
    lines = chapter.output_of("sharing = LLMEngine").splitlines()
    first, second = (literal_eval(line.split(" ", 1)[1]) for line in lines[:2])
    shared = first.keys() & second.keys()
    assert shared
    assert all(first[block] == second[block] == 2 for block in shared)
    shown = chapter.output_of("sharing.abort(first)")
    assert f"{len(first) - len(shared)} freed" in shown
    assert "free: 16 of 16" in shown


def test_breaking_it_gives_clear_errors(chapter: Chapter) -> None:
    assert "is free already; it was freed twice" in chapter.output_of("careful = BlockPool")
    shown = chapter.output_of("both, kept = ")
    assert "its own: False - the next one's: True" in shown
    assert "has reference count 0, 1 tables hold it" in shown


def test_the_budget_of_a_real_gpu(chapter: Chapter) -> None:
    llama = ModelConfig(
        "LlamaForCausalLM", 128_256, 4096, 14_336, 32, 32, 8, 128, max_position_embeddings=131_072
    )
    heads = llama.head_dim * (2 * llama.num_heads + 2 * llama.num_kv_heads)
    layer = llama.hidden_size * (heads + 3 * llama.intermediate_size + 2)
    parameters = llama.num_layers * layer + llama.hidden_size * (2 * llama.vocab_size + 1)
    assert f"{parameters:,} parameters" in chapter.prose
    kv = 0.92 * 80 * GIB - 2 * parameters - 2 * GIB
    blocks = int(kv // (16 * llama.kv_bytes_per_token(2)))
    shown = chapter.output_of("weights, headroom = ")
    assert f"{llama.kv_bytes_per_token(2) // 1024} KiB a token" in shown
    assert f"{blocks} blocks of 16 tokens = {blocks * 16} tokens" in shown
    assert f"{blocks * 16 // 4096} requests of 4,096 tokens" in shown
    two_cards = 2 * (0.92 * 80 * GIB - parameters - 2 * GIB)
    assert 2 < two_cards / kv < 3
    assert "a second card more than doubles the KV memory" in chapter.prose


def test_what_the_engine_chooses_is_told_rightly(chapter: Chapter) -> None:
    assert (CUDA_SHARE, CPU_SHARE, CPU_LIMIT) == (0.8, 0.25, GIB)
    assert "on a GPU 80 percent of what is free" in chapter.prose
    assert "a quarter of what is available and at most 1 GiB" in chapter.prose
    assert EngineConfig().block_size == 16


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    for name in ("block-pool", "slot-mapping", "paged-attention"):
        shown = chapter.output_of(f'grade("paged-kv.{name}")')
        assert "not started yet: open practice/paged_kv.py" in shown
        assert "PASS" not in shown


def test_quiz(chapter: Chapter) -> None:
    assert (-(-48 // 16), -(-49 // 16)) == (3, 4)
    assert "it has 15 unwritten slots" in chapter.prose
    assert [sum(range(size)) / size for size in (16, 64)] == [7.5, 31.5]
    assert "about 7.5 slots per request, against about 31.5" in chapter.prose
