"""The minutes that chapters announce are those of the judge's table, and they add up."""

from __future__ import annotations

import re

import pytest

from judge.api import Exercise
from judge.exercises import EXERCISES
from tests.chapters.chapter import ROOT, Chapter

FILES = (ROOT / "chapters").glob("[0-9][0-9]*_*.ipynb")
NAMES = sorted(path.name for path in FILES if "recap" not in path.name)
TOPICS = {"06_sampling.ipynb": "sampling", "06b_api.ipynb": "text"}  # two notebooks, one chapter
INTRO = re.compile(
    r"It takes about (\d+) minutes: (\d+) to read and run, (\d+) for "
    r"(two|three|four|five) exercises"
)
WORDS = {2: "two", 3: "three", 4: "four", 5: "five"}
HOURS = {13: "thirteen", 14: "fourteen", 15: "fifteen", 16: "sixteen", 17: "seventeen",
         18: "eighteen", 19: "nineteen", 20: "twenty",
         21: "twenty-one", 22: "twenty-two"}  # fmt: skip


def exercises_of(name: str) -> list[Exercise]:
    """The exercises that a notebook announces: those of its chapter, or of its topic."""
    found = [e for e in EXERCISES if e.chapter == int(name[:2])]
    return [e for e in found if TOPICS.get(name, e.topic) == e.topic]


def announced(prose: str, exercise: str) -> list[int]:
    """The minutes after an exercise's id, in its box or in its row of a table."""
    box = rf"\*\*`{re.escape(exercise)}`\*\* \((\d+) minutes\)"
    row = rf"\| `{re.escape(exercise)}` \|[^\n]*?\| (\d+) minutes \|"
    return [int(number) for number in re.findall(box, prose) + re.findall(row, prose)]


@pytest.mark.parametrize("name", NAMES)
def test_minutes_are_those_of_the_judge(name: str) -> None:
    chapter = Chapter(name)
    exercises = exercises_of(name)
    assert exercises
    for exercise in exercises:
        assert announced(chapter.prose, exercise.id) == [exercise.minutes], exercise.id
    intro = INTRO.search(chapter.prose)
    assert intro, "the intro says how long the chapter takes"
    total, reading, working = (int(number) for number in intro.groups()[:3])
    assert working == sum(exercise.minutes for exercise in exercises)
    assert total == reading + working
    assert intro.group(4) == WORDS[len(exercises)]


def test_every_exercise_is_announced_in_one_notebook() -> None:
    chapters = {int(name[:2]) for name in NAMES}
    told = [e.id for name in NAMES for e in exercises_of(name)]
    topics = {TOPICS[name] for name in TOPICS if name in NAMES}
    left = {topic for name, topic in TOPICS.items() if name not in NAMES} - topics
    expected = [e.id for e in EXERCISES if e.chapter in chapters and e.topic not in left]
    assert sorted(told) == sorted(expected)


def test_the_readme_announces_the_same_minutes() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (\d\db?) .*\| (\d+) \|$", readme, re.MULTILINE))
    for name in NAMES:
        intro = INTRO.search(Chapter(name).prose)
        assert intro
        assert rows.get(name.partition("_")[0]) == intro.group(1), name
    hours = HOURS[round(sum(map(int, rows.values())) / 60)]
    assert f"chapters take about {hours} hours" in " ".join(readme.split())
