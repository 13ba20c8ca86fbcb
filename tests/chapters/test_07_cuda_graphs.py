"""Chapter 07: the numbers in its prose are those of its cells, of the engine, or of arithmetic."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from itertools import pairwise

import pytest

from judge.exercises import find
from mini_engine.compute.graph_buckets import graph_buckets
from mini_engine.compute.random_model import SMOLLM2_135M
from mini_engine.show.gpu_figures import FIGURES
from tests.chapters.chapter import Chapter


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("07_cuda_graphs.ipynb")


def launches(chapter: Chapter) -> int:
    """How many the counted step launched."""
    found = re.search(r"(\d+) launches for three tokens", table_of(chapter))
    assert found
    return int(found.group(1))


def table_of(chapter: Chapter) -> str:
    return chapter.output_of("counted.launches.most_common(12)")


def test_the_launches_of_a_layer(chapter: Chapter) -> None:
    shown = table_of(chapter)
    rows = re.findall(r"^([a-z_0-9]+) (\d+) (\d+)$", shown, re.MULTILINE)
    assert len(rows) == 12
    layers = SMOLLM2_135M.num_layers
    assert all(int(number) // layers == int(each) for _, number, each in rows)
    assert round(launches(chapter) / layers) in (32, 33)
    assert "About 32 launches a layer" in chapter.prose
    assert ("mm", str(4 * layers + 1), "4") in rows, "and the last matrix"
    assert "`mm` are the matrices: four in a layer" in chapter.prose
    assert ("rsqrt", str(2 * layers + 1), "2") in rows, "once in each norm"
    assert f"in each of {2 * layers + 1} norms" in chapter.prose


def test_what_reading_the_weights_takes(chapter: Chapter) -> None:
    c = SMOLLM2_135M
    attention = c.hidden_size * c.head_dim * (2 * c.num_heads + 2 * c.num_kv_heads)
    layer = attention + 3 * c.hidden_size * c.intermediate_size + 2 * c.hidden_size
    weights = c.vocab_size * c.hidden_size + c.num_layers * layer + c.hidden_size
    assert f"{weights:,} weights" in chapter.prose
    assert f"1,000 GB a second needs {2 * weights / 1e12 * 1e3:.2f} ms" in chapter.prose


def test_gpu_figures_are_shown_with_their_machine_or_not_at_all(chapter: Chapter) -> None:
    shown = chapter.output_of("show.graph_figures()")
    if FIGURES.exists():
        assert json.loads(FIGURES.read_text(encoding="utf-8"))["device"] in shown
    else:
        assert "not measured" in shown
    assert "no speed is claimed for it" in chapter.prose


def test_capture_runs_nothing_and_replay_reads_what_is_there(chapter: Chapter) -> None:
    shown = chapter.output_of("address = result.data_ptr()")
    assert "after capture: [nan, nan]" in shown
    assert "after a replay: [3.0, 5.0]" in shown
    assert "with other numbers: [21.0, 41.0] at the same address: True" in shown
    rebound = chapter.output_of("del old")
    assert rebound.strip().startswith("[21.0, 41.0]")
    assert "memory that was freed" in rebound
    baked = chapter.output_of('print("a Python number:"')
    assert "a Python number: 1.5" in baked
    assert re.findall(r"in a tensor: (\d) -> ([\d.]+)", baked) == [
        (str(n), str((n + 1) / 2)) for n in (2, 4, 8)
    ]
    assert "kept: 1.5 - the same memory as mean: True" in chapter.output_of('print("kept:"')


def test_what_is_refused(chapter: Chapter) -> None:
    shown = chapter.output_of("verdict = re.sub")
    assert "4 of 6 lines are refused" in shown
    for line in ("x[index] captured", "torch.where(x &gt; 1, x, 0.0) captured"):
        assert line in shown
    assert shown.count("can&#x27;t be captured:") == 4
    assert ".py" not in shown, "no path of the machine that recorded it"


def test_what_remains_of_a_step(chapter: Chapter) -> None:
    shown = chapter.output_of("replayed, again = count_decode_step(graphs)")
    assert "tokens are the same: True" in shown
    remaining = literal_eval(re.findall(r"^\{.*\}$", shown, re.MULTILINE)[0])
    assert remaining["copy_"] == 5
    assert "Five copies into the buffers" in chapter.prose
    assert f"launches: {launches(chapter)} before, {sum(remaining.values())} + " in shown
    assert "[(3, None), (3, 4)]" in shown
    captured = chapter.output_of("captured = {bucket:")
    sizes = literal_eval(re.findall(r"\{.*\}", captured)[0])
    assert sorted(sizes) == list(graph_buckets(4))
    assert len(set(sizes.values())) == 1


def test_padding_against_the_number_of_graphs(chapter: Chapter) -> None:
    first = chapter.output_of("asks = [Ask(str(i)")
    steps, requests = map(int, re.findall(r"(\d+) decode steps of (\d+) requests", first)[0])
    shown = chapter.output_of("show.line_chart(")
    evenly, best = (
        [int(n) for n in found.split(", ")] for found in re.findall(r": ([\d, ]+)\.", shown)
    )
    assert len(evenly) == len(best) == 8
    assert all(b <= e for b, e in zip(best, evenly, strict=True))
    assert best[0] > requests
    assert "With one graph, more rows are padding than are requests" in chapter.prose
    assert evenly[4] <= best[3] < 1.1 * evenly[4]
    assert "hardly more than five that are spread evenly" in chapter.prose
    gains = [a - b for a, b in pairwise(best)]
    assert gains == sorted(gains, reverse=True)
    assert "each further size brings less than the one before" in chapter.prose
    picture = chapter.output_of("picture(2)")
    assert f"{steps} decode steps replay {requests + evenly[1]} rows" in picture


def test_padding_that_is_left_as_it_was_answers_wrongly(chapter: Chapter) -> None:
    shown = chapter.output_of("wrong = serve(LeavesRows)")
    right, wrong = (re.findall(rf"{word}: (.+)", shown) for word in ("right", "wrong"))
    assert len(right) == len(wrong) == 1
    assert right != wrong
    assert "4 of 5 answers are right" in shown


def test_the_modes_of_vllm_are_those_of_the_text(chapter: Chapter) -> None:
    section = chapter.section("What vLLM and SGLang do")
    for mode in ("FULL", "PIECEWISE", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE"):
        assert f"`{mode}`" in section
    for backend in ("full", "breakable", "disabled"):
        assert f"`{backend}`" in section
    shown = chapter.output_of('show.source_table("graphs")')
    for name in ("GraphRunner", "ModelCudaGraphManager", "DecodeCudaGraphRunner"):
        assert name in shown


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    for exercise in find("ch07"):
        shown = chapter.output_of(f'grade("{exercise.id}")')
        assert "not started yet: open practice/graphs.py" in shown
        assert "PASS" not in shown


def test_quiz(chapter: Chapter) -> None:
    assert "1, 2, 4, 8, 16, 32, 64. What happens with a step of 80" in chapter.section("Quiz")
    assert graph_buckets(100)[-1] == 100
