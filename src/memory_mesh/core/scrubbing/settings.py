"""The scrubber's settings, in the document's groups. What is given is merged deeply: a group given in part keeps the rest."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from memory_mesh.core.errors import InvalidInput, shown

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
Group = TypeVar("Group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Structural:
    """Stage 1."""

    strip_html: bool = True
    strip_markdown: bool = True
    collapse_whitespace: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """Stage 2."""

    remove_duplicates: bool = True
    remove_boilerplate: bool = True
    min_signal_ratio: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """Stage 3."""

    headings: bool = True
    lists: bool = True
    punctuation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """Stage 4, in tokens."""

    max_tokens: int = 500
    hard_max_tokens: int = 2000
    min_tokens: int = 10
    heading_aware: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Stage 6, in characters."""

    enforce_min_length: bool = True
    min_length: int = 10
    max_length: int = 1_000_000
    reject_empty: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """All of them."""

    enabled: bool = True
    structural: Structural = field(default_factory=Structural)
    semantic: Semantic = field(default_factory=Semantic)
    normalisation: Normalisation = field(default_factory=Normalisation)
    chunking: Chunking = field(default_factory=Chunking)
    validation: Validation = field(default_factory=Validation)

    def merged(self, overrides: Mapping[str, object]) -> "ScrubSettings":
        """These settings with some of them replaced; names may be written as the document writes them (`minTokens`)."""
        return _merged(self, overrides, "scrub")


# How the mesh makes its scrubber: a memory may be short.
MESH_OVERRIDES: Mapping[str, object] = {
    "enabled": True,
    "chunking": {"minTokens": 1},
    "validation": {"enforceMinLength": False},
}


def _merged(group: Group, overrides: object, path: str) -> Group:
    if not isinstance(overrides, Mapping):
        raise InvalidInput(f"{path} is {shown(overrides)}", expected="a table of settings")
    known = {f.name: getattr(group, f.name) for f in fields(group)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for raw, value in overrides.items():
        name = _HUMP.sub("_", str(raw)).lower()
        if name not in known:
            raise InvalidInput(f"{path} has no setting {shown(raw)}", expected=f"one of {', '.join(known)}")
        held = known[name]
        merge = _merged if is_dataclass(held) else _fit
        given[name] = merge(held, value, f"{path}.{name}")
    return replace(group, **given)  # type: ignore[type-var]


def _fit(held: object, value: object, path: str) -> object:
    number = isinstance(held, int | float) and not isinstance(held, bool)
    fits = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 if number else isinstance(value, bool)
    if not fits or (isinstance(held, int) and isinstance(value, float)):
        raise InvalidInput(f"{path} is {shown(value)}", expected="a number from 0" if number else "true or false")
    return value
