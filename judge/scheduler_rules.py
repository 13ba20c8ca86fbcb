"""Owns what no legal scheduler does: reads the records of `scheduler_run`, names the first breach.

These are the promises of the exercises, not the reference's choices: in which order running
requests are served, or how the budget is shared among unfinished prompts, is free.
"""

from __future__ import annotations

from typing import Any

from judge.scheduler_ledger import Ledger, Lines


class Referee(Ledger):
    """Follows a run step by step; each method says what is wrong, in lines, or None."""

    def breach(self, record: Any) -> Lines | None:
        """What is wrong with what `schedule` decided."""
        chunks = {name: (start, num, samples) for name, start, num, samples in record["chunks"]}
        admitted = record["new"] + record["resumed"]
        left = self.config.max_num_batched_tokens - sum(num for _, num, _ in chunks.values())
        return (
            self._began(record)
            or self._victims(record)
            or self._admissions(record, admitted)
            or self._chunks(record, chunks)
            or self._blocks(record, chunks)
            or self._running_first(chunks, admitted)
            or self._budget(record, chunks, left)
            or self._idle(record, chunks, left)
            or self._queues(record)
        )

    def _began(self, record: Any) -> Lines | None:
        if record["began"]:
            return None
        return ("cache.grow was called before cache.begin_step: each schedule begins with it",)

    def _victims(self, record: Any) -> Lines | None:
        for name in record["preempted"]:
            expected = self.victim()
            if expected is None or name not in self.running:
                return (f"{name} was preempted and was not running",)
            if name != expected:
                rule = "the least urgent one" if self.config.policy == "priority" else "the last"
                return (f"{name} was preempted; the victim is {rule} of the running requests "
                        f"({', '.join(self.running)}): {expected}",)  # fmt: skip
            self.running.remove(name)
        if record["preempted"]:
            problem = self._needless(record)
            if problem is not None:
                return problem
        for name in record["preempted"]:
            one = self.seen[name]
            one.computed, one.preemptions = 0, one.preemptions + 1
            self.wait_again(name)
            if record["totals"][name] != one.total:
                return (
                    f"{name} was preempted and has {record['totals'][name]} tokens, expected "
                    f"{one.total}: its {len(one.outputs)} outputs stay",
                )
            if record["held"].get(name):
                return (f"{name} was preempted and still holds {record['held'][name]} blocks",)
        return None

    def _needless(self, record: Any) -> Lines | None:
        """Was the last victim's room really needed?"""
        name = record["preempted"][-1]
        note, one = record["freed"].get(name), self.seen[name]
        if note is None:
            return (f"{name} was preempted and its blocks were not released",)
        freed = note[0]
        tokens = min(one.total, one.computed + self.config.max_num_batched_tokens)
        own = max(0, self.blocks(tokens) - self.blocks(one.computed))
        if record["free"] - freed >= own:
            return (f"{name} was preempted without need: it gave back {freed} blocks, and after "
                    f"the step {record['free']} are free",)  # fmt: skip
        return None

    def _admissions(self, record: Any, admitted: list[str]) -> Lines | None:
        order = [name for name, *_ in record["admitted"] if name in admitted]
        if sorted(order) != sorted(admitted) or len(set(admitted)) < len(admitted):
            extra = sorted({name for name, *_ in record["admitted"]} ^ set(admitted))
            return (f"schedule.new and .resumed do not name who was admitted: {', '.join(extra)}",)
        if admitted and record["preempted"]:
            return (f"{order[0]} was admitted in a step that preempted {record['preempted'][0]}",)
        for name, hit, needed, free, known in (a for a in record["admitted"] if a[0] in admitted):
            if not self.waiting or name != self.waiting[0]:
                head = self.waiting[0] if self.waiting else "nobody"
                return (f"{name} was admitted, but {head} is at the head of the queue",)
            spare = self.config.watermark_blocks if self.running else 0
            if needed + spare > free:
                beside = f" and {spare} kept free (watermark)" if spare else ""
                return (f"{name} was admitted: its {self.seen[name].total} known tokens need "
                        f"{needed} free blocks{beside}, there were {free}",)  # fmt: skip
            if hit != known:
                return (f"{name} was admitted with a hit of {hit} tokens, and lookup had blocks of "
                        f"its first {known}: all that lookup returns is the hit",)  # fmt: skip
            kind = "resumed" if self.seen[name].preemptions else "new"
            if name not in record[kind]:
                return (f"{name} must be listed in schedule.{kind}",)
            if record["cached"].get(name) != hit:
                return (f"schedule.cached of {name}: expected {hit}, the tokens of its hit, got "
                        f"{record['cached'].get(name)}",)  # fmt: skip
            self.seen[name].computed = hit
            self.running.append(self.waiting.pop(0))
        if len(self.running) > self.config.max_num_seqs:
            return (
                f"{len(self.running)} requests run, max_num_seqs is {self.config.max_num_seqs}",
            )
        return None

    def _chunks(self, record: Any, chunks: dict[str, Any]) -> Lines | None:
        if len(chunks) < len(record["chunks"]):
            return ("a request has two chunks in this step",)
        cap = self.cap()
        for name, (start, num, samples) in chunks.items():
            if name not in self.running:
                return (f"{name} has a chunk and does not run",)
            one = self.seen[name]
            if start != one.computed:
                return (f"the chunk of {name} starts at {start}, {one.computed} are computed",)
            if not 1 <= num <= one.total - start:
                return (
                    f"the chunk of {name} has {num} tokens, {one.total - start} are to compute",
                )
            if cap and num > cap:
                return (f"the chunk of {name} has {num} tokens, long_prefill_token_threshold is "
                        f"{cap}",)  # fmt: skip
            last = start + num == one.total
            if samples is not last:
                why = "reaches" if last else "does not reach"
                return (f"the chunk of {name} {why} its last known token: samples must be {last}",)
            if not self.config.enable_chunked_prefill and not last:
                return (f"the prompt of {name} was cut, and chunked prefill is off",)
        return None

    def _blocks(self, record: Any, chunks: dict[str, Any]) -> Lines | None:
        """Names and blocks of those that have a chunk; too few are seen when they are read."""
        for name in record["taken_from"]:
            if name in chunks:
                return (f"take_back_names() took the names of {name}, too, which still has its "
                        "chunk: only the victim's are due, take_back_names(victim)",)  # fmt: skip
        for name, (start, num, _) in chunks.items():
            held, due = record["held"].get(name, 0), self.blocks(start + num)
            if held > due:
                return (f"{name} holds {held} blocks; the {start + num} tokens that are computed "
                        f"after this step take {due}",)  # fmt: skip
        return None

    def _running_first(self, chunks: dict[str, Any], admitted: list[str]) -> Lines | None:
        for name in self.running if admitted else ():
            num = chunks[name][1] if name in chunks else 0
            wanted = self.wanted(name)
            if name not in admitted and num < wanted:
                return (
                    f"{admitted[0]} was admitted, and {name}, which runs already, got {num} of "
                    f"{wanted} tokens: running requests come first",
                )
        return None

    def _budget(self, record: Any, chunks: dict[str, Any], left: int) -> Lines | None:
        budget = self.config.max_num_batched_tokens
        if left < 0:
            return (f"{budget - left} tokens were scheduled, the budget is {budget}",)
        if left == 0:
            return None
        for name in self.running:
            wanted = self.wanted(name)
            num = chunks[name][1] if name in chunks else 0
            if name in [note[1] for note in record["freed"].values()]:
                wanted = 1  # a victim's tokens came back after this chunk was cut
            if num < wanted:
                return (f"{name} runs and got {num} of {wanted} tokens, though {left} of the "
                        f"budget of {budget} were left",)  # fmt: skip
        return None

    def _idle(self, record: Any, chunks: dict[str, Any], left: int) -> Lines | None:
        """Budget and seats were left, and the head of the queue fitted: it must not wait."""
        seats = self.config.max_num_seqs - len(self.running)
        if not self.waiting or left == 0 or seats == 0 or record["preempted"]:
            return None
        if record["head"] is None:
            return None  # `waiting` shows nobody: the queues are looked at next
        needed, remaining = record["head"]
        spare = self.config.watermark_blocks if self.running else 0
        if needed + spare > record["free"]:
            return None
        if not self.config.enable_chunked_prefill and remaining > left:
            return None
        return (f"{self.waiting[0]} waits at the head of the queue and could have been admitted:",
                f"{left} tokens of the budget and {seats} seats are left, it needs {needed} of "
                f"the {record['free']} free blocks")  # fmt: skip

    def _queues(self, record: Any, suffix: str = "") -> Lines | None:
        """`running` and `waiting` show who runs and waits, and only those who run hold blocks."""
        running, waiting = record[f"running{suffix}"], record[f"waiting{suffix}"]
        if running != self.running:
            return (f"running is {_names(running)}, expected {_names(self.running)}",)
        if waiting != self.waiting:
            if waiting != sorted(self.waiting, key=self.urgency):
                return (f"waiting is {_names(waiting)}, expected {_names(self.waiting)}",)
            self.waiting = list(waiting)
        for name in record[f"held{suffix}"]:
            if name not in self.running:
                return (f"{name} does not run and still holds blocks",)
        if record[f"free{suffix}"] + record[f"used{suffix}"] != self.num_blocks:
            return (f"{record[f'free{suffix}']} blocks are free and {record[f'used{suffix}']} in "
                    f"tables, of {self.num_blocks}",)  # fmt: skip
        return None

    # After the forward pass

    def after(self, record: Any) -> Lines | None:
        """What is wrong with what `update`, or `roll_back`, made of the step."""
        for name, position, block in record.get("bad_reads", []):
            if block is None:
                return (f"{name} reads position {position}, and its block table ends before it",)
            return (f"{name} reads position {position} in block {block}, which holds something "
                    "else: it was never written, or it was given to another request",)  # fmt: skip
        if record.get("failed"):
            return self._rolled_back(record)
        ended = []
        for name, start, num, samples in record["chunks"]:
            one = self.seen[name]
            if name in self.aborted_now:
                continue
            one.computed = start + num
            if samples:
                one.outputs.append(self.tokens.token(name, one.total))
                one.reason = self.reason(one)
                if one.reason is not None:
                    ended.append([name, one.reason])
                    self.running.remove(name)
        if record["finished"] != ended:
            return (f"update returned {_ends(record['finished'])}, expected {_ends(ended)}",)
        return self._counts(record) or self._queues(record, "_end") or self._broken(record)

    def _broken(self, record: Any) -> Lines | None:
        if record.get("broken") is None:
            return None
        return (f"after the step {record['broken']}",)

    def _rolled_back(self, record: Any) -> Lines | None:
        for name, *_ in reversed(record["chunks"]):
            if name in self.aborted_now:
                continue
            self.running.remove(name)
            self.seen[name].computed = 0
            self.seen[name].preemptions += 1
            self.wait_again(name)
        return self._counts(record) or self._queues(record, "_end") or self._broken(record)

    def _counts(self, record: Any) -> Lines | None:
        for name, computed in record["computed_end"].items():
            if name in self.seen and computed != self.seen[name].computed:
                return (f"num_computed of {name} is {computed} after the step, expected "
                        f"{self.seen[name].computed}",)  # fmt: skip
        return None

    def at_the_end(self, answer: Any) -> Lines | None:
        """All have ended, with the tokens that each would get alone."""
        for name, one in self.seen.items():
            tokens, reason, preemptions = answer["outputs"][name]
            if one.reason is None:
                return (f"{name} never ended",)
            if tokens != one.outputs:
                first = next((i for i, (a, b) in enumerate(zip(tokens, one.outputs, strict=False))
                              if a != b), min(len(tokens), len(one.outputs)))  # fmt: skip
                return (f"{name}: {len(tokens)} outputs, expected {len(one.outputs)}; they differ "
                        f"from output {first} on",)  # fmt: skip
            if reason != one.reason:
                return (f"finish_reason of {name} is {reason!r}, expected {one.reason!r}",)
            if preemptions != one.preemptions:
                return (f"num_preemptions of {name} is {preemptions}, expected {one.preemptions}",)
        if answer["free"] != self.num_blocks:
            return (f"at the end {answer['free']} of {self.num_blocks} blocks are free",)
        return None


def _names(names: list[str]) -> str:
    return ", ".join(names) or "empty"


def _ends(ended: list[Any]) -> str:
    return ", ".join(f"{name} ({reason})" for name, reason in ended) or "nobody"
