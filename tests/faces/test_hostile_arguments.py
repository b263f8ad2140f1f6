"""No argument makes a public method raise anything but our errors, which say what was expected
or what to do."""

import inspect
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from memory_mesh import MemoryMesh, MemoryMeshError, MemoryRecord
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.options import NAMES


class Unprintable:
    """Its texts cannot be made."""

    def __init__(self, *_: object) -> None: ...

    def __str__(self) -> str:
        raise RuntimeError("no text")

    __repr__ = __str__


ENDLESS: list[object] = []
ENDLESS.append(ENDLESS)
HOSTILE: dict[str, Any] = {
    "None": None, "true": True, "negative": -1, "huge": 10**30, "thousands of digits": 10**5000,
    "NaN": float("nan"), "infinity": float("inf"), "complex": 3j, "empty text": "", "NUL": "a\0b",
    "surrogate": "\ud800", "escape": "\udcff", "long text": "x" * 20_000, "bytes": b"x",
    "bytearray": bytearray(b"x"), "empty list": [], "list of None": [None],
    "list of lists": [["a"]], "list of bytes": [b"x"], "unprintable in a list": [Unprintable()],
    "endless list": ENDLESS, "mapping": {"a": 1}, "mapping of bytes": {"a": b"x"},
    "mapping of numbers": {1: 2}, "endless mapping": {"a": ENDLESS},
    "nested mapping": {"a": {"$gt": 1}}, "triple": ("a", "b", "c"), "set": {"x"},
    "object": object(), "unprintable": Unprintable(), "function": lambda *_: None,
    "class": Unprintable, "error": ValueError("x"), "range": range(3), "iterator": iter([1]),
    "path": Path("/dev/null/x"),
    "message without content": [{"role": "user"}], "pair with bytes": [("a", {"b": b"x"})],
}  # fmt: skip
METHODS = {
    name: method
    for name, method in inspect.getmembers(Mesh, inspect.isfunction)
    if not name.startswith("_")
}
LESSON = dict.fromkeys(
    ("situation", "error_pattern", "oversight", "fix", "preventative_rule", "applicable_scope"),
    "a text"
) | {"severity": "low"}  # fmt: skip


@pytest.fixture
def mesh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> Iterator[MemoryMesh]:
    monkeypatch.chdir(tmp_path)
    caplog.set_level(logging.CRITICAL)
    with MemoryMesh(store="memory://", embedder="none") as mesh:
        yield mesh


def usual(name: str, record: MemoryRecord) -> dict[str, Any]:
    """Return valid values for the required arguments of a method."""
    known = {
        "id": record.id,
        "items": [("a text", None)],
        "path": ".",
        "context": LESSON,
        "results": [],
    }
    required = [
        one
        for one in inspect.signature(METHODS[name]).parameters.values()
        if one.default is one.empty
    ]
    return {one.name: known.get(one.name, "text") for one in required if one.name != "self"}


def calls(record: MemoryRecord) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Yield every method with each of its arguments and the usual values of the others."""
    for name, method in METHODS.items():
        for argument in list(inspect.signature(method).parameters)[1:]:
            yield name, argument, usual(name, record)


def unclear(error: MemoryMeshError) -> bool:
    """Return whether an error leaves out what was expected and what to do, or is no short line."""
    helpful = error.expected or error.remedy or " must be " in error.what
    return not helpful or "\n" in str(error) or len(str(error)) > 700


@pytest.mark.sample(4)
@pytest.mark.parametrize("value", HOSTILE)
def test_only_our_errors_escape_from_any_method(mesh: MemoryMesh, value: str) -> None:
    record, refused, done, wrong = mesh.add("some text"), 0, 0, []
    for name, argument, arguments in calls(record):
        try:
            answer = getattr(mesh, name)(**{**arguments, argument: HOSTILE[value]})
            _ = list(answer) if inspect.isgenerator(answer) else answer
            done += 1
        except MemoryMeshError as error:
            refused += 1
            wrong += [(name, argument, error)] if unclear(error) else []
        except Exception as error:  # noqa: BLE001  (all of them are listed)
            wrong.append((name, argument, error))
        if not mesh.get(record.id):
            record = mesh.add("some text")
    assert wrong == []
    assert done
    assert refused


@pytest.mark.sample(4)
@pytest.mark.parametrize("value", HOSTILE)
def test_only_our_errors_escape_from_the_constructor(mesh: MemoryMesh, value: str) -> None:
    refused, wrong = 0, []
    for name in (*NAMES, "chat", "clock", "ids", "step"):
        given: dict[str, Any] = {"store": "memory://", "embedder": "none", name: HOSTILE[value]}
        try:
            MemoryMesh(**given)
        except MemoryMeshError as error:
            refused += 1
            wrong += [(name, error)] if unclear(error) else []
        except Exception as error:  # noqa: BLE001  (all of them are listed)
            wrong.append((name, error))
    assert wrong == []
    assert refused


PLACES: dict[str, dict[str, str]] = {
    "the home is a file": {"MEMORY_MESH_HOME": "a-file"},
    "the home is below a file": {"MEMORY_MESH_HOME": "a-file/home"},
    "the home cannot be created": {"MEMORY_MESH_HOME": "/proc/home"},
    "the home file is not TOML": {"MEMORY_MESH_HOME": "odd"},
    "the home of nobody": {"MEMORY_MESH_HOME": "~no-such-user/home"},
    "the store is a folder": {"MEMORY_MESH_STORE": "sqlite:///odd"},
    "the store is below a file": {"MEMORY_MESH_STORE": "sqlite:///a-file/memory.db"},
    "the store is another file": {"MEMORY_MESH_STORE": "sqlite:///a-file"},
    "the store is a device": {"MEMORY_MESH_STORE": "sqlite:////dev/full"},
    "the key file is a folder": {"MEMORY_MESH_AUDIT_KEY_FILE": "odd"},
    "the name of the store is too long": {"MEMORY_MESH_STORE": f"sqlite:///{'n' * 300}.db"},
    "the name of the home is too long": {"MEMORY_MESH_HOME": "n" * 300},
    "the name of the key file is too long": {"MEMORY_MESH_AUDIT_KEY_FILE": "n" * 300},
}


@pytest.mark.parametrize("place", PLACES)
def test_only_our_errors_escape_from_places_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "memory-mesh.toml").write_bytes(b"\xff=")
    (tmp_path / "a-file").write_text("no store", encoding="utf-8")
    monkeypatch.setenv("MEMORY_MESH_HOME", "home")
    with MemoryMesh(embedder="none") as usual:
        usual.add("a text")
    for name, value in PLACES[place].items():
        monkeypatch.setenv(name, value)
    with pytest.raises(MemoryMeshError) as refused, MemoryMesh(embedder="none") as mesh:
        mesh.add("a text")
    assert not unclear(refused.value)
    assert (tmp_path / "a-file").read_text(encoding="utf-8") == "no store"


def test_what_the_callers_own_code_raises_comes_through_unchanged(
    mesh: MemoryMesh, tmp_path: Path
) -> None:
    def broken() -> Iterator[tuple[str, None]]:
        yield "a text", None
        raise ConnectionError("the caller's own")

    def progress(what: str, done: int, of: int) -> None:
        raise ZeroDivisionError

    (tmp_path / "a.md").write_text("a file", encoding="utf-8")
    with pytest.raises(ConnectionError, match="own"):
        mesh.add_many(broken())
    assert mesh.get_all() == []
    with pytest.raises(ZeroDivisionError):
        mesh.ingest_dir(tmp_path, progress=progress)
    with pytest.raises(TypeError, match="colour"):
        mesh.search("text", colour="red")  # type: ignore[call-arg]


def test_an_iterator_is_read_once(mesh: MemoryMesh) -> None:
    mesh.add("some text")
    assert len(mesh.get_all(status=iter(["active"]))) == 1  # type: ignore[arg-type]
    assert [run.job for run in mesh.heartbeat(jobs=iter(["compaction"]), force=True).runs][
        -1
    ] == "compaction"  # type: ignore[arg-type]
