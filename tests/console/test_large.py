"""The console on 100,000 memories: what the first views cost, in CPU time of the server."""

import time
from pathlib import Path

import pytest

from interfaces.rest_server import running
from memory_mesh.core.model import Link, Memory, iso
from memory_mesh.stores import open_store

pytestmark = pytest.mark.deep
MEMORIES, LINKS, BATCH = 100_000, 20_000, 5_000
START = 1_760_000_000_000
# Seconds of CPU time: about five times of what was measured, so that only another order of
# magnitude fails.
LIMITS = {
    "/console/": 0.1,
    "/console/session": 0.1,
    "/v1/list?limit=50": 0.2,
    "/console/api/numbers": 2.0,
    "/console/api/timeline": 1.0,
    "/console/api/timeline?known_at=2025-11-01": 1.0,
    "/console/api/timeline?happened=2025-11-01": 2.0,
    "/console/api/users": 0.5,
    "/console/api/graph": 3.0,
    "/v1/quarantined": 0.3,
    "/v1/conflicts": 0.1,
}


def memory(n: int) -> Memory:
    at = iso(START + n * 200_000)
    return Memory.new(
        id=f"mem_{START + n * 200_000}_{n:06x}",
        content=f"Number {n} of many memories about the shop.", created_at=at, updated_at=at,
        keywords=["number", str(n), "shop"], memory_type="global", agent_id="server", number=n + 1,
    )  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("large") / "memory.db"
    opened = open_store(f"sqlite:///{path}")
    every = [memory(n) for n in range(MEMORIES)]
    for first in range(0, MEMORIES, BATCH):
        opened.apply([one.row() for one in every[first : first + BATCH]])
    links = [
        Link(id=f"link_{n}", created_at=every[n].created_at, ref=every[n].id,
             target=every[(n * 7 + 1) % MEMORIES].id, link_type="related", similarity=0.5,
             agent_id="server", memory_type="global")
        for n in range(LINKS)
    ]  # fmt: skip
    for first in range(0, LINKS, BATCH):
        opened.apply([one.row(every[0].partition) for one in links[first : first + BATCH]])
    opened.close()
    return path


def test_the_first_views_cost_little(store: Path, tmp_path: Path) -> None:
    with running(tmp_path, str(store)) as (client, _):
        client.get("/v1/get", params={"id": "mem_1_a"})  # opens the store
        costs = {}
        for path, limit in LIMITS.items():
            began = time.process_time()
            answer = client.get(path)
            costs[path] = time.process_time() - began
            assert answer.status_code == 200, answer.text
            assert len(answer.content) < 1_000_000, path
            assert costs[path] < limit, costs
        assert client.get("/console/api/numbers").json()["total"] == MEMORIES
        picture = client.get("/console/api/graph").json()
        assert len(picture["nodes"]) <= 500
        assert picture["aggregated"] is True
        print({path: f"{seconds * 1000:.0f} ms" for path, seconds in costs.items()})
