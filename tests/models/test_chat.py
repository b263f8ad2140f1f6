"""Both chat protocols: requests, answers, refused parameters, and answers that cannot be used."""

import pickle
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import AnswerUnreadable, CallError, CallRefused
from memory_mesh.core.model import Json
from memory_mesh.core.ports import ChatModel, Prompt, Reply, Tokens
from memory_mesh.models.providers import (
    PROVIDERS,
    AnthropicChat,
    OpenAiChat,
    parse_anthropic,
    parse_openai,
    without_bounds,
)
from memory_mesh.testing.fakes import ScriptedChat

from .clients import StubClient, refusal

SCHEMA: dict[str, Json] = {
    "type": "object",
    "properties": {
        "maximum": {"type": "number", "minimum": 0, "maximum": 1},
        "tags": {"type": "array", "maxItems": 3, "items": {"type": "string", "maxLength": 20}},
    },
    "required": ["maximum", "tags"],
    "additionalProperties": False,
}
LOOSE = {
    "type": "object",
    "properties": {
        "maximum": {"type": "number"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["maximum", "tags"],
    "additionalProperties": False,
}
PROMPT = Prompt(operation="extract", system="Answer in JSON.", user="What is it?", max_tokens=77)
WITH_SCHEMA = Prompt(
    operation="extract", system="Answer in JSON.", user="What is it?", schema=SCHEMA
)


def chosen(
    content: Json = "tea", *, reason: str = "stop", usage: Json = None, **message: Json
) -> dict[str, Json]:
    said: dict[str, Json] = {"role": "assistant", "content": content, **message}
    return {"choices": [{"index": 0, "finish_reason": reason, "message": said}], "usage": usage}


def blocks(*content: Json, reason: str = "end_turn", usage: Json = None) -> dict[str, Json]:
    return {"type": "message", "content": list(content), "stop_reason": reason, "usage": usage}


def text(said: str) -> dict[str, Json]:
    return {"type": "text", "text": said}


def openai(
    *answers: Mapping[str, Json] | BaseException, provider: str = "openai"
) -> tuple[StubClient, OpenAiChat]:
    client = StubClient(*answers)
    return client, OpenAiChat(client, PROVIDERS[provider], "some-model")


def anthropic(*answers: Mapping[str, Json] | BaseException) -> tuple[StubClient, AnthropicChat]:
    client = StubClient(*answers)
    return client, AnthropicChat(client, "some-model")


# --- requests ---


def test_a_prompt_becomes_two_messages_at_temperature_zero() -> None:
    client, chat = openai(chosen())
    assert chat.reply(PROMPT).text == "tea"
    assert client.requests == [
        (
            "/chat/completions",
            {
                "model": "some-model",
                "messages": [
                    {"role": "system", "content": "Answer in JSON."},
                    {"role": "user", "content": "What is it?"},
                ],
                "temperature": 0,
                "max_completion_tokens": 77,
            },
        )
    ]


def test_the_system_part_is_separate_for_anthropic() -> None:
    client, chat = anthropic(blocks(text("tea")))
    assert chat.reply(PROMPT).text == "tea"
    assert client.requests == [
        (
            "/messages",
            {
                "model": "some-model",
                "system": "Answer in JSON.",
                "messages": [{"role": "user", "content": "What is it?"}],
                "temperature": 0,
                "max_tokens": 77,
            },
        )
    ]


@pytest.mark.parametrize(
    ("provider", "format_"),
    [
        (
            "openai",
            {
                "type": "json_schema",
                "json_schema": {"name": "extract", "strict": True, "schema": LOOSE},
            },
        ),
        ("cohere", {"type": "json_object", "schema": LOOSE}),
        (
            "ollama",
            {
                "type": "json_schema",
                "json_schema": {"name": "extract", "strict": True, "schema": SCHEMA},
            },
        ),
        (
            "lmstudio",
            {
                "type": "json_schema",
                "json_schema": {"name": "extract", "strict": True, "schema": SCHEMA},
            },
        ),
        (
            "llamacpp",
            {
                "type": "json_schema",
                "json_schema": {"name": "extract", "strict": True, "schema": SCHEMA},
            },
        ),
    ],
)
def test_each_provider_gets_the_schema_in_its_own_form(provider: str, format_: Json) -> None:
    client, chat = openai(chosen("{}"), provider=provider)
    chat.reply(WITH_SCHEMA)
    assert client.bodies[0]["response_format"] == format_
    assert ("max_completion_tokens" in client.bodies[0]) == (provider == "openai")
    assert ("max_tokens" in client.bodies[0]) == (provider != "openai")


def test_anthropic_is_asked_for_the_schema_without_the_bounds_that_it_refuses() -> None:
    client, chat = anthropic(blocks(text("{}")))
    chat.reply(WITH_SCHEMA)
    assert client.bodies[0]["output_config"] == {"format": {"type": "json_schema", "schema": LOOSE}}


def test_bounds_are_removed_at_every_level_and_names_that_look_like_them_stay() -> None:
    bounded: dict[str, Json] = {
        "anyOf": [{"type": "string", "minLength": 1}, {"$ref": "#/$defs/minLength"}],
        "$defs": {"minLength": {"type": "integer", "minimum": 0, "enum": [1, 2]}},
    }
    assert without_bounds(bounded) == {
        "anyOf": [{"type": "string"}, {"$ref": "#/$defs/minLength"}],
        "$defs": {"minLength": {"type": "integer", "enum": [1, 2]}},
    }


# --- refused parameters ---

TEMPERATURE = {
    "error": {
        "message": "Unsupported value: 'temperature' does not support 0 with this model.",
        "param": "temperature",
    }
}
NO_LIMIT = {
    "error": {
        "message": "Unsupported parameter: 'max_completion_tokens' is not supported.",
        "param": "max_completion_tokens",
    }
}
FORMAT = {"detail": [{"loc": ["body", "response_format"], "msg": "Extra inputs are not permitted"}]}
TOO_HIGH = {
    "error": {
        "message": "max_completion_tokens is too large: 77. It is at most 16.",
        "param": "max_completion_tokens",
    }
}


@pytest.mark.parametrize("status", [400, 422])
def test_a_refused_parameter_is_left_out_from_then_on(status: int) -> None:
    client, chat = openai(refusal(status, TEMPERATURE), chosen("first"), chosen("second"))
    assert [chat.reply(PROMPT).text, chat.reply(PROMPT).text] == ["first", "second"]
    assert ["temperature" in body for body in client.bodies] == [True, False, False]


def test_a_limit_refused_by_name_is_sent_under_its_other_name() -> None:
    client, chat = openai(refusal(400, NO_LIMIT), chosen("first"), chosen("second"))
    assert [chat.reply(PROMPT).text, chat.reply(PROMPT).text] == ["first", "second"]
    assert [
        (body.get("max_completion_tokens"), body.get("max_tokens")) for body in client.bodies
    ] == [
        (77, None),
        (None, 77),
        (None, 77),
    ]


def test_several_refused_parameters_are_left_out_one_by_one() -> None:
    client, chat = openai(
        refusal(422, FORMAT), refusal(400, TEMPERATURE), refusal(400, NO_LIMIT), chosen()
    )
    chat.reply(WITH_SCHEMA)
    assert sorted(client.bodies[-1]) == ["max_tokens", "messages", "model"]
    assert len(client.bodies) == 4


def test_a_limit_is_never_left_out() -> None:
    client, chat = openai(
        refusal(400, NO_LIMIT), refusal(400, {"error": "unknown field max_tokens"})
    )
    with pytest.raises(CallRefused):
        chat.reply(PROMPT)
    assert len(client.bodies) == 2


def test_a_limit_that_is_too_high_is_an_error() -> None:
    client, chat = openai(refusal(400, TOO_HIGH))
    with pytest.raises(CallRefused):
        chat.reply(PROMPT)
    assert len(client.bodies) == 1


def test_a_change_that_did_not_help_is_not_remembered() -> None:
    client, chat = openai(refusal(400, TEMPERATURE), refusal(401, "no"), chosen())
    with pytest.raises(CallRefused):
        chat.reply(PROMPT)
    chat.reply(PROMPT)
    assert ["temperature" in body for body in client.bodies] == [True, False, True]


@pytest.mark.parametrize(
    "error",
    [
        refusal(400, "bad model"),
        refusal(401, TEMPERATURE),
        refusal(404, None),
        CallRefused("redirected"),
        CallError("gone"),
    ],
)
def test_any_other_refusal_is_raised(error: CallError) -> None:
    client, chat = openai(error)
    with pytest.raises(type(error)):
        chat.reply(WITH_SCHEMA)
    assert len(client.bodies) == 1


def test_a_repeated_refusal_does_not_loop_for_ever() -> None:
    client, chat = openai(
        refusal(
            400,
            {
                "named": [
                    "temperature",
                    "response_format",
                    "unsupported max_completion_tokens",
                    "max_tokens",
                ]
            },
        )
    )
    with pytest.raises(CallRefused):
        chat.reply(WITH_SCHEMA)
    assert len(client.bodies) == 4


def test_older_models_of_anthropic_answer_without_a_schema() -> None:
    said = {
        "type": "error",
        "error": {
            "type": "invalid_request_error",
            "message": "output_config: Extra inputs are not permitted",
        },
    }
    client, chat = anthropic(refusal(400, said), blocks(text("{}")))
    assert chat.reply(WITH_SCHEMA).text == "{}"
    assert ["output_config" in body for body in client.bodies] == [True, False]


# --- answers ---


@pytest.mark.parametrize("name", ["openai/some-model"])
def test_a_reply_carries_the_configured_name_of_the_model(name: str) -> None:
    _, chat = openai({**chosen(), "model": "C:\\models\\secret-project.gguf"})
    assert chat.reply(PROMPT).model == chat.model == name
    assert anthropic(blocks(text("tea")))[1].reply(PROMPT).model == "anthropic/some-model"


def test_a_cut_off_answer_is_marked() -> None:
    assert not openai(chosen("half", reason="length"))[1].reply(PROMPT).complete
    assert openai(chosen("all", reason="stop"))[1].reply(PROMPT).complete
    assert not anthropic(blocks(text("half"), reason="max_tokens"))[1].reply(PROMPT).complete
    assert anthropic(blocks(text("all")))[1].reply(PROMPT).complete


def test_token_counts_are_those_of_the_server() -> None:
    assert openai(chosen(usage={"prompt_tokens": 31, "completion_tokens": 5}))[1].reply(
        PROMPT
    ).tokens == Tokens(31, 5)
    assert anthropic(blocks(text("tea"), usage={"input_tokens": 31, "output_tokens": 5}))[1].reply(
        PROMPT
    ).tokens == Tokens(31, 5)


@pytest.mark.parametrize("said", [None, -1, 0, "12", 3.0, True, [], {}, 10**40])
def test_tokens_are_estimated_when_the_server_reports_nonsense(said: Json) -> None:
    usage: dict[str, Json] = dict.fromkeys(
        ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens"), said
    )
    guess = Tokens(4 + 3, 1)  # a quarter of the characters, part by part
    assert openai(chosen("tea", usage=usage))[1].reply(PROMPT).tokens == guess
    assert openai(chosen("tea", usage=said))[1].reply(PROMPT).tokens == guess
    assert anthropic(blocks(text("tea"), usage=usage))[1].reply(PROMPT).tokens == guess


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("<think>hm</think>\n{}", "\n{}"),
        (" \n<think>\nhm\n\n</think>{}", "{}"),
        ("{} <think>hm</think>", "{} <think>hm</think>"),
        ("<think>a</think><think>b</think>", "<think>b</think>"),
        ("<thinking>hm</thinking>", "<thinking>hm</thinking>"),
    ],
)
def test_reasoning_before_the_answer_is_removed(content: str, said: str) -> None:
    assert (
        openai(chosen(content, reasoning_content="It asks for tea."))[1].reply(PROMPT).text == said
    )


def test_thinking_blocks_are_ignored_and_texts_are_joined() -> None:
    answer = blocks(
        {"type": "thinking", "thinking": "hm"}, text("{"), {"type": "surprise"}, text("}")
    )
    assert anthropic(answer)[1].reply(PROMPT).text == "{}"


def test_lone_surrogates_are_replaced() -> None:
    assert openai(chosen("a\ud800b"))[1].reply(PROMPT).text == "a?b"
    assert anthropic(blocks(text("a\ud800b")))[1].reply(PROMPT).text == "a?b"


def test_a_reply_does_not_show_its_text() -> None:
    assert "tea" not in repr(openai(chosen("tea"))[1].reply(PROMPT))


# --- answers that cannot be used ---

UNREADABLE: dict[str, tuple[Json, str]] = {
    "nothing": ({}, "no choices"),
    "no choice": ({"choices": []}, "no choices"),
    "choices of another kind": ({"choices": {"0": {}}}, "no choices"),
    "a choice of another kind": ({"choices": ["tea"]}, "no choices"),
    "no message": ({"choices": [{}]}, "no message"),
    "a refusal": (chosen(None, refusal="I will not."), "declined"),
    "a filter": (chosen("te", reason="content_filter"), "declined"),
    "a tool call": (chosen(None, tool_calls=[{"id": "1"}]), "tool"),
    "an old tool call": (chosen(None, function_call={"name": "x"}), "tool"),
    "no content": (chosen(None), "not a text"),
    "parts": (chosen([{"type": "text", "text": "tea"}]), "not a text"),
    "empty content": (chosen(""), "is empty"),
    "blank content": (chosen(" \n"), "is empty"),
    "only thoughts": (chosen("<think>hm</think>"), "is empty"),
    "thoughts without an end": (chosen("<think>hm", reason="length"), "cut off before"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_an_answer_without_a_text_is_unreadable_with_the_reason(case: str) -> None:
    answer, why = UNREADABLE[case]
    assert isinstance(answer, dict)
    with pytest.raises(AnswerUnreadable, match=f"openai/some-model cannot be used: .*{why}"):
        openai(answer)[1].reply(PROMPT)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ({}, "no content"),
        ({"content": "tea"}, "no content"),
        ({"content": ["tea"]}, "no content"),
        (blocks(), "no content"),
        (blocks({"type": "text", "text": 3}), "not a text"),
        (blocks({"type": "thinking", "thinking": "hm"}), "not a text"),
        (blocks(text("I call"), {"type": "tool_use", "name": "x"}), "tool"),
        (blocks(text("I will not."), reason="refusal"), "declined"),
        (blocks(text(" ")), "is empty"),
        (blocks(text(""), reason="max_tokens"), "cut off before"),
    ],
)
def test_the_same_goes_for_anthropic(answer: dict[str, Json], why: str) -> None:
    with pytest.raises(AnswerUnreadable, match=f"anthropic/some-model cannot be used: .*{why}"):
        anthropic(answer)[1].reply(PROMPT)


def test_an_unreadable_answer_is_not_quoted() -> None:
    with pytest.raises(AnswerUnreadable) as caught:
        openai(chosen(None, refusal="The patient's diagnosis"))[1].reply(PROMPT)
    assert "diagnosis" not in str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301


ANY_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["length", "<think>", "text"]),
    lambda below: (
        st.lists(below, max_size=3) | st.dictionaries(st.text(max_size=8), below, max_size=3)
    ),
    max_leaves=12,
)


def shaped(leaf: st.SearchStrategy[Json]) -> st.SearchStrategy[dict[str, Json]]:
    """Objects that have the names of a right answer, and anything at all in its places."""
    message = (
        st.fixed_dictionaries(
            {}, optional=dict.fromkeys(("content", "refusal", "tool_calls", "role"), leaf)
        )
        | leaf
    )
    choice = (
        st.fixed_dictionaries(
            {}, optional={"message": message, "finish_reason": leaf, "index": leaf}
        )
        | leaf
    )
    block = (
        st.fixed_dictionaries(
            {},
            optional={
                "type": st.sampled_from(["text", "tool_use", "thinking"]) | leaf,
                "text": leaf,
            },
        )
        | leaf
    )
    names = ("prompt_tokens", "completion_tokens", "input_tokens", "output_tokens")
    usage = st.fixed_dictionaries({}, optional=dict.fromkeys(names, leaf)) | leaf
    return st.fixed_dictionaries(
        {},
        optional={
            "choices": st.lists(choice, max_size=2) | leaf,
            "content": st.lists(block, max_size=3) | leaf,
            "usage": usage,
            "stop_reason": leaf,
        },
    )


@pytest.mark.parametrize("read", [parse_openai, parse_anthropic])
@given(answer=shaped(ANY_JSON) | st.dictionaries(st.text(max_size=8), ANY_JSON, max_size=4))
def test_any_object_is_a_reply_or_unreadable(
    read: Callable[..., Reply], answer: dict[str, Json]
) -> None:
    try:
        reply = read(answer, PROMPT, "some/model")
    except AnswerUnreadable:
        return
    assert reply.text.strip()
    assert reply.text.encode()
    assert reply.tokens.sent > 0
    assert reply.tokens.received > 0


# --- the fake ---


def test_the_scripted_model_gives_its_answers_and_repeats_the_last() -> None:
    chat = ScriptedChat("one", CallError("gone"), "three")
    asked: ChatModel = chat
    assert asked.reply(PROMPT) == Reply(text="one", model="scripted", tokens=Tokens(7, 1))
    with pytest.raises(CallError, match="gone"):
        asked.reply(PROMPT)
    assert [asked.reply(WITH_SCHEMA).text, asked.reply(PROMPT).text] == ["three", "three"]
    assert chat.asks == [PROMPT, PROMPT, WITH_SCHEMA, PROMPT]


def test_the_scripted_model_can_be_cut_off() -> None:
    cut = Reply(text="hal", model="m", complete=False)
    assert ScriptedChat(cut).reply(PROMPT) is cut
