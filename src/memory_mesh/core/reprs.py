"""The short `repr` of a record: one line, long texts cut, and no field that is empty, has its default value or is internal."""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from typing import Any

_MAX_CHARS = 60
_MAX_ITEMS = 3


def short_repr(record: Any) -> str:
    """Return the `repr` of a dataclass. Fields that are declared with `repr=False` are left out.

    A class uses it as `__repr__ = short_repr`; so does each of its subclasses, or the dataclass decorator writes another.
    """
    values = ((field, getattr(record, field.name)) for field in fields(record) if field.repr)
    shown = [f"{field.name}={_short(value)}" for field, value in values if not (_is_empty(value) or value == _default(field))]
    return f"{type(record).__name__}({', '.join(shown)})"


def _is_empty(value: object) -> bool:
    return value is None or (isinstance(value, str | Mapping | Sequence) and not value)


def _default(field: Any) -> object:
    return field.default_factory() if field.default_factory is not MISSING else field.default


def _short(value: object) -> str:
    if isinstance(value, Enum):
        return repr(value.value)
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_CHARS else value[: _MAX_CHARS - 1] + "…")
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, Mapping):
        pairs = [f"{_short(name)}: {_nested(part)}" for name, part in list(value.items())[:_MAX_ITEMS]]
        return "{" + _listed(pairs, len(value)) + "}"
    if isinstance(value, list | tuple):
        if all(is_dataclass(item) for item in value):
            return f"<{len(value):,} × {type(value[0]).__name__}>"
        return "[" + _listed([_nested(item) for item in value[:_MAX_ITEMS]], len(value)) + "]"
    return repr(value)


def _nested(value: object) -> str:
    """Return the `repr` of a value inside a list or mapping: what is inside of that is only counted."""
    if isinstance(value, Mapping | list | tuple):
        return f"<{len(value):,} item{'s' * (len(value) != 1)}>"
    return _short(value)


def _listed(shown: list[str], count: int) -> str:
    return ", ".join([*shown, *([f"… {count:,} in all"] if count > len(shown) else [])])
