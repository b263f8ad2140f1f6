"""What a search asks of the database beside candidates: each method of `CandidateSource` calls one function of `search.sql`.

The words of a memory are its stored keywords.
"""

from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from memory_mesh.core.candidate_ports import (
    Around,
    CandidateMemory,
    Conditions,
    SessionKey,
    SessionTotals,
    Statistics,
    Surroundings,
)
from memory_mesh.core.model import Kind, Vector, Where
from memory_mesh.core.search.lexical import CLOSERS, QUESTION_MARKS, Corpus
from memory_mesh.stores.postgres.segments import is_by_segment, partitions_in
from memory_mesh.stores.postgres.tables import condition, vector_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class FunctionSource:
    """A `CandidateSource` over a function that calls a SQL function with a payload; see `FunctionStore._call`."""

    def __init__(self, call: Callable[[str, Mapping[str, object], Any], Any]) -> None:
        self._call = call

    def statistics(self, conditions: Conditions, words: Collection[str], model: tuple[str, int] | None) -> Statistics:
        """Return the counts of memories for a query of these words."""
        names = ("visible", "with_status", "readable", "allowed")
        payload = {name: condition(getattr(conditions, name)) for name in names} | {"words": _stored(words)}
        payload["by_segment"] = all(map(is_by_segment, (conditions.visible, conditions.with_status, conditions.readable)))
        payload["is_allowed_by_segment"] = is_by_segment(conditions.allowed)
        payload |= {"model": model[0], "dimension": model[1]} if model else {}
        found = self._call("mesh_statistics", payload, None)
        if found is None:
            return Statistics()
        return Statistics(
            **found["numbers"], corpus=Corpus(*found["corpus"]), counts=found["counts"] or {},
            sessions=Corpus(*found["sessions"]), session_counts=found["session_counts"] or {},
        )  # fmt: skip

    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]:
        """Return how many of the memories that meet a condition contain each word."""
        payload = {"where": condition(where), "by_segment": is_by_segment(where), "partitions": partitions_in(where)}
        payload["words"] = _stored(words)
        return self._call("mesh_count_words", payload, None) or {}

    def speakers(self, where: Where) -> Collection[tuple[str, str]]:
        """Return each partition and speaker of the memories that meet a condition."""
        found = self._call("mesh_speakers", {"where": condition(where), "by_segment": is_by_segment(where)}, None) or []
        return {(partition, speaker) for partition, speaker in found}

    def nearest(self, where: Where, vector: Vector, *, count: int, limit: int) -> Sequence[str]:
        """Return the ids of the memories that meet a condition with the nearest vectors."""
        payload: dict[str, object] = {"kind": Kind.MEMORY, "where": condition(where), "count": count}
        payload |= {"model": vector.model, "dimension": vector.dimension, "vector": vector_text(vector.data), "limit": limit}
        found = chain.from_iterable(self._call("mesh_nearest", payload, []))
        return list(dict.fromkeys(id_ for id_, _ in sorted(found, key=lambda one: (one[1], one[0]))))[:limit]

    def memories(
        self, conditions: Conditions, ids: Sequence[str], words: Collection[str], model: tuple[str, int] | None,
        *, with_vectors: Collection[str],
    ) -> Sequence[CandidateMemory]:  # fmt: skip
        """Return what scoring needs of these memories, newest first."""
        payload: dict[str, object] = {
            "readable": condition(conditions.readable), "allowed": condition(conditions.allowed), "words": _stored(words),
            "ids": _stored(ids), "with_vectors": _stored(with_vectors), "closers": CLOSERS, "question_marks": QUESTION_MARKS,
            "partitions": partitions_in(conditions.readable),
        }  # fmt: skip
        payload |= {"model": model[0], "dimension": model[1]} if model else {}
        found = self._call("mesh_memories", payload, None)
        if not found or not found["memories"]:
            return []
        vectors = _unpacked(found["vectors"], model[1] if model else 0)
        return [_candidate(one, vectors) for one in found["memories"]]

    def around(
        self, where: Where, ids: Sequence[str], *, steps: int, words: Collection[str] = (), vector: Vector | None = None
    ) -> Surroundings:
        """Return up to `steps` memories on each side of each of these in its session, and the totals of these sessions."""
        payload: dict[str, object] = {"where": condition(where), "partitions": partitions_in(where), "ids": _stored(ids)}
        payload |= {"steps": steps, "words": _stored(words)}
        if vector:
            payload |= {"model": vector.model, "dimension": vector.dimension, "vector": vector_text(vector.data)}
        found = self._call("mesh_around", payload, None)
        if not found:
            return Surroundings()
        sessions = found["sessions"] or []
        counts = [vectors for *_, vectors in sessions]
        cosines = (
            _best_cosines(vector.data, _matrix(found["vectors"], vector.dimension), counts) if vector and any(counts) else {}
        )
        neighbours = (found["neighbours"] or {}).items()
        return Surroundings(
            neighbours={id_: Around(before[::-1], behind) for id_, (before, behind) in neighbours},
            sessions={
                SessionKey(partition, session): SessionTotals(
                    length=length, counts=Counter(chain.from_iterable(own or ())), cosine=cosines.get(at)
                )
                for at, (partition, session, length, own, _) in enumerate(sessions)
            },
        )


def _candidate(values: Sequence[Any], vectors: Iterator[bytes]) -> CandidateMemory:
    *rest, words, text, has_vector, passages = values
    vector = next(vectors) if has_vector else None
    others = [next(vectors) for _ in range(passages)] if passages else []
    return CandidateMemory._make((*rest, words or [], vector, others, text))


def _unpacked(packed: bytes | str | None, dimension: int) -> Iterator[bytes]:
    """Yield the bytes of each packed vector."""
    if not packed:
        return iter(())
    numbers = _matrix(packed, dimension).tobytes()
    return (numbers[at : at + 4 * dimension] for at in range(0, len(numbers), 4 * dimension))


def _matrix(packed: bytes | str, dimension: int) -> "NDArray[np.float32]":
    """Return as rows the vectors that `vector_send` packed one after the other, each behind four bytes; over HTTP as base64."""
    import numpy as np

    data = b64decode(packed) if isinstance(packed, str) else packed
    rows = np.frombuffer(data, np.uint8).reshape(-1, 4 + 4 * dimension)[:, 4:]
    return np.ascontiguousarray(rows).view(">f4").astype("<f4")


def _best_cosines(query: bytes, vectors: "NDArray[np.float32]", counts: Sequence[int]) -> dict[int, float]:
    """Return the best cosine of a query with each group of vectors, by the place of the group; `counts` has their sizes.

    Each vector is rounded to whole numbers up to 127 as `index.space` rounds them: a query in 32 bits, and stored vectors in 64.
    Halves are otherwise rounded to the other side.
    """
    import numpy as np

    asked, rows = np.frombuffer(query, "<f4"), vectors.astype(np.float64)
    peak, peaks = float(np.abs(asked).max(initial=0)), np.abs(rows).max(axis=1, initial=0, keepdims=True)
    whole_query = np.rint(asked * np.float32(127 / max(peak, 1e-30))).astype(np.float64)
    whole = np.rint(rows * (127 / np.where(peaks > 0, peaks, 1)))
    scale = np.linalg.norm(whole, axis=1) * np.linalg.norm(whole_query)
    cosines = np.divide(whole @ whole_query, scale, out=np.zeros(len(rows)), where=scale > 0)
    ends = np.cumsum(counts).tolist()
    return {
        at: float(cosines[end - count : end].max()) for at, (end, count) in enumerate(zip(ends, counts, strict=True)) if count
    }


def _stored(texts: Collection[str]) -> list[str]:
    """Return the texts that can be stored, each once. PostgreSQL has no character 0."""
    return [text for text in dict.fromkeys(texts) if "\0" not in text]
