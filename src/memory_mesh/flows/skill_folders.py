"""Read the files of `skill_directories`: each is one skill, identified by its path.

New files are added, changed files get a new revision, skills of missing files are reported and kept. A file that cannot be read
as a skill is reported, and the others are stored.
"""

import logging
from collections.abc import Iterator, Sequence
from contextlib import suppress

from memory_mesh.core import learning
from memory_mesh.core.errors import InvalidInput, StoreReadOnly
from memory_mesh.core.intake import Selection
from memory_mesh.core.model import Failed, Gone, Ingested, Kind, Skill, batches
from memory_mesh.core.ports import Folder, Listed
from memory_mesh.flows.context import Context
from memory_mesh.flows.folders import BATCH_FILES
from memory_mesh.flows.readable import readable
from memory_mesh.flows.skills import SkillDraft, prepare, store

_FILES = Selection(learning.EXTENSIONS, recursive=True)
_log = logging.getLogger("memory_mesh")


def read_once(context: Context) -> None:
    """Read the folders unless this was done for this user since the mesh was opened."""
    if context.reader.user_id not in context.state.skills_read:
        read_again(context)


def read_again(context: Context) -> None:
    """Read the folders; do nothing if the store is read-only or memory is disabled."""
    if context.options.enable_memory:
        with suppress(StoreReadOnly):
            read_all(context)


def read_all(context: Context) -> list[Ingested]:
    """Bring the skills of every folder up to date, and log what could not be read and what is gone."""
    given = context.options.skill_directories or []
    context.check_enabled()
    context.state.skills_read.add(context.reader.user_id)
    done = [read_folder(context, path) for path in ([given] if isinstance(given, str) else given)]
    for folder in done:
        for failed in folder.failed:
            _log.warning("no skill from %s in %s: %s", failed.source, folder.root, failed.reason)
        for gone in folder.gone:
            _log.warning("the file of skill %s is gone: %s; the skill is kept", gone.id, gone.source)
    return done


def read_folder(context: Context, path: str) -> Ingested:
    """Bring the skills of a folder up to date."""
    try:
        folder = context.open_folder(path)
    except InvalidInput as error:
        return Ingested(path, failed=[Failed("./", str(error))])
    listed = list(folder.files(_FILES))
    files = set(learning.skill_files(entry.source for entry in listed))
    drafts, failed, counts = list[SkillDraft](), list[Failed](), dict.fromkeys(("add", "update", ""), 0)
    for entry in listed:
        if entry.source in files or entry.source.endswith("/"):
            try:
                drafts += _draft(context, folder, entry)
            except InvalidInput as error:
                failed.append(Failed(entry.source, str(error)))
    for batch in batches(drafts, BATCH_FILES):
        for stored in store(context, batch, revive=False):
            counts[stored.action] += 1
    gone = list(_gone(context, folder.root, {draft.fingerprint for draft in drafts}, failed))
    return Ingested(folder.root, counts["add"], counts["update"], counts[""], failed, gone)


def _draft(context: Context, folder: Folder, entry: Listed) -> Iterator[SkillDraft]:
    """Yield the skill of a file; nothing for a text that is not a skill, such as a README."""
    if entry.fault:
        raise InvalidInput(entry.fault)
    data = folder.read(entry.source, max_bytes=4 * context.limits.content_chars + 3)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"it is not UTF-8 text (byte {error.start + 1:,})") from None
    path = f"{folder.root}/{entry.source}"
    if path.endswith((f"/{learning.FILE}", ".yamo")) or learning.is_skill_text(text):
        yield prepare(context, text, None, source=path, default_name=learning.default_name(path))


def _gone(context: Context, root: str, found: set[str], failed: Sequence[Failed]) -> Iterator[Gone]:
    """Yield the active skills whose file was in the folder. A file that could not be read is still there."""
    gate = context.gate()  # paths are stored masked
    prefix = gate.redact(f"{root}/")
    there = tuple(gate.redact(f"{root}/{failure.source}") for failure in failed)
    for skill in map(Skill.of, context.store.find(Kind.SKILL, readable(context))):
        source = str(skill.metadata.get("source", ""))
        if source.startswith(prefix) and skill.fingerprint not in found and not source.startswith(there):
            yield Gone(source, skill.id)
