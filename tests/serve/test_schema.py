"""Requests made from the OpenAPI schema, legal and not: never an answer of 5xx."""

from __future__ import annotations

import httpx
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis import Case

from tests.serve.server import PATIENCE_S, Server

OPERATIONS = ("/v1/chat/completions", "/v1/completions", "/tokenize")


def test_no_request_makes_the_server_fail(server: Server) -> None:
    schema = schemathesis.openapi.from_url(f"{server.url}/openapi.json")
    statuses: list[int] = []

    @settings(
        deadline=None, max_examples=60, derandomize=True, database=None,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    def run(case: Case) -> None:
        if isinstance(case.body, dict):  # an answer of any length would take its time
            case.body["max_tokens"] = case.body["max_completion_tokens"] = 2
            case.body.pop("n", None)
        response = case.call(timeout=PATIENCE_S)
        statuses.append(response.status_code)
        assert response.status_code < 500, (case.body, response.text)

    for path in OPERATIONS:
        operation = schema[path]["POST"]
        given(operation.as_strategy())(run)()
    assert 200 in statuses
    assert statuses.count(400) > 20
    assert httpx.get(f"{server.url}/health").status_code == 200
    server.wait_for("kv_cache_usage", 0.0)
