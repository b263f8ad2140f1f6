"""The methods of `MemoryMesh` that learn: lessons, reflections, heritage and scheduled jobs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from memory_mesh.core.intake import Metadata
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.learning import Distilled, Heartbeat, HeritageChain, JobRun, LessonBlock, LessonContext, ReflectionResult
from memory_mesh.core.model import (
    MemoryRecord,
)
from memory_mesh.faces.handle import Handle

if TYPE_CHECKING:
    from memory_mesh.flows import lessons, write
else:
    lessons, write = LazyModule("memory_mesh.flows.lessons"), LazyModule("memory_mesh.flows.write")


class Learning(Handle):
    """A mesh that learns from what happened."""

    def distill_lesson(self, context: LessonContext | Metadata, *, idempotency_key: str | None = None) -> LessonBlock:
        """Store the lesson of a failure and return it.

        A known lesson of the same pattern with at least the same confidence is returned instead; one with less confidence is
        superseded. Raises `InvalidInput` for an incomplete context.
        """
        return lessons.distill_lesson(self._context(), context, key=idempotency_key)

    def query_lessons(
        self, query: str = "", *, limit: int = 10, order_by: str | None = None, mode: str = "precise",
        session_id: str | None = None,
    ) -> list[LessonBlock]:  # fmt: skip
        """Return the lessons relevant to a query with their scores, or all of them for an empty query, most severe first.

        `order_by` is "relevance" or "severity DESC". With a query, `mode` says what is left out, as in `search`. Lessons below
        the option `lesson_min_confidence` are always left out.
        """
        return lessons.query(self._in_session(session_id), query, limit=limit, order_by=order_by, mode=mode)

    def get_memories_by_pattern(self, pattern_id: str) -> list[MemoryRecord]:
        """Return the lessons of a pattern as memories, highest confidence first."""
        return [memory.record() for memory in lessons.by_pattern(self._reading(), pattern_id)]

    def reflect(
        self, topic: str | None = None, lookback: int = 10, *, include_reflections: bool = False,
        idempotency_key: str | None = None,
    ) -> ReflectionResult:  # fmt: skip
        """Store the main statements of recent memories as a memory of type `reflection`, and return them with their sources.

        `lookback` is the number of memories to read: those found for the topic, or the newest ones. Without a language model,
        or if it fails, up to five of their sentences are quoted. If nothing is found, nothing is stored, and `note` of the
        result says so. Reflections are not read, unless `include_reflections` is set. An earlier reflection of this agent on the
        same topic is superseded.
        """
        from memory_mesh.flows.reflect import REFLECT, reflect

        options = {"topic": topic, "lookback": lookback, "include_reflections": include_reflections}
        return reflect(self._context(), REFLECT, **options, key=idempotency_key)

    def synthesize(
        self, topic: str | None = None, *, include_reflections: bool = False, idempotency_key: str | None = None
    ) -> ReflectionResult:
        """Store what up to 100 memories on a topic, or the newest 100, say together. Like `reflect`, with up to 15 statements."""
        from memory_mesh.flows.reflect import SYNTHESIZE, reflect

        options = {"topic": topic, "include_reflections": include_reflections}
        return reflect(self._context(), SYNTHESIZE, **options, key=idempotency_key)

    def insert_heritage(self, memory_id: str, heritage: HeritageChain | Metadata) -> None:
        """Set the heritage of a memory: the intents, hypotheses and rationales that led to it, oldest first.

        Of lists longer than the option `max_heritage_depth` the last entries are kept. An earlier heritage is replaced; the
        history keeps it. Raises `NotFound` if the memory is not visible, and `InvalidInput` for anything but lists of texts.
        """
        context, chain = self._context(), HeritageChain.parse(heritage)
        stored = context.gate().clean_metadata(chain.stored(context.options.max_heritage_depth))
        write.set_columns(context, memory_id, action="heritage", heritage_chain=stored)

    def heartbeat(self, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
        """Run the scheduled jobs that are due, and return their results.

        `jobs` names the only ones to run; `force` runs them even if they are not due. The guard runs first: if it finds damage,
        no other job runs. Each job is run by one process at a time.
        """
        from memory_mesh.flows.heartbeat import beat  # loads all jobs

        return beat(self._context(), jobs=jobs, force=force)

    def heartbeat_log(self, *, limit: int = 20) -> list[JobRun]:
        """Return the latest runs of the scheduled jobs, newest first."""
        from memory_mesh.flows.heartbeat import log

        return log(self._reading(), limit=limit)

    def distill(self) -> Distilled:
        """Distill lessons from the failures of the last day now, and return what was distilled and skipped."""
        return lessons.run_distillation(self._context())
