"""The commands of hooks: what waits, a retry that fails, and what doctor says of dead letters."""

import json
import socket

import pytest


@pytest.mark.req("GRAPH-88")
def test_a_hook_that_fails_breaks_no_command_and_a_retry_says_that_something_waits(
    cli, home, monkeypatch
):
    with socket.socket() as unused:  # bound, so that nobody else listens there
        unused.bind(("127.0.0.1", 0))
        monkeypatch.setenv(
            "MEMORY_MESH_WRITETHROUGH", f"http://127.0.0.1:{unused.getsockname()[1]}/key-in-path"
        )
        refused = cli("store", "--content", "The key rotates.")
        assert refused.code == 3
        assert "set writethrough_allow_local = true" in refused.err
        monkeypatch.setenv("MEMORY_MESH_WRITETHROUGH_ALLOW_LOCAL", "true")
        stored = cli("store", "--content", "The key rotates.")
        assert (stored.code, stored.err) == (0, "")
        (hook,) = json.loads(cli("hooks", "status", "--json").out)["results"]
        assert (hook["configured"], hook["waiting"], hook["dead_letters"]) == (True, 1, 0)
        said = cli("hooks", "retry")
        assert (said.code, said.err) == (1, "")
        assert said.out.startswith(
            "[MemoryMesh] 1 hook, 1 event waiting, 0 dead letters\nwebhook 127.0.0.1 "
        )
        assert "key-in-path" not in said.out
        assert "1 events of hooks" in cli("doctor").out
    letters = home / "memory.db-hooks" / "dead-letters.jsonl"
    letters.write_text('{"hook": "webhook of another"}\nhalf a li')
    broken = json.loads(cli("doctor", "--json").out)["results"][-1]
    assert (broken["name"], broken["ok"], broken["detail"]) == (
        "pending",
        False,
        "1 events of hooks, 1 dead letters of hooks",
    )
