"""The search cache: its size, how long entries live, and what invalidates them."""

import pytest

from memory_mesh.core.search.query import MAX_SIZE, TTL_MS, SearchCache


@pytest.fixture
def cache() -> SearchCache[str]:
    return SearchCache()


def test_an_answer_is_found_again(cache: SearchCache[str]) -> None:
    cache.put("q", "v1", "answer", 0)
    assert cache.get("q", "v1", 1) == "answer"
    assert cache.get("another", "v1", 1) is None


@pytest.mark.req("MESH-113", "MESH-114")
def test_an_answer_expires_five_minutes_after_it_was_stored_however_often_it_is_used(
    cache: SearchCache[str],
) -> None:
    cache.put("q", "v1", "answer", 1000)
    assert TTL_MS == 5 * 60 * 1000
    for minute in range(5):
        assert cache.get("q", "v1", 1000 + minute * 60_000) == "answer"
    assert cache.get("q", "v1", 1000 + TTL_MS - 1) == "answer"
    assert cache.get("q", "v1", 1000 + TTL_MS) is None


def test_an_answer_of_another_state_is_removed(cache: SearchCache[str]) -> None:
    cache.put("q", "v1", "answer", 0)
    assert cache.get("q", "v2", 1) is None
    assert cache.get("q", "v1", 1) is None
    assert cache.stats().size == 0


def test_setting_the_clock_back_invalidates_an_answer(cache: SearchCache[str]) -> None:
    cache.put("q", "v1", "answer", 1000)
    assert cache.get("q", "v1", 999) is None


def test_a_cached_answer_expires_with_the_first_of_its_memories(cache: SearchCache[str]) -> None:
    cache.put("q", "v1", "answer", 0, until=50)
    assert cache.get("q", "v1", 49) == "answer"
    assert cache.get("q", "v1", 50) is None


@pytest.mark.req("MESH-113")
def test_beyond_five_hundred_answers_the_least_recently_used_is_evicted(
    cache: SearchCache[str],
) -> None:
    for n in range(MAX_SIZE):
        cache.put(n, "v", str(n), 0)
    assert cache.get(0, "v", 1) == "0"  # used: now the most recent
    cache.put("one more", "v", "x", 1)
    assert cache.get(1, "v", 1) is None
    assert cache.get(0, "v", 1) == "0"
    assert cache.stats().size == MAX_SIZE == 500


@pytest.mark.req("MESH-098")
def test_stats_show_the_size_and_clear_empties_the_cache(cache: SearchCache[str]) -> None:
    cache.put("q", "v1", "answer", 0)
    cache.get("q", "v1", 1)
    cache.get("r", "v1", 1)
    stats = cache.stats()
    assert (stats.size, stats.max_size, stats.ttl_seconds, stats.hits, stats.misses) == (
        1,
        500,
        300,
        1,
        1,
    )
    cache.clear()
    assert cache.stats().size == 0
    assert cache.get("q", "v1", 1) is None
