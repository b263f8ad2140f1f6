"""`memory-mesh doctor`: what could keep a memory from working, checked one by one, each failure with its remedy."""

import os
import platform
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from memory_mesh.core.audit import Broken, owner_of
from memory_mesh.core.errors import MemoryMeshError, SettingsError
from memory_mesh.core.model.columns import Kind
from memory_mesh.core.model.records import Block, Status
from memory_mesh.core.model.scope import Reader
from memory_mesh.core.model.where import equals
from memory_mesh.core.ports import Store
from memory_mesh.flows import audit as trail
from memory_mesh.flows import health
from memory_mesh.interfaces.render import NAME, Answer, aligned, one_line, paint, safe, size, styled, without_passwords
from memory_mesh.interfaces.values import Target
from memory_mesh.models import model_status
from memory_mesh.settings import Settings, load
from memory_mesh.stores import open_store, store_file
from memory_mesh.stores.files import KEY_FILE, read_key
from memory_mesh.stores.sqlite import VERSION, SqliteStore, derived_faults
from memory_mesh.wiring.build import context_over, model_paths
from memory_mesh.wiring.models import KeylessChat, check_models, make_chat

_OLDEST_SQLITE = (3, 38)  # has JSON built in
_LEAST_FREE = 64 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""


Look = Callable[[Store, Path | None], Check]


def examine(target: Target) -> Answer:
    """Run every check that can be run."""
    checks = list(_checks(target))
    failed = sum(not check.ok for check in checks)
    summary = f"{NAME} Doctor: {len(checks)} checks, " + (f"{failed} failed." if failed else "all passed.")
    rows = [("ok" if check.ok else "FAILED", check.name, _told(check)) for check in checks]
    return Answer(
        text=f"{summary}\n{aligned(rows)}",
        data={"ok": not failed, "checks": [asdict(check) for check in checks]},
        code=1 if failed else 0,
        draw=lambda: paint(summary) + "\n" + "\n".join(_drawn(check) for check in checks),
    )


def _checks(target: Target) -> Iterator[Check]:
    yield Check("python", ok=True, detail=platform.python_version())
    yield _library()
    try:
        loaded = load(target.arguments)
    except SettingsError as error:
        yield _failed("settings", error)
        return
    yield _settings(loaded)
    yield _home(loaded.home)
    yield _model(loaded)
    yield _llm(loaded)
    if not loaded.options.enable_memory:
        yield Check("store", ok=True, detail=f"memory is switched off by {loaded.origins['enable_memory']}")
        return
    yield from _stored(loaded)


def _stored(loaded: Settings) -> Iterator[Check]:
    try:
        file = store_file(loaded.store_url)
        if file:
            yield _space(file)
        if file and not file.exists():
            yield _unmade("store", file, f"{without_passwords(loaded.store_url)} is not made yet", remedy="name another --store")
            return
        store = open_store(loaded.store_url, busy_seconds=loaded.options.busy_seconds)
    except MemoryMeshError as error:
        yield _failed("store", error)
        return
    with closing(store):
        yield _store(store, file)
        yield _tried("pseudonyms", lambda store, _: _pseudonyms(store, loaded), store, file)
        for name, look in _INSIDE.items():
            yield _tried(name, look, store, file)


def _library() -> Check:
    ok = sqlite3.sqlite_version_info >= _OLDEST_SQLITE
    wanted = ".".join(map(str, _OLDEST_SQLITE))
    return Check("sqlite", ok, sqlite3.sqlite_version, "" if ok else f"use a Python whose SQLite is {wanted} or newer")


def _settings(loaded: Settings) -> Check:
    files = sorted({origin for origin in loaded.origins.values() if origin.startswith("file")})
    given = sum(origin != "default" for origin in loaded.origins.values())
    return Check("settings", ok=True, detail=f"{given} given, the others default; {', '.join(files) or 'no file'}")


def _home(home: Path) -> Check:
    told = f"{home}" + ("" if home.exists() else " is not made yet")
    return _unmade("home", home, told, remedy="set MEMORY_MESH_HOME to another")


def _model(loaded: Settings) -> Check:
    if loaded.options.embedder != "local":
        return Check("model", ok=True, detail=f"none is needed: embedder is {loaded.options.embedder}")
    found = model_status(model_paths(loaded))
    told = f"{found.state} in {found.folder}" + (f", {found.detail}" if found.detail else "")
    return Check("model", found.usable, told, "" if found.usable else found.remedy)


def _llm(loaded: Settings) -> Check:
    """Whether what is set can work; nobody is called."""
    try:
        check_models(loaded.options)
        chat = make_chat(loaded.options, None)
    except SettingsError as error:
        return _failed("llm", error)
    if isinstance(chat, KeylessChat):
        return _failed("llm", chat.error)
    off = "" if loaded.options.enable_llm else ", switched off"
    told = f"{chat.model} is set{off}; memory-mesh model check asks it" if chat else "none is set, and none is needed"
    return Check("llm", ok=True, detail=told)


def _unmade(name: str, path: Path, told: str, *, remedy: str) -> Check:
    """Whether a path is a folder that can be written to, or could be made in one."""
    there = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
    ok = there.is_dir() and os.access(there, os.W_OK | os.X_OK)
    return Check(name, ok, told, "" if ok else f"make {there} a folder that you can write to, or {remedy}")


def _space(file: Path) -> Check:
    there = next(folder for folder in file.absolute().parents if folder.is_dir())
    free = shutil.disk_usage(there).free
    return Check("space", free >= _LEAST_FREE, f"{size(free)} free", "" if free >= _LEAST_FREE else f"free some space on {there}")


def _store(store: Store, file: Path | None) -> Check:
    about = f", {size(file.stat().st_size)}, schema {VERSION}" if file else ""
    return Check("store", ok=True, detail=f"{without_passwords(store.url)}{about}")


def _pseudonyms(store: Store, loaded: Settings) -> Check:
    wrong = health.pseudonym_key_error(store, read_key(loaded.home))
    used = "made with the key of this home" if health.stored_key_id(store) else "none"
    return Check("pseudonyms", not wrong, wrong or used, f"restore {loaded.home / KEY_FILE} from a backup" if wrong else "")


def _file(store: Store, file: Path | None) -> Check:
    damage = store.damage() if isinstance(store, SqliteStore) else []
    return _found("file", damage, well="intact", remedy="restore a backup")


def _keywords(store: Store, file: Path | None) -> Check:
    faults = derived_faults(file) if file else []
    return _found("keywords", faults, well="agree with the memories", remedy="export the memories into a new store")


def _chains(store: Store, file: Path | None) -> Check:
    """Every chain of every user; one whose head is gone is found by its blocks."""
    context = context_over(store, Reader())
    named = {row.id for row in store.find(Kind.HEAD)} | {Block.of(row).chain for row in store.find(Kind.BLOCK)}
    verdicts = [trail.verify(context, chain) for chain in sorted(named)]
    breaks = [
        f"the chain of {_owner(verdict.chain)} breaks at block {verdict.number} ({verdict.block_id or 'no id'}): {verdict.reason}"
        for verdict in verdicts
        if isinstance(verdict, Broken)
    ]
    well = f"{len(verdicts)} sound, {sum(verdict.number for verdict in verdicts)} blocks"
    return _found("audit", breaks, well=well, remedy="someone changed the store outside of memory-mesh: restore a backup")


def _bytes(store: Store, file: Path | None) -> Check:
    wait = isinstance(store, SqliteStore) and store.untidy()
    told = "bytes of deleted memories are still in the files" if wait else "nothing deleted is left in the files"
    return Check("bytes", not wait, told, "run memory-mesh compact" if wait else "")


def _pending(store: Store, file: Path | None) -> Check:
    waiting = {status: store.count(Kind.MEMORY, equals("status", status)) for status in (Status.QUARANTINED, Status.DISPUTED)}
    told = ", ".join(f"{number} {status}" for status, number in waiting.items() if number)
    return Check("pending", ok=True, detail=told or "nothing waits for a decision")


_INSIDE: dict[str, Look] = {
    "file": _file,
    "keywords": _keywords,
    "audit": _chains,
    "bytes": _bytes,
    "pending": _pending,
}


def _tried(name: str, look: Look, store: Store, file: Path | None) -> Check:
    try:
        return look(store, file)
    except MemoryMeshError as error:
        return _failed(name, error)
    except sqlite3.Error as error:
        return Check(name, ok=False, detail=f"cannot be checked: {error}", remedy="restore a backup")


def _found(name: str, faults: list[str], *, well: str, remedy: str) -> Check:
    return Check(name, not faults, "; ".join(faults) or well, remedy if faults else "")


def _failed(name: str, error: MemoryMeshError) -> Check:
    expected = f"expected {error.expected}" if error.expected else ""
    detail = f"{error.what}; {expected}" if expected and error.remedy else error.what
    return Check(name, ok=False, detail=one_line(detail), remedy=one_line(error.remedy or expected))


def _told(check: Check) -> str:
    return f"{check.detail}; {check.remedy}" if check.remedy else check.detail


def _drawn(check: Check) -> str:
    mark = styled("✓", "32") if check.ok else styled("✗", "1;31")
    remedy = f"\n    {styled('→', '33')} {safe(check.remedy)}" if check.remedy else ""
    return f"{mark} {styled(f'{check.name:<10}', '1')}{safe(check.detail)}{remedy}"


def _owner(chain: str) -> str:
    try:
        user, agent = owner_of(chain)
    except (ValueError, TypeError):
        return repr(chain[:60])
    return f"agent {agent}" + (f" of user {user}" if user else "")
