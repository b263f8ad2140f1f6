"""Statements in plain texts: the labelled sentences, wordings that have to meet, and texts that
must not raise."""

from pathlib import Path

import pytest
from bench.claims.labelled import FOLDER, SECOND_LOOK, SEEN, judge, read, score
from hypothesis import example, given
from hypothesis import strategies as st

from memory_mesh.core.claims.patterns import MAX_CHARS, Statement, find_statement

MIN_PRECISION = 0.97
# Words of the rules themselves: random letters would match no form.
WORDS = (
    "I We Ana the The my Our ' 's of for is was has been to from as now since last May 5 2020 at "
    "on in , : prefer works work moved changed switched used no longer not does any more Berlin "
    "port version 8080 10:00 deadline boss Bob left became replaced just joined started sold "
    "bought new upgraded gave up instead because . he"
)


@pytest.mark.parametrize("path", SEEN, ids=lambda path: path.stem)
def test_claims_found_in_the_labelled_sentences_are_right(path: Path) -> None:
    verdicts = [judge(sentence) for sentence in read(path)]
    figures = score(verdicts)
    assert figures["sentences"] >= 220
    # Near misses are what precision is measured on.
    assert figures["claims"] <= 0.6 * figures["sentences"]
    assert figures["right"] > 0.3 * figures["claims"]
    assert figures["precision"] >= MIN_PRECISION, [
        each for each in verdicts if each.found and not each.is_right
    ]


@pytest.mark.parametrize("path", [*SEEN, SECOND_LOOK], ids=lambda path: path.stem)
def test_labelled_sentences_have_the_form_that_they_are_judged_by(path: Path) -> None:
    sentences = read(path)
    assert len({(each.text, each.speaker) for each in sentences}) == len(sentences) >= 200
    assert 0.4 <= sum(each.claim is not None for each in sentences) / len(sentences) <= 0.6
    for label in (each.claim for each in sentences if each.claim is not None):
        assert list(label) == ["subject", "predicate", "value", "exclusive", "starts", "ended"]
        assert all(
            label[name] and all(isinstance(word, str) and word.strip() for word in label[name])
            for name in list(label)[:3]
        )
        assert all(isinstance(label[name], bool) for name in list(label)[3:])
        assert not (label["starts"] and label["ended"]), label


def test_each_of_our_own_sentences_is_read_as_labelled() -> None:
    verdicts = [judge(sentence) for sentence in read(FOLDER / "own.jsonl")]
    assert [
        each for each in verdicts if not each.is_right and (each.found or each.sentence.claim)
    ] == []


@pytest.mark.parametrize(
    "texts",
    [
        (
            "Ana works at Acme",
            "Ana is working for Acme now",
            "Ana's employer is Acme",
            "Ana no longer works at Acme",
            "Ana left Acme",
        ),
        (
            "I live in Oslo",
            "I'm living in Oslo these days",
            "I moved to Oslo",
            "I don't live in Oslo anymore",
        ),
        (
            "The API's port is 80",
            "The port of the API is now 80",
            "The API listens on port 80",
            "We changed the API's port to 80",
        ),
        (
            "Bob is the CEO of Acme",
            "Acme's CEO is Bob",
            "The new CEO of Acme is Bob",
            "Bob replaced Ana as CEO of Acme",
        ),
        ("We switched from Slack to Teams for chat", "We now use Teams instead of Slack for chat"),
        (
            "The deadline is Friday",
            "Deadline: Friday",
            "We moved the deadline from Monday to Friday",
            "The deadline was extended to Friday",
        ),
    ],
)
def test_the_same_statement_in_other_words_has_the_same_subject_predicate_and_value(
    texts: tuple[str, ...],
) -> None:
    found = [find_statement(text) for text in texts]
    assert (
        len(
            {
                (each.subject.casefold(), each.predicate.casefold(), each.value)
                for each in found
                if each
            }
        )
        == 1
    )
    assert None not in found


def test_a_change_has_its_previous_value_and_its_beginning() -> None:
    assert find_statement("I moved from Oslo to Berlin last spring", speaker="Ana") == Statement(
        subject="Ana",
        predicate="residence",
        value="Berlin",
        starts=True,
        previous="Oslo",
        since="last spring",
    )
    assert find_statement("Since 2019 Ana works at Acme") == Statement(
        subject="Ana", predicate="employer", value="Acme", starts=True, since="2019"
    )


@pytest.mark.parametrize(
    "unit",
    [
        *("a ", "is ", "from a to b ", "'s ", "I moved ", "\n", "\0", "\ud800", "9"),
        "the port of ",
        *("I sold a for b, and got ", "left a for b and joined ", "has a new a, ", "now, so I "),
    ],
)
def test_a_long_text_is_not_a_statement(unit: str) -> None:
    assert find_statement(unit * 50_000) is None
    assert find_statement("Ana works at Acme" + " " * MAX_CHARS) is None
    find_statement((unit * MAX_CHARS)[:MAX_CHARS])  # the longest text that is read


@example("My boss is Bob", " ")
@given(
    st.one_of(
        st.text(max_size=80), st.lists(st.sampled_from(WORDS.split(" ")), max_size=25).map(" ".join)
    ),
    st.none() | st.text(),
)
def test_no_text_raises_and_every_part_of_a_statement_has_a_text(
    text: str, speaker: str | None
) -> None:
    found = find_statement(text, speaker=speaker)
    assert found is None or (
        found.subject.strip() and found.predicate.strip() and found.value.strip()
    )
    assert found is None or not (found.starts and found.ended)


def shown(text: str) -> list[str]:
    """A row of the page of claims."""
    found = find_statement(text)
    if found is None:
        return [text]
    starts = f"starts {found.since}" if found.since else "starts" if found.starts else ""
    marks = [
        "one at a time" if found.exclusive else "several",
        starts,
        "ended" if found.ended else "",
    ]
    marks.append(f"instead of {found.previous}" if found.previous else "")
    return [text, found.subject, found.predicate, found.value, ", ".join(filter(None, marks))]


@pytest.mark.parametrize(
    ("page", "many"), [("claims.md", 5), ("internals/claims.md", 30)], ids=["users", "builders"]
)
def test_a_page_of_claims_shows_what_is_found(page: str, many: int) -> None:
    section = (
        (Path(__file__).parents[2] / "docs" / page)
        .read_text(encoding="utf-8")
        .partition("## Claims from plain text\n")[2]
    )
    rows = [
        line.strip("| ").split(" | ")
        for line in section.partition("\n## ")[0].splitlines()
        if line.startswith("| ")
    ]
    claims, others = ([row for row in rows if len(row) == size] for size in (5, 2))
    assert len(claims) > many
    assert [shown(row[0]) for row in claims] == claims
    assert [shown(row[0]) for row in others if row[0] != "no claim"] == [
        [row[0]] for row in others if row[0] != "no claim"
    ]
    assert len(others) > 5
