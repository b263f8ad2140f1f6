"""Entities: what a text or a path is about, such as `project:atlas` or `person:maria`.

An entity is written `type:slug`. Only explicit forms count ("project: atlas", "the atlas project",
"@maria", `packages/atlas/src`). A word that may be anything is not an entity.
"""

import re
from itertools import pairwise

from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.text import MASK

ENTITY_TYPES = ("project", "agent", "feature", "person", "business", "chore")

# A longer one is not a name, and a text with more of them is a list of files.
_MAX_CHARS, _MAX_FOUND = 80, 100
_TYPES = "|".join(ENTITY_TYPES)
_SLUG = r"[^\W_][\w.-]*[^\W_]|[^\W_]"
_LABELLED = re.compile(
    rf"(?<![\w/.:-])({_TYPES})(?::|\s*[:=]\s)\s*(?:\"([^\"\n]{{1,60}})\"|({_SLUG}))(?![\w/:@])",
    re.IGNORECASE,
)
# "the atlas project", "our Blue Harbor project": one word, or several capitalised ones.
_NAMED = re.compile(
    r"\b(?:[Tt]he|[Oo]ur|[Mm]y) ((?:[A-Z][\w-]*)(?: [A-Z0-9][\w-]*){0,2}|[a-z][\w-]+)"
    r" (project|agent|feature|chore)\b(?![-_/]| (?:flags?|branch|branches|toggles?|requests?|set|"
    r"gates?|ids?|names?)\b)"
)
_TITLED = re.compile(r"\b[Pp]roject ([A-Z][\w-]+)\b(?!['’:]| [A-Z])")
_MENTION = re.compile(r"(?<![\w.@/`:+-])@([^\W\d_][\w-]{1,38})(?![\w/@(-]|\.\w)")
_URL = re.compile(r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]*+://\S+", re.IGNORECASE)
_PATH_RULES = (
    (re.compile(r"features?", re.IGNORECASE), "feature:{}"),
    (re.compile(r"components?", re.IGNORECASE), "feature:{}-component"),
    (re.compile(r"packages|apps|services", re.IGNORECASE), "project:{}"),
    (re.compile(r"docs", re.IGNORECASE), "feature:{}-docs"),
    (re.compile(r"(?:skill|tool)s?", re.IGNORECASE), "agent:{}"),
)
_PATH = re.compile(r"(?<![\w.@/\\-])[./\\]*+[\w.@-]++(?:[/\\][\w.@-]++)++")
_EXTENSION = re.compile(r"(?<=\w)(?:\.[a-z][a-z0-9]{0,9}){1,3}$", re.IGNORECASE)

# Words before "project", "feature" or "agent" that do not name one.
_NOT_NAMES = re.compile(
    r"new|old|next|last|first|second|third|other|same|whole|entire|current|existing|previous|main|"
    r"side|pet|final|real|best|only|actual|right|wrong|big|small|key|core|single|common|shared|"
    r"users?|coding|ai|llm|open-source|client-side|demo|sample|example|test|toy|following|above|"
    r"below|latest|original|parent|child|full|upstream|downstream|missing|killer|requested|hidden",
    re.IGNORECASE,
)
_NOT_PEOPLE = re.compile(
    r"property|staticmethod|classmethod|dataclass|override|pytest|params?|returns?|todo|deprecated|"
    r"media|import|keyframes|fixture|everyone|here|channel|all|team|types|latest|next",
    re.IGNORECASE,
)
_NOT_FILES = re.compile(r"index|readme|changelog|init|main|mod")


def find_entities(text: str) -> list[str]:
    """Return the first entities that a text names, and those of the paths in it, in the order of
    their first mention, each once.

    Masks are not entities. A text that may have secrets is redacted first: `ann@mail.com` would be
    the slug `ann-mail-com`.
    """
    found: list[tuple[int, str]] = []
    plain = _URL.sub(lambda url: " " * len(url.group()), MASK.sub("[]", text))
    for match in _LABELLED.finditer(plain):
        found.append((match.start(), _entity(match[1], match[2] or match[3])))
    for match in _NAMED.finditer(plain):
        if not _NOT_NAMES.fullmatch(match[1]):
            found.append((match.start(), _entity(match[2], match[1])))
    for match in _TITLED.finditer(plain):
        found.append((match.start(), _entity("project", match[1])))
    for match in _MENTION.finditer(plain):
        if not _NOT_PEOPLE.fullmatch(match[1]):
            found.append((match.start(), _entity("person", match[1])))
    for match in _PATH.finditer(plain):
        found += ((match.start(), entity) for entity in _in_path(match.group()))
    in_order = [entity for _, entity in sorted(found, key=lambda each: each[0])]
    return list(
        dict.fromkeys(
            each for each in in_order if not each.endswith(":") and len(each) <= _MAX_CHARS
        )
    )[:_MAX_FOUND]


def parse_entity(given: str) -> tuple[str | None, str]:
    """Return the type and the slug of an entity as a caller writes it: `project:atlas`, or only
    `atlas`, whose type is None."""
    before, colon, after = given.partition(":") if isinstance(given, str) else ("", "", "")
    kind, slug = (before.strip().lower(), _slug(after)) if colon else (None, _slug(before))
    if not slug or (kind is not None and kind not in ENTITY_TYPES):
        expected = f"`type:slug` with a type of {', '.join(ENTITY_TYPES)}, or a slug alone"
        raise InvalidInput(f"entity is {shown(given)}", expected=expected)
    return kind, slug


def _in_path(path: str) -> list[str]:
    """Return the entities of one path: of `packages/atlas/docs/setup.md` the project and the
    page."""
    parts = re.split(r"[/\\]", path)
    found = []
    for folder, name in pairwise(parts):
        slug = _slug(_EXTENSION.sub("", name))
        shape = next((shape for rule, shape in _PATH_RULES if rule.fullmatch(folder)), None)
        if shape and slug and not _NOT_FILES.fullmatch(slug):
            found.append(shape.format(slug))
    return found


def _entity(kind: str, name: str) -> str:
    return f"{kind.lower()}:{_slug(name)}"


def _slug(name: str) -> str:
    return re.sub(r"[\W_]+", "-", name.lower()).strip("-")
