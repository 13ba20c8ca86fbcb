"""The minutes that chapters announce are those of the judge's table, and they add up."""

from __future__ import annotations

import re

import pytest

from judge.exercises import EXERCISES
from tests.chapters.chapter import ROOT, Chapter

NAMES = sorted(path.name for path in (ROOT / "chapters").glob("[0-9][0-9]_*.ipynb"))
INTRO = re.compile(
    r"It takes about (\d+) minutes: (\d+) to read and run, (\d+) for "
    r"(two|three|four|five) exercises"
)
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
HOURS = {11: "eleven", 12: "twelve", 13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen"}


def announced(prose: str, exercise: str) -> list[int]:
    """The minutes after an exercise's id, in its box or in its row of a table."""
    box = rf"\*\*`{re.escape(exercise)}`\*\* \((\d+) minutes\)"
    row = rf"\| `{re.escape(exercise)}` \|[^\n]*?\| (\d+) minutes \|"
    return [int(number) for number in re.findall(box, prose) + re.findall(row, prose)]


@pytest.mark.parametrize("name", NAMES)
def test_minutes_are_those_of_the_judge(name: str) -> None:
    chapter = Chapter(name)
    exercises = [e for e in EXERCISES if e.chapter == int(name[:2])]
    assert exercises
    for exercise in exercises:
        assert announced(chapter.prose, exercise.id) == [exercise.minutes], exercise.id
    intro = INTRO.search(chapter.prose)
    assert intro, "the intro says how long the chapter takes"
    total, reading, working = (int(number) for number in intro.groups()[:3])
    assert working == sum(exercise.minutes for exercise in exercises)
    assert total == reading + working
    assert intro.group(4) == WORDS[len(exercises)]


def test_the_readme_announces_the_same_minutes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    totals = []
    for name in NAMES:
        intro = INTRO.search(Chapter(name).prose)
        assert intro
        totals.append(int(intro.group(1)))
        row = re.search(rf"^\| {name[:2]} .*\| (\d+) \|$", readme, re.MULTILINE)
        assert row, f"README has no row for {name}"
        assert int(row.group(1)) == totals[-1]
    hours = HOURS[round(sum(totals) / 60)]
    assert f"chapters take about {hours} hours" in " ".join(readme.split())
