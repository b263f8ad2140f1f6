"""Function words of other languages, and the keywords of a query without them."""

import pytest

from memory_mesh.core.search import tokens
from memory_mesh.core.search.lexical import function_words, query_tokens


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("Warum ist der Himmel blau?", ["himmel", "blau"]),
        ("Quelle est la plus haute montagne d'Europe ?", ["haut", "montagn", "d'europe"]),
        ("¿Cuál es el río más largo del mundo?", ["rio", "largo", "mundo"]),
        ("Qual é a capital da Nova Zelândia?", ["capit", "nova", "zelandia"]),
        ("Come si prepara il pesto alla genovese?", ["prepara", "pesto", "genoves"]),
        ("Hoe lang duurt een wedstrijd van het team?", ["lang", "duurt", "wedstrijd", "team"]),
        ("Bir futbol maçı kaç dakika sürer?", ["futbol", "maci", "dakika", "surer", "suerer"]),
        ("Jaka jest stolica Australii i gdzie leży?", ["stolica", "australii", "lezi"]),
    ],
)
def test_the_function_words_of_a_query_in_another_language_are_no_keywords(
    query: str, rest: list[str]
) -> None:
    assert query_tokens(query) == rest
    assert set(tokens(query)) - set(rest)  # they are keywords of a stored text


@pytest.mark.parametrize(
    "query",
    [
        "When did the war end?",
        "Come and see the man with the hat",
        "Die hard",
        "Where is the café on Rue de la Paix?",
        "est",
    ],
)
def test_words_of_english_that_are_small_words_elsewhere_stay(query: str) -> None:
    assert function_words(query) == frozenset()
    assert query_tokens(query) == tokens(query)


def test_a_query_of_function_words_keeps_them() -> None:
    assert query_tokens("wie ist das") == tokens("wie ist das") != []
