"""Owns random numbers that can be looked up: each belongs to a counter, none to a state.

A generator with a state gives a request other numbers when its neighbours draw from it, too. Here
the number of a token is a hash of (seed, choice, output number, token id), so it is the same alone,
in any batch, and after a preemption. Compare Philox, which CUDA uses for the same reason (Salmon
and others, "Parallel random numbers: as easy as 1, 2, 3", 2011).
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

import torch
from torch import Tensor

from mini_engine.control.request import Request


def draw_keys(requests: Sequence[Request], device: torch.device) -> Tensor:
    """Two 32-bit keys per request for the output that is sampled next: int32 [n, 2]."""
    keys = [_keys(r.seed, r.choice, len(r.output_token_ids)) for r in requests]
    return torch.tensor(keys, dtype=torch.int32).to(device)


def _keys(seed: int, choice: int, output: int) -> tuple[int, int]:
    counter = struct.pack("<QQQ", seed % 2**64, choice, output)
    first, second = struct.unpack("<ii", hashlib.blake2b(counter, digest_size=8).digest())
    return first, second


def gumbel(keys: Tensor, token_ids: Tensor) -> Tensor:
    """Gumbel noise of tokens: keys int32 [n, 2], token_ids [n or 1, k]; float32 [n, k].

    The token with the largest `logit + noise` is a draw from the softmax of the logits (the Gumbel
    trick), and masking some logits changes nothing for the others.
    """
    return log_exponential(keys, token_ids).neg_()


def log_exponential(keys: Tensor, token_ids: Tensor) -> Tensor:
    """Minus the Gumbel noise: the logarithm of exponential noise, from which it is made."""
    bits = _scrambled(token_ids.to(torch.int32)) ^ keys[:, :1]
    bits *= keys[:, 1:] | 1  # odd, so that no bit is lost
    bits ^= _shifted(bits, 15)
    bits *= -2048144789
    # 31 bits; small numbers, which decide for unlikely tokens, are exact in float32. At the ends
    # rounding would make the noise infinite.
    uniform = bits.bitwise_and_(0x7FFFFFFF).float().mul_(-(2.0**-31))
    return uniform.clamp_(2.0**-24 - 1, -(2.0**-32)).log1p_().neg_().log_()


def _scrambled(numbers: Tensor) -> Tensor:
    """Murmur3's finalizer: each bit of the input changes half of the output's bits."""
    for shift, factor in ((16, -2048144789), (13, -1028477387), (16, 1)):
        numbers = (numbers ^ _shifted(numbers, shift)) * factor
    return numbers


def _shifted(bits: Tensor, shift: int) -> Tensor:
    """Shifted right as bits: a shift of int32 copies the sign, which the mask removes again."""
    return (bits >> shift).bitwise_and_((1 << (32 - shift)) - 1)
