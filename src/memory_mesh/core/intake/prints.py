"""Fingerprints, by which a memory is found again: that of its text, of the caller's own key, or of a file (`files`).

A fingerprint holds the scope, so that a memory is never taken for one of another user, project or visibility. No audit block
seals it, so a memory that was found by it is compared itself too (`has_own_print`).
"""

import json
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.drafts import Draft
from memory_mesh.core.intake.files import is_file_print
from memory_mesh.core.intake.normal import folded_text, normal_text
from memory_mesh.core.model import BY_NAME, Memory, MemoryType, Reach, Reader, Value, fault, reach_of

MAX_KEY_LENGTH = 500
NOTE_KEY = "note:"  # begins the keys of the memories of notes, whose files decide how long they are kept
TRACE_KEY, EXPERIENCE_KEY, LEARNING_KEY = "trace:", "exp:", "learning:"  # of the memories of traces, likewise
_OF_TRACES = {TRACE_KEY: "trace", EXPERIENCE_KEY: "experience", LEARNING_KEY: "insight"}  # with their categories
_TEXT, _KEY = "text:", "key:"
_COLUMNS = ("session_id", "project", "memory_type", "event_time", "speaker")
_CLAIM = ("claim", "valid_from", "valid_until")


def fingerprint(reader: Reader, draft: Draft, key: str | None = None) -> str:
    """Return a digest that is equal for texts that are one memory: in one scope and, in conversations, at one place.

    With a key of the caller's own, what is stored under the key in one scope is one memory.
    """
    return fingerprints(reader, draft)[0] if key is None else _scoped_key(reader, draft, _digest([key]))


def fingerprints(reader: Reader, draft: Draft) -> tuple[str, ...]:
    """Return the fingerprint, and those that earlier versions stored: they may be equal for texts that are not.

    They ignored the case of every word, and versions up to 0.2 counted a text within its agent and session.
    """
    columns, folded = draft.columns, folded_text(draft.content)
    time, speaker, turn = columns.get("event_time"), columns.get("speaker"), draft.metadata.get("turn")
    # The same words in another session are another turn.
    session = None if speaker is None and turn is None else columns.get("session_id")
    old = [reader.user_id, reader.agent_id, *map(columns.get, _COLUMNS), turn, folded]
    # Texts with different claims are different memories.
    claim = [columns.get(name) for name in _CLAIM] if columns.get("claim") else []
    texts = dict.fromkeys((normal_text(draft.content), folded))  # most texts have no case that counts
    prints = (_TEXT + _digest([*_scope(reader, draft), session, time, speaker, turn, normal, *claim]) for normal in texts)
    return *prints, _digest(old)


def key_prefix(key: object) -> str:
    """Return the beginning of the fingerprints of all memories with this key, whatever their scope."""
    return f"{_KEY}{_digest([read_key(key)])}:"


def updated_print(old: str | None, reader: Reader, draft: Draft) -> str:
    """Return the fingerprint of a changed memory. One with a key keeps the key, and the memory of a file the file."""
    if old and old.startswith(_KEY):
        return _scoped_key(reader, draft, old.split(":")[1])
    return old if old and is_file_print(old) else fingerprint(reader, draft)


def has_own_print(memory: Memory) -> bool:
    """Return whether the fingerprint is that of the memory's own text and scope."""
    columns: dict[str, Value] = {name: getattr(memory, name) for name in (*_COLUMNS, *_CLAIM)}
    own = Draft(content=memory.content, metadata=memory.metadata, columns=columns)
    reader = Reader(memory.user_id, memory.agent_id)
    known = (updated_print(memory.fingerprint, reader, own),) if memory.key else fingerprints(reader, own)
    return memory.fingerprint in known and not memory.reach


def found_by(memory: Memory) -> tuple[str, str | None]:
    """Return what a memory is found again by: its fingerprint, with its text unless it has a key."""
    return str(memory.fingerprint), None if memory.key else normal_text(memory.content)


def is_note(memory: Memory) -> bool:
    """Return whether a memory is that of a section of a file of notes."""
    return (memory.key or "").startswith(NOTE_KEY)


def is_of_traces(memory: Memory) -> bool:
    """Return whether a memory is that of a trace, of an entry of the experience log, or of a learning in their files."""
    return any((memory.key or "").startswith(key) and memory.category == category for key, category in _OF_TRACES.items())


def companion_key(memory: Memory) -> str | None:
    """Return the key of the entry of the log that a trace has, or of the trace of an entry; they are erased together."""
    kind, _, place = (memory.key or "").partition(":")
    other, name = (EXPERIENCE_KEY, "experience_id") if f"{kind}:" == TRACE_KEY else (TRACE_KEY, "trace_id")
    known = is_of_traces(memory) and f"{kind}:" != LEARNING_KEY and memory.metadata.get(name)
    return f"{other}{place.partition('/')[0]}/{known}" if known else None


def read_key(key: object) -> str:
    """Return the caller's own key of a memory if it is valid."""
    if not isinstance(key, str) or not key.strip() or len(key) > MAX_KEY_LENGTH or fault(BY_NAME["key"], key):
        raise InvalidInput(f"key is {shown(key)}", expected=f"a non-empty text of at most {MAX_KEY_LENGTH} characters")
    return key


def _scope(reader: Reader, draft: Draft) -> list[Value]:
    """Return the user, the project, and what decides who sees the memory."""
    memory_type = draft.columns.get("memory_type") or MemoryType.GLOBAL.value
    reach = reach_of(memory_type, None)
    agent = [] if reach is Reach.GLOBAL else [reader.agent_id]
    session = [draft.columns.get("session_id")] if reach is Reach.SESSION else []
    return [reader.user_id, draft.columns.get("project"), memory_type, *agent, *session]


def _scoped_key(reader: Reader, draft: Draft, key_digest: str) -> str:
    # The digest of the key is a part of its own: the key itself may be stored masked.
    return f"{_KEY}{key_digest}:{_digest(_scope(reader, draft))}"


_ENCODER = json.JSONEncoder(sort_keys=True, check_circular=False)  # making one takes longer than using it


def _digest(parts: list[Value]) -> str:
    return sha256(_ENCODER.encode(parts).encode()).hexdigest()
