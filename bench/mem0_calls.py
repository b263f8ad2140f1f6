"""Make the same 40 calls on mem0's own `Memory` and on ours, and compare what they return.

    python -m bench.mem0_calls --mem0 DIR

`DIR` has mem0, as `pip install --target DIR mem0ai` puts it there. It runs with a local Qdrant and
an embedder of words, without a language model. Ids, times, scores and texts of errors may differ.
"""

import argparse
import hashlib
import logging
import os
import sys
import tempfile
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from memory_mesh import MemoryMesh
from memory_mesh.integrations.mem0 import Memory

ANA = {"user_id": "ana"}
TURNS = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": "I love green tea", "name": "Ana"},
    {"role": "assistant", "content": "Noted, no coffee"},
]
FILM = {"kind": "film", "year": 2010, "title": "Sci-Fi 100%"}


def _add(text: Any = "Ana likes green tea", **given: Any) -> Callable[[Any], Any]:
    return lambda memory: memory.add(text, **{"infer": False, **ANA, **given})


def _listed(condition: Mapping[str, Any]) -> Callable[[Any], Any]:
    def call(memory: Any) -> Any:
        memory.add("alpha", **ANA, metadata=FILM, infer=False)
        memory.add("beta", **ANA, metadata={"kind": "game", "year": 2020}, run_id="r1", infer=False)
        memory.add("gamma", **ANA, agent_id="cook", infer=False)
        return memory.search("alpha beta gamma", filters={**ANA, **condition}, threshold=0)

    return call


def _after(use: Callable[[Any, str], Any], **given: Any) -> Callable[[Any], Any]:
    return lambda memory: use(memory, _add(**given)(memory)["results"][0]["id"])


CALLS: dict[str, Callable[[Any], Any]] = {
    "add a text": _add(),
    "add a message": _add({"role": "user", "content": "tea"}),
    "add messages": _add(TURNS),
    "add with an agent and a run": _add(agent_id="cook", run_id="r1", metadata={"k": 1}),
    "add for a number": _add(user_id=7),
    "add a text twice": lambda memory: (_add()(memory), _add()(memory)),
    "add with an expiry": _after(lambda memory, id_: memory.get(id_), expiration_date="2999-01-01"),
    "add without a scope": lambda memory: memory.add("x", infer=False),
    "add for a blank user": _add(user_id=" "),
    "add for a user with a space": _add(user_id="a b"),
    "add nothing": _add(None),
    "add an unknown memory_type": _add(memory_type="semantic"),
    "add with a timestamp": _add(timestamp=5),
    "add with a wrong expiry": _add(expiration_date="tomorrow"),
    "get": _after(lambda memory, id_: memory.get(id_), metadata={"k": 1}),
    "get an unknown id": lambda memory: memory.get("3f0c1f4e-1111-4111-8111-111111111111"),
    "get_all": lambda memory: (_add()(memory), memory.get_all(filters=ANA)),
    "get_all, at most one": lambda memory: (_add(TURNS)(memory),
                                            len(memory.get_all(filters=ANA, top_k=1)["results"])),
    "get_all without a scope": lambda memory: memory.get_all(filters={"k": 1}),
    "get_all of another user": lambda memory: (_add()(memory),
                                               memory.get_all(filters={"user_id": "bob"})),
    "update": _after(lambda memory, id_: (memory.update(id_, text="Ana likes coffee"),
                                          memory.get(id_))),
    "update metadata": _after(lambda memory, id_: (memory.update(id_, metadata={"k": 2}),
                                                   memory.get(id_))),
    "update nothing": _after(lambda memory, id_: memory.update(id_)),
    "update an unknown id": lambda memory: memory.update("3f0c1f4e-1111-4111-8111-111111111111",
                                                         text="x"),
    "delete": _after(lambda memory, id_: (memory.delete(id_), memory.get(id_))),
    "delete an unknown id": lambda memory: memory.delete("3f0c1f4e-1111-4111-8111-111111111111"),
    "delete_all": lambda memory: (_add()(memory), memory.delete_all(**ANA),
                                  memory.get_all(filters=ANA)),
    "delete_all without a scope": lambda memory: memory.delete_all(),
    "history": _after(lambda memory, id_: (memory.update(id_, text="tea"), memory.history(id_))),
    "reset": lambda memory: (_add()(memory), memory.reset(), memory.get_all(filters=ANA)),
    "search": lambda memory: (_add()(memory), memory.search("green tea", filters=ANA)),
    "search for nothing": lambda memory: memory.search(" ", filters=ANA),
    "search above one": lambda memory: memory.search("x", filters=ANA, threshold=1.5),
    "search for -1 results": lambda memory: memory.search("x", filters=ANA, top_k=-1),
    "search by a value": _listed({"kind": "film"}),
    "search by gte": _listed({"year": {"gte": 2010}}),
    "search by in": _listed({"kind": {"in": ["film", "x"]}}),
    "search by OR": _listed({"OR": [{"kind": "film"}, {"kind": "game"}]}),
    "search by NOT": _listed({"NOT": [{"kind": "film"}]}),
    "search by an unknown operator": _listed({"year": {"near": 2010}}),
}  # fmt: skip


class _Words:
    """An embedder of mem0: a number for each word."""

    def embed(self, text: str, *_: object) -> list[float]:
        vector = [0.001] * 256
        for word in text.lower().split():
            vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
        return vector

    def embed_batch(self, texts: list[str], *_: object) -> list[list[float]]:
        return [self.embed(text) for text in texts]


def _theirs(folder: str) -> Any:
    own = import_module("mem0").Memory
    store = {"path": folder, "embedding_model_dims": 256, "on_disk": True}
    openai = {"provider": "openai", "config": {"api_key": "none"}}
    memory = own.from_config({
        "vector_store": {"provider": "qdrant", "config": store},
        "llm": openai, "embedder": openai, "history_db_path": f"{folder}/history.db",
    })  # fmt: skip
    memory.embedding_model = _Words()
    return memory


_FREE = {"id", "memory_id", "created_at", "updated_at", "score"}  # values that differ


def _outcome(call: Callable[[Any], Any], memory: Any) -> Any:
    try:
        return _comparable(call(memory))
    except ValueError:
        return "ValueError"
    except Exception as error:  # noqa: BLE001 - the outcome of a call of another library
        return type(error).__name__


def _comparable(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return sorted((_comparable(one) for one in value), key=repr)
    if not isinstance(value, dict):
        return value
    # A key without a value says as much as no key.
    return {key: key in _FREE or _comparable(one) for key, one in value.items() if one is not None}


def main() -> int:
    """Print each call that differs, and how many are equal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mem0", required=True, metavar="DIR")
    sys.path.append(parser.parse_args().mem0)
    os.environ["MEM0_TELEMETRY"] = "false"
    logging.disable()
    equal = 0
    for name, call in CALLS.items():
        with (
            tempfile.TemporaryDirectory() as folder,
            MemoryMesh("memory://", embedder="none") as mesh,
        ):
            os.environ["MEM0_DIR"] = folder
            theirs, ours = _outcome(call, _theirs(folder)), _outcome(call, Memory(mesh))
        equal += theirs == ours
        if theirs != ours:
            print(f"{name}\n  mem0: {theirs}\n  ours: {ours}")
    print(f"{equal} of {len(CALLS)} calls")
    return 0


if __name__ == "__main__":
    sys.exit(main())
