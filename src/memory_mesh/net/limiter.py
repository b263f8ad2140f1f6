"""So many calls in any minute, and the others wait their turn. Each process counts its own."""

from collections import deque
from collections.abc import Callable
from threading import Lock

from memory_mesh.core.errors import RateLimited

_MINUTE = 60.0


class Limiter:
    """Gives out the moments at which calls may start, first come, first served. Thread-safe."""

    def __init__(self, per_minute: int | None, now: Callable[[], float]) -> None:
        self._most, self._now = per_minute, now
        self._moments: deque[float] = deque(maxlen=per_minute)
        self._lock = Lock()

    def turn(self, until: float) -> float:
        """The seconds to wait before the next call; `RateLimited` if its turn would come too late for it."""
        if self._most is None:
            return 0.0
        with self._lock:
            now = self._now()
            at = now if len(self._moments) < self._most else max(now, self._moments[0] + _MINUTE)
            if at >= until:
                raise RateLimited(
                    f"no more than {self._most} a minute are made, and the next call may start in {at - now:.0f} s",
                    remedy="try again then, or allow more of them",
                )
            self._moments.append(at)
        return at - now
