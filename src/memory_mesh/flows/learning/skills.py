"""Skills: store and find them, record how their use ended, and archive unreliable ones.

A skill is a memory of its own kind: it has a history, audit blocks and a scope. A text of the same
file, or without a file of the same name, is a new revision of the skill, which keeps its
reliability.
"""

import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from memory_mesh.core import learning, model
from memory_mesh.core.audit import Entry
from memory_mesh.core.errors import InvalidInput, NotFound, fraction, shown
from memory_mesh.core.intake import read_content, read_metadata
from memory_mesh.core.intake.drafts import columns_of
from memory_mesh.core.learning import (
    DerivedScope,
    PruneResult,
    ReliabilityUpdate,
    SkillRecord,
    SkillResult,
)
from memory_mesh.core.model import (
    In,
    Kind,
    Memory,
    MemoryType,
    Reader,
    Row,
    Skill,
    Status,
    Value,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.search import tokens
from memory_mesh.core.text import without_masks
from memory_mesh.flows.audit.chains import own_audit_rows, retain_entry
from memory_mesh.flows.context import (
    Context,
    Plan,
    check_texts,
    commit,
    find_memory,
    intact,
    require_memory,
)
from memory_mesh.flows.search.readable import readable
from memory_mesh.flows.search.reads import checked_limit
from memory_mesh.flows.search.search import checked_query
from memory_mesh.flows.write import revisions
from memory_mesh.flows.write.embed import Vectors, embed_query
from memory_mesh.flows.write.prepare import find_replayed, receipt_rows, request_hash
from memory_mesh.flows.write.revisions import archive

_SCOPE = ("memory_type", "reach", "session_id", "project")
_KEY_AND_VALUE = re.compile(r"^([ \t]*(\w+)[ \t]*;)([^\n]+)", flags=re.MULTILINE)
_KEY_ID = re.compile("[0-9a-f]{16}")
_FIXED = ("agent_id", "session_id", "turn")  # columns that a new revision does not change


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillDraft:
    """A checked and cleaned skill, not stored yet."""

    name: str
    intent: str
    content: str
    metadata: dict[str, Value]  # without the record of use
    use: dict[str, Value]  # that of a new skill
    columns: dict[str, Any]  # scope, tags and what else the metadata fills
    fingerprint: str
    redactions: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """A skill and what was done: `add`, `update`, or an empty text for nothing."""

    skill: Skill
    action: str = ""


# --- storing ---


def ingest(
    context: Context, text: object, metadata: object, source: str | None, key: str | None
) -> SkillRecord:
    """Store a skill, or a new revision of the one with the same file or name, and make it
    active."""
    path = None if source is None else os.path.realpath(os.path.expanduser(source))
    draft = prepare(context, text, metadata, source=path)
    request = request_hash("ingest_skill", draft.content, draft.metadata, draft.fingerprint)
    (stored,) = store(context, [draft], key=key, request=request)
    return SkillRecord.of(replace(stored.skill, redactions=draft.redactions))


def prepare(
    context: Context,
    text: object,
    metadata: object,
    *,
    source: str | None = None,
    default_name: str | None = None,
) -> SkillDraft:
    """Check and clean the text of a skill and its metadata; `source` is the path of its file."""
    gate, given = context.gates.content(), read_metadata(metadata, context.limits)
    content = read_content(text, context.limits)
    read = learning.read_skill(content, given, default_name)
    own: dict[str, Value] = {
        name: value
        for name, value in given.items()
        if name not in (*learning.USE, "name", "intent")
    }
    own |= {"description": read.description} if read.description else {}
    own |= {"tags": [*read.tags]} if read.tags else {}
    own |= {} if source is None else {"source": source}
    cleaned, clean = gate.clean_metadata(own), redacted_lines(gate.redact, content)
    columns = columns_of(cleaned, context.reader)
    identity = ("name", read.name) if source is None else ("file", source)
    return SkillDraft(
        name=gate.redact(read.name),
        # Only the intent is embedded, so only the intent is scrubbed: the definition stays as its
        # author wrote it.
        intent=learning.first_sentence(gate.clean_content(read.intent)),
        content=clean,
        metadata=cleaned,
        use=learning.first_use(given, iso(context.clock())),
        columns=columns,
        fingerprint=learning.skill_fingerprint(columns, context.reader, *identity),
        redactions=gate.count((content, clean), (own, cleaned)),
    )


def redacted_lines(redact: Callable[[str], str], text: str) -> str:
    """Return the text of a skill or a block redacted. The key of a YAMO line is a cue for its
    value, as in `password;value;`."""

    def line(found: re.Match[str]) -> str:
        cue, value = f"{found[2]}: ", found[3].rstrip(" \t").removesuffix(";")
        # Of an audit block: the id of a key, not the key.
        if found[2] == "signing_key" and _KEY_ID.fullmatch(value):
            return found[0]
        masked = redact(cue + value)
        return (
            found[1] + masked.removeprefix(cue) + found[3][len(value) :]
            if masked.startswith(cue)
            else found[0]
        )

    return _KEY_AND_VALUE.sub(line, redact(text))


def store(
    context: Context,
    drafts: Sequence[SkillDraft],
    *,
    key: str | None = None,
    request: str = "",
    revive: bool = True,
) -> list[Stored]:
    """Store skills in one write. With `revive`, an archived one becomes active again even if
    nothing in it changed."""
    vectors = Vectors()

    def decide() -> Plan[list[Stored]]:
        if replayed := find_replayed(context, key, request):
            return Plan([Stored(require_skill(context, replayed, any_reader=True))])
        plan = _plan_store(context, drafts, vectors, revive=revive)
        return replace(
            plan, puts=[*plan.puts, *receipt_rows(context, key, plan.answer[0].skill.id, request)]
        )

    return commit(context, decide) if drafts else []


def _plan_store(
    context: Context, drafts: Sequence[SkillDraft], vectors: Vectors, *, revive: bool
) -> Plan[list[Stored]]:
    seen = {name: context.store.version(name) for name in model.partitions(context.reader)}
    for source in {id_ for draft in drafts for id_ in draft.columns.get("sources", [])}:
        # A skill must not quote a memory that was erased meanwhile.
        require_memory(context, source, any_reader=True)
    rows = context.store.find(
        Kind.SKILL, In("fingerprint", tuple(draft.fingerprint for draft in drafts))
    )
    known = {str(skill.fingerprint): skill for skill in map(Skill.of, intact(context, rows))}
    pairs = [(draft, known.get(draft.fingerprint)) for draft in drafts]
    vectors.embed(
        context, [draft.intent for draft, old in pairs if old is None or old.intent != draft.intent]
    )
    answers, puts, entries = list[Stored](), list[Row](), list[Entry]()
    for draft, old in pairs:
        if old is None:
            skill, action = _new(context, draft, vectors, after=len(puts)), "add"
            puts.append(skill.row())
            entries.append(retain_entry(context, context.clock(), skill, action))
        elif updates := _updates(draft, old, vectors, revive=revive):
            ms, action = context.clock(), "update"
            skill, change, entry = revisions.revise(
                context, ms, old, action=action, updated_at=iso(ms), **updates
            )
            puts += [skill.row(replaces=old.revision), change]
            entries.append(entry)
        else:
            skill, action = old, ""
        answers.append(Stored(skill, action))
    more = [*vectors.model_rows(context), *own_audit_rows(context, entries)] if puts else []
    return Plan(answers, [*puts, *more], seen=seen if puts else {})


def _new(context: Context, draft: SkillDraft, vectors: Vectors, *, after: int) -> Skill:
    """Return a new skill, to be written after so many other rows."""
    ms, embedded = context.clock(), vectors[draft.intent]
    at, columns = (
        iso(ms),
        {name: value for name, value in draft.columns.items() if value is not None},
    )
    skill = Skill(
        id=context.ids.new("skill", ms), name=draft.name, intent=draft.intent,
        content=draft.content, metadata={**draft.metadata, **draft.use}, created_at=at,
        updated_at=at,
        user_id=context.reader.user_id, agent_id=context.reader.agent_id,
        fingerprint=draft.fingerprint, salt=context.ids.salt(), vector=embedded.own,
        pending=embedded.pending, sealed=context.options.enable_yamo, **columns,
    )  # fmt: skip
    return replace(skill, number=context.store.version(skill.partition) + 1 + after)


def _updates(draft: SkillDraft, known: Skill, vectors: Vectors, *, revive: bool) -> dict[str, Any]:
    """Return the columns to change; empty if the known skill stays as it is. It keeps its record
    of use."""
    use = {name: value for name, value in known.metadata.items() if name in learning.USE}
    new = {
        "name": draft.name,
        "intent": draft.intent,
        "content": draft.content,
        "metadata": {**draft.metadata, **use},
        **{name: value for name, value in draft.columns.items() if name not in _FIXED},
    }
    updates = {name: value for name, value in new.items() if getattr(known, name) != value}
    if known.status != Status.ACTIVE and (updates or revive):
        updates["status"] = Status.ACTIVE.value
    if "intent" in updates:
        updates |= {"vector": vectors[draft.intent].own, "pending": vectors[draft.intent].pending}
    return updates


def from_lesson(context: Context, lesson_id: str) -> SkillRecord:
    """Store a lesson as a skill that names it as its source. Only those who may see the lesson
    see the skill."""
    check_texts(id=lesson_id)
    # Its own id, or that of its memory.
    named = model.Or((equals("id", lesson_id), equals("metadata.lesson_id", lesson_id)))
    is_lesson = equals("memory_type", MemoryType.LESSON)
    rows = context.store.find(Kind.MEMORY, all_of(readable(context), is_lesson, named))
    lessons = [Memory.of(row) for row in intact(context, rows)]
    if not lessons:
        raise NotFound(
            f"no lesson {shown(lesson_id, max_length=80)} for agent {context.reader.agent_id}",
            remedy="check the id",
        )
    lesson = lessons[0]
    draft = prepare(context, learning.lesson_text(lesson), {})
    scope = DerivedScope.of([lesson], session_id=draft.columns["session_id"])
    columns = {**draft.columns, "sources": [lesson.id], "trust": lesson.trust, **scope.columns}
    fingerprint = learning.skill_fingerprint(columns, context.reader, "lesson", lesson.id)
    (stored,) = store(context, [replace(draft, columns=columns, fingerprint=fingerprint)])
    return SkillRecord.of(stored.skill)


def cleaned(context: Context, skill: Skill) -> tuple[Skill, dict[str, int]]:
    """Return an imported skill as it is stored, and how many values of each kind were masked."""
    gate, given = context.gates.content(), read_metadata(skill.metadata, context.limits)
    # Raises if not valid.
    learning.first_use(
        {name: value for name, value in given.items() if name in learning.USE[:-1]}, ""
    )
    content, metadata = (
        redacted_lines(gate.redact, read_content(skill.content, context.limits)),
        gate.clean_metadata(given),
    )
    masked = replace(
        skill,
        name=gate.redact(skill.name),
        intent=gate.redact(skill.intent),
        content=content,
        metadata=metadata,
    )
    return masked, gate.count((skill.content, content), (given, metadata))


def fingerprint_of(skill: Skill) -> str:
    """Return the fingerprint of a stored skill, by which a later write finds it."""
    source, identity = skill.metadata.get("source"), ("name", skill.name)
    if skill.sources or isinstance(source, str):
        identity = ("lesson", skill.sources[0]) if skill.sources else ("file", str(source))
    columns = {name: getattr(skill, name) for name in _SCOPE}
    return learning.skill_fingerprint(columns, Reader(skill.user_id, skill.agent_id), *identity)


# --- reading ---


def get(context: Context, skill_id: str) -> SkillRecord | None:
    """Return a skill of any status by its id, or None if the reader cannot see it."""
    skill = find_memory(context, skill_id, kinds=(Kind.SKILL,))
    return SkillRecord.of(skill) if isinstance(skill, Skill) else None


def list_all(context: Context, limit: int | None = None) -> list[SkillRecord]:
    """Return the active skills that the reader may see, newest first."""
    wanted = None if limit is None else checked_limit(limit)
    return [SkillRecord.of(skill) for skill in _active(context)[:wanted]]


def search(context: Context, query: object, *, limit: int, min_score: float) -> list[SkillResult]:
    """Return the skills that fit a query best, by the weights of RFC-0011; see
    `core.learning.skills`."""
    text = context.gates.query().redact(checked_query(query).encode("utf-8", "replace").decode())
    wanted, lowest, language = (
        checked_limit(limit),
        fraction("min_score", min_score),
        context.options.stemmer_language,
    )
    words, data_version, skills = (
        tokens(text, language=language),
        context.store.data_version(),
        _active(context),
    )
    vector = (
        embed_query(context, bare, data_version)
        if skills and (bare := without_masks(text)).strip()
        else None
    )
    hits = (
        context.store.nearest(Kind.SKILL, vector, _visible(context), limit=len(skills))
        if vector
        else []
    )
    similarity = {hit.id: min(1.0, max(0.0, (1 + hit.score) / 2)) for hit in hits}
    results: list[SkillResult] = []
    for skill in skills:
        texts = learning.searched_texts(skill)
        fractions = learning.keyword_fractions(
            words, {name: tokens(text, language=language) for name, text in texts.items()}
        )
        keywords, near = learning.keyword_score(fractions), similarity.get(skill.id)
        score = learning.final_score(keywords, near)
        results.append(
            SkillResult.of(
                skill,
                score=score,
                keyword_score=keywords,
                vector_score=near,
                keyword_fractions=fractions,
            )
        )
    fitting = [result for result in results if result.score > 0 and result.score >= lowest]
    return sorted(fitting, key=lambda one: (one.score, one.reliability, one.id), reverse=True)[
        :wanted
    ]


def require_skill(context: Context, skill_id: str, *, any_reader: bool = False) -> Skill:
    """Return a skill, or raise `NotFound`."""
    skill = require_memory(context, skill_id, any_reader=any_reader, kinds=(Kind.SKILL,))
    assert isinstance(skill, Skill)  # noqa: S101  (the only record of its kind)
    return skill


def _visible(context: Context) -> Where:
    return all_of(readable(context), model.in_project(context.reader.project))


def _active(context: Context) -> list[Skill]:
    return [
        Skill.of(row) for row in intact(context, context.store.find(Kind.SKILL, _visible(context)))
    ]


# --- use ---


def record_use(
    context: Context, skill_id: str, success: object, key: str | None
) -> ReliabilityUpdate:
    """Record that a skill was used, and whether it worked."""
    if not isinstance(success, bool):
        raise InvalidInput(f"success is {shown(success)}", expected="true or false")
    request = request_hash("update_skill_reliability", skill_id, success)

    def decide() -> Plan[tuple[Skill, Skill]]:
        seen = {name: context.store.version(name) for name in model.partitions(context.reader)}
        skill = require_skill(context, skill_id)
        if find_replayed(context, key, request):
            return Plan((skill, skill))
        metadata, why = (
            learning.used(skill, success=success, at=iso(context.clock())),
            "success" if success else "failure",
        )
        plan = revisions.plan_revision(context, skill, action="use", why=why, metadata=metadata)
        puts = [*plan.puts, *receipt_rows(context, key, skill_id, request)]
        return Plan((skill, plan.answer), puts, seen=seen)

    before, after = (SkillRecord.of(skill) for skill in commit(context, decide))
    return ReliabilityUpdate(
        id=after.id, reliability=after.reliability, use_count=after.use_count,
        last_used=after.last_used or "", previous=before.reliability,
    )  # fmt: skip


def prune(context: Context, threshold: object) -> PruneResult:
    """Archive the visible skills whose reliability is below a threshold. None is erased."""
    lowest = fraction("threshold", threshold)
    ids = [skill.id for skill in _active(context) if learning.is_pruned(skill, lowest)]

    def reason(skill: Memory) -> str | None:
        if not isinstance(skill, Skill) or not learning.is_pruned(skill, lowest):
            return None  # used meanwhile
        return f"its reliability {learning.reliability_of(skill):g} is below {lowest:g}"

    archived = tuple(archive(context, Kind.SKILL, ids, reason))
    return PruneResult(
        pruned_count=len(archived), total_remaining=len(_active(context)), ids=archived
    )
