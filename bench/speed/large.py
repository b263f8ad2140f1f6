"""Measure memory-mesh with hundreds of thousands of memories, of one agent or spread over many.

The first memories are stored by `add_many`, which is timed. The others are written to the store as
rows, without audit blocks: a million audited writes take half an hour. No texts and vectors are
kept in memory: a vector is made again from its hash.
"""

from array import array
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import NamedTuple

import numpy as np

from bench.speed.embedding import Floats, PreparedEmbedder, seed_of
from bench.speed.measuring import seconds, time_calls
from bench.speed.ours import CALLS, LIMIT, WARM_UP, Figures, engine, recall_of, url
from bench.speed.texts import Conversations, Item
from memory_mesh import MemoryMesh
from memory_mesh.core.model import Memory, MemoryType, Row, Vector, batches, iso, parse_time
from memory_mesh.core.model.where import Reader
from memory_mesh.core.search import tokens
from memory_mesh.index import LocalIndex
from memory_mesh.models import MODEL
from memory_mesh.stores import open_store

FROM = 200_000  # memories; up to here, `ours` stores all of them by `add_many`
_TIMED, _BATCH, _SAMPLE = 5_000, 5_000, 20_000
_ACTIVE = 50  # agents that search, if there are many
_RECALLS = 40
_START = 1_750_000_000_000


class _Asked(NamedTuple):
    """A query and the agent that asks it."""

    agent: int
    query: str


class Large:
    """A store with many memories, in blocks of equal size for each agent."""

    def __init__(self, folder: Path, count: int, agents: int) -> None:
        self.count, self.agents, self.folder = count, agents, folder
        self.embedder, self._conversations = PreparedEmbedder(), Conversations()
        self._turns = self._conversations.turns()
        self.mesh = MemoryMesh(store=url(folder), embedder=self.embedder, agent_id=self.name(0))
        self.handles = [
            self.mesh.scoped(agent_id=self.name(agent)) for agent in range(min(agents, _ACTIVE))
        ]
        self.seeds, self.ids, self._sample = array("Q"), list[str](), list[Item]()

    def name(self, agent: int) -> str:
        return f"agent{agent:04}"

    def ingest(self) -> float:
        """Store everything; return how many memories `add_many` stores in a second."""
        first = [*islice(self._turns, _TIMED)]
        self._remember(first)
        taken = 0.0
        for batch in batches(first, 500):
            self.embedder.prepare(item.text for item in batch)
            taken += seconds(lambda batch=batch: self._add(batch))  # type: ignore[misc]
        with closing(open_store(url(self.folder))) as store:
            for items in batches(islice(self._turns, self.count - _TIMED), _BATCH):
                start = len(self.seeds)
                self._remember(items)
                store.apply([self._row(item, at) for at, item in enumerate(items, start)])
        return _TIMED / taken

    def queries(self) -> list[_Asked]:
        """Return queries with words of the memories that were stored first, each asked by the
        agent that has the memory."""
        blocks = [
            self._sample[at : at + self._size] for at in range(0, len(self._sample), self._size)
        ][: len(self.handles)]
        made = [self._conversations.queries(blocks[at % len(blocks)], 1)[0] for at in range(CALLS)]
        self.embedder.prepare(made)
        return [_Asked(at % len(blocks), query) for at, query in enumerate(made)]

    def search(self, asked: _Asked, filter: str | None = None) -> int:
        return len(self.handles[asked.agent].search(asked.query, LIMIT, filter, use_cache=False))

    def new_items(self, count: int) -> Iterator[Item]:
        for item in islice(self._turns, count):
            self.embedder.prepare([item.text])
            yield item

    def add(self, item: Item) -> None:
        self.handles[0].add(item.text, {**item.metadata, "type": self._type})

    def after_writes(self, asked: Sequence[_Asked]) -> Iterator[_Asked]:
        """Yield queries, each directly after an add."""
        for item, (_, query) in zip(self.new_items(len(asked)), asked, strict=True):
            self.add(item)
            self.embedder.prepare([query])
            yield _Asked(0, query)

    def recall(self, asked: Sequence[_Asked]) -> float:
        """Return the fraction of the ten nearest vectors of an agent that the index finds."""
        with closing(open_store(url(self.folder))) as store:
            index = LocalIndex(store)
            found = []
            for agent, query in asked:
                block = range(agent * self._size, (agent + 1) * self._size)
                ids = {self.ids[at] for at in self._nearest(self.embedder.floats(query), block)}
                found.append(
                    recall_of(
                        index,
                        Reader(None, self.name(agent), None),
                        self.embedder.embed([query])[0],
                        ids,
                    )
                )
            return mean(found)

    @property
    def _size(self) -> int:
        return self.count // self.agents

    @property
    def _type(self) -> str:
        return (MemoryType.AGENT if self.agents > 1 else MemoryType.GLOBAL).value

    def _remember(self, items: Sequence[Item]) -> None:
        self.seeds.extend(seed_of(item.text) for item in items)
        self._sample += items[: max(0, _SAMPLE - len(self._sample))]

    def _add(self, items: Sequence[Item]) -> None:
        by_agent: dict[int, list[Item]] = {}
        for at, item in enumerate(items, len(self.ids)):
            by_agent.setdefault(at // self._size, []).append(item)
        for agent, own in by_agent.items():
            records = self.handles[agent].add_many(
                [(item.text, {**item.metadata, "type": self._type}) for item in own]
            )
            self.ids += [record.id for record in records]

    def _row(self, item: Item, at: int) -> Row:
        when, given = iso(_START + at), item.metadata
        memory = Memory(
            id=f"mem_{_START + at}_{at:06x}", content=item.text, metadata=dict(given),
            created_at=when, updated_at=when, last_observed=when,
            agent_id=self.name(at // self._size), session_id=given["session_id"],
            speaker=given["speaker"], turn=given["turn"],
            event_time=parse_time(given["event_time"], "event_time"), keywords=tokens(item.text),
            number=at, vector=Vector(MODEL, self.embedder.of_seed(self.seeds[at]).tobytes()),
            memory_type=self._type,
        )  # fmt: skip
        self.ids.append(memory.id)
        return memory.row()

    def _nearest(self, vector: Floats, block: range) -> list[int]:
        best: list[tuple[float, int]] = []
        for some in batches(block, _BATCH):
            cosines = np.stack([self.embedder.of_seed(self.seeds[at]) for at in some]) @ vector
            best = sorted([*best, *zip(cosines.tolist(), some, strict=True)], reverse=True)[:LIMIT]
        return [at for _, at in best]


def measure_large(count: int, agents: int, folder: Path) -> Figures:
    """Measure writes and searches at a size. The store is left in the folder."""
    large = Large(folder, count, agents)
    with large.mesh:
        rate = large.ingest()
        asked = large.queries()
        index_s = seconds(lambda: large.search(asked[0]))
        hits = mean(large.search(each) for each in asked[: max(WARM_UP, len(large.handles))])
        search = time_calls(large.search, asked)
        filtered = time_calls(
            lambda each: large.search(each, "speaker = 'Mara' AND turn < 12"), asked
        )
        # Making a million vectors takes half a minute.
        recall = large.recall(asked[: _RECALLS if agents > 1 else 4])
        return Figures(
            memories=count, agents=agents, engine=engine(count // agents),
            ingest_per_s=round(rate, 1), index_ms=round(index_s * 1000, 1), search=search,
            hits=round(hits, 1), recall_at_10=round(recall, 4), filtered=filtered,
            add=time_calls(large.add, large.new_items(CALLS)),
            after_write=time_calls(large.search, large.after_writes(asked[: CALLS // 2])),
        )  # fmt: skip
