"""Prepare what a call stores: everything that is decided before the write."""

import json
from collections import defaultdict
from collections.abc import Container, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from memory_mesh.core import model
from memory_mesh.core.claims import Claim, Window, check_window, read_claim
from memory_mesh.core.errors import InvalidInput, KeyReused, shown
from memory_mesh.core.intake import (
    SINGLE,
    Author,
    Draft,
    NewText,
    Terms,
    Turn,
    best_trust,
    count_known,
    draft,
    every_sighting,
    fingerprint,
    fingerprints,
    normal_text,
    numbered,
    own_sighting,
    read_key,
    retired,
)
from memory_mesh.core.learning import added_heritage
from memory_mesh.core.model import (
    INT_MAX,
    Compare,
    In,
    Kind,
    Memory,
    MemoryType,
    Or,
    Receipt,
    Row,
    Sighting,
    Value,
    Where,
    all_of,
    batches,
    equals,
    iso,
)
from memory_mesh.core.ports import CheckingStore, Progress, no_progress
from memory_mesh.core.search import tokens
from memory_mesh.core.text import hides_value
from memory_mesh.flows.claims.claims import clean_claim
from memory_mesh.flows.context import Context, require_memory

if TYPE_CHECKING:
    pass


# --- idempotency keys ---
# A receipt, written with the memory, records the key and the request, so that a repeated call
# stores once.


def receipt_id(context: Context, key: str | None, *position: int) -> str | None:
    """Return the id of a key's receipt; None without a key.

    It differs by agent, session, position in a batch and, for a reader of one project only, by
    project: else a session could find out the keys and texts of another.
    """
    if key is None:
        return None
    if not isinstance(key, str) or not key.strip():
        raise InvalidInput(f"idempotency_key is {shown(key)}", expected="a non-empty text")
    reader = context.reader
    session = [] if reader.session_id is None else [[reader.session_id]]
    project = [{"project": reader.project}] if reader.only_project else []
    parts = [reader.user_id, reader.agent_id, *session, *project, key, *position]
    return "receipt_" + sha256(json.dumps(parts).encode()).hexdigest()


def request_hash(*parts: object) -> str:
    """Return a hash of a request, by which another request under the same key is detected."""
    return sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def replayed_id(receipt: Receipt, request: str) -> str:
    """Return the id of the memory that a key stored. Raise `KeyReused` if the request was
    another one or is erased."""
    if receipt.request is None:
        raise KeyReused(
            "the memory stored under this idempotency_key has been erased",
            remedy="use a new key to store it again",
        )
    if receipt.request != request:
        raise KeyReused(
            "this idempotency_key was used for another request",
            remedy="use a new key for a new request",
        )
    return receipt.ref


def find_replayed(context: Context, key: str | None, request: str, *position: int) -> str | None:
    """Return the id of the memory that an earlier call with this key stored; None for a first
    call."""
    id_ = receipt_id(context, key, *position)
    row = context.store.get(Kind.RECEIPT, [id_]).get(id_) if id_ else None
    return replayed_id(Receipt.of(row), request) if row else None


def receipt_rows(
    context: Context, key: str | None, memory_id: str, request: str, *position: int
) -> list[Row]:
    """Return the receipt of a call, to be written in the same transaction; empty without a key."""
    id_ = receipt_id(context, key, *position)
    if id_ is None:
        return []
    receipt = Receipt(id=id_, created_at=iso(context.clock()), ref=memory_id, request=request)
    return [receipt.row(model.partition(context.reader.user_id, context.reader.agent_id))]


# --- preparing a memory ---
# Validate, clean, and compute everything that does not depend on the store.

_CHECKED_AT_ONCE = 256  # items between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A valid, cleaned item. A message without a turn has neither fingerprint nor keywords: most
    messages of a list are known."""

    draft: Draft
    partition: str
    key: str | None = None  # the caller's own key, masked
    thread: int | None = None  # of a message: the list that it came in
    receipt_id: str | None = None  # with an idempotency key
    request: str = ""
    fingerprint: str = ""
    # By which the stored memory is found that it is counted as, or that it replaces (`found_by`):
    # the fingerprints of earlier versions are compared with the text.
    places: Sequence[tuple[str, str | None]] = ()
    keywords: list[str] = field(default_factory=list)
    claim: Claim | None = None
    terms: Terms = field(default_factory=Terms)

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of a conversation."""
        return (
            self.draft.columns.get("speaker") is not None
            or self.draft.columns.get("turn") is not None
        )

    def as_turn(self, context: Context, number: int) -> "Prepared":
        """Return a message as the turn with this number."""
        metadata, columns = (
            {**self.draft.metadata, "turn": number},
            {**self.draft.columns, "turn": number},
        )
        turn = replace(self.draft, metadata=metadata, columns=columns)
        return replace(self, draft=turn, **_derived(context, turn, None))


def prepare(
    context: Context, texts: Sequence[NewText], *, idempotency_key: str | None = None,
    request: str | None = None, progress: Progress = no_progress,
) -> list[Prepared]:  # fmt: skip
    """Validate and clean texts and their metadata. Raise `InvalidInput` for the first invalid one.

    A flow that generates the texts passes the hash of its own request.
    """
    prepared: list[Prepared] = []
    for batch in batches(enumerate(texts), _CHECKED_AT_ONCE):
        # Each step runs for the whole batch before the next step: that takes less time than text by
        # text.
        receipts = [
            receipt_id(context, idempotency_key, *([] if len(texts) == 1 else [at]))
            for at, _ in batch
        ]
        limits, gate, drafts = (
            context.limits,
            context.gates.content(),
            list[tuple[Draft, str | None]](),
        )
        for _, text in batch:
            with numbered("item", text.item):
                checked = draft(text.content, text.metadata, context.reader, limits, gate)
                drafts.append((checked, None if text.key is None else read_key(text.key)))
        parts = zip(batch, drafts, receipts, strict=True)
        prepared += [
            _prepare_one(context, text, *checked_, receipt, request)
            for (_, text), checked_, receipt in parts
        ]
        if len(texts) > 1:
            progress("checking", len(prepared), len(texts))
    context.step("flow.validated")
    if idempotency_key is None:
        return prepared
    # The messages of a list are repeated as a whole: which of them were new depends on what was
    # stored before.
    whole = request_hash(
        "messages",
        [[item.draft.content, item.draft.metadata] for item in prepared if item.thread is not None],
    )
    return [item if item.thread is None else replace(item, request=whole) for item in prepared]


def _prepare_one(
    context: Context,
    text: NewText,
    checked: Draft,
    key: str | None,
    receipt: str | None,
    request: str | None,
) -> Prepared:
    if text.trust is not None:
        checked = replace(checked, columns={**checked.columns, "trust": text.trust})
    with numbered("item", text.item):
        claim = _claim(context, text.terms, checked)
    if claim:
        session = (
            {"session_id": claim.session_id, "memory_type": MemoryType.SESSION.value}
            if claim.session_id
            else {}
        )
        checked = replace(checked, columns={**checked.columns, **claim.columns, **session})
    if context.options.enable_heritage_tracking:
        heritage = added_heritage(checked.metadata, context.options.max_heritage_depth)
        checked = replace(checked, columns={**checked.columns, "heritage_chain": heritage})
    if receipt and request is None:
        stated = [] if claim is None or text.terms.claim is None else [claim.columns]
        request = request_hash(
            "add",
            checked.content,
            checked.metadata,
            *([key] if key else []),
            *stated,
            *text.terms.supersedes,
        )
    derived = (
        {}
        if text.thread is not None and checked.columns["turn"] is None
        else _derived(context, checked, key)
    )
    return Prepared(
        draft=checked,
        partition=model.partition_for(
            context.reader.user_id, context.reader.agent_id, checked.memory_type, None
        ),
        key=key and context.gates.content().redact(key),
        thread=text.thread,
        receipt_id=receipt,
        request=request or "",
        claim=claim,
        terms=text.terms,
        **derived,
    )


def _claim(context: Context, terms: Terms, draft: Draft) -> Claim | None:
    """Return the claim of a text in its scope: only its session sees a memory of the type
    session, so its claim holds there."""
    if (claim := _statement(context, terms, draft)) is None:
        return None
    session = _text(draft, "session_id") if draft.memory_type == MemoryType.SESSION else None
    return replace(claim, session_id=claim.session_id or session, project=_text(draft, "project"))


def _statement(context: Context, terms: Terms, draft: Draft) -> Claim | None:
    """Return the claim that the caller gives, or the one in the text if claims are looked for."""
    own = Window(start=_text(draft, "valid_from"), end=_text(draft, "valid_until"))
    if terms.claim is not None:
        claim = read_claim(terms.claim, _text(draft, "session_id"))
        window = check_window(own) if claim.window == Window() else claim.window
        return clean_claim(context.gates.content(), replace(claim, window=window))
    if (terms.claims or context.options.claims) != "auto" or draft.memory_type == MemoryType.LESSON:
        return None
    from memory_mesh.core.claims.patterns import find_statement  # compiles many patterns

    found = find_statement(draft.content, speaker=_text(draft, "speaker") or context.reader.user_id)
    if found is None or hides_value(f"{found.subject} {found.predicate}"):
        return None
    at = _text(draft, "event_time") or model.iso(context.clock())
    start = own.start or (_beginning(found.since, at) if found.starts else None)
    end = own.end or (at if found.ended else None)
    if start and end and start > end:
        return None
    return Claim(
        subject=found.subject, predicate=found.predicate, value=found.value,
        exclusive=found.exclusive and not found.ended, window=Window(start=start, end=end),
        ended=found.ended,
    )  # fmt: skip


def _beginning(since: str | None, at: str) -> str:
    """Return when a statement of the time `at` begins: the latest day before it that `since` may
    mean, else `at`."""
    from memory_mesh.core.search.mentions import time_spans  # compiles many patterns

    moments = (
        [model.iso(round(day * model.DAY_MS)) for day, _ in time_spans(f"since {since}", at)]
        if since
        else []
    )
    return max((moment for moment in moments if moment <= at), default=at)


def _text(draft: Draft, name: str) -> str | None:
    value = draft.columns.get(name)
    return None if value is None else str(value)


def _derived(context: Context, draft: Draft, key: str | None) -> dict[str, Any]:
    """Return the fingerprints and the keywords of an item."""
    places: list[tuple[str, str | None]]
    if key:
        places = [(fingerprint(context.reader, draft, key), None)]
    else:
        text = normal_text(draft.content)
        places = [(each, text) for each in fingerprints(context.reader, draft)]
    # Lessons are compared by their pattern instead.
    deduplicated = context.options.deduplicate and draft.memory_type != MemoryType.LESSON
    return {
        "fingerprint": places[0][0],
        "places": places if deduplicated or key else (),
        "keywords": tokens(draft.content, language=context.options.stemmer_language),
    }


def may_assume_new(context: Context, prepared: Sequence[Prepared]) -> bool:
    """Return whether to write a text without having read what it depends on: a server store
    checks that with the write. Then an add is one round trip.

    An embedder of a service, which counts tokens by an estimate, gets no text that may be known.
    """
    if len(prepared) > 1 or not isinstance(context.store, CheckingStore):
        return False
    item, remote = prepared[0], getattr(context.models.embedder, "counts_too_many", False)
    is_plain = replace(item.terms, claims=None) == Terms() and item.claim is None
    return is_plain and item.key is None and item.thread is None and not remote


# --- turns of a conversation ---


def number_turns(
    context: Context, prepared: Sequence[Prepared], receipts: Container[str | None]
) -> list[Prepared]:
    """Give each new message the number of its turn, and leave out the messages that are stored
    already.

    A message with a receipt was stored by an earlier call with the same idempotency key: the others
    of its list were known then.
    """
    threads: dict[tuple[int | None, Where], list[int]] = defaultdict(list)
    for at, item in enumerate(prepared):
        if item.thread is not None and item.draft.columns["turn"] is None:
            threads[item.thread, _conversation(item)].append(at)
    stored: dict[Where, dict[int, Turn]] = {}
    known: set[int] = set()
    numbers: dict[int, int] = {}
    for (thread, conversation), places in threads.items():
        if replayed := {at for at in places if prepared[at].receipt_id in receipts}:
            known |= {*places} - replayed
            continue
        size = 0 if thread == SINGLE or context.is_program_data else len(prepared)
        if conversation not in stored:
            stored[conversation] = _read_turns(context, conversation, size)
        turns, given = (
            stored[conversation],
            [(at, Turn.of_draft(prepared[at].draft)) for at in places],
        )
        count = count_known([turn for _, turn in given], turns) if size else 0
        known.update(places[:count])
        last = max(turns, default=0)
        if last + len(places) >= INT_MAX:
            raise InvalidInput(
                f"the last turn has number {last}, and there are no larger ones",
                remedy="give that turn a smaller number, or the messages their own",
            )
        for number, (at, turn) in enumerate(given[count:], start=last + 1):
            numbers[at], turns[number] = number, turn
    every = ((item, numbers.get(at)) for at, item in enumerate(prepared) if at not in known)
    return [item if number is None else item.as_turn(context, number) for item, number in every]


def _conversation(item: Prepared) -> Where:
    """Return the condition that selects the turns of an item's conversation, whatever their
    status."""
    scope = {name: item.draft.columns[name] for name in ("session_id", "project")}
    same = (equals(name, None if value is None else str(value)) for name, value in scope.items())
    return all_of(equals("partition", item.partition), *same, Compare("turn", ">=", 0))


def _read_turns(context: Context, conversation: Where, size: int) -> dict[int, Turn]:
    """Return the last turn of a conversation and the first and last `size` ones, by number."""
    store = context.store
    # Numbers from 0 or 1 on are distinct, so the highest is at least their count less one, unless
    # the caller used one twice.
    lowest = Compare("turn", ">=", store.count(Kind.MEMORY, conversation) - 1)
    rows = store.find(Kind.MEMORY, all_of(conversation, lowest)) or store.find(
        Kind.MEMORY, conversation
    )
    if rows and size:
        last = max(int(str(row.value("turn"))) for row in rows)
        ends = Or((Compare("turn", "<=", size), Compare("turn", ">", last - size)))
        rows = store.find(Kind.MEMORY, all_of(conversation, ends))
    return {int(str(row.value("turn"))): Turn.of_row(row) for row in rows}


# --- sightings ---
# They say which agents and sessions stored the same text. `core.intake` decides about them.


def sightings(context: Context, memory_id: str) -> list[Sighting]:
    """Return who stored the text of a memory, oldest first, or raise `NotFound`."""
    memory = require_memory(context, memory_id)
    return every_sighting(memory, sightings_of(context, [memory_id]).get(memory_id, []))


def sightings_of(context: Context, memory_ids: Sequence[str]) -> dict[str, list[Sighting]]:
    """Return the stored sightings of memories, by memory."""
    found: dict[str, list[Sighting]] = {}
    for row in (
        context.store.find(Kind.SIGHTING, In("ref", tuple(memory_ids))) if memory_ids else ()
    ):
        found.setdefault(str(row.value("ref")), []).append(Sighting.of(row))
    return found


def retired_sightings(context: Context, before: Memory, memory: Memory) -> list[Row]:
    """Return the rows of the sightings of a memory that has another text or scope now: they saw
    what the history has."""
    if (before.fingerprint, before.session_id, before.content) == (
        memory.fingerprint,
        memory.session_id,
        memory.content,
    ):
        return []
    sightings = Sightings(context, [memory])
    sightings.replace(memory, Author.of(memory), at=memory.updated_at)
    return sightings.rows()


class Sightings:
    """The sightings of the memories that a write observes or replaces."""

    def __init__(self, context: Context, memories: Sequence[Memory]) -> None:
        self._stored = {
            row.id: row
            for rows in sightings_of(context, [one.id for one in memories]).values()
            for row in rows
        }
        self._partitions = {memory.id: memory.partition for memory in memories}
        self._current = dict(self._stored)

    def add(
        self, memory: Memory, author: Author, *, at: str, metadata: dict[str, Value], trust: Value
    ) -> None:
        """Count that an author stored the text of a memory once more."""
        own, id_ = own_sighting(memory), author.sighting_id(memory.id)
        self._partitions[memory.id] = memory.partition
        if own.id not in self._current:
            if id_ == own.id:
                return  # the columns of the memory say it all
            self._current[own.id] = own
        first = replace(
            own,
            id=id_,
            agent_id=author.agent_id,
            session_id=author.session_id,
            created_at=at,
            times_observed=0,
        )
        known = self._current.get(id_, first)
        given = trust if isinstance(trust, float) else None
        times, best = (
            known.times_observed + 1,
            best_trust(known.trust, given) if known.times_observed else given,
        )
        self._current[id_] = replace(
            known, times_observed=times, last_observed=at, trust=best, metadata=metadata
        )

    def replace(self, memory: Memory, author: Author, *, at: str) -> None:
        """Record that an author replaces a memory: what was stored before is only in its
        history."""
        if author != Author.of(memory):
            self._current.setdefault(own_sighting(memory).id, own_sighting(memory))
        self._current |= {
            id_: retired(row) for id_, row in self._current.items() if row.ref == memory.id
        }
        self.add(memory, author, at=at, metadata={}, trust=None)

    def rows(self) -> list[Row]:
        """Return the rows of the sightings that changed."""
        changed = [
            (row, self._stored.get(id_))
            for id_, row in self._current.items()
            if row != self._stored.get(id_)
        ]
        revisions = ((row, stored.revision if stored else 0) for row, stored in changed)
        return [
            replace(row, revision=revision + 1).row(self._partitions[row.ref], replaces=revision)
            for row, revision in revisions
        ]
