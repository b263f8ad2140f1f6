"""Reflect on memories: state what they say, and store that with its sources and an audit block.

The statements are quoted sentences, or those of the language model if there is one. If it fails,
they are quoted, and the result says why. A reflection is as narrow as the narrowest of its sources
and trusted no more than the least trusted one. Memories of several projects give one reflection for
each project.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate
from typing import Any

from memory_mesh.core import audit, learning, model
from memory_mesh.core.audit import Entry, blocks
from memory_mesh.core.errors import (
    AnswerUnreadable,
    BudgetSpent,
    CallError,
    InvalidInput,
    StoreBusy,
    shown,
    whole_number,
)
from memory_mesh.core.intake import NewText, fingerprints, normal_text
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.learning import DerivedScope, ReflectionResult, SourceText, Statement
from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    In,
    Kind,
    Memory,
    MemoryType,
    Status,
    Value,
    Where,
    all_of,
    equals,
    iso,
)
from memory_mesh.core.ports import ChatModel
from memory_mesh.core.search import tokens
from memory_mesh.core.text import estimate
from memory_mesh.flows.audit.chains import new_entry, own_audit_rows
from memory_mesh.flows.context import Context, Plan, commit, intact, require_memory
from memory_mesh.flows.search import reads, search
from memory_mesh.flows.search.readable import is_readable, readable
from memory_mesh.flows.write import revisions, write
from memory_mesh.flows.write.embed import Vectors, passage_rows
from memory_mesh.flows.write.prepare import (
    Prepared,
    find_replayed,
    prepare,
    receipt_rows,
    request_hash,
)

MAX_LOOKBACK = 1000
_MAX_TOPIC = 1000
_MIN_FRACTION = 0.5  # of the topic's words
_MAX_CONTRADICTIONS = 10  # that a reflection names
_log = logging.getLogger("memory_mesh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """What distinguishes a reflection from a synthesis: its names, and how much it reads and
    states."""

    operation: str
    prefix: str  # of its id
    category: str
    max_statements: int
    topic: str | None = None
    lookback: int = 100
    include_reflections: bool = False
    episode: str | None = None  # the episode that it summarises


REFLECT = Task(operation="reflect", prefix="reflect", category="insight", max_statements=5)
SYNTHESIZE = Task(operation="synthesize", prefix="synthesis", category="digest", max_statements=15)


def reflect(
    context: Context, task: Task, *, topic: object = None, lookback: object = 100,
    include_reflections: object = False, key: str | None = None,
) -> ReflectionResult:  # fmt: skip
    """Reflect on the memories that are relevant to a topic, or on the newest ones, and store the
    result."""
    context.check_enabled()
    if topic is not None and (
        not isinstance(topic, str) or not topic.strip() or len(topic) > _MAX_TOPIC
    ):
        raise InvalidInput(
            f"topic is {shown(topic)}",
            expected=f"a non-empty text of at most {_MAX_TOPIC:,} characters, or None",
        )
    if not isinstance(include_reflections, bool):
        raise InvalidInput(
            f"include_reflections is {shown(include_reflections)}", expected="True or False"
        )
    if topic is not None:
        topic = context.gates.content().redact(
            " ".join(topic.encode("utf-8", "replace").decode().split())
        )
    count = whole_number("lookback", lookback, max_=MAX_LOOKBACK)
    task = replace(task, topic=topic, lookback=count, include_reflections=include_reflections)
    request = request_hash(task.operation, task.topic, task.lookback, task.include_reflections)
    if replayed := _replayed(context, key, request):
        return replayed
    memories, found = _find(context, task)
    result = derive(context, task, memories, found, key=key, request=request)
    if result is None:
        nothing = "the memories found have no sentence to quote"
        if not found:
            nothing = (
                f"no memory is relevant to {shown(task.topic)}"
                if task.topic
                else "there is no memory to reflect on"
            )
        return ReflectionResult(topic=task.topic, note=f"{nothing}; nothing was stored")
    return result


def derive(
    context: Context, task: Task, memories: Sequence[Memory], found: Sequence[SourceText], *,
    key: str | None = None, request: str = "",
    arrange: Callable[["Drawn"], "Drawn"] = lambda drawn: drawn,
) -> ReflectionResult | None:  # fmt: skip
    """Store what the memories of each project say, and return the result of the largest group
    with the others; None if they say nothing."""
    parts: list[tuple[Context, list[SourceText], Drawn]] = []
    for project, group in learning.by_project(memories).items():
        owner = replace(
            context, reader=replace(context.reader, project=project or context.reader.project)
        )
        ids = {memory.id for memory in group}
        texts = [text for text in found if text.id in ids]
        drawn = arrange(state(owner, task, group, texts))
        parts += [(owner, texts, drawn)] if drawn.statements else []
    results: list[ReflectionResult] = []
    # The first one, by which a repeated call is known, last.
    for at, (owner, texts, drawn) in reversed(list(enumerate(parts))):
        results.append(
            _keep(owner, task, memories, texts, drawn, key, request, *([at] if at else []))
        )
    return replace(results[-1], others=tuple(results[-2::-1])) if results else None


def _replayed(context: Context, key: str | None, request: str) -> ReflectionResult | None:
    """Return the results that an earlier call with this key stored."""
    found: list[ReflectionResult] = []
    while id_ := find_replayed(context, key, request, *([len(found)] if found else [])):
        found.append(_result(context, require_memory(context, id_), None))
    return replace(found[0], others=tuple(found[1:])) if found else None


def _keep(
    context: Context, task: Task, memories: Sequence[Memory], found: Sequence[SourceText],
    drawn: "Drawn", key: str | None, request: str, *position: int,
) -> ReflectionResult:  # fmt: skip
    """Store the statements that were drawn from memories."""
    sources = [memory for memory in memories if memory.id in drawn.sources]
    given = as_text(context, task, found, drawn, sources)
    prepared, vectors = prepare(context, [given], request=request)[0], Vectors()

    def decide() -> Plan[Memory]:
        if replayed := find_replayed(context, key, request, *position):
            return Plan(require_memory(context, replayed, any_reader=True))
        seen = {name: context.store.version(name) for name in model.partitions(context.reader)}
        check_sources(context, sources)
        plan = plan_reflection(context, task, prepared, sources, drawn.sources, vectors)
        receipt = receipt_rows(context, key, plan.answer.id, request, *position)
        return Plan(plan.answer, [*plan.puts, *receipt], seen=seen if plan.puts or receipt else {})

    return _result(context, commit(context, decide), drawn.note)


def unstored(context: Context, found: Sequence[SourceText], drawn: "Drawn") -> ReflectionResult:
    """Return the statements that were drawn from memories, without storing them."""
    sure = learning.confidence(found, drawn.statements, language=context.options.stemmer_language)
    return ReflectionResult(
        content=learning.render(drawn.statements), statements=tuple(drawn.statements),
        sources=tuple(one.id for one in found if one.id in drawn.sources), confidence=sure,
        method=drawn.method, note=drawn.note,
    )  # fmt: skip


# --- finding ---


def _find(context: Context, task: Task) -> tuple[list[Memory], list[SourceText]]:
    """Return the memories to reflect on, most relevant or newest first, and their texts."""
    where: Where = (
        ANYTHING
        if task.include_reflections
        else Compare("memory_type", "<>", MemoryType.REFLECTION)
    )
    if task.topic is None:
        memories = reads.get_all(context, limit=task.lookback, where=where)
        return memories, [source_text(memory, 1.0) for memory in memories]
    # For the audit chain.
    filter_ = None if task.include_reflections else "memory_type <> 'reflection'"
    request = search.Request(
        query=task.topic, limit=task.lookback, mode="recall", where=where, filter=filter_
    )
    results = search.search(context, request, use_cache=False)
    scores = {result.id: result.score for result in results}
    relevant = {result.id for result in results if result.relevant}
    # A topic is shorter than a question, and a precise search finds little for it: a memory with
    # its words is relevant too.
    topic = set(tokens(task.topic, language=context.options.stemmer_language))
    rows = {
        row.id: row
        for row in intact(context, context.store.get(Kind.MEMORY, list(scores)).values())
    }
    every = [Memory.of(rows[id_]) for id_ in scores if id_ in rows]
    fractions = {
        one.id: len(topic.intersection(one.keywords)) / max(len(topic), 1) for one in every
    }
    memories = [one for one in every if one.id in relevant or fractions[one.id] >= _MIN_FRACTION]
    # Rounded: the reflection itself changes the statistics of words, and must not change the order
    # of its sources.
    relevance = {one.id: round(max(scores[one.id], fractions[one.id]), 1) for one in memories}
    memories.sort(key=lambda one: (-relevance[one.id], one.content, one.id))
    return memories, [source_text(memory, relevance[memory.id]) for memory in memories]


def source_text(memory: Memory, relevance: float) -> SourceText:
    # What a reflection quotes of a reflection are the words of that one's sources.
    derived = memory.sources if memory.memory_type == MemoryType.REFLECTION else []
    return SourceText(
        id=memory.id, text=memory.content, sources=(memory.id, *derived), relevance=relevance,
        speaker=memory.speaker, vector=memory.vector,
    )  # fmt: skip


def check_sources(context: Context, sources: Sequence[Memory]) -> None:
    """Raise `StoreBusy` if a source was erased, changed or hidden since it was read."""
    # The topic may have asked for what is valid at another time.
    may_read = is_readable(context, (Status.ACTIVE,), ANYTHING, valid=())
    rows = context.store.get(Kind.MEMORY, [source.id for source in sources])
    current = {id_: row.value("content") for id_, row in rows.items() if may_read(row)}
    if any(current.get(source.id) != source.content for source in sources):
        raise StoreBusy("the memories changed while they were reflected on", remedy="try again")


# --- stating ---


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """The statements, and the memories whose words they may have: of a language model, all that
    it read."""

    statements: Sequence[Statement]
    sources: frozenset[str]
    method: str = "extractive"
    note: str | None = None  # why the language model was not used


def state(
    context: Context, task: Task, memories: Sequence[Memory], found: Sequence[SourceText]
) -> Drawn:
    """Return what the memories say, with a statement for each pair of memories whose claims
    exclude each other."""
    drawn = draw(context, task, found)
    claiming = [memory for memory in memories if memory.claim]
    if len(claiming) < 2:
        return drawn
    from memory_mesh.core.claims import Claim, excluding_pairs, read_schemas
    from memory_mesh.core.language.safety.injection import detect

    claims = [
        (memory.id, claim)
        for memory in claiming
        if (claim := Claim.of(memory))
        and not any(map(detect, (claim.subject, claim.predicate, claim.value)))
    ]
    pairs = excluding_pairs(claims, read_schemas(context.options.predicate_schemas))
    # Parts that are harmless by themselves may be instructions together.
    named = [one for one in learning.contradictions(pairs) if not detect(one.text)][
        :_MAX_CONTRADICTIONS
    ]
    return replace(
        drawn,
        statements=[*drawn.statements, *named],
        sources=drawn.sources.union(id_ for one in named for id_ in one.sources),
    )


def draw(context: Context, task: Task, found: Sequence[SourceText]) -> Drawn:
    """Return the statements of the language model, or sentences of the memories.

    A sentence that contains instructions to a model is left out: agents read reflections as their
    own beliefs.
    """
    from memory_mesh.core.language.safety.injection import detect  # loads many patterns

    clean = [
        replace(
            one, text="\n".join(part for part in learning.sentences(one.text) if not detect(part))
        )
        for one in found
    ]
    note = None
    if context.models.chat is not None and found:
        try:
            return _ask(context, context.models.chat, task, clean)
        except (CallError, BudgetSpent, AnswerUnreadable) as error:
            _log.warning("%s: sentences are quoted, because %s", task.operation, error)
            note = f"sentences are quoted, because {error.what}"
    language = context.options.stemmer_language
    quoted = learning.extract(
        clean, max_statements=task.max_statements, topic=task.topic, language=language
    )
    return Drawn(
        statements=quoted,
        sources=frozenset(id_ for one in quoted for id_ in one.sources),
        note=note,
    )


def _ask(context: Context, chat: ChatModel, task: Task, found: Sequence[SourceText]) -> Drawn:
    """Return the statements of the language model, which reads as many memories as its input has
    room for."""
    from memory_mesh.core.language.prompts import reflection as prompt
    from memory_mesh.core.language.safety.injection import detect

    texts = [f"{one.speaker}: {one.text}" if one.speaker else one.text for one in found]
    room = sum(
        total <= context.options.llm_input_tokens for total in accumulate(map(estimate, texts))
    )
    if not room:
        raise AnswerUnreadable(
            "the first memory is too long for the language model", remedy="raise llm_input_tokens"
        )
    limit = task.max_statements
    asked = prompt.build_prompt(
        task.operation, texts[:room], task.topic, context.ids.salt(), max_statements=limit,
        max_tokens=context.options.answer_tokens,
    )  # fmt: skip
    read, language = (
        prompt.read_reply(chat.reply(asked), room, max_statements=limit),
        context.options.stemmer_language,
    )
    if any(detect(text) for text, _ in read):
        raise AnswerUnreadable("the model's answer contains instructions to a model")
    read = [
        one
        for one in read
        if learning.is_grounded(one[0], [texts[at] for at in one[1]], language=language)
    ]
    if not read:
        raise AnswerUnreadable(
            "nothing in the model's answer follows from the memories that it names"
        )
    themes = learning.group(found, language=language)
    statements = [
        Statement(
            text=text,
            sources=tuple(dict.fromkeys(id_ for at in cited for id_ in found[at].sources)),
            similar=learning.similar(found, themes, set(cited)),
        )
        for text, cited in read
    ]
    return Drawn(
        statements=statements,
        sources=frozenset(id_ for one in found[:room] for id_ in one.sources),
        method="model",
    )


# --- storing ---


def as_text(
    context: Context,
    task: Task,
    found: Sequence[SourceText],
    drawn: Drawn,
    sources: Sequence[Memory],
) -> NewText:
    """Return a reflection as a text to store."""
    statements, language = drawn.statements, context.options.stemmer_language
    quoted = [one for one in statements if not one.contradiction]
    metadata: dict[str, Value] = {
        "type": MemoryType.REFLECTION.value, "category": task.category, "operation": task.operation,
        "method": drawn.method, "confidence": learning.confidence(found, quoted, language=language),
        "statements": learning.as_metadata(statements),
    }  # fmt: skip
    metadata |= {"topic": task.topic} if task.topic else {}
    metadata |= {"episode": task.episode} if task.episode else {}
    trusts = [memory.trust for memory in sources]
    if drawn.method == "model":
        metadata["provenance"] = {"source": Source.INFERENCE.value}
        trusts.append(BASE_TRUST[Source.INFERENCE])
    return NewText(learning.render(statements), metadata, learning.least_trust(trusts))


def plan_reflection(
    context: Context,
    task: Task,
    prepared: Prepared,
    sources: Sequence[Memory],
    source_ids: frozenset[str],
    vectors: Vectors,
) -> Plan[Memory]:
    """Return the plan that stores a reflection. An earlier one that says the same is kept
    instead; others on the same topic are superseded."""
    ms = context.clock()
    scope = DerivedScope.of(
        sources, **{name: prepared.draft.columns.get(name) for name in ("session_id", "project")}
    )
    earlier = [old for old in _earlier(context, task, prepared) if scope.contains(old)]
    ids = [memory.id for memory in sources] + sorted(source_ids - {memory.id for memory in sources})
    for old in earlier:
        if (old.content, old.sources) == (prepared.draft.content, ids):
            return Plan(old)

    def entry_of(memory: Memory) -> Entry:
        write_text = partial(
            blocks.reflect if task.operation == "reflect" else blocks.synthesize,
            agent=str(context.reader.agent_id), topic=task.topic, source_count=len(ids), at=iso(ms),
            id_=str(memory.metadata["reflection_id"]), insight=memory.content,
            confidence=memory.confidence or 0.0, memory_id=memory.id,
        )  # fmt: skip
        metadata = {"method": memory.metadata["method"]}
        return new_entry(context, task.operation, ms, write_text, memory=memory, metadata=metadata)

    return plan_derived(
        context, prepared, vectors, scope, earlier, entry_of, ms=ms, prefix=task.prefix,
        id_name="reflection_id", why=f"superseded by a later {task.operation}", sources=ids,
    )  # fmt: skip


def plan_derived(
    context: Context, prepared: Prepared, vectors: Vectors, scope: DerivedScope,
    superseded: Sequence[Memory], entry_of: Callable[[Memory], Entry], *, ms: int, prefix: str,
    id_name: str, why: str, **columns: Any,
) -> Plan[Memory]:  # fmt: skip
    """Return the plan that stores a reflection or a lesson, which has a public id of its own, with
    its audit entry, and supersedes earlier ones."""
    vectors.embed(context, [prepared.draft.content])
    embedded, reader = vectors[prepared.draft.content], context.reader
    type_ = str(prepared.draft.columns["memory_type"])
    partition = model.partition_for(reader.user_id, reader.agent_id, type_, scope.reach)
    memory = write.new_memory(
        context, prepared, embedded, ms=ms, number=context.store.version(partition) + 1,
        supersedes=[old.id for old in superseded], **columns, **scope.columns,
    )  # fmt: skip
    metadata = {**memory.metadata, id_name: audit.derived_id(memory.id, prefix)}
    memory = replace(memory, metadata=metadata)
    rows = [memory.row(), *passage_rows(memory, embedded), *vectors.model_rows(context)]
    entries: list[Entry] = []
    for old in superseded:
        newer, change, entry = revisions.revise(
            context, ms, old, action="supersede", why=why, status=Status.SUPERSEDED.value,
            superseded_by=memory.id,
        )  # fmt: skip
        rows += [newer.row(replaces=old.revision), change]
        entries.append(entry)
    return Plan(memory, [*rows, *own_audit_rows(context, [*entries, entry_of(memory)])])


def _earlier(context: Context, task: Task, prepared: Prepared) -> list[Memory]:
    """Return this agent's earlier reflections on the topic or of the episode; without these,
    those with the same text."""
    about = (
        equals("metadata.topic", task.topic)
        if task.topic
        else In("fingerprint", fingerprints(context.reader, prepared.draft))
    )
    about = equals("metadata.episode", task.episode) if task.episode else about
    own = all_of(
        equals("memory_type", MemoryType.REFLECTION),
        equals("agent_id", context.reader.agent_id),
        about,
    )
    same = all_of(readable(context), own, equals("metadata.operation", task.operation))
    rows = intact(
        context,
        context.store.find(Kind.MEMORY, all_of(same, equals("project", context.reader.project))),
    )
    found, text = map(Memory.of, rows), normal_text(prepared.draft.content)
    # The fingerprint of an earlier version may be that of another text.
    return [one for one in found if task.topic or task.episode or normal_text(one.content) == text]


def _result(context: Context, memory: Memory, note: str | None) -> ReflectionResult:
    operation = str(memory.metadata.get("operation"))
    rows = context.store.find(
        Kind.BLOCK, all_of(equals("ref", memory.id), equals("operation_type", operation))
    )
    return ReflectionResult.of(memory, str(rows[0].value("yamo_text")) if rows else None, note)
