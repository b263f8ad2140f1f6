"""The files of hooks: entries in Markdown, dead letters, and locks that processes share.

An entry is a line, and further lines that begin with two spaces. So every entry of a memory can be
found and removed again.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from errno import EAGAIN
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote

from memory_mesh.core.errors import SettingsError, StoreUnavailable, shown
from memory_mesh.core.model import Json
from memory_mesh.core.upkeep.hooks import DELETE, HookEvent
from memory_mesh.stores.files import (
    append_durably,
    create_folder,
    lock_file,
    names_in,
    read_if_any,
    replace_file,
    stat_of,
    sync,
)

_LOCK = ".lock"
_LETTERS = "dead-letters.jsonl"
_BUSY_SECONDS = 10.0
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\.md")
_ENTRY = re.compile(r"- \d\d:\d\d:\d\d \*\*([a-z]+)\*\* `([^`\n]*)`")
_FLAGS = (
    os.O_RDWR
    | os.O_APPEND
    | os.O_CREAT
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
)


# --- Markdown ---


class MarkdownFolder:
    """Appends each event to the file of its day; implements `core.ports.Hook`. The caller has
    the lock of the folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = str(folder)
        self.name = f"markdown {folder}"

    def __repr__(self) -> str:
        return f"markdown_writethrough({self.folder!r})"

    def deliver(self, event: HookEvent) -> None:
        if event.event == DELETE:
            _remove_entries(Path(self.folder), {str(event.memory["id"])})
        create_folder(Path(self.folder))
        _append(
            Path(self.folder) / f"{event.at[:10]}.md",
            _entry(event).encode(),
            title=f"# {event.at[:10]}\n\n".encode(),
        )


def markdown_writethrough(dir: str | os.PathLike[str]) -> MarkdownFolder:
    """Return a hook that appends each event to a Markdown file in a folder, one for each UTC day:
    `2026-03-01.md`.

    The folder is created by the first event. Erasing a memory removes its entries. Raises
    `SettingsError` for a folder that cannot be written.
    """
    try:
        folder = Path(os.path.abspath(Path(os.fspath(dir)).expanduser()))
        existing = next(one for one in (folder, *folder.parents) if os.path.lexists(one))
        fault = "" if existing.is_dir() else f"{existing} is not a folder"
        if not fault and not os.access(existing, os.W_OK | os.X_OK):
            fault = f"{existing} cannot be written"
    except (TypeError, ValueError, OSError, RuntimeError) as error:
        # ValueError: a NUL; RuntimeError: no home folder.
        fault = str(error)
    if fault:
        what = f"markdown_writethrough cannot use {shown(dir, max_length=200)}: {fault}"
        raise SettingsError(what, expected="a folder that can be written, or a new one")
    return MarkdownFolder(folder)


def _entry(event: HookEvent) -> str:
    memory = event.memory
    head = f"- {event.at[11:19]} **{event.event}** `{_quoted(str(memory['id']))}`"
    after = f" → `{_quoted(str(memory['superseded_by']))}`" if memory.get("superseded_by") else ""
    first, *rest = str(memory.get("content", "")).splitlines() or [""]
    who = f" ({_quoted(str(memory['agent_id']))})" if memory.get("agent_id") else ""
    return (
        "\n".join([f"{head}{after}{who} {first}".rstrip(), *(f"  {line}" for line in rest)]) + "\n"
    )


def _quoted(text: str) -> str:
    """Return an id or a name; characters that could end its place in a line are escaped."""
    return quote(text, safe=" :/@+")


def _append(path: Path, data: bytes, *, title: bytes = b"") -> None:
    """Append to a private file, durable when it returns; if it fails, nothing is kept. A line
    that a crash cut off is ended."""
    with open(os.open(path, _FLAGS, 0o600), "r+b", buffering=0) as file:
        size = os.fstat(file.fileno()).st_size
        if size:
            file.seek(size - 1)
            title = b"" if file.read(1) == b"\n" else b"\n"
        append_durably(file.fileno(), title + data)
    if not size:
        sync(path.parent)


def _remove_entries(folder: Path, memory_ids: Collection[str]) -> None:
    marks = {_quoted(id_) for id_ in memory_ids}
    for path in (folder / name for name in names_in(folder) if _DAY.fullmatch(name)):
        text = (read_if_any(path) or b"").decode(errors="surrogateescape")
        kept, is_kept = list[str](), True
        for line in re.findall(r"[^\n]*\n|[^\n]+", text):
            found = _ENTRY.match(line)
            # People may add lines of their own: only what belongs to an entry goes with it.
            is_kept = (
                found[1] == DELETE or found[2] not in marks
                if found
                else is_kept or not line.startswith("  ")
            )
            kept += [line] if is_kept else []
        if len(left := "".join(kept)) != len(text):
            replace_file(path, left.encode(errors="surrogateescape"))


# --- dead letters and locks ---


class DiskHookFiles:
    """The dead letters and locks of a store's hooks, in a folder; implements
    `core.ports.HookFiles`."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._letters = folder, folder / _LETTERS

    @contextmanager
    def turn(
        self, hook: str, folder: str | None, *, seconds: float, create: bool = True
    ) -> Iterator[bool]:
        path = (
            Path(folder, _LOCK)
            if folder
            else self._folder / f"{sha256(hook.encode()).hexdigest()[:16]}.lock"
        )
        with ExitStack() as stack:
            is_ours = True
            with suppress(OSError):  # delivering fails in the same way, which is recorded
                if create:
                    create_folder(path.parent)
                is_ours = stack.enter_context(lock_file(path, seconds=seconds))
            yield is_ours

    def add_dead_letter(self, letter: Mapping[str, Json], is_waiting: Callable[[], bool]) -> None:
        with _translated(self._letters):
            create_folder(self._folder)
            with _locked(self._folder):
                if is_waiting():
                    _append(self._letters, json.dumps(dict(letter)).encode("ascii") + b"\n")

    def dead_letters(self) -> list[dict[str, Json]]:
        with _translated(self._letters):
            try:
                lines = self._letters.read_text(encoding="ascii", errors="replace").splitlines()
            except FileNotFoundError:
                return []
        letters: list[dict[str, Json]] = []
        for line in lines:
            with suppress(ValueError, RecursionError):  # a crash cut it off, or it was edited
                letter = json.loads(line)
                letters += [letter] if isinstance(letter, dict) and letter else []
        return letters

    def keep_dead_letters(self, keep: Callable[[Mapping[str, Json]], bool]) -> None:
        with _translated(self._letters):
            try:
                if not stat_of(self._letters):
                    return
                with _locked(self._folder):
                    letters = self.dead_letters()
                    kept = [letter for letter in letters if keep(letter)]
                    if len(kept) < len(letters):
                        lines = (json.dumps(letter).encode("ascii") + b"\n" for letter in kept)
                        replace_file(self._letters, b"".join(lines))
            except FileNotFoundError:
                if stat_of(self._letters):  # else it was removed meanwhile, with its folder
                    raise

    def forget(self, folder: str, memory_ids: Collection[str]) -> None:
        with _translated(Path(folder)), suppress(NotADirectoryError):
            _remove_entries(Path(folder), memory_ids)

    def read(self, folders: Collection[str]) -> Iterator[tuple[str, bytes | None]]:
        for folder in (*map(Path, folders), self._folder):
            try:
                names = names_in(folder)
            except NotADirectoryError:
                names = []
            except OSError:
                yield folder.name, None
                continue
            # With copies of the file of a day, and parts that a crash left.
            for path in (folder / name for name in names if _DAY.search(name) or _LETTERS in name):
                try:
                    yield f"{folder.name}/{path.name}", read_if_any(path) or b""
                except OSError:
                    yield f"{folder.name}/{path.name}", None


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with lock_file(folder / _LOCK, seconds=_BUSY_SECONDS) as is_locked:
        if not is_locked:
            raise BlockingIOError(EAGAIN, "another process has its lock")
        yield


@contextmanager
def _translated(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        what = f"{path} cannot be read or written: {error.strerror}"
        raise StoreUnavailable(what, remedy="check the file and its folder") from error
