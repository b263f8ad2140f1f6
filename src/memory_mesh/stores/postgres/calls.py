"""A store over the SQL functions of `functions.sql` and `search.sql`: each method is a call."""

import json
import secrets
from abc import ABC, abstractmethod
from array import array
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate, chain
from math import isfinite
from pathlib import Path
from struct import pack
from typing import Any

from memory_mesh.core.errors import StoreCorrupt, shown
from memory_mesh.core.model import (
    ANYTHING,
    MOVING,
    WITH_VECTOR,
    And,
    Anything,
    Compare,
    Hit,
    In,
    IsNull,
    Key,
    Kind,
    Like,
    Not,
    Or,
    Row,
    Scalar,
    Vector,
    Where,
    columns_in,
)
from memory_mesh.core.ports import Applied, Assumed, Changes
from memory_mesh.core.search.candidates import (
    INDEXED,
    Conditions,
    Found,
    FoundRows,
    IndexedRows,
    SessionKey,
    SessionTotals,
    Statistics,
)
from memory_mesh.core.search.lexical import (
    K1,
    B,
    Corpus,
    Posting,
    best,
    best_cosines,
    bm25,
)
from memory_mesh.stores.base import check_unique, mark_of, moves_after, version_in
from memory_mesh.stores.postgres.tables import (
    COLUMNS,
    decoded,
    encoded,
    floats,
    vector_text,
)

_PAGE = 2000  # rows of an index that are read together
_STEPS = 2  # neighbours on each side of what a search finds


# --- conditions ---


def condition(where: Where) -> object:
    """Return a condition as the JSON that `mesh_condition` reads."""
    match where:
        case Anything():
            return True
        case Compare(column, op, value):
            return [op, column, [_literal(value)]]
        case In(column, values):
            return ["in", column, [_literal(value) for value in values]]
        case Like(column, pattern):
            return ["like", column, [pattern]]
        case IsNull(column):
            return ["null", column]
        case And(parts):
            return ["and", [condition(part) for part in parts]]
        case Or(parts):
            return ["or", [condition(part) for part in parts]]
        case Not(part):
            return ["not", condition(part)]


def _literal(value: Scalar) -> object:
    """Return a literal as JSON, which has no number for infinity."""
    if isinstance(value, float) and not isfinite(value):
        return {"real": "Infinity" if value > 0 else "-Infinity"}
    return value


def is_by_segment(where: Where) -> bool:
    """Return whether a condition is true of all memories of a segment or of none: it reads no
    other column."""
    return columns_in(where) <= {"partition", *COLUMNS}


def partitions_in(where: Where) -> list[str] | None:
    """Return the partitions to which a condition limits its rows; None if it does not name them."""
    for part in where.parts if isinstance(where, And) else (where,):
        if isinstance(part, In) and part.column == "partition":
            return [str(name) for name in part.values]
        if isinstance(part, Compare) and part.column == "partition" and part.op == "=":
            return [str(part.value)]
    return None


# --- searching in the database ---
# Each method of `CandidateSource` calls one function of `search.sql`. The words of a memory are its
# stored keywords.


class FunctionSource:
    """A `CandidateSource` over a function that calls a SQL function with a payload; see
    `FunctionStore._call`."""

    def __init__(self, call: Callable[[str, Mapping[str, object], Any], Any]) -> None:
        self._call = call

    def search(
        self,
        conditions: Conditions,
        words: Mapping[str, float],
        names: Collection[str],
        vector: Vector | None,
        *,
        limit: int,
    ) -> Found:
        """Return the best memories for words and a vector, and what their scores depend on."""
        counted = (conditions.visible, conditions.with_status, conditions.readable)
        tokens = _stored(words)
        payload: dict[str, object] = {
            "visible": condition(conditions.visible),
            "with_status": condition(conditions.with_status),
            "readable": condition(conditions.readable),
            "allowed": condition(conditions.allowed),
            "partitions": partitions_in(conditions.visible),
            "words": _stored([*words, *names]),
            "tokens": tokens, "weights": [words[token] for token in tokens], "k1": K1, "b": B,
            "by_segment": all(map(is_by_segment, counted)),
            "is_allowed_by_segment": is_by_segment(conditions.allowed),
            "limit": limit, "steps": _STEPS,
            **(_near(vector) if vector else {}),
        }  # fmt: skip
        answer = self._call("mesh_search", payload, [])
        return _found(answer) if answer else Found()

    def count_words(self, where: Where, words: Collection[str]) -> Mapping[str, int]:
        """Return how many of the memories that meet a condition contain each word."""
        payload = {
            "where": condition(where),
            "by_segment": is_by_segment(where),
            "partitions": partitions_in(where),
            "words": _stored(words),
        }
        return self._call("mesh_count_words", payload, None) or {}

    def speakers(self, where: Where) -> Collection[tuple[str, str]]:
        """Return each partition and speaker of the memories that meet a condition."""
        found = (
            self._call(
                "mesh_speakers",
                {"where": condition(where), "by_segment": is_by_segment(where)},
                None,
            )
            or []
        )
        return {(partition, speaker) for partition, speaker in found}

    def index_rows(self, kind: Kind, partition: str) -> Iterator[IndexedRows]:
        """Yield what an index in memory needs of the rows of a kind in a partition, newest
        first."""
        last: list[object] | None = None
        while True:
            payload = {"kind": kind, "partition": partition, "limit": _PAGE, "after": last}
            found = self._call("mesh_indexed", payload, [])
            if found:
                rows = _indexed(kind, found)
                yield rows
                last = [rows.columns[name][-1] for name in ("created_at", "number", "id")]
            if len(found) < _PAGE:
                return


def _indexed(kind: Kind, rows: Sequence[Sequence[Any]]) -> IndexedRows:
    """Return the rows of `mesh_indexed`, of which there is at least one."""
    *values, vectors, models, tokens = zip(*rows, strict=True)
    columns = dict(zip(INDEXED, values, strict=True))
    for name in ("keywords", "tags", "entities"):
        for id_, items in zip(columns["id"], columns[name], strict=True):
            if items and {*map(type, items)} != {str}:  # NULL, or a list of lists: edited by hand
                raise StoreCorrupt(
                    f"the {kind} {shown(id_)} cannot be read: unexpected {name}",
                    remedy="restore a backup",
                )
    packed = [_binary(data or b"") for data in vectors]
    # All together, which takes a tenth of the time.
    numbers = array("f", b"".join(packed))
    numbers.byteswap()
    swapped, ends = numbers.tobytes(), accumulate(map(len, packed))
    return IndexedRows(
        columns,
        [
            Vector.stored(model, swapped[end - len(data) + 4 : end], column)
            if data and model is not None
            else None
            for data, end, model, column in zip(packed, ends, models, tokens, strict=True)
        ],
    )


def _found(answer: Sequence[Sequence[Any]]) -> Found:
    """Return what `mesh_search` found."""
    rows: dict[tuple[str, str], list[tuple[list[Any], Sequence[Any]]]] = {}
    (_, counts, *_), *others = answer
    for part, text, *values in others:
        partition, *facts = json.loads(text)
        rows.setdefault((part, partition), []).append((facts, values))
    read = json.loads(counts)
    empty = IndexedRows.of([])
    return Found(
        statistics=Statistics(
            **read["numbers"], corpus=Corpus(*read["corpus"]), counts=read["counts"] or {},
            sessions=Corpus(*read["sessions"]), session_counts=read["session_counts"] or {},
        ),
        rows={
            partition: FoundRows(
                _indexed(Kind.MEMORY, [values for _, values in found]),
                _indexed(Kind.PASSAGE, [values for _, values in passages]) if passages else empty,
                [place for (place, _), _ in found],
                [is_allowed for (_, is_allowed), _ in found],
            )
            for (part, partition), found in rows.items()
            if part == "memory"
            for passages in [rows.get(("passage", partition), [])]
        },
        sessions={
            SessionKey(partition, session): SessionTotals(
                length, Counter(chain.from_iterable(words or ())), cosine
            )
            for partition, session, length, words, cosine in read["found_sessions"] or ()
        },
    )  # fmt: skip


def _binary(packed: bytes | str) -> bytes:
    """Return bytes, which are base64 over HTTP."""
    return b64decode(packed) if isinstance(packed, str) else packed


def _stored(texts: Collection[str]) -> list[str]:
    """Return the texts that can be stored, each once. PostgreSQL has no character 0."""
    return [text for text in dict.fromkeys(texts) if "\0" not in text]


# --- the store ---


class FunctionStore(ABC):
    """A store whose methods are functions of a database."""

    url: str
    index_folder: Path | None = None
    checks_assumptions = True

    @property
    def candidate_source(self) -> FunctionSource:
        return FunctionSource(self._call)

    @abstractmethod
    def _call(self, function: str, payload: Mapping[str, object], empty: Any) -> Any:
        """Call a function with a payload and return its answer: a list if it returns several rows.

        Return `empty` if the database has no tables of ours yet.
        """

    @abstractmethod
    def _write(
        self, tenant: str | None, payload: Mapping[str, object], puts: Sequence[Row]
    ) -> dict[str, Any]:
        """Call `mesh_apply` with a payload and these rows, and return its answer."""

    def apply(
        self,
        puts: Sequence[Row] = (),
        deletes: Sequence[Key] = (),
        *,
        seen: Mapping[str, int] | None = None,
        assumed: Assumed | None = None,
    ) -> Applied:
        check_unique(puts, deletes)
        payload: dict[str, object] = {
            "nonce": secrets.token_hex(8),
            "seen": dict(seen or {}),
            "deletes": [{"kind": key.kind, "id": key.id} for key in deletes],
        }
        if assumed:
            same = [encoded(row, place) for place, row in enumerate(assumed.rows)]
            payload |= {"unused": [*assumed.unused], "same": same}
        tenants = {tenant_of(row.partition) for row in puts}
        tenant = tenants.pop() if len(tenants) == 1 else None
        answer = self._write(tenant, payload, puts)
        is_freed = not (deletes or any(row.replaces for row in puts))
        return Applied(is_freed, answer.get("before"), answer.get("after"), answer["versions"])

    def version(self, partition: str) -> int:
        return self._state(partition, None)["version"] or 0

    def data_version(self) -> Hashable:
        version: Hashable = self._call("mesh_data_version", {}, None)
        return version

    def get(self, kind: Kind, ids: Sequence[str]) -> dict[str, Row]:
        wanted = [id_ for id_ in ids if "\0" not in id_]
        found = {row.id: row for row in self.find(kind, In("id", tuple(wanted)))} if wanted else {}
        return {id_: found[id_] for id_ in wanted if id_ in found}

    def find(
        self,
        kind: Kind,
        where: Where = ANYTHING,
        *,
        limit: int | None = None,
        after: Row | None = None,
    ) -> list[Row]:
        page = {"limit": limit, "after": after and after.age_key}
        return [
            decoded(kind, values)
            for values in self._call("mesh_find", _about(kind, where) | page, [])
        ]

    def count(self, kind: Kind, where: Where = ANYTHING) -> int:
        return int(self._call("mesh_count", _about(kind, where), 0))

    def ids(self, kind: Kind, where: Where = ANYTHING) -> list[str]:
        return list(self._call("mesh_ids", _about(kind, where), []))

    def tally(
        self,
        kind: Kind,
        columns: Sequence[str],
        where: Where = ANYTHING,
        *,
        length: int | None = None,
    ) -> dict[str | None, int]:
        payload = {
            **_about(kind, where),
            "columns": columns,
            "length": length,
            "by_segment": kind is Kind.MEMORY and {*columns} <= {*COLUMNS} and is_by_segment(where),
        }
        found: list[tuple[str | None, int]] = self._call("mesh_tally", payload, None) or []
        return dict(found)

    def changes(self, partition: str, since: str | None = None) -> Changes:
        state = self._state(partition, version_in(since))
        now = mark_of(state["version"] or 0, state["nonce"] or "")
        return moves_after(now, since, state["moves"] or ())

    def nearest(
        self, kind: Kind, vector: Vector, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        if kind not in WITH_VECTOR:
            return []
        payload = {
            **_about(kind, where),
            **_near(vector),
            "limit": limit,
            "with_vectors": True,
            "by_segment": kind is Kind.MEMORY and is_by_segment(where),
        }
        rows = self._call("mesh_nearest", payload, [])
        return best_cosines(vector.data, [(owner, floats(data)) for owner, data in rows], limit)

    def matching(
        self, tokens: Sequence[str], visible: Where, where: Where = ANYTHING, *, limit: int
    ) -> list[Hit]:
        counts = Counter(token for token in tokens if "\0" not in token)
        payload = {
            "tokens": [*counts], "weights": [*counts.values()], "k1": K1, "b": B, "limit": limit,
            "visible": condition(visible), "by_segment": is_by_segment(visible),
            "where": condition(where), "partitions": partitions_in(visible),
        }  # fmt: skip
        found = self._call("mesh_matching", payload, None) if counts else None
        return [Hit(*one) for one in _scored(found, counts)[:limit]] if found else []

    def _state(self, partition: str, version: int | None) -> Any:
        empty = {"version": 0, "nonce": "", "moves": []}
        return (
            self._call("mesh_changes", {"partition": partition, "version": version}, empty) or empty
        )


def packed_vectors(rows: Sequence[Row], type_: int) -> bytes:
    """Return the vector of each row, or NULL, as an array in the binary format of the server.
    Writing and reading numbers as text would take a third of the time of a write.

    `type_` is the number of the type `vector`, which each database has its own for.
    """
    parts = [pack(">iiIii", 1, 1, type_, len(rows), 1)]  # one dimension, with NULLs, from 1 on
    for row in rows:
        if row.vector is None:
            parts.append(b"\xff\xff\xff\xff")
            continue
        numbers = array("f", row.vector.data)
        numbers.byteswap()
        parts += [pack(">ihh", 4 + 4 * len(numbers), len(numbers), 0), numbers.tobytes()]
    return b"".join(parts)


def is_logged(puts: Sequence[Row]) -> bool:
    """Return whether the log of moves tells afterwards that a change was done."""
    return any(row.kind in MOVING for row in puts)


@lru_cache(maxsize=1024)
def tenant_of(partition: str) -> str | None:
    """Return the user of a partition as `mesh_tenant` does: None for rows of the whole store, ''
    for rows without a user."""
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


def _near(vector: Vector) -> dict[str, object]:
    return {
        "model": vector.model,
        "dimension": vector.dimension,
        "vector": vector_text(vector.data),
    }


def _scored(found: Mapping[str, Any], counts: Counter[str]) -> list[tuple[str, float]]:
    """Return the ids and BM25 scores of what `mesh_matching` found, best first."""
    postings = {
        token: [
            Posting(id_, times[place], length)
            for id_, length, times in found["found"]
            if times[place]
        ]
        for place, token in enumerate(counts)
    }
    corpus, frequencies = (
        Corpus(found["documents"], found["length"]),
        dict(zip(counts, found["frequencies"], strict=True)),
    )
    return best(bm25(postings, corpus, counts.elements(), frequencies))
