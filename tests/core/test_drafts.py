"""What a caller may give, and what is refused: always with our own error, never with a traceback
of somebody else's."""

import unicodedata
from collections import OrderedDict
from contextlib import suppress
from types import MappingProxyType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import Draft, Limits, draft, fingerprint
from memory_mesh.core.intake.gate import Layer0
from memory_mesh.core.language.scrubbing import ScrubSettings
from memory_mesh.core.model import INT_MAX, Reader

ME = Reader("user", "agent", None)
LIMITS = Limits()
OPEN = Layer0(None, ScrubSettings(enabled=False))  # what cleaning does to a text is told elsewhere


def read(
    content: object = "text",
    metadata: object = None,
    *,
    reader: Reader = ME,
    limits: Limits = LIMITS,
) -> Draft:
    return draft(content, metadata, reader, limits, OPEN)


# --- content ---


@pytest.mark.parametrize(
    "content", ["", " ", "\n\t \u3000\u2003", None, 5, b"bytes", ["list"], {"a": 1}, object()]
)
def test_content_is_text_that_says_something(content: object) -> None:
    with pytest.raises(InvalidInput, match=r"^content "):
        read(content)


@pytest.mark.parametrize(
    "content", ["Hi", "x", " kept as given \n", "é" * 10, "\U0001f600", "a\x01\x7f\ufeff\u2028"]
)
def test_content_is_kept_as_it_was_given(content: str) -> None:
    assert read(content).content == content


@pytest.mark.parametrize("content", ["a\0b", "\0", "half \ud800", "\udfff", "a\ud83d"])
def test_what_no_store_can_keep_is_no_content(content: str) -> None:
    with pytest.raises(InvalidInput, match="content"):
        read(content)


def test_content_has_a_longest_length_to_the_character() -> None:
    limits = Limits(content_chars=10)
    assert read("x" * 10, limits=limits).content == "x" * 10
    with pytest.raises(InvalidInput, match="11 characters; expected at most 10"):
        read("x" * 11, limits=limits)
    assert Limits().content_chars == 1_000_000


# --- what metadata may hold ---

KEPT = {
    "text": "é\U0001f600",
    "empty": "",
    "whole": INT_MAX,
    "negative": -INT_MAX,
    "real": 1.5e300,
    "true": True,
    "nothing": None,
    "list": [1, [2, {"deep": "yes"}]],
    "object": {"a": {"b": []}},
    "": "a key without a name",
    "source": "cli",
    "rationale": "why",
    "hypothesis": "what for",
    "skill_name": "s",
}


@pytest.mark.req("MESH-031")
def test_metadata_comes_back_as_it_was_given() -> None:
    metadata = {**KEPT, "type": "event", "tags": ["a", "b"], "session_id": "s1"}
    assert read(metadata=metadata).metadata == metadata
    assert read(metadata=None).metadata == {}


def test_metadata_is_a_copy_all_the_way_down() -> None:
    given_ = {"list": [1], "object": {"a": [2]}}
    kept = read(metadata=given_).metadata
    given_["list"].append(9)
    given_["object"]["a"].append(9)
    assert kept == {"list": [1], "object": {"a": [2]}}


def test_any_mapping_is_metadata_and_any_tuple_a_list() -> None:
    assert read(metadata=MappingProxyType({"a": OrderedDict(b=(1, 2))})).metadata == {
        "a": {"b": [1, 2]}
    }


@pytest.mark.parametrize("metadata", ["text", 5, ["a"], [("a", 1)], {1, 2}, b"x", object()])
def test_metadata_is_an_object(metadata: object) -> None:
    with pytest.raises(InvalidInput, match=r"^metadata is"):
        read(metadata=metadata)


@pytest.mark.req("MESH-171")
@pytest.mark.parametrize("key", ["__proto__", "constructor", "prototype"])
@pytest.mark.parametrize(
    "where",
    [
        lambda bad: bad,
        lambda bad: {"a": bad},
        lambda bad: {"a": [bad]},
        lambda bad: {"a": [[{"b": [bad]}]]},
        lambda bad: {"a": ({"ok": 1}, bad)},
        lambda bad: {"first": 1, "a": {"b": {"c": {"d": bad}}}},
    ],
    ids=["top", "object", "list", "nested lists", "tuple", "deep"],
)
def test_forbidden_keys_are_refused_at_any_depth(key: str, where: object) -> None:
    assert read(metadata=where({"fine": 1})).metadata  # the same shape with another key is taken
    with pytest.raises(InvalidInput, match=f"forbidden key '{key}'"):
        read(metadata=where({key: 1}))


@pytest.mark.req("MESH-171")
@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        float("-inf"),
        INT_MAX + 1,
        -INT_MAX - 1,
        10**5000,
        1j,
        b"bytes",
        bytearray(b"x"),
        {1, 2},
        frozenset(),
        object(),
        range(3),
        "a\0b",
        "half \ud800",
        Limits,
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "inside", [lambda value: value, lambda value: [value], lambda value: {"deep": [value]}]
)
def test_values_that_no_store_keeps_are_refused(value: object, inside: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(metadata={"key": inside(value)})
    assert "metadata.key" in str(refused.value)
    assert len(str(refused.value)) < 400


@pytest.mark.req("MESH-171")
@pytest.mark.parametrize("key", [1, 1.5, None, True, ("a",), b"a", "a\0", "\ud800"], ids=repr)
def test_keys_are_text(key: object) -> None:
    for metadata in ({key: 1}, {"a": [{key: 1}]}, {"b": 1, key: 2}):
        with pytest.raises(InvalidInput):
            read(metadata=metadata)


def chain(levels: int, wrap: object) -> dict[str, object]:
    """Metadata whose innermost object or list is so many levels down."""
    value: object = "end"
    for _ in range(levels - 1):
        value = wrap(value)
    return {"a": value}


@pytest.mark.req("MESH-171")
@pytest.mark.parametrize(
    "wrap", [lambda value: {"a": value}, lambda value: [value], lambda value: [{"a": value}]]
)
def test_metadata_has_a_deepest_level(wrap: object) -> None:
    limits = Limits(metadata_depth=7)
    assert read(metadata=chain(4, wrap), limits=limits)
    with pytest.raises(InvalidInput, match="too deep"):
        read(metadata=chain(8, wrap), limits=limits)
    with pytest.raises(InvalidInput, match="too deep"):
        read(metadata=chain(100_000, wrap))


@pytest.mark.req("MESH-171")
def test_what_holds_itself_is_refused_and_not_followed_for_ever() -> None:
    loop: dict[str, object] = {}
    loop["loop"] = loop
    endless: list[object] = []
    endless.extend([endless] * 10)
    for metadata in (loop, {"a": endless}, {"a": [loop, endless]}):
        with pytest.raises(InvalidInput, match="too deep"):
            read(metadata=metadata)


@pytest.mark.sample(2)
@pytest.mark.req("MESH-171")
@pytest.mark.parametrize(
    "leaf", ["x", "x" * 100_000, 1, [], {}], ids=["text", "long text", "number", "list", "object"]
)
def test_a_small_bomb_is_refused_before_it_fills_the_memory(leaf: object) -> None:
    bomb: object = leaf
    for _ in range(12):
        bomb = [bomb] * 10  # a thousand billion leaves, in twelve small lists
    with pytest.raises(InvalidInput, match="too many bytes"):
        read(metadata={"bomb": bomb})


@pytest.mark.req("MESH-171")
def test_metadata_has_a_largest_size_in_bytes() -> None:
    limits = Limits(metadata_bytes=100)
    fits = {"k": "x" * (100 - len('{"k": ""}'))}
    assert read(metadata=fits, limits=limits).metadata == fits
    for metadata in (
        {"k": fits["k"] + "x"},
        {"k": "é" * 60},
        {"k" * 101: 1},
        {"k": [1] * 90},
        {"k": {str(n): n for n in range(40)}},
    ):
        with pytest.raises(InvalidInput, match="bytes"):
            read(metadata=metadata, limits=limits)


json_like = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=4) | st.integers(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(st.text(max_size=20) | st.binary(max_size=3) | st.none(), json_like)
def test_anything_is_either_read_or_refused_by_our_own_error(
    content: object, metadata: object
) -> None:
    with suppress(InvalidInput):
        kept = read(content, metadata)
        assert read(kept.content, kept.metadata) == kept


# --- the columns that metadata fills ---


@pytest.mark.req("MESH-003")
@pytest.mark.parametrize("memory_type", ["global", "agent", "lesson", "reflection"])
def test_the_five_types_go_into_the_column(memory_type: str) -> None:
    assert read(metadata={"type": memory_type}).memory_type == memory_type
    assert read(metadata={"type": "session", "session_id": "s"}).memory_type == "session"


@pytest.mark.req("MESH-003")
@pytest.mark.parametrize(
    "free", ["event", "Global", "GLOBAL", " agent", "", "fact", 5, None, ["agent"], {"a": 1}, True]
)
def test_any_other_type_stays_in_the_metadata_and_reads_as_global(free: object) -> None:
    kept = read(metadata={"type": free})
    assert kept.memory_type == "global"
    assert kept.metadata["type"] == free


@pytest.mark.req("MESH-004")
def test_category_and_memory_type_are_never_mixed() -> None:
    kept = read(metadata={"category": "lesson", "type": "event", "memory_type": "agent"})
    assert (kept.columns["category"], kept.memory_type) == ("lesson", "global")
    assert kept.metadata == {"category": "lesson", "type": "event", "memory_type": "agent"}
    assert read(metadata={"category": "lesson"}).memory_type == "global"
    assert read(metadata={"type": "agent"}).columns["category"] is None
    assert read(metadata={"category": "anything at all"}).columns["category"] == "anything at all"


def test_a_session_memory_needs_a_session() -> None:
    with pytest.raises(InvalidInput, match="no session_id"):
        read(metadata={"type": "session"})
    assert (
        read(metadata={"type": "session"}, reader=Reader(None, "a", "s9")).columns["session_id"]
        == "s9"
    )


def test_a_session_named_in_the_metadata_comes_before_the_writers_own() -> None:
    reader = Reader(None, "a", "own")
    assert read(metadata={"session_id": "named"}, reader=reader).columns["session_id"] == "named"
    assert read(reader=reader).columns["session_id"] == "own"


@pytest.mark.req("MESH-002")
@pytest.mark.parametrize(
    ("word", "number"), [("low", 0.25), ("medium", 0.5), ("high", 0.75), ("critical", 1.0)]
)
def test_words_of_importance_are_numbers(word: str, number: float) -> None:
    kept = read(metadata={"importance": word})
    assert kept.columns["importance"] == number
    assert kept.metadata["importance"] == word


@pytest.mark.parametrize("name", ["importance", "confidence"])
@pytest.mark.parametrize("share", [0, 1, 0.0, 1.0, 0.3])
def test_shares_lie_within_nought_and_one(name: str, share: float) -> None:
    assert read(metadata={name: share}).columns[name] == share


@pytest.mark.parametrize("name", ["importance", "confidence"])
@pytest.mark.parametrize("share", [-0.01, 1.01, 50, True, False, "huge", "HIGH", "", [], {}, "0.5"])
def test_a_share_outside_is_refused(name: str, share: object) -> None:
    with pytest.raises(InvalidInput, match=f"metadata.{name}"):
        read(metadata={name: share})


def test_importance_and_confidence_do_not_fill_each_other() -> None:
    columns = read(metadata={"importance": "high"}).columns
    assert (columns["importance"], columns["confidence"]) == (0.75, None)
    assert "trust" not in columns


@pytest.mark.parametrize("name", ["session_id", "project", "category", "speaker"])
@pytest.mark.parametrize("value", ["", "  ", 5, ["a"], {"a": 1}, False])
def test_names_are_text_that_is_not_blank(name: str, value: object) -> None:
    with pytest.raises(InvalidInput, match=f"metadata.{name}"):
        read(metadata={name: value})
    assert read(metadata={name: "fine"}).columns[name] == "fine"


@pytest.mark.parametrize("name", ["event_time", "valid_from", "valid_until", "expires_at"])
def test_times_are_brought_into_one_form_and_each_fills_its_own_column(name: str) -> None:
    kept = read(metadata={name: "2026-03-01 10:00+02:00"})
    assert kept.columns[name] == "2026-03-01T08:00:00.000Z"
    others = {"event_time", "valid_from", "valid_until", "expires_at"} - {name}
    assert [kept.columns[other] for other in others] == [None] * 3
    assert kept.metadata == {name: "2026-03-01 10:00+02:00"}
    for wrong in ("yesterday", "", 5, "2026-13-01", []):
        with pytest.raises(InvalidInput, match=name):
            read(metadata={name: wrong})


@pytest.mark.parametrize("tags", ["a", {"a": 1}, [1], ["a", None], [["a"]], 5, True])
def test_tags_are_a_list_of_texts(tags: object) -> None:
    with pytest.raises(InvalidInput, match=r"metadata\.tags"):
        read(metadata={"tags": tags})


def test_tags_fill_their_column() -> None:
    assert read(metadata={"tags": ["b", "a", "b", ""]}).columns["tags"] == ["b", "a", "b", ""]
    assert read(metadata={"tags": ()}).columns["tags"] == []
    assert read().columns["tags"] == []


@pytest.mark.parametrize(
    ("turn", "column"),
    [(3, 3), (0, 0), (-1, -1), ("3", None), (1.5, None), (True, None), (None, None)],
)
def test_a_turn_is_a_whole_number_and_stays_in_the_metadata_whatever_it_is(
    turn: object, column: int | None
) -> None:
    kept = read(metadata={"turn": turn})
    assert kept.columns["turn"] == column
    assert kept.metadata == {"turn": turn}


@pytest.mark.parametrize("name", ["user_id", "agent_id"])
def test_nobody_writes_in_anothers_name(name: str) -> None:
    assert read(metadata={name: getattr(ME, name)}).metadata
    assert read(metadata={name: None}).metadata == {name: None}
    for other in ("other", "", 5, [getattr(ME, name)]):
        with pytest.raises(InvalidInput, match=f"metadata.{name}"):
            read(metadata={name: other})


# --- what counts as the same ---


def print_of(content: str = "Some text", *, reader: Reader = ME, **metadata: object) -> str:
    return fingerprint(reader, read(content, metadata, reader=reader))


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(
    "variant",
    [
        "some text",
        "SOME TEXT",
        "  Some \n\t text ",
        "Some\u00a0text",
        "Ｓｏｍｅ text",
        "Some\u2003\r\ntext",
    ],
)
def test_the_same_text_in_other_clothes_has_the_same_fingerprint(variant: str) -> None:
    assert print_of(variant) == print_of()


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("form", ["NFC", "NFD", "NFKC", "NFKD"])
def test_the_form_in_which_letters_are_written_does_not_count(form: str) -> None:
    text = "Café ﬁne Å ① straße"
    assert print_of(unicodedata.normalize(form, text)) == print_of(text)


CASES = [
    ("100 Mb", "100 MB", "100 mb"), ("Use -v", "Use -V"), ("ask us", "ask US"),
    ("ask it", "ask IT"), ("getItem", "GetItem"), ("see README.md", "see readme.md"),
    ("in May", "in may"), ("plan b", "plan B"), ("5 mW", "5 MW"), ("a `Set`", "a `set`"),
    ("use foo_Bar", "use foo_bar"), ("github", "GitHub"), ("5m", "5M"), ("RUN -V", "RUN -v"),
    ("$PATH", "$path"), ("Åb", "ÅB"),
]  # fmt: skip


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize("texts", CASES, ids=str)
def test_the_case_of_units_flags_code_acronyms_and_letters_counts(texts: tuple[str, ...]) -> None:
    assert len({*map(print_of, texts)}) == len(texts)


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(
    "texts",
    [
        ("The Meeting Is At Noon.", "the meeting is at noon.", "THE MEETING IS AT NOON."),
        ("May I go? I'm late, a bird sings.", "may i go? i'm late, a bird sings."),
        ("It rains. A bird sings.", "it rains. a bird sings."),
        ('"Ana\'s O-ring" (in Lisbon)', '"ana\'s o-ring" (in lisbon)'),
        ("Meet at 5 Pm", "meet at 5 pm"),
        ("Über Ärger", "über ärger"),
    ],
    ids=str,
)
def test_the_capital_of_an_ordinary_word_does_not_count(texts: tuple[str, ...]) -> None:
    assert len({*map(print_of, texts)}) == 1


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(
    "other", ["Some texts", "Sometext", "Some text.", "Som text", "Some téxt", "text Some"]
)
def test_another_text_has_another_fingerprint(other: str) -> None:
    assert print_of(other) != print_of()


@pytest.mark.req("MESH-078")
@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("10² cells", "102 cells"),
        ("H₂O", "H2O"),
        ("2½ cups", "21/2 cups"),
        ("in Maßen", "in Massen"),
    ],
)
def test_raised_digits_fractions_and_the_sharp_s_are_another_text(one: str, other: str) -> None:
    assert print_of(one) == print_of(f" {one} ")
    assert print_of(one) != print_of(other)


@pytest.mark.req("MESH-078")
def test_every_part_of_the_scope_and_the_place_in_a_session_counts() -> None:
    prints = [
        print_of(),
        print_of(project="p"),
        print_of(type="agent"),
        print_of(type="agent", reader=Reader("user", "other agent")),
        print_of(type="session", session_id="s1"),
        print_of(type="session", session_id="s2"),
        print_of(type="session", session_id="s1", reader=Reader("user", "other agent")),
        print_of(type="reflection"),
        print_of(event_time="2026-01-01"),
        print_of(event_time="2026-01-02"),
        print_of(speaker="ann"),
        print_of(speaker="bob"),
        print_of(speaker="bob", session_id="s1"),
        print_of(turn=1),
        print_of(turn=1, session_id="s1"),
        print_of(turn=2),
        print_of(turn="2"),
        print_of(reader=Reader("other user", "agent")),
        print_of(reader=Reader(None, "agent")),
    ]
    assert len(set(prints)) == len(prints)


@pytest.mark.req("MESH-078")
def test_only_what_decides_who_sees_a_text_is_part_of_its_fingerprint() -> None:
    assert (
        print_of(reader=Reader("user", "other agent", "s2"))
        == print_of(session_id="s1")
        == print_of()
    )
    assert print_of(type="agent", session_id="s1") == print_of(type="agent")
    assert print_of(turn=1, reader=Reader("user", "other agent")) == print_of(turn=1)


@pytest.mark.req("MESH-078")
def test_other_metadata_does_not_change_a_fingerprint() -> None:
    assert (
        print_of(tags=["a"], importance="high", source="x", type="event", category="fact")
        == print_of()
    )
    assert print_of(event_time="2026-01-01T01:00+01:00") == print_of(event_time="2026-01-01")


def test_parts_of_a_fingerprint_cannot_run_into_each_other() -> None:
    assert print_of(type="session", session_id="a", project="b") != print_of(
        type="session", session_id="b", project="a"
    )
    assert print_of("x", speaker="y") != print_of("y", speaker="x")


@pytest.mark.req("MESH-005")
@pytest.mark.parametrize(
    "given", ["2024-08-01", "2024-08-01T00:00:00Z", 1722470400, 1722470400000, 1722470400.0]
)
def test_a_timestamp_in_the_metadata_is_the_time_of_the_event(given: object) -> None:
    checked = read("He flew to Rome.", {"timestamp": given})
    assert checked.columns["event_time"] == "2024-08-01T00:00:00.000Z"
    assert checked.metadata == {"timestamp": given}
    both = read("He flew to Rome.", {"timestamp": given, "event_time": "2023-01-01"})
    assert both.columns["event_time"] == "2023-01-01T00:00:00.000Z"


@pytest.mark.parametrize("given", ["00:12:30", "soon", 12.5, -1, True, None, [1], 2**52])
def test_a_timestamp_that_is_no_date_stays_plain_metadata(given: object) -> None:
    assert read("text", {"timestamp": given}).columns["event_time"] is None
