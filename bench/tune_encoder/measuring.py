"""How the answers of questions are ranked: by sentence vectors, by token vectors, and by both."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import groupby

import numpy as np
import torch
from torch import Tensor

from bench.tune_encoder.data import Query
from bench.tune_encoder.network import Encoded, Table, TokenEncoder

FIGURES = ("first", "in three", "missing in ten", "recall@5", "recall@10")
_QUERIES, _TEXTS = 16, 1024  # at once
_LEVELS = 127  # of a number of 8 bits


def show(name: str, ranked: Iterable[tuple[Query, Sequence[int]]]) -> None:
    """Print by label how the answers are ranked, in percent."""
    rows: dict[str, list[list[float]]] = defaultdict(list)
    for query, places in ranked:
        hits, count = [place in query.gold for place in places[:10]], len(query.gold)
        for label in query.labels:
            rows[label].append(
                [
                    any(hits[:1]),
                    any(hits[:3]),
                    not any(hits),
                    sum(hits[:5]) / count,
                    sum(hits) / count,
                ]
            )
    for label, some in sorted(rows.items()):
        figures = zip(FIGURES, 100 * np.mean(some, axis=0), strict=True)
        print(
            f"{name}: {label}:",
            ", ".join(f"{figure} {value:.1f}" for figure, value in figures),
            flush=True,
        )


def token_scores(queries: Encoded, tokens: Tensor, mask: Tensor) -> Tensor:
    """Return the score of each text for each query: the sum over the query's tokens of their
    weight times the best match in the text. The texts are those of each query, or one list for
    all."""
    matches = torch.einsum("bqd,bcld->bcql", queries.tokens, tokens)
    best = matches.masked_fill(~mask[:, :, None], -1.0).amax(-1)
    return (best * queries.weights[:, None]).sum(-1)


def content(texts: Encoded, function_words: Tensor) -> Tensor:
    """Return the mask of the tokens that a memory stores: not the function words, unless there is
    nothing else."""
    mask = texts.mask & ~torch.isin(texts.ids, function_words)
    return torch.where(mask.any(1, keepdim=True), mask, texts.mask)


def measure(
    name: str,
    encoder: TokenEncoder,
    queries: Sequence[Query],
    table: Table,
    function_words: Tensor,
) -> None:
    """Print how each kind of score ranks the answers."""
    ranked: dict[str, list[tuple[Query, Sequence[int]]]] = defaultdict(list)
    with torch.no_grad():
        for candidates, group in groupby(queries, key=lambda query: list(query.candidates)):
            some, places = list(group), np.array(candidates)
            texts = _encoded(encoder, table, places)
            asked = _encoded(encoder, table, np.array([query.place for query in some]))
            for first in range(0, len(some), _QUERIES):
                part = slice(first, first + _QUERIES)
                for kind, scores in _scores(asked[part], texts, function_words).items():
                    order = torch.argsort(-scores, dim=1, stable=True)[:, :10].cpu().numpy()
                    ranked[kind] += zip(some[part], places[order].tolist(), strict=True)
    for kind, rows in ranked.items():
        show(f"{name}, {kind}", rows)


def _encoded(encoder: TokenEncoder, table: Table, places: np.ndarray) -> Encoded:
    parts: list[Encoded] = [
        encoder(table, places[first : first + _TEXTS]) for first in range(0, len(places), _TEXTS)
    ]
    return parts[0] if len(parts) == 1 else parts[0].joined(parts[1:])


def _scores(queries: Encoded, texts: Encoded, function_words: Tensor) -> dict[str, Tensor]:
    rounded = (texts.tokens * _LEVELS).round() / _LEVELS
    stored = content(texts, function_words)
    sentences = queries.sentences @ texts.sentences.T
    by_tokens = token_scores(queries, rounded[None], stored[None])
    return {
        "sentence": sentences,
        "tokens": token_scores(queries, texts.tokens[None], texts.mask[None]),
        "tokens of 8 bits": token_scores(queries, rounded[None], texts.mask[None]),
        "tokens of 8 bits without function words": by_tokens,
        "both": _standard(sentences) + _standard(by_tokens),
    }


def _standard(scores: Tensor) -> Tensor:
    return (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True).clamp(min=1e-6)
