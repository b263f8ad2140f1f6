"""URLs are displayed without their passwords, and long texts are cut at a good place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.text import shortened, shown_url, without_passwords

HIDDEN = {
    "postgresql://bob:hunter2@host:5432/db": "postgresql://bob:***@host:5432/db",
    "postgresql://bob:p@hunter2@host/db": "postgresql://bob:***@host/db",
    "postgresql://bob:p/hunter2@host/db": "postgresql://bob:***@host/db",
    "postgresql://bob:a hunter2@host/db": "postgresql://bob:***@host/db",
    "redis://:hunter2@cache": "redis://:***@cache",
    "https://hunter2@host/db": "https://***@host/db",
    "postgresql://host/db?user=bob&password=hunter2&sslmode=require": (
        "postgresql://host/db?user=bob&password=***&sslmode=require"
    ),
    "postgresql://host/db?PGPASSWORD=a hunter2": "postgresql://host/db?PGPASSWORD=***",
    "https://x.supabase.co?apikey=hunter2#top": "https://x.supabase.co?apikey=***#top",
    "s3://bucket/x?aws_secret_access_key=hunter2;region=eu": (
        "s3://bucket/x?aws_secret_access_key=***"
    ),
    "sqlite:///m.db?key=hunter2": "sqlite:///m.db?key=***",
}


@pytest.mark.parametrize("url", HIDDEN)
def test_no_password_of_a_url_is_shown(url: str) -> None:
    assert shown_url(url) == HIDDEN[url]
    assert "hunter2" in url
    if " " not in url:
        assert without_passwords(f"cannot open {url} now") == f"cannot open {HIDDEN[url]} now"


@pytest.mark.parametrize(
    "url",
    ["sqlite:////a/b.db?mode=ro", "memory://", "https://host:8443/path", "s3://bucket/a?region=eu"],
)
def test_a_url_without_a_password_stays(url: str) -> None:
    assert shown_url(url) == without_passwords(url) == url


# --- shortened texts ---

CUT = {
    "a text that fits is whole": ("Tea at four.", 12, "Tea at four."),
    "after a sentence": ("Tea at four. Milk in first.", 24, "Tea at four. …"),
    "after a word, if the sentence would be short": (
        "No. It depends on the weather.",
        26,
        "No. It depends on the …",
    ),
    "a whole word at the limit stays": ("one two three", 9, "one two …"),
    "after a sentence without a space": ("茶は四時です。牛乳が先です。", 12, "茶は四時です。 …"),
    "inside a long word": ("abcdefghij", 6, "abcd …"),
    "never inside a picture": ("ab👩\u200d💻cd", 6, "ab …"),
    "never before an accent": ("xyze\u0301zz", 6, "xyz …"),
    "only the mark": ("abc", 1, "…"),
}


@pytest.mark.parametrize("case", CUT)
def test_a_text_is_cut_at_a_good_place(case: str) -> None:
    text, max_chars, expected = CUT[case]
    assert shortened(text, max_chars) == expected


@given(st.text() | st.text("ab. 。\n👩\u200d\u0301"), st.integers(1, 40))
def test_a_shortened_text_is_a_beginning_with_a_mark_and_keeps_the_limit(
    text: str, max_chars: int
) -> None:
    short = shortened(text, max_chars)
    assert len(short) <= max_chars or short == text
    assert short == text or (
        short.endswith("…") and text.startswith(short.removesuffix("…").removesuffix(" "))
    )
