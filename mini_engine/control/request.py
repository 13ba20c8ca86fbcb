"""Owns the request: its tokens, what is computed of them, and the blocks that hold them."""

from __future__ import annotations

from dataclasses import dataclass, field

from mini_engine.sampling_params import SamplingParams


@dataclass(eq=False)
class Request:
    """One request on its way through the engine.

    The scheduler changes `num_computed`, `output_token_ids` and the counters; only the prefix cache
    changes `block_table` and `num_named`. `arrival` is the submission number. `cache_salt` keeps
    its blocks apart from those of requests with another salt. `end_token_ids` end it with reason
    "stop": the model's end-of-sequence tokens (unless ignored) and the params' stop tokens. Random
    draws depend on `seed`, `choice` (its number among the `n` of a prompt) and output number only.
    """

    request_id: str
    prompt_token_ids: list[int]
    params: SamplingParams = field(default_factory=SamplingParams)
    priority: int = 0
    arrival: int = 0
    cache_salt: str | None = None
    end_token_ids: frozenset[int] = frozenset()
    seed: int = 0
    choice: int = 0
    output_token_ids: list[int] = field(default_factory=list)
    num_computed: int = 0
    block_table: list[int] = field(default_factory=list)
    num_named: int = 0  # blocks of the table, from the first, that have a name
    num_preemptions: int = 0
    longest: int = 0  # the total at which it ends at the latest, set when it is submitted
    finish_reason: str | None = None
    block_hashes: list[int] = field(default_factory=list)  # of full blocks, by the prefix cache
    token_ids: list[int] = field(init=False)  # prompt, then outputs

    def __post_init__(self) -> None:
        self.prompt_token_ids = list(self.prompt_token_ids)
        self.token_ids = self.prompt_token_ids + self.output_token_ids

    @property
    def num_tokens(self) -> int:
        """All known tokens: the total that `num_computed` catches up with."""
        return len(self.token_ids)

    def append_output(self, token_id: int) -> None:
        """Add a sampled token; its K and V are computed in the next step."""
        self.output_token_ids.append(token_id)
        self.token_ids.append(token_id)
