"""Texts that are stored twice, and texts that look alike and mean something else."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.hygiene.child import Remote
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.systems import NO_PROMISE, embedder
from bench.peers import ROOT
from memory_mesh import MemoryMesh

NAME = "duplicates"
_KEPT = "texts that were stored again and are there twice"
_MERGED = "texts with another meaning that were merged"
_PAIRS = ROOT / "tests" / "data" / "near_duplicates.txt"
_NAMES = ("Ana", "Bruno", "Chiara", "David", "Elif", "Farid", "Greta", "Hugo")
_CITIES = ("Lisbon", "Porto", "Rome", "Oslo", "Vienna", "Riga", "Prague", "Tunis")
_MONTHS = ("January", "March", "May", "July", "September", "November")


def check(run: Run) -> Iterator[Row]:
    for name in run.systems:
        yield kept_twice(run, name)
    if OURS in run.systems:
        for way in WAYS:
            yield merged(run, way)


def kept_twice(run: Run, name: str) -> Row:
    """Store each text twice under two keys, and count those that are there twice."""
    tally = Tally(
        NAME,
        _KEPT,
        name,
        note=NO_PROMISE.get((name, NAME), "equal texts of one scope are counted as observed again"),
    )
    texts = [one for one, _ in generated()][: run.count(200, 10)]
    with folder() as place, Remote(name, place) as system:
        for turn in range(2):
            for at, text in enumerate(texts):
                system.add(f"key{at} of turn {turn}", text)
        stored = system.texts()
    for text in texts:
        tally.trial(good=stored.count(text) <= 1, example=text)
        tally.expect(stored.count(text) >= 1)
    return tally.row()


def merged(run: Run, way: str) -> Row:
    """Store pairs that differ in a number, a negation, a name or a date, each in its own store
    of two texts."""
    tally = Tally(NAME, _MERGED, note=f"{way}; addresses as pseudonyms")
    pairs = [*distinct(), *generated()]
    pairs = pairs[:: len(pairs) // 20] if run.quick else pairs
    model = embedder("local" if not run.quick else "hash")
    # With masks, two addresses become one text: nothing that tells them apart may be stored
    # (docs/redaction.md).
    mesh = MemoryMesh("memory://", embedder=model, redaction="pseudonym")
    for at, (one, other) in enumerate(pairs):
        own = mesh.scoped(agent_id=f"agent{at}", user_id=f"user{at}")
        WAYS[way](own, one, other)
        tally.trial(good=len(own.get_all()) == 2, example=f"{one} | {other}")
    for at, (one, other) in enumerate(same(run)):
        own = mesh.scoped(agent_id="ann", user_id=f"same{at}")
        WAYS[way](own, one, other)
        tally.expect(len(own.get_all()) == 1)
    mesh.close()
    return tally.row()


def _added(mesh: MemoryMesh, *texts: str) -> None:
    for text in texts:
        mesh.add(text)


def _by_graph(mesh: MemoryMesh, *texts: str) -> None:
    for text in texts:
        mesh.graph.store("agent", text)


def _consolidated(mesh: MemoryMesh, *texts: str) -> None:
    _added(mesh, *texts)
    mesh.graph.consolidate()


WAYS: dict[str, Callable[..., None]] = {"add": _added, "consolidate": _consolidated}


def distinct(path: Path = _PAIRS) -> list[tuple[str, str]]:
    """Read the pairs with another meaning that the tests collect."""
    return _pairs(path, "distinct")


def same(run: Run) -> list[tuple[str, str]]:
    """Return pairs that every way must merge: equal texts."""
    return [(one, one) for one, _ in generated()[: run.count(20, 5)]]


def generated() -> list[tuple[str, str]]:
    """Return pairs in which one thing was changed: a number, a negation, a name, a date, a
    place."""
    pairs: list[tuple[str, str]] = []
    for at, name in enumerate(_NAMES):
        other, city, month = _NAMES[at - 1], _CITIES[at], _MONTHS[at % len(_MONTHS)]
        for n in range(1, 14):
            pairs += [
                (
                    f"{name} pays {n * 37} euros for room {n}.",
                    f"{name} pays {n * 37 + 1} euros for room {n}.",
                ),
                (
                    f"{name} signed contract {n} in {city}.",
                    f"{name} never signed contract {n} in {city}.",
                ),
                (
                    f"{name} leads project {n} from {city}.",
                    f"{other} leads project {n} from {city}.",
                ),
                (
                    f"{name} travels on {n} {month} 2026.",
                    f"{name} travels on {n + 14} {month} 2026.",
                ),
                (
                    f"Parcel {n} for {name} is in {city}.",
                    f"Parcel {n} for {name} is in {_CITIES[at - 1]}.",
                ),
            ]
    return pairs


def _pairs(path: Path, kind: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    heading = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if match := re.fullmatch(r"\[(.+)\]", line):
            heading = match[1]
        elif " | " in line and not line.startswith("#") and heading.startswith(kind):
            one, other = line.split(" | ")
            found.append((one, other))
    return found
