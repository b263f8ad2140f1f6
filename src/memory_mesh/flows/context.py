"""The context that every flow gets, and `commit`, which writes what a flow decided."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry
from memory_mesh.core.errors import Conflict, InvalidInput, MemoryDisabled, NotFound, StoreBusy
from memory_mesh.core.intake import Limits
from memory_mesh.core.learning import Accounts
from memory_mesh.core.model import (
    BY_NAME,
    Compare,
    Head,
    IsNull,
    Key,
    Kind,
    Memory,
    Or,
    Reader,
    Row,
    SearchResult,
    Where,
    fault,
    iso,
    visible,
)
from memory_mesh.core.options import Options
from memory_mesh.core.pending import SearchLog, UsageCounter
from memory_mesh.core.ports import (
    Applied,
    ChatModel,
    Clock,
    Embedder,
    IdSource,
    Index,
    OpenFolder,
    Step,
    Store,
    no_folder,
    no_step,
)
from memory_mesh.core.search import SearchCache

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0

# With eight processes on one audit chain, a write loses a few races. A hundred lost races are a fault.
_MAX_ATTEMPTS = 100

Answer = TypeVar("Answer")


@dataclass(slots=True, kw_only=True)
class State:
    """The mutable state of one open mesh, shared by its threads: caches, counters and queues."""

    cache: SearchCache[tuple[SearchResult, ...]] = field(default_factory=SearchCache)
    usage: UsageCounter = field(default_factory=UsageCounter)
    search_log: SearchLog = field(default_factory=SearchLog)  # searches whose audit block is not written yet
    ledger: Accounts | None = None  # None: no paid model
    warned: Event = field(default_factory=Event)  # set after the one warning about vectors of another model

    def with_queues(self, other: "State") -> "State":
        """Return this state with the counter and the queue of another one."""
        return replace(self, usage=other.usage, search_log=other.search_log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The ports: everything outside the package's own logic."""

    store: Store
    index: Index
    clock: Clock
    ids: IdSource
    pause: Callable[[int], None]  # waits before the next attempt, longer each time
    embedder: Embedder | None = None  # None: keywords only
    chat: ChatModel | None = None
    gate: Callable[[], "Layer0"] = field(default_factory=lambda: cache(_default_gate))
    step: Step = no_step
    open_folder: OpenFolder = no_folder
    owns_store: bool = True  # False: the caller opened the store, and closing the mesh leaves it open

    @property
    def layer0(self) -> "Layer0":
        """The gate that cleans every text before it is stored; loaded on first use."""
        return self.gate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Ports):
    """The ports, the options, the reader and the state of an open mesh."""

    reader: Reader
    options: Options = field(default_factory=Options)
    state: State = field(default_factory=State)

    @property
    def limits(self) -> Limits:
        """The maximum size of a memory."""
        return Limits(content_chars=self.options.max_content_chars)

    def with_options(self, **changed: Any) -> "Context":
        """Return the same context with some options changed."""
        return replace(self, options=replace(self.options, **changed))


def _default_gate() -> "Layer0":
    from memory_mesh.core.intake.gate import Layer0

    return Layer0()


@dataclass(frozen=True, slots=True)
class Plan(Generic[Answer]):
    """A decision: the answer, what to write, and the versions of the partitions that it was read under."""

    answer: Answer
    puts: Sequence[Row] = ()
    deletes: Sequence[Key] = ()
    seen: Mapping[str, int] = field(default_factory=dict)


def commit(context: Context, decide: Callable[[], Plan[Answer]]) -> tuple[Answer, Applied]:
    """Decide and write once. If the store changed in between, decide again."""
    check_enabled(context)
    return write_plan(context.store, decide, pause=context.pause, step=context.step)


def write_plan(
    store: Store, decide: Callable[[], Plan[Answer]], *, pause: Callable[[int], None], step: Step = no_step
) -> tuple[Answer, Applied]:
    """Write the plan that `decide` returns. After a `Conflict`, pause and decide again; raise `StoreBusy` after the last try."""
    for attempt in range(_MAX_ATTEMPTS):
        plan = decide()
        step("flow.decided")
        if not plan.puts and not plan.deletes:
            return plan.answer, Applied(bytes_freed=True)
        try:
            applied = store.apply(plan.puts, plan.deletes, seen=plan.seen)
        except Conflict:
            pause(attempt)
            continue
        step("flow.applied")
        return plan.answer, applied
    raise StoreBusy(f"{store.url}: other writers kept changing it", remedy="try again")


def check_enabled(context: Context) -> None:
    """Raise `MemoryDisabled` if the options switch memory off."""
    if not context.options.enable_memory:
        raise MemoryDisabled("memory is disabled", remedy="open the mesh with enable_memory=True to store")


def check_texts(**values: object) -> None:
    """Raise `InvalidInput` for the first value that is not a valid text for the column of the same name."""
    for name, value in values.items():
        if wrong := fault(BY_NAME[name], value):
            raise InvalidInput(wrong, expected="text")


def memory_row(context: Context, memory_id: object) -> Row | None:
    """Return the row of a memory, visible to the reader or not; None for an unknown id."""
    check_texts(id=memory_id)
    return context.store.get(Kind.MEMORY, [str(memory_id)]).get(str(memory_id))


def stored_memory(context: Context, memory_id: str) -> Memory:
    """Return a memory, visible to the reader or not, or raise `NotFound`."""
    row = memory_row(context, memory_id)
    if row is None:
        raise not_found(context, memory_id)
    return Memory.of(row)


def visible_memory(context: Context, memory_id: str) -> Memory:
    """Return a memory that is visible to the reader, or raise `NotFound`."""
    row = memory_row(context, memory_id)
    if row is None or not visible(context.reader, row):
        raise not_found(context, memory_id)
    return Memory.of(row)


def not_found(context: Context, memory_id: str) -> NotFound:
    """Return the error for an id that is unknown to the reader."""
    what = f"no memory {memory_id!r:.80} for agent {context.reader.agent_id}"
    return NotFound(what, remedy="check the id, the agent and the session")


def not_expired(context: Context) -> Where:
    """Return the condition that a memory has not expired."""
    return Or((IsNull("expires_at"), Compare("expires_at", ">", iso(context.clock()))))


def own_chain(context: Context) -> str:
    """Return the name of the reader's audit chain."""
    return audit.chain_name(context.reader.user_id, context.reader.agent_id)


def audit_rows(context: Context, chain: str, entries: Sequence[Entry]) -> list[Row]:
    """Return the rows that append entries to an audit chain: the new head and the blocks."""
    if not entries:
        return []
    head = context.store.get(Kind.HEAD, [chain]).get(chain)
    blocks, newer = audit.append(chain, Head.of(head) if head else None, entries)
    # The head comes first: after a concurrent append, its revision is what conflicts.
    return [newer.row(), *(block.row() for block in blocks)]
