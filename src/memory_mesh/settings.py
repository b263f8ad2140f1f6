"""Settings: the options in force, and where each came from: argument > environment > project file > home file > default.

This is the only module that reads the environment. The project file is the nearest `memory-mesh.toml` at or above the working
folder; the home file lies in `MEMORY_MESH_HOME` (default `~/.memory-mesh`). The option `agent_id` is `MEMORY_MESH_AGENT_ID` in
the environment and `agent_id = "…"` in a file. The options themselves stand in `core/options.py`.
"""

import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_mesh.core.checks import nearest
from memory_mesh.core.errors import SettingsError
from memory_mesh.core.options import BY_NAME, CHAT_PROVIDERS, NAMES, Options, checked_name, kind_of, validate

FILE = "memory-mesh.toml"
PREFIX = "MEMORY_MESH_"
# The variables in which the providers' own tools look for the key.
PROVIDER_KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "cohere": "CO_API_KEY"}
_KEYED = (("llm_provider", "llm_api_key", "llm_base_url"), ("embedder", "embedding_api_key", "embedding_url"))
_BOOLEANS = {**dict.fromkeys(("1", "true", "yes", "on"), True), **dict.fromkeys(("0", "false", "no", "off"), False)}

_log = logging.getLogger(__name__)

# The name of each source and its values, in order of precedence.
_Sources = list[tuple[str, dict[str, object]]]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options in force, where each came from, the home folder and the user's folder of caches."""

    options: Options
    origins: Mapping[str, str]
    home: Path
    caches: Path

    def displayed(self) -> list[tuple[str, str, str]]:
        """Return name, value and origin of each option; secrets are not shown."""
        return [(name, self._display(name), self.origins[name]) for name in NAMES]

    @property
    def store_url(self) -> str:
        """The URL of the store."""
        return self.options.store or f"sqlite:///{quote(str((self.home / 'memory.db').absolute()))}"

    @property
    def cache(self) -> Path:
        """The folder for files that can be downloaded or built again."""
        return folder(self.options.cache_dir, "cache_dir") if self.options.cache_dir else self.caches / "memory-mesh"

    def _display(self, name: str) -> str:
        value = self.store_url if name == "store" else getattr(self.options, name)
        if value is None:
            return "-"
        return "(set, not shown)" if BY_NAME[name].metadata["secret"] else str(value)


def load(arguments: Mapping[str, object], *, environ: Mapping[str, str] | None = None, cwd: Path | None = None) -> Settings:
    """Combine all sources. Arguments that are None count as not given; every value is validated, also one that is overridden."""
    environ = os.environ if environ is None else environ
    home = folder(environ.get(PREFIX + "HOME") or "~/.memory-mesh", PREFIX + "HOME")
    project = _project(cwd or _working_folder(), home / FILE)
    sources = [
        ("argument", {name: value for name, value in arguments.items() if value is not None}),
        *_environment(environ),
        *project,
        *_file(home / FILE),
    ]
    values: dict[str, Any] = {}
    origins = dict.fromkeys(NAMES, "default")
    for origin, source in sources:
        for name, raw in source.items():
            value = _read(name, raw, origin)
            if name not in values:
                values[name], origins[name] = value, origin
    _protect_keys(values, origins, sources, {origin for origin, _ in project})
    _add_provider_keys(values, origins, environ)
    return Settings(Options(**values), origins, home, _caches(environ, home))


def folder(path: str, name: str) -> Path:
    """Return the folder that the option `name` gives; `~` is the user's home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise SettingsError(f"{name} {path!r:.120} cannot be used: {error}", expected="a folder") from None


# --- sources ---


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SettingsError("the working folder was removed", remedy="change to another folder") from None


def _environment(environ: Mapping[str, str]) -> _Sources:
    variables = {PREFIX + name.upper(): name for name in NAMES}
    if unknown := sorted(name for name in environ if name.startswith(PREFIX) and name not in {*variables, PREFIX + "HOME"}):
        _warn(tuple(unknown))
    return [(f"environment ({key})", {name: environ[key]}) for key, name in variables.items() if key in environ]


@cache
def _warn(unknown: tuple[str, ...]) -> None:
    """Log one line, once in each process, about variables with our prefix that are not options."""
    # The prefix is not compared: all names would be similar. A name may contain control characters.
    near = nearest(unknown[0].removeprefix(PREFIX), [*map(str.upper, NAMES), "HOME"])
    hint = f"; did you mean {PREFIX}{near}?" if near else ""
    shown = ", ".join(name if name.isidentifier() else repr(name) for name in unknown)
    _log.warning("ignored unknown environment variable%s %s%s", "s" if len(unknown) > 1 else "", shown, hint)


def _project(folder: Path, home_file: Path) -> _Sources:
    """Read the project file. Its author may not be the user, so it cannot decide where the user's texts and keys are sent."""
    path = next((path for at in (folder, *folder.parents) if (path := at / FILE).is_file()), None)
    # `samefile` also sees through links and relative paths.
    sources = [] if path is None or (home_file.is_file() and path.samefile(home_file)) else _file(path)
    for origin, source in sources:
        for name in source:
            if name in BY_NAME and BY_NAME[name].metadata["personal"]:
                raise SettingsError(
                    f"{origin}: {name} decides where your texts are sent; a project file cannot set it",
                    remedy=f"set {PREFIX}{name.upper()}, or put it into {home_file}",
                )
    return sources


def _file(path: Path) -> _Sources:
    if not path.is_file():
        return []
    import tomllib  # most runs have no file

    try:
        return [(f"file ({path})", tomllib.loads(path.read_text(encoding="utf-8")))]
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise SettingsError(f"{path} cannot be read: {error}", remedy="correct the file") from error


def _caches(environ: Mapping[str, str], home: Path) -> Path:
    """Return the user's cache folder; by the XDG convention a relative path does not count."""
    named = Path(environ.get("XDG_CACHE_HOME") or "")
    if named.is_absolute():
        return named
    try:
        return Path("~/.cache").expanduser()
    except RuntimeError:  # an account without a home folder, as in containers
        return home / "cache"


# --- keys of providers ---


def _add_provider_keys(values: dict[str, Any], origins: dict[str, str], environ: Mapping[str, str]) -> None:
    """Take a key that is not given from the provider's own variable, unless it would be sent to another address."""
    for provider, key, url in _KEYED:
        variable = PROVIDER_KEYS.get(values.get(provider, ""), "")
        if key not in values and url not in values and environ.get(variable, "").strip():
            values[key], origins[key] = environ[variable], f"environment ({variable})"


def _protect_keys(values: dict[str, Any], origins: dict[str, str], sources: _Sources, untrusted: set[str]) -> None:
    """Refuse a project file that names another provider than the user's: the user's key would be sent there."""
    for provider, key, _ in _KEYED:
        named = values.get(provider)
        trusted = [source[provider] for origin, source in sources if provider in source and origin not in untrusted]
        if key in values and named in CHAT_PROVIDERS and origins[provider] in untrusted and named not in trusted:
            raise SettingsError(
                f"{origins[provider]}: {provider} {named} would receive your {key}; a project file cannot decide that",
                remedy=f"set {PREFIX}{provider.upper()} if you want that",
            )


# --- values ---


def _read(name: str, raw: object, origin: str) -> object:
    try:
        return validate(name, _from_text(raw, kind_of(checked_name(name))) if origin.startswith("environment") else raw)
    except SettingsError as error:
        raise SettingsError(f"{origin}: {error.what}", expected=error.expected, remedy=error.remedy) from None


def _from_text(raw: object, kind: type) -> object:
    """Convert the text of a variable; what cannot be converted is returned as it is, and refused by `validate`."""
    text = str(raw)
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    try:
        if kind in (int, float):
            return kind(text)
        return json.loads(text) if kind is dict else text
    except ValueError:
        return text
