"""The figures of an evaluation, computed from what each question found, and the report that holds them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import ceil

from memory_mesh.core.reprs import short_repr

GIVEN = "given"
CUTS = (1, 5, 10)
MAX_IDS = 5  # of a finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, and the memories that answer it, by id or text. Without any, the right answer is nothing."""

    text: str
    expected: tuple[str, ...] = ()
    kind: str = GIVEN  # the type of the memory that it was made from


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A question, the rank of each expected memory among the results, and how many results a precise search has."""

    question: Question
    ranks: tuple[int | None, ...] = ()  # from 1; None: not among the first ten
    precise: int = 0
    ms: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrieval:
    """How well questions find the memories that answer them. A figure is None without questions."""

    questions: int
    recall: Mapping[int, float | None]  # by cut: the mean fraction of the expected memories among the first 1, 5 and 10
    mrr: float | None  # the mean of 1 ÷ the rank of the first right answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Nothing:
    """How many questions about nothing that is stored are answered by nothing, in precise mode.

    `control` is the fraction of the other questions that precise mode answers by something. Without a control above 0 an empty
    answer proves nothing, and the fraction is None.
    """

    questions: int
    fraction: float | None
    control: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One check of the hygiene of a store: how many of the checked are wrong, and what to do."""

    name: str
    count: int
    of: int  # how many were checked
    ids: tuple[str, ...] = ()  # the first of them
    remedy: str = ""  # if there are any
    fails: bool = False  # makes the evaluation fail
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """The result of an evaluation."""

    __repr__ = short_repr

    memories: int  # active ones that the reader sees
    made: bool  # the questions were made from the memories
    retrieval: Retrieval
    by_kind: Mapping[str, Retrieval]
    nothing: Nothing
    median_ms: float | None
    p95_ms: float | None
    advice: Mapping[str, str]  # by figure: what would improve it
    hygiene: Sequence[Finding]
    answered: Sequence[Answered] = field(default=(), repr=False)
    by_model: int = 0  # questions that a language model wrote; the other made ones are by rules
    note: str = ""  # why it wrote no more

    @property
    def failures(self) -> list[str]:
        """Return what makes the evaluation fail, whatever the thresholds."""
        return [f"{one.name}: {one.count}" for one in self.hygiene if one.fails and one.count]


def retrieval(answered: Sequence[Answered]) -> Retrieval:
    """Return the figures of the questions that expect a memory."""
    asked = [one for one in answered if one.question.expected]
    recall = {cut: _mean([_found(one, cut) for one in asked]) for cut in CUTS}
    first = [min((rank for rank in one.ranks if rank), default=None) for one in asked]
    return Retrieval(questions=len(asked), recall=recall, mrr=_mean([1 / rank if rank else 0.0 for rank in first]))


def nothing(answered: Sequence[Answered]) -> Nothing:
    """Return the figures of the questions that expect nothing, with those of the others as a control."""
    control = _mean([float(one.precise > 0) for one in answered if one.question.expected])
    asked = [one for one in answered if not one.question.expected]
    fraction = _mean([float(one.precise == 0) for one in asked])
    return Nothing(questions=len(asked), fraction=fraction if control else None, control=control)


def latency(answered: Sequence[Answered]) -> tuple[float | None, float | None]:
    """Return the median and the 95th percentile of the times, each the time of a search that was made."""
    times = sorted(one.ms for one in answered)
    if not times:
        return None, None
    return times[ceil(len(times) * 0.5) - 1], times[ceil(len(times) * 0.95) - 1]


def _found(one: Answered, cut: int) -> float:
    return sum(rank is not None and rank <= cut for rank in one.ranks) / len(one.question.expected)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
