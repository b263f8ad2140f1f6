"""Storing through the graph: the gate of claims, links, evolve, batches, and what is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from math import cos, pi, sin

import pytest
from hypothesis import given
from hypothesis import strategies as st

from claim_table import BOTH, CORROBORATED, REVIEW, STORED, SUPERSEDED, Case, cases, expected
from memory_mesh import InvalidInput, MemoryMesh, Stored
from memory_mesh.core.claims import Claim, excludes
from memory_mesh.core.claims.claim import DEFAULT
from memory_mesh.core.graph.links import choose
from memory_mesh.core.model import Kind, Link, Memory, Vector, equals
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import ScriptedChat, seeded_ids

from .house import House

HOME = {"subject": "Ana", "predicate": "home"}
USER, MODEL = {"source": "user_explicit"}, {"source": "inference"}


def home(value: str, **more: object) -> dict[str, object]:
    return {**HOME, "value": value, **more}


def store(
    mesh: MemoryMesh, value: str, *, source: str = "inference", agent: str = "ann", **more: object
) -> Stored:
    """Store where Ana lives."""
    options = {"claim": home(value), "provenance": {"source": source}, **more}
    return mesh.graph.store(
        agent, f"Ana lives in {value}, {len(mesh.scoped(agent_id=agent).get_all())}", **options
    )  # type: ignore[arg-type]


# --- the table ---

_WINDOWS = {
    "overlap": ({"valid_from": "2024-01-01"}, {"valid_until": "2024-06-01"}),
    "touch": ({"valid_from": "2024-01-01"}, {"valid_until": "2024-01-01"}),
    "apart": ({"valid_from": "2024-01-01"}, {"valid_until": "2023-12-31"}),
}
_SESSION: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "both global": ({}, {}), "session and global": ({"scope": "session", "session_id": "s1"}, {}),
    "global and session": ({}, {"scope": "session", "session_id": "s1"}),
    "same session": ({"scope": "session", "session_id": "s1"},
                     {"scope": "session", "session_id": "s1"}),
    "two sessions": ({"scope": "session", "session_id": "s1"},
                     {"scope": "session", "session_id": "s2"}),
}  # fmt: skip
_SOURCES = {"more": "user_explicit", "equal": "tool_output", "less": "inference"}


def items(case: Case, subject: str) -> tuple[dict[str, object], dict[str, object]]:
    """Return the new item of a case, and the one that is stored first."""
    predicate = f"{case.cardinality} {case.dedup_policy} {case.conflict_policy}"
    base = {"subject": subject, "predicate": predicate}
    new, old = (
        {**base, **window, **scope}
        for window, scope in zip(
            _WINDOWS[str(case.windows)], _SESSION[str(case.scopes)], strict=True
        )
    )
    new |= {"value": "Porto", "exclusive": case.exclusive in ("both", "only the new one")}
    old |= {"value": "Porto" if case.values == "same" else "Lisbon"}
    old["exclusive"] = case.exclusive in ("both", "only the stored one")
    source = _SOURCES[str(case.trust)]
    return (
        {"text": f"{subject} new", "claim": new, "provenance": {"source": source}},
        {"text": f"{subject} old", "claim": old, "provenance": {"source": "tool_output"}},
    )


def seen(old: Memory, new: Stored) -> str:
    """Return what happened, from the memories alone."""
    if not new.is_new:
        return (
            CORROBORATED
            if new.id == old.id and old.corroborations == 2 and not new.conflicts
            else "?"
        )
    if old.status == "superseded":
        linked = old.superseded_by == new.id and new.supersedes == [old.id] == new.memory.supersedes
        return (
            SUPERSEDED
            if linked and [each.status for each in new.conflicts] == ["resolved"]
            else "?"
        )
    if new.quarantined:
        return REVIEW if [each.status for each in new.conflicts] == ["pending"] else "?"
    states = [each.status for each in new.conflicts]
    return (
        BOTH
        if states == ["resolved"]
        else STORED
        if not states and old.corroborations == 1
        else "?"
    )


@pytest.mark.req("GRAPH-43", "GRAPH-49", "GRAPH-52", "GRAPH-53", "GRAPH-54", "GRAPH-10")
def test_memories_stored_in_every_combination_end_as_the_table_says(deep: bool) -> None:
    every = [
        case for at, case in enumerate(cases()) if at % (5 if deep else 19) == 0
    ]  # every value of every dimension is among them
    schemas = {
        f"{case.cardinality} {case.dedup_policy} {case.conflict_policy}": {
            "cardinality": case.cardinality, "dedup_policy": case.dedup_policy,
            "conflict_policy": case.conflict_policy,
        }
        for case in cases()
    }  # fmt: skip
    house = House(open_store("memory://"))
    mesh = house.mesh(predicate_schemas=schemas)
    pairs = [items(case, f"subject {at}") for at, case in enumerate(every)]
    first = mesh.graph.store_many("ann", [old for _, old in pairs])
    second = mesh.graph.store_many("ann", [new for new, _ in pairs])
    found = [seen(house.memory(old.id), new) for old, new in zip(first, second, strict=True)]
    assert [
        (case, was) for case, was in zip(every, found, strict=True) if was != expected(case)
    ] == []
    assert set(found) == {STORED, CORROBORATED, BOTH, REVIEW, SUPERSEDED}
    assert house.sound()


# --- one by one ---


@pytest.mark.req("GRAPH-01", "GRAPH-03", "GRAPH-08")
def test_a_memory_is_stored_for_its_agent_with_the_defaults(house: House, mesh: MemoryMesh) -> None:
    stored = mesh.graph.store("bob", "The sky is blue.")
    memory = house.memory(stored.id)
    assert (stored.quarantined, stored.links, stored.is_new) == (False, [], True)
    assert (memory.agent_id, memory.memory_type, memory.category, memory.importance) == (
        "bob",
        "agent",
        "fact",
        0.7,
    )
    assert (memory.tags, memory.trust, memory.metadata["provenance"]) == (
        [],
        0.5,
        {"source": "inference"},
    )
    assert mesh.get(stored.id) is None, "another agent does not see it"
    assert mesh.scoped(agent_id="bob").search("sky")[0].id == stored.id


@pytest.mark.req("GRAPH-44")
def test_claims_are_compared_within_the_agent_and_with_global_memories_only(
    house: House, mesh: MemoryMesh
) -> None:
    mine, theirs = store(mesh, "Lisbon"), store(mesh, "Porto", agent="bob")
    assert house.memory(mine.id).status == "active", "the memory of another agent is never touched"
    shared = mesh.graph.store(
        "ann", "global", claim={**home("Rome"), "subject": "Eve"}, metadata={"type": "global"}
    )
    other = mesh.graph.store("bob", "Eve moved", claim={**home("Oslo"), "subject": "eve"})
    assert other.supersedes == [shared.id]
    assert mesh.scoped(user_id="zoe").graph.store("ann", "x", claim=home("Bonn")).conflicts == [], (
        "nor that of another user"
    )
    assert house.memory(theirs.id).status == "active"


@pytest.mark.req("GRAPH-02")
def test_with_keep_active_a_less_trusted_claim_stays_active_and_its_conflict_pending(
    house: House, mesh: MemoryMesh
) -> None:
    known = store(mesh, "Lisbon", source="user_explicit")
    kept = store(mesh, "Porto", on_conflict="keep_active")
    assert (kept.quarantined, kept.supersedes, [each.status for each in kept.conflicts]) == (
        False,
        [],
        ["pending"],
    )
    assert house.memory(known.id).status == house.memory(kept.id).status == "active"


@pytest.mark.req("GRAPH-01", "GRAPH-03")
def test_quarantine_stores_quarantined_whatever_the_trust_and_changes_nothing_else(
    house: House, mesh: MemoryMesh
) -> None:
    known = store(mesh, "Lisbon")
    held = store(mesh, "Porto", source="user_explicit", quarantine=True)
    again = mesh.graph.store("ann", "Ana lives in Lisbon, 0", claim=home("Lisbon"), quarantine=True)
    assert (held.quarantined, again.quarantined, again.is_new) == (True, True, True)
    memory = house.memory(known.id)
    assert (memory.status, memory.corroborations, memory.times_observed) == ("active", 1, 1)


@pytest.mark.req("GRAPH-54")
def test_a_claim_that_says_since_when_ends_the_older_one_and_a_correction_does_not(
    house: House, mesh: MemoryMesh
) -> None:
    first = store(mesh, "Lisbon")
    moved = mesh.graph.store("ann", "moved", claim=home("Porto", valid_from="2024-03-01"))
    assert house.memory(first.id).valid_until == "2024-02-29T23:59:59.999Z"
    corrected = store(mesh, "Rome")
    memory = house.memory(moved.id)
    assert (memory.status, memory.superseded_by, memory.valid_until) == (
        "superseded",
        corrected.id,
        None,
    )
    why = mesh.history(moved.id)[-1].why or ""
    assert why == f"{corrected.id} takes its place, and is not trusted less: 0.50 against 0.50", (
        "the reason is in the history"
    )


@pytest.mark.req("GRAPH-54")
def test_until_a_claim_begins_the_one_before_it_is_valid(house: House, mesh: MemoryMesh) -> None:
    now = store(mesh, "Lisbon")
    later = mesh.graph.store("ann", "moves in 2030", claim=home("Porto", valid_from="2030-01-01"))
    memory = house.memory(now.id)
    assert (memory.status, memory.valid_until, later.supersedes) == (
        "active",
        "2029-12-31T23:59:59.999Z",
        [],
    )
    assert contradictions(house.memories()) == []
    assert mesh.search("Ana lives")[0].id == now.id
    assert [each.detail["resolution"] for each in later.conflicts] == ["ended"]


@pytest.mark.req("GRAPH-49")
def test_a_corroboration_in_other_words_keeps_them_and_the_trust_of_the_best_source(
    house: House, mesh: MemoryMesh
) -> None:
    first = store(mesh, "Lisbon")
    again = mesh.graph.store("ann", "Her flat is in Lisbon.", claim=home("Lisbon"), provenance=USER)
    memory = house.memory(first.id)
    assert (again.id, again.is_new, memory.corroborations, memory.trust) == (
        first.id,
        False,
        2,
        1.0,
    )
    assert (mesh.history(first.id)[-1].detail or {})["content"] == "Her flat is in Lisbon."
    assert house.sound()


@pytest.mark.req("GRAPH-50", "GRAPH-51", "MESH-079")
def test_the_same_text_is_one_memory_unless_its_claims_differ_or_the_policy_stores_each(
    house: House,
) -> None:
    many, each = {"cardinality": "multi"}, {"dedup_policy": "store"}
    mesh = house.mesh(predicate_schemas={"likes": many, "ran": each})
    likes = {"subject": "Ana", "predicate": "likes", "value": "tea"}
    first, again = (mesh.graph.store("ann", "Ana likes tea", claim=likes) for _ in range(2))
    assert (
        again.id,
        house.memory(first.id).times_observed,
        house.memory(first.id).corroborations,
    ) == (first.id, 2, 1)
    assert mesh.graph.store("ann", "Ana likes tea", claim={**likes, "value": "mint tea"}).is_new
    assert mesh.graph.store("ann", "Ana likes tea").is_new, "one without a claim is another memory"
    ran = {"subject": "Ana", "predicate": "ran", "value": "5 km"}
    one, two = (mesh.graph.store("ann", "Ana ran", claim=ran) for _ in range(2))
    assert one.id != two.id
    assert two.conflicts == []


def test_a_new_text_has_no_claim_and_a_changed_window_must_not_exclude_another_claim(
    house: House, mesh: MemoryMesh
) -> None:
    old = mesh.graph.store("ann", "old", claim=home("Lisbon", valid_until="2023-12-31"))
    new = mesh.graph.store("ann", "new", claim=home("Porto", valid_from="2024-01-01"))
    with pytest.raises(InvalidInput, match="excludes it"):
        mesh.update(old.id, metadata={"valid_until": "2024-06-01"})
    assert house.memory(old.id).revision == 1
    mesh.update(new.id, content="Ana has a flat")
    assert house.memory(new.id).claim is house.memory(new.id).claim_key is None
    assert mesh.update(old.id, metadata={"valid_until": "2024-06-01"}).valid_until


# --- plain text ---


def test_plain_statements_become_claims_where_that_is_switched_on(house: House) -> None:
    mesh, plain = house.mesh(claims="auto"), house.mesh()
    first = mesh.add("Ana works at Acme.")
    second = mesh.add("Ana works at Globex now.")
    assert house.memory(first.id).status == "superseded"
    assert house.memory(second.id).valid_from == house.memory(second.id).created_at, (
        "now: since it was stored"
    )
    assert plain.add("Ana works at Initech.").status == "active"
    assert house.memory(second.id).status == "active", "off by default"
    gone = mesh.add("Ana no longer works at Globex.")
    ended = house.memory(second.id)
    assert (ended.status, ended.valid_until, house.memory(gone.id).status) == (
        "active",
        house.memory(gone.id).created_at,
        "active",
    )
    assert mesh.graph.store("ann", "Eve works at Acme.").memory.claim
    assert plain.graph.store("ann", "Eve works at Acme now.", claims="auto").memory.claim
    assert mesh.graph.store("ann", "Zoe works at Acme.", claims="off").memory.claim is None


# --- links, evolve, batches ---


class Compass:
    """Embeds a text that ends with a number of degrees as that direction."""

    model, window, dimension = "compass", 100, 2

    def __init__(self) -> None:
        self.calls: list[int] = []

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.calls.append(len(texts))
        angles = [float(text.split()[-1]) * pi / 180 for text in texts]
        return [Vector.of(self.model, [cos(angle), sin(angle)]) for angle in angles]

    def count(self, text: str) -> int:
        return len(text.split())

    def close(self) -> None:
        """Nothing to close."""


@pytest.mark.req("GRAPH-14", "GRAPH-15")
def test_a_memory_is_linked_to_the_five_most_similar_ones_above_one_half(house: House) -> None:
    mesh = house.mesh(embedder=Compass())
    near = [mesh.graph.store("ann", f"memory at {angle}") for angle in (50, 40, 30, 20, 10, 8)]
    new = mesh.graph.store("ann", "memory at 0")
    assert [(link.target, link.link_type) for link in new.links] == [
        (each.id, "similar") for each in reversed(near[1:])
    ]
    assert new.links[0].similarity == pytest.approx(cos(8 * pi / 180), abs=1e-5)
    assert mesh.graph.store("ann", "opposite 180").links == []
    incoming = house.store.find(Kind.LINK, equals("target", near[0].id))
    assert 0 < len(incoming) <= 5


@pytest.mark.req("GRAPH-14")
def test_one_half_itself_makes_no_link_and_five_are_the_most(house: House) -> None:
    mesh = house.mesh(embedder=None)
    for number in range(8):
        mesh.graph.store("ann", f"memory {number}")
    new, *others = house.memories()
    found = choose(new, zip(others, (0.5, 0.500001, 0.6, 0.7, 0.8, 0.9, 0.95), strict=True), {}, 0)
    assert [link.similarity for link in found] == [0.95, 0.9, 0.8, 0.7, 0.6]
    assert choose(new, [(others[0], 0.5)], {}, 0) == []
    assert len(choose(new, [(others[0], 0.500001)], {}, 0)) == 1


@pytest.mark.req("GRAPH-14")
def test_a_memory_keeps_the_five_best_links_that_point_to_it(house: House) -> None:
    mesh = house.mesh(embedder=Compass())
    first = mesh.graph.store("ann", "middle 0")
    for angle in (50, 45, -50, 40, -45, 35, -40):
        mesh.graph.store("ann", f"around {angle}")
    links = [Link.of(row) for row in house.store.find(Kind.LINK, equals("target", first.id))]
    assert sorted(round(link.similarity or 0, 2) for link in links) == sorted(
        round(cos(angle * pi / 180), 2) for angle in (45, 40, -45, 35, -40)
    )


@pytest.mark.req("GRAPH-10")
def test_a_batch_is_embedded_in_calls_of_its_size_and_stored_as_a_whole_or_not(
    house: House,
) -> None:
    compass = Compass()
    mesh = house.mesh(embedder=compass)
    stored = mesh.graph.store_many(
        "ann", [f"memory {n}" for n in range(0, 100, 10)], embedding_batch_size=4
    )
    assert compass.calls == [4, 4, 2]
    assert [len(each.links) for each in stored[:3]] == [0, 1, 2], (
        "later ones are linked to earlier ones"
    )
    before = len(house.memories())
    with pytest.raises(InvalidInput, match=r"item 1: claim\.value"):
        mesh.graph.store_many("ann", [{"text": "fine 1"}, {"text": "bad 2", "claim": home("")}])
    with pytest.raises(InvalidInput, match="item 0: text is missing"):
        mesh.graph.store_many("ann", [{"claim": home("Rome")}])
    for bad in (0, "4", 1.5):
        with pytest.raises(InvalidInput, match="embedding_batch_size"):
            mesh.graph.store_many("ann", ["x 1"], embedding_batch_size=bad)  # type: ignore[arg-type]
    assert len(house.memories()) == before


@pytest.mark.req("GRAPH-18", "GRAPH-85")
def test_evolve_supersedes_the_most_similar_memory_unless_it_is_trusted_more(house: House) -> None:
    mesh = house.mesh(embedder=Compass())
    far, first = mesh.graph.store("ann", "far 90"), mesh.graph.store("ann", "first 0")
    second = mesh.graph.evolve("ann", "second 10", tags=["v2"], importance=0.9, category="decision")
    assert (second.supersedes, second.quarantined) == ([first.id], False)
    assert (second.memory.tags, second.memory.importance, second.memory.category) == (
        ["v2"],
        0.9,
        "decision",
    )
    assert house.memory(first.id).superseded_by == second.id
    trusted = mesh.graph.store("ann", "trusted 200", provenance=USER)
    refused = mesh.graph.evolve("ann", "refused 205")
    assert (refused.quarantined, house.memory(trusted.id).status) == (True, "active")
    assert [each.target for each in refused.conflicts] == [trusted.id]
    assert mesh.graph.evolve("ann", "alone 140").supersedes == [], "nothing is similar enough"
    assert house.memory(far.id).status == "active"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_conflict": "ask"}, "quarantine, keep_active"), ({"claims": "on"}, "auto, off"),
        ({"quarantine": 1}, "True or False"),
        ({"provenance": "me"}, "user_explicit"), ({"provenance": {"source": 3}}, "user_explicit"),
        ({"provenance": {"source": "user_explict"}}, "did you mean 'user_explicit'"),
        ({"importance": 2}, "0 to 1"), ({"tags": "ops"}, "a list of texts"),
        ({"metadata": "x"}, "an object"), ({"claim": []}, "subject, predicate and value"),
        ({"claim": home("x"), "event_time": "soon"}, "ISO 8601"),
    ],
)  # fmt: skip
def test_a_wrong_option_is_an_error_and_nothing_is_changed(
    mesh: MemoryMesh, house: House, options: dict[str, object], said: str
) -> None:
    with pytest.raises(InvalidInput, match=said):
        mesh.graph.store("ann", "text", **options)  # type: ignore[arg-type]
    for agent in ("", None, 3):
        with pytest.raises(InvalidInput):
            mesh.graph.store(agent, "text")  # type: ignore[arg-type]
    assert house.memories() == []


@pytest.mark.req("GRAPH-12", "GRAPH-79")
def test_without_a_model_extract_stores_the_text_for_the_agent(
    mesh: MemoryMesh, house: House
) -> None:
    done = mesh.graph.extract("bob", "A whole text.")
    assert done.stored_whole
    memory = house.memory(done.memories[0].id)
    assert (memory.agent_id, memory.memory_type, memory.importance) == ("bob", "agent", 0.5)


@pytest.mark.req("GRAPH-12", "GRAPH-79", "GRAPH-85")
def test_what_a_model_extracts_goes_through_the_gate_of_claims(house: House) -> None:
    found = [("Ana works at Globex.", 0.9), ("Eve works at Initech.", 0.8), ("It rains.", 0.2)]
    items = [
        {"text": text, "category": "fact", "importance": importance, "tags": []}
        for text, importance in found
    ]
    mesh = house.mesh(chat=ScriptedChat(json.dumps({"memories": items})), claims="auto")
    trusted = mesh.graph.store("bob", "Ana works at Acme.", provenance=USER)
    equal = mesh.graph.store("bob", "Eve works at Acme.")
    done = mesh.graph.extract("bob", "Some minutes of a meeting.")
    statuses = {memory.content: house.memory(memory.id).status for memory in done.memories}
    assert statuses == {"Ana works at Globex.": "quarantined", "Eve works at Initech.": "active"}, (
        "0.2 is below the minimum"
    )
    assert (house.memory(trusted.id).status, house.memory(equal.id).status) == (
        "active",
        "superseded",
    )
    assert {house.memory(memory.id).agent_id for memory in done.memories} == {"bob"}


# --- moving and erasing ---


@pytest.mark.req("GRAPH-85")
def test_an_imported_claim_that_excludes_an_active_one_is_quarantined(
    house: House, mesh: MemoryMesh
) -> None:
    other = House(open_store("memory://"), ids=seeded_ids(7)).mesh()
    there, apart = (
        store(other, "Porto", source="user_explicit"),
        other.graph.store("ann", "apart", claim={**home("x"), "subject": "Eve"}),
    )
    lines = list(other.scoped(agent_id="ann").export())
    here = store(mesh, "Lisbon")
    assert mesh.import_memories(lines).imported == 2
    found = {memory.id: memory.status for memory in house.memories()}
    assert found == {here.id: "active", there.id: "quarantined", apart.id: "active"}
    assert mesh.graph.store("ann", "again", claim={**home("x"), "subject": "eve"}).id == apart.id, (
        "its claim is compared"
    )
    assert house.store.count(Kind.CONFLICT, equals("ref", there.id)) == 1
    assert house.sound()
    broken = mesh.import_memories(
        [lines[0], lines[1].replace(there.id, "mem_1_000000").replace('"subject"', '"subjekt"')]
    )
    assert "subjekt" in broken.failed[0].reason


def test_erasing_a_memory_takes_its_links_and_conflicts(house: House, mesh: MemoryMesh) -> None:
    old, new = store(mesh, "Lisbon"), store(mesh, "Porto")
    assert house.store.count(Kind.CONFLICT) == house.store.count(Kind.LINK) == 1
    mesh.delete(old.id)
    assert house.store.count(Kind.CONFLICT) == house.store.count(Kind.LINK) == 0
    assert house.memory(new.id).status == "active"
    assert "Lisbon" not in repr([memory.row() for memory in house.memories()])


def test_when_the_first_author_of_a_claim_is_erased_the_words_of_the_other_one_stay(
    house: House, mesh: MemoryMesh
) -> None:
    first, second = mesh.scoped(session_id="s1"), mesh.scoped(session_id="s2")
    stored = first.graph.store("ann", "Ana has a flat in Porto.", claim=home("Porto"))
    assert (
        second.graph.store("ann", "Porto is where Ana lives.", claim=home("Porto")).id == stored.id
    )
    mesh.delete_all(session_id="s1")
    memory = house.memory(stored.id)
    assert (memory.content, memory.session_id, memory.corroborations) == (
        "Porto is where Ana lives.",
        "s2",
        1,
    )
    assert "flat" not in repr(memory.row())
    assert [result.id for result in mesh.search("where does Ana live")] == [stored.id]
    assert mesh.search("flat") == []
    assert house.sound()


# --- no two active claims exclude each other ---

_CLAIMS = st.fixed_dictionaries(
    {
        "value": st.sampled_from(["a", "b", "c"]),
        "subject": st.sampled_from(["x", "X ", "y"]),
        "exclusive": st.sampled_from([True, True, True, False]),
        "window": st.sampled_from(
            [
                {},
                {},
                {"valid_from": "2024-01-01"},
                {"valid_until": "2023-12-31"},
                {"valid_until": "2024-02-01"},
            ]
        ),
        "scope": st.sampled_from([{}, {}, {"scope": "session", "session_id": "s"}]),
        "source": st.sampled_from(["user_explicit", "inference", "document"]),
        "agent": st.sampled_from(["ann", "ann", "bob"]),
        "shared": st.booleans(),
    }
)


def contradictions(memories: Sequence[Memory]) -> list[tuple[str, str]]:
    """Return the pairs of active memories of one scope whose claims exclude each other."""
    active = [
        (memory, claim)
        for memory in memories
        if memory.status == "active" and (claim := Claim.of(memory))
    ]
    return [
        (one.id, other.id)
        for at, (one, mine) in enumerate(active)
        for other, theirs in active[:at]
        if mine.key == theirs.key
        and one.partition == other.partition
        and excludes(mine, theirs, DEFAULT)
    ]


@pytest.mark.req("GRAPH-54", "GRAPH-56")
@given(st.lists(_CLAIMS, max_size=12), st.booleans())
def test_no_sequence_of_stores_leaves_two_active_claims_that_exclude_each_other(
    given: list[dict[str, object]], batch: bool
) -> None:
    house = House(open_store("memory://"))
    mesh = house.mesh()
    items = [
        {
            "text": f"text {at}",
            "claim": {
                "predicate": "p",
                **{name: each[name] for name in ("value", "subject", "exclusive")},
                **each["window"],
                **each["scope"],
            },  # type: ignore[dict-item]
            "provenance": {"source": each["source"]},
            "metadata": {"type": "global"} if each["shared"] else {},
        }
        for at, each in enumerate(given)
    ]
    if batch:
        mesh.graph.store_many("ann", items)
    else:
        for item, each in zip(items, given, strict=True):
            mesh.graph.store(str(each["agent"]), **item)  # type: ignore[arg-type]
    assert contradictions(house.memories()) == []
    assert not items or house.sound()


def test_the_check_finds_two_active_claims_that_exclude_each_other(
    mesh: MemoryMesh, house: House
) -> None:
    first, second = store(mesh, "a"), store(mesh, "b")
    assert contradictions(house.memories()) == []
    assert (
        contradictions([house.memory(second.id), replace(house.memory(first.id), status="active")])
        != []
    )
