"""Where a model's name leads: the default model, a folder, the hub, or an error that helps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
from huggingface_hub.errors import LocalEntryNotFoundError

from mini_engine.config import DEFAULT_MODEL
from mini_engine.text import fetch
from mini_engine.text.default_model import ModelNotAvailable


def test_the_default_model_goes_to_the_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "default_model", lambda: Path("cached"))
    assert fetch.find_model(DEFAULT_MODEL) == Path("cached")


def test_a_folder_is_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert fetch.find_model(str(tmp_path)) == tmp_path
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert fetch.find_model("org/name") == Path("org/name"), "a folder wins over a hub id"


@pytest.mark.parametrize("name", ["./nowhere", "~/nowhere-at-all", "/no/such/folder", "a/b/c"])
def test_a_folder_that_is_not_there_is_said_to_be_missing(name: str) -> None:
    with pytest.raises(ValueError, match=rf"there is no folder .*{DEFAULT_MODEL}"):
        fetch.find_model(name)


def test_a_file_is_no_model(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").touch()
    with pytest.raises(ValueError, match="is a file; give the folder"):
        fetch.find_model(str(tmp_path / "model.safetensors"))


def test_names_that_are_none() -> None:
    with pytest.raises(TypeError, match="named by a string, got 7"):
        fetch.find_model(7)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="empty"):
        fetch.find_model("  ")
    with pytest.raises(ValueError, match="neither a folder"):
        fetch.find_model("what is this?")


def test_a_hub_id_is_fetched_without_what_the_engine_does_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def snapshot(name: str, **options: Any) -> str:
        asked.update(options, name=name)
        return str(tmp_path)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    assert fetch.find_model("Qwen/Qwen3-0.6B") == tmp_path
    files = ["config.json", "model-00001-of-2.safetensors", "onnx/model.json", "x.bin", "x.gguf"]
    taken = huggingface_hub.utils.filter_repo_objects(
        files,
        allow_patterns=asked["allow_patterns"],
        ignore_patterns=asked["ignore_patterns"],
    )
    assert list(taken) == files[:2]


def test_a_hub_model_that_is_cached_works_offline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = tmp_path / "models--org--name" / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_text("{}")
    refs = tmp_path / "models--org--name" / "refs"
    refs.mkdir()
    (refs / "main").write_text("abc")
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(tmp_path))
    assert fetch.find_model("org/name") == snapshot
    with pytest.raises(ModelNotAvailable, match="not in the cache"):
        fetch.find_model("org/other")


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (LocalEntryNotFoundError("offline"), "can't be reached"),
        (OSError("401: gated"), "the hub gave nothing .*gated"),
    ],
)
def test_what_the_hub_refuses_is_said(
    monkeypatch: pytest.MonkeyPatch, error: Exception, message: str
) -> None:
    def refuse(name: str, **options: Any) -> str:
        raise error

    monkeypatch.setattr(huggingface_hub, "snapshot_download", refuse)
    with pytest.raises(ModelNotAvailable, match=message):
        fetch.find_model("org/name")
