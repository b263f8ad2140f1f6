"""Times as text: ISO 8601 in UTC with milliseconds and `Z`. On every store these texts sort in the order of time."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

from memory_mesh.core.errors import InvalidInput, SettingsError, shown

# A clock as a caller may give it: seconds since 1970, or a datetime.
GivenClock = Callable[[], float | int | datetime]

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
_YEAR_10000 = 253_402_300_800


def iso(ms: int) -> str:
    """Format Unix milliseconds as text."""
    return _text(EPOCH + timedelta(milliseconds=ms))


def millis(text: str) -> int:
    """Parse the text of a time into Unix milliseconds."""
    return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND


def parse_time(value: object, name: str) -> str:
    """Convert an ISO 8601 text, date or datetime (UTC when it has no zone) to the stored form; `name` is the field in errors."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _not_a_time(value, name) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _not_a_time(value, name)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return _text(aware.astimezone(UTC))
    except OverflowError:
        raise _not_a_time(value, name) from None


def as_clock(given: GivenClock | None, now_ns: Callable[[], int]) -> Callable[[], int]:
    """Return a clock of Unix milliseconds that reads the caller's clock, or `now_ns` if none is given."""
    if given is None:
        return lambda: now_ns() // 1_000_000

    def clock() -> int:
        at = given()
        if isinstance(at, datetime):
            at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if not isinstance(at, int | float) or not 0 <= at < _YEAR_10000:
            raise SettingsError(f"the clock returned {shown(at)}", expected="seconds since 1970, or a datetime")
        return round(at * 1000)

    return clock


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _not_a_time(value: object, name: str) -> InvalidInput:
    return InvalidInput(f"{name} {str(value)[:60]!r} is not a time", expected="ISO 8601, e.g. 2026-03-01T09:30:00Z")
