"""Move the audit chains of a user to a new signing key."""

from functools import partial

from memory_mesh.core import audit
from memory_mesh.core.audit import blocks as wire_blocks
from memory_mesh.core.audit.signing import Rekeyed, SigningKey
from memory_mesh.core.errors import InvalidInput, SettingsError, StoreCorrupt
from memory_mesh.core.model import Head, iso
from memory_mesh.core.ports import SigningKeys
from memory_mesh.flows.audit import heads
from memory_mesh.flows.chains import audit_rows, head_of, new_entry
from memory_mesh.flows.context import Context, Plan, commit
from memory_mesh.flows.signing import is_signed


def rekey(context: Context) -> Rekeyed:
    """Make a new key, and append to every chain of the user a block with a proof made with its old key.

    All heads are checked first. If the process dies after the key was made, the chains that are left keep their old key.
    """
    context.check_enabled()
    if context.signing is None:
        raise InvalidInput("chains of this store are not signed", expected="a store in a file")
    ends = heads(context)
    for head in ends:
        _check(context, context.signing, head)
    new = context.signing.add()
    for head in ends:
        commit(context, partial(_plan, context, context.signing, head.id, new))
    old = dict.fromkeys(head.key_id for head in ends if head.key_id)
    return Rekeyed(key_id=new.id, old_keys=tuple(old), chains=tuple(head.id for head in ends))


def _check(context: Context, signing: SigningKeys, head: Head) -> None:
    if head.key_id and head.key_id not in signing.by_id():
        what = f"the chain {head.id} is signed with key {head.key_id}, which is not in {signing.place}"
        raise SettingsError(what, remedy="add that key to the file, as an earlier line")
    if not is_signed(context, head):
        raise StoreCorrupt(f"the head of the chain {head.id} has a wrong signature", remedy="run memory-mesh audit verify")


def _plan(context: Context, signing: SigningKeys, chain: str, new: SigningKey) -> Plan[None]:
    head = head_of(context, chain)
    if head is None or head.key_id == new.id:
        return Plan(None)
    _check(context, signing, head)
    old, ms, recalls = signing.by_id().get(head.key_id or ""), context.clock(), audit.of_recalls(chain)
    proof = old.proof(chain=chain, number=head.number + 1, previous_seal=head.seal, new_key=new.id) if old else None
    write = partial(
        wire_blocks.rekey, agent=str(audit.owner_of(chain)[1]), old_key=head.key_id, new_key=new.id, proof=proof, at=iso(ms),
    )  # fmt: skip
    entry = new_entry(context, "recall" if recalls else "retain", ms, write, metadata={"action": "rekey"})
    return Plan(None, audit_rows(context, chain, [entry], head=head, new_key=new))
