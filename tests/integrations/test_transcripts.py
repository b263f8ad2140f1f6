"""What LangChain and the OpenAI Agents SDK store and read back, with the real libraries."""

import asyncio
import subprocess
import sys
from inspect import iscoroutine, signature

import pytest

from memory_mesh import MemoryMesh

pytestmark = pytest.mark.deep


@pytest.fixture
def mesh():
    with MemoryMesh("memory://", embedder="none") as opened:
        yield opened


# --- LangChain ---


def test_the_messages_of_a_session_come_back_as_they_were(mesh) -> None:
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

    from memory_mesh.integrations.langchain import MemoryMeshChatHistory

    call = {"name": "weather", "args": {"city": "Oslo"}, "id": "call_1", "type": "tool_call"}
    given = [
        SystemMessage("Be brief."), HumanMessage("Weather in Oslo?"),
        AIMessage("", tool_calls=[call]), ToolMessage("rain", tool_call_id="call_1"),
        AIMessage("Rain."), HumanMessage("Thanks"), HumanMessage("Thanks"),
    ]  # fmt: skip
    history = MemoryMeshChatHistory(mesh, "s1")
    history.add_messages(given[:2])
    history.add_messages(given[2:])
    assert history.messages == given
    assert MemoryMeshChatHistory(mesh, "s2").messages == []
    assert mesh.search("weather Oslo")[0].session_id == "s1"
    history.clear()
    assert history.messages == []
    assert mesh.get_all() == []


def test_a_history_is_used_by_a_runnable_and_from_async_code(mesh) -> None:
    from langchain_core.messages import HumanMessage

    from memory_mesh.integrations.langchain import MemoryMeshChatHistory

    async def use():
        history = MemoryMeshChatHistory(mesh, "s1")
        await history.aadd_messages([HumanMessage("one"), HumanMessage("two")])
        read = [message.content for message in await history.aget_messages()]
        await history.aclear()
        return read, history.messages

    assert asyncio.run(use()) == (["one", "two"], [])


def test_a_retriever_returns_documents_with_scores_and_leaves_out_what_is_irrelevant(mesh) -> None:
    from memory_mesh.integrations.langchain import MemoryMeshRetriever

    mesh.add("The deploy key rotates on Mondays.", {"source": "wiki"})
    mesh.add("The deploy key is in the safe.")
    mesh.add("Ana prefers tea.")
    retriever = MemoryMeshRetriever(mesh=mesh, k=2)
    (found, *_) = documents = retriever.invoke("when does the deploy key rotate?")
    assert found.page_content == "The deploy key rotates on Mondays."
    assert found.metadata["source"] == "wiki"
    assert 0 < found.metadata["score"] <= 1
    assert mesh.get(found.id).content == found.page_content
    assert all("tea" not in one.page_content for one in documents)
    assert asyncio.run(retriever.ainvoke("when does the deploy key rotate?")) == documents
    filtered = MemoryMeshRetriever(mesh=mesh, filter={"source": "wiki"})
    assert [one.id for one in filtered.invoke("deploy key")] == [found.id]


def test_a_retriever_returns_k_documents_as_its_constructor_or_the_call_says(mesh) -> None:
    from memory_mesh.integrations.langchain import MemoryMeshRetriever

    for day in ("Mondays", "Tuesdays", "Fridays", "Sundays"):
        mesh.add(f"The deploy key rotates on {day}.")
    query, retriever = "when does the deploy key rotate?", MemoryMeshRetriever(mesh=mesh, k=2)
    assert [len(retriever.invoke(query)), len(retriever.invoke(query, k=3))] == [2, 3]
    assert len(asyncio.run(retriever.ainvoke(query, k=1))) == 1


def test_the_retriever_passes_the_standard_tests_of_langchain(mesh) -> None:
    from langchain_tests.integration_tests import RetrieversIntegrationTests

    from memory_mesh.integrations.langchain import MemoryMeshRetriever

    class Suite(RetrieversIntegrationTests):
        retriever_constructor = MemoryMeshRetriever
        retriever_constructor_params = {"mesh": mesh}  # noqa: RUF012
        retriever_query_example = "when does the deploy key rotate?"

    for day in ("Mondays", "Tuesdays", "Fridays", "Sundays"):
        mesh.add(f"The deploy key rotates on {day}.")
    suite, given = Suite(), {"retriever": MemoryMeshRetriever(mesh=mesh)}
    names = [name for name in dir(suite) if name.startswith("test_")]
    assert {"test_k_constructor_param", "test_ainvoke_returns_documents"} <= {*names}
    for name in names:
        test = getattr(suite, name)
        outcome = test(**{one: given[one] for one in signature(test).parameters})
        if iscoroutine(outcome):
            asyncio.run(outcome)


# --- what every transcript keeps ---


def _session(mesh, name="s1", **settings):
    from memory_mesh.integrations.openai_agents import MemoryMeshSession

    return MemoryMeshSession(mesh, name, **settings)


def _user(text):
    return {"role": "user", "content": text}


def test_equal_items_are_separate_and_keep_their_order_in_one_millisecond() -> None:
    async def use(mesh):
        for _ in range(3):
            await _session(mesh).add_items([_user("again?"), {"role": "assistant", "content": "y"}])
        await _session(mesh).add_items([_user("again?")] * 3)
        seen = [await _session(mesh).get_items(), await _session(mesh).pop_item()]
        await _session(mesh).add_items([_user("again?")])
        return [*seen, await _session(mesh).get_items(limit=5)]

    turn = [_user("again?"), {"role": "assistant", "content": "y"}]
    with MemoryMesh("memory://", embedder="none", clock=lambda: 1_700_000_000.0) as mesh:
        every, popped, latest = asyncio.run(use(mesh))
    assert every == [*turn * 3, *[_user("again?")] * 3]
    assert popped == _user("again?")
    assert latest == [*turn, *[_user("again?")] * 3][-5:]


def test_the_latest_items_go_by_their_number_also_if_the_clock_of_a_writer_is_behind() -> None:
    now = [1_700_000_100.0]
    with MemoryMesh("memory://", embedder="none", clock=lambda: now[0]) as mesh:

        async def late():
            await _session(mesh).add_items([_user("1"), _user("2")])
            now[0] -= 60
            await _session(mesh).add_items([_user("3")])
            session = _session(mesh)
            return await session.get_items(limit=2), await session.pop_item()

        assert asyncio.run(late()) == ([_user("2"), _user("3")], _user("3"))


def test_two_processes_write_to_one_session_and_no_item_is_lost(tmp_path) -> None:
    writer = """
import asyncio, sys
from memory_mesh import MemoryMesh
from memory_mesh.integrations.openai_agents import MemoryMeshSession

with MemoryMesh(sys.argv[1], embedder="none") as mesh:
    session = MemoryMeshSession(mesh, "s1")
    for n in range(10):
        pair = [{"role": "user", "content": "same"}, {"role": "assistant", "content": sys.argv[2]}]
        asyncio.run(session.add_items(pair))
"""
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    running = [subprocess.Popen([sys.executable, "-c", writer, url, name]) for name in "ab"]
    assert [process.wait(120) for process in running] == [0, 0]
    with MemoryMesh(url, embedder="none") as mesh:
        items = asyncio.run(_session(mesh).get_items())
    # What one call stored stays together.
    assert [item["content"] for item in items[::2]] == ["same"] * 20
    assert sorted(item["content"] for item in items[1::2]) == ["a"] * 10 + ["b"] * 10


HARD = [
    {"role": "assistant", "content": None, "tool_calls": []},
    {"role": "user", "content": "   "},
    {"role": "tool", "content": "a\0b", "id": 2**63, "constructor": {"$json": "1"}},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "Mail ana@example.org, +47 22 33 44 55"},
            {"type": "input_image", "image_url": f"data:image/png;base64,{'AKIA4' * 80_000}"},
        ],
    },
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": f"g{'sk-A9' * 900}="},
]


def test_items_come_back_verbatim_with_personal_data_and_images(mesh) -> None:
    async def use(session):
        await session.add_items(HARD)
        return await session.get_items()

    assert asyncio.run(use(_session(mesh))) == HARD
    assert mesh.search("mail")[0].content.startswith("Mail ana@example.org, +47 22 33 44 55")


@pytest.mark.parametrize(
    ("options", "mail", "key"),
    [
        ({}, "ana@example.org", "[API_KEY]"),
        ({"program_data_redaction": "all"}, "[EMAIL]", "[API_KEY]"),
        ({"redaction": "off"}, "ana@example.org", "sk-proj-abcdefghijklmnop1234567890ABCDEFGH"),
    ],
    ids=["default", "all", "off"],
)
def test_secrets_are_masked_in_items_and_personal_data_if_a_setting_says_so(
    options, mail, key
) -> None:
    from langchain_core.messages import HumanMessage

    from memory_mesh.integrations.langchain import MemoryMeshChatHistory

    with MemoryMesh("memory://", embedder="none", **options) as mesh:
        history = MemoryMeshChatHistory(mesh, "s1")
        given = "I am ana@example.org, my key is sk-proj-abcdefghijklmnop1234567890ABCDEFGH"
        history.add_messages([HumanMessage(given)])
        text = f"I am {mail}, my key is {key}"
        assert [message.content for message in history.messages] == [text]
        assert mesh.get_all()[0].content == text


LESSON = {
    "situation": "a deployment failed",
    "error_pattern": "friday-deploy",
    "oversight": "nobody watched",
    "fix": "rolled back",
    "preventative_rule": "never deploy on Friday",
    "severity": "low",
    "applicable_scope": "deployments",
}


def test_a_session_keeps_what_became_a_claim_a_lesson_or_was_archived_elsewhere() -> None:
    lines = ["Ana works at Acme.", "Ana works at Initech.", "Ana works at Acme."]

    async def use(session, items):
        await session.add_items(items)
        return await session.get_items()

    with MemoryMesh("memory://", embedder="none", claims="auto") as mesh:
        items = [_user(line) for line in lines]
        assert asyncio.run(use(_session(mesh), items)) == items
        mesh.graph.archive(mesh.get_all()[0].id)
        assert asyncio.run(_session(mesh).get_items()) == items
        lesson = mesh.distill_lesson(LESSON)
        block = _user(lesson.wire_format)
        assert asyncio.run(use(_session(mesh, "s2"), [block])) == [block]


def test_a_transcript_of_an_earlier_version_is_read_and_continued(mesh) -> None:
    old = {"transcript_of": "openai-agents", "value": _user("hello")}
    mesh.scoped(session_id="s1").add_many([{"role": "user", "content": "hello", "metadata": old}])

    async def use(session):
        await session.add_items([_user("hello")])
        return await session.get_items()

    assert asyncio.run(use(_session(mesh))) == [_user("hello")] * 2


# --- the OpenAI Agents SDK ---

ITEMS = [
    {"role": "user", "content": "Weather in Oslo?"},
    {
        "type": "function_call",
        "call_id": "call_1",
        "name": "weather",
        "arguments": '{"city": "Oslo"}',
        "id": "fc_1",
    },
    {"type": "function_call_output", "call_id": "call_1", "output": "rain"},
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "role": "assistant",
        "type": "message",
        "id": "m1",
        "content": [{"type": "output_text", "text": "Rain.", "annotations": []}],
    },
    {"role": "user", "content": "Thanks"},
    {"role": "user", "content": "Thanks"},
]


def test_a_session_of_the_agents_sdk_behaves_as_its_own_session_does(mesh) -> None:
    from agents import SQLiteSession
    from agents.memory import Session

    from memory_mesh.integrations.openai_agents import MemoryMeshSession

    async def use(session):
        seen = [await session.get_items(), await session.pop_item()]
        await session.add_items(ITEMS[:3])
        await session.add_items(ITEMS[3:])
        await session.add_items([])
        seen += [
            await session.get_items(),
            await session.get_items(limit=2),
            await session.get_items(limit=0),
        ]
        seen += [await session.pop_item(), await session.get_items(limit=1)]
        await session.clear_session()
        return [*seen, await session.get_items()]

    assert isinstance(MemoryMeshSession(mesh, "s1"), Session)
    ours = asyncio.run(use(MemoryMeshSession(mesh, "s1")))
    theirs = SQLiteSession("s1")
    assert ours == asyncio.run(use(theirs))
    assert ours[2] == ITEMS
    theirs.close()


def test_an_agent_remembers_the_turns_before_in_its_session_and_not_those_of_another(mesh) -> None:
    from agents import Agent, Runner, set_tracing_disabled
    from agents.items import ModelResponse
    from agents.models.interface import Model
    from agents.usage import Usage
    from openai.types.responses import ResponseOutputMessage, ResponseOutputText

    from memory_mesh.integrations.openai_agents import MemoryMeshSession

    set_tracing_disabled(True)
    seen = []

    class Echo(Model):
        """Answers with the number of items that it was given."""

        async def get_response(self, system_instructions, input, *args, **options):
            seen.append([item["content"] for item in input if item.get("role") == "user"])
            text = ResponseOutputText(
                text=f"{len(input)} items", type="output_text", annotations=[]
            )
            message = ResponseOutputMessage(
                id="m", content=[text], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *args, **options):
            raise AssertionError

    async def talk():
        agent = Agent(name="a", model=Echo())
        for session, text in (
            ("s1", "My cat is Tom."),
            ("s1", "What is my cat's name?"),
            ("s2", "Hello"),
        ):
            await Runner.run(agent, text, session=MemoryMeshSession(mesh, session))

    asyncio.run(talk())
    assert seen == [["My cat is Tom."], ["My cat is Tom.", "What is my cat's name?"], ["Hello"]]
    assert mesh.search("cat Tom", limit=1)[0].content == "My cat is Tom."
