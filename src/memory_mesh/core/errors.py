"""Every error that a user can meet, in one tree; `interfaces.render` gives each its exit code and HTTP status.

MemoryMeshError
├── InvalidInput            what was given cannot be used; nothing changed
│   ├── InvalidFilter       a filter expression that is not allowed
│   └── KeyReused           an idempotency key that already stands for another request
├── SettingsError           a setting that cannot be used
├── NotFound                no such memory within the caller's scope
├── NotYet                  the document names it and this version does not have it (also an AttributeError)
├── MemoryDisabled          `enable_memory` is off
├── EmbeddingError          no embedder could make a vector
│   └── ModelMissing        a model's files are not there and cannot be fetched
├── ModelMismatch           a vector of another model than the store's own
├── CallError               another machine was called and gave nothing of use
│   ├── UnsafeAddress       the guard of outgoing calls refused it; nothing was sent
│   ├── Unreachable         nobody answers at that address
│   ├── CallRefused         it answered that it will not: a wrong key, an unknown model, a request it does not take
│   ├── CallTimedOut        no answer in the time allowed
│   └── RateLimited         it asks to come back later
├── AnswerUnreadable        a language model's answer is not what was asked for
├── BudgetSpent             the cap on tokens or costs is reached; nothing was sent
├── Cancelled               whoever asked no longer wants it
└── StoreError
    ├── StoreUnavailable    cannot be opened, read or written
    ├── StoreReadOnly       opened for reading only
    ├── StoreBusy           others held it for too long
    ├── StoreFull           no room left
    ├── StoreCorrupt        not a store, or damaged
    ├── StoreTooNew         written by a newer version
    ├── StoreClosed         used after `close`
    └── Conflict            it moved under the decision; flows read and decide again
        └── IdTaken         an id that is already held
"""


class MemoryMeshError(Exception):
    """One line: what was wrong, what was expected, what to do."""

    def __init__(self, what: str, *, expected: str = "", remedy: str = "") -> None:
        # Errors quote what they were given, and end up in logs.
        what, expected, remedy = self._masked(what), self._masked(expected), self._masked(remedy)
        parts = [what]
        if expected:
            parts.append(f"expected {expected}")
        if remedy:
            parts.append(remedy)
        super().__init__("; ".join(parts))
        self.what, self.expected, self.remedy = what, expected, remedy

    @staticmethod
    def _masked(text: str) -> str:
        from memory_mesh.core.redaction import masked  # only a failure needs it, and it loads many patterns

        return masked(text)

    def __reduce__(self) -> tuple[object, ...]:
        # Exceptions cross process borders by pickle, which knows only positional arguments.
        return _rebuilt, (type(self), self.what, self.expected, self.remedy)


def shown(value: object, *, most: int = 60) -> str:
    """A value as an error may show it: short, whatever it is."""
    try:
        return repr(value)[:most]
    except (ValueError, RecursionError):  # a number of thousands of digits, or lists without end
        return f"{type(value).__name__} of no readable length"


def _rebuilt(kind: type[MemoryMeshError], what: str, expected: str, remedy: str) -> MemoryMeshError:
    return kind(what, expected=expected, remedy=remedy)


class InvalidInput(MemoryMeshError):
    """What was given cannot be used; nothing changed."""


class InvalidFilter(InvalidInput):
    """A filter expression that is not allowed."""


class KeyReused(InvalidInput):
    """An idempotency key that already stands for another request."""


class SettingsError(MemoryMeshError):
    """A setting that cannot be used."""


class NotFound(MemoryMeshError):
    """No such memory within the caller's scope."""


class NotYet(MemoryMeshError, AttributeError):
    """Named by the documents, not in this version. An AttributeError too, so that `hasattr` tells the truth."""


class MemoryDisabled(MemoryMeshError):
    """`enable_memory` is off."""


class EmbeddingError(MemoryMeshError):
    """No embedder could make a vector."""


class ModelMissing(EmbeddingError):
    """A model's files are not there and cannot be fetched."""


class ModelMismatch(MemoryMeshError):
    """A vector of another model than the store's own."""


class CallError(MemoryMeshError):
    """Another machine was called and gave nothing of use."""


class UnsafeAddress(CallError):
    """The guard of outgoing calls refused it; nothing was sent."""


class Unreachable(CallError):
    """Nobody answers at that address."""


class CallRefused(CallError):
    """It answered that it will not. `status` is that of HTTP, and `said` what it said: JSON, or a text where it was none."""

    def __init__(self, what: str, *, expected: str = "", remedy: str = "", status: int = 0, said: object = None) -> None:
        super().__init__(what, expected=expected, remedy=remedy)
        self.status, self.said = status, said

    def __reduce__(self) -> tuple[object, ...]:
        return _refused_again, (self.what, self.expected, self.remedy, self.status, self.said)


def _refused_again(what: str, expected: str, remedy: str, status: int, said: object) -> CallRefused:
    return CallRefused(what, expected=expected, remedy=remedy, status=status, said=said)


class CallTimedOut(CallError):
    """No answer in the time allowed."""


class RateLimited(CallError):
    """It asks to come back later."""


class AnswerUnreadable(MemoryMeshError):
    """A language model's answer is not what was asked for."""


class BudgetSpent(MemoryMeshError):
    """The cap on tokens or costs is reached; nothing was sent."""


class Cancelled(MemoryMeshError):
    """Whoever asked no longer wants it."""


class StoreError(MemoryMeshError):
    """Something about the store itself."""


class StoreUnavailable(StoreError):
    """Cannot be opened, read or written."""


class StoreReadOnly(StoreError):
    """Opened for reading only."""


class StoreBusy(StoreError):
    """Others held it for too long."""


class StoreFull(StoreError):
    """No room left."""


class StoreCorrupt(StoreError):
    """Not a store, or damaged."""


class StoreTooNew(StoreError):
    """Written by a newer version."""


class StoreClosed(StoreError):
    """Used after `close`."""


class Conflict(StoreError):
    """The store moved under the decision. It names rows only, and comes by the thousand where many write."""

    @staticmethod
    def _masked(text: str) -> str:
        return text


class IdTaken(Conflict):
    """An id that is already held."""
