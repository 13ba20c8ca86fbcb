"""Owns what no legal schedule does, as far as a trace shows it."""

from __future__ import annotations

from typing import Any

from judge.compare import show


def broken_invariant(trace: list[Any], payload: Any) -> tuple[int, str] | None:
    """(step, what is broken in it) of the first record that is illegal; None if all is well."""
    options = payload["options"]
    for record in trace:
        problem = _broken(record, options["block_size"], options["num_blocks"])
        if problem is not None:
            return int(record["step"]), f"step {record['step']}: {problem}"
    return None


def leak(free: Any, payload: Any) -> str | None:
    """Blocks that never came back, seen when all requests have ended."""
    blocks = payload["options"]["num_blocks"]
    if free == blocks:
        return None
    return f"after the last request {show(free)} of {blocks} blocks are free"


def _broken(record: Any, size: int, blocks: int) -> str | None:
    tables = record["block_tables"]
    for request_id, table in tables.items():
        strangers = [b for b in table if type(b) is not int or not 0 <= b < blocks]
        if strangers:
            return f"{request_id} holds the block {show(strangers[0])}, outside 0 to {blocks - 1}"
        if len(set(table)) < len(table):
            return f"the table of {request_id} holds a block twice: {table}"
        tokens = record["computed"][request_id] + record["scheduled"][request_id]
        if len(table) * size < tokens:
            return f"{request_id} has {tokens} tokens in {len(table)} blocks"
    shared = _written_by_two(record, size)
    if shared is not None:
        return shared
    used = len({b for table in tables.values() for b in table})
    if record["free_blocks"] + used > blocks:
        return f"{record['free_blocks']} free and {used} used blocks of {blocks}"
    return None


def _written_by_two(record: Any, size: int) -> str | None:
    """A block that two requests write in one step, which would mix their keys and values."""
    writers: dict[int, str] = {}
    for request_id, table in record["block_tables"].items():
        start = record["computed"][request_id]
        end = start + record["scheduled"][request_id]
        for index in range(start // size, -(-end // size)):
            other = writers.setdefault(table[index], request_id)
            if other != request_id:
                return f"{other} and {request_id} both write into block {table[index]}"
    return None
