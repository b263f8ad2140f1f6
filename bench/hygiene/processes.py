"""Eight processes, and then 32 threads, on one store: every acknowledged write is there once,
and the chain is sound."""

from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

from bench.hygiene.child import Remote
from bench.hygiene.places import POSTGRESQL, Place, kinds, place_of
from bench.hygiene.record import OURS, Row, Run, Tally, folder
from bench.hygiene.shared import tests
from bench.hygiene.systems import NO_PROMISE
from bench.peers import ROOT
from memory_mesh import MemoryMesh

NAME = "processes"
_WHAT = "acknowledged writes lost or doubled"


def check(run: Run) -> Iterator[Row]:
    if OURS in run.systems:
        for kind in kinds(quick=run.quick):
            with place_of(kind) as place:
                yield by_processes(run, kind, place)
            with place_of(kind) as place:
                yield by_threads(run, kind, place)
    for name in run.systems:
        if name not in (OURS, "langgraph"):  # the latter is in one process
            yield peer(run, name)


def by_processes(run: Run, kind: str, place: Place) -> Row:
    """Let processes write to one new store at the same moment."""
    children = tests("durability.children")
    children.PROGRAMS = ROOT / "tests" / "durability" / "programs.py"
    processes, each = run.count(8, 2), run.count(20, 3)
    tally = Tally(NAME, _WHAT, note=f"{kind}, {processes} processes; the chain is verified")
    with ExitStack() as stack:
        texts = {
            f"agent{n}": [f"agent{n} saw comet{n}x{at}" for at in range(each)]
            for n in range(processes)
        }
        options = [
            {"store": place.url, "agent": agent, "texts": own} for agent, own in texts.items()
        ]
        started = children.together(stack, options)
        said = [child.rest() for child in started]
        for child in started:
            child.end()
        heard = Counter(
            text
            for own, heard in zip(texts.values(), said, strict=True)
            for text in own[: len(heard)]
        )
        _compare(tally, place, heard)
        tally.expect(sum(map(len, said)) == processes * each)
    return tally.row()


def by_threads(run: Run, kind: str, place: Place) -> Row:
    """Let threads of one process write through one mesh."""
    # Each write waits for the server.
    threads, each = run.count(32, 4), run.count(5 if kind == POSTGRESQL else 20, 3)
    tally = Tally(NAME, _WHAT, note=f"{kind}, {threads} threads; the chain is verified")
    texts = [[f"thread{n} saw comet{n}x{at}" for at in range(each)] for n in range(threads)]
    with MemoryMesh(place.url, agent_id="one", embedder="hash") as mesh:

        def write(own: list[str]) -> list[str]:
            return [mesh.add(text).content for text in own]

        with ThreadPoolExecutor(threads) as pool:
            said = [text for heard in pool.map(write, texts) for text in heard]
    _compare(tally, place, Counter(said))
    tally.expect(len(said) == threads * each)
    return tally.row()


def _compare(tally: Tally, place: Place, acknowledged: Counter[str]) -> None:
    """Count what is not there exactly as often as it was acknowledged, and a store that is not
    sound."""
    with MemoryMesh(place.url, agent_id="reader", embedder="hash") as mesh:
        stored = Counter(record.content for record in mesh.get_all())
    for text, times in acknowledged.items():
        tally.trial(good=stored[text] == times, example=f"{text}: {stored[text]} times")
    tally.trial(good=place.is_sound(), example="the store is not sound")
    tally.expect(stored["a text that was never stored"] == 0 and stored.total() > 0)


def peer(run: Run, name: str) -> Row:
    """Let processes write to one folder; those that the system refuses have acknowledged
    nothing."""
    processes, each = run.count(8, 2), run.count(20, 3)
    tally = Tally(NAME, _WHAT, name)
    with folder() as place, ExitStack() as stack:
        with Remote(name, place) as first:
            first.add("first", "the first text of all")
            first.end()
        children = [stack.enter_context(Remote(name, place)) for _ in range(processes)]
        for n, child in enumerate(children):
            child.send(
                ("add", f"key{n}x{at}", f"process{n} saw comet{n}x{at}") for at in range(each)
            )
        said = [len(child.answers(each)) for child in children]
        for child in children:
            child.kill()
        with Remote(name, place) as reader:
            stored = Counter(reader.texts())
        for n, heard in enumerate(said):
            for at in range(heard):
                text = f"process{n} saw comet{n}x{at}"
                tally.trial(good=stored[text] == 1, example=f"{text}: {stored[text]} times")
        tally.expect(stored["the first text of all"] == 1)
    tally.note = "; ".join(
        filter(
            None,
            (NO_PROMISE.get((name, NAME), ""), f"{sum(said)} of {processes * each} acknowledged"),
        )
    )
    return tally.row()
