"""What LangChain and the OpenAI Agents SDK store and read back, with the real libraries."""

import asyncio

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
