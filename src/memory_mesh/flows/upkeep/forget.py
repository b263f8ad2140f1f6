"""Forget a memory, or everything of a scope, and prove it: look for the erased everywhere.

By id: its rows, history, passages, links, counters, waiting events, derived memories and search
results. By some characters of each text: the rows of every kind, the export, the files of notes,
traces and hooks, and the bytes of the files of the store and its index. What is found before the
erasure shows that the same look would find it afterwards.
"""

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial

from memory_mesh.core import audit
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.language.capture.extract import CURSOR
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    CheckedPlace,
    Compare,
    ErasureCheck,
    Forgotten,
    In,
    Key,
    Kind,
    Memory,
    MemoryType,
    Meta,
    Reader,
    Row,
    Status,
    Value,
    Where,
    all_of,
    batches,
    equals,
    iso,
    partition,
)
from memory_mesh.core.notes import MAX_BYTES
from memory_mesh.core.ports import no_progress
from memory_mesh.core.upkeep.hooks import DELETE
from memory_mesh.flows.audit.audit import heads, prune_before
from memory_mesh.flows.context import (
    Context,
    Plan,
    check_names,
    check_texts,
    commit,
    find_rows,
    forgotten_user,
    paged,
)
from memory_mesh.flows.mirror.mirror import state_keys
from memory_mesh.flows.search import reads, search
from memory_mesh.flows.transfer.transfer import export
from memory_mesh.flows.upkeep import hooks
from memory_mesh.flows.upkeep.erase import (
    authors_of,
    delete,
    delete_all,
    free,
    ids_within,
    preview,
)

_QUERY = re.compile(r"^  query;(.*);$", flags=re.MULTILINE)
_OWNED = (*CONTENTS, Kind.CHANGE, Kind.PASSAGE, Kind.LINK, Kind.SIGHTING, Kind.CONFLICT)


def forget(
    context: Context, memory_id: str | None, key: str | None, names: Mapping[str, str | None], *,
    files: bool = False, verify: bool = False,
) -> Forgotten:  # fmt: skip
    """Erase a memory, or all of the scope that `names` has, and free the bytes. Raise
    `InvalidInput` unless one of id, key and scope is given.

    A scope is within the reader's user. A reader without a user may name one. With a user alone,
    the searches, idempotency keys and traces of the user are erased too.
    """
    scope = {name: value for name, value in names.items() if value is not None}
    given = [name for name, one in (("id", memory_id), ("key", key)) if one is not None]
    if len(given) + bool(scope) != 1:
        together = f"{' and '.join([*given, *scope])} are given together"
        raise InvalidInput(
            together if given else "no id, key or scope is given",
            expected=f"an id, a key, or a scope: {', '.join(names)}",
            remedy="leave the scope out: the id of a memory is enough" if given and scope else "",
        )
    is_limited = context.reader.user_id is not None
    if scope:
        context = _of_user(context, scope)
        ids = ids_within(context, scope) if verify else []
    else:
        ids = reads.to_erase(context, memory_id, key)
    wanted = _target(context, ids, scope) if verify else None
    before = look(context, wanted) if wanted else None
    proof = delete_all(context, scope, files=files) if scope else delete(context, ids, files=files)
    if is_whole_user(scope):
        proof += _purge(context, files=files)
        proof = replace(proof, notes_left=tuple(dict.fromkeys(proof.notes_left)))
    proof = free(context, proof)
    if wanted is None or before is None:
        return proof
    own = equals("user_id", context.reader.user_id)
    left = sum(context.store.count(kind, own) for kind in _OWNED if is_whole_user(scope))
    checked = check(context, wanted, before, rows_left=left, is_limited=is_limited)
    return replace(proof, check=checked)


def is_whole_user(names: Mapping[str, str | None]) -> bool:
    """Return whether a scope is a user, and nothing that narrows it."""
    return [name for name, value in names.items() if value is not None] == ["user_id"]


def _of_user(context: Context, scope: Mapping[str, str]) -> Context:
    """Return the context for the user of a scope, or raise `InvalidInput` for a scope that is not
    valid, or of another user."""
    context.check_enabled()
    check_texts(**scope)
    check_names(**scope)
    if scope.get("memory_type", MemoryType.GLOBAL) not in list(MemoryType):
        raise InvalidInput(
            f"memory_type is {shown(scope['memory_type'])}",
            expected=f"one of {', '.join(MemoryType)}",
        )
    reader = context.reader
    user_id = scope.get("user_id", reader.user_id)
    if reader.user_id not in (None, user_id):
        what = "user_id is not the user of this mesh"
        raise InvalidInput(what, remedy="call it on a mesh of that user, or on one without a user")
    own = (
        Reader(user_id, reader.agent_id)
        if is_whole_user(scope)
        else replace(reader, user_id=user_id)
    )
    return replace(context, reader=own)


def _purge(context: Context, *, files: bool) -> Forgotten:
    """Erase what is left of the reader's user when the memories are erased: searches, idempotency
    keys, cursors and files of traces."""
    from memory_mesh.flows.claims.updates import progress_of
    from memory_mesh.flows.notes import index as note_index

    user_id = context.reader.user_id
    notes, digests = note_index.forget_user(context, files=files)
    if context.file.is_prepared():
        # First, so that searches that another process did not write yet are not written later.
        at = iso(context.clock())
        commit(context, lambda: _mark(context, {"at": at, "notes": [*digests]}, at))
    pruned = prune_before(context, iso(context.clock() + 1))
    # Idempotency keys have no column for the user, but their partition names it.
    receipts = [
        row.key
        for row in paged(context, Kind.RECEIPT, ANYTHING)
        if json.loads(row.partition)[0] == user_id
    ]
    cursors = Meta.with_prefix(context.store, f"{CURSOR}{json.dumps([user_id])[:-1]},")
    if context.open_traces().mark(""):
        context.open_traces().remove("")
    agents = {audit.owner_of(head.id)[1] for head in heads(context)}
    homes = {partition(user_id, agent) for agent in {None, *agents}}
    judged = context.store.get(Kind.META, [progress_of(name) for name in sorted(homes)])
    metas = [*(meta.id for meta in cursors), *judged]
    states = [*state_keys(context), *(Key(Kind.META, id_) for id_ in metas)]
    commit(context, lambda: Plan(None, deletes=[*receipts, *states]))
    context.index.forget(homes)
    return Forgotten(
        rows=pruned.removed + len(receipts) + len(states),
        notes=notes.taken,
        notes_left=notes.left,
        blocks=tuple(pruned.checkpoints),
        damaged=tuple(broken.chain for broken in pruned.broken),
        bytes_freed=False,
    )


def _mark(context: Context, detail: dict[str, Value], at: str) -> Plan[None]:
    return Plan(None, [forgotten_user(context, context.reader.user_id).row(detail, at=at)])


# --- proof of an erasure ---

# A part of a text that every place writes the same: rows as they are, history and blocks as JSON
# and in wire format.
_RUN = re.compile(r'[^"\\;\x00-\x1f]+')
_MAX_SAMPLE, _MIN_BYTES = 32, 8
_SEARCHED = 20  # of the memories; each is searched for by its own words
_READ = 200  # of the texts; each is compared with every row, exported line, note and trace
_QUERY_CHARS, _RESULTS = 300, 50
_AT_ONCE = 500
# Kinds with texts.
_QUOTING = (*CONTENTS, Kind.CHANGE, Kind.BLOCK, Kind.SIGHTING, Kind.LINK, Kind.CONFLICT, Kind.EVENT)
FILES = "bytes of the files of the store and its index"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What is to be erased. `samples` has some characters of each text, with the id of its memory
    or block.

    `is_related` returns whether a row is of it, or derived from it. Other rows may have the same
    words.
    """

    ids: Collection[str]
    samples: Mapping[bytes, str]
    too_short: int  # texts without a sample
    searched: Sequence[Memory]
    is_related: Callable[[Row], bool]
    notes: Collection[tuple[str, str]]  # other folders and names of the user's indexed files

    @property
    def read(self) -> list[bytes]:
        return [*self.samples][:_READ]


@dataclass(frozen=True, slots=True)
class Found:
    """The ids, and the samples with the name of their place, that a look found in each place."""

    ids: Mapping[str, set[str]]
    samples: Mapping[str, Mapping[bytes, str]]
    unread: tuple[str, ...]


def target(
    memories: Sequence[Memory], texts: Iterable[tuple[str, str]],
    is_related: Callable[[Row], bool], notes: Collection[tuple[str, str]],
) -> Target:  # fmt: skip
    """Return what is looked for: these memories, and these texts, each with the id of what it
    belongs to."""
    sampled = [(id_, sample(text)) for id_, text in texts]
    return Target(
        ids=[memory.id for memory in memories],
        samples={part: id_ for id_, part in reversed(sampled) if part},
        too_short=sum(not part for _, part in sampled),
        searched=memories[:_SEARCHED],
        is_related=is_related,
        notes=notes,
    )


def sample(text: str) -> bytes:
    """Return some characters of a text that are looked for in its place; empty if it is too
    short for that."""
    part = max(_RUN.findall(text) or [""], key=len).strip()[:_MAX_SAMPLE].encode()
    return part if len(part) >= _MIN_BYTES else b""


def look(context: Context, wanted: Target) -> Found:
    """Look for the target in every place. Nothing is written: the searches are not logged, and
    not counted as uses."""
    quiet = context.with_options(enable_memory=False)
    by_id = {name: find(quiet, wanted) for name, find in _BY_ID.items()}
    by_text = {name: dict.fromkeys(find(quiet, wanted), name) for name, find in _BY_TEXT.items()}
    unread = list[str]()
    for name, files in _IN_FILES.items():
        by_text[name] = _within(files(quiet, wanted), wanted.read, unread)
    by_text[FILES] = context.file.find_bytes(wanted.samples) if wanted.samples else {}
    return Found(by_id, by_text, tuple(unread))


def check(
    context: Context, wanted: Target, before: Found, *, rows_left: int = 0, is_limited: bool
) -> ErasureCheck:
    """Look again, and return what is left. What other rows have too does not count.

    A limited caller is not told what other users have: `shared` counts texts of its own user only.
    """
    after = look(context, wanted)
    left = {part for parts in after.samples.values() for part in parts}
    shared = _of_others(context, wanted, left) if left else {}
    kept = {
        name: {part: place for part, place in parts.items() if part not in shared}
        for name, parts in after.samples.items()
    }
    found = [(id_, name) for name, ids in after.ids.items() for id_ in sorted(ids)]
    found += [
        (wanted.samples[part], place) for parts in kept.values() for part, place in parts.items()
    ]
    places = [
        CheckedPlace(name=name, before=len(before.ids[name]), after=len(ids))
        for name, ids in after.ids.items()
    ]
    places += [
        CheckedPlace(name=name, before=len(before.samples[name]), after=len(parts))
        for name, parts in kept.items()
    ]
    return ErasureCheck(
        texts=len(wanted.samples),
        too_short=wanted.too_short,
        found_before=len(before.samples[FILES]),
        found=tuple(found),
        shared=sum(is_own or not is_limited for is_own in shared.values()),
        rows_left=rows_left,
        places=tuple(places),
        unread=after.unread,
    )


# --- by id ---


def _rows(context: Context, wanted: Target) -> set[str]:
    return {id_ for ids in batches(wanted.ids, _AT_ONCE) for id_ in find_rows(context, ids)}


def _about(
    *kinds: Kind, columns: Sequence[str] = ("ref",), where: Where = ANYTHING
) -> Callable[[Context, Target], set[str]]:
    """Return a look at the rows of these kinds that name an erased memory in one of the columns."""

    def find(context: Context, wanted: Target) -> set[str]:
        asked = [
            all_of(In(column, tuple(ids)), where)
            for column in columns
            for ids in batches(wanted.ids, _AT_ONCE)
        ]
        return {id_ for some in asked for kind in kinds for id_ in context.store.ids(kind, some)}

    return find


def _found(*, use_cache: bool) -> Callable[[Context, Target], set[str]]:
    """Return a search for each memory by its own words and its vector, as the agent that stored
    it."""

    def find(context: Context, wanted: Target) -> set[str]:
        results: set[str] = set()
        for memory in wanted.searched:
            own = replace(
                context,
                reader=Reader(memory.user_id, memory.agent_id, memory.session_id, memory.project),
            )
            statuses = [status.value for status in Status]
            asked = search.Request(
                query=memory.content[:_QUERY_CHARS],
                limit=_RESULTS,
                statuses=statuses,
                min_score=0.0,
            )
            results |= {one.id for one in search.search(own, asked, use_cache=use_cache)}
        return results & {*wanted.ids}

    return find


_BY_ID: dict[str, Callable[[Context, Target], set[str]]] = {
    "memories and skills": _rows,
    "history": _about(Kind.CHANGE),
    "passages and their vectors": _about(Kind.PASSAGE),
    "links and conflicts": _about(Kind.LINK, Kind.CONFLICT, columns=("ref", "target")),
    "counters and sightings": _about(Kind.USAGE, Kind.SIGHTING),
    "waiting events": _about(Kind.EVENT, where=Compare("action", "<>", DELETE)),
    "digests, reflections and lessons": _about(*CONTENTS, columns=("sources",)),
    "search by words and vectors": _found(use_cache=False),
    "cached search": _found(use_cache=True),
}


# --- by text ---


def _quoting_rows(context: Context, parts: Collection[bytes]) -> Iterator[tuple[Row, bytes]]:
    """Yield each row of the store with each of these parts of texts that it contains."""
    for kind in _QUOTING if parts else ():
        for row in paged(context, kind, ANYTHING):
            text = json.dumps(dict(row.fields), ensure_ascii=False, default=str).encode(
                "utf-8", "replace"
            )
            yield from ((row, part) for part in parts if part in text)


def _in_rows(context: Context, wanted: Target) -> set[bytes]:
    return {part for row, part in _quoting_rows(context, wanted.read) if wanted.is_related(row)}


def _of_others(context: Context, wanted: Target, parts: Collection[bytes]) -> dict[bytes, bool]:
    """Return the parts of texts that other rows have too, each with whether one of them is of the
    reader's user."""
    others: dict[bytes, bool] = {}
    for row, part in _quoting_rows(context, parts):
        if not wanted.is_related(row):
            is_own = row.fields.get("user_id") == context.reader.user_id
            others[part] = others.get(part, False) or is_own
    return others


def _exported(context: Context, wanted: Target) -> set[bytes]:
    lines = (line.encode("utf-8", "replace") for line in export(context, no_progress))
    return {part for line in lines for part in wanted.read if part in line}


_BY_TEXT: dict[str, Callable[[Context, Target], set[bytes]]] = {
    "texts of rows and audit blocks": _in_rows,
    "export": _exported,
}


# --- in files ---
# A file that cannot be read hides none of the others.

_Data = Iterator[tuple[str, bytes | None]]


def _notes(context: Context, wanted: Target) -> _Data:
    """Yield the files of the folder of notes, and those of other folders that were indexed or
    imported for the user."""
    try:
        files = context.files.open_notes()
    except InvalidInput:  # there are none
        return
    for file in files.files():
        if not (file.name and file.fault):  # a link that leads elsewhere is not a note
            yield _data(files.root, file.name, files.read)
    for root, name in wanted.notes:
        with suppress(InvalidInput):  # the folder is gone
            read = context.files.open_folder(root).read
            yield _data(root, name, partial(read, max_bytes=MAX_BYTES))


def _traces(context: Context, wanted: Target) -> _Data:
    try:
        files = context.open_traces()
    except InvalidInput:  # there are none
        return
    folders = [""]
    while folders:
        start = f"{folder}/" if (folder := folders.pop()) else ""
        try:
            names, inner = files.names(folder), files.names(folder, folders=True)
        except InvalidInput:
            yield f"{files.root.rpartition('/')[2]}/{folder}", None
            continue
        yield from (_data(files.root, start + name, files.read) for name in names)
        folders += [start + name for name in inner]


def _hooks(context: Context, wanted: Target) -> _Data:
    return context.files.open_hook_files().read(hooks.folders(context).values())


def _data(root: str, name: str, read: Callable[[str], bytes]) -> tuple[str, bytes | None]:
    """Return a name of a file for people, without the folders above its own, and its bytes."""
    shown_name = f"{root.rpartition('/')[2]}/{name}"
    try:
        return shown_name, read(name)
    except InvalidInput as error:
        return shown_name, b"" if isinstance(error.__cause__, FileNotFoundError) else None


def _within(data: _Data, parts: Collection[bytes], unread: list[str]) -> dict[bytes, str]:
    """Return the parts that are in these files, as they are or as JSON may write them, each with
    the names of its files. Add the names of those without bytes to `unread`."""
    forms = {json.dumps(part.decode())[1:-1].encode(): part for part in parts} | {
        part: part for part in parts
    }
    names: dict[bytes, dict[str, None]] = {}
    for name, text in data:
        if text is None:
            unread.append(name)
        for form, part in forms.items():
            if text and form in text:
                names.setdefault(part, {})[name] = None
    return {part: ", ".join(files) for part, files in names.items()}


_IN_FILES: dict[str, Callable[[Context, Target], _Data]] = {
    "files of notes": _notes,
    "files of traces": _traces,
    "files of hooks": _hooks,
}


# --- what is looked for ---


def _target(context: Context, ids: Sequence[str], scope: Mapping[str, str]) -> Target:
    """Return what an erasure takes: the memories and skills, their contents and older contents,
    and the queries of a whole user."""
    from memory_mesh.flows.notes import index as note_index  # most erasures are not verified

    plans = [
        preview(context, some, scope=authors_of(scope) if scope else None, any_agent=True)
        for some in batches(ids, _AT_ONCE)
    ]
    memories = [*{memory.id: memory for plan in plans for memory in plan.erased}.values()]
    related = {memory.id for plan in plans for memory in (*plan.erased, *plan.changed)}
    related -= {id_ for plan in plans for id_ in plan.proof.kept}
    user_id = context.reader.user_id if is_whole_user(scope) else None
    return target(
        memories,
        [*_texts(context, memories), *(_queries(context) if user_id else ())],
        lambda row: (
            (user_id is not None and row.fields.get("user_id") == user_id)
            or not related.isdisjoint((row.id, row.fields.get("ref"), row.fields.get("target")))
        ),
        note_index.files_elsewhere(context),
    )


def _queries(context: Context) -> Iterator[tuple[str, str]]:
    """Yield the queries of the reader's user, each with the id of its block."""
    for row in paged(context, Kind.BLOCK, equals("user_id", context.reader.user_id)):
        if row.value("operation_type") == "recall" and (
            query := _QUERY.search(str(row.value("yamo_text")))
        ):
            yield row.id, query[1]


def _texts(context: Context, memories: Sequence[Memory]) -> Iterator[tuple[str, str]]:
    """Yield the contents and the older contents of memories, each with the id of the memory."""
    yield from ((memory.id, memory.content) for memory in memories)
    for ids in batches([memory.id for memory in memories], _AT_ONCE):
        for row in context.store.find(Kind.CHANGE, In("ref", tuple(ids))):
            before = row.value("before")
            if isinstance(before, dict) and isinstance(content := before.get("content"), str):
                yield str(row.value("ref")), content
