"""Owns watching an engine at work in the child: best logits, own tokens, tokens put in their place.

Knows no expected value of its own. In the judge's further runs the payload may bring tokens:
"force" maps a request to the token that stands at each of its outputs, whatever was sampled;
"record" names an output whose layers are written down (see `engine_record`); with "partial" a run
that stops answers with what it had done.
"""

from __future__ import annotations

from typing import Any

from judge.execute import attempt
from judge.wire import Raised

TOP = 3  # logits that are kept per sampled token


class Watch:
    """Stands around the runner of one engine from now on; `answer` says what was seen.

    `tops` holds per request the ids and logits of the best tokens at every output, where the
    runner has logits; `own` the tokens that were sampled, also where others were put in their
    place.
    """

    def __init__(self, engine: Any, payload: Any) -> None:
        self.engine = engine
        self.tops: dict[str, list[Any]] = {}
        self.own: dict[str, list[int]] = {}
        self.partial = bool(payload.get("partial"))
        self.force = payload.get("force")
        self.record: Any = None
        if hasattr(engine.runner, "observe"):
            engine.runner.observe = self._observe
        if payload.get("record"):
            from judge.engine_record import Record  # imports torch

            self.record = Record(engine.runner, payload["record"])
        if self.force is not None:
            self._run = engine.runner.run
            engine.runner.run = self._forced

    def _observe(self, schedule: Any, logits: Any) -> None:
        requests = [chunk.request for chunk in schedule.chunks if chunk.samples]
        values, ids = self.scores(logits, requests).topk(TOP)
        for request, row, best in zip(requests, values.tolist(), ids.tolist(), strict=True):
            self.tops.setdefault(request.request_id, []).append([best, row])

    def scores(self, logits: Any, requests: Any) -> Any:
        """What each row's token is chosen by: the best of these numbers."""
        return logits

    def _forced(self, schedule: Any) -> dict[str, int]:
        """Run the step; the requests get the tokens of `force`."""
        given: dict[str, int] = self._run(schedule)
        for chunk in schedule.chunks:
            request = chunk.request
            if not chunk.samples:
                continue
            self.own.setdefault(request.request_id, []).append(given[request.request_id])
            tokens = self.force.get(request.request_id, [])
            number = len(request.output_token_ids)
            if number < len(tokens):
                given[request.request_id] = tokens[number]
        return given

    def answer(self, outputs: Any) -> Any:
        """What a run tells the judge; `outputs` are the requests' tokens, or why it stopped."""
        if isinstance(outputs, Raised) and not self.partial:
            return outputs
        trace = [vars(record.without_times()) for record in self.engine.trace]
        if isinstance(outputs, Raised):
            return {"raised": outputs, "trace": trace}
        found = {"outputs": outputs, "trace": trace, "free": self.engine.cache.pool.num_free}
        if hasattr(self.engine.runner, "observe"):
            found["tops"] = self.tops
        if self.force is not None:
            found["own"] = self.own
        if self.record is not None:
            found["record"] = self.record.answer()
        return found


def run(engine: Any, payload: Any, serve: Any, watch: type[Watch] = Watch) -> Any:
    """Serve the payload's requests with `serve(engine, payload)`, watched, and close the engine."""
    try:
        seen = watch(engine, payload)
        return seen.answer(attempt(serve, engine, payload))
    finally:
        attempt(engine.close)  # after an error it may raise again; the first one is the answer
