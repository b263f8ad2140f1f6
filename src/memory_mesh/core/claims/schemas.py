"""The schemas of predicates: whether one may have several values, and what happens when values exclude each other."""

from collections.abc import Mapping
from dataclasses import dataclass, fields

from memory_mesh.core.checks import suggestion
from memory_mesh.core.claims.normalize import NORMALIZERS
from memory_mesh.core.errors import SettingsError, shown
from memory_mesh.core.intake import folded_text

# The values that each part of a schema may have; the first one is the default.
_CHOICES: Mapping[str, tuple[str, ...]] = {
    "cardinality": ("single", "multi"),
    "conflict_policy": ("supersede", "require_review", "keep_both"),
    "normalize": tuple(NORMALIZERS),
    "dedup_policy": ("corroborate", "store"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """How the claims of a predicate are compared."""

    cardinality: str = "single"
    conflict_policy: str = "supersede"
    normalize: str = "none"
    dedup_policy: str = "corroborate"

    def normalized(self, value: str) -> str:
        """Return a value as it is compared."""
        return NORMALIZERS[self.normalize](value)


DEFAULT = Schema()


class Schemas(dict[str, Schema]):
    """The schemas by predicate; case and spaces of a predicate do not matter, and other predicates have the default."""

    def __missing__(self, predicate: str) -> Schema:
        return self.get(folded_text(predicate), DEFAULT)


def read_schemas(given: Mapping[str, object] | None) -> Schemas:
    """Return the schemas of the option `predicate_schemas`, or raise `SettingsError`."""
    read = ((predicate, _read(predicate, schema)) for predicate, schema in (given or {}).items())
    return Schemas({folded_text(predicate): schema for predicate, schema in read})


def _read(predicate: object, given: object) -> Schema:
    name = f"predicate_schemas.{predicate}"
    if not isinstance(predicate, str) or not predicate.strip():
        raise SettingsError(f"predicate_schemas has the predicate {shown(predicate)}", expected="a non-empty text")
    if not isinstance(given, Mapping):
        raise SettingsError(f"{name} is {shown(given)}", expected=f"a table with {', '.join(_CHOICES)}")
    for part, value in given.items():
        if part not in _CHOICES:
            what, expected = f"{name} has the unknown key {shown(part)}", f"one of {', '.join(_CHOICES)}"
            raise SettingsError(what, expected=expected, remedy=suggestion(part, _CHOICES))
        if not isinstance(value, str) or value not in _CHOICES[part]:
            raise SettingsError(f"{name}.{part} is {shown(value)}", expected=f"one of {', '.join(_CHOICES[part])}")
    return Schema(**{each.name: str(given[each.name]) for each in fields(Schema) if each.name in given})
