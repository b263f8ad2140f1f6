"""The questions that no memory answers, and the mixed memories that they are put to."""

import pytest
from bench.quality.nothing import Mixed, read_mixed

from memory_mesh.core.search import tokens

ENGLISH = "english"


@pytest.fixture(scope="module")
def mixed() -> Mixed:
    return read_mixed()


def test_there_are_enough_questions_and_memories_and_none_twice(mixed: Mixed) -> None:
    assert len(mixed.memories) == 500
    assert len(mixed.unrelated) >= 320
    assert len(mixed.controls) >= 40
    for texts in (
        [one.text for one in mixed.memories],
        [one.text for one in [*mixed.unrelated, *mixed.controls]],
    ):
        assert len(set(texts)) == len(texts)
    # languages
    assert len({question.kind for question in mixed.unrelated if ":" in question.kind}) >= 10


def test_the_answer_of_a_control_question_is_a_memory_that_shares_a_word_with_it(
    mixed: Mixed,
) -> None:
    memories = {memory.id: set(tokens(memory.text, language=ENGLISH)) for memory in mixed.memories}
    sharing = [
        bool(memories[next(iter(one.gold))] & set(tokens(one.text, language=ENGLISH)))
        for one in mixed.controls
    ]
    assert sum(sharing) >= 0.8 * len(sharing)  # some are paraphrases


def test_no_unrelated_question_shares_more_than_three_words_with_a_memory(mixed: Mixed) -> None:
    memories = [set(tokens(memory.text, language=ENGLISH)) for memory in mixed.memories]
    questions = [set(tokens(one.text, language=ENGLISH)) for one in mixed.unrelated]
    assert max(len(question & memory) for question in questions for memory in memories) <= 3
