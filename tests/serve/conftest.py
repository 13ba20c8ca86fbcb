"""One server with the engine in its own process, and one with it in a thread."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.serve.server import Server

SIZES = ("--max-model-len", "256", "--num-blocks", "96", "--max-num-seqs", "16")


@pytest.fixture(scope="package")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(*SIZES, log=tmp_path_factory.mktemp("serve") / "log") as running:
        yield running
    assert running.process.returncode == 0, running.log.read_text()


@pytest.fixture(scope="package")
def in_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    log = tmp_path_factory.mktemp("serve") / "log"
    with Server(*SIZES, "--in-process", log=log) as running:
        yield running
    assert running.process.returncode == 0, running.log.read_text()
