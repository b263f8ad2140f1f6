"""Ids: their form, that they do not repeat, and that a seed fixes them."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest

from memory_mesh.core.model import Ids
from memory_mesh.testing.fakes import seeded_ids

NOW = 1_760_000_000_000


@pytest.mark.req("MESH-023")
@pytest.mark.parametrize("prefix", ["mem", "skill", "lesson"])
def test_ids_have_the_documents_shape_and_carry_the_moment(prefix: str) -> None:
    ids = Ids()
    for made in [ids.new(prefix, NOW) for _ in range(1000)]:
        assert re.fullmatch(rf"{prefix}_\d+_[0-9a-f]{{6}}", made)
        assert made.split("_")[1] == str(NOW)


@pytest.mark.req("MESH-007")
def test_millions_of_ids_of_one_moment_are_all_different() -> None:
    ids = Ids()
    tails = {int(ids.new("mem", NOW)[-6:], 16) for _ in range(300_000)}
    assert len(tails) == 300_000
    # Of the rest, only what makes it true: the walk steps by an odd number, so it meets each of
    # 2^24 values before one again.
    first, second = (int(ids.new("mem", NOW)[-6:], 16) for _ in range(2))
    assert (second - first) % 2 == 1


@pytest.mark.parametrize(("start", "stride"), [(0, 0), (2**24 - 1, 2**24 - 1), (1, 2**24 - 2)])
def test_the_worst_of_chance_does_not_make_ids_repeat(start: int, stride: int) -> None:
    bits = iter([start, stride])
    ids = Ids(lambda _: next(bits))
    assert len({ids.new("mem", NOW) for _ in range(100_000)}) == 100_000


@pytest.mark.req("MESH-007")
def test_threads_share_one_source_without_a_clash() -> None:
    ids = Ids()

    def many(_: int) -> list[str]:
        return [ids.new("mem", NOW) for _ in range(5_000)]

    with ThreadPoolExecutor(8) as pool:
        made = [id_ for batch in pool.map(many, range(8)) for id_ in batch]
    assert len(set(made)) == len(made) == 40_000


def test_the_same_seed_makes_the_same_ids_and_salts() -> None:
    def run(seed: int) -> list[str]:
        ids = seeded_ids(seed)
        return [ids.new("mem", NOW), ids.salt(), ids.new("yamo_retain", NOW), ids.salt()]

    assert run(1) == run(1)
    assert run(1) != run(2)


def test_two_processes_do_not_start_at_the_same_place() -> None:
    assert len({Ids().new("mem", NOW) for _ in range(50)}) > 45


def test_a_salt_is_128_bits_of_its_own() -> None:
    ids = seeded_ids(5)
    salts = {ids.salt() for _ in range(1000)}
    assert len(salts) == 1000
    assert all(re.fullmatch(r"[0-9a-f]{32}", salt) for salt in salts)
    assert Ids(lambda _: 0).salt() == "0" * 32
