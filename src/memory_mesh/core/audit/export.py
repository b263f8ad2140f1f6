"""The export of audit chains: blocks as lines of JSON, and the verification of such a file without a store."""

import json
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any

from memory_mesh.core.audit.chain import owner_of
from memory_mesh.core.audit.signing import KeyWalk
from memory_mesh.core.audit.verify import Broken, Signature, Sound, Verdict, Walk
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import BY_NAME, Block, Value, fault

# The columns of RFC-0011, then ours. `timestamp` is our `created_at`.
EXPORT_NAMES = (
    "id", "agent_id", "operation_type", "yamo_text", "timestamp", "block_hash", "prev_hash", "metadata", "chain", "number", "ref",
    "session_id", "content_hash", "memory_revision", "digest", "seal",
)  # fmt: skip
_NULLABLE = {"agent_id", "prev_hash", "metadata", "ref", "session_id", "content_hash", "memory_revision", "digest", "seal"}
_EXPECTED = "a line of memory-mesh audit export --json"


def as_dict(block: Block) -> dict[str, Value]:
    """Return a block under the column names of the export."""
    return {name: getattr(block, _column(name)) for name in EXPORT_NAMES}


def line(block: Block) -> str:
    """Return a block as one line of JSON. ASCII only: some readers end a line at certain Unicode characters."""
    return json.dumps(as_dict(block))


def verify_export(lines: Iterable[str], *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Verify hashes, seals and columns of an export. Raise `InvalidInput` if it has no block.

    Memories and their history can only be verified with the store, and a cut end only with a noted head, which may belong to any
    of the chains.
    """
    blocks = (_block(text, at) for at, text in enumerate(lines, start=1) if text.strip())
    verdicts: dict[str, Verdict] = {}
    found = noted is None or noted[0] == 0
    for chain, group in groupby(blocks, key=lambda block: block.chain):
        walk, keys = Walk(chain, noted, withholding=True), KeyWalk(chain, {})
        twice = Broken(chain, 1, None, "the chain is given twice") if chain in verdicts else None
        verdicts[chain] = twice or walk.through(keys.watch(group)) or _without_head(walk.sound(), keys)
        found = found or walk.found_noted
    if not verdicts:
        raise InvalidInput("the export is empty: there is nothing to verify", expected=_EXPECTED)
    return [*verdicts.values(), *([] if found or noted is None else [noted_missing("", noted[0])])]


def _without_head(sound: Sound, keys: KeyWalk) -> Sound:
    return sound if keys.key_id is None else replace(sound, signature=Signature(checked=False, detail="an export has no heads"))


def noted_missing(chain: str, number: int) -> Broken:
    """Return the verdict for a noted block that no chain has; `chain` is empty if it could be any."""
    return Broken(chain, number, None, "no chain has the noted block")


def _block(text: str, at: int) -> Block:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {at} is not JSON", expected=_EXPECTED) from None
    columns: dict[str, Any] = {name: values.get(name) for name in EXPORT_NAMES} if isinstance(values, dict) else {}
    nullable = {name for name in _NULLABLE if columns.get(name) is None}
    if wrong := [name for name in EXPORT_NAMES if name not in nullable and fault(BY_NAME[_column(name)], columns.get(name))]:
        raise InvalidInput(f"line {at} is not a block: missing or invalid {', '.join(wrong)}", expected=_EXPECTED)
    user_id, _ = owner_of(columns["chain"])
    return Block(**{_column(name): value for name, value in columns.items()}, user_id=user_id)


def _column(name: str) -> str:
    return "created_at" if name == "timestamp" else name
