"""A store over the SQL functions of `functions.sql`: the methods of the port as calls with JSON."""

import json
import secrets
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from memory_mesh.core.model import ANYTHING, MOVING, WITH_VECTOR, Hit, In, Key, Kind, Row, Vector, Where
from memory_mesh.core.ports import Applied, Changes
from memory_mesh.core.search.lexical import K1, B, Corpus, Posting, best, bm25
from memory_mesh.core.search.scores import best_cosines
from memory_mesh.stores.base import BEGINNING, check_unique, mark_of, version_in
from memory_mesh.stores.postgres.candidates import FunctionSource
from memory_mesh.stores.postgres.segments import is_by_segment, partitions_in
from memory_mesh.stores.postgres.tables import condition, decoded, encoded, floats, vector_text

VERSION = 13  # of the schema; each has a step in `migrations`


class FunctionStore(ABC):
    """A store whose methods are functions of a database."""

    url: str
    index_folder: Path | None = None

    @property
    def candidate_source(self) -> FunctionSource:
        return FunctionSource(self._call)

    @abstractmethod
    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        """Call a function with a payload and return its answer: a list if it returns several rows.

        Return `empty` if the database has no tables of ours yet.
        """

    @abstractmethod
    def _write(self, tenant: str | None, payload: Mapping[str, object], *, is_logged: bool) -> dict[str, int]:
        """Call `mesh_apply` and return the new versions; `is_logged` says that the log tells afterwards whether it was done."""

    def apply(self, puts: Sequence[Row] = (), deletes: Sequence[Key] = (), *, seen: Mapping[str, int] | None = None) -> Applied:
        check_unique(puts, deletes)
        payload = {
            "nonce": secrets.token_hex(8),
            "seen": dict(seen or {}),
            "deletes": [{"kind": key.kind, "id": key.id} for key in deletes],
            "puts": [encoded(row, place) for place, row in enumerate(puts)],
        }
        tenants = {tenant_of(row.partition) for row in puts}
        tenant = tenants.pop() if len(tenants) == 1 else None
        versions = self._write(tenant, payload, is_logged=any(row.kind in MOVING for row in puts))
        return Applied(not (deletes or any(row.replaces for row in puts)), versions=versions)

    def version(self, partition: str) -> int:
        return self._state(partition, None)["version"] or 0

    def data_version(self) -> Hashable:
        version: Hashable = self._call("mesh_data_version", {}, None)
        return version

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        wanted = [id_ for id_ in ids if "\0" not in id_]
        found = {row.id: row for row in self.find(kind, In("id", tuple(wanted)))} if wanted else {}
        return {id_: found[id_] for id_ in wanted if id_ in found}

    def find(self, kind: Kind, where: Where = ANYTHING, *, limit: int | None = None, after: Row | None = None) -> list[Row]:
        page = {"limit": limit, "after": after and after.age_key}
        return [decoded(kind, values) for values in self._call("mesh_find", _about(kind, where) | page, [])]

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return int(self._call("mesh_count", _about(kind, where), 0))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return list(self._call("mesh_ids", _about(kind, where), []))

    def changes(self, partition: str, since: str | None = None) -> Changes:
        version = version_in(since)
        state = self._state(partition, version)
        now, moves = mark_of(state["version"] or 0, state["nonce"] or ""), state["moves"]
        if since == now:
            return Changes(now, ())
        if since == BEGINNING and moves and moves[0][0] == 1:
            new = moves
        elif version and moves and mark_of(*moves[0][:2]) == since:
            new = moves[1:]
        else:
            return Changes(now, None)
        return Changes(now, [Key(Kind(kind), id_) for _, _, kind, id_ in new])

    def nearest(self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        payload: dict[str, object] = {
            "model": vector.model,
            "dimension": vector.dimension,
            "vector": vector_text(vector.data),
            "limit": limit,
            "with_vectors": True,
        }
        if kind not in WITH_VECTOR:
            return []
        payload["by_segment"] = kind is Kind.MEMORY and is_by_segment(where)
        rows = self._call("mesh_nearest", _about(kind, where) | payload, [])
        return best_cosines(vector.data, [(owner, floats(data)) for owner, data in rows], limit)

    def matching(self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int) -> list[Hit]:
        counts = Counter(token for token in tokens if "\0" not in token)
        payload = {
            "tokens": [*counts], "weights": [*counts.values()], "k1": K1, "b": B, "limit": limit,
            "visible": condition(visible), "by_segment": is_by_segment(visible), "where": condition(where),
            "partitions": partitions_in(visible),
        }  # fmt: skip
        found = self._call("mesh_matching", payload, None) if counts else None
        return [Hit(*one) for one in _scored(found, counts)[:limit]] if found else []

    def _state(self, partition: str, version: int | None) -> Any:
        empty = {"version": 0, "nonce": "", "moves": []}
        return self._call("mesh_changes", {"partition": partition, "version": version}, empty) or empty


@lru_cache(maxsize=1024)
def tenant_of(partition: str) -> str | None:
    """Return the user of a partition as `mesh_tenant` does: None for rows of the whole store, '' for rows without a user."""
    if not partition:
        return None
    try:
        parts = json.loads(partition)
    except ValueError:
        return ""
    user = parts[-2] if isinstance(parts, list) and len(parts) > 1 else None
    return "" if user is None else user if isinstance(user, str) else None


def _about(kind: Kind, where: Where) -> dict[str, object]:
    return {"kind": kind, "where": condition(where)}


def _scored(found: Mapping[str, Any], counts: Counter[str]) -> list[tuple[str, float]]:
    """Return the ids and BM25 scores of what `mesh_matching` found, best first."""
    postings = {
        token: [Posting(id_, times[place], length) for id_, length, times in found["found"] if times[place]]
        for place, token in enumerate(counts)
    }
    corpus, frequencies = Corpus(found["documents"], found["length"]), dict(zip(counts, found["frequencies"], strict=True))
    return best(bm25(postings, corpus, counts.elements(), frequencies))
