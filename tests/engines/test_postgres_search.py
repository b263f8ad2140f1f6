"""Searches in the engine of PostgreSQL: what a search asks is answered as by reading every row."""

import json
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import product
from unittest.mock import patch

import psycopg
import pytest
from numpy.linalg import norm
from numpy.random import default_rng

from engines.postgres import Server
from index.corpus import fill, make_rows
from index.server import PlainSource
from memory_mesh.core.errors import StoreCorrupt, StoreReadOnly, StoreTooOld
from memory_mesh.core.model import (
    TOKEN_BYTES,
    Compare,
    In,
    Kind,
    Reader,
    Row,
    Vector,
    Where,
    all_of,
    equals,
    not_expired,
    partition_for,
    visible_to,
)
from memory_mesh.core.options import Options
from memory_mesh.core.ports import ServerStore
from memory_mesh.core.search.candidates import (
    INDEXED,
    Conditions,
    Found,
    FoundRows,
    IndexedRows,
    SessionKey,
)
from memory_mesh.core.search.lexical import tokens
from memory_mesh.index import ServerIndex, make_index
from memory_mesh.index.local import rows_of
from memory_mesh.index.remote import CandidateSnapshot
from memory_mesh.stores.postgres import PostgresStore, calls
from memory_mesh.stores.postgres.calls import condition, is_by_segment, partitions_in
from memory_mesh.stores.postgres.roles import grant
from memory_mesh.stores.postgres.tables import (
    ALL,
    FEW_HITS,
    FEW_VECTORS,
    LISTED,
    VERSION,
    encoded,
    table_of,
)
from memory_mesh.testing.rows import memory, passage, query

pytestmark = pytest.mark.deep

READERS = (
    Reader("ann", "planner"),
    Reader("ann", "coder", "ann-coder-1"),
    Reader(None, "planner"),
    Reader("bob"),
    Reader("eve"),
)
# The indexes of vectors.
NAMES = "SELECT indexname::text FROM pg_indexes WHERE indexname ~ '^memories_by_(half|vector)_'"
NAMED = (
    "SELECT jsonb_agg(jsonb_build_object('kind', kind, 'id', id, 'partition', partition, "
    "'tenant', tenant)) FROM memories"
)
WORDS = (
    *tokens("fence Lisbon bicycle repaired person Katherine telescope"),
    "unknown",
    "with\0zero",
)


@pytest.fixture(scope="module")
def store(server: Server) -> Iterator[PostgresStore]:
    """A store with conversations, and with sessions that lack turns, times, keywords and
    vectors."""
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        fill(store, make_rows(sessions=3, turns=8))
        store.apply(list(_odd_rows()))
        yield store


def _odd_rows() -> Iterator[Row]:
    for at in range(6):
        times = {"event_time": f"2026-01-0{6 - at}T00:00:00.000Z"}
        for name, fields in {
            "timed": times,
            "untimed": times if at else {},
            "turns": {**times, "turn": 9 - at // 2},
        }.items():
            vector = {"vector": [0.0, 0.0] if at == 3 else [1e-20, at * 1e-20]} if at else {}
            yield memory(
                f"{name}{at}", partition='["ann", null]', user_id="ann", session_id=name,
                number=5 - at, content="red fence", keywords=["red", "fenc", "fenc"] if at else [],
                **fields, **vector,
            )  # fmt: skip


def conditions(reader: Reader, *, allowed: Where) -> Conditions:
    active = all_of(visible_to(reader), equals("status", "active"))
    readable = all_of(active, not_expired("2026-01-01T00:30:00.000Z"))
    return Conditions(
        visible=visible_to(reader),
        with_status=active,
        readable=readable,
        allowed=all_of(readable, allowed),
    )


def positive(counts: object) -> dict[str, int]:
    return {word: count for word, count in dict(counts).items() if count}  # type: ignore[call-overload]


@pytest.mark.parametrize("reader", READERS, ids=str)
def test_each_answer_is_that_of_reading_every_row(store: PostgresStore, reader: Reader) -> None:
    mine, plain, where = store.candidate_source, PlainSource(store), visible_to(reader)
    rows = store.find(Kind.MEMORY, where)
    assert bool(rows) == (reader.user_id != "eve")
    models = {(row.vector.model, row.vector.dimension): row.vector for row in rows if row.vector}
    # The second is answered by segment.
    filters = Compare("importance", ">=", 0.4), equals("speaker", "Katherine")
    words = dict.fromkeys(WORDS, 1.0)
    others = Vector("it's 100% another", b"\0\0\x80?" * 3)
    count = 0
    for vector, allowed in product((None, *models.values(), others), filters):
        given = conditions(reader, allowed=allowed), words, ["lisbon"], vector
        found, right = mine.search(*given, limit=1000), plain.search(*given, limit=1000)
        assert replace(found.statistics, counts={}, session_counts={}) == replace(
            right.statistics, counts={}, session_counts={}
        )
        for name in ("counts", "session_counts"):
            assert positive(getattr(found.statistics, name)) == positive(
                getattr(right.statistics, name)
            )
        assert len(found.rows) <= len(right.rows)
        for partition, own in found.rows.items():
            every = by_id(right.rows[partition])
            count += len(own.places)
            for id_, values in by_id(own).items():
                assert values == every[id_]
        for key, totals in found.sessions.items():
            expected = right.sessions[key]
            assert totals.length == expected.length
            assert positive(totals.counts) == {
                word: count for word, count in expected.counts.items() if word in words
            }
    assert bool(count) == bool(rows)
    assert mine.count_words(where, WORDS) == plain.count_words(where, WORDS)
    assert mine.speakers(where) == plain.speakers(where)


def by_id(rows: FoundRows) -> dict[str, object]:
    """Return what was found of each memory: its columns, vector, place and filter."""
    columns = zip(*(rows.memories.columns[name] for name in INDEXED), strict=True)
    values = zip(columns, rows.memories.vectors, rows.places, rows.allowed, strict=True)
    return {str(row[0]): (list(row), *others) for row, *others in values}


def test_a_search_returns_the_neighbours_and_the_passages_of_what_it_found(
    server: Server,
) -> None:
    everything = equals("partition", "p")
    active = all_of(everything, equals("status", "active"))
    given = Conditions(
        visible=everything, with_status=active, readable=active,
        allowed=all_of(active, equals("speaker", "Ann")),
    )  # fmt: skip
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        turns = [
            memory(
                f"t{at}", session_id="s", turn=at, keywords=["red"] if at == 5 else ["blue"],
                speaker="Ann" if at == 5 else "Bob", vector=[1.0, at],
                status="archived" if at == 4 else "active",
            )
            for at in range(9)
        ]  # fmt: skip
        store.apply([*turns, passage("x1", "t5", [0.0, 1.0]), passage("x2", "t0", [1.0, 0.0])])
        found = store.candidate_source.search(given, {"red": 1.0}, (), None, limit=80)
        assert found.rows["p"].passages.columns["id"] == []  # the query has no vector to compare
        found = store.candidate_source.search(given, {"red": 1.0}, (), query(1.0, 5.0), limit=80)
    rows = by_id(found.rows["p"])
    # The fourth turn is not readable, so the third one is next to the fifth.
    assert {id_: values[1:] for id_, values in rows.items()} == {  # type: ignore[index]
        "t2": (turns[2].vector, 3, False), "t3": (turns[3].vector, 4, False),
        "t5": (turns[5].vector, 5, True), "t6": (turns[6].vector, 6, False),
        "t7": (turns[7].vector, 7, False),
    }  # fmt: skip
    assert found.rows["p"].passages.columns["id"] == ("x1",)
    totals = found.sessions[SessionKey("p", "s")]
    assert (totals.length, dict(totals.counts)) == (8, {"red": 1})
    assert totals.cosine == pytest.approx(1.0)


def test_a_mesh_on_postgres_may_search_in_the_engine(store: PostgresStore) -> None:
    assert isinstance(store, ServerStore)
    assert isinstance(make_index(store, Options()), ServerIndex)


POSTED = "SELECT tenant, partition, word, id FROM keyword_lists, unnest(ids) id"
SCOPED = [
    Reader("ann", "a"),
    Reader("ann", "a", "s1"),
    Reader("ann"),
    Reader("ann", "b", "s1", project="p", only_project=True),
]


def _scoped_rows() -> Iterator[Row]:
    """Yield a memory of each scope and of scopes that only another program can have written."""
    scopes = product(
        (None, "global", "agent", "session", "lesson", "odd"),
        (None, "global", "agent", "session"),
        ("a", "b"),
        "s12",
        "p ",
    )
    for at, (type_, reach, agent, session, project) in enumerate(scopes):
        yield memory(
            f"scoped{at}", partition=partition_for("ann", agent, type_, reach), user_id="ann",
            agent_id=agent, memory_type=type_, reach=reach, session_id=f"s{session}",
            project=project.strip() or None, keywords=["red", f"word{at % 5}", "red"][at % 4 :],
            speaker=("Ann", "Bob", None)[at % 3],
        )  # fmt: skip


def counted(store: PostgresStore, reader: Reader) -> object:
    where = visible_to(reader)
    source, words = store.candidate_source, ["red", "word1", "gone"]
    same = Conditions(visible=where, with_status=where, readable=where, allowed=where)
    found = (
        source.search(same, dict.fromkeys(words, 1.0), (), None, limit=9).statistics,
        source.count_words(where, words),
        source.speakers(where),
    )
    return *found, store.matching(["red", "word1", "word1", "gone"], where, limit=9)


def test_the_counts_of_keywords_are_those_of_the_memories_after_every_change(
    server: Server,
) -> None:
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        rows = list(_scoped_rows())
        changed = [
            replace(
                row,
                revision=2,
                replaces=1,
                fields={**row.fields, "keywords": ["gone"], "agent_id": "b"},
            )
            for row in rows
        ]
        removed = [row.key for row in rows]
        for puts, deletes in ((rows, ()), (changed[::3], removed[1::3]), ((), removed)):
            store.apply(puts, deletes)
            for reader in SCOPED:
                assert is_by_segment(visible_to(reader))
                found = counted(store, reader)
                assert bool(found[3]) == bool(found[2]) == (deletes is not removed)  # type: ignore[index]
                with (
                    patch("memory_mesh.stores.postgres.calls.partitions_in", lambda _: None),
                    patch("memory_mesh.stores.postgres.calls.is_by_segment", lambda _: False),
                    patch("memory_mesh.stores.postgres.calls.is_by_segment", lambda _: False),
                ):
                    assert counted(store, reader) == found
            listed = server.execute(POSTED, database=database)
            assert bool(listed) == (deletes is not removed), "a deleted memory left its words"
            stored = (
                "SELECT DISTINCT tenant, partition, word, id FROM memories, unnest(keywords) word"
            )
            assert sorted(listed) == sorted(server.execute(stored, database=database))  # type: ignore[type-var]
        assert server.execute("SELECT count(*) FROM keyword_segments", database=database) == [(0,)]


def test_the_lists_of_a_keyword_fill_up_before_another_begins(server: Server) -> None:
    database = server.database()
    sizes = (
        "SELECT array_agg(cardinality(ids) ORDER BY chunk), array_agg(cardinality(segments) ORDER "
        "BY chunk) FROM keyword_lists WHERE word = 'red'"
    )
    rows = [
        memory(f"m{at}", number=at, session_id=f"s{at // LISTED}", keywords=["red"])
        for at in range(3 * LISTED)
    ]
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply(rows[: LISTED + 9])
        assert server.execute(sizes, database=database) == [([LISTED, 9], [1, 1])]
        for row in rows[LISTED + 9 : LISTED + 11]:
            store.apply([row])
        store.apply(rows[LISTED + 11 :])
        assert server.execute(sizes, database=database) == [([LISTED] * 3, [1] * 3)]
        where = equals("partition", "p")
        assert store.candidate_source.count_words(where, ["red"]) == {"red": 3 * LISTED}
        assert store.candidate_source.count_words(
            all_of(where, equals("session_id", "s1")), ["red"]
        ) == {"red": LISTED}
        store.apply(deletes=[row.key for row in rows[: LISTED - 1]])
        assert server.execute(sizes, database=database) == [([1, LISTED, LISTED], [1] * 3)]
        store.apply(
            [
                replace(
                    rows[LISTED],
                    revision=2,
                    replaces=1,
                    fields={**rows[LISTED].fields, "session_id": "s0"},
                )
            ]
        )
        assert server.execute(sizes, database=database) == [([1, LISTED - 1, LISTED, 1], [1] * 4)]
        assert store.candidate_source.count_words(
            all_of(where, equals("session_id", "s0")), ["red"]
        ) == {"red": 2}
        store.apply(deletes=[row.key for row in rows[LISTED - 1 :]])
    assert server.execute("SELECT count(*) FROM keyword_lists", database=database) == [(0,)]


def test_a_condition_on_another_column_than_those_of_segments_counts_the_memories() -> None:
    assert is_by_segment(
        all_of(
            visible_to(SCOPED[1]),
            equals("status", "active"),
            not_expired("2026-01-01T00:30:00.000Z"),
        )
    )
    assert not is_by_segment(equals("importance", 1))
    assert not is_by_segment(all_of(visible_to(SCOPED[1]), equals("content", "red")))


def test_the_best_by_keywords_are_found_without_reading_every_memory_with_a_common_word(
    server: Server,
) -> None:
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        count = 3 * FEW_HITS
        words = [
            ["common"] * (1 + at % 3) + ["rare"] * (at % 100 == 0) + ["other"] * (at % 70 == 0)
            for at in range(count)
        ]
        store.apply([memory(f"m{at}", keywords=[*each, "filler"]) for at, each in enumerate(words)])
        for tokens_ in (
            ["common", "rare", "other"],
            ["common", "common", "rare"],
            ["common", "filler"],
            ["rare", "unknown"],
        ):
            every = store.matching(tokens_, equals("partition", "p"), limit=count)
            with patch.object(store, "_call", wraps=store._call) as call:
                assert store.matching(tokens_, equals("partition", "p"), limit=10) == every[:10]
            payload = call.call_args.args[1]
            answer = store._call("mesh_matching", payload, None)
            assert (
                answer["read"] == len(every) if "filler" in tokens_ else answer["read"] <= FEW_HITS
            )
            assert len(answer["found"]) < len(every) // 2  # the others have lower scores


def test_a_search_reads_few_rows_before_the_server_has_statistics_of_its_tables(
    server: Server,
) -> None:
    """A plan that guesses read every memory for every id: a search in 10,000 memories took more
    than a minute."""
    database, count, where = server.database(), 600, equals("partition", "p")
    same = Conditions(visible=where, with_status=where, readable=where, allowed=where)
    rows = list[Row]()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
        for name in ALL:  # which also collects statistics
            server.execute(f"ALTER TABLE {name} SET (autovacuum_enabled = off)", database=database)
        for at in range(count):
            words = ["red", f"rare{at % 6}", f"word{at}"]
            rows.append(
                memory(
                    f"m{at}",
                    session_id=f"s{at % 60}",
                    turn=at,
                    content="red",
                    keywords=words,
                    vector=[1.0, at],
                )
            )
        store.apply(rows)
    read = (
        "SELECT sum(coalesce(idx_tup_fetch, 0) + seq_tup_read) FROM pg_stat_user_tables WHERE "
        "relname <> 'mesh_migrations'"
    )
    (before,) = server.execute(read, database=database)[0]
    with closing(PostgresStore(server.keeper(database))) as store:
        source, vector = store.candidate_source, rows[0].vector
        assert vector
        found = source.search(same, {"rare1": 1.0, "red": 1.0}, (), vector, limit=80)
        assert found.statistics.with_vector == count
        assert 80 <= len(found.rows["p"].places) <= 5 * 2 * 80
        assert found.sessions[SessionKey("p", "s1")].counts == {"red": 10, "rare1": 10}
    (after,) = server.execute(read, database=database)[0]
    assert 0 < int(str(after)) - int(str(before)) < 12 * count


@pytest.mark.req("GRAPH-93")
def test_a_program_of_one_user_finds_memories_by_keyword_with_an_index(server: Server) -> None:
    """Row-level security lets no operator see a row first that may reveal it. So the plan of a
    restricted role is looked at."""
    database, count = server.database(), 4000
    server.execute("CREATE ROLE seeker LOGIN PASSWORD 'secret'")
    where = all_of(visible_to(Reader("ann")), equals("status", "active"))
    with closing(PostgresStore(server.keeper(database))) as store:
        rows = (
            memory(
                f"m{at}",
                partition='["ann", null]',
                user_id="ann",
                status="active",
                keywords=["common", f"rare{at % 400}"],
            )
            for at in range(count)
        )
        store.apply(list(rows))
        grant(store, "seeker", scope="user", user_id="ann", agent_id=None)
    server.execute("ANALYZE", database=database)
    payload = json.dumps({"partitions": partitions_in(where), "where": condition(where)})
    with psycopg.connect(server.url(database, user="seeker")) as connection:

        def plan(source: str) -> str:
            query = f"EXPLAIN (ANALYZE, TIMING OFF) SELECT t.id FROM {source}"
            return "\n".join(line for (line,) in connection.execute(query.encode()))

        looked_up = (
            "SELECT mesh_looked_up($1 -> 'where', mesh_posted($1, $$'{rare7,rare8}'::text[]$$))"
        )
        (source,) = connection.execute(
            looked_up.replace("$1", "%(payload)s::jsonb"), {"payload": payload}
        ).fetchone() or ("",)
        by_index = plan(source)
        (source,) = connection.execute(
            "SELECT mesh_source('memory', %s::jsonb -> 'where')", (payload,)
        ).fetchone() or ("",)
        by_filter = plan(f"{source} AND t.keywords && '{{rare7,rare8}}'")
    # Each memory of the partition is read.
    assert f"Rows Removed by Filter: {count - 20}" in by_filter, by_filter
    assert "using keyword_lists_pkey on keyword_lists" in by_index
    assert re.search(r"Index Cond: .*\(word = one", by_index), by_index
    assert "Seq Scan" not in by_index
    assert "Rows Removed" not in by_index, by_index
    index = "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname = 'keyword_lists_pkey'"
    (before,) = server.execute(index, database=database)
    with closing(PostgresStore(server.url(database, user="seeker"))) as store:
        assert len(store.matching(["rare7", "rare8", "common"], where, limit=9)) == 9
    until = time.monotonic() + 30  # a server counts when the connection has ended
    while server.execute(index, database=database) == [before]:
        assert time.monotonic() < until
        time.sleep(0.05)
    server.execute("DROP OWNED BY seeker", database=database)
    server.execute("DROP ROLE seeker")


@pytest.mark.parametrize("size", [2000, 7])
def test_an_index_gets_the_same_rows_as_from_reading_all_of_them(
    store: PostgresStore, size: int
) -> None:
    names = {row.partition for row in store.find(Kind.MEMORY)}
    read: dict[Kind, list[IndexedRows]] = {Kind.MEMORY: [], Kind.PASSAGE: []}
    with patch.object(calls, "_PAGE", size):
        for kind, name in product(read, [*names, "unknown"]):
            pages = [*store.candidate_source.index_rows(kind, name)]
            right = [*rows_of(store, kind, name)]
            assert rows_in(pages) == rows_in(right)
            read[kind] += pages
    for kind, pages in read.items():
        assert any(vector for page in pages for vector in page.vectors), kind
        assert (max(len(page.vectors) for page in pages) == size) is (size == 7)


def rows_in(pages: Sequence[IndexedRows]) -> list[object]:
    return [
        row
        for page in pages
        for row in zip(*(page.columns[name] for name in INDEXED), page.vectors, strict=True)
    ]


def test_an_index_gets_the_tokens_of_memories_and_none_that_are_damaged(server: Server) -> None:
    tokens, database = bytes(range(2 * TOKEN_BYTES)), server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        rows = [memory(f"m{at}", vector=[1.0, at], number=at) for at in range(3)]
        vectors = [row.vector and replace(row.vector, tokens=tokens) for row in rows]
        store.apply(
            [replace(row, vector=vector) for row, vector in zip(rows, vectors, strict=True)]
        )
        server.execute("UPDATE memories SET tokens = 'x' WHERE id = 'm1'", database=database)
        server.execute("UPDATE memories SET model = NULL WHERE id = 'm2'", database=database)
        (read,) = store.candidate_source.index_rows(Kind.MEMORY, rows[0].partition)
        assert read.columns["id"] == ("m2", "m1", "m0")
        assert [*read.vectors] == [None, rows[1].vector, vectors[0]]


@pytest.mark.parametrize("column", ["keywords", "tags", "entities"])
def test_an_index_is_not_built_from_a_list_that_was_edited_by_hand(
    server: Server, column: str
) -> None:
    database, reader = server.database(), Reader(None, "planner")
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1", partition="[null, null]")])
        assert [*store.candidate_source.index_rows(Kind.MEMORY, "[null, null]")]
        for list_ in ("ARRAY['red', NULL]", "ARRAY[ARRAY['red']]"):
            server.execute(f"UPDATE memories SET {column} = {list_}", database=database)
            with pytest.raises(StoreCorrupt, match=f"m1.*{column}"):
                [*store.candidate_source.index_rows(Kind.MEMORY, "[null, null]")]
        with closing(make_index(store, Options())) as index:
            index.prepare(reader)
            assert isinstance(index.snapshot(reader), CandidateSnapshot)


def test_pages_of_an_index_are_read_in_the_order_of_an_index_of_the_server(
    store: PostgresStore,
) -> None:
    """Each page would otherwise read the whole partition."""
    for kind, name in ((Kind.MEMORY, "memories_by_age"), (Kind.PASSAGE, "passages_by_age")):
        with store.connection() as connection, connection.transaction():
            connection.execute("SET LOCAL enable_seqscan = off")
            connection.execute("SET LOCAL enable_sort = off")
            plan = connection.execute(
                f"EXPLAIN SELECT id FROM {table_of(kind).name} t WHERE t.kind = '{kind}' AND "  # type: ignore[arg-type]
                "t.partition = 'p' AND (t.created_at, t.number, t.id) < ('x', 1, 'x') "
                "ORDER BY t.created_at DESC, t.number DESC, t.id DESC LIMIT 9"
            ).fetchall()
        text = "\n".join(line for (line,) in plan)
        assert name in text
        assert "ROW(created_at, number, id) <" in text.partition("Filter:")[0]


def test_a_database_without_tables_answers_as_an_empty_one(server: Server) -> None:
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        given, where = (
            conditions(READERS[0], allowed=equals("status", "active")),
            visible_to(READERS[0]),
        )
        source = store.candidate_source
        assert source.search(given, {"red": 1.0}, (), query(1.0, 0.0), limit=80) == Found()
        assert not source.count_words(where, WORDS)
        assert not [*source.index_rows(Kind.MEMORY, "p")]
        assert not source.speakers(where)


@pytest.mark.req("MESH-020")
def test_tables_of_the_first_version_are_upgraded_by_their_owner_and_not_by_a_read(
    server: Server,
) -> None:
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m1", content="red fence", keywords=["red", "fenc"])])
        server.execute("CREATE ROLE early LOGIN PASSWORD 'secret'")
        grant(store, "early", scope="server", user_id=None, agent_id=None)
    first = (
        "DROP FUNCTION mesh_statistics; DROP INDEX memories_by_session; UPDATE mesh_migrations SET "
        "version = 1; DROP TABLE keyword_lists, keyword_segments"
    )
    server.execute(first, database=database)
    with closing(PostgresStore(server.keeper(database))) as store:
        with pytest.raises(StoreTooOld, match="postgres prepare"):
            store.find(Kind.MEMORY)
        assert server.execute("SELECT max(version) FROM mesh_migrations", database=database) == [
            (1,)
        ]
        with closing(PostgresStore(server.url(database, user="early"))) as early:
            # Only the owner can upgrade.
            with pytest.raises(StoreReadOnly, match="postgres prepare"):
                early.apply([memory("m2")])
            store.prepare()
            early.apply([memory("m2", content="red house", keywords=["red", "hous"])])
        assert {row.id for row in store.find(Kind.MEMORY)} == {"m1", "m2"}
        everything = equals("partition", "p")
        same = Conditions(
            visible=everything, with_status=everything, readable=everything, allowed=everything
        )
        found = store.candidate_source.search(same, {"red": 1.0, "fenc": 1.0}, (), None, limit=80)
        assert found.statistics.counts == {"red": 2, "fenc": 1}
    assert server.execute("SELECT max(version) FROM mesh_migrations", database=database) == [
        (VERSION,)
    ]
    forced = (
        "SELECT count(*) FROM pg_class WHERE relforcerowsecurity AND relnamespace = "
        "'public'::regnamespace"
    )
    assert server.execute(forced, database=database) == [(len(ALL),)]
    server.execute("DROP OWNED BY early", database=database)
    server.execute("DROP ROLE early")


def test_an_index_finds_nearly_all_of_the_nearest_among_many_vectors(server: Server) -> None:
    """The vectors lie around a few hundred centres, as those of sentences do."""
    database, size, count = server.database(), 32, FEW_VECTORS + 1000
    numbers = default_rng(7)
    centres = numbers.normal(size=(300, size))
    vectors = (
        centres[numbers.integers(300, size=count)] + 0.5 * numbers.normal(size=(count, size))
    ).astype("<f4")
    columns = (
        "tenant, partition, kind, id, revision, number, created_at, user_id, content, status, "
        "model, embedding"
    )
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
        with psycopg.connect(server.keeper(database)) as owner, owner.cursor() as cursor:
            # Which COPY does not support.
            server.execute("ALTER TABLE memories DISABLE ROW LEVEL SECURITY", database=database)
            with cursor.copy(f"COPY memories ({columns}) FROM STDIN".encode()) as copy:
                for at, vector in enumerate(vectors):
                    row = (
                        "ann",
                        '["ann", null]',
                        "memory",
                        f"m{at}",
                        1,
                        at,
                        "2026-01-01T00:00:00.000Z",
                        "ann",
                        "text",
                        "active",
                    )
                    copy.write_row((*row, "model", str(vector.tolist())))
        server.execute("ALTER TABLE memories ENABLE ROW LEVEL SECURITY", database=database)
        # As every other write does.
        server.execute(f"SELECT mesh_count_keywords(({NAMED}), 1)", database=database)
        assert store.compact()
        index = (
            "SELECT idx_scan FROM pg_stat_user_indexes WHERE indexrelname LIKE 'memories_by_half%'"
        )
        assert server.execute(index, database=database) == [(0,)]
        lengths, same, where = norm(vectors, axis=1), 0, visible_to(Reader("ann"))
        for query in centres[:40].astype("<f4"):
            right = {f"m{at}" for at in (-(vectors @ query) / lengths).argsort()[:10]}
            found = store.nearest(Kind.MEMORY, Vector("model", query.tobytes()), where, limit=10)
            same += len(right.intersection(hit.id for hit in found))
        assert same >= 0.95 * 400
        # All of them are compared.
        few = all_of(where, In("id", tuple(f"m{at}" for at in range(0, count, 100))))
        right = [
            f"m{at * 100}" for at in (-(vectors[::100] @ query) / lengths[::100]).argsort()[:10]
        ]
        assert [
            hit.id
            for hit in store.nearest(Kind.MEMORY, Vector("model", query.tobytes()), few, limit=10)
        ] == right
    assert server.execute(index, database=database) == [(40,)]
    # As version 17 left it, but for what the index has.
    [(name,)] = server.execute(NAMES, database=database)
    older = str(name).replace("_by_half_", "_by_vector_")
    server.execute(f"ALTER INDEX {name} RENAME TO {older}", database=database)
    server.execute("UPDATE mesh_migrations SET version = 17", database=database)
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
        assert server.execute(NAMES, database=database) == [(name,)]


def test_ids_that_are_no_texts_find_nothing(server: Server) -> None:
    with closing(PostgresStore(server.keeper(server.database()))) as store:
        store.apply([memory("1"), memory("true"), memory("m")])
        assert [row.id for row in store.find(Kind.MEMORY, In("id", ("m", "m", "x")))] == ["m"]
        assert store.find(Kind.MEMORY, In("id", (1, True, 0.5))) == []


def test_reads_by_id_look_each_up_however_the_store_grew(server: Server) -> None:
    """A connection plans the statement when the table is empty, and keeps the plan."""
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.apply([memory("m0")])
        for _ in range(10):
            store.get(Kind.MEMORY, ["m0"])
        server.execute("ALTER TABLE memories SET (autovacuum_enabled = off)", database=database)
        store.apply([memory(f"m{number}") for number in range(1, 3000)])

        def read() -> int:
            time.sleep(1.1)  # a connection reports at most once a second, with its next statement
            store.get(Kind.MEMORY, ["m0"])
            [(rows,)] = server.execute(
                "SELECT (idx_tup_fetch + seq_tup_read)::int FROM pg_stat_user_tables WHERE relname "
                "= 'memories'", database=database,
            )  # fmt: skip
            return int(str(rows))

        before = read()
        assert len(store.get(Kind.MEMORY, [f"m{number}" for number in range(20)])) == 20
        assert 20 <= read() - before < 200


def test_a_change_with_a_row_of_an_unknown_kind_is_refused_as_a_whole(server: Server) -> None:
    database = server.database()
    with closing(PostgresStore(server.keeper(database))) as store:
        store.prepare()
        good = encoded(memory("m1"), 0)
        for odd in ({"kind": "nothing", "id": "x"}, {"id": "x"}, {"kind": None, "id": "x"}):
            for payload in ({"puts": [good, odd]}, {"puts": [good], "deletes": [odd]}):
                text = json.dumps({**payload, "schema": VERSION, "nonce": "n"})
                with (
                    psycopg.connect(server.keeper(database)) as connection,
                    pytest.raises(psycopg.Error, match="unknown kind"),
                ):
                    connection.execute("SELECT mesh_apply(NULL, %s::jsonb)", (text,))
        assert store.count(Kind.MEMORY) == 0
        store.apply([memory("m1")])
        assert store.count(Kind.MEMORY) == 1
