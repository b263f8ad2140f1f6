"""Token vectors: what a memory keeps of them, and which words they match."""

from struct import pack

import pytest

from memory_mesh.core.model import KEPT_TOKEN, Vector
from memory_mesh.core.search.matches import word_pairs


def token(*numbers: int, weight: int = 16, kept: bool = True) -> bytes:
    """Return a token of these first numbers, and zeros behind them."""
    return pack("48b", *numbers, *[0] * (48 - len(numbers))) + bytes([weight | KEPT_TOKEN * kept])


PENICILLIN, ALLERGIC, THE = token(127), token(0, 127), token(0, 0, 127, weight=1, kept=False)


def test_a_memory_keeps_the_tokens_whose_highest_bit_is_set() -> None:
    vector = Vector("m", b"\0\0\0\0", THE + PENICILLIN + THE + ALLERGIC)
    assert vector.of_memory == Vector("m", b"\0\0\0\0", PENICILLIN + ALLERGIC)
    assert vector.of_memory.of_memory == vector.of_memory


def test_a_memory_without_tokens_stays_as_it_is() -> None:
    assert Vector("m", b"\0\0\0\0").of_memory == Vector("m", b"\0\0\0\0")


def test_each_word_of_a_question_is_paired_with_its_nearest_word() -> None:
    medicine = token(120, 20)
    pairs = word_pairs(
        THE + medicine + ALLERGIC,
        ["Which", "medicine", "allergy"],
        ALLERGIC + THE + PENICILLIN,
        ["Allergic", "to", "penicillin"],
    )
    assert [(pair.question, pair.memory) for pair in pairs] == [
        ("allergy", "allergic"),
        ("medicine", "penicillin"),
    ]
    # 16 of 33 is the weight of a word here, and 1 that of "which".
    assert [pair.value for pair in pairs] == pytest.approx([16 / 33, 16 / 33 * 120 / 127])


def test_the_pieces_of_a_word_count_together() -> None:
    pairs = word_pairs(
        PENICILLIN + ALLERGIC, ["penicillin"] * 2, PENICILLIN + ALLERGIC, ["Penicillin"] * 2
    )
    assert [(pair.question, pair.memory, pair.value) for pair in pairs] == [
        ("penicillin", "penicillin", pytest.approx(1.0))
    ]


def test_only_the_three_best_pairs_are_named_and_none_that_speaks_against() -> None:
    tokens = [token(*[0] * at, 127) for at in range(4)]
    words = ["one", "two", "three", "four"]
    pairs = word_pairs(b"".join(tokens), words, b"".join(tokens), words)
    assert [pair.question for pair in pairs] == ["one", "two", "three"]
    assert word_pairs(token(-127), ["no"], token(127), ["yes"]) == []


@pytest.mark.parametrize(
    ("question", "memory"),
    [(b"", PENICILLIN), (PENICILLIN, b""), (PENICILLIN, THE), (token(127, weight=0), PENICILLIN)],
    ids=["no question", "no memory", "nothing kept", "no weight"],
)
def test_without_tokens_on_both_sides_no_words_are_named(question: bytes, memory: bytes) -> None:
    assert word_pairs(question, ["a"], memory, ["b"]) == []
