"""Streaming text: pieces joined are the whole decode, and no piece splits a character."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text.checkpoint import find_model, load_tokenizer
from mini_engine.text.detokenizer import BYTE_ALPHABET, REPLACEMENT, IncrementalDetokenizer
from tests.text import tokenizers_for_tests as small

KINDS: dict[str, Callable[[], Any]] = {
    "byte_level": small.byte_level,
    "sentencepiece_like": small.sentencepiece_like,
    "metaspace": small.metaspace,
    "smollm2": lambda: load_tokenizer(find_model(DEFAULT_MODEL)),
}
EMOJI = "\N{WAVING HAND SIGN}"
TEXTS = [
    f"hello {EMOJI} world",
    "\u4f60\u597d\uff0c\u4e16\u754c",
    "e\u0301a\u0308 and n\u0303",
    "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 family",
    "  two spaces,\n\ttabs and 12345",
    "",
]


@pytest.fixture(scope="module", params=sorted(KINDS))
def tokenizer(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


@pytest.fixture(scope="module", params=sorted(set(KINDS) - {"metaspace"}))
def tokenizer_with_bytes(request: pytest.FixtureRequest) -> Any:
    return KINDS[request.param]()


def decode(tokenizer: Any, token_ids: Sequence[int]) -> str:
    return tokenizer.decode(
        list(token_ids), skip_special_tokens=True, clean_up_tokenization_spaces=False
    )


def stream(tokenizer: Any, token_ids: Sequence[int], prompt: Sequence[int] = ()) -> list[str]:
    detokenizer = IncrementalDetokenizer(tokenizer, prompt)
    return [detokenizer.add([token_id]) for token_id in token_ids] + [detokenizer.finish()]


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_joined_pieces_are_the_whole_decode_of_any_ids(tokenizer: Any, data: st.DataObject) -> None:
    beyond = len(tokenizer) + 3  # models have padded vocabularies: such ids have no text
    token_ids = data.draw(st.lists(st.integers(0, beyond), max_size=40))
    assert "".join(stream(tokenizer, token_ids)) == decode(tokenizer, token_ids)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_joined_pieces_are_the_whole_decode_of_any_bytes(
    tokenizer_with_bytes: Any, data: st.DataObject
) -> None:
    """Byte tokens nearly alone: most sequences are no valid UTF-8, many are cut characters."""
    tokenizer = tokenizer_with_bytes
    token_of_byte = byte_tokens(tokenizer)
    text = data.draw(st.binary(max_size=30) | st.text(max_size=10).map(str.encode))
    token_ids = [token_of_byte[byte] for byte in text if token_of_byte[byte] is not None]
    gap = data.draw(st.integers(0, len(token_ids)))
    token_ids[gap:gap] = tokenizer.encode("hello", add_special_tokens=False)
    assert "".join(stream(tokenizer, token_ids)) == decode(tokenizer, token_ids)


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_pieces_are_what_the_output_adds_to_the_prompt(tokenizer: Any, data: st.DataObject) -> None:
    texts = st.sampled_from([text for text in TEXTS if text] + ["hello", " world"])
    prompt = tokenizer.encode(data.draw(texts), add_special_tokens=False)
    token_ids = tokenizer.encode(data.draw(texts), add_special_tokens=False)
    joined = "".join(stream(tokenizer, token_ids, prompt))
    assert decode(tokenizer, prompt) + joined == decode(tokenizer, prompt + token_ids)


@settings(deadline=None, max_examples=100)
@given(data=st.data())
def test_how_tokens_are_grouped_changes_nothing(tokenizer: Any, data: st.DataObject) -> None:
    token_ids = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=20))
    cut = data.draw(st.integers(0, len(token_ids)))
    detokenizer = IncrementalDetokenizer(tokenizer)
    pieces = [detokenizer.add(token_ids[:cut]), detokenizer.add(token_ids[cut:])]
    assert "".join([*pieces, detokenizer.finish()]) == decode(tokenizer, token_ids)


@pytest.mark.parametrize("text", TEXTS)
def test_case_30_no_piece_of_real_text_shows_a_broken_character(tokenizer: Any, text: str) -> None:
    token_ids = tokenizer.encode(text, add_special_tokens=False)
    pieces = stream(tokenizer, token_ids)
    assert REPLACEMENT not in "".join(pieces)
    assert "".join(pieces) == decode(tokenizer, token_ids)


def test_case_30_an_emoji_appears_when_its_last_byte_does() -> None:
    tokenizer = small.byte_level()
    for token_ids in (
        tokenizer.encode(EMOJI, add_special_tokens=False),
        [byte_tokens(tokenizer)[byte] for byte in EMOJI.encode()],
    ):
        assert len(token_ids) in (2, 4)
        assert stream(tokenizer, token_ids) == [""] * (len(token_ids) - 1) + [EMOJI, ""]


def test_case_30_an_incomplete_tail_shows_as_one_replacement_character_at_the_end() -> None:
    tokenizer = small.byte_level()
    for length in (1, 2, 3):
        token_ids = [byte_tokens(tokenizer)[byte] for byte in EMOJI.encode()[:length]]
        assert stream(tokenizer, token_ids) == [""] * length + [REPLACEMENT]


def test_a_run_of_byte_tokens_is_held_until_it_ends() -> None:
    """A later byte can still make SentencePiece decode the whole run as invalid."""
    tokenizer = small.sentencepiece_like()
    run = [byte_tokens(tokenizer)[byte] for byte in EMOJI.encode()]
    world = tokenizer.convert_tokens_to_ids("\u2581world")
    assert stream(tokenizer, [*run, world]) == ["", "", "", "", f"{EMOJI} world", ""]


def test_a_character_begun_in_the_prompt_belongs_to_the_output(tokenizer_with_bytes: Any) -> None:
    tokenizer = tokenizer_with_bytes
    spelled = [byte_tokens(tokenizer)[byte] for byte in EMOJI.encode()]
    hello = tokenizer.encode("hello", add_special_tokens=False)
    pieces = stream(tokenizer, [*spelled[2:], *hello], hello + spelled[:2])
    after = decode(tokenizer, [*hello, *spelled, *hello]).removeprefix(decode(tokenizer, hello))
    assert "".join(pieces) == after
    assert "".join(stream(tokenizer, [], hello + spelled[:2])) == ""


def test_special_tokens_have_no_text_and_do_not_end_a_character(tokenizer: Any) -> None:
    end = tokenizer.eos_token_id
    token_ids = tokenizer.encode("hello world", add_special_tokens=False)
    mixed = [
        end,
        *(token for pair in zip(token_ids, [end] * len(token_ids), strict=True) for token in pair),
    ]
    assert "".join(stream(tokenizer, mixed)) == decode(tokenizer, token_ids)


def test_the_first_word_keeps_its_space_after_a_prompt() -> None:
    tokenizer = small.sentencepiece_like()
    word = tokenizer.convert_tokens_to_ids("\u2581world")
    assert stream(tokenizer, [word]) == ["world", ""]
    assert stream(tokenizer, [word], tokenizer.encode("hello")) == [" world", ""]


def test_the_work_per_token_does_not_grow_with_the_text(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counts the tokens that `decode` gets, also in long runs of bytes and of odd characters."""
    tokenizer = small.sentencepiece_like()
    odd = tokenizer.convert_tokens_to_ids(REPLACEMENT)
    world = tokenizer.convert_tokens_to_ids("\u2581world")
    decoded: list[int] = []
    original = tokenizer.decode

    def counting(token_ids: list[int], **options: Any) -> str:
        decoded.append(len(token_ids))
        return original(token_ids, **options)

    run = [byte_tokens(tokenizer)[255]] * 2000
    for token_ids in ([world] * 2000, [*run, world], [odd] * 2000, [world, odd] * 1000):
        expected = decode(tokenizer, token_ids)
        with monkeypatch.context() as patch:
            patch.setattr(tokenizer, "decode", counting)
            decoded.clear()
            assert "".join(stream(tokenizer, token_ids)) == expected
        assert sum(decoded) <= 4 * len(token_ids)


def test_finish_ends_it_once() -> None:
    tokenizer = small.byte_level()
    detokenizer = IncrementalDetokenizer(tokenizer)
    detokenizer.add([byte_tokens(tokenizer)[0xE4]])
    assert [detokenizer.finish(), detokenizer.finish()] == [REPLACEMENT, ""]
    with pytest.raises(RuntimeError, match="finished"):
        detokenizer.add([1])


def byte_tokens(tokenizer: Any) -> dict[int, int | None]:
    """The token that is exactly this byte, where the vocabulary has one."""
    vocabulary = tokenizer.get_vocab()
    if "<0x00>" in vocabulary:
        return {byte: vocabulary[f"<0x{byte:02X}>"] for byte in range(256)}
    return {byte: vocabulary.get(character) for character, byte in BYTE_ALPHABET.items()}
