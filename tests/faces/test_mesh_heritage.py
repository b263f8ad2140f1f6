"""Heritage: what led to a memory, bounded, redacted, in order."""

import pytest

from memory_mesh import HeritageChain, MemoryMesh
from memory_mesh.core.errors import InvalidInput, NotFound

from .house import House

CHAIN = {
    "intent_chain": ["plan", "build", "ship"],
    "hypotheses": ["the cache is stale"],
    "rationales": ["two reports", "one log"],
}
STORED = {
    "intentChain": CHAIN["intent_chain"],
    "hypotheses": CHAIN["hypotheses"],
    "rationales": CHAIN["rationales"],
}


@pytest.mark.req("MESH-091", "MESH-033", "MESH-071")
@pytest.mark.parametrize(
    "given", [CHAIN, STORED, HeritageChain.parse(CHAIN)], ids=["ours", "the document's", "value"]
)
def test_a_heritage_reads_back_in_order_under_the_documents_keys(
    house: House, mesh: MemoryMesh, given: object
) -> None:
    id_ = mesh.add("text").id
    assert mesh.insert_heritage(id_, given) is None  # type: ignore[arg-type, func-returns-value]
    record = mesh.get(id_)
    assert record
    assert record.heritage_chain == STORED
    assert list(record.heritage_chain) == ["intentChain", "hypotheses", "rationales"]
    assert mesh.search("text")[0].heritage_chain == STORED
    assert mesh.explain("text").answers[0].result.heritage_chain == STORED
    assert [change.action for change in mesh.history(id_)] == ["add", "heritage"]
    mesh.insert_heritage(id_, given)  # type: ignore[arg-type]
    assert len(mesh.history(id_)) == 2, "nothing changed"
    assert house.sound()


@pytest.mark.req("MESH-072", "MESH-068")
def test_of_long_lists_the_last_entries_are_kept(house: House) -> None:
    long = [f"step {n}" for n in range(9)]
    for mesh, kept in ((house.mesh(), long[-5:]), (house.mesh(max_heritage_depth=2), long[-2:])):
        id_ = mesh.add("text").id
        mesh.insert_heritage(id_, {"intent_chain": long})
        assert house.memory(id_).heritage_chain == {
            "intentChain": kept,
            "hypotheses": [],
            "rationales": [],
        }


@pytest.mark.req("MESH-091")
def test_an_unknown_or_invisible_memory_raises(house: House, mesh: MemoryMesh) -> None:
    hidden = house.mesh("bob").add("text", {"type": "agent"}).id
    for id_ in ("mem_1_abcdef", hidden):
        with pytest.raises(NotFound):
            mesh.insert_heritage(id_, CHAIN)
    assert house.memory(hidden).heritage_chain is None


@pytest.mark.parametrize(
    "wrong",
    [
        *({}, None, "x", [], {5: ["a"]}, {"intents": ["a"]},
          {"intent_chain": ["a"], "intentChain": ["b"]}),
        *({"intent_chain": wrong}
          for wrong in ("plan", [""], [5], ["x" * 4001], ["a"] * 1001, ["a\0"])),
    ],
)  # fmt: skip
def test_anything_but_lists_of_texts_is_refused(
    house: House, mesh: MemoryMesh, wrong: object
) -> None:
    id_ = mesh.add("text").id
    with pytest.raises(InvalidInput, match="heritage"):
        mesh.insert_heritage(id_, wrong)  # type: ignore[arg-type]
    assert house.memory(id_).heritage_chain is None


def test_a_heritage_is_redacted_and_erased_with_its_memory(house: House, mesh: MemoryMesh) -> None:
    id_ = mesh.add("text").id
    mesh.insert_heritage(id_, {"rationales": ["asked by bob@example.org"]})
    assert house.memory(id_).heritage_chain == {
        "intentChain": [],
        "hypotheses": [],
        "rationales": ["asked by [EMAIL]"],
    }
    mesh.delete(id_)
    assert house.sound()


@pytest.mark.req("MESH-071", "MESH-068")
def test_tracking_records_the_heritage_of_what_is_added(house: House) -> None:
    said = {
        "intent": "ship",
        "hypothesis": "it holds",
        "rationale": "tests passed",
        "heritage": {"intent_chain": ["plan", "build"]},
    }
    plain = house.mesh().add("untracked", said)
    assert plain.heritage_chain is None
    mesh = house.mesh(enable_heritage_tracking=True, max_heritage_depth=2)
    chain = {
        "intentChain": ["build", "ship"],
        "hypotheses": ["it holds"],
        "rationales": ["tests passed"],
    }
    assert mesh.add("tracked", said).heritage_chain == chain
    assert mesh.add("nothing to track").heritage_chain is None
    assert mesh.add("one", {"rationale": "first"}, key="k").heritage_chain
    replaced = mesh.add("two", {"rationale": "second"}, key="k")
    assert replaced.heritage_chain == {
        "intentChain": [],
        "hypotheses": [],
        "rationales": ["second"],
    }
    with pytest.raises(InvalidInput, match="heritage"):
        mesh.add("wrong", {"heritage": ["plan"]})
    assert house.sound()
