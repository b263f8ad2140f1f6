"""The people that a query refers to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search import tokens
from memory_mesh.core.search.mentions import (
    addressee,
    closeness,
    is_general,
    is_personal,
    proper_names,
    role_of,
    speaker_roles,
    without_speakers,
)

PEOPLE = ("Caroline", "Melanie Jones", "Will")


@pytest.mark.parametrize(
    ("query", "rest"),
    [
        ("When did Caroline go to the support group?", "When did go to the support group?"),
        ("What is Melanie's bowl made of?", "What is bowl made of?"),
        ("What is Melanie’s bowl made of?", "What is bowl made of?"),
        ("What did Jones paint?", "What did paint?"),
        ("what did caroline paint?", "what did paint?"),
        ("What will Will paint?", "What will paint?"),
        ("Do Caroline and Melanie paint", "Do and paint"),
        ("What did the Carolines paint?", "What did the paint?"),
        ("What did Carol paint?", "What did Carol paint?"),
        ("What did nobody paint?", "What did nobody paint?"),
    ],
)
def test_the_names_of_speakers_are_removed(query: str, rest: str) -> None:
    assert without_speakers(query, PEOPLE) == rest


def test_a_name_is_recognised_by_its_stem_too() -> None:
    assert without_speakers("When did Caroline paint?", ["carolin"]) == "When did paint?"


def test_a_lower_case_word_that_equals_a_name_stays() -> None:
    assert without_speakers("What will Caroline paint?", PEOPLE) == "What will paint?"


def test_a_name_stays_if_no_keyword_would_remain() -> None:
    assert without_speakers("Who is Caroline?", PEOPLE) == "Who is Caroline?"
    assert without_speakers("Who is Caroline the painter?", PEOPLE) == "Who is the painter?"


def test_user_and_assistant_are_not_names() -> None:
    assert (
        without_speakers("Which user account did the assistant name?", ("user", "Assistant"))
        == "Which user account did the assistant name?"
    )


@pytest.mark.parametrize(
    ("query", "user", "assistant"),
    [
        ("What did I buy?", 1, None),
        ("What did you tell my brother?", 0.5, 1),
        ("What did you say?", None, 1),
        ("What did Iris say?", None, None),
        # A request, not a reference to what was said.
        ("Can you recommend a hotel for my trip?", 1, None),
        ("Can you remind me of the hotel?", 0.5, 1),
        ("Could you say which hotel you recommended?", None, 1),
        ("What did I tell you about my trip?", 1, None),
    ],
)
def test_i_is_the_user_and_you_is_the_assistant(
    query: str, user: float | None, assistant: float | None
) -> None:
    roles = speaker_roles(query)
    assert (roles.get("user"), roles.get("assistant")) == (user, assistant)


def test_names_are_capitalised_words_within_a_sentence() -> None:
    assert proper_names("What did Caroline say? Did Melanie hear it?") == {"carolin", "melani"}
    assert proper_names("What? Nothing. When: Never") == frozenset()
    assert proper_names("what did caroline say") == frozenset()
    assert proper_names("Kate's plan, and what NASA and iPhone users say") == {"kate"}
    assert proper_names("Was sagt Łukasz zu Müller?") == {"lukasz", "muller", "mueller"}


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Hey Kate! Long time no see.", "kate"),
        ("Thanks, Mel! That helps.", "mel"),
        ("I am glad. Thank you, Søren.", "soren"),
        ("good morning Ana", "ana"),
        ("Hey there, how are you?", None),
        ("Hi! Kate is here.", None),
        ("Kate thanks you", None),
        ("Thanks NASA", None),
        ("", None),
    ],
)
def test_a_greeting_names_whom_it_addresses(text: str, name: str | None) -> None:
    assert addressee(text) == name


def close(one: str, other: str) -> float:
    return max(closeness(left, right) for left in tokens(one) for right in tokens(other))


@pytest.mark.parametrize(
    "names",
    [
        ("Kate", "Katherine"),
        ("Bob", "Robert"),
        ("Liz", "Elizabeth"),
        ("Bill", "William"),
        ("Mel", "Melanie"),
        ("Ben", "Benjamin"),
        ("Carolyne", "Caroline"),
        ("Melany", "Melanie"),
        ("Jhon", "John"),
        ("Katerina", "Katarina"),
        ("Mueller", "Müller"),
        ("Владимр", "Владимир"),
    ],
)
def test_nicknames_beginnings_and_typos_are_close(names: tuple[str, str]) -> None:
    assert close(*names) == close(*reversed(names)) >= 0.5
    assert close(names[0], names[0]) == 1


@pytest.mark.parametrize(
    "names",
    [
        ("Ana", "Ann"),
        ("Bob", "Rob"),
        ("Mark", "Clara"),
        ("Caroline", "Melanie"),
        ("Al", "Alan"),
        ("Tim", "Tom"),
    ],
)
def test_other_names_are_not_close(names: tuple[str, str]) -> None:
    assert (
        max(
            (closeness(left, right) for left in tokens(names[0]) for right in tokens(names[1])),
            default=0.0,
        )
        == 0
    )


@given(st.text(max_size=10), st.text(max_size=10))
def test_closeness_is_a_symmetric_fraction(one: str, other: str) -> None:
    assert 0 <= closeness(one, other) == closeness(other, one) <= 1


@given(st.text(max_size=40), st.lists(st.text(max_size=10), max_size=3))
def test_removing_speakers_never_leaves_a_blank_query(query: str, people: list[str]) -> None:
    rest = without_speakers(query, people)
    assert rest == query or rest.strip()
    assert without_speakers(rest, people) == rest or rest != query


@pytest.mark.parametrize(
    "query",
    ["Which medicine must I avoid?", "what did we decide", "is that your plan", "OUR server"],
)
def test_a_question_about_me_us_or_you_is_personal(query: str) -> None:
    assert is_personal(query)


@pytest.mark.parametrize(
    "query", ["Which port does staging use?", "the hour of the bus", "industry", ""]
)
def test_a_question_about_others_is_not_personal(query: str) -> None:
    assert not is_personal(query)


@pytest.mark.parametrize(
    "query",
    [
        "How do I make a roux?",
        "can I freeze cheese",
        "What does the volatile keyword mean",
        "what is a lien",
        " why do cats purr",
    ],
)
def test_a_question_that_anybody_could_ask_is_general(query: str) -> None:
    assert is_general(query)


@pytest.mark.parametrize(
    "query",
    ["Where do I live?", "What did Ana say the rent is?", "so how do I do it", "Show me how", ""],
)
def test_other_questions_are_not_general(query: str) -> None:
    assert not is_general(query)


def test_a_speaker_is_the_user_the_assistant_or_somebody() -> None:
    assert [role_of(name) for name in ("User", "human", "Assistant", "AI", "Ana")] == [
        (True, False), (True, False), (False, True), (False, True), (False, False),
    ]  # fmt: skip
