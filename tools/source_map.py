"""Proves assets/source_map.toml against the sources of the engines that it names.

    python tools/source_map.py --check                          fetches the two wheels, once
    python tools/source_map.py --check --offline                what is cached; the rest is skipped
    python tools/source_map.py --check --vllm DIR --sglang DIR  folders that hold the packages
    python tools/source_map.py --check --against vllm==0.34.0   what moved in another version
    python tools/source_map.py --list scheduler                 a topic, with files and lines

Exit code 0: all is as the map says. 1: something is not. 2: wrong usage. 4: nothing is wrong, but
an engine was skipped. Only names, calls and parameters are read; no line of the engines is run.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT)]

from source_map_code import Sources  # noqa: E402
from source_map_rules import line_of, moved, own_sources, problems  # noqa: E402
from source_map_wheels import NotFetched, fetch  # noqa: E402

from mini_engine.show.source_map import ENGINES, SourceMap, load_source_map  # noqa: E402

OTHERS = ("vllm", "sglang")


def main() -> int:
    """Do what the command line says; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="prove the map")
    parser.add_argument("--against", metavar="ENGINE==VERSION", help="report what moved there")
    parser.add_argument("--list", metavar="TOPIC", help="a topic's rows, with files and lines")
    parser.add_argument("--offline", action="store_true", help="fetch nothing")
    for engine in OTHERS:
        help_text = f"a folder that holds the folder {engine}"
        parser.add_argument(f"--{engine}", type=Path, metavar="DIR", help=help_text)
    chosen = parser.parse_args()
    if not (chosen.check or chosen.against or chosen.list):
        parser.error("say --check, --against or --list")
    folders = {engine: getattr(chosen, engine) for engine in OTHERS}
    for engine, folder in folders.items():
        if folder is not None and not (folder / engine).is_dir():
            parser.error(f"--{engine}: there is no folder {engine} in {folder}")
    found = load_source_map()
    sources, skipped = gather(found, folders, offline=chosen.offline)
    for line in skipped:
        print(f"SKIPPED {line}")
    if chosen.list:
        return list_topic(found, chosen.list, sources)
    if chosen.against:
        engine, _, version = chosen.against.partition("==")
        if engine not in OTHERS or not version:
            parser.error(f"--against takes vllm==VERSION or sglang==VERSION, not {chosen.against}")
        return report_moved(found, engine, version, sources, offline=chosen.offline)
    return report(found, sources, skipped)


def gather(
    found: SourceMap, folders: dict[str, Path | None], *, offline: bool
) -> tuple[dict[str, Sources], list[str]]:
    """The sources that can be looked at, this project's always, and why the others can't."""
    sources, skipped = {"mini_engine": own_sources()}, []
    for engine, folder in folders.items():
        version = found.versions[engine]
        try:
            sources[engine] = Sources(folder or fetch(engine, version, offline=offline))
        except NotFetched as error:
            skipped.append(f"{ENGINES[engine]} {version}: {error}")
    return sources, skipped


def report(found: SourceMap, sources: dict[str, Sources], skipped: list[str]) -> int:
    """Print what is wrong and what was looked at; returns the exit code."""
    wrong = problems(found, sources)
    for line in wrong:
        print(f"WRONG {line}")
    for engine in sources:
        names = sum(reference.engine == engine for reference in found.references)
        calls = sum(call.caller.engine == engine for call in found.calls)
        quotes = sum(quote.of.engine == engine for quote in found.signatures)
        version = found.versions.get(engine, "as it is here")
        print(f"{engine} {version}: {names} names, {calls} calls, {quotes} signatures")
    print(f"{len(wrong)} wrong" if wrong else "all of these are as the map says")
    return 1 if wrong else 4 if skipped else 0


def report_moved(
    found: SourceMap, engine: str, version: str, sources: dict[str, Sources], *, offline: bool
) -> int:
    """Print what another version does otherwise; returns 1 if anything moved."""
    try:
        other = Sources(fetch(engine, version, offline=offline))
    except NotFetched as error:
        print(f"SKIPPED {ENGINES[engine]} {version}: {error}")
        return 4
    if engine not in sources:
        return 4
    changes = moved(found, engine, sources[engine], other)
    for line in changes:
        print(f"MOVED {line}")
    print(f"{engine} {found.versions[engine]} to {version}: {len(changes)} changes")
    return 1 if changes else 0


def list_topic(found: SourceMap, topic: str, sources: dict[str, Sources]) -> int:
    """Print a topic's rows; a reference is FILE:LINE SYMBOL where its source is at hand."""
    places = [place for place in found.places if place.topic == topic]
    if not places:
        print(f"no topic {topic}; there are {', '.join({p.topic: 0 for p in found.places})}")
        return 2
    for place in places:
        print(f"\n{place.title}: {place.differs}")
        for reference in place.references:
            there = sources.get(reference.engine)
            line = f":{line_of(reference, there)}" if there else ""
            print(f"  {reference.file}{line} {reference.symbol}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
