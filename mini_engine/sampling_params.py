"""Owns what one request asks for: how its tokens are chosen, and where it ends.

The fields, their ranges and their meaning are those of vLLM's `SamplingParams`, except that the
default here is greedy: answers can then be compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mini_engine.config import require_int

OWNER = "SamplingParams"
MOST_LOGPROBS = 20  # as OpenAI's API
MOST_BIAS = 100.0
# name: (lowest, is the lowest allowed, highest)
RANGES: dict[str, tuple[float, bool, float]] = {
    "temperature": (0.0, True, math.inf),
    "top_p": (0.0, False, 1.0),
    "min_p": (0.0, True, 1.0),
    "presence_penalty": (-2.0, True, 2.0),
    "frequency_penalty": (-2.0, True, 2.0),
    "repetition_penalty": (0.0, False, math.inf),
}


@dataclass(frozen=True)
class SamplingParams:
    """What one request asks for. Frozen; it checks itself when it is made.

    Choosing a token. Temperature 0 is greedy. Otherwise logits are divided by `temperature`, then
    `min_p` keeps what is at least that share of the best probability, `top_k` (0 or -1: off) the
    best k, and `top_p` the fewest of those, renormalized, that reach this sum. `logit_bias` maps
    token ids to numbers added to their logits. Penalties: `repetition_penalty` divides (negative
    logits: multiplies) those of every token in prompt or output; `frequency_penalty`, times its
    count, and `presence_penalty`, once, are taken from those in the output. With a `seed` the
    draws can be repeated: they depend on seed, choice (of `n`) and output number only.

    Ending. `max_tokens` is the most tokens to generate; before `min_tokens` no end token is chosen.
    A request ends on the model's end-of-sequence tokens unless `ignore_eos`, and always on
    `stop_token_ids`; that token is kept in the ids. It ends where the text of its output completes
    one of the `stop` strings, which is left out of the text unless `include_stop_str_in_output`.

    Telling. `logprobs=k` gives the log probability of each chosen token and of the k best, of the
    raw distribution; `prompt_logprobs` does it for the tokens of the prompt. `n` choices of one
    prompt share its KV.
    """

    max_tokens: int = 64
    stop_token_ids: tuple[int, ...] = ()
    ignore_eos: bool = False
    temperature: float = 0.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    logprobs: int | None = None
    prompt_logprobs: int | None = None
    min_tokens: int = 0
    stop: tuple[str, ...] = ()
    include_stop_str_in_output: bool = False
    n: int = 1

    def __post_init__(self) -> None:
        for name, (lowest, closed, highest) in RANGES.items():
            _require_number(name, getattr(self, name), lowest, closed, highest)
        for name, at_least in (("max_tokens", 1), ("n", 1), ("min_tokens", 0), ("top_k", -1)):
            require_int(OWNER, name, getattr(self, name), at_least)
        if self.min_tokens > self.max_tokens:
            raise ValueError(
                f"{OWNER}.min_tokens={self.min_tokens} is more than max_tokens={self.max_tokens}"
            )
        if self.seed is not None:
            require_int(OWNER, "seed", self.seed, -(2**63))
            if self.seed >= 2**64:
                raise ValueError(f"{OWNER}.seed must fit 64 bits, got {self.seed}")
        for name in ("logprobs", "prompt_logprobs"):
            _require_count(name, getattr(self, name))
        for name in ("ignore_eos", "include_stop_str_in_output"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{OWNER}.{name} must be a bool, got {getattr(self, name)!r}")
        object.__setattr__(self, "stop_token_ids", _token_ids(self.stop_token_ids))
        object.__setattr__(self, "stop", _stop_strings(self.stop))
        object.__setattr__(self, "logit_bias", _biases(self.logit_bias))
        if self.n > 1 and self.greedy:
            raise ValueError(
                f"{OWNER}.n={self.n} with temperature 0 would give {self.n} equal choices; "
                "set a temperature above 0"
            )

    @property
    def greedy(self) -> bool:
        """Whether the best token is always chosen."""
        return self.temperature == 0.0

    @property
    def has_penalties(self) -> bool:
        """Whether the logits depend on the tokens so far."""
        return (self.presence_penalty, self.frequency_penalty, self.repetition_penalty) != (0, 0, 1)


def _require_number(name: str, value: Any, lowest: float, closed: bool, highest: float) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{OWNER}.{name} must be a number, got {value!r} ({type(value).__name__})")
    above = value >= lowest if closed else value > lowest
    if not (above and value <= highest) or math.isinf(value):  # NaN fails both comparisons
        least = f"{lowest:g} or more" if closed else f"above {lowest:g}"
        most = "" if highest == math.inf else f" and at most {highest:g}"
        raise ValueError(f"{OWNER}.{name} must be {least}{most}, got {value}")


def _require_count(name: str, value: Any) -> None:
    if value is None:
        return
    require_int(OWNER, name, value, 0)
    if value > MOST_LOGPROBS:
        raise ValueError(f"{OWNER}.{name} must be at most {MOST_LOGPROBS}, got {value}")


def _token_ids(values: Any) -> tuple[int, ...]:
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise TypeError(f"{OWNER}.stop_token_ids must be token ids, got {values!r}")
    values = tuple(values)
    for token in values:
        require_int(OWNER, "stop_token_ids", token, 0)
    return values


def _stop_strings(values: Any) -> tuple[str, ...]:
    values = (values,) if isinstance(values, str) else values
    if values is None:
        return ()
    if not isinstance(values, Iterable):
        raise TypeError(f"{OWNER}.stop must be strings, got {values!r}")
    values = tuple(values)
    for value in values:
        if not isinstance(value, str):
            raise TypeError(f"{OWNER}.stop must be strings, got {value!r}")
        if not value:
            raise ValueError(f"{OWNER}.stop holds an empty string, which would end every request")
    return values


def _biases(values: Any) -> dict[int, float]:
    if not isinstance(values, Mapping):
        raise TypeError(f"{OWNER}.logit_bias must map token ids to numbers, got {values!r}")
    for token, bias in values.items():
        require_int(OWNER, "logit_bias (its token ids)", token, 0)
        _require_number(f"logit_bias[{token}]", bias, -MOST_BIAS, True, MOST_BIAS)
    return dict(values)
