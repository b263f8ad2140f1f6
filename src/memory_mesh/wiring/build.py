"""The composition root: settings into a working mesh. The only place that names concrete stores and models."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from memory_mesh.core.audit.search_log import Recalls
from memory_mesh.core.errors import MemoryMeshError, SettingsError, shown
from memory_mesh.core.intake.drafts import Limits
from memory_mesh.core.model.ids import Ids
from memory_mesh.core.model.scope import Reader
from memory_mesh.core.not_yet import NOT_YET, not_yet
from memory_mesh.core.ports import ChatModel, Clock, Embedder, IdSource, Meter, Progress, Step, Store, no_progress, no_step
from memory_mesh.faces.mesh import Mesh
from memory_mesh.flows import pseudonyms
from memory_mesh.flows.context import Chatting, Context
from memory_mesh.flows.spending import Ledger
from memory_mesh.index.lazy import LazyIndex
from memory_mesh.settings import Loaded, Settings, folder, load
from memory_mesh.stores.folder import DiskFolder
from memory_mesh.stores.keyfile import made_key, read_key
from memory_mesh.wiring import models as remote
from memory_mesh.wiring.aio import AsyncMesh
from memory_mesh.wiring.open_store import open_store

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.redaction.engine import Redactor
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
        llm_base_url: str | None = None,
        llm_allow_local: bool | None = None,
        llm_max_tokens: int | None = None,
        llm_input_tokens: int | None = None,
        llm_timeout: float | None = None,
        llm_requests_per_minute: int | None = None,
        llm_daily_tokens: int | None = None,
        llm_daily_cost: float | None = None,
        llm_price_sent: float | None = None,
        llm_price_received: float | None = None,
        skill_directories: str | list[str] | None = None,
        db_dir: str | None = None,
        enable_wisdom_distillation: bool | None = None,
        lesson_min_confidence: float | None = None,
        lesson_retention_days: int | None = None,
        audit_recalls: bool | None = None,
        recall_retention_days: int | None = None,
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
        embedding_model: str | None = None,
        embedding_api_key: str | None = None,
        embedding_url: str | None = None,
        embedding_allow_local: bool | None = None,
        embedding_window: int | None = None,
        embedding_price: float | None = None,
        chat: ChatModel | None = None,
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
        remote.refuse_wrong(loaded.settings)
        given_parts = Parts(own_store, own_embedder, chat, as_clock(clock), ids or Ids(), step)
        super().__init__(lambda: _context(loaded, given_parts))


class AsyncMemoryMesh(AsyncMesh):
    """`MemoryMesh` for `async` code: the same options, the same methods, awaitable."""

    def __init__(self, **options: object) -> None:
        super().__init__(MemoryMesh(**options))  # type: ignore[arg-type]


def context_over(store: Store, reader: Reader, *, embedder: Embedder | None = None) -> Context:
    """A desk that no setting reaches, over a store that is open already."""
    return Context(
        store=store, index=LazyIndex(store, "english"), embedder=embedder, clock=as_clock(None), ids=Ids(), reader=reader,
        pause=_pause,
    )  # fmt: skip


def make_embedder(loaded: Loaded, progress: Progress = no_progress, meter: Meter | None = None) -> Embedder | None:
    """The embedder that the settings name, with a cache of its own; None where they want no vectors. It loads nothing yet."""
    named = loaded.settings.embedder
    if named == "none":
        return None
    from memory_mesh.models.cached import CachedEmbedder

    if named == "local":
        return CachedEmbedder(_local(loaded, progress))
    return CachedEmbedder(_hashing() if named == "hash" else remote.remote_embedder(loaded.settings, meter))


def model_places(loaded: Loaded) -> "Places":
    """Where the local model is looked for."""
    from memory_mesh.models.weights import Places

    given = loaded.settings.model_path
    return Places(cache=loaded.cache, given=folder(given, "model_path") if given else None)


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


@dataclass(frozen=True, slots=True)
class Parts:
    """What a caller handed in ready-made, and what differs from run to run."""

    store: Store | None
    embedder: Embedder | None
    chat: ChatModel | None
    clock: Clock
    ids: IdSource
    step: Step


def _context(loaded: Loaded, given: Parts) -> Context:
    settings = loaded.settings
    store = given.store if given.store and settings.enable_memory else _store(loaded, given.step)
    ledger = Ledger(store=store, clock=given.clock, ids=given.ids, caps=remote.caps(settings), prices=remote.prices(settings))
    gate = cache(lambda: _layer0(loaded, store, given.clock))
    try:
        if settings.redaction == "pseudonym" or settings.scrub:
            gate()  # a lost key or a wrong setting is told at once, not by the first write
    except MemoryMeshError:
        if store is not given.store:
            store.close()
        raise
    return Context(
        store=store,
        index=LazyIndex(store, settings.stemmer_language),
        embedder=make_embedder(loaded, meter=ledger) if given.embedder is None else given.embedder,
        chat=(given.chat or remote.make_chat(settings, ledger)) if settings.enable_llm else None,
        chatting=Chatting(settings.llm_max_tokens or Chatting().answer_tokens, settings.llm_input_tokens),
        ledger=ledger,
        recalls=Recalls() if settings.audit_recalls else None,
        lesson_min_confidence=settings.lesson_min_confidence,
        lesson_retention_days=settings.lesson_retention_days,
        recall_retention_days=settings.recall_retention_days,
        distilling=settings.enable_wisdom_distillation,
        ranker=settings.ranker,
        channel_weights=settings.channel_weights or {},
        borrowed=store is given.store,
        gate=gate,
        clock=given.clock,
        ids=given.ids,
        reader=Reader(settings.user_id, settings.agent_id, settings.session_id),
        pause=_pause,
        limits=Limits(content_chars=settings.max_content_chars),
        enabled=settings.enable_memory,
        audited=settings.enable_yamo,
        language=settings.stemmer_language,
        step=given.step,
        open_folder=DiskFolder,
    )


def _layer0(loaded: Loaded, store: Store, clock: Clock) -> "Layer0":
    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.scrubbing.scrub import MESH_OVERRIDES, ScrubSettings

    scrubbing = ScrubSettings().merged(MESH_OVERRIDES).merged(loaded.settings.scrub or {})
    return Layer0(_redactor(loaded, store, clock), scrubbing)


def _redactor(loaded: Loaded, store: Store, clock: Clock) -> "Redactor | None":
    from memory_mesh.core.redaction.engine import Redactor

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
