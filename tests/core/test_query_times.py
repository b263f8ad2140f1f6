"""The times that a query names."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search.times import time_spans

NOW = "2024-02-14T10:00:00.000Z"  # a Wednesday


def days(query: str, at: str = NOW) -> list[tuple[str, str]]:
    """Return the spans as dates."""
    return [tuple(str(date(1970, 1, 1) + timedelta(round(end))) for end in span) for span in time_spans(query, at)]  # type: ignore[misc]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("What happened on 2023-05-25?", "2023-05-25", "2023-05-25"),
        ("What happened on May 25, 2023?", "2023-05-25", "2023-05-25"),
        ("What happened on the 25th of May 2023?", "2023-05-25", "2023-05-25"),
        ("What happened on 25 May, 2023", "2023-05-25", "2023-05-25"),
        ("what happened on sept. 3rd 2023", "2023-09-03", "2023-09-03"),
        ("Where was she in April 2022?", "2022-04-01", "2022-04-30"),
        ("February 2024 news", "2024-02-01", "2024-02-29"),
        ("What did he do in December 2023?", "2023-12-01", "2023-12-31"),
        ("What has she read since 2022?", "2022-01-01", "2022-12-31"),
        ("What did I say yesterday?", "2024-02-13", "2024-02-13"),
        ("What did I say today?", "2024-02-14", "2024-02-14"),
        ("Whom did I meet three days ago?", "2024-02-11", "2024-02-11"),
        ("Whom did I meet 2 weeks ago?", "2024-01-29", "2024-02-02"),
        ("Where was I last Saturday?", "2024-02-10", "2024-02-10"),
        ("Where was I last Wednesday?", "2024-02-07", "2024-02-07"),
        ("What did I buy last week?", "2024-01-31", "2024-02-14"),
        ("What did I buy in the past 3 days?", "2024-02-11", "2024-02-14"),
    ],
)
def test_a_query_names_this_time(query: str, first: str, last: str) -> None:
    assert days(query) == [(first, last)]


def test_a_month_or_a_day_without_a_year_gives_a_span_in_each_of_ten_years() -> None:
    assert len(days("What happened in June?")) == 10
    assert days("What happened in June?")[-1] == ("2024-06-01", "2024-06-30")
    assert days("What happened on 4 July?")[0] == ("2015-07-04", "2015-07-04")
    assert len(days("What happened on 29 February?")) == 3  # 2016, 2020, 2024


@pytest.mark.parametrize(
    "query",
    [
        "",
        "What may I do?",
        "They march on",
        "April is her name",
        "room 2023",
        "31 June 2023",
        "at 5",
        "may 5:30 work?",
        "last week's"[:4],
    ],
)
def test_a_query_without_a_time_has_no_spans(query: str) -> None:
    assert time_spans(query, NOW) == ()
    assert time_spans(f"{query} in May 2023", NOW) != ()


def test_several_times_are_each_returned_once() -> None:
    assert days("Between 3 May 2023 and 7 May 2023, or 3 May 2023?") == [
        ("2023-05-03", "2023-05-03"),
        ("2023-05-07", "2023-05-07"),
    ]


@given(st.text(max_size=60) | st.from_regex(r"(in|on|last|\d{1,4}|may|june|week|ago|days|-|,| ){1,12}", fullmatch=True))
def test_spans_are_bounded_and_start_before_they_end(query: str) -> None:
    found = time_spans(query, NOW)
    assert len(found) <= 40
    assert all(first <= last for first, last in found)
    assert found == time_spans(query, NOW)
