"""Build the context of a mesh from settings, with its stores, index, models and hooks.

This is the only module that names concrete stores, indexes and models.
"""

import logging
import os
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from inspect import iscoroutinefunction
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from memory_mesh.api.settings import PREFIX, PROVIDER_KEYS, Settings, folder
from memory_mesh.core import errors
from memory_mesh.core.errors import InvalidInput, SettingsError, shown
from memory_mesh.core.learning import Caps, Price
from memory_mesh.core.model import Ids, Reader, as_clock, iso
from memory_mesh.core.options import Options
from memory_mesh.core.ports import (
    STORE_PARTS,
    AnchorLog,
    ChatModel,
    Clock,
    Embedder,
    Hook,
    HookFiles,
    IdSource,
    Index,
    Meter,
    NoteFiles,
    PairJudge,
    Secret,
    SigningKeys,
    Step,
    Store,
    StoreFile,
    TraceFiles,
)
from memory_mesh.core.text import shown_url
from memory_mesh.core.upkeep.hooks import HookEvent
from memory_mesh.flows.context import Context, Files, Gates, Hooks, Models, State
from memory_mesh.flows.learning.models import Ledger, check_pseudonym_key, record_pseudonym_key
from memory_mesh.index import make_index
from memory_mesh.stores import is_store_file, open_store, store_file
from memory_mesh.stores.audit_files import AuditKeyFile
from memory_mesh.stores.files import DiskFolder, make_key, read_key
from memory_mesh.stores.hook_files import DiskHookFiles, markdown_writethrough
from memory_mesh.system import fork_safe

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.language.scrubbing import ScrubSettings
    from memory_mesh.core.notes.files import InstructionFiles
    from memory_mesh.core.transfer.foreign import ImportFile
    from memory_mesh.models import CachedEmbedder, LocalJudge, ModelPaths
    from memory_mesh.models.providers import Provider
    from memory_mesh.net import HttpClient


# --- the context ---

_log = logging.getLogger("memory_mesh")
_DEFAULTS = Options()
_LOCAL_EMBEDDERS = ("local", "hash", "none")
# Fallbacks by name; another provider would need a second key.
_KEYLESS_EMBEDDERS = ("local", "ollama", "lmstudio")
_NOTES = ".rawko/memories"
_DEFAULT_WINDOW = 510  # tokens; small enough for every embedding model
_DEFAULT_MODEL = "default"  # a server with a single model, such as llama.cpp's, accepts any name
# The names of the options for URL, key and local addresses.
_CONNECTION_OPTIONS = {
    "llm": ("llm_base_url", "llm_api_key", "llm_allow_local"),
    "embedding": ("embedding_url", "embedding_api_key", "embedding_allow_local"),
}


def check_options(options: Options) -> None:
    """Raise `SettingsError` for options that cannot work together, before anything is opened."""
    if options.scrub:
        _scrub_settings(options)
    check_models(options)


def build_context(
    settings: Settings,
    *,
    store: Store,
    index: Index,
    embedder: Embedder | None,
    chat: ChatModel | None,
    clock: Clock,
    ids: IdSource,
    step: Step,
    hooks: Sequence[Hook],
) -> Context:
    """Connect everything that flows need to an open store. `embedder` and `chat` are objects
    that the caller made, or None."""
    options = settings.options
    file = file_of(store)
    ledger = Ledger(
        store=store,
        clock=clock,
        ids=ids,
        caps=_caps(options),
        prices=_prices(options),
        pause=_pause,
    )
    # A search embeds its query. The language model is asked by writes, and by an evaluation of a
    # store that is prepared.
    embedding_ledger = replace(ledger, file=file)
    if chat is None and options.enable_llm:
        chat = make_chat(options, ledger)
    chat = chat if options.enable_llm else None
    return Context(
        store=store,
        file=file,
        index=index,
        models=Models(
            embedder=make_embedder(settings, embedding_ledger) if embedder is None else embedder,
            chat=chat,
            judge=make_judge(settings, chat, ids, embedder),
        ),
        gates=_gates(settings, store, clock),
        files=Files(
            open_folder=DiskFolder,
            open_import=partial(_open_import, clock),
            open_anchor=partial(_open_anchor, settings, store),
            open_hook_files=cache(partial(hook_files, settings, store)),
            open_notes=cache(partial(_note_files, settings)),
            open_instructions=partial(_instruction_files, settings),
            traces_of=cache(partial(trace_files, settings)),
            signing=signing_keys(settings, store),
        ),
        hooks=_run_hooks(hooks or make_hooks(options.writethrough, settings)),
        clock=clock,
        ids=ids,
        pause=_pause,
        step=step,
        reader=Reader(),  # each mesh sets its own
        options=options,
        state=State(ledger=embedding_ledger),
    )


def context_over(
    store: Store,
    reader: Reader,
    *,
    embedder: Embedder | None = None,
    signing: SigningKeys | None = None,
) -> Context:
    """Return a context with default options over a store that is open already."""
    return Context(
        store=store, index=make_index(store, _DEFAULTS),
        models=Models(embedder=embedder), files=Files(signing=signing),
        clock=as_clock(None, time.time_ns), ids=Ids(), pause=_pause, reader=reader,
    )  # fmt: skip


def signing_keys(settings: Settings, store: Store) -> SigningKeys | None:
    """Return the keys that sign the audit chains of a store; None for a store in memory. It
    reads and creates nothing yet."""
    return None if store.url.startswith("memory:") else AuditKeyFile(settings.audit_key_file)


def _open_import(
    clock: Clock, path: str, format_: str | None
) -> "AbstractContextManager[ImportFile]":
    from memory_mesh.stores.imports import open_import  # only imports need it

    return open_import(path, format_, imported_at=iso(clock()))


def _open_anchor(settings: Settings, store: Store, target: str) -> AnchorLog:
    if "://" in target:
        from memory_mesh.net.uses import AnchorUrl

        return AnchorUrl(target)
    from memory_mesh.stores.audit_files import AnchorFile

    own = (store_file(store.url), store.index_folder, settings.audit_key_file)
    return AnchorFile(target, store_files=[path for path in own if path])


def is_texts(given: object) -> bool:
    """Return whether hooks are given as settings name them: by folders and URLs, or not at all."""
    is_list = isinstance(given, list) and all(isinstance(one, str) for one in given)
    return is_list or given is None or isinstance(given, str)


def checked_hooks(given: object, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that a caller made. Raise `SettingsError` if one of them, or else of the
    settings, cannot be used."""
    hooks = make_hooks(given or settings.options.writethrough, settings)
    return hooks if given else ()


def _note_files(settings: Settings) -> NoteFiles:
    from memory_mesh.stores.markdown_files import DiskNotes  # only notes need it

    given = folder(settings.options.notes_dir or _NOTES, "notes_dir")
    return DiskNotes(settings.cwd / given, cwd=settings.cwd)


def _instruction_files(settings: Settings) -> "InstructionFiles":
    from memory_mesh.stores.markdown_files import DiskInstructions  # only their import needs it

    return DiskInstructions(settings.cwd)


def trace_files(settings: Settings, user_id: str | None) -> TraceFiles:
    """Return the files of the traces of a user; without `traces_dir`, those of the store."""
    from memory_mesh.stores.markdown_files import DiskTraces  # only traces need it

    given, root = settings.options.traces_dir, settings.home / "traces"
    if given:
        root = settings.cwd / folder(given, "traces_dir")
    elif store_file(settings.store_url) != settings.home / "memory.db":
        root = _beside(settings, shown_url(settings.store_url), "traces")
    # The name of a user may be personal, and is not always a valid name of a folder.
    return DiskTraces(
        root if user_id is None else root / "users" / sha256(user_id.encode()).hexdigest()[:16]
    )


def make_embedder(settings: Settings, meter: Meter | None = None) -> Embedder | None:
    """Return the embedder that the settings name, with a cache, or None for keyword search only.
    It loads nothing yet."""
    if settings.options.embedder == "none":
        return None
    from memory_mesh.models import PUBLISHED_MODEL, FallbackEmbedder, SameModelEmbedder

    # Each has its own cache: the vectors of a fallback must not be kept as those of the first.
    first = _cached_embedder(settings, settings.options, meter)
    chain: list[Embedder] = [first]
    for options in _fallbacks(settings.options):
        embedder: Embedder = _cached_embedder(settings, options, meter)
        if options.embedder == "local" and _serves_published_model(settings.options):
            published = _cached_embedder(settings, options, meter).of_model(PUBLISHED_MODEL)
            embedder = SameModelEmbedder(published or embedder, first.model)
        chain.append(embedder)
    return FallbackEmbedder(chain) if len(chain) > 1 else first


# The local embedders in use. A process loads the model once, however many stores are open.
_local_embedders: "WeakValueDictionary[ModelPaths, CachedEmbedder]" = WeakValueDictionary()
_local_lock = fork_safe(Lock())


def _cached_embedder(settings: Settings, options: Options, meter: Meter | None) -> "CachedEmbedder":
    from memory_mesh.models import CachedEmbedder, HashingEmbedder, LocalEmbedder

    if options.embedder == "local":
        paths = model_paths(settings)
        with _local_lock:
            return _local_embedders.setdefault(paths, CachedEmbedder(LocalEmbedder(paths)))
    return CachedEmbedder(
        HashingEmbedder() if options.embedder == "hash" else _remote_embedder(options, meter)
    )


# The judges in use, for the same reason.
_local_judges: "WeakValueDictionary[ModelPaths, LocalJudge]" = WeakValueDictionary()


def make_judge(
    settings: Settings, chat: ChatModel | None, ids: IdSource, embedder: Embedder | None = None
) -> PairJudge | None:
    """Return what judges whether a memory changes an older one; None if that is disabled, without
    the local model, and if the model is missing and must not be fetched. It loads nothing yet."""
    options = settings.options
    if options.update_judge == "off" or (embedder is None and options.embedder != "local"):
        return None
    from memory_mesh.models import JUDGE, MODEL, LocalJudge, ModelJudge, has_files

    if embedder is not None and embedder.model != MODEL:
        return None
    paths = replace(model_paths(settings), model=JUDGE)
    if options.offline and not has_files(paths):
        why = "offline is set, and %s is missing"
        _log.info(f"changes of memories are not recognised: {why}", JUDGE)
        return None
    with _local_lock:
        local = _local_judges.setdefault(paths, LocalJudge(paths))
    if options.update_judge == "local" or chat is None:
        return local
    return ModelJudge(local, chat, ids.salt)


def _fallbacks(options: Options) -> list[Options]:
    """Return the options of each fallback embedder. No key is sent to an address that it was not
    given for."""
    given = options.embedding_fallbacks
    if given is None:  # the vectors of another model could not be compared with those of the store
        given = ["local"] if _serves_published_model(options) else []
    fallbacks: list[Options] = []
    for name in [given] if isinstance(given, str) and given else given:  # an empty text: none
        if "://" in name and _is_remote(options):
            key = options.embedding_api_key if options.embedding_url else None
            fallbacks.append(replace(options, embedding_url=name, embedding_api_key=key))
        elif name in _KEYLESS_EMBEDDERS:
            fallbacks.append(Options(embedder=name, llm_timeout=options.llm_timeout))
        else:
            expected = (
                f"{', '.join(_KEYLESS_EMBEDDERS)}, or the URL of a server with the model of a "
                "remote embedder"
            )
            raise SettingsError(
                f"embedding_fallbacks has {shown(name, max_length=120)}", expected=expected
            )
    return fallbacks


def _serves_published_model(options: Options) -> bool:
    from memory_mesh.models.providers import is_published_model

    return _is_remote(options) and is_published_model(options.embedding_model)


def model_paths(settings: Settings) -> "ModelPaths":
    """Return the folders where the local model is looked for."""
    from memory_mesh.models import ModelPaths

    given = settings.options.model_path
    place = settings.cwd / folder(given, "model_path") if given else None
    return ModelPaths(cache=settings.cache, model_path=place, offline=settings.options.offline)


def as_embedder(given: object) -> Embedder:
    """Return an embedder that a caller made, or raise `SettingsError` if it lacks a part of the
    port."""
    _check_parts("embedder", given, ("model", "window", "count", "embed"), "local, hash, none")
    return given  # type: ignore[return-value]


def as_store(given: object) -> Store:
    """Return a store that a caller made, or raise `SettingsError` if it lacks a part of the
    port."""
    _check_parts("store", given, STORE_PARTS, "a URL, a path")
    return given  # type: ignore[return-value]


def check_objects(*, chat: object, clock: object, ids: object, step: object) -> None:
    """Raise `SettingsError` if an object that a caller made cannot be what its name says."""
    if chat is not None:
        _check_parts("chat", chat, ("model", "reply"))
    if ids is not None:
        _check_parts("ids", ids, ("new", "salt"))
    for name, given in (("clock", clock or time.time), ("step", step)):
        if not callable(given):
            raise SettingsError(f"{name} is {shown(given)}", expected="a function")


def _check_parts(name: str, given: object, parts: tuple[str, ...], texts: str = "") -> None:
    if missing := errors.missing_parts(given, parts):
        what = f"{name} is {shown(given)}" + (
            f" without {', '.join(missing)}" if len(missing) < len(parts) else ""
        )
        expected = f"{texts}, or " if texts else ""
        raise SettingsError(
            what, expected=f"{expected}an object with {', '.join(parts[:-1])} and {parts[-1]}"
        )


def open_configured(settings: Settings, step: Step) -> Store:
    """Open the store that the settings name."""
    if not settings.options.enable_memory:
        from memory_mesh.stores.ram import DisabledStore

        return DisabledStore()
    return open_store(
        settings.store_url,
        folder=settings.cwd,
        busy_seconds=settings.options.busy_seconds,
        key=settings.options.store_key,
        step=step,
    )


def file_of(store: Store) -> StoreFile:
    """Return the file of a store; for a store without one, an object that can only make backups."""
    if is_store_file(store):
        return store
    from memory_mesh.stores.archive_file import ArchivedStore  # most stores have a file

    return ArchivedStore(store)


def _gates(settings: Settings, store: Store, clock: Clock) -> Gates:
    """Return the gates. Only that of contents creates a pseudonym key."""
    layer0 = cache(partial(_layer0, settings.options))
    if settings.options.redaction != "pseudonym" or not settings.options.enable_memory:
        return Gates(content=partial(layer0, None), query=partial(layer0, None))
    # Report a lost key now, not on the first write.
    check_pseudonym_key(store, read_key(settings.home))

    @cache
    def key() -> bytes:
        key = read_key(settings.home)
        check_pseudonym_key(store, key)
        file_of(store).check_writable()
        key = key or make_key(settings.home)
        record_pseudonym_key(store, key, clock(), _pause)
        return key

    return Gates(content=lambda: layer0(key()), query=lambda: layer0(read_key(settings.home)))


def _layer0(options: Options, key: bytes | None) -> "Layer0":
    """Return a gate. Without a key it masks instead of replacing by pseudonyms."""
    from memory_mesh.core.intake.gate import Layer0
    from memory_mesh.core.language.redaction import Redactor

    names = options.redact_names or {}
    off = frozenset(kind for kind, on in (options.redaction_kinds or {}).items() if not on)
    try:
        if options.redaction == "off":
            redactor = None
        else:
            redactor = (
                Redactor("pseudonym", key, names, off) if key else Redactor(names=names, off=off)
            )
    except ValueError as error:
        raise InvalidInput(f"redact_names: {error}") from None
    return Layer0(redactor, _scrub_settings(options))


def _scrub_settings(options: Options) -> "ScrubSettings":
    from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings

    return ScrubSettings().merged(MESH_OVERRIDES).merged(options.scrub or {})


def _pause(attempt: int) -> None:
    """Wait a random time that grows with each lost race, so that processes do not retry in step."""
    time.sleep(random.random() * min(0.05, 0.001 * 2 ** min(attempt, 6)))  # noqa: S311  (not used for secrets)


# --- language models and remote embedders ---


def _caps(options: Options) -> Caps:
    """Return the daily limits on tokens and cost."""
    chat = (
        ["llm_price_sent", "llm_price_received"]
        if options.llm_provider and options.enable_llm
        else []
    )
    needed = [*chat, "embedding_price"] if _is_remote(options) else chat
    missing = [name for name in needed if getattr(options, name) is None]
    if options.llm_daily_cost is not None and missing:
        what = f"llm_daily_cost is set, but {' and '.join(missing)} is not"
        raise SettingsError(what, expected="dollars for a million tokens, for every model in use")
    return Caps(options.llm_daily_tokens, options.llm_daily_cost)


def _prices(options: Options) -> dict[str, Price]:
    """Return the configured prices of tokens, by model."""
    known: dict[str, Price] = {}
    if options.llm_provider and options.llm_price_sent is not None:
        known[_chat_name(options)] = Price(
            options.llm_price_sent, options.llm_price_received or 0.0
        )
    if options.embedding_price is not None and _is_remote(options):
        known[_remote_embedder(options, None).model] = Price(options.embedding_price)
    return known


def _is_remote(options: Options) -> bool:
    """Return whether another program computes the vectors."""
    return options.embedder not in _LOCAL_EMBEDDERS


def check_models(options: Options) -> None:
    """Raise `SettingsError` if the options of the models cannot work."""
    if options.llm_provider is None and options.llm_model is not None:
        raise SettingsError(
            "llm_model is set, but llm_provider is not", expected="a provider, such as ollama"
        )
    _caps(options)
    if options.enable_llm:
        make_chat(options, None)
    for one in (options, *_fallbacks(options)):
        if _is_remote(one):
            _remote_embedder(one, None)


def make_chat(options: Options, meter: Meter | None) -> ChatModel | None:
    """Return the configured language model, or None. It does not connect yet."""
    if options.llm_provider is None:
        return None
    from memory_mesh.models import MeteredChat
    from memory_mesh.models.providers import AnthropicChat, KeylessChat, OpenAiChat, find_provider

    provider = find_provider(options.llm_provider)
    if options.llm_model is None and provider.name != "llamacpp":
        what = f"llm_provider is {provider.name}, but llm_model is not set"
        raise SettingsError(what, expected="the name of one of its models")
    if error := _missing_key(options, provider, "llm"):
        return KeylessChat(_chat_name(options), error)
    client, model = _http_client(options, provider, "llm"), options.llm_model or _DEFAULT_MODEL
    chat = (
        AnthropicChat(client, model)
        if provider.name == "anthropic"
        else OpenAiChat(client, provider, model)
    )
    return MeteredChat(chat, meter) if meter else chat


def _remote_embedder(options: Options, meter: Meter | None) -> Embedder:
    """Return the configured remote embedder. It does not connect yet."""
    from memory_mesh.models import MeteredClient
    from memory_mesh.models.local import WINDOW
    from memory_mesh.models.providers import (
        EmbeddingModel,
        find_provider,
        is_published_model,
        provider_url,
    )
    from memory_mesh.models.remote_embedder import LmStudioEmbedder, RemoteEmbedder

    provider = find_provider(options.embedder)
    if error := _missing_key(options, provider, "embedding"):
        raise error
    model = provider.embedding
    if model is None or options.embedding_model not in (None, model.model):
        # Window and dimension of a model that is not the provider's default are unknown.
        model = EmbeddingModel(options.embedding_model or "", None, _DEFAULT_WINDOW)
    name = f"{provider.name}/{model.model}"
    client = _http_client(options, provider, "embedding")
    embedder = RemoteEmbedder(
        MeteredClient(client, meter, name) if meter else client,
        model=model.model,
        name=name,
        window=options.embedding_window
        or (WINDOW if is_published_model(model.model) else model.window),
        dimension=model.dimension,
    )
    is_local = provider_url(provider, options.embedding_url) == provider.base_url
    return LmStudioEmbedder(embedder) if provider.name == "lmstudio" and is_local else embedder


def _http_client(options: Options, provider: "Provider", kind: str) -> "HttpClient":
    """Return the client for a provider. An error names the option that is wrong."""
    from memory_mesh.models.providers import provider_headers, provider_url
    from memory_mesh.net import HttpClient

    url_option, _, local_option = _CONNECTION_OPTIONS[kind]
    url, key, allow_local = (getattr(options, name) for name in _CONNECTION_OPTIONS[kind])
    headers = provider_headers(provider, Secret(key)) if key else provider.headers
    try:
        return HttpClient(
            provider_url(provider, url),
            allow_local=provider.local if allow_local is None else allow_local,
            headers=headers,
            timeout=options.llm_timeout,
            per_minute=options.llm_requests_per_minute,
        )
    except SettingsError as error:
        raise _of_option(error, url_option, local_option) from error


def _of_option(error: SettingsError, option: str, local_option: str) -> SettingsError:
    """Return the error of an address with the name of its option, and of the one that would allow
    a local address."""
    from memory_mesh.net import ALLOW_LOCAL_REMEDY

    remedy = error.remedy
    if remedy == ALLOW_LOCAL_REMEDY:
        remedy = f"set {local_option} = true if that is intended"
    return SettingsError(f"{option}: {error.what}", expected=error.expected, remedy=remedy)


def _missing_key(options: Options, provider: "Provider", kind: str) -> SettingsError | None:
    """Return the error if the provider needs a key and has none. A server at another address may
    need none."""
    url_option, key_option, _ = _CONNECTION_OPTIONS[kind]
    if (
        provider.local
        or getattr(options, key_option) is not None
        or getattr(options, url_option) is not None
    ):
        return None
    remedy = f"set {PREFIX}{key_option.upper()} or {PROVIDER_KEYS[provider.name]}"
    return SettingsError(
        f"{key_option} is not set", expected=f"a key for {provider.name}", remedy=remedy
    )


def _chat_name(options: Options) -> str:
    return f"{options.llm_provider}/{options.llm_model or _DEFAULT_MODEL}"


# --- hooks ---

_EXPECTED = (
    "markdown_writethrough(…), webhook_writethrough(…), a function of an event, a folder or a URL"
)


class FunctionHook:
    """Calls a function with each event; implements `core.ports.Hook`."""

    folder = None

    def __init__(self, function: Callable[[HookEvent], object]) -> None:
        named: Any = function if getattr(function, "__qualname__", None) else type(function)
        self._function, self.name = (
            function,
            f"function {named.__module__ or 'builtins'}.{named.__qualname__}",
        )

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def deliver(self, event: HookEvent) -> None:
        self._function(event)


def _run_hooks(hooks: Sequence[Hook]) -> Hooks:
    if not hooks:
        return Hooks(judge_later=_judge_later)
    from memory_mesh.flows.upkeep.hooks import run_hooks  # most meshes have none

    return replace(run_hooks(hooks), judge_later=_judge_later)


def _judge_later(context: Context) -> None:
    """Compare what is new with what is older, as soon as nobody writes for a moment."""

    def judge(go_on: Callable[[], bool]) -> None:
        # Loaded in the background: a write does not wait for it.
        from memory_mesh.flows.claims.updates import judge_quietly

        judge_quietly(context, go_on)

    context.state.queues.changes.add(context.reader, judge)


def make_hooks(given: object, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that `writethrough` lists, or raise `SettingsError` for one that cannot
    be used."""
    single = (
        given is None or isinstance(given, str | os.PathLike) or not isinstance(given, Sequence)
    )
    listed: Sequence[Any] = ([] if given is None else [given]) if single else given  # type: ignore[assignment]
    hooks = [_as_hook(one, settings) for one in listed]
    names = [hook.name for hook in hooks]
    if double := [name for name in names if names.count(name) > 1]:
        raise SettingsError(
            f"writethrough has two hooks with the name {shown(double[0])}", expected="one of each"
        )
    return tuple(hooks)


def _as_hook(given: Any, settings: Settings) -> Hook:
    if isinstance(given, str) and "://" in given:
        return _webhook(given, settings)
    if isinstance(given, str | os.PathLike):
        return markdown_writethrough(settings.cwd / folder(os.fspath(given), "writethrough"))
    if isinstance(given, type):
        raise SettingsError(f"writethrough has the class {shown(given)}", expected=_EXPECTED)
    if iscoroutinefunction(given):
        raise SettingsError(
            f"writethrough has the async function {shown(given)}",
            expected="a function that is not async",
        )
    if isinstance(given, Hook):
        return given
    if callable(given):
        return FunctionHook(given)
    raise SettingsError(f"writethrough has {shown(given)}", expected=_EXPECTED)


def _webhook(url: str, settings: Settings) -> Hook:
    from memory_mesh.net.uses import webhook_writethrough

    try:
        return webhook_writethrough(url, allow_local=settings.options.writethrough_allow_local)
    except SettingsError as error:
        raise _of_option(error, "writethrough", "writethrough_allow_local") from error


def hook_files(settings: Settings, store: Store) -> HookFiles:
    """Return the dead letters and locks of a store: beside its file, else in the home folder."""
    return DiskHookFiles(_beside(settings, store.url, "hooks"))


def _beside(settings: Settings, url: str, name: str) -> Path:
    file, hashed = store_file(url), sha256(url.encode()).hexdigest()[:16]
    return Path(f"{settings.cwd / file}-{name}") if file else settings.home / name / hashed
