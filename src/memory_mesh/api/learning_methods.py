"""The methods of `MemoryMesh` that learn, run scheduled jobs, audit and evaluate."""

from collections.abc import Iterable, Iterator, Sequence
from os import PathLike
from time import perf_counter

from memory_mesh.api.handle import Handle
from memory_mesh.core import errors
from memory_mesh.core.audit import Anchored, Rekeyed, Verdict
from memory_mesh.core.intake import Metadata
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
from memory_mesh.core.model import Block, Head, Ingested, MemoryRecord
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.search.evaluation import Evaluation
from memory_mesh.core.upkeep.hooks import HookStatus
from memory_mesh.flows.context import Context


class Learning(Handle):
    """A mesh that learns from what happened."""

    def distill_lesson(
        self, context: LessonContext | Metadata, *, idempotency_key: str | None = None
    ) -> LessonBlock:
        """Store the lesson of a failure and return it.

        A known lesson of the same pattern with at least the same confidence is returned instead;
        one with less confidence is superseded. Raises `InvalidInput` for an incomplete context.
        """
        from memory_mesh.flows.learning import lessons

        return lessons.distill_lesson(self._context(), context, key=idempotency_key)

    def query_lessons(
        self, query: str = "", *, limit: int = 10, order_by: str | None = None,
        mode: str = "precise", session_id: str | None = None,
    ) -> list[LessonBlock]:  # fmt: skip
        """Return the lessons relevant to a query with their scores, or all of them for an empty
        query, most severe first.

        `order_by` is "relevance" or "severity DESC". With a query, `mode` says what is left out, as
        in `search`. Lessons below the option `lesson_min_confidence` are always left out.
        """
        from memory_mesh.flows.learning import lessons

        return lessons.query(
            self._in_session(session_id), query, limit=limit, order_by=order_by, mode=mode
        )

    def get_memories_by_pattern(self, pattern_id: str) -> list[MemoryRecord]:
        """Return the lessons of a pattern as memories, highest confidence first."""
        from memory_mesh.flows.learning import lessons
        from memory_mesh.flows.search import readable

        return readable.records(context := self._reading(), lessons.by_pattern(context, pattern_id))

    def reflect(
        self, topic: str | None = None, lookback: int = 10, *, include_reflections: bool = False,
        idempotency_key: str | None = None,
    ) -> ReflectionResult:  # fmt: skip
        """Store the main statements of recent memories as a memory of type `reflection`, and return
        them with their sources.

        `lookback` is the number of memories to read: those found for the topic, or the newest ones.
        Without a language model, or if it fails, up to five of their sentences are quoted. If
        nothing is found, nothing is stored, and `note` of the result says so. Reflections are not
        read, unless `include_reflections` is set. An earlier reflection of this agent on the same
        topic is superseded.
        """
        from memory_mesh.flows.learning.reflect import REFLECT, reflect

        options = {"topic": topic, "lookback": lookback, "include_reflections": include_reflections}
        return reflect(self._context(), REFLECT, **options, key=idempotency_key)

    def synthesize(
        self,
        topic: str | None = None,
        *,
        include_reflections: bool = False,
        idempotency_key: str | None = None,
    ) -> ReflectionResult:
        """Store what up to 100 memories on a topic, or the newest 100, say together. Like
        `reflect`, with up to 15 statements."""
        from memory_mesh.flows.learning.reflect import SYNTHESIZE, reflect

        options = {"topic": topic, "include_reflections": include_reflections}
        return reflect(self._context(), SYNTHESIZE, **options, key=idempotency_key)

    def insert_heritage(self, memory_id: str, heritage: HeritageChain | Metadata) -> None:
        """Set the heritage of a memory: the intents, hypotheses and rationales that led to it,
        oldest first.

        Of lists longer than the option `max_heritage_depth` the last entries are kept. An earlier
        heritage is replaced; the history keeps it. Raises `NotFound` if the memory is not visible,
        and `InvalidInput` for anything but lists of texts.
        """
        from memory_mesh.flows.write import write

        context, chain = self._context(), HeritageChain.parse(heritage)
        stored = context.gates.content().clean_metadata(
            chain.stored(context.options.max_heritage_depth)
        )
        write.set_columns(context, memory_id, action="heritage", heritage_chain=stored)

    def heartbeat(self, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
        """Run the scheduled jobs that are due, and return their results.

        `jobs` names the only ones to run; `force` runs them even if they are not due. The guard
        runs first: if it finds damage, no other job runs. Each job is run by one process at a time.
        """
        from memory_mesh.flows.learning.heartbeat import beat  # loads all jobs

        return beat(self._context(), jobs=jobs, force=force)

    def heartbeat_log(self, *, limit: int = 20) -> list[JobRun]:
        """Return the latest runs of the scheduled jobs, newest first."""
        from memory_mesh.flows.learning.heartbeat import log

        return log(self._reading(), limit=limit)

    def hooks_status(self) -> list[HookStatus]:
        """Return the hooks of `writethrough`, and those of other programs on this store: what
        waits for each, and what failed."""
        from memory_mesh.flows.upkeep.hooks import status

        return status(self._reading())

    def retry_hooks(self) -> list[HookStatus]:
        """Queue the dead letters of this mesh's hooks again, deliver what waits now, and return the
        status of all hooks.

        The first failure ends the attempt: what is left waits for the next one.
        """
        from memory_mesh.flows.upkeep.hooks import retry

        return retry(self._context())

    def distill(self) -> Distilled:
        """Distill lessons from the failures of the last day now, and return what was distilled
        and skipped."""
        from memory_mesh.flows.learning import lessons

        return lessons.run_distillation(self._context())

    # --- skills ---

    def ingest_skill(
        self, yamo_text: str, metadata: Metadata | None = None,
        source_file_path: str | PathLike[str] | None = None, *, idempotency_key: str | None = None,
    ) -> SkillRecord:  # fmt: skip
        """Store a skill and return it. Its name and intent come from YAMO keys or YAML frontmatter,
        or from the metadata.

        A text of the same file, or without a file of the same name, becomes a new revision of that
        skill, which keeps its reliability. A new skill has a reliability of 0.5. Raises
        `InvalidInput` for a text without a name or an intent.
        """
        from memory_mesh.flows.learning import skills

        path = (
            None if source_file_path is None else errors.path("source_file_path", source_file_path)
        )
        return skills.ingest(self._context(), yamo_text, metadata, path, idempotency_key)

    def sync_skills(self) -> list[Ingested]:
        """Read the files of `skill_directories`, and return what was added, changed, not readable
        and gone in each folder.

        `init` does it, and the first call about skills. Skills of missing files are kept.
        """
        from memory_mesh.flows.mirror.folders import read_all

        return read_all(self._context())

    def search_skills(
        self, query: str, limit: int = 5, *, min_score: float = 0.0
    ) -> list[SkillResult]:
        """Return the active skills that fit a query best, highest score first.

        The score is 0.7 × keywords + 0.3 × similarity of the intent. Of the keywords, those in the
        name weigh 3, in the intent 2, in tags and description 1 each; `keyword_fractions` of a
        result has the parts. Raises `InvalidInput` for a blank query.
        """
        from memory_mesh.flows.learning import skills

        return skills.search(self._skills(), query, limit=limit, min_score=min_score)

    def list_skills(self, limit: int | None = None) -> list[SkillRecord]:
        """Return the active skills, newest first."""
        from memory_mesh.flows.learning import skills

        return skills.list_all(self._skills(), limit)

    def get_skill(self, id: str) -> SkillRecord | None:
        """Return a skill of any status; None if it is not visible."""
        from memory_mesh.flows.learning import skills

        return skills.get(self._skills(), id)

    def update_skill_reliability(
        self,
        id: str,
        success: bool,  # noqa: FBT001  (as in RFC-0011)
        *,
        idempotency_key: str | None = None,
    ) -> ReliabilityUpdate:
        """Record a use of a skill: success adds 0.1 to its reliability, failure takes 0.2, within 0
        and 1.

        Raises `NotFound` if the skill is not visible.
        """
        from memory_mesh.flows.learning import skills

        return skills.record_use(self._context(), id, success, idempotency_key)

    def prune_skills(self, threshold: float = PRUNED_BELOW) -> PruneResult:
        """Archive the skills whose reliability is below a threshold. None is erased; ingesting
        one again makes it active."""
        from memory_mesh.flows.learning import skills

        return skills.prune(self._context(), threshold)

    def lesson_to_skill(self, lesson_id: str) -> SkillRecord:
        """Store a lesson as a skill, or return the skill that was made of it, and keep the lesson.

        `lesson_id` is the id of the lesson or of its memory. Erasing the lesson erases the skill
        too. Raises `NotFound` if the lesson is not visible.
        """
        from memory_mesh.flows.learning import skills

        return skills.from_lesson(self._context(), lesson_id)

    def _skills(self) -> Context:
        """Return the context for reading skills, after the files of `skill_directories` were
        read once."""
        context = self._reading()
        if context.options.skill_directories:
            from memory_mesh.flows.mirror.folders import read_once

            read_once(context)
        return context


# --- audit and evaluation ---


class Auditing(Handle):
    """A mesh whose audit chains can be read, and whose answers can be measured."""

    def verify(
        self, *, agent_id: str | None = None, recalls: bool | None = None,
        head: tuple[int, str] | None = None, anchor: str | PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> list[Verdict]:  # fmt: skip
        """Verify the audit chains of this user, and return `Sound` or `Broken` for each.

        A `Broken` names the first block that was changed. `agent_id` selects the chains of one
        agent; `recalls` selects only the chains of searches (True) or only the others (False).
        `head` is the number and the seal (or hash) of an earlier head, and `anchor` a file of
        `audit_anchor`, whose heads are all compared. `Sound.signature` says whether the signature
        of the chain was checked, and why not.
        """
        from memory_mesh.flows.audit.audit import ChainSelection, verify_chains

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        file = None if anchor is None else errors.path("anchor", anchor)
        return verify_chains(
            self._reading(), selection, noted=head, file=file, progress=as_progress(progress)
        )

    def audit_heads(
        self, *, agent_id: str | None = None, recalls: bool | None = None
    ) -> list[Head]:
        """Return the last block of each audit chain of this user.

        Store it elsewhere: `verify(head=…)` then detects if the end of the chain was removed.
        """
        from memory_mesh.flows.audit.audit import ChainSelection, heads

        return heads(self._flushed(), ChainSelection(agent_id=agent_id, recalls=recalls))

    def audit_anchor(self, to: str | PathLike[str] | None = None) -> Anchored:
        """Append the heads of this user's chains to a file, or send them to a URL. The default is
        the option `audit_anchor`.

        `verify(anchor=…)` compares them later, and finds an older copy of the store. Raises
        `InvalidInput` for a file that cannot be used, and `CallError` if the URL cannot be called.
        """
        from memory_mesh.flows.audit.audit import anchor

        return anchor(self._flushed(), None if to is None else errors.path("to", to))

    def audit_rekey(self) -> Rekeyed:
        """Make a new key for the signatures of the audit chains, and move every chain of this user
        to it.

        The old key stays in the key file. Raises `SettingsError` if a chain is signed with a key
        that is not in the file.
        """
        from memory_mesh.flows.audit.audit import rekey

        self._existing()
        return rekey(self._flushed())

    def audit_log(
        self, limit: int = 20, *, operation: str | None = None, agent_id: str | None = None,
        recalls: bool | None = None, auditor: str | None = None,
    ) -> list[Block]:  # fmt: skip
        """Return the latest audit blocks of this user, newest first.

        Texts of memories and queries that this agent and session may not see are `withheld`.
        `auditor`, the name of a person, shows all of them; an audit block records that first.
        """
        from memory_mesh.flows.audit.audit import ChainSelection, log

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        return log(
            self._flushed(), selection=selection, operation=operation, limit=limit, auditor=auditor
        )

    def audit_export(
        self, *, as_json: bool = True, agent_id: str | None = None, recalls: bool | None = None,
        auditor: str | None = None, progress: Progress | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield the audit chains of this user as lines of JSON, which can be verified without the
        store, or in wire format.

        Texts are withheld as in `audit_log`; the wire format leaves out such blocks. `auditor`
        shows all of them.
        """
        from memory_mesh.flows.audit.audit import ChainSelection, export

        selection, update = (
            ChainSelection(agent_id=agent_id, recalls=recalls),
            as_progress(progress),
        )
        return export(
            self._flushed(), selection=selection, as_json=as_json, auditor=auditor, progress=update
        )

    def evaluate(
        self,
        questions: Iterable[str] | None = None,
        *,
        count: int = 50,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Measure what questions find in the memories that this agent sees, and check what is
        stored. Nothing is changed.

        `questions` are lines of JSON such as `{"question": "Who pays?", "expect": ["mem_…"]}`, with
        ids or texts, or with `"nothing": true`; `"stale"` lists outdated memories. Without them
        the language model writes at most `count` questions in other words than the memories. As
        many are made by rules, of the memories' own words: an upper bound (`own_words`), not
        recall. As many are about things that no memory mentions. By rules, the same `seed` makes
        the same questions. The searches are not counted as uses and not written to the audit chain.
        Raises `InvalidInput` with the number of a line that is not a question.
        """
        from memory_mesh.flows.search.evaluate import Request, evaluate

        lines = (
            None
            if questions is None
            else errors.iterable("questions", questions, expected="lines of JSON")
        )
        request = Request(
            lines=lines, count=count, seed=seed, timer=perf_counter, progress=as_progress(progress)
        )
        return evaluate(self._context(), request)
