"""Which messages of a list are stored already."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.intake import Turn, count_known


def turn(text: str, **more: object) -> Turn:
    """A turn of a speaker, such as `u:hello`."""
    speaker, _, said = text.partition(":")
    return Turn({"u": "user", "a": "assistant"}[speaker], said, **more)


def turns(words: str) -> list[Turn]:
    return [turn(word) for word in words.split()]


def numbered(conversation: Sequence[Turn]) -> dict[int, Turn]:
    return dict(enumerate(conversation, start=1))


def known(given_: str, stored: str) -> int:
    """`-` in `stored` is a turn that was erased."""
    words = enumerate(stored.split(), start=1)
    return count_known(turns(given_), {n: turn(word) for n, word in words if word != "-"})


@pytest.mark.parametrize(
    ("stored", "given_", "expected"),
    [
        ("", "u:hi", 0),
        ("u:hi a:hello", "u:hi a:hello", 2),
        ("u:hi a:hello", "u:hi a:hello u:bye", 2),
        ("u:hi a:hello u:bye", "u:hi a:hello", 2),
        ("u:hi a:hello u:bye", "u:hi", 1),
        ("u:hi a:hello", "u:bye", 0),
        ("u:hi a:hello u:yes a:ok", "u:yes a:ok u:more", 2),
        ("u:hi a:hello u:b a:c u:d a:e", "u:hi a:hello u:d a:e u:new", 4),
        ("u:hi a:hello", "u:hello", 0),
        ("u:yes u:yes", "u:yes u:yes u:yes", 2),
        ("u:hi a:hello", "u:hi u:hi a:hello", 0),
        ("u:hi a:hello u:hi", "u:hi a:hello u:hi a:hello", 3),
        ("u:q a:a u:r", "a:a u:q", 0),
    ],
)
def test_what_follows_the_stored_turns_is_new(stored: str, given_: str, expected: int) -> None:
    assert known(given_, stored) == expected


@pytest.mark.parametrize(
    ("stored", "given_", "expected"),
    [
        ("u:hi - u:b", "u:hi a:hello u:b u:new", 3),
        ("- a:hello u:b", "u:hi a:hello u:b u:new", 3),
        ("- - a:last", "u:hi u:b a:last u:new", 3),
        ("u:hi - u:b a:c", "a:erased u:b a:c u:new", 3),
        ("- a:hello", "u:new", 0),
        ("- - a:hello", "a:new u:other", 0),
        ("u:hi - u:b", "u:hi a:hello", 2),
    ],
)
def test_an_erased_turn_neither_comes_back_nor_makes_its_conversation_new(
    stored: str, given_: str, expected: int
) -> None:
    assert known(given_, stored) == expected


def test_a_changed_turn_is_known_by_its_place_and_speaker() -> None:
    history = turns("u:hi a:hello u:bye")
    changed = {**numbered(history), 2: turn("a:good morning", changed=True)}
    assert count_known(history, changed) == 3
    assert count_known([*history, turn("a:new")], changed) == 3
    last = {**numbered(history[:2]), 2: turn("a:good morning", changed=True)}
    assert count_known([*history], last) == 2
    assert count_known([turn("a:new")], last) == 0
    assert (
        count_known(
            [turn("u:hi"), turn("a:new")], {**numbered(history), 3: turn("a:x", changed=True)}
        )
        == 0
    )


@pytest.mark.parametrize("name", ["event_time", "tool_call_id"])
def test_a_message_of_another_time_or_call_is_another_message(name: str) -> None:
    stored = numbered([turn("u:hi"), turn("a:ok", **{name: "1"})])
    assert count_known([turn("a:ok", **{name: "1"})], stored) == 1
    assert count_known([turn("a:ok")], stored) == 1
    assert count_known([turn("a:ok", **{name: "2"})], stored) == 0


def test_turns_that_a_caller_numbered_from_zero_are_compared_from_there() -> None:
    history = turns("u:hi a:hello u:bye")
    assert count_known([*history, turn("a:new")], dict(enumerate(history))) == 3


@pytest.mark.deep
def test_a_list_as_large_as_allowed_that_repeats_one_message_is_compared_in_time() -> None:
    stored = numbered([turn("u:first"), *[turn("u:yes")] * 9_998])
    assert count_known([turn("u:first"), *[turn("u:yes")] * 9_999], stored) == 9_999
    # 50 million comparisons, if all were made.
    assert count_known([turn("u:other"), *[turn("u:yes")] * 9_999], stored) == 0


# --- the model: a session and a client that sends it in all ways ---

WORDS = st.sampled_from(["u:yes", "a:ok", "u:no", "a:why"])


def stored_after(known_: int, stored: list[Turn], sent: list[Turn]) -> list[Turn]:
    return [*stored, *sent[known_:]]


@given(st.lists(WORDS, max_size=12), st.data())
def test_a_history_sent_again_and_again_is_stored_once_whatever_it_repeats(
    words: list[str], data: st.DataObject
) -> None:
    conversation = [turn(word) for word in words]
    stored: list[Turn] = []
    for length in sorted(data.draw(st.lists(st.integers(0, len(words)), max_size=5))):
        sent = conversation[:length]
        stored = stored_after(count_known(sent, numbered(stored)), stored, sent)
        assert stored == sent
        assert count_known(sent, numbered(stored)) == len(sent)


def window(conversation: list[Turn], stored: int, data: st.DataObject) -> list[Turn]:
    """What a client sends: a beginning, maybe none, then all from some stored turn on, with at
    least one new message."""
    end = data.draw(st.integers(stored, len(conversation)))
    start = data.draw(st.integers(0, max(stored - 1, 0)))
    return [*conversation[: data.draw(st.integers(0, start))], *conversation[start:end]]


@given(st.integers(1, 12), st.data())
def test_windows_and_trimmed_histories_of_distinct_messages_lose_nothing_and_store_nothing_twice(
    size: int, data: st.DataObject
) -> None:
    # Texts repeat, but each message has its time.
    conversation = [turn(data.draw(WORDS), event_time=str(n)) for n in range(size)]
    stored: list[Turn] = []
    while len(stored) < size:
        sent = (
            window(conversation, len(stored), data)
            if data.draw(st.booleans())
            else [conversation[len(stored)]]
        )
        stored = stored_after(count_known(sent, numbered(stored)), stored, sent)
        assert stored == conversation[: len(stored)]


@given(st.lists(WORDS, min_size=1, max_size=12), st.data())
def test_windows_with_repeated_messages_store_nothing_twice(
    words: list[str], data: st.DataObject
) -> None:
    conversation = [turn(word) for word in words]
    count = data.draw(st.integers(1, len(words)))
    sent = window(conversation, count, data)
    new = len(sent) - count_known(sent, numbered(conversation[:count]))
    truly_new = len(conversation) - count
    assert new <= truly_new


@given(st.lists(WORDS, min_size=1, max_size=12), st.data())
def test_a_conversation_with_erased_turns_stays_as_it_is_when_it_is_sent_again(
    words: list[str], data: st.DataObject
) -> None:
    conversation = [turn(word, event_time=str(n)) for n, word in enumerate(words)]
    erased = data.draw(st.sets(st.integers(1, len(words))))
    stored = {number: one for number, one in numbered(conversation).items() if number not in erased}
    last = max(stored, default=0)
    assert count_known(conversation, stored) == (last if stored else 0)
