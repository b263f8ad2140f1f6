"""Folders: each file is one memory, known again by its place. New files are added, changed ones get a new revision, unchanged
ones are left alone, and what is gone is named and kept.

A batch is one write, so a run that was killed goes on behind its last batch. Whether a file is there already is looked up within
the decision that adds it, so two runs at once store it once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256

from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.intake.drafts import draft, read_content
from memory_mesh.core.intake.files import Selection, file_print, folder_print
from memory_mesh.core.model.columns import Kind, Value
from memory_mesh.core.model.records import Memory, Status
from memory_mesh.core.model.rows import batches
from memory_mesh.core.model.scope import partitions
from memory_mesh.core.model.times import iso
from memory_mesh.core.model.where import Compare, In, all_of
from memory_mesh.core.ports import Folder, Listed, Progress
from memory_mesh.flows import change
from memory_mesh.flows.context import Context, Plan, commit, lasting, must_be_enabled
from memory_mesh.flows.embed import Vectors
from memory_mesh.flows.write import decide_add, read_items

BATCH_FILES, BATCH_CHARS = 64, 1_000_000


@dataclass(frozen=True, slots=True)
class Failed:
    """A file that was not stored, and why; a path that ends with a slash is a folder."""

    source: str
    reason: str


@dataclass(frozen=True, slots=True)
class Gone:
    """A memory whose file is no longer in the folder. It is kept until somebody deletes it."""

    source: str
    id: str


@dataclass(frozen=True, slots=True)
class Ingested:
    """What a run did with a folder."""

    root: str
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    failed: list[Failed] = field(default_factory=list)
    gone: list[Gone] = field(default_factory=list)


def ingest(context: Context, path: str, wanted: Selection, *, type_: str | None, progress: Progress) -> Ingested:
    """Bring the memories of a folder's files up to date."""
    must_be_enabled(context)
    run = _Run(context, context.open_folder(path), wanted, type_)
    listed = list(run.folder.files(wanted))
    for files, done in run.batches(listed):
        run.store(files)
        progress("files", done, len(listed))
    run.look_for_gone()
    return run.done


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file that can be remembered."""

    source: str
    text: str
    hash: str
    fingerprint: str


class _Run:
    """One run over one folder."""

    def __init__(self, context: Context, folder: Folder, wanted: Selection, type_: str | None) -> None:
        self._context, self.folder, self._wanted = context, folder, wanted
        self._given: dict[str, Value] = {} if type_ is None else {"type": type_}
        self._print = folder_print(context.reader, folder.root, type_)
        # What is wrong with the type or the folder's name is wrong with every file: it is said once, before anything is stored.
        common = draft("a file", {"source_root": folder.root, **self._given}, context.reader, context.limits, context.layer0)
        self._type = common.metadata.get("type")
        self._met: set[str] = set()
        self.done = Ingested(folder.root)

    def batches(self, listed: Sequence[Listed]) -> Iterator[tuple[list[_File], int]]:
        """The files that can be read, a few at a time, and how many of the list are behind them."""
        files: list[_File] = []
        size = 0
        for at, one in enumerate(listed, start=1):
            if file := self._read(one):
                files.append(file)
                size += len(file.text)
            if len(files) >= BATCH_FILES or size >= BATCH_CHARS or at == len(listed):
                yield files, at
                files, size = [], 0

    def store(self, files: Sequence[_File]) -> None:
        """Add what is new, and compare the rest with what is known of it."""
        known = self._known(files)
        if new := [file for file in files if file.fingerprint not in known]:
            known |= self._add(new)
        for file in files:
            if memory := known.get(file.fingerprint):
                self._compare(file, memory)

    def look_for_gone(self) -> None:
        """Name the memories of files that this run should have met and did not."""
        context, first = self._context, self._print
        of_folder = all_of(Compare("fingerprint", ">=", first), Compare("fingerprint", "<", f"{first}~"))
        held = all_of(of_folder, Compare("status", "=", Status.ACTIVE), lasting(context))
        unmet = sorted({*context.store.ids(Kind.MEMORY, held)} - self._met)
        # A file that could not be read is there all the same, and so is what lies in such a folder.
        failed = {file_print(first, one.source) for one in self.done.failed}
        closed = tuple(one.source for one in self.done.failed if one.source.endswith("/"))
        for ids in batches(unmet, BATCH_FILES):
            for memory in map(Memory.of, context.store.get(Kind.MEMORY, ids).values()):
                source = str(memory.metadata.get("source"))
                if self._wanted.covers(source) and memory.fingerprint not in failed and not source.startswith(closed):
                    self.done.gone.append(Gone(source, memory.id))
        self.done.gone.sort(key=lambda gone: (gone.source, gone.id))

    def _read(self, one: Listed) -> _File | None:
        # A character has at most four bytes, and the mark of the byte order three.
        most = 4 * self._context.limits.content_chars + 3
        if one.fault:
            self._fail(one.source, one.fault)
            return None
        try:
            return self._file(one.source, self.folder.read(one.source, max_bytes=most))
        except InvalidInput as error:
            self._fail(one.source, str(error))
            return None

    def _file(self, source: str, data: bytes) -> _File:
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise InvalidInput(f"it is no UTF-8 text (byte {error.start + 1:,})") from None
        # Of the bytes, not of what is stored: that is redacted, and would never be equal again.
        hash_ = sha256(data).hexdigest()
        fingerprint = file_print(self._print, source)
        return _File(source=source, text=read_content(text, self._context.limits), hash=hash_, fingerprint=fingerprint)

    def _known(self, files: Sequence[_File]) -> dict[str, Memory]:
        """The memories of files that have one: the active one; or one that is not, if it says the same, for what was archived
        shall not come back unchanged."""
        hashes = {file.fingerprint: file.hash for file in files}
        known: dict[str, Memory] = {}
        for row in self._context.store.find(Kind.MEMORY, In("fingerprint", tuple(hashes))) if hashes else []:
            memory = Memory.of(row)
            name = str(memory.fingerprint)
            if self._current(memory) or (name not in known and memory.metadata.get("source_hash") == hashes[name]):
                known[name] = memory
        return known

    def _add(self, files: Sequence[_File]) -> dict[str, Memory]:
        """Store these files; the answer is what another run has stored of them meanwhile."""
        context, made = self._context, Vectors()
        items = read_items(context, [(file.text, self._notes(file)) for file in files])
        wanted = [replace(item, fingerprint=file.fingerprint) for item, file in zip(items, files, strict=True)]
        stored: list[Memory] = []

        def decide() -> Plan[dict[str, Memory]]:
            seen = {name: context.store.version(name) for name in partitions(context.reader)}
            known = self._known(files)
            plan = decide_add(context, [item for item in wanted if item.fingerprint not in known], made)
            stored[:] = plan.answer
            return Plan(known, plan.puts, plan.deletes, seen if plan.puts else {})

        known, _ = commit(context, decide)
        self._count(added=len(stored))
        self._met.update(memory.id for memory in stored)
        return known

    def _compare(self, file: _File, memory: Memory) -> None:
        self._met.add(memory.id)
        changed = memory.metadata.get("source_hash") != file.hash
        retyped = bool(self._given) and memory.metadata.get("type") != self._type and self._current(memory)
        if not changed and not retyped:
            self._count(unchanged=1)
            return
        why = "the file changed" if changed else "ingested with another type"
        try:
            change.update(
                self._context, memory.id, content=file.text, metadata={**self._given, "source_hash": file.hash}, why=why
            )
        except NotFound:
            self._fail(file.source, "its memory was erased meanwhile, or is of another session")
        else:
            self._count(updated=1)

    def _notes(self, file: _File) -> dict[str, Value]:
        return {**self._given, "source": file.source, "source_root": self.folder.root, "source_hash": file.hash}

    def _current(self, memory: Memory) -> bool:
        lasts = memory.expires_at is None or memory.expires_at > iso(self._context.clock())
        return memory.status == Status.ACTIVE and lasts

    def _count(self, *, added: int = 0, updated: int = 0, unchanged: int = 0) -> None:
        done = self.done
        self.done = replace(
            done, added=done.added + added, updated=done.updated + updated, unchanged=done.unchanged + unchanged
        )  # fmt: skip

    def _fail(self, source: str, reason: str) -> None:
        self.done.failed.append(Failed(source, reason))
