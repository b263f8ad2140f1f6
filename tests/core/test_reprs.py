"""The `repr` of what callers get: one short line."""

import dataclasses
import inspect
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import memory_mesh
from memory_mesh import MemoryMesh, MemoryRecord, SearchResult
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.model import Memory, Vector
from memory_mesh.core.text import short_repr

SHORT_ANYWAY = {"CacheStats", "UserCount"}


def results() -> set[type]:
    """Every dataclass that callers get: public names, and what the methods return."""
    public = {getattr(memory_mesh, name) for name in memory_mesh.__all__}
    methods = (
        method
        for name, method in inspect.getmembers(Mesh, inspect.isfunction)
        if not name.startswith("_")
    )
    pending = [*public, *(get_type_hints(method)["return"] for method in methods)]
    found: set[type] = set()
    while pending:
        one = pending.pop()
        pending += get_args(one)
        if isinstance(one, type) and dataclasses.is_dataclass(one):
            found.add(one)
    return found


def test_every_result_of_a_method_has_the_short_repr() -> None:
    found = results()
    assert {MemoryRecord, SearchResult} <= found
    assert {one.__name__ for one in found if one.__repr__ is not short_repr} == SHORT_ANYWAY


def test_the_repr_of_a_memory_is_one_line_without_what_is_empty_internal_or_long() -> None:
    memory = Memory(
        id="mem_1_a", content="first line\nsecond line " + "x" * 5000,
        created_at="2026-01-01T00:00:00Z", salt="a-salt", updated_at="2026-01-02T00:00:00Z",
        keywords=["first"], vector=Vector.of("m", [1.0]), fingerprint="a-fingerprint",
        tags=["a", "b", "c", "d"], metadata={"deep": {"er": 1}, "n": 1}, importance=1 / 3,
    )  # fmt: skip
    assert repr(memory) == (
        ("Memory(id='mem_1_a', content='first "
         "line\\nsecond line ") + ("x") * 36 + "…', metadata={'deep': <1 item>, 'n': 1}, "
                                               "created_at='2026-01-01T00:00:00Z', tags=['a', 'b', "
                                               "'c', … 4 in all], importance=0.333)"
    )  # fmt: skip


@pytest.mark.deep
def test_the_results_of_a_long_store_are_short_lines(tmp_path: Path) -> None:
    with MemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}", embedder="none") as mesh:
        texts = [f"text number {n} " + "long " * 2000 for n in range(12)]
        records = mesh.add_many(
            [(text, {"tags": ["a"] * 50, "note": "y" * 3000}) for text in texts]
        )
        mesh.update(records[0].id, content="another text " * 500)
        explained, id_ = mesh.explain("number"), records[0].id
        shown: list[Any] = [
            *records, *mesh.search("number"), explained, *explained.answers, *mesh.history(id_),
            *mesh.audit_log(), *mesh.audit_heads(), *mesh.verify(), mesh.stats(),
            mesh.heartbeat(force=True), mesh.extract(texts[0]), mesh.ingest_dir(tmp_path),
            mesh.delete_all(agent_id="YAMO_AGENT"),
        ]  # fmt: skip
    assert len(shown) > 40
    for one in shown:
        assert "\n" not in repr(one)
        assert len(repr(one)) < 800, repr(one)


@pytest.mark.parametrize("secret", ["salt", "fingerprint", "vector", "keywords"])
def test_internal_fields_are_never_shown(secret: str) -> None:
    assert secret in {field.name for field in dataclasses.fields(Memory)}
    assert not next(field for field in dataclasses.fields(Memory) if field.name == secret).repr
