"""Every interface with the defaults that users get: the local model, the learnt ranker and a file
in the home folder.

Most other tests use no embedder, or a fake one, because the model takes a moment to load.
"""

import asyncio
import json
from contextlib import redirect_stdout
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from memory_mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.interfaces.cli.main import run

FERRY = "The ferry to the island departs at noon."
FACTS = [
    FERRY,
    "Ana is allergic to peanuts.",
    "The deploy key rotates on Mondays.",
    "The cat sleeps on the radiator.",
]
# Has no word in common with the memory that answers it: only the vectors can find it.
QUESTION = "When does our boat leave?"
BILLING = {
    "situation": "The deploy of the billing service failed with 401.",
    "error_pattern": "token_expired",
    "oversight": "Nobody looked at the expiry of the token.",
    "fix": "A new token was made by hand.",
    "preventative_rule": "Refresh the token before a deploy.",
    "severity": "high",
    "applicable_scope": "deploys",
}
OVEN = {
    **BILLING,
    "situation": "The cake burnt in the oven.",
    "error_pattern": "burnt",
    "preventative_rule": "Set a timer when baking.",
    "applicable_scope": "kitchen",
}
FLAGS = {"error_pattern": "pattern", "preventative_rule": "rule", "applicable_scope": "scope"}

pytestmark = pytest.mark.usefixtures("shipped_defaults")


def command(*words: str) -> str:
    with redirect_stdout(TextIOWrapper(BytesIO(), encoding="utf-8")) as out:
        assert run([*words]) == 0
    out.flush()
    return out.buffer.getvalue().decode()


def test_an_agent_that_sends_its_history_again_finds_each_turn_once() -> None:
    history = [{"role": "user", "content": FERRY}, {"role": "assistant", "content": "Noted."}]
    with MemoryMesh(session_id="trip") as mesh:
        assert [record.turn for record in mesh.add(history)] == [1, 2]
        history.append({"role": "user", "content": "Thanks"})
        assert [record.turn for record in mesh.add(history)] == [3]
        hits = mesh.search(QUESTION)
        assert [(hit.content, hit.speaker, hit.turn) for hit in hits[:1]] == [(FERRY, "user", 1)]
        assert mesh.stats().total_memories == 3


def test_the_mesh_finds_by_meaning_with_the_local_model_and_the_learnt_ranker(
    shipped_defaults: Path,
) -> None:
    with MemoryMesh() as mesh:
        mesh.add_many([(fact, None) for fact in FACTS])
        explained = mesh.explain(QUESTION)
        first, *others = mesh.search(QUESTION)
    assert (explained.ranker, explained.model) == ("learnt", "memory-mesh/MiniLM-everyday-2")
    assert first.content == FERRY
    assert 0.3 < first.score < 1
    assert all(other.score < first.score for other in others)
    assert (shipped_defaults / "memory.db").is_file()


def test_the_mesh_finds_lessons_by_meaning() -> None:
    with MemoryMesh() as mesh:
        mesh.distill_lesson(BILLING)
        mesh.distill_lesson(OVEN)
        assert mesh.query_lessons("cook cookies")[0].preventative_rule == OVEN["preventative_rule"]
        assert (
            mesh.query_lessons("credentials are out of date")[0].preventative_rule
            == BILLING["preventative_rule"]
        )


def test_without_a_language_model_extract_stores_the_whole_text_which_meaning_finds() -> None:
    with MemoryMesh() as mesh:
        done = mesh.extract(FERRY)
        assert done.stored_whole == "no language model is set"
        assert [result.content for result in mesh.search(QUESTION)] == [FERRY]


def test_the_async_mesh_finds_by_meaning() -> None:
    async def answers() -> list[str]:
        async with AsyncMemoryMesh() as mesh:
            await mesh.add_many([(fact, None) for fact in FACTS])
            await mesh.distill_lesson(OVEN)
            assert [lesson.severity for lesson in await mesh.query_lessons("cook cookies")] == [
                "high"
            ]
            return [result.content for result in await mesh.search(QUESTION)]

    assert asyncio.run(answers())[0] == FERRY


def test_the_command_line_finds_by_meaning() -> None:
    for fact in FACTS:
        command("store", "--content", fact)
    first, *_ = json.loads(command("search", QUESTION, "--json"))["results"]
    assert first["content"] == FERRY
    assert "no language model is set" in command(
        "extract", "--content", "Ana said that the deploy key rotates on Fridays."
    )


def test_the_command_line_finds_lessons_by_meaning() -> None:
    for lesson in (BILLING, OVEN):
        command(
            "distill",
            *(
                word
                for name, text in lesson.items()
                for word in (f"--{FLAGS.get(name, name)}", text)
            ),
        )
    assert OVEN["preventative_rule"] in command("lessons", "cook cookies").splitlines()[1]
