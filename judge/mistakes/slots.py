"""Owns the known mistakes of `paged-kv.slot-mapping`: each is wrong in the one way its name says."""

from __future__ import annotations

from collections.abc import Sequence

from mini_engine.compute.slots import slot_mapping

Table = Sequence[int]


def from_chunk(table: Table, start: int, count: int, size: int) -> list[int]:
    slot_mapping(table, start, count, size)
    return slot_mapping(table, 0, count, size)


def no_table(table: Table, start: int, count: int, size: int) -> list[int]:
    slot_mapping(table, start, count, size)
    return list(range(start, start + count))


def aligned(table: Table, start: int, count: int, size: int) -> list[int]:
    right = slot_mapping(table, start, count, size)
    begin = start // size * size
    return slot_mapping(table, begin, count, size) if right else right


def contiguous(table: Table, start: int, count: int, size: int) -> list[int]:
    right = slot_mapping(table, start, count, size)
    return [right[0] + i for i in range(count)] if right else right


def swapped(table: Table, start: int, count: int, size: int) -> list[int]:
    slot_mapping(table, start, count, size)
    return [p % size * size + table[p // size] for p in range(start, start + count)]


def index_error(table: Table, start: int, count: int, size: int) -> list[int]:
    slot_mapping((0,) * (start + count + 1), start, count, size)  # the other refusals
    return [table[p // size] * size + p % size for p in range(start, start + count)]


def refuses_full(table: Table, start: int, count: int, size: int) -> list[int]:
    right = slot_mapping(table, start, count, size)
    if start + count >= len(table) * size:
        raise ValueError("too short")
    return right


def one_more(table: Table, start: int, count: int, size: int) -> list[int]:
    right = slot_mapping(table, start, count, size)
    position = start + count
    if position // size >= len(table):
        raise IndexError("list index out of range")
    return [*right, table[position // size] * size + position % size]


def one_less(table: Table, start: int, count: int, size: int) -> list[int]:
    return slot_mapping(table, start, count, size)[:-1]


def cut_short(table: Table, start: int, count: int, size: int) -> list[int]:
    slot_mapping((0,) * (start + count + 1), start, count, size)  # the other refusals
    end = min(start + count, len(table) * size)
    return [table[p // size] * size + p % size for p in range(start, end)]


def takes_negative(table: Table, start: int, count: int, size: int) -> list[int]:
    """Refuses a short table only, and leaves the rest to Python."""
    if start + count > len(table) * size:
        raise ValueError("too short")
    return [table[p // size] * size + p % size for p in range(start, start + count)]


def no_offset(table: Table, start: int, count: int, size: int) -> list[int]:
    return [slot // size * size for slot in slot_mapping(table, start, count, size)]


def refuses_longer(table: Table, start: int, count: int, size: int) -> list[int]:
    right = slot_mapping(table, start, count, size)
    if len(table) != -(-(start + count) // size):
        raise ValueError("the table has another length")
    return right
