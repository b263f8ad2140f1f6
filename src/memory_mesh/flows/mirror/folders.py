"""Read folders into the memory: each file is one memory, or one skill, identified by its path.

New files are added, changed files get a new revision, unchanged ones are skipped, and memories of
missing files are reported and kept.

Each batch of files is one write, so a run that was killed continues after its last batch. Whether a
file is known is decided in the transaction that adds it, so two concurrent runs store it once.
"""

import logging
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256

from memory_mesh.core import learning
from memory_mesh.core.errors import InvalidInput, NotFound, StoreReadOnly
from memory_mesh.core.intake import (
    NewText,
    Selection,
    draft,
    file_print,
    folder_print,
    read_content,
)
from memory_mesh.core.model import (
    Compare,
    Failed,
    Gone,
    In,
    Ingested,
    Kind,
    Memory,
    Skill,
    Status,
    Value,
    all_of,
    batches,
    equals,
    iso,
    not_expired,
    partitions,
)
from memory_mesh.core.ports import Folder, Listed, Progress
from memory_mesh.flows.context import Context, Plan, commit, intact
from memory_mesh.flows.learning import skills
from memory_mesh.flows.learning.skills import SkillDraft, store
from memory_mesh.flows.mirror.mirror import is_ready, read_text
from memory_mesh.flows.search.readable import readable
from memory_mesh.flows.write.embed import Vectors
from memory_mesh.flows.write.prepare import prepare
from memory_mesh.flows.write.write import plan_add, update

# --- folders of texts ---

BATCH_FILES, BATCH_CHARS = 64, 100_000


def ingest(
    context: Context, path: str, selection: Selection, *, type_: str | None, progress: Progress
) -> Ingested:
    """Bring the memories of a folder's files up to date."""
    context.check_enabled()
    run = _Run(context, context.files.open_folder(path), type_)
    listed = list(run.folder.files(selection))
    progress("files", 0, len(listed))
    files: list[_File] = []
    for done, entry in enumerate(listed, start=1):
        files += run.read(entry)
        is_full = len(files) >= BATCH_FILES or sum(len(file.text) for file in files) >= BATCH_CHARS
        if is_full or done == len(listed):
            run.store(files)
            progress("files", done, len(listed))
            files = []
    gone = sorted(run.gone(selection), key=lambda gone: (gone.source, gone.id))
    return Ingested(run.folder.root, **run.counts, failed=run.failed, gone=gone)


@dataclass(frozen=True, slots=True, kw_only=True)
class _File:
    """A file with valid content."""

    source: str
    text: str
    hash: str
    fingerprint: str


class _Run:
    """One run over one folder."""

    def __init__(self, context: Context, folder: Folder, type_: str | None) -> None:
        self._context, self.folder = context, folder
        self._given: dict[str, Value] = {} if type_ is None else {"type": type_}
        self._prefix = folder_print(context.reader, folder.root, type_)
        # An invalid type or folder name would fail every file, so it is checked once, before
        # anything is stored.
        common = {"source_root": folder.root, **self._given}
        checked = draft("a file", common, context.reader, context.limits, context.gates.content())
        self._type = checked.metadata.get("type")
        self._met: set[str] = set()  # ids of memories whose file is there
        self.counts = Counter(added=0, updated=0, unchanged=0)
        self.failed: list[Failed] = []

    def read(self, entry: Listed) -> Iterator[_File]:
        """Yield the file of an entry; nothing if it is not valid."""
        try:
            text, data = read_text(self._context, self.folder, entry)
            # The hash of the bytes, not of the stored text: that is redacted and would never be
            # equal.
            yield _File(
                source=entry.source,
                text=read_content(text, self._context.limits),
                hash=sha256(data).hexdigest(),
                fingerprint=file_print(self._prefix, entry.source),
            )
        except InvalidInput as error:
            self.failed.append(Failed(entry.source, str(error)))

    def store(self, files: Sequence[_File]) -> None:
        """Add the new files, and update the memories of changed ones."""
        known = self._known(files)
        if new := [file for file in files if file.fingerprint not in known]:
            known |= self._add(new)
        for file in files:
            if memory := known.get(file.fingerprint):
                self._update(file, memory)

    def gone(self, selection: Selection) -> Iterator[Gone]:
        """Yield the memories of files that were not in the folder."""
        context, prefix = self._context, self._prefix
        current = all_of(
            Compare("fingerprint", ">=", prefix), Compare("fingerprint", "<", f"{prefix}~"),
            equals("status", Status.ACTIVE), not_expired(iso(context.clock())),
        )  # fmt: skip
        unmet = sorted({*context.store.ids(Kind.MEMORY, current)} - self._met)
        # A file that could not be read is still there, and so are the files of a folder that could
        # not be read.
        failed = {file_print(prefix, failure.source) for failure in self.failed}
        unreadable = tuple(
            failure.source for failure in self.failed if failure.source.endswith("/")
        )
        for ids in batches(unmet, BATCH_FILES):
            for memory in map(Memory.of, context.store.get(Kind.MEMORY, ids).values()):
                source = str(memory.metadata.get("source"))
                if (
                    selection.covers(source)
                    and memory.fingerprint not in failed
                    and not source.startswith(unreadable)
                ):
                    yield Gone(source, memory.id)

    def _known(self, files: Sequence[_File]) -> dict[str, Memory]:
        """Return the memories of files by fingerprint: the active one, or an inactive one with the
        same content.

        A file whose memory was archived is not added again unless it changes.
        """
        hashes = {file.fingerprint: file.hash for file in files}
        if not hashes:
            return {}
        rows = self._context.store.find(Kind.MEMORY, In("fingerprint", tuple(hashes)))
        known: dict[str, Memory] = {}
        for memory in map(Memory.of, intact(self._context, rows)):
            name = str(memory.fingerprint)
            if self._is_current(memory) or (
                name not in known and memory.metadata.get("source_hash") == hashes[name]
            ):
                known[name] = memory
        return known

    def _add(self, files: Sequence[_File]) -> dict[str, Memory]:
        """Store these files. Return the memories that a concurrent run has stored for some of
        them."""
        context, vectors = self._context, Vectors()
        common = {**self._given, "source_root": self.folder.root}
        texts = [
            NewText(file.text, {**common, "source": file.source, "source_hash": file.hash})
            for file in files
        ]
        pairs = zip(prepare(context, texts), files, strict=True)
        prepared = [replace(item, fingerprint=file.fingerprint, places=()) for item, file in pairs]

        def decide() -> Plan[tuple[dict[str, Memory], list[Memory]]]:
            seen = {name: context.store.version(name) for name in partitions(context.reader)}
            known = self._known(files)
            new = [item for item in prepared if item.fingerprint not in known]
            plan = plan_add(context, new, vectors)
            return Plan((known, plan.answer), plan.puts, plan.deletes, seen if plan.puts else {})

        known, added = commit(context, decide)
        self.counts["added"] += len(added)
        self._met.update(memory.id for memory in added)
        return known

    def _update(self, file: _File, memory: Memory) -> None:
        self._met.add(memory.id)
        changed = memory.metadata.get("source_hash") != file.hash
        retyped = (
            bool(self._given)
            and memory.metadata.get("type") != self._type
            and self._is_current(memory)
        )
        if not changed and not retyped:
            self.counts["unchanged"] += 1
            return
        why = "the file changed" if changed else "ingested with another type"
        metadata = {**self._given, "source_hash": file.hash}
        try:
            update(self._context, memory.id, content=file.text, metadata=metadata, why=why)
            self.counts["updated"] += 1
        except NotFound:
            reason = "its memory was erased meanwhile, or belongs to another session"
            self.failed.append(Failed(file.source, reason))

    def _is_current(self, memory: Memory) -> bool:
        expired = memory.expires_at is not None and memory.expires_at <= iso(self._context.clock())
        return memory.status == Status.ACTIVE and not expired


# --- folders of skills ---
# A file that cannot be read as a skill is reported, and the others are stored.

_FILES = Selection(learning.EXTENSIONS, recursive=True)
_log = logging.getLogger("memory_mesh")


def read_once(context: Context) -> None:
    """Read the folders unless this was done for this user since the mesh was opened, or there is
    no store yet."""
    if context.reader.user_id not in context.state.files.skill_users and is_ready(context):
        read_again(context)


def read_again(context: Context) -> None:
    """Read the folders; do nothing if the store is read-only or memory is disabled."""
    if context.options.enable_memory:
        with suppress(StoreReadOnly):
            read_all(context)


def read_all(context: Context) -> list[Ingested]:
    """Bring the skills of every folder up to date, and log what could not be read and what is
    gone."""
    paths = context.options.skill_directories or []
    context.check_enabled()
    context.state.files.skill_users.add(context.reader.user_id)
    done = [read_folder(context, path) for path in ([paths] if isinstance(paths, str) else paths)]
    for folder in done:
        for failed in folder.failed:
            _log.warning("no skill from %s in %s: %s", failed.source, folder.root, failed.reason)
        for gone in folder.gone:
            _log.warning(
                "the file of skill %s is gone: %s; the skill is kept", gone.id, gone.source
            )
    return done


def read_folder(context: Context, path: str) -> Ingested:
    """Bring the skills of a folder up to date."""
    try:
        folder = context.files.open_folder(path)
    except InvalidInput as error:
        return Ingested(path, failed=[Failed("./", str(error))])
    listed = list(folder.files(_FILES))
    files = set(learning.skill_files(entry.source for entry in listed))
    drafts, failed = list[SkillDraft](), list[Failed]()
    for entry in listed:
        if entry.source in files or entry.source.endswith("/"):
            try:
                drafts += _draft(context, folder, entry)
            except InvalidInput as error:
                failed.append(Failed(entry.source, str(error)))
    actions = Counter(
        stored.action
        for batch in batches(drafts, BATCH_FILES)
        for stored in store(context, batch, revive=False)
    )
    gone = list(_gone(context, folder.root, {draft.fingerprint for draft in drafts}, failed))
    return Ingested(folder.root, actions["add"], actions["update"], actions[""], failed, gone)


def _draft(context: Context, folder: Folder, entry: Listed) -> Iterator[SkillDraft]:
    """Yield the skill of a file; nothing for a text that is not a skill, such as a README."""
    text, _ = read_text(context, folder, entry)
    path = f"{folder.root}/{entry.source}"
    if path.endswith((f"/{learning.FILE}", ".yamo")) or learning.is_skill_text(text):
        name = learning.default_name(path)
        yield skills.prepare(context, text, None, source=path, default_name=name)


def _gone(context: Context, root: str, found: set[str], failed: Sequence[Failed]) -> Iterator[Gone]:
    """Yield the active skills whose file was in the folder. A file that could not be read is
    still there."""
    gate = context.gates.content()  # paths are stored masked
    prefix = gate.redact(f"{root}/")
    there = tuple(gate.redact(f"{root}/{failure.source}") for failure in failed)
    for skill in map(Skill.of, context.store.find(Kind.SKILL, readable(context))):
        source = str(skill.metadata.get("source", ""))
        if (
            source.startswith(prefix)
            and skill.fingerprint not in found
            and not source.startswith(there)
        ):
            yield Gone(source, skill.id)
