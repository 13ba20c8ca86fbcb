"""Owns the forward pass of one step: from a schedule to one sampled token per finished chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import torch
from torch import Tensor

from mini_engine.compute.forward import forward
from mini_engine.compute.logprobs import token_logprobs
from mini_engine.compute.model import Model
from mini_engine.control.request import Request
from mini_engine.interfaces import (
    Attention,
    Batch,
    BuildBatch,
    Chunk,
    GraphRunner,
    KVCache,
    Sampler,
    Schedule,
    TellLogprobs,
    TokenLogprobs,
)

Observe = Callable[[Schedule, Tensor], None]
PIECE = 64  # rows of a prompt whose logits are computed at once


class ModelRunner:
    """Runs the model on scheduled chunks; the parts come from outside and can be replaced.

    `observe`, where set, is called in each step with the schedule and the logits of the sampled
    rows [num_samples, vocab_size], before sampling. With a `graph_runner`, decode steps are
    replayed where there is a graph for them; `graph_bucket` is the size of the one that the last
    step replayed, None if it ran eagerly.
    """

    def __init__(
        self,
        model: Model,
        kv_cache: KVCache,
        build_batch: BuildBatch,
        attention: Attention,
        sampler: Sampler,
        device: torch.device | str | None = None,
        observe: Observe | None = None,
        tell_logprobs: TellLogprobs = token_logprobs,
        graph_runner: GraphRunner | None = None,
    ) -> None:
        self.model = model
        self.kv_cache = kv_cache
        self.build_batch = build_batch
        self.attention = attention
        self.sampler = sampler
        self.device = model.device if device is None else torch.device(device)
        self.observe = observe
        self.tell_logprobs = tell_logprobs
        self.graph_runner = graph_runner
        self.graph_bucket: int | None = None
        # Of the last run, by request id, for those that ask for them; prompts by position.
        self.logprobs: dict[str, TokenLogprobs] = {}
        self.prompt_logprobs: dict[str, dict[int, TokenLogprobs]] = {}

    @torch.inference_mode()
    def run(self, schedule: Schedule) -> dict[str, int]:
        """Compute the step's chunks; returns request id -> sampled token, in batch order.

        Afterwards the cache holds K and V of every scheduled token. The schedule is not changed.
        """
        self.logprobs, self.prompt_logprobs = {}, {}
        if not schedule.chunks:
            return {}
        batch = self.build_batch(schedule.chunks, self.kv_cache.block_size)
        hidden = self._hidden(batch)  # [num_tokens, hidden_size]
        self._tell_about_prompts(hidden, schedule, batch)
        requests = [chunk.request for chunk in schedule.chunks if chunk.samples]
        if not requests:
            return {}
        rows = hidden[batch.logits_rows.to(self.device)]
        logits = self.model.logits(rows)  # [num_samples, vocab_size]
        if self.observe is not None:
            self.observe(schedule, logits)
        token_ids = self.sampler(logits, requests)
        if len(token_ids) != len(requests):
            raise RuntimeError(
                f"the sampler gave {len(token_ids)} tokens for {len(requests)} requests"
            )
        self._tell_about_outputs(logits, requests, token_ids)
        return {r.request_id: token for r, token in zip(requests, token_ids, strict=True)}

    def _hidden(self, batch: Batch) -> Tensor:
        """Final hidden states of a batch on the CPU, by a graph if there is one for it."""
        self.graph_bucket = None
        if self.graph_runner is not None:
            replayed = self.graph_runner.run(batch)
            self.graph_bucket = self.graph_runner.bucket
            if replayed is not None:
                return replayed
        plan = self.attention.plan(batch)
        return forward(self.model, self.kv_cache, self.attention, batch.to(self.device), plan)

    def _tell_about_outputs(
        self, logits: Tensor, requests: Sequence[Request], token_ids: Sequence[int]
    ) -> None:
        asked = [row for row, r in enumerate(requests) if r.params.logprobs is not None]
        if not asked:
            return
        found = self.tell_logprobs(
            logits[asked],
            [token_ids[row] for row in asked],
            [requests[row].params.logprobs or 0 for row in asked],
        )
        for row, entry in zip(asked, found, strict=True):
            self.logprobs[requests[row].request_id] = entry

    def _tell_about_prompts(self, hidden: Tensor, schedule: Schedule, batch: Batch) -> None:
        """Row p of a prompt tells how likely its token p + 1 was. Computed in pieces: logits of a
        long prompt would need more memory than its KV."""
        starts = batch.query_starts.tolist()
        for first, chunk in zip(starts, schedule.chunks, strict=False):
            count, prompt = chunk.request.params.prompt_logprobs, chunk.request.prompt_token_ids
            if count is None:
                continue
            told = self.prompt_logprobs.setdefault(chunk.request.request_id, {})
            end = min(chunk.start + chunk.num_tokens, len(prompt) - 1)
            for start in range(chunk.start, end, PIECE):
                stop = min(start + PIECE, end)
                rows = hidden[first + start - chunk.start : first + stop - chunk.start]
                next_ids = prompt[start + 1 : stop + 1]
                found = self.tell_logprobs(
                    self.model.logits(rows), next_ids, [count] * len(next_ids)
                )
                told.update(zip(range(start + 1, stop + 1), found, strict=True))

    @torch.inference_mode()
    def poison(self, chunks: Sequence[Chunk], free_blocks: Iterable[int], number: float) -> None:
        """Debug mode, before `run`: fill with `number` every slot that the step must not read.

        These are the slots of a chunk's block table at or beyond its start (the step writes some of
        them first) and all of `free_blocks`, which are free and have no name. `number` must be
        finite: masked attention multiplies unwritten values by zero, and zero times infinity is
        NaN.
        """
        block_size = self.kv_cache.block_size
        slots = [
            block_id * block_size + offset
            for chunk in chunks
            for index, block_id in enumerate(chunk.request.block_table)
            for offset in range(block_size)
            if index * block_size + offset >= chunk.start
        ]
        slots += [b * block_size + offset for b in free_blocks for offset in range(block_size)]
        if slots:
            self.kv_cache.fill_slots(torch.tensor(slots, device=self.device), number)
