"""The data sets, each as people with memories and questions about them. The files are read in
place."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from importlib import import_module
from pathlib import Path
from typing import Any
from zlib import crc32

from memory_mesh.core.model import parse_time
from memory_mesh.core.search import tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A memory of a data set."""

    id: str
    text: str
    at: str
    session: str | None = None
    speaker: str | None = None
    turn: int | None = None

    @property
    def metadata(self) -> dict[str, Any]:
        fields = {
            "session_id": self.session,
            "speaker": self.speaker,
            "turn": self.turn,
            "event_time": self.at,
        }
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question, its time, the memories that contain the answer, and those that are outdated."""

    text: str
    gold: frozenset[str]
    kind: str
    at: str
    stale: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Space:
    """The memories of one person, and the questions about them."""

    name: str
    memories: Sequence[Said]
    questions: Sequence[Question]


Reader = Callable[[Path], list[Space]]

_EVIDENCE = re.compile(r"D(\d+):(\d+)")
_KINDS = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single-hop", 5: "adversarial"}
_FACT = re.compile(r"^(\d+)\. (.+)$", re.MULTILINE)
_FIRST_FACT = datetime(2025, 1, 1, tzinfo=UTC)


def locomo_turns(folder: Path) -> list[Space]:
    """Return people with a memory for each turn of a conversation."""
    return [
        _conversation(one, by_session=False) for one in read(folder / "locomo" / "locomo10.json")
    ]


def locomo_sessions(folder: Path) -> list[Space]:
    """Return people with a memory for each session of a conversation."""
    return [
        _conversation(one, by_session=True) for one in read(folder / "locomo" / "locomo10.json")
    ]


def longmemeval_s_lite(folder: Path) -> list[Space]:
    """Return people with a memory for each session of a question's haystack: the first words of
    the user."""
    within = folder / "longmemeval_s_lite"
    texts = {row["session_id"]: row["user_text_500"] for row in lines(within / "sessions.jsonl")}
    return [
        _haystack(row, texts)
        for row in lines(within / "questions.jsonl")
        if not row["question_id"].endswith("_abs")
    ]


def longmemeval_oracle_turns(folder: Path) -> list[Space]:
    """Return one person with a memory for each turn of all evidence sessions, the assistant's
    turns included."""
    rows = read(folder / "longmemeval_oracle" / "longmemeval_oracle.json")
    sessions = {
        key: (chat_time(at), turns)
        for row in rows
        for key, at, turns in zip(
            row["haystack_session_ids"],
            row["haystack_dates"],
            row["haystack_sessions"],
            strict=True,
        )
    }
    memories = [
        said
        for key, (at, turns) in sorted(sessions.items(), key=_by_time)
        for said in chat_turns(key, at, turns)
    ]
    questions = [_turn_question(row) for row in rows if not row["question_id"].endswith("_abs")]
    return [
        Space(name="all", memories=memories, questions=[each for each in questions if each.gold])
    ]


def fact_consolidation(folder: Path) -> list[Space]:
    """Return a person for each size of FactConsolidation, single hop: numbered facts, of which a
    later one replaces an earlier one, and questions whose gold is the newest fact."""
    rows = (
        import_module("pyarrow.parquet")
        .read_table(folder / "memagentbench" / "Conflict_Resolution.parquet")
        .to_pylist()
    )
    return [facts_of(row) for row in rows if "_sh_" in row["metadata"]["source"]]


SETS: Mapping[str, Reader] = {
    "locomo": locomo_turns,
    "locomo-sessions": locomo_sessions,
    "longmemeval-s-lite": longmemeval_s_lite,
    "longmemeval-oracle-turns": longmemeval_oracle_turns,
    "fact-consolidation": fact_consolidation,
}


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path) -> Iterator[Any]:
    with path.open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def chat_time(text: str) -> str:
    """Parse a time as LongMemEval writes it: 2023/05/20 (Sat) 02:21."""
    return parse_time(
        datetime.strptime(re.sub(r"\(\w+\) ", "", text), "%Y/%m/%d %H:%M").replace(tzinfo=UTC),
        "date",
    )


def chat_turns(key: str, at: str, turns: Sequence[Any]) -> Iterator[Said]:
    """Yield the turns of a chat between a user and an assistant, in full."""
    for turn, row in enumerate(turns):
        text = f"{row['role']}: {row['content']}"
        yield Said(
            id=f"{key}:{turn}", text=text, at=at, session=key, speaker=row["role"], turn=turn
        )


def evidence_turns(row: Any) -> frozenset[str]:
    """Return the ids of the turns that contain the answer of a LongMemEval question."""
    sessions = zip(row["haystack_session_ids"], row["haystack_sessions"], strict=True)
    return frozenset(
        f"{key}:{turn}"
        for key, turns in sessions
        for turn, each in enumerate(turns)
        if each.get("has_answer")
    )


def _by_time(session: tuple[str, tuple[str, Any]]) -> tuple[str, str]:
    key, (at, _) = session
    return at, key


def _turn_question(row: Any) -> Question:
    return Question(
        text=row["question"], gold=evidence_turns(row), kind=row["question_type"],
        at=chat_time(row["question_date"])
    )  # fmt: skip


def facts_of(row: Any) -> Space:
    """Return the facts of one size without their numbers, in their order, and the questions
    about them."""
    facts = [text for _, text in _FACT.findall(row["context"])]
    memories = [
        Said(
            id=_unordered(number),
            text=text,
            at=parse_time(_FIRST_FACT + timedelta(minutes=number), "at"),
        )
        for number, text in enumerate(facts)
    ]
    at = parse_time(_FIRST_FACT + timedelta(minutes=len(facts)), "at")
    size = row["metadata"]["source"].rsplit("_", 1)[1]
    found = [
        (text, newest_fact(facts, text, answers))
        for text, answers in zip(row["questions"], row["answers"], strict=True)
    ]
    questions = [
        Question(text=text, gold=frozenset({_unordered(gold)}), kind=f"{size} tokens", at=at)
        for text, gold in found
        if gold is not None
    ]
    return Space(name=size, memories=memories, questions=questions)


def _unordered(number: int) -> str:
    """Return an id that does not sort by age: the baselines break ties by id, which must not
    tell them what is newest."""
    return f"{crc32(str(number).encode()):08x}:{number}"


def newest_fact(facts: Sequence[str], question: str, answers: Sequence[str]) -> int | None:
    """Return the place of the fact that answers the question; None if there is none, or if a
    later one contradicts it."""
    asked = set(tokens(question))
    stems = {
        at: stem for at,
        fact in enumerate(facts)
        for answer in answers if (stem := _before_value(fact, answer)) is not None
    }  # fmt: skip
    words = {at: set(tokens(stem)) for at, stem in stems.items()}
    # The most words of the question, then the fewest others, then the last.
    place = max(words, key=lambda at: (len(asked & words[at]), -len(words[at]), at), default=None)
    if place is None or not asked & words[place]:
        return None
    return place if not any(fact.startswith(stems[place]) for fact in facts[place + 1 :]) else None


def _before_value(fact: str, answer: str) -> str | None:
    """Return a fact without its value at the end, or None if that is another one."""
    stated, value = fact.rstrip("."), answer.rstrip(".")
    return stated.removesuffix(value) if stated.endswith(f" {value}") else None


def _conversation(one: Any, *, by_session: bool) -> Space:
    talk = one["conversation"]
    numbers = sorted(int(key.split("_")[1]) for key in talk if re.fullmatch(r"session_\d+", key))
    turns = [said for number in numbers for said in _session(talk, number)]
    known = {said.id for said in turns}
    last = datetime.fromisoformat(max(said.at for said in turns))
    questions = [
        _question(row, known, parse_time(last + timedelta(days=1), "at"), by_session=by_session)
        for row in one["qa"]
    ]
    memories = [_joined(turns, str(number)) for number in numbers] if by_session else turns
    return Space(
        name=one["sample_id"],
        memories=memories,
        questions=[each for each in questions if each.gold],
    )


def _session(talk: Any, number: int) -> Iterator[Said]:
    at = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(
        tzinfo=UTC
    )
    for turn, row in enumerate(talk[f"session_{number}"]):
        caption = f" [image: {row['blip_caption']}]" if row.get("blip_caption") else ""
        text = f"{row['speaker']}: {row['text']}{caption}"
        yield Said(
            id=row["dia_id"], text=text, at=parse_time(at, "at"), session=str(number),
            speaker=row["speaker"], turn=turn
        )  # fmt: skip


def _joined(turns: Sequence[Said], session: str) -> Said:
    members = [said for said in turns if said.session == session]
    return Said(id=f"D{session}", text="\n".join(said.text for said in members), at=members[0].at)


def _question(row: Any, known: set[str], at: str, *, by_session: bool) -> Question:
    named = {
        f"D{int(a)}:{int(b)}" for each in row["evidence"] for a, b in _EVIDENCE.findall(each)
    } & known
    gold = {each.split(":")[0] for each in named} if by_session else named
    return Question(text=row["question"], gold=frozenset(gold), kind=_KINDS[row["category"]], at=at)


def _haystack(row: Any, texts: Mapping[str, str]) -> Space:
    # A few occur twice; the first counts.
    days = {key: at for key, at in reversed(row["haystack"]) if texts[key].strip()}
    memories = [Said(id=key, text=texts[key], at=chat_time(days[key])) for key in reversed(days)]
    gold = frozenset(row["answer_session_ids"]) & {said.id for said in memories}
    question = Question(
        text=row["question"],
        gold=gold,
        kind=row["question_type"],
        at=chat_time(row["question_date"]),
    )
    return Space(name=row["question_id"], memories=memories, questions=[question] if gold else [])
