"""Settings and where each came from: argument > environment > the project's file > the home's file > default.

This is the only module that reads the environment. The project's file is the nearest `memory-mesh.toml` at or above the
working folder; the home's file lies in `MEMORY_MESH_HOME` (default `~/.memory-mesh`). A setting `agent_id` is
`MEMORY_MESH_AGENT_ID` in the environment and `agent_id = "…"` in a file.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_mesh.core.errors import SettingsError

FILE = "memory-mesh.toml"
PREFIX = "MEMORY_MESH_"
CHAT = ("openai", "anthropic", "cohere", "ollama", "lmstudio", "llamacpp")
EMBED = ("local", "hash", "none", "openai", "cohere", "ollama", "lmstudio")
# Where a provider's own tools look for the key.
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "cohere": "CO_API_KEY"}
_KEYED = (("llm_provider", "llm_api_key", "llm_base_url"), ("embedder", "embedding_api_key", "embedding_url"))
_MOST = 10**12  # what is larger was not meant, and overflows somewhere
_TRUE, _FALSE = ("1", "true", "yes", "on"), ("0", "false", "no", "off")


def _setting(
    default: Any, about: str, kind: type, *, secret: bool = False, personal: bool = False, one_of: tuple[str, ...] = ()
) -> Any:
    about_it = {"about": about, "kind": kind, "secret": secret, "personal": personal, "one_of": one_of}
    return field(default=default, repr=not secret, metadata=about_it)


# Where settings come from, in order: the name of each source, and what it says.
_Layers = list[tuple[str, dict[str, object]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Every option, with the documents' defaults."""

    store: str | None = _setting(None, "where memories are kept, as a URL", str)
    agent_id: str = _setting("YAMO_AGENT", "the agent that reads and writes", str)
    user_id: str | None = _setting(None, "whose memories these are", str)
    session_id: str | None = _setting(None, "the session that reads and writes", str)
    enable_memory: bool = _setting(True, "keep memories at all", bool)
    enable_yamo: bool = _setting(True, "write audit blocks", bool)
    enable_llm: bool = _setting(True, "use a language model where one is set", bool)
    llm_provider: str | None = _setting(None, f"who runs the language model: {', '.join(CHAT)}", str, one_of=CHAT)
    llm_model: str | None = _setting(None, "the language model", str)
    llm_api_key: str | None = _setting(
        None, "its key; else the provider's own variable, such as OPENAI_API_KEY", str, secret=True, personal=True
    )
    llm_base_url: str | None = _setting(None, "another address that speaks the provider's protocol", str, personal=True)
    llm_allow_local: bool | None = _setting(
        None, "let it be on this machine or network; the local providers are", bool, personal=True
    )
    llm_max_tokens: int | None = _setting(None, "the most it may answer; 2048 where none is given", int)
    llm_input_tokens: int = _setting(3000, "longer texts are read in pieces of this size", int)
    llm_timeout: float = _setting(60.0, "the most seconds that one call may take, retries included", float)
    llm_requests_per_minute: int | None = _setting(None, "the most calls in a minute", int)
    llm_daily_tokens: int | None = _setting(None, "the most tokens that all calls of a day (UTC) may take", int)
    llm_daily_cost: float | None = _setting(None, "the most dollars that they may cost; needs the prices", float)
    llm_price_sent: float | None = _setting(None, "dollars for a million tokens sent", float)
    llm_price_received: float | None = _setting(None, "dollars for a million tokens received", float)
    skill_directories: str | list[str] | None = _setting(None, "folders of skill files", list)
    db_dir: str | None = _setting(None, "the RFC's LanceDB folder", str)
    enable_wisdom_distillation: bool = _setting(False, "distil lessons in the heartbeat", bool)
    lesson_min_confidence: float = _setting(0.7, "lessons below are not injected", float)
    lesson_retention_days: int = _setting(365, "lessons unseen for longer are archived", int)
    audit_recalls: bool = _setting(True, "write audit blocks of searches", bool)
    recall_retention_days: int = _setting(90, "how long these are kept", int)
    enable_heritage_tracking: bool = _setting(False, "record heritage on add", bool)
    max_heritage_depth: int = _setting(5, "how many entries of a heritage are kept", int)
    notes_dir: str | None = _setting(None, "the folder of notes", str)
    traces_dir: str | None = _setting(None, "the folder of traces", str)
    max_content_chars: int = _setting(1_000_000, "the longest text that one memory may hold", int)
    stemmer_language: str = _setting("english", "the language whose words are stemmed", str)
    redaction: str = _setting("mask", "mask, pseudonym or off", str, one_of=("mask", "pseudonym", "off"))
    redact_names: dict[str, str] | None = _setting(None, "names and the ids that replace them", dict, secret=True)
    scrub: dict[str, object] | None = _setting(None, "the scrubber's settings, by group", dict)
    ranker: str = _setting("learnt", "how candidates are ranked: learnt, or rrf as in RFC-0011", str, one_of=("learnt", "rrf"))
    channel_weights: dict[str, float] | None = _setting(None, "weights of keywords and vectors under rrf; 1 each", dict)
    embedder: str = _setting("local", f"what makes the vectors: {', '.join(EMBED)}", str, one_of=EMBED)
    embedding_model: str | None = _setting(None, "the model of a remote embedder; else the provider's usual one", str)
    embedding_api_key: str | None = _setting(None, "its key; else the provider's own variable", str, secret=True, personal=True)
    embedding_url: str | None = _setting(None, "another address that speaks its protocol", str, personal=True)
    embedding_allow_local: bool | None = _setting(None, "let it be on this machine or network", bool, personal=True)
    embedding_window: int | None = _setting(None, "how many tokens of a text it reads; else as known of the model", int)
    embedding_price: float | None = _setting(None, "dollars for a million tokens embedded", float)
    model_path: str | None = _setting(None, "the folder that holds the local model", str)
    cache_dir: str | None = _setting(None, "where the local model is kept once it is made", str)
    busy_seconds: float = _setting(30.0, "how long to wait for other processes", float)


@dataclass(frozen=True, slots=True)
class Loaded:
    """The settings in force, where each came from, the home folder and the user's folder of caches."""

    settings: Settings
    origins: Mapping[str, str]
    home: Path
    caches: Path

    def shown(self) -> list[tuple[str, str, str]]:
        """Name, value and origin of each setting; secrets are not shown."""
        return [(f.name, _display(self, f.name, secret=f.metadata["secret"]), self.origins[f.name]) for f in _FIELDS]

    @property
    def store_url(self) -> str:
        return self.settings.store or f"sqlite:///{quote(str((self.home / 'memory.db').absolute()))}"

    @property
    def cache(self) -> Path:
        """The folder for what can be made again."""
        return folder(self.settings.cache_dir, "cache_dir") if self.settings.cache_dir else self.caches / "memory-mesh"


_FIELDS = fields(Settings)
NAMES = tuple(f.name for f in _FIELDS)


def load(arguments: Mapping[str, object], *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Loaded:
    """Put the settings together; arguments that are None were not given."""
    environ = os.environ if environ is None else environ
    home = folder(environ.get(PREFIX + "HOME") or "~/.memory-mesh", PREFIX + "HOME")
    project = _project(_project_file(cwd or Path.cwd()), home)
    layers = [
        ("argument", {name: value for name, value in arguments.items() if value is not None}),
        *_environment(environ),
        *project,
        *_file(home / FILE),
    ]
    values: dict[str, Any] = {}
    origins = dict.fromkeys(NAMES, "default")
    for origin, layer in layers:
        for name, raw in layer.items():
            value = _read(name, raw, origin)
            if name not in values:
                values[name], origins[name] = value, origin
    _keep_keys(values, origins, layers, {origin for origin, _ in project})
    _keys(values, origins, environ)
    return Loaded(Settings(**values), origins, home, _caches(environ, home))


def colour_wanted(environ: Mapping[str, str] | None = None) -> bool:
    """False where NO_COLOR asks for none, or the terminal can show none."""
    environ = os.environ if environ is None else environ
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def folder(path: str, name: str) -> Path:
    """A folder that a setting names; `~` is the user's own."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"{name} {path!r:.120} cannot be used: {error}", expected="a folder") from None


def _caches(environ: Mapping[str, str], home: Path) -> Path:
    """Where the user's programs keep what can be made again; by convention a relative path does not count."""
    named = Path(environ.get("XDG_CACHE_HOME") or "")
    if named.is_absolute():
        return named
    try:
        return Path("~/.cache").expanduser()
    except RuntimeError:  # an account without a folder of its own, as containers have
        return home / "cache"


def _environment(environ: Mapping[str, str]) -> list[tuple[str, dict[str, object]]]:
    return [
        (f"environment ({PREFIX}{name.upper()})", {name: environ[PREFIX + name.upper()]})
        for name in NAMES
        if PREFIX + name.upper() in environ
    ]


def _keys(values: dict[str, Any], origins: dict[str, str], environ: Mapping[str, str]) -> None:
    """A key that is not given is taken from where the provider's own tools look for it; it goes to the provider alone."""
    for provider, name, url in _KEYED:
        variable = KEYS.get(values.get(provider, ""), "")
        if name not in values and url not in values and environ.get(variable, "").strip():
            values[name], origins[name] = environ[variable], f"environment ({variable})"


def _keep_keys(values: dict[str, Any], origins: dict[str, str], layers: _Layers, theirs: set[str]) -> None:
    """A key is meant for one provider: a project's file that names another may not have it sent there."""
    for provider, key, _ in _KEYED:
        named = values.get(provider)
        own = [layer[provider] for origin, layer in layers if provider in layer and origin not in theirs]
        if key in values and named in CHAT and origins[provider] in theirs and named not in own:
            raise SettingsError(
                f"{origins[provider]}: {provider} {named} would have your {key} sent there, and a project's file may not",
                remedy=f"set {PREFIX}{provider.upper()} if that is meant",
            )


def _project(path: Path | None, home: Path) -> list[tuple[str, dict[str, object]]]:
    """The project's file. Whoever wrote it may not be the user: it cannot say to which machine the user's texts and keys go."""
    layers = [] if path is None or _same(path, home / FILE) else _file(path)
    for origin, layer in layers:
        for f in _FIELDS:
            if f.name in layer and f.metadata["personal"]:
                raise SettingsError(
                    f"{origin}: {f.name} says where your texts go, and a project's file may not",
                    remedy=f"set {PREFIX}{f.name.upper()}, or put it into {home / FILE}",
                )
    return layers


def _same(path: Path, other: Path) -> bool:
    """By whatever way they are reached: a link, a relative path."""
    return other.is_file() and path.samefile(other)


def _project_file(folder: Path) -> Path | None:
    return next((path for at in (folder, *folder.parents) if (path := at / FILE).is_file()), None)


def _file(path: Path | None) -> list[tuple[str, dict[str, object]]]:
    if path is None or not path.is_file():
        return []
    import tomllib  # most runs have no file

    try:
        return [(f"file ({path})", tomllib.loads(path.read_text(encoding="utf-8")))]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path} cannot be read: {error}", remedy="mend the file") from error


def _read(name: str, raw: object, origin: str) -> object:
    if name not in NAMES:
        near = get_close_matches(name, NAMES, n=1)
        raise SettingsError(f"{origin}: no setting is called {name!r:.60}", remedy=f"did you mean {near[0]!r}?" if near else "")
    about = next(f.metadata for f in _FIELDS if f.name == name)
    wanted, one_of = about["kind"], about["one_of"]
    value = _from_text(raw, wanted) if origin.startswith("environment") and isinstance(raw, str) else raw
    value = float(value) if wanted is float and type(value) is int and value <= _MOST else value
    if not _fits(value, wanted) or (one_of and value not in one_of):
        shown = "" if about["secret"] else f" {raw!r:.60}"
        raise SettingsError(f"{origin}: {name}{shown} cannot be used", expected=", ".join(one_of) or _EXPECTED[wanted])
    return value


_EXPECTED = {
    str: "a non-empty text",
    bool: "true or false",
    int: "a whole number from 1, at most 10^12",
    float: "a number from 0, at most 10^12",
    list: "a path or a list of paths",
    dict: "a table (in the environment: a JSON object)",
}


def _from_text(text: object, wanted: type) -> object:
    word = str(text).strip().lower()
    if wanted is bool:
        return True if word in _TRUE else False if word in _FALSE else text
    if wanted in (int, float):
        try:
            return wanted(word)
        except ValueError:
            return text
    return _object(str(text)) if wanted is dict else text


def _object(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _fits(value: object, wanted: type) -> bool:
    if wanted is str:
        return isinstance(value, str) and bool(value.strip())
    if wanted is bool:
        return isinstance(value, bool)
    if wanted is int:
        return isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= _MOST
    if wanted is float:
        return isinstance(value, float) and 0 <= value <= _MOST
    if wanted is dict:
        return isinstance(value, dict)
    return isinstance(value, str) or (isinstance(value, list) and all(isinstance(item, str) for item in value))


def _display(loaded: Loaded, name: str, *, secret: bool) -> str:
    value = loaded.store_url if name == "store" else getattr(loaded.settings, name)
    if value is None:
        return "-"
    return "(set, not shown)" if secret else str(value)
