"""What schemathesis has to know besides the description of the server: values of three grammars,
and rules that JSON Schema cannot express."""

from typing import Any

import schemathesis
from hypothesis import strategies as st

from memory_mesh.core.text import is_blank

_MAX_LENGTH = 10_000
_MAX_INTEGER = 2**53
_WORD = st.from_regex(r"[a-z][a-z0-9]{0,9}", fullmatch=True)
_TERM = st.one_of(
    st.builds("{} = '{}'".format, st.sampled_from(["tags", "memory_type", "project"]), _WORD),
    st.builds("metadata.{} > {}".format, _WORD, st.integers(0, 1000)),
)
_EARLIER_LATER = (
    ("since", "until"),
    ("after", "before"),
    ("valid_from", "valid_until"),
)

# Nested expressions, the text of a skill, and at most 366 days in any unit are no patterns that a
# person could read.
_GRAMMARS = {
    "filter": st.one_of(
        _TERM, st.builds("({} {} {})".format, _TERM, st.sampled_from(["AND", "OR"]), _TERM)
    ),
    "skill": st.builds("name;{};\nintent;{} it.;\n".format, _WORD, _WORD),
    "span": st.builds("{}{}".format, st.integers(1, 366), st.sampled_from("smhd")),
}
for name, values in _GRAMMARS.items():
    schemathesis.openapi.format(name, values)
schemathesis.serializer("application/x-ndjson")(lambda _, value: str(value).encode())


@schemathesis.hook
def before_load_schema(context: Any, raw_schema: Any) -> None:
    """Leave out limits of long texts: to generate 100,000 characters that match a pattern takes
    minutes. `test_rest.py` tests these limits."""
    _without_long(raw_schema)


@schemathesis.hook
def filter_case(context: Any, case: Any) -> bool:
    """Leave out what is valid by the description and refused by a rule between two places."""
    if case.meta is None or not case.meta.generation.mode.is_positive:
        return True
    body = case.body if isinstance(case.body, dict) else {}
    given = {**(case.query or {}), **body}
    headers = case.headers or {}
    # OpenAPI has no rule about two parameters of a query.
    if case.operation.label == "GET /v1/get" and ("id" in given) == ("key" in given):
        return False
    # Nor about a header and the body.
    key, user = headers.get("Idempotency-Key"), headers.get("Memory-User")
    if key is not None and given.get("idempotency_key", key) != key:
        return False
    if user is not None and given.get("user_id", user) != user:
        return False
    # No pattern that all dialects read names the characters that are not displayed: Python has no
    # property classes, JavaScript no escapes above U+FFFF. The description says it in words.
    if _has_invisible_text(given):
        return False
    # JSON Schema does not compare values.
    holders = (given, given.get("claim"))
    if any(_is_reversed(one) for one in holders if isinstance(one, dict)):
        return False
    if "known_at" in given and str(given["known_at"]) > "2026":
        return False
    # The numbers and the depth of metadata are limited at every level; a schema that refers to
    # itself is too much for generators of clients.
    return all(_fits(given.get(name), 14) for name in ("metadata", "provenance", "items"))


def _without_long(schema: Any) -> None:
    if isinstance(schema, dict):
        length = schema.get("maxLength")
        if isinstance(length, int) and length > _MAX_LENGTH:
            del schema["maxLength"]
        if schema.get("format") in _GRAMMARS:  # which says more than the pattern
            schema.pop("pattern", None)
            schema.pop("maxLength", None)
        for part in schema.values():
            _without_long(part)
    elif isinstance(schema, list):
        for part in schema:
            _without_long(part)


def _has_invisible_text(value: Any) -> bool:
    if isinstance(value, dict | list):
        parts = value.values() if isinstance(value, dict) else value
        return any(map(_has_invisible_text, parts))
    return isinstance(value, str) and not value.isspace() and value != "" and is_blank(value)


def _is_reversed(given: dict[str, Any]) -> bool:
    # Times of other zones are not compared: the case may be left out though it is valid.
    return any(
        first in given and last in given and str(given[first])[:10] >= str(given[last])[:10]
        for first, last in _EARLIER_LATER
    )


def _fits(value: Any, depth: int) -> bool:
    if isinstance(value, dict):
        return depth > 0 and all(_fits(part, depth - 1) for part in value.values())
    if isinstance(value, list):
        return depth > 0 and all(_fits(part, depth - 1) for part in value)
    return isinstance(value, str | bool | None) or abs(value) <= _MAX_INTEGER
