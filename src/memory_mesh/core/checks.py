"""Checks of arguments, and the nearest known word to a mistyped one.

A check returns the checked value or raises InvalidInput. A bool does not count as a number.
"""

from collections.abc import Iterable, Mapping
from math import inf
from typing import Any, Protocol, runtime_checkable

from memory_mesh.core.errors import InvalidInput, shown


def is_number(value: object, *, min_: float = -inf, max_: float = inf) -> bool:
    """Return whether `value` is an int or float from `min_` to `max_`. NaN is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and min_ <= value <= max_


def number(name: str, value: object, *, min_: float, max_: float, expected: str) -> float:
    """Return `value` as a float from `min_` to `max_`."""
    if not (isinstance(value, int | float) and is_number(value, min_=min_, max_=max_)):
        raise InvalidInput(f"{name} is {shown(value)}", expected=expected)
    return float(value)


def fraction(name: str, value: object, *, expected: str = "a number from 0 to 1") -> float:
    """Return `value` as a float from 0 to 1."""
    return number(name, value, min_=0, max_=1, expected=expected)


def whole_number(name: str, value: object, *, min_: int = 1, max_: int | None = None) -> int:
    """Return `value` as an int from `min_` to `max_`."""
    if not isinstance(value, int) or not is_number(value, min_=min_, max_=inf if max_ is None else max_):
        expected = f"a whole number from {min_:,}" + ("" if max_ is None else f" to {max_:,}")
        raise InvalidInput(f"{name} is {shown(value)}", expected=expected)
    return value


def one_of(name: str, value: object, choices: Iterable[str]) -> str:
    """Return `value` if it is one of the choices."""
    known = list(choices)
    if not isinstance(value, str) or value not in known:
        raise InvalidInput(f"{name} is {shown(value)}", expected=f"one of {', '.join(known)}")
    return value


def iterable(name: str, value: object, *, expected: str) -> Iterable[Any]:
    """Return an iterable. A text or a mapping is refused: its letters or keys are hardly what the caller wants."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is {shown(value)}", expected=expected)
    return value


def listed(name: str, value: object, *, expected: str) -> list[Any]:
    """Return the items of an iterable."""
    return list(iterable(name, value, expected=expected))


def missing_parts(given: object, parts: Iterable[str]) -> list[str]:
    """Return the names of a port that an object lacks. A class lacks all of them: it is not yet an object."""
    absent = object()
    return [part for part in parts if isinstance(given, type) or getattr(given, part, absent) is absent]


_MAX_PATH = 4096


@runtime_checkable
class _PathLike(Protocol):
    def __fspath__(self) -> object: ...


def path(name: str, value: object) -> str:
    """Return a path as text."""
    given = value.__fspath__() if isinstance(value, _PathLike) else value
    try:
        if isinstance(given, str) and len(given) <= _MAX_PATH and b"\0" not in given.encode("utf-8", "surrogateescape"):
            return given
    except UnicodeEncodeError:
        pass  # half a surrogate pair
    raise InvalidInput(f"{name} is {shown(given)}", expected=f"a path of at most {_MAX_PATH:,} characters")


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the most similar known word, or an empty text."""
    from difflib import get_close_matches  # only mistakes need it

    return "".join(get_close_matches(word, list(known), n=1))


def suggestion(word: object, known: Iterable[str]) -> str:
    """Return a question that names the most similar known word, or an empty text."""
    near = nearest(word, known) if isinstance(word, str) else ""
    return f"did you mean {near!r}?" if near else ""
