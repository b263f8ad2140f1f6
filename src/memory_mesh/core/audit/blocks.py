"""The blocks of RFC-0011: write and parse their wire format, and make the block of each operation.

The grammar and the examples of the RFC differ in two places, and the parser reads both forms:
`meta:` above indented pairs or on each line (`meta: KEY;VALUE;`), and a constraint as a pair or as
`- body;`. Everything else is refused with its line number: a text that two readers could understand
differently must not be accepted.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TypeVar

from memory_mesh.core.errors import InvalidInput, fraction, shown

# --- the wire format ---

Pair = tuple[str, object]
Constraint = Pair | str  # a text is written as `- body;`
Field = TypeVar("Field", Pair, Constraint)

LEVELS = ("critical", "high", "medium", "low")
PREVIEW = 60
ERASED = "erased"
WITHHELD = "withheld"  # a text that the reader may not see; an export only, never stored

# Besides the newline, every character at which `str.splitlines` starts a line.
_OTHER_BREAKS = r"\r\v\f\x1c-\x1e\x85\u2028\u2029"
_BREAKS = re.compile(rf"[\n{_OTHER_BREAKS}]+")
# No store accepts NUL or half a surrogate pair.
_UNSTORABLE = r"\x00\ud800-\udfff"
_UNSTORABLE_CHAR = re.compile(f"[{_UNSTORABLE}]")
_NAME = re.compile(r"[A-Za-z0-9_]+")
# No space at the ends, which would change the indent, and no `- `, which starts a constraint.
_KEY = re.compile(
    rf"(?!- )[^\s;{_UNSTORABLE}](?:[^;\n{_OTHER_BREAKS}{_UNSTORABLE}]*[^\s;{_UNSTORABLE}])?"
)

_ORDER = "agent, intent, [context], [constraints], [priority], [output], meta, log, handoff"
_PAIR = "two spaces, then `KEY;VALUE;` without a semicolon in key or value"
_UNEXPECTED = re.compile(f"[{_OTHER_BREAKS}{_UNSTORABLE}]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Yamo:
    """The sections of one block, in the order of the grammar; an invalid block cannot be
    constructed."""

    agent: str  # as written in the text
    intent: str
    context: Sequence[Pair] = ()
    constraints: Sequence[Constraint] = ()
    priority: str | None = None
    output: Sequence[Pair] = ()
    meta: Sequence[Pair]
    log: Sequence[object]
    handoff: str = "End"

    def __post_init__(self) -> None:
        if not (_NAME.fullmatch(self.agent) and _NAME.fullmatch(self.intent)):
            raise InvalidInput(
                f"invalid agent {shown(self.agent)} or intent {shown(self.intent)}",
                expected="letters, digits and _",
            )
        if self.priority is not None and self.priority not in LEVELS:
            raise InvalidInput(
                f"invalid priority {shown(self.priority)}", expected=", ".join(LEVELS)
            )
        if not self.meta or not any(map(str, self.log)) or not self.handoff.strip():
            raise InvalidInput("a block lacks meta, log or handoff", expected="all three")
        for pair in (*self.context, *self.constraints, *self.output, *self.meta):
            if not isinstance(pair, str) and not _is_key(pair[0]):
                raise InvalidInput(
                    f"invalid key {shown(pair[0])}",
                    expected="a word without semicolons and line breaks",
                )

    def text(self) -> str:
        """Return the block as text."""
        lines = [f"agent: {self.agent};", f"intent: {self.intent};"]
        lines += _section("context", self.context)
        lines += _section("constraints", self.constraints)
        lines += [f"priority: {self.priority};"] if self.priority else []
        lines += _section("output", self.output)
        lines += _section("meta", self.meta)
        lines += [
            f"log: {';'.join(map(wire_value, self.log))};",
            f"handoff: {wire_value(self.handoff)};",
        ]
        return "\n".join(lines) + "\n"


@lru_cache(maxsize=256)  # our own blocks have few keys
def _is_key(text: str) -> bool:
    return _KEY.fullmatch(text) is not None


@lru_cache(maxsize=256)
def agent_name(agent_id: str) -> str:
    """Return the agent in the alphabet of the grammar."""
    return "MemoryMesh_" + re.sub(r"[^A-Za-z0-9_]", "_", agent_id)


def wire_value(raw: object) -> str:
    """Return a value as one field: semicolons become commas and line breaks become spaces."""
    text = str(raw)
    if not text.isprintable():
        text = _UNSTORABLE_CHAR.sub("\ufffd", _BREAKS.sub(" ", text))
    return text.replace(";", ",")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The hashes that bind a block to its memory and to the previous block."""

    content_hash: str | None
    prev_block: str | None
    prev_seal: str | None = None
    signing_key: str | None = None  # the id of the key that signs the head

    def pairs(self) -> list[Pair]:
        """Return the hashes as pairs of the `meta` section."""
        names = ("content_hash", "prev_block", "prev_seal", "signing_key")
        return [(name, value) for name in names if (value := getattr(self, name)) is not None]


def _section(name: str, fields: Sequence[Constraint]) -> list[str]:
    if not fields:
        return []
    lines = [
        f"  - {wire_value(one)};" if isinstance(one, str) else f"  {one[0]};{wire_value(one[1])};"
        for one in fields
    ]
    return [f"{name}:", *lines]


# --- parsing ---


def parse(text: str) -> Yamo:
    """Parse a text of exactly one block."""
    blocks = parse_many(text)
    if len(blocks) != 1:
        raise InvalidInput(f"the text has {len(blocks)} blocks", expected="one")
    return blocks[0]


def parse_many(text: str) -> list[Yamo]:
    """Parse a text of several blocks, as an export writes them."""
    lines = _Lines(_lines(text))
    blocks = []
    while lines.at < len(lines.texts):
        blocks.append(_block(lines))
    return blocks


@dataclass(slots=True)
class _Lines:
    """The lines of a text and the current position."""

    texts: list[str]
    at: int = 0

    @property
    def next(self) -> str:
        """The current line, or "" at the end; no line of a block is empty."""
        return self.texts[self.at] if self.at < len(self.texts) else ""

    def skip(self, line: str) -> bool:
        """Advance past the current line if it is `line`."""
        found = self.next == line
        self.at += found
        return found

    def field(
        self, start: str, expected: str, fits: Callable[[str], object] = lambda field: True
    ) -> str:
        """Return the current line between `start` and its only semicolon."""
        return self.fields(start, expected, lambda fields: len(fields) == 1 and fits(fields[0]))[0]

    def fields(self, start: str, expected: str, fits: Callable[[list[str]], object]) -> list[str]:
        """Return the current line between `start` and its last semicolon, split at the other
        semicolons."""
        line = self.next
        fields = line[len(start) : -1].split(";")
        if not (line.startswith(start) and line.endswith(";") and fits(fields)):
            raise self.fault(expected)
        self.at += 1
        return fields

    def fault(self, expected: str) -> InvalidInput:
        what = shown(self.next) if self.at < len(self.texts) else "missing: the text ends before it"
        return InvalidInput(
            f"line {self.at + 1} is {what}", expected=f"{expected} (the order is {_ORDER})"
        )


def _lines(text: str) -> list[str]:
    if found := _UNEXPECTED.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise InvalidInput(
            f"line {line} has the character U+{ord(found.group()):04X}",
            expected="lines that end in a newline, without other line breaks, NUL or half "
            "surrogate pairs",
        )
    *lines, rest = text.split("\n")
    if rest:
        raise InvalidInput(
            f"line {len(lines) + 1} is {shown(rest)}, without a newline",
            expected="a newline after each line",
        )
    return lines


def _block(lines: _Lines) -> Yamo:
    """Read one block; arguments are evaluated in order, and so are the sections."""
    name, level = "of letters, digits and _", f"`priority: LEVEL;`, one of {', '.join(LEVELS)}"
    return Yamo(
        agent=lines.field("agent: ", f"`agent: NAME;` {name}", _NAME.fullmatch),
        intent=lines.field("intent: ", f"`intent: NAME;` {name}", _NAME.fullmatch),
        context=_several(lines, _pair) if lines.skip("context:") else (),
        constraints=_several(lines, _constraint) if lines.skip("constraints:") else (),
        priority=lines.field("priority: ", level, LEVELS.__contains__)
        if lines.next.startswith("priority:")
        else None,
        output=_several(lines, _pair) if lines.skip("output:") else (),
        meta=_meta(lines),
        log=lines.fields("log: ", "`log: BODY;`", any),
        handoff=lines.field("handoff: ", "`handoff: TARGET;`", str.strip),
    )


def _several(lines: _Lines, read: Callable[[_Lines], Field]) -> list[Field]:
    """Read one or more indented lines."""
    fields = [read(lines)]
    while lines.next.startswith(" "):
        fields.append(read(lines))
    return fields


def _pair(lines: _Lines, start: str = "  ", expected: str = _PAIR) -> Pair:
    key, value = lines.fields(
        start, expected, lambda fields: len(fields) == 2 and _KEY.fullmatch(fields[0])
    )
    return key, value


def _constraint(lines: _Lines) -> Constraint:
    if lines.next.startswith("  - "):
        return lines.field("  - ", "two spaces, then `- BODY;` without a semicolon in it")
    return _pair(lines, expected=f"{_PAIR}, or `- BODY;`")


def _meta(lines: _Lines) -> list[Pair]:
    pairs: list[Pair] = []
    while lines.next.startswith("meta:") or not pairs:
        pairs += (
            _several(lines, _pair)
            if lines.skip("meta:")
            else [_pair(lines, "meta: ", "`meta:` or `meta: KEY;VALUE;`")]
        )
    return pairs


# --- operations ---
# The blocks are written line by line as in the examples of RFC-0011. The examples of lesson and
# reflection have no field for the id of the memory that stores them. So their ids are the memory's
# id with another prefix (`derived_id`), and `subject` finds the memory: a block cannot be moved to
# another memory without breaking its seal, and an erasure finds every block that quotes the memory.

RETAIN, ERASE = "store_memory_for_future_retrieval", "erase_memory_for_good"
RECALL, CHECKPOINT = "recall_relevant_memories", "seal_recalls_kept_long_enough"
REFLECT, SYNTHESIZE = "synthesize_beliefs_from_memories", "synthesize_knowledge_from_memories"
# Intent and action of an auditor's reading.
READ_TRAIL, AUDIT_READ = "read_audit_trail", "audit_read"
SEAL_OLD = "seal_blocks_of_earlier_versions"
REKEY = "change_signing_key"
LESSON, REFLECTOR = "distill_wisdom_from_execution", "SubconsciousReflector"

_REQUIRED = (
    ("context", "original_context"), ("context", "error_pattern"), ("context", "severity"),
    ("output", "lesson_id"), ("output", "preventative_rule"), ("output", "rule_confidence"),
    ("meta", "applicability_scope"),
)  # fmt: skip
_CONFIDENCES = {
    "constraints": "hypothesis_confidence",
    "output": "rule_confidence",
    "meta": "confidence",
}
_FRACTION = re.compile(r"0(?:\.[0-9]+)?|1(?:\.0+)?")

_DIGITS = 4
_MEMORY, _WHOLE = "mem_", "of_"
_PATTERN_ID = re.compile(r"[0-9a-f]{16}")
_ERASED_BLOCK = re.compile(r"^  block_erased;(.+) ([0-9a-f]{64});$", flags=re.MULTILINE)
_SUBJECT = re.compile(
    r"^  (memory_id|lesson_id|reflection_id|synthesis_id);(.*);$", flags=re.MULTILINE
)
# Bounded: converting a number of thousands of digits raises.
_THROUGH = re.compile(
    r"^  through_block;([0-9]{1,18}) ([0-9a-f]{64})(?: ([0-9a-f]{64}))?;$", flags=re.MULTILINE
)
_OLD_ROWS = re.compile(
    r"^  last_block;([0-9]{1,18}) ([0-9a-f]{64});\n  blocks_sealed;([0-9]{1,18});\n  "
    r"blocks_digest;([0-9a-f]{64});$",
    flags=re.MULTILINE,
)
_KEY_CHANGE = re.compile(
    r"^  old_key;([0-9a-f]{16});\n  new_key;([0-9a-f]{16});\n  proof;([0-9a-f]{64});$",
    flags=re.MULTILINE,
)


def fraction_text(number: float) -> str:
    """Return a confidence as text: `0.7`, `0.85`, `1.0`; at most four digits, no exponent."""
    # Adding 0.0 turns -0.0 into 0.0.
    return str(round(fraction("the confidence", number), _DIGITS) + 0.0)


def derived_id(memory_id: str, prefix: str) -> str:
    """Return the id of a lesson or reflection: `mem_1760000000000_3fa9c2` becomes
    `lesson_1760000000000_3fa9c2`. An id of another form, from a caller's own id source, is kept
    whole: `lesson_of_7`."""
    usual = memory_id.startswith(_MEMORY) and not memory_id.startswith(_MEMORY + _WHOLE)
    return (
        f"{prefix}_{memory_id.removeprefix(_MEMORY)}" if usual else f"{prefix}_{_WHOLE}{memory_id}"
    )


def subject(text: str) -> str | None:
    """Return the id of the memory that a text is about; None for a reflection that was not
    stored."""
    found = _SUBJECT.search(text)
    if found is None or found.group(1) == "memory_id":
        return found.group(2) if found else None
    return _memory_of(found.group(2)) if "\n  content_hash;" in text else None


def has_intent(text: str, *intents: str) -> bool:
    """Return whether the text of a block has one of these intents."""
    return any(f"\nintent: {intent};\n" in text for intent in intents)


def retain(
    seal: Seal, *, agent: str, memory_id: str, memory_type: str, at: str, content: str,
    hypothesis: str, action: str, revision: int,
) -> str:  # fmt: skip
    """Write the block of a stored or changed memory; a change also names its action and
    revision."""
    hashes = dict(seal.pairs())
    changed = () if action == "add" else ("action", "revision")
    return _retain_form(agent, changed, tuple(hashes)).format(
        id=wire_value(memory_id), type=wire_value(memory_type), at=at, size=len(content.encode()),
        action=wire_value(action), revision=revision, hypothesis=wire_value(hypothesis),
        preview=wire_value(content[:PREVIEW]), **hashes,
    )  # fmt: skip


@lru_cache(maxsize=256)  # most blocks are of this kind
def _retain_form(agent: str, changed: tuple[str, ...], hashes: tuple[str, ...]) -> str:
    """Return the text of these blocks, with a name in braces for each value that is another one
    in every block."""
    more: list[list[Pair]] = [
        [(name, f"{{{name}}}") for name in names] for names in (changed, hashes)
    ]
    return Yamo(
        agent=agent_name(agent),
        intent=RETAIN,
        context=[
            ("memory_id", "{id}"),
            ("memory_type", "{type}"),
            ("timestamp", "{at}"),
            ("content_length", "{size}"),
            *more[0],
        ],
        constraints=[("hypothesis", "{hypothesis}")],
        priority="medium",
        output=[("memory_stored", "{id}"), ("content_preview", "{preview}")],
        meta=[
            ("rationale", "Memory persisted for semantic search and retrieval"),
            ("observation", "Content vectorized and stored in LanceDB"),
            ("confidence", "1.0"),
            *more[1],
        ],
        log=["memory_retained", "timestamp", "{at}", "id", "{id}", "type", "{type}"],
    ).text()


def erase(
    seal: Seal,
    *,
    agent: str,
    memory_id: str,
    at: str,
    tombstones: Iterable[tuple[str, str]],
    erased_by: str | None = None,
) -> str:
    """Write the block of an erasure. It names the blocks that quoted the memory, which makes
    their tombstones valid. `agent` is the agent of the chain, and `erased_by` the one that
    erased the memory."""
    by: list[Pair] = [] if erased_by in (None, agent) else [("erased_by", erased_by)]
    return Yamo(
        agent=agent_name(agent),
        intent=ERASE,
        context=[("memory_id", memory_id), ("action", "erase"), ("timestamp", at), *by],
        priority="medium",
        output=[
            ("memory_erased", memory_id),
            *(("block_erased", f"{block} {hashed}") for block, hashed in tombstones),
        ],
        meta=_meta_of(seal, "Memory erased on request"),
        log=["memory_erased", "timestamp", at, "id", memory_id],
    ).text()


def erased_blocks(text: str) -> list[tuple[str, str]]:
    """Return the blocks (id as written, hash) that the text of an erasure block names."""
    return _ERASED_BLOCK.findall(text) if has_intent(text, ERASE) else []


def recall(
    seal: Seal,
    *,
    agent: str,
    query: str,
    limit: int,
    filter: str | None,
    at: str,
    results: int,
    top_score: float,
) -> str:
    """Write the block of a search."""
    top = f"{top_score if results else 0.0:.2f}"
    why = "Retrieved most semantically relevant memories for current context"
    return Yamo(
        agent=agent_name(agent),
        intent=RECALL,
        context=[
            ("query", query),
            ("limit", limit),
            ("filter", _or_none(filter)),
            ("timestamp", at),
        ],
        output=[("results_found", results), ("top_score", top)],
        meta=[("rationale", why), ("confidence", top), *seal.pairs()],
        log=["memory_recalled", "timestamp", at, "query", query, "results", results],
    ).text()


def checkpoint(
    seal: Seal,
    *,
    agent: str,
    at: str,
    through: int,
    through_hash: str,
    removed: int,
    through_seal: str | None = None,
) -> str:
    """Write the block of a retention run: recall blocks up to `through` were removed, and the
    rest is a valid chain."""
    last = " ".join(filter(None, (str(through), through_hash, through_seal)))
    return Yamo(
        agent=agent_name(agent),
        intent=CHECKPOINT,
        context=[("timestamp", at)],
        output=[("recalls_sealed", removed), ("through_block", last)],
        meta=_meta_of(seal, "Recalls removed at the end of their retention"),
        log=["recalls_sealed", "timestamp", at, "through", through, "removed", removed],
    ).text()


def audit_read(seal: Seal, *, agent: str, auditor: str, what: str, at: str) -> str:
    """Write the block of an auditor who reads blocks of every scope."""
    return Yamo(
        agent=agent_name(agent),
        intent=READ_TRAIL,
        context=[("action", AUDIT_READ), ("auditor", auditor), ("reads", what), ("timestamp", at)],
        meta=_meta_of(seal, "Texts of every scope shown to a named auditor"),
        log=["audit_read", "timestamp", at, "auditor", auditor],
    ).text()


def rekey(
    seal: Seal, *, agent: str, old_key: str | None, new_key: str, proof: str | None, at: str
) -> str:
    """Write the block that moves a chain to another signing key, with a proof made with the old
    one."""
    return Yamo(
        agent=agent_name(agent),
        intent=REKEY,
        context=[("action", "rekey"), ("timestamp", at)],
        output=[("old_key", _or_none(old_key)), ("new_key", new_key), ("proof", _or_none(proof))],
        meta=_meta_of(seal, "The heads of this chain are signed with another key"),
        log=["signing_key_changed", "timestamp", at, "key", new_key],
    ).text()


def key_change(text: str) -> tuple[str, str, str] | None:
    """Return the old key, the new key and the proof that the text of a rekey block names."""
    found = _KEY_CHANGE.search(text) if has_intent(text, REKEY) else None
    return (found[1], found[2], found[3]) if found else None


def sealed_through(text: str) -> tuple[int, str, str | None] | None:
    """Return the last removed block (number, hash, seal) that the text of a checkpoint names."""
    found = _THROUGH.findall(text) if has_intent(text, CHECKPOINT) else []
    return (int(found[0][0]), found[0][1], found[0][2] or None) if len(found) == 1 else None


def seal_old(
    seal: Seal,
    *,
    agent: str,
    at: str,
    last: tuple[int, str],
    count: int,
    digest: str | None,
    verdict: str,
) -> str:
    """Write the first sealed block of a chain that an earlier version began. It names all blocks
    before it, and how the verification of these blocks ended; `digest` is None if they could not
    be read."""
    number, hash_ = last
    return Yamo(
        agent=agent_name(agent),
        intent=SEAL_OLD,
        context=[("action", "seal_old_blocks"), ("timestamp", at)],
        priority="high",
        output=[
            ("last_block", f"{number} {hash_}"),
            ("blocks_sealed", count),
            ("blocks_digest", _or_none(digest)),
            ("verification", verdict),
        ],
        meta=_meta_of(seal, "Blocks of an earlier version have no seal of their own"),
        log=["old_blocks_sealed", "timestamp", at, "blocks", count, "verification", verdict],
    ).text()


def sealed_rows(text: str) -> tuple[int, str, int, str] | None:
    """Return the last block (number, hash), the count and the digest of the blocks that the text
    of such a block names."""
    found = _OLD_ROWS.findall(text) if has_intent(text, SEAL_OLD) else []
    return (
        (int(found[0][0]), found[0][1], int(found[0][2]), found[0][3]) if len(found) == 1 else None
    )


# Intent, name of the id, rationale and log entry. RFC-0011 has no example of a synthesis; it
# follows the reflection.
_REFLECTION = (
    REFLECT,
    "reflection_id",
    "Aggregated high-signal patterns from recent memory",
    "memory_reflected",
)
_SYNTHESIS = (
    SYNTHESIZE,
    "synthesis_id",
    "Combined what related memories say",
    "memory_synthesized",
)


def reflect(
    seal: Seal, *, agent: str, topic: str | None, source_count: int, at: str, id_: str,
    insight: str, confidence: float, memory_id: str | None = None,
    words: tuple[str, str, str, str] = _REFLECTION,
) -> str:  # fmt: skip
    """Write the block of a reflection."""
    _check_id(id_, memory_id)
    intent, id_name, rationale, logged = words
    topic, certain = _or_none(topic), fraction_text(confidence)
    return Yamo(
        agent=agent_name(agent),
        intent=intent,
        context=[("topic", topic), ("source_count", source_count), ("timestamp", at)],
        output=[(id_name, id_), ("insight_preview", insight[:PREVIEW]), ("confidence", certain)],
        meta=[("rationale", rationale), ("confidence", certain), *seal.pairs()],
        log=[logged, "timestamp", at, "topic", topic, "sources", source_count],
    ).text()


synthesize = partial(reflect, words=_SYNTHESIS)


def lesson(
    seal: Seal, *, agent: str, situation: str, pattern_id: str, severity: str, at: str,
    hypothesis_confidence: float, lesson_id: str, oversight: str, rule: str, rule_confidence: float,
    rationale: str, scope: str, inverse: str | None, confidence: float, memory_id: str,
) -> str:  # fmt: skip
    """Write the block of a lesson."""
    _check_id(lesson_id, memory_id)
    if not _PATTERN_ID.fullmatch(pattern_id):
        raise ValueError(f"{pattern_id!r} is not a pattern id: expected 16 hex digits")
    block = Yamo(
        agent=agent_name(agent),
        intent=LESSON,
        context=[
            ("original_context", situation),
            ("error_pattern", pattern_id),
            ("severity", severity),
            ("timestamp", at),
        ],
        constraints=[
            ("hypothesis", "This lesson prevents recurrence of similar failures"),
            ("hypothesis_confidence", fraction_text(hypothesis_confidence)),
        ],
        priority="high",
        output=[
            ("lesson_id", lesson_id),
            ("oversight_description", oversight),
            ("preventative_rule", rule),
            ("rule_confidence", fraction_text(rule_confidence)),
        ],
        meta=[
            ("rationale", rationale),
            ("applicability_scope", scope),
            ("inverse_lesson", _or_none(inverse)),
            ("confidence", fraction_text(confidence)),
            *seal.pairs(),
        ],
        log=[
            "lesson_learned",
            "timestamp",
            at,
            "pattern",
            pattern_id,
            "severity",
            severity,
            "id",
            lesson_id,
        ],
        handoff=REFLECTOR,
    )
    check_lesson(block)
    return block.text()


def check_lesson(block: Yamo) -> None:
    """Raise `InvalidInput` if a block lacks what RFC-0011 requires of a lesson."""
    if (block.intent, block.handoff) != (LESSON, REFLECTOR):
        what = f"not a lesson: intent {block.intent}, handoff {shown(block.handoff)}"
        raise InvalidInput(what, expected=f"{LESSON}, {REFLECTOR}")
    sections = {
        "context": block.context,
        "constraints": block.constraints,
        "output": block.output,
        "meta": block.meta,
    }
    for section, key in _REQUIRED:
        if [bool(value.strip()) for value in _values(sections[section], key)] != [True]:
            raise InvalidInput(
                f"a lesson needs one {section}.{key}",
                expected="each required field once, not empty",
            )
    for severity in _values(block.context, "severity"):
        if severity not in LEVELS:
            raise InvalidInput(
                f"invalid severity {shown(severity)} of a lesson", expected=", ".join(LEVELS)
            )
    for section, key in _CONFIDENCES.items():
        for confidence in _values(sections[section], key):
            if not _FRACTION.fullmatch(confidence):
                what = f"invalid {section}.{key} {shown(confidence)} of a lesson"
                raise InvalidInput(what, expected="a number from 0.0 to 1.0")


def _values(fields: Sequence[Constraint], key: str) -> list[str]:
    return [str(field[1]) for field in fields if not isinstance(field, str) and field[0] == key]


def _meta_of(seal: Seal, rationale: str) -> list[Pair]:
    """Return the `meta` section of a block whose operation leaves no doubt."""
    return [("rationale", rationale), ("confidence", "1.0"), *seal.pairs()]


def _or_none(text: str | None) -> str:
    return "none" if text is None else text


def _check_id(id_: str, memory_id: str | None) -> None:
    if memory_id is not None and _memory_of(id_) != memory_id:
        raise ValueError(f"{id_} does not name {memory_id}: use `derived_id`")


def _memory_of(id_: str) -> str:
    rest = id_.partition("_")[2]
    return rest.removeprefix(_WHOLE) if rest.startswith(_WHOLE) else _MEMORY + rest
