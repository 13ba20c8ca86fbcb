"""Owns a toy exercise inside the real engine: how a sampler chooses among tied logits.

The model's vocabulary consists of twins: token t and token t + 256 have the same weights, so their
logits are equal in every context and only the order of comparison decides between them.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from judge import engine_checks, engine_watch
from judge.api import Case, Check, Context, Details, Exercise, ExerciseResult
from judge.engine_run import serve
from judge.engine_verdict import fingerprint, look, tokens_and_trace
from judge.execute import attempt
from judge.runner import Grader, Options, learner_source

CHOOSING = Exercise(
    id="toy.choosing",
    chapter=99,
    title="Which token has the best logit",
    file="toy_file.py",
    symbols=("choose",),
    slot=None,
    needs_torch=True,
    minutes=1,
    reference="tests.judge.choosing",
    module="tests.judge.choosing",
)
TWINS = 256


def choose(logits: Any, request_id: str, number: int) -> int:
    """The lowest of the best tokens; `number` counts the outputs of the request."""
    return int((logits == logits.max()).nonzero()[0])


def twin_engine(parts: Mapping[str, Any], payload: Any, context: Context) -> Any:
    """Serve the workload with a sampler that asks `choose` row by row. For `execute`."""
    return attempt(_serve, parts["choose"], payload)


def _serve(choose: Any, payload: Any) -> Any:
    from mini_engine.compute.model import Model
    from mini_engine.compute.random_model import TINY_LLAMA, random_tensors
    from mini_engine.engine import LLMEngine
    from mini_engine.parts import EngineParts

    tensors = random_tensors(TINY_LLAMA, payload["model_seed"])
    head = tensors["lm_head.weight"]
    head[TWINS:] = head[:TWINS]

    def sampler() -> Any:
        return lambda logits, requests: [
            choose(row, request.request_id, len(request.output_token_ids))
            for row, request in zip(logits, requests, strict=True)
        ]

    model = Model.from_tensors(TINY_LLAMA, tensors)
    engine = LLMEngine(model, parts=EngineParts(sampler=sampler), device="cpu",
                       **payload["options"])  # fmt: skip
    return engine_watch.run(engine, payload, serve)


def cases(rng: random.Random) -> list[Case]:
    """One workload with several requests at a time."""
    payload = engine_checks.workload(
        rng, vocab_size=TWINS, num_requests=4, longest=16, num_blocks=16, budget=12
    )
    for request in payload["requests"]:
        request["max_tokens"] = 6
    return [Case("twins", {**payload, "model": "twins"})]


CHECK = Check(
    "engine", "inside the engine", "tests.judge.choosing:twin_engine", cases, tokens_and_trace,
    look=look, fingerprint=fingerprint, limit_s=20.0,
)  # fmt: skip
EXERCISE = Details(checks=(CHECK,), hints=("Which?", "The lowest.", "compare"))


def grade(folder: Path, code: str) -> ExerciseResult:
    """Grade `code` with the real judge, from a real file."""
    file = folder / CHOOSING.file
    file.write_text(code, encoding="utf-8")
    grader = Grader(CHOOSING, learner_source(CHOOSING, file), Options(seed=3))
    grader.details = replace(EXERCISE)
    return grader.run()
