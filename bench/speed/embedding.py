"""What the embedding itself costs: the local model on texts as they come, one by one and in a batch."""

from dataclasses import dataclass

from bench.speed.measuring import Spread, spread, timed
from bench.speed.texts import Speech
from memory_mesh.core.errors import EmbeddingError
from memory_mesh.models import LocalEmbedder
from memory_mesh.settings import load
from memory_mesh.wiring.build import model_paths

_TEXTS, _SINGLES = 300, 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What one text costs, and how many go through in a batch."""

    model: str
    single: Spread
    batch_per_s: float

    def remaining(self, ingest_per_s: float) -> float:
        """The share of the batch rate that is left when each text is stored as well, one after the other."""
        return ingest_per_s / (ingest_per_s + self.batch_per_s)


def price() -> Price | str:
    """The price, or why it cannot be told: a machine may have no model."""
    embedder = LocalEmbedder(model_paths(load({})))
    texts = [item.text for item in Speech().items(_TEXTS)]
    try:
        embedder.embed(texts[:2])  # loads the model
    except EmbeddingError as error:
        return str(error)
    batch = min(timed(lambda: embedder.embed(texts)) for _ in range(2))
    single = spread(lambda text: embedder.embed([text]), texts[:_SINGLES])
    return Price(model=embedder.model, single=single, batch_per_s=round(_TEXTS / batch, 1))
