"""The meaning of conditions: three-valued logic, text by code point, numbers as floats, lists by
their items."""

import re
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import (
    ANYTHING,
    And,
    Anything,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Where,
    all_of,
    equals,
    like,
)


def row(**fields: object) -> Row:
    return Row(
        kind=Kind.MEMORY,
        id="m1",
        partition="p",
        created_at="2026-01-01T00:00:00.000Z",
        number=7,
        fields=fields,
    )


TRUE, FALSE, UNKNOWN = (
    Compare("id", "=", "m1"),
    Compare("id", "=", "other"),
    Compare("project", "=", "any"),
)
TRUTHS = {True: TRUE, False: FALSE, None: UNKNOWN}


def low(*truths: bool | None) -> bool | None:
    """Kleene's AND: the smallest, where false < unknown < true."""
    return min(truths, key=[False, None, True].index)


def high(*truths: bool | None) -> bool | None:
    return max(truths, key=[False, None, True].index)


def test_the_three_truths_are_what_they_are_called() -> None:
    assert {truth: condition.truth(row()) for truth, condition in TRUTHS.items()} == {
        True: True,
        False: False,
        None: None,
    }


@pytest.mark.parametrize(("left", "right"), list(product(TRUTHS, TRUTHS)))
def test_and_or_not_have_sqls_tables(left: bool | None, right: bool | None) -> None:
    parts = (TRUTHS[left], TRUTHS[right])
    assert And(parts).truth(row()) is low(left, right)
    assert Or(parts).truth(row()) is high(left, right)
    assert Not(parts[0]).truth(row()) is (None if left is None else not left)


def test_only_what_is_true_matches() -> None:
    assert [TRUTHS[truth].matches(row()) for truth in (True, False, None)] == [True, False, False]
    assert not Not(UNKNOWN).matches(row())


def test_nothing_at_all_is_true_for_and_and_false_for_or() -> None:
    assert And(()).truth(row()) is True
    assert Or(()).truth(row()) is False
    assert In("id", ()).truth(row()) is False
    assert Anything().truth(row()) is True


# --- laws, for any condition and any row ---


@pytest.mark.parametrize(("one", "two", "three"), list(product(TRUTHS, repeat=3)))
def test_kleenes_laws_hold_for_every_truth(
    one: bool | None, two: bool | None, three: bool | None
) -> None:
    a, b, c = TRUTHS[one], TRUTHS[two], TRUTHS[three]
    equal = [
        (Not(And((a, b))), Or((Not(a), Not(b)))),
        (Not(Or((a, b))), And((Not(a), Not(b)))),
        (Not(Not(a)), a),
        (And((a, Or((b, c)))), Or((And((a, b)), And((a, c))))),
        (Or((a, And((b, c)))), And((Or((a, b)), Or((a, c))))),
        (And((a, b)), And((b, a))),
        (Or((a, Or((b, c)))), Or((a, b, c))),
        (And((a, Or((a, b)))), a),
    ]
    assert [pair for pair in equal if pair[0].truth(row()) is not pair[1].truth(row())] == []


COLUMNS = [
    "id",
    "project",
    "status",
    "turn",
    "importance",
    "pinned",
    "tags",
    "metadata.k",
    "metadata.x",
]
VALUES = ["a", "b", "", "m1", 0, 1, 1.0, -2, 0.5, True, False]
ROWS = [
    row(),
    row(
        project="a",
        status="active",
        turn=1,
        importance=0.5,
        pinned=True,
        tags=["a", "b"],
        metadata={"k": "a", "x": 1},
    ),
    row(
        project="b",
        status="a",
        turn=0,
        importance=1.0,
        pinned=False,
        tags=[],
        metadata={"k": 0.5, "x": None},
    ),
    row(project="", turn=-2, importance=0, tags=[""], metadata={"k": True, "x": [1]}),
    row(metadata={}),
]

LEAVES = (
    st.builds(
        Compare,
        st.sampled_from(COLUMNS),
        st.sampled_from(["=", "<>", "<", "<=", ">", ">="]),
        st.sampled_from(VALUES),
    )
    | st.builds(
        In, st.sampled_from(COLUMNS), st.lists(st.sampled_from(VALUES), max_size=3).map(tuple)
    )
    | st.builds(Like, st.sampled_from(COLUMNS), st.text("ab%_", max_size=4))
    | st.builds(IsNull, st.sampled_from(COLUMNS))
    | st.just(ANYTHING)
)


def nested(inner: st.SearchStrategy[Where]) -> st.SearchStrategy[Where]:
    some = st.lists(inner, max_size=3).map(tuple)
    return st.builds(Not, inner) | st.builds(And, some) | st.builds(Or, some)


CONDITIONS = st.recursive(LEAVES, nested, max_leaves=4)


@given(CONDITIONS, CONDITIONS, st.sampled_from(ROWS))
def test_the_laws_hold_for_any_conditions(left: Where, right: Where, kept: Row) -> None:
    assert Not(And((left, right))).truth(kept) is Or((Not(left), Not(right))).truth(kept)
    assert Not(Not(left)).truth(kept) is left.truth(kept)
    assert not And((left, Not(left))).matches(kept)
    assert all_of(left, right).truth(kept) is And((left, right)).truth(kept)


@pytest.mark.parametrize("column", COLUMNS)
def test_in_is_one_of_several_equals(column: str) -> None:
    for kept, (one, two) in product(ROWS, product(VALUES, VALUES)):
        one_of = Or((Compare(column, "=", one), Compare(column, "=", two)))
        assert In(column, (one, two)).truth(kept) is one_of.truth(kept)


@pytest.mark.parametrize("column", COLUMNS)
def test_unequal_is_not_equal(column: str) -> None:
    for kept, value in product(ROWS, VALUES):
        assert Compare(column, "<>", value).truth(kept) is Not(Compare(column, "=", value)).truth(
            kept
        )


def test_both_leaves_out_the_trivial_and_keeps_one_as_it_is() -> None:
    assert all_of() is ANYTHING
    assert all_of(ANYTHING, ANYTHING) is ANYTHING
    assert all_of(ANYTHING, TRUE) is TRUE
    assert all_of(TRUE, And((FALSE, UNKNOWN)), ANYTHING) == And((TRUE, FALSE, UNKNOWN))


def test_equals_lets_nothing_equal_nothing() -> None:
    assert equals("project", None).matches(row())
    assert not equals("project", None).matches(row(project="a"))
    assert equals("project", "a").matches(row(project="a"))


# --- what is comparable, and how ---

SMALLER = [
    ("project", "Z", "a"),  # by code point, not as a dictionary would
    ("project", "a", "é"),
    ("project", "é", "z\U0001f600"[1:]),
    ("project", "\uffff", "\U00010000"),  # by code point, not by UTF-16 unit
    ("project", "a", "ab"),
    ("project", "", "a"),
    ("turn", -1, 0),
    ("turn", 1, 1.5),
    ("importance", 0.1, 1),
    ("created_at", "2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z"),
]


@pytest.mark.parametrize(("column", "less", "more"), SMALLER)
def test_values_are_ordered_the_way_every_store_must_order_them(
    column: str, less: object, more: object
) -> None:
    kept = row(**{column: less}) if column != "created_at" else row()
    truths = {op: Compare(column, op, more).truth(kept) for op in ("=", "<>", "<", "<=", ">", ">=")}
    assert truths == {"=": False, "<>": True, "<": True, "<=": True, ">": False, ">=": False}
    same = {op: Compare(column, op, less).truth(kept) for op in ("=", "<>", "<", "<=", ">", ">=")}
    assert same == {"=": True, "<>": False, "<": False, "<=": True, ">": False, ">=": True}


@pytest.mark.parametrize(
    ("column", "value", "literal"),
    [
        ("project", "1", 1),
        ("turn", 1, "1"),
        ("turn", 1, True),
        ("pinned", True, 1),
        ("pinned", True, "true"),
        ("metadata.k", {"k": "1"}, 1),
        ("metadata.k", {"k": 1}, "1"),
        ("metadata.k", {"k": True}, 1),
        ("metadata.k", {"k": 1}, True),
        ("metadata.k", {"k": None}, "a"),
        ("metadata.k", {"k": ["a"]}, "a"),
        ("metadata.k", {"k": {"a": 1}}, "a"),
        ("metadata.k", {"other": "a"}, "a"),
        ("tags", ["1"], 1),
        ("heritage_chain", {"a": "b"}, "a"),
    ],
)
def test_values_of_two_types_are_neither_equal_nor_unequal(
    column: str, value: object, literal: object
) -> None:
    kept = row(**{column.split(".")[0]: value})
    assert Compare(column, "=", literal).truth(kept) is None
    assert Compare(column, "<>", literal).truth(kept) is None
    assert In(column, (literal,)).truth(kept) is None


def test_a_key_is_found_at_the_top_of_the_metadata_only_and_a_dot_is_part_of_its_name() -> None:
    kept = row(metadata={"a.b": 1, "a": {"b": 2}, "": "empty"})
    assert Compare("metadata.a.b", "=", 1).matches(kept)
    assert IsNull("metadata.b").matches(kept)
    assert Compare("metadata.", "=", "empty").matches(kept)
    assert IsNull("metadata.a").truth(row()) is True


def test_a_list_satisfies_what_one_of_its_items_does_and_differs_only_if_none_is_equal() -> None:
    kept = row(tags=["b", "d"])
    assert Compare("tags", "=", "b").matches(kept)
    assert Compare("tags", "<", "c").matches(kept)
    assert Compare("tags", ">", "c").matches(kept)
    assert not Compare("tags", "<>", "b").matches(kept)
    assert Compare("tags", "<>", "c").matches(kept)
    assert In("tags", ("x", "d")).matches(kept)
    assert Like("tags", "_").matches(kept)


def test_an_empty_list_is_no_missing_one() -> None:
    assert Compare("tags", "=", "a").truth(row(tags=[])) is False
    assert Compare("tags", "<>", "a").truth(row(tags=[])) is True
    assert Compare("tags", "=", "a").truth(row()) is None
    assert IsNull("tags").truth(row(tags=[])) is False


# --- LIKE ---


@pytest.mark.parametrize(
    ("pattern", "hits", "misses"),
    [
        ("abc", ["abc"], ["ABC", "abcd", " abc", ""]),
        ("a%", ["a", "abc", "a\nb"], ["ba", "A"]),
        ("%c", ["c", "abc", "\nc"], ["ca", "cd"]),
        ("%b%", ["b", "abc", "bb"], ["", "ac"]),
        ("a_c", ["abc", "a\nc", "a\U0001f600c"], ["ac", "abbc"]),
        ("%", ["", "anything\nat all"], []),
        ("", [""], ["a"]),
        ("%%", ["", "a"], []),
        ("_%_", ["ab", "abc"], ["a", ""]),
        ("a%b%c", ["abc", "axxbxxc", "abbc"], ["acb", "ab"]),
        ("%ab%ab", ["abab", "xabyab"], ["ab", "aba"]),
        (r"50\%", ["50\\", "50\\x"], ["50%"]),
        (".*", [".*"], ["ab", ""]),
        ("[a-z]+(x)", ["[a-z]+(x)"], ["abcx"]),
        ("^a$", ["^a$"], ["a"]),
        ("é", ["é"], ["e", "e\u0301", "É"]),
    ],
)
def test_like_knows_two_wildcards_minds_case_and_takes_the_rest_as_it_stands(
    pattern: str, hits: list[str], misses: list[str]
) -> None:
    assert [text for text in hits if not Like("content", pattern).matches(row(content=text))] == []
    assert [
        text for text in misses if Like("content", pattern).truth(row(content=text)) is not False
    ] == []


def plainly(text: str, pattern: str) -> bool:
    """LIKE in its slowest and plainest form."""
    if not pattern:
        return not text
    if pattern[0] == "%":
        return plainly(text, pattern[1:]) or (bool(text) and plainly(text[1:], pattern))
    return bool(text) and pattern[0] in ("_", text[0]) and plainly(text[1:], pattern[1:])


@given(st.text("ab\n", max_size=8), st.text("ab%_\n", max_size=7))
def test_like_agrees_with_its_plainest_form(text: str, pattern: str) -> None:
    assert like(text, pattern) is plainly(text, pattern)


def test_a_pattern_of_many_wildcards_on_a_long_text_is_answered_at_once() -> None:
    # A regular expression of the same shape would try more ways than there are atoms.
    assert not like("a" * 100_000, "%a" * 400 + "%b")
    assert like("a" * 100_000 + "b", "%a" * 400 + "%b")


@pytest.mark.parametrize("value", [None, 5])
def test_like_on_what_is_no_text_is_unknown(value: object) -> None:
    kept = row(metadata={"k": value})
    assert Like("metadata.k", "%").truth(kept) is None
    assert Not(Like("metadata.k", "%")).truth(kept) is None


def test_conditions_are_values() -> None:
    assert Compare("id", "=", "a") == Compare("id", "=", "a")
    assert len({In("id", ("a",)), In("id", ("a",)), Like("id", "a")}) == 2
    assert re.fullmatch(r"Compare\(column='id'.*\)", repr(Compare("id", "=", "a")))
