"""Folders: new, changed, unchanged, missing and unreadable files, and two runs at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import pytest

from memory_mesh.core.errors import InvalidInput, MemoryDisabled
from memory_mesh.core.intake import Selection
from memory_mesh.core.model import Kind, Memory, Reader, Vector
from memory_mesh.core.ports import Folder, Listed, no_folder, no_progress
from memory_mesh.flows.context import Context
from memory_mesh.flows.mirror import folders
from memory_mesh.flows.mirror.folders import Failed, Gone, Ingested
from memory_mesh.flows.search import reads
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import write

from .adding import add_many

FLAT, DEEP = Selection(), Selection(recursive=True)


@dataclass
class Shelf:
    """A folder in memory."""

    contents: dict[str, bytes | str]
    root: str = "/shelf"
    faults: dict[str, str] = field(default_factory=dict)

    def files(self, selection: Selection) -> Iterator[Listed]:
        for source in sorted({*self.contents, *self.faults}):
            if selection.covers(source) or source in self.faults:
                yield Listed(source, self.faults.get(source))

    def read(self, source: str, *, max_bytes: int) -> bytes:
        data = self.contents[source]
        data = data.encode() if isinstance(data, str) else data
        if len(data) > max_bytes:
            raise InvalidInput("it is too long")
        return data


def ingest(
    context: Context, folder: Folder, selection: Selection = FLAT, *, type_: str | None = None,
    progress=no_progress
) -> Ingested:  # fmt: skip
    return folders.ingest(
        context.with_files(open_folder=lambda _: folder),
        "given",
        selection,
        type_=type_,
        progress=progress,
    )


def counts(done: Ingested) -> tuple[int, int, int]:
    return done.added, done.updated, done.unchanged


def memories(context: Context) -> dict[str, Memory]:
    """By source; a second of one source would be a fault."""
    stored = [Memory.of(row) for row in context.store.find(Kind.MEMORY)]
    found = {str(memory.metadata["source"]): memory for memory in stored}
    assert len(found) == len(stored)
    return found


def written(context: Context) -> tuple[int, ...]:
    return tuple(context.store.count(kind) for kind in Kind)


@pytest.mark.req("MESH-152")
def test_each_file_becomes_one_memory_with_its_path_as_source(context: Context) -> None:
    shelf = Shelf(
        {
            "b.md": "Bees dance.",
            "a.md": "Ants march.",
            "sub/c.md": "Cats sleep.",
            "d.txt": "Dogs bark.",
        }
    )
    assert counts(ingest(context, shelf)) == (2, 0, 0)
    stored = memories(context)
    assert {source: memory.content for source, memory in stored.items()} == {
        "a.md": "Ants march.",
        "b.md": "Bees dance.",
    }
    assert stored["a.md"].metadata["source_root"] == "/shelf"
    assert stored["a.md"].number < stored["b.md"].number
    assert counts(ingest(context, shelf, DEEP)) == (1, 0, 2)
    assert counts(ingest(context, shelf, Selection((".txt", ".md")))) == (1, 0, 2)


def test_unchanged_files_write_nothing(context: Context) -> None:
    shelf = Shelf({f"{n}.md": f"Text {n}" for n in range(5)})
    ingest(context, shelf)
    before = written(context)
    assert counts(ingest(context, shelf)) == (0, 0, 5)
    assert written(context) == before


def test_files_that_say_the_same_are_a_memory_each(context: Context) -> None:
    shelf = Shelf({"a.md": "The same.", "b.md": "The same.", "c.md": "the  same."})
    add_many(context, [("The same.", {"source": "typed"})])
    assert counts(ingest(context, shelf)) == (3, 0, 0)
    assert memories(context).keys() == {"typed", "a.md", "b.md", "c.md"}
    assert counts(ingest(context, shelf)) == (0, 0, 3)
    assert {memory.times_observed for memory in memories(context).values()} == {1}


def test_a_changed_file_is_a_new_revision_of_its_memory(context: Context) -> None:
    shelf = Shelf({"a.md": "Tea at four.", "b.md": "Cake at five."})
    ingest(context, shelf)
    before = memories(context)["a.md"]
    shelf.contents["a.md"] = "Tea at six."
    assert counts(ingest(context, shelf)) == (0, 1, 1)
    after = memories(context)["a.md"]
    assert (after.id, after.content, after.revision) == (before.id, "Tea at six.", 2)
    changes = reads.history(context, after.id)
    assert [(step.action, step.why) for step in changes] == [
        ("add", None),
        ("update", "the file changed"),
    ]
    assert changes[1].before["content"] == "Tea at four."
    assert counts(ingest(context, shelf)) == (0, 0, 2)


def test_what_was_redacted_or_scrubbed_is_known_again(context: Context) -> None:
    shelf = Shelf(
        {
            "bob@example.org.md": "<p>Write to <b>bob@example.org</b></p>",
            "jim@example.org.md": "Call +1 604 696 5272",
        }
    )
    assert counts(ingest(context, shelf)) == (2, 0, 0)
    stored = [Memory.of(row) for row in context.store.find(Kind.MEMORY)]
    assert {memory.content for memory in stored} == {"Write to [EMAIL]", "Call [PHONE]"}
    # The names are masked, and are two files all the same.
    assert len({str(memory.metadata["source"]) for memory in stored}) == 1
    assert counts(ingest(context, shelf)) == (0, 0, 2)
    shelf.contents["jim@example.org.md"] = "Call +1 604 696 5273"
    assert counts(ingest(context, shelf)) == (0, 1, 1)  # though what is kept of it reads the same


def test_a_byte_order_mark_and_other_line_ends_are_welcome(context: Context) -> None:
    ingest(
        context,
        Shelf(
            {
                "a.md": b"\xef\xbb\xbfOne\r\n\r\nTwo\r\n",
                "code.md": b"```\r\nx = 1\r\ny = 2\r\n```\r\n",
            }
        ),
    )
    stored = memories(context)
    assert stored["a.md"].content.splitlines() == ["One", "", "Two"]
    assert "x = 1\ny = 2\n" in stored["code.md"].content
    assert [
        failed.source for failed in ingest(context, Shelf({"mark.md": b"\xef\xbb\xbf"})).failed
    ] == ["mark.md"]


def test_files_that_cannot_be_kept_are_named_and_the_others_go_in(context: Context) -> None:
    strict = context.with_options(max_content_chars=20)
    shelf = Shelf(
        {
            "bytes.md": b"caf\xe9",
            "empty.md": b"",
            "blank.md": " \n",
            "nul.md": "a\0b",
            "long.md": "x" * 21,
            "longer.md": "x" * 100,
            "good.md": "kept",
            "wide.md": "🐘" * 20,
        },
        faults={"gate.md": "it is closed"},
    )
    done = ingest(strict, shelf)
    assert counts(done) == (2, 0, 0)
    assert memories(context).keys() == {"good.md", "wide.md"}
    reasons = {failed.source: failed.reason.split(";")[0] for failed in done.failed}
    assert reasons == {
        "blank.md": "content is blank",
        "bytes.md": "it is not UTF-8 text (byte 4)",
        "empty.md": "content is blank",
        "gate.md": "it is closed",
        "long.md": "content has 21 characters",
        "longer.md": "it is too long",
        "nul.md": "content contains a NUL character",
    }
    assert done.gone == []


def test_a_file_that_is_gone_is_named_and_its_memory_kept(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants.", "b.md": "Bees.", "sub/c.md": "Cats.", "d.txt": "Dogs."})
    ingest(context, shelf, Selection((".md", ".txt"), recursive=True))
    ids = {source: memory.id for source, memory in memories(context).items()}
    shelf.contents = {"a.md": "Ants."}
    assert ingest(context, shelf).gone == [Gone("b.md", ids["b.md"])]
    assert ingest(context, shelf, DEEP).gone == [
        Gone("b.md", ids["b.md"]),
        Gone("sub/c.md", ids["sub/c.md"]),
    ]
    assert ingest(context, shelf, Selection((".txt",))).gone == [Gone("d.txt", ids["d.txt"])]
    assert memories(context).keys() == ids.keys()
    erase.delete(context, [ids["b.md"]])
    assert ingest(context, shelf).gone == []


def test_what_cannot_be_read_now_is_not_gone(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants.", "sub/c.md": "Cats.", "z.md": "Zebras."})
    ingest(context, shelf, DEEP)
    shelf.contents = {"a.md": b"\xff"}
    shelf.faults = {"sub/": "it cannot be read"}
    done = ingest(context, shelf, DEEP)
    assert [failed.source for failed in done.failed] == ["a.md", "sub/"]
    assert [gone.source for gone in done.gone] == ["z.md"]


def test_the_same_path_in_another_folder_or_of_another_owner_is_another_file(
    context: Context,
) -> None:
    ingest(context, Shelf({"a.md": "Ants."}))
    for others, shelf in (
        (context, Shelf({"a.md": "Bees."}, root="/other")),
        (replace(context, reader=Reader("u", "bob")), Shelf({"a.md": "Cats."})),
        (replace(context, reader=Reader("v", "ann")), Shelf({"a.md": "Dogs."})),
    ):
        done = ingest(others, shelf)
        assert (counts(done), done.gone) == ((1, 0, 0), [])
    assert sorted(str(row.value("content")) for row in context.store.find(Kind.MEMORY)) == [
        "Ants.",
        "Bees.",
        "Cats.",
        "Dogs.",
    ]


@pytest.mark.req("MESH-152")
def test_a_type_is_given_to_new_files_and_to_known_ones(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf, type_="agent")
    memory = memories(context)["a.md"]
    assert (memory.memory_type, memory.metadata["type"]) == ("agent", "agent")
    assert counts(ingest(context, shelf)) == (0, 0, 1)
    assert counts(ingest(context, shelf, type_="event")) == (0, 1, 0)
    again = memories(context)["a.md"]
    assert (again.id, again.memory_type, again.metadata["type"]) == (memory.id, "global", "event")
    assert counts(ingest(context, shelf, type_="event")) == (0, 0, 1)


def test_each_session_has_its_own_of_type_session(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    for session in ("s1", "s2"):
        own = replace(context, reader=Reader("u", "ann", session))
        assert counts(ingest(own, shelf, type_="session")) == (1, 0, 0)
        assert counts(ingest(own, shelf, type_="session")) == (0, 0, 1)
    with pytest.raises(InvalidInput, match="no session_id"):
        ingest(context, shelf, type_="session")


def test_a_memory_that_was_moved_to_a_session_is_not_made_anew(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf)
    write.update(
        context, memories(context)["a.md"].id, metadata={"type": "session", "session_id": "s9"}
    )
    assert counts(ingest(context, shelf)) == (0, 0, 1)
    shelf.contents["a.md"] = "More ants."
    assert [failed.source for failed in ingest(context, shelf).failed] == ["a.md"]
    assert counts(ingest(replace(context, reader=Reader("u", "ann", "s9")), shelf)) == (0, 1, 0)


@pytest.mark.parametrize("audited", [True, False])
def test_two_runs_at_once_store_once(context: Context, audited: bool) -> None:
    context = context.with_options(enable_yamo=audited)
    shelf, met = Shelf({"a.md": "Ants.", "b.md": "Bees."}), []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not met:
            met.append(counts(ingest(context, shelf)))

    done = ingest(replace(context, step=meddle), shelf)
    assert met == [(2, 0, 0)]
    assert counts(done) == (0, 0, 2)
    assert {memory.revision for memory in memories(context).values()} == {1}


def test_a_run_that_comes_behind_another_with_a_newer_text_updates_it(context: Context) -> None:
    met: list[bool] = []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not met:
            met.append(True)
            ingest(context, Shelf({"a.md": "An older text.", "c.md": "Cats."}))

    assert counts(
        ingest(replace(context, step=meddle), Shelf({"a.md": "A newer text.", "b.md": "Bees."}))
    ) == (1, 1, 0)
    stored = memories(context)
    assert (stored["a.md"].content, stored["a.md"].revision) == ("A newer text.", 2)
    assert stored.keys() == {"a.md", "b.md", "c.md"}


def test_a_memory_erased_while_its_file_is_updated_is_named(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf)
    id_ = memories(context)["a.md"].id
    shelf.contents["a.md"] = "More ants."

    def meddle(step: str) -> None:
        if step == "flow.decided" and context.store.get(Kind.MEMORY, [id_]):
            erase.delete(context, [id_])

    done = ingest(replace(context, step=meddle), shelf)
    assert done.failed == [
        Failed("a.md", "its memory was erased meanwhile, or belongs to another session")
    ]
    assert counts(ingest(context, shelf)) == (1, 0, 0)


def test_a_memory_that_somebody_changed_stays_its_files_memory(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf)
    id_ = memories(context)["a.md"].id
    write.update(context, id_, content="Ants, corrected by hand.", metadata={"note": 1})
    assert counts(ingest(context, shelf)) == (0, 0, 1)
    assert memories(context)["a.md"].content == "Ants, corrected by hand."
    shelf.contents["a.md"] = "Ants, rewritten."
    assert counts(ingest(context, shelf)) == (0, 1, 0)
    memory = memories(context)["a.md"]
    assert (memory.id, memory.content, memory.metadata["note"]) == (id_, "Ants, rewritten.", 1)


def test_what_was_archived_comes_back_only_with_a_new_text(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf)
    old = memories(context)["a.md"].id
    write.set_columns(context, old, action="archive", status="archived")
    assert counts(ingest(context, shelf, type_="event")) == (0, 0, 1)
    shelf.contents["a.md"] = "More ants."
    assert counts(ingest(context, shelf)) == (1, 0, 0)
    assert [memory.content for memory in reads.get_all(context, limit=None)] == ["More ants."]
    shelf.contents["a.md"] = "Most ants."
    assert counts(ingest(context, shelf)) == (0, 1, 0)


def test_what_was_erased_is_stored_again_while_its_file_is_there(context: Context) -> None:
    shelf = Shelf({"a.md": "Ants."})
    ingest(context, shelf)
    erase.delete(context, [memories(context)["a.md"].id])
    assert counts(ingest(context, shelf)) == (1, 0, 0)


class Counting:
    """An embedder that remembers how many texts came at once."""

    model, window = "counting", 512

    def __init__(self) -> None:
        self.batches: list[int] = []

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(len(texts))
        return [Vector.of(self.model, [float(len(text)), 1.0]) for text in texts]


def test_files_are_written_and_embedded_in_batches(context: Context) -> None:
    embedder, steps, reports = Counting(), [], []
    watched = replace(context.with_models(embedder=embedder), step=steps.append)
    shelf = Shelf({f"{n:03}.md": f"Text {n}" for n in range(130)} | {"bad.md": b"\xff"})
    done = ingest(watched, shelf, progress=lambda *so_far: reports.append(so_far))
    assert counts(done) == (130, 0, 0)
    assert embedder.batches == [64, 64, 2]
    assert steps.count("flow.applied") == 3
    assert reports == [
        ("files", 0, 131),
        ("files", 64, 131),
        ("files", 128, 131),
        ("files", 131, 131),
    ]


def test_long_files_come_in_smaller_batches(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(folders, "BATCH_CHARS", 1000)
    steps: list[str] = []
    shelf = Shelf({f"{n}.md": f"{n} " + "word " * 80 for n in range(4)})
    ingest(replace(context, step=steps.append), shelf)
    assert steps.count("flow.applied") == 2  # of three and of one


def test_an_empty_folder_is_no_error(context: Context) -> None:
    assert ingest(context, Shelf({})) == Ingested("/shelf")


def test_nothing_is_opened_where_memory_is_off(context: Context) -> None:
    off = context.with_options(enable_memory=False)
    off = off.with_files(open_folder=lambda _: pytest.fail("opened"))
    with pytest.raises(MemoryDisabled):
        folders.ingest(off, "given", FLAT, type_=None, progress=no_progress)


def test_a_context_without_a_folder_reader_raises_an_error(context: Context) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        folders.ingest(
            context.with_files(open_folder=no_folder),
            "given",
            FLAT,
            type_=None,
            progress=no_progress,
        )
