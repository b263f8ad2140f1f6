"""Capture what the transcript of a session teaches, and find stored memories that are junk.

Only what is new since the last run is read. A cursor for each session names the messages that were
read. It is written together with the memories, so that a run that is killed loses nothing and
captures nothing twice. What is kept is stored by the same plan as `lane.store`.
"""

import json
import logging
import re
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from os import PathLike, fstat
from pathlib import Path
from typing import Any

from memory_mesh.core import model
from memory_mesh.core.claims import base_trust
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    InvalidInput,
    MemoryMeshError,
    NotFound,
    iterable,
    one_of,
    shown,
    whole_number,
)
from memory_mesh.core.intake import NewText, Terms
from memory_mesh.core.intake.similar import same_words, says_the_same
from memory_mesh.core.lane import NewLaneMemory
from memory_mesh.core.language.capture import (
    CaptureReport,
    Judgement,
    JunkFound,
    NotKept,
    Transcript,
    WouldKeep,
)
from memory_mesh.core.language.capture.classify import (
    RECALLED,
    Judge,
    judge_with_vectors,
    judge_without_vectors,
    model_of_vectors,
    normalized,
    why_not,
    why_stored_is_junk,
)
from memory_mesh.core.language.capture.extract import (
    CURSOR,
    Captured,
    Message,
    captured,
    extract,
    is_grounded,
)
from memory_mesh.core.language.prompts import capture as prompt
from memory_mesh.core.language.safety import Source
from memory_mesh.core.model import (
    Kind,
    Memory,
    MemoryType,
    Meta,
    Status,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.search import tokens
from memory_mesh.core.text import estimate
from memory_mesh.flows.context import Context, Plan, check_texts, commit, intact, paged
from memory_mesh.flows.search.readable import readable, records
from memory_mesh.flows.write.conversations import end_session
from memory_mesh.flows.write.embed import Vectors, embed_texts
from memory_mesh.flows.write.prepare import prepare
from memory_mesh.flows.write.revisions import archive
from memory_mesh.flows.write.write import Added, plan_store
from memory_mesh.system import open_regular

# --- transcripts ---
# Lines are read one by one, so that a file of any size needs little memory.

_MAX_BYTES = 2**30  # of a file, which is read from its start in every run
_MAX_LINE_BYTES = 2**24  # a longer one contains a picture or a whole file, and is skipped
_CHUNK_BYTES = 2**16


def open_transcript(path: str | PathLike[str]) -> Transcript:
    """Return the messages of a file in any form that `Transcript` reads. Raise `InvalidInput` if
    it cannot be opened."""
    lines = _lines(path)
    next(lines)  # opens the file
    return Transcript(lines)


def _lines(path: str | PathLike[str]) -> Iterator[str]:
    try:
        with open_regular(Path(path).expanduser()) as file:
            _check_size(fstat(file.fileno()).st_size)
            yield ""
            while line := file.readline(_MAX_LINE_BYTES):
                if len(line) < _MAX_LINE_BYTES or line.endswith(b"\n"):
                    yield line.decode("utf-8", "replace")
                else:
                    while line and not line.endswith(b"\n"):
                        line = file.readline(_CHUNK_BYTES)
                    yield "{ too long"
    except (OSError, ValueError, RuntimeError) as error:
        # Too large; a NUL in the path; the home of an unknown user.
        why = error.strerror if isinstance(error, OSError) else str(error)
        expected = "the JSON lines of Claude Code, or an export of opencode"
        raise InvalidInput(
            f"the transcript {shown(str(path), max_length=120)} cannot be read: {why}",
            expected=expected,
        ) from None


def _check_size(size: int) -> None:
    if size > _MAX_BYTES:
        raise ValueError(f"it has {size:,} bytes, more than {_MAX_BYTES:,}")


# --- a run of capture ---

IDLE, DELETED = "session.idle", "session.deleted"
EVENTS = (IDLE, DELETED)
MAX_NEW_CHARS = 2_000_000  # of user and assistant that one run judges; the next run continues
# Of a message that are read; one that is longer than 20,000 counts as a pasted document.
MAX_MESSAGE_CHARS = 25_000
MAX_KEPT, MAX_NOT_KEPT = 200, 500
_MAX_DIGESTS = 20_000  # of the last messages; those before them count as read
_DIGEST_LENGTH = 12
_NEAREST = 5
_log = logging.getLogger("memory_mesh")


@dataclass(slots=True)
class _Run:
    """The reading of one transcript."""

    seen: set[str]
    # Messages before this number count as read: their digests are not kept any more.
    skip_before: int
    read: list[str] = field(default_factory=list)  # digests of the new messages
    by_number: dict[int, str] = field(default_factory=dict)  # digests of the messages with memories
    chars: int = 0
    stopped: bool = False


def on_session_event(
    context: Context,
    event: object,
    transcript: object,
    *,
    session_id: str | None = None,
    progress: Progress = no_progress,
) -> CaptureReport:
    """Store what the new messages of a transcript say that is worth keeping. `session.deleted`
    also ends the session."""
    kind = one_of("event", event, EVENTS)
    session = context.reader.session_id if session_id is None else session_id
    if session is not None:
        check_texts(session_id=session)
    context.check_enabled()
    report = _capture(context, _messages(transcript), session, progress)
    if kind == DELETED and session is not None:
        try:
            report = replace(report, archived=list(end_session(context, session).archived))
        except NotFound:  # nothing was stored in the session
            return report
    return report


def judge(context: Context, messages: object) -> Judgement:
    """Return what the deterministic extractor would keep of some messages, and why not the rest.
    Nothing is stored or sent."""
    # Servers offer this, and must not open files for their clients.
    if isinstance(messages, str | PathLike):
        raise InvalidInput(
            "messages is a text", expected="a list of messages with role and content"
        )
    run = _Run(seen=set(), skip_before=0)
    judgement = Judgement()
    numbered = _numbered(_messages(messages), run, context.gates.content().redact)
    for each in extract(numbered, judge=_judge(context)):
        if isinstance(each, Captured) and len(judgement.kept) < MAX_KEPT:
            judgement.kept.append(
                WouldKeep(each.content, each.memory_type, each.confidence_score, each.message)
            )
        elif isinstance(each, NotKept) and len(judgement.not_kept) < MAX_NOT_KEPT:
            judgement.not_kept.append(each)
    return judgement


def _messages(transcript: object) -> Transcript:
    """Return the messages of a file, of an opened transcript or of a list."""
    if isinstance(transcript, Transcript):
        return transcript
    if isinstance(transcript, str | PathLike):
        return open_transcript(transcript)
    expected = "the path of a transcript, or a list of messages with role and content"
    given = iterable("transcript", transcript, expected=expected)

    def lines() -> Iterator[str]:
        for message in given:
            if not isinstance(message, Mapping):
                raise InvalidInput(f"a message is {type(message).__name__}", expected=expected)
            try:
                yield json.dumps(message, default=str)
            except (ValueError, RecursionError):
                raise InvalidInput(
                    "a message cannot be written as JSON", expected=expected
                ) from None

    return Transcript(lines())


def _capture(
    context: Context, transcript: Transcript, session: str | None, progress: Progress
) -> CaptureReport:
    name = f"{CURSOR}{json.dumps([context.reader.user_id, session])}"
    cursor = Meta.read(context.store, name).detail
    stored, count = _digests(cursor), int(str(cursor.get("count", 0)))
    run = _Run(seen=set(stored), skip_before=max(0, count - len(stored)))
    found, not_kept = list[Captured](), list[NotKept]()
    for each in _extracted(context, _numbered(transcript, run, context.gates.content().redact)):
        if isinstance(each, Captured) and len(found) < MAX_KEPT:
            found.append(each)
        elif isinstance(each, NotKept) and len(not_kept) < MAX_NOT_KEPT:
            not_kept.append(each)
    context.step("flow.captured")
    if not run.read:
        return CaptureReport(not_kept=not_kept, cursor=count, note=_note(run, transcript))
    texts = list[tuple[int, NewText]]()
    for each in found:
        # It repeats what it was shown.
        if each.role == "assistant" and _says_it(_similar(context, each.content), each):
            not_kept.append(NotKept(each.content, RECALLED, each.message))
        else:
            texts.append(
                (
                    each.message,
                    _new_text(
                        context, each, _says_it(_shared(context, each.content), each), session
                    ),
                )
            )
    vectors = Vectors(progress)

    def decide() -> Plan[tuple[list[Added], int]]:
        meta = Meta.read(context.store, name)
        # Another process may have captured the same messages meanwhile.
        known = set(_digests(meta.detail))
        new = [text for message, text in texts if run.by_number[message] not in known]
        digests = [*_digests(meta.detail), *(digest for digest in run.read if digest not in known)]
        read = int(str(meta.detail.get("count", 0))) + len(digests) - len(_digests(meta.detail))
        row = meta.row(
            {"count": read, "digests": "".join(digests[-_MAX_DIGESTS:])}, at=iso(context.clock())
        )
        if not new:
            return Plan(([], read), [row])
        plan = plan_store(context, prepare(context, new), vectors)
        return Plan((plan.answer, read), [*plan.puts, row], plan.deletes, plan.seen)

    added, read = commit(context, decide)
    return CaptureReport(
        kept=records(context, list({each.memory.id: each.memory for each in added}.values())),
        not_kept=not_kept,
        superseded=[id_ for each in added for id_ in each.effects.superseded],
        new_messages=len(run.read),
        cursor=read,
        note=_note(run, transcript),
    )


def _digests(detail: Mapping[str, Any]) -> list[str]:
    text = str(detail.get("digests", ""))
    return [text[at : at + _DIGEST_LENGTH] for at in range(0, len(text), _DIGEST_LENGTH)]


def _note(run: _Run, transcript: Transcript) -> str | None:
    notes = [f"{transcript.skipped} lines could not be read"] if transcript.skipped else []
    if run.stopped:
        notes.append(
            f"read {len(run.read):,} new messages, the most of one run; the next run continues"
        )
    return "; ".join(notes) or None


def _numbered(transcript: Transcript, run: _Run, redact: Callable[[str], str]) -> Iterator[Message]:
    """Yield the messages, marked as new if no earlier run read them. The digest of a message
    depends on the one before it.

    New ones are redacted here: masking would not find a value of which only a part is quoted, or
    that became an entity. For the same reason more is redacted of a long one than is read.
    """
    before = ""
    for number, message in enumerate(transcript):
        role, content = message["role"], message["content"]
        own = message.get("id") or before
        digest = sha256(f"{own}\0{role}\0{content}".encode(errors="replace")).hexdigest()[
            :_DIGEST_LENGTH
        ]
        before = f"{role}\0{content[:1000]}"
        is_new = number >= run.skip_before and digest not in run.seen
        content = content[: 2 * MAX_MESSAGE_CHARS]
        if is_new and role in ("user", "assistant"):
            content = redact(content)
            run.chars += len(content)
            if run.chars > MAX_NEW_CHARS and run.read:
                run.stopped = True
                return
        if is_new:
            run.read.append(digest)
            run.by_number[number] = digest
        yield Message(number, role, content[:MAX_MESSAGE_CHARS], is_new)


# --- what is kept ---


def _new_text(
    context: Context, found: Captured, known: Memory | None, session: str | None
) -> NewText:
    """Return the text to store: that of the known memory if there is one, which is counted as
    observed again."""
    source = Source.USER_EXPLICIT if found.role == "user" else Source.INFERENCE
    provenance = {"source": source.value, "extracted_by": "capture"}
    content = known.content if known else found.content
    new = NewLaneMemory(
        memory_type=found.memory_type, confidence_score=found.confidence_score,
        entity_slugs=found.entities, source_chunk=found.source_chunk,
        metadata={} if session is None else {"session_id": session},
    )  # fmt: skip
    corrected = _corrected(context, found) if found.memory_type == "correction" else None
    terms = Terms(supersedes=(corrected.id,) if corrected else ())
    return NewText(
        content,
        {**new.checked(content, context.gates.content().redact), "provenance": provenance},
        base_trust(provenance),
        terms=terms,
    )


def _says_it(memories: Sequence[Memory], found: Captured) -> Memory | None:
    return next(
        (memory for memory in memories if says_the_same(memory.content, found.content)), None
    )


def _shared(context: Context, text: str) -> list[Memory]:
    """Return the similar memories of the reader's project that every agent sees: only their
    words may be captured again."""
    found = _similar(context, text, equals("project", context.reader.project))
    return [
        memory
        for memory in found
        if model.reach_of(memory.memory_type, memory.reach) is model.Reach.GLOBAL
    ]


def _similar(context: Context, text: str, *conditions: Where) -> list[Memory]:
    """Return the memories that the reader can read now, of any project, that share words with a
    text."""
    words = tokens(text, language=context.options.stemmer_language)
    where = all_of(readable(context), *conditions)
    hits = (
        context.store.matching(words, model.visible_to(context.reader), where, limit=_NEAREST)
        if words
        else []
    )
    rows = context.store.get(Kind.MEMORY, [hit.id for hit in hits])
    return [Memory.of(row) for row in intact(context, rows.values())]


_NAME = r"[`'\"]?(\w(?:[\w./@+-]{0,40}\w)?)[`'\"]?"
_REPLACED = (
    re.compile(
        rf"\b(?:use|run|take|write|call|say) {_NAME}(?: here| instead)?,? (?:and )?not {_NAME}",
        re.IGNORECASE,
    ),
    re.compile(rf"\b{_NAME} (?:instead of|rather than) {_NAME}", re.IGNORECASE),
    re.compile(rf"\bit(?:'s| is) {_NAME},? not {_NAME}", re.IGNORECASE),
)


def _corrected(context: Context, found: Captured) -> Memory | None:
    """Return the one stored memory that says to use what a correction replaces, or None if it is
    not certain which."""
    match = next(
        (match for pattern in _REPLACED if (match := pattern.search(normalized(found.content)))),
        None,
    )
    if match is None:
        return None
    right, wrong = match[1].lower(), match[2].lower()
    told = re.compile(
        r"(?:uses?|using|prefers?|runs?|takes?|writes?|calls?|with|"
        rf"is)\b[^.]*(?<!\w){re.escape(wrong)}(?!\w)"
    )
    own = _similar(context, wrong, equals("project", context.reader.project))
    says = [memory for memory in own if told.search(memory.content.lower())]
    fits = [
        memory
        for memory in says
        if not re.search(rf"(?<!\w){re.escape(right)}(?!\w)", memory.content.lower())
    ]
    return fits[0] if len(fits) == len(says) == 1 else None


# --- with a language model ---


def _extracted(context: Context, messages: Iterator[Message]) -> Iterator[Captured | NotKept]:
    """Yield what is found by the language model if there is one, else by the deterministic
    extractor."""
    judge = _judge(context)
    if context.models.chat is None:
        yield from extract(messages, judge=judge)
        return
    part, size = list[Message](), 0
    for message in messages:
        part.append(message)
        size += estimate(message.content) if message.is_new else 0
        if size > context.options.llm_input_tokens // 2:
            yield from _asked(context, part, judge)
            part, size = [], 0
    yield from _asked(context, part, judge)


def _judge(context: Context) -> Judge:
    """Return the judge with the vectors of the local model; without vectors if there is another
    embedder, or if it fails."""
    embedder = context.models.embedder
    if embedder is None or embedder.model != model_of_vectors():
        return judge_without_vectors()
    try:
        embed_texts(embedder, [""])
    except MemoryMeshError:
        return judge_without_vectors()
    return judge_with_vectors(lambda text: array("f", embed_texts(embedder, [text])[0].data))


def _asked(context: Context, part: Sequence[Message], judge: Judge) -> Iterator[Captured | NotKept]:
    """Yield what the model finds in some messages. If it fails, the deterministic extractor
    reads them."""
    new = {each.number: each for each in part if each.is_new and each.role in ("user", "assistant")}
    if context.models.chat is None or not new:
        yield from extract(part, judge=judge)
        return
    try:
        shown = [(each.number, each.role, each.content) for each in new.values()]
        asked = prompt.build_prompt(
            shown, context.ids.salt(), max_tokens=context.options.answer_tokens
        )
        items = prompt.read_reply(context.models.chat.reply(asked))
    except (CallError, BudgetSpent, AnswerUnreadable) as error:
        _log.warning("capture: without the language model, because %s", error)
        yield from extract(part, judge=judge)
        return
    for item in items:
        message = new.get(item.message)
        if message is None:
            continue
        why = why_not(item.text, role=message.role)
        if why is None and not is_grounded(item.text, message.content):
            why = "not said in the message that the model names"
        yield (
            NotKept(item.text, why, message.number)
            if why
            else captured(item.text, item.memory_type, message)
        )


# --- junk ---

REPEATS = "it says the same as"  # the reason begins so; the id of the other memory follows
_ACTION = "junk"
# The beginning of a text tells; the patterns take seconds for a text of a megabyte.
_JUDGED_CHARS = 20_000


def junk(
    context: Context, *, apply: object, limit: object, newest: object = None
) -> list[JunkFound]:
    """Return the memories of the reader that are junk, oldest first, and archive them if `apply` is
    set.

    With `newest`, only so many of the newest memories are read. Turns of conversations, lessons,
    reflections, pinned memories and those with a key are left alone.
    """
    most = whole_number("limit", limit)
    read = None if newest is None else whole_number("newest", newest)
    if not isinstance(apply, bool):
        raise InvalidInput(f"archive is {shown(apply)}", expected="True or False")
    active = all_of(
        model.visible_to(context.reader),
        model.in_project(context.reader.project),
        equals("status", Status.ACTIVE),
    )
    memories = sorted(
        map(Memory.of, intact(context, islice(paged(context, Kind.MEMORY, active), read))),
        key=lambda memory: (memory.created_at, memory.number or 0),
    )
    known: dict[tuple[str, ...], Memory] = {}
    found: list[JunkFound] = []
    for memory in filter(_is_judged, memories):
        text, is_long = memory.content[:_JUDGED_CHARS], len(memory.content) > _JUDGED_CHARS
        first = known.setdefault(
            (memory.category or "", *((memory.content,) if is_long else same_words(text))), memory
        )
        same = first is not memory and (is_long or says_the_same(first.content, text))
        if why := f"{REPEATS} {first.id}" if same else why_stored_is_junk(text):
            found.append(JunkFound(id=memory.id, content=memory.content, why=why))
        if len(found) == most:
            break
    if not apply:
        return found
    whys = {each.id: each.why for each in found}
    archived = {
        *archive(context, Kind.MEMORY, list(whys), lambda memory: whys[memory.id], action=_ACTION)
    }
    return [replace(each, archived=each.id in archived) for each in found]


def _is_judged(memory: Memory) -> bool:
    own = memory.memory_type not in (MemoryType.LESSON, MemoryType.REFLECTION)
    return own and not (memory.speaker or memory.turn is not None or memory.key or memory.pinned)
