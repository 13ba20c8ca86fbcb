"""Output streams: tokens, text and stop strings together, over real tokenizers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_engine.config import DEFAULT_MODEL
from mini_engine.control.request import Request
from mini_engine.outputs import OutputStream, RequestOutput
from mini_engine.sampling_params import SamplingParams
from mini_engine.text.checkpoint import find_model, load_tokenizer
from mini_engine.text.detokenizer import REPLACEMENT, IncrementalDetokenizer
from mini_engine.text.stop_checker import StopChecker
from tests.text import tokenizers_for_tests as small

KINDS: dict[str, Callable[[], Any]] = {
    "byte_level": small.byte_level,
    "sentencepiece_like": small.sentencepiece_like,
    "metaspace": small.metaspace,
    "smollm2": lambda: load_tokenizer(find_model(DEFAULT_MODEL)),
}
EMOJI = "\N{WAVING HAND SIGN}"


@pytest.fixture(scope="module", params=sorted(KINDS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


def decode(tokenizer: Any, ids: list[int]) -> str:
    return tokenizer.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)


def play(
    tokenizer: Any, ids: list[int], params: SamplingParams, reason: str = "length"
) -> list[RequestOutput]:
    """One output per token; the request ends after the last one, or at a stop string."""
    request = Request("r", [], params)
    checker = None
    if params.stop:
        checker = StopChecker(params.stop, params.include_stop_str_in_output)
    stream = OutputStream(request, IncrementalDetokenizer(tokenizer), checker)
    outputs = []
    for number, token in enumerate(ids, start=1):
        request.append_output(token)
        if number == len(ids):
            request.finish_reason = reason
        outputs.append(stream.take())
        if outputs[-1].finished:
            break
    return outputs


def encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False))


class Pieces:
    """A tokenizer of the four tokens of case 28."""

    texts = ("Hello", " wor", "ld", "!")
    added_tokens_decoder: ClassVar[dict[int, Any]] = {}

    def convert_ids_to_tokens(self, token_id: int) -> str:
        return self.texts[token_id]

    def decode(self, token_ids: list[int], **options: Any) -> str:
        return "".join(self.texts[token_id] for token_id in token_ids)


def test_case_28_text_ids_reason_and_count() -> None:
    outputs = play(Pieces(), [0, 1, 2, 3], SamplingParams(stop=("world",)))
    assert [o.new_text for o in outputs] == ["Hello", " ", ""]
    assert [o.new_token_ids for o in outputs] == [[0], [], [1, 2]]  # " wor" was held back
    assert outputs[-1].text == "Hello "
    assert (outputs[-1].finish_reason, outputs[-1].stop) == ("stop", "world")
    assert len(outputs[-1].token_ids) == 3
    kept = play(
        Pieces(), [0, 1, 2, 3], SamplingParams(stop=("world",), include_stop_str_in_output=True)
    )
    assert kept[-1].text == "Hello world"


def test_case_30_half_a_character_holds_its_tokens_back() -> None:
    tokenizer = small.byte_level()
    ids = encode(tokenizer, EMOJI)
    assert len(ids) == 2
    outputs = play(tokenizer, [*ids, *encode(tokenizer, "he")], SamplingParams())
    assert [o.new_text for o in outputs] == ["", EMOJI, "he"]
    assert [len(o.new_token_ids) for o in outputs] == [0, 2, 1]
    (cut,) = play(tokenizer, ids[:1], SamplingParams())
    assert (cut.text, cut.new_token_ids) == (REPLACEMENT, ids[:1])


def test_case_31_a_stop_string_completed_at_the_end_is_the_reason() -> None:
    """The last token completes it and reaches max_tokens too: the string is the reason."""
    outputs = play(Pieces(), [0, 1, 2], SamplingParams(stop=("world",)), "length")
    assert (outputs[-1].finish_reason, outputs[-1].stop) == ("stop", "world")


def test_case_31_the_end_token_is_in_the_ids_and_not_in_the_text() -> None:
    outputs = play(Pieces(), [0, 1, 2, 3], SamplingParams(), "stop")
    assert outputs[-1].token_ids == [0, 1, 2, 3]
    assert outputs[-1].text == "Hello world"
    assert outputs[-1].stop == 3


def test_a_stop_string_in_what_the_detokenizer_still_held() -> None:
    tokenizer = small.byte_level()
    ids = encode(tokenizer, "he" + EMOJI)[:-1]  # ends inside a character
    outputs = play(tokenizer, ids, SamplingParams(stop=(REPLACEMENT,)))
    assert (outputs[-1].text, outputs[-1].stop) == ("he", REPLACEMENT)


def test_text_of_the_first_min_tokens_never_ends_it() -> None:
    params = SamplingParams(stop=("l",), min_tokens=2)
    outputs = play(Pieces(), [0, 1, 2, 3], params)
    assert outputs[-1].text == "Hello wor"
    assert [o.new_text for o in outputs] == ["Hello", " wor", ""]


texts = st.lists(
    st.sampled_from(["he", "llo", " world", EMOJI, "\u4f60\u597d", "e\u0301", " ", "is", "a", "\n"])
    | st.text(max_size=3),
    max_size=8,
).map("".join)


@settings(deadline=None, max_examples=200)
@given(data=st.data())
def test_joined_text_is_the_whole_up_to_the_stop_and_ids_never_say_more(
    tokenizer: Any, data: st.DataObject
) -> None:
    ids = encode(tokenizer, data.draw(texts))
    if not ids:
        return
    whole = decode(tokenizer, ids)
    stops = data.draw(st.lists(st.sampled_from(["lo", "w", EMOJI, "is", "a\n", " wo"]), max_size=3))
    if whole and data.draw(st.booleans()):
        start = data.draw(st.integers(0, len(whole) - 1))
        stops.append(whole[start : start + 3])
    outputs = play(tokenizer, ids, SamplingParams(stop=tuple(stops)))
    ends = [(whole.find(stop) + len(stop), -len(stop)) for stop in stops if stop in whole]
    expected = whole if not ends else whole[: min(ends)[0] + min(ends)[1]]
    assert "".join(o.new_text for o in outputs) == outputs[-1].text == expected
    assert outputs[-1].finish_reason == ("stop" if ends else "length")
    for output in outputs[:-1]:
        shown = decode(tokenizer, output.token_ids)
        assert len(shown) <= len(output.text)
        assert output.text.startswith(shown)
    joined = [token for o in outputs for token in o.new_token_ids]
    assert joined == outputs[-1].token_ids == ids[: len(joined)]
