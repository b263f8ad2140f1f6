"""The ports: the interfaces that flows use and that stores, indexes and models implement."""

from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Never, Protocol, runtime_checkable

from memory_mesh.core.audit.chain import Keys, SigningKey
from memory_mesh.core.errors import InvalidInput, StoreUnavailable, shown
from memory_mesh.core.intake import Selection
from memory_mesh.core.model import ANYTHING, Hit, Json, Key, Kind, Reader, Row, Vector, Where
from memory_mesh.core.search import Pool, Query

if TYPE_CHECKING:
    from memory_mesh.core.search.candidates import CandidateSource
    from memory_mesh.core.upkeep.hooks import HookEvent


Clock = Callable[[], int]  # returns the time in Unix milliseconds

# Called with the name of each step of a write. Only crash tests use it: they kill the process at a
# step.
Step = Callable[[str], None]


no_step: Step = deque[str](maxlen=0).append  # ignores the step
# Called during long work with its name, the amount done and the total.
Progress = Callable[[str, int, int], None]


def no_progress(what: str, done: int, of: int) -> None:
    """Ignore the progress."""


def as_progress(given: Progress | None) -> Progress:
    """Return the caller's function, or one that ignores the progress."""
    if given is not None and not callable(given):
        raise InvalidInput(
            f"progress is {shown(given)}", expected="a function of (what, done, total)"
        )
    return given or no_progress


class IdSource(Protocol):
    """A source of ids and salts."""

    def new(self, prefix: str, ms: int) -> str: ...
    def salt(self) -> str: ...


# --- stores ---


class Applied(NamedTuple):
    """The result of `Store.apply`."""

    # The bytes of deleted and replaced rows are gone from the medium too, not only from results.
    bytes_freed: bool
    before: Hashable = None  # the data version that was changed; None: unknown
    after: Hashable = None  # the new one
    versions: Mapping[str, int] = MappingProxyType({})  # the new versions of partitions


class Changes(NamedTuple):
    """The changes of a partition since a mark."""

    mark: str  # the current state; equal marks mean equal states
    # Each `MOVING` row put or deleted since, oldest first; None: unknown, read the whole partition.
    keys: Sequence[Key] | None


class Store(Protocol):
    """Durable storage of rows. A store is thread-safe, and several processes may share it. Every
    method may raise `StoreError`.

    `memory_mesh.testing.StoreContract` checks all of the following.

    **Partitions.** Every row belongs to a partition. There is one for each agent of a user, and one
    that all agents of the user share (`core.model.where`). A store only compares their names. The
    version of a partition counts the writes of `MOVING` rows.

    **Rows.** Any row that `core.model.COLUMNS` allows comes back equal. Rows are values: changing a
    row object outside does not change the store. A write is visible at once to every handle of
    every process. The numbers of a chain's blocks are unique; the code that seals blocks ensures
    that, not the store.

    **apply** writes all puts and deletes or nothing, also as seen by concurrent readers, and is
    durable when it returns.
    - A put with `replaces` 0 inserts: if the kind already has the id, it raises `IdTaken`. A put
      with `replaces` n replaces revision n: if the stored revision is another, or there is none, it
      raises `Conflict`. Deleting a missing row is not an error.
    - `seen` maps partitions to the versions at which the caller read them; if one has changed
      since, it raises `Conflict`.
    - A key may occur only once among the puts and deletes of a call; otherwise it raises
      `InvalidInput`.
    - The version of a partition increases by the number of `MOVING` rows put into it or deleted
      from it. A row that moves to another partition increases both versions.

    **sealed** of a memory that `get` or `find` returns comes from the blocks that refer to it
    (`ref`) and have a `content_hash`: the `memory_revision` and `content_hash` of the one with the
    highest revision, read in the same state as the memory; None without such a block. It is not
    written.

    **used** of a memory that `get` or `find` returns comes in the same way from the row of its
    usage, which has the same id.

    **version** returns the version of a partition. **data_version** returns a value that every
    write of any process changes: equal values mean that nothing was written in between. **get**
    returns the rows with these ids that exist, in the order of the ids.

    **find**, **count**, **ids** and **tally** read one kind. **find** returns the newest rows first
    (by creation time, partition, number and id), at most `limit`, and continues after the row
    `after`. **ids** returns the ids of the matching rows in any order, without reading more.
    **tally** returns how many of the matching rows have each value of a text column, of several
    columns the first that has one, or each beginning of it of `length` characters; None stands for
    no value.

    **nearest** ranks by cosine similarity (1 is the same direction) among vectors of the same model
    and dimension. A passage stands for the row that it refers to; that row is returned once, with
    its best score. A vector of length zero scores 0. **matching** ranks memories by the BM25 score
    of `core.search.lexical` over `keywords`. `visible` is what the reader may see, with any status:
    exactly these memories are the documents of the statistics, so no other row moves a score.
    `where` selects among them and does not change the statistics. It returns only scores above
    zero; a memory without keywords does not count as a document. Both filter before they apply
    `limit`, and order equal scores by id, descending.

    **changes** returns the changes of a partition since a mark from an earlier call. Its keys are
    None without a mark, with a mark of another store, and with a mark of a state that the store
    never had or no longer remembers. A store remembers at least the states of the last hundred
    changes. A row may be named more than once, and also if it is back to its earlier content.

    **compact** frees the bytes that deletions and replacements left behind. It returns False if
    other connections prevent it. **close** may be called twice. After it, every method raises
    `StoreClosed`.

    **index_folder** is a folder for files derived from the rows, created by the code that writes
    them; None: there is no such place.
    """

    @property
    def url(self) -> str: ...
    @property
    def index_folder(self) -> Path | None: ...
    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
    ) -> Applied: ...
    def version(self, partition: str) -> int: ...
    def data_version(self) -> Hashable: ...
    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]: ...
    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]: ...
    def count(self, kind: Kind, where: Where = ANYTHING) -> int: ...
    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]: ...
    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]: ...
    def changes(self, partition: str, since: str | None = None) -> Changes: ...
    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]: ...
    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]: ...
    def compact(self) -> bool: ...
    def close(self) -> None: ...


class RowSource(Protocol):
    """Rows that can be copied: those of a store, or of an archive.

    **name** identifies it. **rows** yields the rows of a kind, newest first, a page at a time.
    **state** returns a value that every write changes. **present** returns which ids of a kind
    exist.
    """

    @property
    def name(self) -> str: ...
    def state(self) -> Hashable: ...
    def count(self) -> int: ...
    def rows(self, kind: Kind) -> Iterator[Row]: ...
    def present(self, kind: Kind, ids: Sequence[str]) -> Collection[str]: ...


# The names that every store has.
STORE_PARTS = tuple(name for name in vars(Store) if not name.startswith("_"))


class Assumed(NamedTuple):
    """What a write takes for granted instead of reading it first."""

    unused: Collection[str] = ()  # fingerprints that no active memory has
    rows: Sequence[Row] = ()  # heads of chains and entries of `Meta` that are still the same


@runtime_checkable
class ServerStore(Protocol):
    """A store that is searched in its own engine, because its partitions are too large to copy."""

    @property
    def candidate_source(self) -> "CandidateSource": ...


@runtime_checkable
class CheckingStore(Protocol):
    """A store each of whose calls is a round trip. So **apply** also takes what a write assumes,
    and raises `Conflict` if that is wrong."""

    checks_assumptions: bool

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
        assumed: Assumed | None = None,
    ) -> Applied: ...


class StoreFile(Protocol):
    """The file of a store, which a read neither creates nor upgrades.

    **require_file** raises `StoreMissing` if there is no file, which a read takes for an empty
    store. **is_prepared** returns whether the file has the tables of this version; if not,
    only a write that a caller asked for may change it. **create_file** creates the file if there is
    none. **check_writable** raises `StoreReadOnly` if the store was opened for reading only:
    nothing may be created for a write that will be refused. **was_replaced** returns whether
    another file, or none, is now at the path of the file that was opened.

    **backup** copies the store to a new file, as it is at one moment, while others read and write,
    and returns its size in bytes. The file appears under its name when it is complete and durable.
    **find_bytes** returns which of these bytes are in the files of the store and its index, and in
    which file each is; an empty mapping without files. **has_deleted_bytes** returns whether bytes
    of deleted rows are still in the files. **damage** reads everything and returns what is wrong
    with the files.
    """

    def require_file(self) -> None: ...
    def is_prepared(self) -> bool: ...
    def create_file(self) -> None: ...
    def check_writable(self) -> None: ...
    def was_replaced(self) -> bool: ...
    def backup(self, target: Path, progress: Progress) -> int: ...
    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]: ...
    def has_deleted_bytes(self) -> bool: ...
    def damage(self) -> list[str]: ...


class NoFile:
    """A store without a file."""

    def require_file(self) -> None:
        """Accept every read."""

    def is_prepared(self) -> bool:
        return True

    def create_file(self) -> None:
        """Do nothing."""

    def check_writable(self) -> None:
        """Accept every write; the store itself may refuse it."""

    def was_replaced(self) -> bool:
        return False

    def backup(self, target: Path, progress: Progress) -> int:
        raise InvalidInput(
            "this store has no file to back up", remedy="export its memories instead"
        )

    def find_bytes(self, samples: Collection[bytes]) -> dict[bytes, str]:
        return {}

    def has_deleted_bytes(self) -> bool:
        return False

    def damage(self) -> list[str]:
        return []


NO_FILE: StoreFile = NoFile()


class Snapshot(Protocol):
    """The memories that one reader can see, for one search. Writes that come after it was made may
    be missing.

    **mark** changes with the memories that the reader can see, and with no others. **data_version**
    is that of the store, read before its changes were. **speakers** returns the named speakers of
    readable memories, and the tokens that name them. **candidates** returns about `size` memories
    by keywords, as many by vectors, and neighbours of the best, with their signals. **next_valid**
    returns when the next memory becomes valid, in Unix milliseconds; None: not for some minutes.
    """

    @property
    def mark(self) -> Hashable: ...
    @property
    def data_version(self) -> Hashable: ...
    def speakers(self, query: Query) -> frozenset[str]: ...
    def candidates(self, query: Query, *, size: int) -> Pool: ...
    def next_valid(self, query: Query) -> int | None: ...


class Index(Protocol):
    """Finds the candidates for a query. An index is derived from a store and reflects every write
    of every process.

    **snapshot** brings the index up to date for a reader. **prepare** does what would make later
    searches faster, however long it takes. **forget** deletes the index files of
    partitions: they may contain words and vectors of erased memories, and can be built again.
    **close** may be called twice.
    """

    def snapshot(self, reader: Reader) -> Snapshot: ...
    def prepare(self, reader: Reader) -> None: ...
    def forget(self, partitions: Iterable[str]) -> None: ...
    def close(self) -> None: ...


# --- models ---


class Embedder(Protocol):
    """Turns texts into vectors. `embed` and `count` are thread-safe; the model is loaded on their
    first call.

    **model** names the vector space: vectors with the same name can be compared; those of a
    fallback have the name of its model. **window** is the number of tokens of a text that reach its
    vector, as **count** counts them, too many if it has a true `counts_too_many`. **embed** returns
    a vector for each text, or a list or an array of its numbers, independent of the other texts; or
    it raises `EmbeddingError`."""

    @property
    def model(self) -> str: ...
    @property
    def window(self) -> int: ...
    def count(self, text: str) -> int: ...
    def embed(self, texts: Sequence[str]) -> Iterable[Vector | Iterable[float]]: ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """The tokens that a call sends and receives."""

    sent: int = 0
    received: int = 0


NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """A request to a language model. With a schema, the reply should be JSON of that form; the
    caller checks it."""

    operation: str  # the purpose: `extract`, `reflect`, …; usage is counted by it
    system: str  # trusted text
    user: str  # untrusted text, behind a fence
    schema: Mapping[str, Json] | None = None
    max_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The reply of a language model."""

    text: str = field(repr=False)  # it may quote private text
    model: str
    tokens: Tokens = NO_TOKENS
    complete: bool = True  # False: the reply was cut off at `max_tokens`


class ChatModel(Protocol):
    """A language model. It is thread-safe, and loads or connects on the first call of `reply`.

    **reply** returns the unchecked text of the model, or raises `CallError`, `BudgetSpent` or
    `Cancelled`.
    """

    @property
    def model(self) -> str: ...
    def reply(self, prompt: Prompt) -> Reply: ...


@dataclass(frozen=True, slots=True)
class Likely:
    """The probabilities of what a newer statement means for an older one. Their sum is 1."""

    replaces: float  # the older one is no longer true, and the newer one says what is
    ends: float  # the older one is no longer true
    both: float  # both are true
    unrelated: float

    @property
    def change(self) -> float:
        """The probability that the older statement is no longer true."""
        return self.replaces + self.ends


RELATIONS = tuple(part.name for part in fields(Likely))


class PairJudge(Protocol):
    """Judges whether a newer statement changes an older one. It is thread-safe, and the first call
    of `judge` loads it.

    **version** names the model and the form of its input. **is_ready** returns whether it needs no
    download any more. **judge** returns the probabilities of each pair of an older and a newer
    statement, or an empty list if the model cannot be used; then one warning is logged. It may
    raise `Cancelled`.
    """

    @property
    def version(self) -> str: ...
    def is_ready(self) -> bool: ...
    def judge(self, pairs: Sequence[tuple[str, str]]) -> list[Likely]: ...


class Meter(Protocol):
    """Counts the usage of paid models and stops calls at a cap. It is thread-safe, and several
    processes may share one count.

    **reserve** subtracts the maximum that a call may use from the remaining budget and returns a
    ticket, or raises `BudgetSpent`. **commit** replaces the reserved amount by the used one. A
    reservation that is never committed stays, so that the cap holds even if a process dies during a
    call.
    """

    def reserve(self, operation: str, model: str, maximum: Tokens) -> str: ...
    def commit(self, ticket: str, used: Tokens, *, failed: bool = False) -> None: ...


class Secret:
    """An API key. `repr`, `str`, formatting, comparison errors and pickle never show its value."""

    __slots__ = ("_prefix", "_value")

    def __init__(self, value: str, *, prefix: str = "") -> None:
        self._value, self._prefix = value, prefix

    def reveal(self) -> str:
        """Return the value after its prefix, such as `Bearer `."""
        return self._prefix + self._value

    def hidden_in(self, text: str) -> str:
        """Return the text with the value replaced by `***`, with or without its prefix."""
        return (
            text.replace(self.reveal(), "***").replace(self._value, "***") if self._value else text
        )

    def __repr__(self) -> str:
        return "Secret(***)"

    def __reduce__(self) -> Never:
        raise TypeError("a Secret cannot be pickled")


# --- the audit chain ---


class SigningKeys(Protocol):
    """The keys that sign the heads of audit chains. They are kept outside the store.

    **by_id** returns all of them by id, the current one last; it is empty if there is none yet, and
    creates nothing. **current** returns the current key and creates the first one. **add** makes a
    new current key; the older ones stay. All of them raise `SettingsError` if the keys cannot be
    read or written. **place** names where they are.
    """

    @property
    def place(self) -> str: ...
    def by_id(self) -> Keys: ...
    def current(self) -> SigningKey: ...
    def add(self) -> SigningKey: ...


class AnchorLog(Protocol):
    """A place outside the store for the heads of audit chains. **write** adds a record, durable
    when it returns. **lines** yields all records as lines of JSON, or raises `InvalidInput`."""

    def write(self, record: Mapping[str, Json]) -> None: ...
    def lines(self) -> Iterable[str]: ...


# Opens the anchors at a path or URL.
OpenAnchor = Callable[[str], AnchorLog]


def no_anchor(target: str) -> AnchorLog:
    """Refuse every target."""
    raise InvalidInput(
        f"no anchor can be written to {shown(target, max_length=200)}",
        expected="a mesh that can write files",
    )


# --- hooks ---


@runtime_checkable
class Hook(Protocol):
    """Gets every change of the memories, in order.

    **name** identifies its queue, and is the same in every process. **folder** is where it writes
    Markdown files; None: nowhere. **deliver** returns when the event is handled. After any
    exception it is called again later, with the same event.
    """

    @property
    def name(self) -> str: ...
    @property
    def folder(self) -> str | None: ...
    def deliver(self, event: "HookEvent") -> None: ...


# What `writethrough` takes: hooks, functions of an event, folders and URLs.
Hooks = Sequence["Hook | Callable[[HookEvent], object] | str | Path"] | str


class HookFiles(Protocol):
    """The locks and files of the hooks of a store.

    **turn** yields whether this thread may deliver to a hook of this name and folder: one at a time
    may, of all processes. It waits so many seconds. Without `create`, a folder that is not there is
    nothing to wait for. **add_dead_letter** appends a letter, durable when it returns, unless
    `is_waiting` says that its event is gone. **dead_letters** returns all of them.
    **keep_dead_letters** removes the letters that `keep` refuses, and **forget** the entries of
    memories in the Markdown files of a folder, whose turn the caller has. **read** yields the name
    and the bytes of each file of these folders and of the dead letters, without bytes if it cannot
    be read. All but the first and the last may raise `StoreUnavailable`.
    """

    def turn(
        self, hook: str, folder: str | None, *, seconds: float, create: bool = True
    ) -> AbstractContextManager[bool]: ...
    def add_dead_letter(
        self, letter: Mapping[str, Json], is_waiting: Callable[[], bool]
    ) -> None: ...
    def dead_letters(self) -> list[dict[str, Json]]: ...
    def keep_dead_letters(self, keep: Callable[[Mapping[str, Json]], bool]) -> None: ...
    def forget(self, folder: str, memory_ids: Collection[str]) -> None: ...
    def read(self, folders: Collection[str]) -> Iterator[tuple[str, bytes | None]]: ...


class _NoHookFiles:
    """No files, and no other process."""

    def turn(
        self, hook: str, folder: str | None, *, seconds: float, create: bool = True
    ) -> AbstractContextManager[bool]:
        return nullcontext(enter_result=True)

    def add_dead_letter(self, letter: Mapping[str, Json], is_waiting: Callable[[], bool]) -> None:
        raise StoreUnavailable("there is no place for dead letters")

    def dead_letters(self) -> list[dict[str, Json]]:
        return []

    def keep_dead_letters(self, keep: Callable[[Mapping[str, Json]], bool]) -> None:
        """Do nothing."""

    def forget(self, folder: str, memory_ids: Collection[str]) -> None:
        """Do nothing."""

    def read(self, folders: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
        return iter(())


def no_hook_files() -> HookFiles:
    """Return files that are not there."""
    return _NoHookFiles()


# --- folders ---


@dataclass(frozen=True, slots=True)
class Listed:
    """The path of a file within a folder, or of a subfolder (with a trailing slash), and why it
    cannot be read, if so."""

    source: str
    fault: str | None = None


class Folder(Protocol):
    """A folder of files. Files outside the folder and hidden files are not read.

    **root** is the canonical path. **files** lists the selected files, always in the same order and
    with slashes in paths on every system. **read** returns the bytes of a file of at most
    `max_bytes`, or raises `InvalidInput` with the reason.
    """

    @property
    def root(self) -> str: ...
    def files(self, selection: Selection) -> Iterable[Listed]: ...
    def read(self, source: str, *, max_bytes: int) -> bytes: ...


# Opens the folder at a path, or raises `InvalidInput` if there is none.
OpenFolder = Callable[[str], Folder]


def no_folder(path: str) -> Folder:
    """Refuse every folder."""
    raise InvalidInput(
        f"the folder {shown(path, max_length=200)} cannot be read",
        expected="a mesh that can read folders",
    )


# --- Markdown files ---


@dataclass(frozen=True, slots=True)
class NoteFile:
    """A file of notes: its name, a mark that changes when the file does, and why it cannot be
    read, if so."""

    name: str
    mark: str = ""
    fault: str | None = None


class NoteFiles(Protocol):
    """The Markdown files directly inside a folder, **root**. Nothing outside it is read or written.

    **files** lists them by name; none without a folder. **read** returns the bytes of a file, or
    raises `InvalidInput`. **change** replaces a file by what `make` returns for its bytes (None:
    there is none), all or nothing, one process at a time. If it returns None the file stays, and if
    it returns no bytes the file is removed. **agent** returns the text of the file that configures
    an agent.
    """

    @property
    def root(self) -> str: ...
    def files(self) -> Sequence[NoteFile]: ...
    def read(self, name: str) -> bytes: ...
    def change(self, name: str, make: Callable[[bytes | None], bytes | None]) -> None: ...
    def agent(self, path: str) -> str: ...


class TraceFiles(Protocol):
    """The files of the traces of one user, below a folder, **root**. Nothing outside it is read or
    written; no link is followed.

    A name is a path below the root. **names** lists the files of a folder, or with `folders` the
    folders in it; hidden ones are left out. **mark** changes when a file does, and is empty without
    one. **read** returns the bytes of a file, none without one; what ends in `.gz` is compressed,
    and read uncompressed. **append**, and **write**, which replaces a file as a whole, are durable
    when they return. **remove** removes a file, or a folder with all that is in it. **locked**
    keeps other threads and processes from a folder; a thread that has the lock may take it again.
    All may raise `InvalidInput`, and `locked` also `StoreBusy`.
    """

    @property
    def root(self) -> str: ...
    def names(self, folder: str, *, folders: bool = False) -> list[str]: ...
    def mark(self, name: str) -> str: ...
    def read(self, name: str) -> bytes: ...
    def create_folder(self, name: str) -> None: ...
    def append(self, name: str, data: bytes) -> None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def remove(self, name: str) -> None: ...
    def locked(self, folder: str) -> AbstractContextManager[None]: ...


def no_traces(user_id: str | None) -> Never:
    """Refuse every use."""
    raise InvalidInput("there is no folder of traces", expected="a mesh that can read files")


def no_notes() -> Never:
    """Refuse every use."""
    raise InvalidInput("there is no folder of notes", expected="a mesh that can read files")
