"""Signed heads: someone who can write to the database, and knows everything but the key, cannot
change a chain unnoticed.

The attacker uses our own code to append blocks with correct numbers, hashes and seals.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Sound, blocks
from memory_mesh.core.audit.chain import SigningKey
from memory_mesh.core.errors import InvalidInput, SettingsError, StoreCorrupt
from memory_mesh.core.model import Block, Head, Key, Kind, Reader, Row, iso
from memory_mesh.core.options import Options
from memory_mesh.flows.audit import audit as trail
from memory_mesh.flows.audit.chains import blocks as chain_blocks
from memory_mesh.flows.audit.chains import head_of, new_entry, own_chain
from memory_mesh.flows.context import Context, Files
from memory_mesh.flows.learning import heartbeat
from memory_mesh.flows.search import usage
from memory_mesh.index import LocalIndex
from memory_mesh.stores import open_store
from memory_mesh.stores.audit_files import AuditKeyFile
from memory_mesh.testing.fakes import FakeClock, no_pause, seeded_ids

from .adding import add_many

EVE = SigningKey(b"e" * 32)


@dataclass
class Scene:
    """A store and the key file of its owner."""

    context: Context
    key_file: Path

    @property
    def chain(self) -> str:
        return own_chain(self.context)

    @property
    def head(self) -> Head:
        head = head_of(self.context, self.chain)
        assert head
        return head

    def add(self, *contents: str, context: Context | None = None) -> None:
        add_many(context or self.context, [(content, {}) for content in contents])

    def search(self, *queries: str) -> None:
        for query in queries:
            usage.log_search(
                self.context, query=query, limit=1, filter=None, ms=self.context.clock(), results=[]
            )
        usage.flush(self.context)

    def verdict(self, chain: str | None = None) -> Sound | Broken:
        return trail.verify(self.context, chain or self.chain)

    def with_keys(self, path: Path) -> "Scene":
        return replace(self, context=self.context.with_files(signing=AuditKeyFile(path)))

    def forge(
        self, *, key: SigningKey | None, named: SigningKey | None, chain: str | None = None
    ) -> None:
        """Append a well-formed block that names the key `named`, under a head signed with `key`."""
        chain = chain or self.chain
        head, ms, agent = (
            head_of(self.context, chain),
            self.context.clock(),
            str(audit.owner_of(chain)[1]),
        )
        assert head
        operation = "recall" if audit.of_recalls(chain) else "retain"
        text = (
            partial(blocks.recall, query="forged", limit=1, filter=None, results=0, top_score=0.0)
            if audit.of_recalls(chain)
            else partial(blocks.audit_read, auditor="forged", what="audit log")
        )
        metadata = None if audit.of_recalls(chain) else {"action": "audit_read"}
        entry = new_entry(
            self.context, operation, ms, partial(text, agent=agent, at=iso(ms)), metadata=metadata
        )
        self.append(chain, head, entry, key, named)

    def append(
        self, chain: str, head: Head, entry: audit.Entry, key: SigningKey | None,
        named: SigningKey | None
    ) -> None:  # fmt: skip
        new, newer = audit.append(chain, head, [entry], key_id=named.id if named else None)
        self.put(key.signed(newer) if key else newer, new)

    def put(self, head: Head, new: list[Block]) -> None:
        rows: list[Row] = [head.row(), *(block.row() for block in new)]
        self.context.store.apply(rows)

    def set_head(self, **columns: str | None) -> None:
        head = self.head
        self.put(replace(head, **columns, revision=head.revision + 1), [])  # type: ignore[arg-type]


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    store = open_store(f"sqlite:///{tmp_path / 'memory.db'}")
    key_file = tmp_path / "home" / "audit.key"
    context = Context(
        store=store, index=LocalIndex(store, language="english"), clock=FakeClock(),
        ids=seeded_ids(), reader=Reader("u", "ann"), pause=no_pause,
        options=Options(audit_recalls=True), files=Files(signing=AuditKeyFile(key_file)),
    )  # fmt: skip
    yield Scene(context, key_file)
    store.close()


def own(scene: Scene) -> SigningKey:
    assert scene.context.files.signing
    return scene.context.files.signing.current()


# --- a chain that nobody attacked ---


def test_a_head_is_signed_and_every_block_names_the_key(scene: Scene) -> None:
    scene.add("one", "two")
    scene.search("tea")
    key = own(scene)
    for head in trail.heads(scene.context):
        assert key.has_signed(head)
        assert isinstance(verdict := scene.verdict(head.id), Sound)
        assert str(verdict.signature) == "checked"
    texts = [Block.of(row).yamo_text for row in scene.context.store.find(Kind.BLOCK)]
    assert len(texts) == 3
    assert all(f"\n  signing_key;{key.id};\n" in text for text in texts)


def test_the_key_is_never_in_the_store(scene: Scene, tmp_path: Path) -> None:
    scene.add("one")
    key = own(scene)
    files = [file.read_bytes() for file in tmp_path.iterdir() if file.is_file()]
    assert any(key.id.encode() in data for data in files)
    assert not any(key.secret in data or key.secret.hex().encode() in data for data in files)


def test_a_search_or_a_verification_creates_no_key(scene: Scene) -> None:
    scene.search("tea")
    [verdict] = trail.verify_all(scene.context)
    assert isinstance(verdict, Sound)
    assert str(verdict.signature) == "not checked: the chain is not signed"
    assert not scene.key_file.parent.exists()
    scene.add("one")
    assert scene.key_file.exists()


def test_a_chain_that_was_not_signed_before_is_signed_from_the_next_block_on(scene: Scene) -> None:
    scene.add("one", context=scene.context.with_files(signing=None))
    scene.add("two")
    assert str(getattr(scene.verdict(), "signature", None)) == "checked, from block 2 on"


def test_an_erased_first_block_hides_no_key(scene: Scene) -> None:
    from memory_mesh.flows.upkeep import erase

    (memory,) = add_many(scene.context, [("one", {})])
    erase.delete(scene.context, [memory.id])
    assert str(getattr(scene.verdict(), "signature", None)) == "checked, from block 2 on"
    scene.forge(key=None, named=None)
    assert isinstance(scene.verdict(), Broken)


def test_searches_that_were_pruned_leave_a_signed_chain(scene: Scene) -> None:
    scene.add("one")
    scene.search("tea", "milk")
    scene.context.clock.ms += 91 * 86_400_000  # type: ignore[attr-defined]
    assert trail.prune(scene.context).removed == 2
    (recalls,) = (head.id for head in trail.heads(scene.context) if audit.of_recalls(head.id))
    assert str(getattr(scene.verdict(recalls), "signature", None)) == "checked"
    scene.forge(key=None, named=own(scene), chain=recalls)
    assert isinstance(scene.verdict(recalls), Broken)


@pytest.mark.deep
def test_two_processes_with_the_same_key_append_to_one_chain(tmp_path: Path) -> None:
    url, key_file = f"sqlite:///{tmp_path / 'shared.db'}", str(tmp_path / "shared.key")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        list(pool.map(_write, [url] * 2, [key_file] * 2, ["a", "b"]))
    with MemoryMesh(store=url, agent_id="ann", audit_key_file=key_file) as mesh:
        (verdict,) = mesh.verify()
    assert (getattr(verdict, "number", None), str(getattr(verdict, "signature", verdict))) == (
        8,
        "checked",
    )
    assert len(Path(key_file).read_text().split()) == 1


def _write(url: str, key_file: str, name: str) -> None:
    with MemoryMesh(store=url, agent_id="ann", audit_key_file=key_file) as mesh:
        for n in range(4):
            mesh.add(f"{name} {n}")


# --- attacks ---

ATTACKS: dict[str, Callable[[Scene], None]] = {
    "the signature of the old head is kept": lambda scene: _keep_signature(scene),
    "the head has no signature": lambda scene: scene.forge(key=None, named=own(scene)),
    "neither head nor block name a key": lambda scene: scene.forge(key=None, named=None),
    "the head names the key without a signature": lambda scene: _unsigned_but_named(scene),
    "the attacker has a key of his own": lambda scene: scene.forge(key=EVE, named=EVE),
    "the block names our key, and the head is signed with another": lambda scene: scene.forge(
        key=EVE, named=own(scene)
    ),
    "the attacker forges a rekey block": lambda scene: _forge_rekey(scene, proof="a" * 64),
    "the attacker proves the new key with itself": lambda scene: _forge_rekey(scene, proof=None),
    "only the signature of the head is removed": lambda scene: scene.set_head(signature=None),
    "signature and key of the head are removed": lambda scene: scene.set_head(
        signature=None, key_id=None
    ),
    "the signature of the head is changed": lambda scene: scene.set_head(signature="0" * 64),
    "the signature of the head is not ASCII": lambda scene: scene.set_head(signature="é"),
}


def _keep_signature(scene: Scene) -> None:
    before = scene.head
    scene.forge(key=None, named=own(scene))
    scene.set_head(signature=before.signature, key_id=before.key_id)


def _unsigned_but_named(scene: Scene) -> None:
    scene.forge(key=None, named=own(scene))
    scene.set_head(key_id=own(scene).id)


def _forge_rekey(scene: Scene, *, proof: str | None) -> None:
    head, ms = scene.head, scene.context.clock()
    given = proof or EVE.proof(
        chain=head.id, number=head.number + 1, previous_seal=head.seal, new_key=EVE.id
    )
    write = partial(
        blocks.rekey, agent="ann", old_key=own(scene).id, new_key=EVE.id, proof=given
        , at=iso(ms)
    )  # fmt: skip
    entry = new_entry(scene.context, "retain", ms, write, metadata={"action": "rekey"})
    scene.append(head.id, head, entry, EVE, EVE)


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("name", ATTACKS)
def test_an_append_without_the_key_is_found_also_after_later_writes(
    scene: Scene, name: str
) -> None:
    scene.add("one", "two")
    assert isinstance(scene.verdict(), Sound)
    unsigned = scene.context.with_files(signing=None)
    ATTACKS[name](scene)
    # Everything but the signature is correct.
    assert isinstance(trail.verify(unsigned, scene.chain), Sound)
    broken = scene.verdict()
    assert isinstance(broken, Broken)
    assert own(scene).id in broken.reason
    assert heartbeat.beat(scene.context).runs[0].outcome == "failed"
    scene.add("three")  # our own signature does not hide what is below it
    scene.add("four")
    assert isinstance(scene.verdict(), Broken)
    assert heartbeat.beat(scene.context).runs[0].outcome == "failed"


@pytest.mark.req("MESH-042")
def test_a_signature_of_another_chain_or_block_is_none(scene: Scene) -> None:
    scene.add("one")
    first = scene.head
    scene.add("two")
    other = replace(scene.context, reader=Reader("u", "bob"))
    scene.add("three", context=other)
    for signature in (first.signature, head_of(other, own_chain(other)).signature):  # type: ignore[union-attr]
        scene.set_head(signature=signature)
        assert isinstance(scene.verdict(), Broken)


# --- keys that are not at hand ---


def test_without_the_key_file_the_signature_is_not_checked_and_nothing_is_broken(
    scene: Scene, tmp_path: Path
) -> None:
    scene.add("one")
    key = own(scene)
    other = tmp_path / "other.key"
    AuditKeyFile(other).current()
    for path, why in (
        (tmp_path / "none.key", f"there is no key file {tmp_path / 'none.key'}"),
        (other, f"key {key.id}"),
    ):
        verdict = scene.with_keys(path).verdict()
        assert isinstance(verdict, Sound)
        assert not verdict.signature.checked
        assert why in str(verdict.signature)
    scene.key_file.chmod(0o644)
    verdict = scene.with_keys(scene.key_file).verdict()
    assert isinstance(verdict, Sound)
    assert "chmod 600" in str(verdict.signature)


def test_an_unusable_key_file_refuses_a_write_and_changes_nothing(scene: Scene) -> None:
    scene.add("one")
    scene.key_file.chmod(0o644)
    before = [scene.context.store.find(kind) for kind in Kind]
    with pytest.raises(SettingsError, match="chmod 600") as caught:
        scene.add("two")
    assert str(scene.key_file) in str(caught.value)
    scene.search("tea")  # a search goes on without its block
    assert [scene.context.store.find(kind) for kind in Kind] == before
    scene.key_file.chmod(0o600)
    scene.add("two")
    assert isinstance(scene.verdict(), Sound)


def test_a_writer_with_another_key_is_found_by_the_owner_of_the_first(
    scene: Scene, tmp_path: Path
) -> None:
    scene.add("one")
    stranger = scene.with_keys(tmp_path / "other.key")
    stranger.add("two")
    assert str(getattr(stranger.verdict(), "signature", None)) == "checked, from block 2 on"
    broken = scene.verdict()
    assert isinstance(broken, Broken)
    assert broken.number == 2
    assert "set audit_key_file to the same file for all writers" in broken.reason


# --- a new key ---


def test_a_new_key_is_proven_by_the_old_one_in_every_chain(scene: Scene, tmp_path: Path) -> None:
    scene.add("one")
    scene.add("two", context=replace(scene.context, reader=Reader("u", "bob")))
    scene.search("tea")
    old = own(scene)
    done = trail.rekey(scene.context)
    assert (done.old_keys, done.key_id, len(done.chains)) == ((old.id,), own(scene).id, 3)
    assert old.id != own(scene).id
    new_only = tmp_path / "new.key"
    new_only.write_text(scene.key_file.read_text().splitlines()[-1])
    new_only.chmod(0o600)
    for machine in (scene, scene.with_keys(new_only)):
        verdicts = trail.verify_all(machine.context)
        assert [str(getattr(one, "signature", one)) for one in verdicts] == [
            "checked, from block 2 on"
        ] * 3
    scene.add("three")
    assert isinstance(scene.verdict(), Sound)
    assert heartbeat.beat(scene.context).runs[0].outcome == "done"


def test_a_process_that_knew_the_old_key_goes_on_with_the_new_one(scene: Scene) -> None:
    scene.add("one")
    other = scene.with_keys(scene.key_file)
    other.add("two")
    trail.rekey(scene.context)
    other.add("three")
    assert own(scene).has_signed(scene.head)
    assert isinstance(scene.verdict(), Sound)


def test_a_key_in_the_file_that_no_chain_moved_to_yet_is_not_used(scene: Scene) -> None:
    """A rekey that was killed after it wrote the file leaves chains that can be written and
    verified."""
    scene.add("one")
    assert scene.context.files.signing
    old, _ = own(scene), scene.context.files.signing.add()
    scene.add("two")
    assert (
        str(getattr(scene.verdict(), "signature", None))
        == f"checked, with the earlier key {old.id}"
    )
    trail.rekey(scene.context)
    assert str(getattr(scene.verdict(), "signature", None)) == "checked, from block 3 on"


@pytest.mark.req("MESH-042")
def test_a_chain_cut_back_to_a_stolen_key_names_it(scene: Scene) -> None:
    """Somebody has the old key, removes the rekey block and appends under the old key again."""
    scene.add("one")
    before, old = scene.head, own(scene)
    trail.rekey(scene.context)
    assert str(getattr(scene.verdict(), "signature", None)) == "checked, from block 2 on"
    removed = [
        Key(Kind.BLOCK, block.id)
        for block in chain_blocks(scene.context, scene.chain)
        if block.number == 2
    ]
    scene.context.store.apply([replace(before, revision=scene.head.revision + 1).row()], removed)
    scene.forge(key=old, named=old)
    assert (
        str(getattr(scene.verdict(), "signature", None))
        == f"checked, with the earlier key {old.id}"
    )
    scene.key_file.write_text(scene.key_file.read_text().splitlines()[-1])
    assert (
        str(getattr(scene.verdict(), "signature", None))
        == f"not checked: key {old.id} is not in the key file"
    )


def test_a_chain_that_is_not_signed_yet_gets_the_new_key(scene: Scene) -> None:
    scene.add("one", context=scene.context.with_files(signing=None))
    assert trail.rekey(scene.context).old_keys == ()
    assert str(getattr(scene.verdict(), "signature", None)) == "checked, from block 2 on"


@pytest.mark.parametrize(
    "name", ["the head has no signature", "signature and key of the head are removed"]
)
def test_a_forged_head_gets_no_new_key(scene: Scene, name: str) -> None:
    scene.add("one")
    before = scene.key_file.read_text()
    ATTACKS[name](scene)
    with pytest.raises(StoreCorrupt, match="audit verify"):
        trail.rekey(scene.context)
    assert scene.key_file.read_text() == before


def test_a_chain_of_a_foreign_key_gets_no_new_key(scene: Scene, tmp_path: Path) -> None:
    scene.add("one")
    stranger = scene.with_keys(tmp_path / "other.key")
    with pytest.raises(SettingsError, match=own(scene).id):
        trail.rekey(stranger.context)
    assert not (tmp_path / "other.key").exists()


def test_a_store_in_memory_has_no_key(scene: Scene) -> None:
    with pytest.raises(InvalidInput, match="not signed"):
        trail.rekey(scene.context.with_files(signing=None))
