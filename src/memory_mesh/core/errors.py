"""All public errors. docs/errors.md lists them; `interfaces.render` maps each to its exit code and HTTP status."""

from functools import partial
from typing import TypeVar

_MAX_MASKED = 10_000  # characters of a value in an error that are masked before it is cut


class MemoryMeshError(Exception):
    """Base class of all errors. The text is one line: what was wrong, what was expected, what to do."""

    def __init__(self, what: str, *, expected: str = "", remedy: str = "") -> None:
        # Errors quote their input and are written to logs.
        self.what, self.expected, self.remedy = map(self._masked, (what, expected, remedy))
        wish = f"expected {self.expected}" if expected else ""
        super().__init__("; ".join([self.what, *filter(None, (wish, self.remedy))]))

    @staticmethod
    def _masked(text: str) -> str:
        from memory_mesh.core.redaction import masked  # only a failure needs it, and it loads many patterns

        return masked(text)

    def __reduce__(self) -> tuple[object, ...]:
        # Pickle passes only positional arguments.
        return partial(type(self), expected=self.expected, remedy=self.remedy), (self.what,)


def shown(value: object, *, max_length: int = 60) -> str:
    """Return the `repr` of a value, masked, then cut to a length that fits into an error: half a secret is not recognised."""
    from memory_mesh.core.redaction import masked

    try:
        return masked(repr(value)[:_MAX_MASKED])[:max_length]
    except Exception:  # noqa: BLE001  (thousands of digits, endless nesting, or whatever the `__repr__` of a caller's object raises)
        return f"{type(value).__name__} that cannot be shown"


class InvalidInput(MemoryMeshError):
    """The input cannot be used; nothing changed."""


class InvalidFilter(InvalidInput):
    """The filter expression is not allowed."""


class KeyReused(InvalidInput):
    """The idempotency key was used for another request."""


class TooLarge(InvalidInput):
    """The request is larger than the server accepts."""


class AccessDenied(MemoryMeshError):
    """The token, the host or the origin of a request does not allow it."""


class TokenInvalid(AccessDenied):
    """The request has no valid token: none, an unknown, an expired or a revoked one."""


class TooManyRequests(MemoryMeshError):
    """The caller made more requests than the server allows."""


class SettingsError(MemoryMeshError):
    """A setting cannot be used."""


class NotFound(MemoryMeshError):
    """There is no such memory within the caller's scope."""


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

    def __init__(self, what: str, *, expected: str = "", remedy: str = "", status: int = 0, body: object = None) -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.status, self.body = status, body

    def __reduce__(self) -> tuple[object, ...]:
        rebuild = partial(CallRefused, expected=self.expected, remedy=self.remedy, status=self.status, body=self.body)
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
    """The file of the store does not exist; a read does not create it."""


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
    """The file is a database of another program, or no file but a pipe or a device; nothing was changed."""


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
    return kind(what, remedy=f"install it with pip install 'memory-mesh[{extra}]', in a clone pip install '.[{extra}]'")
