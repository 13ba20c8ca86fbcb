"""Exercises of chapter 05: the prefix cache, from the names of blocks to the cache in the engine.

Write between the two marks of an exercise; helpers of your own may stand there too. Everything else
in this file stays as it is. All of it belongs to the control plane: import no torch. Grade with

    python practice/judge.py prefix-cache.names
    python practice/judge.py prefix-cache.lookup
    python practice/judge.py prefix-cache.cache
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING

from mini_engine.interfaces import ExerciseNotStarted, OutOfBlocks

if TYPE_CHECKING:
    from mini_engine.control.request import Request
    from mini_engine.interfaces import BlockPool

__all__ = ["OutOfBlocks", "PrefixCache", "block_names", "longest_hit"]

# --- prefix-cache.names: edit from here ---


def block_names(
    token_ids: Sequence[int], block_size: int, salt: str | None = None
) -> list[Hashable]:
    """The names of the full blocks of these tokens, first to last.

    The keys and values in a block depend on the block's own tokens and on all tokens before them.
    A name stands for exactly that: block i of one call and block j of another (or the same) call
    with the same block size have equal names if and only if
        all tokens from the start up to the end of the block are equal, and
        the salts are equal. No salt (None) is another salt than the empty string.

    What a name is, is up to you: anything that can be compared with == and be the key of a dict,
    and that has the same small size for every block. A digest of hashlib (SHA-256) will do. A tuple
    that holds its parent, (parent, tokens), won't: it holds all tuples before it, and every
    comparison and every hash reads them all. Nor will Python's hash(), since "only if" is meant
    strictly: two different numbers can have one hash (hash(5) == hash(5 + 2**61 - 1), and the judge
    builds such tokens).

    The tokens of a block that is not full have no name. Example: 10 tokens in blocks of 4 have 2
    names; token_ids is not changed.

    Cost: build each name from its parent, the name of the block before. Every token is read a few
    times at most, however long the prompt is; reading the whole prefix for each block is too slow.

    Token ids are ints of 0 or more, below 2**63. Raises ValueError if block_size is below 1.
    """
    raise ExerciseNotStarted("block_names")


# --- end of prefix-cache.names ---

# --- prefix-cache.lookup: edit from here ---


def longest_hit(
    names: Sequence[Hashable],
    num_tokens: int,
    block_size: int,
    blocks_of: Mapping[Hashable, Sequence[int]],
) -> list[int]:
    """The blocks that already hold the start of a request: the longest run of known names.

    names       the names of the request's full blocks, first to last
    num_tokens  how many tokens the request has; its last block may be not full
    blocks_of   the known names, each with the blocks that hold it, oldest first, never none. Two
                requests can compute the same block at the same time, so there may be several.

    Returns block ids, a new list: for each name from the first on its oldest block, up to the first
    name that isn't known. A known name behind it is no hit: a block table has no gaps.

    Never all tokens: at least one is left to compute, since the logits of the last token are needed
    to sample the next. A whole block is left if the hit would cover everything.

    Changes nothing. Beware: blocks_of may be a defaultdict, where reading blocks_of[name] of an
    unknown name raises no KeyError but adds it, with an empty list. Names may be equal without
    being the same object, and different with the same hash; compare them as a dict does. Stop at
    the first unknown name: the list may be long.
    """
    raise ExerciseNotStarted("longest_hit")


# --- end of prefix-cache.lookup ---

# --- prefix-cache.cache: edit from here ---


class PrefixCache:
    """Gives requests their blocks, names full ones and finds them again; sits on a block pool.

    The pool is that of chapter 02, see BlockPool in mini_engine/interfaces.py: allocate and free at
    the ends of its free list, share, num_free, num_blocks.

    Of a request you may
        read            request_id, token_ids (prompt and outputs so far; outputs are appended as
                        the request runs), num_tokens (their number), cache_salt
        read and write  block_table, a list of ints: its blocks, in the order of its tokens; the
                        engine reads it, only the cache changes it
        use freely      num_named (int, starts at 0) and block_hashes (list, starts empty): nobody
                        else reads them; keep there what you don't want to compute again
    A request_id may come again when its request has ended.

    A name is young from the grow that gives it to the next begin_step: the model may still fail to
    write what it promises.

    A step of the engine makes these calls, in this order:
        begin_step()
        can_grow(r, n), then grow(r, n), for each running request r. While can_grow says no, the
            scheduler ends a victim's turn: release(victim). Under the policy "priority" the victim
            may have grown in this very step; then take_back_names(victim) comes before the release
        hit = lookup(r), admit(r, hit), grow(r, n), for each newcomer. Whether it fits is found out
            by the scheduler before admit, from the hit, pool.num_free and the holders of the hit's
            blocks; nobody asks can_grow here
    Then the model writes the keys and values of the step. Requests that ended are released after
    that. If the model fails, take_back_names() comes first, and then release(r) for all requests of
    the step.

    A block loses its name only when it is handed out again, is taken back, or by reset(). Free
    blocks with a name can still be hit. At most one name per block: the tables you keep must not
    grow with the number of requests served. With enabled=False no block ever gets a name.
    """

    pool: BlockPool

    def __init__(self, pool: BlockPool, block_size: int, *, enabled: bool = True) -> None:
        """Keep the pool as `self.pool`: the scheduler reads it there.

        Raises TypeError unless block_size is an int (a bool is not one), ValueError if it is below
        1.
        """
        raise ExerciseNotStarted("PrefixCache.__init__")

    def lookup(self, request: Request) -> list[int]:
        """The blocks that already hold the start of the request's tokens, in order; a new list.

        Full blocks only, with this request's salt, the oldest block of each name, up to the first
        name that no block has; never all tokens. Changes nothing in pool and table.
        Different tokens must never be hit, whatever their hashes are.
        """
        raise ExerciseNotStarted("PrefixCache.lookup")

    def admit(self, request: Request, hit: list[int]) -> None:
        """Make the blocks of a lookup the start of the request's (empty) block table.

        Each gets one more holder: pool.share. Raises ValueError, changing nothing, if the request
        holds blocks already. Doesn't change or keep the list `hit`.
        """
        raise ExerciseNotStarted("PrefixCache.admit")

    def can_grow(self, request: Request, num_tokens: int) -> bool:
        """Whether `grow` would find the free blocks that it needs. Changes nothing.

        Called for running requests, just before grow; grow may be called without it.
        """
        raise ExerciseNotStarted("PrefixCache.can_grow")

    def grow(self, request: Request, num_tokens: int) -> None:
        """Give the request the blocks for its first `num_tokens` tokens, and name those now full.

        num_tokens counts the tokens computed up to the end of this step: the table gets
        ceil(num_tokens / block_size) blocks in all (never fewer than it has), new ones from
        pool.allocate. A block is full when all its tokens are among these num_tokens, and has its
        name from now on, although the model writes it later in this step: a newcomer of the same
        step may hit it. (In each layer all keys and values of the step are written before any are
        read.) A block that is handed out again loses the name that it had.

        Raises OutOfBlocks, changing nothing, if too few blocks are free.
        """
        raise ExerciseNotStarted("PrefixCache.grow")

    def release(self, request: Request) -> None:
        """Take the request's blocks away, from the last to the first; the table is then empty.

        Blocks without a name go to the front of the free list (reused first), named ones to the
        back (reused last). Names stay.
        """
        raise ExerciseNotStarted("PrefixCache.release")

    def begin_step(self) -> None:
        """A new step: the names given so far are no longer young (see take_back_names)."""
        raise ExerciseNotStarted("PrefixCache.begin_step")

    def take_back_names(self, request: Request | None = None) -> None:
        """Remove the young names, those given since `begin_step`: the request's, or all.

        Called with a request before the release of a victim that grew in this step, and without one
        when the model has failed. Blocks stay where they are, and a name that other blocks have,
        too, stays with those. The engine then releases the requests concerned.
        """
        raise ExerciseNotStarted("PrefixCache.take_back_names")

    def is_named(self, block_id: int) -> bool:
        """Whether the block has a name, so that a lookup may return it."""
        raise ExerciseNotStarted("PrefixCache.is_named")

    def reset(self) -> bool:
        """Forget all names and return True. While any block is in use: nothing changes, False."""
        raise ExerciseNotStarted("PrefixCache.reset")


# --- end of prefix-cache.cache ---
