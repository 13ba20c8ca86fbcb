"""Owns the proof of the source map: right, complete, and its checker catches a wrong one."""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import source_map_wheels
from source_map_code import Sources
from source_map_rules import moved, own_sources, problems

from mini_engine import show
from mini_engine.parts import EngineParts
from mini_engine.show.journey import STOPS
from mini_engine.show.source_map import (
    Call,
    Place,
    Reference,
    Signature,
    SourceMap,
    load_source_map,
    parse_reference,
)

ROOT = Path(__file__).resolve().parents[2]
MAP = load_source_map()
OTHERS = ("vllm", "sglang")
# In the chapters' sections on vLLM and SGLang: local variables, values of options, other libraries.
NO_SYMBOLS = {"token_budget", "sha256", "request.block_hashes", "attend", "DecodeStream"}
NO_SYMBOLS |= {"full", "breakable", "disabled"}


def test_what_the_map_says_of_this_project_is_true() -> None:
    assert problems(MAP, {"mini_engine": own_sources()}) == []


@pytest.mark.parametrize("engine", OTHERS)
def test_what_the_map_says_of_the_other_engines_is_true(engine: str) -> None:
    folder = source_map_wheels.source_folder(engine, MAP.versions[engine])
    if not folder.is_dir():
        pytest.skip(f"no {folder}; `python tools/source_map.py --check` fetches it")
    assert problems(MAP, {engine: Sources(folder)}) == []


def test_every_stop_and_every_part_has_its_place() -> None:
    assert [place.stop for place in MAP.places if place.stop] == [stop.title for stop in STOPS]
    slots = {field.name for field in dataclasses.fields(EngineParts)}
    assert {place.part for place in MAP.places if place.part} == slots
    for place in MAP.places:
        assert place.vllm, place.id
        assert place.sglang, place.id
        assert place.mini_engine, place.id
        assert place.differs.endswith("."), place.id


def test_the_journey_and_the_map_name_the_same_code_of_ours() -> None:
    for stop in STOPS:
        if ":" in stop.ours:
            assert MAP.place(stop.title).mini_engine[0] == parse_reference(
                f"mini_engine/{stop.ours}"
            )


def texts() -> Iterator[tuple[str, str]]:
    """Every text of chapters and package, with its file's name."""
    for path in sorted((ROOT / "chapters").glob("*.ipynb")):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            yield path.name, "".join(cell["source"])
    for path in sorted((ROOT / "mini_engine").rglob("*.py")):
        yield path.name, path.read_text(encoding="utf-8")


def test_every_path_of_theirs_that_is_mentioned_is_in_the_map() -> None:
    mapped = {reference.file for reference in MAP.references}
    found = [
        (where, path)
        for where, text in texts()
        for path in re.findall(r"`((?:vllm|sglang)/[\w/.]+\.py)`", text)
    ]
    assert len(found) > 30
    assert [(where, path) for where, path in found if path not in mapped] == []


def test_every_name_in_the_chapters_sections_on_them_is_in_the_map() -> None:
    known = {part for reference in MAP.references for part in reference.symbol.split(".")}
    known |= {Path(reference.file).name for reference in MAP.references}
    seen, unknown = 0, []
    for where, text in texts():
        section = re.search(r"## What vLLM and SGLang do\n(.*?)(?=\n## |\Z)", text, re.DOTALL)
        for name in re.findall(r"`([^`]+)`", section[1]) if section else ():
            seen += 1
            name = re.sub(r"\(.*\)$", "", name)  # a call
            plain = not re.search(r"^--|=|/| ", name) and name not in NO_SYMBOLS
            if plain and not set([name] if name.endswith(".py") else name.split(".")) <= known:
                unknown.append((where, name))
    assert seen > 100
    assert unknown == []


@pytest.mark.parametrize("topic", sorted({place.topic for place in MAP.places}))
def test_a_topic_is_drawn_as_a_table_of_three_engines(topic: str) -> None:
    html = show.source_table(topic).html
    for place in MAP.places:
        if place.topic == topic:
            for reference in place.references:
                assert reference.short[0] in html
                assert reference.short[1] in html
    assert "vLLM 0.33.0" in html


def test_an_unknown_topic_is_named_with_those_that_exist() -> None:
    with pytest.raises(ValueError, match="no topic 'schedulers'; it has journey, model"):
        show.source_table("schedulers")


# A small engine, and maps of it that are wrong

CODE = """
class Scheduler:
    limit: int = 3

    def __init__(self, size: int, *rest, loud: bool = False, **more):
        self.size = size

    if True:
        async def step(self, budget=7):
            return self.pool.allocate(budget)
"""


@pytest.fixture
def engine(tmp_path: Path) -> Sources:
    (tmp_path / "vllm" / "core").mkdir(parents=True)
    (tmp_path / "vllm" / "core" / "sched.py").write_text(CODE)
    (tmp_path / "vllm" / "pool.py").write_text("class Pool:\n    def allocate(self, n): ...\n")
    return Sources(tmp_path)


def small_map(*names: str, call: str = "", quote: tuple[str, str] | None = None) -> SourceMap:
    references = tuple(map(parse_reference, names))
    step = Reference("vllm/core/sched.py", "Scheduler.step")
    calls = (Call(step, parse_reference(call)),) if call else ()
    quotes = (Signature(parse_reference(quote[0]), quote[1]),) if quote else ()
    place = Place("id", "topic", "title", "differs.", vllm=references)
    return SourceMap({"vllm": "1"}, (place,), calls, quotes)


SCHED = "vllm/core/sched.py"


@pytest.mark.parametrize("symbol", ["", ":Scheduler", ":Scheduler.limit", ":Scheduler.size"])
def test_files_classes_fields_and_attributes_are_found(engine: Sources, symbol: str) -> None:
    assert problems(small_map(SCHED + symbol), {"vllm": engine}) == []


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        (f"{SCHED}:Scheduler.run", "no such name; now in no file under this name"),
        (f"{SCHED}:Scheduler.step.budget", "no such name"),
        (f"{SCHED}:Pool", "no such name; now in vllm/pool.py:Pool"),
        ("vllm/core/pool.py:Pool.allocate", "no such file; now in vllm/pool.py:Pool.allocate"),
        ("vllm/sched.py", "no such file; now in vllm/core/sched.py"),
    ],
)
def test_what_is_gone_is_reported_with_where_it_is_now(
    engine: Sources, name: str, complaint: str
) -> None:
    (found,) = problems(small_map(name), {"vllm": engine})
    assert found.startswith(f"{name}: {complaint}")


def test_a_call_that_is_not_made_is_reported(engine: Sources) -> None:
    assert problems(small_map(call="vllm/pool.py:Pool.allocate"), {"vllm": engine}) == []
    (found,) = problems(small_map(call=f"{SCHED}:Scheduler"), {"vllm": engine})
    assert found == f"{SCHED}:Scheduler.step does not call Scheduler"


@pytest.mark.parametrize(
    ("symbol", "text", "complaint"),
    [
        ("Scheduler.step", "(self, budget)", ""),
        ("Scheduler.step", "(self, budget=7)", ""),
        ("Scheduler.step", "(self, ...)", ""),
        ("Scheduler.__init__", "(self, size: int, *rest, loud=False, **more)", ""),
        ("Scheduler.step", "(self)", "it has 2 parameters: self, budget"),
        ("Scheduler.step", "(self, budget, more, ...)", "it has 2 parameters"),
        ("Scheduler.step", "(self, budget=8)", "it has 'budget = 7' where 'budget = 8' is quoted"),
        ("Scheduler.step", "(self, limit)", "where 'limit' is quoted"),
        ("Scheduler.__init__", "(self, size: float, ...)", "'size: int' where 'size: float'"),
        ("Scheduler.step", "(self, 3)", "is no list of parameters"),
        ("Scheduler", "(self)", "it is no function"),
    ],
)
def test_signatures_are_compared_as_far_as_they_are_quoted(
    engine: Sources, symbol: str, text: str, complaint: str
) -> None:
    found = problems(small_map(quote=(f"{SCHED}:{symbol}", text)), {"vllm": engine})
    assert [complaint in line for line in found] == ([True] if complaint else [])


def test_another_version_is_reported_by_what_moved(engine: Sources, tmp_path: Path) -> None:
    other = tmp_path / "other" / "vllm"
    (other / "core").mkdir(parents=True)
    (other / "core" / "sched.py").write_text(CODE.replace("budget=7", "tokens=7, fast=True"))
    (other / "kv.py").write_text("class Pool:\n    def allocate(self, n): ...\n")
    found = moved(
        small_map("vllm/pool.py:Pool", f"{SCHED}:Scheduler.step", f"{SCHED}:Scheduler"),
        "vllm",
        engine,
        Sources(other.parent),
    )
    assert found == [
        "vllm/pool.py:Pool: no such file; now in vllm/kv.py:Pool",
        f"{SCHED}:Scheduler.step has other parameters: no longer budget = 7; "
        "new tokens = 7, fast = True",
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('[[place]]\nid = "a"\ntopics = "b"', "has topics; known are id, topic"),
        ('[[place]]\nid = "a"\nvllm = ["sglang/x.py"]', "'a' lists sglang/x.py under vllm"),
        ('[[place]]\nid = "a"\nvllm = ["vllm.x"]', "'vllm.x' is no reference"),
    ],
)
def test_a_map_that_is_written_wrongly_is_refused(
    tmp_path: Path, text: str, complaint: str
) -> None:
    path = tmp_path / "map.toml"
    path.write_text("[versions]\n" + text)
    with pytest.raises(ValueError, match=complaint):
        load_source_map(path)


def make_wheel(folder: Path) -> Path:
    """A wheel of a vLLM 0.0.1 that has a Python file and a compiled one."""
    path, info = folder / "vllm-0.0.1-py3-none-any.whl", "vllm-0.0.1.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("vllm/core.py", "x = 1\n")
        wheel.writestr("vllm/kernel.so", b"\x7fELF")
        wheel.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: vllm\nVersion: 0.0.1\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def test_pip_fetches_a_version_once_and_only_its_python_files_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    wheel = make_wheel(tmp_path)
    folder = source_map_wheels.fetch("vllm", "0.0.1")
    files = sorted(path.name for path in folder.rglob("*") if path.is_file())
    assert files == ["METADATA", "core.py"]
    assert not list(folder.parent.glob("*.partial-*"))
    wheel.unlink()
    assert source_map_wheels.fetch("vllm", "0.0.1", offline=True) == folder
    with pytest.raises(source_map_wheels.NotFetched, match=r"could not download vllm 0\.0\.2"):
        source_map_wheels.fetch("vllm", "0.0.2")


def test_what_could_not_be_looked_at_is_said_and_is_not_green(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINI_ENGINE_CACHE", str(tmp_path))
    command = [sys.executable, "tools/source_map.py", "--check", "--offline"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 4, done.stderr
    assert [line.split(":")[0] for line in done.stdout.splitlines()[:2]] == [
        "SKIPPED vLLM 0.33.0",
        "SKIPPED SGLang 0.5.23",
    ]
    assert "mini_engine as it is here" in done.stdout
