"""Values of wrong types in any column of any row, and in the files of a store: every call
answers, or raises a named error."""

import json
import random
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from conftest import IN_CI
from memory_mesh import MemoryMesh, StoreCorrupt, repair_store
from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model import Kind, QueuedEvent, Row
from memory_mesh.stores import open_store
from memory_mesh.stores.json import FILES, line_of, lines
from memory_mesh.stores.lance import journal
from memory_mesh.stores.sqlite.tables import UPGRADE

from .children import url

LESSON = dict.fromkeys(
    ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope"),
    "Measure twice.",
)
CALLS: dict[str, Callable[[MemoryMesh, str], object]] = {
    "get": lambda mesh, id_: mesh.get(id_),
    "get_all": lambda mesh, _: mesh.get_all(limit=100),
    "search": lambda mesh, _: mesh.search("lantern lamp"),
    "precise": lambda mesh, _: mesh.search("lantern oil", mode="precise"),
    "filter": lambda mesh, _: mesh.search("lamp", filter="importance > 0 AND created_at > '2020'"),
    "as_of": lambda mesh, _: mesh.search("lamp", as_of="2030-01-01"),
    "explain": lambda mesh, _: mesh.explain("lamp"),
    "history": lambda mesh, id_: mesh.history(id_),
    "sightings": lambda mesh, id_: mesh.sightings(id_),
    "stats": lambda mesh, _: mesh.stats(),
    "export": lambda mesh, _: [*mesh.export()],
    "verify": lambda mesh, _: mesh.verify(),
    "audit_log": lambda mesh, _: mesh.audit_log(limit=50),
    "audit_heads": lambda mesh, _: mesh.audit_heads(),
    "lessons": lambda mesh, _: [mesh.query_lessons("measure"), mesh.query_lessons("")],
    "skills": lambda mesh, _: [mesh.list_skills(), mesh.search_skills("oil")],
    "graph search": lambda mesh, _: mesh.graph.search("ann", "lamp"),
    "graph context": lambda mesh, _: mesh.graph.context("ann", "lamp"),
    "links": lambda mesh, id_: [
        mesh.graph.links(id_), mesh.graph.traverse(id_), mesh.graph.clusters()
    ],
    "episodes": lambda mesh, _: mesh.graph.episodes("ann"),
    "conflicts": lambda mesh, _: [mesh.graph.conflicts(), mesh.graph.list_quarantined()],
    "explain_memory": lambda mesh, id_: mesh.graph.explain_memory(id_),
    "lane": lambda mesh, _: [mesh.lane.find("lamp"), mesh.lane.session_context()],
    "hooks": lambda mesh, _: [mesh.heartbeat_log(), mesh.hooks_status()],
    "add again": lambda mesh, _: mesh.add("The lantern needs more oil"),
    "add with its key": lambda mesh, _: mesh.add("The lantern needs oil", idempotency_key="k"),
    "update": lambda mesh, id_: [mesh.update(id_, metadata={"x": "y"}), mesh.pin(id_)],
    "claim": lambda mesh, _: mesh.graph.store("ann", "Lamp is green", claim=claim("green")),
    "heartbeat": lambda mesh, _: mesh.heartbeat(),
    "reembed": lambda mesh, _: mesh.reembed(),
    "decay": lambda mesh, _: [mesh.graph.decay(), mesh.graph.consolidate()],
    "erase": lambda mesh, id_: mesh.erase(id_),
}  # fmt: skip
VALUES = (None, "other", -7, 0.5, b"\0\xff", "{}", "[1]", '{"a":1}', "x\0y")
JSON_VALUES = (None, "other", -7, 0.5, [1], {"a": 1}, True, [{"a": 1}], 1e308)


def claim(value: str) -> dict[str, object]:
    return {"subject": "ana", "predicate": "lamp", "value": value}


def opened(file: Path) -> MemoryMesh:
    return MemoryMesh(store=url(file), agent_id="ann", embedder="hash")


def filled(file: Path) -> str:
    """Make a store with rows of every kind, and return the id of a memory."""
    with opened(file) as mesh:
        id_ = mesh.add("The lantern needs oil", {"tags": ["t"]}, idempotency_key="k").id
        mesh.scoped(session_id="s").add("The lantern needs oil")
        mesh.update(id_, content="The lantern needs more oil")
        red = mesh.graph.store("ann", "Lamp of Ana is red", claim=claim("red")).memory.id
        blue = mesh.graph.store("ann", "Lamp of Ana is blue", claim=claim("blue")).memory.id
        mesh.graph.link(red, id_, "related")
        mesh.graph.dispute(blue)
        mesh.distill_lesson({**LESSON, "severity": "low"})
        mesh.ingest_skill("name;lamps;\nintent;Fill the lamps with oil.;")
        mesh.search("lantern oil")
    with closing(open_store(url(file))) as store:
        memory = store.get(Kind.MEMORY, [id_])[id_]
        about = {
            "ref": id_,
            "source": "x",
            "section": ["a"],
            "text_start": 0,
            "text_end": 5,
            "content_hash": "h",
        }
        base = {"partition": memory.partition, "created_at": memory.created_at}
        event = QueuedEvent(
            id="e1",
            created_at=memory.created_at,
            ref=id_,
            hook="h",
            action="store",
            detail={"a": 1},
        )
        store.apply(
            [
                Row(kind=Kind.PASSAGE, id="p1", **base, fields=about, vector=memory.vector),
                event.row(memory.partition),
            ]
        )
        assert all(store.count(kind) for kind in Kind if kind is not Kind.CONFLICT)
    return id_


def unnamed_errors(file: Path, id_: str) -> list[tuple[str, str]]:
    """Make every call, and return those that raise what is no error of ours."""
    found: list[tuple[str, str]] = []

    def attempt(name: str, call: Callable[[], object]) -> None:
        try:
            call()
        except MemoryMeshError:
            pass
        except Exception as error:  # noqa: BLE001  (this is what the test looks for)
            found.append((name, repr(error)))

    mesh = opened(file)
    attempt("open", mesh.__enter__)
    for name, call in CALLS.items():
        attempt(name, lambda call=call: call(mesh, id_))  # type: ignore[misc]
    attempt("close", mesh.close)
    return found


def try_all(
    tmp_path: Path,
    name: str,
    edits: Callable[[Path], list[Any]],
    edit: Callable[[Path, Any], None],
    count: int,
) -> None:
    sound, copy = tmp_path / "sound" / name, tmp_path / "copy" / name
    sound.parent.mkdir()
    id_ = filled(sound)
    assert unnamed_errors_of_copy(sound, copy, id_, lambda _: None) == []
    every = edits(sound)
    assert len(every) > count
    chosen = random.Random(count).sample(every, count)  # noqa: S311
    for one in chosen[: max(8, count // 3)] if IN_CI else chosen:
        assert (
            unnamed_errors_of_copy(sound, copy, id_, lambda file, one=one: edit(file, one)) == []
        ), one  # type: ignore[misc]


def unnamed_errors_of_copy(
    sound: Path, copy: Path, id_: str, edit: Callable[[Path], None]
) -> list[tuple[str, str]]:
    shutil.rmtree(copy.parent, ignore_errors=True)
    shutil.copytree(sound.parent, copy.parent)
    edit(copy)
    return unnamed_errors(copy, id_)


# --- SQLite ---


def test_odd_values_in_a_file_of_sqlite_are_named_errors(tmp_path: Path, deep: bool) -> None:
    try_all(tmp_path, "memory.db", sqlite_edits, edit_sqlite, 150 if deep else 8)


def sqlite_edits(file: Path) -> list[Any]:
    """Every column of every table and kind with every value, and every field in `extra`."""
    with closing(sqlite3.connect(file)) as connection:
        names = [
            name
            for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        ]
        columns = {
            name: [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
            for name in names
        }
        extras = connection.execute(
            "SELECT DISTINCT kind, key FROM records, json_each(extra)"
        ).fetchall()
        kinds = [
            f"kind = '{kind}'"
            for (kind,) in connection.execute("SELECT DISTINCT kind FROM records")
        ]
    places = [
        (table, where, name)
        for table in names
        for name in columns[table]
        for where in (kinds if table == "records" else "1")
    ]
    found = [
        (f"UPDATE {table} SET {name} = ? WHERE {where}", value)
        for table, where, name in places
        for value in VALUES
    ]
    set_json = "UPDATE records SET extra = json_set(extra, '$.{}', json(?)) WHERE kind = '{}'"
    return found + [
        (set_json.format(key, kind), json.dumps(value))
        for kind, key in extras
        for value in JSON_VALUES
    ]


def edit_sqlite(file: Path, edit: tuple[str, object]) -> None:
    with closing(sqlite3.connect(file)) as connection, suppress(sqlite3.IntegrityError), connection:
        connection.create_function(UPGRADE, 0, lambda: None)
        connection.execute(edit[0].replace("UPDATE", "UPDATE OR IGNORE"), (edit[1],))


# --- JSON ---


def test_odd_values_in_the_files_of_json_are_named_errors(tmp_path: Path, deep: bool) -> None:
    try_all(tmp_path, "memory.json", json_edits, edit_json, 80 if deep else 4)


def places_in(value: object, at: tuple[object, ...] = ()) -> Iterator[tuple[object, ...]]:
    """Yield the place of each value within a value of JSON, as the keys and numbers that lead to
    it."""
    yield at
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for name, part in items:
        yield from places_in(part, (*at, name))


def with_value(value: Any, at: tuple[Any, ...], odd: object) -> Any:
    if not at:
        return odd
    copy = value.copy()
    copy[at[0]] = with_value(value[at[0]], at[1:], odd)
    return copy


def json_edits(folder: Path) -> list[Any]:
    files = {
        name: json.loads((folder / name).read_bytes()) for name in FILES if (folder / name).exists()
    }
    files["journal.jsonl"] = [
        json.loads(line.body) for line in lines((folder / "journal.jsonl").read_bytes())
    ]
    return [
        (name, at, odd)
        for name, value in files.items()
        for at in places_in(value)
        if at
        for odd in JSON_VALUES
    ]


def edit_json(folder: Path, edit: tuple[str, tuple[object, ...], object]) -> None:
    """Replace a value, with checksums that fit."""
    name, at, odd = edit
    data = (folder / name).read_bytes()
    if name == "journal.jsonl":
        values = with_value([json.loads(line.body) for line in lines(data)], at, odd)
        (folder / name).write_bytes(b"".join(map(line_of, values)))
    else:
        (folder / name).write_text(json.dumps(with_value(json.loads(data), at, odd)))


# --- LanceDB ---


@pytest.mark.deep
@pytest.mark.timeout(900)  # beside others it takes more than five minutes
def test_odd_values_in_the_files_of_lance_are_named_errors(tmp_path: Path) -> None:
    try_all(tmp_path, "memory.lance", lance_edits, edit_lance, 80)


OWN_FILES = ("state.json", "flushing.json", "moves", "journal")


def lance_edits(folder: Path) -> list[Any]:
    import lance

    found: list[Any] = []
    for table in ("memory_entries", "mesh_records", "yamo_blocks", "synthesized_skills"):
        for column in lance.dataset(str(folder / f"{table}.lance")).schema:
            texts = ("NULL", "'other'", "'{}'", "'[1]'", "'{\"a\":1}'", "''")
            found += [
                (table, column.name, text)
                for text in texts
                if str(column.type) in ("string", "large_string")
            ]
            found += (
                [(table, column.name, "NULL"), (table, column.name, "-7")]
                if str(column.type) == "int64"
                else []
            )
    return found + [
        (name, at, odd)
        for name in OWN_FILES
        for at in places_in(own_file(folder, name))
        for odd in JSON_VALUES
    ]


def own_file(folder: Path, name: str) -> Any:
    """The contents of a file beside the tables; of one that is there at times only, an example."""
    state = json.loads((folder / journal.OWN / "state.json").read_bytes())
    if name == "flushing.json":
        return {"generation": state["generation"], "tables": state["tables"]}
    if name == "journal":
        row = [
            "link",
            "l1",
            "p",
            "2026-01-01T00:00:00.000Z",
            1,
            0,
            {"ref": "a", "target": "b"},
            ["unit", "AACAPw=="],
        ]
        return [
            {
                "puts": [row],
                "deletes": [["link", "l2"]],
                "moves": {"p": [["link", "l1"]]},
                "nonce": "0",
                "frees": False,
            }
        ]
    return (
        [json.loads(line) for line in own_path(folder, name).read_bytes().splitlines()]
        if name == "moves"
        else state
    )


def own_path(folder: Path, name: str) -> Path:
    own = folder / journal.OWN
    found = own.glob(f"{name}-*") if name in ("moves", "journal") else [own / name]
    return next(iter(found))


def edit_lance(folder: Path, edit: tuple[str, Any, Any]) -> None:
    name, at, odd = edit
    if name in OWN_FILES:
        value, file = with_value(own_file(folder, name), at, odd), own_path(folder, name)
        if name == "journal":
            bodies = [
                json.dumps(one).encode() for one in (value if isinstance(value, list) else [value])
            ]
            file.write_bytes(
                b"".join(journal.HEADER.pack(len(body), crc32(body)) + body for body in bodies)
            )
        elif name == "moves":
            lines = value if isinstance(value, list) else [value]
            file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        else:
            file.write_text(json.dumps(value))
        return
    import lance

    table = lance.dataset(str(folder / f"{name}.lance"))
    with suppress(OSError, ValueError):  # a column that may not be null
        table.update({at: odd})
        state = json.loads((folder / journal.OWN / "state.json").read_bytes())
        state["tables"][name] = lance.dataset(str(folder / f"{name}.lance")).version
        (folder / journal.OWN / "state.json").write_text(json.dumps(state))


def test_an_odd_row_names_the_command_that_saves_the_others(tmp_path: Path) -> None:
    file = tmp_path / "m.db"
    with opened(file) as mesh:
        odd, sound = mesh.add("The lantern needs oil").id, mesh.add("The kettle is blue").id
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE memories SET turn = 'other' WHERE id = ?", (odd,))
    with (
        opened(file) as mesh,
        pytest.raises(
            StoreCorrupt, match=f"{odd}.* unexpected turn; .*memory-mesh doctor --repair"
        ),
    ):
        mesh.get_all()
    with opened(Path(str(repair_store(url(file)).new))) as mesh:
        assert [one.id for one in mesh.get_all()] == [sound]
