"""Reciprocal rank fusion, against the document's formula."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.search.fusion import rrf


@pytest.mark.req("MESH-106")
def test_an_items_value_is_the_sum_over_its_channels_of_one_by_sixty_and_rank_and_one() -> None:
    channels = {"vector": ["a", "b", "c"], "keywords": ["c", "a"]}
    raw = {"a": 1 / 61 + 1 / 62, "b": 1 / 62, "c": 1 / 63 + 1 / 61}
    most = 1 / 61 + 1 / 61
    assert rrf(channels) == pytest.approx({found: value / most for found, value in raw.items()})


@pytest.mark.req("MESH-107")
def test_first_in_all_channels_is_one_and_first_in_one_of_two_is_a_half() -> None:
    assert rrf({"vector": ["a"], "keywords": ["a"]}) == pytest.approx({"a": 1.0})
    assert rrf({"vector": ["a"], "keywords": ["b"]}) == pytest.approx({"a": 0.5, "b": 0.5})
    assert rrf({"vector": ["a"], "keywords": []}) == pytest.approx({"a": 0.5})
    assert rrf({"keywords": ["a", "b"]}) == pytest.approx({"a": 1.0, "b": 61 / 62})


@pytest.mark.req("MESH-107")
@pytest.mark.parametrize("channels", range(1, 13))
def test_first_in_every_one_of_many_channels_is_no_more_than_one(channels: int) -> None:
    assert rrf({str(n): ["a"] for n in range(channels)})["a"] == pytest.approx(1.0)
    assert rrf({str(n): ["a"] for n in range(channels)})["a"] <= 1


def test_no_channel_finds_nothing() -> None:
    assert rrf({}) == {}
    assert rrf({"keywords": []}) == {}


@pytest.mark.req("MESH-107")
@given(st.dictionaries(st.sampled_from("stuvwxyz"), st.permutations("abcdef").map(lambda ranked: ranked[:4]), min_size=1))
def test_values_lie_within_nought_and_one_and_better_ranks_never_lower_them(channels: dict[str, list[str]]) -> None:
    fused = rrf(channels)
    assert set(fused) == {found for ranked in channels.values() for found in ranked}
    assert all(0 < value <= 1 for value in fused.values())
    for name, ranked in channels.items():
        raised = [ranked[-1], *ranked[:-1]]
        assert rrf({**channels, name: raised})[ranked[-1]] >= fused[ranked[-1]]
