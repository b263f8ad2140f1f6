"""Rows that another program changes, deletes or reorders: `verify` must report it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from memory_mesh import MemoryMesh, Sound, StoreCorrupt

NAME = "tampering"
_MEMORIES = 12
_UPDATE = "UPDATE {table} SET {column} = {value} WHERE {where}"
_DELETE = "DELETE FROM {table} WHERE {where}"


def check(run: Run) -> Iterator[Row]:
    """Make each edit of the tests, and generated ones, in a copy of one store."""
    if OURS not in run.systems:
        return
    tally = Tally(NAME, "edits that `verify` did not report", note="sqlite: values changed, rows deleted, exchanged or added")
    with folder() as place:
        file = place / "memory.db"
        with MemoryMesh(f"sqlite:///{file}", agent_id="ann", embedder="none") as mesh:
            mesh.add_many([(text, None) for text in ("one", "two", "three", *(f"text {n}" for n in range(3, _MEMORIES)))])
        tally.expect(is_verified(file))
        every = [*edits()]
        for edit in every[:: len(every) // 10] if run.quick else every:
            copy = place / "copy.db"
            shutil.copyfile(file, copy)
            with tests("durability.test_tampering").editing(copy) as connection:
                changed = sum(connection.execute(part).rowcount for part in edit.split(" THEN "))
            tally.expect(changed > 0)
            tally.trial(good=not is_verified(copy), example=edit)
            _remove(copy)
    yield tally.row()


def edits() -> Iterator[str]:
    """Yield SQL: the edits of the tests, and for each block and memory a flip, a deletion and an exchange."""
    known = tests("durability.test_tampering")
    # Their store has three blocks. In this one, a number moved by 7 is that of another block, which SQLite refuses.
    yield from (edit.replace("number + 7", "number + 700") for edit in known.EDITS.values())
    yield from known.ODD.values()
    for number in range(1, _MEMORIES + 1):
        yield _DELETE.format(table="yamo_blocks", where=f"number = {number}")
        yield _change("yamo_blocks", "yamo_text", "replace(yamo_text, 'retain', 'recall')", f"number = {number}")
        for column in ("block_hash", "prev_hash", "seal", "content_hash", "chain", "agent_id", "timestamp", "operation_type"):
            yield _change("yamo_blocks", column, f"coalesce({column}, '') || 'x'", f"number = {number}")
        other = number % _MEMORIES + 1
        numbers = ((number, 1000), (other, number), (1000, other))
        yield " THEN ".join(_change("yamo_blocks", "number", str(new), f"number = {old}") for old, new in numbers)
    for text in ("one", "two", "three", *(f"text {n}" for n in range(3, _MEMORIES))):
        yield _change("memories", "content", "content || '.'", f"content = '{text}'")
        yield _DELETE.format(table="memories", where=f"content = '{text}'")
        for column, value in (("status", "'archived'"), ("trust", "1.0"), ("importance", "1.0"), ("agent_id", "'bob'")):
            yield _change("memories", column, value, f"content = '{text}'")


def _change(table: str, column: str, value: str, where: str) -> str:
    return _UPDATE.format(table=table, column=column, value=value, where=where)


def is_verified(file: Path) -> bool:
    """Return whether verification finds nothing wrong."""
    try:
        with MemoryMesh(f"sqlite:///{file}", agent_id="ann", embedder="none") as mesh:
            verdicts = mesh.verify()
    except StoreCorrupt:
        return False
    return bool(verdicts) and all(isinstance(verdict, Sound) for verdict in verdicts)


def _remove(file: Path) -> None:
    for path in file.parent.glob(f"{file.name}*"):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
