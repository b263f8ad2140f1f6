"""Two times: what was valid, and what was believed; and which of several claims a question asks
for."""

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import InvalidInput, MemoryMesh
from memory_mesh.core.claims import Claim
from memory_mesh.core.model import iso
from memory_mesh.flows.write import write
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import NEW_YEAR

from .house import House

DAY = 86_400_000


def day(n: int) -> str:
    return iso(NEW_YEAR + n * DAY)


def found(mesh: MemoryMesh, query: str, **options: object) -> list[str]:
    return [hit.content for hit in mesh.search(query, use_cache=False, **options)]


def believe(
    house: House, text: str, value: str, predicate: str = "employer", **columns: object
) -> str:
    """Store a text as a claim about Ana, without the gate, and return its id."""
    claim = Claim(
        subject="Ana",
        predicate=predicate,
        value=value,
        exclusive=bool(columns.pop("exclusive", True)),
    )
    id_ = house.mesh().add(text).id
    house.change(id_, claim=claim.columns["claim"], claim_key=claim.key, **columns)
    return id_


# --- as_of and known_at ---


@pytest.mark.parametrize(
    "given", [day(5), "2026-01-06", date(2026, 1, 6), datetime(2026, 1, 6, tzinfo=UTC)]
)
def test_known_at_shows_what_was_stored_then_with_its_words_of_then(
    house: House, given: object
) -> None:
    mesh = house.mesh()
    port = mesh.add("The database listens on port 5432", {"tags": ["ops"]})
    house.clock.advance(days=10)
    mesh.update(port.id, content="The database listens on port 5433", metadata={"tags": ["db"]})
    mesh.add("The database has a replica")
    assert set(found(mesh, "database port")) == {
        "The database listens on port 5433",
        "The database has a replica",
    }
    [then] = mesh.search("database port", known_at=given)
    assert (then.content, then.tags, then.revision, then.updated_at) == (
        "The database listens on port 5432",
        ["ops"],
        1,
        day(0),
    )
    assert found(mesh, "database port", known_at=given, filter="tags = 'ops'") == [then.content]
    assert found(mesh, "database port", known_at=given, filter="tags = 'db'") == []
    assert found(mesh, "database port", filter="tags = 'db'") == [
        "The database listens on port 5433"
    ]
    assert found(mesh, "database port", known_at=day(-1)) == []


def test_known_at_shows_what_was_archived_or_expired_since(house: House) -> None:
    mesh = house.mesh(session_id="s")
    mesh.add("The deploy of today is paused", {"type": "session"})
    mesh.add("The deploy freeze", {"expires_at": day(3)})
    house.clock.advance(days=10)
    mesh.end_session("s")
    assert found(mesh, "deploy") == []
    assert set(found(mesh, "deploy", known_at=day(1))) == {
        "The deploy of today is paused",
        "The deploy freeze",
    }
    assert found(mesh, "deploy", known_at=day(4)) == ["The deploy of today is paused"]
    assert found(house.mesh(), "deploy", known_at=day(4)) == []  # of another session


def test_known_at_never_shows_what_the_reader_could_not_see_then(house: House) -> None:
    private = house.mesh("bob").add("The plan is secret", {"type": "agent"})
    house.clock.advance(days=10)
    bob = house.mesh("bob")
    bob.update(private.id, content="The plan is public", metadata={"type": "global"})
    house.clock.advance(days=10)
    ann = house.mesh()
    assert found(ann, "plan") == ["The plan is public"]
    assert found(ann, "plan", known_at=day(5)) == []
    assert found(bob, "plan", known_at=day(5)) == ["The plan is secret"]
    assert found(ann, "plan", known_at=day(10)) == ["The plan is public"]


def test_an_erased_memory_is_gone_from_every_time(house: House) -> None:
    mesh = house.mesh()
    erased = mesh.add("The safe code is in the drawer")
    mesh.add("The safe is red")
    house.clock.advance(days=10)
    mesh.delete(erased.id)
    for options in ({"known_at": day(5)}, {"as_of": day(5)}, {}):
        assert found(mesh, "safe code", **options) == ["The safe is red"]


def test_as_of_returns_what_was_valid_then(house: House) -> None:
    mesh = house.mesh()
    mesh.add("The office is in Bonn", {"valid_until": day(-1)})
    mesh.add("The office is in Kiel", {"valid_from": day(0)})
    mesh.add("The office has two floors")
    assert set(found(mesh, "office", as_of=day(-5))) == {
        "The office is in Bonn",
        "The office has two floors",
    }
    assert set(found(mesh, "office", as_of=day(5))) == {
        "The office is in Kiel",
        "The office has two floors",
    }
    assert found(mesh, "office", as_of=day(5), filter={"valid_from": day(0)}) == [
        "The office is in Kiel"
    ]


def test_invalidated_is_not_superseded(house: House) -> None:
    mesh = house.mesh()
    outdated, corrected = mesh.add("The lead is Ana").id, mesh.add("The lead is Ann").id
    house.change(outdated, status="superseded", valid_until=day(-1))
    house.change(corrected, status="superseded")
    mesh.add("The lead is Bob", {"valid_from": day(0)})
    assert found(mesh, "lead") == ["The lead is Bob"]
    assert found(mesh, "lead", as_of=day(-5)) == ["The lead is Ana"]


def test_both_times_together_ask_what_was_believed_of_a_time(house: House) -> None:
    mesh = house.mesh()
    bonn = mesh.add("The office is in Bonn")
    house.clock.advance(days=10)
    mesh.update(bonn.id, metadata={"valid_until": day(-5)})
    assert found(mesh, "office", as_of=day(0)) == []
    assert found(mesh, "office", as_of=day(0), known_at=day(5)) == ["The office is in Bonn"]


def test_an_explanation_takes_the_same_times_and_counts_what_was_not_known(house: House) -> None:
    mesh = house.mesh()
    first = mesh.add("The office is in Bonn")
    mesh.add("The office has two floors")
    house.change(first.id, status="archived")
    assert [hit.result.content for hit in mesh.explain("office", as_of=day(0)).answers] == [
        "The office has two floors"
    ]
    house.clock.advance(days=1)
    mesh.add("The office moved to Kiel")
    told = mesh.explain("office", known_at=day(0), min_score=0)
    assert [hit.result.content for hit in told.answers] == ["The office has two floors"]
    assert told.left_out == {"known_at": 2}  # what was not active, and what came later
    assert told.documents == 2


def test_times_are_part_of_the_key_of_the_cache(house: House) -> None:
    mesh = house.mesh()
    mesh.add("The office is in Bonn", {"valid_until": day(-1)})
    house.clock.advance(days=1)
    asked: list[dict[str, object]] = [{}, {"as_of": day(-2)}, {"known_at": day(-1)}, {}]
    assert [len(mesh.search("office", **options)) for options in asked] == [0, 1, 0, 0]


@pytest.mark.parametrize(
    "options",
    [
        {"as_of": "soon"},
        {"as_of": 3},
        {"as_of": ""},
        {"known_at": "soon"},
        {"known_at": []},
        {"known_at": day(1)},
    ],
)
def test_a_time_that_is_none_is_an_error_that_says_so(
    mesh: MemoryMesh, options: dict[str, object]
) -> None:
    expected = "is in the future" if options == {"known_at": day(1)} else "is not a time"
    for ask in (mesh.search, mesh.explain):
        with pytest.raises(InvalidInput, match=expected):
            ask("office", **options)


STEP = st.tuples(
    st.sampled_from(["add", "text", "tags", "pin", "move", "status", "delete"]),
    st.integers(0, 4),
    st.integers(1, 9),
)


@pytest.mark.deep
@given(st.lists(STEP, min_size=2, max_size=12))
def test_known_at_returns_what_a_search_returned_then(steps: list[tuple[str, int, int]]) -> None:
    """Whatever was done to memories since, but for erasures: they take the past with them."""
    house = House(open_store("memory://"))
    mesh, ids, erased, seen = house.mesh(), list[str](), set[str](), dict[str, dict[str, object]]()

    def shown(**times: str) -> dict[str, object]:
        hits = mesh.search("common", limit=50, min_score=0, use_cache=False, **times)
        return {
            hit.id: (hit.content, hit.tags, hit.pinned, hit.memory_type, hit.status, hit.revision)
            for hit in hits
        }

    for n, (action, which, value) in enumerate(steps):
        house.clock.advance(days=1)
        id_ = ids[which % len(ids)] if ids else ""
        if action == "add" or id_ in erased or not id_:
            ids.append(mesh.add(f"common word number {n}").id)
        elif action == "status":
            statuses = ("active", "archived", "superseded", "disputed")
            write.set_columns(mesh._context(), id_, action="test", status=statuses[value % 4])
        elif action == "delete":
            mesh.delete(id_)
            erased.add(id_)
        elif action == "pin":
            mesh.pin(id_, pinned=bool(value % 2))
        else:
            metadata = (
                {"tags": [f"t{value}"]}
                if action == "tags"
                else {"type": "agent" if value % 2 else "global"}
            )
            mesh.update(
                id_,
                **({"content": f"common text {n}"} if action == "text" else {"metadata": metadata}),
            )
        seen[iso(house.clock())] = shown()
    for time, hits in seen.items():
        assert shown(known_at=time) == {id_: hit for id_, hit in hits.items() if id_ not in erased}


# --- what is true now ---


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Where does Ana work?", "Ana works at Beta as an engineer"),
        ("Where does Ana work now?", "Ana works at Beta as an engineer"),
        ("Where did Ana work in 2020?", "Ana works at Acme"),
        ("Where did Ana work on 3 May 2019?", "Ana works at Acme"),
        ("Where did Ana work in March 2024?", "Ana works at Beta as an engineer"),
    ],
)
@pytest.mark.parametrize("limit", [1, 10])
def test_the_claim_that_is_valid_at_the_asked_time_comes_first(
    house: House, query: str, first: str, limit: int
) -> None:
    old = believe(
        house,
        "Ana works at Acme",
        "Acme",
        valid_from="2018-01-01T00:00:00.000Z",
        valid_until="2021-12-31T00:00:00.000Z",
    )
    believe(
        house, "Ana works at Beta as an engineer", "Beta", valid_from="2022-01-01T00:00:00.000Z"
    )
    house.mesh().add("Ana likes to work in the garden")
    hits = house.mesh().search(query, limit=limit)
    assert hits[0].content == first
    if limit > 1:  # the older one says until when it was valid, if the question is about that time
        ends = {hit.id: hit.valid_until for hit in hits}.get(old)
        assert ends == ("2021-12-31T00:00:00.000Z" if first == "Ana works at Acme" else None)


def test_a_superseded_claim_stays_below_and_names_what_superseded_it(house: House) -> None:
    old = believe(house, "Ana works at Acme", "Acme")
    new = believe(house, "Ana works at Beta as an engineer", "Beta", supersedes=[old])
    house.change(old, status="superseded", superseded_by=new)
    hits = house.mesh().search("Where does Ana work?", status=("active", "superseded"))
    assert [(hit.id, hit.superseded_by) for hit in hits] == [(new, None), (old, new)]
    told = house.mesh().explain("Where does Ana work?", status=("active", "superseded"))
    assert [hit.newer for hit in told.answers] == [None, new]


@pytest.mark.parametrize(
    "columns",
    [{"exclusive": False}, {"predicate": "hobby"}, {"claim": None, "claim_key": None}],
    ids=["open", "other", "none"],
)
def test_only_claims_that_exclude_each_other_are_ordered(
    house: House, columns: dict[str, object]
) -> None:
    believe(
        house,
        "Ana works at Acme",
        "Acme",
        valid_until=day(-9),
        exclusive=columns.get("exclusive", True),
    )
    claim = {
        name: value for name, value in columns.items() if name != "claim_key" and value is not None
    }
    second = believe(house, "Ana works at Beta as an engineer", "Beta", **claim)
    if "claim" in columns:
        house.change(second, claim=None, claim_key=None)
    # One is not valid any more.
    both = found(house.mesh(), "Where does Ana work at Acme?", status=("active", "superseded"))
    assert both == ["Ana works at Acme", "Ana works at Beta as an engineer"]


def test_a_search_without_claims_reads_no_more_rows_than_its_results(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh, calls = house.mesh(), list[str]()
    mesh.add_many([("deploy " + " ".join(f"word{n}x{k}" for k in range(n)), {}) for n in range(30)])
    mesh.search("deploy")
    for name in ("get", "find", "ids"):
        read = getattr(house.store, name)
        monkeypatch.setattr(
            house.store,
            name,
            lambda *a, _read=read, _name=name, **k: calls.append(_name) or _read(*a, **k),
        )
    assert len(mesh.search("deploy", min_score=0, use_cache=False)) == 10
    assert calls == ["get"]
