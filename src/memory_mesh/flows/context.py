"""The context that every flow gets, and `commit`, which writes what a flow decided."""

import logging
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from memory_mesh.core.errors import (
    Conflict,
    ContentAltered,
    InvalidInput,
    MemoryDisabled,
    NotFound,
    StoreBusy,
    shown,
)
from memory_mesh.core.intake import Limits
from memory_mesh.core.learning import Accounts
from memory_mesh.core.model import (
    ANYTHING,
    BY_NAME,
    CONTENTS,
    Head,
    In,
    Key,
    Kind,
    Memory,
    Meta,
    Reader,
    Row,
    SearchResult,
    Status,
    UserCount,
    Vector,
    Where,
    all_of,
    equals,
    fault,
    of_user,
    partitions,
    visible,
    visible_to,
)
from memory_mesh.core.model.background import (
    Couriers,
    Judging,
    SearchLog,
    UsageCounter,
    check_cancelled,
    record_written,
)
from memory_mesh.core.options import Options
from memory_mesh.core.ports import (
    NO_FILE,
    Applied,
    Assumed,
    ChatModel,
    CheckingStore,
    Clock,
    Embedder,
    Hook,
    HookFiles,
    IdSource,
    Index,
    NoteFiles,
    OpenAnchor,
    OpenFolder,
    PairJudge,
    SigningKeys,
    Step,
    Store,
    StoreFile,
    TraceFiles,
    no_anchor,
    no_folder,
    no_hook_files,
    no_notes,
    no_step,
    no_traces,
)
from memory_mesh.core.search import SearchCache
from memory_mesh.core.text import shown_url

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.notes import Fault, Note
    from memory_mesh.core.notes.files import InstructionFiles
    from memory_mesh.core.transfer.foreign import ImportFile

# With eight processes on one audit chain, a write loses a few races. A hundred lost races are a
# fault.
# A writer that reads anew after each lost race is slower than one that wins them.
_MAX_ATTEMPTS = 400
_PAGE = 500
_MAX_READS = 100  # values kept from one write to the next
_MAX_LATEST = 10_000
LATEST = "latest"  # in place of a data version; see `read_once`
_MAX_PROGRAM_BYTES = 16 * 1024 * 1024  # of one item of a session, which may contain images

Answer = TypeVar("Answer")
OpenImport = Callable[[str, str | None], AbstractContextManager["ImportFile"]]  # by path and format
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True)
class Queues:
    """What searches and writes leave to be done later."""

    usage: UsageCounter = field(default_factory=UsageCounter)
    # Searches whose audit block is not written yet.
    search_log: SearchLog = field(default_factory=SearchLog)
    changes: Judging = field(default_factory=Judging)


@dataclass(slots=True)
class FilesRead:
    """What was read from notes, traces and folders of skills, so that only changes are read
    again."""

    # The users whose `skill_directories` were read.
    skill_users: set[str | None] = field(default_factory=set)
    # By name of a file of notes: its mark and its sections.
    note_sections: "dict[str, tuple[str, list[Note | Fault]]]" = field(default_factory=dict)
    # By scope: the state of the index of notes.
    note_states: dict[str, object] = field(default_factory=dict)
    # By scope: the mark of the file that is indexed.
    trace_marks: dict[str, str] = field(default_factory=dict)
    # The vectors of the patterns of notes.
    pattern_vectors: dict[str, Vector] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class State:
    """The mutable state of open meshes with equal options, shared by their threads: caches,
    counters and queues."""

    cache: SearchCache[tuple[SearchResult, ...]] = field(default_factory=SearchCache)
    queues: Queues = field(default_factory=Queues)
    # A data version, and what was read at it; see `read_once`.
    reads: tuple[Hashable, dict[Hashable, Any]] = (None, {})
    latest: dict[Hashable, Any] = field(default_factory=dict)  # as last read or written
    ledger: Accounts | None = None  # None: no paid model
    down: set[str] = field(default_factory=set)  # what was logged since the embedder failed
    warned: set[str] = field(default_factory=set)  # the warnings that are logged only once
    # By user: the metadata keys of filters that no memory has.
    unknown_keys: dict[str | None, set[str]] = field(default_factory=lambda: defaultdict(set))
    files: FilesRead = field(default_factory=FilesRead)
    couriers: Couriers = field(default_factory=Couriers)


@cache
def _default_gate() -> "Layer0":
    from memory_mesh.core.intake.gate import Layer0

    return Layer0()


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What cleans texts. Each gate is loaded on its first call."""

    content: Callable[[], "Layer0"] = _default_gate  # every text before it is stored
    # Masks a query as the contents were masked, and creates no key.
    query: Callable[[], "Layer0"] = _default_gate


@dataclass(frozen=True, slots=True, kw_only=True)
class Models:
    """The models of an open mesh. They are loaded on their first use."""

    embedder: Embedder | None = None  # None: keywords only
    chat: ChatModel | None = None
    judge: PairJudge | None = None  # None: changes of older memories are not recognised


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files and folders that flows can open beside the store, and the keys of the audit
    chains."""

    open_folder: OpenFolder = no_folder
    open_import: OpenImport = no_folder  # type: ignore[assignment]  # refuses every file
    open_anchor: OpenAnchor = no_anchor
    open_hook_files: Callable[[], HookFiles] = no_hook_files
    open_notes: Callable[[], NoteFiles] = no_notes
    open_instructions: "Callable[[], InstructionFiles]" = no_notes
    traces_of: Callable[[str | None], TraceFiles] = no_traces  # by user
    signing: SigningKeys | None = None  # None: the heads of audit chains are not signed


@dataclass(frozen=True, slots=True, kw_only=True)
class Hooks:
    """The hooks of a mesh, and the flow that queues and delivers their events: most meshes have
    none, and do not load it."""

    listed: Sequence[Hook] = ()
    with_events: "Callable[[Context, Plan[Any]], Plan[Any]]" = lambda context, plan: plan
    # Called with what was written.
    deliver: "Callable[[Context, Plan[Any]], None]" = lambda context, plan: None
    # Called after memories were written, if there is a judge of pairs.
    judge_later: "Callable[[Context], None]" = lambda context: None


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The ports, the options, the reader and the state of an open mesh."""

    store: Store
    file: StoreFile = NO_FILE  # of the store
    index: Index
    models: Models = Models()
    gates: Gates = Gates()
    files: Files = Files()
    hooks: Hooks = Hooks()
    clock: Clock
    ids: IdSource
    pause: Callable[[int], None]  # waits before the next attempt, longer each time
    step: Step = no_step
    reader: Reader
    options: Options = field(default_factory=Options)
    state: State = field(default_factory=State)
    is_program_data: bool = False  # see `for_program_data`

    @property
    def limits(self) -> Limits:
        """The maximum size of a memory."""
        chars = self.options.max_content_chars
        return (
            Limits(content_chars=chars, metadata_depth=64, metadata_bytes=_MAX_PROGRAM_BYTES)
            if self.is_program_data
            else Limits(content_chars=chars)
        )

    def for_program_data(self) -> "Context":
        """Return the same context for what a program stores and reads back as it was: it is masked
        as `program_data_redaction` says, may be larger, becomes no claim and no lesson, and every
        message is a new one."""
        gates, content = self.gates, self.gates.content
        if self.options.program_data_redaction == "secrets":
            gates = replace(gates, content=cache(lambda: content().for_secrets()))
        return replace(self.with_options(claims="off"), gates=gates, is_program_data=True)

    def open_traces(self) -> TraceFiles:
        """Return the files of the traces of the reader's user."""
        return self.files.traces_of(self.reader.user_id)

    def check_enabled(self) -> None:
        """Raise `MemoryDisabled` if the options switch memory off."""
        if not self.options.enable_memory:
            raise MemoryDisabled(
                "memory is disabled", remedy="open the mesh with enable_memory=True to store"
            )

    def with_options(self, **changed: Any) -> "Context":
        """Return the same context with some options changed."""
        return replace(self, options=replace(self.options, **changed))

    def with_models(self, **changed: Any) -> "Context":
        """Return the same context with other models."""
        return replace(self, models=replace(self.models, **changed))

    def with_files(self, **changed: Any) -> "Context":
        """Return the same context with other files or keys."""
        return replace(self, files=replace(self.files, **changed))


class SharedContext(Protocol):
    """The context of meshes with equal options, without a reader. The first user opens it, and
    the last one closes it."""

    value: Context | None  # None: closed

    def use(self, user: object) -> Context: ...
    def release(self, user: object) -> None: ...
    def flush(self) -> None: ...


class Source(Protocol):
    """Where a mesh and its scoped handles get their context from. The URL of the store is for
    display."""

    @property
    def url(self) -> str: ...
    def find(self) -> SharedContext: ...


@dataclass(frozen=True, slots=True)
class Plan(Generic[Answer]):
    """A decision: the answer, what to write, the versions of the partitions that it was read
    under, and what it assumes of a server store."""

    answer: Answer
    puts: Sequence[Row] = ()
    deletes: Sequence[Key] = ()
    seen: Mapping[str, int] = field(default_factory=dict)
    assumed: Assumed | None = None


def commit(context: Context, decide: Callable[[], Plan[Answer]]) -> Answer:
    """Decide and write once. If the store changed in between, decide again. Return the answer of
    the plan."""
    context.check_enabled()

    def keep(plan: Plan[Any], applied: Applied) -> None:
        _keep_reads(context.state, plan, applied)
        context.hooks.deliver(context, plan)
        if context.models.judge and any(row.kind is Kind.MEMORY for row in plan.puts):
            context.hooks.judge_later(context)

    def decide_with_events() -> Plan[Answer]:
        return context.hooks.with_events(context, decide())

    return write_plan(
        context.store, decide_with_events, pause=context.pause, step=context.step, keep=keep
    )[0]


def read_once(
    context: Context, data_version: Hashable, name: Hashable, read: Callable[[], Answer]
) -> Answer:
    """Call `read`, or return what it returned at the same data version. The caller reads the
    data version first.

    For `LATEST` return the last value that this program knows, which others may have changed: the
    store checks it with the write.
    """
    if len(context.state.latest) > _MAX_LATEST:
        context.state.latest = {}
    (known, values), latest = context.state.reads, context.state.latest
    if data_version == LATEST:
        return latest[name] if name in latest else latest.setdefault(name, read())  # type: ignore[no-any-return]
    if known != data_version:
        values = {}
        context.state.reads = data_version, values
    if name not in values:
        values[name] = read()
    if name in latest:
        latest[name] = values[name]
    return values[name]  # type: ignore[no-any-return]


def already_read(context: Context, data_version: Hashable) -> dict[Hashable, Any]:
    """Return what `read_once` has read so far at a data version."""
    known, values = context.state.reads
    return dict(values) if known == data_version else {}


def _keep_reads(state: State, plan: Plan[Any], applied: Applied) -> None:
    """Keep for the next write what was read before this one, and what it wrote itself."""
    if applied.after is None and not state.latest:
        return
    written = [row for row in plan.puts if row.kind in (Kind.HEAD, Kind.META)]
    new = dict[Hashable, Any](applied.versions.items())
    new.update(((Kind.HEAD, row.id), _head(row)) for row in written if row.kind is Kind.HEAD)
    state.latest.update((name, value) for name, value in new.items() if name in state.latest)
    if applied.after is None:
        return
    known, values = state.reads
    is_same = (
        known == applied.before
        and not plan.deletes
        and not any(row.kind is Kind.META for row in written)
    )
    kept = dict(values) if is_same and len(values) < _MAX_READS else {}
    if any(row.kind is Kind.LINK for row in plan.puts):
        kept = {name: value for name, value in kept.items() if not _is_of_links(name)}
    state.reads = applied.after, {**kept, **new}


def _is_of_links(name: Hashable) -> bool:
    return isinstance(name, tuple) and name[0] is Kind.LINK


def _head(row: Row) -> Head:
    """Return the head of a row that was just written, which needs no check."""
    values: dict[str, Any] = {**row.fields}
    return Head(
        id=row.id, created_at=row.created_at, number=row.number, revision=row.revision, **values
    )


def write_plan(
    store: Store, decide: Callable[[], Plan[Answer]], *, pause: Callable[[int], None],
    step: Step = no_step, keep: Callable[[Plan[Any], Applied], None] = lambda plan, applied: None,
) -> tuple[Answer, bool]:  # fmt: skip
    """Write the plan that `decide` returns. After a `Conflict`, pause and decide again; raise
    `StoreBusy` after the last try.

    A call that is cancelled before the write writes nothing; later the write is completed, and
    recorded for the caller. Return the answer of the plan, and whether the bytes of deleted and
    replaced rows are freed.
    """
    for attempt in range(_MAX_ATTEMPTS):
        plan = decide()
        step("flow.decided")
        if not plan.puts and not plan.deletes:
            return plan.answer, True
        check_cancelled()
        try:
            if plan.assumed and isinstance(store, CheckingStore):
                applied = store.apply(plan.puts, plan.deletes, seen=plan.seen, assumed=plan.assumed)
            else:
                applied = store.apply(plan.puts, plan.deletes, seen=plan.seen)
        except Conflict:
            if not plan.assumed:
                pause(attempt)
            continue
        record_written(plan.puts, plan.deletes)
        keep(plan, applied)
        step("flow.applied")
        return plan.answer, applied.bytes_freed
    raise StoreBusy(f"{shown_url(store.url)}: other writers kept changing it", remedy="try again")


def check_texts(**values: object) -> None:
    """Raise `InvalidInput` for the first value that is not a valid text for the column of the
    same name."""
    for name, value in values.items():
        if wrong := fault(BY_NAME[name], value):
            raise InvalidInput(wrong)


def check_names(**names: object) -> None:
    """Raise `InvalidInput` for the first name that is blank: it must not stand for everything."""
    for name, value in names.items():
        if isinstance(value, str) and not value.strip():
            raise InvalidInput(f"{name} is empty; nothing was erased", expected="a name")


def forgotten_user(context: Context, user_id: str | None) -> Meta:
    """Return what the store keeps of a user who was forgotten: the time (`at`), and the digests of
    the notes that stayed in their files (`notes`)."""
    # The name of a user is not stored with it.
    return Meta.read(context.store, f"forgotten {sha256(repr(user_id).encode()).hexdigest()[:16]}")


def find_rows(
    context: Context, ids: Sequence[str], kinds: Sequence[Kind] = CONTENTS
) -> dict[str, Row]:
    """Return the memories and skills with these ids."""
    found: dict[str, Row] = {}
    for kind in kinds:
        if missing := [id_ for id_ in ids if id_ not in found]:
            found |= context.store.get(kind, missing)
    return found


def find_memory(
    context: Context,
    memory_id: str,
    *,
    any_reader: bool = False,
    kinds: Sequence[Kind] = (Kind.MEMORY,),
) -> Memory | None:
    """Return a memory; None for an unknown id, and, unless `any_reader` is set, if it is not
    visible to the reader.

    `kinds` says whether skills are looked for too. Raise `ContentAltered` if its content is not the
    sealed one.
    """
    check_texts(id=memory_id)
    row = find_rows(context, [memory_id], kinds).get(memory_id)
    if row is None or not (any_reader or visible(context.reader, row)):
        return None
    if row.is_altered:
        what = (
            f"the content of {memory_id} was changed outside memory-mesh: it is not what its audit "
            "block sealed"
        )
        raise ContentAltered(
            what,
            remedy="run `memory-mesh audit verify`, then restore a backup or delete the memory",
        )
    return Memory.of(row)


def intact(context: Context, rows: Iterable[Row]) -> list[Row]:
    """Return the memories whose content is the sealed one, or was never sealed. The first other
    one logs a warning."""
    every = list(rows)
    found = [row for row in every if not row.is_altered]
    if len(found) < len(every) and "altered" not in context.state.warned:
        context.state.warned.add("altered")
        _log.warning(
            "memories were changed outside memory-mesh and are withheld; run memory-mesh "
            "audit verify"
        )
    return found


def paged(context: Context, kind: Kind, where: Where) -> Iterator[Row]:
    """Yield all rows that match, newest first; a page at a time is in memory."""
    last: Row | None = None
    while rows := context.store.find(kind, where, limit=_PAGE, after=last):
        yield from rows
        last = rows[-1]


def count_by_status(context: Context) -> dict[str, int]:
    """Return how many memories the reader can see of each status that occurs."""
    if not context.options.enable_memory:
        return {}
    counts = {status.value: count_visible(context, equals("status", status)) for status in Status}
    return {status: count for status, count in counts.items() if count}


def count_by_user(context: Context) -> list[UserCount]:
    """Return the users of the store with the number of their memories, of every agent and status,
    most first. A reader of one user or project gets only what is its own."""
    reader = context.reader
    is_bound = reader.user_id is not None or reader.only_project
    only = of_user(reader) if is_bound else ANYTHING
    counts = [
        UserCount(user_id=user, memories=memories)
        for user, memories in context.store.tally(Kind.MEMORY, ["user_id"], only).items()
    ]
    return sorted(counts, key=lambda one: (-one.memories, one.user_id or ""))


def count_visible(context: Context, *conditions: Where) -> int:
    """Return how many memories the reader can see that meet the conditions."""
    reader = context.reader
    shared, *own = partitions(reader)
    # Every agent of the user sees the whole shared partition, which counts faster without a
    # condition on each row.
    parts = [
        all_of(equals("user_id", reader.user_id), equals("partition", shared)),
        all_of(visible_to(reader), In("partition", tuple(own))),
    ]
    # A reader of one project sees a part of it only.
    parts = [visible_to(reader)] if reader.only_project else parts
    return sum(context.store.count(Kind.MEMORY, all_of(part, *conditions)) for part in parts)


def count_skills(context: Context) -> int:
    """Return how many skills the reader can see, whatever their status."""
    return (
        context.store.count(Kind.SKILL, visible_to(context.reader))
        if context.options.enable_memory
        else 0
    )


def require_memory(
    context: Context,
    memory_id: str,
    *,
    any_reader: bool = False,
    kinds: Sequence[Kind] = (Kind.MEMORY,),
) -> Memory:
    """Return what `find_memory` returns, or raise `NotFound`."""
    memory = find_memory(context, memory_id, any_reader=any_reader, kinds=kinds)
    if memory is None:
        what = (
            f"no {kinds[0]} {shown(memory_id, max_length=80)} for agent {context.reader.agent_id}"
        )
        raise NotFound(what, remedy="check the id, the user, the agent and the session")
    return memory
