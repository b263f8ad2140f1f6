"""A mesh on PostgreSQL: every face, with the audit chain."""

import pytest

from engines.postgres import Server
from memory_mesh import MemoryMesh, Sound

pytestmark = pytest.mark.deep


@pytest.mark.req("MESH-020")
def test_every_face_works_on_postgres_and_the_chain_is_sound(server: Server, tmp_path) -> None:
    url = server.keeper(server.database())
    with MemoryMesh(
        store=url, agent_id="planner", notes_dir=str(tmp_path / "notes"), traces_dir=str(tmp_path / "traces")
    ) as mesh:
        tea = mesh.add("Ann drinks green tea in the morning", {"session_id": "s1", "type": "event"})
        mesh.add_many([("The port of the database is 5432", {}), ("The deploy takes ten minutes", {})])
        assert [hit.id for hit in mesh.search("what does Ann drink", limit=1)] == [tea.id]
        claim = {"subject": "ann", "predicate": "city", "value": "Oslo"}
        stored = mesh.graph.store("planner", "Ann lives in Oslo", claim=claim, provenance={"source": "user_explicit"})
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
