"""Skills: texts that tell an agent how to do something, and how reliable each is.

A text names its skill in YAMO keys (`name;deploy;`) or in YAML frontmatter. In a folder of skills,
a file `SKILL.md` and the files beside and below it are one skill.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from itertools import takewhile
from typing import Self

from memory_mesh.core.audit.blocks import wire_value
from memory_mesh.core.errors import InvalidInput, fraction, whole_number
from memory_mesh.core.language.frontmatter import split_frontmatter
from memory_mesh.core.model import Memory, Reach, Reader, Skill, Value, parse_time, reach_of
from memory_mesh.core.text import short_repr, shortened, split_sentences

FILE = "SKILL.md"
EXTENSIONS = (".md", ".yamo")
FIRST_RELIABILITY, PRUNED_BELOW = 0.5, 0.3
SUCCESS, FAILURE = 0.1, -0.2
KEYWORDS, VECTOR = 0.7, 0.3  # of the score of a search
# Of the keywords found in each text.
WEIGHTS: Mapping[str, int] = {"name": 3, "intent": 2, "tags": 1, "description": 1}
# The metadata keys of a skill's own record.
USE = ("reliability", "use_count", "last_used", "created_at")

_PREFIX = "skill:"
_DIGITS = 10  # of a reliability: 0.7 - 0.2 - 0.2 must not be less than 0.3
_MAX_NAME, _MAX_INTENT = 200, 300
_KEYS = re.compile(
    r"^[ \t]*(name|agent|intent|description|tags)[ \t]*[:;][ \t]*([^\n]*?)[ \t;]*$",
    flags=re.MULTILINE | re.I,
)
_FIRST_LINE = re.compile(
    r"\s*[A-Za-z_]\w*[ \t]*[:;][^\n]*;[ \t]*(?:\n|\Z)|\s*[A-Za-z_]\w*:[ \t]*\n[ \t]+\S[^\n]*;"
)
_KEYS_EXPECTED = "name: … and description: …"
_EXPECTED = (
    "YAMO keys such as `name;deploy;` and `intent;Deploy the site.;`, or YAML frontmatter with "
    "name and description"
)
_FROM_FILE = "a file is read by `memory-mesh ingest-skill --file FILE`"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillText:
    """What a text says about its skill. The intent may be longer than one sentence; see
    `first_sentence`."""

    name: str
    intent: str
    description: str | None = None
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True, repr=False)
class SkillRecord:
    """A skill as callers see it. Times are ISO 8601 texts in UTC."""

    __repr__ = short_repr

    id: str
    name: str
    intent: str
    yamo_text: str
    metadata: dict[str, Value]
    created_at: str
    updated_at: str = field(repr=False)
    reliability: float
    use_count: int
    last_used: str | None = None
    description: str | None = None
    tags: list[str] = field(default_factory=list)
    status: str
    user_id: str | None = None
    agent_id: str | None = None
    session_id: str | None = None
    project: str | None = None
    memory_type: str
    sources: list[str] = field(default_factory=list)  # ids of the memories that it was made from
    revision: int = 1
    # In the result of a write: how many values of each kind it masked. Not stored.
    redactions: dict[str, int] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, skill: Skill, **more: object) -> Self:
        """Return the public part of a skill; `more` sets further fields."""
        description, last_used = (skill.metadata.get(name) for name in ("description", "last_used"))
        values: dict[str, object] = {
            **{name: getattr(skill, name) for name in _SHARED},
            "yamo_text": skill.content,
            "reliability": reliability_of(skill),
            "use_count": _use_count(skill.metadata),
            "last_used": last_used if isinstance(last_used, str) else None,
            "description": description if isinstance(description, str) else None,
        }
        return cls(**values, **more)  # type: ignore[arg-type]


_SHARED = (
    "id", "name", "intent", "created_at", "updated_at", "status", "user_id", "agent_id",
    "session_id", "project", "memory_type", "revision", "metadata", "tags", "sources", "redactions",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, repr=False)
class SkillResult(SkillRecord):
    """A skill with its score for a query: 0.7 × `keyword_score` + 0.3 × `vector_score`.

    `keyword_fractions` has the fraction of the words of the query that are in name, intent, tags
    and description; the keyword score is computed from them. `vector_score` is the similarity of
    query and intent (0–1); None: they cannot be compared.
    """

    __repr__ = short_repr

    score: float
    keyword_score: float
    vector_score: float | None
    keyword_fractions: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReliabilityUpdate:
    """How reliable a skill is after a use."""

    __repr__ = short_repr

    id: str
    reliability: float
    use_count: int
    last_used: str
    previous: float  # the reliability before


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneResult:
    """How many skills were archived, how many active ones are left, and the ids of the archived
    ones."""

    __repr__ = short_repr

    pruned_count: int
    total_remaining: int
    ids: tuple[str, ...] = ()


# --- reading a text ---


def read_skill(text: str, given: Mapping[str, Value], default_name: str | None = None) -> SkillText:
    """Return what a text says about its skill, or raise `InvalidInput`. What is in `given` has
    precedence over the text."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    front, end = split_frontmatter(plain, expected=_KEYS_EXPECTED)
    written: dict[str, object] = {}
    for found in _KEYS.finditer(plain, end):
        if found[2]:
            written.setdefault(found[1].lower(), found[2])
    written |= front
    tags = [*_tags(written.get("tags")), *_tags(given.get("tags"))]
    texts = {
        key: _scalar(key, given.get(key) or written.get(key))
        for key in ("name", "agent", "intent", "description")
    }
    name, intent = (
        texts["name"] or texts["agent"] or default_name,
        texts["intent"] or texts["description"],
    )
    if not name or not intent:
        remedy = _FROM_FILE if not written and len(text.split()) == 1 else ""
        raise InvalidInput(
            f"the skill has no {'intent' if name else 'name'}", expected=_EXPECTED, remedy=remedy
        )
    if len(name) > _MAX_NAME:
        raise InvalidInput(
            f"the name of the skill has {len(name):,} characters", expected=f"at most {_MAX_NAME}"
        )
    return SkillText(
        name=name, intent=intent, description=texts["description"], tags=tuple(dict.fromkeys(tags))
    )


def is_skill_text(text: str) -> bool:
    """Return whether a text begins as a skill does: with frontmatter, or with a YAMO key. Other
    files are documentation."""
    plain = text.removeprefix("\ufeff").replace("\r\n", "\n")
    return plain.startswith("---\n") or _FIRST_LINE.match(plain) is not None


def skill_files(paths: Iterable[str]) -> list[str]:
    """Return the files that may be skills; not those beside or below a `SKILL.md`, which belong
    to that skill."""
    files = list(paths)
    folders = tuple(path.removesuffix(FILE) for path in files if path.rpartition("/")[2] == FILE)
    return [
        path for path in files if path.rpartition("/")[2] == FILE or not path.startswith(folders)
    ]


def default_name(path: str) -> str:
    """Return the name of a skill whose file does not say it: that of its folder, or that of the
    file without its ending."""
    *folders, file = path.split("/")
    return (
        folders[-1] if file == FILE and folders and folders[-1] else file.rpartition(".")[0] or file
    )


def first_sentence(text: str) -> str:
    """Return the first sentence of a text on one line, shortened if it is very long."""
    first, *more = split_sentences(" ".join(text.strip().partition("\n\n")[0].split()))
    for part in takewhile(lambda part: part[:1].islower(), more):  # what follows an abbreviation
        first = f"{first} {part}"
    return shortened(first, _MAX_INTENT)


def _scalar(key: str, value: object) -> str | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, dict | list | tuple | bool):
        # Its type only: a few aliases of YAML make a value of billions of items.
        raise InvalidInput(f"the {key} of the skill is a {type(value).__name__}", expected="text")
    text = _storable(key, str(value))
    return " ".join(text.split()) if key in ("name", "agent") else text.strip()


def _tags(value: object) -> list[str]:
    listed = value.split(",") if isinstance(value, str) else [] if value is None else value
    if not isinstance(listed, list) or not all(
        isinstance(tag, str | int | float) for tag in listed
    ):
        what = (
            "a list that has other items"
            if isinstance(listed, list)
            else f"a {type(listed).__name__}"
        )
        raise InvalidInput(f"the tags of the skill are {what}", expected="a list of texts")
    return [tag for one in listed if (tag := _storable("tags", str(one)).strip())]


def _storable(key: str, text: str) -> str:
    """Return the text if a store can keep it: the escapes of YAML write what a file in UTF-8
    cannot contain."""
    if "\0" in text or any("\ud800" <= char <= "\udfff" for char in text):
        raise InvalidInput(
            f"the {key} of the skill has NUL or half a surrogate pair", expected="valid Unicode"
        )
    return text


# --- identity and use ---


def skill_fingerprint(columns: Mapping[str, Value], owner: Reader, *identity: str) -> str:
    """Return the fingerprint by which a skill is found again: its scope, and its file, its
    source or its name."""
    reach = reach_of(columns.get("memory_type"), columns.get("reach"))
    agent = [] if reach is Reach.GLOBAL else [owner.agent_id]
    session = [columns.get("session_id")] if reach is Reach.SESSION else []
    scope = [owner.user_id, columns.get("project"), reach.value, agent, session]
    return _PREFIX + sha256(json.dumps([scope, identity]).encode()).hexdigest()


def first_use(metadata: Mapping[str, Value], at: str) -> dict[str, Value]:
    """Return the record of use of a new skill. A caller who moves skills from elsewhere may give
    all but the time of creation."""
    if "created_at" in metadata:
        raise InvalidInput(
            "metadata.created_at is given",
            remedy="leave it out: it is the time at which the skill is stored",
        )
    last_used = metadata.get("last_used")
    return {
        "reliability": fraction(
            "metadata.reliability", metadata.get("reliability", FIRST_RELIABILITY)
        ),
        "use_count": whole_number("metadata.use_count", metadata.get("use_count", 0), min_=0),
        "last_used": None if last_used is None else parse_time(last_used, "metadata.last_used"),
        "created_at": at,
    }


def used(skill: Skill, *, success: bool, at: str) -> dict[str, Value]:
    """Return the metadata of a skill after a use: success adds 0.1 to its reliability, failure
    takes 0.2, within 0 and 1."""
    reliability = min(1.0, max(0.0, reliability_of(skill) + (SUCCESS if success else FAILURE)))
    count = _use_count(skill.metadata) + 1
    return {
        **skill.metadata,
        "reliability": round(reliability, _DIGITS),
        "use_count": count,
        "last_used": at,
    }


def reliability_of(skill: Skill) -> float:
    """Return the reliability of a skill; without a valid one it is that of a new skill."""
    value = skill.metadata.get("reliability")
    valid = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if valid else FIRST_RELIABILITY  # type: ignore[arg-type]


def is_pruned(skill: Skill, threshold: float) -> bool:
    """Return whether the reliability of a skill is strictly below a threshold."""
    return reliability_of(skill) < threshold


def _use_count(metadata: Mapping[str, Value]) -> int:
    value = metadata.get("use_count")
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


# --- searching ---


def searched_texts(skill: Skill) -> dict[str, str]:
    """Return the texts of a skill in which keywords are looked for."""
    description = skill.metadata.get("description")
    return {
        "name": skill.name,
        "intent": skill.intent,
        "tags": " ".join(skill.tags),
        "description": description if isinstance(description, str) else "",
    }


def keyword_fractions(
    query: Collection[str], texts: Mapping[str, Collection[str]]
) -> dict[str, float]:
    """Return the fraction of the query's words that are in each text."""
    words = set(query)
    return {
        name: len(words.intersection(texts.get(name, ()))) / len(words) if words else 0.0
        for name in WEIGHTS
    }


def keyword_score(fractions: Mapping[str, float]) -> float:
    """Return the weighted mean of the fractions: of the words in the name most, then of those in
    the intent."""
    return sum(WEIGHTS[name] * fractions[name] for name in WEIGHTS) / sum(WEIGHTS.values())


def final_score(keywords: float, vector: float | None) -> float:
    """Return the score of RFC-0011, section 5.3. Without vectors it is that of the keywords
    alone, at most 0.7."""
    return KEYWORDS * keywords + VECTOR * (vector or 0.0)


# --- a lesson as a skill ---


def lesson_text(lesson: Memory) -> str:
    """Return a lesson as the text of a skill, in YAMO keys."""
    values = {
        key: wire_value(value)
        for key, value in lesson.metadata.items()
        if isinstance(value, str) and value
    }
    rule = values.get("preventative_rule") or wire_value(lesson.content)
    steps = {"when": "situation", "missed": "oversight", "fix": "fix", "instead": "inverse_lesson"}
    pairs: Sequence[tuple[str, str | None]] = (
        ("name", values.get("error_pattern") or f"lesson {lesson.lesson_pattern_id or lesson.id}"),
        ("intent", rule),
        (
            "description",
            f"{rule} Applies to: {values['applicable_scope']}"
            if "applicable_scope" in values
            else None,
        ),
        ("tags", "lesson_learned"),
    )
    lines = [f"{key};{value};" for key, value in pairs if value]
    more = [f"  {step};{values[key]};" for step, key in steps.items() if key in values]
    return "\n".join([*lines, *(["context:", *more] if more else [])]) + "\n"
