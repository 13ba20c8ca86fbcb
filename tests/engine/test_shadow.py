"""The shadow model: right tokens for right reads, other tokens for every wrong one."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from mini_engine.control.request import Request
from mini_engine.engine import LLMEngine
from mini_engine.interfaces import Chunk, Schedule
from mini_engine.sampling_params import SamplingParams
from mini_engine.shadow import ShadowModel

VOCAB = 1000
PROMPTS = [[1, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 9], [8], [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]]


def model(**options: Any) -> ShadowModel:
    return ShadowModel(2, VOCAB, **options)


def request(name: str, tokens: list[int], table: list[int], salt: str | None = None) -> Request:
    found = Request(name, tokens, cache_salt=salt)
    found.block_table = table
    return found


def whole(one: Request) -> Chunk:
    return Chunk(one, 0, one.num_tokens, True)


@pytest.mark.parametrize("options", [{}, {"max_num_batched_tokens": 3}, {"num_blocks": 7}])
@pytest.mark.parametrize("caching", [True, False])
def test_each_request_gets_the_tokens_that_it_would_get_alone(
    options: dict[str, Any], caching: bool
) -> None:
    sizes = {"num_blocks": 30, "block_size": 2, "max_model_len": 20, "debug": True, **options}
    shadow = model()
    engine = LLMEngine(runner=shadow, enable_prefix_caching=caching, **sizes)
    outputs = engine.generate(PROMPTS, SamplingParams(4, ignore_eos=True))
    for prompt, output in zip(PROMPTS, outputs, strict=True):
        tokens = list(output.token_ids)
        assert tokens == [shadow.next_token(prompt + tokens[:number]) for number in range(4)]


def test_it_says_what_is_wrong_with_a_read() -> None:
    shadow = model()
    one, other = request("one", [1, 2, 3], [4, 5]), request("other", [1, 2, 3], [4, 5], salt="x")
    shadow.compute([whole(one)])
    shadow.compute([Chunk(one, 2, 1, True)])
    assert shadow.wrong_reads == []
    shadow.compute([Chunk(other, 2, 1, False)])
    assert list(map(str, shadow.wrong_reads)) == [
        "other reads foreign KV at position 0, block 4 offset 0"
    ]
    one.append_output(4)
    one.append_output(5)
    one.block_table.append(6)
    shadow.compute([Chunk(one, 4, 1, True)])
    wrong = list(map(str, shadow.wrong_reads))
    assert wrong == ["one reads foreign KV at position 2, block 5 offset 0"]


def test_an_unwritten_and_a_poisoned_slot_are_unwritten() -> None:
    shadow, one = model(), request("one", [1, 2, 3], [4, 5])
    right = shadow.next_token([1, 2, 3])
    assert shadow.run(Schedule([Chunk(one, 1, 2, True)])) != {"one": right}
    assert str(shadow.wrong_reads[0]) == "one reads unwritten KV at position 0, block 4 offset 0"
    shadow.run(Schedule([Chunk(one, 0, 2, False)]))
    shadow.poison([Chunk(one, 2, 1, True)], [4], 1e4)
    assert shadow.run(Schedule([Chunk(one, 2, 1, True)])) != {"one": right}
    assert shadow.wrong_reads[0].unwritten


def test_what_follows_from_a_wrong_read_is_wrong_too() -> None:
    shadow, one = model(), request("one", [1, 2, 3], [0, 1])
    shadow.compute([Chunk(one, 1, 1, False)])  # position 0 was never written
    shadow.compute([Chunk(one, 0, 1, False)])  # and comes too late
    assert shadow.run(Schedule([Chunk(one, 2, 1, True)])) != {"one": shadow.next_token([1, 2, 3])}
    assert shadow.wrong_reads[0].position == 1


def test_tokens_of_one_step_see_each_other_in_any_order() -> None:
    shadow = model()
    early, late = request("early", [1, 2, 3], [0, 1]), request("late", [1, 2, 7], [0, 2])
    found = shadow.run(Schedule([Chunk(late, 2, 1, True), whole(early)]))
    assert shadow.wrong_reads == []
    assert found == {
        n: shadow.next_token(t) for n, t in (("late", [1, 2, 7]), ("early", [1, 2, 3]))
    }


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"slot_mapping": lambda table, start, count, size: [0] * (count - 1)}, "slots for"),
        ({"logits_rows": lambda starts, ends, known: [0]}, "rows of logits"),
    ],
    ids=["a slot is missing", "a row is missing"],
)
def test_it_refuses_what_tensors_would_refuse(part: Any, message: str) -> None:
    chunks = [whole(request(name, [1, 2], [block])) for block, name in enumerate("ab")]
    with pytest.raises(ValueError, match=message):
        model(**part).run(Schedule(chunks))


@pytest.mark.parametrize(
    ("tokens", "table", "message"), [([1, 2, 3], [0], "blocks of 2"), ([1], [0, 1], "but it has 1")]
)
def test_it_refuses_a_chunk_beyond_tokens_or_table(
    tokens: list[int], table: list[int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        model().run(Schedule([Chunk(request("a", tokens, table), 0, 3, True)]))


def test_every_process_makes_the_same_tokens() -> None:
    line = "from mini_engine.shadow import ShadowModel; print(ShadowModel(2, 1000).next_token(%s))"
    command = [sys.executable, "-c", line % "[1], 'x'"]
    found = [
        subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        for environment in ({"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2"})
    ]
    assert {one.stdout for one in found} == {f"{model().next_token([1], 'x')}\n"}
