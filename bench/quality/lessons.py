"""The training data of the ranker: LongMemEval's questions, each with a small set of its sessions.

- **chat**: the sessions as they are, a user and an assistant.
- **talk**: the same sessions as two people would talk: the user's turns in single sentences, of
  each reply its end, both by name, and the question by name as well. Assistants are long and never
  hold what users tell of themselves; a ranker that sees only them learns who speaks instead of what
  is said.
- **few**: up to sixty memories of no session and no speaker, mostly up to six.
- **chats**: all evidence sessions at once.

A question is also asked **away**, where no answer is: of the same people without the sessions that
contain it ("gone"), of two other people by their own names ("swapped"), or by a name that is
unknown there ("strangers"). **Unrelated** questions are asked of memories of all these kinds.
"""

import json
import lzma
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from random import Random
from typing import Any

from bench.quality.sets import (
    Question,
    Said,
    chat_time,
    chat_turns,
    evidence_turns,
    longmemeval_oracle_turns,
    read,
)
from memory_mesh.core.search import tokens

_PEOPLE = (
    ("Maria", "Peter"), ("Helen", "Oliver"), ("Marcus", "Julia"), ("Sophie", "Martin"),
    ("Daniel", "Laura"), ("Victor", "Emily"), ("Nina", "Robert"), ("Alice", "Thomas"),
    ("George", "Hannah"), ("Clara", "Leon"),
)  # fmt: skip
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_SHORTEST, _REPLY = 25, 200  # characters
_HALF = 0.5
_DATED = 0.15  # the fraction of questions that contain the date of their answer
_SIZES = (3, 25, 50)  # sessions besides the question's own
# Other memories in a world of few, and how often there are really few.
_FEW, _MANY, _OFTEN = 5, (10, 60), 0.6
AWAY = ("gone", "swapped", "strangers")
# Sources of question_pairs.
_UNRELATED = ("squad", "nq", "strategyqa", "qed", "qmsum", "schema_guided_dialogue")
_EACH = 75  # unrelated questions of each source
_STORES = (5, 50, 500)  # memories
_REPEATED = 15  # unrelated questions to the same stores


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Some memories and a question. `number` identifies the question: none is used both to train
    and to test."""

    memories: Sequence[Said]
    question: Question
    number: int


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of the data set."""

    number: int
    row: Any

    @property
    def own(self) -> list[str]:
        return list(self.row["haystack_session_ids"])

    @property
    def people(self) -> tuple[str, str]:
        return _PEOPLE[self.number % len(_PEOPLE)]


class Lessons:
    """All evidence sessions of LongMemEval, and worlds built from them."""

    def __init__(self, folder: Path) -> None:
        rows = read(folder / "longmemeval_oracle" / "longmemeval_oracle.json")
        self._rows = [
            _Row(number, row)
            for number, row in enumerate(rows)
            if not row["question_id"].endswith("_abs")
        ]
        self._turns: dict[str, tuple[str, Any]] = {}
        self._owner: dict[str, _Row] = {}
        for asked in (_Row(number, row) for number, row in enumerate(rows)):
            for key, at, turns in zip(
                asked.own, asked.row["haystack_dates"], asked.row["haystack_sessions"], strict=True
            ):
                self._turns.setdefault(key, (chat_time(at), turns))
                self._owner.setdefault(key, asked)
        self._talk = {key: list(self._said_by_name(key)) for key in self._turns}

    def chats(self, folder: Path) -> Iterator[World]:
        """Build one world of all sessions for all questions."""
        [space] = longmemeval_oracle_turns(folder)
        numbers = {asked.row["question"]: asked.number for asked in self._rows}
        yield from (
            World(memories=space.memories, question=each, number=numbers[each.text])
            for each in space.questions
        )

    def chat(self, *, away: bool = False, every: int = 1) -> Iterator[World]:
        """Build a world of one user and an assistant, for one in `every` questions."""
        draw = Random(f"chat {away}")  # noqa: S311  (training data, not a secret)
        for asked in self._rows[::every]:
            keys = self._drawn(draw, asked, _SIZES[1], list(self._turns), away=away)
            gold = frozenset() if away else evidence_turns(asked.row)
            memories = [said for key in keys for said in self._said(key)]
            yield World(
                memories=memories,
                question=_question(draw, asked, asked.row["question"], gold, {}),
                number=asked.number,
            )

    def talk(self, *, away: str = "", sizes: Sequence[int] = _SIZES) -> Iterator[World]:
        """Build a world of two named people; `away` is empty or in `AWAY`."""
        draw = Random(f"talk {away}")  # noqa: S311
        for asked in self._rows:
            gold = self._told(asked)
            if not gold:
                continue
            others = [each for each in _PEOPLE if each != asked.people]
            people = draw.choice(others) if away in ("swapped", "strangers") else asked.people
            near = [key for key, owner in self._owner.items() if owner.people == people]
            days = {said.id: said.at for key in asked.own for said in self._talk[key]}
            text = _about(
                asked.row["question"], people[0] if away == "swapped" else asked.people[0]
            )
            for size in _SIZES[1:2] if away else sizes:
                keys = self._drawn(draw, asked, size, near, away=bool(away))
                memories = [said for key in keys for said in self._talk[key]]
                question = _question(draw, asked, text, frozenset() if away else gold, days)
                yield World(memories=memories, question=question, number=asked.number)

    def few(self, *, away: bool = False) -> Iterator[World]:
        """Build a world of few memories without sessions."""
        draw = Random(f"few {away}")  # noqa: S311
        for world in (
            *self.chat(away=away, every=3),
            *self.talk(away="swapped" if away else "", sizes=_SIZES[1:2]),
        ):
            right = [said for said in world.memories if said.id in world.question.gold][:1]
            number = (
                draw.randint(0 if right else 1, _FEW)
                if draw.random() < _OFTEN
                else draw.randint(*_MANY)
            )
            others = draw.sample(world.memories, min(number, len(world.memories)))
            kept = {said.id: _alone(said) for said in (*others, *right)}
            question = replace(world.question, gold=world.question.gold & kept.keys())
            yield replace(world, memories=list(kept.values()), question=question)

    def unrelated(self, folder: Path) -> Iterator[World]:
        """Ask questions about other things, of stores of several sizes, with and without
        sessions."""
        draw = Random("unrelated")  # noqa: S311
        chats = [said for key in self._turns for said in self._said(key)]
        kinds = (chats, [said for talk in self._talk.values() for said in talk])
        stores: list[list[Said]] = []
        for number, text in enumerate(_unrelated_questions(folder, draw)):
            if number % _REPEATED == 0:
                starts = [draw.randrange(len(each) - max(_STORES)) for each in kinds]
                stores = [
                    each[at : at + size]
                    for each, at in zip(kinds, starts, strict=True)
                    for size in _STORES
                ]
                stores += [
                    [_alone(each) for each in draw.sample(kind, size)]
                    for kind in kinds
                    for size in _STORES
                ]
            at = max(each.at for each in stores[-1])
            question = Question(text=text, gold=frozenset(), kind="unrelated", at=at)
            yield World(memories=draw.choice(stores), question=question, number=number)

    def unrelated_questions(self, folder: Path) -> list[str]:
        """Return questions about other things."""
        return _unrelated_questions(folder, Random("unrelated to everyday"))  # noqa: S311

    def _drawn(
        self, draw: Random, asked: _Row, size: int, near: Sequence[str], *, away: bool
    ) -> list[str]:
        """Return the sessions in order of their dates."""
        others = [key for key in near if key not in set(asked.own)]
        size = min(len(others), int(size * draw.uniform(0.6, 1.4)))
        keys = draw.sample(others, size) + ([] if away else asked.own)
        return sorted(dict.fromkeys(keys), key=lambda key: (self._turns[key][0], key))

    def _said(self, key: str) -> Iterator[Said]:
        at, turns = self._turns[key]
        return chat_turns(key, at, turns)

    def _said_by_name(self, key: str) -> Iterator[Said]:
        (user, other), (at, turns) = self._owner[key].people, self._turns[key]
        place = 0
        for turn, row in enumerate(turns):
            speaker = user if row["role"] == "user" else other
            for text in (
                _sentences(row["content"]) if row["role"] == "user" else [_end(row["content"])]
            ):
                yield Said(
                    id=f"{key}:{turn}:{place}", text=f"{speaker}: {text}", at=at, session=key,
                    speaker=speaker, turn=place
                )  # fmt: skip
                place += 1

    def _told(self, asked: _Row) -> frozenset[str]:
        """Return the sentences that contain the answer; none if that is unknown, or if the
        assistant gave it."""
        gold: set[str] = set()
        for evidence in evidence_turns(asked.row):
            key, turn = evidence.rsplit(":", 1)
            if self._turns[key][1][int(turn)]["role"] != "user":
                return frozenset()
            sentences = [said for said in self._talk[key] if said.id.startswith(f"{evidence}:")]
            if not (holding := _containing(sentences, str(asked.row["answer"]))):
                return frozenset()
            gold |= holding
        return frozenset(gold)


def _alone(said: Said) -> Said:
    return replace(said, session=None, speaker=None, turn=None)


def _unrelated_questions(folder: Path, draw: Random) -> list[str]:
    """Return questions of other data, half of them with a capital letter."""
    by_source: dict[str, list[str]] = {source: [] for source in _UNRELATED}
    with lzma.open(
        folder / "question_pairs" / "questions.jsonl.xz", "rt", encoding="utf-8"
    ) as file:
        for row in map(json.loads, file):
            if row["source"] in by_source:
                by_source[row["source"]].append(row["question"])
    texts = [text for questions in by_source.values() for text in draw.sample(questions, _EACH)]
    draw.shuffle(texts)
    return [text if draw.random() < _HALF else text[:1].upper() + text[1:] for text in texts]


def _containing(sentences: Sequence[Said], answer: str) -> set[str]:
    """Return those with most of the answer's words; else the one that starts like an aside; else
    the only statement."""
    if len(sentences) == 1:
        return {sentences[0].id}
    wanted = set(tokens(answer))
    shares = {
        said.id: len(wanted & set(tokens(said.text))) / max(len(wanted), 1) for said in sentences
    }
    if (most := max(shares.values())) >= _HALF:
        return {id_ for id_, share in shares.items() if share == most}
    aside = [said.id for said in sentences if "y the way" in said.text]
    plain = [said.id for said in sentences if not said.text.endswith("?")]
    return {aside[0]} if aside else set(plain) if len(plain) == 1 else set()


def _question(
    draw: Random, asked: _Row, text: str, gold: frozenset[str], days: Mapping[str, str]
) -> Question:
    if gold and days and draw.random() < _DATED:
        day = datetime.fromisoformat(days[draw.choice(sorted(gold))])
        form = draw.choice(("on %-d %B, %Y", "in %B %Y", "in %B"))
        text = f"{text.rstrip('?.')} {day.strftime(form)}?"
    return Question(
        text=text,
        gold=gold,
        kind=asked.row["question_type"],
        at=chat_time(asked.row["question_date"]),
    )


def _sentences(text: str) -> list[str]:
    """Split into sentences; one that is too short is joined to the previous one."""
    found: list[str] = []
    for part in _SENTENCE.split(" ".join(text.split())):
        short = (
            found
            and (len(found[-1]) < _SHORTEST or len(part) < _SHORTEST)
            and not found[-1].endswith("?")
        )
        found = [*found[:-1], f"{found[-1]} {part}"] if short else [*found, part]
    return found


def _end(text: str) -> str:
    """Return the last words of a reply."""
    parts = _SENTENCE.split(" ".join(text.split()))
    joined = " ".join(parts[-2:])
    return (joined if len(joined) < _REPLY else parts[-1])[-_REPLY:]


def _about(question: str, name: str) -> str:
    """Turn a question in the first person into one about a named person."""
    for pattern, other in (
        (r"\bI'm\b|\bI am\b|\bam I\b", f"{name} is"),
        (r"\bI've\b", f"{name} has"),
        (r"\bI'd\b", f"{name} would"),
        (r"\b[Mm]y\b|\bmine\b", f"{name}'s"),
        (r"\bI\b|\bme\b|\bmyself\b", name),
    ):
        question = re.sub(pattern, other, question)
    return question
