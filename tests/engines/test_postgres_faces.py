"""A mesh on PostgreSQL: every face, with the audit chain."""

from contextlib import closing
from itertools import product

import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound
from memory_mesh.core.claims.rules import trust_of
from memory_mesh.core.model import Memory, iso, millis
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores.postgres import PostgresStore
from memory_mesh.testing.fakes import FakeClock
from memory_mesh.testing.rows import memory

pytestmark = pytest.mark.deep


@pytest.mark.req("MESH-020")
def test_every_face_works_on_postgres_and_the_chain_is_sound(server: Server, tmp_path) -> None:
    url = server.keeper(server.database())
    with MemoryMesh(
        store=url,
        agent_id="planner",
        notes_dir=str(tmp_path / "notes"),
        traces_dir=str(tmp_path / "traces"),
    ) as mesh:
        tea = mesh.add("Ann drinks green tea in the morning", {"session_id": "s1", "type": "event"})
        mesh.add_many(
            [("The port of the database is 5432", {}), ("The deploy takes ten minutes", {})]
        )
        assert [hit.id for hit in mesh.search("what does Ann drink", limit=1)] == [tea.id]
        claim = {"subject": "ann", "predicate": "city", "value": "Oslo"}
        stored = mesh.graph.store(
            "planner", "Ann lives in Oslo", claim=claim, provenance={"source": "user_explicit"}
        )
        assert stored.id in [hit.id for hit in mesh.graph.search("planner", "where does Ann live")]
        lane = mesh.lane.store("Never deploy on a Friday", memory_type="decision")
        mesh.lane.feedback(lane.id, "helpful")
        mesh.traces.record("deploy the site")
        assert mesh.traces.similar("deploy the site")
        mesh.update(tea.id, content="Ann drinks black tea")
        assert [change.action for change in mesh.history(tea.id)]
        mesh.delete(lane.id)
        assert {type(chain) for chain in mesh.verify()} == {Sound}
    with MemoryMesh(store=url, agent_id="planner") as again:
        assert again.get(tea.id).content == "Ann drinks black tea"


@pytest.mark.req("GRAPH-61", "GRAPH-89", "LANE-27")
def test_trust_and_validity_are_those_of_now_on_postgres_and_the_column_confidence_follows_feedback(
    server: Server,
) -> None:
    url, clock = server.keeper(server.database()), FakeClock()
    with MemoryMesh(
        store=url, agent_id="planner", clock=clock.seconds, embedder=HashingEmbedder()
    ) as mesh:
        faro = mesh.graph.store(
            "planner", "The office of the team is in Faro", provenance={"source": "document"}
        ).id
        soon = iso(clock.ms + 60_000)
        mesh.add("The office of the team is in Rome", {"valid_until": "2024-06-30"})
        mesh.add("The office of the team is in Oslo", {"valid_from": soon})

        def found(query: str = "office of the team", **options: object) -> list[str]:
            return sorted(
                hit.content.split()[-1] for hit in mesh.search(query, min_score=0.0, **options)
            )  # type: ignore[arg-type]

        assert (
            found()
            == found()
            == [record.content.split()[-1] for record in mesh.get_all()]
            == ["Faro"]
        )
        assert [hit.id for hit in mesh.graph.search("planner", "office of the team")] == [faro]
        assert found("office of the team in 2023") == found(as_of="2024-01-01") == ["Faro", "Rome"]
        assert mesh.explain("office of the team", min_score=0.0).left_out == {"not_valid": 2}
        clock.advance(seconds=61)
        assert found() == ["Faro", "Oslo"], "the cached answer ended when the validity began"
        mesh.graph.reinforce(faro)
        clock.advance(days=365)
        assert [
            record.trust
            for record in (mesh.get(faro), *mesh.search("office in Faro", limit=1))
            if record
        ] == [0.65, 0.65]
        assert mesh.graph.explain_memory(faro).trust.value == pytest.approx(0.65)
        columns, database = "confidence, base_trust, reinforcements", url.rpartition("/")[2]
        stored = server.execute(
            f"SELECT {columns} FROM memories WHERE id = '{faro}'", database=database
        )
        assert stored == [(0.75, 0.6, 1)], (
            "the trust without the part of the age; the base trust, which is sealed"
        )
        assert [record.id for record in mesh.get_all(filter="trust = 0.6")] == [faro], (
            "a filter means the base trust"
        )
        assert not mesh.get_all(filter="trust = 0.75")


COUNTS = (None, 0, 1, 2, 3, 7, 2**53)
SHARES = (None, 0.0, 0.05, 0.1, 0.5, 0.6, 0.7, 0.85, 0.95, 1.0)


@pytest.mark.req("GRAPH-89")
def test_the_column_confidence_is_the_trust_that_python_computes_without_age(
    server: Server,
) -> None:
    url, expected = server.keeper(server.database()), dict[object, float]()
    rows = []
    for at, values in enumerate(product(SHARES, COUNTS, COUNTS, COUNTS)):
        fields = dict(
            zip(("trust", "corroborations", "reinforcements", "disputes"), values, strict=True)
        )
        rows.append(
            memory(f"m{at}", **{name: value for name, value in fields.items() if value is not None})
        )
        record = Memory.of(rows[-1])
        expected[record.id] = trust_of(record, millis(record.created_at)).value
    with closing(PostgresStore(url)) as store:
        store.apply(rows)
    found = dict(
        server.execute("SELECT id, confidence FROM memories", database=url.rpartition("/")[2])
    )
    assert found == expected, "to the last digit"
    assert {0.0, 0.5, 0.65, 1.0} < {*found.values()}
