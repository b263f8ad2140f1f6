"""The network of the reader in torch: the local model's encoder with a low-rank change of its
matrices, and a head.

The reader gets a question, a memory and the turn before it, and says how likely the memory answers
the question. Only the change (`delta`) is learnt and stored: two thin matrices for each matrix of
the encoder, the weights of its layer norms, and the head.
"""

import math
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

DELTA = Path(__file__).parent / "reader.npz"  # what the teacher in use has learnt
LAYERS, HEADS, WIDTH, INNER = 6, 12, 384, 1536
MATRICES = {
    "attention.self.query": (WIDTH, WIDTH), "attention.self.key": (WIDTH, WIDTH),
    "attention.self.value": (WIDTH, WIDTH), "attention.output.dense": (WIDTH, WIDTH),
    "intermediate.dense": (INNER, WIDTH), "output.dense": (WIDTH, INNER),
}  # fmt: skip
NORMS = ("attention.output.LayerNorm", "output.LayerNorm")


class Linear(nn.Module):  # type: ignore[misc]
    """A fixed matrix and a learnt low-rank change of it."""

    def __init__(self, weight: Tensor, bias: Tensor, rank: int) -> None:
        super().__init__()
        self.register_buffer("weight", weight)
        self.register_buffer("bias", bias)
        self.down = nn.Parameter(torch.randn(rank, weight.shape[1]) / math.sqrt(weight.shape[1]))
        self.up = nn.Parameter(torch.zeros(weight.shape[0], rank))

    def forward(self, x: Tensor) -> Tensor:
        changed = functional.linear(
            functional.linear(x, self.down.to(x.dtype)), self.up.to(x.dtype)
        )
        return functional.linear(x, self.weight.to(x.dtype), self.bias.to(x.dtype)) + changed


class Reader(nn.Module):  # type: ignore[misc]
    """The encoder with its changes, and the head."""

    def __init__(self, base: Mapping[str, np.ndarray], rank: int) -> None:
        super().__init__()
        weights = {
            name: torch.from_numpy(np.asarray(value, np.float32).copy())
            for name, value in base.items()
        }
        for name in ("word", "position", "token_type"):
            self.register_buffer(f"{name}s", weights[f"embeddings.{name}_embeddings.weight"])
        self.norms, self.matrices = nn.ModuleDict(), nn.ModuleDict()
        self._norm("embeddings.LayerNorm", weights)
        for layer in range(LAYERS):
            for name in NORMS:
                self._norm(f"encoder.layer.{layer}.{name}", weights)
            for name in MATRICES:
                full = f"encoder.layer.{layer}.{name}"
                self.matrices[_key(full)] = Linear(
                    weights[f"{full}.weight"], weights[f"{full}.bias"], rank
                )
        self.head = nn.Linear(2 * WIDTH, 1)
        nn.init.normal_(self.head.weight, std=0.02)
        nn.init.zeros_(self.head.bias)

    def _norm(self, name: str, weights: Mapping[str, Tensor]) -> None:
        norm = nn.LayerNorm(WIDTH, eps=1e-12)
        norm.weight.data.copy_(weights[f"{name}.weight"])
        norm.bias.data.copy_(weights[f"{name}.bias"])
        self.norms[_key(name)] = norm

    def forward(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Return the logit of each pair."""
        hidden = self.encode(ids, types, mask)
        weight = mask.unsqueeze(-1).to(hidden.dtype)
        mean = (hidden * weight).sum(1) / weight.sum(1)
        return self.head(torch.cat([hidden[:, 0], mean], dim=-1).float()).squeeze(-1)

    def encode(self, ids: Tensor, types: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of all tokens."""
        positions = self.positions[: ids.shape[1]]
        hidden = self.norms[_key("embeddings.LayerNorm")](
            self.words[ids] + positions + self.token_types[types]
        )
        allowed = mask[:, None, None, :].bool()
        for layer in range(LAYERS):
            hidden = self._layer(hidden, f"encoder.layer.{layer}.", allowed)
        return hidden

    def _layer(self, hidden: Tensor, name: str, allowed: Tensor) -> Tensor:
        batch, count, _ = hidden.shape
        parts = [
            self.matrices[_key(f"{name}attention.self.{part}")](hidden)
            .view(batch, count, HEADS, -1)
            .transpose(1, 2)
            for part in ("query", "key", "value")
        ]
        found = functional.scaled_dot_product_attention(*parts, attn_mask=allowed)
        found = self.matrices[_key(f"{name}attention.output.dense")](
            found.transpose(1, 2).reshape(batch, count, WIDTH)
        )
        hidden = self.norms[_key(f"{name}attention.output.LayerNorm")](hidden + found)
        inner = functional.gelu(self.matrices[_key(f"{name}intermediate.dense")](hidden))
        return self.norms[_key(f"{name}output.LayerNorm")](
            hidden + self.matrices[_key(f"{name}output.dense")](inner)
        )

    def delta(self) -> dict[str, np.ndarray]:
        """Return what was learnt, by the names of the encoder."""
        found: dict[str, np.ndarray] = {}
        for key, matrix in self.matrices.items():
            name = key.replace("|", ".")
            found[f"{name}.down"], found[f"{name}.up"] = _half(matrix.down), _half(matrix.up)
        for key, norm in self.norms.items():
            name = key.replace("|", ".")
            found[f"{name}.weight"], found[f"{name}.bias"] = _half(norm.weight), _half(norm.bias)
        found["head.weight"], found["head.bias"] = _half(self.head.weight[0]), _half(self.head.bias)
        return found


def _key(name: str) -> str:
    return name.replace(".", "|")


def _half(value: Tensor) -> np.ndarray:
    found: np.ndarray = value.detach().float().cpu().numpy().astype(np.float16)
    return found
