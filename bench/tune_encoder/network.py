"""The encoder in torch, made for speed: the thin matrices of its change are merged into the weights
once a step, and the three matrices before the attention are one product.

`Network` has the parameters; `TokenEncoder` gives a sentence vector, a small vector for each token
and a weight for each token of a query; `Teacher` reads question and text together.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bench.train_reader.network import HEADS, LAYERS, MATRICES, NORMS, WIDTH

TOKEN_WIDTH = 48
SHARPNESS, MAX_SHARPNESS = 20.0, 80.0  # of the softmax over scores
_SHARPNESS_RATE = 10.0  # how many times faster the logarithm of the sharpness is learnt
_STACKS = {"square": list(MATRICES)[:4], "inner": list(MATRICES)[4:5], "outer": list(MATRICES)[5:]}
_NORMS = ["embeddings.LayerNorm"] + [f"encoder.layer.{n}.{name}" for n in range(LAYERS)
                                     for name in NORMS]  # fmt: skip
_PARTS, _PADDED_TO = 4, 8  # parts of a batch, by length; a multiple that fast kernels need

Arrays = Mapping[str, np.ndarray]


class Table:
    """The tokens of all texts, on the device."""

    def __init__(self, tokens: np.ndarray, lengths: np.ndarray, device: str) -> None:
        self.lengths, self.device = lengths.astype(np.int64), device
        starts = np.concatenate([[0], np.cumsum(self.lengths)[:-1]])
        self._tokens, self._starts, self._counts = (
            torch.from_numpy(values.astype(np.int64)).to(device)
            for values in (tokens, starts, self.lengths)
        )

    def inputs(self, *columns: np.ndarray) -> tuple[Tensor, Tensor, Tensor]:
        """Return the ids, segments and mask of rows: [CLS] text [SEP], and with a second column
        also its text and [SEP]."""
        sizes = sum(self.lengths[column] + 1 for column in columns) + 1
        width = -(-int(sizes.max()) // _PADDED_TO) * _PADDED_TO
        at = torch.arange(width, device=self.device)[None]
        ids = torch.where(at == 0, 101, 0).expand(len(columns[0]), -1)
        segments, end = torch.zeros_like(ids), torch.ones(len(ids), 1, dtype=torch.long)
        end = end.to(self.device)
        for number, column in enumerate(columns):
            places = torch.from_numpy(column).to(self.device)
            start, end = end, end + self._counts[places, None] + 1
            index = (self._starts[places, None] + at - start).clamp(0, len(self._tokens) - 1)
            inside = (at >= start) & (at < end)
            ids = torch.where(inside, torch.where(at == end - 1, 102, self._tokens[index]), ids)
            segments = torch.where(inside, number, segments)
        return ids, segments, at < end


class Network(nn.Module):  # type: ignore[misc]
    """The encoder with a change of any rank."""

    def __init__(self, base: Arrays, change: Arrays, device: str) -> None:
        super().__init__()
        self._dtype = torch.float32 if device == "cpu" else torch.bfloat16
        for name in ("word", "position", "token_type"):
            self.register_buffer(name, _tensor(base[f"embeddings.{name}_embeddings.weight"]))
        self.up, self.down = nn.ParameterDict(), nn.ParameterDict()
        for stack, names in _STACKS.items():
            for part in ("weight", "bias"):
                values = [base[f"{name}.{part}"] for name in _full(names)]
                self.register_buffer(f"{stack}_{part}", _stacked(values, len(names)))
            for part, parameters in (("up", self.up), ("down", self.down)):
                values = [change[f"{name}.{part}"] for name in _full(names)]
                parameters[stack] = nn.Parameter(_stacked(values, len(names)))
        self.norm_weight, self.norm_bias = (
            nn.Parameter(_tensor(np.stack([change[f"{name}.{part}"] for name in _NORMS])))
            for part in ("weight", "bias")
        )

    def merged(self) -> dict[str, Sequence[Tensor]]:
        """Return the changed weights, by layer."""
        found: dict[str, Sequence[Tensor]] = {}
        for stack in _STACKS:
            change = self.up[stack] @ self.down[stack]
            weight = (getattr(self, f"{stack}_weight") + change).flatten(1, 2)
            found[stack] = weight.to(self._dtype).unbind(0)
            found[f"{stack}_bias"] = getattr(self, f"{stack}_bias").flatten(1).to(self._dtype)
        found["norm"], found["norm_bias"] = self.norm_weight.unbind(0), self.norm_bias.unbind(0)
        return found

    def states(
        self, ids: Tensor, segments: Tensor, mask: Tensor, merged: Mapping[str, Sequence[Tensor]]
    ) -> Tensor:
        """Return the last state of each token."""
        rows, count = ids.shape
        allowed = mask[:, None, None, :]

        def norm(number: int, x: Tensor) -> Tensor:
            weight, bias = merged["norm"][number], merged["norm_bias"][number]
            return functional.layer_norm(x.float(), (WIDTH,), weight, bias, 1e-12)

        def linear(stack: str, layer: int, x: Tensor, rows: slice = slice(None)) -> Tensor:
            weight, bias = merged[stack][layer][rows], merged[f"{stack}_bias"][layer][rows]
            return functional.linear(x.to(self._dtype), weight, bias)

        state = norm(0, self.word[ids] + self.position[:count] + self.token_type[segments])
        for layer in range(LAYERS):
            attention = linear("square", layer, state, slice(3 * WIDTH))
            attended = functional.scaled_dot_product_attention(
                *attention.view(rows, count, 3, HEADS, -1).permute(2, 0, 3, 1, 4).unbind(0),
                attn_mask=allowed,
            )
            attended = attended.transpose(1, 2).reshape(rows, count, WIDTH)
            attended = linear("square", layer, attended, slice(3 * WIDTH, None))
            state = norm(1 + 2 * layer, state + attended)
            inner = functional.gelu(linear("inner", layer, state))
            state = norm(2 + 2 * layer, state + linear("outer", layer, inner))
        return state

    def delta(self) -> dict[str, np.ndarray]:
        """Return the change, by the names of the encoder, in 32 bits."""
        found: dict[str, np.ndarray] = {}
        for stack, names in _STACKS.items():
            for part in ("down", "up"):
                values = _array(getattr(self, part)[stack])
                values = values.reshape(-1, *values.shape[2:])
                for name, value in zip(_full(names), values, strict=True):
                    found[f"{name}.{part}"] = value
        for part, parameter in (("weight", self.norm_weight), ("bias", self.norm_bias)):
            for name, value in zip(_NORMS, _array(parameter), strict=True):
                found[f"{name}.{part}"] = value
        return found


@dataclass(frozen=True, slots=True)
class Encoded:
    """What the encoder gives for texts. `mask` says which tokens there are; the two around a text
    are none."""

    sentences: Tensor
    tokens: Tensor
    weights: Tensor  # their sum is 1; only those of queries are used
    mask: Tensor
    ids: Tensor

    def __getitem__(self, rows: Any) -> "Encoded":
        return Encoded(
            self.sentences[rows],
            self.tokens[rows],
            self.weights[rows],
            self.mask[rows],
            self.ids[rows],
        )

    def joined(self, others: Sequence["Encoded"]) -> "Encoded":
        """Return all rows of several, padded to the longest text."""
        parts = (self, *others)
        width = max(part.mask.shape[1] for part in parts)

        def rows(values: Tensor, part: Encoded) -> Tensor:
            missing = width - part.mask.shape[1]
            return functional.pad(values, [*[0, 0] * (values.dim() - 2), 0, missing])

        return Encoded(
            torch.cat([part.sentences for part in parts]),
            torch.cat([rows(part.tokens, part) for part in parts]),
            torch.cat([rows(part.weights, part) for part in parts]),
            torch.cat([rows(part.mask, part) for part in parts]),
            torch.cat([rows(part.ids, part) for part in parts]),
        )


class TokenEncoder(Network):
    """The encoder, and the layers of the tokens and their weights."""

    def __init__(self, base: Arrays, change: Arrays, device: str) -> None:
        super().__init__(base, change, device)
        self.tokens, self.weights = (
            nn.Linear(WIDTH, TOKEN_WIDTH, bias=False),
            nn.Linear(WIDTH, 1),
        )
        with torch.no_grad():
            for name, parameter in self._head():
                parameter.copy_(_tensor(change[name]).view_as(parameter))
        self.sharpness = nn.Parameter(torch.tensor(SHARPNESS).log() / _SHARPNESS_RATE)
        self.to(device)

    def forward(self, table: Table, places: np.ndarray) -> Encoded:
        """Encode texts. Those of similar length go together: padding would double the work."""
        merged, order = self.merged(), np.argsort(table.lengths[places], kind="stable")
        bounds = [len(order) * part // _PARTS for part in range(_PARTS + 1)]
        parts = [
            self._part(table, places[order[first:last]], merged)
            for first, last in pairwise(bounds)
            if last > first
        ]
        return parts[0].joined(parts[1:])[
            torch.from_numpy(np.argsort(order, kind="stable")).to(table.device)
        ]

    def scale(self) -> Tensor:
        """Return the sharpness of the scores by tokens."""
        return (self.sharpness * _SHARPNESS_RATE).exp().clamp(max=MAX_SHARPNESS)

    def delta(self) -> dict[str, np.ndarray]:
        return super().delta() | {name: _array(parameter) for name, parameter in self._head()}

    def _head(self) -> Sequence[tuple[str, Tensor]]:
        return (
            ("tokens.weight", self.tokens.weight),
            ("weights.weight", self.weights.weight),
            ("weights.bias", self.weights.bias),
        )

    def _part(
        self, table: Table, places: np.ndarray, merged: Mapping[str, Sequence[Tensor]]
    ) -> Encoded:
        ids, segments, mask = table.inputs(places)
        states = self.states(ids, segments, mask, merged)
        sentences = functional.normalize((states * mask.unsqueeze(-1)).sum(1), dim=-1)
        # Without the first token, and the last one of the text.
        inside, states = mask[:, 2:], states[:, 1:-1]
        tokens = functional.normalize(self.tokens(states), dim=-1)
        weights = functional.softplus(self.weights(states).squeeze(-1)) * inside
        weights = weights / weights.sum(1, keepdim=True).clamp(min=1e-6)
        return Encoded(sentences, tokens, weights, inside, ids[:, 1:-1])


class Teacher(Network):
    """The reader of bench.train_reader."""

    def __init__(self, base: Arrays, change: Arrays, device: str) -> None:
        super().__init__(base, change, device)
        self.head = nn.Linear(2 * WIDTH, 1)
        with torch.no_grad():
            self.head.weight.copy_(_tensor(change["head.weight"])[None])
            self.head.bias.copy_(_tensor(change["head.bias"]))
        self.to(device)

    def forward(self, table: Table, questions: np.ndarray, texts: np.ndarray) -> Tensor:
        """Return the logit of each pair."""
        merged, order = self.merged(), np.argsort(table.lengths[questions] + table.lengths[texts])
        logits = []
        for part in np.array_split(order, _PARTS):
            ids, segments, mask = table.inputs(questions[part], texts[part])
            states, weight = self.states(ids, segments, mask, merged), mask.unsqueeze(-1)
            mean = (states * weight).sum(1) / weight.sum(1)
            logits.append(self.head(torch.cat([states[:, 0], mean], dim=-1)).squeeze(-1))
        return torch.cat(logits)[torch.from_numpy(np.argsort(order)).to(table.device)]


def average(changes: Sequence[Arrays], rank: int) -> dict[str, np.ndarray]:
    """Return the mean of several changes; products of thin matrices as near as the rank allows."""
    found = {
        name: np.mean([change[name] for change in changes], axis=0)
        for name in changes[0]
        if not name.endswith((".up", ".down"))
    }
    for name in (name.removesuffix(".up") for name in changes[0] if name.endswith(".up")):
        ups = np.concatenate([change[f"{name}.up"] for change in changes], axis=1)
        downs = np.concatenate([change[f"{name}.down"] for change in changes]) / len(changes)
        left, left_small = np.linalg.qr(ups)
        right, right_small = np.linalg.qr(downs.T)
        small_left, sizes, small_right = np.linalg.svd(left_small @ right_small.T)
        roots = np.sqrt(sizes[:rank])
        found[f"{name}.up"] = left @ small_left[:, :rank] * roots
        found[f"{name}.down"] = roots[:, None] * (small_right[:rank] @ right.T)
    return found


def _full(names: Sequence[str]) -> list[str]:
    return [f"encoder.layer.{layer}.{name}" for layer in range(LAYERS) for name in names]


def _stacked(values: Sequence[np.ndarray], count: int) -> Tensor:
    """Return one tensor of all layers, each with `count` values."""
    return _tensor(np.stack(values)).view(LAYERS, count, *values[0].shape)


def _tensor(values: np.ndarray) -> Tensor:
    return torch.from_numpy(np.array(values, np.float32))


def _array(parameter: Tensor) -> np.ndarray:
    found: np.ndarray = parameter.detach().float().cpu().numpy()
    return found
