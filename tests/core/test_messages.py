"""What `add` takes: texts, pairs, mappings and chat messages in the forms of several libraries."""

import json
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import SINGLE, NewText, is_list, read_items, read_texts
from memory_mesh.core.intake.messages import MAX_MESSAGES
from memory_mesh.core.language.safety import BASE_TRUST

USER = {"role": "user", "content": "hello"}
CALL = {
    "id": "c1",
    "type": "function",
    "function": {"name": "weather", "arguments": '{"city": "Lisbon"}'},
}
KEPT_CALL = {"id": "c1", "name": "weather", "arguments": '{"city": "Lisbon"}'}


class Dumped:
    """A message object of a library."""

    def __init__(self, **fields: object) -> None:
        self.fields = fields

    def model_dump(self) -> Mapping[str, object]:
        return self.fields


def texts(given_: list[NewText]) -> list[object]:
    return [one.content for one in given_]


@pytest.mark.parametrize(
    ("item", "content", "metadata"),
    [
        ("a text", "a text", None),
        (("a text", {"a": 1}), "a text", {"a": 1}),
        (["a text", None], "a text", None),
        (("a text", {"role": "x", "content": "y"}), "a text", {"role": "x", "content": "y"}),
        ({"content": "a text"}, "a text", None),
        ({"content": "a text", "metadata": {"a": 1}}, "a text", {"a": 1}),
    ],
)
def test_a_text_is_read_in_every_form(item: object, content: str, metadata: object) -> None:
    assert not is_list(item)
    assert read_texts(item) == [NewText(content, metadata)]
    assert read_items(["x", item])[1] == NewText(content, metadata, item=1)


def test_the_metadata_of_a_call_is_added_to_that_of_each_item() -> None:
    given_ = read_items(["a", ("b", {"x": 2}), {"content": "c"}], {"x": 1, "y": 1})
    assert [one.metadata for one in given_] == [
        {"x": 1, "y": 1},
        {"x": 2, "y": 1},
        {"x": 1, "y": 1},
    ]


@pytest.mark.parametrize(
    ("role", "kept", "source"),
    [
        ("user", "user", "user_implicit"), ("human", "user", "user_implicit"),
        ("Assistant", "assistant", "inference"), ("ai", "assistant", "inference"),
        ("model", "assistant", "inference"), ("tool", "tool", "tool_output"),
        ("function", "tool", "tool_output"),
    ],
)  # fmt: skip
def test_the_role_of_a_message_decides_its_provenance(role: str, kept: str, source: str) -> None:
    (one,) = read_texts(
        {
            "role": role,
            "content": "x",
            "metadata": {"provenance": {"source": "user_explicit"}, "role": "king"},
        }
    )
    assert one.metadata == {"role": kept, "speaker": kept, "provenance": {"source": source}}
    assert (one.trust, one.thread) == (BASE_TRUST[source], SINGLE)


def test_the_name_of_a_message_is_its_speaker_and_its_timestamp_the_time() -> None:
    (one,) = read_texts(
        {**USER, "name": "Ana", "timestamp": "2026-03-01T09:30:00+01:00"}, {"session_id": "s"}
    )
    assert one.metadata["speaker"] == "Ana"
    assert one.metadata["event_time"] == "2026-03-01T08:30:00.000Z"
    assert one.metadata["session_id"] == "s"


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [
        (1_760_000_000, "2025-10-09T08:53:20.000Z"), (1_760_000_000.25, "2025-10-09T08:53:20.250Z"),
        (1_760_000_000_250, "2025-10-09T08:53:20.250Z"), ("2026-03-01", "2026-03-01T00:00:00.000Z"),
        (datetime(2026, 3, 1, 9), "2026-03-01T09:00:00.000Z"),  # noqa: DTZ001
        (date(2026, 3, 1), "2026-03-01T00:00:00.000Z"),
        (datetime(2026, 3, 1, 9, tzinfo=timezone(timedelta(hours=2))), "2026-03-01T07:00:00.000Z"),
        (datetime(2026, 3, 1, tzinfo=UTC), "2026-03-01T00:00:00.000Z"),
    ],
)  # fmt: skip
def test_a_timestamp_is_a_text_a_datetime_or_seconds(timestamp: object, expected: str) -> None:
    (one,) = read_texts({**USER, "timestamp": timestamp})
    assert one.metadata["event_time"] == expected


def test_system_messages_and_messages_without_text_are_left_out_of_a_list() -> None:
    left_out = [
        {"role": "system", "content": "Be kind."}, {"role": "developer", "content": "Be brief."},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "assistant", "content": " "},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:"}}]},
        {"role": "user", "content": []},
    ]  # fmt: skip
    assert texts(read_items([*left_out, USER])) == ["hello"]
    for message in left_out:
        with pytest.raises(InvalidInput, match="not stored"):
            read_texts(message)


def test_the_texts_of_the_parts_are_the_text_of_a_message() -> None:
    parts = [
        {"type": "text", "text": "Look at"}, {"type": "image_url", "image_url": {"url": "data:"}},
        "this,", {"type": "input_text", "text": "please"}, {"type": "thinking", "thinking": "hm"},
        {"text": "now"},
    ]  # fmt: skip
    (one,) = read_texts({"role": "user", "content": parts})
    assert one.content == "Look at\nthis,\nplease\nnow"
    assert one.metadata["attachments"] == ["image_url"]


def test_images_of_a_message_keep_their_url_and_caption_and_no_data() -> None:
    data = "data:image/png;base64," + "iVBOR" * 100_000
    parts = [
        "Look at these",
        {"type": "image_url", "image_url": {"url": "https://x.org/a.png", "detail": "low"}},
        {"type": "input_image", "image_url": "https://x.org/b.png", "caption": "The harbour"},
        {"type": "image", "source": {"type": "url", "url": "https://x.org/c.png"}, "alt": "A cup"},
        {"type": "image_url", "image_url": {"url": data}, "caption": " "},
        {"type": "image_url", "image_url": {"url": "https://x.org/" + "k" * 5_000}},
        {"type": "image_url", "image_url": {"url": 5}}, {"type": "image_url", "image_url": None},
        {"type": "input_audio", "source": {"url": "https://x.org/d.mp3"}},
    ]  # fmt: skip
    (one,) = read_texts({"role": "user", "content": parts})
    assert one.metadata["images"] == [
        {"url": "https://x.org/a.png"},
        {"url": "https://x.org/b.png", "caption": "The harbour"},
        {"url": "https://x.org/c.png", "caption": "A cup"},
        {"url": "data:image/png"}, {"url": "…"},
    ]  # fmt: skip
    odd = [
        {"type": "image", "image_url": " data:image/png;base64,AAAA", "caption": "x" * 2_000},
        {"type": "image", "image_url": "DATA:" + "A" * 5_000},
    ]  # fmt: skip
    (one,) = read_texts({"role": "user", "content": ["Look", *odd]})
    assert one.metadata["images"] == [
        {"url": "data:image/png", "caption": "…"}, {"url": "data:"}
    ]  # fmt: skip
    (many,) = read_texts({"role": "user", "content": [*parts, *[parts[1]] * 100]})
    assert len(many.metadata["images"]) == 20
    (own,) = read_texts({"role": "user", "content": "x", "metadata": {"images": ["mine"]}})
    assert own.metadata["images"] == ["mine"]


def test_calls_of_openai_are_kept_beside_the_text_or_with_the_result_that_follows() -> None:
    with_text = {"role": "assistant", "content": "Let me look.", "tool_calls": [CALL]}
    silent = {
        "role": "assistant",
        "content": None,
        "tool_calls": [{**CALL, "id": "c2"}, {**CALL, "id": "c3"}],
    }
    results = [{"role": "tool", "tool_call_id": id_, "content": id_} for id_ in ("c1", "c3", "c2")]
    given_ = read_items([with_text, silent, *results])
    assert texts(given_) == ["Let me look.", "c1", "c3", "c2"]
    calls = [one.metadata.get("tool_calls") for one in given_]
    assert calls == [[KEPT_CALL], None, [{**KEPT_CALL, "id": "c3"}], [{**KEPT_CALL, "id": "c2"}]]
    assert [one.metadata.get("tool_call_id") for one in given_] == [None, "c1", "c3", "c2"]


def test_calls_and_results_of_anthropic_are_turns_of_the_tool() -> None:
    use = {"type": "tool_use", "id": "c1", "name": "weather", "input": {"city": "Lisbon"}}
    results = [
        {"type": "tool_result", "tool_use_id": "c1",
         "content": [{"type": "text", "text": "sunny"}]},
        {"type": "tool_result", "tool_use_id": "c0", "content": "24 degrees"},
        {"type": "text", "text": "Thanks"},
    ]  # fmt: skip
    given_ = read_items(
        [
            {"role": "assistant", "content": [use]},
            {"role": "user", "name": "Ana", "content": results},
        ]
    )
    assert texts(given_) == ["sunny", "24 degrees", "Thanks"]
    assert [one.metadata["speaker"] for one in given_] == ["tool", "tool", "Ana"]
    assert [one.trust for one in given_] == [0.85, 0.85, 0.7]
    assert [one.metadata.get("tool_calls") for one in given_] == [[KEPT_CALL], None, None]
    assert [one.metadata.get("tool_call_id") for one in given_] == ["c1", "c0", None]


def test_message_objects_of_libraries_are_read() -> None:
    call = {"name": "weather", "args": {"city": "Lisbon"}, "id": "c1", "type": "tool_call"}
    objects = [
        Dumped(type="human", content="hello", name=None, id="1"),
        Dumped(type="ai", content="", tool_calls=[call]),
        Dumped(type="tool", content="sunny", tool_call_id="c1"), Dumped(type="system", content="x"),
        Dumped(role="assistant",
               content=[Dumped(type="text", text="It is sunny.", citations=None)]),
    ]  # fmt: skip
    assert not is_list(objects[0])
    given_ = read_items(objects)
    assert texts(given_) == ["hello", "sunny", "It is sunny."]
    assert given_[1].metadata["tool_calls"] == [KEPT_CALL]


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        ("x" * 500_000, "…"),
        ('{"path": "a.txt", "text": "' + "x" * 500_000 + '"}', '{"path": "a.txt", "text": "…"}'),
        (
            {"path": "ä.txt", "text": "x" * 500_000, "mode": {"append": True}},
            '{"path": "ä.txt", "text": "…", "mode": {"append": true}}',
        ),
        ({str(n): "x" * 100 for n in range(100)}, "…"),
        (["x" * 5_000], "…"),
        ({"text": "x" * 3_000}, json.dumps({"text": "x" * 3_000})),
    ],
    ids=["text", "JSON", "object", "many values", "list", "short enough"],
)
def test_long_arguments_of_a_call_are_left_out_whole(arguments: object, kept: str) -> None:
    """A value that is cut could hide a secret from masking: a key without its last letter."""
    call = {"id": "c", "name": "write", "arguments": arguments}
    (one,) = read_texts({"role": "assistant", "content": "I write it.", "tool_calls": [call]})
    assert one.metadata["tool_calls"][0]["arguments"] == kept


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (r'{"mail": "bob\u0040example.org"}', '{"mail": "bob@example.org"}'),
        (r'{"url": "https:\/\/example.org"}', '{"url": "https://example.org"}'),
        (r'{"half": "\ud83d"}', '{"half": "?"}'),
        (r"\u0040 is not JSON", r"\u0040 is not JSON"),
        (r'{"path": "C:\\x"}', r'{"path": "C:\\x"}'),
    ],
)
def test_escaped_characters_of_arguments_are_written_out(arguments: str, kept: str) -> None:
    """Masking would not find what is escaped."""
    call = {"id": "c", "name": "send", "arguments": arguments}
    (one,) = read_texts({"role": "assistant", "content": "I send it.", "tool_calls": [call]})
    assert one.metadata["tool_calls"][0]["arguments"] == kept


@pytest.mark.parametrize("blank", ["", " ", "\u200b", "\x1b[0m", "\ufeff\n"])
def test_a_message_without_a_visible_character_does_not_refuse_its_list(blank: str) -> None:
    calls = {"role": "assistant", "content": blank, "tool_calls": [{"id": "c1", "name": "weather"}]}
    given_ = read_items(
        [USER, calls, {"role": "tool", "content": [blank, "sunny"], "tool_call_id": "c1"}]
    )
    assert texts(given_) == [USER["content"], "sunny"]
    assert given_[1].metadata["tool_calls"] == [{"id": "c1", "name": "weather"}]


def test_a_result_of_a_tool_within_itself_is_read_once() -> None:
    result: dict[str, object] = {"type": "tool_result", "tool_use_id": "c"}
    result["content"] = ["sunny", result]
    (one,) = read_texts({"role": "user", "content": [result]})
    assert one.content == "sunny"


def test_nested_pairs_are_no_text() -> None:
    nested: object = "a text"
    for _ in range(100_000):
        nested = (nested, None)
    own: list[object] = [None, None]
    own[0] = own
    for item in (nested, own):
        assert not is_list(item)
        assert read_texts(item)[0].content is item[0]  # type: ignore[index]


def test_lists_of_messages_are_conversations_of_their_own() -> None:
    assert is_list([USER])
    assert is_list([USER, USER])
    assert is_list(([USER, USER], {"session_id": "a"}))
    given_ = read_items([USER, "a text", ([USER], {"session_id": "a"}), [USER, USER], USER])
    assert [one.thread for one in given_] == [0, None, 3, 4, 4, 0]
    assert [one.item for one in given_] == [0, 1, 2, 3, 3, 4]
    assert given_[2].metadata["session_id"] == "a"


def test_two_items_are_a_list_and_not_an_item_with_metadata() -> None:
    assert texts(read_items([USER, USER])) == ["hello", "hello"]
    assert is_list([{"content": "a"}, {"content": "b"}])
    assert is_list(["a", "b"])
    assert is_list(["a", USER])
    assert not is_list(["a", {"x": 1}])


HOSTILE: list[tuple[object, str]] = [
    (None, "content is None"), (5, "content is 5"), (b"x", "content is b'x'"), ({}, ""),
    ({"text": "x"}, "unknown key 'text'"), (set(), "content is"),
    ((), r"content is \(\)"), ([[]], "content is"), (["a", "b"], "content is .*`add_many`"),
    ({"role": "robot", "content": "x"}, "role is 'robot'; expected one of user"),
    ({"role": None}, "role is None"), ({"role": ["user"], "content": "x"}, "role is"),
    ({"role": "user"}, "content is missing"), ({"role": "user", "content": 5}, "content is int"),
    ({"role": "user", "content": {"text": "x"}}, "content is dict"),
    ({"role": "user", "content": [5]}, "part of type int"),
    ({"role": "user", "content": [{"type": "text"}]}, "text of a part"),
    ({**USER, "name": 5}, "name is 5"), ({**USER, "name": " "}, "name is ' '"),
    ({**USER, "timestamp": "soon"}, "timestamp 'soon'"),
    ({**USER, "timestamp": True}, "timestamp True"),
    ({**USER, "timestamp": float("inf")}, "timestamp is inf"),
    ({**USER, "timestamp": -1}, "timestamp is -1"),
    ({**USER, "timestamp": 10**400}, "timestamp is"),
    ({**USER, "timestamp": float("nan")}, "timestamp nan"),
    ({**USER, "metadata": "x"}, "metadata is str"),
    ({**USER, "tool_calls": ["x"]}, "a tool call is str"),
    ([USER, {"role": "user"}], "message 1: content is missing"),
    ({**USER, "content": [{"type": "tool_result", "content": 5}]}, "content is int"),
    (Dumped, "content is <class"),
]  # fmt: skip


@pytest.mark.parametrize(("item", "reason"), HOSTILE)
def test_what_cannot_be_read_is_refused_with_its_position(item: object, reason: str) -> None:
    if item == {}:
        assert texts(read_items(["a", item])) == ["a", None]  # refused with the other contents
        return
    with pytest.raises(InvalidInput, match=f"^item 2: .*{reason}"):
        read_items(["a", USER, item])


@pytest.mark.parametrize("items", ["abc", b"abc", {"role": "user", "content": "x"}, 5, None])
def test_a_batch_that_is_not_a_list_is_refused(items: object) -> None:
    with pytest.raises(InvalidInput, match=r"^items is .*; expected a list; `add` takes"):
        read_items(items)


def test_arguments_that_contain_themselves_are_refused() -> None:
    endless: dict[str, object] = {}
    endless["x"] = endless
    for arguments in (endless, {(1, 2): 3}):
        with pytest.raises(InvalidInput, match="arguments of a tool call"):
            read_texts({**USER, "tool_calls": [{"id": "c", "args": arguments}]})


def test_too_many_messages_are_refused_and_as_many_texts_are_not() -> None:
    assert len(read_items([USER] * MAX_MESSAGES)) == MAX_MESSAGES
    with pytest.raises(InvalidInput, match=r"too many messages.*10,000.*further calls"):
        read_items([USER] * (MAX_MESSAGES + 1))
    assert len(read_items(["x"] * (MAX_MESSAGES + 1))) == MAX_MESSAGES + 1


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
   lambda inner: (
       st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
           ["role", "content", "type", "text", "name", "metadata", "tool_calls", "timestamp", "id",
            "function", "tool_use_id"]
       ), inner, max_size=4)
   ), max_leaves=12)  # fmt: skip
MESSAGES = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "tool", "system"])},
    optional={
        "content": JSON,
        "name": JSON,
        "timestamp": JSON,
        "metadata": JSON,
        "tool_calls": JSON,
    },
)


@given(st.lists(JSON | MESSAGES, max_size=4))
def test_any_json_is_read_or_refused(items: list[object]) -> None:
    try:
        given_ = read_items(items)
    except InvalidInput:
        return
    assert json.dumps([one.metadata for one in given_ if one.thread is not None])
    assert all(
        isinstance(one.content, str) and one.content.strip()
        for one in given_
        if one.thread is not None
    )
