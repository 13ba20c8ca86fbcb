"""Owns the reading of the source map: which code of vLLM and SGLang does what a part here does.

The map is `assets/source_map.toml`, which lies in the repository and not in the installed package.
`tools/source_map.py` proves it against the sources of the versions that it names.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from mini_engine.show.markup import INK, PAPER, Figure, cell, escape, figure, grid, tag

MAP = Path(__file__).parents[2] / "assets" / "source_map.toml"
ENGINES = {"mini_engine": "here", "vllm": "vLLM", "sglang": "SGLang"}
PREFIX = {"mini_engine": "mini_engine/", "vllm": "vllm/", "sglang": "sglang/srt/"}
CODE = f"background:{PAPER};color:{INK}"


@dataclass(frozen=True)
class Reference:
    """A file below the package's parent folder and, if `symbol` isn't empty, a name in it."""

    file: str
    symbol: str = ""

    @property
    def engine(self) -> str:
        """The engine whose code it is: "mini_engine", "vllm" or "sglang"."""
        return self.file.partition("/")[0]

    @property
    def short(self) -> tuple[str, str]:
        """(symbol, file without the folders that all files of the engine share)."""
        return self.symbol, self.file.removeprefix(PREFIX[self.engine])

    def __str__(self) -> str:
        return f"{self.file}:{self.symbol}" if self.symbol else self.file


@dataclass(frozen=True)
class Place:
    """One row: what is done, by which code in each engine, and what differs, in one line.

    `stop` is the title of a stop of the journey, `part` a slot of EngineParts; both may be empty.
    The first reference of each engine is the row's; the others belong to it.
    """

    id: str
    topic: str
    title: str
    differs: str
    mini_engine: tuple[Reference, ...] = ()
    vllm: tuple[Reference, ...] = ()
    sglang: tuple[Reference, ...] = ()
    stop: str = ""
    part: str = ""
    renamed: str = ""

    @property
    def references(self) -> tuple[Reference, ...]:
        """Everything that the row names, of all three engines."""
        return self.mini_engine + self.vllm + self.sglang


@dataclass(frozen=True)
class Call:
    """The body of `caller` calls something by the name of `callee`."""

    caller: Reference
    callee: Reference


@dataclass(frozen=True)
class Signature:
    """The parameters of a function as they are quoted: "(self, request, ...)".

    A trailing "..." leaves the rest out; annotations and defaults count only where they are quoted.
    """

    of: Reference
    text: str


@dataclass(frozen=True)
class SourceMap:
    """The whole map; `versions` are those of the two engines that it was read in."""

    versions: Mapping[str, str]
    places: tuple[Place, ...]
    calls: tuple[Call, ...]
    signatures: tuple[Signature, ...]

    @property
    def references(self) -> list[Reference]:
        """Every reference once, in the order of the file."""
        found = [reference for place in self.places for reference in place.references]
        found += [end for call in self.calls for end in (call.caller, call.callee)]
        return list(dict.fromkeys(found + [quote.of for quote in self.signatures]))

    def place(self, stop: str) -> Place:
        """The row of a stop of the journey. Raises KeyError if there is none."""
        found = {place.stop: place for place in self.places if place.stop}
        return found[stop]


def parse_reference(text: str) -> Reference:
    """Read "vllm/v1/request.py:Request.num_tokens", or a file alone. Raises ValueError."""
    file, _, symbol = text.partition(":")
    if file.partition("/")[0] not in ENGINES or not file.endswith(".py"):
        raise ValueError(
            f"{text!r} is no reference; write FILE or FILE:SYMBOL, the file from "
            f"{', '.join(ENGINES)} down"
        )
    return Reference(file, symbol)


@cache
def load_source_map(path: Path = MAP) -> SourceMap:
    """Read the map. Raises FileNotFoundError outside the repository, ValueError for a bad map."""
    if not path.is_file():
        raise FileNotFoundError(
            f"there is no {path}; the source map is part of the repository only"
        )
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    _only(content, ("versions", "place", "call", "signature"), path.name)
    places = tuple(_place(row) for row in content["place"])
    ids = [place.id for place in places]
    if len(set(ids)) != len(ids):
        raise ValueError(f"{path.name}: an id is there twice among {ids}")
    return SourceMap(
        versions=content["versions"],
        places=places,
        calls=tuple(
            Call(parse_reference(row["from"]), parse_reference(row["to"]))
            for row in content.get("call", ())
        ),
        signatures=tuple(
            Signature(parse_reference(row["of"]), row["text"])
            for row in content.get("signature", ())
        ),
    )


def _place(row: dict[str, Any]) -> Place:
    allowed = ("id", "topic", "title", "differs", "stop", "part", "renamed", *ENGINES)
    _only(row, allowed, f"place {row.get('id')!r}")
    words: dict[str, Any] = {key: value for key, value in row.items() if key not in ENGINES}
    code: dict[str, Any] = {key: tuple(map(parse_reference, row.get(key, ()))) for key in ENGINES}
    for engine, references in code.items():
        strangers = [str(reference) for reference in references if reference.engine != engine]
        if strangers:
            raise ValueError(f"place {row['id']!r} lists {', '.join(strangers)} under {engine}")
    return Place(**words, **code)


def _only(row: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    unknown = sorted(set(row) - set(allowed))
    if unknown:
        raise ValueError(f"{where} has {', '.join(unknown)}; known are {', '.join(allowed)}")


def source_table(topic: str) -> Figure:
    """What a topic's parts are called here, in vLLM and in SGLang, and what differs.

    Raises ValueError for a topic that the map does not have.
    """
    found = load_source_map()
    places = [place for place in found.places if place.topic == topic]
    if not places:
        topics = ", ".join(dict.fromkeys(place.topic for place in found.places))
        raise ValueError(f"the source map has no topic {topic!r}; it has {topics}")
    names = [f"{name} {found.versions.get(key, '')}".strip() for key, name in ENGINES.items()]
    rows = [[cell(escape(h), head="col", fill="#eeeeee") for h in ("what", *names, "differs")]]
    for place in places:
        row = [cell(escape(place.title), head="row")]
        row += [
            cell("<br/>".join(map(reference_cell, references)))
            for references in (place.mini_engine, place.vllm, place.sglang)
        ]
        note = f"{place.differs} Names: {place.renamed}" if place.renamed else place.differs
        rows.append([*row, cell(escape(note))])
    sentence = f"{topic}: {len(places)} things and their names in three engines."
    return figure(tag("div", grid(rows, sentence), style="font-size:12px"), sentence)


def reference_cell(reference: Reference) -> str:
    """A reference as markup: its symbol as code, its file below."""
    symbol, file = reference.short
    if not symbol:
        return tag("code", escape(file), style=CODE)
    return f"{tag('code', escape(symbol), style=CODE)}<br/>{escape(file)}"
