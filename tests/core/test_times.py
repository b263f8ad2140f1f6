"""Times as text: one form, which sorts in the order of time."""

from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import iso, millis, parse_time

FIRST, LAST = millis("0001-01-01T00:00:00.000Z"), millis("9999-12-31T23:59:59.999Z")
INSIDE = {"min_value": datetime(2, 1, 1), "max_value": datetime(9998, 12, 31)}  # noqa: DTZ001  (Hypothesis expects naive bounds)
ZONES = st.integers(-24 * 60 + 1, 24 * 60 - 1).map(
    lambda minutes: timezone(timedelta(minutes=minutes))
)
DATES = st.datetimes(**INSIDE, timezones=ZONES)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "1970-01-01T00:00:00.000Z"),
        (1, "1970-01-01T00:00:00.001Z"),
        (-1, "1969-12-31T23:59:59.999Z"),
        (1_760_000_000_123, "2025-10-09T08:53:20.123Z"),
        (FIRST, "0001-01-01T00:00:00.000Z"),
        (LAST, "9999-12-31T23:59:59.999Z"),
    ],
)
def test_milliseconds_and_texts_are_the_same_moment(ms: int, text: str) -> None:
    assert iso(ms) == text
    assert millis(text) == ms


@given(st.integers(FIRST, LAST), st.integers(FIRST, LAST))
def test_texts_round_trip_and_sort_as_moments_do(one: int, two: int) -> None:
    assert millis(iso(one)) == one
    assert (iso(one) < iso(two)) == (one < two)
    assert parse_time(iso(one), "when") == iso(one)


@given(DATES, st.datetimes(timezones=st.just(UTC)))
def test_moments_of_any_zone_sort_as_they_came(one: datetime, two: datetime) -> None:
    first, second = parse_time(one, "when"), parse_time(two, "when")
    assert first == parse_time(one.isoformat(), "when")
    if abs(one - two) >= timedelta(milliseconds=1):
        assert (first < second) == (one < two)


@pytest.mark.parametrize(
    ("given_", "text"),
    [
        ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        ("2026-03-01T09:30", "2026-03-01T09:30:00.000Z"),
        ("2026-03-01 09:30:15", "2026-03-01T09:30:15.000Z"),
        ("2026-03-01T09:30:15.123456Z", "2026-03-01T09:30:15.123Z"),
        ("2026-03-01T09:30:15.9999Z", "2026-03-01T09:30:15.999Z"),
        ("  2026-03-01T09:30:00+05:30\n", "2026-03-01T04:00:00.000Z"),
        ("2026-03-01T00:00:00-23:59", "2026-03-01T23:59:00.000Z"),
        ("2026-03-01T00:00:00+00:00:30", "2026-02-28T23:59:30.000Z"),
        ("20260301T093000Z", "2026-03-01T09:30:00.000Z"),
        ("0999-01-01", "0999-01-01T00:00:00.000Z"),
        ("0001-01-01", "0001-01-01T00:00:00.000Z"),
        (date(2026, 3, 1), "2026-03-01T00:00:00.000Z"),
        (datetime(2026, 3, 1, 9, 30), "2026-03-01T09:30:00.000Z"),  # noqa: DTZ001  (a naive one is what it is about)
        (datetime(2026, 3, 1, tzinfo=timezone(timedelta(hours=-5))), "2026-03-01T05:00:00.000Z"),
    ],
)
def test_every_way_of_writing_a_moment_comes_into_the_one_form(given_: object, text: str) -> None:
    assert parse_time(given_, "when") == text


@pytest.mark.parametrize(
    "given_",
    [
        *(
            "yesterday",
            "",
            "2026",
            "2026-13-01",
            "2026-02-30",
            "12:00",
            "1760000000",
            "2026-03-01T25:00",
            "２０２６-03-01x",
        ),
        # Moments outside of all calendars.
        *("0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00"),
        *(None, 5, 1.5, True, [], {}, b"2026-03-01", timedelta(1)),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
    ],
)
def test_what_is_no_moment_is_refused_with_the_name_of_the_field(given_: object) -> None:
    with pytest.raises(InvalidInput, match=r"^event_time .* is not a time; expected ISO 8601"):
        parse_time(given_, "event_time")


@given(
    st.text(max_size=30)
    | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)?([+-]\d\d:\d\d|Z)?", fullmatch=True)
)
def test_any_text_is_a_moment_or_refused_by_our_own_error(text: str) -> None:
    with suppress(InvalidInput):
        assert FIRST <= millis(parse_time(text, "when")) <= LAST
