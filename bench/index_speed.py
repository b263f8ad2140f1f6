"""Measure the index at several sizes: the time to find candidates, their quality, and the memory it
needs.

    python -m bench.index_speed [--sizes 1k,10k,100k] [--queries 200] [--json FILE]

The data is made up: vectors in clusters, words as often as words are, sessions of twenty turns. The
query's vector is given, so that embedding is not counted. Recall is of an exact search with the
unrounded vectors: how many of its answers are in the pool. Building counts the making of the rows
too, which `rows_s` tells; reading them from a real store takes longer.
"""

import argparse
import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

from bench.commit import measured_at
from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    Key,
    Kind,
    Reader,
    Row,
    Value,
    Vector,
    Where,
    equals,
    iso,
    partition,
)
from memory_mesh.core.ports import Changes
from memory_mesh.core.search.query import Pool, Query
from memory_mesh.index import LocalIndex

DIMENSION, VOCABULARY, TURNS, SPEAKERS = 384, 50_000, 20, 40
POOL = 150
READER = Reader(None, "agent")
NAME = partition(None, None)
Floats = NDArray[np.float32]


class MadeUp:
    """So many memories, each made when it is read: a million would not fit as rows."""

    url = "made-up://"

    def __init__(self, size: int, folder: Path | None = None) -> None:
        self.index_folder = folder
        self.size = size
        rng = np.random.default_rng(size)
        common = rng.standard_normal(DIMENSION) * 0.5
        centres = rng.standard_normal((max(20, size // 100), DIMENSION)) + common
        # A session keeps to its topic, but for every fifth turn.
        topics = rng.integers(len(centres), size=-(-size // TURNS)).repeat(TURNS)[:size]
        topics[::5] = rng.integers(len(centres), size=len(topics[::5]))
        self.vectors = np.empty((size, DIMENSION), np.float32)
        for at in range(0, size, 50_000):
            made = centres[topics[at : at + 50_000]]
            made = made + rng.standard_normal(made.shape) * 0.9
            self.vectors[at : at + 50_000] = made / np.linalg.norm(made, axis=1, keepdims=True)
        self._lengths = np.clip(rng.lognormal(2.6, 0.6, size), 1, 200).astype(int)
        self._starts = np.cumsum(self._lengths) - self._lengths
        # From 20: the commonest words are no keywords.
        shares = 1 / np.arange(20, VOCABULARY + 20) ** 1.05
        count = int(self._lengths.sum())
        self._words = rng.choice(VOCABULARY, size=count, p=shares / shares.sum()).astype(np.int32)
        # Every third word belongs to the topic.
        own = topics.repeat(self._lengths)[::3] * 97 + rng.integers(60, size=-(-count // 3))
        self._words[::3] = own % VOCABULARY
        self._named = [f"w{word}" for word in range(VOCABULARY)]
        self.added: list[Row] = []

    def words(self, at: int) -> list[str]:
        start = self._starts[at]
        return [
            self._named[word] for word in self._words[start : start + self._lengths[at]].tolist()
        ]

    def row(self, at: int) -> Row:
        fields: dict[str, Value] = {
            "content": "made up?" if at % 7 == 0 else "made up", "updated_at": iso(at),
            "keywords": [*self.words(at)], "status": "quarantined" if at % 50 == 0 else "active",
            "memory_type": "global", "session_id": f"session {at // TURNS}", "turn": at % TURNS,
            "speaker": f"speaker{(at * 7) % SPEAKERS}",
        }  # fmt: skip
        made = Vector("made-up", self.vectors[at].tobytes())
        return Row(
            kind=Kind.MEMORY,
            id=name(at),
            partition=NAME,
            created_at=iso(at),
            number=at,
            fields=fields,
            vector=made,
        )

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        if kind is not Kind.MEMORY or where != equals("partition", NAME):
            return []
        start = self.size if after is None else after.number
        return [self.row(at) for at in range(start - 1, max(-1, start - 1 - (limit or start)), -1)]

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        return {row.id: row for row in self.added if row.id in ids and row.kind is kind}

    def data_version(self) -> int:
        return len(self.added)

    def changes(self, of: str, since: str | None = None) -> Changes:
        if of != NAME:
            return Changes("0", () if since == "0" else None)
        now = str(len(self.added))
        return Changes(
            now,
            None if since is None else [Key(row.kind, row.id) for row in self.added[int(since) :]],
        )


@dataclass(frozen=True, slots=True)
class Question:
    """A query with the memories that an exact search finds."""

    query: Query
    exact: tuple[str, ...]


def main() -> None:
    parser = argparse.ArgumentParser(description="Speed of the index")
    parser.add_argument("--sizes", default="1k,10k,100k")
    parser.add_argument("--queries", type=int, default=200)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    sizes = [
        int(size.removesuffix("k").removesuffix("M")) * _UNITS[size[-1]]
        for size in given.sizes.split(",")
    ]
    rows = []
    print(" ".join(f"{name:>12}" for name in _SHOWN))
    for size in sizes:
        rows.append(measured(size, given.queries))
        print(" ".join(f"{rows[-1][name]:>12}" for name in _SHOWN), flush=True)
    if given.json:
        keep(given.json, rows, given)


_UNITS = {"k": 1000, "M": 1_000_000}
_SHOWN = (
    *(
        "memories",
        "build_s",
        "rows_s",
        "open_ms",
        "p50_ms",
        "p90_ms",
        "words_ms",
        "filtered_ms",
        "after_add_ms",
    ),
    *("recall@10", "recall@100", "bytes_each"),
)


def measured(size: int, queries: int) -> dict[str, object]:
    """The figures of one size."""
    with TemporaryDirectory() as place:
        folder = Path(place) / "index"
        store = MadeUp(size, folder)
        sample = questions(store, queries)
        some = min(size, 2000)
        rows = seconds(lambda: [store.row(at) for at in range(some)]) * size / some
        index = LocalIndex(store)  # type: ignore[arg-type]
        build = timed(index, sample[0].query)
        index.close()
        file_bytes = sum(path.stat().st_size for path in folder.glob("*"))
        index = LocalIndex(store)  # type: ignore[arg-type]
        opening = timed(index, sample[0].query)
        half = len(sample) // 2
        for question in sample[:half]:  # the first ones link sessions and read the file
            timed(index, question.query)
        sample = sample[half:]
        times = [timed(index, question.query) for question in sample]
        # A filter of its own for each query, which excludes half of the memories.
        filters = [Compare("created_at", "<", iso(size // 2 + at)) for at in range(len(sample))]
        filtered = [
            timed(index, replace(each.query, where=where))
            for each, where in zip(sample, filters, strict=True)
        ]
        by_words = [timed(index, replace(question.query, vector=None)) for question in sample]
        found = [
            (question.exact, frozenset(candidates(index, question.query).ids))
            for question in sample
        ]
        adding = [added(store, index, question) for question in sample[:50]]
    return {
        "memories": size, "build_s": round(build, 2), "rows_s": round(rows, 2),
        "open_ms": ms(opening), "p50_ms": ms(median(times)),
        "p90_ms": ms(quantiles(times, n=10)[8]), "words_ms": ms(median(by_words)),
        "filtered_ms": ms(median(filtered)), "after_add_ms": ms(median(adding)),
        "recall@10": recall(found, 10), "recall@100": recall(found, 100),
        "bytes_each": round(file_bytes / size),
    }  # fmt: skip


def questions(store: MadeUp, count: int) -> list[Question]:
    """Queries that resemble some memory: near its vector, with some of its words."""
    rng = np.random.default_rng(1)
    at = rng.integers(store.size, size=count)
    near = store.vectors[at] + rng.standard_normal((count, DIMENSION)).astype(np.float32) * 0.04
    found = exact(store, near)
    made = []
    for row, vector, ids in zip(at.tolist(), near, found, strict=True):
        words = rng.permutation(store.words(row))[:6].tolist()
        query = Query(
            tokens=words,
            vector=Vector("made-up", vector.astype(np.float32).tobytes()),
            reader=READER,
            at=iso(10**12),
        )
        made.append(Question(query, tuple(map(name, ids))))
    return made


def exact(store: MadeUp, queries: Floats) -> list[list[int]]:
    """The active memories nearest to each query, best first."""
    active = np.arange(store.size) % 50 != 0
    best = []
    for query in queries:
        scores = np.where(active, store.vectors @ query, -2)
        top = np.argpartition(-scores, 100)[:100] if store.size > 100 else np.arange(store.size)
        best.append(top[np.argsort(-scores[top])].tolist())
    return best


def added(store: MadeUp, index: LocalIndex, question: Question) -> float:
    """How long the search takes that follows a write."""
    number = store.size + len(store.added)
    store.added.append(
        replace(
            store.row(number % store.size), id=f"new{number}", created_at=iso(number), number=number
        )
    )
    return timed(index, question.query)


def timed(index: LocalIndex, query: Query) -> float:
    return seconds(lambda: candidates(index, query))


def candidates(index: LocalIndex, query: Query) -> Pool:
    return index.snapshot(READER).candidates(query, size=POOL)


def seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def name(at: int) -> str:
    return f"mem_{at:013d}_abcdef"


def recall(found: Sequence[tuple[tuple[str, ...], frozenset[str]]], first: int) -> float:
    return round(
        sum(len(pool & {*ids[:first]}) / len(ids[:first]) for ids, pool in found) / len(found), 4
    )


def ms(taken: float) -> float:
    return round(taken * 1000, 2)


def keep(path: Path, rows: Sequence[dict[str, object]], given: argparse.Namespace) -> None:
    result = {
        "made_by": f"python -m bench.index_speed --sizes {given.sizes} --queries {given.queries}",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **measured_at(),
        "pool": POOL,
        "rows": rows,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
