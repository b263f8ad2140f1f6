"""Ids as the mesh writes them: `mem_1760000000000_3fa9c2`."""

from collections.abc import Callable
from itertools import count
from secrets import randbits

_SPACE = 1 << 24


class Ids:
    """Ids that cannot repeat within a process: the six hex digits walk through all 16.7 million values before one recurs.

    The walk's start and stride are random, so that ids of two processes meet by chance only; then the store refuses the
    second and the flow takes the next one.
    """

    def __init__(self, bits: Callable[[int], int] = randbits) -> None:
        self._bits = bits
        self._start = bits(24)
        self._stride = bits(24) | 1  # odd: coprime with the space, so the walk visits every value
        self._steps = count()  # its `next` is atomic, so threads share one source

    def new(self, prefix: str, ms: int) -> str:
        value = (self._start + next(self._steps) * self._stride) % _SPACE
        return f"{prefix}_{ms}_{value:06x}"

    def salt(self) -> str:
        """128 random bits, in hex."""
        return f"{self._bits(128):032x}"
