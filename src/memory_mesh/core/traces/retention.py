"""The files of traces: where they are below their root, and when they move to archives."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256

from memory_mesh.core.model import DAY_MS, iso
from memory_mesh.core.notes import Fault
from memory_mesh.core.text import short_repr

# --- the layout of a project ---

DEFAULT_PROJECT = "default"
PROJECTS = "projects"
SYSTEM = "system"
SYSTEM_LOG = "system/memory_log.md"
SYSTEM_ARCHIVE = "system/archive"
ID_LENGTH = 16
# Tells the traces of two folders in one store apart, also after the folder was moved.
FOLDER_ID = "system/.id"
LAST_NUMBER = "system/.last_experience"  # the last number of an entry; it never falls
MAX_ENTRIES = 1000  # of the live log
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}(?<!\.)")
IS_HASHED = re.compile(r".*-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project by its name, and the paths of its files."""

    name: str

    @property
    def folder(self) -> str:
        if _SAFE.fullmatch(self.name):
            return f"{PROJECTS}/{self.name}"
        slug = re.sub(r"[^A-Za-z0-9_]+", "-", self.name)[:60].strip("-")
        return f"{PROJECTS}/{slug or 'project'}-{sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def short_term(self) -> str:
        return f"{self.folder}/memory/short_term"

    @property
    def long_term(self) -> str:
        return f"{self.folder}/memory/long_term"

    @property
    def archive(self) -> str:
        return f"{self.folder}/memory/archive"

    @property
    def log(self) -> str:
        return f"{self.short_term}/execution_log.md"

    @property
    def cache(self) -> str:
        return f"{self.short_term}/context_cache.md"

    @property
    def tool_results(self) -> str:
        return f"{self.short_term}/tool_results"

    @property
    def context(self) -> str:
        return f"{self.folder}/context.md"

    @property
    def files(self) -> dict[str, str]:
        """The files that the first use of a project creates, with their texts."""
        empty = (
            self.log,
            self.cache,
            *(f"{self.long_term}/{name}.md" for name in ("learnings", "patterns", "decisions")),
        )
        return {**dict.fromkeys(empty, ""), self.context: f"# {self.name}\n"}

    @classmethod
    def of_folder(cls, name: str, context: str) -> "Project":
        """Return the project of a folder. A name that is not valid for a folder is the title of
        its context file."""
        title = cls(context.partition("\n")[0].removeprefix("# ").strip())
        return title if title.folder == f"{PROJECTS}/{name}" else cls(name)


def archive_of(number: int) -> str:
    """Return the archive of the log that an entry belongs to, of a thousand numbers each."""
    first = (number - 1) // MAX_ENTRIES * MAX_ENTRIES + 1
    return f"{SYSTEM_ARCHIVE}/memory_log-{first}-{first + MAX_ENTRIES - 1}.md.gz"


# --- retention ---
# Nothing is deleted: what leaves the live files moves to compressed archives.

IDLE_MS = DAY_MS  # short-term memory without activity for so long is pruned
# Of long-term memory, since the last run that it is drawn from.
CONSOLIDATE_DAYS, COMPRESS_DAYS = 180, 365


class Action(StrEnum):
    """What happens to something that is old."""

    ARCHIVE = "archive"  # traces: to the archive of their project
    CONSOLIDATE = "consolidate"  # learnings: drawn again from all traces of their project
    COMPRESS = "compress"  # learnings: to the archive of long-term memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What a run of retention does, or would do, to a project."""

    action: Action
    project: str
    count: int
    ids: tuple[str, ...] = field(default=(), repr=False)
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Retention:
    """The result of a run of retention, and what is wrong in the experience log. With `dry_run`
    nothing was changed."""

    __repr__ = short_repr

    moves: tuple[Move, ...]
    dry_run: bool = False
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectState:
    """What decides about the files of a project. Times are ISO 8601 texts."""

    project: str
    trace_ids: Sequence[str]  # of short-term memory
    last_activity: str | None
    learnings: Mapping[str, str]  # by id: when the last of its runs was
    # The lines of decisions.md by digest, with their days.
    decisions: Mapping[str, str] = field(default_factory=dict)
    regrouped_at: str = ""  # when long-term memory was consolidated again


def planned_moves(state: ProjectState, ms: int, *, reopened: bool = False) -> Iterator[Move]:
    """Yield what is due for a project, in the order in which it is done. `reopened` says that
    another session begins in it."""

    def move(action: Action, ids: Sequence[str], reason: str) -> Move:
        return Move(
            action=action, project=state.project, count=len(ids), ids=tuple(ids), reason=reason
        )

    # A session ended if nothing happened in it for 24 hours.
    last_activity = state.last_activity
    is_idle = last_activity is not None and last_activity <= iso(ms - IDLE_MS)
    if state.trace_ids and (reopened or is_idle):
        reason = f"no activity since {last_activity}"
        if reopened:
            reason = "the project was reopened by another session"
        yield move(Action.ARCHIVE, state.trace_ids, reason)
    half_year, year = (iso(ms - days * DAY_MS) for days in (CONSOLIDATE_DAYS, COMPRESS_DAYS))
    old = [id_ for id_, at in state.learnings.items() if year < at <= half_year]
    if old and state.regrouped_at <= half_year:
        yield move(Action.CONSOLIDATE, old, f"older than {CONSOLIDATE_DAYS} days")
    past = [id_ for id_, at in (*state.learnings.items(), *state.decisions.items()) if at <= year]
    if past:
        yield move(Action.COMPRESS, past, f"older than {COMPRESS_DAYS} days")
