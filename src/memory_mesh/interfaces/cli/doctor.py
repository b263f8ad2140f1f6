"""`memory-mesh doctor`: check the installation, the settings and the store.

A check that fails says what to do.
"""

import os
import platform
import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from memory_mesh.api.build import (
    check_models,
    context_over,
    hook_files,
    make_chat,
    model_paths,
    signing_keys,
    trace_files,
)
from memory_mesh.api.settings import Settings, home_folder, load
from memory_mesh.core.audit import Broken, owner_of
from memory_mesh.core.errors import MemoryMeshError, SettingsError
from memory_mesh.core.model import Block, Head, Kind, Meta, Reader, Status, equals
from memory_mesh.core.ports import ServerStore, SigningKeys, Store
from memory_mesh.core.text import shown_url
from memory_mesh.core.transfer.archive import MARK
from memory_mesh.flows.audit import audit
from memory_mesh.flows.learning.models import pseudonym_key_error, stored_key_id
from memory_mesh.flows.traces.index import faults as faults_in
from memory_mesh.flows.write.embed import store_model
from memory_mesh.interfaces.hosts import resident
from memory_mesh.interfaces.hosts.deadline import FAULT_FILE, is_single_timeout, last_fault
from memory_mesh.interfaces.render.output import (
    NAME,
    Answer,
    aligned,
    items,
    one_line,
    paint,
    safe,
    size,
    styled,
)
from memory_mesh.interfaces.render.records import fault_lines
from memory_mesh.interfaces.values import Target
from memory_mesh.models import JUDGE, MODEL, PUBLISHED_MODEL, model_status
from memory_mesh.models.providers import KeylessChat
from memory_mesh.stores import is_store_file, open_store, store_file
from memory_mesh.stores.files import KEY_FILE, read_key, stat_of
from memory_mesh.stores.sqlite import VERSION, SqliteStore, derived_faults

_MIN_SQLITE = (3, 38)  # has JSON built in
_MAX_NAMED = 5  # files in one line
_MIN_FREE_BYTES = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """The result of one check. The remedy of one that passed is advice."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


def examine(target: Target) -> Answer:
    """Run every check that can be run."""
    checks = list(_checks(target))
    failed = sum(not check.ok for check in checks)
    summary = f"{NAME} Doctor: {len(checks)} checks, " + (
        f"{failed} failed." if failed else "all passed."
    )
    rows = [
        ("ok" if one.ok else "FAILED", one.name, "; ".join(filter(None, (one.detail, one.remedy))))
        for one in checks
    ]
    return Answer(
        text=f"{summary}\n{aligned(rows)}",
        data=items(checks, ok=not failed),
        code=1 if failed else 0,
        draw=lambda: "\n".join([paint(summary), *map(_marked, checks)]),
    )


def _checks(target: Target) -> Iterator[Check]:
    yield Check("python", ok=True, detail=platform.python_version())
    version = ".".join(map(str, _MIN_SQLITE))
    enough = sqlite3.sqlite_version_info >= _MIN_SQLITE
    yield _check(
        "sqlite", enough, sqlite3.sqlite_version, f"use a Python with SQLite {version} or newer"
    )
    try:
        settings = load(target.arguments)
    except SettingsError as error:
        yield _failed("settings", error)
        return
    origins = settings.origins.values()
    files = sorted({origin for origin in origins if origin.startswith("file")})
    given = sum(origin != "default" for origin in origins)
    about = f"{given} given, the others default; {', '.join(files) or 'no file'}"
    yield Check("settings", ok=True, detail=about)
    created = "" if settings.home.exists() else " does not exist yet"
    yield _folder(
        "home", settings.home, f"{settings.home}{created}", remedy="set MEMORY_MESH_HOME to another"
    )
    yield permissions(settings)
    yield _model(settings)
    yield from _judge(settings)
    yield _llm(settings)
    if fault := last_fault():
        remedy = (
            "the next run of the hook that works removes this, or remove "
            f"{home_folder() / FAULT_FILE}"
        )
        yield Check("hosts", ok=is_single_timeout(fault), detail=one_line(fault), remedy=remedy)
    yield _process(settings)
    if settings.options.enable_memory:
        yield from _traces(settings)
        yield from _store_checks(settings)
    else:
        yield Check(
            "store", ok=True, detail=f"memory is disabled by {settings.origins['enable_memory']}"
        )


def _store_checks(settings: Settings) -> Iterator[Check]:
    try:
        file = store_file(settings.store_url)
        if file:
            yield _space(file)
        if file and not file.exists():
            url = shown_url(settings.store_url)
            yield _folder(
                "store", file, f"{url} does not exist yet", remedy="choose another --store"
            )
            return
        store = open_store(
            settings.store_url,
            busy_seconds=settings.options.busy_seconds,
            key=settings.options.store_key,
        )
        prepared = not is_store_file(store) or store.is_prepared()  # a server is asked now
    except MemoryMeshError as error:
        yield _failed("store", error)
        return
    with closing(store):
        other = "JSON files" if store.url.startswith("json:") else "schema V2 of RFC-0011"
        schema = f"schema {VERSION}" if isinstance(store, SqliteStore) else other
        schema = (
            schema
            if prepared
            else "of an older version or of another program; the next write upgrades it"
        )
        about = f", {size(_bytes_in(file))}, {schema}" if file else ""
        yield Check("store", ok=True, detail=f"{shown_url(store.url)}{about}")
        signing = signing_keys(settings, store)
        yield _try("pseudonyms", partial(_pseudonyms, store, settings))
        yield _try("file", partial(_file, store))
        yield _try(
            "keywords",
            partial(_keywords, file if prepared and isinstance(store, SqliteStore) else None),
        )
        yield _try("audit", partial(_chains, store, signing))
        yield _try("signatures", partial(_audit_key, store, signing))
        yield _try("bytes", partial(_bytes, store))
        yield _try("pending", partial(_pending, store, settings))
        yield from _vectors(store, settings)
        yield from _copy(store)


# --- settings and models ---


def _model(settings: Settings) -> Check:
    if settings.options.embedder != "local":
        return Check(
            "model", ok=True, detail=f"none is needed: embedder is {settings.options.embedder}"
        )
    status = model_status(model_paths(settings))
    detail = f"{status.state} in {status.folder}" + (f", {status.detail}" if status.detail else "")
    return _check("model", status.usable, detail, status.remedy)


def _judge(settings: Settings) -> Iterator[Check]:
    """Yield a check that fails if the judge of pairs is enabled and cannot be used."""
    if settings.options.embedder != "local" or settings.options.update_judge == "off":
        return
    status = model_status(replace(model_paths(settings), model=JUDGE))
    if not status.usable:
        detail = f"{JUDGE} is {status.state}: changes of memories are not recognised"
        yield Check("judge", ok=False, detail=detail, remedy=status.remedy)


def _llm(settings: Settings) -> Check:
    """Check the settings of the language model; it is not called."""
    try:
        check_models(settings.options)
        chat = make_chat(settings.options, None)
    except SettingsError as error:
        return _failed("llm", error)
    if isinstance(chat, KeylessChat):
        return _failed("llm", chat.error)
    disabled = "" if settings.options.enable_llm else ", disabled"
    detail = (
        f"{chat.model} is set{disabled}; memory-mesh model check calls it"
        if chat
        else "none is set, and none is needed"
    )
    return Check("llm", ok=True, detail=detail)


def _process(settings: Settings) -> Check:
    """Check the process that answers hooks; it need not run."""
    if not settings.options.host_idle_seconds:
        about = f"disabled by {settings.origins['host_idle_seconds']}"
        return Check("process", ok=True, detail=f"hooks answer by themselves: {about}")
    folder = resident.folder()
    if resident.is_available() and os.path.lexists(folder) and not resident.is_private():
        detail = f"hooks answer by themselves: {folder} is not a folder of this user only"
        remedy = f"remove it, or run chmod 700 {shlex.quote(folder)}"
        return Check("process", ok=False, detail=detail, remedy=remedy)
    return Check("process", ok=True, detail=resident.state()[1])


# --- files ---


def _traces(settings: Settings) -> Iterator[Check]:
    """Yield a check that fails if something in the files of traces cannot be read; nothing
    changes them."""
    try:
        files = trace_files(settings, settings.options.user_id)
        found = fault_lines(faults_in(files)) if files.mark("") else []
    except MemoryMeshError as error:
        yield _failed("traces", error)
        return
    if found:
        more = f" and {len(found) - _MAX_NAMED} more" if len(found) > _MAX_NAMED else ""
        remedy = f"correct the file in {files.root}; it is left as it is"
        yield Check(
            "traces", ok=False, detail=f"{', '.join(found[:_MAX_NAMED])}{more}", remedy=remedy
        )


def _folder(name: str, path: Path, detail: str, *, remedy: str) -> Check:
    """Check that a path is a writable folder, or could be created in one."""
    existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    ok = existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)
    return _check(name, ok, detail, f"make {existing} a folder that you can write to, or {remedy}")


def permissions(settings: Settings) -> Check:
    """Check that only their owner can reach the home, the files in it, the store and the keys."""
    paths = sorted(set(_private_paths(settings)))
    broken = [path for path in paths if path.is_symlink() and not path.exists()]
    if broken:
        names = " and ".join(map(str, broken))
        lead = "is a link that leads" if len(broken) == 1 else "are links that lead"
        return Check(
            "permissions",
            ok=False,
            detail=f"{names} {lead} nowhere",
            remedy="remove it, or restore what it leads to",
        )
    loose = [path for path in paths if os.name == "posix" and _is_loose(path)]
    names = ", ".join(map(str, loose[:_MAX_NAMED])) + (
        f" and {len(loose) - _MAX_NAMED} more" if len(loose) > _MAX_NAMED else ""
    )
    sound = f"{len(paths)} files and folders, for their owner only"
    remedy = "run chmod go-rwx " + " ".join(shlex.quote(str(path)) for path in loose)
    return _check("permissions", not loose, f"others can reach {names}" if loose else sound, remedy)


def _private_paths(settings: Settings) -> Iterator[Path]:
    """Yield what exists of the home, the files in it, the files of the store and the key files."""
    try:
        file = store_file(settings.store_url)
    except MemoryMeshError:  # another check names it
        file = None
    found = [settings.home, settings.audit_key_file]
    found += (
        [
            file.with_name(file.name + suffix)
            for suffix in ("", "-wal", "-shm", "-journal", "-index", "-hooks")
        ]
        if file
        else []
    )
    for path in found:
        if path.exists() or path.is_symlink():
            yield path.absolute()
        if path.is_dir() and not path.is_symlink():
            for place, folders, files in os.walk(path.absolute()):
                yield from (Path(place, name) for name in (*folders, *files))


def _is_loose(path: Path) -> bool:
    """Return whether others can reach a file or folder. The permissions of a pipe or a device
    are not ours to change."""
    mode = found.st_mode if (found := stat_of(path)) else 0
    return bool(mode & 0o077) and (S_ISREG(mode) or S_ISDIR(mode))


def _bytes_in(path: Path) -> int:
    files = (path, *(Path(place, name) for place, _, names in os.walk(path) for name in names))
    return sum(
        found.st_size for file in files if (found := stat_of(file)) and S_ISREG(found.st_mode)
    )


def _space(file: Path) -> Check:
    for folder in file.absolute().parents:
        with suppress(FileNotFoundError, NotADirectoryError):
            free = shutil.disk_usage(folder).free
            break
    return _check(
        "space", free >= _MIN_FREE_BYTES, f"{size(free)} free", f"free some space on {folder}"
    )


# --- the store ---


def _pseudonyms(store: Store, settings: Settings) -> Check:
    error = pseudonym_key_error(store, read_key(settings.home))
    used = "made with the key of this home" if stored_key_id(store) else "none"
    return _check(
        "pseudonyms", not error, error or used, f"restore {settings.home / KEY_FILE} from a backup"
    )


def _file(store: Store) -> Check:
    damage = store.damage() if is_store_file(store) else []
    remedy = "restore a backup, or run memory-mesh doctor --repair"
    return _check("file", not damage, "; ".join(damage) or "intact", remedy)


def _keywords(file: Path | None) -> Check:
    faults = derived_faults(file) if file else []
    return _check(
        "keywords",
        not faults,
        "; ".join(faults) or "agree with the memories",
        "export the memories into a new store",
    )


def _audit_key(store: Store, signing: SigningKeys | None) -> Check:
    """Check that the key file can be used and has the keys of all heads."""
    keys = signing.by_id() if signing else {}
    missing = {
        str(head.key_id) for head in map(Head.of, store.find(Kind.HEAD)) if head.key_id
    } - keys.keys()
    place = signing.place if signing else "the key file"
    detail = (
        f"{place} lacks the key {', '.join(sorted(missing))}"
        if missing
        else f"{len(keys)} {'key' if len(keys) == 1 else 'keys'} in {place}"
    )
    return _check(
        "signatures", not missing, detail, "restore the file from a backup, or set audit_key_file"
    )


def _chains(store: Store, signing: SigningKeys | None = None) -> Check:
    """Verify every chain of every user. A chain whose head was removed is found by its blocks."""
    context = context_over(store, Reader(), signing=signing)
    chains = {row.id for row in store.find(Kind.HEAD)} | {
        Block.of(row).chain for row in store.find(Kind.BLOCK)
    }
    verdicts = [audit.verify(context, chain) for chain in sorted(chains)]
    breaks = [
        (
            f"the chain of {_owner(verdict.chain)} breaks at block {verdict.number} "
            f"({verdict.block_id or 'no id'}): {verdict.reason}"
        )
        for verdict in verdicts
        if isinstance(verdict, Broken)
    ]
    sound = f"{len(verdicts)} sound, {sum(verdict.number for verdict in verdicts)} blocks"
    remedy = "the store was changed by another program: restore a backup"
    return _check("audit", not breaks, "; ".join(breaks) or sound, remedy)


def _bytes(store: Store) -> Check:
    left = is_store_file(store) and store.has_deleted_bytes()
    if not isinstance(store, ServerStore):
        state = "bytes of deleted memories are still" if left else "no deleted bytes are left"
        return _check("bytes", not left, f"{state} in the files", "run memory-mesh compact")
    # A server removes them by itself, and keeps files that are not looked at.
    detail = "the server counts no deleted rows in the tables"
    if not is_store_file(store):
        detail = "not known: the tables belong to a server"
    elif left:
        detail = (
            "deleted or replaced rows are in the tables until the server vacuums them, or "
            "memory-mesh compact"
        )
    unknown = "its write-ahead log, free space and backups were not searched"
    return Check("bytes", ok=True, detail=f"{detail}; {unknown}")


def _pending(store: Store, settings: Settings) -> Check:
    statuses = (Status.QUARANTINED, Status.DISPUTED)
    counts = {
        str(status): store.count(Kind.MEMORY, equals("status", status)) for status in statuses
    }
    letters = len(hook_files(settings, store).dead_letters())
    counts |= {"events of hooks": store.count(Kind.EVENT), "dead letters of hooks": letters}
    waiting = ", ".join(f"{count} {what}" for what, count in counts.items() if count)
    return _check(
        "pending",
        not letters,
        waiting or "nothing waits for a decision",
        "run memory-mesh hooks retry",
    )


def _vectors(store: Store, settings: Settings) -> Iterator[Check]:
    """Yield advice, not a failure, if the store goes on with the published model although the
    newer one runs here."""
    try:
        model = (
            store_model(context_over(store, Reader()))
            if settings.options.embedder == "local"
            else None
        )
    except MemoryMeshError as error:
        yield _failed("vectors", error)
        return
    if model == PUBLISHED_MODEL:
        detail = f"of {model}, which still works; {MODEL} finds more"
        yield Check(
            "vectors",
            ok=True,
            detail=detail,
            remedy="run memory-mesh reembed to change the store to it",
        )


def _copy(store: Store) -> Iterator[Check]:
    """Yield a check that fails if a copy into the store is not complete."""
    about = Meta.read(store, MARK).detail
    if about and not about.get("done"):
        detail = f"of {one_line(str(about.get('from')))} is not complete"
        yield Check(
            "copy", ok=False, detail=detail, remedy="run the same copy, restore or import again"
        )


# --- results ---


def _check(name: str, ok: bool, detail: str, remedy: str) -> Check:  # noqa: FBT001  (the result of a comparison)
    return Check(name, ok, detail, "" if ok else remedy)


def _try(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except MemoryMeshError as error:
        return _failed(name, error)
    except sqlite3.Error as error:
        return Check(
            name, ok=False, detail=f"cannot be checked: {error}", remedy="restore a backup"
        )


def _failed(name: str, error: MemoryMeshError) -> Check:
    expected = f"expected {error.expected}" if error.expected else ""
    detail = f"{error.what}; {expected}" if expected and error.remedy else error.what
    return Check(name, ok=False, detail=one_line(detail), remedy=one_line(error.remedy or expected))


def _marked(check: Check) -> str:
    mark = styled("✓", "32") if check.ok else styled("✗", "1;31")
    remedy = f"\n    {styled('→', '33')} {safe(check.remedy)}" if check.remedy else ""
    return f"{mark} {styled(f'{check.name:<12}', '1')}{safe(check.detail)}{remedy}"


def _owner(chain: str) -> str:
    user, agent = owner_of(chain)
    return f"agent {agent}" + (f" of user {user}" if user else "")
