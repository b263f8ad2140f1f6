"""Embedders, the judge of pairs and language models.

`models.providers` and `models.remote_embedder` hold the clients of remote models; import them only
when one is configured. `models.onnx_graph` loads numpy.
"""

from memory_mesh.models.judge import LocalJudge, ModelJudge
from memory_mesh.models.local import HashingEmbedder, LocalEmbedder
from memory_mesh.models.model_files import (
    JUDGE,
    MODEL,
    PUBLISHED_MODEL,
    ModelFiles,
    ModelPaths,
    State,
    find_model,
    has_files,
    model_status,
    read_ready_model,
)
from memory_mesh.models.wrappers import (
    CachedEmbedder,
    FallbackEmbedder,
    MeteredChat,
    MeteredClient,
    SameModelEmbedder,
)

__all__ = [
    "JUDGE", "MODEL", "PUBLISHED_MODEL", "CachedEmbedder", "FallbackEmbedder", "HashingEmbedder",
    "LocalEmbedder", "LocalJudge", "MeteredChat", "MeteredClient", "ModelFiles", "ModelJudge",
    "ModelPaths", "SameModelEmbedder", "State", "find_model", "has_files", "model_status",
    "read_ready_model",
]  # fmt: skip
