"""The options in force, where each came from, and the project files that the user trusts.

The order is: argument > environment > project file > home file > preset > default. This is the only
module that reads the environment. The project file is the nearest `memory-mesh.toml` at or above
the working folder; the home file is in `MEMORY_MESH_HOME` (default `~/.memory-mesh`). The option
`agent_id` is `MEMORY_MESH_AGENT_ID` in the environment and `agent_id = "…"` in a file. The options
are declared in `core/options.py`.

The project file may come with a repository of another author, so it may set only the options that
`core/options.py` marks as open to projects. If the user trusts a file, it may set every option
until its bytes change.
"""

import json
import logging
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from memory_mesh.core.errors import SettingsError, nearest, shown
from memory_mesh.core.options import (
    ALIASES,
    BY_NAME,
    EMBEDDING_NAMES,
    NAMES,
    PRESETS,
    Options,
    Project,
    by_option,
    checked_name,
    kind_of,
    validate,
)
from memory_mesh.core.text import shown_url
from memory_mesh.system import open_regular

# --- trusted project files ---
# Each is recorded by a small file in the folder `trusted` of the home folder, with its path and the
# SHA-256 of its bytes, so that concurrent processes do not overwrite each other's records. Links in
# the folders of the path are resolved, but not a link at the file itself: a link to a trusted file,
# or a copy of it, in another project is not trusted.

FILE = "memory-mesh.toml"
_FOLDER = "trusted"


class Trust(StrEnum):
    """Whether the user trusts a file as it is now."""

    NO = "not trusted"
    YES = "trusted"
    CHANGED = "changed since it was trusted"


@dataclass(frozen=True, slots=True)
class ProjectFile:
    """The file of a project, and whether the user trusts it."""

    path: Path
    trust: Trust


def file_at(path: Path) -> Path:
    """Return the full path of a project's file, given the file or its folder."""
    return Path(os.path.realpath(path.parent if path.name == FILE else path)) / FILE


def trust_in(path: Path, data: bytes | None, home: Path) -> Trust:
    """Return whether the user trusts a file that contains `data`; None stands for a file that
    cannot be read."""
    file = file_at(path)
    known = _read(_record_of(file, home))
    if known.get("path") != str(file):
        return Trust.NO
    return Trust.YES if data is not None and known.get("sha256") == _sha256(data) else Trust.CHANGED


def record(file: Path, data: bytes, home: Path) -> None:
    """Trust a file as long as it contains `data`."""
    from tempfile import NamedTemporaryFile

    target = _record_of(file, home)
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        target.parent.mkdir(exist_ok=True, mode=0o700)
        with NamedTemporaryFile(dir=target.parent, delete=False) as part:  # with mode 0600
            part.write(json.dumps({"path": str(file), "sha256": _sha256(data)}).encode())
            part.flush()
            os.fsync(part.fileno())
        Path(part.name).replace(target)
    except OSError as error:
        raise SettingsError(
            f"{target} cannot be written: {error.strerror}", remedy="check the home folder"
        ) from error


def forget(file: Path, home: Path) -> None:
    """End the trust in a file."""
    try:
        _record_of(file, home).unlink()
    except FileNotFoundError:
        raise SettingsError(
            f"{file} is not trusted", remedy="see memory-mesh config trust --list"
        ) from None
    except OSError as error:
        raise SettingsError(
            f"the trust in {file} cannot be ended: {error.strerror}", remedy="check the home folder"
        ) from error


def recorded(home: Path) -> list[ProjectFile]:
    """Return every file that the user trusted, and whether it is still trusted."""
    known = (_read(path).get("path") for path in (home / _FOLDER).glob("*.json"))
    return [
        ProjectFile(Path(path), trust_in(Path(path), _file_bytes(path), home))
        for path in sorted(map(str, filter(None, known)))
    ]


def _record_of(file: Path, home: Path) -> Path:
    return home / _FOLDER / f"{_sha256(os.fsencode(file))}.json"


def _read(path: Path) -> dict[str, object]:
    with suppress(OSError, ValueError):
        with open_regular(path) as file:
            found = json.load(file)
        return found if isinstance(found, dict) else {}
    return {}


def _file_bytes(path: str) -> bytes | None:
    with suppress(OSError, ValueError), open_regular(path) as file:
        return file.read()
    return None


def _sha256(data: bytes) -> str:
    from hashlib import sha256  # most runs have no project file

    return sha256(data).hexdigest()


# --- settings ---

PREFIX = "MEMORY_MESH_"
# The variables in which the providers' own tools look for the key.
PROVIDER_KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "cohere": "CO_API_KEY",
}
_SUPABASE_KEY = "SUPABASE_KEY"
_KEYED = (
    ("llm_provider", "llm_api_key", "llm_base_url"),
    ("embedder", "embedding_api_key", "embedding_url"),
)
_BOOLEANS = {
    **dict.fromkeys(("1", "true", "yes", "on"), True),
    **dict.fromkeys(("0", "false", "no", "off"), False),
}
_STORES = frozenset({"store", "db_dir"})  # two names of one thing
_MAX_FILE_BYTES = 2**20
_MAX_UNTRUSTED_BYTES = 2**14  # the time of parsing TOML grows with the square of the dots in a key

_log = logging.getLogger(__name__)

_Values = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Settings:
    """The options in force, where each came from, the home folder, the user's folder of caches,
    and the project's file."""

    options: Options
    origins: Mapping[str, str]
    home: Path
    caches: Path
    project: ProjectFile | None = None
    cwd: Path = Path()  # the working folder: relative paths start there

    def displayed(self) -> list[tuple[str, str, str]]:
        """Return name, value and origin of each option; secrets and the passwords of URLs are
        not shown."""
        shown = {name: self.options.shown(name) for name in NAMES} | {
            "store": shown_url(self.store_url)
        }
        return [(name, shown[name], self.origins[name]) for name in NAMES]

    @property
    def store_url(self) -> str:
        """The URL of the store."""
        if self.options.db_dir:
            return f"lancedb:///{_quoted(self.cwd / folder(self.options.db_dir, 'db_dir'))}"
        if (store := self.options.store) and store.startswith("~"):
            return f"sqlite:///{_quoted(folder(store, 'store'))}"
        return store or f"sqlite:///{_quoted(self.home / 'memory.db')}"

    @property
    def audit_key_file(self) -> Path:
        """The file of the keys that sign the audit chains."""
        given = self.options.audit_key_file
        return self.cwd / folder(given, "audit_key_file") if given else self.home / "audit.key"

    @property
    def cache(self) -> Path:
        """The folder for files that can be downloaded or built again."""
        return (
            self.cwd / folder(self.options.cache_dir, "cache_dir")
            if self.options.cache_dir
            else self.caches / "memory-mesh"
        )


def load(
    arguments: Mapping[str, object],
    *,
    environ: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> Settings:
    """Combine all sources. Arguments that are None count as not given; every value is validated,
    also one that is overridden."""
    environ = os.environ if environ is None else environ
    cwd = cwd or _working_folder()
    home = cwd / home_folder(environ)
    given = {name: value for name, value in arguments.items() if value is not None}
    data = _bytes_if_file(home / FILE)
    own = {} if data is None else _values(_origin(home / FILE), _parsed(home / FILE, data))
    project, project_values = _project(cwd, home, own)
    values: _Values = {}
    origins = dict.fromkeys(NAMES, "default")
    sources = [
        (_origin(home / FILE), own),
        (_origin(project.path) if project else "", project_values),
        *_environment(environ),
        ("argument", _values("argument", given)),
    ]
    for origin, source in (*_preset(sources), *sources):
        if stores := source.keys() & _STORES:
            if len(stores) > 1:
                raise SettingsError(
                    f"both store and db_dir are given by {origin}", expected="one of them"
                )
            for name in _STORES:  # one overrides the other
                values.pop(name, None)
                origins[name] = "default"
        values |= source
        origins |= dict.fromkeys(source, origin)
    _add_provider_keys(values, origins, environ)
    return Settings(Options(**values), origins, home, _caches(environ, home), project, cwd)


def _preset(sources: list[tuple[str, _Values]]) -> list[tuple[str, _Values]]:
    """Return the values of the preset that the last source names. Those of its embedder do not
    count for another one."""
    given: _Values = {}
    for _, source in sources:
        given |= source
    if (name := given.get("preset")) is None:
        return []
    preset = dict(PRESETS[name])
    if given.get("embedder", preset.get("embedder")) != preset.get("embedder"):
        preset = {
            option: value for option, value in preset.items() if option not in EMBEDDING_NAMES
        }
    return [(f"preset ({name})", preset)]


def _quoted(path: Path) -> str:
    return quote(os.fsencode(path.absolute()))


def home_folder(environ: Mapping[str, str] | None = None) -> Path:
    """Return the home folder of memory-mesh."""
    environ = os.environ if environ is None else environ
    return folder(environ.get(PREFIX + "HOME") or "~/.memory-mesh", PREFIX + "HOME")


def trust(path: str) -> tuple[Path, list[str]]:
    """Trust the file of a project until it changes, and return its path and the options that it
    sets."""
    file = file_at(folder(path, "PATH"))
    data = _bytes(file)
    values = _values(_origin(file), _parsed(file, data))
    record(file, data, home_folder())
    return file, list(values)


def untrust(path: str) -> Path:
    """End the trust in the file of a project, and return its path."""
    file = file_at(folder(path, "PATH"))
    forget(file, home_folder())
    return file


def folder(path: str, name: str) -> Path:
    """Return the folder that the option `name` gives; `~` is the user's home."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        why = str(error).rstrip(".").lower()
        remedy = f"set HOME, or {PREFIX}HOME to a folder"
        raise SettingsError(
            f"{name} {shown(path, max_length=120)} cannot be used: {why}", remedy=remedy
        ) from None


# --- sources ---


def _working_folder() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:
        raise SettingsError(
            "the working folder was removed", remedy="change to another folder"
        ) from None


def _environment(environ: Mapping[str, str]) -> list[tuple[str, _Values]]:
    variables = {PREFIX + name.upper(): name for name in (*NAMES, *filter(str.islower, ALIASES))}
    if unknown := sorted(
        name
        for name in environ
        if name.startswith(PREFIX) and name not in {*variables, PREFIX + "HOME"}
    ):
        _warn(tuple(unknown))
    found = [
        (f"environment ({key})", name, environ[key])
        for key, name in variables.items()
        if key in environ
    ]
    return [
        (origin, _values(origin, {name: _from_text(text, kind_of(checked_name(name)))}))
        for origin, name, text in found
    ]


@cache
def _warn(unknown: tuple[str, ...]) -> None:
    """Log one line, once in each process, about variables with our prefix that are not options."""
    # The prefix is not compared: all names would be similar. A name may contain control characters.
    near = nearest(unknown[0].removeprefix(PREFIX), [*map(str.upper, NAMES), "HOME"])
    hint = f"; did you mean {PREFIX}{near}?" if near else ""
    shown = ", ".join(name if name.isidentifier() else repr(name) for name in unknown)
    _log.warning(
        "ignored unknown environment variable%s %s%s", "s" if len(unknown) > 1 else "", shown, hint
    )


def forget_warnings() -> None:
    """Let the next load warn again of what was said before."""
    _warn.cache_clear()
    _warn_changed.cache_clear()


def _is_file(path: Path) -> bool:
    """Return whether the file is there. The user's own file may protect something, so it is not
    skipped if that is unknown."""
    try:
        return path.is_file()
    except OSError as error:
        raise SettingsError(
            f"{path} cannot be read: {error.strerror}", remedy="check its permissions"
        ) from error


def _is_same(path: Path, other: Path) -> bool:
    """Return whether two paths lead to the same file, also by links and relative paths."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return path.samefile(other)
    return False


def _bytes_if_file(path: Path) -> bytes | None:
    try:
        return _bytes(path) if _is_file(path) else None
    except SettingsError:
        if _is_file(path):  # else it was removed meanwhile
            raise
        return None


def _bytes(path: Path) -> bytes:
    try:
        with open_regular(path) as file:
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        remedy = (
            "check the path" if isinstance(error, FileNotFoundError) else "check its permissions"
        )
        raise SettingsError(f"{path} cannot be read: {error.strerror}", remedy=remedy) from error
    if len(data) > _MAX_FILE_BYTES:
        raise SettingsError(
            f"{path} cannot be read: it is too long", expected=f"at most {_MAX_FILE_BYTES:,} bytes"
        )
    return data


def _parsed(path: Path, data: bytes) -> _Values:
    import tomllib  # most runs have no file

    try:
        return tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:
        # ValueError: not TOML, not UTF-8, or a number of thousands of digits.
        raise SettingsError(f"{path} cannot be read: {error}", remedy="correct the file") from error


def _origin(path: Path) -> str:
    return f"file ({path})"


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


def _add_provider_keys(
    values: dict[str, Any], origins: dict[str, str], environ: Mapping[str, str]
) -> None:
    """Take a key that is not given from the provider's own variable, unless it would be sent to
    another address."""
    for provider, key, url in _KEYED:
        variable = PROVIDER_KEYS.get(values.get(provider, ""), "")
        if key not in values and url not in values and environ.get(variable, "").strip():
            values[key], origins[key] = environ[variable], f"environment ({variable})"
    if (
        "store_key" not in values
        and str(values.get("store")).startswith("supabase:")
        and environ.get(_SUPABASE_KEY, "").strip()
    ):
        values["store_key"], origins["store_key"] = (
            environ[_SUPABASE_KEY],
            f"environment ({_SUPABASE_KEY})",
        )


# --- the file of a project ---


def _project(folder: Path, home: Path, own: _Values) -> tuple[ProjectFile | None, _Values]:
    """Read the file of the project. If it is not trusted, refuse what a project cannot set;
    `own` are the user's own values."""
    path = next(
        (path for at in (folder, *folder.parents) if os.path.isfile(path := at / FILE)), None
    )
    data = None if path is None else _bytes_if_file(path)
    if path is None or data is None or _is_same(path, home / FILE):
        return None, {}
    trust = trust_in(path, data, home)
    if trust is not Trust.YES and len(data) > _MAX_UNTRUSTED_BYTES:
        raise _refusal(
            path,
            trust,
            home,
            f"it is too long for a project's file, at most {_MAX_UNTRUSTED_BYTES:,} bytes",
        )
    raw = _parsed(path, data)
    if trust is not Trust.YES and (
        closed := [name for name in raw if _rule(name, path) is Project.NO]
    ):
        raise _refusal(path, trust, home, f"{', '.join(closed)} cannot be set by a project's file")
    values = _values(_origin(path), raw)
    for name, value in values.items():
        if _rule(name, path) is Project.INSIDE:
            values[name] = _real_folder(value, path.parent, name)
        if name == "note_agents":
            values[name] = {agent: _own_path(given, path.parent) for agent, given in value.items()}
        if trust is not Trust.YES and (fault := _fault(name, values[name], path.parent, own)):
            raise _refusal(path, trust, home, fault)
    if trust is Trust.CHANGED:
        _warn_changed(path)
    return ProjectFile(path, trust), values


@cache
def _warn_changed(path: Path) -> None:
    _log.warning(
        "%s was changed after it was trusted: run `memory-mesh config trust` or `config untrust`",
        path,
    )


def _rule(name: str, path: Path) -> Project:
    try:
        rule: Project = BY_NAME[checked_name(name)].metadata["project"]
    except SettingsError as error:
        raise SettingsError(f"{_origin(path)}: {error.what}", remedy=error.remedy) from None
    return rule


def _fault(name: str, value: Any, project: Path, own: _Values) -> str:
    """Return why the file of a project cannot give this value to an option that it may set, or
    an empty text."""
    rule, limit = BY_NAME[name].metadata["project"], own.get(name, BY_NAME[name].default)
    if rule is Project.LOWER and limit is not None and value > limit:
        return (
            f"{name} {value} goes beyond your own {limit}, and a project's file can only lower it"
        )
    if rule is Project.ON and value is not True:
        return f"{name} {str(value).lower()}: a project's file can only switch it on"
    if rule is Project.INSIDE and not Path(value).is_relative_to(os.path.realpath(project)):
        return f"{name} {shown(value, max_length=120)} is not inside the project"
    return ""


def _real_folder(value: str, project: Path, name: str) -> str:
    path = project / folder(value, name)
    try:
        return os.path.realpath(path)
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise SettingsError(
            f"{name} {shown(value, max_length=120)} cannot be used: {error}", expected="a folder"
        ) from None


def _own_path(given: object, project: Path) -> object:
    """Return a path as one from the folder of the project; what is not a path stays as it is."""
    return os.path.join(project, os.path.expanduser(given)) if isinstance(given, str) else given


def _refusal(path: Path, trust: Trust, home: Path, fault: str) -> SettingsError:
    from shlex import quote as quoted  # only a failure needs it

    changed = ", changed since you trusted it" if trust is Trust.CHANGED else ""
    remedy = (
        f"put it into {home / FILE}, or accept this file with: memory-mesh config trust "
        f"{quoted(str(path))}"
    )
    return SettingsError(f"file ({path}{changed}): {fault}", remedy=remedy)


# --- values ---


def _values(origin: str, raw: Mapping[str, object]) -> _Values:
    """Return the valid values of a source, or raise a `SettingsError` that names the source."""
    try:
        return {name: validate(name, value) for name, value in by_option(raw).items()}
    except SettingsError as error:
        raise SettingsError(
            f"{origin}: {error.what}", expected=error.expected, remedy=error.remedy
        ) from None


def _from_text(text: str, kind: type) -> object:
    """Convert the text of a variable; what cannot be converted is returned as it is, and refused
    by `validate`."""
    if kind is bool:
        return _BOOLEANS.get(text.strip().lower(), text)
    try:
        if kind in (int, float):
            return kind(text)
        return json.loads(text) if kind is dict else text
    except ValueError:
        return text
