"""What a store should do, said with a dict: the other side of the comparison in `machine`. Slow, plain, and no store itself."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from memory_mesh.core.errors import Conflict, IdTaken, InvalidInput, MemoryMeshError
from memory_mesh.core.model.columns import MOVING, Kind
from memory_mesh.core.model.rows import Key, Row, Vector
from memory_mesh.core.model.where import Where
from memory_mesh.core.search import Corpus, Posting, bm25
from memory_mesh.testing.contract.keywords import keywords
from memory_mesh.testing.contract.vectors import cosine


class Model:
    """Rows by key, and for each partition what moved in it."""

    def __init__(self) -> None:
        self.rows: dict[Key, Row] = {}
        self.moves: defaultdict[str, list[Key]] = defaultdict(list)

    def version(self, partition: str) -> int:
        return len(self.moves[partition])

    def faults(self, puts: Sequence[Row], deletes: Sequence[Key], seen: Mapping[str, int]) -> set[type[MemoryMeshError]]:
        """Every reason to refuse a change; a store may name any one of them."""
        found: set[type[MemoryMeshError]] = set()
        keys = [*(row.key for row in puts), *deletes]
        if len(keys) != len({*keys}):
            found.add(InvalidInput)
        if any(self.version(partition) != version for partition, version in seen.items()):
            found.add(Conflict)
        for row in puts:
            held = self.rows.get(row.key)
            if row.replaces == 0 and held:
                found.add(IdTaken)
            if row.replaces and (held is None or held.revision != row.replaces):
                found.add(Conflict)
        return found

    def apply(self, puts: Sequence[Row], deletes: Sequence[Key]) -> None:
        for key in deletes:
            self._move(key, self.rows.pop(key, None))
        for row in puts:
            self._move(row.key, self.rows.get(row.key), row)
            self.rows[row.key] = replace(row, replaces=0)

    def find(self, kind: Kind, where: Where) -> list[Row]:
        found = [row for row in self.rows.values() if row.kind is kind and where.matches(row)]
        return sorted(found, key=lambda row: (row.created_at, row.number, row.id), reverse=True)

    def nearest(self, kind: Kind, vector: Vector, where: Where) -> dict[str, float]:
        """The score of each row that can be compared."""
        best: dict[str, float] = {}
        owners = {row.id for row in self.find(kind, where)}
        for row in self.rows.values():
            owner = row.id if row.kind is kind else self._spoken_for(row, kind)
            if owner in owners and row.vector and _comparable(row.vector, vector):
                best[owner] = max(best.get(owner, -2.0), cosine(row.vector, vector))
        return best

    def matching(self, tokens: Sequence[str], partitions: Sequence[str], where: Where) -> dict[str, float]:
        """The score of each memory that holds one of the tokens."""
        among = [row for row in self.rows.values() if row.kind is Kind.MEMORY and row.partition in partitions]
        words = {row.id: keywords(row) for row in among if keywords(row)}
        corpus = Corpus(len(words), sum(map(len, words.values())))
        postings = {
            token: [Posting(id_, each.count(token), len(each)) for id_, each in words.items() if token in each]
            for token in {*tokens}
        }
        shown = {row.id for row in among if where.matches(row)}
        return {id_: score for id_, score in bm25(postings, corpus, tokens).items() if id_ in shown}

    def _move(self, key: Key, *ends: Row | None) -> None:
        for partition in {row.partition for row in ends if row} if key.kind in MOVING else ():
            self.moves[partition].append(key)

    def _spoken_for(self, row: Row, kind: Kind) -> str | None:
        passage = kind is Kind.MEMORY and row.kind is Kind.PASSAGE
        return str(row.value("ref")) if passage and row.value("ref") is not None else None


def _comparable(left: Vector, right: Vector) -> bool:
    return (left.model, left.dimension) == (right.model, right.dimension)
