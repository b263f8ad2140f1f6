"""Time, ids and waiting that do only what a test tells them. With the same fakes, the same calls leave the same records."""

from random import Random

from memory_mesh.core.ids import Ids

NEW_YEAR = 1_767_225_600_000  # 2026-01-01T00:00:00Z


class FakeClock:
    """Stands still until it is moved, and can be set back.

    It is a `core.ports.Clock` itself (milliseconds); `MemoryMesh(clock=fake.seconds)` wants seconds.
    """

    def __init__(self, ms: int = NEW_YEAR) -> None:
        self.ms = ms

    def __call__(self) -> int:
        return self.ms

    def seconds(self) -> float:
        return self.ms / 1000

    def advance(self, *, days: float = 0, seconds: float = 0, ms: int = 0) -> None:
        """Move on, or back where the sum is negative."""
        self.ms += round(days * 86_400_000 + seconds * 1000) + ms


def seeded_ids(seed: int = 0) -> Ids:
    """Ids and salts that are the same in every run."""
    return Ids(Random(seed).getrandbits)  # noqa: S311  (that it can be foretold is the point)


def no_pause(attempt: int) -> None:
    """Try again at once."""
