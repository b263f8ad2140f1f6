"""Insert into the text of a JSON document and remove from it, so that everything else keeps its formatting.

The text is valid JSON. A place is a path of keys and positions, such as ("hooks", "Stop", 0).
"""

import json
import re
from collections.abc import Iterator

Key = str | int

_SPACE = re.compile(r"\s*")
_INDENT = re.compile(r"\n([ \t]+)")
_DECODER = json.JSONDecoder()


def insert(text: str, place: tuple[Key, ...], value: object) -> str:
    """Return the text with a value as the last item of the object or list at the place, which exists, except for its last key.

    The last key of the place is the name of the new member; for a list it is the number of its items.
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
    """Return the text without the item at the place, and without the objects and lists that are empty then, but the outermost."""
    *parents, key = place
    start, end = _span(text, tuple(parents))
    items = list(_items(text, start))
    if len(items) == 1:
        return remove(text, tuple(parents)) if parents else text[: start + 1] + text[end - 1 :]
    position = max(n for n, (name, _, _) in enumerate(items) if name == key)  # of equal keys the last one counts
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
    """Yield the key, the beginning and the end of each value of the object or list that begins at `start`."""
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
