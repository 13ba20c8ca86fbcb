"""Owns the keys and values: their memory, how it is written, and how much of it there shall be."""

from __future__ import annotations

import os

import torch
from torch import Tensor

from mini_engine.config import EngineConfig, ModelConfig, require_int

GIB = 1024**3
CPU_SHARE = 0.25  # of the memory that is available: a laptop has other work to do
CPU_LIMIT = 1 * GIB  # the most the engine takes on a CPU without being told to
CUDA_SHARE = 0.8  # of the memory that is free once the weights are loaded; the rest is headroom


class PagedKVCache:
    """Two tensors for all layers, [num_layers, num_blocks, block_size, num_kv_heads, head_dim].

    Slot `block * block_size + offset` of a layer holds one token. The tensors start zeroed: masked
    attention multiplies unwritten values by zero, which is only harmless while they are finite.
    See interfaces.KVCache.
    """

    def __init__(
        self,
        config: ModelConfig,
        num_blocks: int,
        block_size: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
    ) -> None:
        require_int("PagedKVCache", "num_blocks", num_blocks, 1)
        require_int("PagedKVCache", "block_size", block_size, 1)
        self.num_blocks = num_blocks
        self.block_size = block_size
        heads, head_dim = config.num_kv_heads, config.head_dim
        shape = (config.num_layers, num_blocks, block_size, heads, head_dim)
        try:
            self.keys = torch.zeros(shape, dtype=dtype, device=device)
            self.values = torch.zeros(shape, dtype=dtype, device=device)
        except RuntimeError as error:  # torch.OutOfMemoryError is one
            size = num_blocks * block_size * config.kv_bytes_per_token(dtype.itemsize)
            raise MemoryError(
                f"the KV cache of {num_blocks} blocks of {block_size} tokens needs "
                f"{size / GIB:.2f} GiB on {device}, which can't be allocated; "
                "set a smaller num_blocks"
            ) from error
        # Views, made once: per layer [num_blocks, block_size, ...] and flat [num_slots, ...].
        self._layers = list(zip(self.keys, self.values, strict=True))
        self._slots = [
            (k.view(-1, heads, head_dim), v.view(-1, heads, head_dim)) for k, v in self._layers
        ]

    @property
    def num_bytes(self) -> int:
        """Memory of keys and values together."""
        return self.keys.nbytes + self.values.nbytes

    def write(self, layer: int, key: Tensor, value: Tensor, slot_mapping: Tensor) -> None:
        """Store one row per token: key and value [num_tokens, num_kv_heads, head_dim]."""
        keys, values = self._slots[layer]
        keys.index_copy_(0, slot_mapping, key)
        values.index_copy_(0, slot_mapping, value)

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """(keys, values) of a layer, each [num_blocks, block_size, num_kv_heads, head_dim]."""
        return self._layers[layer]

    def fill_slots(self, slots: Tensor, number: float) -> None:
        """Overwrite these slots in every layer; debug mode poisons unwritten slots with it."""
        for keys, values in self._slots:
            keys.index_fill_(0, slots, number)
            values.index_fill_(0, slots, number)


def choose_num_blocks(
    model_config: ModelConfig,
    engine_config: EngineConfig,
    device: torch.device | str,
    dtype: torch.dtype = torch.float32,
) -> int:
    """How many KV blocks to make: `engine_config.num_blocks` where it is set.

    Otherwise what `max_num_seqs` requests of the longest length need, as far as a share of the
    device's memory allows; call it after the weights are loaded. Raises MemoryError with the
    numbers if that is not even one block.
    """
    if engine_config.num_blocks is not None:
        return engine_config.num_blocks
    block_size = engine_config.block_size
    longest = engine_config.max_model_len or model_config.max_position_embeddings
    wanted = engine_config.max_num_seqs * -(-longest // block_size)
    block_bytes = block_size * model_config.kv_bytes_per_token(dtype.itemsize)
    if torch.device(device).type == "cuda":
        available, total = torch.cuda.mem_get_info(device)
        allowed = int(available * CUDA_SHARE)
        found = f"{available / GIB:.2f} of {total / GIB:.2f} GiB are free, {CUDA_SHARE:.0%} of that"
    else:
        memory = available_memory()
        allowed = CPU_LIMIT if memory is None else min(CPU_LIMIT, int(memory * CPU_SHARE))
        found = "an unknown amount" if memory is None else f"{memory / GIB:.2f} GiB"
        found += f" is available, {CPU_SHARE:.0%} of that but at most {CPU_LIMIT / GIB:.0f} GiB"
    if allowed < block_bytes:
        raise MemoryError(
            f"no room for the KV cache on {device}: one block of {block_size} tokens needs "
            f"{block_bytes / 1024**2:.2f} MiB; {found} is {allowed / 1024**2:.2f} MiB. "
            "Free memory used by other processes, or set num_blocks to decide yourself"
        )
    return min(wanted, allowed // block_bytes)


def available_memory() -> int | None:
    """Bytes of main memory that a process can still take, or None where the system won't tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:  # Linux
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass  # not Linux: ask for the installed memory below
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" in names and "SC_PAGE_SIZE" in names:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return None
