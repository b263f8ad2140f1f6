"""Reading the audit trail obeys scope: a block shows its text only to a reader that may see what
the text quotes."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.audit import ERASED, WITHHELD, Sound, parse_many, verify_export
from memory_mesh.core.errors import InvalidInput, StoreReadOnly
from memory_mesh.core.model import Block, Kind
from memory_mesh.stores.ram import RamStore

from .house import House, whole

SECRET = "zebra"
LESSON = {
    "situation": f"The {SECRET} escaped.", "error_pattern": "gate_open",
    "oversight": "nobody looked", "fix": "closed it", "preventative_rule": f"Lock the {SECRET} in.",
    "severity": "high", "applicable_scope": "zoos",
}  # fmt: skip


def shown(mesh: MemoryMesh, **options: object) -> str:
    """Everything that log and export show, in all formats."""
    log = "".join(
        f"{block.yamo_text}{json.dumps(block.metadata)}" for block in mesh.audit_log(100, **options)
    )
    return (
        log
        + "".join(mesh.audit_export(**options))
        + "".join(mesh.audit_export(as_json=False, **options))
    )


def blocks_of(mesh: MemoryMesh, ref: str) -> list[Block]:
    return [block for block in mesh.audit_log(100) if block.ref == ref]


# --- memories ---


@pytest.mark.parametrize("kind", ["agent", "session"])
def test_the_text_of_a_private_memory_is_withheld_from_another_agent(
    house: House, kind: str
) -> None:
    ann, bob = house.mesh("ann", session_id="s"), house.mesh("bob", session_id="s")
    ann.add(f"The {SECRET} sleeps.", {"type": kind, "tags": [f"{SECRET}-tag"]})
    ann.add("Tea is at four.")
    assert f"{SECRET} sleeps" in shown(ann)
    assert f"{SECRET}-tag" in shown(ann)
    assert SECRET not in shown(bob)
    assert "Tea is at four." in shown(bob)  # a shared memory is shown


def test_the_text_of_a_session_is_withheld_from_the_same_agent_in_another(house: House) -> None:
    house.mesh(session_id="s").add(f"The {SECRET} sleeps.", {"type": "session"})
    assert SECRET in shown(house.mesh(session_id="s"))
    assert SECRET not in shown(house.mesh(session_id="t"))
    assert SECRET not in shown(house.mesh())


def test_a_guess_of_a_withheld_text_cannot_be_tested_against_its_hash(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    memory = ann.add(f"The {SECRET} sleeps.", {"type": "agent"})
    (own,), (withheld,) = blocks_of(ann, memory.id), blocks_of(bob, memory.id)
    # The hash of a block is a plain one of its text, in which everything can be guessed but the
    # hash of the content.
    assert sha256(own.yamo_text.encode()).hexdigest() == withheld.block_hash
    assert own.content_hash is not None
    assert own.content_hash in own.yamo_text
    assert withheld.content_hash is None
    assert own.content_hash in "".join(ann.audit_export())
    assert own.content_hash not in "".join(bob.audit_export())
    assert all(isinstance(verdict, Sound) for verdict in verify_export(bob.audit_export()))


def test_another_user_sees_no_block_at_all(house: House) -> None:
    house.mesh(user_id="u").add(f"The {SECRET} sleeps.")
    assert SECRET in shown(house.mesh(user_id="u"))
    for other in ("v", None):
        assert shown(house.mesh(user_id=other)) == ""
        assert SECRET not in shown(house.mesh(user_id=other), auditor="eve")


def test_a_withheld_block_keeps_everything_that_chains_it(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    memory = ann.add(f"The {SECRET} sleeps.", {"type": "agent"})
    (full,), (partial) = blocks_of(ann, memory.id), blocks_of(bob, memory.id)
    assert partial == [replace(full, yamo_text=WITHHELD, metadata=None, content_hash=None)]
    # Nothing is stored.
    assert [Block.of(row).yamo_text for row in house.store.find(Kind.BLOCK)] == [full.yamo_text]


def test_a_text_from_before_a_memory_was_shared_is_withheld(house: House) -> None:
    ann, bob = house.mesh("ann", session_id="s"), house.mesh("bob")
    memory = ann.add(f"The {SECRET} sleeps.", {"type": "session"})
    ann.update(memory.id, content="The animal sleeps.", metadata={"type": "global"})
    ann.pin(memory.id)
    assert SECRET in shown(ann)
    for other in (bob, house.mesh("ann", session_id="t")):
        assert SECRET not in shown(other)
        assert "The animal sleeps." in shown(other)
        assert SECRET not in whole(other.history(memory.id))
    assert SECRET in whole(ann.history(memory.id))


def test_a_lesson_is_shown_to_the_readers_of_its_source(house: House) -> None:
    ann = house.mesh("ann", session_id="s")
    ann.add(f"The {SECRET} escaped.", {"type": "session", "status": "error", **LESSON})
    done = ann.distill()
    assert len(done.learnt) == 1
    assert SECRET in whole(done)
    assert f"Lock the {SECRET} in." in shown(ann)
    for other in (house.mesh("bob"), house.mesh("ann", session_id="t")):
        assert SECRET not in shown(other)
        assert SECRET not in whole(other.distill())
        assert SECRET not in whole(
            other.heartbeat(jobs=["distillation"], force=True),
            other.heartbeat_log(),
            other.verify(),
        )


def test_a_lesson_that_is_shared_is_shown(house: House) -> None:
    house.mesh("ann").distill_lesson(LESSON)
    assert f"Lock the {SECRET} in." in shown(house.mesh("bob"))


def test_tombstones_and_erasures_stay_what_they_are(house: House) -> None:
    ann, bob = house.mesh("ann"), house.mesh("bob")
    memory = ann.add(f"The {SECRET} sleeps.", {"type": "agent"})
    ann.delete(memory.id)
    for mesh in (ann, bob):
        erasure, tombstone = blocks_of(mesh, memory.id)
        assert tombstone.yamo_text == ERASED
        assert "erase_memory_for_good" in erasure.yamo_text
        assert SECRET not in shown(mesh)


def test_a_text_whose_memory_is_gone_without_an_erasure_is_withheld(house: House) -> None:
    ann = house.mesh("ann")
    memory = ann.add(f"The {SECRET} sleeps.", {"type": "agent"})
    assert SECRET in shown(ann)
    house.store.apply(deletes=[house.memory(memory.id).row().key])
    assert SECRET not in shown(ann)


# --- queries ---


def test_a_query_is_shown_to_the_same_agent_and_session(house: House) -> None:
    with house.mesh("ann", session_id="s") as ann:
        ann.search(f"where is the {SECRET}?", filter=f"project = '{SECRET}s'")
        assert f"where is the {SECRET}?" in shown(ann)
        assert f"{SECRET}s" in shown(ann)
    for other in (
        house.mesh("ann", session_id="t"),
        house.mesh("ann"),
        house.mesh("bob", session_id="s"),
    ):
        assert SECRET not in shown(other)


def test_a_query_without_a_session_is_shown_to_the_same_agent(house: House) -> None:
    with house.mesh("ann") as ann:
        ann.search(f"where is the {SECRET}?")
    assert SECRET in shown(house.mesh("ann", session_id="s"))
    assert SECRET not in shown(house.mesh("bob"))


def test_a_query_of_a_session_given_to_the_call_belongs_to_that_session(house: House) -> None:
    with house.mesh("ann") as ann:
        ann.search(f"where is the {SECRET}?", session_id="s")
    assert SECRET in shown(house.mesh("ann", session_id="s"))
    assert SECRET not in shown(house.mesh("ann"))


def test_a_checkpoint_of_searches_is_shown_to_every_agent(house: House) -> None:
    with house.mesh("ann", recall_retention_days=1) as ann:
        ann.search("tea")
        ann.audit_heads()
        house.clock.ms += 2 * 86_400_000
        ann.heartbeat(jobs=["retention"], force=True)
    assert "through_block" in shown(house.mesh("bob"))


# --- exports ---


def test_an_export_with_withheld_texts_keeps_its_lines_and_the_wire_format_leaves_them_out(
    house: House,
) -> None:
    house.mesh("ann").add(f"The {SECRET} sleeps.", {"type": "agent"})
    house.mesh("ann").add("Tea is at four.")
    lines = [json.loads(line) for line in house.mesh("bob").audit_export()]
    assert [line["yamo_text"] == WITHHELD for line in lines] == [True, False]
    assert lines[0]["metadata"] is None
    assert len(parse_many("".join(house.mesh("bob").audit_export(as_json=False)))) == 1
    (sound,) = verify_export(house.mesh("bob").audit_export())
    assert isinstance(sound, Sound)
    assert sound.withheld == 1
    forged = [
        line.replace(lines[0]["digest"], "0" * 64) for line in house.mesh("bob").audit_export()
    ]
    assert not isinstance(verify_export(forged)[0], Sound)


# --- the auditor ---


def test_an_auditor_sees_all_and_is_logged_first(house: House) -> None:
    ann, bob = house.mesh("ann", session_id="s"), house.mesh("bob")
    ann.add(f"The {SECRET} sleeps.", {"type": "session"})
    assert SECRET not in whole(bob.audit_log(), list(bob.audit_export()))
    for reads in (lambda: bob.audit_log(auditor="eve"), lambda: bob.audit_export(auditor="eve")):
        before = len(house.blocks("bob"))
        answer = reads()
        (block,) = house.blocks("bob")[before:]  # also before the export is iterated
        assert SECRET in whole(list(answer))
        assert (block.operation_type, block.metadata, block.ref) == (
            "retain",
            {"action": "audit_read"},
            None,
        )
        assert "\n  auditor;eve;\n" in block.yamo_text
    assert house.sound()
    assert "auditor;eve;" in shown(ann)  # the owner of the text sees who read it
    assert SECRET not in shown(bob)  # it holds for one call


def test_the_block_of_an_audit_is_written_also_with_blocks_disabled(house: House) -> None:
    house.mesh("bob", enable_yamo=False).audit_log(auditor="eve")
    assert len(house.blocks("bob")) == 1


def test_an_auditor_is_refused_where_nothing_can_be_logged(house: House) -> None:
    class ReadOnly(RamStore):
        """A store that cannot be written to."""

        def apply(self, *args: object, **options: object) -> object:  # type: ignore[override]
            raise StoreReadOnly("read-only")

    store = ReadOnly()
    mesh = MemoryMesh(store=store, agent_id="bob")
    assert mesh.audit_log() == []
    with pytest.raises(StoreReadOnly):
        mesh.audit_log(auditor="eve")
    with pytest.raises(StoreReadOnly):
        mesh.audit_export(auditor="eve")


@pytest.mark.parametrize("name", ["", "  ", 7, "eve\0", "x" * 300])
def test_an_auditor_needs_a_name(house: House, name: object) -> None:
    mesh = house.mesh()
    for reads in (mesh.audit_log, mesh.audit_export):
        with pytest.raises(InvalidInput, match="auditor"):
            reads(auditor=name)  # type: ignore[arg-type]
    assert house.blocks() == []


def test_the_name_of_an_auditor_is_redacted_and_cannot_forge_a_line(house: House) -> None:
    house.mesh().audit_log(auditor="eve@example.com;x\n  action;add")
    (block,) = house.blocks()
    assert "auditor;[EMAIL],x   action,add;" in block.yamo_text
    assert house.sound()
    assert all(isinstance(verdict, Sound) for verdict in verify_export(house.mesh().audit_export()))
