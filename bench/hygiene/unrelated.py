"""Questions that no memory answers, asked in `precise` mode. The control: questions that one of
the memories answers."""

from collections.abc import Iterator

from bench.hygiene.child import Remote
from bench.hygiene.record import Row, Run, Tally, folder
from bench.hygiene.systems import NO_PROMISE
from bench.quality.nothing import read_mixed

NAME = "unrelated"
_WHAT = "unrelated questions that got an answer"
_MIN_FOUND = 0.8  # of the control questions; a system that never answers would otherwise be best


def check(run: Run) -> Iterator[Row]:
    """Ask the questions of `bench/quality/data` in a store of its mixed memories."""
    mixed = read_mixed()
    memories = mixed.memories[: run.count(500, 20)]
    kept = {said.id: said.text for said in memories}
    unrelated = [one.text for one in mixed.unrelated][: run.count(10_000, 10)]
    controls = [(one.text, kept[id_]) for one in mixed.controls for id_ in one.gold if id_ in kept][
        : run.count(10_000, 10)
    ]
    for name in run.systems:
        # It finds a query only where it stands word for word, so it answers no question at all.
        if name == "mcp-memory":
            continue
        tally = Tally(
            NAME,
            _WHAT,
            name,
            note=NO_PROMISE.get((name, NAME), "precise mode, as for prompts"),
        )
        with folder() as place, Remote(name, place, model="local") as system:
            for id_, text in kept.items():
                system.add(id_, text)
            for question in unrelated:
                tally.trial(good=not system.search(question), example=question)
            found = sum(text in system.search(question) for question, text in controls)
        tally.expect(found >= _MIN_FOUND * len(controls))
        tally.note += f"; found {found} of {len(controls)} control questions"
        yield tally.row()
