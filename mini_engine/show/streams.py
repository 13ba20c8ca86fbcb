"""Owns the picture of a text stream: what each token said, what is held back, what a client has."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from mini_engine.show.markup import Figure, cell, escape, figure, grid, tag
from mini_engine.text.detokenizer import IncrementalDetokenizer, piece_bytes
from mini_engine.text.stop_checker import StopChecker

MADE = {"shown": "#cdebdf", "stop": "#fde3b3", "character": "#f7d3e5"}
WORDS = 7  # tokens in the table at most


@dataclass(frozen=True)
class TextStep:
    """One token of a stream. `text` came out of the detokenizer, `shown` out of the stop checker;
    `client` is all that was shown, `held` the text that waits for a stop string, `pending` whether
    the last character is not complete. `matched` is the stop string that ends it.
    """

    step: int
    token_id: int
    spelled: str
    text: str
    shown: str
    client: str
    held: str
    pending: bool
    matched: str | None = None


def text_steps(
    tokenizer: Any,
    token_ids: Sequence[int],
    stops: Sequence[str] = (),
    detokenizer: Callable[..., Any] = IncrementalDetokenizer,
    stop_checker: Callable[..., Any] = StopChecker,
) -> list[TextStep]:
    """Run a detokenizer and, with `stops`, a stop checker over tokens, and note every step.

    Ends with the token that completes a stop string. Raises ValueError without tokens.
    """
    if not token_ids:
        raise ValueError("a stream needs at least one token; type some text")
    parts = detokenizer(tokenizer, ()), stop_checker(tuple(stops), False) if stops else None
    steps: list[TextStep] = []
    client = said = ""
    for number, token_id in enumerate(token_ids):
        text = parts[0].add([token_id])
        shown = text if parts[1] is None else parts[1].add(text)
        client, said = client + shown, said + text
        matched = None if parts[1] is None else parts[1].matched
        held = "" if matched else said[len(client) :]
        spelled = str(tokenizer.convert_ids_to_tokens(token_id))
        step = TextStep(
            number, token_id, spelled, text, shown, client, held, parts[0].pending, matched
        )
        steps.append(step)
        if matched:
            break
    return steps


def text_stream(steps: Sequence[TextStep], step: int) -> Figure:
    """The stream at one token: the last tokens as a table, and the three places of the text.

    Raises ValueError if there is no such step.
    """
    found = [number for number, one in enumerate(steps) if one.step == step]
    if not found:
        raise ValueError(f"there is no token {step}; there are {[one.step for one in steps]}")
    seen = steps[: found[0] + 1]
    now = seen[-1]
    heads = ("token", "in the vocabulary", "bytes", "complete text", "shown")
    rows = [[cell(name, head="col", fill="#eeeeee") for name in heads]]
    for one in seen[-WORDS:]:
        written = piece_bytes(one.spelled).hex(" ")
        values = (str(one.step), one.spelled, written, _quoted(one.text), _quoted(one.shown))
        fill = "#fde3b3" if one is now else "#ffffff"
        rows.append([cell(escape(value), fill=fill) for value in values])
    places = [
        ("the client has", now.client, MADE["shown"]),
        ("held: it may begin a stop string", now.held, MADE["stop"]),
        ("held: half a character", "yes" if now.pending else "no", MADE["character"]),
    ]
    kept = [
        [cell(escape(name), head="row"), cell(escape(_quoted(text) if fill != MADE["character"]
              else text), fill=fill)]
        for name, text, fill in places
    ]  # fmt: skip
    ended = tag("p", escape(f"the stop string {now.matched!r} is complete: the request ends"))
    content = grid(rows, "the last tokens") + tag("p", "") + grid(kept, "where the text is")
    return figure(content + (ended if now.matched else ""), _sentence(now))


def _quoted(text: str) -> str:
    return repr(text) if text else "nothing"


def _sentence(now: TextStep) -> str:
    parts = [f"After token {now.step} the client has {now.client!r}"]
    if now.held:
        parts.append(f"{now.held!r} is held for a stop string")
    if now.pending:
        parts.append("a character is not complete")
    if now.matched:
        parts.append(f"the stop string {now.matched!r} ended it")
    return "; ".join(parts) + "."
