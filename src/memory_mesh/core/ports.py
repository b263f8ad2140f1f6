"""The seams: what flows are handed. A store, a clock, a source of ids and, for tests, a witness of each step."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from memory_mesh.core.columns import Kind
from memory_mesh.core.rows import Hit, Key, Row, Vector
from memory_mesh.core.where import ANYTHING, Where

# Unix milliseconds.
Clock = Callable[[], int]

# Told the name of each step of a write as it is reached. Crash tests kill the process there; nobody else listens.
Step = Callable[[str], None]


def no_step(name: str) -> None:
    """Nobody listens."""


class IdSource(Protocol):
    """Where ids and salts come from."""

    def new(self, prefix: str, ms: int) -> str: ...

    def salt(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Applied:
    """What a store says after a change."""

    # Whether the bytes of what was deleted or replaced are gone from the medium, not only from answers.
    bytes_freed: bool


class Store(Protocol):
    """Rows, kept for good. Thread-safe; several processes may share one. Every method may raise `StoreError`.

    **apply** is all or nothing, for readers too, and durable when it returns.
    - A put that replaces 0 is new: an id that its kind already holds is `IdTaken`. A put that replaces n finds revision n,
      else it is a `Conflict`. A delete of what is not there is no error.
    - `seen` holds the versions of the partitions that the decision was read under; if one has moved it is a `Conflict`.
    - A key stands at most once among puts and deletes of one call; twice is `InvalidInput`.
    - The version of a partition rises by the number of `MOVING` rows put into or deleted from it; a row that moves to
      another partition raises both.

    **find** and **count** take one kind; **find** gives the newest first (creation time, number, id), at most `limit`, and
    continues behind the row `after`. **nearest** ranks by cosine (1 is the same direction) among vectors of the same model
    and dimension; a passage speaks for the row it refers to, which is given once, with its best score. **matching** ranks
    memories by BM25 of `core.lexical` over `keywords`, with the statistics of all rows of the given partitions, and gives
    only what scores above zero; a memory without keywords is no document. Both filter before they count to `limit`; equal
    scores go by id, descending; a vector of length zero scores 0.

    Any row of `core.columns` comes back equal, and is a value: what happens to it outside does not reach the store. Each number
    stands once in a chain; whoever seals blocks sees to that. Every handle sees at once what another wrote. After **close**,
    which may be called twice, everything is `StoreClosed`. `memory_mesh.testing.StoreContract` says all of this as tests.

    **compact** frees the bytes that deletions and replacements left behind; False where others are in the way.
    """

    @property
    def url(self) -> str: ...

    def apply(
        self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None
    ) -> Applied: ...

    def version(self, partition: str) -> int: ...

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]: ...

    def count(self, kind: Kind, where: Where = ANYTHING) -> int: ...

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]: ...

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where = ANYTHING, *, limit: int) -> list[Hit]: ...

    def compact(self) -> bool: ...

    def close(self) -> None: ...
