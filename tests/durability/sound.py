"""Invariants of every store at every moment: no write is there by half. SQLite is read by plain
SQL."""

import json
import sqlite3
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.model import ANYTHING, Kind, Row
from memory_mesh.core.search.lexical import tokens
from memory_mesh.stores.base import Moves
from memory_mesh.stores.json import JsonStore, State
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.lance.view import View

from .children import url

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Contents:
    """All rows of a store at one moment."""

    memories: Rows
    records: Rows
    blocks: Rows
    partitions: Rows
    moves: Rows


def assert_sound(file: Path) -> None:
    """Every row has what belongs to it, and every chain of every agent verifies."""
    if file.suffix == ".db":
        with closing(sqlite3.connect(f"{file.as_uri()}?mode=ro", uri=True)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    else:
        kind = JsonStore if file.suffix == ".json" else LanceStore
        with closing(kind(file, read_only=True)) as store:
            assert store.damage() == []
    assert list(faults(contents_of(file))) == []
    with MemoryMesh(store=url(file), agent_id="auditor") as mesh:
        assert [verdict for verdict in mesh.verify() if not isinstance(verdict, Sound)] == []


def contents_of(file: Path) -> Contents:
    """What a store contains, as one moment shows it."""
    if file.suffix == ".db":
        with closing(sqlite3.connect(file)) as connection:
            return contents_in(connection)
    if file.suffix == ".json":
        with closing(JsonStore(file, read_only=True)) as folder:
            return folder._reading(_contents_of_state)
    with closing(LanceStore(file, read_only=True)) as store:
        return store._reading(_contents_of_view)


def contents_in(connection: sqlite3.Connection) -> Contents:
    queries = (
        "memories WHERE id IS NOT NULL",
        "records",
        "yamo_blocks",
        "partitions",
        "moves ORDER BY version",
    )
    connection.isolation_level = None
    connection.execute("BEGIN")
    found = Contents(*(_rows(connection, f"SELECT * FROM {query}") for query in queries))
    connection.execute("COMMIT")
    return found


def _contents_of_view(view: View) -> Contents:
    flushed = view._read_moves()
    moves = {name: [*flushed.get(name, []), *view.moves.get(name, [])] for name in view.partitions}
    return _contents(
        {kind: view.find(kind, ANYTHING, limit=None, after=None) for kind in Kind},
        view.partitions,
        moves,
    )


def _contents_of_state(state: State) -> Contents:
    partitions = {
        name: (moves[-1].version, moves[-1].nonce) for name, moves in state.moves.items() if moves
    }
    return _contents({kind: state.rows_of(kind) for kind in Kind}, partitions, state.moves)


def _contents(
    found: Mapping[Kind, Sequence[Row]],
    versions: Mapping[str, tuple[int, str]],
    moved: Mapping[str, Sequence[Moves]],
) -> Contents:
    rows = {kind: [_flat(row) for row in some] for kind, some in found.items()}
    others = [row for kind in Kind if kind not in (Kind.MEMORY, Kind.BLOCK) for row in rows[kind]]
    names = ("partition", "version", "nonce")
    partitions = [dict(zip(names, (name, *state), strict=True)) for name, state in versions.items()]
    moves: Rows = []
    for name in versions:
        for move in moved[name]:
            first = move.version - len(move.keys) + 1
            moves += [
                {
                    "partition": name,
                    "version": at,
                    "nonce": move.nonce,
                    "kind": key.kind,
                    "id": key.id,
                }
                for at, key in enumerate(move.keys, first)
            ]
    return Contents(rows[Kind.MEMORY], others, rows[Kind.BLOCK], partitions, moves)


def _flat(row: Row) -> dict[str, Any]:
    """A row as the tables of SQLite have it."""
    known = {
        name: row.value(name)
        for name in ("kind", "id", "partition", "revision", "number", "ref", "yamo_text")
    }
    return (
        known
        | {"timestamp": row.created_at}
        | dict(row.fields)
        | {"keywords": json.dumps(row.keywords), "extra": json.dumps(dict(row.fields))}
    )


def faults(found: Contents) -> Iterator[str]:
    """What is there by half."""
    yield from derived_faults(found)
    yield from _histories(found.memories, found.records, found.blocks)
    yield from _heads(found.records, found.blocks)
    yield from _receipts(found.memories, found.records)


def derived_faults(found: Contents) -> Iterator[str]:
    """Where keywords, versions and the log of moves disagree with the memories."""
    memories, partitions = found.memories, {row["partition"]: row for row in found.partitions}
    moves: dict[str, Rows] = {name: [] for name in partitions}
    for move in found.moves:
        moves[move["partition"]].append(move)
    yield from (
        f"{row['id']}: its keywords are not its own"
        for row in memories
        if json.loads(row["keywords"]) != tokens(row["content"])
    )
    for name, count in Counter(row["partition"] for row in memories).items():
        if name not in partitions or partitions[name]["version"] < count:
            yield f"{name}: {count} memories, {partitions.get(name)}"
    yield from (
        fault
        for name, log in moves.items()
        if log
        for fault in _log_faults(partitions[name], log, memories)
    )


def _rows(connection: sqlite3.Connection, query: str) -> Rows:
    found = connection.execute(query)
    names = [column[0] for column in found.description]
    return [dict(zip(names, row, strict=True)) for row in found]


def _log_faults(partition: dict[str, Any], log: Rows, memories: Rows) -> Iterator[str]:
    """A log leads without a gap to where its partition is; a whole one names every memory."""
    name, versions = partition["partition"], [move["version"] for move in log]
    if (
        versions != list(range(versions[0], partition["version"] + 1))
        or log[-1]["nonce"] != partition["nonce"]
    ):
        yield f"{name}: moves {versions} lead not to {partition}"
    stored = {row["id"] for row in memories if row["partition"] == name}
    if versions[0] == 1 and not stored <= {move["id"] for move in log}:
        yield f"{name}: moves of {stored} are missing"


def _histories(memories: Rows, records: Rows, blocks: Rows) -> Iterator[str]:
    """Each revision has its line of history and its block; what is gone has neither."""
    changes = Counter((row["ref"], row["number"]) for row in records if row["kind"] == "change")
    wanted = Counter(
        (row["id"], number) for row in memories for number in range(2, row["revision"] + 1)
    )
    if changes != wanted:
        yield f"history {changes - wanted} too much, {wanted - changes} missing"
    known = {row["id"]: row["revision"] for row in memories}
    # Those of searches tell of no memory.
    telling = [row for row in blocks if row["ref"] and row["yamo_text"] != "erased"]
    reported = Counter(row["ref"] for row in telling if "\n  action;erase;" not in row["yamo_text"])
    if reported != Counter(known):
        yield f"blocks {reported - Counter(known)} too much, {Counter(known) - reported} missing"


def _heads(records: Rows, blocks: Rows) -> Iterator[str]:
    heads = {row["id"]: row["number"] for row in records if row["kind"] == "head"}
    chains: dict[str, list[int]] = {}
    for block in blocks:
        chains.setdefault(block["chain"], []).append(block["number"])
    for chain, numbers in chains.items():
        if sorted(numbers) != list(range(1, heads.get(chain, 0) + 1)):
            yield f"{chain}: its head is {heads.get(chain)}, its blocks are {sorted(numbers)}"
    yield from (f"{chain}: a head without blocks" for chain in heads.keys() - chains.keys())


def _receipts(memories: Rows, records: Rows) -> Iterator[str]:
    known = {row["id"] for row in memories}
    for row in records:
        asked = row["kind"] == "receipt" and json.loads(row["extra"] or "{}").get("request")
        if asked and row["ref"] not in known:
            yield f"{row['id']} stands for a memory that is not there"
