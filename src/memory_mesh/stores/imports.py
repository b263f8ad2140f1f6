"""Open a file or folder to import, and detect its format by its contents."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from urllib.parse import quote

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import Kind, Memory
from memory_mesh.core.ports import Store
from memory_mesh.core.transfer import archive, export
from memory_mesh.core.transfer.archive import StoreRows
from memory_mesh.core.transfer.export import Exported, read_lines
from memory_mesh.core.transfer.foreign import (
    ForeignLink,
    ImportFile,
    Item,
    read_blocks,
    read_chatgpt,
    read_mcp_entities,
    read_mcp_relations,
    read_mem0,
)
from memory_mesh.stores.archive_file import ArchiveFile, bounded_lines
from memory_mesh.stores.registry import open_store
from memory_mesh.system import open_regular

MEMORIES, ARCHIVE, STORE, MEM0, MCP, LANE, NEOLATA, YAMO, CHATGPT = FORMATS = (
    "memories", "archive", "store", "mem0", "mcp", "memory-lane", "neolata", "yamo", "chatgpt",
)  # fmt: skip
_EXPECTED = (
    "a file of memory-mesh export, a backup, the JSON of mem0, the JSON lines of the MCP memory "
    "server, a Memory Lane database, a folder of neolata-mem, the "
    "conversations.json of ChatGPT, or the YAMO blocks of lessons"
)
_MAPPING = re.compile(r'"mapping"\s*:\s*\{')  # the messages of a conversation of ChatGPT
_SQLITE = b"SQLite format 3\0"
_HEAD = 64 * 1024  # bytes of a file that tell its format


@contextmanager
def open_import(path: str, format_: str | None, *, imported_at: str) -> Iterator[ImportFile]:
    """Open a file or folder for reading. Raises `InvalidInput` if it is of another format, or of
    none that is known."""
    file = Path(path).expanduser()
    try:
        found = detect(file)
        if format_ is not None and format_ != found:
            raise InvalidInput(
                f"{path} has the format {found}, not {shown(format_)}",
                expected=f"--format {found}, or none",
            )
        if found in (STORE, LANE, NEOLATA):
            with closing(open_store(_url(file))) as store:
                yield (
                    ImportFile(found, rows=StoreRows(store))
                    if found == STORE
                    else ImportFile(found, _rows_of(store))
                )
        elif found == ARCHIVE:
            yield ImportFile(found, rows=ArchiveFile(file), is_fixed=True)
        elif found == YAMO:
            yield ImportFile(found, blocks=read_blocks(_lines(file)))
        elif found in (MEM0, CHATGPT):
            read = read_mem0 if found == MEM0 else read_chatgpt
            with TextIOWrapper(open_regular(file), "utf-8-sig", "replace") as text:
                yield ImportFile(found, read(text.read, imported_at))
        elif found == MCP:
            links = read_mcp_relations(_lines(file))
            yield ImportFile(found, chain(read_mcp_entities(_lines(file), imported_at), links))
        else:
            yield ImportFile(found, read_lines(_lines(file)), is_export=True)
    except OSError as error:
        raise InvalidInput(
            f"{path} cannot be read: {error.strerror or error}", expected=_EXPECTED
        ) from error


def detect(file: Path) -> str:
    """Return the format of a file or folder."""
    if file.is_dir():
        names = {one.name for one in file.iterdir()}
        if "journal.jsonl" in names or any(name.endswith(".lance") for name in names):
            return STORE
        if "graph.json" in names:
            return NEOLATA
        raise InvalidInput(f"{file} is not a folder of memories", expected=_EXPECTED)
    with open_regular(file) as opened:
        head = opened.read(_HEAD)
    if head.startswith(_SQLITE):
        return _of_database(file)
    return _of_text(file, head.decode("utf-8-sig", "replace").lstrip())


def _of_database(file: Path) -> str:
    from memory_mesh.stores.sqlite.opening import Contents, contents_of, translated

    try:
        with closing(
            sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)
        ) as connection:
            return LANE if contents_of(connection, file) is Contents.LANE else STORE
    except sqlite3.Error as error:
        raise translated(file, error) from error


def _of_text(file: Path, head: str) -> str:
    try:
        first, _ = json.JSONDecoder().raw_decode(head.partition("\n")[0])
    except (ValueError, RecursionError):
        first = None
    if isinstance(first, dict):
        if first.get("format") == export.FORMAT:
            return MEMORIES
        if first.get("format") == archive.FORMAT:
            return ARCHIVE
        if first.get("type") in ("entity", "relation"):
            return MCP
    if head.startswith("agent: "):
        return YAMO
    if head.startswith("[") and _MAPPING.search(head) and '"memory":' not in head:
        return CHATGPT
    if head.startswith("[") or (
        head.startswith("{") and ('"results"' in head or '"memories"' in head)
    ):
        return MEM0
    raise InvalidInput(
        f"{file} has no format that can be imported: it begins with {shown(head[:40])}",
        expected=_EXPECTED,
    )


def _url(file: Path) -> str:
    """Return the URL that opens a store for reading only."""
    scheme = "sqlite"
    if file.is_dir():
        scheme = "lancedb" if any(file.glob("*.lance")) else "json"
    return f"{scheme}:///{quote(str(file.absolute()))}?mode=ro"


def _lines(file: Path) -> Iterator[str | InvalidInput]:
    with open_regular(file) as opened:
        for number, line in enumerate(bounded_lines(opened)):
            # A byte that is not UTF-8 makes its own line fail, not the whole import.
            yield (
                line
                if isinstance(line, InvalidInput)
                else line.decode("utf-8" if number else "utf-8-sig", "surrogateescape")
            )


def _rows_of(store: Store) -> Iterator[Item]:
    """Yield the memories and links of a store that another program wrote."""
    source = StoreRows(store)
    for place, row in enumerate(source.rows(Kind.MEMORY), start=1):
        used = (
            {"access_count": row.used.access_count, "last_accessed": row.used.last_accessed}
            if row.used
            else {}
        )
        yield place, Exported(replace(Memory.of(row), **used))  # type: ignore[arg-type]
    for place, row in enumerate(source.rows(Kind.LINK), start=1):
        ref, target, type_ = (str(row.value(name)) for name in ("ref", "target", "link_type"))
        yield place, ForeignLink(ref, target, type_)
