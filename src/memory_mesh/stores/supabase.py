"""The Supabase store: the SQL functions of the PostgreSQL store, called over PostgREST.

PostgREST has no transaction over several requests, so a change is one call of `mesh_apply`. A read
that fails is sent again. A change is sent again if the server refused it as busy, or if the log of
moves shows whether the first one was done.
"""

import json
import re
from collections.abc import Mapping, Sequence
from itertools import count
from time import monotonic
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from postgrest import APIError, SyncPostgrestClient

from memory_mesh.core.errors import (
    Conflict,
    IdTaken,
    InvalidInput,
    MemoryMeshError,
    StoreBusy,
    StoreClosed,
    StoreError,
    StoreMissing,
    StoreReadOnly,
    StoreTooNew,
    StoreUnavailable,
)
from memory_mesh.core.model import Row
from memory_mesh.core.model.background import wait
from memory_mesh.core.ports import Secret, Step, no_step
from memory_mesh.net import HttpClient
from memory_mesh.net.uses import Failed, guarded_session
from memory_mesh.stores.postgres.calls import FunctionStore, is_logged
from memory_mesh.stores.postgres.tables import VERSION, decode_json, encoded

_PATH = "/rest/v1"
_SECONDS = 60.0  # for one request
_MAX_PAUSE = 5.0
_URL = (
    "supabase://project.supabase.co/, with ?schema=name, or ?local=true for a server on this "
    "computer or network"
)
_TOKENS = re.compile(r"(?i:bearer\s+\S+)|\beyJ[\w-]*(?:\.[\w-]*)+|\bsb_(?:secret|publishable)_\S+")
_PREPARE = (
    "let the owner of the database run `memory-mesh postgres prepare` with its postgresql:// URL"
)
# The class of error and the remedy by the code of PostgREST; see rpc.sql for those of ours.
_CLASSES: dict[str, tuple[type[StoreError | InvalidInput], str]] = {
    "PT409": (IdTaken, ""),
    "PT412": (Conflict, ""),
    "PT422": (InvalidInput, ""),
    "PT423": (StoreBusy, "try again"),
    "PT426": (StoreTooNew,
              ("upgrade memory-mesh; if the tables are older, let their owner run `memory-mesh "
               "postgres prepare`")),
    "42501": (StoreReadOnly,
              "check the key, and let the owner of the tables grant its role access"),
    "PGRST202": (StoreMissing, _PREPARE),
    "PGRST106": (StoreMissing, "check the schema in the URL, and that PostgREST exposes it"),
}  # fmt: skip
_UNPREPARED = ("PGRST202", "42883")


class SupabaseStore(FunctionStore):
    """Rows in the tables of a Supabase project. The key is a secret key, or the token of one
    user."""

    def __init__(
        self,
        url: str,
        key: str,
        *,
        client: HttpClient | None = None,
        busy_seconds: float = 30.0,
        step: Step = no_step,
    ) -> None:
        base, options = _parsed(url)
        schema, secret = options.get("schema", "public"), Secret(key)
        headers: dict[str, str | Secret] = {
            "apikey": secret,
            "authorization": Secret(key, prefix="Bearer "),
        }
        headers |= {"accept-profile": schema, "content-profile": schema}
        local = options.get("local") == "true"
        guarded = client or HttpClient(base, headers=headers, allow_local=local, timeout=_SECONDS)
        self.url, self._busy_seconds, self._step, self._secret = url, busy_seconds, step, secret
        session = guarded_session(guarded)
        self._client = SyncPostgrestClient(
            guarded.address, schema=schema, headers={}, http_client=session
        )
        self._closed = False

    def close(self) -> None:
        self._closed = True
        self._client.aclose()

    def compact(self) -> bool:
        """Return False: only the owner of the database can rewrite its tables. PostgreSQL reuses
        the space by itself."""
        self._check_open()
        return False

    # --- calls ---

    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        self._check_open()
        text = json.dumps({**payload, "schema": VERSION}, ensure_ascii=False)
        until = monotonic() + self._busy_seconds
        for attempt in count():
            try:
                return self._sent("mesh_read", {"function": function, "payload": text})
            except APIError as error:
                if error.code in _UNPREPARED:
                    return empty
                raise self._translated(error) from None
            except Failed as failed:
                self._pause(failed, attempt, until)
        raise AssertionError

    def _write(
        self, tenant: str | None, payload: Mapping[str, object], puts: Sequence[Row]
    ) -> dict[str, Any]:
        self._check_open()
        given = {
            **payload,
            "puts": [encoded(row, place) for place, row in enumerate(puts)],
            "schema": VERSION,
        }
        self._step("store.begun")
        until, lost = monotonic() + self._busy_seconds, False
        for attempt in count():
            text = json.dumps({**given, "retry": lost}, ensure_ascii=False)
            try:
                answer: dict[str, Any] = self._sent(
                    "mesh_write", {"tenant": tenant, "payload": text}
                )
            except APIError as error:
                if error.code != "PT423" or monotonic() >= until:
                    raise self._translated(error) from None
                wait(min(0.001 * 2**attempt, 0.1))
            except Failed as failed:
                lost = lost or failed.is_done is None
                if lost and (not is_logged(puts) or monotonic() >= until):
                    what = "did not answer a write, which may have been done or not"
                    raise StoreUnavailable(
                        f"{self._client.base_url.host} {what}",
                        remedy="read what is stored before you write it again",
                    ) from None
                self._pause(failed, attempt, until)
            else:
                self._step("store.committed")
                return answer
        raise AssertionError

    def _sent(self, function: str, arguments: dict[str, str | None]) -> Any:
        try:
            data: Any = self._client.rpc(function, arguments).execute().data  # type: ignore[arg-type]
            return decode_json(data)
        except (ValueError, TypeError):  # such as a page for people
            what = f"{self._client.base_url.host} answered what is not an answer of {function}"
            raise StoreUnavailable(
                what, remedy="check the URL of the store; a write may have been done or not"
            ) from None

    def _pause(self, failed: Failed, attempt: int, until: float) -> None:
        """Wait before the next attempt, as long as the server asks for; raise the error if that
        takes too long."""
        seconds = max(failed.after or 0.0, min(0.05 * 2**attempt, _MAX_PAUSE))
        if monotonic() + seconds > until:
            raise StoreUnavailable(
                self._hidden(failed.error.what), remedy=failed.error.remedy
            ) from None
        wait(seconds)

    # --- errors ---

    def _translated(self, error: APIError) -> MemoryMeshError:
        code = error.code or ""
        kind, remedy = _CLASSES.get(
            code, (StoreUnavailable, "check the URL and the key of the store")
        )
        what = f"{self._client.base_url.host}: {self._hidden(error.message or code)[:200]}"
        return kind(what, remedy=remedy) if remedy else kind(what)

    def _hidden(self, text: str) -> str:
        """Return a text of the server without keys and tokens."""
        return _TOKENS.sub("***", self._secret.hidden_in(text))

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed(f"{self._client.base_url.host} is closed", remedy="open it again")


def _parsed(url: str) -> tuple[str, dict[str, str]]:
    """Return the address of PostgREST and the options in a URL."""
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query, keep_blank_values=True))
    known = (
        options.keys() <= {"schema", "local"}
        and options.get("local", "true") == "true"
        and options.get("schema") != ""
    )
    if (
        "@" in parts.netloc
        or not parts.netloc
        or parts.path.strip("/")
        or parts.fragment
        or not known
    ):
        # The URL may contain a key, so it is not quoted.
        remedy = "set the key by store_key or SUPABASE_KEY"
        raise InvalidInput("the URL is not one of a Supabase store", expected=_URL, remedy=remedy)
    return (
        f"{'http' if options.get('local') == 'true' else 'https'}://{parts.netloc}{_PATH}",
        options,
    )
