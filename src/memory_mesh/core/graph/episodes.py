"""Episodes: the memories of one conversation, or of one stretch of work, in the order of time.

An episode ends where the session changes, where nothing is stored for a while, and, if asked, where
the topic changes. Episodes are computed from the memories each time, and not stored.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import log, sqrt

from memory_mesh.core.audit import derived_id
from memory_mesh.core.model import Vector, millis
from memory_mesh.core.search import tokens
from memory_mesh.core.text import short_repr, without_masks

GAP_SECONDS = 1800  # without a memory; then an episode ends
WINDOW = 3  # memories before and after a possible change of topic, which are compared
_TITLE_WORDS = 5
_WORD = re.compile(r"[^\W\d_][\w'’]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A memory as a point in time."""

    id: str
    at: str  # when it happened, else when it was stored
    session_id: str | None = None
    agent_id: str | None = None
    speaker: str | None = None
    turn: int = 0
    number: int = 0
    vector: Vector | None = None

    @property
    def order(self) -> tuple[str, int, int, str]:
        return self.at, self.turn, self.number, self.id


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Episode:
    """Memories that belong together in time, oldest first.

    The id is that of the first memory, so it stays the same while the episode goes on. It belongs
    to the `gap` and `min_similarity` that the episodes were listed with.
    """

    __repr__ = short_repr

    id: str
    title: str  # its most telling words
    start: str
    end: str
    count: int
    # `session`: it is the first of its session; `gap` or `topic`: what separates it from the one
    # before.
    began_by: str
    session_id: str | None = None
    speakers: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    memory_ids: tuple[str, ...] = field(repr=False)


def split(
    moments: Iterable[Moment], *, gap_ms: int, min_similarity: float | None = None
) -> list[Episode]:
    """Return the episodes, newest first, without titles. With `min_similarity` a change of topic
    ends an episode too."""
    ordered = sorted(
        moments, key=lambda one: (one.session_id is not None, one.session_id or "", one.order)
    )
    found = [
        _episode(part, why)
        for _, session in groupby(ordered, key=lambda one: one.session_id)
        for run, first in _runs(list(session), gap_ms)
        for part, why in _parts(run, first, min_similarity)
    ]
    return sorted(found, key=lambda one: (one.end, one.start, one.id), reverse=True)


def _runs(session: Sequence[Moment], gap_ms: int) -> Iterator[tuple[Sequence[Moment], str]]:
    """Yield the parts of a session without a longer pause, and why each begins."""
    times = [millis(one.at) for one in session]
    starts = [0, *(at for at in range(1, len(session)) if times[at] - times[at - 1] > gap_ms)]
    for start, end in zip(starts, [*starts[1:], len(session)], strict=True):
        yield session[start:end], "gap" if start else "session"


def _parts(
    run: Sequence[Moment], first: str, min_similarity: float | None
) -> Iterator[tuple[Sequence[Moment], str]]:
    """Yield the parts of a run about one topic, and why each begins."""
    starts = [0, *(() if min_similarity is None else topic_changes(run, min_similarity))]
    for start, end in zip(starts, [*starts[1:], len(run)], strict=True):
        yield run[start:end], "topic" if start else first


def topic_changes(run: Sequence[Moment], min_similarity: float) -> list[int]:
    """Return where a topic begins: the memories before and after are less similar than that, and
    nowhere near less.

    Memories without a vector are passed over. There is no change if the vectors are of several
    models.
    """
    known = [(at, one.vector) for at, one in enumerate(run) if one.vector]
    if len(known) < 2 or len({(vector.model, vector.dimension) for _, vector in known}) > 1:
        return []
    import numpy as np

    rows = np.array([np.frombuffer(vector.data, "<f4") for _, vector in known], dtype=np.float64)
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    cosines = []
    for at in range(1, len(rows)):
        before, after = (
            rows[max(0, at - WINDOW) : at].sum(axis=0),
            rows[at : at + WINDOW].sum(axis=0),
        )
        length = float(np.linalg.norm(before) * np.linalg.norm(after))
        cosines.append(round(float(before @ after) / length, 6) if length else 0.0)
    near = [(max(0, at - WINDOW + 1), at) for at in range(len(cosines))]
    return [
        known[at + 1][0]
        for from_, at in near
        if cosines[at] < min_similarity
        and cosines[at] < min(cosines[from_:at], default=2.0)  # of equal ones the first counts
        and cosines[at] <= min(cosines[at : at + WINDOW])
    ]


def _episode(part: Sequence[Moment], why: str) -> Episode:
    first = part[0]
    return Episode(
        id=derived_id(first.id, "episode"), title="", start=first.at, end=part[-1].at,
        count=len(part), began_by=why, session_id=first.session_id,
        speakers=_each(one.speaker for one in part), agents=_each(one.agent_id for one in part),
        memory_ids=tuple(one.id for one in part),
    )  # fmt: skip


def _each(names: Iterable[str | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name))


def title(
    texts: Sequence[str], frequency: Mapping[str, int], total: int, *, language: str = "english"
) -> str:
    """Return the words that tell most about these texts, in the order in which they first occur.

    They are in many of these texts, in few of all, and not too short: `frequency` is the number of
    texts with a keyword, of `total`.
    """
    counts: Counter[str] = Counter()
    words: dict[str, str] = {}
    for text in texts:
        found = {}
        for word in _WORD.findall(without_masks(text)):
            if keyword := next(iter(tokens(word, language=language)), None):
                found[keyword] = words.setdefault(keyword, word)
        counts.update(found.keys())
    places = {keyword: place for place, keyword in enumerate(words)}
    rare = {keyword: log(1 + total / max(frequency.get(keyword, 1), 1)) for keyword in counts}
    telling = {
        keyword: count * rare[keyword] * sqrt(len(words[keyword]))
        for keyword, count in counts.items()
    }
    best = sorted(telling, key=lambda keyword: (-telling[keyword], places[keyword]))[:_TITLE_WORDS]
    return ", ".join(words[keyword] for keyword in sorted(best, key=places.__getitem__))
