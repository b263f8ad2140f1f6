"""The signals of a pool computed with rows and dicts, to compare an index with. Slow and plain.

The corpus is every memory in the reader's scope, with any status. Neighbours and sessions consist
of what the reader may read: in its scope, with the statuses of the query, not expired, allowed by
the caller's filter or not.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, log, sqrt
from struct import unpack
from typing import Any

from memory_mesh.core.model import DAY_MS, Kind, Row, millis, partitions, visible
from memory_mesh.core.search import K1, B, Query, tokens
from memory_mesh.core.search.lexical import edits, hidden_stems
from memory_mesh.core.search.mentions import closeness
from memory_mesh.index.words import MIN_LETTERS, is_likely_typo


@dataclass(frozen=True, slots=True)
class Reference:
    """The signals of every candidate, and the counts of a pool."""

    signals: Mapping[str, Mapping[str, float]]  # by id, by name
    excluded: Mapping[str, int]
    without_vector: int

    @property
    def documents(self) -> int:
        return len(self.signals)


def reference(rows: Iterable[Row], query: Query, *, language: str = "english") -> Reference:
    """Return what an index should compute from these rows."""
    here = [row for row in rows if row.partition in partitions(query.reader)]
    return _Search([row for row in here if row.kind is Kind.MEMORY], here, query, language).answer()


@dataclass(frozen=True, slots=True)
class _Text:
    """A document: how often it contains each word."""

    words: Counter[str] = field(default_factory=Counter)

    @classmethod
    def of(cls, row: Row | None) -> "_Text":
        words = row.value("keywords") if row else None
        return cls(Counter(str(word) for word in words) if isinstance(words, list) else Counter())

    @property
    def length(self) -> int:
        return self.words.total()

    def __add__(self, other: "_Text") -> "_Text":
        return _Text(self.words + other.words)


class _Bm25:
    """BM25 among some documents."""

    def __init__(self, texts: Sequence[_Text], words: Mapping[str, float]) -> None:
        self._average = sum(text.length for text in texts) / len(texts) if texts else 1.0
        self._weights = {}
        for word, times in words.items():
            containing = sum(1 for text in texts if word in text.words)
            self._weights[word] = times * log(
                1 + (len(texts) - containing + 0.5) / (containing + 0.5)
            )

    def score(self, text: _Text, *, parts: int = 1) -> float:
        """Return the score of a text that joins `parts` documents, whose average length is that
        many times longer."""
        damping = K1 * (1 - B + B * text.length / (self._average * parts))
        return sum(
            weight * text.words[word] * (K1 + 1) / (text.words[word] + damping)
            for word, weight in self._weights.items()
            if word in text.words
        )

    def coverage(self, text: _Text) -> float:
        whole = sum(self._weights.values())
        return (
            sum(weight for word, weight in self._weights.items() if word in text.words) / whole
            if whole
            else 0.0
        )


class _Search:
    """One query against some rows."""

    def __init__(
        self, memories: Sequence[Row], rows: Sequence[Row], query: Query, language: str
    ) -> None:
        self._query, self._language = query, language
        scoped = [row for row in memories if visible(query.reader, row)]
        right = [row for row in scoped if row.value("status") in query.statuses]
        self._readable = [row for row in right if not _expired(row, query.at)]
        self._candidates = [
            row
            for row in self._readable
            if query.where.matches(row) and _is_valid(row, query.periods)
        ]
        self._excluded = Counter(
            status=len(scoped) - len(right),
            expired=len(right) - len(self._readable),
            filter=len(self._readable) - len(self._candidates),
        )
        self._passages = [row for row in rows if row.kind is Kind.PASSAGE]
        self._corpus = [text for text in map(_Text.of, scoped) if text.length]
        self._words = self._corrected()
        self._bm25 = _Bm25(self._corpus, self._words)
        self._sessions: dict[tuple[str, str], list[Row]] = {}
        for row in self._readable:
            if row.value("session_id") is not None:
                self._sessions.setdefault(_session(row), []).append(row)
        self._sessions = {
            session: _in_order(members) for session, members in self._sessions.items()
        }
        # A memory without a session counts as a session.
        alone = [_Text.of(row) for row in self._readable if row.value("session_id") is None]
        together = [_whole(members) for members in self._sessions.values()]
        self._session_bm25 = _Bm25(
            [text for text in (*alone, *together) if text.length], self._words
        )

    def _corrected(self) -> dict[str, float]:
        """Return the words of the query with their weights; one that no memory contains may be a
        typo of another."""
        words: dict[str, float] = dict(Counter(self._query.tokens))
        readable = Counter(word for row in self._readable for word in _Text.of(row).words)
        right: dict[str, float] = {}
        for word in [
            word for word in words if not any(word in text.words for text in self._corpus)
        ]:
            stems = hidden_stems(word, language=self._language)
            near = [(count, other) for other, count in readable.items() if _is_typo(word, other)]
            near = near or [(count, other) for other, count in readable.items() if other in stems]
            if near:
                weight, other = 0.8 * words.pop(word), max(near)[1]
                right[other] = max(weight, right.get(other, 0.0))
        return right | words

    def _named(self, row: Row, names: Iterable[str]) -> float:
        """Return how surely one of these names means the speaker of a memory."""
        parts = tokens(str(row.value("speaker") or ""), language=self._language)
        return max((closeness(name, part) for name in names for part in parts), default=0.0)

    @property
    def _unknown(self) -> list[str]:
        """Return the names that no readable memory contains, and that are no speaker's."""
        names = [
            name
            for name in self._query.names
            if not any(name in _Text.of(row).words for row in self._readable)
        ]
        return [
            name
            for name in names
            if not any(self._named(row, [name]) == 1 for row in self._readable)
        ]

    @property
    def _stranger(self) -> float:
        unknown = [
            1 - max((self._named(row, [name]) for row in self._readable), default=0.0)
            for name in self._unknown
        ]
        typos = [name not in self._words for name in self._unknown]
        unknown = [
            min(each, 0.2) if typo else each for each, typo in zip(unknown, typos, strict=True)
        ]
        return sum(unknown) / (len(self._query.names) + 1)

    def answer(self) -> Reference:
        comparable = sum(1 for row in self._candidates if self._cosines(row))
        without_vector = len(self._candidates) - comparable if self._query.vector else 0
        return Reference(
            {row.id: self._signals(row) for row in self._candidates},
            +self._excluded,
            without_vector,
        )

    def _signals(self, row: Row) -> dict[str, float]:
        members = self._sessions[_session(row)] if row.value("session_id") is not None else [row]
        at = members.index(row)
        before = members[at - 1] if at else None
        behind = members[at + 1] if at + 1 < len(members) else None
        context = _Text.of(before) + _Text.of(row) + _Text.of(behind)
        speaker = row.value("speaker")
        return {
            "keywords": self._bm25.score(_Text.of(row)),
            "keywords_before": self._bm25.score(_Text.of(before)),
            "keywords_behind": self._bm25.score(_Text.of(behind)),
            "keywords_context": self._bm25.score(context, parts=3),
            "keywords_session": self._session_bm25.score(_whole(members)),
            "coverage": self._bm25.coverage(_Text.of(row)),
            "coverage_context": self._bm25.coverage(context),
            "coverage_wide": self._bm25.coverage(
                sum(map(_Text.of, members[max(at - 2, 0) : at + 3]), _Text())
            ),
            "vectors": self._cosine(row),
            "vectors_before": self._cosine(before),
            "vectors_behind": self._cosine(behind),
            "vectors_context": self._mixed(before, row, behind),
            "vectors_session": max(
                (cosine for member in members for cosine in self._cosines(member)), default=0.0
            ),
            "tokens": max(map(self._matched, self._nearest(row)), default=0.0),
            "tokens_context": self._matched(
                [
                    max(own, 0.94 * other) if self._nearest(before) else own
                    for own, other in zip(self._all(row), self._all(before), strict=True)
                ]
            ),
            "length": _Text.of(row).length,
            "question": _asks(row),
            "question_before": _asks(before),
            "speaker": max(
                float(self._named(row, self._query.tokens) == 1), self._named(row, self._unknown)
            ),
            "speaker_known": float(speaker is not None),
            "role": self._query.roles.get(str(speaker or "").casefold(), 0.0),
            "stranger": self._stranger,
            "when": max(
                (_fit(span, row.value("event_time")) for span in self._query.spans), default=0.0
            ),
            "by_user": float(str(speaker or "").casefold() in ("user", "human")),
            "by_assistant": float(
                str(speaker or "").casefold() in ("assistant", "ai", "bot", "model")
            ),
            "day": millis(str(row.value("event_time") or row.created_at)) / DAY_MS,
            "personal": float(self._query.personal),
            "general": float(self._query.general),
        }

    def _cosines(self, row: Row | None) -> list[float]:
        """Return the cosines of the memory's own vector and of the vectors of its passages."""
        if row is None or self._query.vector is None:
            return []
        query = _unit(self._query.vector.data)
        return [_dot(query, unit) for each in self._speaking(row) if (unit := self._vector(each))]

    def _speaking(self, row: Row) -> list[Row]:
        """Return a memory and its passages."""
        passages = (
            passage
            for passage in self._passages
            if (passage.value("ref"), passage.partition) == (row.id, row.partition)
        )
        return [row, *passages]

    def _asked(self) -> list[tuple[list[int], int]]:
        """Return the tokens of the query with their weights."""
        return _tokens(self._query.vector.tokens) if self._query.vector else []

    def _nearest(self, row: Row | None) -> list[list[float]]:
        """Return for each passage with tokens the product of each token of the query with its
        nearest one."""
        speaking = self._speaking(row) if row else []
        passages = [
            _tokens(each.vector.tokens) for each in speaking if each.vector and self._vector(each)
        ]
        return [
            [max(_dot(asked, token) / 127**2 for token, _ in passage) for asked, _ in self._asked()]
            for passage in passages
            if passage
        ]

    def _all(self, row: Row | None) -> list[float]:
        """Return the same for all passages together."""
        return [max(each) for each in zip(*self._nearest(row), strict=True)] or [
            0.0 for _ in self._asked()
        ]

    def _matched(self, nearest: Sequence[float]) -> float:
        weights = [weight for _, weight in self._asked()]
        return _dot(nearest, weights) / sum(weights) if any(weights) else 0.0

    def _cosine(self, row: Row | None) -> float:
        return max(self._cosines(row), default=0.0)

    def _mixed(self, before: Row | None, row: Row, behind: Row | None) -> float:
        """Return the cosine of ½ · before + own + ½ · behind, without passages."""
        if self._query.vector is None:
            return 0.0
        query = _unit(self._query.vector.data)
        sum_ = [0.0] * len(query)
        for share, each in ((0.5, before), (1.0, row), (0.5, behind)):
            for at, part in enumerate(self._vector(each) if each else ()):
                sum_[at] += share * part
        length = sqrt(_dot(sum_, sum_))
        return _dot(query, sum_) / length if length > _TINY else 0.0

    def _vector(self, row: Row) -> list[float]:
        """Return the row's own vector with length one, if it can be compared with the query's."""
        own, wanted = row.vector, self._query.vector
        if (
            own is None
            or wanted is None
            or (own.model, own.dimension) != (wanted.model, wanted.dimension)
        ):
            return []
        return _unit(own.data)


_TINY = 1e-3


def _tokens(data: bytes) -> list[tuple[list[int], int]]:
    """Return the numbers of each token, and its weight."""
    rows = [data[at : at + 49] for at in range(0, len(data), 49)]
    return [(list(unpack("48b", row[:48])), row[48] % 128) for row in rows]


def _is_typo(word: str, other: str) -> bool:
    return (
        len(word) >= MIN_LETTERS
        and (word + other).isalpha()
        and is_likely_typo(word, other)
        and edits(word, other, 1) == 1
    )


def _expired(row: Row, now: str) -> bool:
    ends = row.value("expires_at")
    return isinstance(ends, str) and ends <= now


def _is_valid(row: Row, periods: Sequence[tuple[str, str]]) -> bool:
    """Return whether the validity of a memory and one of the periods have a moment in common."""
    begins, ends = str(row.value("valid_from") or "0"), str(row.value("valid_until") or "9999")
    return not periods or any(max(begins, first) <= min(ends, last) for first, last in periods)


def _session(row: Row) -> tuple[str, str]:
    return row.partition, str(row.value("session_id"))


def _in_order(members: Sequence[Row]) -> list[Row]:
    """Sort by turn if every memory has one, else by the time of the event if every one has that,
    else by creation."""
    turns = [row.value("turn") for row in members]
    events = [row.value("event_time") for row in members]
    first: list[Any] = (
        turns
        if None not in turns
        else events
        if None not in events
        else [row.created_at for row in members]
    )
    return [
        row
        for _, _, row in sorted(
            zip(first, (row.age_key for row in members), members, strict=True),
            key=lambda each: each[:2],
        )
    ]


def _whole(members: Sequence[Row]) -> _Text:
    return sum(map(_Text.of, members), _Text())


def _fit(span: tuple[float, float], event: object) -> float:
    if not isinstance(event, str):
        return 0.0
    day = millis(event) / 86_400_000
    return exp(-max(span[0] - day, day - span[1], 0.0) / 2)


def _asks(row: Row | None) -> float:
    text = str(row.value("content") or "") if row else ""
    while text and (text[-1].isspace() or text[-1] in "\"'”’»)]}*_`"):
        text = text[:-1]
    return float(text[-1:] in {"?", "？", "؟", "\u037e"})


def _unit(data: bytes) -> list[float]:
    values = unpack(f"<{len(data) // 4}f", data)
    longest = max((abs(value) for value in values), default=0.0)
    scaled = [value / longest if longest else 0.0 for value in values]
    length = sqrt(_dot(scaled, scaled))
    return [value / length if length else 0.0 for value in scaled]


def _dot(left: Sequence[float], right: Sequence[float]) -> float:
    return sum(one * other for one, other in zip(left, right, strict=True))
