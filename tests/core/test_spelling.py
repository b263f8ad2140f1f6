"""The number of edits between two spellings."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search.lexical import edits, hidden_stems

WORDS = st.text(st.sampled_from("abcé"), max_size=8)


@pytest.mark.parametrize(
    ("one", "other", "count"),
    [
        ("", "", 0),
        ("caroline", "caroline", 0),
        ("caroline", "carolne", 1),
        ("caroline", "carolinne", 1),
        ("caroline", "cavoline", 1),
        ("caroline", "acroline", 1),
        ("caroline", "carolien", 1),
        ("Göteborg", "Goteborg", 1),
        ("москва", "моксва", 1),
        ("caroline", "carloien", 2),
        ("caroline", "karolina", 2),
        ("caroline", "melanie", 3),
        ("a", "bcde", 3),
    ],
)
def test_edits_are_insertions_deletions_replacements_and_swaps(
    one: str, other: str, count: int
) -> None:
    assert edits(one, other, 2) == count
    assert edits(one, other, 1) == min(count, 2)


@given(WORDS, WORDS)
def test_edits_are_symmetric_and_zero_for_equal_words_only(one: str, other: str) -> None:
    assert edits(one, other, 2) == edits(other, one, 2)
    assert (edits(one, other, 2) == 0) == (one == other)
    assert min(edits(one, other, 2), 2) == edits(one, other, 1)


@given(WORDS, st.data())
def test_one_change_is_one_edit(word: str, data: st.DataObject) -> None:
    at, letter = data.draw(st.integers(0, len(word))), data.draw(st.sampled_from("xyz"))
    changed = [word[:at] + letter + word[at:], word[:at] + letter + word[at + 1 :]]
    assert {edits(word, each, 1) for each in changed} == {1}


@pytest.mark.parametrize(
    ("typo", "stem"),
    [
        ("learnnig", "learn"),
        ("trainng", "train"),
        ("surfig", "surf"),
        ("clothirg", "cloth"),
        ("recentyl", "recent"),
        ("painttng", "paint"),
    ],
)
def test_a_typo_in_an_ending_hides_a_stem(typo: str, stem: str) -> None:
    assert stem in hidden_stems(typo)
    assert len(hidden_stems(typo)) < 9


@pytest.mark.parametrize("word", ["", "a", "ab", "planet", "москвва", "a1b2c3", "x" * 200])
def test_other_words_hide_no_stem(word: str) -> None:
    assert hidden_stems(word) == set()


@given(st.text(max_size=12))
def test_hidden_stems_are_shorter_than_the_word(word: str) -> None:
    assert all(4 <= len(stem) <= len(word) - 2 for stem in hidden_stems(word))
