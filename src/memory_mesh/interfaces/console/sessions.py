"""Sessions of the console: who is logged in, in the memory of the server.

A browser gets a random id in a cookie; only its hash is kept here. A session ends after 12 hours,
after 2 hours without a request, and when its token is revoked or expires.
"""

import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from hashlib import sha256
from threading import Lock

from memory_mesh.core.errors import TokenInvalid

_HOUR = 3600.0
_MAX_AGE, _MAX_IDLE = 12 * _HOUR, 2 * _HOUR
_ONCE_SECONDS = 300.0
_MAX_SESSIONS = 1000
_MAX_OF_TOKEN = 100  # so that the owner of one token cannot log the others out
_LOG_IN = "log in again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One browser that is logged in."""

    id: str  # a part of the hash of the secret; for logs and limits
    csrf: str
    token_id: str | None  # None: on a server without tokens, or logged in with the one-time secret
    owner: bool  # logged in with the one-time secret: the person who started the server
    began: float
    used: float


class Sessions:
    """All sessions of a server."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._by_hash: OrderedDict[str, Session] = OrderedDict()
        self._once: tuple[str, float] | None = None

    def begin(self, *, token_id: str | None = None, owner: bool = False) -> tuple[str, Session]:
        """Begin a session, and return the secret for its cookie and the session."""
        secret, now = secrets.token_urlsafe(32), self._clock()
        hash_ = _hash(secret)
        session = Session(
            id=hash_[:8], csrf=secrets.token_urlsafe(32), token_id=token_id, owner=owner, began=now,
            used=now
        )  # fmt: skip
        with self._lock:
            alike = [
                key
                for key, one in self._by_hash.items()
                if (one.token_id, one.owner) == (token_id, owner)
            ]
            for key in alike[: max(0, len(alike) - _MAX_OF_TOKEN + 1)]:
                del self._by_hash[key]
            while len(self._by_hash) >= _MAX_SESSIONS:
                self._by_hash.popitem(last=False)
            self._by_hash[hash_] = session
        return secret, session

    def find(self, secret: str) -> Session:
        """Return the session of a cookie. Raises `TokenInvalid` if there is none, or it has
        ended."""
        now, hash_ = self._clock(), _hash(secret)
        with self._lock:
            session = self._by_hash.pop(hash_, None)
            if session is None or _has_ended(session, now):
                raise TokenInvalid("the session has ended", remedy=_LOG_IN)
            # At the end: the least recently used is dropped first.
            self._by_hash[hash_] = session = replace(session, used=now)
        return session

    def end(self, secret: str) -> None:
        """End a session, if there is one."""
        with self._lock:
            self._by_hash.pop(_hash(secret), None)

    def issue_once(self) -> str:
        """Return a secret that is good for one login within five minutes. An earlier one is no
        longer valid."""
        secret = secrets.token_urlsafe(32)
        with self._lock:
            self._once = _hash(secret), self._clock() + _ONCE_SECONDS
        return secret

    def use_once(self, secret: str) -> None:
        """Use up the one-time secret. Raises `TokenInvalid` if it is another one, was used or is
        too old."""
        with self._lock:
            expected, until = self._once or (_hash(""), 0.0)
            # After the clock was set back, it would be valid for longer.
            is_valid = 0 < until - self._clock() <= 2 * _ONCE_SECONDS
            if not hmac.compare_digest(_hash(secret), expected) or not is_valid:
                raise TokenInvalid(
                    "the one-time link was used already or is too old",
                    remedy="run memory-mesh console again",
                )
            self._once = None


def _has_ended(session: Session, now: float) -> bool:
    # A session that began in the future did so before the clock was set back; nobody knows how long
    # ago.
    return abs(now - session.began) >= _MAX_AGE or abs(now - session.used) >= _MAX_IDLE


def _hash(secret: str) -> str:
    return sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()
