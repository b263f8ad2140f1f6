"""The wire format of blocks: what the audit chain seals. Each emitter writes one document's example, line by line."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

Pair = tuple[str, object]

_OUTSIDE_ALPHABET = re.compile(r"[^A-Za-z0-9_]")
_BREAKS = re.compile(r"[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]+")
PREVIEW = 60

ERASED = "erased"


@dataclass(frozen=True, slots=True, kw_only=True)
class Yamo:
    """The sections of one block, in the grammar's order."""

    agent: str
    intent: str
    context: Sequence[Pair] = ()
    constraints: Sequence[Pair] = ()
    priority: str | None = None
    output: Sequence[Pair] = ()
    meta: Sequence[Pair]
    log: Sequence[object]
    handoff: str = "End"

    def text(self) -> str:
        """The block as it is sealed."""
        lines = [f"agent: {agent_name(self.agent)};", f"intent: {self.intent};"]
        lines += _section("context", self.context)
        lines += _section("constraints", self.constraints)
        lines += [f"priority: {self.priority};"] if self.priority else []
        lines += _section("output", self.output)
        lines += _section("meta", self.meta)
        lines += [f"log: {';'.join(value(part) for part in self.log)};", f"handoff: {self.handoff};"]
        return "\n".join(lines) + "\n"


def agent_name(agent_id: str) -> str:
    """The agent as the grammar's alphabet allows."""
    return "MemoryMesh_" + _OUTSIDE_ALPHABET.sub("_", agent_id)


def value(raw: object) -> str:
    """A value as one field: a semicolon would end it and a line break the line, so they become a comma and a space."""
    return _BREAKS.sub(" ", str(raw)).replace(";", ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The pairs that bind a block to its memory and to the block before it."""

    content_hash: str | None
    prev_block: str | None

    def pairs(self) -> list[Pair]:
        pairs = [("content_hash", self.content_hash), ("prev_block", self.prev_block)]
        return [(key, hashed) for key, hashed in pairs if hashed is not None]


def retain(
    seal: Seal, *, agent: str, memory_id: str, memory_type: str, at: str, content: str, hypothesis: str, action: str,
    revision: int,
) -> str:  # fmt: skip
    """A memory was stored, or changed: then the context names the action and the revision that it made."""
    changed: list[Pair] = [] if action == "add" else [("action", action), ("revision", revision)]
    return Yamo(
        agent=agent,
        intent="store_memory_for_future_retrieval",
        context=[
            ("memory_id", memory_id),
            ("memory_type", memory_type),
            ("timestamp", at),
            ("content_length", len(content.encode())),
            *changed,
        ],
        constraints=[("hypothesis", hypothesis)],
        priority="medium",
        output=[("memory_stored", memory_id), ("content_preview", content[:PREVIEW])],
        meta=[
            ("rationale", "Memory persisted for semantic search and retrieval"),
            ("observation", "Content vectorized and stored in LanceDB"),
            ("confidence", "1.0"),
            *seal.pairs(),
        ],
        log=["memory_retained", "timestamp", at, "id", memory_id, "type", memory_type],
    ).text()


def erase(seal: Seal, *, agent: str, memory_id: str, at: str, tombs: Iterable[tuple[str, str]]) -> str:
    """A memory was erased; the blocks that quoted it are named, so that their tombstones can be told from tampering."""
    return Yamo(
        agent=agent,
        intent="erase_memory_for_good",
        context=[("memory_id", memory_id), ("action", "erase"), ("timestamp", at)],
        priority="medium",
        output=[("memory_erased", memory_id), *(("block_erased", f"{block} {hashed}") for block, hashed in tombs)],
        meta=[("rationale", "Memory erased on request"), ("confidence", "1.0"), *seal.pairs()],
        log=["memory_erased", "timestamp", at, "id", memory_id],
    ).text()


def tombs(text: str) -> list[tuple[str, str]]:
    """The blocks (id, hash) that an erasure block's text names."""
    if "\nintent: erase_memory_for_good;\n" not in text:
        return []
    named = re.findall(r"^  block_erased;(\S+) ([0-9a-f]{64});$", text, flags=re.MULTILINE)
    return [(block, hashed) for block, hashed in named]


def _section(name: str, pairs: Sequence[Pair]) -> list[str]:
    return [f"{name}:", *(f"  {key};{value(raw)};" for key, raw in pairs)] if pairs else []
