"""Rankers: turn a pool of candidates into scores within 0–1, and explain each score.

`rrf` is reciprocal rank fusion. `learnt` estimates the probability that a memory answers the query,
as the product of two models:
- Is the answer in this pool at all? A logistic model over the best values of the pool. A query
  about unknown people scores low throughout.
- Which candidate is it? A linear model. Each channel counts as a fraction of the pool's best and by
  its deviation from the mean; coverage and similarity count as they are, and so do speaker, time
  and form. Channels, coverage and times never lower a score. A curve then corrects the product
  where it was too high or too low on questions that the models had not seen. Every weight is a sum:
  its value for short turns of a talk, and what is added as far as the memories are long, or stand
  alone. `weights` holds the numbers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, log, log1p
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from memory_mesh.core.search.query import Contribution, Pool, Signal
from memory_mesh.core.search.weights import (
    BY_KEYWORDS,
    BY_TOKENS,
    BY_VECTORS,
    CALIBRATION,
    FRACTIONS,
    KINDS,
    MIN_EXPECTED,
    NOTHING,
    Weights,
)

K = 60  # the constant of reciprocal rank fusion

# The rows of signals, in groups, and the features made of them.
_CHANNELS = (
    "keywords",
    "keywords_context",
    "keywords_session",
    "vectors",
    "vectors_context",
    "vectors_session",
    "tokens",
    "tokens_context",
)
_COVERAGE = ("coverage", "coverage_context", "coverage_wide")
_NEIGHBOURS = ("keywords_before", "keywords_behind", "vectors_before", "vectors_behind")
_OTHERS = (
    "question", "speaker", "role", "when", "by_assistant", "question_before", "length",
    "speaker_known", "stranger", "by_user", "day", "personal", "general",
)  # fmt: skip
_SIGNALS = (*_COVERAGE, *_CHANNELS, *_NEIGHBOURS, *_OTHERS)
_AT = {name: at for at, name in enumerate(_SIGNALS)}
_DEVIATIONS, _FRACTIONS = (*_COVERAGE, *_CHANNELS), (*_CHANNELS, *_NEIGHBOURS)
_UNCHANGED = (
    *_COVERAGE,
    "vectors",
    "vectors_context",
    "tokens",
    "tokens_context",
    "question",
    "speaker",
    "role",
    "when",
    "by_assistant",
)

FEATURES = (
    *(f"{name}_z" for name in _DEVIATIONS), *(f"{name}_fraction_of_best" for name in _FRACTIONS),
    *_UNCHANGED, "length", "long", "short", "answer_keywords", "answer_vectors", "newer",
    "stranger",
)  # fmt: skip
_ROW = {name: at for at, name in enumerate(FEATURES)}
_MAXIMA = ("coverage", "vectors", "vectors_context", "tokens", "tokens_context", "speaker")
_OF_BEST = ("coverage_context", "tokens", "tokens_context", "vectors_context", "vectors")
POOL_FEATURES = (
    *(f"max_{name}" for name in _MAXIMA), *(f"best_{name}" for name in _OF_BEST),
    "best_coverage_and_vectors", "max_keywords", "no_stranger", "words", "all_words", "documents",
    "personal", "general", "bias",
)  # fmt: skip
ODDS = ("slope", "bias")
_UNCHANGED_AT = np.array([_AT[name] for name in _UNCHANGED])
_NEIGHBOURS_SPAN = slice(_AT[_NEIGHBOURS[0]], _AT[_NEIGHBOURS[-1]] + 1)
_MAY_BE_PENDING = slice(_AT["vectors"], _AT["tokens_context"] + 1)
# Of an answer, where no vector is compared.
_EVIDENCE = [_ROW[name] for name in ("coverage_wide", "speaker", "when")]
_MAXIMA_AT, _OF_BEST_AT = (
    np.array([_ROW[name] for name in names]) for names in (_MAXIMA, _OF_BEST)
)

_CURVE = np.array(CALIBRATION)
_FIRST, _MANY = 10, 50  # results; memories
_MAX_DEVIATION = 4.0
_SMALL_POOL = 10.0  # in a pool of this size a deviation counts half
_LONGEST = 400.0  # keywords
_SHORT, _LONG = np.log1p(np.array([8, 24], np.float32))
# The mean length of memories in a talk and in a chat with an assistant.
_TALK, _CHAT = np.log1p([12.0, 60.0])
_SOME_WORDS, _ALL_WORDS = 0.1, 0.999  # coverage
_TINY = 1e-6
# Of a query that was only spelled: other forms of its words may have been found by their letters.
_MIN_CHANCE = 0.03
# A low best cosine does not count as a full match: the best by keywords may be better.
_LOWEST_BEST = np.array(
    [0.3 if name.startswith(("vectors", "tokens")) else _TINY for name in _FRACTIONS], np.float32
)
_DIGITS = 4  # in which cosines of equal vectors agree
_EQUAL = 1e-3  # relative difference of candidates that match equally well
# Of one among many; a model of a few hundred questions is never surer than that.
_MAX_LOG_ODDS = 9.0
_MAX_EXPONENT = 30.0  # beyond this, 32-bit floats round to 0 and 1
# Where older versions of a statement are looked for: among the first results and as many candidates
# behind them, if they contain so much of the query.
_MAX_FIRST, _FURTHER, _MIN_COVERAGE = 50, 10, 0.3


class ScoredCandidate(NamedTuple):
    """A candidate with its score; `at` is its position in the pool."""

    score: float
    id: str
    at: int


class Step(NamedTuple):
    """The scores after one step of the ranking."""

    name: str
    scores: NDArray[np.floating[Any]]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The scores of a pool's candidates (−1: rejected by the ranker), and the features they come
    from."""

    pool: Pool
    scores: NDArray[np.floating[Any]]
    # By search mode; 0 for a mode that is not here.
    min_scores: Mapping[str, float] = field(default_factory=dict)
    found: "Features | None" = None  # None under `rrf`
    # By the id of an older version: the id of the newest one.
    newer: Mapping[str, str] = field(default_factory=dict)
    # What made the scores of the learnt ranker, and what changed them afterwards.
    steps: Sequence[Step] = ()
    spelled: bool = False  # the embedder only spelled the query
    # Under `rrf`: what each channel adds, by id.
    fused: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def features(self) -> dict[str, Signal]:
        """The features by name."""
        return self.found.named() if self.found else {}

    def best(self, min_score: float, first: int | None = None) -> list[ScoredCandidate]:
        """Return the candidates with at least this score, or the first ones, best first; equal
        scores by id, descending."""
        if first is not None and first < len(self.scores):
            # All that are equal to the last one too; a sort of all takes longer.
            min_score = max(min_score, np.partition(self.scores, -first)[-first])
        return self._sorted(self.scores >= min_score)[:first]

    def is_relevant(self, at: int) -> bool:
        """Return whether the mode `precise` returns the candidate at this position."""
        # Compared as in `best`, as numbers of 32 bits.
        return bool(self.scores[at] >= self.min_scores.get("precise", 0.0))

    def below(self, min_score: float) -> list[ScoredCandidate]:
        """Return the other candidates, best first."""
        return self._sorted((self.scores < min_score) & (self.scores >= 0))

    def twins(
        self, candidates: Sequence[ScoredCandidate], found: Sequence[ScoredCandidate]
    ) -> list[ScoredCandidate]:
        """Return the candidates that match as well as one of `found` by keywords and vectors, as
        those of the same text do."""
        marks = self.pool.signals["keywords"] + 1j * self.pool.signals["vectors"].round(_DIGITS)
        among, known = (marks[[each.at for each in some]] for some in (candidates, found))
        alike = np.isin(among, known) & (among != 0)
        return [each for each, twin in zip(candidates, alike.tolist(), strict=True) if twin]

    def alike(self, first: int) -> list[list[ScoredCandidate]]:
        """Return groups of the best candidates that contain the same words of the query; turns of
        conversations are left out.

        The groups of the two best are one group: their texts decide whether they are versions of
        one statement.
        """
        coverage, groups = self.pool.signals["coverage"], dict[float, list[ScoredCandidate]]()
        spoken = self.pool.signals["speaker_known"]
        if self.found is None or spoken.all():
            return []
        best = self.best(0, min(first, _MAX_FIRST) + _FURTHER)
        top, *others = (
            (round(float(coverage[each.at]), _DIGITS) for each in best[:2]) if best else (0.0,)
        )
        for each in best:
            covered = round(float(coverage[each.at]), _DIGITS)
            if covered >= _MIN_COVERAGE and not spoken[each.at]:
                groups.setdefault(top if covered in others else covered, []).append(each)
        return [group for group in groups.values() if len(group) > 1]

    def newest_first(self, versions: Iterable[Sequence[ScoredCandidate]]) -> "Ranking":
        """Return the same ranking in which the versions of a statement, given newest first, have
        their scores in this order."""
        scores, newer = self.scores.copy(), dict(self.newer)
        for group in versions:
            above = np.inf
            for each, score in zip(
                group, sorted((each.score for each in group), reverse=True), strict=True
            ):
                # Never equal: equal scores would be ordered by id.
                above = scores[each.at] = min(
                    scores.dtype.type(score), np.nextafter(scores.dtype.type(above), 0)
                )
            newer |= {each.id: group[0].id for each in group[1:]}
        steps = (*self.steps, Step("versions", scores))
        return replace(self, scores=scores, steps=steps, newer=newer)

    def lifted(self, *groups: Sequence[tuple[int, int]]) -> "Ranking":
        """Return the same ranking in which the first candidate of each pair, by its place in the
        pool, stands above the second and has at least its score. The second one keeps its own, or
        gets one just below.

        The last pair of a group has the candidate that stands above all others of equal score. A
        later group has the last word.
        """
        scores, newer, ids = self.scores.copy(), dict(self.newer), self.pool.ids
        number = scores.dtype.type
        for pairs in groups:
            rank = {upper: at for at, (upper, _) in enumerate(pairs)}
            for upper, lower in pairs:
                scores[upper] = max(scores[upper], scores[lower])
            places = {place: rank.get(place, -1) for pair in pairs for place in pair}
            above, best_first = (
                number(np.inf),
                sorted(places, key=lambda place: (scores[place], places[place]), reverse=True),
            )
            for place in best_first:
                # Never equal: equal scores would be ordered by id.
                if scores[place] > 0:
                    above = scores[place] = min(scores[place], np.nextafter(above, number(0)))
            uppers = {ids[lower]: ids[upper] for upper, lower in pairs}
            newer = {id_: other for id_, other in newer.items() if uppers.get(other) != id_}
            for id_ in (ids[place] for place in best_first):
                if id_ in uppers:  # the one that stands above its whole chain
                    newer[id_] = newer.get(uppers[id_], uppers[id_])
        steps = (*self.steps, Step("changes", scores))
        return replace(self, scores=scores, steps=steps, newer=newer)

    def _sorted(self, chosen: NDArray[np.bool_]) -> list[ScoredCandidate]:
        at = chosen.nonzero()[0]
        scores = self.scores.take(at)
        order = (-scores).argsort(kind="stable")
        places, scores = at[order].tolist(), scores[order]
        ids = map(self.pool.ids.__getitem__, places)
        found = list(map(ScoredCandidate._make, zip(scores.tolist(), ids, places, strict=True)))
        if (scores[1:] == scores[:-1]).any():  # only equal scores are compared by id
            found.sort(reverse=True)
        return found


def rank(
    ranker: str,
    pool: Pool,
    *,
    depth: int,
    by_vector: bool,
    spelled: bool = False,
    weights: Mapping[str, float] | None = None,
) -> Ranking:
    """Score a pool. `depth` and `weights` are for `rrf`: candidates taken from each channel, and
    the weight of each channel.

    If the embedder only spelled the query, its vector reflects letters, not meanings: it still
    orders the candidates, but whether the answer is among them is judged by keywords.
    """
    if ranker == "rrf":
        channels = {
            name: order(pool, name, depth)
            for name in (("keywords", "vectors") if by_vector else ("keywords",))
        }
        parts = rrf_parts(channels, weights)
        fused = summed(parts)
        return Ranking(
            pool, np.array([fused.get(id_, -1.0) for id_ in pool.ids], np.float64), fused=parts
        )
    found = features(pool)
    scores = model(found.means).scores(found, spelled=spelled)
    steps = (Step("calibration", scores),)
    return Ranking(
        pool, scores, min_scores(scores, pool.documents), found, steps=steps, spelled=spelled
    )


def min_scores(
    scores: Sequence[float] | NDArray[np.floating[Any]], documents: int
) -> dict[str, float]:
    """Return the minimum score of each mode for candidates with these scores among so many
    memories.

    Only where enough right answers are expected does a mode return any; the fewer memories there
    are, the less one of them fits by chance. Then each needs a fraction of the best score.
    """
    expected, best = expected_right(scores), float(np.max(scores, initial=0))
    few = min(1.0, log1p(documents) / log1p(_MANY))
    # None of the scores reaches what their sum does not.
    return {
        mode: best * FRACTIONS[mode] if expected >= least * few else least * few
        for mode, least in MIN_EXPECTED.items()
    }


def expected_right(scores: Sequence[float] | NDArray[np.floating[Any]]) -> float:
    """Return how many right answers are expected among the first ten: a score is the chance of
    being one."""
    values = np.asarray(scores, np.float64)
    return float(
        np.partition(values, -_FIRST)[-_FIRST:].sum() if len(values) > _FIRST else values.sum()
    )


def order(pool: Pool, channel: str, depth: int | None = None) -> Sequence[str]:
    """Return the ids in the order of one channel. Keyword channels contain only matches, vector
    channels every candidate."""
    values = zip(pool.signals[channel].tolist(), pool.ids, strict=True)
    ranked = [pair for pair in values if channel.startswith("vectors") or pair[0] > 0]
    return [id_ for _, id_ in sorted(ranked, reverse=True)[:depth]]


def rrf(
    channels: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None
) -> dict[str, float]:
    """Fuse rankings by reciprocal rank, divided by the maximum for these channels: first in
    every channel is 1."""
    return summed(rrf_parts(channels, weights))


def rrf_parts(
    channels: Mapping[str, Sequence[str]], weights: Mapping[str, float] | None = None
) -> dict[str, dict[str, float]]:  # fmt: skip
    """Return what each channel adds to the fused score, by channel and id."""
    channel_weights = {name: (weights or {}).get(name, 1.0) for name in channels}
    maximum = sum(channel_weights.values()) / (K + 1)
    if not maximum:
        return {}
    return {
        name: {
            id_: channel_weights[name] / (K + position) / maximum
            for position, id_ in enumerate(ids, start=1)
        }
        for name, ids in channels.items()
    }


def summed(parts: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    """Return the fused score of each id."""
    fused: dict[str, float] = {}
    for channel in parts.values():
        for id_, part in channel.items():
            fused[id_] = fused.get(id_, 0.0) + part
    # The sum of five channels can round to above one.
    return {id_: min(1.0, value) for id_, value in fused.items()}


# --- the learnt ranker ---


@dataclass(frozen=True, slots=True)
class Features:
    """The features of a pool: a row for each name in `FEATURES`, an entry for each candidate."""

    rows: Signal
    kinds: Signal  # 1, then how far the pool is of each kind in `weights.KINDS`, 0–1
    # What the candidates were compared by, besides keywords; see `WEIGHTS`.
    means: str = "keywords"
    # Memories that could have been candidates: the more, the better the best of them matches by
    # chance.
    documents: int = 0
    # The best BM25 score, as log(1 + score): one common word is little evidence, even if it is all.
    max_keywords: float = 0.0
    # Whether the query is personal, and whether it is general.
    form: tuple[float, float] = (0.0, 0.0)

    def named(self) -> dict[str, Signal]:
        """Return the features by name."""
        return dict(zip(FEATURES, self.rows, strict=True))


class Model:
    """Weights as arrays."""

    def __init__(self, weights: Weights) -> None:
        parts = ((weights.candidate, FEATURES), (weights.odds, ODDS), (weights.pool, POOL_FEATURES))
        self._candidate, self._odds, self._pool = (
            np.array([table.get(name, NOTHING) for name in names], np.float32).T
            for table, names in parts
        )

    def weights(self, features: Features) -> Signal:
        """Return the weight of each feature for a pool of this kind, in the order of `FEATURES`."""
        return np.asarray(features.kinds @ self._candidate, np.float32)

    def points(self, features: Features) -> Signal:
        """Return the weighted sum of each candidate's features."""
        return np.asarray(self.weights(features) @ features.rows, np.float32)

    def odds(self, features: Features) -> tuple[float, float]:
        """Return slope and bias of the line from log odds to calibrated log odds."""
        slope, bias = (features.kinds @ self._odds).tolist()
        return slope, bias

    def chance(self, features: Features, points: Signal, *, spelled: bool = False) -> float:
        """Return the probability that the answer is in the pool."""
        return (
            model("keywords")._chance_by_words(features, points)
            if spelled
            else self._chance(features, points)
        )

    def scores(
        self, features: Features, *, spelled: bool = False, calibrated: bool = True
    ) -> Signal:
        """Return the probability of each candidate, 0–1; for learning the curve of calibration,
        without it."""
        if features.means == "keywords" and not features.rows[_EVIDENCE].any():
            return np.zeros(features.rows.shape[1], np.float32)
        points = self.points(features)
        slope, bias = self.odds(features)
        scores = self.chance(features, points, spelled=spelled) / (
            1 + np.exp(-bias - slope * log_odds(points))
        )
        # Learnt on memories of sessions; of others the scores are probabilities as they are.
        together = 1 - features.kinds[1 + KINDS.index("alone")] if calibrated else 0.0
        return np.asarray(scores + together * (np.interp(scores, *_CURVE) - scores), np.float32)

    def _chance(self, features: Features, points: Signal) -> float:
        odds = float(features.kinds @ self._pool @ pool_features(features, points))
        return 1 / (1 + exp(-min(max(odds, -_MAX_EXPONENT), _MAX_EXPONENT)))

    def _chance_by_words(self, features: Features, points: Signal) -> float:
        """Return the same for a query that was only spelled: without a common word there is
        little chance."""
        chance = self._chance(features, points) if features.rows[_ROW["coverage"]].any() else 0.0
        return max(chance, _MIN_CHANCE)


# By what candidates are compared by: token vectors and vectors, only vectors, or only keywords.
WEIGHTS = {"tokens": BY_TOKENS, "vectors": BY_VECTORS, "keywords": BY_KEYWORDS}


@cache
def model(means: str) -> Model:
    """Return the model for pools that are compared by these means."""
    return Model(WEIGHTS[means])


def features(pool: Pool) -> Features:
    """Return the features of a pool."""
    size = len(pool.ids)
    rows = np.empty((len(FEATURES), size), np.float32)
    if not size:
        return Features(rows, np.zeros(1 + len(KINDS), np.float32))
    signals = np.array([pool.signals[name] for name in _SIGNALS])
    zero = signals == 0
    means = next((name for name in ("tokens", "vectors") if not zero[_AT[name]].all()), "keywords")
    if means != "keywords" and zero[_MAY_BE_PENDING].any():
        for cosines in signals[_MAY_BE_PENDING]:
            _fill_pending(cosines)
    first, second = len(_DEVIATIONS), len(_DEVIATIONS) + len(_FRACTIONS)
    _deviations(signals[:first], rows[:first])
    _fractions(signals[len(_COVERAGE) : len(_COVERAGE) + len(_FRACTIONS)], rows[first:second])
    signals.take(_UNCHANGED_AT, axis=0, out=rows[second : second + len(_UNCHANGED)], mode="clip")
    length, long, short, by_keywords, by_cosine, newer, stranger = rows[second + len(_UNCHANGED) :]
    np.log1p(np.minimum(signals[_AT["length"]], _LONGEST), out=length)
    np.maximum(length - _LONG, 0, out=long)
    np.maximum(_SHORT - length, 0, out=short)
    asked = signals[_AT["question_before"]]
    np.multiply(asked, rows[_ROW["keywords_before_fraction_of_best"]], out=by_keywords)
    np.multiply(asked, rows[_ROW["vectors_before_fraction_of_best"]], out=by_cosine)
    _places(signals[_AT["day"]], newer)
    # Only if memories have speakers does an unknown name mean that the query is about somebody
    # else.
    stranger[:] = signals[_AT["stranger"]] * signals[_AT["speaker_known"]].max()
    alone = 1 - (size - np.count_nonzero(zero[_NEIGHBOURS_SPAN].all(axis=0))) / size
    is_long = min(max((float(np.add.reduce(length)) / size - _TALK) / (_CHAT - _TALK), 0.0), 1.0)
    chat = float(np.add.reduce(signals[_AT["by_user"]] + signals[_AT["by_assistant"]])) / size
    kinds, max_keywords = (
        np.array((1, is_long, alone, chat), np.float32),
        log1p(float(signals[_AT["keywords"]].max())),
    )
    form = float(signals[_AT["personal"]].max()), float(signals[_AT["general"]].max())
    return Features(rows, kinds, means, pool.documents, max_keywords, form)


def log_odds(points: Signal) -> Signal:
    """Return the log odds of each candidate, given that the answer is in the pool.

    Several that match best, and equally well, are not rivals: of ten memories of one text, each is
    as right as it would be alone.
    """
    parts = np.exp(points - points.max())
    equals = np.count_nonzero(parts > 1 - _EQUAL) - 1
    rest = np.maximum(parts.sum() - equals - parts, _TINY)
    odds: Signal = np.log(np.maximum(parts, _TINY) / rest)
    np.maximum(odds, -_MAX_LOG_ODDS, out=odds)  # `np.clip` takes three times as long as both
    return np.minimum(odds, _MAX_LOG_ODDS, out=odds)


def pool_features(features: Features, points: Signal) -> Signal:
    """Return the features that predict whether the answer is in the pool, in the order of
    `POOL_FEATURES`."""
    rows, best = features.rows, points.argmax()
    maxima = rows.take(_MAXIMA_AT, axis=0).max(axis=1)
    # In a script that the embedder hardly reads, all texts are similar: without any common word a
    # cosine says little.
    words = min(maxima[0] / _SOME_WORDS, 1)
    of_best = rows[_OF_BEST_AT, best]
    both = rows[_ROW["coverage"], best] * of_best[-1]
    others = (
        both,
        features.max_keywords,
        1 - rows[-1].max(),
        words,
        maxima[0] > _ALL_WORDS,
        log1p(features.documents),
        *features.form,
        1,
    )
    return np.concatenate((maxima, of_best, others)).astype(np.float32)


def _places(days: Signal, out: Signal) -> None:
    """Write the fraction of the other candidates that are older than each; one of the same time
    counts half."""
    order, others = np.sort(days), max(len(days) - 1, 1)
    older, not_newer = order.searchsorted(days, "left"), order.searchsorted(days, "right")
    np.divide(older + not_newer - 1, 2 * others, out=out, casting="unsafe")


def _fractions(rows: Signal, out: Signal) -> None:
    """Write each value as a fraction of the best of its row, which is at least the row's of
    `_LOWEST_BEST`."""
    best = np.maximum(rows.max(axis=1), _LOWEST_BEST)
    np.maximum(np.divide(rows, best[:, None], out=out), 0, out=out)


def _deviations(rows: Signal, out: Signal) -> None:
    """Write how many standard deviations each value lies above the mean of its row."""
    size = rows.shape[1]
    np.subtract(rows, np.add.reduce(rows, axis=1, keepdims=True) / np.float32(size), out=out)
    spread = np.sqrt(np.vecdot(out, out) / size)
    weight = size / (size + _SMALL_POOL)
    factors = np.divide(weight, spread, out=np.zeros_like(spread), where=spread > _TINY)
    np.multiply(out, factors[:, None], out=out)
    np.maximum(out, np.float32(-_MAX_DEVIATION * weight), out=out)
    np.minimum(out, np.float32(_MAX_DEVIATION * weight), out=out)


def _fill_pending(cosines: Signal) -> None:
    """Replace the 0 of memories whose vector is pending by the mean of the others."""
    missing = cosines == 0
    if missing.any() and not missing.all():
        cosines[missing] = cosines[~missing].mean()


# --- explanation ---
# The parts of a score sum to its log-odds. Of a candidate's feature, the part is slope × weight ×
# how far its value lies above the mean of the candidates. What follows does not go by features, and
# each step is one part: the strength of the rivals, the doubt whether there is an answer at all,
# the calibration, and the order of versions. Under `rrf` the parts of the channels sum to the score
# itself.

# By signal: what it means, and the signals whose features it gathers.
_GATHERED = {
    "words": ("words of the question in it", ("coverage", "keywords")),
    "words_around": (
        "words of the question in the memories around it",
        (
            "coverage_context",
            "coverage_wide",
            "keywords_context",
            "keywords_before",
            "keywords_behind",
        ),
    ),
    "meaning": ("similar meaning", ("vectors",)),
    "meaning_around": (
        "similar meaning of the memories around it",
        ("vectors_context", "vectors_before", "vectors_behind"),
    ),
    "similar_words": ("words of similar meaning in it", ("tokens",)),
    "similar_words_around": (
        "words of similar meaning in it or in the memory before it",
        ("tokens_context",),
    ),
    "session": ("its whole session", ("keywords_session", "vectors_session")),
    "speaker": ("said by the person named", ("speaker",)),
    "role": ("said by the one who is asked about", ("role",)),
    "time": ("fits the time named", ("when",)),
    "answer": ("follows a question like this one", ("answer_keywords", "answer_vectors")),
    "question": ("asks instead of telling", ("question",)),
    "length": ("its length", ("length", "long", "short")),
    "assistant": ("said by the assistant", ("by_assistant",)),
    "age": ("newer than other candidates", ("newer",)),
    "stranger": ("the question names someone unknown", ("stranger",)),
}
_MEANINGS = {
    **{name: meaning for name, (meaning, _) in _GATHERED.items()},
    "rivals": "number and strength of the other candidates",
    "doubt": "doubt whether any memory answers this",
    "calibration": "correction learnt from questions with known answers",
    "versions": "order of versions: the newest or the valid one first",
    "changes": "order of changes: what holds now, or held at the asked time, first",
    "keywords": "its place by words",
    "vectors": "its place by meaning",
}
_NAME_OF = {signal: name for name, (_, signals) in _GATHERED.items() for signal in signals}
_OF_FEATURE = [
    _NAME_OF[feature.removesuffix("_z").removesuffix("_fraction_of_best")] for feature in FEATURES
]
# A memory without neighbours is its own context and session: those signals repeat its own words and
# meaning.
_BY_PREFIX = {
    "coverage": "words",
    "keywords": "words",
    "vectors": "meaning",
    "tokens": "similar_words",
}
_OF_FEATURE_ALONE = [
    _BY_PREFIX.get(feature.partition("_")[0], name)
    for feature, name in zip(FEATURES, _OF_FEATURE, strict=True)
]
_NEIGHBOUR_SIGNALS = [
    at for at, feature in enumerate(FEATURES) if "_before_" in feature or "_behind_" in feature
]
_TINY_PART = 1e-9


def contributions(ranking: Ranking, at: int) -> list[Contribution]:
    """Return what each signal contributed to the score of the candidate at this position of the
    pool, largest first.

    A score of 0 has no log-odds, and no contributions.
    """
    if ranking.found is None:
        parts = {
            name: by_id[ranking.pool.ids[at]]
            for name, by_id in ranking.fused.items()
            if ranking.pool.ids[at] in by_id
        }
    elif all(step.scores[at] > 0 for step in ranking.steps):
        parts = _of_features(ranking.found, at, model(ranking.found.means), spelled=ranking.spelled)
        reached = sum(parts.values())
        for step in ranking.steps:
            after = _logit(float(step.scores[at]))
            parts[step.name] = parts.get(step.name, 0.0) + after - reached
            reached = after
    else:
        parts = {}
    found = [
        Contribution(name, _MEANINGS[name], value)
        for name, value in parts.items()
        if abs(value) > _TINY_PART
    ]
    return sorted(found, key=lambda one: -abs(one.value))


def _of_features(found: Features, at: int, learnt: Model, *, spelled: bool) -> dict[str, float]:
    """Return the parts up to the probability before it is calibrated."""
    points, (slope, bias) = learnt.points(found), learnt.odds(found)
    rows = found.rows.astype(np.float64)
    by_feature = slope * learnt.weights(found) * (rows[:, at] - rows.mean(axis=1))
    parts = dict.fromkeys(_GATHERED, 0.0)
    names = _OF_FEATURE if rows[_NEIGHBOUR_SIGNALS, at].any() else _OF_FEATURE_ALONE
    for name, value in zip(names, by_feature.tolist(), strict=True):
        parts[name] += value
    best_of_pool = bias + slope * float(log_odds(points)[at])  # given that there is an answer
    parts["rivals"] = best_of_pool - sum(parts.values())
    chance = learnt.chance(found, points, spelled=spelled) / (1 + np.exp(-best_of_pool))
    parts["doubt"] = _logit(float(chance)) - best_of_pool
    return parts


def _logit(chance: float) -> float:
    within = min(max(chance, _TINY_PART), 1 - _TINY_PART)
    return log(within / (1 - within))
