"""The words of a query in a text: what counts as one, and where it stands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search import tokens
from memory_mesh.core.search.passages import marked

TEXTS = st.text(
    st.sampled_from("aBcé e\u0301.-'’_#+ 東京タ한🦊👩\u200d💻[EMAIL]ß½ﬁ\n"), max_size=60
) | st.text(max_size=40)

CASES = {
    "stems are compared": (
        "The key rotates; rotation is weekly.",
        "when do keys rotate?",
        ["key", "rotates", "rotation"],
    ),
    "capitals are not compared": ("DEPLOY Deploy deploy", "deploy", ["DEPLOY", "Deploy", "deploy"]),
    "stop words are not marked": (
        "What is the plan and when?",
        "what is the plan and when",
        ["plan"],
    ),
    "a part of a name in camel case is marked": ("see deployKeys", "key", ["Keys"]),
    "a whole name in camel case is marked": ("see fooBar", "foobar", ["fooBar"]),
    "CJK is marked by pairs that join": ("東京都庁に行った", "東京都", ["東京都"]),
    "accents are not compared": (
        "the resume and the re\u0301sume\u0301",
        "résumé",
        ["resume", "re\u0301sume\u0301"],
    ),
    "wide letters count as letters": ("Ａｐｐｌｅ pie", "apple", ["Ａｐｐｌｅ"]),
    "signs that carry meaning belong to the word": ("C++ or C#", "c# c++", ["C++", "C#"]),
    "a mask is not a word": ("[EMAIL] sent the email", "email", ["email"]),
    "a pseudonym stands for one value": ("[EMAIL:1a2b3c4d] wrote", "1a2b3c4d", ["1a2b3c4d"]),
    "an emoji is marked with everything that it is joined with": (
        "at work 👩🏽\u200d💻 with ☕️ and 🎉",
        "💻 ☕",
        ["👩🏽\u200d💻", "☕️"],
    ),
    "a letter is compared in each of its spellings": (
        "Mueller, Müller and Muller",
        "müller",
        ["Mueller", "Müller", "Muller"],
    ),
    "a plain spelling finds the letter": ("Søren and Łukasz", "soeren lukasz", ["Søren", "Łukasz"]),
    "emoji move no position": ("🦊👩\u200d💻 the deploy 🦊", "deploy", ["deploy"]),
    "without a word of the query nothing is marked": ("tea", "coffee", []),
}


@pytest.mark.parametrize("case", CASES)
def test_words_of_the_query_are_marked(case: str) -> None:
    text, query, expected = CASES[case]
    assert [text[start:end] for start, end in marked(text, query)] == expected


def test_words_are_stemmed_in_the_given_language() -> None:
    text = "Die Häuser am See"
    assert [text[start:end] for start, end in marked(text, "Haus", language="german")] == ["Häuser"]
    assert marked(text, "Haus") == []


@given(TEXTS, TEXTS)
def test_spans_lie_in_the_text_in_order_and_apart(text: str, query: str) -> None:
    ends = 0
    for start, end in marked(text, query):
        assert ends <= start < end <= len(text)
        ends = end + 1


@given(
    st.lists(
        st.sampled_from(
            [
                "deploy",
                "Keys",
                "fooBar",
                "東京都",
                "café",
                "C++",
                "running",
                "v2beta",
                "don't",
                "HTTPServer",
            ]
        )
    )
)
def test_every_word_of_a_text_has_its_place(words: list[str]) -> None:
    text = " ".join(words)
    assert [text[start:end] for start, end in marked(text, text)] == [
        word for word in words if tokens(word)
    ]
