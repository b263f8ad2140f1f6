"""Times and ids.

A time is a text: ISO 8601 in UTC with milliseconds and `Z`. On every store these texts sort in the
order of time. An id such as `mem_1760000000000_3fa9c2` has a prefix, Unix milliseconds and six hex
digits.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import count
from secrets import randbits

from memory_mesh.core.errors import InvalidInput, SettingsError, StoreCorrupt, shown
from memory_mesh.core.text import LazyRegex

# A clock as a caller may give it: seconds since 1970, or a datetime.
GivenClock = Callable[[], float | int | datetime]
# A time as a caller may give it: ISO 8601, or a date or datetime (UTC when it has no zone).
GivenTime = str | date

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)
DAY_MS = 86_400_000
_YEAR_10000 = 253_402_300_800
_SPACE = 1 << 24
_ID = LazyRegex(r"[a-z_]+_([0-9]{1,14})_[0-9a-f]{6}")


def iso(ms: int) -> str:
    """Format Unix milliseconds as text."""
    seconds, rest = divmod(ms, 1000)
    return f"{_second(seconds)}.{rest:03}Z"


@lru_cache(maxsize=64)  # what is written or asked together has the same second
def _second(seconds: int) -> str:
    return (EPOCH + timedelta(seconds=seconds)).isoformat()[:-6]  # without the zone


def millis(text: str) -> int:
    """Parse the stored text of a time into Unix milliseconds. Raises `StoreCorrupt` for one that
    is not ours."""
    try:
        return (datetime.fromisoformat(text) - EPOCH) // MILLISECOND
    except (ValueError, TypeError):  # TypeError: it is no text, or has no zone
        raise StoreCorrupt(
            f"{shown(text)} is not a time", expected="ISO 8601 in UTC", remedy="restore a backup"
        ) from None


def parse_time(value: object, name: str) -> str:
    """Convert an ISO 8601 text, date or datetime (UTC when it has no zone) to the stored form;
    `name` is the field in errors."""
    text = value.isoformat() if isinstance(value, date) else value if isinstance(value, str) else ""
    try:
        at = datetime.fromisoformat(text.strip())
        return _text(at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError):
        found = f"{name} {shown(value)} is not a time"
        raise InvalidInput(found, expected="ISO 8601, e.g. 2026-03-01T09:30:00Z") from None


def time_of_id(id_: str) -> int | None:
    """Return the Unix milliseconds in an id of ours, or None."""
    match = _ID.fullmatch(id_)
    return int(match[1]) if match else None


def as_clock(given: GivenClock | None, now_ns: Callable[[], int]) -> Callable[[], int]:
    """Return a clock of Unix milliseconds that reads the caller's clock, or `now_ns` if none is
    given."""
    if given is None:
        return lambda: now_ns() // 1_000_000

    def clock() -> int:
        at = given()
        if isinstance(at, datetime):
            at = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if not isinstance(at, int | float) or not 0 <= at < _YEAR_10000:
            raise SettingsError(
                f"the clock returned {shown(at)}", expected="seconds since 1970, or a datetime"
            )
        return round(at * 1000)

    return clock


def _text(at: datetime) -> str:
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Ids:
    """A source of ids that are unique within a process: the six hex digits take all 16.7 million
    values before one repeats.

    Start and stride of the sequence are random, so two processes rarely produce the same id. When
    they do, the store refuses the second row and the flow takes the next id.
    """

    def __init__(self, bits: Callable[[int], int] = randbits) -> None:
        self._bits = bits
        self._start = bits(24)
        # Odd, so coprime with the number of values: the sequence visits every one.
        self._stride = bits(24) | 1
        self._steps = count()  # `next` is atomic, so threads can share one source

    def new(self, prefix: str, ms: int) -> str:
        value = (self._start + next(self._steps) * self._stride) % _SPACE
        return f"{prefix}_{ms}_{value:06x}"

    def salt(self) -> str:
        """Return 128 random bits in hex."""
        return f"{self._bits(128):032x}"
