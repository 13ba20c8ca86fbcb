"""A small model folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.text.small_models import llama


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    llama(eos_token_id=[2, 7]).save_pretrained(tmp_path)
    return tmp_path
