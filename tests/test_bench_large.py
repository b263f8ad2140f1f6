"""The benchmark of large stores: the memories of each agent are where its searches find them."""

from pathlib import Path

import pytest
from bench.speed import large


def test_each_agent_of_a_large_store_finds_its_own_memories_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large, "_TIMED", 10)  # the other thirty are written as rows
    store = large.Large(tmp_path, 40, 4)
    with store.mesh:
        store.ingest()
        asked = store.queries()[:4]
        assert [agent for agent, _ in asked] == [0, 1, 2, 3]
        assert store.recall(asked) == 1
        for agent, query in asked:
            own = set(store.ids[10 * agent : 10 * agent + 10])
            found = [
                {result.id for result in handle.search(query, use_cache=False)}
                for handle in store.handles
            ]
            assert found[agent] <= own
            assert found[agent]
            assert not any(ids & own for ids in found if ids is not found[agent])
