"""The paths that read a text, each as a function of a place that returns what to do with a text."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from memory_mesh import MemoryContextManager, MemoryMesh
from memory_mesh.core.claims.patterns import find_statement
from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.language.redaction import Redactor
from memory_mesh.core.language.safety.fence import fence
from memory_mesh.core.language.safety.injection import detect
from memory_mesh.core.language.scrubbing import MESH_OVERRIDES, ScrubSettings, cleaned
from memory_mesh.core.search import tokens

Work = Callable[[str], object]
AGENT = "bench"


class Place:
    """A new store with a few memories, and the folders of notes and traces beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mesh = MemoryMesh(
            store=f"sqlite:///{folder}/memory.db", agent_id=AGENT, embedder="none",
            notes_dir=str(folder / "notes"), traces_dir=str(folder / "traces"),
            audit_key_file=str(folder / "audit.key"),
        )  # fmt: skip
        self.mesh.add_many(
            [
                f"Note {number} says that the {word} is red."
                for number, word in enumerate(("car", "door", "cat"))
            ]
        )
        self.first = self.mesh.search("car")[0]


@contextmanager
def place() -> Iterator[Place]:
    """Open a place and delete it afterwards."""
    with TemporaryDirectory() as folder:
        opened = Place(Path(folder))
        try:
            yield opened
        finally:
            opened.mesh.close()


def _imported(here: Place) -> Work:
    head, line, *_ = here.mesh.export()

    def work(text: str) -> object:
        row = json.loads(line) | {"id": "mem_1767225600000_abcdefghi", "content": text}
        return here.mesh.import_memories([head, json.dumps(row)])

    return work


def _transcript(here: Place) -> Work:
    def work(text: str) -> object:
        path = here.folder / "session.jsonl"
        message = {
            "type": "user",
            "message": {"role": "user", "content": text},
            "uuid": "1",
            "sessionId": "s",
        }
        path.write_text(json.dumps(message) + "\n", encoding="utf-8")
        return here.mesh.lane.on_session_event("session.idle", path, session_id="s")

    return work


def _scrubbed(here: Place) -> Work:
    settings = ScrubSettings().merged(MESH_OVERRIDES)
    return lambda text: cleaned(text, settings)


PATHS: dict[str, Callable[[Place], Work]] = {
    "redact": lambda _: Redactor().redact,
    "redact, pseudonyms": lambda _: Redactor(mode="pseudonym", key=b"bench").redact,
    "scrub": _scrubbed,
    "detect injections": lambda _: detect,
    "fence": lambda _: lambda text: fence(text, "3f9a0c1b77d2e845"),
    "tokens": lambda _: tokens,
    "find a claim": lambda _: find_statement,
    "compare near-duplicates": lambda _: lambda text: says_the_same(text, f"{text} x"),
    "add": lambda here: here.mesh.add,
    "add, as metadata": lambda here: lambda text: here.mesh.add("note", {"note": text}),
    "add, as a tag": lambda here: lambda text: here.mesh.add("note", {"tags": [text]}),
    "update": lambda here: lambda text: here.mesh.update(here.first.id, content=text),
    "search": lambda here: here.mesh.search,
    "filter": lambda here: lambda text: here.mesh.search("red", filter={"content": text}),
    "format_for_model": lambda here: (
        lambda text: here.mesh.format_for_model(
            [here.first.copied(content=text, passage=None, relevant=True)]
        )
    ),
    "import": _imported,
    "context manager": lambda here: (
        lambda text: MemoryContextManager(mesh=here.mesh).capture_interaction(text, "Yes.")
    ),
    "graph.store": lambda here: lambda text: here.mesh.graph.store(AGENT, text, claims="auto"),
    "graph.search": lambda here: lambda text: here.mesh.graph.search(AGENT, text),
    "graph.context": lambda here: lambda text: here.mesh.graph.context(AGENT, text),
    "lane.store": lambda here: lambda text: here.mesh.lane.store(text, memory_type="learning"),
    "lane.find": lambda here: here.mesh.lane.find,
    "capture": lambda here: (
        lambda text: here.mesh.lane.on_session_event(
            "session.idle", [{"role": "user", "content": text}], session_id="s"
        )
    ),
    "capture of a transcript": _transcript,
    "notes.append": lambda here: (
        lambda text: here.mesh.notes.append("Note", text, when_to_use="red")
    ),
    "notes.match": lambda here: here.mesh.notes.match,
    "traces.record": lambda here: lambda text: here.mesh.traces.record("Paint it", results=text),
}
