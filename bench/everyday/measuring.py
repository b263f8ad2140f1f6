"""Ask the questions of worlds, and count what stands first, what is missing, and where an
outdated memory stands above."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.everyday.worlds import CHANGED, KINDS, World
from bench.quality.comparing import RETRIEVAL, ask_peer
from bench.quality.evaluating import OURS, PRECISE, cut
from bench.quality.measuring import DEPTH, auc, interval
from bench.quality.ours import Scored
from bench.quality.plain import PLAIN, Plain
from bench.quality.reliability import reliability
from bench.quality.sets import Question, Said
from memory_mesh import MemoryMesh
from memory_mesh.core.ports import Embedder
from memory_mesh.flows.claims.updates import judge_new

_TOP = 3
_WORST = 10  # misses that are shown
_SHOWN = 120  # characters of a memory that is shown
_EVERY = 30  # a world is asked one in so many of the unrelated questions
_NAMES = ("user", "assistant")
UNCHANGED, UNRELATED = "without change", "unrelated"
_ALL = "all with an answer"
_ENGLISH, _ACROSS = f"{UNCHANGED}, English worlds", "English question, memories in another script"
_OTHER_SCRIPTS = ("ar", "hi", "ja", "zh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of a world, what each ranker returned, best first, and our scores before any
    cut."""

    world: World
    question: Question
    found: Mapping[str, Sequence[str]]
    scored: Scored


@contextmanager
def stored(
    world: World, embedder: Embedder, now: Sequence[str], *, update_judge: str = "local"
) -> Iterator[tuple[MemoryMesh, dict[str, str]]]:
    """Store a world as a program would: messages as messages, notes as texts. Yield the mesh, and
    our ids by those of the mesh.

    The clock of the mesh shows the last time in `now`. All memories are there, and compared with
    older ones, before the first question.
    """
    ids: dict[str, str] = {}
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        opened = partial(
            MemoryMesh, store=f"sqlite:///{Path(folder) / 'everyday.db'}", user_id=world.name,
            embedder=embedder, clock=lambda: datetime.fromisoformat(now[-1]),
        )  # fmt: skip
        with opened(update_judge="off") as mesh:  # they are compared below, not in the background
            for said in world.memories:
                kept = mesh.add(*_item(said))
                for record in kept if isinstance(kept, list) else [kept]:
                    ids.setdefault(record.id, said.id)  # a text that occurs twice is stored once
        with opened(update_judge=update_judge) as mesh:
            judge_new(mesh._context())
            yield mesh, ids


def _item(said: Said) -> tuple[Any, dict[str, Any]]:
    if said.session is None:
        return said.text, {"event_time": said.at}
    name = {} if said.speaker in _NAMES else {"name": said.speaker}
    role = said.speaker if said.speaker in _NAMES else "user"
    return [{"role": role, "content": said.text, "timestamp": said.at, **name}], {
        "session_id": said.session
    }


def ask(
    worlds: Sequence[World], embedder: Embedder, unrelated: Sequence[Question] = ()
) -> Iterator[Asked]:
    """Ask each world its questions, and some of the unrelated ones."""
    for number, world in enumerate(worlds):
        embedder.embed(
            [*(said.text for said in world.memories), *(each.text for each in world.questions)]
        )
        now, plain = [world.questions[0].at], Plain(world.memories, embedder)
        with stored(world, embedder, now) as (mesh, ids):
            last = max(question.at for question in world.questions)
            some = [
                replace(each, kind=UNRELATED, at=last)
                for each in unrelated[number % _EVERY :: _EVERY]
            ]
            for question in [*world.questions, *some]:
                now.append(question.at)
                results = mesh.search(question.text, limit=DEPTH, min_score=0.0, use_cache=False)
                scored = [(ids[result.id], result.score) for result in results]
                # What a program gets that sets nothing.
                default = mesh.search(question.text, limit=DEPTH, use_cache=False)
                ours = {OURS: [ids[result.id] for result in default]}
                yield Asked(
                    world=world,
                    question=question,
                    found=cut(scored, len(world.memories)) | ours | plain.ranked(question),
                    scored=scored,
                )


def ask_peers(worlds: Sequence[World], embedder: Embedder) -> tuple[list[Asked], dict[str, Any]]:
    """Ask each world its questions, of ours and of other stores.

    Also return the versions of each store. One that failed has its failure there, and no answers.
    """
    asked, stores = list(ask(worlds, embedder)), {}
    for peer in RETRIEVAL:
        stores[peer], answered = ask_peer(peer, worlds, embedder)
        if "failure" not in stores[peer]:
            pairs = zip(asked, answered, strict=True)
            asked = [replace(each, found={**each.found, peer: ids}) for each, (_, ids) in pairs]
    return asked, stores


def judged(question: Question, ids: Sequence[str]) -> dict[str, bool]:
    """Return what is right about one ranker's answers to a question that has one."""
    places = [at for at, id_ in enumerate(ids[:DEPTH]) if id_ in question.gold]
    outdated = [at for at, id_ in enumerate(ids[:DEPTH]) if id_ in question.stale]
    return {
        "first": places[:1] == [0],
        "in three": bool(places) and places[0] < _TOP,
        "missing": not places,
        "outdated above": bool(outdated) and (not places or outdated[0] < places[0]),
    }


def table(
    asked: Sequence[Asked], own: Sequence[str] = (OURS, PRECISE), others: Sequence[str] = PLAIN
) -> dict[str, Any]:
    """Return for each kind of question how often each ranker was right, and how far ours is from
    the best of the others."""
    with_answer = [each for each in asked if each.question.gold]
    parts = {kind: [each for each in with_answer if each.question.kind == kind] for kind in KINDS}
    parts[UNCHANGED] = [each for each in with_answer if each.question.kind not in CHANGED]
    parts[_ENGLISH] = [each for each in parts[UNCHANGED] if each.world.language == "en"]
    parts[_ACROSS] = [each for each in with_answer if _across_scripts(each)]
    parts[_ALL] = with_answer
    return {part: _row(some, own, others) for part, some in parts.items() if some}


def _across_scripts(each: Asked) -> bool:
    return each.world.language in _OTHER_SCRIPTS and each.question.text.isascii()


def _row(some: Sequence[Asked], own: Sequence[str], others: Sequence[str]) -> dict[str, Any]:
    by_ranker = {
        ranker: [judged(each.question, each.found[ranker]) for each in some]
        for ranker in (*own, *others)
    }
    counts = {
        ranker: {name: sum(one[name] for one in rows) for name in rows[0]} for ranker,
        rows in by_ranker.items()
    }  # fmt: skip
    ahead = {}
    for figure in ("first", "in three"):
        best = max(others, key=lambda ranker: counts[ranker][figure])
        ours, theirs = (
            [float(one[figure]) for one in by_ranker[ranker]] for ranker in (OURS, best)
        )
        ahead[figure] = (best, *interval(ours, theirs))
    return {"questions": len(some), "rankers": counts, "ahead": ahead}


def nothing(asked: Sequence[Asked]) -> dict[str, Any]:
    """Return how often a question without an answer gets one, and how well scores tell it from
    the others."""
    right = [_best(each) for each in asked if each.question.gold]
    result: dict[str, Any] = {}
    for name in ("negative", UNRELATED):
        some = [each for each in asked if each.question.kind == name]
        if some:
            answered = {
                mode: sum(bool(each.found[mode]) for each in some) for mode in (OURS, PRECISE)
            }
            result[name] = {
                "questions": len(some),
                "answered": answered,
                "auc": auc(right, [_best(each) for each in some]),
            }
    return result


def calibration(asked: Sequence[Asked]) -> dict[str, Any]:
    """Return the reliability of the scores, for chats and for notes."""
    some = [each for each in asked if each.question.kind != UNRELATED]
    parts = {
        "chats": [each for each in some if each.world.is_chat],
        "notes": [each for each in some if not each.world.is_chat],
    }
    return {
        name: reliability(
            [(score, id_ in each.question.gold) for each in part for id_, score in each.scored]
        )
        for name, part in parts.items()
        if part
    }


def worst(asked: Sequence[Asked]) -> list[dict[str, Any]]:
    """Return the worst misses of our default mode among the questions without change.

    A missing memory is worse than one on a low place. Of those on the same place, the one with the
    highest score is worst.
    """
    some = [each for each in asked if each.question.gold and each.question.kind not in CHANGED]
    misses = [miss for miss in map(_miss, some) if miss["place"] != 1]
    return sorted(
        misses, key=lambda miss: (miss["place"] or DEPTH + 1, miss["score"]), reverse=True
    )[:_WORST]


def _miss(each: Asked) -> dict[str, Any]:
    """Return the place and the text of the best gold memory, or of the first one of the world if
    all are missing."""
    gold, ids = each.question.gold, each.found[OURS][:DEPTH]
    place = next((at for at, id_ in enumerate(ids, start=1) if id_ in gold), None)
    texts = {said.id: said.text for said in each.world.memories}
    answer = ids[place - 1] if place else next(id_ for id_ in texts if id_ in gold)
    return {
        "question": each.question.text,
        "kind": each.question.kind,
        "world": each.world.name,
        "gold": _cut(texts[answer]),
        "first": _cut(texts[ids[0]]) if ids else None,
        "place": place,
        "score": round(_best(each), 4),
    }


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _best(each: Asked) -> float:
    return max((score for _, score in each.scored), default=0.0)
