"""An exported chain: one block a line as JSON, and how such a file is checked where there is no store."""

import json
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from memory_mesh.core.audit import chain as audit
from memory_mesh.core.audit.chain import Broken, Verdict
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.columns import BY_NAME, Value, fault
from memory_mesh.core.model.records import Block

# The names of the document's table, and ours behind them. `timestamp` is our `created_at`.
NAMES = (
    "id", "agent_id", "operation_type", "yamo_text", "timestamp", "block_hash", "prev_hash", "metadata", "chain", "number", "ref",
)  # fmt: skip
_NULLABLE = {"agent_id", "prev_hash", "metadata", "ref"}
_EXPECTED = "a line of memory-mesh audit export --json"


def plain(block: Block) -> dict[str, Value]:
    """A block under the names of the export."""
    return {name: getattr(block, _column(name)) for name in NAMES}


def line(block: Block) -> str:
    """A block as one line, without what ends it. As ASCII: some characters of Unicode end a line for some readers."""
    return json.dumps(plain(block))


def verify_export(lines: Iterable[str], *, noted: tuple[int, str] | None = None) -> list[Verdict]:
    """Walk the chains of an export: hashes, links and columns. The contents of memories, and what was cut off the end of a chain,
    only the store or a noted head can tell; the head may be of any of the chains."""
    met = noted is None or noted[0] == 0

    def heard() -> Iterator[Block]:
        nonlocal met
        for block in _blocks(lines):
            met = met or noted in ((block.number, block.block_hash), (block.number - 1, block.prev_hash))
            yield block

    verdicts = [audit.linked(chain, blocks) for chain, blocks in groupby(heard(), key=lambda block: block.chain)]
    return verdicts if met or noted is None else [*verdicts, not_noted("", noted[0])]


def not_noted(chain: str, number: int) -> Broken:
    """The verdict where a noted block is in no chain; the name of the chain is empty where it could be any."""
    return Broken(chain, number, None, "no chain has the block that was noted")


def _blocks(lines: Iterable[str]) -> Iterator[Block]:
    return (_block(text, at) for at, text in enumerate(lines, start=1) if text.strip())


def _block(text: str, at: int) -> Block:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"line {at} is no JSON", expected=_EXPECTED) from None
    values: dict[str, Any] = {name: said.get(name) for name in NAMES} if isinstance(said, dict) else {}
    wrong = [name for name in NAMES if _odd(name, values.get(name))]
    if wrong:
        raise InvalidInput(f"line {at} is no block: {', '.join(wrong)} missing or odd", expected=_EXPECTED)
    user_id, _ = audit.owner_of(values["chain"])
    return Block(**{_column(name): value for name, value in values.items()}, user_id=user_id)


def _odd(name: str, value: object) -> bool:
    return fault(BY_NAME[_column(name)], value) is not None and not (value is None and name in _NULLABLE)


def _column(name: str) -> str:
    return "created_at" if name == "timestamp" else name
