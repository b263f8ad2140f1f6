"""Contract of reads: order, pages, conditions, several threads and handles, and closing."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import Conflict, IdTaken, StoreClosed
from memory_mesh.core.model import (
    ANYTHING,
    CONTENTS,
    TOKEN_BYTES,
    And,
    Compare,
    In,
    IsNull,
    Json,
    Key,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Sealed,
    Used,
    Vector,
    Where,
)
from memory_mesh.core.ports import Store
from memory_mesh.testing.rows import (
    Subject,
    batches,
    cleared,
    conditions,
    ids,
    memory,
    passage,
    plain,
    property_test,
    query,
    together,
    within,
)


class FindsInOrder(Subject):
    """`find`, `ids`, `count` and `tally`."""

    @pytest.mark.parametrize(
        ("given", "order"),
        [
            ([memory("b", ms=2), memory("c", ms=1), memory("a", ms=3)], "a b c"),
            (
                [
                    memory("b", number=9),
                    memory("a", number=10),
                    memory("a2"),
                    memory("é"),
                    memory("a1"),
                ],
                "a b é a2 a1",
            ),
            (
                [memory(id_) for id_ in ("\U0001f600", "\uffee", *"zaZé", "10", "9")],
                "\U0001f600 \uffee é z a Z 9 10",
            ),
        ],
        ids=["newest", "then the higher number and the higher id", "ids by code point"],
    )
    def test_the_newest_comes_first(self, store: Store, given: list[Row], order: str) -> None:
        store.apply(given)
        assert ids(store.find(Kind.MEMORY)) == order.split()

    @pytest.mark.parametrize(
        ("limit", "found"), [(None, "cba"), (9, "cba"), (2, "cb"), (1, "c"), (0, "")]
    )
    def test_no_more_than_the_limit_is_given(
        self, store: Store, limit: int | None, found: str
    ) -> None:
        store.apply([memory(id_) for id_ in "abc"])
        assert "".join(ids(store.find(Kind.MEMORY, limit=limit))) == found

    @pytest.mark.parametrize("kind", Kind)
    def test_a_page_continues_behind_the_row_it_is_given(self, store: Store, kind: Kind) -> None:
        store.apply([plain(kind, id_, number=number) for number, id_ in enumerate("abcde")])
        first = store.find(kind, limit=2)
        assert ids(first) == ["e", "d"]
        assert ids(store.find(kind, limit=2, after=first[-1])) == ["c", "b"]
        assert store.find(kind, after=store.find(kind)[-1]) == []

    @pytest.mark.parametrize("kind", CONTENTS)
    def test_a_memory_or_skill_comes_with_what_its_latest_block_sealed(
        self, store: Store, kind: Kind
    ) -> None:
        def block(id_: str, ref: str, hash_: str | None, revision: int | None) -> Row:
            row = plain(Kind.BLOCK, id_, number=int(id_))
            return replace(
                row,
                fields={
                    **row.fields,
                    "ref": ref,
                    "content_hash": hash_,
                    "memory_revision": revision,
                },
            )

        store.apply([plain(kind, id_) for id_ in "abc"])
        store.apply(
            [
                block("1", "a", "x", 1),
                block("2", "a", "y", 10),
                block("3", "a", "z", 2),
                block("4", "b", None, None),
            ]
        )
        expected = {"a": Sealed(10, "y"), "b": None, "c": None}
        assert {id_: row.sealed for id_, row in store.get(kind, list("abc")).items()} == expected
        assert {row.id: row.sealed for row in store.find(kind, limit=9)} == expected
        assert [row.sealed for row in store.find(Kind.BLOCK)] == [None] * 4
        store.apply(deletes=[Key(Kind.BLOCK, "2")])
        assert store.get(kind, ["a"])["a"].sealed == Sealed(2, "z")

    def test_a_memory_comes_with_its_usage(self, store: Store) -> None:
        def usage(id_: str, times: int, revision: int) -> Row:
            fields: dict[str, Json] = {
                "ref": id_,
                "access_count": times,
                "last_accessed": "2026-01-01T00:00:00.000Z",
            }
            return replace(
                plain(Kind.USAGE, id_), fields=fields, revision=revision, replaces=revision - 1
            )

        store.apply([memory("a"), memory("b"), usage("a", 1, 1)])
        store.apply([usage("a", 3, 2)])
        expected = {"a": Used(3, "2026-01-01T00:00:00.000Z"), "b": None}
        assert {
            id_: row.used for id_, row in store.get(Kind.MEMORY, ["a", "b"]).items()
        } == expected
        assert {row.id: row.used for row in store.find(Kind.MEMORY)} == expected

    def test_rows_come_in_the_order_of_the_ids_and_each_once(self, store: Store) -> None:
        store.apply([memory(f"m{n}") for n in range(1200)])
        wanted = [f"m{n}" for n in (1199, *range(700), 3)]
        assert list(store.get(Kind.MEMORY, wanted)) == wanted[:-1]
        assert store.get(Kind.MEMORY, ["m1\0", "m", "m1%", '"m1"']) == {}

    @pytest.mark.parametrize("page", [1, 2, 3, 99])
    def test_the_pages_of_some_partitions_are_in_the_same_order(
        self, store: Store, page: int
    ) -> None:
        """Numbers count within a partition only; otherwise the order would tell how much was
        written to the others."""
        places = product("prq", (1, 0), (7, 2, 7))  # partition, time, number
        given = [
            memory(f"m{at}", partition=name, ms=ms, number=number)
            for at, (name, ms, number) in enumerate(places)
        ]
        store.apply(given)
        own = [row for row in given if row.partition in ("p", "q")]
        whole = sorted(
            own, key=lambda row: (row.created_at, row.partition, row.number, row.id), reverse=True
        )
        paged: list[Row] = []
        for _ in whole:
            paged += store.find(
                Kind.MEMORY, within("p", "q"), limit=page, after=paged[-1] if paged else None
            )
        assert paged == whole

    def test_a_page_continues_behind_a_row_that_is_gone(self, store: Store) -> None:
        store.apply([memory(id_) for id_ in "abc"])
        (newest,) = store.find(Kind.MEMORY, limit=1)
        store.apply(deletes=[newest.key])
        assert ids(store.find(Kind.MEMORY, after=newest)) == ["b", "a"]

    @property_test
    @given(batch=batches([Kind.MEMORY, Kind.LINK, Kind.BLOCK], max_size=7), page=st.integers(1, 3))
    def test_the_pages_together_are_the_whole(
        self, store: Store, batch: list[Row], page: int
    ) -> None:
        cleared(store).apply(batch)
        for kind in (Kind.MEMORY, Kind.LINK, Kind.BLOCK):
            whole = sorted(
                (row for row in batch if row.kind is kind),
                key=lambda row: row.age_key,
                reverse=True,
            )
            paged = store.find(kind, limit=page)
            for _ in whole:
                paged += store.find(kind, limit=page, after=paged[-1])
            assert paged == store.find(kind) == whole

    def test_a_limit_counts_only_what_the_condition_lets_through(self, store: Store) -> None:
        store.apply(
            [memory(id_, status="active" if id_ in "ac" else "archived") for id_ in "abcdef"]
        )
        active = Compare("status", "=", "active")
        assert ids(store.find(Kind.MEMORY, active, limit=2)) == ["c", "a"]
        assert ids(store.find(Kind.MEMORY, active, after=memory("b"))) == ["a"]

    @pytest.mark.parametrize("kind", Kind)
    def test_one_kind_is_found_and_counted_at_a_time(self, store: Store, kind: Kind) -> None:
        store.apply([plain(each, id_, partition=id_) for each in Kind for id_ in "ab"])
        assert {row.kind for row in store.find(kind)} == {kind}
        assert store.count(kind) == 2
        assert store.count(kind, Compare("id", "=", "a")) == 1
        assert sorted(store.ids(kind)) == ["a", "b"]
        assert store.ids(kind, Compare("id", "=", "a")) == ["a"]
        assert store.tally(kind, ["partition"]) == {"a": 1, "b": 1}

    def test_the_values_of_a_column_are_counted_as_far_as_the_condition_lets_through(
        self, store: Store
    ) -> None:
        assert store.tally(Kind.MEMORY, ["user_id"]) == {}
        users = ["ana", "ana", "Ana", "änne", "", None]
        store.apply(
            [
                memory(f"m{at}", user_id=user, status="active" if at else "archived")
                for at, user in enumerate(users)
            ]
        )
        expected = {"ana": 2, "Ana": 1, "änne": 1, "": 1, None: 1}
        assert store.tally(Kind.MEMORY, ["user_id"]) == expected
        active = Compare("status", "=", "active")
        assert store.tally(Kind.MEMORY, ["user_id"], active) == {**expected, "ana": 1}
        assert store.tally(Kind.MEMORY, ["user_id"], Compare("id", ">", "m1"), length=1) == {
            "A": 1, "ä": 1, "": 1, None: 1
        }  # fmt: skip
        store.apply([memory("m1", user_id="bea", revision=2, replaces=1)])
        store.apply(deletes=[Key(Kind.MEMORY, "m3")])
        assert store.tally(Kind.MEMORY, ["user_id"]) == {
            "ana": 1,
            "bea": 1,
            "Ana": 1,
            "": 1,
            None: 1,
        }

    def test_the_beginnings_of_times_are_counted(self, store: Store) -> None:
        times = ["2026-01-31T23:00:00.000Z", "2026-02-01T00:00:00.000Z", None]
        store.apply([memory(f"m{at}", ms=at, event_time=one) for at, one in enumerate(times)])
        months = store.tally(Kind.MEMORY, ["event_time"], within("p"), length=7)
        assert months == {"2026-01": 1, "2026-02": 1, None: 1}
        store.apply([replace(plain(Kind.USAGE), fields={"last_accessed": times[0]})])
        assert store.tally(Kind.USAGE, ["last_accessed", "ref"], length=7) == {"2026-01": 1}
        assert store.tally(Kind.MEMORY, ["created_at"], length=10) == {"2026-01-01": 3}
        days = store.tally(Kind.MEMORY, ["event_time", "created_at"], length=10)
        assert days == {"2026-01-31": 1, "2026-02-01": 1, "2026-01-01": 1}

    def test_pages_of_several_partitions_come_in_one_order(self, store: Store) -> None:
        """The usual query: active rows of two partitions, one of them named twice."""
        status = {"a": "archived"}
        store.apply(
            [
                memory(id_, ms=ms, partition="pq"[ms % 2], status=status.get(id_, "active"))
                for ms, id_ in enumerate("abcdef")
            ]
        )
        store.apply(
            [memory("x", ms=9, partition="r", status="active"), memory("y", ms=8, partition="p")]
        )
        seen = And(
            (
                In("partition", ("p", "q", "p")),
                Compare("created_at", ">", ""),
                In("status", ("active", "disputed")),
            )
        )
        first = store.find(Kind.MEMORY, seen, limit=3)
        assert ids(first) == ["f", "e", "d"]
        assert ids(store.find(Kind.MEMORY, seen, limit=3, after=first[-1])) == ["c", "b"]
        assert ids(
            store.find(
                Kind.MEMORY, And((In("partition", ("q", "p")), In("id", ("a", "e", "x")))), limit=9
            )
        ) == ["e", "a"]
        assert ids(store.find(Kind.MEMORY, In("partition", ("q",)), limit=9)) == ["f", "d", "b"]
        assert store.find(Kind.MEMORY, In("partition", ()), limit=9) == []


ROWS: dict[str, dict[str, Any]] = {
    "bare": {"project": "a\uffff"},
    "empty": {"status": "", "tags": [], "turn": 0, "trust": 0.0, "pinned": False, "metadata": {}},
    "low": {
        "status": "active",
        "tags": ["a", "b"],
        "turn": 1,
        "trust": 0.5,
        "pinned": True,
        "metadata": {"k": "v"},
    },
    "caps": {"status": "ACTIVE", "tags": ["A"], "turn": 10, "trust": 1, "metadata": {"k": True}},
    "one": {"status": "a_c", "tags": ["a%"], "turn": -1, "metadata": {"k": 1, "v": "1"}},
    "real": {"status": "a%c", "tags": [""], "turn": 2**53, "metadata": {"k": 1.0, "v": None}},
    "far": {
        "status": "\U0001f600",
        "tags": ["\uffee", "\U0001f600"],
        "metadata": {"k": "10", "a.b": 1, "a": {"b": 2}},
    },
    "near": {
        "status": "\uffee",
        "project": "a\ufffe",
        "metadata": {"q\"u'o": "yes", "": "empty", "K": "v", "k": [1, "v"], "é": False},
    },
    "fine": {
        "status": "abc",
        "project": "a\ufffd",
        "tags": ["b", "c"],
        "metadata": {"k": False, "v": 0},
    },
}

# A condition, the rows that it matches and, in some cells, the rows that its negation matches.
CELLS: dict[str, tuple[Where, *tuple[str, ...]]] = {
    "everything": (ANYTHING, "bare empty low caps one real far near fine"),
    # A missing value is neither equal nor different, also under NOT.
    "equal": (Compare("status", "=", "active"), "low", "empty caps one real far near fine"),
    "different": (Compare("status", "<>", "active"), "empty caps one real far near fine", "low"),
    "missing": (IsNull("status"), "bare", "empty low caps one real far near fine"),
    "of another kind": (IsNull("yamo_text"), "bare empty low caps one real far near fine"),
    "unknown or true": (
        Or((Compare("turn", ">", 0), Compare("status", "=", "abc"))),
        "low caps real fine",
    ),
    "unknown and true": (And((Compare("turn", ">", 0), ANYTHING)), "low caps real"),
    "neither": (Not(Or((Compare("turn", ">", 0), Compare("status", "=", "")))), "one"),
    "not both": (
        Not(And((Compare("turn", ">", 0), Compare("status", "=", "")))),
        "empty low caps one real far near fine",
    ),
    "twice not": (Not(Not(Compare("turn", "=", 1))), "low"),
    "all of none": (And(()), "bare empty low caps one real far near fine"),
    "one of none": (Or(()), "", "bare empty low caps one real far near fine"),
    # Text is ordered by code point, also beyond 16 bits.
    "above capitals": (Compare("status", ">", "ACTIVE"), "low one real far near fine"),
    "above a": (Compare("status", ">", "a"), "low one real far near fine"),
    "beyond": (Compare("status", ">", "\uffee"), "far"),
    "up to": (Compare("status", "<=", "\uffee"), "empty low caps one real near fine"),
    # LIKE is case-sensitive; only % and _ are wildcards.
    "like": (Like("status", "a%"), "low one real fine", "empty caps far near"),
    "like one": (Like("status", "a_c"), "one real fine"),
    "like nothing": (Like("status", ""), "empty"),
    "like anything": (Like("status", "%"), "empty low caps one real far near fine"),
    "like one sign": (Like("status", "_"), "far near"),
    "like what is no character": (Like("project", "_\uffff%"), "bare"),
    "like a number": (Like("turn", "1%"), "", ""),
    # Numbers, booleans and text never compare with each other.
    "number": (Compare("turn", "=", 1.0), "low"),
    "greatest": (Compare("turn", ">=", 2**53), "real"),
    "least": (Compare("turn", "<", 0), "one"),
    "whole": (Compare("trust", "=", 1), "caps"),
    "endless": (Compare("turn", "<", float("inf")), "empty low caps one real"),
    "true": (Compare("pinned", "=", True), "low", "empty"),  # noqa: FBT003
    "true as a number": (Compare("pinned", "=", 1), ""),
    "number as true": (Not(Compare("turn", "=", True)), ""),  # noqa: FBT003
    "number as text": (Compare("turn", "=", "1"), ""),
    "text as a number": (Not(Compare("status", "=", 1)), ""),
    # A list satisfies a test that one item satisfies; "<>" means that no item is equal.
    "tagged": (Compare("tags", "=", "a"), "low", "empty caps one real far fine"),
    "tagged otherwise": (Compare("tags", "<>", "a"), "empty caps one real far fine"),
    "tagged above": (Compare("tags", ">", "b"), "far fine"),
    "tagged beyond": (Compare("tags", ">", "\uffee"), "far"),
    "tagged like": (Like("tags", "a%"), "low one", "empty caps real far fine"),
    "untagged": (IsNull("tags"), "bare near", "empty low caps one real far fine"),
    "tagged with a number": (Not(Compare("tags", "=", 1)), ""),
    # A metadata key compares only with values of its own type.
    "key": (Compare("metadata.k", "=", "v"), "low"),
    "key differs": (Compare("metadata.k", "<>", "v"), "far"),
    "key is 1": (Compare("metadata.k", "=", 1), "one real", ""),
    "key above 0": (Compare("metadata.k", ">", 0.5), "one real"),
    "key is true": (Compare("metadata.k", "=", True), "caps", "fine"),  # noqa: FBT003
    "key is missing": (IsNull("metadata.k"), "bare empty"),
    "key is null": (IsNull("metadata.v"), "bare empty low caps real far near", "one fine"),
    "key like": (Like("metadata.k", "1_"), "far", "low"),
    "key with a dot": (Compare("metadata.a.b", "=", 1), "far"),
    "key with quotes": (Compare("metadata.q\"u'o", "=", "yes"), "near"),
    "key without a name": (Compare("metadata.", "=", "empty"), "near"),
    "key in capitals": (Compare("metadata.K", "=", "v"), "near"),
    "key beyond ASCII": (Compare("metadata.é", "=", False), "near"),  # noqa: FBT003
    "key like a path": (Not(IsNull("metadata.$.k")), ""),
    # IN is a disjunction of "=".
    "in": (In("status", ("active", "abc", "none")), "low fine"),
    "not in": (Not(In("status", ("active", "abc"))), "empty caps one real far near"),
    "in nothing": (In("status", ()), "", "bare empty low caps one real far near fine"),
    "in mixed": (In("status", ("active", 1, True)), "low"),
    "not in mixed": (Not(In("status", ("active", 1))), ""),
    "in numbers": (In("turn", (1, 10.0)), "low caps", "empty one real"),
    "in truths": (In("pinned", (True, False)), "empty low"),
    "in others": (Not(In("pinned", (1, 0))), ""),
    "tagged in": (In("tags", ("b", "A")), "low caps fine", "empty one real far"),
    "tagged in mixed": (In("tags", ("b", 1)), "low fine", ""),
    "key in mixed": (In("metadata.k", ("v", 1)), "low one real"),
    "key in truths": (In("metadata.k", (True, "10")), "caps far"),
    # The base columns behave the same.
    "id": (Compare("id", ">=", "near"), "near one real"),
    "ids": (In("id", ("near", "far", "nowhere")), "near far"),
    "kind": (Compare("kind", "=", "memory"), "bare empty low caps one real far near fine"),
    "other kind": (Compare("kind", "=", "link"), ""),
    "revision": (Compare("revision", "<>", 1), ""),
    "made": (
        Compare("created_at", "<", "2026-01-01T00:00:00.001Z"),
        "bare empty low caps one real far near fine",
    ),
}

THOUSANDS = 1400  # about as many parts as a filter of 10,000 characters can have


_TURN = Compare("turn", "=", 1)

# Each adds three levels.
NESTS: dict[str, Callable[[Where], Where]] = {
    "not": lambda part: Not(Not(Not(Not(part)))),
    "and or and": lambda part: And((_TURN, Or((And((part, ANYTHING)), Compare("turn", "=", 2))))),
    "not or": lambda part: Not(Or((Not(_TURN), Not(And((_TURN, part)))))),
}


class MeansWhatItSays(Subject):
    """`Where`."""

    @property_test
    @given(data=st.data(), batch=batches())
    def test_any_condition_picks_the_rows_that_it_matches(
        self, store: Store, data: st.DataObject, batch: list[Row]
    ) -> None:
        cleared(store).apply(batch)
        for where in data.draw(st.lists(conditions(batch), min_size=1, max_size=4)):
            for kind in {row.kind for row in batch}:
                right = sorted(row.id for row in batch if row.kind is kind and where.matches(row))
                assert (
                    sorted(ids(store.find(kind, where))) == sorted(store.ids(kind, where)) == right
                )
                assert store.count(kind, where) == len(right)

    @property_test
    @given(data=st.data(), batch=batches([Kind.MEMORY]))
    def test_searches_let_through_what_finding_does(
        self, store: Store, data: st.DataObject, batch: list[Row]
    ) -> None:
        given = [_searchable(row) for row in batch]
        cleared(store).apply(given)
        where = data.draw(conditions(given))
        found = {row.id for row in store.find(Kind.MEMORY, where)}
        assert {hit.id for hit in store.matching(["word"], within("p"), where, limit=9)} == found
        assert {
            hit.id for hit in store.nearest(Kind.MEMORY, Vector.of("m", [1.0]), where, limit=9)
        } == found

    @pytest.mark.parametrize("cell", CELLS)
    def test_the_cells_of_the_table_hold(self, store: Store, cell: str) -> None:
        where, *matched = CELLS[cell]
        given = [memory(id_, **fields) for id_, fields in ROWS.items()]
        store.apply(given)
        for condition, expected in zip((where, Not(where)), matched, strict=False):
            assert {row.id for row in given if condition.matches(row)} == {*expected.split()}
            assert {*ids(store.find(Kind.MEMORY, condition))} == {*expected.split()}

    @pytest.mark.parametrize("column", ["id", "status", "tags", "metadata.k"])
    def test_one_of_thousands_is_found(self, store: Store, column: str) -> None:
        store.apply([memory("m1", status="m1", tags=["m1"], metadata={"k": "m1"}), memory("m2")])
        assert ids(
            store.find(Kind.MEMORY, In(column, (*(f"x{n}" for n in range(THOUSANDS)), "m1")))
        ) == ["m1"]

    @pytest.mark.parametrize("join", [And, Or])
    def test_thousands_of_parts_are_one_condition(self, store: Store, join: type[And | Or]) -> None:
        store.apply([memory("m1", turn=1), memory("m2", turn=THOUSANDS + 1)])
        parts = tuple(Compare("turn", "<>" if join is And else "=", n) for n in range(1, THOUSANDS))
        assert ids(store.find(Kind.MEMORY, join(parts))) == (["m2"] if join is And else ["m1"])

    @pytest.mark.parametrize("wrap", NESTS)
    def test_a_condition_may_be_nested_deeply(self, store: Store, wrap: str) -> None:
        where: Where = Compare("tags", "=", "a")
        store.apply(
            [memory("m1", turn=1, tags=["a"]), memory("m2", turn=2, tags=["a"]), memory("m3")]
        )
        for _ in range(20):
            where = NESTS[wrap](where)
        assert store.find(Kind.MEMORY, where) == [
            row for row in store.find(Kind.MEMORY) if where.matches(row)
        ]
        assert "m1" in ids(store.find(Kind.MEMORY, where))


def _searchable(row: Row) -> Row:
    """Return the row with a keyword and a vector, so that every search finds it."""
    words: list[Json] = ["word", *row.keywords]
    return replace(
        row, partition="p", fields={**row.fields, "keywords": words}, vector=Vector.of("m", [1.0])
    )


THREADS, TURNS = 4, 10
FAR_APART = 700  # rows between two that change together; stores read long lists of ids in batches

USES: dict[str, Callable[[Store], object]] = {
    "apply": lambda store: store.apply([memory("m2")]),
    "apply nothing": lambda store: store.apply(),
    "version": lambda store: store.version("p"),
    "get": lambda store: store.get(Kind.MEMORY, ["m1"]),
    "find": lambda store: store.find(Kind.MEMORY),
    "count": lambda store: store.count(Kind.MEMORY),
    "ids": lambda store: store.ids(Kind.MEMORY),
    "tally": lambda store: store.tally(Kind.MEMORY, ["user_id"]),
    "changes": lambda store: store.changes("p"),
    "nearest": lambda store: store.nearest(Kind.MEMORY, query(1, 0), limit=1),
    "matching": lambda store: store.matching(["word"], within("p"), limit=1),
    "compact": lambda store: store.compact(),
}


class IsShared(Subject):
    """Threads, handles, closing."""

    def test_a_second_handle_sees_at_once_what_the_first_wrote(
        self, store: Store, other: Store
    ) -> None:
        """Rows, versions, keywords and vectors."""
        for turn in range(1, 6):
            store.apply(
                [
                    memory(f"m{turn}", ["word"], vector=[1, 0]),
                    passage(f"x{turn}", f"m{turn}", [0, 1]),
                ]
            )
            assert other.count(Kind.MEMORY) == turn
            assert ids(other.find(Kind.MEMORY, limit=1)) == [f"m{turn}"]
            assert other.version("p") == 2 * turn
            assert len(other.matching(["word"], within("p"), limit=99)) == turn
            assert len(other.nearest(Kind.MEMORY, query(1, 0), limit=99)) == turn
        store.apply(deletes=[Key(Kind.MEMORY, "m1")])
        assert other.get(Kind.MEMORY, ["m1", "m2"]).keys() == {"m2"}

    def test_every_write_changes_the_data_version_of_every_handle(
        self, store: Store, other: Store
    ) -> None:
        seen = {store: [store.data_version()], other: [other.data_version()]}
        writes: list[Callable[[], object]] = [
            lambda: store.apply([memory("m1")]),
            lambda: other.apply([plain(Kind.META, "m2")]),
            lambda: store.apply([memory("m1", revision=2, replaces=1)]),
            lambda: other.apply(deletes=[Key(Kind.MEMORY, "m1")]),
        ]
        for write in writes:
            write()
            for handle, versions in seen.items():
                assert handle.data_version() not in versions
                versions.append(handle.data_version())
                handle.get(Kind.MEMORY, ["m1"])
                assert handle.data_version() == versions[-1]

    def test_a_second_handle_is_held_to_what_the_first_wrote(
        self, store: Store, other: Store
    ) -> None:
        """Ids, versions and revisions belong to the store, not to the handle."""
        read = other.version("p")
        store.apply([memory("m1")])
        with pytest.raises(IdTaken):
            other.apply([memory("m1")])
        with pytest.raises(Conflict):
            other.apply([memory("m2")], seen={"p": read})
        store.apply([memory("m1", revision=2, replaces=1)])
        with pytest.raises(Conflict):
            other.apply([memory("m1", revision=2, replaces=1)])
        other.apply([memory("m1", revision=3, replaces=2)], seen={"p": 2})
        with pytest.raises(Conflict):  # also a handle whose own last write made that version
            store.apply([memory("m3")], seen={"p": 2})
        assert store.get(Kind.MEMORY, ["m1"])["m1"].revision == 3

    def test_what_was_applied_is_there_when_the_store_is_opened_again(self, place: Path) -> None:
        """Deleted rows stay deleted."""
        store = self.open(place)
        kept = memory("m1", ["word"], vector=[1, 0], tokens=bytes(TOKEN_BYTES), tags=["a"])
        store.apply([kept, memory("m2", ["word"])])
        store.apply(deletes=[Key(Kind.MEMORY, "m2")])
        if self.durable:
            store.close()
            store = self.open(place)
        assert store.find(Kind.MEMORY) == [kept]
        assert store.version("p") == 3
        assert ids(list(store.get(Kind.MEMORY, ["m1", "m2"]).values())) == ["m1"]
        assert [hit.id for hit in store.matching(["word"], within("p"), limit=9)] == ["m1"]
        store.close()

    @pytest.mark.parametrize("use", USES)
    def test_a_closed_store_says_so_and_may_be_closed_again(self, store: Store, use: str) -> None:
        store.apply([memory("m1", ["word"], vector=[1, 0])])
        USES[use](store)
        for _ in range(2):
            store.close()
            with pytest.raises(StoreClosed):
                USES[use](store)

    def test_a_store_names_its_url_and_a_folder_for_derived_files(self, store: Store) -> None:
        assert isinstance(store.url, str)
        assert store.url
        assert store.index_folder is None or store.index_folder.is_absolute()

    def test_threads_lose_nothing(self, store: Store, other: Store) -> None:
        """No rows, and no versions or keywords."""
        handles = (store, other)

        def write(thread: int) -> None:
            for turn in range(TURNS):
                handles[thread % 2].apply([memory(f"{thread}-{turn}", ["word"])])

        together([lambda thread=thread: write(thread) for thread in range(THREADS)])  # type: ignore[misc]
        assert store.count(Kind.MEMORY) == store.version("p") == THREADS * TURNS
        assert len(store.matching(["word"], within("p"), limit=999)) == THREADS * TURNS

    def test_of_threads_that_decide_under_one_version_one_wins(
        self, store: Store, other: Store
    ) -> None:
        """Each thread reads, writes under the version it read, and retries; no step may be lost
        or repeated."""
        handles = (store, other)
        store.apply([memory("sum", turn=0)])

        def add(thread: int) -> None:
            done = 0
            while done < TURNS:
                handle = handles[thread % 2]
                seen = {"p": handle.version("p")}
                row = handle.get(Kind.MEMORY, ["sum"])["sum"]
                more = memory(
                    "sum",
                    turn=int(row.fields["turn"]) + 1,  # type: ignore[arg-type]
                    revision=row.revision + 1,
                    replaces=row.revision,
                )
                try:
                    handle.apply([more], seen=seen)
                except Conflict:
                    continue
                done += 1

        together([lambda thread=thread: add(thread) for thread in range(THREADS)])  # type: ignore[misc]
        (row,) = store.find(Kind.MEMORY)
        assert (row.fields["turn"], row.revision) == (THREADS * TURNS, THREADS * TURNS + 1)

    def test_readers_never_see_half_a_change(self, store: Store, other: Store) -> None:
        """Two rows always change together and two are added together; every read must see both
        or none."""
        names = [f"m{n:04}" for n in range(FAR_APART)]
        first, last = names[0], names[-1]
        store.apply([memory(name, turn=0) for name in names])
        over = Event()

        def write() -> None:
            try:
                for turn in range(1, 40):
                    changed = [
                        memory(name, [f"w{turn}"], turn=turn, revision=turn + 1, replaces=turn)
                        for name in (first, last)
                    ]
                    store.apply(
                        [*changed, memory(f"t{turn}", ["pair"]), memory(f"u{turn}", ["pair"])]
                    )
            finally:
                over.set()

        def read(handle: Store) -> None:
            while not over.is_set():
                got = handle.get(Kind.MEMORY, names)
                assert got[first].fields["turn"] == got[last].fields["turn"]
                found = {row.id: row for row in handle.find(Kind.MEMORY, limit=FAR_APART + 80)}
                assert found[first].fields["turn"] == found[last].fields["turn"]
                assert handle.count(Kind.MEMORY) % 2 == 0
                pairs = handle.matching(["pair"], within("p"), limit=999)
                assert len(pairs) % 2 == 0
                assert len({hit.score for hit in pairs}) <= 1

        together([write, lambda: read(store), lambda: read(other)])
