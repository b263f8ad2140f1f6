"""The times that a query names."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search.mentions import time_spans

NOW = "2024-02-14T10:00:00.000Z"  # a Wednesday


def days(query: str, at: str = NOW) -> list[tuple[str, str]]:
    """Return the spans as dates."""
    return [
        tuple(str(date(1970, 1, 1) + timedelta(round(end))) for end in span)
        for span in time_spans(query, at)
    ]  # type: ignore[misc]


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
        ("Was geschah am 16.01.2024?", "2024-01-16", "2024-01-16"),
        ("Was geschah am 3.4.2023?", "2023-04-03", "2023-04-03"),
        ("Que s'est-il passé le 16/01/2024 ?", "2024-01-16", "2024-01-16"),
        ("2024/1/16の会議", "2024-01-16", "2024-01-16"),
        ("the log of 2024-01-16T10:00:00Z", "2024-01-16", "2024-01-16"),
        ("notes of 1/16/24", "2024-01-16", "2024-01-16"),
        ("notes of 16/1/24", "2024-01-16", "2024-01-16"),
        ("notes of 16-1-1999", "1999-01-16", "1999-01-16"),
        ("born 5/5/71", "1971-05-05", "1971-05-05"),
        ("the plan of 2023-11", "2023-11-01", "2023-11-30"),
        ("the day before yesterday", "2024-02-12", "2024-02-12"),
        ("What is on tomorrow?", "2024-02-15", "2024-02-15"),
        ("a week from now", "2024-02-19", "2024-02-23"),
        ("the past couple of weeks", "2024-01-31", "2024-02-14"),
        ("plans for next week", "2024-02-14", "2024-02-28"),
        ("this weekend", "2024-02-17", "2024-02-18"),
        ("last weekend", "2024-02-10", "2024-02-11"),
        ("next weekend", "2024-02-17", "2024-02-25"),
        ("next Friday", "2024-02-16", "2024-02-16"),
        ("on Friday, 3 May 2023", "2023-05-03", "2023-05-03"),
        ("the summer of 2023", "2023-06-01", "2023-08-31"),
        ("last summer", "2023-06-01", "2023-08-31"),
        ("last winter", "2023-01-01", "2023-02-28"),
        ("this winter", "2024-01-01", "2024-02-29"),
        ("Q4 2023 revenue", "2023-10-01", "2023-12-31"),
        ("last May", "2023-05-01", "2023-05-31"),
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
        "version 1.2.24",
        "host 10.1.2.24 and v3.11.12",
        "open 24/7 on 1/2 of the days",
        "on the fall of Rome",
        "32.13.2024",
    ],
)
def test_a_query_without_a_time_has_no_spans(query: str) -> None:
    assert time_spans(query, NOW) == ()
    assert time_spans(f"{query} in May 2023", NOW) != ()


def test_a_date_in_numbers_that_can_be_read_in_two_orders_gives_both() -> None:
    assert days("notes of 3/4/2024") == [("2024-03-04", "2024-03-04"), ("2024-04-03", "2024-04-03")]


def test_a_weekday_without_a_direction_is_the_last_or_the_next_one() -> None:
    assert days("What did we do on Friday?") == [
        ("2024-02-09", "2024-02-09"),
        ("2024-02-16", "2024-02-16"),
    ]
    assert days("What did we do on Wednesday?") == [
        ("2024-02-07", "2024-02-07"),
        ("2024-02-14", "2024-02-14"),
    ]


WRITTEN = (
    "{0:%Y-%m-%d}", "{0.year}/{0.month}/{0.day}", "{0:%Y.%m.%d}", "{0:%d.%m.%Y}",
    "{0.day}.{0.month}.{0:%y}", "{0:%m/%d/%Y}", "{0.day}/{0.month}/{0:%y}", "{0:%d-%m-%Y}",
    "{0.day} {0:%B} {0.year}", "{0:%b} {0.day}, {0.year}", "{0.day}th of {0:%B} {0.year}",
    "in {0:%B} {0.year}", "in {0.year}", "{0:%Y-%m}", "on {0.day} {0:%b}",
)  # fmt: skip


@given(
    st.dates(date(2015, 1, 1), date(2024, 12, 31)),
    st.sampled_from(WRITTEN),
    st.sampled_from(("{}", "What did I do {}?", "am {}, 東京")),
)
def test_a_date_written_in_any_form_lies_in_a_span(day: date, form: str, query: str) -> None:
    number = day.toordinal() - date(1970, 1, 1).toordinal()
    spans = time_spans(query.format(form.format(day)), NOW)
    assert any(first <= number <= last for first, last in spans)


@given(st.dates(date(2000, 1, 1), date(2030, 12, 31)), st.integers(0, 400))
def test_a_day_told_relative_to_the_query_lies_in_a_span(today: date, back: int) -> None:
    def named(query: str, day: date) -> bool:
        number = day.toordinal() - date(1970, 1, 1).toordinal()
        return any(
            first <= number <= last for first, last in time_spans(query, f"{today}T10:00:00.000Z")
        )

    day = today - timedelta(back)
    assert named(f"{back} days ago", day)
    assert back > 7 or named(f"on {day:%A}", day)
    assert not 0 < back <= 7 or (
        named(f"last {day:%A}", day) and named("last week", day) and named("this week", day)
    )
    assert back > 28 or (named("this month", day) and named("last month", day))


@pytest.mark.deep
@pytest.mark.parametrize(
    "part",
    [
        "1/",
        "1.",
        "-1",
        "may ",
        "in the ",
        "a few ",
        "2024-",
        "in may 2023 ",
        "on friday ",
        "1 day ago ",
        " ",
    ],
)
def test_a_long_query_of_time_words_is_read_in_the_time_limit(part: str) -> None:
    assert len(time_spans(f"in{part * (100_000 // len(part))}1 week ago", NOW)) <= 40


def test_several_times_are_each_returned_once() -> None:
    assert days("Between 3 May 2023 and 7 May 2023, or 3 May 2023?") == [
        ("2023-05-03", "2023-05-03"),
        ("2023-05-07", "2023-05-07"),
    ]


@given(
    st.text(max_size=60)
    | st.from_regex(r"(in|on|last|\d{1,4}|may|june|week|ago|days|-|,| ){1,12}", fullmatch=True)
)
def test_spans_are_bounded_and_start_before_they_end(query: str) -> None:
    found = time_spans(query, NOW)
    assert len(found) <= 40
    assert all(first <= last for first, last in found)
    assert found == time_spans(query, NOW)
