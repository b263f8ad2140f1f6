"""What every flow is handed, and how a decision becomes one write."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from threading import Event
from typing import TYPE_CHECKING, Generic, TypeVar

from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.chain import Entry
from memory_mesh.core.audit.search_log import Recalls
from memory_mesh.core.errors import Conflict, InvalidInput, MemoryDisabled, NotFound, StoreBusy
from memory_mesh.core.intake.drafts import Limits
from memory_mesh.core.model.columns import BY_NAME, Kind, fault
from memory_mesh.core.model.records import Head, Memory, SearchResult
from memory_mesh.core.model.rows import Key, Row
from memory_mesh.core.model.scope import Reader, visible
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, IsNull, Or, Where
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
from memory_mesh.core.search.cache import SearchCache
from memory_mesh.core.search.usage import UsageCounter
from memory_mesh.flows.spending import Ledger

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0

# With eight processes on one chain a write waits for a few others; a hundred lost races mean that something is wrong.
_ATTEMPTS = 100

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True)
class Chatting:
    """How much is asked of a language model at once."""

    answer_tokens: int = 2048
    input_tokens: int = 3000  # a longer text is read in pieces


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """The ports and the few settings that flows need."""

    store: Store
    index: Index
    embedder: Embedder | None  # None: by keywords alone
    clock: Clock
    ids: IdSource
    reader: Reader
    pause: Callable[[int], None]  # waits before the next attempt, longer each time
    chat: ChatModel | None = None  # None: without a language model
    chatting: Chatting = field(default_factory=Chatting)
    ledger: Ledger | None = None  # None: nothing that is paid for
    limits: Limits = field(default_factory=Limits)
    gate: Callable[[], "Layer0"] = field(default_factory=lambda: cache(_usual_gate))
    cache: SearchCache[tuple[SearchResult, ...]] = field(default_factory=SearchCache)
    usage_counter: UsageCounter = field(default_factory=UsageCounter)
    recalls: Recalls | None = None  # searches that no block tells of yet; None: they leave none
    told: Event = field(default_factory=Event)  # set once foreign vectors were mentioned
    lesson_min_confidence: float = 0.7  # lessons that are less sure are kept and not told
    lesson_retention_days: int = 365
    recall_retention_days: int = 90
    distilling: bool = False  # whether the heartbeat distils lessons
    ranker: str = "learnt"
    channel_weights: Mapping[str, float] = field(default_factory=dict)
    borrowed: bool = False  # the store is the caller's: closing the mesh leaves it open
    enabled: bool = True
    audited: bool = True
    language: str = "english"
    step: Step = no_step
    open_folder: OpenFolder = no_folder

    @property
    def layer0(self) -> "Layer0":
        """What every text passes before it is kept. It is made by the first that does: who only reads does not wait for it."""
        return self.gate()


def _usual_gate() -> "Layer0":
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
    """Decide and write; where the store moved in between, read and decide again."""
    must_be_enabled(context)
    for attempt in range(_ATTEMPTS):
        plan = decide()
        context.step("flow.decided")
        if not plan.puts and not plan.deletes:
            return plan.answer, Applied(bytes_freed=True)
        try:
            applied = context.store.apply(plan.puts, plan.deletes, seen=plan.seen)
        except Conflict:
            context.pause(attempt)
            continue
        context.step("flow.applied")
        return plan.answer, applied
    raise StoreBusy(f"{context.store.url}: others kept changing it", remedy="try again")


def must_be_enabled(context: Context) -> None:
    """Refuse to write, or to promise that something is gone, where nothing is kept."""
    if not context.enabled:
        raise MemoryDisabled("memory is switched off", remedy="open the mesh with enable_memory=True to store")


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
