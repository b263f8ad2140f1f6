"""What is left of a deleted memory: in every reader, and in the bytes of the files."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from bench.hygiene.child import Remote
from bench.hygiene.places import POSTGRESQL, Place, kinds, place_of
from bench.hygiene.record import OURS, Row, Run, Tally, file_bytes, folder
from bench.hygiene.shared import tests
from bench.hygiene.systems import NO_PROMISE
from memory_mesh import MemoryMesh

NAME = "deleted"
_READERS = "deleted text that a reader returns"
_BYTES = "deleted texts left in the bytes of the files"
_NOT_THE_SERVER = ": tables and indexes, not the log and the statistics of the server"
_COUNT, _NOTES = 20, 6  # of memories, and of notes beside them


def check(run: Run) -> Iterator[Row]:
    if OURS in run.systems:
        for kind in kinds(quick=run.quick):
            yield from ours(run, kind)
    for name in run.systems:
        if name not in (OURS, "langgraph"):  # the latter has no files
            yield peer(run, name)


def word(world: int, at: int) -> str:
    """Return a word that occurs in no other text."""
    return f"quetzal{world}x{at}z"


# --- memory-mesh ---


def ours(run: Run, kind: str) -> Iterator[Row]:
    """Delete half of the memories of several stores, and look for each everywhere."""
    read = Tally(NAME, _READERS, note=f"{kind}: {len(READERS)} readers")
    left = Tally(
        NAME,
        _BYTES,
        note=f"{kind}: tables and indexes, not the log and the statistics of the server"
        if kind == POSTGRESQL
        else kind,
    )
    for world in range(run.count(4, 1)):
        with place_of(kind) as place, folder() as files:
            one_store(place, files, world, read, left)
    yield read.row()
    yield left.row()


def one_store(place: Place, files: Path, world: int, read: Tally, left: Tally) -> None:
    """Store, delete half of it, and look for it before and after. The notes and traces are in
    `files`."""
    options = {
        "embedder": "hash",
        "notes_dir": str(files / "notes"),
        "traces_dir": str(files / "traces"),
    }
    with MemoryMesh(place.url, agent_id="ann", **options) as mesh:  # type: ignore[arg-type]
        ids = fill(mesh, world)
        erased, kept = [*range(0, len(ids), 2)], [*range(1, len(ids), 2)]
        for reader in READERS.values():
            text = reader(mesh, ids, world)
            read.expect(any(word(world, at) in text for at in erased))
        mesh.compact()  # writes everything into the files
        stored = place.stored() + file_bytes(files)
        for at in erased:
            left.expect(word(world, at).encode() in stored)
        for number, at in enumerate(erased):
            # The ways to delete, in turn.
            if number % 3 == 0:
                mesh.delete(ids[at])
            else:
                mesh.erase(ids[at])
        mesh.compact()
        for name, reader in READERS.items():
            text = reader(mesh, ids, world)
            for at in erased:
                read.trial(
                    good=word(world, at) not in text, example=f"{name} returned {word(world, at)}"
                )
            if name in _KEPT:
                read.expect(any(word(world, at) in text for at in kept))
        stored = place.stored() + file_bytes(files)
        for at in erased:
            left.trial(
                good=word(world, at).encode() not in stored,
                example=f"{word(world, at)} in the files",
            )


def fill(mesh: MemoryMesh, world: int) -> list[str]:
    """Store memories with metadata, older revisions, passages, links, a digest, a reflection,
    cached searches, and notes."""
    ids = []
    for at in range(_COUNT):
        long = " ".join(
            f"The {place} of {word(world, at)} is described here at length."
            for place in _PLACES * (at % 5 == 4) * 12
        )
        metadata = {
            "tags": [f"{word(world, at)}tag"],
            "note": f"{word(world, at)} in metadata",
            "session_id": "walk",
        }
        record = mesh.add(
            f"The harbour bird {word(world, at)} was seen at pier {at}. {long}".strip(), metadata
        )
        ids.append(record.id)
        if at % 3 == 0:
            mesh.update(
                record.id,
                content=f"The harbour bird {word(world, at)} was seen again at pier {at}, amended.",
            )
    for one, other in pairwise(ids):
        mesh.graph.link(one, other, "related")
    mesh.search("harbour bird seen at pier", limit=50)
    for episode in mesh.graph.episodes("ann"):
        mesh.graph.summarize_episode("ann", episode, store=True)
    mesh.reflect("harbour bird", lookback=10)
    for at in range(_COUNT, _COUNT + _NOTES):
        text = f"The harbour bird {word(world, at)} nests under pier {at}."
        mesh.notes.append(
            f"Nest {word(world, at)}",
            text,
            when_to_use=["harbour|nest"],
            tags=[f"{word(world, at)}tag"],
        )
    notes = {
        str(record.metadata["file"]): record.id
        for record in mesh.get_all(filter="category = 'note'")
    }
    return [*ids, *(notes[file] for file in sorted(notes))]


_PLACES = ("beak", "nest", "tail", "song", "egg")


def _of_each(
    read: Callable[[MemoryMesh, str], object],
) -> Callable[[MemoryMesh, Sequence[str], int], str]:
    """Return a reader that asks for each memory by its id, as far as it exists."""
    return lambda mesh, ids, _: tests("faces.house").whole(
        [read(mesh, id_) for id_ in ids if mesh.get(id_) is not None]
    )


def _whole(read: Callable[[MemoryMesh], object]) -> Callable[[MemoryMesh, Sequence[str], int], str]:
    return lambda mesh, _, __: tests("faces.house").whole(read(mesh))


READERS: dict[str, Callable[[MemoryMesh, Sequence[str], int], str]] = {
    # Not by the word itself: the audit chain of searches keeps the queries, as it should.
    "search by words": _whole(
        lambda mesh: [mesh.search(f"bird at pier {at}", limit=50) for at in range(_COUNT)]
    ),
    "search, cached": _whole(
        lambda mesh: [mesh.search("harbour bird seen at pier", limit=50) for _ in range(2)]
    ),
    "search by vector": _whole(
        lambda mesh: mesh.search("birds by the water", limit=50, min_score=0.0)
    ),
    "search of passages": _whole(
        lambda mesh: mesh.search("the beak is described at length", limit=50)
    ),
    "explain": _whole(lambda mesh: mesh.explain("harbour bird", limit=50, min_score=0.0)),
    "get": lambda mesh, ids, _: tests("faces.house").whole([mesh.get(id_) for id_ in ids]),
    "history": _of_each(lambda mesh, id_: mesh.history(id_)),
    "links": _of_each(lambda mesh, id_: mesh.graph.links(id_)),
    "traverse": _of_each(lambda mesh, id_: mesh.graph.traverse(id_, 5)),
    "list": _whole(lambda mesh: mesh.get_all()),
    "graph search": _whole(lambda mesh: mesh.graph.search("ann", "harbour bird", limit=50)),
    "graph context": _whole(lambda mesh: mesh.graph.context("ann", "harbour bird", min_score=0.0)),
    "episodes": _whole(
        lambda mesh: [
            mesh.graph.summarize_episode("ann", one) for one in mesh.graph.episodes("ann")
        ]
    ),
    "reflections": _whole(lambda mesh: mesh.get_all(filter="memory_type = 'reflection'")),
    "lane": _whole(lambda mesh: mesh.lane.find("harbour bird", limit=50, min_score=0.0)),
    "notes": _whole(lambda mesh: [*mesh.notes.load()]),
    "notes for a task": _whole(
        lambda mesh: [one.note for one in mesh.notes.match("find the nest at the harbour")]
    ),
    "prompt with notes": _whole(
        lambda mesh: mesh.notes.build_agent_prompt(
            task="find the nest at the harbour", max_memories=50
        )
    ),
    "export": _whole(lambda mesh: [*mesh.export()]),
    "export of the store": lambda mesh, _, __: "".join(mesh.export_store()),
    "audit log": _whole(lambda mesh: mesh.audit_log(limit=1000, auditor="bench")),
}
_KEPT = ("search by words", "get", "list", "notes", "export", "export of the store")


# --- other systems ---


def peer(run: Run, name: str) -> Row:
    """Delete half of the texts of a system, end its process, and look for them in its files."""
    left = Tally(NAME, _BYTES, name, note=NO_PROMISE.get((name, NAME), ""))
    for world in range(run.count(3, 1)):
        with folder() as place:
            with Remote(name, place) as system:
                for at in range(_COUNT):
                    system.add(
                        f"key{at}", f"The harbour bird {word(world, at)} was seen at pier {at}."
                    )
                system.end()
            stored = file_bytes(place)
            with Remote(name, place) as system:
                for at in range(0, _COUNT, 2):
                    left.expect(word(world, at).encode() in stored)
                    system.delete(f"key{at}")
                listed = " ".join(system.texts())
                system.end()
            stored = file_bytes(place)
            for at in range(0, _COUNT, 2):
                gone = word(world, at).encode() not in stored and word(world, at) not in listed
                left.trial(good=gone, example=f"{word(world, at)} in the files")
    return left.row()
