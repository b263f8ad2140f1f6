"""Hooks: the events of a change, what an event contains, and when a failed delivery is repeated."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Self

from memory_mesh.core.model import (
    CONTENTS,
    Json,
    Key,
    Kind,
    MemoryRecord,
    MemoryType,
    QueuedEvent,
    Row,
    Status,
    Value,
)
from memory_mesh.core.text import short_repr

STORE, LESSON, DELETE, DECAY, DISPUTE, REINFORCE = (
    "store",
    "lesson",
    "delete",
    "decay",
    "dispute",
    "reinforce",
)
SUPERSEDE, QUARANTINE, ARCHIVE = "supersede", "quarantine", "archive"
EVENTS = (STORE, SUPERSEDE, QUARANTINE, ARCHIVE, DECAY, DELETE, DISPUTE, REINFORCE, LESSON)

_OF_STATUS: Mapping[str, str] = {
    Status.SUPERSEDED: SUPERSEDE, Status.QUARANTINED: QUARANTINE, Status.ARCHIVED: ARCHIVE,
    Status.DISPUTED: DISPUTE,
}  # fmt: skip
_NEW_TEXT = frozenset({"update", "replace"})  # actions that change the content or the metadata
# The last two are those of skills.
_SHOWN = frozenset({field.name for field in fields(MemoryRecord)} | {"name", "intent"})

# Seconds before each repetition. An event that fails once more becomes a dead letter.
DELAYS = (1, 5, 30, 120, 600, 3600)


@dataclass(frozen=True, slots=True, repr=False)
class HookEvent:
    """A change of a memory, as hooks get it. It may be delivered more than once, with the same
    `id`.

    `memory` has the fields of the memory after the change; of an erased memory, its id only.
    """

    __repr__ = short_repr

    id: str
    event: str
    at: str
    memory: dict[str, Value]

    @classmethod
    def of(cls, row: Row) -> Self:
        queued = QueuedEvent.of(row)
        return cls(queued.id.rpartition(" ")[2], queued.action, queued.created_at, queued.detail)

    def as_dict(self) -> dict[str, Json]:
        """Return the event as a JSON object."""
        return {"id": self.id, "event": self.event, "at": self.at, "memory": self.memory}


class Happened(NamedTuple):
    """An event of a change that is about to be written."""

    event: str
    memory_id: str
    partition: str
    memory: dict[str, Value]


def events_of(puts: Sequence[Row], deletes: Iterable[Key]) -> list[Happened]:
    """Return the events of a change, those of erased memories first."""
    changes: dict[object, list[Row]] = {}
    for row in puts:
        if row.kind is Kind.CHANGE:
            changes.setdefault(row.value("ref"), []).append(row)
    found = [
        Happened(DELETE, key.id, "", {"id": key.id}) for key in deletes if key.kind in CONTENTS
    ]
    # Numbers are in the order of a batch.
    for row in sorted(
        (row for row in puts if row.kind in CONTENTS),
        key=lambda row: (not row.replaces, row.number),
    ):
        for event in _events(row, changes.get(row.id, [])):
            memory: dict[str, Value] = {"id": row.id} if event == DELETE else _snapshot(row)
            found.append(Happened(event, row.id, row.partition, memory))
    return found


def _events(row: Row, changes: Sequence[Row]) -> list[str]:
    stored = LESSON if row.value("memory_type") == MemoryType.LESSON else STORE
    status = row.value("status")
    if not row.replaces:
        return [QUARANTINE if status == Status.QUARANTINED else stored]
    if row.revision == 1:  # its past was erased
        return [DELETE, stored]
    actions = {str(change.value("action")) for change in changes}
    found = [action for action in (DISPUTE, REINFORCE) if action in actions]
    earlier = [
        before["status"]
        for change in changes
        if isinstance(before := change.value("before"), dict) and "status" in before
    ]
    if earlier and earlier[0] != status:
        became = (
            DECAY
            if DECAY in actions and status == Status.ARCHIVED
            else _OF_STATUS.get(str(status), stored)
        )
        # From a dispute or a reinforcement.
        follows = became in found or (found and status == Status.ACTIVE)
        return found if follows else [*found, became]
    return found or ([stored] if actions & _NEW_TEXT else [])


def _snapshot(row: Row) -> dict[str, Value]:
    known = {name: value for name, value in row.fields.items() if name in _SHOWN}
    return {
        "id": row.id,
        "kind": row.kind.value,
        "created_at": row.created_at,
        "revision": row.revision,
        **known,
    }


@dataclass(frozen=True, slots=True)
class HookState:
    """What is stored about a hook: the folder of its files, how often it failed since it last
    worked, and when to try again."""

    folder: str | None = None
    failures: int = 0
    next_at: int = 0  # Unix milliseconds
    error: str | None = None

    @classmethod
    def of(cls, detail: dict[str, Any]) -> Self:
        return cls(
            **{field.name: detail[field.name] for field in fields(cls) if field.name in detail}
        )

    def after(self, error: str | None, ms: int) -> "HookState":
        """Return the state after a success (no error) or a failure."""
        if error is None:
            return HookState(self.folder)
        delay = 0 if self.failures >= len(DELAYS) else DELAYS[self.failures]
        return HookState(self.folder, self.failures + 1, ms + 1000 * delay, error)

    def wait_ms(self, ms: int) -> int:
        """Return the milliseconds until the next attempt; none if it is further away than any
        delay: the clock was set back."""
        wait = self.next_at - ms
        return wait if 0 < wait <= 1000 * max(DELAYS) else 0

    @property
    def gives_up(self) -> bool:
        """Whether the event that failed now becomes a dead letter. The next one then has one
        attempt, until one succeeds."""
        return self.failures > len(DELAYS)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class HookStatus:
    """A hook, the events that wait for it, and those that were not delivered in all attempts."""

    __repr__ = short_repr

    name: str
    configured: bool  # False: another program uses it
    waiting: int
    dead_letters: int
    failures: int = 0
    next_attempt: str | None = None
    error: str | None = None
