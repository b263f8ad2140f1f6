"""What every flow is handed, and how a decision becomes one write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from memory_mesh.core import audit
from memory_mesh.core.audit import Entry
from memory_mesh.core.errors import Conflict, InvalidInput, MemoryDisabled, NotFound, StoreBusy
from memory_mesh.core.intake.drafts import Limits
from memory_mesh.core.learning import Accounts
from memory_mesh.core.model.columns import BY_NAME, Kind, fault
from memory_mesh.core.model.records import Head, Memory, SearchResult
from memory_mesh.core.model.rows import Key, Row
from memory_mesh.core.model.scope import Reader, visible
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, IsNull, Or, Where
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

# With eight processes on one chain a write waits for a few others; a hundred lost races mean that something is wrong.
_ATTEMPTS = 100

Answer = TypeVar("Answer")


@dataclass(slots=True, kw_only=True)
class State:
    """The mutable state of one open mesh, shared by its threads: a cache, a counter, a queue and what was logged once."""

    cache: SearchCache[tuple[SearchResult, ...]] = field(default_factory=SearchCache)
    usage: UsageCounter = field(default_factory=UsageCounter)
    search_log: SearchLog = field(default_factory=SearchLog)  # searches whose audit block is not written yet
    ledger: Accounts | None = None  # None: no model that costs money
    warned: Event = field(default_factory=Event)  # set once vectors of another model were mentioned

    def with_queues(self, other: "State") -> "State":
        """Return this state with the counter and the queue of another one."""
        return replace(self, usage=other.usage, search_log=other.search_log)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """The outside world as flows see it."""

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
        """The gate that every text passes before it is stored; loaded on first use."""
        return self.gate()


@dataclass(frozen=True, slots=True, kw_only=True)
class Context(Ports):
    """What a flow works with: the ports, the options, the reader and the state of the open mesh."""

    reader: Reader
    options: Options = field(default_factory=Options)
    state: State = field(default_factory=State)

    @property
    def limits(self) -> Limits:
        """How large one memory may be."""
        return Limits(content_chars=self.options.max_content_chars)

    def with_options(self, **changed: Any) -> "Context":
        """Return the same context with some options changed."""
        return replace(self, options=replace(self.options, **changed))


def _default_gate() -> "Layer0":
    from memory_mesh.core.intake.gate import Layer0

    return Layer0()


@dataclass(frozen=True, slots=True)
class Plan(Generic[Answer]):
    """A decision: what to write, what it was read under, and the answer if it holds."""

    answer: Answer
    puts: Sequence[Row] = ()
    deletes: Sequence[Key] = ()
    seen: Mapping[str, int] = field(default_factory=dict)


def commit(context: Context, decide: Callable[[], Plan[Answer]]) -> tuple[Answer, Applied]:
    """Decide and write once. If the store changed in between, read and decide again."""
    must_be_enabled(context)
    return write_plan(context.store, decide, pause=context.pause, step=context.step)


def write_plan(
    store: Store, decide: Callable[[], Plan[Answer]], *, pause: Callable[[int], None], step: Step = no_step,
    attempts: int = _ATTEMPTS,
) -> tuple[Answer, Applied]:  # fmt: skip
    """Write the plan that `decide` returns. After each `Conflict`, pause and decide again; raise `StoreBusy` after the last."""
    for attempt in range(attempts):
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
    raise StoreBusy(f"{store.url}: others kept changing it", remedy="try again")


def must_be_enabled(context: Context) -> None:
    """Refuse to write, or to promise that something is gone, where nothing is kept."""
    if not context.options.enable_memory:
        raise MemoryDisabled("memory is disabled", remedy="open the mesh with enable_memory=True to store")


def texts(**named: object) -> None:
    """Refuse what is given as a name (an id, a scope, …) and is no text: no store could look for it."""
    for name, value in named.items():
        if wrong := fault(BY_NAME[name], value):
            raise InvalidInput(wrong, expected="text")


def memory_row(context: Context, memory_id: object) -> Row | None:
    """A memory by its id, whoever may see it."""
    texts(id=memory_id)
    return context.store.get(Kind.MEMORY, [str(memory_id)]).get(str(memory_id))


def visible_memory(context: Context, memory_id: str) -> Memory:
    """A memory that the caller may see."""
    row = memory_row(context, memory_id)
    if row is None or not visible(context.reader, row):
        raise unknown(context, memory_id)
    return Memory.of(row)


def unknown(context: Context, memory_id: str) -> NotFound:
    """The error for a memory that is not there for the caller."""
    what = f"no memory {memory_id!r:.80} for agent {context.reader.agent_id}"
    return NotFound(what, remedy="check the id, the agent and the session")


def lasting(context: Context) -> Where:
    """What has not expired."""
    return Or((IsNull("expires_at"), Compare("expires_at", ">", iso(context.clock()))))


def sealed(context: Context, chain: str, entries: Sequence[Entry]) -> list[Row]:
    """The rows that append entries to a chain: its blocks and its new head."""
    if not entries:
        return []
    held = context.store.get(Kind.HEAD, [chain]).get(chain)
    blocks, head = audit.append(chain, Head.of(held) if held else None, entries)
    # The head first: where another has appended meanwhile, it is the head's conflict that tells so.
    return [head.row(), *(block.row() for block in blocks)]
