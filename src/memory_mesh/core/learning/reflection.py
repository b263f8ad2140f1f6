"""Reflections, the heritage of a memory, and the scope of what is derived from memories.

A reflection states what several memories say, and names the memories of each statement. Without a
language model it is extractive: it quotes sentences. The next one is the sentence with the most
content words that no chosen sentence has, divided by the square root of its length; relevant
memories and words of the topic count more. Memories with similar vectors, or without vectors with
common words, form a theme, by which the sentences are sorted. Equal input gives equal output.
"""

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from math import sqrt
from typing import TYPE_CHECKING, Self

from memory_mesh.core.errors import InvalidInput, listed, shown
from memory_mesh.core.model import (
    BY_NAME,
    Memory,
    MemoryType,
    Reach,
    Value,
    Vector,
    fault,
    reach_of,
)
from memory_mesh.core.search import tokens
from memory_mesh.core.text import short_repr, shortened, split_sentences

if TYPE_CHECKING:
    from memory_mesh.core.claims import Claim


# --- reflections ---

# Of two memories of one theme: their vectors, or their words.
MIN_COSINE, MIN_OVERLAP, MIN_SHARED = 0.6, 0.4, 2
_MIN_WORDS = 3  # of a sentence
_MIN_GROUNDED = 1 / 3  # of the words of a model's statement
_MAX_SENTENCE, _MAX_SENTENCES = 400, 200  # characters of a sentence, sentences of a memory
_QUESTION = ("?", "？")
_MAX_PART = 100  # characters of a part of a claim


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceText:
    """A memory that a reflection may be drawn from."""

    id: str
    text: str
    sources: tuple[str, ...]  # its id, and of a reflection also those that it was drawn from
    relevance: float = 1.0
    speaker: str | None = None
    vector: Vector | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement of a reflection."""

    __repr__ = short_repr

    text: str
    sources: tuple[str, ...]  # the memories that it is drawn from
    similar: tuple[str, ...] = ()  # other memories of the same theme
    contradiction: bool = False  # it says that its two sources exclude each other


@dataclass(frozen=True, slots=True, kw_only=True)
class ReflectionResult:
    """A reflection or synthesis. If no memory was found, it has no id and no content, and `note`
    says so."""

    __repr__ = short_repr

    id: str | None = None  # `reflect_…` or `synthesis_…`
    memory_id: str | None = None
    project: str | None = None  # the only one whose readers see it; None: those of every project
    topic: str | None = None
    content: str = ""
    statements: tuple[Statement, ...] = ()
    sources: tuple[str, ...] = ()
    confidence: float = 0.0
    method: str = "extractive"  # or `model`
    note: str | None = None  # why nothing was stored, or why the language model was not used
    # The text of the audit block; None: no block was written.
    wire_format: str | None = field(default=None, repr=False)
    # The ids of sources whose claims exclude each other.
    contradictions: tuple[tuple[str, str], ...] = ()
    others: tuple["ReflectionResult", ...] = ()  # of the memories of other projects, one for each

    @classmethod
    def of(cls, memory: Memory, wire_format: str | None, note: str | None = None) -> Self:
        """Read a reflection from its memory."""
        metadata = memory.metadata
        topic, id_ = metadata.get("topic"), metadata.get("reflection_id")
        statements = statements_of(memory) or ()
        return cls(
            id=str(id_), memory_id=memory.id, project=memory.project,
            topic=None if topic is None else str(topic), content=memory.content,
            statements=statements, sources=tuple(memory.sources),
            confidence=memory.confidence or 0.0, method=str(metadata.get("method")), note=note,
            wire_format=wire_format,
            contradictions=tuple(
                (one.sources[0], one.sources[1]) for one in statements if one.contradiction
            ),
        )  # fmt: skip


def extract(
    found: Sequence[SourceText],
    *,
    max_statements: int,
    topic: str | None = None,
    language: str = "english",
) -> list[Statement]:
    """Return the sentences that say most of what the memories say, by theme, the largest and
    most relevant theme first."""
    themes, about = group(found, language=language), set(tokens(topic or "", language=language))
    candidates = [
        (at, sentence, words)
        for at, one in enumerate(found)
        for sentence in sentences(one.text)
        if len(words := set(tokens(sentence, language=language))) >= _MIN_WORDS
    ]
    # Questions state nothing, but a memory may consist of them alone.
    candidates = [each for each in candidates if not each[1].endswith(_QUESTION)] or candidates
    covered: set[str] = set()
    chosen: list[int] = []
    while len(chosen) < max_statements:
        gains = [
            len(words - covered)
            * sqrt(found[at].relevance / len(words))
            * (1 + len(words & about) / max(len(about), 1))
            for at, _, words in candidates
        ]
        best = max(range(len(gains)), key=gains.__getitem__, default=None)
        if best is None or gains[best] <= 0:
            break
        chosen.append(best)
        covered |= candidates[best][2]
    weights = {
        theme: sum(one.relevance for at, one in enumerate(found) if themes[at] == theme)
        for theme in themes
    }
    chosen.sort(key=lambda n: (-weights[themes[candidates[n][0]]], themes[candidates[n][0]], n))
    statements: list[Statement] = []
    for at, sentence, _ in (candidates[n] for n in chosen):
        text = f"{found[at].speaker}: {sentence}" if found[at].speaker else sentence
        others = similar(found, themes, {at})
        statements.append(Statement(text=text, sources=found[at].sources, similar=others))
    return statements


def similar(found: Sequence[SourceText], themes: Sequence[int], cited: Set[int]) -> tuple[str, ...]:
    """Return the other memories of the themes of the cited ones, given by position."""
    wanted = {themes[at] for at in cited}
    return tuple(one.id for at, one in enumerate(found) if themes[at] in wanted and at not in cited)


def sentences(text: str) -> list[str]:
    """Split a text into sentences. Lines are sentences too; a long one is shortened."""
    every = (" ".join(part.split()) for part in split_sentences(text))
    return [shortened(part, _MAX_SENTENCE) for part in every if part][:_MAX_SENTENCES]


def group(found: Sequence[SourceText], *, language: str = "english") -> list[int]:
    """Return the number of the theme of each memory. A memory joins the theme with the highest
    mean similarity that suffices."""
    likeness = _by_vectors(found) or _by_words(found, language)
    themes: list[int] = []
    for at in range(len(found)):
        members = {
            theme: [other for other in range(at) if themes[other] == theme] for theme in themes
        }
        means = {
            theme: sum(likeness[at][other] for other in others) / len(others)
            for theme, others in members.items()
        }
        best = max(means, key=lambda theme: (means[theme], -theme), default=None)
        themes.append(len(members) if best is None or means[best] < 1 else best)
    return themes


def _by_vectors(found: Sequence[SourceText]) -> list[list[float]] | None:
    """Return the cosines of all pairs, divided by the minimum for one theme; None unless all
    have a vector of one model."""
    vectors = [one.vector for one in found if one.vector]
    if (
        len(vectors) < len(found)
        or len({(vector.model, vector.dimension) for vector in vectors}) != 1
    ):
        return None
    import numpy as np  # loaded by searches too, but not by a reflection on keywords alone

    matrix = np.array(
        [np.frombuffer(vector.data, dtype="<f4") for vector in vectors], dtype=np.float64
    )
    matrix /= np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
    return [[float(value) for value in row] for row in np.round(matrix @ matrix.T, 6) / MIN_COSINE]


def _by_words(found: Sequence[SourceText], language: str) -> list[list[float]]:
    """Return the fraction of the shorter text's words that all pairs have in common, divided by
    the minimum for one theme."""
    words = [set(tokens(one.text, language=language)) for one in found]

    def likeness(first: Set[str], second: Set[str]) -> float:
        shared = len(first & second)
        return shared / min(len(first), len(second)) / MIN_OVERLAP if shared >= MIN_SHARED else 0.0

    return [[likeness(first, second) for second in words] for first in words]


def confidence(
    found: Sequence[SourceText], statements: Sequence[Statement], *, language: str = "english"
) -> float:
    """Return relevance × (1 + agreement) ÷ 2.

    Relevance is the mean of the cited memories. The agreement of a statement is the largest
    fraction of its content words that another memory has, other than its first source; their mean
    over all statements counts.
    """
    relevance = {one.id: one.relevance for one in found}
    cited = sorted(
        {id_ for statement in statements for id_ in statement.sources if id_ in relevance}
    )
    if not cited:
        return 0.0
    words = {one.id: set(tokens(one.text, language=language)) for one in found}
    agreed = 0.0
    for statement in statements:
        own = set(tokens(statement.text, language=language))
        shared = (len(own & others) for id_, others in words.items() if id_ != statement.sources[0])
        agreed += max(shared, default=0) / max(len(own), 1)
    return round(
        sum(relevance[id_] for id_ in cited) / len(cited) * (1 + agreed / len(statements)) / 2, 4
    )


def is_grounded(text: str, sources: Sequence[str], *, language: str = "english") -> bool:
    """Return whether the sources have all numbers and a third of the content words of a model's
    statement."""
    own, theirs = (set(tokens(part, language=language)) for part in (text, "\n".join(sources)))
    numbers = {word for word in own if any(map(str.isdigit, word))}
    return numbers <= theirs and len(own & theirs) >= len(own) * _MIN_GROUNDED


def contradictions(
    pairs: Iterable[tuple[tuple[str, "Claim"], tuple[str, "Claim"]]],
) -> list[Statement]:
    """Return a statement for each pair of memories, given with their ids, whose claims exclude
    each other."""
    statements: list[Statement] = []
    for (id_, one), (other_id, other) in pairs:
        subject, predicate, first, second = (
            shortened(" ".join(part.split()), _MAX_PART)
            for part in (one.subject, one.predicate, one.value, other.value)
        )
        text = (
            f"The memories contradict each other about {subject}, {predicate}: {first} or {second}."
        )
        statements.append(Statement(text=text, sources=(id_, other_id), contradiction=True))
    return statements


def least_trust(trusts: Sequence[float | None]) -> float | None:
    """Return the lowest trust of the sources; None if none of them has a trust."""
    return min((trust for trust in trusts if trust is not None), default=None)


# --- the stored form ---


def render(statements: Sequence[Statement]) -> str:
    """Return the content of a reflection: a line for each statement."""
    return "\n".join(statement.text for statement in statements)


def as_metadata(statements: Sequence[Statement]) -> list[Value]:
    return [
        {
            "text": one.text, "sources": list(one.sources), "similar": list(one.similar),
            **({"contradiction": True} if one.contradiction else {}),
        }
        for one in statements
    ]  # fmt: skip


def statements_of(memory: Memory) -> tuple[Statement, ...] | None:
    """Return the statements that a reflection was stored with; None for any other memory."""
    stored = memory.metadata.get("statements")
    if memory.memory_type != MemoryType.REFLECTION or not isinstance(stored, list):
        return None
    return tuple(
        Statement(
            text=str(one.get("text")),
            sources=(sources := _ids(one.get("sources"))),
            similar=_ids(one.get("similar")),
            contradiction=one.get("contradiction") is True and len(sources) == 2,
        )
        for one in stored
        if isinstance(one, Mapping)
    )


def _ids(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def without_sources(memory: Memory, erased: Set[str]) -> tuple[Statement, ...] | None:
    """Return the statements that contain no words of the erased memories; None if the memory is not
    a stored reflection.

    Empty if it is not known which words came from which memory: a language model wrote them, or the
    content was changed later.
    """
    statements = statements_of(memory)
    if statements is None:
        return None
    if memory.metadata.get("method") != "extractive" or memory.content != render(statements):
        return ()
    kept = (one for one in statements if erased.isdisjoint(one.sources))
    return tuple(
        replace(one, similar=tuple(id_ for id_ in one.similar if id_ not in erased)) for one in kept
    )


# --- heritage ---
# The intents, hypotheses and rationales that led to a memory, oldest first, in its column
# `heritage_chain`.

# The names of RFC-0011 in a stored chain and in Python, and the metadata key that `add` takes an
# entry from.
KEYS = {"intentChain": "intent_chain", "hypotheses": "hypotheses", "rationales": "rationales"}
_FROM_METADATA = {"intentChain": "intent", "hypotheses": "hypothesis", "rationales": "rationale"}
_MAX_TEXT_LENGTH, _MAX_ENTRIES = 4000, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeritageChain:
    """What led to a memory."""

    __repr__ = short_repr

    intent_chain: tuple[str, ...] = ()  # the intents of agents
    hypotheses: tuple[str, ...] = ()  # what was expected
    rationales: tuple[str, ...] = ()  # why it was decided

    @classmethod
    def parse(cls, given: object) -> Self:
        """Check the caller's chain and return it. The lists also go by the names of RFC-0011."""
        if isinstance(given, HeritageChain):
            given = {name: getattr(given, name) for name in KEYS.values()}
        expected = f"an object with lists of texts: {', '.join(KEYS.values())}"
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(f"the heritage is {shown(given)}", expected=expected)
        lists: dict[str, tuple[str, ...]] = {}
        for key, value in given.items():
            name = KEYS.get(key, key) if isinstance(key, str) else ""
            if name not in KEYS.values() or name in lists:
                raise InvalidInput(
                    f"unknown or repeated field {shown(key)} in the heritage", expected=expected
                )
            lists[name] = _texts(f"the heritage's {name}", value)
        return cls(**lists)

    def stored(self, max_depth: int) -> dict[str, Value]:
        """Return the column: of each list the last entries."""
        return {key: list(getattr(self, name)[-max_depth:]) for key, name in KEYS.items()}


def added_heritage(metadata: Mapping[str, Value], max_depth: int) -> dict[str, Value] | None:
    """Return the heritage of a new memory: the chain in its metadata `heritage`, and its own
    intent, hypothesis and rationale."""
    given = metadata.get("heritage")
    chain = HeritageChain() if given is None else HeritageChain.parse(given)
    own = {key: metadata.get(name) for key, name in _FROM_METADATA.items()}
    lists = {
        KEYS[key]: (
            *getattr(chain, KEYS[key]),
            *([text] if isinstance(text, str) and text.strip() else []),
        )
        for key, text in own.items()
    }
    return HeritageChain(**lists).stored(max_depth) if any(lists.values()) else None


def _texts(name: str, value: object) -> tuple[str, ...]:
    texts = listed(name, value, expected="a list of texts")
    if len(texts) > _MAX_ENTRIES:
        raise InvalidInput(
            f"{name} has {len(texts):,} entries", expected=f"at most {_MAX_ENTRIES:,}"
        )
    for text in texts:
        if (
            not isinstance(text, str)
            or not text.strip()
            or len(text) > _MAX_TEXT_LENGTH
            or fault(BY_NAME["content"], text)
        ):
            expected = f"a non-empty text of at most {_MAX_TEXT_LENGTH:,} characters"
            raise InvalidInput(f"an entry of {name} is {shown(text)}", expected=expected)
    return tuple(texts)


# --- the scope of what is derived ---
# Every reader of it sees all of its sources.

_WIDEST_FIRST = list(Reach)


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedScope:
    """Who sees a derived memory, besides its user and agent."""

    reach: Reach
    session_id: str | None
    project: str | None

    @classmethod
    def of(
        cls, sources: Sequence[Memory], *, session_id: Value = None, project: Value = None
    ) -> Self:
        """Return the scope of the narrowest of the sources; `session_id` and `project` are those
        of the writer, where no source restricts them. Raise `InvalidInput` for sources of
        several projects, which nobody who is limited to one may see."""
        if len(projects := sorted({one.project for one in sources if one.project is not None})) > 1:
            raise InvalidInput(
                f"the sources belong to {len(projects)} projects",
                expected="those of one project, or of none",
            )
        narrow = max(sources, key=_narrowness, default=None)
        reach = Reach.GLOBAL if narrow is None else reach_of(narrow.memory_type, narrow.reach)
        session = narrow.session_id if narrow and reach is not Reach.GLOBAL else session_id
        own = projects[0] if projects else project
        session_id, project = (None if name is None else str(name) for name in (session, own))
        return cls(reach=reach, session_id=session_id, project=project)

    @property
    def columns(self) -> dict[str, Value]:
        """The columns of the derived memory."""
        reach = None if self.reach is Reach.GLOBAL else self.reach.value
        return {"reach": reach, "session_id": self.session_id, "project": self.project}

    def is_within(self, memory: Memory) -> bool:
        """Return whether each reader of this scope sees a memory that the writer sees too."""
        return _narrowness(memory) <= _WIDEST_FIRST.index(self.reach) and memory.project in (
            None,
            self.project,
        )

    def contains(self, memory: Memory) -> bool:
        """Return whether each reader of a memory that the writer sees too is within this scope."""
        return _narrowness(memory) >= _WIDEST_FIRST.index(self.reach) and self.project in (
            None,
            memory.project,
        )


def by_project(sources: Sequence[Memory]) -> dict[str | None, list[Memory]]:
    """Return the sources for each project that they belong to, those of none in every group; the
    largest first."""
    projects: list[str | None] = [
        *sorted({one.project for one in sources if one.project is not None})
    ]
    groups = {
        name: [one for one in sources if one.project in (None, name)] for name in projects or [None]
    }
    return dict(sorted(groups.items(), key=lambda group: -len(group[1])))


def _narrowness(memory: Memory) -> int:
    return _WIDEST_FIRST.index(reach_of(memory.memory_type, memory.reach))
