"""Moments as text: ISO 8601, UTC, milliseconds, `Z`. Such texts sort as the moments do, on every store."""

from datetime import UTC, date, datetime, timedelta

from memory_mesh.core.errors import InvalidInput

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def iso(ms: int) -> str:
    """Unix milliseconds as text."""
    return _text(EPOCH + timedelta(milliseconds=ms))


def millis(text: str) -> int:
    """A moment's text as Unix milliseconds."""
    return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND


def parse_time(value: object, name: str) -> str:
    """Any way of writing a moment (ISO text, date, datetime; UTC where no zone is given) in the one form."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            raise _no_moment(value, name) from None
    if isinstance(value, date) and not isinstance(value, datetime):
        value = datetime(value.year, value.month, value.day, tzinfo=UTC)
    if not isinstance(value, datetime):
        raise _no_moment(value, name)
    aware = value if value.tzinfo else value.replace(tzinfo=UTC)
    try:
        return _text(aware.astimezone(UTC))
    except OverflowError:
        raise _no_moment(value, name) from None


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _no_moment(value: object, name: str) -> InvalidInput:
    return InvalidInput(f"{name} {str(value)[:60]!r} is no moment in time", expected="ISO 8601, e.g. 2026-03-01T09:30:00Z")
