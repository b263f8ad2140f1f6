"""The soak benchmark: what grows is named, what is lost is counted, and a run of a few seconds
has samples of every process."""

import json
from pathlib import Path

import pytest
from bench.picture import Line, time_chart
from bench.soak import alone
from bench.soak.__main__ import draw, run
from bench.soak.clients import Client, Embedded, check
from bench.soak.growth import LIMITS, Sample, growing, growth

from memory_mesh import MemoryMesh

SOUND = {"kept": 2, "lost": 0, "deleted": 1, "returned": 0, "broken": 0}


def samples(**slopes: float) -> list[Sample]:
    """Samples of a process: as at the start, but what is named grows by so much in each."""
    start = {
        "resident_mb": 100.0,
        "anon_mb": 60.0,
        "handles": 20,
        "threads": 8,
        "calls": 50,
        "p50_ms": 5.0,
        "p95_ms": 9.0,
        "cpu_ms": 4.0,
    }
    return [
        Sample(
            seconds=10.0 * at,
            **{name: value + at * slopes.get(name, 0) for name, value in start.items()},
        )  # type: ignore[arg-type]
        for at in range(120)
    ]


@pytest.mark.parametrize(
    ("name", "slope"), [("resident_mb", 0.2), ("handles", 0.1), ("threads", 0.05), ("cpu_ms", 0.2)]
)
def test_what_grows_is_named(name: str, slope: float) -> None:
    assert growing({"REST": growth(samples())}) == []
    assert growing({"REST": growth(samples(**{name: slope}))}) == [f"REST: {name}"]
    assert name in LIMITS


def test_what_grows_at_the_start_only_is_not_named() -> None:
    start = [
        Sample(
            seconds=0,
            resident_mb=40,
            anon_mb=20,
            handles=9,
            threads=1,
            calls=0,
            p50_ms=None,
            p95_ms=None,
            cpu_ms=None,
        )
    ] * 20
    assert growing({"REST": growth(start + samples())}) == []


def test_a_write_that_is_lost_and_a_deleted_memory_that_is_there_are_counted(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(file, embedder="none") as mesh:
        one, two, gone = (
            mesh.add(text).id
            for text in ("The lantern needs oil", "The wick is short", "The shelf is empty")
        )
        kept = {one: "The lantern needs oil", two: "The wick is short"}
        assert check(file, kept, [gone])["returned"] == 1
        mesh.erase(gone)
    assert check(file, kept, [gone]) == SOUND
    assert check(file, {**kept, two: "another text"}, [gone])["lost"] == 1
    assert check(file, {**kept, "mem_1_000000": "never stored"}, [gone])["lost"] == 1


def test_a_client_keeps_a_limited_number_of_memories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    monkeypatch.setattr("bench.soak.clients.KEPT", 3)
    monkeypatch.setattr("bench.soak.clients.REOPEN", 10)
    errors: list[str | None] = []
    client = Client(
        "one",
        Embedded(tmp_path / "memory.db", "one"),
        lambda _, error: errors.append(error),
        pause=0,
    )
    for _ in range(60):
        client.step()
    assert errors == [None] * 60
    assert client.deleted
    assert len(client.kept) <= 4
    assert check(tmp_path / "memory.db", dict(client.kept), client.deleted)["lost"] == 0


def test_the_chart_shows_the_largest_value() -> None:
    text = time_chart("Memory", [Line("REST", [(0.0, 80.0), (20.0, 230.0)])], minutes=20, y="MB")
    assert ">250<" in text
    assert ">20<" in text
    assert "<circle" not in text


@pytest.mark.deep
def test_a_few_seconds_of_load_lose_nothing_and_fail_nowhere(tmp_path: Path) -> None:
    result = run(tmp_path, 4 / 60, "sqlite", "hash")
    names = {"REST", "MCP over HTTP", "MCP over stdio", "process 1", "process 2"}
    assert result["samples"].keys() == names
    assert result["errors"] == {}
    assert all(result["calls"][name] for name in names), result["calls"]
    assert {**result["checked"], "kept": 0, "deleted": 0} == {**SOUND, "kept": 0, "deleted": 0}
    assert result["checked"]["kept"] > 5
    (tmp_path / "out").mkdir()
    draw(json.loads(json.dumps(result)), tmp_path / "out" / "soak.json")
    assert {file.name for file in (tmp_path / "out").iterdir()} == {
        f"soak_{name}.svg" for name in ("resident", "handles", "p50", "cpu")
    }


@pytest.mark.deep
@pytest.mark.parametrize("kind", alone.KINDS)
def test_one_kind_of_call_alone_is_sampled_and_fails_nowhere(tmp_path: Path, kind: str) -> None:
    samples, errors = alone.run(tmp_path, kind, 160, "hash")
    assert errors == []
    assert len(samples) == 40
    assert all(0 < one.anon_mb < one.resident_mb for one in samples)
