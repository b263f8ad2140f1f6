"""The worlds of the corpus: files of memories and questions, and their authors. A world that
breaks the format is refused."""

import json
import re
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.quality.sets import Question, Said, Space
from memory_mesh.core.model import parse_time

FOLDER = Path(__file__).parent
KINDS = (
    "direct", "identifier", "paraphrase", "inference", "changed_explicit", "changed_implicit",
    "both_true", "list", "date", "negative",
)  # fmt: skip
CHANGED = ("changed_explicit", "changed_implicit")
SPLITS = ("train", "choose", "test")
_SUMMED = ("worlds", "asked", "equal", "mended", "dropped")
_SEVERAL = ("both_true", "list")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_FIELDS = {
    "memories": ("id", "at", "session", "role", "text"),
    "questions": ("q", "at", "kind", "gold", "stale"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class World(Space):
    """The memories and questions of one world. A chat has messages of sessions, other worlds
    have notes. Worlds of several languages that are put together have none."""

    about: str
    author: str
    area: str
    language: str
    is_chat: bool


class WorldError(ValueError):
    """A file of a world breaks the format."""


def authors(folder: Path = FOLDER) -> dict[str, dict[str, Any]]:
    """Return the authors by name, each with the split of their worlds and the brief they were
    given."""
    return tomllib.loads((folder / "authors.toml").read_text(encoding="utf-8"))


def agreement(folder: Path = FOLDER) -> dict[str, dict[str, int]]:
    """Return by split how many questions a second author was asked, and to how many the answer was
    the same ids.

    Authors whose worlds had no second author are left out.
    """
    sums: dict[str, Counter[str]] = {split: Counter() for split in SPLITS}
    for author in authors(folder).values():
        if "equal" in author:
            sums[author["split"]].update({"authors": 1, **{name: author[name] for name in _SUMMED}})
    return {split: dict(sum_) for split, sum_ in sums.items() if sum_}


def read_worlds(splits: Sequence[str] = SPLITS, folder: Path = FOLDER) -> list[World]:
    """Return the worlds of the authors of some splits, in the order of their names."""
    split_of = {name: author["split"] for name, author in authors(folder).items()}
    worlds = [read_world(path) for path in sorted((folder / "worlds").glob("*.json"))]
    if unknown := [
        f"{world.name} of {world.author}" for world in worlds if world.author not in split_of
    ]:
        raise WorldError(f"authors.toml does not name the authors of {', '.join(unknown)}")
    return [world for world in worlds if split_of[world.author] in splits]


def read_world(path: Path) -> World:
    """Read one file."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text)
    except ValueError as error:
        raise WorldError(f"{path.name}: not JSON: {error}") from None
    for line, fault in _faults(data, text):
        raise WorldError(f"{path.name}:{line}: {fault}")
    return World(
        name=path.stem, about=data["world"], author=data["author"], area=data["area"],
        language=data["lang"], is_chat=data["chat"],
        memories=[_said(row, is_chat=data["chat"]) for row in data["memories"]],
        questions=[_question(row) for row in data["questions"]],
    )  # fmt: skip


def together(worlds: Sequence[World], name: str) -> World:
    """Return one world with the memories and questions of several, their ids kept apart."""

    def of(world: World, id_: str) -> str:
        return f"{world.name}/{id_}"

    memories = [
        replace(said, id=of(world, said.id), session=said.session and of(world, said.session))
        for world in worlds
        for said in world.memories
    ]
    questions = [
        replace(
            each,
            gold=frozenset(of(world, one) for one in each.gold),
            stale=frozenset(of(world, one) for one in each.stale),
        )
        for world in worlds
        for each in world.questions
    ]
    return replace(
        worlds[0],
        name=name,
        language=worlds[0].language if len({world.language for world in worlds}) == 1 else "",
        memories=sorted(memories, key=lambda said: said.at),
        questions=questions,
    )


def _said(row: Mapping[str, str], *, is_chat: bool) -> Said:
    """Return a memory. A note has neither session nor speaker."""
    session, speaker = (row["session"], row["role"]) if is_chat else (None, None)
    return Said(
        id=row["id"],
        text=row["text"],
        at=parse_time(row["at"], "at"),
        session=session,
        speaker=speaker,
    )


def _question(row: Mapping[str, Any]) -> Question:
    gold, stale = frozenset(row["gold"]), frozenset(row["stale"])
    return Question(
        text=row["q"], gold=gold, stale=stale, kind=row["kind"], at=parse_time(row["at"], "at")
    )


def _faults(data: Any, text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the description of what is wrong in a file."""
    kinds = {
        "world": str,
        "author": str,
        "area": str,
        "lang": str,
        "chat": bool,
        "memories": list,
        "questions": list,
    }
    for name, kind in kinds.items():
        if not isinstance(data, dict) or not isinstance(data.get(name), kind):
            yield 1, f"`{name}` must be there, as {kind.__name__}"
            return
    for part, fields in _FIELDS.items():
        for row in data[part]:
            if not isinstance(row, dict) or sorted(row) != sorted(fields):
                yield (
                    _line(text, row),
                    f"each of the {part} has exactly the fields {', '.join(fields)}",
                )
                return
            lists = [
                name
                for name in fields
                if not isinstance(row[name], list if name in ("gold", "stale") else str)
            ]
            if lists or not _TIME.fullmatch(row["at"]):
                yield (
                    _line(text, row),
                    (
                        f"{', '.join(lists) or 'at'} is of another type; a time is "
                        "2026-03-03T18:20:00Z"
                    ),
                )
                return
    ids = Counter(row["id"] for row in data["memories"])
    for row in data["memories"]:
        if ids[row["id"]] > 1 or not row["text"].strip():
            yield (
                _line(text, row["text"]),
                f"the memory {row['id']} needs an id of its own and a text",
            )
    times = {row["id"]: row["at"] for row in data["memories"]}
    for row in data["questions"]:
        yield from ((_line(text, row["q"]), fault) for fault in _faults_of_question(row, times))


def _faults_of_question(row: Mapping[str, Any], times: Mapping[str, str]) -> Iterator[str]:
    gold, stale, kind = row["gold"], row["stale"], row["kind"]
    if kind not in KINDS:
        yield f"the kind {kind!r} is none of {', '.join(KINDS)}"
    if unknown := [id_ for id_ in [*gold, *stale] if id_ not in times]:
        yield f"there is no memory {', '.join(unknown)}"
    elif any(times[id_] > row["at"] for id_ in [*gold, *stale]):
        yield "it is asked before its memories were written"
    if (kind == "negative") != (not gold):
        yield "only a negative question has no gold"
    if kind in CHANGED and not stale:
        yield "a changed question names the outdated memories in `stale`"
    if kind in _SEVERAL and len(gold) < 2:
        yield f"a question of the kind {kind} has two gold memories or more"
    if {*gold} & {*stale}:
        yield "a memory cannot be gold and stale"


def _line(text: str, value: object) -> int:
    """Return the line on which a value stands. The files have one memory or question a line."""
    start = json.dumps(value, ensure_ascii=False)
    return text[: max(0, text.find(start))].count("\n") + 1
