"""Rows that another program changes, deletes or reorders: `verify` must report it."""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from bench.hygiene.places import FILES
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from memory_mesh import MemoryMesh, Sound, StoreCorrupt

NAME = "tampering"
_WHAT = "edits that `verify` did not report"
_MEMORIES = 12
_TEXTS = ("one", "two", "three", *(f"text {n}" for n in range(3, _MEMORIES)))
_HASHED = (
    "yamo_text",
    "block_hash",
    "prev_hash",
    "seal",
    "content_hash",
    "chain",
    "agent_id",
    "operation_type",
)
_FREE = 1000  # a number that no block has


@dataclass(frozen=True, slots=True)
class Edit:
    """A change of the rows of a table in which a column has a value. Without a new value the
    rows are deleted."""

    table: str
    where: tuple[str, str | int]
    column: str = ""
    new: str | int | float = ""
    appends: bool = False  # the new value is added to the end of the old one


_SAME = Edit("memories", ("content", "one"), "content", "", appends=True)  # writes a row as it is


def check(run: Run) -> Iterator[Row]:
    """Make each edit in a copy of one store. The controls: the copy verifies without it, and the
    edit found its row."""
    if OURS not in run.systems:
        return
    for kind in FILES if not run.quick else ["sqlite"]:
        tally = Tally(NAME, _WHAT, note=f"{kind}: values changed, rows deleted or exchanged")
        with folder() as place:
            store = place / FILES[kind]
            with MemoryMesh(f"{kind}:///{store}", agent_id="ann", embedder="none") as mesh:
                mesh.add_many([(text, None) for text in _TEXTS])
                mesh.compact()  # a folder has the rows in its journal before
            with copied(store) as copy:
                tally.expect(EDITORS[kind](copy, _SAME))
                tally.expect(is_verified(f"{kind}:///{copy}"))
            every = [*programs(kind)]
            for name, change in every[:: len(every) // 10] if run.quick else every:
                with copied(store) as copy:
                    tally.expect(change(copy))
                    tally.trial(good=not is_verified(f"{kind}:///{copy}"), example=name)
        yield tally.row()


@contextmanager
def copied(store: Path) -> Iterator[Path]:
    """Yield a copy of a store, which is removed afterwards."""
    with folder() as place:
        copy = place / store.name
        shutil.copytree(store, copy) if store.is_dir() else shutil.copyfile(store, copy)
        yield copy


def programs(kind: str) -> Iterator[tuple[str, Callable[[Path], bool]]]:
    """Yield what other programs do to a store: a name, and a function that returns whether it
    found the rows."""
    for edit in edits():
        yield str(edit), partial(_all_of, EDITORS[kind], edit)
    if kind == "sqlite":
        yield from ((statement, partial(_executed, statement)) for statement in sql_edits())


def _all_of(editor: "Editor", edit: tuple[Edit, ...], store: Path) -> bool:
    counts = [editor(store, part) for part in edit]
    return all(counts)


def edits() -> Iterator[tuple[Edit, ...]]:
    """Yield for each block and memory changes of its columns, a deletion and an exchange."""
    for number in range(1, _MEMORIES + 1):
        block, other = ("number", number), number % _MEMORIES + 1
        yield (Edit("blocks", block),)
        yield from ((Edit("blocks", block, column, "x", appends=True),) for column in _HASHED)
        yield tuple(
            Edit("blocks", ("number", old), "number", new)
            for old, new in ((number, _FREE), (other, number), (_FREE, other))
        )
    for at, text in enumerate(_TEXTS):
        memory = ("content", text)
        yield (Edit("memories", memory),)
        yield (Edit("memories", memory, "content", ".", appends=True),)
        for column, value in (
            ("status", "archived"),
            ("trust", 1.0),
            ("importance", 1.0),
            ("agent_id", "bob"),
        ):
            yield (Edit("memories", memory, column, value),)
        swap = ((text, "aside"), (_TEXTS[at - 1], text), ("aside", _TEXTS[at - 1]))
        yield tuple(Edit("memories", ("content", old), "content", new) for old, new in swap)


def sql_edits() -> Iterator[str]:
    """Yield the edits that the tests make in SQL, of further columns and of values of other
    types."""
    known = tests("durability.test_tampering")
    # Their store has three blocks. In this one, a number moved by 7 is that of another block, which
    # SQLite refuses.
    yield from (edit.replace("number + 7", "number + 700") for edit in known.EDITS.values())
    yield from known.ODD.values()


# --- other programs, one for each kind of store; each returns how many rows it changed ---


def _executed(statement: str, file: Path) -> bool:
    with tests("durability.test_tampering").editing(file) as connection:
        return bool(connection.execute(statement).rowcount)


def _in_sqlite(file: Path, edit: Edit) -> int:
    with tests("durability.test_tampering").editing(file) as connection:
        table = {"memories": "memories", "blocks": "yamo_blocks"}[edit.table]
        value = f"coalesce({edit.column}, '') || ?" if edit.appends else "?"
        change = (
            f"UPDATE {table} SET {edit.column} = {value}" if edit.column else f"DELETE FROM {table}"  # noqa: S608
        )
        given = (edit.new, edit.where[1]) if edit.column else (edit.where[1],)
        return int(connection.execute(f"{change} WHERE {edit.where[0]} = ?", given).rowcount)


def _in_json(root: Path, edit: Edit) -> int:
    file = root / {"memories": "memories.json", "blocks": "audit.json"}[edit.table]
    rows: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    name, wanted = edit.where
    found = [row for row in rows if row.get(name) == wanted and row["kind"] != "head"]
    for row in found:
        if edit.column:
            row[edit.column] = f"{row.get(edit.column, '')}{edit.new}" if edit.appends else edit.new
        else:
            rows.remove(row)
    file.write_text(json.dumps(rows), encoding="utf-8")
    return len(found)


def _in_lancedb(root: Path, edit: Edit) -> int:
    from lance import dataset

    table = dataset(
        str(root / {"memories": "memory_entries.lance", "blocks": "yamo_blocks.lance"}[edit.table])
    )
    where = f"{edit.where[0]} = {_literal(edit.where[1])}"
    count = int(table.count_rows(where))
    if edit.column:
        value = (
            f"concat(coalesce({edit.column}, ''), {_literal(edit.new)})"
            if edit.appends
            else _literal(edit.new)
        )
        table.update({edit.column: value}, where)
    else:
        table.delete(where)
    return count


def _literal(value: str | int | float) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


Editor = Callable[[Path, Edit], int]
EDITORS: Mapping[str, Editor] = {"sqlite": _in_sqlite, "json": _in_json, "lancedb": _in_lancedb}


def is_verified(url: str) -> bool:
    """Return whether verification finds nothing wrong."""
    try:
        with MemoryMesh(url, agent_id="ann", embedder="none") as mesh:
            verdicts = mesh.verify()
    except StoreCorrupt:
        return False
    return bool(verdicts) and all(isinstance(verdict, Sound) for verdict in verdicts)
