"""The composition root: settings into a working mesh. The only place that names concrete stores."""

import random
import time
from collections.abc import Callable
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from memory_mesh.aio import AsyncMesh
from memory_mesh.core.drafts import Limits
from memory_mesh.core.errors import InvalidInput, MemoryMeshError, SettingsError, shown
from memory_mesh.core.ids import Ids
from memory_mesh.core.ports import Clock, Embedder, IdSource, Progress, Step, Store, no_progress, no_step
from memory_mesh.core.scope import Reader
from memory_mesh.faces.mesh import Mesh
from memory_mesh.faces.not_yet import NOT_YET, not_yet
from memory_mesh.flows import pseudonyms
from memory_mesh.flows.desk import Desk
from memory_mesh.settings import Loaded, Settings, folder, load
from memory_mesh.stores.folder import DiskFolder
from memory_mesh.stores.keyfile import made_key, read_key
from memory_mesh.stores.lazy_index import LazyIndex
from memory_mesh.stores.urls import URLS, expanded, is_path, path_of, read_only, url_shown

if TYPE_CHECKING:
    from memory_mesh.core.layer0 import Layer0
    from memory_mesh.core.redact import Redactor
    from memory_mesh.models.weights import Places

# A clock as a caller may give it: seconds since 1970, or a datetime.
GivenClock = Callable[[], float | int | datetime]

_YEAR_10000 = 253_402_300_800


class MemoryMesh(Mesh):
    """One memory for one agent.

    ```python
    with MemoryMesh(store="sqlite:///memory.db", agent_id="planner") as mesh:
        mesh.add("The deploy key rotates on Mondays.")
        mesh.search("when does the key rotate?")
    ```
    Options that are not given come from the environment, `memory-mesh.toml` or the defaults; see `memory-mesh config show`.
    """

    def __init__(
        self,
        *,
        store: str | Store | None = None,
        agent_id: str | None = None,
        user_id: str | None = None,
        session_id: str | None = None,
        enable_memory: bool | None = None,
        enable_yamo: bool | None = None,
        enable_llm: bool | None = None,
        llm_provider: str | None = None,
        llm_model: str | None = None,
        llm_api_key: str | None = None,
        llm_max_tokens: int | None = None,
        skill_directories: str | list[str] | None = None,
        db_dir: str | None = None,
        enable_wisdom_distillation: bool | None = None,
        lesson_min_confidence: float | None = None,
        lesson_retention_days: int | None = None,
        enable_heritage_tracking: bool | None = None,
        max_heritage_depth: int | None = None,
        notes_dir: str | None = None,
        traces_dir: str | None = None,
        max_content_chars: int | None = None,
        stemmer_language: str | None = None,
        redaction: str | None = None,
        redact_names: dict[str, str] | None = None,
        scrub: dict[str, object] | None = None,
        model_path: str | None = None,
        cache_dir: str | None = None,
        busy_seconds: float | None = None,
        ranker: str | None = None,
        channel_weights: dict[str, float] | None = None,
        embedder: str | Embedder | None = None,
        clock: GivenClock | None = None,
        ids: IdSource | None = None,
        step: Step = no_step,
    ) -> None:
        given = dict(locals())
        own = {name for name in ("store", "embedder") if not isinstance(given[name], str)}  # handed in ready-made
        arguments = {f.name: given[f.name] for f in fields(Settings) if f.name not in own}
        if store is not None and db_dir is not None:
            raise SettingsError("both store and db_dir are given", expected="one of them")
        loaded = load(arguments)
        _refuse_not_yet(loaded)
        own_store = None if isinstance(store, str) else store
        own_embedder = None if embedder is None or isinstance(embedder, str) else _usable(embedder)
        super().__init__(lambda: _desk(loaded, own_store, own_embedder, as_clock(clock), ids or Ids(), step))


class AsyncMemoryMesh(AsyncMesh):
    """`MemoryMesh` for `async` code: the same options, the same methods, awaitable."""

    def __init__(self, **options: object) -> None:
        super().__init__(MemoryMesh(**options))  # type: ignore[arg-type]


def desk_over(store: Store, who: Reader, *, embedder: Embedder | None = None) -> Desk:
    """A desk that no setting reaches, over a store that is open already."""
    return Desk(
        store=store, index=LazyIndex(store, "english"), embedder=embedder, clock=as_clock(None), ids=Ids(), who=who, pause=_pause
    )  # fmt: skip


def open_store(url: str, *, busy_seconds: float = 30.0, step: Step = no_step) -> Store:
    """The store that a URL names."""
    if is_path(url):
        url = f"sqlite:///{quote(url)}"
    parts = urlsplit(url)
    if parts.scheme == "memory":
        from memory_mesh.stores.ram import RamStore

        return RamStore()
    if parts.scheme == "sqlite":
        return _sqlite(path_of(url), url=url, read_only=read_only(url), busy_seconds=busy_seconds, step=step)
    if parts.scheme in NOT_YET:
        raise not_yet(parts.scheme)
    raise InvalidInput(f"store {url_shown(url)} is unknown", expected=URLS)


def make_embedder(loaded: Loaded, progress: Progress = no_progress) -> Embedder | None:
    """The embedder that the settings name, with a cache of its own; None where they want no vectors. It loads nothing yet."""
    if loaded.settings.embedder == "none":
        return None
    from memory_mesh.models.cached import CachedEmbedder

    return CachedEmbedder(_hashing() if loaded.settings.embedder == "hash" else _local(loaded, progress))


def model_places(loaded: Loaded) -> "Places":
    """Where the local model is looked for."""
    from memory_mesh.models.weights import Places

    given = loaded.settings.model_path
    return Places(cache=loaded.cache, given=folder(given, "model_path") if given else None)


def store_file(url: str) -> Path | None:
    """The file that a URL names; None for a store that is no file."""
    if is_path(url):
        return expanded(url)
    return path_of(url) if urlsplit(url).scheme == "sqlite" else None


def as_clock(given: GivenClock | None) -> Clock:
    """Any clock as Unix milliseconds."""
    if given is None:
        return lambda: time.time_ns() // 1_000_000

    def clock() -> int:
        now = given()
        if isinstance(now, datetime):
            now = (now if now.tzinfo else now.replace(tzinfo=UTC)).timestamp()
        if not isinstance(now, int | float) or not 0 <= now < _YEAR_10000:
            raise SettingsError(f"the clock says {shown(now)}", expected="seconds since 1970, or a datetime")
        return round(now * 1000)

    return clock


def _desk(
    loaded: Loaded, own_store: Store | None, own_embedder: Embedder | None, clock: Clock, ids: IdSource, step: Step
) -> Desk:  # fmt: skip
    settings = loaded.settings
    store = own_store if own_store and settings.enable_memory else _store(loaded, step)
    gate = cache(lambda: _layer0(loaded, store, clock))
    try:
        if settings.redaction == "pseudonym" or settings.scrub:
            gate()  # a lost key or a wrong setting is told at once, not by the first write
    except MemoryMeshError:
        if store is not own_store:
            store.close()
        raise
    return Desk(
        store=store,
        index=LazyIndex(store, settings.stemmer_language),
        embedder=make_embedder(loaded) if own_embedder is None else own_embedder,
        ranker=settings.ranker,
        channel_weights=settings.channel_weights or {},
        borrowed=store is own_store,
        gate=gate,
        clock=clock,
        ids=ids,
        who=Reader(settings.user_id, settings.agent_id, settings.session_id),
        pause=_pause,
        limits=Limits(content_chars=settings.max_content_chars),
        enabled=settings.enable_memory,
        audited=settings.enable_yamo,
        language=settings.stemmer_language,
        step=step,
        open_folder=DiskFolder,
    )


def _layer0(loaded: Loaded, store: Store, clock: Clock) -> "Layer0":
    from memory_mesh.core.layer0 import Layer0
    from memory_mesh.core.scrub import MESH_OVERRIDES, ScrubSettings

    scrubbing = ScrubSettings().merged(MESH_OVERRIDES).merged(loaded.settings.scrub or {})
    return Layer0(_redactor(loaded, store, clock), scrubbing)


def _redactor(loaded: Loaded, store: Store, clock: Clock) -> "Redactor | None":
    from memory_mesh.core.redact import Redactor

    names = loaded.settings.redact_names or {}
    if loaded.settings.redaction == "off":
        return None
    if loaded.settings.redaction == "mask" or not loaded.settings.enable_memory:
        return Redactor(names=names)
    key = read_key(loaded.home)
    pseudonyms.check(store, key)
    key = key or made_key(loaded.home)
    pseudonyms.vouch(store, key, clock())
    return Redactor("pseudonym", key, names)


def _store(loaded: Loaded, step: Step) -> Store:
    if not loaded.settings.enable_memory:
        from memory_mesh.stores.disabled import DisabledStore

        return DisabledStore()
    return open_store(loaded.store_url, busy_seconds=loaded.settings.busy_seconds, step=step)


def _hashing() -> Embedder:
    from memory_mesh.models.hashing import HashingEmbedder

    return HashingEmbedder()


def _local(loaded: Loaded, progress: Progress) -> Embedder:
    from memory_mesh.models.local import LocalEmbedder

    return LocalEmbedder(model_places(loaded), progress=progress)


def _sqlite(path: Path, *, url: str, read_only: bool, busy_seconds: float, step: Step) -> Store:
    from memory_mesh.stores.sqlite import SqliteStore

    return SqliteStore(path, read_only=read_only, busy_seconds=busy_seconds, step=step, url=url)


def _usable(embedder: Embedder) -> Embedder:
    """An embedder that a caller made; what is none is told at once, not by the first write."""
    missing = [name for name in ("model", "window", "count", "embed") if getattr(embedder, name, None) is None]
    if missing or isinstance(embedder, type):
        what = f"embedder is {shown(embedder)}" + (f" without {', '.join(missing)}" if missing else "")
        raise SettingsError(what, expected="local, hash, none, or an object with model, window, count and embed")
    return embedder


def _refuse_not_yet(loaded: Loaded) -> None:
    for f in fields(Settings):
        if f.name in NOT_YET and getattr(loaded.settings, f.name) != f.default:
            raise not_yet(f.name)


def _pause(attempt: int) -> None:
    """Wait a little longer after each lost race, never in step with the others."""
    time.sleep(random.random() * min(0.05, 0.001 * 2 ** min(attempt, 6)))  # noqa: S311  (no secret hangs on it)
