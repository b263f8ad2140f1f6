"""Prepare what a call stores: validate, clean, and compute everything that does not depend on the store."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from memory_mesh.core import model
from memory_mesh.core.claims import Claim, Window, check_window, read_claim
from memory_mesh.core.intake import (
    Draft,
    Limits,
    NewText,
    Terms,
    draft,
    fingerprint,
    fingerprints,
    normal_text,
    numbered,
    read_key,
)
from memory_mesh.core.learning import added_heritage
from memory_mesh.core.masks import hides_value
from memory_mesh.core.model import MemoryType, batches
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.search import tokens
from memory_mesh.flows.claims import clean_claim
from memory_mesh.flows.context import Context
from memory_mesh.flows.receipts import receipt_id, request_hash

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0

_CHECKED_AT_ONCE = 256  # items between two reports of progress


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A valid, cleaned item. A message without a turn has neither fingerprint nor keywords: most messages of a list are known."""

    draft: Draft
    partition: str
    key: str | None = None  # the caller's own key, masked
    thread: int | None = None  # of a message: the list that it came in
    receipt_id: str | None = None  # with an idempotency key
    request: str = ""
    fingerprint: str = ""
    same: tuple[str, ...] = ()  # the fingerprints of the stored memory that it is counted as, or that it replaces
    keywords: list[str] = field(default_factory=list)
    claim: Claim | None = None
    terms: Terms = field(default_factory=Terms)

    @property
    def is_turn(self) -> bool:
        """Whether it is a turn of a conversation."""
        return self.draft.columns.get("speaker") is not None or self.draft.columns.get("turn") is not None

    @property
    def needs_turn(self) -> bool:
        """Whether it is a message whose turn is not numbered by the caller."""
        return self.thread is not None and self.draft.columns["turn"] is None

    @property
    def places(self) -> list[tuple[str, str | None]]:
        """What the stored memory is found by (`found_by`): the fingerprints of earlier versions are compared with the text."""
        text = None if self.key else normal_text(self.draft.content)
        return [(each, text) for each in self.same]

    def as_turn(self, context: Context, number: int) -> "Prepared":
        """Return a message as the turn with this number."""
        metadata, columns = {**self.draft.metadata, "turn": number}, {**self.draft.columns, "turn": number}
        turn = replace(self.draft, metadata=metadata, columns=columns)
        return replace(self, draft=turn, **_derived(context, turn, None))


def prepare(
    context: Context, texts: Sequence[NewText], *, idempotency_key: str | None = None, request: str | None = None,
    progress: Progress = no_progress,
) -> list[Prepared]:  # fmt: skip
    """Validate and clean texts and their metadata. Raise `InvalidInput` for the first invalid one.

    A flow that generates the texts passes the hash of its own request.
    """
    prepared: list[Prepared] = []
    for batch in batches(enumerate(texts), _CHECKED_AT_ONCE):
        # Each step runs for the whole batch before the next step: that takes less time than text by text.
        receipts = [receipt_id(context, idempotency_key, *([] if len(texts) == 1 else [at])) for at, _ in batch]
        limits, gate = context.limits, context.gate()
        drafts = [_draft(context, text, limits, gate) for _, text in batch]
        parts = zip(batch, drafts, receipts, strict=True)
        prepared += [_prepare_one(context, text, *checked, receipt, request) for (_, text), checked, receipt in parts]
        if len(texts) > 1:
            progress("checking", len(prepared), len(texts))
    context.step("flow.validated")
    if idempotency_key is None:
        return prepared
    # The messages of a list are repeated as a whole: which of them were new depends on what was stored before.
    whole = request_hash("messages", [[item.draft.content, item.draft.metadata] for item in prepared if item.thread is not None])
    return [item if item.thread is None else replace(item, request=whole) for item in prepared]


def _draft(context: Context, text: NewText, limits: Limits, gate: "Layer0") -> tuple[Draft, str | None]:
    """Return a text with its metadata, and the caller's key, both checked."""
    with numbered("item", text.item):
        checked = draft(text.content, text.metadata, context.reader, limits, gate)
        return checked, None if text.key is None else read_key(text.key)


def _prepare_one(
    context: Context, text: NewText, checked: Draft, key: str | None, receipt: str | None, request: str | None
) -> Prepared:
    if text.trust is not None:
        checked = replace(checked, columns={**checked.columns, "trust": text.trust})
    with numbered("item", text.item):
        claim = _claim(context, text.terms, checked)
    if claim:
        session = {"session_id": claim.session_id, "memory_type": MemoryType.SESSION.value} if claim.session_id else {}
        checked = replace(checked, columns={**checked.columns, **claim.columns, **session})
    if context.options.enable_heritage_tracking:
        heritage = added_heritage(checked.metadata, context.options.max_heritage_depth)
        checked = replace(checked, columns={**checked.columns, "heritage_chain": heritage})
    if receipt and request is None:
        stated = [] if claim is None or text.terms.claim is None else [claim.columns]
        request = request_hash("add", checked.content, checked.metadata, *([key] if key else []), *stated, *text.terms.supersedes)
    derived = {} if text.thread is not None and checked.columns["turn"] is None else _derived(context, checked, key)
    return Prepared(
        draft=checked,
        partition=model.partition_for(context.reader.user_id, context.reader.agent_id, checked.memory_type, None),
        key=key and context.gate().redact(key),
        thread=text.thread,
        receipt_id=receipt,
        request=request or "",
        claim=claim,
        terms=text.terms,
        **derived,
    )


def _claim(context: Context, terms: Terms, draft: Draft) -> Claim | None:
    """Return the claim of a text in its scope: only its session sees a memory of the type session, so its claim holds there."""
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
        return clean_claim(context.gate(), replace(claim, window=window))
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
        subject=found.subject, predicate=found.predicate, value=found.value, exclusive=found.exclusive and not found.ended,
        window=Window(start=start, end=end), ended=found.ended,
    )  # fmt: skip


def _beginning(since: str | None, at: str) -> str:
    """Return when a statement of the time `at` begins: the latest day before it that `since` may mean, else `at`."""
    from memory_mesh.core.search.times import time_spans  # compiles many patterns

    moments = [model.iso(round(day * model.DAY_MS)) for day, _ in time_spans(f"since {since}", at)] if since else []
    return max((moment for moment in moments if moment <= at), default=at)


def _text(draft: Draft, name: str) -> str | None:
    value = draft.columns.get(name)
    return None if value is None else str(value)


def _derived(context: Context, draft: Draft, key: str | None) -> dict[str, Any]:
    """Return the fingerprints and the keywords of an item."""
    same: tuple[str, ...] = (fingerprint(context.reader, draft, key),) if key else fingerprints(context.reader, draft)
    # Lessons are compared by their pattern instead.
    deduplicated = context.options.deduplicate and draft.memory_type != MemoryType.LESSON
    keywords = tokens(draft.content, language=context.options.stemmer_language)
    return {"fingerprint": same[0], "same": same if deduplicated or key else (), "keywords": keywords}
