"""The seams: what flows are handed. A store, its index, an embedder, a language model, a clock, a source of ids, a witness."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from memory_mesh.core.chat import Ask, Reply, Tokens
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake.files import Selection
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.rows import Hit, Key, Row, Vector
from memory_mesh.core.model.where import ANYTHING, Where
from memory_mesh.core.search.query import Pool, Query

# Unix milliseconds.
Clock = Callable[[], int]

# Told the name of each step of a write as it is reached. Crash tests kill the process there; nobody else listens.
Step = Callable[[str], None]


def no_step(name: str) -> None:
    """Nobody listens."""


# Told how far long work has come: what is being done, how much of it is done, and how much there is.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, of: int) -> None:
    """Nobody watches."""


class IdSource(Protocol):
    """Where ids and salts come from."""

    def new(self, prefix: str, ms: int) -> str: ...

    def salt(self) -> str: ...


class Embedder(Protocol):
    """Texts into vectors. Nothing is loaded before the first `embed` or `count`; both are thread-safe.

    **model** names what the vectors belong to: two embedders of one name make vectors that may be compared. A fallback's
    vectors carry their own model's name. **window** is how many tokens of a text reach its vector, as **count** counts them.
    **embed** answers one vector for each text, in order, whatever else is in the batch, or raises `EmbeddingError`.
    """

    @property
    def model(self) -> str: ...

    @property
    def window(self) -> int: ...

    def count(self, text: str) -> int: ...

    def embed(self, texts: Sequence[str]) -> list[Vector]: ...


class ChatModel(Protocol):
    """A language model. Nothing is loaded or connected before the first `reply`; it is thread-safe.

    **reply** answers, or raises `CallError`, `BudgetSpent` or `Cancelled`. What it says is a text that nobody has checked.
    """

    @property
    def model(self) -> str: ...

    def reply(self, ask: Ask) -> Reply: ...


class Meter(Protocol):
    """Counts what calls to paid models use, and stops them at a cap. Thread-safe, and several processes may share one count.

    **reserve** takes the most that a call may use out of what is left, or raises `BudgetSpent`; it gives a ticket.
    **settle** puts what was really used in its place. A ticket that is never settled stays taken: the cap holds even where a
    process dies in the middle of a call.
    """

    def reserve(self, operation: str, model: str, most: Tokens) -> str: ...

    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None: ...


@dataclass(frozen=True, slots=True)
class Changes:
    """What happened to a partition since a mark."""

    mark: str  # the state it is in now; equal marks are equal states
    keys: Sequence[Key] | None  # each `MOVING` row put or deleted since, oldest first; None: the store cannot tell, read it all


class Index(Protocol):
    """The candidates for a query, from memory. Derived from a store, right after every write of whatever process.

    **speakers** are those of readable memories whose names share a word with the query.
    **marks** names the states that partitions are in now. **forget** removes what lies in files of these partitions: they may
    hold words and vectors of what is being erased, and can be made anew. **close** may be called twice.
    """

    def pool(self, asked: Query, *, size: int) -> Pool: ...

    def speakers(self, asked: Query) -> frozenset[str]: ...

    def marks(self, partitions: Sequence[str]) -> tuple[str, ...]: ...

    def forget(self, partitions: Iterable[str]) -> None: ...

    def close(self) -> None: ...


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
    memories by BM25 of `core.search.lexical` over `keywords`, with the statistics of all rows of the given partitions, and gives
    only what scores above zero; a memory without keywords is no document. Both filter before they count to `limit`; equal
    scores go by id, descending; a vector of length zero scores 0.

    Any row of `core.model.columns` comes back equal, and is a value: changing it outside does not change the store. Each number
    stands once in a chain; whoever seals blocks sees to that. Every handle sees at once what another wrote. After **close**,
    which may be called twice, everything is `StoreClosed`. `memory_mesh.testing.StoreContract` says all of this as tests.

    **ids** names the rows that a condition meets, in no order: a `find` that reads nothing else. **changes** tells what moved
    in a partition since a mark that it gave before; a mark of another store, or of a state that it has forgotten or never
    was in, gives no keys but None, and so does no mark at all. What the last hundred moves led through is not forgotten. It may
    name a row more than once, and one that is back to what it was.

    **index_folder** is where files that are derived from the rows may lie, made by whoever writes them; None: nowhere.

    **compact** frees the bytes that deletions and replacements left behind; False where others are in the way.
    """

    @property
    def url(self) -> str: ...

    @property
    def index_folder(self) -> Path | None: ...

    def apply(
        self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None
    ) -> Applied: ...

    def version(self, partition: str) -> int: ...

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]: ...

    def count(self, kind: Kind, where: Where = ANYTHING) -> int: ...

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]: ...

    def changes(self, partition: str, since: str | None = None) -> Changes: ...

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]: ...

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where = ANYTHING, *, limit: int) -> list[Hit]: ...

    def compact(self) -> bool: ...

    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Listed:
    """A file by its path within a folder, or why it cannot be read. The path of a folder within it ends with a slash."""

    source: str
    fault: str | None = None


class Folder(Protocol):
    """A folder of files. Nothing outside of it is read, and nothing hidden.

    **root** is its name: the same text whichever way it was reached. **files** lists what is wanted of it, in an order that is
    the same each time, with slashes in paths whatever the system writes. **read** gives the bytes of a file, at most so many,
    or raises `InvalidInput` that says why not.
    """

    @property
    def root(self) -> str: ...

    def files(self, wanted: Selection) -> Iterable[Listed]: ...

    def read(self, source: str, *, most: int) -> bytes: ...


# Opens the folder at a path; where there is none, it is `InvalidInput`.
OpenFolder = Callable[[str], Folder]


def no_folder(path: str) -> Folder:
    """Nothing that was handed in can read folders."""
    raise InvalidInput(f"the folder {path!r:.200} cannot be read", expected="a mesh that reads folders")
