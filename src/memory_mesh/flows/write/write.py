"""Add and change memories: validate, clean, compare, embed, and write all that follows at once."""

from collections.abc import Collection, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.audit import Entry
from memory_mesh.core.claims import Claim, Outcome, Verdict, Window, judge_trust, trust_of
from memory_mesh.core.errors import InvalidInput, ModelMismatch, shown
from memory_mesh.core.intake import (
    Author,
    NewText,
    best_trust,
    draft,
    found_by,
    has_own_print,
    normal_text,
    read_content,
    read_metadata,
    updated_print,
)
from memory_mesh.core.lane import synced
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.model import (
    In,
    Key,
    Kind,
    Link,
    Memory,
    Reader,
    Receipt,
    Row,
    Status,
    Value,
    iso,
)
from memory_mesh.core.ports import Assumed, Progress, no_progress
from memory_mesh.core.search import tokens
from memory_mesh.flows.audit.chains import own_audit_rows, own_head, retain_entry
from memory_mesh.flows.claims.claims import NO_EFFECTS, Claims, Effects, check_alone, judge_named
from memory_mesh.flows.context import (
    LATEST,
    Context,
    Plan,
    already_read,
    check_texts,
    commit,
    intact,
    read_once,
    require_memory,
)
from memory_mesh.flows.graph import links as linking
from memory_mesh.flows.write.embed import (
    Embedded,
    Vectors,
    plan_passages,
)
from memory_mesh.flows.write.prepare import (
    Prepared,
    Sightings,
    find_replayed,
    may_assume_new,
    number_turns,
    prepare,
    receipt_rows,
    replayed_id,
    request_hash,
    retired_sightings,
)
from memory_mesh.flows.write.revisions import plan_revision, revise

NO_LINKS, NO_VERDICT = linking.Links(), Verdict()
_WINDOW = ("valid_from", "valid_until")
# What claims are compared by.
_COMPARED = ("memory_type", "session_id", "project", "claim", *_WINDOW)


def add(
    context: Context, texts: Sequence[NewText], *, deduplicate: object = None,
    idempotency_key: str | None = None, progress: Progress = no_progress,
) -> list[Memory]:  # fmt: skip
    """Store each text, or count it as observed again if it is known. Writes all of them or none.

    Return the memory of each text, and of each message that is new.
    """
    if deduplicate is not None:
        if not isinstance(deduplicate, bool):
            raise InvalidInput(f"deduplicate is {shown(deduplicate)}", expected="True or False")
        context = context.with_options(deduplicate=deduplicate)
    prepared = prepare(context, texts, idempotency_key=idempotency_key, progress=progress)
    vectors, attempts = Vectors(progress), count()

    def decide() -> Plan[list[Memory]]:
        if not next(attempts) and may_assume_new(context, prepared):
            with suppress(ModelMismatch):  # what is known of the store may be outdated
                return plan_add(context, prepared, vectors, is_new=True)
        return plan_add(context, prepared, vectors)

    return commit(context, decide) if prepared else []


# --- deciding ---


@dataclass(frozen=True, slots=True)
class Added:
    """A memory as it was stored, counted or replaced, and what followed from its claim."""

    memory: Memory
    is_new: bool = False
    effects: Effects = NO_EFFECTS
    links: tuple[Link, ...] = ()


@dataclass(slots=True)
class _Batch:
    """The decisions made so far for one call."""

    vectors: Vectors
    sightings: Sightings
    numbers: dict[str, int]  # the last number of each partition
    stored: dict[str, Memory]  # the known memories, as they are stored
    memories: dict[str, Memory]
    # With the text: fingerprints of earlier versions ignore case.
    by_fingerprint: dict[tuple[str, str | None], str]
    claims: Claims
    present: str
    entries: list[Entry] = field(default_factory=list)
    other_rows: list[Row] = field(default_factory=list)
    answers: list[Added] = field(default_factory=list)

    def known(self, item: Prepared) -> Memory | None:
        """Return the memory that an item would be stored as again, stored or earlier in this
        batch."""
        stated = tuple(item.draft.columns.get(name) for name in _WINDOW)
        for id_ in filter(None, map(self.by_fingerprint.get, item.places)):
            memory = self.memories[id_]
            own = Window(start=memory.valid_from, end=memory.valid_until)
            # Keys are compared by the fingerprint: what is stored of a key depends on the settings
            # of masking. No read shows a memory that is not valid: without a key, what the item
            # says would not be found.
            if (
                (memory.key is None) == (item.key is None)
                and memory.status == Status.ACTIVE
                and (item.key or (own.start, own.end) == stated or own.contains(self.present))
            ):
                return memory
        return None

    def judged(
        self, context: Context, memory: Memory, item: Prepared, verdict: Verdict, ms: int
    ) -> Effects:
        """Add the memories that a verdict on a new one changes, and return all that follows from
        it."""
        if not verdict.judgements and not item.terms.quarantine:
            return NO_EFFECTS
        effects = self.claims.effects(context, memory, verdict, self.memories, item.terms, ms)
        self.memories.update((changed.id, changed) for changed in effects.memories)
        self.other_rows += effects.rows
        self.entries += effects.entries
        return effects


def plan_add(
    context: Context, prepared: Sequence[Prepared], vectors: Vectors, *, is_new: bool = False
) -> Plan[list[Memory]]:
    """Decide what to write under the current state of the store. Vectors of an earlier attempt
    are reused. `is_new` assumes that no item is stored yet."""
    plan = plan_store(context, prepared, vectors, is_new=is_new)
    answer = [added.memory for added in plan.answer]
    return Plan(answer, plan.puts, plan.deletes, plan.seen, plan.assumed)


def plan_store(
    context: Context, prepared: Sequence[Prepared], vectors: Vectors, *, is_new: bool = False
) -> Plan[list[Added]]:
    """Return the plan of `plan_add`, with what followed from each item."""
    current = LATEST if is_new else context.store.data_version()
    version = context.store.version
    names = {item.partition for item in prepared}
    if any(item.claim or item.terms.evolves or item.terms.supersedes for item in prepared):
        # Those of the memories that these are compared with.
        names.update(model.partitions(context.reader))
    seen = {name: read_once(context, current, name, partial(version, name)) for name in names}
    ids = [item.receipt_id for item in prepared if item.receipt_id and not is_new]
    receipts = context.store.get(Kind.RECEIPT, ids)  # a new one that exists is a conflict
    prepared = number_turns(context, prepared, receipts)
    at = iso(context.clock())
    known = [] if is_new else _known(context, prepared, at)
    stored = {memory.id: memory for memory in known}
    claims = Claims(context, [item.claim for item in prepared])
    stored |= {memory.id: memory for memory in claims.stored}
    sightings = Sightings(context, list(stored.values()))
    batch = _Batch(
        vectors,
        sightings,
        dict(seen),
        stored,
        dict(stored),
        {found_by(memory): memory.id for memory in known},
        claims,
        at,
    )
    new = [
        item
        for item in prepared
        if _repeated(batch, item) is None and item.receipt_id not in receipts
    ]
    vectors.embed(context, [item.draft.content for item in new], current)
    context.step("flow.embedded")
    for item in prepared:
        _add_one(context, batch, item, receipts.get(item.receipt_id or ""))
    deletes: list[Key] = []
    memories: list[Row] = []
    for id_, memory in sorted(batch.memories.items()):
        if (before := stored.get(id_)) is not memory:
            passages, dropped = plan_passages(context, before, memory, vectors.get(memory.content))
            memories += [memory.row(replaces=before.revision if before else 0), *passages]
            deletes += dropped
    model_rows = vectors.model_rows(context) if memories else []
    linked = {
        added.memory.id: batch.memories[added.memory.id]
        for added, item in zip(batch.answers, prepared, strict=True)
        if added.is_new and item.terms.links
    }
    links = NO_LINKS
    if linked:
        links = linking.connect(context, list(linked.values()), context.clock())
    deletes += links.deletes
    puts = [
        *memories,
        *links.puts,
        *batch.other_rows,
        *batch.sightings.rows(),
        *model_rows,
        *own_audit_rows(context, batch.entries, current),
    ]
    pairs = zip(batch.answers, prepared, strict=True)
    answers = [
        _reported(added, item.draft.redactions, links.of.get(added.memory.id, ()))
        for added, item in pairs
    ]
    assumed = _assumed(context, prepared, vectors) if is_new else None
    return Plan(answers, puts, deletes, seen if puts else {}, assumed)


def _assumed(context: Context, prepared: Sequence[Prepared], vectors: Vectors) -> Assumed:
    """Return what a plan assumes that read only what this program knows."""
    head = own_head(context, LATEST) if context.options.enable_yamo else None
    return Assumed(
        [print_ for item in prepared for print_, _ in item.places],
        [*([head.row()] if head else []), *vectors.assumed_rows],
    )


def _known(context: Context, prepared: Sequence[Prepared], at: str) -> list[Memory]:
    """Return the active memories that items would be stored as again."""
    prints = {print_ for item in prepared for print_, _ in item.places}
    rows = intact(context, find_active(context, prints, at))
    # Of equal ones the last counts.
    rows.sort(key=lambda row: model.is_valid_in([(at, at)], row))
    # No block seals a fingerprint: with a forged one, a new text would be lost, or counted in
    # another scope.
    return [memory for memory in map(Memory.of, rows) if has_own_print(memory)]


def find_active(context: Context, fingerprints: Collection[str], at: str) -> list[Row]:
    """Return the memories with one of these fingerprints, of any scope that they stand for, that
    are active at a time."""
    if not fingerprints:
        return []
    rows = context.store.find(Kind.MEMORY, In("fingerprint", tuple(fingerprints)))
    return [
        row
        for row in rows
        if row.fields.get("status") == Status.ACTIVE and not model.is_expired(row, at)
    ]


def _reported(added: Added, redactions: dict[str, int], links: Sequence[Link]) -> Added:
    """Return the same with what the write masked, for its caller, and with its links."""
    memory = replace(added.memory, redactions=redactions) if redactions else added.memory
    return replace(added, memory=memory, links=tuple(links)) if redactions or links else added


def _add_one(context: Context, batch: _Batch, item: Prepared, receipt: Row | None) -> None:
    if receipt:
        id_ = replayed_id(Receipt.of(receipt), item.request)
        # A caller may write memories for a session that it cannot read, and repeats such a call
        # too: visibility is not checked.
        if id_ not in batch.memories:
            batch.memories[id_] = batch.stored[id_] = require_memory(context, id_, any_reader=True)
        batch.answers.append(Added(batch.memories[id_]))
        return
    ms = context.clock()
    verdict = _judge(context, batch, item, ms)
    effects = NO_EFFECTS
    if known := _repeated(batch, item, verdict):
        stated = (item.draft.content, item.draft.metadata)
        if item.key and (known.content, known.metadata) != stated:
            effects = batch.judged(
                context, replace(known, **_claim_columns(item)), item, verdict, ms
            )
            memory, change, entry = _replace(context, batch, item, known, ms, effects)
        else:
            if item.terms.supersedes:
                effects = batch.judged(context, known, item, verdict, ms)
            memory, change, entry = _observe(
                context, batch.sightings, item, known, ms, verdict, effects.superseded
            )
        batch.other_rows.append(change)
    else:
        batch.numbers[item.partition] += 1
        # It was known until an earlier item superseded what it repeats.
        if item.draft.content not in batch.vectors:
            batch.vectors.embed(context, [item.draft.content])
        memory = new_memory(
            context,
            item,
            batch.vectors[item.draft.content],
            ms=ms,
            number=batch.numbers[item.partition],
        )
        effects = batch.judged(context, memory, item, verdict, ms)
        if effects is not NO_EFFECTS:
            memory = replace(memory, status=effects.status, supersedes=list(effects.superseded))
        if "lane_version" in memory.metadata:
            memory = synced(memory)
        entry = retain_entry(context, ms, memory, "add")
    batch.claims.add(memory)
    batch.entries.append(entry)
    batch.memories[memory.id] = memory
    batch.by_fingerprint[found_by(memory)] = memory.id
    batch.answers.append(Added(memory, is_new=known is None, effects=effects))
    if item.receipt_id:
        used = Receipt(
            id=item.receipt_id, created_at=memory.created_at, ref=memory.id, request=item.request
        )
        batch.other_rows.append(used.row(memory.partition))


def _judge(context: Context, batch: _Batch, item: Prepared, ms: int) -> Verdict:
    """Compare the claim of an item with the stored ones."""
    trust = item.draft.columns.get("trust")
    own = trust if isinstance(trust, float) else BASE_TRUST[Source.INFERENCE]
    verdict = NO_VERDICT
    if item.claim:
        memories = batch.memories
        # A memory is not compared with what it replaces.
        if item.key and (replaced := batch.known(item)):
            memories = {**memories, replaced.id: replace(replaced, status=Status.ARCHIVED.value)}
        verdict = batch.claims.judge(item.claim, own, memories, ms, is_turn=item.is_turn)
    if item.terms.supersedes:
        named = judge_named(
            context, item.terms.supersedes, item.draft.content, own, batch.memories, ms
        )
        batch.stored |= {
            each.id: batch.memories[each.id] for each in named if each.id not in batch.stored
        }
        verdict = Verdict((*verdict.judgements, *named))
    if item.terms.evolves and not verdict.judgements:
        return _judge_related(context, batch, item, own, ms)
    return verdict


def _judge_related(
    context: Context, batch: _Batch, item: Prepared, trust: float, ms: int
) -> Verdict:
    """Compare an item with the stored memory that is most similar to it, and that it is to
    supersede."""
    vector = batch.vectors[item.draft.content].own if item.draft.content in batch.vectors else None
    similar = linking.find_similar(context, vector)
    related, cosine = next(
        ((batch.memories.get(each.id, each), cosine) for each, cosine in similar), (None, 0.0)
    )
    same = related is not None and normal_text(related.content) == normal_text(item.draft.content)
    if related is None or cosine < linking.RELATED or related.status != Status.ACTIVE or same:
        return NO_VERDICT
    batch.memories.setdefault(related.id, related)
    batch.stored.setdefault(related.id, related)
    what = f"it is the next version of this memory (similarity {cosine:.2f})"
    return Verdict((judge_trust(related.id, what, trust, trust_of(related, ms).value),))


def _repeated(batch: _Batch, item: Prepared, verdict: Verdict = NO_VERDICT) -> Memory | None:
    """Return the memory that an item is counted as or replaces; None if it is a new one."""
    if item.key:
        return batch.known(item)
    if item.terms.quarantine or (item.claim and not batch.claims.merges(item.claim)):
        return None
    if verdict.outcome is Outcome.CORROBORATE:
        # Only in the same scope: an agent's own words are not shown to others, nor is a shared
        # memory counted as a private one.
        same = (batch.memories[each.id] for each in verdict.judgements)
        scope = (item.partition, item.draft.memory_type)
        return next(
            (memory for memory in same if (memory.partition, memory.memory_type) == scope), None
        )
    return batch.known(item)


def plan_observation(context: Context, item: Prepared, known: Memory) -> Plan[Memory]:
    """Return the plan that counts a memory as observed once more, by an item that says the same
    in other words."""
    sightings, same = Sightings(context, [known]), replace(item, fingerprint=str(known.fingerprint))
    newer, change, entry = _observe(context, sightings, same, known, context.clock())
    return Plan(
        newer,
        [
            newer.row(replaces=known.revision),
            change,
            *sightings.rows(),
            *own_audit_rows(context, [entry]),
        ],
    )


def _observe(
    context: Context, sightings: Sightings, item: Prepared, known: Memory, ms: int,
    verdict: Verdict = NO_VERDICT, superseded: Sequence[str] = (),
) -> tuple[Memory, Row, Entry]:  # fmt: skip
    """Return the known memory as observed once more, its history row and its audit entry."""
    author, metadata, trust = (
        _author(context, item),
        item.draft.metadata,
        item.draft.columns.get("trust"),
    )
    # It says the same in other words, which are kept.
    if normal_text(item.draft.content) != normal_text(known.content):
        metadata = {**metadata, "content": item.draft.content}
    updates: dict[str, Any] = {"times_observed": known.times_observed + 1, "last_observed": iso(ms)}
    if superseded:
        updates["supersedes"] = [*known.supersedes, *superseded]
    if isinstance(trust, float):
        updates["trust"] = best_trust(known.trust, trust)
    if author == Author.of(known):
        # Metadata that differs is kept in the history. That of another author is kept with its
        # sighting, which can be erased.
        updates["detail"] = {
            key: value for key, value in metadata.items() if known.metadata.get(key) != value
        } or None
    elif known.expires_at:
        # What an author stores does not end with what another one stored for a shorter time.
        expires = item.draft.columns.get("expires_at")
        updates["expires_at"] = max(known.expires_at, str(expires)) if expires else None
    sightings.add(known, author, at=iso(ms), metadata=metadata, trust=trust)
    if verdict.outcome is Outcome.CORROBORATE:  # often in other words
        updates |= {"why": verdict.judgements[0].why, "corroborations": known.corroborations + 1}
        return revise(context, ms, known, action="corroborate", **updates)
    return revise(context, ms, known, action="observe", fingerprint=item.fingerprint, **updates)


def _claim_columns(item: Prepared) -> dict[str, Any]:
    """Return the columns of an item's claim; without one, as they are in a memory without a
    claim."""
    names = ("valid_from", "valid_until", "event_time")
    own = {name: item.draft.columns.get(name) for name in ("claim", "claim_key", *names)}
    return {**own, "corroborations": 1}


def _replace(
    context: Context, batch: _Batch, item: Prepared, known: Memory, ms: int, effects: Effects
) -> tuple[Memory, Row, Entry]:
    """Return the revision of a memory that an item with the same key replaces, its history row
    and its audit entry."""
    columns: dict[str, Any] = {
        "trust": None, **item.draft.columns, **_claim_columns(item),
        "agent_id": context.reader.agent_id, "status": effects.status,
        "supersedes": [*known.supersedes, *effects.superseded], "content": item.draft.content,
        "metadata": item.draft.metadata, "keywords": item.keywords, "key": item.key,
        "updated_at": iso(ms), "last_observed": iso(ms), "times_observed": 1,
    }  # fmt: skip
    if item.draft.content != known.content:
        batch.vectors.embed(context, [item.draft.content])
        embedded = batch.vectors[item.draft.content]
        columns |= {"vector": embedded.own, "pending": embedded.pending}
    batch.sightings.replace(known, _author(context, item), at=iso(ms))
    return revise(context, ms, known, action="replace", **columns)


def new_memory(
    context: Context, item: Prepared, vectors: Embedded, *, ms: int, number: int, **more: Any
) -> Memory:
    """Return the memory of a prepared item; `more` sets further columns."""
    at = iso(ms)
    columns: dict[str, Any] = {
        name: value for name, value in item.draft.columns.items() if value is not None
    }
    return Memory.new(
        id=context.ids.new("mem", ms),
        content=item.draft.content,
        metadata=item.draft.metadata,
        created_at=at,
        updated_at=at,
        user_id=context.reader.user_id,
        agent_id=context.reader.agent_id,
        last_observed=at,
        number=number,
        key=item.key,
        fingerprint=item.fingerprint,
        salt=context.ids.salt(),
        keywords=item.keywords,
        vector=vectors.own,
        pending=vectors.pending,
        sealed=context.options.enable_yamo,
        **{**columns, **more},
    )


def _author(context: Context, item: Prepared) -> Author:
    session_id = item.draft.columns["session_id"]
    return Author(context.reader.agent_id, None if session_id is None else str(session_id))


# --- changing ---


def update(
    context: Context, memory_id: str, *, content: object = None, metadata: object = None,
    why: str | None = None, key: str | None = None,
) -> Memory:  # fmt: skip
    """Change the content, the metadata or both. Metadata keys with the value None are removed;
    keys not given are kept."""
    if content is None and metadata is None:
        raise InvalidInput("nothing to update", expected="content, metadata or both")
    check_texts(id=memory_id, **({} if why is None else {"why": why}))
    gate, given = (
        context.gates.content(),
        None if content is None else read_content(content, context.limits),
    )
    text, keys = (
        None if given is None else gate.clean_content(given),
        read_metadata(metadata, context.limits),
    )
    changed = gate.clean_metadata(keys)
    request = request_hash("update", memory_id, text, changed)
    vectors = Vectors()

    def decide() -> Plan[Memory]:
        memory, seen, current = read_current(context, memory_id)
        if find_replayed(context, key, request):
            return Plan(memory)
        if memory.claim:  # it is compared with the claims in these
            owner = Reader(memory.user_id, memory.agent_id)
            seen |= {
                name: context.store.version(name)
                for name in model.partitions(owner)
                if name not in seen
            }
        plan = _plan_update(context, memory, text, changed, why, vectors, current)
        receipt = receipt_rows(context, key, memory_id, request)
        # A receipt alone would survive a concurrent erasure: the unchanged memory goes with it.
        unchanged = [memory.row(replaces=memory.revision)] if receipt and not plan.puts else []
        moved = linking.moved_changes(context, memory, plan.answer)
        return replace(plan, puts=[*plan.puts, *unchanged, *receipt, *moved], seen=seen)

    return _reported(
        Added(commit(context, decide)), gate.count((given, text), (keys, changed)), ()
    ).memory


def set_columns(context: Context, memory_id: str, *, action: str, **columns: Any) -> Memory:
    """Set columns of a memory (pinned, status, …). Nothing is written if they have these values
    already."""

    def decide() -> Plan[Memory]:
        memory, seen, current = read_current(context, memory_id)
        if _has(memory, columns):
            return Plan(memory)
        return replace(plan_revision(context, memory, current, action=action, **columns), seen=seen)

    return commit(context, decide)


def read_current(context: Context, memory_id: str) -> tuple[Memory, dict[str, int], Hashable]:
    """Return a memory, the version of its partition, and the data version.

    The revision is not enough: `reembed` replaces the vector without a new revision, and a
    concurrent change must not undo that.
    """
    current = context.store.data_version()
    seen = already_read(context, current)  # a version counts only if it was read before the memory
    while (memory := require_memory(context, memory_id)).partition not in seen:
        seen = {
            memory.partition: read_once(
                context, current, memory.partition, partial(context.store.version, memory.partition)
            )
        }
    return memory, {memory.partition: seen[memory.partition]}, current


def _plan_update(
    context: Context, memory: Memory, content: str | None, metadata: dict[str, Value],
    why: str | None, vectors: Vectors, data_version: Hashable,
) -> Plan[Memory]:  # fmt: skip
    removed = {name for name, value in metadata.items() if value is None}
    merged = {
        name: value
        for name, value in {**memory.metadata, **metadata}.items()
        if name not in removed
    }
    # The owner stays the same, also when another agent makes the change. A session_id in the
    # metadata replaces the old one.
    session, only = (
        None if "session_id" in metadata else memory.session_id,
        context.reader.only_project,
    )
    owner = Reader(
        memory.user_id, memory.agent_id, session, context.reader.project if only else None, only
    )
    new = draft(
        memory.content if content is None else content,
        merged,
        owner,
        context.limits,
        context.gates.content(),
    )
    merged_window = {name: new.columns[name] for name in _WINDOW}
    columns: dict[str, Any] = {
        name: value for name, value in new.columns.items() if _is_set(name, value, metadata)
    }
    columns |= {"content": new.content, "metadata": new.metadata}
    if _has(memory, columns):
        return Plan(memory)
    claim = {"claim": _moved_claim(memory, columns)} if new.content == memory.content else {}
    columns |= claim
    new = replace(
        new, columns={**{name: getattr(memory, name) for name in new.columns}, **claim, **columns}
    )
    columns["keywords"] = tokens(new.content, language=context.options.stemmer_language)
    columns["fingerprint"] = updated_print(memory.fingerprint, owner, new)
    at = iso(context.clock())
    if (
        memory.key
        and columns["fingerprint"] != memory.fingerprint
        and find_active(context, [columns["fingerprint"]], at)
    ):
        raise InvalidInput(
            f"another memory has the key {shown(memory.key)} there",
            remedy="delete that one first, or keep the type and the project",
        )
    if new.content != memory.content:
        vectors.embed(context, [new.content], data_version)
        columns |= {"vector": vectors[new.content].own, "pending": vectors[new.content].pending}
        # Another text may say something else.
        columns |= {"claim": None, "claim_key": None, "corroborations": 1}
        if memory.claim:
            columns |= {name: merged_window[name] for name in _WINDOW}
    elif memory.claim:
        check_alone(
            context,
            replace(memory, **{name: columns[name] for name in _COMPARED if name in columns}),
        )
    plan = plan_revision(
        context,
        memory,
        data_version,
        action="update",
        why=why,
        updated_at=at,
        **columns,
    )
    passages, deletes = plan_passages(context, memory, plan.answer, vectors.get(new.content))
    sightings = retired_sightings(context, memory, plan.answer)
    model_rows = vectors.model_rows(context) if vectors else []
    return replace(plan, puts=[*plan.puts, *model_rows, *passages, *sightings], deletes=deletes)


def _moved_claim(memory: Memory, columns: dict[str, Any]) -> Value:
    """Return the claim of a memory that an update may move to another session, or out of its
    session."""
    if (claim := Claim.of(memory)) is None:
        return memory.claim
    moved = replace(
        memory, **{name: columns[name] for name in ("memory_type", "session_id") if name in columns}
    )
    session = moved.session_id if moved.memory_type == model.MemoryType.SESSION else None
    return replace(claim, session_id=session).columns["claim"]


def _has(memory: Memory, columns: dict[str, Any]) -> bool:
    return all(getattr(memory, name) == value for name, value in columns.items())


def _is_set(name: str, value: Value, metadata: dict[str, Value]) -> bool:
    """Return whether the update sets this column; the others keep their values."""
    if name == "memory_type":
        return "type" in metadata
    if name in _WINDOW:  # a claim, or what ended it, may have set another one than the metadata
        return name in metadata
    return name in metadata or (value is not None and value != [])
