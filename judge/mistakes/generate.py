"""Owns the known mistakes of `kv-cache.generate`: one loop, wrong in the one way a name says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, ClassVar

import torch
from torch import Tensor

from mini_engine.compute.attention_single import attention_over_contiguous


class Loop:
    """The loop with a cache; each subclass changes one of its decisions."""

    def __init__(self, model: Any, prompt: Sequence[int], max_tokens: int, ends: Collection[int]):
        self.model, self.prompt, self.max_tokens, self.ends = model, list(prompt), max_tokens, ends
        self.cache: dict[int, tuple[Tensor, Tensor]] = {}
        self.count = 0
        self.outputs: list[int] = []

    def key_of(self, layer: int) -> int:
        return layer

    def kept(self, old: Tensor, new: Tensor) -> Tensor:
        return torch.cat((old, new))

    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        place = self.key_of(layer)
        if place in self.cache:
            keys, values = self.cache[place]
            key, value = self.kept(keys, key), self.kept(values, value)
        self.cache[place] = (key, value)
        return attention_over_contiguous(query, key, value, query.shape[-1] ** -0.5)

    def start(self, tokens: list[int]) -> int:
        return self.count

    def forward(self, tokens: list[int]) -> int:
        start = self.start(tokens)
        positions = torch.arange(start, start + len(tokens))
        hidden = self.model(torch.tensor(tokens), positions, self.attend)
        self.count += len(tokens)
        return int(self.model.logits(self.rows(hidden)).argmax())

    def rows(self, hidden: Tensor) -> Tensor:
        return hidden[-1:]

    def next_input(self, token: int) -> list[int]:
        return [token]

    def ended(self) -> bool:
        return len(self.outputs) == self.max_tokens or self.outputs[-1] in self.ends

    def result(self) -> list[int]:
        return self.outputs

    def run(self) -> list[int]:
        tokens = self.prompt
        while True:
            token = self.forward(tokens)
            self.outputs.append(token)
            if self.ended():
                return self.result()
            tokens = self.next_input(token)


class _Recompute(Loop):
    def next_input(self, token: int) -> list[int]:
        self.cache.clear()
        self.count = 0
        return self.prompt + self.outputs


class _PositionsRestart(Loop):
    def start(self, tokens: list[int]) -> int:
        return 0


class _PositionsOneHigh(Loop):
    def start(self, tokens: list[int]) -> int:
        return self.count + 1 if self.count else 0


class _PositionsStay(Loop):
    def start(self, tokens: list[int]) -> int:
        return len(self.prompt) if self.count else 0


class _ComputesLast(Loop):
    def result(self) -> list[int]:
        self.forward(self.outputs[-1:])
        return self.outputs


class _OneCache(Loop):
    def key_of(self, layer: int) -> int:
        return 0


class _KeepsNewest(Loop):
    def kept(self, old: Tensor, new: Tensor) -> Tensor:
        return new


class _KeepsPrompt(Loop):
    def attend(self, layer: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        before = self.cache.get(layer)
        out = super().attend(layer, query, key, value)
        if before is not None:
            self.cache[layer] = before
        return out


class _KeepsBetweenCalls(Loop):
    """Kept within one case only: this process also runs the other mistakes and the reference."""

    last: ClassVar[tuple[object, dict[int, tuple[Tensor, Tensor]]]] = (None, {})

    def run(self) -> list[int]:
        session, cache = self.last
        self.cache = cache if session is self.model.session else {}
        type(self).last = (self.model.session, self.cache)
        return super().run()


class _KeepsOnModel(Loop):
    """Hangs the cache on the model, which is another one for another model only."""

    def run(self) -> list[int]:
        self.cache = vars(self.model).setdefault("kept", {})
        return super().run()


class _DropsEnd(Loop):
    def result(self) -> list[int]:
        return self.outputs[:-1] if self.outputs[-1] in self.ends else self.outputs


class _IgnoresEnds(Loop):
    def ended(self) -> bool:
        return len(self.outputs) == self.max_tokens


class _PromptEnds(Loop):
    def ended(self) -> bool:
        return super().ended() or any(token in self.ends for token in self.prompt)


class _OneMore(Loop):
    def ended(self) -> bool:
        return len(self.outputs) == self.max_tokens + 1 or self.outputs[-1] in self.ends


class _OneLess(Loop):
    def run(self) -> list[int]:
        if self.max_tokens == 1:
            return []
        self.max_tokens -= 1
        return super().run()


class _FirstNeverEnds(Loop):
    def ended(self) -> bool:
        full = len(self.outputs) == self.max_tokens
        return full or (len(self.outputs) > 1 and self.outputs[-1] in self.ends)


class _WithPrompt(Loop):
    def result(self) -> list[int]:
        return self.prompt + self.outputs


class _CountsPrompt(Loop):
    def ended(self) -> bool:
        full = len(self.prompt) + len(self.outputs) >= self.max_tokens
        return full or self.outputs[-1] in self.ends


class _FirstRow(Loop):
    def rows(self, hidden: Tensor) -> Tensor:
        return hidden[:1]


def _function(kind: type[Loop]) -> Any:
    def generate_cached(
        model: Any, prompt: Sequence[int], max_tokens: int, ends: Collection[int] = ()
    ) -> list[int]:
        return kind(model, prompt, max_tokens, ends).run()

    return generate_cached


recompute = _function(_Recompute)
positions_restart = _function(_PositionsRestart)
positions_one_high = _function(_PositionsOneHigh)
positions_stay = _function(_PositionsStay)
computes_last = _function(_ComputesLast)
one_cache = _function(_OneCache)
keeps_newest = _function(_KeepsNewest)
keeps_prompt = _function(_KeepsPrompt)
keeps_between_calls = _function(_KeepsBetweenCalls)
keeps_on_model = _function(_KeepsOnModel)
drops_end = _function(_DropsEnd)
ignores_ends = _function(_IgnoresEnds)
prompt_ends = _function(_PromptEnds)
one_more = _function(_OneMore)
one_less = _function(_OneLess)
first_never_ends = _function(_FirstNeverEnds)
with_prompt = _function(_WithPrompt)
counts_prompt = _function(_CountsPrompt)
first_row = _function(_FirstRow)
