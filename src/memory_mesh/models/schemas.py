"""JSON schemas, as providers take them."""

from collections.abc import Mapping

from memory_mesh.core.model.columns import Json

_BOUNDS = frozenset(
    {
        *("minLength", "maxLength", "pattern", "format"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems", "uniqueItems", "minProperties", "maxProperties"),
    }
)
_BY_NAME = ("properties", "$defs")  # the keys below are names of ours, not words of JSON Schema
_BELOW = ("items", "additionalProperties")
_EACH = ("anyOf", "allOf", "oneOf")


def without_bounds(schema: Mapping[str, Json]) -> dict[str, Json]:
    """The same shape without the bounds on lengths and numbers.

    Remote providers refuse a schema that holds one. Nothing is lost: whoever asks checks the answer all the same.
    """
    return {word: _loosened(word, value) for word, value in schema.items() if word not in _BOUNDS}


def _loosened(word: str, value: Json) -> Json:
    if word in _BY_NAME and isinstance(value, dict):
        return {name: _any(below) for name, below in value.items()}
    if word in _BELOW:
        return _any(value)
    if word in _EACH and isinstance(value, list):
        return [_any(below) for below in value]
    return value


def _any(schema: Json) -> Json:
    return without_bounds(schema) if isinstance(schema, dict) else schema
