"""`store --messages`: a conversation from a file or from standard input."""

import json
import sys
from io import StringIO
from pathlib import Path

import pytest

from .conftest import Cli

TALK = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi Ana"},
]
LINES = "\n".join(json.dumps(message) for message in TALK)


@pytest.mark.parametrize(
    "text", [LINES, f"\ufeff\n{LINES}\n\n", json.dumps(TALK), json.dumps(TALK, indent=2)]
)
def test_the_messages_of_a_file_are_stored_once_as_turns(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    file = tmp_path / "chat.jsonl"
    file.write_text(text, encoding="utf-8")
    assert (
        cli("store", "--messages", str(file), "--session", "s").out
        == "[MemoryMesh] Ingested 2 new messages\n"
    )
    more = f"{LINES}\n" + json.dumps({"role": "user", "content": "Bye"})
    monkeypatch.setattr(sys, "stdin", StringIO(more))
    answer = cli("store", "--messages", "-", "--session", "s", "--json")
    assert [(one["turn"], one["content"]) for one in json.loads(answer.out)["results"]] == [
        (3, "Bye")
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("hello", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ('[{"role": "robot", "content": "x"}]', "role is 'robot'"),
        ("\udc80", "not JSON"),
    ],
)
def test_a_file_without_messages_is_refused_and_nothing_is_stored(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, text: str, reason: str
) -> None:
    monkeypatch.setattr(sys, "stdin", StringIO(text))
    answer = cli("store", "--messages", "-")
    assert (answer.code, answer.out) == (2, "")
    assert reason in answer.err
    assert "No such file" in cli("store", "--messages", "nowhere.json").err
    assert (
        "cannot be used with --messages" in cli("store", "Hello", "--messages", "nowhere.json").err
    )
