"""Export blocks as lines of JSON, and verify such a file without a store."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from memory_mesh.core.audit.chain import Broken, Verdict, owner_of, verify_chain
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import BY_NAME, Block, Value, fault

# The columns of RFC-0011, then ours. `timestamp` is our `created_at`.
NAMES = (
    "id", "agent_id", "operation_type", "yamo_text", "timestamp", "block_hash", "prev_hash", "metadata", "chain", "number", "ref",
)  # fmt: skip
_NULLABLE = {"agent_id", "prev_hash", "metadata", "ref"}
_EXPECTED = "a line of memory-mesh audit export --json"


def as_dict(block: Block) -> dict[str, Value]:
    """Return a block under the column names of the export."""
    return {name: getattr(block, _column(name)) for name in NAMES}


def line(block: Block) -> str:
    """Return a block as one line of JSON. ASCII only: some readers end a line at certain Unicode characters."""
    return json.dumps(as_dict(block))


def verify_export(lines: Iterable[str], *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Verify hashes, links and columns of an export. Memory contents can only be verified with the store, and a cut end only with
    a noted head, which may belong to any of the chains."""
    found = noted is None or noted[0] == 0

    def watched() -> Iterator[Block]:
        nonlocal found
        for block in (_block(text, at) for at, text in enumerate(lines, start=1) if text.strip()):
            found = found or noted in ((block.number, block.block_hash), (block.number - 1, block.prev_hash))
            yield block

    verdicts = [verify_chain(chain, blocks) for chain, blocks in groupby(watched(), key=lambda block: block.chain)]
    return verdicts if found or noted is None else [*verdicts, noted_missing("", noted[0])]


def noted_missing(chain: str, number: int) -> Broken:
    """Return the verdict for a noted block that no chain has; `chain` is empty if it could be any."""
    return Broken(chain, number, None, "no chain has the noted block")


def _block(text: str, at: int) -> Block:
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {at} is not JSON", expected=_EXPECTED) from None
    columns: dict[str, Any] = {name: values.get(name) for name in NAMES} if isinstance(values, dict) else {}
    nullable = {name for name in _NULLABLE if columns.get(name) is None}
    if wrong := [name for name in NAMES if name not in nullable and fault(BY_NAME[_column(name)], columns.get(name))]:
        raise InvalidInput(f"line {at} is not a block: missing or invalid {', '.join(wrong)}", expected=_EXPECTED)
    user_id, _ = owner_of(columns["chain"])
    return Block(**{_column(name): value for name, value in columns.items()}, user_id=user_id)


def _column(name: str) -> str:
    return "created_at" if name == "timestamp" else name
