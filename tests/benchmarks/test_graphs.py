"""The benchmark of graphs: counts on a CPU and claims no time there; needs few packages."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from mini_engine.benchmarks.graphs import main

OTHERS = (
    "transformers", "tokenizers", "huggingface_hub", "gguf", "accelerate", "jinja2", "platformdirs",
    "rich", "hypothesis", "pydantic", "fastapi", "zmq", "msgpack", "psutil",
)  # fmt: skip
IMPORTS = (
    "mini_engine.benchmarks.graphs, tests.graphs.test_graph_runner, tests.graphs.test_emulator"
)


def test_on_a_cpu_launches_are_counted_and_times_are_not_measured(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.json"
    sizes = ["--batches", "1", "3", "--length", "20", "--max-model-len", "40"]
    assert main(["--shape", "tiny", "--device", "cpu", *sizes, "--json", str(path)]) == 0
    assert capsys.readouterr().out.count("not measured (no GPU)") == 2
    figures = json.loads(path.read_text())
    for batch, row in zip((1, 3), figures["rows"], strict=True):
        assert (row["batch"], row["bucket"]) == (batch, batch)
        assert row["eager_launches"] > 100 > 20 > row["replayed_launches"] > 5
        assert row["eager_ms"] is row["replayed_ms"] is row["eager_share"] is None
    assert figures["copy_gb_per_s"] is figures["capture_s"] is None


def test_a_gpu_machine_needs_torch_numpy_safetensors_and_pytest_only() -> None:
    """Also for the tests that run there: these would fail where one of the others is missing."""
    block = f"import sys; sys.modules.update(dict.fromkeys({OTHERS}))"
    done = subprocess.run(
        [sys.executable, "-c", f"{block}; import {IMPORTS}"],
        cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
