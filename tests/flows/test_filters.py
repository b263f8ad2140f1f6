"""The filter language: what it allows, and that everything else is one clear error."""

import logging
from contextlib import suppress
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidFilter
from memory_mesh.core.model import (
    ANYTHING,
    FILTERABLE,
    INT_MAX,
    And,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Type,
    Where,
)
from memory_mesh.flows.search.filters import parse, text_of, where_of

ONE, TWO = Compare("turn", "=", 1), Compare("turn", "=", 2)


@pytest.mark.req("MESH-116")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("memory_type = 'global'", Compare("memory_type", "=", "global")),
        ("memory_type == 'global'", Compare("memory_type", "=", "global")),
        ("memory_type <> 'global'", Compare("memory_type", "<>", "global")),
        ("memory_type != 'global'", Compare("memory_type", "<>", "global")),
        ("turn < 3", Compare("turn", "<", 3)),
        ("turn <= 3", Compare("turn", "<=", 3)),
        ("turn > 3", Compare("turn", ">", 3)),
        ("turn >= 3", Compare("turn", ">=", 3)),
        ("3 = turn", Compare("turn", "=", 3)),
        ("3 <> turn", Compare("turn", "<>", 3)),
        ("3 < turn", Compare("turn", ">", 3)),
        ("3 <= turn", Compare("turn", ">=", 3)),
        ("3 > turn", Compare("turn", "<", 3)),
        ("3 >= turn", Compare("turn", "<=", 3)),
        ("turn = -3", Compare("turn", "=", -3)),
        ("turn = - -3", Compare("turn", "=", 3)),
        ("-3 = turn", Compare("turn", "=", -3)),
        ("importance > -0.5", Compare("importance", ">", -0.5)),
        ("importance > .5", Compare("importance", ">", 0.5)),
        ("importance = 1e-3", Compare("importance", "=", 0.001)),
        (f"turn = {INT_MAX}", Compare("turn", "=", INT_MAX)),
        (f"turn = {INT_MAX + 1}", Compare("turn", "=", float(INT_MAX + 1))),
        ("pinned = TRUE", Compare("pinned", "=", True)),
        ("pinned <> false", Compare("pinned", "<>", False)),
        ("importance BETWEEN 0.2 AND 0.8",
         And((Compare("importance", ">=", 0.2), Compare("importance", "<=", 0.8)))),
        ("turn NOT BETWEEN 1 AND 2",
         Not(And((Compare("turn", ">=", 1), Compare("turn", "<=", 2))))),
        ("status IN ('active', 'archived')", In("status", ("active", "archived"))),
        ("status IN ('active')", In("status", ("active",))),
        ("turn NOT IN (1, -2, 3.5)", Not(In("turn", (1, -2, 3.5)))),
        ("content LIKE 'a%_'", Like("content", "a%_")),
        ("content NOT LIKE 'a%'", Not(Like("content", "a%"))),
        ("NOT content LIKE 'a%'", Not(Like("content", "a%"))),
        ("project IS NULL", IsNull("project")),
        ("project IS NOT NULL", Not(IsNull("project"))),
        ("NOT project IS NULL", Not(IsNull("project"))),
        ("turn = 1 AND turn = 2", And((ONE, TWO))),
        ("turn = 1 OR turn = 2", Or((ONE, TWO))),
        ("turn = 1 OR turn = 2 AND turn = 1", Or((ONE, And((TWO, ONE))))),
        ("(turn = 1 OR turn = 2) AND turn = 1", And((Or((ONE, TWO)), ONE))),
        ("turn = 1 AND turn = 2 AND turn = 1", And((ONE, TWO, ONE))),
        ("NOT (turn = 1 AND turn = 2)", Not(And((ONE, TWO)))),
        ("NOT NOT turn = 1", Not(Not(ONE))),
        ("((turn = 1))", ONE),
        ("  turn\n=\t1  ", ONE),
        ("turn = 1;", ONE),
        ("\"turn\" = 1", ONE),
        ("tags = 'a'", Compare("tags", "=", "a")),
        ("tags IN ('a', 'b')", In("tags", ("a", "b"))),
        ("tags LIKE 'a%'", Like("tags", "a%")),
        ("content = 'it''s; -- /* all */ text'",
         Compare("content", "=", "it's; -- /* all */ text")),
        ("content = 'a\nb'", Compare("content", "=", "a\nb")),
        ("content = ''", Compare("content", "=", "")),
        ("content = '\U0001f600'", Compare("content", "=", "\U0001f600")),
    ],
)  # fmt: skip
def test_an_allowed_filter_becomes_this_condition(text: str, where: Where) -> None:
    assert parse(text) == where


@pytest.mark.req("MESH-118")
@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("metadata.source = 'cli'", Compare("metadata.source", "=", "cli")),
        ("metadata.count > 3", Compare("metadata.count", ">", 3)),
        ("metadata.done = true", Compare("metadata.done", "=", True)),
        ("metadata.source IN ('a', 1)", In("metadata.source", ("a", 1))),
        ("metadata.source IS NULL", IsNull("metadata.source")),
        ("metadata.source LIKE 'a%'", Like("metadata.source", "a%")),
        ('metadata."odd key\'; --" = 1', Compare("metadata.odd key'; --", "=", 1)),
        ('metadata."a.b" = 1', Compare("metadata.a.b", "=", 1)),
        ("'cli' = metadata.source", Compare("metadata.source", "=", "cli")),
    ],
)
def test_a_key_of_the_metadata_is_named_as_one(text: str, where: Where) -> None:
    assert parse(text) == where


@pytest.mark.req("MESH-118")
@pytest.mark.parametrize(
    "key",
    [
        "source",
        "rationale",
        "nonsense",
        "turns",
        "salt",
        "fingerprint",
        "partition",
        "kind",
        "metadata",
    ],
)
def test_a_key_that_lives_only_in_the_metadata_is_an_error_that_says_so(key: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        parse(f"{key} = 'x'")
    assert f"unknown column '{key}'" in str(refused.value)
    name = "KEY" if key == "metadata" else key
    assert f"metadata.{name} for a key" in str(refused.value)
    assert "memory_type" in str(refused.value)  # the columns are listed


LITERAL = {
    Type.TEXT: "'a'",
    Type.TIME: "'2026-01-01'",
    Type.TEXTS: "'a'",
    Type.JSON: "'a'",
    Type.INT: "1",
    Type.REAL: "0.5",
    Type.BOOL: "TRUE",
}


@pytest.mark.req("MESH-118", "MESH-116")
@pytest.mark.parametrize("name", FILTERABLE)
def test_every_promoted_column_can_be_filtered_and_only_with_its_own_type(name: str) -> None:
    column = FILTERABLE[name]
    assert parse(f"{name} = {LITERAL[column.type]}").column == column.name
    wrong = "5" if column.type in (Type.TEXT, Type.TIME, Type.TEXTS, Type.JSON) else "'5'"
    for text in (
        f"{name} = {wrong}",
        f"{wrong} <> {name}",
        f"{name} IN ({wrong})",
        f"{name} BETWEEN {wrong} AND {wrong}",
    ):
        with pytest.raises(InvalidFilter, match=f"{column.name} is compared with"):
            parse(text)


def test_the_documents_own_names_are_understood() -> None:
    assert parse("importance_score >= 0.5") == Compare("importance", ">=", 0.5)
    assert parse("collection = 'lane'") == Compare("project", "=", "lane")


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        ("2026-03-01 10:00+02:00", "2026-03-01T08:00:00.000Z"),
        ("2026-03-01T08:00:00Z", "2026-03-01T08:00:00.000Z"),
    ],
)
def test_times_are_compared_in_the_one_form(written: str, normal: str) -> None:
    assert parse(f"created_at >= '{written}'") == Compare("created_at", ">=", normal)
    assert parse(f"event_time IN ('{written}')") == In("event_time", (normal,))
    assert parse(f"'{written}' < expires_at") == Compare("expires_at", ">", normal)
    assert parse("created_at LIKE '2026-03%'") == Like("created_at", "2026-03%")


REFUSED = {
    "nothing": "",
    "blank": "  \n ",
    "function": "lower(content) = 'a'",
    "function of nothing": "random() > 5",
    "function as value": "content = char(65)",
    "load": "load_extension('x') = 1",
    "subquery": "id IN (SELECT id FROM memories)",
    "scalar subquery": "id = (SELECT 1)",
    "bare subquery": "(SELECT 1)",
    "exists": "EXISTS (SELECT 1)",
    "second statement": "turn = 1; DROP TABLE memories",
    "second condition": "turn = 1; turn = 2",
    "empty statements": "turn = 1;;",
    "leading semicolon": "; turn = 1",
    "select": "SELECT * FROM memories",
    "delete": "DELETE FROM memories",
    "pragma": "PRAGMA table_info(memories)",
    "explain": "EXPLAIN turn = 1",
    "create": "CREATE TABLE x (y)",
    "vacuum": "VACUUM",
    "attach": "ATTACH 'x' AS y",
    "with": "WITH x AS (SELECT 1) SELECT 1",
    "line comment": "turn = 1 -- and nothing else",
    "block comment": "turn = 1 /* hidden */ AND turn = 2",
    "leading comment": "/* hidden */ turn = 1",
    "hint": "/*+ hint */ turn = 1",
    "only a comment": "-- nothing",
    "hash comment": "turn = 1 # hidden",
    "open comment": "turn = 1 /* hidden",
    "union": "turn = 1 UNION SELECT 1",
    "cast": "CAST(turn AS TEXT) = '1'",
    "double colon": "turn::text = '1'",
    "date literal": "created_at > DATE '2026-01-01'",
    "now": "created_at > CURRENT_TIMESTAMP",
    "interval": "created_at > INTERVAL 1 DAY",
    "case": "CASE WHEN turn = 1 THEN 1 ELSE 0 END = 1",
    "sum": "turn + 1 = 2",
    "sum as value": "turn = 1 + 1",
    "concatenation": "content = 'a' || 'b'",
    "bits": "turn & 1 = 1",
    "tilde": "~turn = 1",
    "glob": "content GLOB 'a*'",
    "regexp": "content REGEXP 'a'",
    "match": "content MATCH 'a'",
    "ilike": "content ILIKE 'a'",
    "similar": "content SIMILAR TO 'a'",
    "escape": "content LIKE 'a!%' ESCAPE '!'",
    "like any": "content LIKE ANY ('a')",
    "like a column": "content LIKE id",
    "like a number": "turn LIKE 1",
    "a text like a column": "'a' LIKE content",
    "collate": "content = 'a' COLLATE NOCASE",
    "is a number": "turn IS 1",
    "is not a number": "turn IS NOT 1",
    "is true": "pinned IS TRUE",
    "distinct": "turn IS DISTINCT FROM 1",
    "spaceship": "turn <=> 1",
    "equal to null": "project = NULL",
    "in null": "project IN (NULL)",
    "in nothing": "project IN ()",
    "in a table": "project IN memories",
    "in a bracket": "turn IN ((1))",
    "symmetric": "importance BETWEEN SYMMETRIC 1 AND 0",
    "between columns": "turn BETWEEN turn AND turn",
    "bare column": "pinned",
    "not a column": "NOT pinned",
    "bare literal": "1",
    "bare truth": "TRUE",
    "one is one": "1 = 1",
    "one is one, or": "1=1 OR agent_id <> 'me'",
    "text is text": "'a' = 'a'",
    "column is column": "agent_id = user_id",
    "column is itself": "turn = turn",
    "bracketed value": "turn = (1)",
    "true is less": "pinned < TRUE",
    "metadata true is more": "metadata.done >= FALSE",
    "minus text": "content = -'a'",
    "minus true": "metadata.done = -TRUE",
    "parameter": "turn = ?",
    "named parameter": "turn = :x",
    "at parameter": "turn = @x",
    "dollar parameter": "turn = $1",
    "double quotes as text": 'content = "a"',
    "hex text": "content = x'ab'",
    "national text": "content = N'a'",
    "alias": "turn = 1 AS x",
    "two words": "turn = 1 x",
    "order": "turn = 1 ORDER BY id",
    "limit": "turn = 1 LIMIT 1",
    "where": "WHERE turn = 1",
    "tuple": "(turn, number) = (1, 2)",
    "list": "turn = 1, turn = 2",
    "star": "* = 1",
    "other table": "memories.turn = 1",
    "other schema": "main.memories.turn = 1",
    "deep key": "metadata.a.b.c.d.e.f = 1",
    "key in a key": "metadata.a.b = 1",
    "bare metadata": "metadata = 'a'",
    "bare key": "metadata.a",
    "json arrow": "metadata->'a' = 1",
    "json arrow text": "metadata->>'a' = '1'",
    "index": "tags[0] = 'a'",
    "capitals": "TURN = 1",
    "half": "turn =",
    "other half": "= 1",
    "dangling and": "turn = 1 AND",
    "open quote": "content = 'a",
    "open bracket": "(turn = 1",
    "close bracket": "turn = 1)",
    "quote": "'",
    "backslash": "\\",
    "template": "{{ turn }} = 1",
    "huge number": "turn = 1" + "0" * 400,
    "endless number": "turn = 1" + "0" * 5000,
    "infinite": "turn = 1e999",
    "no moment": "created_at > 'yesterday'",
    "no moment among": "event_time IN ('2026-01-01', 'x')",
    "moment outside": "created_at > '9999-12-31T23:59:59-10:00'",
    "half a pair": "content = '\ud800'",
    "nul": "content = 'a\0b'",
    "assignment": "turn := 1",
    "lambda": "x -> turn = 1",
    "window": "row_number() OVER () = 1",
    "raise": "RAISE(ABORT, 'x') = 1",
}  # fmt: skip


@pytest.mark.req("MESH-116")
@pytest.mark.parametrize("what", REFUSED)
def test_everything_else_is_a_clear_error(what: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        parse(REFUSED[what])
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 700


def test_a_key_inside_of_a_key_is_an_error_that_says_how_to_name_one_with_a_dot() -> None:
    with pytest.raises(InvalidFilter, match=r"'metadata.a.b' is inside of the key 'a'") as refused:
        parse("metadata.a.b = 1")
    assert 'metadata."a.b" is a key with dots' in str(refused.value)
    with pytest.raises(InvalidFilter, match=r"unknown operator 'b' of metadata.a; expected one of"):
        where_of({"a": {"b": 1}})


@pytest.mark.parametrize("given", [5, b"turn = 1", ["turn = 1"], True, object(), "", " "])
def test_a_filter_is_a_text_or_a_mapping(given: Any) -> None:
    with pytest.raises(
        InvalidFilter, match=r"^the filter is .*; expected a text such as .*, or a mapping such as"
    ):
        where_of(given)


@pytest.mark.parametrize(
    ("mapping", "text"),
    [
        ({"tags": "ops"}, "tags = 'ops'"),
        ({"tags": ["ops", "it's"]}, "tags IN ('ops', 'it''s')"),
        ({"status": {"active"}}, "status IN ('active')"),
        ({"turn": 3, "pinned": True}, "turn = 3 AND pinned = TRUE"),
        ({"importance_score": 0.5}, "importance = 0.5"),
        ({"project": None}, "project IS NULL"),
        ({"created_at": datetime(2026, 3, 1, tzinfo=UTC)}, "created_at = '2026-03-01'"),
        ({"created_at": "2026-03-01"}, "created_at = '2026-03-01'"),
        ({"source": "runbook"}, "metadata.source = 'runbook'"),
        ({"metadata.source": ("runbook", 2)}, "metadata.source IN ('runbook', 2)"),
        ({"turn": INT_MAX + 1}, f"turn = {INT_MAX + 1}"),
        ({"n": {"$gt": 3}}, "metadata.n > 3"),
        ({"n": {"$gte": 3, "$lt": 5}}, "metadata.n >= 3 AND metadata.n < 5"),
        ({"importance": {"$lte": 0.5}, "tags": "ops"}, "importance <= 0.5 AND tags = 'ops'"),
        ({"source": {"$eq": "wiki"}}, "metadata.source = 'wiki'"),
        ({"source": {"$ne": "wiki"}}, "NOT metadata.source = 'wiki'"),
        ({"source": {"$ne": None}}, "metadata.source IS NOT NULL"),
        ({"tags": {"$in": ["a", "b"]}}, "tags IN ('a', 'b')"),
        ({"tags": {"$nin": ["a", "b"]}}, "NOT tags IN ('a', 'b')"),
        ({"$or": [{"n": 1}, {"n": 2}]}, "metadata.n = 1 OR metadata.n = 2"),
        (
            {"$and": [{"n": {"$gt": 1}}, {"$or": [{"a": 1}, {"b": 2}]}]},
            "metadata.n > 1 AND (metadata.a = 1 OR metadata.b = 2)",
        ),
    ],
)
def test_a_mapping_is_the_same_condition_as_its_text(mapping: dict[str, object], text: str) -> None:
    assert where_of(mapping) == where_of(text)


def test_mappings_that_differ_have_different_texts_for_the_cache() -> None:
    nested = [
        {"n": MappingProxyType({"$gt": 3})},
        {"n": {"$gt": 4}},
        {"$or": [{"n": 3}]},
        {"$and": [{"n": 3}]},
    ]
    assert len({text_of(mapping) for mapping in nested}) == len(nested)
    assert text_of(nested[0]) == '{"n": {"$gt": 3}}'


def test_an_empty_mapping_and_none_are_no_condition() -> None:
    assert where_of({}) is where_of(None) is ANYTHING


def _nested(depth: int) -> dict[str, object]:
    inner: dict[str, object] = {"tags": "ops"}
    for _ in range(depth):
        inner = {"$and": [inner]}
    return inner


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        ({"turn": "three"}, "expected a number"),
        ({"turn": True}, "expected a number"),
        ({"pinned": 1}, "expected true or false"),
        ({"created_at": "soon"}, "ISO 8601"),
        ({"created_at": 3}, "a time"),
        ({"source": datetime(2026, 3, 1, tzinfo=UTC)}, "a text, a number"),
        ({"importance": {"$near": 0.5}}, "one of $eq, $ne, $in, $nin, $gt, $gte, $lt, $lte"),
        ({"importance": {"gt": 0.5}}, "one of $eq"),
        ({"importance": {3: 0.5}}, "one of $eq"),
        ({"importance": {}}, "an operator such as"),
        ({"importance": {"$gt": None}}, "a text, a number"),
        ({"importance": {"$gt": [1]}}, "a text, a number"),
        ({"importance": {"$gt": "high"}}, "expected a number"),
        ({"done": {"$gt": True}}, "$eq or $ne"),
        ({"tags": {"$in": []}}, "one value or more"),
        ({"$and": []}, "a list of mappings"),
        ({"$and": {"tags": "ops"}}, "a list of mappings"),
        ({"$or": ["tags"]}, "a list of mappings"),
        ({"$an": [{"n": 1}]}, "$and or $or"),
        (_nested(100), "nested at most 60 deep"),
        ({"tags": []}, "one value or more"),
        ({"tags": [["ops"]]}, "a text, a number"),
        ({"tags": object()}, "a text, a number"),
        ({"turn": float("nan")}, "finite"),
        ({"turn": 10**400}, "finite"),
        ({"turn": 10**5000}, "finite"),
        ({3: "ops"}, "the name of a column"),
        ({"": "ops"}, "the name of a column"),
        ({"metadata.": "ops"}, "the name of a column"),
        ({"tags": "\0"}, "NUL"),
        ({"tags": "\ud800"}, "Unicode"),
        ({"source": "x" * 20_000}, "at most 10,000"),
        ({"source": list(range(20_000))}, "at most 10,000"),
    ],
)
def test_a_wrong_mapping_says_what_is_expected(mapping: Any, expected: str) -> None:
    with pytest.raises(InvalidFilter) as refused:
        where_of(mapping)
    assert expected in str(refused.value)
    assert len(str(refused.value)) < 300


def test_a_search_with_a_mapping_finds_what_the_text_finds_and_is_logged() -> None:
    with MemoryMesh(store="memory://", embedder="none") as mesh:
        mesh.add_many(
            [
                ("alpha text", {"tags": ["ops"], "source": "a"}),
                ("beta text", {"tags": ["dev"], "source": "b"}),
            ]
        )
        assert [hit.content for hit in mesh.search("text", filter={"tags": "ops"})] == [
            "alpha text"
        ]
        assert [hit.content for hit in mesh.search("text", filter={"tags": "dev"})] == ["beta text"]
        assert [
            one.result.content for one in mesh.explain("text", filter={"source": ["b"]}).answers
        ] == ["beta text"]
        assert [memory.content for memory in mesh.get_all(filter={"source": {"a", "c"}})] == [
            "alpha text"
        ]
        assert '{"tags": "dev"}' in mesh.audit_log(1, recalls=True)[0].yamo_text


@pytest.mark.req("MESH-116")
def test_a_refused_filter_prints_nothing_by_itself(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    for text in REFUSED.values():
        with caplog.at_level(logging.DEBUG), pytest.raises(InvalidFilter):
            parse(text)
    assert caplog.records == []
    assert capfd.readouterr() == ("", "")


# --- as large as it gets ---


def test_a_filter_has_a_longest_length() -> None:
    assert parse("content = '" + "a" * 9988 + "'")
    with pytest.raises(InvalidFilter, match="10,001 characters; expected at most 10,000"):
        parse("content = '" + "a" * 9989 + "'")


def test_a_pattern_has_a_longest_length() -> None:
    assert parse("content LIKE '" + "a" * 1000 + "'")
    with pytest.raises(InvalidFilter, match="at most 1,000"):
        parse("content LIKE '" + "a" * 1001 + "'")


@pytest.mark.parametrize("word", ["AND", "OR"])
def test_a_long_chain_is_no_deep_one(word: str) -> None:
    where = parse(f" {word} ".join(f"turn={n % 10}" for n in range(900)))
    assert len(where.parts) == 900
    assert [part.value for part in where.parts[:3]] == [0, 1, 2]


def test_a_long_list_is_taken() -> None:
    assert len(parse(f"id IN ({','.join(['0'.join(chr(39) * 2)] * 2400)})").values) == 2400


@pytest.mark.parametrize(
    "deep",
    [
        "(" * 3000 + "turn=1" + ")" * 3000,
        "(" * 61 + "turn=1" + ")" * 61,
        "NOT " * 2000 + "turn=1",
        "NOT " * 61 + "turn=1",
        "turn = " + "- " * 3000 + "1",
        "turn = 1 AND (turn = 1 OR (" * 40 + "turn = 1" + "))" * 40,
        "turn = " + "+".join(["1"] * 4000),
        "turn " + "= turn " * 1000,
        "content = " + "||".join(["'a'"] * 1500),
        "(" * 5000,
        "CASE WHEN " * 500,
        "f(" * 2000 + ")" * 2000,
        "[" * 5000,
        "{" * 5000,
        "SELECT (" * 900,
    ],
    ids=lambda deep: deep[:12],
)
def test_deep_nesting_is_refused_and_does_not_blow_the_stack(deep: str) -> None:
    with pytest.raises(InvalidFilter):
        parse(deep)


def test_reasonable_depth_is_taken() -> None:
    assert parse("(" * 10 + "turn=1" + ")" * 10) == ONE
    assert parse("turn = 1 AND (turn = 2 OR (turn = 1 AND (turn = 2 OR NOT (turn = 1))))")


# --- anything at all ---

WORDS = st.sampled_from(
    [
        *(
            "turn",
            "content",
            "metadata.k",
            "tags",
            "id",
            "'a'",
            "'a;--'",
            "1",
            "-1",
            "0.5",
            "TRUE",
            "NULL",
            "(",
            ")",
            ",",
            ";",
        ),
        *(
            "=",
            "<>",
            "<",
            ">=",
            "AND",
            "OR",
            "NOT",
            "LIKE",
            "IN",
            "IS",
            "BETWEEN",
            "--",
            "/*",
            "*/",
            "'",
            '"',
            "SELECT",
            "FROM",
        ),
        *(
            "UNION",
            "CASE",
            "WHEN",
            "THEN",
            "END",
            "CAST",
            "AS",
            "||",
            "::",
            "->",
            "?",
            ":x",
            "@",
            "$1",
            "*",
            ".",
            "[",
            "]",
            "{",
            "}",
        ),
    ]
)


@pytest.mark.req("MESH-116")
@given(st.lists(WORDS, max_size=12).map(" ".join) | st.text(max_size=40))
def test_any_text_is_a_condition_or_our_own_error(text: str) -> None:
    row = Row(
        kind=Kind.MEMORY,
        id="m",
        partition="p",
        created_at="2026-01-01T00:00:00.000Z",
        fields={"turn": 1, "tags": ["a"]},
    )
    with suppress(InvalidFilter):
        assert parse(text).truth(row) in (True, False, None)


INJECTIONS = [
    "' OR '1'='1",
    "'; DROP TABLE memories; --",
    "x' UNION SELECT salt FROM memories --",
    "\\'; --",
    "''",
    "%' OR content LIKE '%",
    "a\x00b"[:1],
    "\u2019 OR 1=1",
]


@pytest.mark.req("MESH-116")
@pytest.mark.parametrize("injected", INJECTIONS)
def test_a_value_that_is_quoted_stays_a_value(injected: str) -> None:
    quoted = injected.replace("'", "''")
    assert parse(f"agent_id = '{quoted}'") == Compare("agent_id", "=", injected)
    assert parse(f"metadata.k IN ('{quoted}')") == In("metadata.k", (injected,))


@pytest.mark.req("MESH-116")
@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30))
def test_any_text_can_be_compared_with_when_its_quotes_are_doubled(text: str) -> None:
    quoted = text.replace("'", "''")
    assert parse(f"content = '{quoted}'") == Compare("content", "=", text)
