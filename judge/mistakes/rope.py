"""Owns the known mistakes of `kv-cache.rope`: each is wrong in the one way its name says."""

from __future__ import annotations

import torch
from torch import Tensor

from mini_engine.compute.model import apply_rope


def neighbours(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    halves = torch.cat((x[..., 0::2], x[..., 1::2]), dim=-1)
    return _interleave(apply_rope(halves, cos, sin))


def interleaved_result(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return _interleave(apply_rope(x, cos, sin))


def _interleave(x: Tensor) -> Tensor:
    return torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)


def backwards(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x, cos, -sin)


def wrong_sign(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first = apply_rope(x, cos, sin).chunk(2, dim=-1)[0]
    return torch.cat((first, apply_rope(x, cos, -sin).chunk(2, dim=-1)[1]), dim=-1)


def swapped(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x, sin, cos)


def sequential(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first = apply_rope(x, cos, sin).chunk(2, dim=-1)[0]
    half = x.chunk(2, dim=-1)[1]
    return torch.cat(
        (first, apply_rope(torch.cat((first, half), dim=-1), cos, sin).chunk(2, -1)[1]), -1
    )


def sequential_from_second(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    second = apply_rope(x, cos, sin).chunk(2, dim=-1)[1]
    first = x.chunk(2, dim=-1)[0]
    return torch.cat(
        (apply_rope(torch.cat((first, second), dim=-1), cos, sin).chunk(2, -1)[0], second), -1
    )


def overwritten(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x[:] = sequential(x, cos, sin)
    return x


def overwritten_from_second(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x[:] = sequential_from_second(x, cos, sin)
    return x


def in_place(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    x[:] = apply_rope(x, cos, sin)
    return x


def first_half_only(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.cat((apply_rope(x, cos, sin).chunk(2, -1)[0], x.chunk(2, -1)[1]), dim=-1)


def first_angle(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x, cos[:1].expand_as(cos), sin[:1].expand_as(sin))


def by_heads(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """What broadcasting makes of cos without a dimension for the heads; often an error."""
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def halves_swapped(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return torch.cat(apply_rope(x, cos, sin).chunk(2, dim=-1)[::-1], dim=-1)


def always_float32(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    return apply_rope(x.float(), cos.float(), sin.float())


def float32_at_the_end(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Computed in x's dtype, stored in a float32 tensor."""
    return apply_rope(x, cos, sin).float()
