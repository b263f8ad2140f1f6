"""YAML frontmatter: the lines between two `---` at the beginning of a Markdown text."""

import json
import math
import re
from contextlib import suppress

from memory_mesh.core.errors import InvalidInput

MAX_CHARS = 20_000
_FRONTMATTER = re.compile(r"---[ \t]*\n(.*?\n)?(?:---|\.\.\.)[ \t]*(?:\n|\Z)", flags=re.DOTALL)
_PLAIN = re.compile(r"[A-Za-z][\w /.-]*(?<! )")  # needs no quotes in YAML
_YAML_WORDS = frozenset({"true", "false", "yes", "no", "on", "off", "null", "y", "n"})
_BRACKET = re.compile(r"[][{}]")
_MAX_DEPTH = 100
_NULL = ("", "~", "null", "Null", "NULL")


def split_frontmatter(
    text: str, *, expected: str, line: int = 1, max_chars: int = MAX_CHARS, keep_empty: bool = False
) -> tuple[dict[str, object], int]:
    """Return the values of the frontmatter, each a text, a list or a mapping, and where it ends;
    empty and 0 if there is none.

    Keys without a value are left out, or kept with `keep_empty`. `expected` says in errors which
    keys are, and `line` is the line of the text in its file.
    """
    if not text.startswith("---") or text[3:].lstrip(" \t")[:1] != "\n":
        return {}, 0
    found = _FRONTMATTER.match(text)
    if found is None:
        raise InvalidInput("the frontmatter has no end", expected="a line with --- after it")
    if len(found[0]) > max_chars:
        raise InvalidInput(
            f"the frontmatter has {len(found[0]):,} characters", expected=f"at most {max_chars:,}"
        )
    import yaml  # slow to load, and most texts have no frontmatter

    try:
        values = _loaded(found[1] or "")
        size = _size(values, {})
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        # Without the message of the parser, which quotes the text.
        where = f", line {mark.line + 1 + line}" if mark else ""
        raise InvalidInput(f"the frontmatter is not valid YAML{where}", expected=expected) from None
    if size > 2 * max_chars:  # aliases may repeat a part, or contain themselves
        raise InvalidInput(
            "the frontmatter repeats its parts too often", expected="values without aliases"
        )
    if not isinstance(values, dict):
        raise InvalidInput("the frontmatter has no keys", expected=expected)
    return {
        str(key): value for key, value in values.items() if keep_empty or value not in _NULL
    }, found.end()


def _loaded(text: str) -> object:
    import yaml

    _check_depth(text)
    # Every scalar stays a text: a name such as `on` or `2026-01-01` is not read as another type,
    # and no converter can fail.
    if loader := getattr(yaml, "CBaseLoader", None):
        # It is ten times as fast, and refuses a little more.
        with suppress(yaml.YAMLError, ValueError):
            return yaml.load(text, Loader=loader)  # noqa: S506  (makes texts, lists and mappings only)
    return yaml.load(text, Loader=yaml.BaseLoader)  # noqa: S506


def _check_depth(text: str) -> None:
    """Raise `ValueError` for brackets within brackets that the YAML reader would need seconds
    for."""
    depth = 0
    for mark in _BRACKET.findall(text):
        depth = depth + 1 if mark in "[{" else max(0, depth - 1)
        if depth > _MAX_DEPTH:
            raise ValueError("too many brackets within brackets")


def _size(value: object, sizes: dict[int, float]) -> float:
    """Return how many characters a value has with all that its aliases repeat."""
    if not isinstance(value, list | dict):
        return len(str(value)) + 1
    if id(value) not in sizes:
        sizes[id(value)] = math.inf  # while it is counted: then it contains itself
        sizes[id(value)] = 1 + sum(
            _size(part, sizes) for part in (value.values() if isinstance(value, dict) else value)
        )
    return sizes[id(value)]


def quoted(text: str) -> str:
    """Return a text in double quotes: the strings of JSON are strings of YAML, but for what is
    not displayed."""
    written = json.dumps(text, ensure_ascii=False)
    return (
        written
        if written.isprintable()
        else "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)
    )


def scalar(text: str) -> str:
    """Return a text as a value of YAML, without quotes if it needs none."""
    return text if _PLAIN.fullmatch(text) and text.lower() not in _YAML_WORDS else quoted(text)
