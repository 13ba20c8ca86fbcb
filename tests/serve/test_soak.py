"""Many clients at once, who cancel, send nonsense, and must each get what they would get alone.

MINI_ENGINE_SOAK_S=600 makes it ten minutes; the seed is fixed and printed with any failure.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import time
from collections import Counter
from itertools import cycle
from typing import Any

import httpx
import psutil
import pytest

from tests.serve.server import PATIENCE_S, Server, run_async

SEED = 20
SECONDS = float(os.environ.get("MINI_ENGINE_SOAK_S", "25"))
CLIENTS = 8
ACTS = {"whole": 4, "stream": 4, "cancel": 2, "nonsense": 1}  # what clients do, and how often
NONSENSE: list[bytes] = [
    b"", b"{", b"[]", b'{"prompt": 5}', b'{"prompt": "x", "temperature": -1}', b"\xff\xfe",
    b'{"prompt": "x", "max_tokens": "many"}', b'{"prompt": []}', b'{"prompt": [99999999]}',
]  # fmt: skip
GROWTH = 64 * 2**20  # bytes; a leak of a block table per request would be far more over 10 minutes


def kinds(rng: random.Random) -> list[dict[str, Any]]:
    """Requests whose answer is always the same; some share a prefix, some fill most of the pool."""
    made = []
    for number in range(12):
        shared = "You are a helpful assistant who answers in few words. " * rng.randrange(3)
        made.append({
            "prompt": f"{shared}{number}, {number + 1}, and then", "max_tokens": rng.randint(1, 24),
            "temperature": rng.choice([0, 0.8, 1.2]), "top_p": rng.choice([1, 0.9]), "seed": number,
            "ignore_eos": rng.random() < 0.5,
        })  # fmt: skip
    return made


async def ask(client: httpx.AsyncClient, body: dict[str, Any], stream: bool) -> str:
    """The text of an answer, in either form."""
    if not stream:
        found = await client.post("/v1/completions", json=body)
        found.raise_for_status()
        return str(found.json()["choices"][0]["text"])
    pieces = []
    async with client.stream("POST", "/v1/completions", json={**body, "stream": True}) as response:
        response.raise_for_status()
        async for line in response.aiter_lines():
            if line.startswith("data: {"):
                pieces.append(json.loads(line[6:])["choices"][0]["text"])
    return "".join(pieces)


async def one_client(
    server: Server, rng: random.Random, known: list[tuple[dict[str, Any], str]], ends: float,
    seen: Counter[str], what: str,
) -> None:  # fmt: skip
    """Begins with `what`, so that on the slowest machine everything happens; then at random."""
    async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
        while time.monotonic() < ends:
            await asyncio.sleep(rng.expovariate(5))
            body, expected = rng.choice(known)
            seen[what] += 1
            if what == "nonsense":
                answer = await client.post("/v1/completions", content=rng.choice(NONSENSE))
                assert answer.status_code == 400, answer.text
            elif what == "cancel":
                longer = {**body, "max_tokens": 100, "ignore_eos": True}
                task = asyncio.create_task(ask(client, longer, rng.random() < 0.7))
                await asyncio.sleep(rng.uniform(0, 0.5))
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            else:
                assert await ask(client, body, what == "stream") == expected, (SEED, body)
            what = rng.choices(list(ACTS), list(ACTS.values()))[0]


@pytest.mark.timeout(SECONDS + 300)
def test_every_answer_is_right_and_nothing_leaks(server: Server) -> None:
    rng = random.Random(SEED)

    async def run() -> Counter[str]:
        async with httpx.AsyncClient(base_url=server.url, timeout=PATIENCE_S) as client:
            known = [(body, await ask(client, body, False)) for body in kinds(rng)]
        seen: Counter[str] = Counter()
        ends = time.monotonic() + SECONDS
        clients = [
            one_client(server, random.Random(SEED + number), known, ends, seen, what)
            for number, what in zip(range(CLIENTS), cycle(ACTS), strict=False)
        ]
        await asyncio.gather(*clients)
        return seen

    (core,) = server.children()
    processes = [psutil.Process(core), psutil.Process(server.process.pid)]
    run_async(run())  # once, so that what is loaded late does not count as growth
    before = [process.memory_info().rss for process in processes]
    seen = run_async(run())
    server.wait_for("requests_running", 0)
    server.wait_for("requests_waiting", 0)
    server.wait_for("kv_cache_usage", 0.0)
    print(dict(seen))
    assert min(seen[what] for what in ACTS) > 0
    after = [process.memory_info().rss for process in processes]
    assert all(new - old < GROWTH for old, new in zip(before, after, strict=True)), (before, after)
