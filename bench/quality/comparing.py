"""The retrieval of other stores beside ours, with the same texts and the same vectors."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

from bench.peers import (
    LIMIT,
    Chroma,
    Hit,
    Lance,
    LangGraph,
    Make,
    Mem0,
    Text,
    floats,
    installed_versions,
)
from bench.quality.evaluating import OURS, ask
from bench.quality.measuring import FIGURES, figures, interval, mean
from bench.quality.sets import Question, Space
from bench.speed.peers import PEERS
from memory_mesh.core.model import batches
from memory_mesh.core.ports import Embedder

_BATCH = 500


class LanceHybrid(Lance):
    """LanceDB with its full-text index and its vectors, fused by its default reranker."""

    _indexed = False

    def search(self, query: str) -> list[Hit]:
        if not self._indexed:
            self._table.create_fts_index("text", replace=True)
            self._indexed = True
        request = (
            self._table.search(query_type="hybrid")
            .vector(floats(self._embedder, query))
            .text(query)
        )
        return [Hit(row["key"], row["text"]) for row in request.limit(LIMIT).to_list()]


class LangGraphSingly(LangGraph):
    """LangGraph's store; it refuses a batch in which a text occurs twice."""

    def add(self, items: Sequence[tuple[str, Text]]) -> None:
        for item in items:
            super().add([item])


# The packages of each store, and how to create it.
RETRIEVAL: Mapping[str, tuple[tuple[str, ...], Make]] = {
    "mem0 (infer=False, local Qdrant)": (PEERS["mem0 (infer=False, local Qdrant)"].packages, Mem0),
    "Chroma": (PEERS["Chroma (persistent)"].packages, Chroma),
    "LanceDB (hybrid, its default reranker)": (PEERS["LanceDB (no index)"].packages, LanceHybrid),
    "LangGraph InMemoryStore": (PEERS["LangGraph InMemoryStore"].packages, LangGraphSingly),
}


def measure_peers(sets: Mapping[str, Sequence[Space]], embedder: Embedder) -> dict[str, Any]:
    """Return for each data set the figures of each store, and of ours minus each."""
    result: dict[str, Any] = {}
    for name, spaces in sets.items():
        people = [space for space in spaces if space.questions]
        ours = [each.measured[OURS] for each in ask(name, people, embedder)]
        rows = {OURS: {"figures": mean(ours)}}
        for peer in RETRIEVAL:
            rows[peer] = _row(peer, people, embedder, ours)
        result[name] = {"questions": len(ours), "stores": rows}
    return result


def _row(
    peer: str, people: Sequence[Space], embedder: Embedder, ours: Sequence[Mapping[str, float]]
) -> dict[str, Any]:
    about, answered = ask_peer(peer, people, embedder)
    if "failure" in about:
        return about
    found = [figures(ids, question.gold) for question, ids in answered]
    ahead = {
        name: interval([one[name] for one in ours], [one[name] for one in found])
        for name in FIGURES
    }
    return {**about, "figures": mean(found), "ahead": ahead}


def ask_peer(
    peer: str, people: Sequence[Space], embedder: Embedder
) -> tuple[dict[str, Any], list[tuple[Question, list[str]]]]:
    """Return the versions of a store, and its answers to all questions; or why it failed, and no
    answers."""
    packages, make = RETRIEVAL[peer]
    versions = installed_versions(packages)
    if versions is None:
        return {"failure": "not installed"}, []
    start = monotonic()
    try:
        answered = [each for space in people for each in answers(make, space, embedder)]
    except Exception as error:  # noqa: BLE001  (any error of another library is reported in its line of the table)
        return {"failure": f"{type(error).__name__}: {error}"[:200]}, []
    print(f"{peer}: {len(answered):,} questions, {monotonic() - start:.0f} s", file=sys.stderr)
    return {"versions": versions}, answered


def answers(make: Make, space: Space, embedder: Embedder) -> list[tuple[Question, list[str]]]:
    """Return one person's questions, each with the ids that a store with that person's memories
    returns, best first."""
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        peer = make(Path(folder), embedder)
        for batch in batches(space.memories, _BATCH):
            peer.add([(said.id, said) for said in batch])
        found = [
            (question, [hit.key for hit in peer.search(question.text)])
            for question in space.questions
        ]
        peer.close()
    return found
