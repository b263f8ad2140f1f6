"""Proving an erasure: every place is looked at before and after, and what is left is found."""

from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.model import ErasureCheck, Forgotten
from memory_mesh.flows.upkeep import forget
from memory_mesh.models import HashingEmbedder

EVERYWHERE = {
    "memories and skills", "history", "passages and their vectors", "links and conflicts",
    "counters and sightings", "waiting events", "digests, reflections and lessons",
    "search by words and vectors", "cached search", "texts of rows and audit blocks", "export",
    "files of notes", "files of traces", "bytes of the files of the store and its index",
}  # fmt: skip
NOT_HERE = {"waiting events", "files of notes", "files of traces"}


class Narrow(HashingEmbedder):
    """As a real model: it sees the first words of a text only."""

    window = 128


def opened(tmp_path: Path, **options: object) -> MemoryMesh:
    return MemoryMesh(
        f"sqlite:///{tmp_path / 'memory.db'}", embedder=Narrow(), agent_id="ann", **options
    )


def fill(mesh: MemoryMesh) -> str:
    """A long memory with an older revision, a link, a sighting, uses and a reflection."""
    id_ = mesh.add("The quetzal nests in the cloud forest.", {"session_id": "walk"}).id
    mesh.update(
        id_,
        content="The quetzal nests above the river. "
        + "Its tail is described here at length. " * 60,
    )
    mesh.graph.link(id_, mesh.add("Another bird sings.").id, "related")
    mesh.scoped(agent_id="bob").add(mesh.get(id_).content)
    mesh.search("where does the quetzal nest?")
    mesh.reflect("quetzal", lookback=10)
    return id_


def places(check: ErasureCheck | None) -> dict[str, tuple[int, int]]:
    assert check is not None
    return {place.name: (place.before, place.after) for place in check.places}


@pytest.mark.req("MESH-011")
def test_every_place_is_looked_at_before_and_after(tmp_path: Path) -> None:
    with opened(tmp_path) as mesh:
        proof = mesh.erase(fill(mesh), verify=True)
        looked = places(proof.check)
        assert looked.keys() == EVERYWHERE
        assert {name for name, (before, _) in looked.items() if not before} == NOT_HERE
        assert {after for _, after in looked.values()} == {0}
        assert proof.check
        assert proof.check.clean
        assert proof.check.texts == proof.check.found_before > 1


@pytest.mark.req("MESH-011")
def test_what_an_erasure_leaves_is_found_in_every_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forget, "delete", lambda *_, **__: Forgotten())
    with opened(tmp_path) as mesh:
        id_ = fill(mesh)
        check = mesh.erase(id_, verify=True).check
        looked = places(check)
        assert {
            name for name, (before, after) in looked.items() if after < before or not after
        } == NOT_HERE
        assert check
        assert not check.clean
        assert (id_, "cached search") in check.found
        assert any(place.startswith("memory.db") for _, place in check.found)


def test_words_of_another_memory_or_of_a_search_are_not_taken_for_what_was_erased(
    tmp_path: Path,
) -> None:
    with opened(tmp_path) as mesh:
        text = "The weather is fine today"
        erased, kept = mesh.add(text).id, mesh.add(f"{text}, says Ana").id
        check = mesh.erase(erased, verify=True).check
        assert check
        assert (check.shared, check.clean) == (1, True)
        assert mesh.get(kept)


def test_looking_writes_nothing(tmp_path: Path) -> None:
    with opened(tmp_path) as mesh:
        id_ = mesh.add("The quetzal nests in the cloud forest.").id
        mesh.erase(id_, verify=True)
        assert {block.operation_type for block in mesh.audit_log(auditor="test")} == {"retain"}
        proof = mesh.erase("mem_1_ffffff", verify=True)
        assert (proof.memories, proof.check and proof.check.texts) == ((), 0)
