"""Owns the proof that the control plane's benchmark measures what it says, at tiny sizes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mini_engine.benchmarks.control import Sizes, decoding, main, measure_blocked_head

TINY = Sizes(
    decodes=4, prompt=32, cached_prompt=64, prompts=(16, 64), pools=(60, 600), steps=16, rounds=2
)


def test_the_figures_are_printed_and_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "figures.json"
    main(["--json", str(path)], TINY)
    printed = capsys.readouterr().out
    assert "step of 4 decodes" in printed
    assert "cached prompt of 64 tokens" in printed
    kept = json.loads(path.read_text(encoding="utf-8"))
    assert kept["sizes"]["prompts"] == [16, 64]
    figures = kept["figures"]
    assert list(figures["by_prompt"]["ratio"]) == ["16", "64"]
    assert list(figures["by_pool"]["ratio"]) == ["60", "600"]
    assert figures["by_pool"]["ratio"]["60"] == 1
    assert list(figures["decode_step"]) == list(figures["cached_prompt"]) == ["mini_engine"]
    assert kept["vllm"] == "not measured"
    assert printed.count("vllm not measured") == 2


def test_every_request_decodes_before_the_clock_starts() -> None:
    control = decoding(5, 40, 100)
    assert [len(r.output_token_ids) for r in control.scheduler.running] == [5, 4, 3, 2, 1]
    assert [r.num_tokens - r.num_computed for r in control.scheduler.running] == [1] * 5


def test_a_blocked_head_is_hashed_once() -> None:
    hashed = measure_blocked_head(TINY)["hashed"]
    # 2 blocks are hit, the third is unknown; in 16 steps the other request fills one block.
    assert 3 <= hashed["arrives"] <= 4
    assert hashed["waits"] == hashed["no queue"] == 1 / 16


def test_a_folder_without_vllm_is_a_clear_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--vllm", str(tmp_path)], TINY)
    assert stopped.value.code == 2
    assert f"holds a folder vllm: {tmp_path}" in capsys.readouterr().err
