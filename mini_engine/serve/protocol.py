"""Owns the requests of OpenAI's API: their fields, and what this engine makes of them.

Field names and defaults are OpenAI's (https://platform.openai.com/docs/api-reference); `top_k`,
`min_p`, `repetition_penalty`, `min_tokens`, `ignore_eos`, `stop_token_ids`,
`include_stop_str_in_output`, `priority` and `cache_salt` are vLLM's additions.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StrictStr

from mini_engine.sampling_params import SamplingParams

# Fields that change what the answer means: without the feature, the request is refused.
NOT_SUPPORTED = {
    "tools": "tools",
    "tool_choice": "tools",
    "functions": "tools",
    "function_call": "tools",
    "response_format": "structured output",
    "audio": "audio",
    "modalities": "modalities other than text",
    "suffix": "insertion",
    "best_of": "best_of",
    "echo": "echo",
    "guided_json": "structured output",
    "structured_outputs": "structured output",
}
# What a message to the engine core can carry.
Int = Annotated[StrictInt, Field(ge=-(2**63), lt=2**63)]
MOST_CHOICES = 128  # as OpenAI's API
HARMLESS: tuple[Any, ...] = (None, False, [], {}, "none", "auto", {"type": "text"}, ["text"], 1)


class StreamOptions(BaseModel):
    """How a stream ends."""

    model_config = ConfigDict(extra="allow")
    include_usage: StrictBool = False


class Shared(BaseModel):
    """What both kinds of requests have. Other fields are accepted and ignored."""

    model_config = ConfigDict(extra="allow")

    model: StrictStr | None = None
    frequency_penalty: float | None = 0.0
    presence_penalty: float | None = 0.0
    repetition_penalty: float | None = 1.0
    temperature: float | None = 1.0
    top_p: float | None = 1.0
    top_k: Int | None = 0
    min_p: float | None = 0.0
    logit_bias: dict[str, float] | None = None
    max_tokens: Int | None = None
    min_tokens: Int | None = 0
    n: Annotated[StrictInt, Field(le=MOST_CHOICES)] | None = 1
    seed: Annotated[StrictInt, Field(ge=-(2**63), lt=2**64)] | None = None
    stop: StrictStr | list[StrictStr] | None = None
    stop_token_ids: list[Int] | None = None
    include_stop_str_in_output: StrictBool | None = False
    ignore_eos: StrictBool | None = False
    stream: StrictBool | None = False
    stream_options: StreamOptions | None = None
    priority: Annotated[StrictInt, Field(ge=-(2**31), lt=2**31)] | None = 0
    cache_salt: StrictStr | None = None

    def refuse_unsupported(self) -> None:
        """Raise ValueError for a field whose meaning would be lost."""
        extra = self.model_extra or {}
        for name, feature in NOT_SUPPORTED.items():
            if name in extra and extra[name] not in HARMLESS:
                raise ValueError(f"{name}: this server does not offer {feature} yet; leave it out")

    def params(
        self, max_tokens: int, logprobs: int | None, prompt_logprobs: int | None = None
    ) -> SamplingParams:
        """The sampling parameters. Raises ValueError or TypeError, naming the field."""
        fields = {
            name: getattr(self, name)
            for name in (
                "frequency_penalty", "presence_penalty", "repetition_penalty", "temperature",
                "top_p", "top_k", "min_p", "min_tokens", "n", "seed", "stop", "stop_token_ids",
                "include_stop_str_in_output", "ignore_eos",
            )
            if getattr(self, name) is not None
        }  # fmt: skip
        bias = {_token_id(name): value for name, value in (self.logit_bias or {}).items()}
        return SamplingParams(
            max_tokens=max_tokens, logprobs=logprobs, prompt_logprobs=prompt_logprobs,
            logit_bias=bias, **fields,
        )  # fmt: skip


class CompletionRequest(Shared):
    """POST /v1/completions; `echo` puts the prompt in front of the answer, logprobs included."""

    prompt: StrictStr | list[Int] | list[StrictStr] | list[list[Int]]
    logprobs: Int | None = None
    echo: StrictBool | None = False

    def prompts(self) -> list[str | list[int]]:
        """One or several, each text or token ids. Raises ValueError if there is none."""
        prompt: Any = self.prompt
        if isinstance(prompt, str) or (prompt and isinstance(prompt[0], int)):
            return [prompt]
        if not prompt:
            raise ValueError("prompt: at least one token is needed")
        return list(prompt)


class ContentPart(BaseModel):
    """A piece of a message's content."""

    model_config = ConfigDict(extra="allow")
    type: StrictStr
    text: StrictStr | None = None


class ChatMessage(BaseModel):
    """One message of a conversation. Other fields (a name, a refusal) are ignored."""

    model_config = ConfigDict(extra="allow")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: StrictStr | list[ContentPart] | None = None

    def text(self) -> str:
        """The content as text. Raises ValueError for anything else."""
        if self.content is None or isinstance(self.content, str):
            return self.content or ""
        others = [part.type for part in self.content if part.type != "text" or part.text is None]
        if others:
            raise ValueError(f"messages: content of type {others[0]!r}; this model reads text only")
        return "".join(part.text or "" for part in self.content)


class ChatRequest(Shared):
    """POST /v1/chat/completions."""

    messages: list[ChatMessage] = Field(min_length=1)
    logprobs: StrictBool | None = False
    top_logprobs: Int | None = None
    max_completion_tokens: Int | None = None

    def conversation(self) -> list[dict[str, str]]:
        """The messages as a chat template wants them."""
        roles = {"developer": "system", "function": "tool"}
        return [{"role": roles.get(m.role, m.role), "content": m.text()} for m in self.messages]

    def num_logprobs(self) -> int | None:
        """How many alternatives to tell for each token. Raises ValueError if asked by halves."""
        if self.logprobs:
            return self.top_logprobs or 0
        if self.top_logprobs:
            raise ValueError("top_logprobs: needs logprobs to be true")
        return None


class TokenizeRequest(BaseModel):
    """POST /tokenize: a text, or a conversation in the model's chat template."""

    model_config = ConfigDict(extra="allow")
    prompt: StrictStr | None = None
    messages: list[ChatMessage] | None = None


def _token_id(name: str) -> int:
    if not name.isascii() or not name.isdigit():
        raise ValueError(f"logit_bias: its keys are token ids, got {name!r}")
    return int(name)
