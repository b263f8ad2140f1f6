"""Keep memories in step with files: the steps that notes, traces and folders have in common.

The marks of files tell whether one changed. What is new or changed is stored together with the
state of its files, what is gone is archived or reported, and what came back is active again. What
cannot be read is named, and counts as still there.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from hashlib import sha256
from typing import Any

from memory_mesh.core.errors import InvalidInput, MemoryMeshError, NotFound, StoreReadOnly
from memory_mesh.core.model import Key, Kind, Memory, Meta, Status, iso
from memory_mesh.core.ports import Folder, Listed
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import Prepared
from memory_mesh.flows.write.revisions import archive
from memory_mesh.flows.write.write import plan_add, set_columns

NOTES, NOTE_RUNS, TRACES = "notes", "note runs", "traces"  # what states are kept of
_log = logging.getLogger("memory_mesh")


def is_ready(context: Context) -> bool:
    """Return whether files can be indexed: memory is enabled, and the store is there."""
    return context.options.enable_memory and context.file.is_prepared()


def without_session(context: Context) -> Context:
    """Return the context of a reader without a session: files belong to a project, whatever the
    session."""
    return replace(context, reader=replace(context.reader, session_id=None))


@contextmanager
def only_logged(message: str, *errors: type[MemoryMeshError]) -> Iterator[None]:
    """Log these errors instead of raising them. That a store is only read is not even logged."""
    try:
        yield
    except errors as error:
        if not isinstance(error, StoreReadOnly):
            _log.warning("%s: %s", message, error)


# --- reading ---


def read_text(context: Context, folder: Folder, entry: Listed) -> tuple[str, bytes]:
    """Return the text of a file of a folder, and its bytes. Raise `InvalidInput` for one that
    cannot be read."""
    if entry.fault:
        raise InvalidInput(entry.fault)
    # A character has at most four bytes in UTF-8, and the byte order mark has three.
    data = folder.read(entry.source, max_bytes=4 * context.limits.content_chars + 3)
    try:
        return data.decode("utf-8-sig"), data
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 text (byte {error.start + 1:,})") from None


# --- writing ---


def store(
    context: Context, items: Sequence[Prepared], states: Mapping[str, dict[str, Any]] | None = None
) -> list[Memory]:
    """Store the memories of items, and the states of files by name, in one write."""
    vectors = Vectors()

    def decide() -> Plan[list[Memory]]:
        plan = plan_add(context, items, vectors) if items else Plan(list[Memory]())
        at = iso(context.clock())
        rows = [
            Meta.read(context.store, name).row(detail, at=at)
            for name, detail in (states or {}).items()
        ]
        return replace(plan, puts=[*plan.puts, *rows])

    return commit(context, decide)


def archive_all(context: Context, ids: Iterable[str], why: str) -> list[str]:
    """Archive the active ones of these memories, and return their ids."""
    return archive(context, Kind.MEMORY, ids, lambda _: why)


def revive(context: Context, memory_id: str) -> None:
    """Make an archived memory active again, unless it was erased."""
    with suppress(NotFound):
        set_columns(context, memory_id, action="unarchive", status=Status.ACTIVE.value)


# --- the states of files ---


def state_prefix(context: Context, kind: str) -> str:
    """Return how the names of the states of a user begin: each user has its own."""
    return f"{kind} {hashed(context.reader.user_id)} "


def hashed(*parts: str | None) -> str:
    """Return a short hash of what a state is of."""
    return sha256(repr(parts).encode()).hexdigest()[:16]


def state_keys(context: Context) -> list[Key]:
    """Return the keys of all states of files of the user of a context."""
    names = (state_prefix(context, kind) for kind in (NOTES, NOTE_RUNS, TRACES))
    return [
        Key(Kind.META, meta.id) for name in names for meta in Meta.with_prefix(context.store, name)
    ]
