"""Conditions as SQL: values are parameters, and a filter means the same in RAM and in SQLite."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given

from memory_mesh.core.model import Kind, Where
from memory_mesh.flows.search.filters import parse
from memory_mesh.stores.ram import RamStore
from memory_mesh.stores.sqlite import SqliteStore
from memory_mesh.stores.sqlite.queries import Compiler
from memory_mesh.testing.contract.reads import ROWS
from memory_mesh.testing.rows import conditions, ids, memory, property_test

Both = tuple[RamStore, SqliteStore]

OUR_WORDS = re.compile(r"'(?:text|true|false|integer|real|null)'")
HARMLESS = re.compile(r"[\w ()<>=?,]*", flags=re.ASCII)

FILTERS = {
    "status = 'active'": "low",
    "status <> 'active' AND NOT status LIKE 'a%'": "empty caps far near",
    "status LIKE 'a_c' OR turn BETWEEN 0 AND 1": "empty low one real fine",
    "NOT (turn > 0 OR status = 'abc')": "empty one",
    "tags = 'a'": "low",
    "tags <> 'a'": "empty caps one real far fine",
    "tags IN ('b', 'A')": "low caps fine",
    "tags IS NULL": "bare near",
    "pinned = TRUE": "low",
    "pinned <> TRUE": "empty",
    "metadata.k = 'v'": "low",
    "metadata.k = 1": "one real",
    "metadata.k = TRUE": "caps",
    "metadata.k IN ('v', 1)": "low one real",
    "metadata.v IS NULL": "bare empty low caps real far near",
    "trust >= 0.5 AND turn < 1e300": "low caps",
    "turn = 1 OR 2 > turn": "empty low one",
    "status > 'z'": "far near",
}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Both]:
    stores = RamStore(), SqliteStore(tmp_path / "memory.db")
    for store in stores:
        store.apply([memory(id_, **fields) for id_, fields in ROWS.items()])
    yield stores
    for store in stores:
        store.close()


@property_test
@given(where=conditions())
def test_no_value_and_no_key_stands_in_the_text(where: Where) -> None:
    compiled = Compiler(lambda column: "some_column").where(where)
    assert HARMLESS.fullmatch(OUR_WORDS.sub("", compiled.text))
    assert compiled.text.count("?") == len(compiled.params)


@pytest.mark.req("MESH-117")
@pytest.mark.parametrize("text", FILTERS)
def test_a_filter_gives_the_same_answer_on_both_stores(both: Both, text: str) -> None:
    where = parse(text)
    for store in both:
        assert {*ids(store.find(Kind.MEMORY, where))} == {*FILTERS[text].split()}
        assert store.count(Kind.MEMORY, where) == len(FILTERS[text].split())


@pytest.mark.deep
@pytest.mark.parametrize(
    "text",
    [
        " OR ".join(["turn=1"] * 999),
        " AND ".join(["turn<>7"] * 800),
        f"tags IN ({','.join(['1'.join(chr(39) * 2)] * 2400)})",
        "NOT " * 58 + "turn = 1",
        "turn = 3 OR (turn <> 3 AND (" * 14 + "turn = 1" + "))" * 14,
    ],
    ids=["wide or", "wide and", "long in", "deep not", "deep brackets"],
)
def test_a_filter_as_large_as_the_parser_takes_runs_on_both_stores(both: Both, text: str) -> None:
    where = parse(text)
    ram, sqlite = both
    assert ids(sqlite.find(Kind.MEMORY, where)) == ids(ram.find(Kind.MEMORY, where))
