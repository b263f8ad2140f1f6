"""Ids such as `mem_1760000000000_3fa9c2`: a prefix, Unix milliseconds and six hex digits."""

from collections.abc import Callable
from itertools import count
from secrets import randbits

_SPACE = 1 << 24


class Ids:
    """A source of ids that are unique within a process: the six hex digits take all 16.7 million values before one repeats.

    Start and stride of the sequence are random, so two processes rarely produce the same id. When they do, the store refuses
    the second row and the flow takes the next id.
    """

    def __init__(self, bits: Callable[[int], int] = randbits) -> None:
        self._bits = bits
        self._start = bits(24)
        self._stride = bits(24) | 1  # odd, so coprime with the number of values: the sequence visits every one
        self._steps = count()  # `next` is atomic, so threads can share one source

    def new(self, prefix: str, ms: int) -> str:
        value = (self._start + next(self._steps) * self._stride) % _SPACE
        return f"{prefix}_{ms}_{value:06x}"

    def salt(self) -> str:
        """Return 128 random bits in hex."""
        return f"{self._bits(128):032x}"
