"""Move memories between stores: backups, exports as lines of JSON, and imports.

An import stores memories under their own ids and times. It runs through validation and redaction
like every write, writes a batch at once, and never changes a memory that is stored.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from pathlib import Path

from memory_mesh.core import audit, errors, learning, model
from memory_mesh.core.claims import Claim, Outcome, Window, check_window, read_claim, trust_of
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.graph import link
from memory_mesh.core.intake import (
    Draft,
    Terms,
    draft,
    file_print,
    fingerprint,
    folder_print,
    read_key,
    read_metadata,
)
from memory_mesh.core.intake.drafts import columns_of
from memory_mesh.core.model import (
    CONTENTS,
    Change,
    Copied,
    FailedLine,
    FileImport,
    Imported,
    In,
    Kind,
    Memory,
    MemoryType,
    Reader,
    Row,
    Sighting,
    Skill,
    batches,
    equals,
)
from memory_mesh.core.ports import Progress
from memory_mesh.core.search import tokens
from memory_mesh.core.transfer import export as transfer
from memory_mesh.core.transfer.export import Exported, check_id
from memory_mesh.core.transfer.foreign import ForeignLink, Item
from memory_mesh.flows.audit.chains import own_audit_rows, retain_entry
from memory_mesh.flows.claims.claims import COMPARED, Claims, clean_claim
from memory_mesh.flows.context import Context, Plan, commit, find_rows, intact, paged
from memory_mesh.flows.learning import lessons, skills
from memory_mesh.flows.learning.lessons import STORED, import_blocks
from memory_mesh.flows.search import reads, usage
from memory_mesh.flows.transfer import moving
from memory_mesh.flows.write.embed import Vectors, passage_rows
from memory_mesh.flows.write.prepare import sightings_of

_AT_ONCE = 500
_FILE = ("source_root", "source", "source_hash")  # the metadata of the memory of a file


def backup(context: Context, file: str, progress: Progress) -> model.BackedUp:
    """Copy the store to a new file."""
    target = Path(file).expanduser().absolute()
    return model.BackedUp(file=str(target), bytes=context.file.backup(target, progress))


# --- export ---


def export(context: Context, progress: Progress) -> Iterator[str]:
    """Yield the lines of all visible memories, and then of all visible skills, of every status,
    oldest first."""
    yield transfer.header()
    visible = model.visible_to(context.reader)
    ids = [
        id_
        for kind in CONTENTS
        for id_ in reversed([row.id for row in paged(context, kind, visible)])
    ]
    for done, batch in enumerate(batches(ids, _AT_ONCE)):
        rows = find_rows(context, batch)
        yield from (
            one.line()
            for one in _read(context, intact(context, [rows[id_] for id_ in batch if id_ in rows]))
        )
        progress("exporting", min((done + 1) * _AT_ONCE, len(ids)), len(ids))


def _read(context: Context, rows: Iterable[Row]) -> list[Exported]:
    """Return stored memories with what the reader may see of their history."""
    memories = _with_wire(context, [Memory.of(row) for row in rows])
    ids = [memory.id for memory in memories]
    histories: dict[str, list[Change]] = defaultdict(list)
    for row in context.store.find(Kind.CHANGE, In("ref", tuple(ids))):
        histories[str(row.value("ref"))].append(Change.of(row))
    sightings = sightings_of(context, ids)
    return [
        Exported(
            memory,
            model.since_visible(
                context.reader,
                memory,
                sorted(histories[memory.id], key=lambda change: change.number),
            ),
            sorted(
                sightings.get(memory.id, []),
                key=lambda sighting: (sighting.created_at, sighting.id),
            ),
        )
        for memory in usage.with_counts(context, memories)
    ]


def _with_wire(context: Context, memories: Sequence[Memory]) -> list[Memory]:
    """Return the memories, those of lessons with the texts of their blocks: an export has no
    blocks."""
    bare = [
        one.id
        for one in memories
        if one.memory_type == MemoryType.LESSON and learning.wire_text(one) is None
    ]
    texts = {
        id_: text
        for id_, text in lessons.block_texts(context, bare).items()
        if text != audit.ERASED
    }
    return [
        replace(one, metadata={**one.metadata, learning.WIRE: texts[one.id]})
        if one.id in texts
        else one
        for one in memories
    ]


# --- import ---


def import_memories(context: Context, lines: Iterable[object], progress: Progress) -> Imported:
    """Store the memories of an export. Raise `InvalidInput` if the first line is not that of an
    export."""
    context.check_enabled()
    given = errors.iterable("lines", lines, expected="the lines of an export, such as an open file")
    done = _import_items(context, "", transfer.read_lines(given), progress, is_export=True)
    return Imported(
        imported=done.memories, skipped=done.skipped.get(STORED, 0), failed=done.failed,
        redactions=done.redactions,
    )  # fmt: skip


def _import_items(
    context: Context, format_: str, items: Iterable[Item], progress: Progress, *, is_export: bool
) -> FileImport:
    """Store memories and links, a batch in one write. Without `is_export` they are those of another
    program: what is stored already is not compared with them."""
    total, links, done, skipped = Imported(), 0, 0, Counter[str]()
    for batch in batches(items, _AT_ONCE):
        for place, item in batch:
            if isinstance(item, InvalidInput):
                total += Imported(failed=(FailedLine(place, str(item)),))
        memories = [(place, item) for place, item in batch if isinstance(item, Exported)]
        if not is_export:
            memories = _new(context, memories, skipped)
        total += _import_batch(context, memories, is_export=is_export)
        found = [item for _, item in batch if isinstance(item, ForeignLink)]
        links += _store_links(context, found, skipped)
        done += len(batch)
        progress("importing", done, done)
    skipped[STORED] += total.skipped
    return FileImport(
        format=format_, memories=total.imported, links=links, skipped=dict(+skipped),
        failed=tuple(sorted(total.failed, key=lambda one: one.line)), redactions=total.redactions,
    )  # fmt: skip


def _import_batch(
    context: Context, batch: Sequence[tuple[int, Exported]], *, is_export: bool
) -> Imported:
    items, vectors, total = list[tuple[int, Exported]](), Vectors(), Imported()
    for line, given in batch:
        try:
            item, redactions = _cleaned(context, given if is_export else _owned(context, given))
        except InvalidInput as error:
            total += Imported(failed=(FailedLine(line, str(error)),))
            continue
        items.append((line, item))
        total += Imported(redactions=redactions)
    return total + commit(context, lambda: _plan_import(context, items, vectors))


def _cleaned(context: Context, given: Exported) -> tuple[Exported, dict[str, int]]:
    """Return a memory as it is stored, and how many values of each kind were masked in its
    content and metadata."""
    memory, gate = given.memory, context.gates.content()
    owner = Reader(context.reader.user_id, memory.agent_id, memory.session_id, memory.project)
    if memory.user_id != owner.user_id:
        what = (
            f"it belongs to user {shown(memory.user_id)}, and this mesh to {shown(owner.user_id)}"
        )
        raise InvalidInput(what, remedy="open the mesh of that user")
    if isinstance(memory, Skill):
        memory, redactions = skills.cleaned(context, memory)
    else:
        checked = draft(memory.content, memory.metadata, owner, context.limits, gate)
        redactions, keywords = (
            checked.redactions,
            tokens(checked.content, language=context.options.stemmer_language),
        )
        memory = replace(
            memory, content=checked.content, metadata=checked.metadata, keywords=keywords
        )
    texts = gate.clean_metadata(
        {name: getattr(memory, name) for name in ("tags", "category", "speaker", "heritage_chain")}
    )
    memory = replace(
        memory,
        **texts,  # type: ignore[arg-type]
        key=memory.key and gate.redact(memory.key),
        salt=context.ids.salt(),
    )
    if memory.claim:
        claim = clean_claim(gate, read_claim(memory.claim, None))
        columns = replace(
            claim,
            session_id=memory.session_id if memory.memory_type == MemoryType.SESSION else None,
        ).columns
        memory = replace(memory, claim=columns["claim"], claim_key=claim.key)  # type: ignore[arg-type]
        check_window(Window(start=memory.valid_from, end=memory.valid_until))
    memory = replace(memory, fingerprint=_print(owner, memory))
    if not model.visible(owner, memory.row()):  # also raises for what no store accepts
        raise InvalidInput(
            "no agent could see it: it has no agent_id or no session_id",
            expected="both, as its type needs",
        )
    history = [
        replace(
            change,
            before=gate.clean_metadata(change.before),
            detail=None if change.detail is None else gate.clean_metadata(change.detail),
            why=change.why and gate.redact(change.why),
        )
        for change in given.history
    ]
    sightings: list[Sighting] = []
    for sighting in given.sightings:
        metadata = gate.clean_metadata(read_metadata(sighting.metadata, context.limits))
        # Raises for what a memory cannot have: it may pass to this agent and session.
        columns_of(metadata, Reader(sighting.user_id, sighting.agent_id, sighting.session_id))
        sightings.append(replace(sighting, metadata=metadata))
    return Exported(memory, history, sightings), redactions


def _print(owner: Reader, memory: Memory) -> str:
    """Return the fingerprint by which `add`, `ingest_dir` and `ingest_skill` find the memory
    again."""
    if isinstance(memory, Skill):
        return skills.fingerprint_of(memory)
    columns = {column.name: getattr(memory, column.name) for column in fields(memory)}
    as_draft = Draft(content=memory.content, metadata=memory.metadata, columns=columns)
    root, source, hash_ = (memory.metadata.get(name) for name in _FILE)
    if memory.key is None and hash_ and isinstance(root, str) and isinstance(source, str):
        return file_print(folder_print(owner, root, memory.memory_type), source)
    return fingerprint(owner, as_draft, None if memory.key is None else read_key(memory.key))


def _plan_import(
    context: Context, items: Sequence[tuple[int, Exported]], vectors: Vectors
) -> Plan[Imported]:
    """Store the memories that are new. The answer counts them and the equal ones, and names
    those that cannot be stored."""
    readers = [
        Reader(item.memory.user_id, item.memory.agent_id) for _, item in items if item.memory.claim
    ]
    compared = {name for reader in readers for name in model.partitions(reader)}
    seen = {
        name: context.store.version(name)
        for name in compared | {item.memory.partition for _, item in items}
    }
    rows = find_rows(context, [item.memory.id for _, item in items])
    known = {one.memory.id: one for one in _read(context, rows.values())}
    key_used = _with_used_key(context, [item.memory for _, item in items])
    new: list[Exported] = []
    skipped, failed = 0, list[FailedLine]()
    for line, item in items:
        id_, stored = item.memory.id, known.get(item.memory.id)
        if stored and _same(item, stored):
            skipped += 1
        elif stored or id_ in key_used:
            what = (
                f"{id_} is stored with other values"
                if stored
                else f"another memory has the key {shown(item.memory.key)}"
            )
            failed.append(FailedLine(line, f"{what}; nothing was changed"))
        else:
            new.append(item)
            known[id_] = item
    vectors.embed(context, [item.memory.embedded_text for item in new])
    judged, conflicts = _judged(context, new)
    answer = Imported(imported=len(new), skipped=skipped, failed=tuple(failed))
    return Plan(
        answer, [*_rows(context, judged, vectors, dict(seen)), *conflicts], seen=seen if new else {}
    )


def _judged(context: Context, items: Sequence[Exported]) -> tuple[list[Exported], list[Row]]:
    """Return the memories as they are stored, and conflicts: one whose claim excludes an active
    memory's is quarantined.

    An import supersedes nothing: the file may be older than what is stored, and its trusts are not
    checked.
    """
    with_claims = [item.memory for item in items if item.memory.claim]
    readers = {
        agent: Reader(context.reader.user_id, agent)
        for agent in {memory.agent_id for memory in with_claims}
    }
    claims = {
        agent: Claims(replace(context, reader=reader), [Claim.of(memory) for memory in with_claims])
        for agent, reader in readers.items()
    }
    memories, ms = (
        {memory.id: memory for each in claims.values() for memory in each.stored},
        context.clock(),
    )
    judged, rows = list[Exported](), list[Row]()
    for item in items:
        memory, claim = item.memory, Claim.of(item.memory)
        if claim and memory.status in COMPARED:
            own = claims[memory.agent_id]
            verdict = own.judge(claim, trust_of(memory, ms).value, memories, ms, is_turn=True)
            if verdict.of(Outcome.QUARANTINE, Outcome.SUPERSEDE):
                effects = own.effects(
                    context, memory, verdict, memories, Terms(quarantine=True), ms
                )
                memory, rows = replace(memory, status=effects.status), [*rows, *effects.rows]
            memories[memory.id] = memory
            for agent, reader in readers.items():
                if memory.partition in model.partitions(reader):
                    claims[agent].add(memory)
        judged.append(replace(item, memory=memory))
    return judged, rows


def _with_used_key(context: Context, memories: Sequence[Memory]) -> set[str]:
    """Return the ids of the memories whose key another one has: a stored one, or one before it."""
    current = model.all_of(
        equals("status", model.Status.ACTIVE), model.not_expired(model.iso(context.clock()))
    )
    keyed = {
        memory.id: str(memory.fingerprint)
        for memory in memories
        if memory.key and current.matches(memory.row())
    }
    owners = {key: id_ for id_, key in reversed(keyed.items())}
    for row in (
        context.store.find(Kind.MEMORY, model.all_of(In("fingerprint", tuple(owners)), current))
        if owners
        else ()
    ):
        owners[str(row.value("fingerprint"))] = row.id
    return {id_ for id_, key in keyed.items() if owners[key] != id_}


def _same(*items: Exported) -> bool:
    ours, theirs = (
        replace(item, memory=replace(item.memory, access_count=0, last_accessed=None)).values()
        for item in items
    )
    return ours == theirs


def _rows(
    context: Context, items: Sequence[Exported], vectors: Vectors, numbers: dict[str, int]
) -> list[Row]:
    ms, rows, entries = context.clock(), list[Row](), []
    for item in items:
        place, embedded = item.memory.partition, vectors[item.memory.embedded_text]
        numbers[place] += 1
        memory = replace(
            item.memory, number=numbers[place], vector=embedded.own, pending=embedded.pending
        )
        changes = [change.row(place) for change in item.history]
        passages = passage_rows(memory, embedded) if memory.kind is Kind.MEMORY else []
        rows += [
            memory.row(),
            *changes,
            *passages,
            *(sighting.row(place) for sighting in item.sightings),
        ]
        if memory.access_count:
            at = memory.last_accessed or memory.created_at
            counted = model.Usage(
                id=memory.id,
                created_at=at,
                ref=memory.id,
                access_count=memory.access_count,
                last_accessed=at,
            )
            rows.append(counted.row(model.partition(memory.user_id, None)))
        entries.append(
            retain_entry(context, ms, memory, "import", changes[-1] if changes else None)
        )
    return [
        *rows,
        *(vectors.model_rows(context) if items else []),
        *own_audit_rows(context, entries),
    ]


# --- importing a file ---
# It is an export or an archive of memory-mesh, or the memories and links of another program.
# Memories that are stored already are skipped, so an import that was stopped can be run again.

TWICE, NO_END = "twice in the file", "an end of the link is not stored"


def import_file(context: Context, path: str, format_: str | None, progress: Progress) -> FileImport:
    """Import a file or folder; without a format, it is detected."""
    context.check_enabled()
    with context.files.open_import(path, format_) as file:
        if file.blocks is not None:
            return import_blocks(context, file.format, file.blocks, progress)
        if file.rows is None:
            return _import_items(
                context, file.format, file.items, progress, is_export=file.is_export
            )
        if file.is_fixed and moving.was_copied(context.store, file.rows):
            moving.with_vectors(context, Copied(source=file.rows.name), progress)
            return FileImport(format=file.format, skipped={STORED: file.rows.count()})
        copied = moving.with_vectors(context, moving.copy(context, file.rows, progress), progress)
        return FileImport(
            format=file.format, memories=copied.rows.get(Kind.MEMORY, 0), copied=copied
        )


def _new(
    context: Context, items: Sequence[tuple[int, Exported]], skipped: Counter[str]
) -> list[tuple[int, Exported]]:
    """Return the memories that are not stored yet, each once."""
    usable = [item.memory.id for _, item in items if item.memory.id.isprintable()]
    stored, new = find_rows(context, usable), dict[str, tuple[int, Exported]]()
    for place, item in items:
        id_, key = item.memory.id, item.memory.key
        known = id_ in stored or (key is not None and reads.named(context, None, key) is not None)
        if known or id_ in new:
            skipped[STORED if known else TWICE] += 1
        else:
            new[id_] = place, item
    return [*new.values()]


def _owned(context: Context, item: Exported) -> Exported:
    """Return a memory with the user and agent of the mesh where it has none."""
    memory, reader = item.memory, context.reader
    check_id(memory.id)
    return Exported(
        replace(
            memory,
            user_id=memory.user_id or reader.user_id,
            agent_id=memory.agent_id or reader.agent_id,
            vector=None,
        )
    )


def _store_links(context: Context, links: Sequence[ForeignLink], skipped: Counter[str]) -> int:
    """Store links between memories of the mesh's user, and return how many are new."""

    def decide() -> Plan[tuple[int, Counter[str]]]:
        ids = {id_ for one in links for id_ in (one.source_id, one.target_id)}
        rows = find_rows(context, sorted(ids), (Kind.MEMORY,))
        memories = {
            id_: Memory.of(row)
            for id_, row in rows.items()
            if row.value("user_id") == context.reader.user_id
        }
        seen = {
            memory.partition: context.store.version(memory.partition)
            for memory in memories.values()
        }
        left_out, made = Counter[str](), {}
        for one in links:
            if (
                not {one.source_id, one.target_id} <= memories.keys()
                or one.source_id == one.target_id
            ):
                left_out[NO_END] += 1
                continue
            source = memories[one.source_id]
            new = link(source, memories[one.target_id], one.link_type, context.clock()).row(
                source.partition
            )
            left_out[TWICE] += new.id in made
            made[new.id] = new
        known = context.store.get(Kind.LINK, [*made])
        left_out[STORED] += len(known)
        rows_ = [row for id_, row in made.items() if id_ not in known]
        return Plan((len(rows_), left_out), rows_, seen=seen if rows_ else {})

    if not links:
        return 0
    count, left_out = commit(context, decide)
    skipped.update(+left_out)
    return count


def restore(context: Context, path: str, progress: Progress) -> Copied:
    """Copy an archive, or a backup of a store, into the empty store of the context."""
    with context.files.open_import(path, None) as file:
        if file.rows is None:
            what = f"{path} has the format {file.format}, which is not a whole store"
            raise InvalidInput(
                what,
                expected="a backup, or a file of memory-mesh export --all",
                remedy="use import for it",
            )
        return moving.with_vectors(context, moving.copy(context, file.rows, progress), progress)
