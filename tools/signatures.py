"""Write the parameters of the public methods to `interfaces/data/signatures.json`.

The command line reads them there, so that neither help nor a usage error loads the mesh. `--check`
only compares, and exits 1 if the file is stale.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from inspect import Parameter, getmembers, isfunction, signature
from os import PathLike
from pathlib import Path
from types import UnionType
from typing import Union, get_args, get_origin, get_type_hints

from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces
from memory_mesh.interfaces import verbs

FILE = Path(verbs.__file__).with_name("data") / "signatures.json"
FACES: dict[str, type] = {
    "": Mesh,
    "graph.": MemoryGraph,
    "lane.": MemoryLane,
    "notes.": MemoryNotes,
    "traces.": MemoryTraces,
}
# The first type that an annotation admits decides the kind; of every other type it is a text.
KINDS: dict[object, str] = {
    PathLike: "path", float: "fraction", int: "integer", bool: "switch", date: "time",
}  # fmt: skip


def main() -> int:
    """Write the file, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    if not parser.parse_args().check:
        FILE.write_text(text(), encoding="utf-8")
    elif FILE.read_text(encoding="utf-8") != text():
        sys.stderr.write(f"{FILE.name} is stale: run python tools/signatures.py\n")
        return 1
    return 0


def text() -> str:
    """Return the whole file: one line for each method."""
    used = {operation.method for operation in verbs.TABLE}
    methods = {
        prefix + name: dict(parameters(method))
        for prefix, face in FACES.items()
        for name, method in getmembers(face, isfunction)
        if prefix + name in used
    }
    lines = (f"{json.dumps(name)}: {json.dumps(found)}" for name, found in methods.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


def parameters(method: Callable[..., object]) -> Iterator[tuple[str, dict[str, object]]]:
    """Yield each parameter of a method with what the table of operations takes from it."""
    hints = get_type_hints(method)
    for name, declared in signature(method).parameters.items():
        types = types_of(hints.get(name))
        found: dict[str, object] = {"kind": kind} if (kind := kind_of(types)) else {}
        if types & {Sequence, Iterable} and Mapping not in types:
            found["repeated"] = True
        if declared.default is Parameter.empty:
            found["required"] = True
        elif declared.default is not None:
            found["default"] = declared.default
        if name not in ("self", "progress"):
            yield name, found


def types_of(annotation: object) -> set[object]:
    """Return the classes that an annotation admits."""
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*(types_of(one) for one in get_args(annotation)))
    return {get_origin(annotation) or annotation}


def kind_of(types: set[object]) -> str:
    """Return the kind of a parameter; empty for a text."""
    if types - {type(None)} == {Mapping}:
        return "object"
    return next((kind for type_, kind in KINDS.items() if type_ in types), "")


if __name__ == "__main__":
    sys.exit(main())
