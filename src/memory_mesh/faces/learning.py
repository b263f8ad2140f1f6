"""The methods of `MemoryMesh` that learn: lessons, reflections, heritage, skills and scheduled jobs."""

from collections.abc import Sequence
from os import PathLike
from typing import TYPE_CHECKING

from memory_mesh.core import checks
from memory_mesh.core.hooks import HookStatus
from memory_mesh.core.intake import Metadata
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.learning import (
    PRUNED_BELOW,
    Distilled,
    Heartbeat,
    HeritageChain,
    JobRun,
    LessonBlock,
    LessonContext,
    PruneResult,
    ReflectionResult,
    ReliabilityUpdate,
    SkillRecord,
    SkillResult,
)
from memory_mesh.core.model import Ingested, MemoryRecord
from memory_mesh.faces.handle import Handle
from memory_mesh.flows.context import Context

if TYPE_CHECKING:
    from memory_mesh.flows import lessons, skills, trust, write
else:
    lessons = LazyModule("memory_mesh.flows.lessons")
    skills = LazyModule("memory_mesh.flows.skills")
    trust = LazyModule("memory_mesh.flows.trust")
    write = LazyModule("memory_mesh.flows.write")


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
        return trust.records(context := self._reading(), lessons.by_pattern(context, pattern_id))

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

    def hooks_status(self) -> list[HookStatus]:
        """Return the hooks of `writethrough`, and those of other programs on this store: what waits for each, and what failed."""
        from memory_mesh.flows.hooks import status

        return status(self._reading())

    def retry_hooks(self) -> list[HookStatus]:
        """Queue the dead letters of this mesh's hooks again, deliver what waits now, and return the status of all hooks.

        The first failure ends the attempt: what is left waits for the next one.
        """
        from memory_mesh.flows.hooks import retry

        return retry(self._context())

    def distill(self) -> Distilled:
        """Distill lessons from the failures of the last day now, and return what was distilled and skipped."""
        return lessons.run_distillation(self._context())

    # --- skills ---

    def ingest_skill(
        self, yamo_text: str, metadata: Metadata | None = None, source_file_path: str | PathLike[str] | None = None, *,
        idempotency_key: str | None = None,
    ) -> SkillRecord:  # fmt: skip
        """Store a skill and return it. Its name and intent come from YAMO keys or YAML frontmatter, or from the metadata.

        A text of the same file, or without a file of the same name, becomes a new revision of that skill, which keeps its
        reliability. A new skill has a reliability of 0.5. Raises `InvalidInput` for a text without a name or an intent.
        """
        path = None if source_file_path is None else checks.path("source_file_path", source_file_path)
        return skills.ingest(self._context(), yamo_text, metadata, path, idempotency_key)

    def sync_skills(self) -> list[Ingested]:
        """Read the files of `skill_directories`, and return what was added, changed, not readable and gone in each folder.

        `init` does it, and the first call about skills. Skills of missing files are kept.
        """
        from memory_mesh.flows.skill_folders import read_all

        return read_all(self._context())

    def search_skills(self, query: str, limit: int = 5, *, min_score: float = 0.0) -> list[SkillResult]:
        """Return the active skills that fit a query best, highest score first.

        The score is 0.7 × keywords + 0.3 × similarity of the intent. Of the keywords, those in the name weigh 3, in the intent
        2, in tags and description 1 each; `keyword_fractions` of a result has the parts. Raises `InvalidInput` for a blank query.
        """
        return skills.search(self._skills(), query, limit=limit, min_score=min_score)

    def list_skills(self, limit: int | None = None) -> list[SkillRecord]:
        """Return the active skills, newest first."""
        return skills.list_all(self._skills(), limit)

    def get_skill(self, id: str) -> SkillRecord | None:
        """Return a skill of any status; None if it is not visible."""
        return skills.get(self._skills(), id)

    def update_skill_reliability(self, id: str, success: bool, *, idempotency_key: str | None = None) -> ReliabilityUpdate:  # noqa: FBT001  (as in RFC-0011)
        """Record a use of a skill: success adds 0.1 to its reliability, failure takes 0.2, within 0 and 1.

        Raises `NotFound` if the skill is not visible.
        """
        return skills.record_use(self._context(), id, success, idempotency_key)

    def prune_skills(self, threshold: float = PRUNED_BELOW) -> PruneResult:
        """Archive the skills whose reliability is below a threshold. None is erased; ingesting one again makes it active."""
        return skills.prune(self._context(), threshold)

    def lesson_to_skill(self, lesson_id: str) -> SkillRecord:
        """Store a lesson as a skill, or return the skill that was made of it, and keep the lesson.

        `lesson_id` is the id of the lesson or of its memory. Erasing the lesson erases the skill too. Raises `NotFound` if the
        lesson is not visible.
        """
        return skills.from_lesson(self._context(), lesson_id)

    def _skills(self) -> Context:
        """Return the context for reading skills, after the files of `skill_directories` were read once."""
        context = self._reading()
        if context.options.skill_directories:
            from memory_mesh.flows.skill_folders import read_once

            read_once(context)
        return context
