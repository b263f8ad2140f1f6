"""The wire format of blocks: what the audit chain seals. Each emitter writes one document's example, line by line.

Here is the form, and the blocks of a memory that is stored or erased; `yamo_blocks` has the others, `yamo_parse` the reader.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory_mesh.core.errors import InvalidInput, shown

Pair = tuple[str, object]
Constraint = Pair | str  # a bare text is the grammar's `- body;`

LEVELS = ("critical", "high", "medium", "low")
PREVIEW = 60
ERASED = "erased"

# Besides the newline, every character at which some reader would start a line: all that `str.splitlines` knows.
OTHER_BREAKS = r"\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BREAKS = re.compile(rf"[\n{OTHER_BREAKS}]+")
# No store keeps NUL in a text, nor half a surrogate pair.
UNKEPT = r"\x00\ud800-\udfff"
_UNKEPT = re.compile(f"[{UNKEPT}]")
_OUTSIDE_ALPHABET = re.compile(r"[^A-Za-z0-9_]")
_NAME = re.compile(r"[A-Za-z0-9_]+")
# Not blank at its ends, for then the indent would be another; not like a bare constraint.
_KEY = re.compile(rf"(?!- )[^\s;{UNKEPT}](?:[^;\n{OTHER_BREAKS}{UNKEPT}]*[^\s;{UNKEPT}])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yamo:
    """The sections of one block, in the grammar's order; what the grammar does not allow cannot be made."""

    agent: str  # as it stands on the wire
    intent: str
    context: Sequence[Pair] = ()
    constraints: Sequence[Constraint] = ()
    priority: str | None = None
    output: Sequence[Pair] = ()
    meta: Sequence[Pair]
    log: Sequence[object]
    handoff: str = "End"

    def __post_init__(self) -> None:
        if not (is_name(self.agent) and is_name(self.intent)):
            raise InvalidInput(f"agent {shown(self.agent)}, intent {shown(self.intent)}", expected="letters, digits and _")
        if self.priority is not None and self.priority not in LEVELS:
            raise InvalidInput(f"priority {shown(self.priority)}", expected=", ".join(LEVELS))
        if not self.meta or not any(map(str, self.log)) or not self.handoff.strip():
            raise InvalidInput("a block without meta, log or handoff", expected="all three")
        pairs = [*self.context, *self.constraints, *self.output, *self.meta]
        for odd in (pair[0] for pair in pairs if not isinstance(pair, str) and not is_key(pair[0])):
            raise InvalidInput(f"the key {shown(odd)}", expected="a word without semicolons and line breaks")

    def text(self) -> str:
        """The block as it is sealed."""
        lines = [f"agent: {self.agent};", f"intent: {self.intent};"]
        lines += _section("context", self.context)
        lines += _section("constraints", self.constraints)
        lines += [f"priority: {self.priority};"] if self.priority else []
        lines += _section("output", self.output)
        lines += _section("meta", self.meta)
        lines += [f"log: {';'.join(value(part) for part in self.log)};", f"handoff: {value(self.handoff)};"]
        return "\n".join(lines) + "\n"


def is_name(text: str) -> bool:
    """Whether a text can stand as agent or intent."""
    return _NAME.fullmatch(text) is not None


def is_key(text: str) -> bool:
    """Whether a text can stand as the key of a pair."""
    return _KEY.fullmatch(text) is not None


def agent_name(agent_id: str) -> str:
    """The agent as the grammar's alphabet allows."""
    return "MemoryMesh_" + _OUTSIDE_ALPHABET.sub("_", agent_id)


def value(raw: object) -> str:
    """A value as one field: a semicolon would end it and a line break the line, so they become a comma and a space."""
    return _UNKEPT.sub("\ufffd", _BREAKS.sub(" ", str(raw))).replace(";", ",")


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
        agent=agent_name(agent),
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
        agent=agent_name(agent),
        intent="erase_memory_for_good",
        context=[("memory_id", memory_id), ("action", "erase"), ("timestamp", at)],
        priority="medium",
        output=[("memory_erased", memory_id), *(("block_erased", f"{block} {hashed}") for block, hashed in tombs)],
        meta=[("rationale", "Memory erased on request"), ("confidence", "1.0"), *seal.pairs()],
        log=["memory_erased", "timestamp", at, "id", memory_id],
    ).text()


def tombs(text: str) -> list[tuple[str, str]]:
    """The blocks (id as texts write it, hash) that an erasure block's text names."""
    if "\nintent: erase_memory_for_good;\n" not in text:
        return []
    named = re.findall(r"^  block_erased;(.+) ([0-9a-f]{64});$", text, flags=re.MULTILINE)
    return [(block, hashed) for block, hashed in named]


def _section(name: str, fields: Sequence[Constraint]) -> list[str]:
    return [f"{name}:", *map(_line, fields)] if fields else []


def _line(field: Constraint) -> str:
    return f"  - {value(field)};" if isinstance(field, str) else f"  {field[0]};{value(field[1])};"
