"""Owns the numbers under /metrics, in Prometheus' format; names are like vLLM's."""

from __future__ import annotations

import time
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from mini_engine.outputs import RequestOutput
from mini_engine.serve.async_engine import AsyncEngine

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)
PREFIX = "mini_engine"


class EngineState:
    """What the engine core said last, read whenever the metrics are."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """For prometheus_client."""
        state = self._engine.state
        blocks = state.get("num_blocks", 0)
        used = 1 - state.get("free_blocks", 0) / blocks if blocks else 0.0
        asked, hit = state.get("asked_tokens", 0), state.get("hit_tokens", 0)
        rate = hit / asked if asked else 0.0
        gauges = (
            ("requests_running", "Requests in the running list.", state.get("running", 0)),
            ("requests_waiting", "Requests in the waiting queue.", state.get("waiting", 0)),
            ("kv_cache_usage", "Share of the KV blocks that requests hold.", used),
            (
                "prefix_hit_rate",
                "Share of prompt tokens found cached.",
                rate,
            ),
            ("engine_alive", "1 while the engine core runs.", float(self._engine.error is None)),
        )
        for name, help_text, value in gauges:
            yield GaugeMetricFamily(f"{PREFIX}:{name}", help_text, value)
        counters = (
            ("preemptions", "Requests preempted.", state.get("preemptions", 0)),
            (
                "sampled_tokens",
                "Output tokens computed, also those that nobody got.",
                state.get("sampled_tokens", 0),
            ),
            ("prefix_queried_tokens", "Prompt tokens looked up.", asked),
            ("prefix_hit_tokens", "Prompt tokens found cached.", hit),
        )
        for name, help_text, value in counters:
            yield CounterMetricFamily(f"{PREFIX}:{name}", help_text, value)


class Metrics:
    """Counts requests and tokens, and measures latencies as a client of the engine sees them."""

    def __init__(self, engine: AsyncEngine) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(EngineState(engine))
        self.requests = self._counter("requests", "Requests ended, by reason.", "reason")
        self.prompt_tokens = self._counter("prompt_tokens", "Prompt tokens of ended requests.")
        self.output_tokens = self._counter("output_tokens", "Tokens generated.")
        self.ttft = self._histogram("time_to_first_token_seconds", "Arrival to first token.")
        self.itl = self._histogram("inter_token_latency_seconds", "One token to the next.")
        self.e2e = self._histogram("end_to_end_seconds", "Arrival to last token.")

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}:{name}", text, labels, registry=self.registry)

    def _histogram(self, name: str, text: str) -> Histogram:
        return Histogram(f"{PREFIX}:{name}", text, registry=self.registry, buckets=SECONDS)

    def text(self) -> bytes:
        """All of them, as /metrics answers."""
        return generate_latest(self.registry)


class RequestClock:
    """Measures one choice of a request."""

    def __init__(self, metrics: Metrics, arrived: float) -> None:
        self._metrics = metrics
        self._arrived = self._last = arrived
        self._has_token = False

    def saw(self, output: RequestOutput) -> None:
        """An output came."""
        now = time.monotonic()
        if output.new_token_ids:
            measure = self._metrics.itl if self._has_token else self._metrics.ttft
            measure.observe(now - self._last)
            self._last, self._has_token = now, True
            self._metrics.output_tokens.inc(len(output.new_token_ids))
        if output.finished:
            self._metrics.e2e.observe(now - self._arrived)
            self._metrics.prompt_tokens.inc(len(output.prompt_token_ids))
            self._metrics.requests.labels(output.finish_reason).inc()
