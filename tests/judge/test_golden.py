"""What the judge says in the failures that learners meet, word by word (see golden.py)."""

from __future__ import annotations

import pytest

from tests.judge import golden
from tests.judge.conftest import Checkout


@pytest.fixture(scope="module")
def course(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    return golden.fresh_checkout(tmp_path_factory.mktemp("golden") / "course")


@pytest.mark.parametrize("name", golden.SCENES)
def test_the_judge_says_what_it_said(name: str, course: Checkout) -> None:
    lines = golden.differences(name, golden.transcript(golden.SCENES[name], course))
    how = "python -m tests.judge.golden --write keeps what it says now"
    assert not lines, "\n".join([*lines, how])


def test_every_transcript_belongs_to_a_scene() -> None:
    assert {path.stem for path in golden.FOLDER.iterdir()} == set(golden.SCENES)
