"""All public errors, and the checks of arguments that raise them.

docs/errors.md lists the errors; `interfaces.render.output` maps each to its exit code and HTTP
status.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from math import inf
from typing import Any, Protocol, TypeVar, runtime_checkable

_MAX_MASKED = 10_000  # characters of a value in an error that are masked before it is cut


class MemoryMeshError(Exception):
    """Base class of all errors. The text is one line: what was wrong, what was expected, what to
    do."""

    def __init__(self, what: str, *, expected: str = "", remedy: str = "") -> None:
        # Errors quote their input and are written to logs.
        self.what, self.expected, self.remedy = map(self._masked, (what, expected, remedy))
        wish = f"expected {self.expected}" if expected else ""
        super().__init__("; ".join([self.what, *filter(None, (wish, self.remedy))]))

    @staticmethod
    def _masked(text: str) -> str:
        # Only a failure needs it, and it loads many patterns.
        from memory_mesh.core.language.redaction import masked

        return masked(text)

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle passes only positional arguments.
        return partial(type(self), expected=self.expected, remedy=self.remedy), (self.what,)


def shown(value: object, *, max_length: int = 60) -> str:
    """Return the `repr` of a value, masked, then cut to a length that fits into an error: half a
    secret is not recognised."""
    from memory_mesh.core.language.redaction import masked

    try:
        return masked(repr(value)[:_MAX_MASKED])[:max_length]
    except Exception:  # noqa: BLE001  (thousands of digits, endless nesting, or whatever the `__repr__` of a caller's object raises)
        return f"{type(value).__name__} that cannot be shown"


class InvalidInput(MemoryMeshError, ValueError):
    """The input cannot be used; nothing changed."""


class InvalidFilter(InvalidInput):
    """The filter expression is not allowed."""


class KeyReused(InvalidInput):
    """The idempotency key was used for another request."""


class WrongStatus(InvalidInput):
    """The status of a memory or a conflict does not allow it; nothing changed."""


class TooLarge(InvalidInput):
    """The request is larger than the server accepts."""


class AccessDenied(MemoryMeshError):
    """The token, the host or the origin of a request does not allow it."""


class TokenInvalid(AccessDenied):
    """The request has no valid token: none, an unknown, an expired or a revoked one."""


class TooManyRequests(MemoryMeshError):
    """The caller made more requests than the server allows."""


class SettingsError(MemoryMeshError, ValueError):
    """A setting cannot be used."""


class NotFound(MemoryMeshError, KeyError):
    """There is no such memory within the caller's scope."""

    __str__ = Exception.__str__  # that of KeyError quotes the text


class MemoryDisabled(MemoryMeshError):
    """`enable_memory` is off."""


class EmbeddingError(MemoryMeshError):
    """No embedder could compute a vector."""


class ModelMissing(EmbeddingError):
    """The files of a model are missing and cannot be fetched."""


class ModelMismatch(MemoryMeshError):
    """The vector belongs to another model than the store's."""


class CallError(MemoryMeshError):
    """A call to another machine failed."""


class UnsafeAddress(CallError):
    """The address guard refused the call; nothing was sent."""


class Unreachable(CallError):
    """No server answers at the address."""


class CallRefused(CallError):
    """The server refused the call: a wrong key, an unknown model, an unsupported request.

    `status` is the HTTP status, `body` what the response contains: JSON, or else text.
    """

    def __init__(
        self,
        what: str,
        *,
        expected: str = "",
        remedy: str = "",
        status: int = 0,
        body: object = None,
    ) -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.status, self.body = status, body

    def __reduce__(self) -> tuple[object, ...]:
        rebuild = partial(
            CallRefused,
            expected=self.expected,
            remedy=self.remedy,
            status=self.status,
            body=self.body,
        )
        return rebuild, (self.what,)


class CallTimedOut(CallError):
    """No answer in the time allowed."""


class RateLimited(CallError):
    """The server asks to try again later."""


class AnswerUnreadable(MemoryMeshError):
    """The answer of a language model is not in the requested form."""


class BudgetSpent(MemoryMeshError):
    """The cap on tokens or cost is reached; nothing was sent."""


class Cancelled(MemoryMeshError):
    """The caller cancelled the call."""


class StoreError(MemoryMeshError):
    """The store failed."""


class StoreUnavailable(StoreError):
    """The store cannot be opened, read or written."""


class StoreMissing(StoreUnavailable):
    """The store does not exist, and `must_exist`, `mode=ro` or the call needs one."""


class StoreReplaced(StoreUnavailable):
    """The file was removed or replaced while it was open; nothing was written."""


class StoreReadOnly(StoreError):
    """The store was opened for reading only."""


class StoreBusy(StoreError):
    """Other processes locked the store for too long."""


class StoreFull(StoreError):
    """No space left."""


class StoreCorrupt(StoreError):
    """The file is not a store, or it is damaged."""


class ContentAltered(StoreCorrupt):
    """The content of a memory is not the one that its audit block sealed."""


class StoreForeign(StoreCorrupt):
    """The file is a database of another program, or no file but a pipe or a device; nothing was
    changed."""


class StoreTooNew(StoreError):
    """A newer version wrote the store."""


class StoreTooOld(StoreError):
    """The tables have an older schema, which only `memory-mesh migrate` changes."""


class StoreClosed(StoreError):
    """The store was used after `close`."""


class Conflict(StoreError):
    """The store changed after it was read; the operation reads and decides again."""

    # It quotes only ids, and concurrent writers raise thousands of them: no masking.
    @staticmethod
    def _masked(text: str) -> str:
        return text


class IdTaken(Conflict):
    """The id already exists."""


_Error = TypeVar("_Error", bound=MemoryMeshError)


def not_installed(kind: type[_Error], package: str | None, extra: str) -> _Error:
    """Return the error for a package that is missing because its extra was not installed."""
    what = f"the package {package or extra} is not installed"
    return kind(
        what,
        remedy=f"install it with pip install 'memory-mesh[{extra}]', in a clone pip install "
        f"'.[{extra}]'",
    )


# --- checks of arguments ---
# A check returns the checked value or raises InvalidInput. A bool does not count as a number.


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
    if not isinstance(value, int) or not is_number(
        value, min_=min_, max_=inf if max_ is None else max_
    ):
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
    """Return an iterable. A text or a mapping is refused: its letters or keys are hardly what
    the caller wants."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, str | bytes | bytearray | Mapping) or not isinstance(value, Iterable):
        raise InvalidInput(f"{name} is {shown(value)}", expected=expected)
    return value


def listed(name: str, value: object, *, expected: str) -> list[Any]:
    """Return the items of an iterable."""
    return list(iterable(name, value, expected=expected))


def missing_parts(given: object, parts: Iterable[str]) -> list[str]:
    """Return the names of a port that an object lacks. A class lacks all of them: it is not yet
    an object."""
    absent = object()
    return [
        part for part in parts if isinstance(given, type) or getattr(given, part, absent) is absent
    ]


_MAX_PATH = 4096


@runtime_checkable
class _PathLike(Protocol):
    def __fspath__(self) -> object: ...


def path(name: str, value: object) -> str:
    """Return a path as text."""
    given = value.__fspath__() if isinstance(value, _PathLike) else value
    try:
        if (
            isinstance(given, str)
            and len(given) <= _MAX_PATH
            and b"\0" not in given.encode("utf-8", "surrogateescape")
        ):
            return given
    except UnicodeEncodeError:
        pass  # half a surrogate pair
    raise InvalidInput(
        f"{name} is {shown(given)}", expected=f"a path of at most {_MAX_PATH:,} characters"
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the most similar known word, or an empty text."""
    from difflib import get_close_matches  # only mistakes need it

    return "".join(get_close_matches(word, list(known), n=1))


def suggestion(word: object, known: Iterable[str]) -> str:
    """Return a question that names the most similar known word, or an empty text."""
    near = nearest(word, known) if isinstance(word, str) else ""
    return f"did you mean {near!r}?" if near else ""
