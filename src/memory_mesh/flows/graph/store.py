"""Store memories of the graph: for an agent, with a source, a claim and links to similar ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from memory_mesh.core.claims import base_trust
from memory_mesh.core.errors import InvalidInput, one_of, shown, suggestion, whole_number
from memory_mesh.core.intake import DEFAULT_CATEGORY, NewText, Terms, numbered
from memory_mesh.core.language.safety import Source
from memory_mesh.core.model import ClaimConflict, Extraction, Link, MemoryRecord, MemoryType, Status
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.core.text import short_repr
from memory_mesh.flows.context import Context, commit
from memory_mesh.flows.search.readable import records
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import prepare
from memory_mesh.flows.write.write import Added, plan_store

IMPORTANCE = 0.7  # of a memory whose caller does not say
BATCH_SIZE = 64
MAX_BATCH_SIZE = 10_000
ON_CONFLICT = ("quarantine", "keep_active")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Stored:
    """The result of storing one memory."""

    __repr__ = short_repr

    id: str
    quarantined: bool = False
    links: list[Link] = field(default_factory=list)  # to similar memories, most similar first
    # False: a memory that is stored already says the same, and was counted or corroborated.
    is_new: bool = True
    supersedes: list[str] = field(default_factory=list)
    conflicts: list[ClaimConflict] = field(default_factory=list)
    memory: MemoryRecord

    @classmethod
    def of(cls, added: Added, memory: MemoryRecord) -> "Stored":
        return cls(
            id=memory.id, quarantined=memory.status == Status.QUARANTINED, links=list(added.links),
            is_new=added.is_new, supersedes=list(added.effects.superseded),
            conflicts=list(added.effects.conflicts), memory=memory,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class NewMemory:
    """A text and how it is stored, as the caller gives it."""

    text: object
    category: object = DEFAULT_CATEGORY
    importance: object = IMPORTANCE
    tags: object = ()
    event_time: object = None
    claim: object = None
    claims: object = None
    provenance: object = None
    quarantine: object = False
    on_conflict: object = "quarantine"
    metadata: object = None

    @classmethod
    def of(cls, given: object, place: int) -> "NewMemory":
        """Return an item of `store_many`: a text, or a mapping of the options of `store`."""
        with numbered("item", place):
            if isinstance(given, str):
                return cls(text=given)
            if not isinstance(given, Mapping):
                raise InvalidInput(
                    f"it is {shown(given)}",
                    expected="a text, or a mapping with text and the options of store",
                )
            known = [each.name for each in fields(cls)]
            for name in given:
                if name not in known:
                    remedy = suggestion(name, known) or f"the keys are {', '.join(known)}"
                    raise InvalidInput(f"unknown key {shown(name)}", remedy=remedy)
            if "text" not in given:
                raise InvalidInput(
                    "text is missing", expected="a mapping with text and the options of store"
                )
            return cls(**given)

    def checked(self, *, item: int | None = None, evolves: bool = False) -> NewText:
        """Return the text to store, or raise `InvalidInput`."""
        with numbered("item", item):
            if not isinstance(self.quarantine, bool):
                raise InvalidInput(
                    f"quarantine is {shown(self.quarantine)}", expected="True or False"
                )
            one_of("on_conflict", self.on_conflict, ON_CONFLICT)
            if self.claims is not None:
                one_of("claims", self.claims, ("auto", "off"))
            provenance = read_provenance(self.provenance)
            terms = Terms(
                claim=self.claim, claims=None if self.claims is None else str(self.claims),
                quarantine=self.quarantine, keep_active=self.on_conflict == "keep_active",
                links=True, evolves=evolves,
            )  # fmt: skip
            return NewText(
                self.text,
                self._metadata(provenance),
                base_trust(provenance),
                item=item,
                terms=terms,
            )

    def _metadata(self, provenance: dict[str, Any]) -> dict[str, object]:
        if self.metadata is not None and not isinstance(self.metadata, Mapping):
            raise InvalidInput(
                f"metadata is {shown(self.metadata)}", expected="an object with text keys"
            )
        tags = list(self.tags) if isinstance(self.tags, tuple | set | frozenset) else self.tags
        given = {
            "category": self.category,
            "importance": self.importance,
            "tags": tags,
            "event_time": self.event_time,
        }
        own = {name: value for name, value in given.items() if value is not None and value != []}
        return {
            "type": MemoryType.AGENT.value,
            **(self.metadata or {}),
            **own,
            "provenance": provenance,
        }


def acting_as(context: Context, agent: object, session_id: str | None = None) -> Context:
    """Return the context of an agent of the same user."""
    if not isinstance(agent, str) or not agent.strip():
        raise InvalidInput(f"agent is {shown(agent)}", expected="the name of an agent")
    session = context.reader.session_id if session_id is None else session_id
    return replace(context, reader=replace(context.reader, agent_id=agent, session_id=session))


def store(
    context: Context, texts: Sequence[NewText], *, key: str | None = None,
    batch_size: object = BATCH_SIZE, progress: Progress = no_progress,
) -> list[Stored]:  # fmt: skip
    """Store texts through the gate of claims, all or none."""
    size = whole_number("embedding_batch_size", batch_size, max_=MAX_BATCH_SIZE)
    prepared = prepare(context, texts, idempotency_key=key, progress=progress)
    vectors = Vectors(progress, batch_size=size)
    added = commit(context, lambda: plan_store(context, prepared, vectors)) if prepared else []
    shown = records(context, [each.memory for each in added])
    return [Stored.of(each, memory) for each, memory in zip(added, shown, strict=True)]


def extract(
    context: Context, text: object, *, min_importance: object, key: str | None, progress: Progress
) -> Extraction:
    """Extract memories from a text with the language model, and store each through the gate of
    claims."""
    # Loads prompts and injection patterns.
    from memory_mesh.flows.write.conversations import extract

    metadata = {"type": MemoryType.AGENT.value}
    terms = Terms(links=True)
    return extract(
        context,
        text,
        min_importance=min_importance,
        metadata=metadata,
        key=key,
        progress=progress,
        terms=terms,
    )


def read_provenance(given: object) -> dict[str, Any]:
    """Return where a text comes from, or raise `InvalidInput`. The default source is an
    inference."""
    if given is None:
        return {"source": Source.INFERENCE.value}
    if not isinstance(given, Mapping) or not isinstance(
        given.get("source", Source.INFERENCE.value), str
    ):
        expected = (
            f'an object such as {{"source": "user_explicit"}}; sources are {", ".join(Source)}'
        )
        raise InvalidInput(f"provenance is {shown(given)}", expected=expected)
    source = given.get("source", Source.INFERENCE.value)
    # Other sources count as inferences.
    if source not in list(Source) and (near := suggestion(source, Source)):
        raise InvalidInput(f"provenance has the source {shown(source)}", remedy=near)
    return {"source": Source.INFERENCE.value, **given}
