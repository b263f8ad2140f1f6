"""The shortcuts for many memories find what a full comparison finds."""

from collections.abc import Sequence
from dataclasses import replace
from threading import Thread
from unittest.mock import patch

import numpy as np
import pytest

from memory_mesh.core.model import In, Kind, Reader, Row
from memory_mesh.core.search.query import Pool, Query
from memory_mesh.index import LocalIndex, candidates, local, space
from memory_mesh.stores.ram import RamStore

from .index_rows import agrees, asking, find, memory

MANY, DIMENSION = 4000, 192


@pytest.fixture(scope="module")
def many() -> RamStore:
    """Return memories in clusters, with words as frequent as in real texts."""
    rng = np.random.default_rng(7)
    centres = rng.standard_normal((80, DIMENSION))
    vectors = centres[rng.integers(80, size=MANY)] + rng.standard_normal((MANY, DIMENSION)) * 0.8
    words = (rng.pareto(1.0, (MANY, 8)) * 3).astype(int)
    store = RamStore()
    texts = [" ".join(f"w{word}" for word in each) for each in words]
    store.apply([
        memory(f"m{at}", text, vector=vectors[at].tolist(), session_id=f"s{at // 20}", turn=at)
        for at,
        text in enumerate(texts)
    ])  # fmt: skip
    return store


@pytest.fixture(params=["numkong", "numpy"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare vectors with numkong, and as on a system that it does not support."""
    if request.param == "numpy":
        monkeypatch.setattr(space, "simd", None)
    else:
        assert space.simd is not None


@pytest.fixture(scope="module")
def queries(many: RamStore) -> list[Query]:
    """Return queries that each resemble a memory."""
    rng = np.random.default_rng(8)
    near = [
        np.frombuffer(row.vector.data, "<f4")
        for row in many.find(Kind.MEMORY, limit=20)
        if row.vector
    ]
    return [
        asking("w0 w2 w5 w40", vector=(each + rng.standard_normal(DIMENSION) * 0.5).tolist())
        for each in near
    ]


def best(pool: Pool, signal: str, first: int) -> list[str]:
    values = dict(zip(pool.ids, pool.signals[signal].tolist(), strict=True))
    return sorted(pool.ids, key=lambda id_: -values[id_])[:first]


@pytest.mark.deep
def test_the_bits_find_nearly_all_similar_vectors(
    many: RamStore, queries: Sequence[Query], kernels: object
) -> None:
    plain = LocalIndex(many)
    with patch.multiple(space, MAX_EXACT=100, SHORTLIST=400):
        shortcut = LocalIndex(many)
        found = [find(shortcut, query, size=100) for query in queries]
    right = [best(find(plain, query, size=100), "vectors", 10) for query in queries]
    assert (
        np.mean(
            [len({*first} & {*pool.ids}) / 10 for first, pool in zip(right, found, strict=True)]
        )
        >= 0.98
    )


@pytest.mark.deep
def test_ten_thousand_vectors_are_compared_exactly(
    many: RamStore, queries: Sequence[Query], kernels: object
) -> None:
    rows = many.find(Kind.MEMORY)
    vectors = np.stack([np.frombuffer(row.vector.data, "<f4") for row in rows if row.vector])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    index = LocalIndex(many)
    for query in queries:
        assert query.vector
        cosines = vectors @ np.frombuffer(query.vector.data, "<f4")
        nearest = {rows[at].id for at in np.argsort(-cosines)[:50]}
        assert nearest <= {*find(index, query, size=60).ids}


@pytest.mark.deep
@pytest.mark.sample(1)
@pytest.mark.parametrize("exact", [100, MANY], ids=["by a shortlist", "exactly"])
def test_numpy_computes_what_numkong_computes(
    many: RamStore, queries: Sequence[Query], exact: int
) -> None:
    with patch.multiple(space, MAX_EXACT=exact, SHORTLIST=400):
        fast = [find(LocalIndex(many), query, size=60) for query in queries[:3]]
        with patch.object(space, "simd", None):
            plain = [find(LocalIndex(many), query, size=60) for query in queries[:3]]
    for one, other in zip(fast, plain, strict=True):
        assert one.ids == other.ids
        for name, signal in one.signals.items():
            assert signal == pytest.approx(other.signals[name], abs=1e-5), name


def test_skipping_common_words_finds_the_same_best_by_keywords(
    many: RamStore, queries: Sequence[Query]
) -> None:
    index = LocalIndex(many)
    for words in (["w0", "w2", "w5", "w40"], ["w0", "w1"], ["w300", "w0", "w0"]):
        query = replace(queries[0], tokens=words, vector=None)
        with patch.multiple(candidates, MAX_DENSE_POSTINGS=0, SHORT_LIST=0):
            found = find(index, query, size=30)
        with patch.multiple(candidates, MAX_DENSE_POSTINGS=MANY):
            right = find(index, query, size=30)
        kept = [
            sorted(pool.signals["keywords"].tolist(), reverse=True)[:30] for pool in (found, right)
        ]
        assert kept[0] == pytest.approx(kept[1])


def test_a_narrow_filter_is_searched_exactly(many: RamStore, queries: Sequence[Query]) -> None:
    only = frozenset(f"m{at}" for at in range(0, MANY, 400))
    with patch.multiple(space, MAX_EXACT=100):
        pool = find(LocalIndex(many), replace(queries[0], where=In("id", tuple(only))), size=50)
    assert set(pool.ids) == only
    assert pool.documents == len(only)
    assert pool.excluded == {"filter": MANY - len(only)}


def test_a_pool_has_at_most_three_times_the_requested_size(
    many: RamStore, queries: Sequence[Query]
) -> None:
    index = LocalIndex(many)
    for query in queries[:5]:
        assert 20 <= len(find(index, query, size=20).ids) <= 60


def test_threads_can_search_while_others_write() -> None:
    store = RamStore()
    store.apply([memory("m0", "red")])
    index, errors = LocalIndex(store), []

    def write(first: int) -> None:
        for at in range(first, first + 100):
            store.apply(
                [
                    memory(
                        f"m{at}",
                        "red apple",
                        vector=[1.0, float(at)],
                        session_id=f"s{at % 7}",
                        turn=at,
                    )
                ]
            )

    def ask() -> None:
        try:
            for _ in range(40):
                pool = find(index, asking("red", vector=[1.0, 5.0]), size=20)
                assert {len(signal) for signal in pool.signals.values()} == {len(pool.ids)}
        except Exception as error:  # noqa: BLE001  (the test reports any error)
            errors.append(error)

    with patch.multiple(local, MAX_UNPACKED=10):
        threads = [Thread(target=write, args=(first,)) for first in (100, 200)] + [
            Thread(target=ask) for _ in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert errors == []
        agrees(index, store, asking("red", vector=[1.0, 5.0]))


def test_a_partition_dropped_from_memory_is_read_again_when_needed() -> None:
    store = RamStore()
    store.apply(
        [
            memory(f"m{agent}", "red", memory_type="agent", agent_id=agent)
            for agent in ("a1", "b2", "c3")
        ]
    )
    with patch.object(local, "MAX_PARTITIONS", 2):
        index = LocalIndex(store)
        for agent in ("a1", "b2", "c3", "a1"):
            assert find(index, asking("red", reader=Reader(None, agent)), size=9).ids == [
                f"m{agent}"
            ]


def test_ids_of_every_kind_are_returned_unchanged() -> None:
    store = RamStore()
    ids = ["plain", "漢字", "é", "with space", "😀", "x" * 300]
    rows: list[Row] = [memory(id_, "red") for id_ in ids]
    store.apply(rows)
    with patch.multiple(local, MAX_UNPACKED=1):
        index = LocalIndex(store)
        assert sorted(find(index, asking("red"), size=20).ids) == sorted(ids)
        store.apply([memory("later", "red")])
        assert sorted(find(index, asking("red"), size=20).ids) == sorted([*ids, "later"])


def test_a_memory_that_an_earlier_version_stored_is_found_by_emoji_and_by_each_spelling() -> None:
    store = RamStore()
    store.apply(
        [
            memory("old", "Müller 🎉", keywords=["muller"]),
            memory("other", "plain", keywords=["plain"]),
        ]
    )
    for word in ("🎉", "mueller", "muller"):
        pool = find(LocalIndex(store), asking(word), size=9)
        assert dict(zip(pool.ids, pool.signals["coverage"].tolist(), strict=True)).get("old") == 1
    assert "old" not in find(LocalIndex(store), asking("plain"), size=9).ids
