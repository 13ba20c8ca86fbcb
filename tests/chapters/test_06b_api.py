"""Chapter 06b: the numbers in its prose are those of its cells, of measured JSON, of arithmetic."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from typing import Any

import pytest

from judge.exercises import find
from judge.text_tokenizers import light_tokenizer
from mini_engine.benchmarks.serve_report import ATTAINED, NEAR_BEST, Slo
from mini_engine.text.stop_checker import StopChecker
from tests.chapters.chapter import ROOT, Chapter

TEXT = "Hi \N{WAVING HAND SIGN}, \u4f60\u597d!"


@pytest.fixture(scope="module")
def chapter() -> Chapter:
    return Chapter("06b_api.ipynb")


@pytest.fixture(scope="module")
def load() -> Any:
    return json.loads((ROOT / "assets/serve_load.json").read_text("utf-8"))


def test_most_tokens_of_the_text_are_no_text_alone(chapter: Chapter) -> None:
    tokenizer = light_tokenizer("smollm2")
    ids = tokenizer.encode(TEXT)
    broken = sum("\ufffd" in tokenizer.decode([token]) for token in ids)
    printed = chapter.output_of("ids = tokenizer.encode(text)")
    assert f"{len(TEXT)} characters, {len(TEXT.encode())} bytes, {len(ids)} tokens" in printed
    assert f"{broken} of {len(ids)} tokens are no text" in chapter.output_of('"decoded alone"')
    assert broken == 7
    assert "Here a client would read seven of them" in chapter.prose


def test_decoding_everything_again_is_quadratic(chapter: Chapter) -> None:
    assert sum(range(1, 1001)) == 500_500
    assert "1,000 tokens are decoded as 500,500" in chapter.prose


def test_half_characters_wait(chapter: Chapter) -> None:
    shown = chapter.output_of("one = IncrementalDetokenizer(tokenizer)")
    lines = [line for line in shown.splitlines() if line.startswith("'")]
    pieces = [literal_eval(re.findall(r"'(?:[^'\\]|\\.)*'", line)[1]) for line in lines]
    assert "".join(pieces) == TEXT
    assert "\ufffd" not in "".join(pieces)
    assert sum("pending" in line for line in lines) == 4
    assert "left at the end: ''" in shown


def test_the_prompt_decides_about_the_space_and_a_byte_spoils_its_run(chapter: Chapter) -> None:
    shown = chapter.output_of('light_tokenizer("sentencepiece_like")')
    lines = shown.splitlines()
    assert lines[0] == "behind [] 'world'"
    assert lines[1].startswith("behind [")
    assert lines[1].endswith("' world'")
    small = light_tokenizer("sentencepiece_like")
    assert small.convert_ids_to_tokens(256) == "<0xFF>"
    assert small.convert_ids_to_tokens(small.encode("\u4f60")[0]) == "\u2581"
    assert lines[2] == "'\u4f60' and with a byte that does not fit: '\ufffd\ufffd\ufffd\ufffd'"


def test_stop_strings_are_held_back(chapter: Chapter) -> None:
    shown = chapter.output_of('StopChecker(["world"])')
    assert "-> ['Hello', ' ', ''] - matched: world" in shown
    assert "-> ['Hello', ' ', 'work'] - matched: None" in shown
    engine = chapter.output_of("while engine.has_unfinished")
    first, second, third = engine.splitlines()[:3]
    assert first.startswith("' Hello' [")
    assert second == "' ' [] None None"
    assert re.fullmatch(r"'' \[\d+, \d+\] stop world!", third)
    assert "it counts three tokens" in chapter.prose
    ids = [int(number) for line in engine.splitlines()[:3] for number in re.findall(r"\d+", line)]
    assert len(ids) == 3


def test_the_picture_of_a_stream_is_at_a_half_character(chapter: Chapter) -> None:
    assert "a character is not complete" in chapter.output_of("show.text_stream(steps, 2)")


def test_only_the_core_has_torch(chapter: Chapter) -> None:
    shown = chapter.output_of("show.table(server.processes()")
    assert re.search(r"front end \d+ [\d,]+ yes yes no", shown)
    assert re.search(r"engine core \d+ [\d,]+ no yes yes", shown)


def test_a_stream_is_events_from_the_role_to_done(chapter: Chapter) -> None:
    shown = chapter.output_of("httpx.stream(")
    assert shown.startswith("200 text/event-stream")
    assert '"role": "assistant"' in shown.splitlines()[1]
    assert "[DONE]" in shown.splitlines()[-1]


def test_the_answer_streams_while_the_core_goes_on(chapter: Chapter) -> None:
    shown = chapter.output_of("seen = observe(server.url")
    first, end = re.search(r"first text after ([\d.]+) s, the end after ([\d.]+) s", shown).groups()  # type: ignore[union-attr]
    assert float(first) < float(end) / 2
    steps, chunks = re.search(r"(\d+) steps of the engine core.*? (\d+) chunks", shown).groups()  # type: ignore[union-attr]
    assert int(steps) == int(chunks) + 1
    assert "The last step gives no text: it sampled the end of sequence." in chapter.prose
    assert "'The', ' capital', ' of', ' France', ' is', ' Paris', '.'" in chapter.output_of(
        "chunks = list(client"
    )


def test_a_client_that_leaves_gives_its_blocks_back(chapter: Chapter) -> None:
    shown = chapter.output_of("stream.close()")
    held = re.findall(r"blocks held: (\d+)", shown)
    assert int(held[0]) > 0
    assert held[1] == "0"
    computed = re.search(r"computed: (\d+)", shown)
    assert computed
    assert 3 <= int(computed.group(1)) < 30


def test_the_knees_are_what_the_prose_says(chapter: Chapter, load: Any) -> None:
    closed, opened = load["sweeps"]
    assert (closed["mode"], opened["mode"]) == ("closed", "open")
    assert (NEAR_BEST, ATTAINED) == (0.9, 0.9)
    assert load["slo"] == {"ttft_ms": Slo.ttft_ms, "tpot_ms": Slo.tpot_ms}
    assert (Slo.ttft_ms, Slo.tpot_ms) == (1000, 200)
    assert "a second to the first token and 0.2 s per token after it" in chapter.prose
    speeds = {p["load"]: p["throughput"]["output_tokens_per_s"] for p in closed["points"]}
    waits = {p["load"]: p["ttft_s"]["p50"] for p in closed["points"]}
    assert speeds[closed["knee"]] > speeds[1]  # clients that decode together get more
    assert waits[max(waits)] > waits[1]  # and wait
    shown = chapter.output_of("serve_load.json")
    assert f"knees: {closed['knee']} clients, {opened['knee']} requests per second" in shown
    assert load["command"].partition(" --plot")[0] in shown


def test_broken_and_right_in_the_engine(chapter: Chapter) -> None:
    right, wrong = chapter.output_of("class EachAlone").splitlines()[:2]
    assert literal_eval(right) == TEXT
    assert literal_eval(wrong).count("\ufffd") >= 7


def test_exercises_are_shown_not_started(chapter: Chapter) -> None:
    for exercise in find("text"):
        shown = chapter.output_of(f'grade("{exercise.id}")')
        assert "not started yet: open practice/text.py" in shown
        assert "PASS" not in shown


def test_the_last_answer_is_that_of_the_reference(chapter: Chapter) -> None:
    shown = chapter.output_of("own.log.read_text")
    assert "no part is written yet: all are the reference's" in shown
    assert "The capital of France is Paris." in shown


def test_quiz(chapter: Chapter) -> None:
    checker = StopChecker(["ab", "bcd"])
    assert checker.add("xa") + checker.add("bcd") == "x"
    assert checker.matched == "ab"
    assert "`x`, and `ab`: its last character comes first" in chapter.prose
    assert 35 * 60 == 2100
    assert "35 times 60 is 2,100 tokens/s, more than was served" in chapter.prose
    assert 30 * 60 / 2000 == 0.9
    assert "Even 30 a second, 90 %, mean long waits" in chapter.prose


def test_what_the_second_process_brings(chapter: Chapter) -> None:
    cost = json.loads((ROOT / "assets/serve_overhead.json").read_text("utf-8"))
    speed = cost["throughput"]["output_tokens_per_s"]
    assert speed["engine"] > speed["server"] > speed["one process"]
    assert cost["workload"]["streams"] == 16
    shown = chapter.output_of("serve_overhead.json")
    for name in ("engine", "server", "one process"):
        share = f"{cost['throughput']['ratio_to_engine'][name]:.0%}"
        assert re.search(rf"{name} [\d.,]+ {share} ", shown), name
    assert cost["command"] in shown
