"""Owns the contracts between the parts of the engine, and the data that they pass to each other.

A part may import this file, `config`, `sampling_params` and `trace`, and never another part. Every
Protocol states what holds before and after a call; reference parts, learners' parts and tests all
follow it. Importing this loads no torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from torch import Tensor

    from mini_engine.control.request import Request


class OutOfBlocks(RuntimeError):
    """The pool has fewer free blocks than were asked for; nothing was taken."""


class ExerciseNotStarted(NotImplementedError):
    """A stub of an exercise was called; the judge reports the exercise as not started."""


class BrokenInvariant(AssertionError):
    """A part's own bookkeeping contradicts itself; the message says which rule is broken where."""


@dataclass(slots=True)
class Chunk:
    """Tokens of a request that a step computes: positions `start` to `start + num_tokens - 1`.

    Nobody changes it. It isn't frozen because every step makes one per request, and a frozen
    dataclass takes three to four times as long to make.
    """

    request: Request
    start: int
    num_tokens: int
    samples: bool  # True if the chunk reaches the last known token, so one token is sampled from it


@dataclass
class Schedule:
    """What one step computes, in batch order, and what was decided on the way.

    `cached` maps the ids of requests admitted in this step to their prefix hit in tokens.
    """

    chunks: list[Chunk] = field(default_factory=list)
    preempted: list[str] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    resumed: list[str] = field(default_factory=list)
    cached: dict[str, int] = field(default_factory=dict)


class BlockPool(Protocol):
    """A fixed number of KV blocks with ids 0 to `num_blocks - 1`, each free or held by 1 or more.

    Always: free + used = `num_blocks`, and a block is free exactly when its reference count is 0.
    """

    num_blocks: int

    @property
    def num_free(self) -> int:
        """How many blocks are free."""

    def allocate(self, count: int) -> list[int]:
        """Take `count` blocks from the front of the free list, each with reference count 1.

        Raises OutOfBlocks if fewer are free and ValueError if count < 0; both change nothing.
        """

    def share(self, block_id: int) -> None:
        """Add one holder. A free block leaves the free list, wherever in it the block stands."""

    def free(self, block_id: int, *, to_front: bool = True) -> None:
        """Take one holder away; with the last one gone the block joins the free list.

        It joins at the front (reused first) or at the back (reused last). Raises ValueError for a
        block that is free already and changes nothing.
        """

    def ref_count(self, block_id: int) -> int:
        """How many tables hold the block. Raises ValueError for an id outside the pool."""

    def free_block_ids(self) -> list[int]:
        """The free list, the block that is handed out next first."""


class PrefixCache(Protocol):
    """Gives requests their blocks, names full ones and finds them again; sits on a BlockPool.

    Made with `(pool, block_size, enabled=...)`. Everything here is called by scheduler or engine;
    a `check_invariants(requests)` beside it is optional, and debug mode calls it after each step.
    """

    pool: BlockPool

    def lookup(self, request: Request) -> list[int]:
        """The blocks that already hold the start of the request's tokens.

        Full blocks only, and never all tokens: at least one is left to compute. Changes nothing:
        no count, no order, no statistics.
        """

    def admit(self, request: Request, hit: list[int]) -> None:
        """Make the blocks of a lookup the start of the request's (empty) block table."""

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        """Whether `grow` would find the free blocks it needs."""

    def grow(self, request: Request, num_tokens: int) -> None:
        """Give the request the blocks for its first `num_tokens` tokens, and name those now full.

        `num_tokens` counts the tokens computed up to the end of this step, so a block is named
        before its last slot is written. Raises OutOfBlocks, changing nothing, if too few are free.
        """

    def release(self, request: Request) -> None:
        """Take the request's blocks away, last to first: unnamed to the front of the free list."""

    def begin_step(self) -> None:
        """Forget which names are young; call it before the first `grow` of a step."""

    def take_back_names(self, request: Request | None = None) -> None:
        """Remove the names given since `begin_step`, to one request or to all."""

    def is_named(self, block_id: int) -> bool:
        """Whether a lookup may return the block; debug mode poisons free blocks without a name."""

    def reset(self) -> bool:
        """Forget all names. Refuses (False, nothing changes) while any block is in use."""


class Scheduler(Protocol):
    """Decides, step by step, which tokens of which requests are computed."""

    waiting: Sequence[Request]  # in the order in which they will be considered
    running: Sequence[Request]  # in order of admission

    def add(self, request: Request) -> None:
        """Queue a request. Raises ValueError, with both numbers, if it can never be served."""

    def abort(self, request_id: str) -> bool:
        """End a request at once and take its blocks back. False if there is none by that id."""

    def schedule(self) -> Schedule:
        """Choose the chunks of the next step and give them their blocks."""

    def update(self, schedule: Schedule, sampled: dict[str, int]) -> list[Request]:
        """Take in the step's sampled tokens; returns the requests that ended, in batch order."""

    def roll_back(self, schedule: Schedule) -> None:
        """The step's forward pass failed: its requests wait again, with nothing computed."""


@dataclass(frozen=True)
class Batch:
    """The chunks of one step, packed one after another without padding.

    Integer tensors (int64). `block_tables` is filled up with 0 to the right, behind each request's
    own blocks; `seq_lens` are the tokens in the cache after this step, so they say where it ends.
    """

    token_ids: Tensor  # [num_tokens]
    positions: Tensor  # [num_tokens], place of each token in its own request
    slot_mapping: Tensor  # [num_tokens], block * block_size + offset: where its K and V are written
    query_starts: Tensor  # [num_requests + 1], first row of each chunk; the last is num_tokens
    seq_lens: Tensor  # [num_requests]
    block_tables: Tensor  # [num_requests, most blocks of any request]
    logits_rows: Tensor  # [num_samples], rows whose next token is wanted, in batch order

    def to(self, device: Any) -> Batch:
        """The same batch with its tensors on `device`."""
        return Batch(**{name: tensor.to(device) for name, tensor in vars(self).items()})


class BuildBatch(Protocol):
    """A function: the chunks of a step, packed into one flat batch on the CPU."""

    def __call__(self, chunks: Sequence[Chunk], block_size: int) -> Batch: ...


class KVCache(Protocol):
    """The keys and values of all blocks, for every layer."""

    block_size: int

    def write(self, layer: int, key: Tensor, value: Tensor, slot_mapping: Tensor) -> None:
        """Store one row per token: key and value [num_tokens, num_kv_heads, head_dim]."""

    def layer(self, layer: int) -> tuple[Tensor, Tensor]:
        """(keys, values) of a layer, each [num_blocks, block_size, num_kv_heads, head_dim]."""

    def fill_slots(self, slots: Tensor, number: float) -> None:
        """Overwrite these slots in every layer; debug mode poisons unwritten slots with it."""


class Attention(Protocol):
    """Causal attention of a flat batch over the paged cache."""

    def plan(self, batch: Batch) -> Any:
        """Once per step, on the CPU batch: whatever all layers share (lengths, masks, choices)."""

    def __call__(self, query: Tensor, keys: Tensor, values: Tensor, plan: Any) -> Tensor:
        """Attend; K and V of this step's tokens are in the cache already.

        query [num_tokens, num_heads, head_dim]; keys and values as `KVCache.layer` gives them;
        returns [num_tokens, num_heads, head_dim].
        """


# What a model calls in each layer: (layer index, query, key, value) -> attention output.
# query and output are [num_tokens, num_heads, head_dim], key and value [num_tokens, num_kv_heads,
# head_dim]. The caller keeps K and V wherever it likes: the model knows of no cache.
Attend = Callable[[int, "Tensor", "Tensor", "Tensor"], "Tensor"]


class Graph(Protocol):
    """A captured piece of work: torch.cuda.CUDAGraph, or compute.graph_emulator.EmulatedGraph.

    Captured with `compute.cuda_graphs.capture`, which calls the first two.
    """

    def capture_begin(self, pool: Any = None) -> None:
        """Note down what runs from here on, and take memory from `pool` (None: a new one)."""

    def capture_end(self) -> None:
        """The graph is complete. Nothing has run: its results come with the first replay."""

    def replay(self) -> None:
        """Run it, reading and writing the same memory as at capture."""

    def pool(self) -> Any:
        """The memory that it uses, for graphs captured later; never two run at once."""


class GraphRunner(Protocol):
    """Runs decode steps as replayed graphs. Made with `(model, kv_cache, config)`.

    `config` is an EngineConfig without None; the cache has one block more than `num_blocks`, whose
    id is `num_blocks`: rows that only fill a bucket up may write there.
    """

    bucket: int | None  # the size of the graph that the last `run` replayed, None if it did not

    def run(self, batch: Batch) -> Tensor | None:
        """Final hidden states of a decode batch: [num_tokens, hidden_size], until called again.

        `batch` is on the CPU. None, with nothing done, for a batch that no graph was captured for:
        prompts, chunks of several tokens, more requests than `max_num_seqs`.
        """


class Sampler(Protocol):
    """Chooses the next token of each row."""

    def __call__(self, logits: Tensor, requests: Sequence[Request]) -> list[int]:
        """logits [num_samples, vocab_size], one row per request; returns one token id per row."""


@dataclass(frozen=True)
class TokenLogprobs:
    """How likely one token was, of the raw distribution (before temperature, filters, penalties).

    `rank` is 1 for the most likely token. `top` holds the most likely ones as (token id, log
    probability), best first; the token itself need not be among them.
    """

    token_id: int
    logprob: float
    rank: int
    top: tuple[tuple[int, float], ...] = ()


class TellLogprobs(Protocol):
    """A function: how likely tokens were."""

    def __call__(
        self, logits: Tensor, token_ids: Sequence[int], counts: Sequence[int]
    ) -> list[TokenLogprobs]:
        """One entry per row of logits [n, vocab_size], for its token, with its `counts` best."""


class Detokenizer(Protocol):
    """Turns one request's tokens into text as they come, and never splits a character."""

    @property
    def pending(self) -> bool:
        """Whether the last character so far is not complete, so that its text is held back."""

    def add(self, token_ids: Iterable[int]) -> str:
        """The text that these tokens complete; may be empty."""

    def finish(self) -> str:
        """What was held back; an incomplete character comes out as one replacement character."""


class StopChecker(Protocol):
    """Looks for stop strings in one request's text as it comes, and shows no part of them."""

    matched: str | None  # the stop string that the text has completed

    def add(self, text: str) -> str:
        """The text that may be shown now; once a stop string is complete, what comes before it."""

    def finish(self) -> str:
        """The request ended otherwise: what was held back."""
