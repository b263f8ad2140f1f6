"""When to try again: exponential backoff with full jitter, and what a server asks for."""

from collections.abc import Mapping
from math import isfinite

from memory_mesh.core.errors import CallError

_FIRST, _LONGEST = 0.5, 20.0  # seconds


class Later(Exception):
    """A call that failed and may do better later: the error if it is given up, and how many seconds the server asked for."""

    def __init__(self, error: CallError, after: float | None = None) -> None:
        super().__init__(str(error))
        self.error, self.after = error, after


def backoff(attempt: int) -> float:
    """The most seconds to wait after this attempt, which counts from 0."""
    return float(min(_LONGEST, _FIRST * 2**attempt))


def asked_for(headers: Mapping[str, str], clock: float) -> float | None:
    """The seconds that `Retry-After` asks for: a number, or a date by the server's own clock where it tells it."""
    asked = headers.get("retry-after", "").strip()
    seconds = _number(asked)
    if seconds is None and (then := _date(asked)) is not None:
        told = _date(headers.get("date", ""))
        seconds = max(0.0, then - (clock if told is None else told))
    return seconds


def _number(text: str) -> float | None:
    try:
        seconds = float(text)
    except ValueError:
        return None
    return seconds if isfinite(seconds) and seconds >= 0 else None


def _date(text: str) -> float | None:
    from datetime import UTC  # seldom needed, and the second brings half of the library along
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):  # what the reader of dates raises for other texts
        return None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
