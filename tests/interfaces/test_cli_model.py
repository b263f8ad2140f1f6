"""`memory-mesh model`: its output, and that a second fetch does nothing."""

import json
import shutil
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

import pytest

from memory_mesh.models import model_files, onnx_graph
from memory_mesh.models.model_files import GRAPHS, HASHES, JUDGE, MODEL, PUBLISHED, read_model


@pytest.fixture
def fetched(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """A cache of its own, small files that stand for the model's, and each fetch of them."""
    small, fetches = tmp_path / "small", []
    small.mkdir()
    for model in (MODEL, JUDGE):
        monkeypatch.setitem(HASHES, GRAPHS[model], sha256(b"a graph").hexdigest())
    for name in PUBLISHED:
        (small / name).write_text(f"the {name} of a test")
        monkeypatch.setitem(HASHES, name, sha256((small / name).read_bytes()).hexdigest())

    def way(into: Path) -> str:
        fetches.append(into)
        shutil.copytree(small, into, dirs_exist_ok=True)
        return ""

    monkeypatch.setattr(model_files, "SOURCES", {"a way": way})
    monkeypatch.setattr(model_files, "find_spec", lambda package: None)
    monkeypatch.setattr(onnx_graph, "build", lambda weights, progress, change: b"a graph")
    monkeypatch.setenv("MEMORY_MESH_CACHE_DIR", str(tmp_path / "cache"))
    return fetches


def test_a_missing_model_is_told_with_its_remedy_and_nothing_is_fetched(cli, fetched, tmp_path):
    said = cli("model", "status")
    assert said.code == 1
    assert said.out.startswith("[MemoryMesh] memory-mesh/MiniLM-everyday-2 is missing\n")
    assert "run `memory-mesh model fetch`" in said.out
    assert str(tmp_path / "cache") in said.out
    assert fetched == []
    assert not (tmp_path / "cache").exists()


def test_a_fetched_model_is_ready_and_a_second_fetch_does_nothing(cli, fetched):
    first = cli("model", "fetch")
    assert (first.code, first.err.count("\n")) == (0, 1)
    assert first.err.startswith(
        "[MemoryMesh] memory-mesh is downloading memory-mesh/MiniLM-everyday-2 (84 MB) to "
    )
    assert first.out.startswith("[MemoryMesh] memory-mesh/MiniLM-everyday-2 is ready\n")
    assert cli("model", "fetch") == replace(first, err="") == cli("model", "status")
    assert len(fetched) == 1


def test_model_status_prints_the_same_as_json(cli, fetched, tmp_path):
    cli("model", "fetch")
    told = json.loads(cli("model", "status", "--json").out)
    assert told["state"] == "ready"
    assert told["sums"] is True
    assert Path(told["folder"]).is_relative_to(tmp_path / "cache")
    assert told["size"] == read_model(Path(told["folder"])).size


def test_a_damaged_model_is_told_and_mended(cli, fetched, tmp_path):
    cli("model", "fetch")
    next((tmp_path / "cache").rglob(GRAPHS[MODEL])).write_bytes(b"damaged")
    assert "is wrong" in cli("model", "status").out
    assert cli("model", "fetch").code == 0
    assert len(fetched) == 2


def test_a_fetch_that_fails_is_one_line_with_each_reason(cli, fetched, monkeypatch):
    monkeypatch.setattr(model_files, "SOURCES", {"a way": lambda into: "no network"})
    said = cli("model", "fetch")
    assert said.code == 13
    begun, failed = said.err.splitlines()
    assert begun.startswith("[MemoryMesh] memory-mesh is downloading ")
    assert failed.startswith("[MemoryMesh Error] ")
    assert "a way: no network" in failed


def test_another_embedder_is_told(cli, fetched, monkeypatch):
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")
    assert "embedder is hash, by environment" in cli("model", "status").out


def test_a_terminal_sees_a_bar_and_the_same_answer(cli, fetched):
    said = cli("model", "fetch", terminal=True)
    assert "fetching" in said.err
    assert "is ready" in said.out


def test_the_doctor_looks_at_the_model(cli, fetched, monkeypatch):
    def model() -> dict[str, object]:
        checks = json.loads(cli("doctor", "--json").out)["results"]
        return next(check for check in checks if check["name"] == "model")

    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    assert model()["ok"] is False
    assert model()["remedy"] == "run `memory-mesh model fetch`"
    cli("model", "fetch")
    assert model()["ok"] is True
    assert len(fetched) == 1
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    assert model()["detail"] == "none is needed: embedder is none"


# --- the judge of pairs ---


def test_a_fetch_makes_the_judge_too_and_the_status_tells_it(cli, fetched, tmp_path):
    assert "judge   memory-mesh/pairs-1 is missing" in cli("model", "status").out
    assert "memory-mesh/pairs-1 is ready" in cli("model", "fetch").out
    assert json.loads(cli("model", "status", "--json").out)["judge"] == "ready"
    next((tmp_path / "cache").rglob(GRAPHS[JUDGE])).unlink()
    assert "memory-mesh/pairs-1 is missing" in cli("model", "status").out
    assert "memory-mesh/pairs-1 is ready" in cli("model", "fetch").out
    assert len(fetched) == 2


def test_a_judge_that_is_switched_off_is_not_fetched_for(cli, fetched, tmp_path, monkeypatch):
    cli("model", "fetch")
    next((tmp_path / "cache").rglob(GRAPHS[JUDGE])).unlink()
    monkeypatch.setenv("MEMORY_MESH_UPDATE_JUDGE", "off")
    assert cli("model", "fetch").code == 0
    assert len(fetched) == 1


def test_the_doctor_tells_of_a_judge_that_cannot_be_used(cli, fetched, tmp_path, monkeypatch):
    def judge() -> list[dict[str, object]]:
        checks = json.loads(cli("doctor", "--json").out)["results"]
        return [check for check in checks if check["name"] == "judge"]

    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "local")
    cli("model", "fetch")
    assert judge() == []
    next((tmp_path / "cache").rglob(GRAPHS[JUDGE])).write_bytes(b"damaged")
    [check] = judge()
    assert (check["ok"], check["remedy"]) == (False, "run `memory-mesh model fetch`")
    assert check["detail"] == (
        "memory-mesh/pairs-1 is wrong: changes of memories are not recognised"
    )
    monkeypatch.setenv("MEMORY_MESH_UPDATE_JUDGE", "off")
    assert judge() == []
