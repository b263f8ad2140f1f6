"""Claims: statements that can be false, as a caller gives them and as a memory stores them."""

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256

from memory_mesh.core.checks import one_of, suggestion
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake import folded_text
from memory_mesh.core.model import BY_NAME, Memory, Value, fault, parse_time

SCOPES = ("global", "session")
MAX_CHARS = 2_000  # of a subject, a predicate or a value
_NAMES = ("subject", "predicate", "value", "exclusive", "scope", "session_id", "valid_from", "valid_until")
_OPEN = "~"  # after every time, as a text


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """When a claim is valid; an end that is None is open, and both ends belong to it."""

    start: str | None = None
    end: str | None = None

    def overlaps(self, other: "Window") -> bool:
        """Return whether there is a moment in both."""
        return _is_before(self.start, other.end) and _is_before(other.start, self.end)

    def contains(self, at: str) -> bool:
        """Return whether a moment is in it."""
        return _is_before(self.start, at) and _is_before(at, self.end)


def overlapping(windows: Mapping[str, Window]) -> set[str]:
    """Return the ids whose windows have a moment in common with that of another one, without comparing each with each."""
    found, last, until = set[str](), "", ""
    for start, end, id_ in sorted((each.start or "", each.end or _OPEN, id_) for id_, each in windows.items()):
        if last and start <= until:
            found |= {id_, last}
        if end >= until:
            last, until = id_, end
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One statement: the value of a predicate of a subject, and how far it reaches."""

    subject: str
    predicate: str
    value: str
    exclusive: bool = True
    session_id: str | None = None  # of a claim that holds in one session only
    project: str | None = None  # that of its memory
    window: Window = Window()
    ended: bool = False  # the claim is no longer valid after the end of its window

    @property
    def key(self) -> str:
        """A text that is equal for claims about the same predicate of the same subject."""
        parts = [folded_text(self.subject), folded_text(self.predicate)]
        return sha256(repr(parts).encode()).hexdigest()

    @property
    def scope(self) -> str:
        """How far it reaches: global, or session."""
        return "global" if self.session_id is None else "session"

    @property
    def columns(self) -> dict[str, Value]:
        """The columns of a memory with this claim."""
        claim: dict[str, Value] = {
            "subject": self.subject, "predicate": self.predicate, "value": self.value, "exclusive": self.exclusive,
            "scope": self.scope, **({"session_id": self.session_id} if self.session_id else {}),
        }  # fmt: skip
        return {
            "claim": claim, "claim_key": self.key, "valid_from": self.window.start, "valid_until": self.window.end,
        }  # fmt: skip

    @classmethod
    def of(cls, memory: Memory) -> "Claim | None":
        """Return the claim of a memory; None if it has none."""
        stored = memory.claim
        if not stored:
            return None
        session = stored.get("session_id")
        return cls(
            subject=str(stored.get("subject")), predicate=str(stored.get("predicate")), value=str(stored.get("value")),
            exclusive=stored.get("exclusive") is not False, session_id=None if session is None else str(session),
            project=memory.project, window=Window(start=memory.valid_from, end=memory.valid_until),
        )  # fmt: skip


def read_claim(given: object, session_id: str | None) -> Claim:
    """Return a claim as a caller gives it, or raise `InvalidInput`. `session_id` is the session of the caller."""
    if not isinstance(given, Mapping):
        raise InvalidInput(f"claim is {shown(given)}", expected="an object with subject, predicate and value")
    for name in given:
        if name not in _NAMES:
            what, remedy = f"claim has the unknown key {shown(name)}", suggestion(name, _NAMES)
            raise InvalidInput(what, expected=f"keys of {', '.join(_NAMES)}", remedy=remedy)
    exclusive = given.get("exclusive", True)
    if not isinstance(exclusive, bool):
        raise InvalidInput(f"claim.exclusive is {shown(exclusive)}", expected="true or false")
    return Claim(
        subject=_text(given, "subject"), predicate=_text(given, "predicate"), value=_text(given, "value"), exclusive=exclusive,
        session_id=_session(given, session_id), window=read_window(given),
    )  # fmt: skip


def read_window(given: Mapping[str, object]) -> Window:
    """Return the validity in `valid_from` and `valid_until`, or raise `InvalidInput` if it ends before it starts."""
    start, end = (None if (at := given.get(name)) is None else parse_time(at, name) for name in ("valid_from", "valid_until"))
    return check_window(Window(start=start, end=end))


def check_window(window: Window) -> Window:
    """Return a window, or raise `InvalidInput` if it ends before it starts."""
    if not _is_before(window.start, window.end):
        what = f"valid_until {window.end} is before valid_from {window.start}"
        raise InvalidInput(what, expected="a window that ends after it starts")
    return window


def _text(given: Mapping[str, object], name: str) -> str:
    value = given.get(name)
    if name == "value" and isinstance(value, bool | int | float):
        value = str(value).lower() if isinstance(value, bool) else _digits(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"claim.{name} is {shown(value)}", expected="a non-empty text")
    if fault(BY_NAME["key"], value):
        raise InvalidInput(f"claim.{name} is {shown(value)}", expected="text without NUL or half surrogate pairs")
    if len(value) > MAX_CHARS:
        raise InvalidInput(f"claim.{name} has {len(value):,} characters", expected=f"at most {MAX_CHARS:,}")
    return value


def _digits(value: float) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no integer of more than 4,300 digits
        raise InvalidInput("claim.value is a number with too many digits", expected=f"at most {MAX_CHARS:,}") from None


def _session(given: Mapping[str, object], session_id: str | None) -> str | None:
    scope = given.get("scope", "session" if given.get("session_id") else "global")
    one_of("claim.scope", scope, SCOPES)
    if scope == "global":
        if given.get("session_id") is not None:
            raise InvalidInput("a claim of scope 'global' has a session_id", expected="scope 'session', or no session_id")
        return None
    own = given.get("session_id", session_id)
    if not isinstance(own, str) or not own.strip() or fault(BY_NAME["session_id"], own):
        remedy = "give claim.session_id, or use mesh.scoped(session_id=…)"
        raise InvalidInput("a claim of scope 'session' has no session", remedy=remedy)
    return own


def _is_before(one: str | None, other: str | None) -> bool:
    """Return whether a moment is not after another one; None is open."""
    return one is None or other is None or one <= other
