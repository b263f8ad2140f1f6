"""Erase memories for good, with everything that belongs to them or was derived from them alone.

A reflection that quotes other memories too loses the sentences of the erased ones, and its past. If
a language model wrote it, it is erased, because it is not known which words came from which memory.

A memory whose text agents or sessions outside an erased scope stored too is kept for them, without
what the scope stored of it.

Audit blocks that quote an erased memory keep their number and hash and lose their text. Each chain
with such a block gets an erasure block that names it, so that every chain can be verified by
itself.
"""

from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial

from memory_mesh.core import audit, learning
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.intake import Kept, companion_key, is_note, is_of_traces, keep_without
from memory_mesh.core.learning import Statement
from memory_mesh.core.model import (
    CONTENTS,
    Block,
    Forgotten,
    In,
    Key,
    Kind,
    Memory,
    Row,
    all_of,
    batches,
    equals,
    iso,
    may_erase,
    partitions,
)
from memory_mesh.core.search import tokens
from memory_mesh.core.upkeep.hooks import DELETE, events_of
from memory_mesh.flows.audit.chains import (
    audit_rows,
    needed_entries,
    new_entry,
    own_chain,
    retain_entry,
)
from memory_mesh.flows.context import Context, Plan, check_texts, find_rows, write_plan
from memory_mesh.flows.upkeep import hooks
from memory_mesh.flows.write.embed import plan_passages
from memory_mesh.flows.write.prepare import sightings_of
from memory_mesh.flows.write.revisions import revise

_AT_ONCE = 1000
_ERASE = {"action": "erase"}
# The columns of a scope that the sightings of a memory may differ in.
_AUTHOR = ("agent_id", "session_id")


def delete(
    context: Context,
    memory_ids: Sequence[str],
    *,
    only: Callable[[Memory], bool] = lambda _: True,
    files: bool = False,
) -> Forgotten:
    """Erase these memories from everything that is read. Ids that are unknown, or that the reader
    may not erase, are ignored. The bytes are freed later, together with those of others.

    `only` decides again about each one, as it is when it is erased. With `files`, notes that people
    wrote are also taken out of their files, even if the memory was erased before.
    """
    for memory_id in memory_ids:
        check_texts(id=memory_id)
    return _erase(context, memory_ids, only=only, files=files)


def delete_all(context: Context, scope: Mapping[str, str], *, files: bool = False) -> Forgotten:
    """Erase all memories of a scope within the reader's user, of every agent, like `delete`.

    A memory that agents or sessions outside the scope stored too is kept for them.
    """
    proof = Forgotten()
    while ids := ids_within(context, scope):
        for batch in batches(ids, _AT_ONCE):
            proof += _erase(context, batch, scope=authors_of(scope), files=files)
    return replace(proof, kept=tuple(dict.fromkeys(proof.kept)))


def free(context: Context, proof: Forgotten) -> Forgotten:
    """Free the bytes of an erasure, and return its proof."""
    # An earlier deletion may have left bytes too, also of these memories.
    pending = not proof.bytes_freed or context.file.has_deleted_bytes()
    return replace(proof, bytes_freed=context.store.compact()) if pending else proof


def authors_of(scope: Mapping[str, str]) -> dict[str, str]:
    """Return the agent and the session of a scope, whose sightings of a memory are erased."""
    return {name: scope[name] for name in _AUTHOR if name in scope}


@dataclass(frozen=True, slots=True)
class Preview:
    """What an erasure would do: what goes, and what stays but loses a source."""

    erased: Sequence[Memory]  # the named memories first
    changed: Sequence[Memory]
    hidden: int  # further ones, which the reader cannot see
    proof: Forgotten


def preview(
    context: Context, memory_ids: Sequence[str], *, scope: Mapping[str, str] | None = None,
    any_agent: bool = False,
) -> Preview:  # fmt: skip
    """Return what an erasure of these memories would do, or with a scope of what its agent or
    session stored of them. It writes nothing, and leaves out those that the reader may not erase.

    An erasure reaches what other agents of the user derived; without `any_agent` that is counted,
    and not shown.
    """
    for memory_id in memory_ids:
        check_texts(id=memory_id)
    plan = _plan_erasure(context, memory_ids, scope, lambda _: True)
    rows = find_rows(context, plan.answer.memories)
    erased = sorted(
        map(Memory.of, rows.values()), key=lambda memory: (memory.id not in memory_ids, memory.id)
    )
    changed = [Memory.of(row) for row in plan.puts if row.kind in CONTENTS]
    gone, left = (
        [one for one in some if any_agent or may_erase(context.reader, one.row())]
        for some in (erased, changed)
    )
    return Preview(gone, left, len(erased) + len(changed) - len(gone) - len(left), plan.answer)


def ids_within(context: Context, scope: Mapping[str, str]) -> list[str]:
    """Return the memories of a scope within the reader's user, and those that an agent or session
    of the scope stored too."""
    store = context.store
    own: dict[str, str | None] = {**scope, "user_id": context.reader.user_id}
    # A type selects memories; skills have none of their own.
    kinds = [Kind.MEMORY] if "memory_type" in own else CONTENTS
    ids = [
        id_
        for kind in kinds
        for id_ in store.ids(kind, all_of(*(equals(name, value) for name, value in own.items())))
    ]
    authors = {name: value for name, value in own.items() if name in (*_AUTHOR, "user_id")}
    if len(authors) == 1:  # all agents and sessions of the user
        return ids
    seen = store.find(
        Kind.SIGHTING, all_of(*(equals(name, value) for name, value in authors.items()))
    )
    refs = {str(row.value("ref")) for row in seen}.difference(ids)
    rest = all_of(*(equals(name, value) for name, value in own.items() if name not in _AUTHOR))
    groups = [all_of(In("id", tuple(some)), rest) for some in batches(sorted(refs), _AT_ONCE)]
    return [*ids, *(id_ for where in groups for id_ in store.ids(Kind.MEMORY, where))]


def _erase(
    context: Context, memory_ids: Sequence[str], *, scope: Mapping[str, str] | None = None,
    only: Callable[[Memory], bool] = lambda _: True, files: bool = False,
) -> Forgotten:  # fmt: skip
    """Erase memories, or with a scope what its agent or session stored of them; a scope includes
    all agents of the user."""
    context.check_enabled()
    partitions: set[str] = set()
    forgotten: set[str] = set()
    taken: set[str] = set()

    def decide() -> Plan[Forgotten]:
        plan = _plan_erasure(context, memory_ids, scope, only)
        forgotten.update(
            one.memory_id for one in events_of(plan.puts, plan.deletes) if one.event == DELETE
        )
        partitions.update(plan.seen)
        # Before the rows are deleted, so that a crash leaves no derived files; and again after, for
        # files written meanwhile.
        context.index.forget(plan.seen)
        if plan.answer.notes or files:
            named = memory_ids if scope is None else plan.answer.notes
            plan = _without_notes(context, plan, named if files else (), taken)
        if plan.answer.traces:
            plan = _without_traces(context, plan)
        return hooks.with_events(context, plan)

    with hooks.no_entries(context):
        proof, bytes_freed = write_plan(
            context.store, decide, pause=context.pause, step=context.step
        )
        context.index.forget(partitions)
        if forgotten:
            hooks.forget(context, forgotten)
    context.state.cache.clear()
    return replace(proof, bytes_freed=bytes_freed)


def _without_notes(
    context: Context, plan: Plan[Forgotten], named: Sequence[str], taken: set[str]
) -> Plan[Forgotten]:
    """Take the notes of erased memories out of their files; of those that are `named`, also what
    people wrote.

    A memory whose note is gone can still be erased, so the files come first. `taken` has those of
    earlier attempts.
    """
    from memory_mesh.flows.notes import index as note_index  # most memories are not notes

    done = note_index.forget(context, {*plan.answer.notes, *named}, files=bool(named))
    taken.update(done.taken)
    left = tuple(place for place in done.left if place not in taken)
    return replace(
        plan,
        answer=replace(plan.answer, notes=tuple(sorted(taken)), notes_left=left),
        puts=[*plan.puts, *done.rows],
    )


def _without_traces(context: Context, plan: Plan[Forgotten]) -> Plan[Forgotten]:
    """Take erased traces, entries and learnings out of their files, before their memories are
    erased."""
    from memory_mesh.flows.traces.index import take_out  # most memories are not of traces
    from memory_mesh.flows.traces.learnings import regrouping_rows

    memories = [
        Memory.of(row) for row in context.store.get(Kind.MEMORY, plan.answer.traces).values()
    ]
    answer = replace(plan.answer, traces=tuple(take_out(context, memories)))
    return replace(plan, answer=answer, puts=[*plan.puts, *regrouping_rows(context, memories)])


def _plan_erasure(
    context: Context,
    memory_ids: Sequence[str],
    scope: Mapping[str, str] | None,
    only: Callable[[Memory], bool],
) -> Plan[Forgotten]:
    seen: dict[str, int] = {}
    rows = _read(context, In("id", tuple(memory_ids)), seen) if memory_ids else []
    rows = [
        row
        for row in rows
        if (scope is not None or may_erase(context.reader, row)) and only(Memory.of(row))
    ]
    rows += _companions(context, rows, seen)
    sightings = sightings_of(context, [row.id for row in rows])
    every = [keep_without(Memory.of(row), sightings.get(row.id, []), scope or {}) for row in rows]
    shared = {kept.memory.id: kept for kept in every if kept}
    erased, derived = _with_derived(context, [row for row in rows if row.id not in shared], seen)
    ids = {memory.id for memory in erased}
    planned = ids | {memory.id for memory in derived}
    kept = [one for id_, one in shared.items() if id_ not in planned]
    if not erased and not kept:
        return Plan(Forgotten())
    redrawn = {
        memory.id: left
        for memory in derived
        if (left := learning.without_sources(memory, ids)) is not None
    }
    forgotten = [
        *erased,
        *(one.memory for one in kept if one.purged),
        *(one for one in derived if one.id in redrawn),
    ]
    past, about = (In("ref", tuple(memory.id for memory in some)) for some in (forgotten, erased))
    tombstones = [
        audit.tombstone(block)
        for row in context.store.find(Kind.BLOCK, past)
        if audit.quotes(block := Block.of(row))
    ]
    puts = [tombstone.row(replaces=tombstone.revision - 1) for tombstone in tombstones]
    puts += [
        _clear_receipt(row)
        for row in context.store.find(Kind.RECEIPT, past)
        if row.value("request")
    ]
    revised = [
        _without_sources(context, memory, ids) for memory in derived if memory.id not in redrawn
    ]
    revised += [
        _without_statements(context, memory, redrawn[memory.id])
        for memory in derived
        if memory.id in redrawn
    ]
    revised += [_without_sightings(context, one) for one in kept]
    erasure_rows = _erasure_rows(context, forgotten, tombstones, [one.entry for one in revised])
    deletes = [Key(Kind.CHANGE, id_) for id_ in context.store.ids(Kind.CHANGE, past)]
    deletes += [key for one in revised for key in one.deletes]
    deletes += [*(Key(memory.kind, memory.id) for memory in erased), *_rows_about(context, about)]
    proof = Forgotten(
        memories=tuple(memory.id for memory in erased),
        rows=len(deletes),
        tombstones=tuple(tombstone.id for tombstone in tombstones),
        blocks=tuple(row.id for row in erasure_rows if row.value("metadata") == _ERASE),
        kept=tuple(one.memory.id for one in kept),
        notes=tuple(memory.id for memory in erased if is_note(memory)),
        traces=tuple(memory.id for memory in erased if is_of_traces(memory)),
    )
    return Plan(
        proof, [*puts, *(row for one in revised for row in one.puts), *erasure_rows], deletes, seen
    )


def _companions(context: Context, rows: list[Row], seen: dict[str, int]) -> list[Row]:
    """Return the entries of the experience log of these traces, and the traces of these entries."""
    keys = {key for row in rows if (key := companion_key(Memory.of(row)))}
    known = {row.id for row in rows}
    return (
        [row for row in _read(context, In("key", tuple(sorted(keys))), seen) if row.id not in known]
        if keys
        else []
    )


def _rows_about(context: Context, about: In) -> list[Key]:
    """Return the rows that are deleted with a memory, besides its history."""
    ids = [
        (kind, id_)
        for kind in (Kind.PASSAGE, Kind.USAGE, Kind.SIGHTING)
        for id_ in context.store.ids(kind, about)
    ]
    both = (about, In("target", about.values))
    links = {
        (kind, id_)
        for kind in (Kind.LINK, Kind.CONFLICT)
        for ends in both
        for id_ in context.store.ids(kind, ends)
    }
    return [Key(kind, id_) for kind, id_ in (*ids, *sorted(links))]


def _with_derived(
    context: Context, rows: list[Row], seen: dict[str, int]
) -> tuple[list[Memory], list[Memory]]:
    """Return the memories to erase, with those derived from them alone, and the memories that have
    other sources too.

    Adds to `seen` the versions under which all of them were read.
    """
    erased: dict[str, Memory] = {}
    derived: dict[str, Memory] = {}
    while rows:
        erased |= {row.id: Memory.of(row) for row in rows}
        next_rows = _read(context, In("sources", tuple(row.id for row in rows)), seen)
        derived |= {row.id: Memory.of(row) for row in next_rows}
        rows = [
            row
            for row in next_rows
            if row.id not in erased and not _survives(derived[row.id], erased.keys())
        ]
    return list(erased.values()), [memory for id_, memory in derived.items() if id_ not in erased]


def _survives(memory: Memory, erased: Set[str]) -> bool:
    """Return whether a memory has other sources; of a reflection, whether a statement of them is
    left.

    A learning from traces, or its skill, may quote any of them. It does not survive, and is drawn
    anew from the others.
    """
    if memory.sources and "learning_id" in memory.metadata:
        return False
    statements = learning.without_sources(memory, erased)
    return bool(set(memory.sources) - erased if statements is None else statements)


def _read(context: Context, where: In, seen: dict[str, int]) -> list[Row]:
    """Return the user's memories and skills that match, all read under the versions in `seen`.

    A memory that was changed, or moved to another partition, during the read would survive the
    erasure. So the versions come first, those of the reader's partitions by default, and rows are
    read again until no other partition appears.
    """
    own = all_of(equals("user_id", context.reader.user_id), where)
    # Counting is cheaper than reading rows, and a slow erasure loses every race against concurrent
    # writers.
    kinds = [kind for kind in CONTENTS if context.store.count(kind, own)]
    if not kinds:
        return []
    versions = {name: context.store.version(name) for name in partitions(context.reader)} | seen
    rows = [row for kind in kinds for row in context.store.find(kind, own)]
    while new := {row.partition for row in rows} - versions.keys():
        versions |= {name: context.store.version(name) for name in new}
        rows = [row for kind in kinds for row in context.store.find(kind, own)]
    seen.update({row.partition: versions[row.partition] for row in rows})
    return rows


@dataclass(frozen=True, slots=True)
class _Revised:
    """What keeps a memory that an erasure changes."""

    entry: Entry
    puts: Sequence[Row]
    deletes: Sequence[Key] = ()


def _without_sources(context: Context, memory: Memory, ids: Set[str]) -> _Revised:
    """Remove erased sources from a memory. Once its last source is erased, it is erased too."""
    left = [source for source in memory.sources if source not in ids]
    newer, change, entry = revise(
        context, context.clock(), memory, action="source_erased", sources=left
    )
    return _Revised(entry, [newer.row(replaces=memory.revision), change])


def _without_statements(
    context: Context, memory: Memory, statements: Sequence[Statement]
) -> _Revised:
    """Write a reflection anew with the statements that are left. Its vector, of the erased words
    too, is computed later."""
    ms, content, language = (
        context.clock(),
        learning.render(statements),
        context.options.stemmer_language,
    )
    metadata, keywords = (
        {**memory.metadata, "statements": learning.as_metadata(statements)},
        tokens(content, language=language),
    )
    # The words of the topic may be those of the erased memory.
    if not set(tokens(str(metadata.get("topic", "")), language=language)) <= set(keywords):
        del metadata["topic"]
    newer = replace(
        memory, content=content, metadata=metadata, keywords=keywords, vector=None,
        pending=memory.vector is not None,
        sources=[id_ for id_ in memory.sources if any(id_ in one.sources for one in statements)],
        fingerprint=None, revision=1, salt=context.ids.salt(), updated_at=iso(ms),
    )  # fmt: skip
    entry = retain_entry(context, ms, newer, "source_erased")
    return _Revised(entry, [newer.row(replaces=memory.revision)], _passage_keys(context, memory))


def _without_sightings(context: Context, kept: Kept) -> _Revised:
    """Remove sightings from a memory. If its past is erased too, it begins anew with its first
    revision."""
    ms, memory = context.clock(), kept.memory
    deletes = [Key(Kind.SIGHTING, row.id) for row in kept.removed]
    if not kept.purged:
        newer, change, entry = revise(context, ms, memory, action="sighting_erased", **kept.updates)
        return _Revised(entry, [newer.row(replaces=memory.revision), change], deletes)
    newer = replace(memory, **kept.updates, revision=1, salt=context.ids.salt(), updated_at=iso(ms))
    if newer.content != memory.content:  # its vector, of the erased words, is computed later
        keywords = tokens(newer.content, language=context.options.stemmer_language)
        newer = replace(
            newer,
            keywords=keywords,
            vector=None,
            pending=memory.vector is not None,
            fingerprint=None,
        )
        passages, dropped = list[Row](), _passage_keys(context, memory)
    else:
        passages, dropped = plan_passages(context, memory, newer, None)
    entry = retain_entry(context, ms, newer, "pass")
    return _Revised(entry, [newer.row(replaces=memory.revision), *passages], [*deletes, *dropped])


def _passage_keys(context: Context, memory: Memory) -> list[Key]:
    return [
        Key(Kind.PASSAGE, id_) for id_ in context.store.ids(Kind.PASSAGE, equals("ref", memory.id))
    ]


def _clear_receipt(row: Row) -> Row:
    """Return a receipt without its request. The key stays used, so that a late retry does not
    store the memory again."""
    fields = {name: value for name, value in row.fields.items() if name != "request"}
    return replace(row, fields=fields, revision=row.revision + 1, replaces=row.revision)


def _erasure_rows(
    context: Context,
    erased: Sequence[Memory],
    tombstones: Sequence[Block],
    revised: Sequence[Entry],
) -> list[Row]:
    """Return the erasure blocks for the reader's chain and for every chain with a tombstone, and
    the blocks of `revised`.

    The block of a memory that begins anew comes after its erasure block.
    """
    own = own_chain(context)
    rows: list[Row] = []
    for chain in sorted({own, *(tombstone.chain for tombstone in tombstones)}):
        here = [tombstone for tombstone in tombstones if tombstone.chain == chain]
        named: dict[str, list[tuple[str, str]]] = {memory.id: [] for memory in erased}
        for block in here:
            named[str(block.ref)].append((block.id, block.block_hash))
        # A tombstone without its erasure block looks like tampering, so it gets one even if audit
        # blocks are disabled.
        every = chain == own and (bool(here) or context.options.enable_yamo)
        entries = [
            _erasure_entry(context, chain, id_, lost)
            for id_, lost in named.items()
            if lost or every
        ]
        more = (
            needed_entries(context, [entry for entry in revised if entry.change])
            if chain == own
            else []
        )
        anew = [
            entry
            for entry in revised
            if not entry.change and (tombstones or context.options.enable_yamo)
        ]
        rows += audit_rows(context, chain, [*more, *entries, *(anew if chain == own else [])])
    return rows


def _erasure_entry(
    context: Context, chain: str, memory_id: str, tombstones: list[tuple[str, str]]
) -> Entry:
    ms = context.clock()
    write = partial(
        blocks.erase, agent=str(audit.owner_of(chain)[1]), erased_by=str(context.reader.agent_id),
        memory_id=memory_id, at=iso(ms), tombstones=tombstones,
    )  # fmt: skip
    return new_entry(context, "retain", ms, write, ref=memory_id, metadata=_ERASE)
