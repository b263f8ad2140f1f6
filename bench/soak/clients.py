"""Clients of one store, over REST, MCP and in processes of their own. All of them do the same work.

Each client keeps a limited number of memories: it adds one, searches, reads, changes, and deletes
its oldest. So the store stays about as large as it was, and what grows has another reason. A client
remembers what was acknowledged, and `check` compares it.
"""

import json
import random
import re
import subprocess
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from memory_mesh import MemoryMesh, MemoryMeshError

KEPT = 100  # memories of a client
REOPEN = 200  # calls of a process between two openings of the store
_NAMES = ("Ana", "Ben", "Chloe", "Dev", "Elif", "Femi", "Goran", "Hana")
_THINGS = (
    "the deploy key",
    "the staging server",
    "the release notes",
    "the billing report",
    "the design review",
)
_ID = re.compile(r"mem_\d+_[0-9a-f]+")


class Ways(Protocol):
    """The calls of a client, by which way ever. Each raises an error if it is not acknowledged."""

    def add(self, text: str) -> str: ...

    def search(self, query: str) -> None: ...

    def context(self, query: str) -> None: ...

    def delete(self, id_: str) -> None: ...

    def close(self) -> None: ...


class Failed(Exception):
    """A call that was answered, but not with success."""


FAULTS = (Failed, OSError, HTTPException, MemoryMeshError, ValueError)
# Milliseconds of a call, and the error that it ended with.
Note = Callable[[float, str | None], None]


class Rest:
    """Over a connection that stays open."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)

    def add(self, text: str) -> str:
        return str(self._post("store", content=text)["id"])

    def search(self, query: str) -> None:
        self._post("search", query=query)

    def context(self, query: str) -> None:
        self._post("context", query=query)

    def delete(self, id_: str) -> None:
        self._post("delete", id=id_)

    def close(self) -> None:
        self._connection.close()

    def _post(self, path: str, **body: object) -> dict[str, Any]:
        try:
            self._connection.request(
                "POST", f"/v1/{path}", json.dumps(body), {"Content-Type": "application/json"}
            )
            answer = self._connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException):
            self._connection.close()
            raise
        if answer.status != 200:
            raise Failed(f"{path}: {answer.status} {data[:200]!r}")
        found: dict[str, Any] = json.loads(data)
        return found


class Mcp:
    """The tools of an MCP server. Messages travel as `send` sends them: it returns the answer to
    one."""

    def __init__(self, link: "Link") -> None:
        self._link, self._number = link, 0
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "soak", "version": "1"},
        }
        self._ask("initialize", hello)
        link.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def add(self, text: str) -> str:
        found = _ID.search(self._call("remember", content=text))
        if found is None:
            raise Failed("remember answers without an id")
        return found.group()

    def search(self, query: str) -> None:
        self._call("recall", query=query)

    def context(self, query: str) -> None:
        self._call("context", query=query)

    def delete(self, id_: str) -> None:
        self._call("forget", id=id_)

    def close(self) -> None:
        self._link.close()

    def _call(self, tool: str, **arguments: object) -> str:
        answer = self._ask("tools/call", {"name": tool, "arguments": arguments})
        text = "".join(part["text"] for part in answer["content"])
        if answer.get("isError"):
            raise Failed(f"{tool}: {text[:200]}")
        return text

    def _ask(self, method: str, parameters: Mapping[str, object]) -> dict[str, Any]:
        self._number += 1
        answer = self._link.ask(
            {"jsonrpc": "2.0", "id": self._number, "method": method, "params": parameters}
        )
        if "result" not in answer:
            raise Failed(f"{method}: {str(answer)[:200]}")
        found: dict[str, Any] = answer["result"]
        return found


class Link(Protocol):
    """Carries messages to an MCP server."""

    def ask(self, message: dict[str, object]) -> dict[str, Any]: ...

    def tell(self, message: dict[str, object]) -> None: ...

    def close(self) -> None: ...


class HttpLink:
    """Messages over HTTP. An answer is JSON, or an event stream with one message."""

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }

    def ask(self, message: dict[str, object]) -> dict[str, Any]:
        lines = [
            line.removeprefix(b"data:")
            for line in self._post(message).splitlines()
            if line[:1] == b"{" or b'{"' in line
        ]
        if not lines:
            raise Failed("the server answers without a message")
        found: dict[str, Any] = json.loads(lines[-1])
        return found

    def tell(self, message: dict[str, object]) -> None:
        self._post(message)

    def close(self) -> None:
        self._connection.close()

    def _post(self, message: dict[str, object]) -> bytes:
        try:
            self._connection.request("POST", "/mcp", json.dumps(message), self._headers)
            answer = self._connection.getresponse()
            data = answer.read()
        except (OSError, HTTPException):
            self._connection.close()
            raise
        if session := answer.headers.get("mcp-session-id"):
            self._headers["mcp-session-id"] = session
        if answer.status >= 300:
            raise Failed(f"{answer.status} {data[:200]!r}")
        return data


class PipeLink:
    """Messages over standard input and output of a server that this starts."""

    def __init__(self, words: list[str], environment: dict[str, str]) -> None:
        self._server = subprocess.Popen(
            words,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.pid = self._server.pid

    def ask(self, message: dict[str, object]) -> dict[str, Any]:
        self.tell(message)
        assert self._server.stdout is not None  # noqa: S101  (a pipe)
        for line in self._server.stdout:
            found: dict[str, Any] = json.loads(line)
            if found.get("id") == message["id"]:
                return found
        raise Failed("the server has ended")

    def tell(self, message: dict[str, object]) -> None:
        assert self._server.stdin is not None  # noqa: S101  (a pipe)
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def close(self) -> None:
        self._server.communicate(timeout=60)


class Embedded:
    """The library itself. The store is opened again after every few calls, as by short programs."""

    def __init__(self, file: Path, agent: str) -> None:
        self._open: Callable[[], MemoryMesh] = lambda: MemoryMesh(file, agent_id=agent)
        self._mesh, self._calls = self._open(), 0
        self._mesh.init()  # a search may come first

    def add(self, text: str) -> str:
        return self._now().add(text).id

    def search(self, query: str) -> None:
        self._now().search(query)

    def context(self, query: str) -> None:
        mesh = self._now()
        mesh.format_for_model(mesh.search(query))

    def delete(self, id_: str) -> None:
        self._now().erase(id_)

    def close(self) -> None:
        self._mesh.close()

    def _now(self) -> MemoryMesh:
        self._calls += 1
        if self._calls % REOPEN == 0:
            self._mesh.close()
            self._mesh = self._open()
        return self._mesh


class Client:
    """Make one call after another until the end, and remember which memories must be there, and
    which not."""

    def __init__(self, name: str, ways: Ways, note: Note, *, pause: float, number: int = 0) -> None:
        """`number` is that of the last memory; questions are about it and those before."""
        self._name, self._ways, self._note, self._pause = name, ways, note, pause
        self._random = random.Random(name)  # noqa: S311  (not for secrets)
        self.kept: OrderedDict[str, str] = OrderedDict()
        self.deleted: list[str] = []
        self._number = number
        self._calls = {
            "mixed": self._mixed,
            "adds": self._add,
            "searches": self._search,
            "deletes": self._delete,
        }

    def run(self, stop: Event) -> None:
        """Work until the event is set."""
        while not stop.is_set():
            self.step()
            time.sleep(self._pause)
        self.close()

    def close(self) -> None:
        self._ways.close()

    def steps(self, kind: str, number: int) -> None:
        """Make so many calls of one kind."""
        for _ in range(number):
            self.step(kind)

    def step(self, kind: str = "mixed") -> None:
        """Make one call, and note its time."""
        began, error = time.perf_counter(), None
        try:
            self._calls[kind]()
        except FAULTS as fault:
            error = f"{type(fault).__name__}: {fault}"
        self._note(1000 * (time.perf_counter() - began), error)

    def _mixed(self) -> None:
        chosen = self._random.random()
        if len(self.kept) > KEPT:
            self._delete()
        elif chosen < 0.3:
            self._add()
        elif chosen < 0.85:
            self._search()
        else:
            self._ways.context(self._question())

    def _add(self) -> None:
        self._number += 1
        text = self._text()
        self.kept[self._ways.add(text)] = text

    def _search(self) -> None:
        self._ways.search(self._question())

    def _delete(self) -> None:
        id_ = next(iter(self.kept))
        self._ways.delete(id_)
        del self.kept[id_]
        self.deleted.append(id_)

    def _text(self) -> str:
        name, thing, week = (
            self._random.choice(_NAMES),
            self._random.choice(_THINGS),
            self._random.randrange(52),
        )
        return f"{name} changes {thing} number {self._number} of {self._name} in week {week}."

    def _question(self) -> str:
        return (
            f"who changes {self._random.choice(_THINGS)} number "
            f"{self._random.randrange(self._number + 1)}?"
        )


def check(file: Path, kept: dict[str, str], deleted: list[str]) -> dict[str, int]:
    """Return how many acknowledged memories are missing or other than stored, and how many
    deleted ones are still there."""
    with MemoryMesh(file, embedder="none") as mesh:
        found = {record.id: record.content for record in mesh.get_all()}
        broken = sum(type(verdict).__name__ != "Sound" for verdict in mesh.verify())
    wrong = sum(found.get(id_) != text for id_, text in kept.items())
    return {
        "kept": len(kept),
        "lost": wrong,
        "deleted": len(deleted),
        "returned": len(found.keys() & set(deleted)),
        "broken": broken,
    }
