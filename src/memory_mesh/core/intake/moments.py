"""Times as programs write them into messages and metadata."""

from memory_mesh.core.checks import is_number, number
from memory_mesh.core.model import iso, parse_time

_MAX_TIME = 253_402_300_799_000  # the end of the year 9999 in milliseconds
_MILLISECONDS = 1e11  # a larger timestamp is in milliseconds: as seconds it would be after the year 5000


def parse_moment(value: object, name: str) -> str:
    """Convert a time to the stored form: ISO 8601, a datetime, or seconds or milliseconds since 1970."""
    if not is_number(value):
        return parse_time(value, name)
    seconds = number(name, value, min_=0, max_=_MAX_TIME, expected="seconds since 1970, or ISO 8601")
    return iso(round(seconds if seconds > _MILLISECONDS else seconds * 1000))
