"""The settings of the scrubber, in the groups of RFC-0011. Overrides are merged deeply: unnamed settings keep their value."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from memory_mesh.core.checks import is_number
from memory_mesh.core.errors import InvalidInput, shown

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
Group = TypeVar("Group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Structural:
    """Settings of stage 1."""

    strip_html: bool = True
    strip_markdown: bool = True
    collapse_whitespace: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """Settings of stage 2."""

    remove_duplicates: bool = True
    remove_boilerplate: bool = True
    min_signal_ratio: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """Settings of stage 3."""

    headings: bool = True
    lists: bool = True
    punctuation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """Settings of stage 4, in tokens."""

    max_tokens: int = 500
    hard_max_tokens: int = 2000
    min_tokens: int = 10
    heading_aware: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Settings of stage 6, in characters."""

    enforce_min_length: bool = True
    min_length: int = 10
    max_length: int = 1_000_000
    reject_empty: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """The settings of all stages."""

    enabled: bool = True
    structural: Structural = field(default_factory=Structural)
    semantic: Semantic = field(default_factory=Semantic)
    normalisation: Normalisation = field(default_factory=Normalisation)
    chunking: Chunking = field(default_factory=Chunking)
    validation: Validation = field(default_factory=Validation)

    def merged(self, overrides: Mapping[str, object]) -> "ScrubSettings":
        """Return these settings with some replaced. Names may be in camel case, as in RFC-0011 (`minTokens`)."""
        return _merged(self, overrides, "scrub")


# The defaults of a mesh: a memory may be short.
MESH_OVERRIDES: Mapping[str, object] = {"enabled": True, "chunking": {"minTokens": 1}, "validation": {"enforceMinLength": False}}


def _merged(group: Group, overrides: object, path: str) -> Group:
    if not isinstance(overrides, Mapping):
        raise InvalidInput(f"{path} is {shown(overrides)}", expected="a table of settings")
    known = {f.name: getattr(group, f.name) for f in fields(group)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for raw, value in overrides.items():
        name = _HUMP.sub("_", str(raw)).lower()
        if name not in known:
            raise InvalidInput(f"unknown setting {shown(raw)} in {path}", expected=f"one of {', '.join(known)}")
        merge = _merged if is_dataclass(known[name]) else _checked
        given[name] = merge(known[name], value, f"{path}.{name}")
    return replace(group, **given)  # type: ignore[type-var]


def _checked(current: object, value: object, path: str) -> object:
    """Return the value if it has the type of the current one."""
    fits = isinstance(value, bool) if isinstance(current, bool) else is_number(value, min_=0)
    if not fits or (type(current) is int and isinstance(value, float)):
        expected = "true or false" if isinstance(current, bool) else "a number from 0"
        raise InvalidInput(f"{path} is {shown(value)}", expected=expected)
    return value
