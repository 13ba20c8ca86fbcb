"""Owns what is said about one output inside the engine: tokens, logits, where its KV lies.

Runs in the judge's process. A learner's answer has been looked at for its form before it comes
here; steps and slots of both sides are taken from their traces.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from judge.compare import show
from judge.models import tokenizer_file

Words = Callable[[Any], str]


@dataclass(frozen=True)
class Output:
    """One output that differs: its number in its request, and the step that sampled it in the
    reference. A token is None where there is none.
    """

    request_id: str
    number: int
    step: int
    expected: Any
    got: Any


def prompt_length(payload: Any, request_id: str) -> int:
    """Tokens of a request's prompt."""
    return next(len(r["prompt"]) for r in payload["requests"] if r["id"] == request_id)


def sampling_step(trace: Any, request_id: str, number: int) -> int:
    """The step in which a request got its output `number`, else its last, else the last of all."""
    steps = [record["step"] for record in trace if request_id in record["sampled"]]
    if not steps:
        return int(trace[-1]["step"]) if trace else 0
    return int(steps[min(number, len(steps) - 1)])


def margin(top: Any) -> float:
    """How far the best logit leads the second."""
    first, second = top[1][:2]
    return float(first - second)


def near_tie(top: Any, token: Any, band: float) -> bool:
    """Whether a token's logit lies within `band` of the best, as the reference computed both."""
    known = dict(zip(*top, strict=True))
    return type(token) is int and token in known and max(known.values()) - known[token] < band


def close_tokens(top: Any, band: float) -> list[int]:
    """The tokens that a near tie allows: those whose logits lie within `band` of the best."""
    ids, logits = top
    best = max(logits)
    return sorted(token for token, logit in zip(ids, logits, strict=True) if best - logit < band)


def token_line(payload: Any, wrong: Output, words: Words) -> str:
    """Request, output, position and step; expected and got."""
    position = prompt_length(payload, wrong.request_id) + wrong.number
    return (
        f"{wrong.request_id}, output {wrong.number} (position {position}), sampled in step "
        f"{wrong.step}: {expected_got(wrong.expected, wrong.got, words)}"
    )


def expected_got(expected: Any, got: Any, words: Words) -> str:
    """Two tokens in words; None is no token."""
    want, have = ("no token" if t is None else words(t) for t in (expected, got))
    return f"expected {want}, got {have}"


def top_lines(ours: Any, theirs: Any, number: int, words: Words, band: float) -> list[str]:
    """The best logits of both at output `number`, and the reference's margin."""
    lines = []
    for whose, tops in (("reference", ours), ("yours", theirs)):
        if number < len(tops):
            pairs = zip(*tops[number], strict=True)
            best = ", ".join(f"{words(token)} {logit:.3f}" for token, logit in pairs)
            lines.append(f"best logits, {whose + ':':<10} {best}")
    if number < len(ours):
        lead = margin(ours[number])
        kind = "a near tie" if lead < band else "no near tie"
        lines.append(f"margin {lead:.2g}, tie band {band:.2g}, so this is {kind}")
    return lines


def place_lines(payload: Any, expected: Any, got: Any, wrong: Output) -> list[str]:
    """What the step had cached and computed of the request, and in which block and slot."""
    size = payload["options"]["block_size"]
    ours = _where(expected, wrong, size)
    theirs = _where(got, wrong, size)
    lines = []
    for mine, yours in zip(ours, theirs, strict=True):
        if mine:
            lines.append(mine)
        if mine != yours:
            lines.append(f"  yours: {yours or 'never'}")
    return lines


def _where(trace: Any, wrong: Output, size: int) -> tuple[str, str, str]:
    """Preemption before the output, the chunk, the slot of the row that was sampled; or ""."""
    step = sampling_step(trace, wrong.request_id, wrong.number)
    record = next((r for r in trace if r["step"] == step), None)
    if record is None or wrong.request_id not in record["scheduled"]:
        return "", "", ""
    computed, count = (record[n][wrong.request_id] for n in ("computed", "scheduled"))
    if count == 1:
        line = f"step {step} computed 1 token of it, at position {computed}"
    else:
        line = f"step {step} computed {count} tokens of it, positions {computed} to " \
               f"{computed + count - 1}"  # fmt: skip
    line += f"; {computed} were in the cache" if computed else "; none were in the cache"
    hit = _last_hit(trace, wrong.request_id, step)
    if hit:
        line += f", {hit} of them from a prefix hit"
    others = len(record["scheduled"]) - 1
    if others:
        line += f"; {others} other request{'s' * (others > 1)} ran beside it"
    return _preemption(trace, wrong.request_id, step), line, _slot(record, wrong, size)


def _slot(record: Any, wrong: Output, size: int) -> str:
    table = record["block_tables"][wrong.request_id]
    last = record["computed"][wrong.request_id] + record["scheduled"][wrong.request_id] - 1
    entry, offset = divmod(last, size)
    block = table[entry] if entry < len(table) else None
    if type(block) is not int:
        return f"position {last} needs entry {entry} of the block table {show(table, 60)}"
    return (
        f"the row sampled is position {last}: entry {entry} of the block table {table}, so block "
        f"{block}, slot {block * size + offset}"
    )


def _last_hit(trace: Any, request_id: str, step: int) -> int:
    """The prefix hit with which a request was last admitted, up to a step."""
    hits = [r["cached"][request_id] for r in trace if r["step"] <= step and
            request_id in r["cached"]]  # fmt: skip
    return int(hits[-1]) if hits else 0


def _preemption(trace: Any, request_id: str, step: int) -> str:
    """The last preemption before a step, and how the request came back; "" without one."""
    lost = [r["step"] for r in trace if request_id in r["preempted"] and r["step"] <= step]
    if not lost:
        return ""
    back = next(
        (r for r in trace if r["step"] >= lost[-1] and request_id in r["resumed"]), None
    )  # fmt: skip
    if back is None:
        return f"it was preempted in step {lost[-1]}"
    return (
        f"it was preempted in step {lost[-1]} and resumed in step {back['step']} with "
        f"computed={back['computed'].get(request_id)}"
    )


def pieces(model: str) -> Words:
    """A function that shows a token id, with its text where the model has a tokenizer."""
    file = tokenizer_file(model)
    if file is None:
        return str
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(file))

    def show_token(token: Any) -> str:
        if type(token) is not int or not 0 <= token < tokenizer.get_vocab_size():
            return str(token)
        return f"{token} {tokenizer.decode([token], skip_special_tokens=False)!r}"

    return show_token
