"""The pools that the ranker is trained on are those of the product."""

import numpy as np
from bench.quality.lessons import World
from bench.quality.pools import Pools
from bench.quality.sets import Question, Said

from memory_mesh.core.search import SIGNALS
from memory_mesh.models import HashingEmbedder

AT = "2024-05-01T12:00:00.000Z"
FILLER = " ".join(
    f"Sentence number {number} is about the weather of that day." for number in range(400)
)
LONG = f"{FILLER} The violin is in the attic."


class Narrow(HashingEmbedder):
    """An embedder that reads a few sentences at a time."""

    window = 64


def world(*texts: str, question: str) -> World:
    memories = [
        Said(id=str(at), text=text, at=AT, session="s", turn=at) for at, text in enumerate(texts)
    ]
    return World(
        memories=memories,
        question=Question(text=question, gold=frozenset({"0"}), kind="test", at=AT),
        number=0,
    )


def test_a_long_memory_is_compared_by_its_best_passage_and_not_by_its_beginning() -> None:
    pools = Pools(Narrow())
    asked = "Is the violin in the attic?"
    whole, start = (
        pools.of(world(text, "Tea is on the table.", question=asked), "vectors")
        for text in (LONG, FILLER)
    )
    assert set(whole.signals) == set(SIGNALS)
    long, short = (
        float(pool.signals["vectors"][list(pool.ids).index("0")]) for pool in (whole, start)
    )
    assert long > short + 0.1


def test_one_world_gives_a_pool_with_vectors_and_one_without() -> None:
    pools, asked = (
        Pools(HashingEmbedder()),
        world("The key is in the vault.", "Tea is on the table.", question="Where is the key?"),
    )
    assert pools.of(asked, "vectors").signals["vectors"].any()
    assert not np.any(pools.of(asked, "keywords").signals["vectors"])
