"""Extraction: a language model draws memories from a text, and each passes the gate that every memory passes.

The model sees redacted text behind a fence; what it answers is checked like any input. Where there is no model, or it fails, or
its answer cannot be read, the text is stored whole instead: nothing that was given is lost.
"""

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from memory_mesh.core.cancel import check_cancelled
from memory_mesh.core.checks import fraction
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    CallRefused,
    CallTimedOut,
    InvalidInput,
    MemoryMeshError,
    RateLimited,
    Unreachable,
    UnsafeAddress,
)
from memory_mesh.core.intake.drafts import read_metadata
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import MIN_IMPORTANCE, Extraction, Memory, MemoryRecord, Receipt
from memory_mesh.core.ports import ChatModel
from memory_mesh.core.prompts import extraction
from memory_mesh.core.prompts.extraction import Extracted, Item
from memory_mesh.core.safety import BASE_TRUST, Source
from memory_mesh.core.safety.injection import InjectionKind, detect
from memory_mesh.core.scrubbing.chunks import chunks
from memory_mesh.core.text import estimate
from memory_mesh.flows import receipts
from memory_mesh.flows.context import Context, Plan, commit, memory_row, must_be_enabled, unknown
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.write import Prepared, decide_add, read_items

WHOLE_IMPORTANCE = 0.5
_NEVER_TAKEN = (401, 403, 404)  # a wrong key, address or model
_PAGE = 100  # receipts that are looked up at once
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What was asked for, and what goes with each memory."""

    least: float
    given: Mapping[str, object]
    request: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Piece:
    """What one piece of the text gave: memories, or the reason why it is stored as it is."""

    text: str
    drawn: tuple[Prepared, ...] = ()
    dropped: int = 0
    unusable: int = 0
    failed: str | None = None
    hopeless: bool = False  # the next piece would fail in the same way


def extract(
    context: Context, text: object, *, min_importance: object = MIN_IMPORTANCE, metadata: object = None, key: str | None = None
) -> Extraction:
    """Draw memories from a text and store them, all or none; those below `min_importance` are dropped."""
    must_be_enabled(context)
    least = fraction("min_importance", min_importance)
    # All that can be wrong with what was given is told before a model is paid for reading it.
    read = read_items(context, [(text, metadata)])[0].draft
    read_metadata({**_AS_DOCUMENT, **read.metadata, "flagged": list(InjectionKind)}, context.limits)
    call = _Call(least=least, given=read.metadata, request=receipts.request("extract", read.content, read.metadata, least))
    if before := _stored(context, key, call.request):
        return Extraction(memories=_records(before), repeated=True)
    pieces = _pieces(context, read.content, call)
    wanted = [*chain.from_iterable(piece.drawn for piece in pieces), *_whole(context, pieces, call)]
    memories, repeated = _store(context, wanted, key, call.request)
    return Extraction(
        memories=_records(memories),
        dropped=sum(piece.dropped for piece in pieces),
        unusable=sum(piece.unusable for piece in pieces),
        stored_whole=next((piece.failed for piece in pieces if piece.failed), None),
        flagged=_flags(str(text), read.content),
        repeated=repeated,
    )


def _pieces(context: Context, text: str, call: _Call) -> list[_Piece]:
    if context.chat is None:
        return [_Piece(text=text, failed="no language model is set")]
    pieces = list(_read(context, context.chat, text, call))
    return pieces if any(not piece.failed for piece in pieces) else [replace(pieces[0], text=text)]


def _read(context: Context, chat: ChatModel, text: str, call: _Call) -> Iterator[_Piece]:
    """Piece by piece. Where the model cannot be had at all, nobody waits for it again: a long text has a hundred pieces."""
    last = _Piece(text="")
    for piece in _cut(context, text):
        last = replace(last, text=piece) if last.hopeless else _asked(context, chat, piece, call)
        yield last


def _cut(context: Context, text: str) -> Iterator[str]:
    """The text in pieces that the model can read at once; nearly always itself."""
    most = context.options.llm_input_tokens
    if estimate(text) <= most:
        yield text
        return
    rules = replace(context.layer0.scrub.chunking, heading_aware=False, min_tokens=1, max_tokens=most, hard_max_tokens=most)
    for chunk in chunks(text, rules, estimate):
        yield chunk.text


def _asked(context: Context, chat: ChatModel, text: str, call: _Call) -> _Piece:
    check_cancelled()
    try:
        reply = chat.reply(extraction.build_prompt(text, context.ids.salt(), max_tokens=context.options.answer_tokens))
        return _usable(context, text, extraction.read_reply(reply), call)
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        _log.warning("extract: stored as it is, because %s", error)
        return _Piece(text=text, failed=error.what, hopeless=_hopeless(error))


def _hopeless(error: MemoryMeshError) -> bool:
    if isinstance(error, CallRefused):
        return error.status in _NEVER_TAKEN
    return isinstance(error, Unreachable | UnsafeAddress | CallTimedOut | RateLimited | BudgetSpent)


def _usable(context: Context, text: str, found: Extracted, call: _Call) -> _Piece:
    """What the gate takes of an answer. Where it takes nothing, the answer is as good as none."""
    kept = [item for item in found.items if item.importance >= call.least]
    drawn = tuple(wanted for item in kept if (wanted := _drawn(context, item, call)))
    unusable = found.skipped + len(kept) - len(drawn)
    if unusable and not drawn:
        raise AnswerUnreadable("nothing that the model said could be used", expected="memories of the form that was asked for")
    return _Piece(text=text, drawn=drawn, dropped=len(found.items) - len(kept), unusable=unusable)


def _drawn(context: Context, item: Item, call: _Call) -> Prepared | None:
    """The item through the gate. One that does not pass is the model's fault, and must not cost the others."""
    try:
        return read_items(
            context, [(item.text, _notes(item, call.given))], request=call.request, trust=BASE_TRUST[Source.INFERENCE]
        )[0]
    except InvalidInput:
        return None


def _notes(item: Item, given: Mapping[str, object]) -> dict[str, object]:
    notes = {**given, "category": item.category, "importance": item.importance, "provenance": {"source": Source.INFERENCE.value}}
    tags = given.get("tags")
    if item.tags or tags:
        notes["tags"] = list(dict.fromkeys([*(tags if isinstance(tags, list) else []), *item.tags]))
    return _flagged(item.text, notes)


_AS_DOCUMENT: Mapping[str, object] = {"importance": WHOLE_IMPORTANCE, "provenance": {"source": Source.DOCUMENT.value}}


def _whole(context: Context, pieces: Sequence[_Piece], call: _Call) -> list[Prepared]:
    pairs = [(piece.text, _flagged(piece.text, {**_AS_DOCUMENT, **call.given})) for piece in pieces if piece.failed]
    # They passed the gate. A mask may be longer than what it hides, and that is no reason to refuse them now.
    roomy = context.with_options(max_content_chars=max([context.limits.content_chars, *(len(text) for text, _ in pairs)]))
    return read_items(roomy, pairs, request=call.request, trust=BASE_TRUST[Source.DOCUMENT])


def _flagged(text: str, notes: dict[str, object]) -> dict[str, object]:
    flags = _flags(text)
    return {**notes, "flagged": list(flags)} if flags else notes


def _flags(*texts: str) -> tuple[str, ...]:
    """The kinds of instructions in a text. Cleaning takes some away and uncovers others: both forms of it are looked at."""
    return tuple(sorted({str(finding.kind) for text in set(texts) for finding in detect(text)}))


def _store(context: Context, wanted: Sequence[Prepared], key: str | None, asked: str) -> tuple[list[Memory], bool]:
    placed = [replace(item, receipt_id=receipts.receipt_id(context, key, at)) for at, item in enumerate(wanted)]
    made = Vectors()

    def decide() -> Plan[tuple[list[Memory], bool]]:
        # Another process may have made the same call meanwhile, and its model may have said something else.
        if before := _stored(context, key, asked):
            return Plan((before, True))
        plan = decide_add(context, placed, made)
        return Plan((plan.answer, False), plan.puts, plan.deletes, plan.seen)

    answer, _ = commit(context, decide)
    return answer


def _stored(context: Context, key: str | None, asked: str) -> list[Memory]:
    """What an earlier call under this key stored."""
    if key is None:
        return []
    receipts.repeated(context, key, asked)  # a plain `add` under this key is another request
    found: list[Memory] = []
    while True:
        ids = [str(receipts.receipt_id(context, key, at)) for at in range(len(found), len(found) + _PAGE)]
        held = context.store.get(Kind.RECEIPT, ids)
        page = [receipts.stored(Receipt.of(held[id_]), asked) for id_ in ids if id_ in held]
        found += [_kept(context, memory_id) for memory_id in page]
        if len(page) < _PAGE:
            return found


def _kept(context: Context, memory_id: str) -> Memory:
    row = memory_row(context, memory_id)
    if row is None:
        raise unknown(context, memory_id)
    return Memory.of(row)


def _records(memories: Sequence[Memory]) -> tuple[MemoryRecord, ...]:
    """Each memory once: a model may say the same in two ways that the gate reads as one."""
    return tuple(memory.record() for memory in {memory.id: memory for memory in memories}.values())
