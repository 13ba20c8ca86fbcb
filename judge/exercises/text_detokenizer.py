"""Owns the checks, hints and known mistakes of `text.detokenizer`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from judge import text_engine_checks
from judge.api import Case, Check, Details, Difference, Mistake
from judge.models import LABEL, REAL
from judge.text_compare import streams

RUN = "judge.text_run:detokenize"
EMOJI = "\N{WAVING HAND SIGN}"
FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
CHINESE = "\u4f60\u597d\uff0c\u4e16\u754c"
ACCENTS = "e\u0301a\u0308 n\u0303 \u00fc"
THAI = "\u0e2a\u0e27\u0e31\u0e2a\u0e14\u0e35"
WHOLE = ("byte_level", "sentencepiece_like", "metaspace")
WITH_BYTES = ("byte_level", "sentencepiece_like")
SIZES = {"byte_level": 264, "sentencepiece_like": 292, "metaspace": 33}
MOST_DECODED = 40.0  # tokens decoded or spelled per token; decoding all text each time takes 300
LONG = 600
HE, LL, W, FRONT, BACK = range(256, 261)  # merges of byte_level; the last are halves of the emoji
INVALID = 239  # of byte_level: the byte 0x91, which begins no character
BYTE_0, WORD = 1, 259  # of sentencepiece_like: <0x00>, and the first of its words
SPACED = {"sentencepiece_like": WORD + 8, "metaspace": 10}  # the first word with its space


def stream(
    output: str | list[int], prompt: str | list[int] = "", drop: int = 0,
    sizes: list[int] | None = None,
) -> dict[str, Any]:  # fmt: skip
    return {"output": output, "before": prompt or [], "drop": drop, "sizes": sizes}


def case(label: str, tokenizer: str, *parts: dict[str, Any]) -> Case:
    name = LABEL if tokenizer == REAL else f"tokenizer {tokenizer}"
    return Case(f"{label} ({name})", {"model": tokenizer, "streams": list(parts)})


def words(rng: random.Random, count: int = 4) -> str:
    known = ["hello", "world", "is", "the", "user", "he"]
    return " ".join(rng.choice(known) for _ in range(count))


def plain(rng: random.Random) -> Sequence[Case]:
    cases = [case("one word", kind, stream("hello")) for kind in WHOLE]
    cases += [case("words", kind, stream(words(rng))) for kind in WHOLE]
    added = "hello<think now> is"
    cases += [case("a token that was added to the vocabulary", k, stream(added)) for k in WHOLE]
    return [*cases, case("nothing", "byte_level", stream([]))]


def characters(rng: random.Random) -> Sequence[Case]:
    texts = [f"hello {EMOJI} world", f"he{CHINESE}", ACCENTS, f"{FAMILY}{THAI}", f"{EMOJI}{EMOJI}"]
    cases = [case("characters of several tokens", "byte_level", stream(t)) for t in texts]
    label = "a token with one character and a part of the next"
    return [*cases, case(label, "byte_level", stream("is a\u4f60\u597d, he"))]


def cut(rng: random.Random) -> Sequence[Case]:
    """Outputs that end inside a character, as max_tokens may."""
    cases = []
    for text, drops in ((f"he{EMOJI}", (1, 0)), (f"is {CHINESE[:2]}", (1, 2, 3, 4))):
        for drop in drops:
            label = f"{drop} of the last tokens never come" if drop else "a complete character"
            cases.append(case(label, "byte_level", stream(text, drop=drop)))
    return cases


def spaces(rng: random.Random) -> Sequence[Case]:
    """Tokenizers that drop the first space of a text; the output goes on behind the prompt."""
    cases = []
    for kind in ("sentencepiece_like", "metaspace"):
        cases.append(case("words", kind, stream(words(rng, 6))))
        cases.append(case("behind a prompt", kind, stream(words(rng, 3), prompt=words(rng, 5))))
    text, prompt = f" {words(rng)}", words(rng, 30)
    cases.append(case("behind a prompt", "byte_level", stream(text, prompt=prompt)))
    ids = [HE, LL, HE]
    cases.append(case("behind token ids", "byte_level", stream(words(rng), prompt=ids)))
    return cases


def byte_runs(rng: random.Random) -> Sequence[Case]:
    """SentencePiece's byte tokens: valid or invalid as a whole run."""
    kind = "sentencepiece_like"
    bad = [BYTE_0 + byte for byte in (*b"\xe4\xbd\xa0", 0xFF)]
    text = f"hello {EMOJI}{CHINESE[:2]} world"
    return [
        case("a run inside a text", kind, stream(text)),
        case("a run at the end", kind, stream(f"the {CHINESE[:2]}")),
        case("a run that ends early", kind, stream(f"he {CHINESE[:2]}", drop=rng.randint(1, 5))),
        case("a whole character, and then a byte that spoils the run", kind, stream(bad)),
        case("the same, and a word behind it", kind, stream([*bad, WORD + rng.randrange(8)])),
    ]


def no_text(rng: random.Random) -> Sequence[Case]:
    """Special tokens, and ids that the vocabulary doesn't have (models pad it)."""
    cases = []
    for kind in WHOLE:
        size, end = SIZES[kind], SIZES[kind] - 2
        known = [rng.randrange(size - 20, size - 2) for _ in range(4)]
        label = "special tokens and unknown ids between others"
        cases.append(case(label, kind, stream([*known[:2], end, *known[2:], size + 3, known[0]])))
        cases.append(case("nothing but such tokens", kind, stream([end, size + 5])))
    return [*cases, *_specials_inside(), *_specials_behind_a_prompt()]


def _specials_inside() -> list[Case]:
    """Special tokens inside a character: its bytes still belong together."""
    label, cases = "special tokens inside a character", []
    for kind, bytes_ in (
        ("sentencepiece_like", [BYTE_0 + byte for byte in b"\xe4\xbd\xa0"]),
        ("byte_level", [FRONT, BACK]),
    ):
        end = SIZES[kind] - 2
        cases.append(case(label, kind, stream([*bytes_[:-1], end, bytes_[-1]])))
        cases.append(case(label, kind, stream([bytes_[0], *[end] * 5, *bytes_[1:]])))
    return cases


def _specials_behind_a_prompt() -> list[Case]:
    """However many they are, the prompt's words in front of them decide about the first space."""
    return [
        case(f"behind a prompt that ends in {count} special tokens", kind,
             stream([word, word + 1], prompt=[word, word, *[SIZES[kind] - 2] * count]))
        for kind, word in SPACED.items()
        for count in (1, 4, 12)
    ]  # fmt: skip


def half_prompts(rng: random.Random) -> Sequence[Case]:
    """A prompt of token ids that ends inside a character: the output completes it."""
    return [
        case("the prompt ends inside a character", "byte_level", stream([BACK], prompt=[FRONT])),
        case("the same, with words around it", "byte_level",
             stream([BACK, HE, HE], prompt=[LL, FRONT])),
    ]  # fmt: skip


def any_bytes(rng: random.Random) -> Sequence[Case]:
    """Random tokens: most are no valid text."""
    cases = []
    for kind in (*WITH_BYTES, "metaspace"):
        for count in (10, 40):
            ids = [rng.randrange(SIZES[kind]) for _ in range(count)]
            cases.append(case(f"{count} random tokens", kind, stream(ids)))
    return cases


def groups(rng: random.Random) -> Sequence[Case]:
    """Several tokens in one call, or none."""
    text = f"{words(rng)} {EMOJI} {CHINESE}"
    return [
        case("several tokens at once", kind,
             stream(text, sizes=[rng.randint(0, 4) for _ in range(6)]))
        for kind in WITH_BYTES
    ]  # fmt: skip


def together(rng: random.Random) -> Sequence[Case]:
    """Two and three requests that take turns."""
    texts = [f"he{EMOJI} is", f"{CHINESE} the", words(rng)]
    return [
        case("requests side by side", kind, *(stream(text) for text in texts))
        for kind in WITH_BYTES
    ]


def long_text(rng: random.Random) -> Sequence[Case]:
    ids = [rng.choice([HE, LL, W]) for _ in range(LONG)]
    return [
        case(f"{LONG} tokens", "byte_level", stream(ids)),
        case(f"{LONG} tokens", "metaspace", stream([rng.randrange(2, 18) for _ in range(LONG)])),
    ]


def without_cost(case: Case, answer: Any) -> Any:
    return {"streams": answer["streams"]}


def cost_only(case: Case, answer: Any) -> Any:
    """Counts differ between programs that make the same mistake."""
    text = ["".join(map(str, (step[0] for step in s["steps"]))) for s in answer["streams"]]
    return {"text": text, "grows": answer["decoded"] > MOST_DECODED}


def cost(case: Case, expected: Any, got: Any) -> Difference | None:
    if got["text"] != expected["text"]:
        return Difference((case.label, "the text is wrong in a long stream"))
    if got["grows"]:
        return _too_many(case)
    return None


def _too_many(case: Case) -> Difference:
    return Difference((case.label, f"more than {MOST_DECODED:.0f} tokens were decoded for each "
                       "token of the output, so the work grows with the text"))  # fmt: skip


def invalid_bytes(rng: random.Random) -> Sequence[Case]:
    """What always ends in the replacement character, and is complete all the same."""
    count = LONG // 2
    return [case(f"{count} invalid bytes", "byte_level", stream([INVALID] * count))]


def grows(case: Case, answer: Any) -> Any:
    """Their text is asked for elsewhere, so that whoever makes a mistake there may pass here."""
    return answer["decoded"] > MOST_DECODED


def cost_of_invalid(case: Case, expected: Any, got: Any) -> Difference | None:
    return _too_many(case) if got else None


def real_texts(rng: random.Random) -> Sequence[Case]:
    texts = [f"Hello {EMOJI} world! {FAMILY}", f"{CHINESE} {THAI}", ACCENTS]
    return [
        case("text", REAL, stream(texts[0]), stream(texts[1])),
        case("text behind a prompt", REAL, stream(f" {texts[2]}", prompt="It says:")),
        case("text that ends inside a character", REAL, stream(f"ok {EMOJI}", drop=1)),
    ]


def _check(name: str, title: str, cases: Any, **more: Any) -> Check:
    return Check(name, title, RUN, cases, streams, normalize=without_cost, **more)


EXERCISE = Details(
    checks=(
        _check("words", "words come out token by token", plain),
        _check("characters", "no part of a character is shown", characters),
        _check("end", "what is held back comes out at the end", cut),
        _check("spaces", "the prompt decides about the first space", spaces),
        _check("byte-tokens", "runs of SentencePiece's byte tokens", byte_runs),
        _check("no-text", "special tokens and unknown ids have no text", no_text),
        _check("half-prompts", "a character that the prompt begins", half_prompts),
        _check("any-tokens", "joined, it is always the text of all tokens", any_bytes),
        _check("groups", "several tokens in one call", groups),
        _check("side-by-side", "requests do not disturb each other", together),
        Check("cost", "the work per token does not grow with the text", RUN, long_text, cost,
              normalize=cost_only),
        Check("cost-invalid", "nor with the number of invalid bytes", RUN, invalid_bytes,
              cost_of_invalid, normalize=grows),
        text_engine_checks.scripted_check(),
        _check("smollm2", "SmolLM2's own tokenizer", real_texts, needs=("smollm2",), last=True),
        text_engine_checks.smollm2_check(),
    ),
    hints=(
        "The text of two tokens together is not always the text of the first and the text of the "
        "second. What do you have to decode so that a new token's own text is right, and how do "
        "you see in that text that a character is not complete?",
        "Keep two things: a few tokens whose text is out already, and the tokens behind them that "
        "are held. The text of both together, without the text of the first, is what is new. It "
        "may go out if it does not end in the replacement character and its last token is no byte "
        "token. Then what was held becomes what is out, and nothing is held. Of several "
        "replacement characters at the end only the last is uncertain.",
        "start: the prompt is out; its text counts without replacement characters at its end\n"
        "for each token that has text: hold it\n"
        "    a byte token such as <0xE4>: nothing more to do\n"
        "    decode what is out and what is held, in one call\n"
        "    does it end in the replacement character? wait, but not for ever: only that last one\n"
        "        is uncertain, and it stands for three bytes at most. With more tokens held, what\n"
        "        is before it is new; keep the last four tokens, and that it alone is not out\n"
        "    else what follows the text of what is out is new, and the last token held is now out\n"
        "at the end: the same once more, whatever it ends in",
    ),
    mistakes=tuple(
        Mistake(name, {"IncrementalDetokenizer": f"judge.mistakes.text_detokenizer:{kind}"})
        for name, kind in (
            ("each token is decoded alone", "EachAlone"),
            ("half a character is shown as it is", "ShowsHalf"),
            ("half a character is left out for good", "DropsHalf"),
            ("finish returns nothing", "NothingAtEnd"),
            ("the prompt is ignored", "NoPrompt"),
            ("the prompt's text is sent again", "SendsPrompt"),
            ("special tokens are shown", "ShowsSpecial"),
            ("text behind a half character is shown before it", "StripsHalf"),
            ("all text is decoded again for every token", "DecodesAll"),
            ("byte tokens are shown before their run ends", "ShowsRuns"),
            ("pending is always False", "NeverPending"),
            ("pending is always True", "AlwaysPending"),
            ("pending stays True once something was held back", "StaysPending"),
            ("all requests share one list", "SharedList"),
            ("the prompt's own list is used", "KeepsPromptList"),
            ("only the last of several tokens is read", "LastOfGroup"),
            ("nothing comes out before the end", "AllAtEnd"),
            ("the text so far is returned, not the new text", "TextSoFar"),
            ("a character that the prompt begins is lost", "ForgetsHalfPrompt"),
        )
    ),
)  # fmt: skip
