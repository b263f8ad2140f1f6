"""The same questions have the same answers, with the same scores, on every store and from both
indexes.

A store joins by an entry in `STORES`: a function of an empty folder that yields a store. A server
joins by one in `ENGINES`: it finds what it needs among the fixtures.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import Kind, Row, SearchResult
from memory_mesh.core.ports import Store
from memory_mesh.stores import open_store
from memory_mesh.stores.json import JsonStore
from memory_mesh.stores.lance import LanceStore
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore

from .corpus import QUESTIONS, Question, fill, make_rows, open_mesh
from .server import ServerStore

if TYPE_CHECKING:
    from engines.supabase import Project


@pytest.fixture(scope="session")
def project() -> Iterator["Project"]:
    """A Supabase project. Its database is also opened directly, so that the rows are written
    once."""
    from engines.postgres import Server  # its package is installed for deep tests only
    from engines.supabase import Project

    server = Server()
    try:
        project = Project(server)
        yield project
        project.stop()
    finally:
        server.remove()


def postgresql(request: pytest.FixtureRequest) -> AbstractContextManager[Store]:
    return closing(open_store(request.getfixturevalue("project").database_url))


def supabase(request: pytest.FixtureRequest) -> AbstractContextManager[Store]:
    from engines.supabase import KEY
    from memory_mesh.stores.supabase import SupabaseStore

    return closing(SupabaseStore(request.getfixturevalue("project").url, KEY))


@contextmanager
def bucket(_: pytest.FixtureRequest) -> Iterator[Store]:
    from engines.seaweed import KEYS, Cluster

    with patch.dict(os.environ, KEYS):
        cluster = Cluster()
        try:
            with closing(open_store(cluster.url("parity"))) as store:
                yield store
        finally:
            cluster.stop()


STORES: dict[str, Callable[[Path], AbstractContextManager[Store]]] = {
    "sqlite": lambda folder: closing(SqliteStore(folder / "memory.db")),
    "json": lambda folder: closing(JsonStore(folder / "json")),
    "lance": lambda folder: closing(LanceStore(folder / "lance")),
    "ram, in its engine": lambda _: closing(ServerStore(RamStore())),
    "sqlite, in its engine": lambda folder: closing(ServerStore(SqliteStore(folder / "memory.db"))),
}
IN_ENGINE = ", in its engine"
ENGINES: dict[str, Callable[[pytest.FixtureRequest], AbstractContextManager[Store]]] = {
    "postgresql": postgresql,
    "supabase": supabase,
    "s3": bucket,
}
TOLERANCE = 1e-6


@pytest.fixture(scope="session")
def rows(deep: bool) -> list[Row]:
    return make_rows(sessions=8 if deep else 3, turns=24 if deep else 6)


@pytest.fixture(scope="session")
def answers(rows: list[Row]) -> list[list[SearchResult]]:
    """The answers of an index in memory, over the store in memory."""
    store = RamStore()
    fill(store, rows)
    with open_mesh(store) as mesh:
        return [question.ask(mesh) for question in QUESTIONS]


@pytest.fixture(
    scope="module",
    params=[*STORES, *(pytest.param(name, marks=pytest.mark.deep) for name in ENGINES)],
)
def mesh(
    request: pytest.FixtureRequest, rows: list[Row], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MemoryMesh]:
    name, folder = request.param, tmp_path_factory.mktemp("store")
    with STORES[name](folder) if name in STORES else ENGINES[name](request) as store:
        if not store.count(Kind.MEMORY):
            fill(store, rows)
        # A server store with more memories than that is searched in its engine.
        with open_mesh(store, index_max_memories=1 if IN_ENGINE in name else 100_000) as mesh:
            yield mesh


@pytest.mark.sample(40)
@pytest.mark.parametrize(
    "number", range(len(QUESTIONS)), ids=[question.text for question in QUESTIONS]
)
def test_a_question_has_the_same_answers_with_the_same_scores(
    mesh: MemoryMesh, answers: Sequence[Sequence[SearchResult]], number: int
) -> None:
    found, right = QUESTIONS[number].ask(mesh), answers[number]
    assert found, "a question without answers compares nothing"
    assert [one.score for one in found] == pytest.approx(
        [one.score for one in right], abs=TOLERANCE
    )
    last = right[-1].score + TOLERANCE  # of several with the last score, any may be left out
    assert {one.id for one in found if one.score > last} == {
        one.id for one in right if one.score > last
    }
    shown = {one.id: (one.content, one.passage) for one in right}
    assert all((one.content, one.passage) == shown[one.id] for one in found if one.id in shown)


def test_the_questions_differ_by_reader_and_options(
    answers: Sequence[Sequence[SearchResult]],
) -> None:
    """Equal answers to all questions would make the comparison above meaningless."""
    texts = {
        question.text: {one.id for one in found}
        for question, found in zip(QUESTIONS, answers, strict=True)
    }
    assert len({frozenset(ids) for ids in texts.values()}) == len(texts)
    assert any(one.passage for found in answers for one in found)
    assert any(one.speaker for found in answers for one in found)


def test_a_store_with_other_memories_answers_otherwise(
    rows: list[Row], answers: Sequence[Sequence[SearchResult]]
) -> None:
    store = RamStore()
    fill(store, [row for row in rows if row.id != answers[0][0].id])
    with open_mesh(store) as mesh:
        assert [one.id for one in Question.ask(QUESTIONS[0], mesh)] != [
            one.id for one in answers[0]
        ]
