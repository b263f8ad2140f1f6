"""`memory-mesh init`: write the hooks of coding agents into a project, and take them out again.

Only what this program wrote is changed or removed. In the settings of Claude Code that is a hook
that is exactly ours; the plugin of opencode begins with a digest of the rest of the file. Files are
replaced at once, and keep their permissions.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from memory_mesh.core.errors import InvalidInput, MemoryMeshError, shown
from memory_mesh.interfaces.hosts import EVENTS
from memory_mesh.interfaces.render.output import NAME, Answer, counted, items
from memory_mesh.interfaces.values import Call
from memory_mesh.stores.files import create_folder, read_if_any, replace_file, stat_of

# --- editing JSON ---
# Everything else keeps its formatting. The text is valid JSON. A place is a path of keys and
# positions, such as ("hooks", "Stop", 0).

Key = str | int

_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"\n([ \t]+)")
_DECODER = json.JSONDecoder()


def insert(text: str, place: tuple[Key, ...], value: object) -> str:
    """Return the text with a value as the last item of the object or list at the place, which
    exists, except for its last key.

    The last key of the place is the name of the new member; for a list it is the number of its
    items.
    """
    *parents, key = place
    start, end = _span(text, tuple(parents))
    step = found[1] if (found := _INDENT.search(text)) else "  "
    line = "\r\n" if "\r\n" in text else "\n"
    margin = line + step * len(place)
    shown = json.dumps(value, indent=step, ensure_ascii=False).replace("\n", margin)
    item = shown if isinstance(key, int) else f"{json.dumps(key, ensure_ascii=False)}: {shown}"
    if items := list(_items(text, start)):
        last = items[-1][2]
        return f"{text[:last]},{margin}{item}{text[last:]}"
    return f"{text[: start + 1]}{margin}{item}{line}{step * (len(place) - 1)}{text[end - 1 :]}"


def remove(text: str, place: tuple[Key, ...]) -> str:
    """Return the text without the item at the place, and without the objects and lists that are
    empty then, but the outermost."""
    *parents, key = place
    start, end = _span(text, tuple(parents))
    items = list(_items(text, start))
    if len(items) == 1:
        return remove(text, tuple(parents)) if parents else text[: start + 1] + text[end - 1 :]
    # Of equal keys the last one counts.
    position = max(n for n, (name, _, _) in enumerate(items) if name == key)
    if position:
        return text[: items[position - 1][2]] + text[items[position][2] :]
    after = text.index(",", items[0][2]) + 1
    return text[: start + 1] + text[after:]


def _span(text: str, place: tuple[Key, ...]) -> tuple[int, int]:
    """Return where the value at a place begins and ends."""
    start = _skip(text, 0)
    end = _DECODER.raw_decode(text, start)[1]
    for key in place:
        start, end = max((first, last) for name, first, last in _items(text, start) if name == key)
    return start, end


def _items(text: str, start: int) -> Iterator[tuple[Key, int, int]]:
    """Yield the key, the beginning and the end of each value of the object or list that begins
    at `start`."""
    at, number = _skip(text, start + 1), 0
    key: Key
    while text[at] not in "]}":
        key = number
        if text[start] == "{":
            key, at = _DECODER.raw_decode(text, at)
            at = _skip(text, _skip(text, at) + 1)
        end = _DECODER.raw_decode(text, at)[1]
        yield key, at, end
        at = _skip(text, end)
        at = _skip(text, at + 1) if text[at] == "," else at
        number += 1


def _skip(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found else at


# --- init ---

SETTINGS, PLUGIN = ".claude/settings.json", ".opencode/plugin/memory-mesh.js"
_TIMEOUT_SECONDS = 10
_DIGEST = re.compile(r"// Written by memory-mesh init; sha256 ([0-9a-f]{64})\n")
_MARKS = {"added": "+", "changed": "~", "removed": "-", "unchanged": "=", "left": "!"}


@dataclass(frozen=True, slots=True)
class Change:
    """What happens to one hook or file. `left` means: it should change, but this program did not
    write it."""

    action: str
    file: str
    what: str


def init(call: Call) -> Answer:
    """Write the hooks of the chosen hosts into a project, or remove them."""
    options = call.arguments
    folder = Path(str(options["path"])).expanduser()
    if not folder.is_dir():
        raise InvalidInput(
            f"{shown(str(folder), max_length=120)} is not a folder",
            expected="the folder of a project",
        )
    removing, dry_run = bool(options["remove"]), bool(options["dry_run"])
    planned = [
        _planned(folder, host, removing=removing)
        for host in HOSTS
        if options["host"] in (host, "all")
    ]
    if not dry_run:
        for path, text, _ in planned:
            _write(folder, path, text)
    changes = [change for _, _, found in planned for change in found]
    answer = _answer(changes, removing=removing, dry_run=dry_run)
    unused = (
        "\n! The hooks use the store of the settings, not that of --store."
        if call.target.store
        else ""
    )
    return replace(answer, text=answer.text + unused)


def _answer(changes: list[Change], *, removing: bool, dry_run: bool) -> Answer:
    done = sum(change.action in ("added", "changed", "removed") for change in changes)
    verb = ("would be " if dry_run else "") + ("removed" if removing else "written")
    lines = [f"{NAME} {counted(done, 'hook')} {verb}" if done else f"{NAME} Nothing to do"]
    lines += [f"{_MARKS[change.action]} {change.file}  {change.what}" for change in changes]
    if not removing and shutil.which("memory-mesh") is None:
        lines.append("! The hooks run the command memory-mesh, which is not on your PATH.")
    left = any(change.action == "left" for change in changes)
    return Answer(
        text="\n".join(lines), data=items(changes, dry_run=dry_run), code=1 if left else 0
    )


# --- Claude Code ---


def _hook(event: str) -> dict[str, object]:
    return {
        "type": "command",
        "command": f"memory-mesh host claude-code {EVENTS[event]}",
        "timeout": _TIMEOUT_SECONDS,
    }


def _settings(text: str | None, *, removing: bool) -> tuple[str | None, list[Change]]:
    """Return the settings of Claude Code with our hooks, or without them, and what changes."""
    blank = text is None or not text.strip()
    if blank and removing:
        return text, []
    new, changes = "{}\n" if text is None or blank else text, list[Change]()
    for event in EVENTS:
        settings = _parsed(new)
        place, same = _ours(settings, event)
        if place is None and removing:
            continue
        action = "unchanged"
        if place is None:
            action, new = "added", _with_hook(new, settings, event)
        elif removing:
            action, new = ("removed", remove(new, place)) if same else ("left", new)
        note = "" if place is None or same else " (changed by hand)"
        changes.append(Change(action, SETTINGS, f"{event}: {_hook(event)['command']}{note}"))
    return (None if removing and new != text and _parsed(new) == {} else new), changes


def _parsed(text: str) -> dict[str, object]:
    remedy = "correct the file, then run the command again; nothing was changed"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{SETTINGS} is not valid JSON: {error}", remedy=remedy) from None
    hooks = value.get("hooks", {}) if isinstance(value, dict) else None
    if not isinstance(hooks, dict) or not all(
        isinstance(hooks.get(event, []), list) for event in EVENTS
    ):
        expected = 'an object whose "hooks" are an object of lists'
        raise InvalidInput(
            f"{SETTINGS} has another form than Claude Code's", expected=expected, remedy=remedy
        )
    return dict(value)


def _ours(settings: dict[str, object], event: str) -> tuple[tuple[Key, ...] | None, bool]:
    """Return the place of our hook of an event, and whether it is exactly as we write it."""
    hooks = settings.get("hooks")
    groups = hooks.get(event, []) if isinstance(hooks, dict) else []
    command = str(_hook(event)["command"])
    for n, group in enumerate(groups):
        inner = group.get("hooks") if isinstance(group, dict) else None
        for m, hook in enumerate(inner if isinstance(inner, list) else []):
            if isinstance(hook, dict) and command in str(hook.get("command")):
                place: tuple[Key, ...] = ("hooks", event, n)
                return place if len(group["hooks"]) == 1 else (*place, "hooks", m), hook == _hook(
                    event
                )
    return None, False


def _with_hook(text: str, settings: dict[str, object], event: str) -> str:
    group = {"hooks": [_hook(event)]}
    hooks = settings.get("hooks")
    if not isinstance(hooks, dict):
        return insert(text, ("hooks",), {event: [group]})
    if event not in hooks:
        return insert(text, ("hooks", event), [group])
    return insert(text, ("hooks", event, len(hooks[event])), group)


# --- opencode ---


def plugin_text() -> str:
    """Return the plugin of opencode; its first line has the digest of the rest."""
    body = Path(__file__).with_name("data").joinpath("opencode.js").read_text(encoding="utf-8")
    return f"// Written by memory-mesh init; sha256 {sha256(body.encode()).hexdigest()}\n{body}"


def _plugin(text: str | None, *, removing: bool) -> tuple[str | None, list[Change]]:
    """Return the plugin of opencode, or None to remove it, and what changes."""
    new = plugin_text()
    if text is None:
        return (
            (None, []) if removing else (new, [Change("added", PLUGIN, "the plugin of opencode")])
        )
    found = _DIGEST.match(text)
    if found is None or sha256(text[found.end() :].encode()).hexdigest() != found[1]:
        why = "changed by hand" if found else "not written by memory-mesh"
        return text, [Change("left", PLUGIN, f"{why}, so it stays")]
    if removing:
        return None, [Change("removed", PLUGIN, "the plugin of opencode")]
    return new, [
        Change("unchanged" if text == new else "changed", PLUGIN, "the plugin of opencode")
    ]


HOSTS = {"claude-code": (SETTINGS, _settings), "opencode": (PLUGIN, _plugin)}


# --- files ---


def _planned(folder: Path, host: str, *, removing: bool) -> tuple[Path, str | None, list[Change]]:
    """Return the file of a host, its new text (None: no file) and what changes."""
    name, edit = HOSTS[host]
    real = Path(os.path.realpath(folder / name))
    if not real.is_relative_to(os.path.realpath(folder)):
        raise InvalidInput(
            f"{name} is a link that leads out of the project",
            remedy="change the file it leads to by hand",
        )
    try:
        data = read_if_any(real)  # a link may lead to no file yet
        text = None if data is None else data.decode()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise InvalidInput(
            f"{name} cannot be read: {why}", remedy="correct it; nothing was changed"
        ) from None
    new, changes = edit(text, removing=removing)
    return real, new, changes


def _write(folder: Path, path: Path, text: str | None) -> None:
    """Write a file at once, or remove it together with the folders that are empty then; a file
    that has the text stays."""
    try:
        if text is not None and read_if_any(path) != text.encode():
            create_folder(path.parent)
            replace_file(path, text.encode())
        elif text is None and stat_of(path):
            path.unlink(missing_ok=True)
            top = Path(os.path.realpath(folder))
            with suppress(OSError):  # the first folder that is not empty stays, and all above it
                for above in path.parents[: len(path.relative_to(top).parts) - 1]:
                    above.rmdir()
    except OSError as error:
        remedy = "check the permissions of its folder"
        raise MemoryMeshError(
            f"{path} cannot be written: {error.strerror}", remedy=remedy
        ) from None
