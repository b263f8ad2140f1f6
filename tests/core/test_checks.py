"""Numeric arguments are checked in one place: what passes comes back in its type, everything
else is named in the error."""

from math import inf, nan

import pytest

from memory_mesh.core.errors import InvalidInput, fraction, is_number, number, whole_number


@pytest.mark.parametrize("value", [0, 1, 0.0, 0.25, 1.0])
def test_a_fraction_comes_back_as_a_float(value: float) -> None:
    assert fraction("min_score", value) == value
    assert isinstance(fraction("min_score", value), float)


@pytest.mark.parametrize(
    "value", [True, False, -0.1, 1.1, 4, nan, inf, -inf, "0.5", None, [0.5], 10**400]
)
def test_what_is_not_a_fraction_is_named_in_the_error(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^min_score is .*; expected a number from 0 to 1$"):
        fraction("min_score", value)


def test_a_fraction_may_say_what_else_is_accepted() -> None:
    with pytest.raises(InvalidInput, match=r"^importance is 'huge'; expected a number, or low$"):
        fraction("importance", "huge", expected="a number, or low")


@pytest.mark.parametrize("value", [True, 0, -1, 101, 5.0, "5", None, 10**400])
def test_what_is_not_a_whole_number_in_range_is_named_in_the_error(value: object) -> None:
    with pytest.raises(InvalidInput, match=r"^limit is .*; expected a whole number from 1 to 100$"):
        whole_number("limit", value, max_=100)


def test_a_whole_number_comes_back() -> None:
    assert [whole_number("limit", value, max_=100) for value in (1, 100)] == [1, 100]
    assert whole_number("limit", 10**12) == 10**12
    with pytest.raises(InvalidInput, match=r"expected a whole number from 1$"):
        whole_number("limit", 0)


def test_a_number_has_a_range() -> None:
    assert number("days", 3, min_=0, max_=10, expected="days") == 3.0
    assert [is_number(value, min_=0, max_=10) for value in (0, 10.0, True, nan, -1, 11, "1")] == [
        True,
        True,
        *[False] * 5,
    ]
    with pytest.raises(InvalidInput, match=r"^days is 11; expected some days$"):
        number("days", 11, min_=0, max_=10, expected="some days")
