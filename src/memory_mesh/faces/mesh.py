"""`MemoryMesh` as a caller holds it: the methods of RFC-0011 over one store, for one agent of one user.

The module is over 500 lines because it is the one list of all methods; each calls one flow.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath, getpid
from threading import RLock
from types import TracebackType
from typing import Never, Self

from memory_mesh.core.audit import Verdict
from memory_mesh.core.errors import NotFound
from memory_mesh.core.intake import Selection
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock, LessonContext, Spending
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import MIN_IMPORTANCE, Block, Change, Extraction, Head, MemoryRecord, SearchResult, Status
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import ANYTHING, Where, all_of, equals
from memory_mesh.core.not_yet import NOT_YET, not_yet
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.search import CacheStats, Explanation
from memory_mesh.faces import shown
from memory_mesh.flows import audit as trail  # fmt: skip
from memory_mesh.flows import change, embed, erase, filters, folders, health, lessons, search, spending, usage, write
from memory_mesh.flows.audit import Which
from memory_mesh.flows.context import Context, State
from memory_mesh.flows.embed import Reembedded
from memory_mesh.flows.erase import Erasure
from memory_mesh.flows.folders import Ingested
from memory_mesh.flows.health import Checked
from memory_mesh.flows.search import Request

Metadata = dict[str, object]


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What the store holds for this user."""

    total_memories: int
    total_skills: int
    db_path: str
    connected: bool
    by_status: dict[str, int]
    spent_today: tuple[Spending, ...] = ()  # on language models and remote embedders, by everyone who uses the store (UTC)
    spent_in_all: tuple[Spending, ...] = ()

    @property
    def status(self) -> str:
        return "connected" if self.connected else "disconnected"


class Mesh:
    """One memory. It opens by itself at the first use; use it as a context manager, or `close` it."""

    def __init__(self, opening: Callable[[], Context]) -> None:
        self._opening = opening
        self._opened: Context | None = None
        self._last: State | None = None  # where searches that end after `close` are recorded
        self._process = getpid()
        self._lock = RLock()

    # --- lifecycle ---

    def init(self) -> None:
        """Open the store now rather than at the first use; repeating it does nothing."""
        self._context()

    def close(self) -> None:
        """Let go of the store; one that the caller handed in stays open. A later call opens it again."""
        with self._lock:
            self._part()
            context, self._opened = self._opened, None
            if context:
                self._last = context.state
                usage.close(context)
                context.index.close()
            if context and context.owns_store:
                context.store.close()

    def __enter__(self) -> Self:
        self.init()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- writing ---

    def add(self, content: str, metadata: Metadata | None = None, *, idempotency_key: str | None = None) -> MemoryRecord:
        """Remember a text. Durable when it returns; the same text in the same scope is counted, not stored again."""
        return write.add_many(self._context(), [(content, metadata)], key=idempotency_key)[0].record()

    def ingest(self, content: str, metadata: Metadata | None = None, *, idempotency_key: str | None = None) -> MemoryRecord:
        """The document's other name for `add`."""
        return self.add(content, metadata, idempotency_key=idempotency_key)

    def add_many(self, items: Iterable[tuple[str, Metadata | None]], *, idempotency_key: str | None = None) -> list[MemoryRecord]:
        """Remember many texts at once: the same as single calls, and all or none."""
        return [memory.record() for memory in write.add_many(self._context(), list(items), key=idempotency_key)]

    def ingest_dir(
        self, path: str | PathLike[str], *, extension: str | Sequence[str] = ".md", type: str | None = None,
        recursive: bool = False, progress: Progress | None = None,
    ) -> Ingested:  # fmt: skip
        """Remember each file of a folder as one memory, its path within the folder as `source`. Run again, it adds what is new,
        updates what has changed, leaves the rest alone and names what is gone."""
        wanted = Selection.of(extension, recursive=recursive)
        return folders.ingest(self._context(), fspath(path), wanted, type_=type, progress=progress or no_progress)

    def extract(
        self, text: str, *, min_importance: float = MIN_IMPORTANCE, metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Extraction:  # fmt: skip
        """Let the language model draw memories from a text; those below `min_importance` are dropped. Without a model, or where
        it fails, the text is stored whole, and the answer says why. The metadata goes with each of them."""
        from memory_mesh.flows.extract import extract  # prompts and fences are loaded by who needs them

        return extract(self._context(), text, min_importance=min_importance, metadata=metadata, key=idempotency_key)

    def update(
        self, id: str, *, content: str | None = None, metadata: Metadata | None = None, why: str | None = None,
        idempotency_key: str | None = None,
    ) -> MemoryRecord:  # fmt: skip
        """A new revision. Metadata keys given are set, those given as None are removed, the others stay."""
        newer = change.update(self._context(), id, content=content, metadata=metadata, why=why, key=idempotency_key)
        return newer.record()

    def pin(self, id: str, *, pinned: bool = True) -> MemoryRecord:
        """A pinned memory never decays."""
        return change.set_columns(self._context(), id, action="pin" if pinned else "unpin", pinned=pinned).record()

    def delete(self, id: str) -> None:
        """Erase a memory for good; an unknown id is no error."""
        self.erase(id)

    def erase(self, id: str) -> Erasure:
        """`delete`, with the proof: what is gone and which blocks tell of it."""
        return erase.erase(self._context(), [id])

    def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, session_id: str | None = None,
        project: str | None = None, memory_type: str | None = None,
    ) -> Erasure:  # fmt: skip
        """Erase all memories of a scope, of whatever agent of this user; an empty scope is refused."""
        scope = {
            "user_id": user_id, "agent_id": agent_id, "session_id": session_id, "project": project,
            "memory_type": memory_type,
        }  # fmt: skip
        return erase.erase_all(self._context(), scope)

    # --- reading ---

    def get(self, id: str, *, session_id: str | None = None) -> MemoryRecord | None:
        """A memory of any status by its id, or None."""
        memory = search.get(self._reading(session_id), id)
        return memory.record() if memory else None

    def get_all(
        self, limit: int | None = None, *, filter: str | None = None, status: Sequence[str] = (Status.ACTIVE,),
        session_id: str | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        """What this agent sees, newest first; other statuses only where asked for by name."""
        found = search.get_all(self._reading(session_id), limit=limit, where=_filter(filter), statuses=status)
        return [memory.record() for memory in found]

    def history(self, id: str, *, session_id: str | None = None) -> list[Change]:
        """How a memory became what it is, oldest first."""
        found = search.history(self._reading(session_id), id)
        if found is None:
            raise NotFound(f"no memory {id!r:.80}", remedy="check the id, the agent and the session")
        return found

    def search(
        self, query: str, limit: int = 10, filter: str | None = None, *, use_cache: bool = True, min_score: float | None = None,
        status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None, ranker: str | None = None,
    ) -> list[SearchResult]:  # fmt: skip
        """The memories that answer a query best, highest score first. What scores below `min_score` is left out; without one
        the ranker says what is too little to be an answer."""
        asked = _request(query, limit, filter, min_score, status, ranker)
        return search.search(self._reading(session_id), asked, use_cache=use_cache)

    def explain(
        self, query: str, limit: int = 10, filter: str | None = None, *, min_score: float | None = None,
        status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None, ranker: str | None = None,
    ) -> Explanation:  # fmt: skip
        """The same search, with its reasons: what each channel said of each memory, and what was left out."""
        return search.explain(self._reading(session_id), _request(query, limit, filter, min_score, status, ranker))

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every memory of the store a vector of the embedder's model: those that wait for one, and those of another
        model. It can be stopped and started again; searches go over to the new model in one moment."""
        return embed.reembed(self._context(), progress or no_progress)

    # --- lessons ---

    def distill_lesson(self, context: LessonContext | Metadata, *, idempotency_key: str | None = None) -> LessonBlock:
        """Keep what a failure taught. A lesson of the same pattern that is at least as sure is given back instead; a less sure
        one is superseded."""
        return lessons.distill(self._context(), context, key=idempotency_key)

    def query_lessons(
        self, query: str = "", *, limit: int = 10, order_by: str | None = None, session_id: str | None = None
    ) -> list[LessonBlock]:
        """The lessons that bear on something, best first, or by `order_by="severity DESC"`; an empty query lists the worst first.
        Those below `lesson_min_confidence` stay out."""
        return lessons.query(self._reading(session_id), query, limit=limit, order_by=order_by)

    def get_memories_by_pattern(self, pattern_id: str) -> list[MemoryRecord]:
        """The lessons of a pattern as memories, the surest first."""
        return [memory.record() for memory in lessons.by_pattern(self._context(), pattern_id)]

    def heartbeat(self, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
        """Run the jobs that are due, the guard first; each by one process at a time."""
        from memory_mesh.flows.heartbeat import beat  # it brings all the jobs along

        return beat(self._context(), jobs=jobs, force=force)

    def heartbeat_log(self, *, limit: int = 20) -> list[JobRun]:
        """The latest runs of the heartbeat's jobs, newest first."""
        from memory_mesh.flows.heartbeat import log

        return log(self._context(), limit=limit)

    def distill(self) -> Distilled:
        """Run the distillation cycle now: lessons out of the failures of the last day, and which ones to begin with next."""
        from memory_mesh.flows.distill import cycle

        return cycle(self._context())

    # --- diagnostics ---

    def stats(self) -> MemoryStats:
        """How many memories this user has, and where."""
        context = self._context()
        mine = equals("user_id", context.reader.user_id)
        counts = {status.value: _count(context, mine, status) for status in Status} if context.options.enable_memory else {}
        today, in_all = spending.told(context.state.ledger, iso(context.clock())[:10])
        return MemoryStats(
            total_memories=sum(counts.values()),
            total_skills=0,
            db_path=context.store.url,
            connected=context.options.enable_memory,
            by_status={status: count for status, count in counts.items() if count},
            spent_today=today,
            spent_in_all=in_all,
        )

    def check_models(self) -> tuple[Checked, ...]:
        """Ask the language model and the embedder, where they are set, for one short answer each."""
        return health.check_models(self._context())

    def clear_cache(self) -> None:
        """Forget the answers of earlier searches."""
        self._context().state.cache.clear()

    def get_cache_stats(self) -> CacheStats:
        """How full the search cache is: at most 500 answers, five minutes each."""
        return self._context().state.cache.stats()

    def compact(self) -> bool:
        """Free the bytes of what was deleted from a large store; a small one is freed by the deletion itself."""
        return self._context().store.compact()

    def verify(
        self, *, agent_id: str | None = None, recalls: bool | None = None, head: tuple[int, str] | None = None
    ) -> list[Verdict]:
        """Walk every audit chain of this user, or those of one agent, or of searches alone, or of all else; a `Broken` names the
        first block that is not as it was sealed. `head` is a number and hash noted earlier, of any of these chains."""
        return trail.verify_all(self._context(), Which(agent_id=agent_id, recalls=recalls), noted=head)

    def audit_heads(self, *, agent_id: str | None = None, recalls: bool | None = None) -> list[Head]:
        """Where the audit chains of this user end. Note them elsewhere: `verify(head=…)` tells whether they still hold."""
        return trail.heads(self._told(), Which(agent_id=agent_id, recalls=recalls))

    def audit_log(
        self, limit: int = 20, *, operation: str | None = None, agent_id: str | None = None, recalls: bool | None = None
    ) -> list[Block]:
        """The latest audit blocks of this user, newest first."""
        return trail.log(self._told(), which=Which(agent_id=agent_id, recalls=recalls), operation=operation, limit=limit)

    def audit_export(
        self, *, as_json: bool = True, agent_id: str | None = None, recalls: bool | None = None, progress: Progress | None = None
    ) -> Iterator[str]:
        """The audit chains of this user as lines of JSON, which can be verified without the store, or in the wire format."""
        which = Which(agent_id=agent_id, recalls=recalls)
        return trail.export(self._told(), which=which, as_json=as_json, progress=progress or no_progress)

    def format_results(self, results: Sequence[SearchResult]) -> str:
        """Search results as the block of text that the document puts before an agent."""
        return shown.as_document(results)

    def format_for_model(self, results: Sequence[SearchResult]) -> str:
        """Search results as data for a language model: behind fences that no memory can close, with a notice that nothing
        within is an instruction, and a mark on each memory that tries to give one."""
        return shown.for_model(results, self._context().ids.salt())

    def __getattr__(self, name: str) -> Never:
        if name in NOT_YET:
            raise not_yet(name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def _context(self) -> Context:
        with self._lock:
            self._part()
            if self._opened is None:
                self._opened = self._opening()
                if self._last:
                    self._opened = replace(self._opened, state=self._opened.state.with_queues(self._last))
            return self._opened

    def _part(self) -> None:
        """Start with empty queues in a forked child: the parent writes its own, and a thread that held a lock is gone."""
        if self._process != getpid():
            self._process, self._last = getpid(), None
            if self._opened:
                self._opened = replace(self._opened, state=self._opened.state.with_queues(State()))

    def _told(self) -> Context:
        """The desk, once the searches so far have left their blocks."""
        context = self._context()
        usage.flush(context)
        return context

    def _reading(self, session_id: str | None) -> Context:
        context = self._context()
        return context if session_id is None else replace(context, reader=replace(context.reader, session_id=session_id))


def _request(
    query: str, limit: int, filter_: str | None, min_score: float | None, status: Sequence[str], ranker: str | None
) -> Request:
    return Request(
        query=query, limit=limit, filter=filter_, where=_filter(filter_), min_score=min_score, statuses=status, ranker=ranker
    )  # fmt: skip


def _filter(text: str | None) -> Where:
    return ANYTHING if text is None else filters.parse(text)


def _count(context: Context, mine: Where, status: Status) -> int:
    return context.store.count(Kind.MEMORY, all_of(mine, equals("status", status)))
