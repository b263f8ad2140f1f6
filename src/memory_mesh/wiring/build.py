"""Build the context of a mesh from settings. With `models`, the only place that names concrete stores, indexes and models."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import TYPE_CHECKING

from memory_mesh.core.errors import InvalidInput, MemoryMeshError, SettingsError, shown
from memory_mesh.core.model import Ids, Reader
from memory_mesh.core.not_yet import NOT_YET, not_yet
from memory_mesh.core.options import NAMES, Options
from memory_mesh.core.ports import ChatModel, Clock, Embedder, IdSource, Meter, Progress, Step, Store, no_progress, no_step
from memory_mesh.flows.context import Context, State
from memory_mesh.flows.health import check_pseudonym_key, record_pseudonym_key
from memory_mesh.flows.spending import Ledger
from memory_mesh.index import LocalIndex
from memory_mesh.settings import Settings, folder
from memory_mesh.stores import open_store
from memory_mesh.stores.files import DiskFolder, make_key, read_key
from memory_mesh.wiring import models

if TYPE_CHECKING:
    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.redaction import Redactor
    from memory_mesh.core.scrubbing import ScrubSettings
    from memory_mesh.models import ModelPaths

# A clock as a caller may give it: seconds since 1970, or a datetime.
GivenClock = Callable[[], float | int | datetime]

_YEAR_10000 = 253_402_300_800


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Ready-made objects that a caller passed to the constructor."""

    store: Store | None = None
    embedder: Embedder | None = None
    chat: ChatModel | None = None
    clock: Clock
    ids: IdSource
    step: Step = no_step


def check_options(options: Options) -> None:
    """Raise `SettingsError` for options that cannot work together, before anything is opened."""
    for name in NOT_YET.keys() & set(NAMES):
        if getattr(options, name) != getattr(_DEFAULTS, name):
            raise not_yet(name)
    if options.scrub:
        _scrub_settings(options)
    models.check_models(options)


def build_context(settings: Settings, parts: Parts) -> Context:
    """Open the store and connect everything that flows need."""
    options = settings.options
    store = parts.store if parts.store and options.enable_memory else _open(settings, parts.step)
    ledger = Ledger(
        store=store, clock=parts.clock, ids=parts.ids, caps=models.caps(options), prices=models.prices(options), pause=_pause
    )
    gate = cache(lambda: _layer0(settings, store, parts.clock))
    try:
        if options.redaction == "pseudonym":
            gate()  # report a lost key now, not on the first write
    except MemoryMeshError:
        if store is not parts.store:
            store.close()
        raise
    return Context(
        store=store,
        index=LocalIndex(store, language=options.stemmer_language),
        embedder=make_embedder(settings, meter=ledger) if parts.embedder is None else parts.embedder,
        chat=(parts.chat or models.make_chat(options, ledger)) if options.enable_llm else None,
        clock=parts.clock,
        ids=parts.ids,
        pause=_pause,
        gate=gate,
        step=parts.step,
        open_folder=DiskFolder,
        owns_store=store is not parts.store,
        reader=Reader(options.user_id, options.agent_id, options.session_id),
        options=options,
        state=State(ledger=ledger),
    )


def context_over(store: Store, reader: Reader, *, embedder: Embedder | None = None) -> Context:
    """Return a context with default options over a store that is open already."""
    return Context(
        store=store, index=LocalIndex(store, language=_DEFAULTS.stemmer_language), embedder=embedder, clock=as_clock(None),
        ids=Ids(), reader=reader, pause=_pause,
    )  # fmt: skip


def make_embedder(settings: Settings, progress: Progress = no_progress, meter: Meter | None = None) -> Embedder | None:
    """Return the embedder that the settings name, with a cache, or None for keyword search only. It loads nothing yet."""
    name = settings.options.embedder
    if name == "none":
        return None
    from memory_mesh.models import CachedEmbedder, HashingEmbedder, LocalEmbedder

    if name == "local":
        return CachedEmbedder(LocalEmbedder(model_paths(settings), progress=progress))
    if name == "hash":
        return CachedEmbedder(HashingEmbedder())
    return CachedEmbedder(models.remote_embedder(settings.options, meter))


def model_paths(settings: Settings) -> "ModelPaths":
    """Return the folders where the local model is looked for."""
    from memory_mesh.models import ModelPaths

    given = settings.options.model_path
    return ModelPaths(cache=settings.cache, model_path=folder(given, "model_path") if given else None)


def as_clock(given: GivenClock | None) -> Clock:
    """Return a clock of Unix milliseconds."""
    if given is None:
        return lambda: time.time_ns() // 1_000_000

    def clock() -> int:
        now = given()
        if isinstance(now, datetime):
            now = (now if now.tzinfo else now.replace(tzinfo=UTC)).timestamp()
        if not isinstance(now, int | float) or not 0 <= now < _YEAR_10000:
            raise SettingsError(f"the clock returned {shown(now)}", expected="seconds since 1970, or a datetime")
        return round(now * 1000)

    return clock


def as_embedder(given: object) -> Embedder:
    """Return an embedder that a caller made, or raise `SettingsError` if it lacks a part of the port."""
    missing = [name for name in ("model", "window", "count", "embed") if getattr(given, name, None) is None]
    if missing or isinstance(given, type):
        what = f"embedder is {shown(given)}" + (f" without {', '.join(missing)}" if missing else "")
        raise SettingsError(what, expected="local, hash, none, or an object with model, window, count and embed")
    return given  # type: ignore[return-value]


_DEFAULTS = Options()


def _open(settings: Settings, step: Step) -> Store:
    if not settings.options.enable_memory:
        from memory_mesh.stores.ram import DisabledStore

        return DisabledStore()
    return open_store(settings.store_url, busy_seconds=settings.options.busy_seconds, step=step)


def _layer0(settings: Settings, store: Store, clock: Clock) -> "Layer0":
    from memory_mesh.core.intake.gate import Layer0

    return Layer0(_redactor(settings, store, clock), _scrub_settings(settings.options))


def _scrub_settings(options: Options) -> "ScrubSettings":
    from memory_mesh.core.scrubbing import MESH_OVERRIDES, ScrubSettings

    return ScrubSettings().merged(MESH_OVERRIDES).merged(options.scrub or {})


def _redactor(settings: Settings, store: Store, clock: Clock) -> "Redactor | None":
    from memory_mesh.core.redaction import Redactor

    options = settings.options
    names = options.redact_names or {}
    if options.redaction == "off":
        return None
    try:
        if options.redaction == "mask" or not options.enable_memory:
            return Redactor(names=names)
        key = read_key(settings.home)
        check_pseudonym_key(store, key)
        key = key or make_key(settings.home)
        record_pseudonym_key(store, key, clock(), _pause)
        return Redactor("pseudonym", key, names)
    except ValueError as error:
        raise InvalidInput(f"redact_names: {error}") from None


def _pause(attempt: int) -> None:
    """Wait a random time that grows with each lost race, so that processes do not retry in step."""
    time.sleep(random.random() * min(0.05, 0.001 * 2 ** min(attempt, 6)))  # noqa: S311  (not used for secrets)
