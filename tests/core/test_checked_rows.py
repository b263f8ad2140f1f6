"""The check of rows: fields must belong to their kind and have the right type."""

from base64 import b64encode
from dataclasses import replace

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import (
    COLUMNS,
    REQUIRED,
    TOKEN_BYTES,
    Kind,
    Row,
    Type,
    Vector,
    checked,
    fault,
    fields_of,
)

AT = "2026-01-01T00:00:00.000Z"
NEEDED = {
    Kind.MEMORY: {"content": "c", "updated_at": AT},
    Kind.SKILL: {"name": "n", "intent": "i", "content": "c", "updated_at": AT},
    Kind.BLOCK: {"chain": "c", "operation_type": "retain", "yamo_text": "t", "block_hash": "h"},
}


def row(kind: Kind, /, **fields: object) -> Row:
    return Row(
        kind=kind, id="r", partition="p", created_at=AT, fields={**NEEDED.get(kind, {}), **fields}
    )


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_takes_its_own_fields_and_no_other(kind: Kind) -> None:
    assert checked(row(kind))
    own = {column.name for column in fields_of(kind)}
    for column in COLUMNS:
        if column.name not in own:
            with pytest.raises(InvalidInput, match=f"has no field '{column.name}'"):
                checked(row(kind, **{column.name: "x"}))
    with pytest.raises(InvalidInput, match="has no field 'nonsense'"):
        checked(row(kind, nonsense="x"))


@pytest.mark.parametrize("kind", REQUIRED)
def test_what_the_documents_call_not_null_is_needed(kind: Kind) -> None:
    for name in REQUIRED[kind]:
        with pytest.raises(InvalidInput, match=f"needs {name}"):
            checked(row(kind, **{name: None}))


def test_an_empty_field_is_no_field() -> None:
    assert checked(row(Kind.MEMORY, project=None)).fields == NEEDED[Kind.MEMORY]
    assert checked(row(Kind.MEMORY, tags=[], metadata={})).fields["tags"] == []


@pytest.mark.parametrize(
    "kind", [kind for kind in Kind if kind not in (Kind.MEMORY, Kind.SKILL, Kind.PASSAGE)]
)
def test_only_memories_skills_and_passages_have_a_vector(kind: Kind) -> None:
    vector = Vector.of("model", [1.0])
    assert checked(replace(row(Kind.MEMORY), vector=vector)).vector.dimension == 1
    with pytest.raises(InvalidInput, match="vector"):
        checked(replace(row(kind), vector=vector))
    with pytest.raises(InvalidInput, match="vector of dimension 0"):
        checked(replace(row(Kind.MEMORY), vector=Vector("model", b"")))


LARGEST = 3.4028234663852886e38


def test_a_vector_of_finite_numbers_is_kept() -> None:
    for values in ([0.0, -0.0], [LARGEST] * 1000, [-LARGEST, LARGEST], [1e-45]):
        vector = Vector.of("model", values)
        assert checked(replace(row(Kind.PASSAGE), vector=vector)).vector == vector


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), float("-inf")])
@pytest.mark.parametrize("kind", [Kind.MEMORY, Kind.PASSAGE])
def test_a_vector_with_a_number_that_is_not_finite_is_refused(kind: Kind, odd: float) -> None:
    for values in ([odd], [0.5, odd, 0.5], [odd, -odd], [LARGEST, odd]):
        with pytest.raises(InvalidInput, match="not finite"):
            checked(replace(row(kind), vector=Vector.of("model", values)))


def test_a_vector_that_is_cut_off_is_refused() -> None:
    with pytest.raises(InvalidInput, match="a vector of 7 bytes"):
        checked(replace(row(Kind.MEMORY), vector=Vector("model", b"1234567")))


def test_tokens_that_are_cut_off_are_refused() -> None:
    vector = Vector.of("model", [1.0], bytes(2 * TOKEN_BYTES))
    assert checked(replace(row(Kind.MEMORY), vector=vector)).vector == vector
    with pytest.raises(InvalidInput, match="tokens of 97 bytes"):
        checked(replace(row(Kind.MEMORY), vector=replace(vector, tokens=vector.tokens[1:])))


@pytest.mark.parametrize(
    "damaged",
    [None, b"", "", 7, 0.5, bytes(48), bytes(50), "AAAA", "AAA", "½", ["AAAA"], bytearray(49)],
)
def test_tokens_that_were_damaged_count_as_absent(damaged: object) -> None:
    vector = Vector("m", b"1234", bytes(98))
    assert Vector.stored("m", b"1234", damaged) == Vector("m", b"1234")
    assert Vector.from_json(vector.as_json()) == vector
    assert Vector.from_json({**vector.as_json(), "tokens": damaged}) == Vector("m", b"1234")


def test_the_column_of_tokens_belongs_to_its_vector() -> None:
    """A program that does not know the column may replace the vector beside it."""
    vector = Vector("m", b"1234", bytes(98))
    for column in (vector.token_column, b64encode(vector.token_column or b"").decode()):
        assert Vector.stored("m", b"1234", column) == vector
        assert Vector.stored("m", b"4321", column) == Vector("m", b"4321")
    assert Vector("m", b"1234").token_column is None


def test_a_vector_is_the_same_whenever_its_numbers_are() -> None:
    assert Vector("m", b"1234") != Vector("m", b"1234", bytes(TOKEN_BYTES))
    assert Vector.of("m", [1.0, 0.5]) == Vector.of("m", [1, 0.5])
    assert Vector.of("m", [1.0]) != Vector.of("n", [1.0])


def test_a_field_is_read_by_its_columns_name() -> None:
    kept = row(Kind.MEMORY, project="x")
    assert [kept.value(name) for name in ("id", "kind", "project", "tags", "nonsense")] == [
        "r",
        Kind.MEMORY,
        "x",
        None,
        None,
    ]
    assert kept.key == (Kind.MEMORY, "r")
    assert kept.age_key == (AT, kept.partition, 0, "r")


GOOD = {
    Type.TEXT: ["", "é\U0001f600"],
    Type.TIME: [AT],
    Type.INT: [0, -(2**53), 2**53],
    Type.REAL: [0, 0.5, -1e300],
    Type.BOOL: [True, False],
    Type.TEXTS: [[], ["a", ""]],
    Type.JSON: [{}, {"a": [None, True, 1, 0.5, "x", {"b": []}]}],
}
BAD = {
    Type.TEXT: [None, 5, "\0", "\ud800", b"x"],
    Type.TIME: [None, 5, "\0"],
    Type.INT: [None, True, 1.0, "1", 2**53 + 1],
    Type.REAL: [None, True, "1", float("nan"), float("-inf"), 2**60],
    Type.BOOL: [None, 1, "true"],
    Type.TEXTS: [None, "a", [1], ["\0"], ("a",)],
    Type.JSON: [None, [], "x", {"a": {1}}, {1: 2}, {"\ud800": 1}, {"a": float("inf")}],
}


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: column.name)
def test_each_type_takes_its_values_and_names_what_is_wrong_with_others(column: object) -> None:
    assert [value for value in GOOD[column.type] if fault(column, value)] == []
    for value in BAD[column.type]:
        assert fault(column, value).startswith(f"{column.name} must be ")
