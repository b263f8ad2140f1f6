"""Generated histories of claims against a small model of what holds, and answers in which stale
comes above current."""

from collections.abc import Iterator
from random import Random

from bench.hygiene.child import Remote
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.systems import NO_PROMISE
from memory_mesh import MemoryMesh

NAME = "supersession"
_PLACES = ("Lisbon", "Porto", "Rome", "Oslo", "Vienna", "Riga", "Prague", "Tunis", "Malmö", "Ghent")
_PEOPLE = ("Ana", "Bruno", "Chiara", "Daniel", "Elif", "Farid", "Greta", "Hugo", "Ines", "Jonas")
_NAMES = (
    "Almeida",
    "Berg",
    "Costa",
    "Dahl",
    "Eriksen",
    "Fischer",
    "Gruber",
    "Haas",
    "Ivanov",
    "Jansen",
)


def check(run: Run) -> Iterator[Row]:
    if OURS in run.systems:
        yield histories(run)
    for name in run.systems:
        yield stale(run, name)


def histories(run: Run) -> Row:
    """Store claims about the homes of people, and compare what is active with the model after each.

    The model: a person says where they live, which holds from then on; a guess that contradicts it
    is quarantined; the same place again changes nothing.
    """
    tally = Tally(
        NAME,
        "claims superseded wrongly, or not superseded",
        note="compared with a model after each claim",
    )
    random = Random(7)  # noqa: S311  (the same histories in every run)
    with MemoryMesh("memory://", embedder="hash") as mesh:
        for person in people()[: run.count(100, 4)]:
            current, past = "", set[str]()
            for _ in range(run.count(10, 4)):
                place, guessed = random.choice(_PLACES), bool(current) and random.random() < 0.3
                _say(mesh, person, place, guessed=guessed)
                if not guessed and place != current:
                    past |= {current} - {""}
                    current = place
                active = {
                    one.content
                    for one in mesh.scoped(agent_id="ann").get_all()
                    if person in one.content
                }
                tally.trial(
                    good=active == {_sentence(person, current)},
                    example=f"{current} after {past}: {active}",
                )
            older = {
                one.content for one in mesh.scoped(agent_id="ann").get_all(status=("superseded",))
            }
            tally.expect({_sentence(person, one) for one in past} <= older)
    return tally.row()


def people() -> list[str]:
    return [f"{first} {last}" for last in _NAMES for first in _PEOPLE]


def _sentence(person: str, place: str) -> str:
    return f"{person} lives in {place}."


def _say(mesh: MemoryMesh, person: str, place: str, *, guessed: bool) -> None:
    claim = {"subject": person, "predicate": "home", "value": place}
    provenance = {"source": "inference" if guessed else "user_explicit"}
    mesh.graph.store("ann", _sentence(person, place), claim=claim, provenance=provenance)


def stale(run: Run, name: str) -> Row:
    """Store where people live, and later that they moved; ask where they live."""
    what = "questions answered with the stale text above the current one"
    note = NO_PROMISE.get((name, "stale"), "plain texts without claims")
    tally = Tally(NAME, what, name, note=note)
    asked = people()[: run.count(100, 4)]
    with folder() as place, Remote(name, place, model="local") as system:
        for turn in range(2):
            for at, person in enumerate(asked):
                system.add(
                    f"key{at} of turn {turn}",
                    _sentence(person, _PLACES[(at + turn) % len(_PLACES)]),
                )
        found = 0
        for at, person in enumerate(asked):
            old, new = (_sentence(person, _PLACES[(at + turn) % len(_PLACES)]) for turn in range(2))
            answer = system.search(person if name == "mcp-memory" else f"Where does {person} live?")
            found += new in answer
            good = old not in answer or (new in answer and answer.index(new) < answer.index(old))
            tally.trial(good=good, example=f"{old} above {new}")
        tally.expect(found >= 0.9 * len(asked))
    return tally.row()
