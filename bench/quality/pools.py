"""Pools for training, computed by the real index from rows in memory, one world at a time."""

from dataclasses import replace

from bench.quality.lessons import World
from bench.quality.sets import Said
from memory_mesh.core.model import Kind, MemoryType, Reader, Row, Vector, partition_for
from memory_mesh.core.ports import Embedder
from memory_mesh.core.search import Pool, Query, tokens
from memory_mesh.core.search.people import proper_names, speaker_roles, without_speakers
from memory_mesh.core.search.times import time_spans
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore

_SIZE = 150
_READER = Reader(None, "learner", None)
_PARTITION = partition_for(None, "learner", MemoryType.GLOBAL, None)


def pool(world: World, embedder: Embedder, *, by_vectors: bool) -> Pool:
    """Return the candidates for a world's question."""
    texts = [said.text for said in world.memories]
    vectors = embedder.embed(texts)
    store = RamStore()
    store.apply([_row(said, number, vector) for number, (said, vector) in enumerate(zip(world.memories, vectors, strict=True))])
    snapshot = LocalIndex(store).snapshot(_READER)
    text, at = world.question.text, world.question.at
    query = Query(
        tokens=tokens(text),
        vector=None,
        reader=_READER,
        at=at,
        spans=time_spans(text, at),
        roles=speaker_roles(text),
        names=proper_names(text),
    )
    if by_vectors:
        [vector] = embedder.embed([without_speakers(text, snapshot.speakers(query))])
        query = replace(query, vector=vector)
    return snapshot.candidates(query, size=_SIZE)


def _row(said: Said, number: int, vector: Vector) -> Row:
    fields = {
        "content": said.text,
        "keywords": tokens(said.text),
        "agent_id": _READER.agent_id,
        "memory_type": MemoryType.GLOBAL,
        "status": "active",
        "updated_at": said.at,
        **said.metadata,
    }
    return Row(
        kind=Kind.MEMORY, id=said.id, partition=_PARTITION, created_at=said.at, number=number, fields=fields, vector=vector
    )
