"""Misspelt words of a query: which words of the memories they stand for, and what a reader may
learn from it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.model import Key, Kind
from memory_mesh.core.search.lexical import edits
from memory_mesh.core.search.query import Pool
from memory_mesh.index import LocalIndex
from memory_mesh.index.arrays import hash64
from memory_mesh.index.view import CORRECTED, with_corrections
from memory_mesh.index.words import MIN_LETTERS, Vocabulary, is_likely_typo
from memory_mesh.stores.ram import RamStore

from .index_rows import agrees, asking, find, memory, tiny
from .test_index_scope import HIDDEN

EMPTY = {"word_letters": np.zeros(0, np.uint8), "word_lengths": np.zeros(0, np.uint8)}
WORDS = st.lists(
    st.text(st.sampled_from("abcdeéж1"), min_size=1, max_size=8), max_size=30, unique=True
)


def pool_of(query: str, *texts: str) -> Pool:
    store = RamStore()
    store.apply([memory(f"m{at}", text) for at, text in enumerate(texts)])
    return find(LocalIndex(store), asking(query), size=9)


@pytest.mark.parametrize(
    "typo", ["kubernets", "kubernetess", "kubernetas", "kuberentes", "ukbernetes"]
)
def test_a_word_with_one_typo_is_found(typo: str) -> None:
    pool = pool_of(f"{typo} upgrade", "kubernetes upgrade", "upgrade")
    assert pool.corrections == {typo: "kubernetes"}
    assert dict(zip(pool.ids, pool.signals["coverage"].tolist(), strict=True)) == {
        "m0": 1,
        "m1": pytest.approx(0.2, abs=0.2),
    }


@pytest.mark.parametrize(
    ("typo", "word"), [("моксва", "москва"), ("grosee", "grosse"), ("αθηνα", "αθηναι")]
)
def test_words_of_other_languages_are_corrected_too(typo: str, word: str) -> None:
    assert pool_of(typo, word).corrections == {typo: word}


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("kubernetes", "kubernetes kubernete"),  # a known word
        ("kubrenetse", "kubernetes"),  # two typos
        ("rust", "rest"),  # in a short word, another letter mostly makes another word
        ("paint", "print"),
        ("rest", "rst"),
        ("mother", "other"),  # and so does another first letter
        ("father", "gather"),
        ("12345", "12346"),  # a number
        ("ab12345", "ab12346"),  # a code
        ("c++++", "c+++"),
        ("a" * 25, "a" * 24),
    ],
)
def test_these_words_are_not_corrected(query: str, text: str) -> None:
    assert pool_of(query, text, "other").corrections == {}
    assert pool_of("kubernets", f"{text} kubernetes").corrections == {"kubernets": "kubernetes"}


def test_the_most_frequent_word_is_taken() -> None:
    assert pool_of(
        "mousse", "mouse", "house mouse", "mousses", "mousses", "mousses"
    ).corrections == {"mousse": "mousses"}


@pytest.mark.parametrize(
    ("typo", "word"),
    [
        ("ofer", "offer"),
        ("appel", "apple"),
        ("apppl", "appl"),
        ("umsic", "music"),
        ("xubernetes", "kubernetes"),
    ],
)
def test_short_words_have_fewer_typos_than_long_ones(typo: str, word: str) -> None:
    assert pool_of(typo, word).corrections == {typo: word}


def test_a_typo_in_an_ending_is_corrected_to_the_stem() -> None:
    assert pool_of("learnnig", "learn").corrections == {"learnnig": "learn"}
    # One edit comes first.
    assert pool_of("learnnig", "learn learning").corrections == {"learnnig": "learning"}


def test_of_a_long_query_the_first_unknown_words_are_corrected() -> None:
    typos = [f"kubernete{letter}" for letter in "abcdefghijklmnopqrtuvwxyz"]
    assert pool_of(" ".join(typos), "kubernetes").corrections == dict.fromkeys(
        typos[:16], "kubernetes"
    )


def test_a_correction_counts_less_than_the_word_itself() -> None:
    right, wrong = (pool_of(word, "kubernetes", "other") for word in ("kubernetes", "kubernets"))
    assert 0 < wrong.signals["keywords"][0] < right.signals["keywords"][0]


def test_a_correction_that_the_query_contains_is_not_counted_twice() -> None:
    assert (
        pool_of("muler muller", "muller").signals["keywords"].tolist()
        == pool_of("muller", "muller").signals["keywords"].tolist()
    )


@pytest.mark.parametrize("why", HIDDEN)
def test_no_word_of_a_hidden_memory_corrects_a_query(why: str) -> None:
    store = RamStore()
    store.apply(
        [memory("seen", "secrets learn"), memory("hidden", "kubernetes learning", **HIDDEN[why])]
    )
    pool = find(LocalIndex(store), asking("kubernets secrest learnnig"), size=9)
    assert pool.corrections == {"secrest": "secrets", "learnnig": "learn"}
    store.apply([memory("seen", "secrets kubernetes", replaces=1)])
    assert "kubernets" in find(LocalIndex(store), asking("kubernets"), size=9).corrections


def test_an_erased_word_corrects_nothing_from_memory_and_from_files() -> None:
    store = RamStore()
    store.apply([memory("m1", "kubernetes"), memory("m2", "docker")])
    index = LocalIndex(store)
    with tiny():
        assert find(index, asking("kubernets dokcer"), size=9).corrections == {
            "kubernets": "kubernetes",
            "dokcer": "docker",
        }
        store.apply([], [Key(Kind.MEMORY, "m1")])
        assert find(index, asking("kubernets dokcer"), size=9).corrections == {"dokcer": "docker"}
        # Enough to pack everything again.
        store.apply([memory(f"n{at}", "python") for at in range(9)])
        assert find(index, asking("kubernets dokcer pyhton"), size=9).corrections == {
            "dokcer": "docker",
            "pyhton": "python",
        }
        agrees(index, store, asking("docker"))


@given(WORDS, WORDS, st.text(st.sampled_from("abcdeéж"), min_size=MIN_LETTERS, max_size=9))
def test_the_words_one_edit_away_are_those_of_a_full_comparison(
    packed: list[str], later: list[str], word: str
) -> None:
    first = Vocabulary(EMPTY)
    for each in packed:
        first.add(each)
    keys = np.sort(np.array([hash64(each) for each in packed], np.uint64))
    columns = first.packed(np.zeros(0, np.uint64), {hash64(each): each for each in packed}, keys)
    vocabulary = Vocabulary(columns)
    for each in later:
        vocabulary.add(each)
    near = {
        each
        for each in (*packed, *later)
        if each.isalpha() and edits(word, each, 1) == 1 and is_likely_typo(word, each)
    }
    assert vocabulary.near(word) == near
    again = Vocabulary(vocabulary.packed(keys, {hash64(each): each for each in later}, keys))
    assert again.near(word) == near & set(packed)


def test_of_two_spellings_of_one_word_the_more_frequent_one_counts_whatever_their_order() -> None:
    right = {"aple": "apple", "applle": "apple"}
    for words in ({"aple": 2.0, "applle": 1.0}, {"applle": 1.0, "aple": 2.0}):
        assert with_corrections(words, right) == {"apple": 2 * CORRECTED}
    assert with_corrections({"aple": 2.0, "apple": 1.0}, right) == {"apple": 1.0}
