"""Make hooks of what a caller or the settings name: functions, folders and URLs."""

import os
from collections.abc import Callable, Sequence
from hashlib import sha256
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from memory_mesh.core.errors import SettingsError, shown
from memory_mesh.core.hooks import HookEvent
from memory_mesh.core.ports import Hook, HookFiles, Store
from memory_mesh.settings import Settings, folder
from memory_mesh.stores import store_file
from memory_mesh.stores.hook_files import DiskHookFiles, markdown_writethrough

_EXPECTED = "markdown_writethrough(…), webhook_writethrough(…), a function of an event, a folder or a URL"


class FunctionHook:
    """Calls a function with each event; implements `core.ports.Hook`."""

    folder = None

    def __init__(self, function: Callable[[HookEvent], object]) -> None:
        named: Any = function if getattr(function, "__qualname__", None) else type(function)
        self._function, self.name = function, f"function {named.__module__ or 'builtins'}.{named.__qualname__}"

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def deliver(self, event: HookEvent) -> None:
        self._function(event)


def make_hooks(given: object, settings: Settings) -> tuple[Hook, ...]:
    """Return the hooks that `writethrough` lists, or raise `SettingsError` for one that cannot be used."""
    single = given is None or isinstance(given, str | os.PathLike) or not isinstance(given, Sequence)
    listed: Sequence[Any] = ([] if given is None else [given]) if single else given  # type: ignore[assignment]
    hooks = [_as_hook(one, settings) for one in listed]
    names = [hook.name for hook in hooks]
    if double := [name for name in names if names.count(name) > 1]:
        raise SettingsError(f"writethrough has two hooks with the name {shown(double[0])}", expected="one of each")
    return tuple(hooks)


def _as_hook(given: Any, settings: Settings) -> Hook:
    if isinstance(given, str) and "://" in given:
        return _webhook(given, settings)
    if isinstance(given, str | os.PathLike):
        return markdown_writethrough(settings.cwd / folder(os.fspath(given), "writethrough"))
    if isinstance(given, type):
        raise SettingsError(f"writethrough has the class {shown(given)}", expected=_EXPECTED)
    if iscoroutinefunction(given):
        raise SettingsError(f"writethrough has the async function {shown(given)}", expected="a function that is not async")
    if isinstance(given, Hook):
        return given
    if callable(given):
        return FunctionHook(given)
    raise SettingsError(f"writethrough has {shown(given)}", expected=_EXPECTED)


def _webhook(url: str, settings: Settings) -> Hook:
    from memory_mesh.net import ALLOW_LOCAL_REMEDY
    from memory_mesh.net.webhook import webhook_writethrough

    try:
        return webhook_writethrough(url, allow_local=settings.options.writethrough_allow_local)
    except SettingsError as error:
        is_local = error.remedy == ALLOW_LOCAL_REMEDY
        remedy = "set writethrough_allow_local = true if that is intended" if is_local else error.remedy
        raise SettingsError(f"writethrough: {error.what}", expected=error.expected, remedy=remedy) from error


def hook_files(settings: Settings, store: Store) -> HookFiles:
    """Return the dead letters and locks of a store: beside its file, else in the home folder."""
    file = store_file(store.url)
    if file is None:
        return DiskHookFiles(settings.home / "hooks" / sha256(store.url.encode()).hexdigest()[:16])
    path: Path = settings.cwd / file
    return DiskHookFiles(path.with_name(f"{path.name}-hooks"))
