"""The same mesh for `async` code: one `to_thread` line for each method. A test holds the signatures equal to the mesh's own."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from os import PathLike
from threading import Event
from types import TracebackType
from typing import Never, ParamSpec, Self, TypeVar

from memory_mesh.core.audit.chain import Verdict
from memory_mesh.core.cancel import cancellable
from memory_mesh.core.learning.jobs import Heartbeat, JobRun
from memory_mesh.core.learning.lessons import Distilled, LessonBlock, LessonContext
from memory_mesh.core.model.records import MIN_IMPORTANCE, Block, Change, Extraction, Head, MemoryRecord, SearchResult, Status
from memory_mesh.core.ports import Progress
from memory_mesh.core.search.cache import CacheStats
from memory_mesh.core.search.explain import Explanation
from memory_mesh.faces.mesh import MemoryStats, Mesh, Metadata
from memory_mesh.flows.check import Checked
from memory_mesh.flows.erase import Erasure
from memory_mesh.flows.folders import Ingested
from memory_mesh.flows.reembed import Reembedded

Given = ParamSpec("Given")
Answer = TypeVar("Answer")


async def to_thread(call: Callable[Given, Answer], *args: Given.args, **options: Given.kwargs) -> Answer:
    """Run a call in a thread. Where the task is cancelled, a call to a language model that is under way stops too."""
    import asyncio  # 25 ms that only asynchronous programs need, and they have it already

    stop = Event()

    def run() -> Answer:
        with cancellable(stop):
            return call(*args, **options)

    try:
        return await asyncio.to_thread(run)
    except asyncio.CancelledError:
        stop.set()
        raise


class AsyncMesh:
    """A mesh whose methods are awaited. They run in threads, so that a slow disk never holds up the event loop."""

    def __init__(self, mesh: Mesh) -> None:
        self._mesh = mesh

    async def init(self) -> None:
        await to_thread(self._mesh.init)

    async def close(self) -> None:
        await to_thread(self._mesh.close)

    async def __aenter__(self) -> Self:
        await self.init()
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()

    async def add(self, content: str, metadata: Metadata | None = None, *, idempotency_key: str | None = None) -> MemoryRecord:
        return await to_thread(self._mesh.add, content, metadata, idempotency_key=idempotency_key)

    async def ingest(self, content: str, metadata: Metadata | None = None, *, idempotency_key: str | None = None) -> MemoryRecord:
        return await to_thread(self._mesh.ingest, content, metadata, idempotency_key=idempotency_key)

    async def add_many(
        self, items: Iterable[tuple[str, Metadata | None]], *, idempotency_key: str | None = None
    ) -> list[MemoryRecord]:
        return await to_thread(self._mesh.add_many, items, idempotency_key=idempotency_key)

    async def ingest_dir(
        self, path: str | PathLike[str], *, extension: str | Sequence[str] = ".md", type: str | None = None,
        recursive: bool = False, progress: Progress | None = None,
    ) -> Ingested:  # fmt: skip
        return await to_thread(
            self._mesh.ingest_dir, path, extension=extension, type=type, recursive=recursive, progress=progress
        )

    async def extract(
        self, text: str, *, min_importance: float = MIN_IMPORTANCE, metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Extraction:  # fmt: skip
        return await to_thread(
            self._mesh.extract, text, min_importance=min_importance, metadata=metadata, idempotency_key=idempotency_key
        )

    async def update(
        self, id: str, *, content: str | None = None, metadata: Metadata | None = None, why: str | None = None,
        idempotency_key: str | None = None,
    ) -> MemoryRecord:  # fmt: skip
        return await to_thread(
            self._mesh.update, id, content=content, metadata=metadata, why=why, idempotency_key=idempotency_key
        )

    async def pin(self, id: str, *, pinned: bool = True) -> MemoryRecord:
        return await to_thread(self._mesh.pin, id, pinned=pinned)

    async def delete(self, id: str) -> None:
        await to_thread(self._mesh.delete, id)

    async def erase(self, id: str) -> Erasure:
        return await to_thread(self._mesh.erase, id)

    async def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, session_id: str | None = None,
        project: str | None = None, memory_type: str | None = None,
    ) -> Erasure:  # fmt: skip
        return await to_thread(
            self._mesh.delete_all,
            user_id=user_id, agent_id=agent_id, session_id=session_id, project=project, memory_type=memory_type,
        )  # fmt: skip

    async def get(self, id: str, *, session_id: str | None = None) -> MemoryRecord | None:
        return await to_thread(self._mesh.get, id, session_id=session_id)

    async def get_all(
        self, limit: int | None = None, *, filter: str | None = None, status: Sequence[str] = (Status.ACTIVE,),
        session_id: str | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        return await to_thread(self._mesh.get_all, limit, filter=filter, status=status, session_id=session_id)

    async def history(self, id: str, *, session_id: str | None = None) -> list[Change]:
        return await to_thread(self._mesh.history, id, session_id=session_id)

    async def search(
        self, query: str, limit: int = 10, filter: str | None = None, *, use_cache: bool = True, min_score: float | None = None,
        status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None, ranker: str | None = None,
    ) -> list[SearchResult]:  # fmt: skip
        return await to_thread(
            self._mesh.search, query, limit, filter,
            use_cache=use_cache, min_score=min_score, status=status, session_id=session_id, ranker=ranker,
        )  # fmt: skip

    async def explain(
        self, query: str, limit: int = 10, filter: str | None = None, *, min_score: float | None = None,
        status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None, ranker: str | None = None,
    ) -> Explanation:  # fmt: skip
        return await to_thread(
            self._mesh.explain, query, limit, filter,
            min_score=min_score, status=status, session_id=session_id, ranker=ranker,
        )  # fmt: skip

    async def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        return await to_thread(self._mesh.reembed, progress=progress)

    async def distill_lesson(self, context: LessonContext | Metadata, *, idempotency_key: str | None = None) -> LessonBlock:
        return await to_thread(self._mesh.distill_lesson, context, idempotency_key=idempotency_key)

    async def query_lessons(
        self, query: str = "", *, limit: int = 10, order_by: str | None = None, session_id: str | None = None
    ) -> list[LessonBlock]:
        return await to_thread(self._mesh.query_lessons, query, limit=limit, order_by=order_by, session_id=session_id)

    async def get_memories_by_pattern(self, pattern_id: str) -> list[MemoryRecord]:
        return await to_thread(self._mesh.get_memories_by_pattern, pattern_id)

    async def heartbeat(self, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
        return await to_thread(self._mesh.heartbeat, jobs=jobs, force=force)

    async def heartbeat_log(self, *, limit: int = 20) -> list[JobRun]:
        return await to_thread(self._mesh.heartbeat_log, limit=limit)

    async def distill(self) -> Distilled:
        return await to_thread(self._mesh.distill)

    async def stats(self) -> MemoryStats:
        return await to_thread(self._mesh.stats)

    async def check_models(self) -> tuple[Checked, ...]:
        return await to_thread(self._mesh.check_models)

    async def clear_cache(self) -> None:
        await to_thread(self._mesh.clear_cache)

    async def get_cache_stats(self) -> CacheStats:
        return await to_thread(self._mesh.get_cache_stats)

    async def compact(self) -> bool:
        return await to_thread(self._mesh.compact)

    async def verify(
        self, *, agent_id: str | None = None, recalls: bool | None = None, head: tuple[int, str] | None = None
    ) -> list[Verdict]:
        return await to_thread(self._mesh.verify, agent_id=agent_id, recalls=recalls, head=head)

    async def audit_heads(self, *, agent_id: str | None = None, recalls: bool | None = None) -> list[Head]:
        return await to_thread(self._mesh.audit_heads, agent_id=agent_id, recalls=recalls)

    async def audit_log(
        self, limit: int = 20, *, operation: str | None = None, agent_id: str | None = None, recalls: bool | None = None
    ) -> list[Block]:
        return await to_thread(self._mesh.audit_log, limit, operation=operation, agent_id=agent_id, recalls=recalls)

    async def audit_export(
        self, *, as_json: bool = True, agent_id: str | None = None, recalls: bool | None = None, progress: Progress | None = None
    ) -> Iterator[str]:
        return await to_thread(self._mesh.audit_export, as_json=as_json, agent_id=agent_id, recalls=recalls, progress=progress)

    async def format_results(self, results: Sequence[SearchResult]) -> str:
        return await to_thread(self._mesh.format_results, results)

    async def format_for_model(self, results: Sequence[SearchResult]) -> str:
        return await to_thread(self._mesh.format_for_model, results)

    def __getattr__(self, name: str) -> Never:
        # What the mesh does not have yet, it says itself; a copy in the making has no mesh to ask.
        if name != "_mesh":
            getattr(self._mesh, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
