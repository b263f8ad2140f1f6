"""The speakers that a query names: exactly, by a nickname that the conversation uses, or
misspelt; and unknown names."""

import pytest

from memory_mesh.core.model import Row
from memory_mesh.core.search.query import Pool
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore

from .index_rows import asking, find, memory
from .test_index_scope import HIDDEN


def turn(at: int, speaker: str, content: str, session: str = "s", **given: str) -> Row:
    words = content.lower().replace(",", "").replace("!", "").split()
    return memory(
        f"{session}{at}",
        speaker=speaker,
        content=content,
        keywords=words,
        session_id=session,
        turn=at,
        **given,
    )


TALK = [
    turn(1, "Katherine", "I paint"),
    turn(2, "Melanie", "Hey Kit! I run"),
    turn(3, "Katherine", "Thanks, Mel! I paint"),
    turn(4, "Melanie", "Hi Kit, I swim with Carol and Joan"),
]


def pool_of(rows: list[Row], *names: str) -> Pool:
    store = RamStore()
    store.apply(rows)
    return find(
        LocalIndex(store),
        asking(" ".join(("paint", "run", *names)), names=frozenset(names)),
        size=9,
    )


def named(rows: list[Row], name: str) -> dict[str, float]:
    """Return how surely a query with this name means each speaker."""
    pool = pool_of(rows, name)
    speakers = {row.id: str(row.value("speaker")) for row in rows}
    grades = {
        speakers[id_]: grade
        for id_, grade in zip(pool.ids, pool.signals["speaker"].tolist(), strict=True)
    }
    return {speaker: pytest.approx(grade) for speaker, grade in grades.items() if grade}


@pytest.mark.parametrize(
    ("name", "speakers"),
    [
        ("katherin", {"Katherine": 1.0}),
        ("kit", {"Katherine": 0.9}),  # by the conversation
        ("mel", {"Melanie": 0.9}),
        ("bess", {}),
        ("kate", {"Katherine": 0.9}),  # by the table of nicknames
        ("kath", {"Katherine": 0.8}),  # by the beginning
        ("kathrin", {"Katherine": 0.75}),  # by spelling
        ("melanni", {"Melanie": 1 - 2 / 7}),
        ("carol", {}),  # a third person of the memories
        ("joan", {}),
    ],
)
def test_a_speaker_is_named_in_these_ways(name: str, speakers: dict[str, float]) -> None:
    assert named(TALK, name) == speakers


def test_a_nickname_means_the_speaker_that_most_memories_address_by_it() -> None:
    twice = [*TALK, turn(1, "Bob", "I paint", "t"), turn(2, "Ann", "Hey Kit!", "t")]
    assert named(twice, "kit") == {"Katherine": 0.9}
    thrice = [*twice, turn(3, "Bob", "I run", "t"), turn(4, "Ann", "Thanks Kit", "t")]
    assert named(thrice, "kit") == {}  # two people, equally often


def test_a_nickname_that_a_later_memory_uses_is_known_from_then_on() -> None:
    store = RamStore()
    store.apply(TALK)
    index, query = LocalIndex(store), asking("paint bess", names=frozenset({"bess"}))
    assert not find(index, query, size=9).signals["speaker"].any()
    store.apply([turn(5, "Katherine", "Hey Bess!")])
    assert find(index, query, size=9).signals["speaker"].max() == pytest.approx(0.9)


@pytest.mark.parametrize("why", HIDDEN)
def test_a_hidden_memory_teaches_no_nickname_and_names_no_speaker(why: str) -> None:
    talk = ((1, "Zoltan", "I paint"), (2, "Ann", "Hey Zed! I run"))
    seen = [*TALK, *(turn(at, who, text, "h") for at, who, text in talk)]
    assert (named(seen, "zed"), named(seen, "zolt")) == ({"Zoltan": 0.9}, {"Zoltan": 0.8})
    given = {name: str(value) for name, value in HIDDEN[why].items() if name != "session_id"}
    hidden = [*TALK, *(turn(at, who, text, "h", **given) for at, who, text in talk)]
    pools = [pool_of(rows, "zed", "zolt") for rows in (TALK, hidden)]
    assert pools[0].signals["stranger"].tolist() == pools[1].signals["stranger"].tolist()
    assert pools[0].signals["speaker"].tolist() == pools[1].signals["speaker"].tolist()


def stranger(*names: str) -> float:
    return float(pool_of(TALK, *names).signals["stranger"].max())


def test_an_unknown_name_weakens_a_query_and_never_rules_it_out() -> None:
    assert stranger() == stranger("katherin") == stranger("carol") == 0
    assert stranger("zebedia") == pytest.approx(1 / 2)
    assert stranger("zebedia", "quentin") == pytest.approx(2 / 3)
    assert stranger("zebedia", "katherin") == pytest.approx(1 / 3)


def test_a_text_with_many_names_is_compared_by_the_first_of_them_only() -> None:
    strangers = [f"bo{chr(ord('a') + at)}zz" for at in range(16)]
    named_too = pool_of(TALK, "kate", *strangers[1:])
    assert named_too.signals["speaker"].max() == pytest.approx(0.9)
    assert named_too.signals["stranger"].max() == pytest.approx((15 + 0.1) / 17)
    too_many = pool_of(TALK, "kate", *strangers)
    assert too_many.signals["speaker"].max() == 0
    assert too_many.signals["stranger"].max() == pytest.approx(16 / 17)


def test_a_misspelt_name_is_hardly_a_stranger() -> None:
    assert stranger("kathrin") == pytest.approx(0.25 / 2)
    assert stranger("carrol") == pytest.approx(0.2 / 2)  # a word of the memories
    assert stranger("kate") == pytest.approx(0.1 / 2)
