"""Memories and queries for tests of the index: few different values, so that they coincide."""

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from struct import pack
from unittest.mock import patch

import pytest
from hypothesis import strategies as st

from memory_mesh.core.model import (
    ANYTHING,
    And,
    Compare,
    In,
    IsNull,
    Kind,
    Like,
    Not,
    Op,
    Or,
    Reader,
    Row,
    Value,
    Vector,
    Where,
    iso,
    partition_for,
)
from memory_mesh.core.ports import Index, Store
from memory_mesh.core.search.query import SIGNALS, Pool, Query
from memory_mesh.index.table import FACETS

from .reference import reference

WORDS = ("red", "apple", "carol", "漢字", "key", "c++")
SPEAKERS = ("Carol", "Bob Key", "漢字", "User", "assistant")
_FILTERED = (
    "session_id",
    "speaker",
    "status",
    "memory_type",
    "created_at",
    "event_time",
    "turn",
    "metadata.k",
)
_OPERANDS = (
    "a",
    "s",
    "global",
    "active",
    "Carol",
    "x",
    "",
    iso(0),
    iso(1),
    "1970",
    1,
    0.5,
    2,
    True,
    False,
)
LARGE = 1000  # a pool with room for every candidate


def memory(
    id_: str, text: str = "", *, vector: Sequence[float] = (), replaces: int = 0, **given: Value
) -> Row:
    """Return a memory with these words."""
    fields: dict[str, Value] = {
        "content": text or "x",
        "updated_at": iso(0),
        "status": "active",
        "memory_type": "global",
    }
    fields |= {"keywords": text.replace("?", "").split(), "agent_id": "a", **given}
    fields = {name: value for name, value in fields.items() if value is not None}
    scope = [fields.get(name) for name in ("user_id", "agent_id", "memory_type", "reach")]
    return Row(
        kind=Kind.MEMORY,
        id=id_,
        partition=partition_for(*(None if each is None else str(each) for each in scope)),
        created_at=iso(0),
        number=int("".join(char for char in id_ if char.isdigit()) or 0),
        revision=replaces + 1,
        replaces=replaces,
        fields=fields,
        vector=Vector.of("one", list(vector)) if vector else None,
    )


def asking(
    text: str = "", *, vector: Sequence[float] = (), reader: Reader | None = None, **given: object
) -> Query:
    """Return a query with these words."""
    packed = Vector.of("one", list(vector)) if vector else None
    return Query(
        tokens=text.split(),
        vector=packed,
        reader=reader or Reader(None, "a", "s"),
        at=iso(1000),
        **given,
    )  # type: ignore[arg-type]


# The first value is always 4, so that the vectors of neighbours never add up to zero and rounding
# stays small.
_values = st.tuples(st.just(4), st.integers(-3, 3), st.integers(-3, 3)).map(
    lambda each: [float(value) for value in each]
)
# Of few different numbers, so that some tokens are equal.
_token = st.tuples(st.sampled_from((-127, 0, 5, 127)), st.integers(0, 3), st.integers(0, 255)).map(
    lambda each: pack("48b", *([each[0]] * 24), *([each[1]] * 24)) + bytes([each[2]])
)
_tokens = st.just(b"") | st.lists(_token, max_size=3).map(b"".join)
_vectors = st.builds(
    lambda model, values, tokens: replace(Vector.of(model, values), tokens=tokens),
    st.sampled_from(("one", "one", "one", "two")),
    _values | st.just([0.0, 0.0, 0.0]) | st.just([1.0]),
    _tokens,
)


_FACETS: dict[str, st.SearchStrategy[Value]] = {
    "category": st.sampled_from(("a", "x", "")),
    "project": st.sampled_from(("a", "s")),
    "importance": st.sampled_from((0, 0.5, 1, 1.0)),
    "trust": st.sampled_from((0.5, 2)),
    "pinned": st.booleans(),
    "tags": st.lists(st.sampled_from(("a", "x", "s")), max_size=2),
    "metadata": st.fixed_dictionaries({}, optional={"k": st.sampled_from(("a", 1, True, None))}),
}


_VALIDITIES = (
    *[(None, None)] * 5, (None, iso(500)), (None, iso(999)), (iso(1000), None), (iso(2000), None),
    (iso(400), iso(450)),
)  # fmt: skip


@st.composite
def memories(draw: st.DrawFn, id_: str, replaces: int) -> Row:
    """Draw a memory of any scope, status, session and position in the session."""
    text = " ".join(draw(st.lists(st.sampled_from(WORDS), max_size=5))) + draw(
        st.sampled_from(("", "?", "? ", '?"'))
    )
    row = memory(
        id_,
        text,
        replaces=replaces,
        memory_type=draw(st.sampled_from(("global", "global", "agent", "session", "lesson", None))),
        reach=draw(st.sampled_from((None, None, "agent", "session"))),
        agent_id=draw(st.sampled_from(("a", "a", "b"))),
        session_id=draw(st.sampled_from(("s", "s", "t", None))),
        status=draw(st.sampled_from(("active", "active", "active", "quarantined", "archived"))),
        speaker=draw(st.none() | st.sampled_from(SPEAKERS)),
        turn=draw(st.none() | st.integers(0, 3)),
        event_time=draw(st.none() | st.integers(0, 2).map(iso)),
        expires_at=draw(st.sampled_from((None, None, None, iso(500), iso(1000), iso(1500)))),
        **dict(zip(("valid_from", "valid_until"), draw(st.sampled_from(_VALIDITIES)), strict=True)),
        **draw(st.fixed_dictionaries({}, optional=_FACETS)),
    )
    return _but(row, created_at=iso(draw(st.integers(0, 2))), vector=draw(st.none() | _vectors))


@st.composite
def passages(draw: st.DrawFn, id_: str, owner: Row, replaces: int) -> Row:
    """Draw a passage of a memory, in the partition of the memory."""
    return Row(
        kind=Kind.PASSAGE,
        id=id_,
        partition=owner.partition,
        created_at=iso(0),
        revision=replaces + 1,
        replaces=replaces,
        fields={"ref": owner.id},
        vector=draw(_vectors),
    )


def wheres() -> st.SearchStrategy[Where]:
    """Draw conditions on columns that an index has, and on some that it lacks (`id`, `turn`,
    metadata)."""
    operators: st.SearchStrategy[Op] = st.sampled_from(("=", "<>", "<", "<=", ">", ">="))
    columns, values = st.sampled_from((*FACETS, *_FILTERED)), st.sampled_from(_OPERANDS)
    leaf = st.one_of(
        st.builds(Compare, columns, operators, values),
        st.builds(In, columns, st.lists(values, max_size=3).map(tuple)),
        st.builds(Like, columns, st.sampled_from(("%", "a", "_", "19%", "%o%"))),
        st.builds(IsNull, columns),
        st.frozensets(st.sampled_from("abcdefgh")).map(lambda ids: In("id", tuple(sorted(ids)))),
    )
    parts = st.recursive(
        leaf,
        lambda part: st.one_of(_joined(And, part), _joined(Or, part), part.map(Not)),
        max_leaves=4,
    )
    return st.just(ANYTHING) | parts


def _joined(join: type[And] | type[Or], part: st.SearchStrategy[Where]) -> st.SearchStrategy[Where]:
    return st.lists(part, max_size=3).map(lambda parts: join(tuple(parts)))


@st.composite
def queries(draw: st.DrawFn) -> Query:
    words = draw(
        st.lists(st.sampled_from((*WORDS, "bob", "carl", "aple", "applle", "absent")), max_size=4)
    )
    return Query(
        tokens=words,
        vector=draw(
            st.none()
            | st.builds(
                lambda values, tokens: replace(Vector.of("one", values), tokens=tokens),
                st.lists(st.integers(-3, 3).map(float), min_size=3, max_size=3),
                _tokens,
            )
        ),
        reader=draw(
            st.sampled_from(
                (
                    Reader(None, "a", "s"),
                    Reader(None, "a", "t"),
                    Reader(None, "b"),
                    Reader(),
                    Reader("u", "a"),
                )
            )
        ),
        at=draw(st.sampled_from((iso(400), iso(1000), iso(2000)))),
        spans=draw(st.sampled_from(((), (), [(0.0, 1e-8)], [(-3.0, -1.0), (5.0, 9.0)]))),
        roles=draw(st.sampled_from(({}, {"bob": 1.0, "user": 0.5}))),
        names=draw(st.frozensets(st.sampled_from(words))) if words else frozenset(),
        personal=draw(st.booleans()),
        general=draw(st.booleans()),
        statuses=draw(st.sampled_from((("active",), ("active", "quarantined"), ("archived",)))),
        where=draw(wheres()),
        periods=draw(
            st.sampled_from(
                ((), [(iso(999), iso(999))], [(iso(1000), iso(1000)), (iso(300), iso(500))])
            )
        ),
    )


def find(index: Index, query: Query, *, size: int) -> Pool:
    return index.snapshot(query.reader).candidates(query, size=size)


def agrees(index: Index, store: Store, query: Query, *, size: int = LARGE) -> None:
    """Check that the signals of every candidate equal the reference, and that every memory that
    matches is a candidate."""
    rows = [*store.find(Kind.MEMORY), *store.find(Kind.PASSAGE)]
    pool, right = find(index, query, size=size), reference(rows, query)
    assert (pool.documents, dict(pool.excluded), pool.without_vector) == (
        right.documents,
        dict(right.excluded),
        right.without_vector,
    )
    assert len(set(pool.ids)) == len(pool.ids)
    assert set(pool.ids) <= right.signals.keys()
    assert set(pool.signals) == set(SIGNALS)
    for name in SIGNALS:
        values = dict(zip(pool.ids, pool.signals[name].tolist(), strict=True))
        rounding = 0.02 if name.startswith("vectors") else 1e-5
        assert values == pytest.approx(
            {id_: right.signals[id_][name] for id_ in pool.ids}, abs=rounding, rel=1e-5
        ), name
    if size >= right.documents:
        assert {id_ for id_, values in right.signals.items() if values["keywords"] > 0} <= set(
            pool.ids
        )
        assert query.vector is None or right.documents - right.without_vector <= len(pool.ids)


def tiny() -> AbstractContextManager[object]:
    """Lower the limits, so that a few memories already use packed bases, files and shortlists."""
    stack = ExitStack()
    for module, settings in {
        "local": {"MAX_UNPACKED": 3, "MIN_FILE_SIZE": 1, "BATCH": 2},
        "candidates": {"MAX_DENSE_POSTINGS": 0, "SHORT_LIST": 0, "MAX_FLAGS": 0},
        "space": {"MAX_EXACT": 1},
    }.items():
        stack.enter_context(patch.multiple(f"memory_mesh.index.{module}", **settings))  # type: ignore[arg-type]
    return stack


def _but(row: Row, **changed: object) -> Row:
    from dataclasses import replace

    return replace(row, **changed)  # type: ignore[arg-type]
