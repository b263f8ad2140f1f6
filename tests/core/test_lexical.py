"""Keywords: one tokenizer for memories and queries, and BM25 compared with a calculation by
hand."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import SettingsError
from memory_mesh.core.intake import prints
from memory_mesh.core.search.lexical import (
    STOP_WORDS,
    Corpus,
    Posting,
    best,
    bm25,
    completed,
    tokens,
)
from memory_mesh.core.search.passages import marked

# --- words ---


def finds(query: str, text: str) -> bool:
    return bool(query_tokens := set(tokens(query))) and query_tokens <= set(tokens(text))


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Deploy Key", ["deploy", "key"]),
        ("parseHttpRequest", ["parsehttprequest", "pars", "http", "request"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("user_account_name", ["user", "account", "name"]),
        ("MAX_RETRY_COUNT", ["max", "retri", "count"]),
        ("camelCase_and_snake", ["camelcas", "camel", "case", "snake"]),
        ("kebab-case/path.to:file", ["kebab", "case", "path", "file"]),
        ("key key KEY", ["key", "key", "key"]),
        ("v2beta sha256 k8s", ["v2beta", "sha256", "k8s"]),
        ("", []),
        ("   ...!?—–", []),
    ],
)
def test_texts_become_these_keywords(text: str, words: list[str]) -> None:
    assert tokens(text) == words


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("http server", "HTTPServer"),
        ("httpserver", "HTTPServer"),
        ("retry count", "MAX_RETRY_COUNT"),
        ("foo bar", "the fooBar method"),
        ("foobar", "the fooBar method"),
        ("fooBar", "FooBar"),
        ("open AI", "OpenAI"),
        ("iphone", "iPhone"),
    ],
)
def test_a_compound_name_is_found_by_its_parts_and_as_a_whole(query: str, text: str) -> None:
    assert finds(query, text)


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Café", "cafe"),
        ("naïve", "naive"),
        ("RÉSUMÉS", "resumes"),
        ("cafe\u0301", "café"),
        ("straße", "STRASSE"),
        ("Łukasz", "lukasz"),
        ("Đorđe", "dorde"),
        ("Œuvre", "oeuvre"),
        ("Æsop", "aesop"),
        ("Þórr", "thorr"),
        ("ışık", "isik"),
        ("ｆｕｌｌｗｉｄｔｈ", "fullwidth"),
        ("ﬁnance", "finance"),
        ("ΟΔΌΣ", "οδός"),
        ("İstanbul", "istanbul"),
        ("don’t panic", "don't panic"),
    ],
)
def test_case_accents_and_width_are_folded(one: str, other: str) -> None:
    assert tokens(one) == tokens(other) != []


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Müller", "muller"),
        ("Müller", "Mueller"),
        ("Göteborg", "goteborg"),
        ("Göteborg", "Goeteborg"),
        ("Märchen", "Maerchen"),
        ("Søren", "soren"),
        ("Søren", "SOEREN"),
        ("Århus", "arhus"),
        ("Århus", "Aarhus"),
        ("Mu\u0308ller", "mueller"),
        ("Ångström", "angstrom"),
    ],
)
def test_a_letter_that_is_also_written_as_one_or_two_plain_letters_is_found_both_ways(
    one: str, other: str
) -> None:
    assert finds(one, one)
    assert finds(other, one)
    assert set(tokens(one)) & set(tokens(other))  # the query has the letter, the text has not


@pytest.mark.parametrize(
    "word", ["does", "shoe", "poem", "blue", "value", "aerobic", "Michael", "Joe"]
)
def test_two_plain_letters_are_never_read_as_one(word: str) -> None:
    assert len(tokens(f"{word}s and a {word}x")) == 2
    assert not finds(
        word.replace("ae", "a").replace("oe", "o").replace("ue", "u") + "x", f"{word}x"
    )


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("great 🎉🎉", ["great", "🎉", "🎉"]),
        ("❤️ and ❤", ["❤", "❤"]),
        ("👍🏽 👍", ["👍", "👍"]),
        ("👩🏽\u200d💻", ["👩", "💻"]),
        ("🤷\u200d♀️", ["🤷"]),
        ("🇩🇪🇫🇷", ["🇩🇪", "🇫🇷"]),
        ("東京🗼", ["東京", "🗼"]),
        ("1️⃣", ["1"]),
        ("☕time", ["☕", "time"]),
        ("→ • § ™", []),
    ],
)
def test_each_emoji_is_a_keyword_without_variants_and_skin_tones(
    text: str, words: list[str]
) -> None:
    assert [word for word in tokens(text) if word != "tm"] == words


@pytest.mark.parametrize(
    ("stored", "text", "missing"),
    [
        (["muller", "call"], "Müller called", ["mueller"]),
        (["søren"], "Søren", ["soren", "soeren"]),
        (["parti"], "party 🎉", ["🎉"]),
        (["москвы"], "Москвы", []),
        (["cafe"], "the café", []),
        (["parti"], "party", []),
        (["न", "ल"], "नीला", ["नीला"]),
    ],
)
def test_keywords_of_earlier_versions_are_completed(
    stored: list[str], text: str, missing: list[str]
) -> None:
    assert completed(stored, text) == [*stored, *missing]
    assert completed(tokens(text), text) == tokens(text)


@given(
    st.text(max_size=30) | st.text(st.sampled_from("aäÖø é🎉🇩🇪漢नीกุ้مُ.'\u200d\ufe0f"), max_size=30)
)
def test_keywords_of_this_version_are_complete(text: str) -> None:
    assert completed(tokens(text), text) == tokens(text)


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    "forms",
    [
        ("run", "runs", "running"),
        ("deploy", "deploys", "deployed", "deploying"),
        ("company", "companies", "company's", "company’s"),
        ("key", "keys", "key's"),
    ],
)
def test_forms_of_a_word_share_one_stem(forms: tuple[str, ...]) -> None:
    assert len({tuple(tokens(form)) for form in forms}) == 1
    assert tokens(forms[0]) != []


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("東京都", ["東京", "京都"]),
        ("猫", ["猫"]),
        ("東京 猫", ["東京", "猫"]),
        ("한국어", ["한국", "국어"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("ｶﾀ", ["カタ"]),
        ("Python入門", ["python", "入門"]),
        ("第3章", ["第", "3", "章"]),
        ("入門running", ["入門", "run"]),
        ("ภาษาไทย", ["ภา", "าษ", "ษา", "าไ", "ไท", "ทย"]),
        ("ລາວ", ["ລາ", "າວ"]),
        ("ខ្មែរ", ["ខ្", "្ម", "មែ", "ែរ"]),
    ],
)
def test_texts_without_spaces_between_words_become_pairs_of_characters(
    text: str, words: list[str]
) -> None:
    assert tokens(text) == words


@pytest.mark.req("MESH-111")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("आसमान नीला है।", ["आसमान", "नीला", "है"]),
        ("বাংলা ভাষা", ["বাংলা", "ভাষা"]),
        # The sign that silences a vowel is folded, like an accent.
        ("வணக்கம் உலகம்", ["வணககம", "உலகம"]),
        ("مُحَمَّد", ["محمد"]),
        ("שָׁלוֹם", ["שלום"]),
    ],
)
def test_the_signs_of_a_script_do_not_split_its_words(text: str, words: list[str]) -> None:
    assert tokens(text) == words
    assert marked(text, text) != []


@pytest.mark.req("MESH-112")
@pytest.mark.parametrize(
    "plain", ["a", "an", "of", "to", "is", "x", "I", "it's", "He's", "ab", "né"]
)
def test_plain_words_of_one_or_two_letters_are_dropped(plain: str) -> None:
    assert tokens(plain) == []


@pytest.mark.req("MESH-112")
@pytest.mark.parametrize(
    ("short", "word"),
    [
        ("7", "7"),
        ("42", "42"),
        ("AI", "ai"),
        ("UK", "uk"),
        ("C++", "c++"),
        ("c++", "c++"),
        ("C#", "c#"),
        ("F#", "f#"),
        ("3d", "3d"),
        ("v2", "v2"),
        ("猫", "猫"),
    ],
)
def test_short_tokens_that_carry_meaning_stay(short: str, word: str) -> None:
    assert tokens(short) == [word]
    assert finds(short, f"We said {short} today.")


def test_a_hash_before_a_digit_is_not_part_of_the_word() -> None:
    assert tokens("issue #123 in C#7") == ["issu", "123", "7"]


def test_stop_words_are_dropped_in_any_case() -> None:
    assert tokens("what is the THE And they're don't about") == []
    assert all(tokens(word) == [] for word in STOP_WORDS)


@pytest.mark.req("MESH-111")
def test_stems_follow_the_language_and_other_alphabets_are_only_folded() -> None:
    assert tokens("Москвы") == ["москвы"]
    assert tokens("keys", language="german") != tokens("keys")
    assert (
        tokens("Häuser", language="german")
        == tokens("Hauser", language="german")
        == tokens("Haeuser", language="german")
    )


def test_an_unknown_language_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(
        SettingsError, match=r"unknown stemmer_language 'klingon'; expected one of .*english"
    ):
        tokens("some words", language="klingon")


@pytest.mark.req("MESH-111")
@given(st.text(max_size=15), st.text(max_size=15))
def test_a_text_has_the_keywords_of_its_parts(one: str, other: str) -> None:
    assert tokens(f"{one} {other}") == tokens(one) + tokens(other)


@given(st.text(max_size=30))
def test_tokens_are_the_same_every_time_and_never_blank(text: str) -> None:
    assert tokens(text) == tokens(text)
    assert all(word.strip() == word != "" for word in tokens(text))


# --- scores ---


def test_bm25_by_hand() -> None:
    # Three documents of 3, 1 and 2 tokens; "a" is twice in the first, "b" once in each of the first
    # two.
    postings = {"a": [Posting("d1", 2, 3)], "b": [Posting("d1", 1, 3), Posting("d2", 1, 1)]}
    corpus = Corpus(3, 6)
    rare, common = log(1 + 2.5 / 1.5), log(1 + 1.5 / 2.5)
    a1 = rare * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    b1 = common * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 3 / 2))
    b2 = common * 1 * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))
    assert bm25(postings, corpus, ["a"]) == pytest.approx({"d1": a1})
    assert bm25(postings, corpus, ["a", "b"]) == pytest.approx({"d1": a1 + b1, "d2": b2})
    assert bm25(postings, corpus, ["b", "b"]) == pytest.approx({"d1": 2 * b1, "d2": 2 * b2})
    assert a1 == pytest.approx(1.1823, abs=1e-4)


def test_a_word_that_no_document_contains_adds_no_score() -> None:
    assert bm25({}, Corpus(0, 0), ["a"]) == {}
    assert bm25({"a": []}, Corpus(5, 50), ["a"]) == {}
    assert bm25({"a": [Posting("d", 1, 1)]}, Corpus(1, 1), []) == {}


@given(st.integers(1, 50), st.integers(0, 500), st.integers(1, 1000), st.integers(0, 100_000))
def test_more_occurrences_never_lower_a_score_and_a_longer_text_never_raises_it(
    times: int, other_words: int, documents: int, rest: int
) -> None:
    length = times + other_words + 1
    corpus = Corpus(documents, rest + length)

    def score(times: int, length: int) -> float:
        return bm25({"a": [Posting("d", times, length)]}, corpus, ["a"])["d"]

    assert score(times + 1, length) >= score(times, length) > 0
    assert score(times, length + 1) <= score(times, length)


@given(st.integers(1, 20), st.integers(0, 20))
def test_a_rarer_word_never_counts_less(holders: int, more: int) -> None:
    corpus = Corpus(60, 600)

    def score(count: int) -> float:
        return bm25({"a": [Posting(str(n), 1, 10) for n in range(count)]}, corpus, ["a"])["0"]

    assert score(holders) >= score(holders + more) > 0


def test_statistics_of_partitions_add_up() -> None:
    assert Corpus(2, 10) + Corpus(3, 5) == Corpus(5, 15)


def test_best_sorts_by_score_and_equal_scores_by_id_descending() -> None:
    assert best({"a": 1.0, "c": 2.0, "b": 2.0}) == [("c", 2.0), ("b", 2.0), ("a", 1.0)]
    assert best({}) == []


def test_keywords_that_are_completed_are_looked_up_and_not_searched_for_one_by_one() -> None:
    class Unsearched(list[str]):
        def __contains__(self, word: object) -> bool:
            raise AssertionError("every keyword was compared with every other one")

    assert completed(Unsearched(["party"]), "party 🎉 Müller")[1:] == ["🎉", "muller", "mueller"]


def test_a_run_of_characters_that_keep_their_form_is_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pieces: list[int] = []
    split = prints._DISTINCT.split

    def counted(text: str) -> list[str]:
        pieces.append(len(split(text)))
        return split(text)

    assert prints.folded_text("Maß ²É") == "maß ²é"
    monkeypatch.setattr(prints._DISTINCT, "split", counted)
    assert prints.folded_text("Aß²" + "ß" * 1000 + "É") == "aß²" + "ß" * 1000 + "é"
    assert pieces == [3]
