"""The judge in torch: the encoder with a low-rank change reads two statements together.

The input is [CLS] older [SEP] newer [SEP], with the segments 0 and 1. The head gets the state of
the first token and the mean of the states of all tokens, and gives a logit for each class.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor, nn

from bench.train_judge.data import CLASSES, Pair
from bench.train_reader.network import DELTA, WIDTH
from bench.tune_encoder.network import Arrays, Network, Table

RANK = 10
_PARTS = 4  # of a batch, by length
_AT_ONCE = 4096  # pairs that are judged together
_MASK = 103


class Judge(Network):
    """The encoder with a change, and the head. While it learns, a fraction of the tokens is
    masked."""

    def __init__(self, base: Arrays, change: Arrays, device: str, masked: float = 0.0) -> None:
        super().__init__(base, change, device)
        self._masked, self.head = masked, nn.Linear(2 * WIDTH, len(CLASSES))
        with torch.no_grad():
            self.head.weight.copy_(torch.from_numpy(np.array(change["head.weight"], np.float32)))
            self.head.bias.copy_(torch.from_numpy(np.array(change["head.bias"], np.float32)))
        self.to(device)

    def forward(self, table: Table, pairs: Sequence[Pair]) -> Tensor:
        """Return the logits of each pair."""
        older, newer = np.array([(pair.older, pair.newer) for pair in pairs]).T.copy()
        merged, order = self.merged(), np.argsort(table.lengths[older] + table.lengths[newer])
        logits = []
        for part in np.array_split(order, min(_PARTS, len(order))):
            ids, segments, mask = table.inputs(older[part], newer[part])
            if torch.is_grad_enabled() and self._masked:
                chosen = torch.rand(ids.shape, device=ids.device) < self._masked
                ids = torch.where(chosen & (ids > _MASK), _MASK, ids)
            states, weight = self.states(ids, segments, mask, merged), mask.unsqueeze(-1)
            mean = (states * weight).sum(1) / weight.sum(1)
            logits.append(self.head(torch.cat([states[:, 0], mean], dim=-1)))
        return torch.cat(logits)[torch.from_numpy(np.argsort(order)).to(table.device)]

    def logits(self, table: Table, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the logits of many pairs, without gradients."""
        lengths = [table.lengths[pair.older] + table.lengths[pair.newer] for pair in pairs]
        order, rows = np.argsort(lengths), np.zeros((len(pairs), len(CLASSES)))
        with torch.no_grad():
            for first in range(0, len(order), _AT_ONCE):
                part = order[first : first + _AT_ONCE]
                rows[part] = self(table, [pairs[at] for at in part]).float().cpu().numpy()
        return rows

    def delta(self) -> dict[str, np.ndarray]:
        return super().delta() | {
            f"head.{name}": parameter.detach().float().cpu().numpy()
            for name, parameter in self.head.named_parameters()
        }


def first_change() -> dict[str, np.ndarray]:
    """Return the start of what is learnt: the change of the reader, which already compares two
    texts, with further rows that do nothing yet, and a small random head."""
    rng = np.random.default_rng(0)
    with np.load(DELTA) as reader:
        change = {name: value.astype(np.float32) for name, value in reader.items()}
    for name, value in change.items():
        if name.endswith(".down"):
            missing = (RANK - len(value), value.shape[1])
            rows = rng.normal(size=missing).astype(np.float32) / np.sqrt(value.shape[1])
            change[name] = np.concatenate([value, rows])
        elif name.endswith(".up"):
            change[name] = np.pad(value, ((0, 0), (0, RANK - value.shape[1])))
    weight = rng.normal(scale=0.02, size=(len(CLASSES), 2 * WIDTH)).astype(np.float32)
    return change | {"head.weight": weight, "head.bias": np.zeros(len(CLASSES), np.float32)}
