"""Traces: files and memories of executions, the experience log, similar goals, edits by people,
crashes and erasure."""

import asyncio
import gzip
import multiprocessing
import re
import shutil
import tracemalloc
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from multiprocessing.connection import Connection
from pathlib import Path
from signal import SIGKILL

import pytest

from memory_mesh import (
    AsyncMemoryMesh,
    Experience,
    InvalidInput,
    MemoryDisabled,
    MemoryMesh,
    StoreFull,
    Trace,
)
from memory_mesh.core.audit import Sound
from memory_mesh.core.model import Kind, Memory, Meta, Vector
from memory_mesh.core.traces import read_experiences, read_traces
from memory_mesh.core.traces.learnings import section_digest
from memory_mesh.flows.mirror.mirror import state_keys
from memory_mesh.flows.traces import index as trace_index
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import markdown_files, open_store
from memory_mesh.testing.fakes import FakeClock, crash_at

from .house import House, texts

LAYOUT = {
    "context.md", "memory/short_term/execution_log.md", "memory/short_term/tool_results",
    "memory/short_term/context_cache.md", "memory/long_term/learnings.md",
    "memory/long_term/patterns.md", "memory/long_term/decisions.md",
}  # fmt: skip


@dataclass
class Place:
    """A folder of traces, and meshes on one store in memory."""

    folder: Path
    house: House = field(default_factory=lambda: House(open_store("memory://"), clock=FakeClock()))

    def mesh(self, **options: object) -> MemoryMesh:
        return self.house.mesh(
            "ann", **{"traces_dir": str(self.folder), "embedder": HashingEmbedder(), **options}
        )

    def log(self, project: str = "default") -> Path:
        return self.folder / "projects" / project / "memory" / "short_term" / "execution_log.md"

    @property
    def system(self) -> Path:
        return self.folder / "system" / "memory_log.md"

    def entries(self) -> list[Experience]:
        return [
            each
            for each in read_experiences(self.system.read_text())
            if isinstance(each, Experience)
        ]

    def memories(self, category: str, status: str = "active") -> list[Memory]:
        return [
            each
            for each in self.house.memories()
            if each.category == category and each.status == status
        ]

    def bytes(self) -> bytes:
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        every = [
            gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            for path in files
        ]
        return b"\n".join([*every, *(str(path).encode() for path in files)])


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "traces")


def record(mesh: MemoryMesh, goal: str = "Create a plot", **values: object) -> Trace:
    return mesh.traces.record(goal, **values)  # type: ignore[arg-type]


# --- files ---


@pytest.mark.req("TRACE-01", "TRACE-02")
def test_the_first_use_of_a_project_creates_its_layout_for_the_owner_only(place: Place) -> None:
    record(place.mesh(), project="atlas")
    project = place.folder / "projects" / "atlas"
    assert {
        str(path.relative_to(project)) for path in project.rglob("*") if path.name[0] != "."
    } >= LAYOUT
    assert place.system.is_file()
    assert {path.stat().st_mode & 0o777 for path in place.folder.rglob("*") if path.is_file()} == {
        0o600
    }
    assert {path.stat().st_mode & 0o777 for path in place.folder.rglob("*") if path.is_dir()} == {
        0o700
    }


@pytest.mark.req("TRACE-01", "MESH-021")
def test_the_folder_is_in_the_home_unless_the_option_names_one(
    place: Place, tmp_path: Path
) -> None:
    record(place.mesh(traces_dir=None))
    assert (tmp_path / "home" / "traces" / "system" / "memory_log.md").is_file()
    assert not place.folder.exists()
    record(place.mesh(traces_dir="beside"))
    assert (tmp_path / "work" / "beside" / "system" / "memory_log.md").is_file()


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("shop.v2", "shop.v2"),
        ("../../etc", "etc-"),
        ("Shop & Café", "Shop-Caf-"),
        (".", "project-"),
    ],
)
def test_a_project_of_any_name_has_a_folder_of_its_own(
    place: Place, name: str, folder: str
) -> None:
    with place.mesh() as mesh:
        trace = record(mesh, project=name)
        (own,) = (place.folder / "projects").iterdir()
        assert re.fullmatch(rf"{folder}[0-9a-f]{{8}}" if folder[-1] == "-" else folder, own.name)
        assert mesh.traces.get_all(project=name) == mesh.traces.get_all() == [trace]
    assert Place(place.folder).mesh().traces.get_all() == [trace], "another store"
    assert place.memories("trace")[0].project == name


@pytest.mark.req("TRACE-09")
def test_traces_are_appended_and_each_is_read_back_equal(place: Place) -> None:
    with place.mesh() as mesh:
        first = record(
            mesh,
            plan="## Learnings\n---\n\\x",
            steps=["a - b", ("c\nd", "failed")],
            learnings=["x\n\ny"],
            results="---",
        )
        before = place.log().read_bytes()
        second = record(mesh, decisions=["use SVG"], status="failure")
        assert place.log().read_bytes().startswith(before)
        assert list(read_traces(place.log().read_text())) == [first, second]
        assert mesh.traces.get_all() == [second, first]
        assert mesh.traces.get(first.trace_id) == first
        assert mesh.traces.get("trace-1-000000") is None
        assert second.decisions == ("use SVG",)


@pytest.mark.req("TRACE-07")
def test_the_id_of_a_trace_is_its_time_and_six_hex_digits(place: Place) -> None:
    ms = place.house.clock()
    assert re.fullmatch(rf"trace-{ms}-[0-9a-f]{{6}}", record(place.mesh()).trace_id)


@pytest.mark.req("TRACE-10")
def test_of_a_request_only_its_first_sentence_is_kept(place: Place) -> None:
    long = "Clean up " + "the attic " * 40
    with place.mesh() as mesh:
        record(mesh, "Call ann@example.org about the plot. The launch code is zebra-quartz.")
        record(mesh, long)
    goals = [trace.goal for trace in place.mesh().traces.get_all()]
    assert goals[1] == "Call [EMAIL] about the plot."
    assert len(goals[0]) <= 200
    assert goals[0].endswith("…")
    stored = " ".join(
        str(row.fields)
        for kind in (Kind.MEMORY, Kind.CHANGE, Kind.BLOCK)
        for row in place.house.store.find(kind)
    )
    for beyond in ("zebra-quartz", "ann@example.org", long[210:]):
        assert beyond.encode() not in place.bytes()
        assert beyond not in stored
    assert "[EMAIL] about the plot" in stored


@pytest.mark.req("TRACE-11", "TRACE-04", "TRACE-12", "TRACE-13")
def test_an_execution_is_one_trace_one_log_entry_and_two_memories_that_every_search_finds(
    place: Place,
) -> None:
    with place.mesh() as mesh:
        trace = record(
            mesh, results="Three lines.\nAll good.", learnings=["CSV is fast"],
            tools_used=["python", "make"], agents=["planner"], files_created=["a.png", "b.png"],
            duration_ms=7, recovered=True,
        )  # fmt: skip
        (entry,) = place.entries()
        assert entry == Experience(
            experience_id="exp_1", project_name="default", primary_goal="Create a plot",
            final_outcome="success_with_recovery", components_used=("planner", "python", "make"),
            files_created=2, output_summary="Three lines. All good.", execution_time_ms=7,
            learnings_or_issues="CSV is fast", timestamp=trace.timestamp,
        )  # fmt: skip
        assert [len(place.memories(category)) for category in ("trace", "experience")] == [1, 1]
        (memory,), (logged,) = place.memories("trace"), place.memories("experience")
        assert (memory.content, memory.event_time, memory.project) == (
            trace.goal,
            trace.timestamp,
            "default",
        )
        assert (
            logged.content
            == "Create a plot: success_with_recovery. Three lines. All good.\nCSV is fast"
        )
        assert {hit.id for hit in mesh.search("plot", mode="recall")} == {memory.id, logged.id}
        assert {hit.id for hit in mesh.graph.search("ann", "plot")} == {memory.id, logged.id}
        assert trace.status == "success"


@pytest.mark.req("TRACE-11")
def test_two_runs_with_one_goal_are_two_traces(place: Place) -> None:
    with place.mesh() as mesh:
        assert record(mesh).trace_id != record(mesh).trace_id
    assert (
        len(place.memories("trace"))
        == len(place.memories("experience"))
        == len(place.entries())
        == 2
    )


def test_the_results_of_tools_are_kept_and_bounded(place: Place) -> None:
    trace = record(
        place.mesh(), tool_results=[("make/all", "a" * 30_000), ("make/all", "key ann@example.org")]
    )
    files = sorted((place.log().parent / "tool_results" / trace.trace_id).iterdir())
    assert [file.name for file in files] == ["1-make-all.txt", "2-make-all.txt"]
    assert files[0].read_text() == f"{'a' * 10_000}\n[10,000 characters left out]\n{'a' * 10_000}"
    assert files[1].read_text() == "key [EMAIL]"


@pytest.mark.parametrize(
    "values",
    [
        {"status": "ok"}, {"duration_ms": -1}, {"goal": ""}, {"goal": "x" * 1_000_000},
        {"recovered": True, "status": "failure"}, {"tool_results": {"a": 1}}, {"project": " "},
        {"project": "a\nb"}, {"learnings": [""]}, {"steps": [3]}, {"agents": "a"},
        {"timestamp": "soon"}, {"tools_used": ["x" * 60_000]}, {"files_created": ["x" * 60_000]},
        {"agents": ["x" * 60_000]},
    ],
)  # fmt: skip
def test_an_invalid_execution_is_refused_and_nothing_is_written(
    place: Place, values: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        record(place.mesh(), **{"goal": "a", **values})
    assert not place.folder.exists()
    assert place.house.memories() == []


def test_reading_creates_nothing_and_a_memory_that_is_off_writes_nothing(place: Place) -> None:
    with place.mesh() as mesh:
        assert (mesh.traces.get_all(), mesh.traces.experiences(), mesh.traces.similar("a")) == (
            [],
            [],
            [],
        )
    with place.mesh(enable_memory=False) as off, pytest.raises(MemoryDisabled):
        record(off)
    assert not place.folder.exists()


def test_a_read_after_the_folder_was_removed_creates_none(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh)
        shutil.rmtree(place.folder)
        assert mesh.traces.get_all() == []
        assert not place.folder.exists()
        assert len(mesh.traces.similar("create a plot")) == 1


def test_what_cannot_be_read_is_a_fault_and_the_others_work(place: Place) -> None:
    with place.mesh() as mesh:
        trace = record(mesh)
        record(mesh, project="linked")
        for archive in (place.log().parents[1] / "archive", place.system.parent / "archive"):
            archive.mkdir()
            (archive / "1.md.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
        place.log("linked").unlink()
        place.log("linked").symlink_to(place.log())
        place.log().write_text(
            trace.text.replace("plot", "chart")
            + replace(trace, trace_id="trace-hand", duration_ms=7).text
        )
        found = mesh.traces.get_all(archived=True)
        assert sorted(each.goal for each in found) == ["Create a chart", "Create a plot"]
        assert [(fault.file, fault.line) for fault in found.faults] == [
            ("projects/default/memory/archive/1.md.gz", 0),
            ("projects/linked/memory/short_term/execution_log.md", 0),
        ]  # fmt: skip
        assert "is damaged" in found.faults[0].what
        assert "is a link" in found.faults[1].what
        assert len(mesh.traces.similar("create a chart", min_similarity=0.99)) == 1, (
            "the other project is indexed"
        )
        assert len(mesh.traces.experiences()) == 3
        assert mesh.traces.retention(dry_run=True).moves == ()
        assert {run.job: run.outcome for run in mesh.heartbeat().runs}["traces"] == "done"
        with pytest.raises(InvalidInput, match="is a link"):
            mesh.traces.consolidate("linked")


def test_a_broken_entry_of_the_experience_log_is_reported_and_stays_as_it_is(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh)
        record(mesh, "Import the orders")
        whole = place.system.read_text()
        assert mesh.traces.experiences().faults == []
        assert mesh.traces.retention().faults == ()
        broken = whole.replace("final_outcome: success", "final_outcome: perhaps", 1)
        place.system.write_text(broken)
        found = mesh.traces.experiences()
        assert [each.experience_id for each in found] == ["exp_2"]
        (fault,) = found.faults
        assert (fault.file, fault.line) == ("system/memory_log.md", 1)
        assert "final_outcome is 'perhaps'" in fault.what
        assert mesh.traces.retention(dry_run=True).faults == (fault,)
        assert mesh.traces.retention().faults == (fault,)
        assert place.system.read_text() == broken
        record(mesh, "Ship it")
        assert place.system.read_text().startswith(broken)


@pytest.mark.parametrize(
    "id_", ["trace-2024-01-01T12:00:00.000Z-3fa9c2", "trace_2024-01-01T10:00:00+01:00_x"]
)
def test_a_trace_whose_id_has_an_iso_time_is_read_found_archived_and_erased(
    place: Place, id_: str
) -> None:
    with place.mesh() as mesh:
        trace = record(mesh, decisions=["Use make."])
        place.log().write_text(trace.text.replace(trace.trace_id, id_) + trace.text)
        found = mesh.traces.get_all()
        assert (sorted(each.trace_id for each in found), found.faults) == (
            sorted([id_, trace.trace_id]),
            [],
        )
        assert mesh.traces.get(id_) == replace(trace, trace_id=id_)
        assert {match.trace_id for match in mesh.traces.similar("create a plot")} == {
            id_,
            trace.trace_id,
        }
        mesh.traces.archive()
        assert mesh.traces.get(id_) is not None
        (memory,) = [
            each for each in place.memories("trace", "archived") if each.metadata["trace_id"] == id_
        ]
        mesh.erase(memory.id)
        assert mesh.traces.get(id_) is None
        assert mesh.traces.get(trace.trace_id) is not None


def test_a_link_in_the_folder_is_not_followed(place: Place, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (place.folder / "projects").mkdir(parents=True)
    (place.folder / "projects" / "atlas").symlink_to(tmp_path / "outside")
    with place.mesh() as mesh, pytest.raises(InvalidInput, match="is a link"):
        record(mesh, project="atlas")
    assert list((tmp_path / "outside").iterdir()) == []
    assert place.mesh().traces.get_all() == []


# --- runs ---


def test_a_run_is_timed_and_recorded_with_what_was_added_to_it(place: Place) -> None:
    cache = place.log().parent / "context_cache.md"
    with (
        place.mesh() as mesh,
        mesh.traces.run("Deploy the shop. Quickly.", plan="Build.", agents=["planner"]) as run,
    ):
        assert "# Deploy the shop.\n" in cache.read_text()
        run.plan = "Build, then mail ann@example.org."
        assert "Build, then mail [EMAIL]." in cache.read_text()
        run.step("Build")
        run.step("Push", "failed")
        run.tool("make", "built")
        run.tool("make")
        run.created("shop.tar")
        run.learn("It is slow")
        run.decide("Keep tar")
        run.results = "Deployed."
        place.house.clock.advance(seconds=3)
    trace = run.trace
    assert trace is not None
    assert (trace.goal, trace.status, trace.duration_ms, trace.tools_used) == (
        "Deploy the shop.",
        "success",
        3000,
        ("make",),
    )
    assert [(step.text, step.status) for step in trace.steps] == [
        ("Build", "done"),
        ("Push", "failed"),
    ]
    assert trace.learnings == ("It is slow", "Decision: Keep tar")
    assert trace.files_created == ("shop.tar",)
    assert place.entries()[0].components_used == ("planner", "make")
    assert cache.read_text() == ""
    assert mesh.traces.get_all() == [trace]


def test_an_exception_without_a_readable_message_is_recorded_and_raised(place: Place) -> None:
    class Odd(Exception):
        def __str__(self) -> str:
            raise ValueError

    with pytest.raises(Odd), place.mesh().traces.run("Odd") as run:
        raise Odd
    assert run.trace is not None
    assert (run.trace.status, run.trace.learnings) == ("failure", ("Odd",))


def test_a_run_that_raises_is_a_failure_with_its_exception_and_raises_it(place: Place) -> None:
    with place.mesh() as mesh:
        with pytest.raises(ZeroDivisionError), mesh.traces.run("Divide"):
            raise ZeroDivisionError("by ann@example.org")
        (trace,) = mesh.traces.get_all()
        assert (trace.status, trace.learnings) == ("failure", ("ZeroDivisionError: by [EMAIL]",))
        for code, status in ((0, "success"), (2, "failure")):
            with pytest.raises(SystemExit), mesh.traces.run("Exit") as run:
                raise SystemExit(code)
            assert run.trace
            assert run.trace.status == status
        with pytest.raises(InvalidInput), mesh.traces.run("x" * 1_000_000):
            pytest.fail("it does not begin")


def test_what_is_added_to_a_run_is_checked_at_once_and_the_run_is_recorded(place: Place) -> None:
    with place.mesh() as mesh, mesh.traces.run("Build") as run:
        for add in (run.step, run.tool, run.created, run.learn, run.decide):
            with pytest.raises(InvalidInput):
                add("")
        with pytest.raises(InvalidInput):
            run.step("compile", "")
        with pytest.raises(InvalidInput):
            run.tool("make", b"bytes")  # type: ignore[arg-type]
        run.learn("nul \0 character")
    assert run.trace
    assert (run.trace.steps, run.trace.tools_used, run.trace.learnings) == (
        (),
        (),
        ("nul \ufffd character",),
    )


def test_asynchronous_code_records_too(place: Place) -> None:
    async def main() -> list[Trace]:
        async with AsyncMemoryMesh(
            store="memory://", traces_dir=str(place.folder), embedder="none"
        ) as mesh:
            await mesh.traces.record("Create a plot")
            async with mesh.traces.run("Deploy") as run:
                run.step("Build")
            with pytest.raises(KeyError):
                async with mesh.traces.run("Fail"):
                    raise KeyError("k")
            return await mesh.traces.get_all()

    assert sorted((trace.goal, trace.status) for trace in asyncio.run(main())) == [
        ("Create a plot", "success"), ("Deploy", "success"), ("Fail", "failure"),
    ]  # fmt: skip


# --- the experience log ---


def test_the_entry_of_a_run_with_very_long_learnings_is_read_back(place: Place) -> None:
    with place.mesh() as mesh:
        trace = record(mesh, learnings=["x" * 60_000])
        assert mesh.traces.get_all() == [trace]
        assert len(place.entries()[0].learnings_or_issues) < 21_000
        with pytest.raises(InvalidInput, match="learnings_or_issues has 60,000 characters"):
            mesh.traces.log_experience("a", learnings_or_issues="x" * 60_000)


@pytest.mark.req("TRACE-14")
def test_a_number_that_a_person_made_huge_is_not_counted_from(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "one")
        record(mesh, "two")
        place.system.write_text(place.system.read_text().replace("exp_2\n", f"exp_{10**18 - 1}\n"))
        record(mesh, "three")
    assert [entry.number for entry in place.entries()] == [1, 10**18 - 1, 3]


@pytest.mark.req("TRACE-14")
def test_numbers_rise_by_one_and_none_repeats_after_entries_are_lost(place: Place) -> None:
    with place.mesh() as mesh:
        for goal in ("one", "two"):
            record(mesh, goal)
        assert (
            mesh.traces.log_experience(
                "three", final_outcome="failure", learnings_or_issues="a\nb"
            ).experience_id
            == "exp_3"
        )
        assert [entry.experience_id for entry in place.entries()] == ["exp_1", "exp_2", "exp_3"]
        place.system.write_text("".join(entry.text for entry in place.entries()[:1]))
        record(mesh, "four")
        assert [entry.experience_id for entry in place.entries()] == ["exp_1", "exp_4"]
        last = place.folder / "system" / ".last_experience"
        last.unlink()
        assert (
            mesh.traces.log_experience(
                "five", learnings_or_issues="experience_id: exp_99"
            ).experience_id
            == "exp_5"
        )
        last.write_text("4")  # a crash came before it was written
        assert mesh.traces.log_experience("six").experience_id == "exp_6"


@pytest.mark.req("TRACE-33", "TRACE-34")
def test_the_live_log_keeps_a_thousand_entries_and_older_ones_are_still_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace_index, "MAX_ENTRIES", 3)
    with place.mesh() as mesh:
        made = [mesh.traces.log_experience(f"goal {n}") for n in range(5)]
        assert place.entries() == made[2:]
        archive = place.folder / "system" / "archive" / "memory_log-1-1000.md.gz"
        assert [path.name for path in place.folder.rglob("*.gz")] == [archive.name]
        assert gzip.decompress(archive.read_bytes()).decode() == "".join(
            entry.text for entry in made[:2]
        )
        assert mesh.traces.experiences() == made[::-1]
        assert mesh.traces.experiences(archived=False) == made[:1:-1]
        assert {f"goal {n}" for n in range(5)} <= {
            text.partition(":")[0] for text in texts(mesh.get_all())
        }
        assert len(place.memories("experience")) == 5


def test_an_entry_alone_is_masked_and_summarised(place: Place) -> None:
    with place.mesh() as mesh:
        entry = mesh.traces.log_experience(
            "Write to ann@example.org. More.", output_summary="Sent to ann@example.org", project="p"
        )
        assert (entry.primary_goal, entry.output_summary, entry.project_name) == (
            "Write to [EMAIL].",
            "Sent to [EMAIL]",
            "p",
        )
        with pytest.raises(InvalidInput, match="final_outcome"):
            mesh.traces.log_experience("a", final_outcome="ok")


# --- similar goals ---


@pytest.mark.req("TRACE-16", "TRACE-18", "TRACE-20")
@pytest.mark.parametrize("embedder", [HashingEmbedder(), "none"])
def test_similar_goals_are_found_best_first_within_the_limit_and_above_the_minimum(
    place: Place, embedder: object
) -> None:
    with place.mesh(embedder=embedder) as mesh:
        for goal in (
            "plot sales of May",
            "plot sales",
            "plot sales of June and July",
            "plot",
            "paint the door",
        ):
            record(mesh, goal, tools_used=["python"])
        found = mesh.traces.similar("plot sales")
        assert len(found) == 3
        assert [match.similarity for match in found] == sorted(
            (match.similarity for match in found), reverse=True
        )
        assert {"plot sales", "plot sales of May"} <= {match.goal for match in found}
        assert found[0].similarity == pytest.approx(1.0)
        assert min(match.similarity for match in found) >= 0.0
        assert found[0].tools_used == ("python",)
        every = mesh.traces.similar("plot sales", 100, 0.0)
        assert len(every) == 5
        assert {match.goal for match in every if match.similarity >= 0.3} == {
            match.goal for match in mesh.traces.similar("plot sales", 100)
        }
        assert mesh.traces.similar("plot sales", limit=1) == found[:1]


@pytest.mark.req("TRACE-16")
def test_a_similarity_below_three_tenths_is_left_out_by_default(place: Place) -> None:
    with place.mesh(embedder="none") as mesh:
        record(mesh, "plot")
        assert [
            match.similarity for match in mesh.traces.similar("plot the sales", min_similarity=0.0)
        ] == [pytest.approx(1 / 3)]
        assert len(mesh.traces.similar("plot the sales")) == 1
        assert [
            match.similarity
            for match in mesh.traces.similar("plot the sales of", min_similarity=0.0)
        ] == [0.25]
        assert mesh.traces.similar("plot the sales of") == []


class Opposites(HashingEmbedder):
    """Embeds every text that is not a goal of the test as the opposite of one that is."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [
            Vector.of(self.model, [1.0 if text.startswith("Plot") else -1.0, *[0.0] * 255])
            for text in texts
        ]


@pytest.mark.req("TRACE-18")
def test_a_cosine_below_zero_is_a_similarity_of_zero(place: Place) -> None:
    with place.mesh(embedder=Opposites()) as mesh:
        record(mesh, "Plot the sales")
        assert [
            match.similarity for match in mesh.traces.similar("paint the door", min_similarity=0.0)
        ] == [0.0]


@pytest.mark.req("TRACE-18")
def test_the_similarity_is_the_cosine_of_the_plain_goals(place: Place) -> None:
    from memory_mesh.flows.graph.links import cosine

    embedder = HashingEmbedder()
    with place.mesh() as mesh:
        record(
            mesh, "Plot the sales of May", plan="Something else entirely", results="Another text"
        )
        (match,) = mesh.traces.similar("plot the costs of may", min_similarity=0.0)
    one, other = embedder.embed(["plot the costs of may", "Plot the sales of May"])
    assert match.similarity == pytest.approx(cosine(one, other), abs=1e-6)
    assert 0.1 < match.similarity < 0.99


@pytest.mark.req("TRACE-15")
def test_case_and_punctuation_of_the_query_do_not_matter(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "Create a plot!")
        record(mesh, "Create the sub-plot")
        first = mesh.traces.similar("Create, PLOT!", min_similarity=0.0)
        assert first == mesh.traces.similar("create plot", min_similarity=0.0)
        assert len(first) == 2


@pytest.mark.req("TRACE-19")
def test_without_an_embedder_words_are_compared_and_an_empty_query_matches_nothing(
    place: Place,
) -> None:
    with place.mesh(embedder="none") as mesh:
        record(mesh, "Plot sales of May")
        assert mesh.traces.similar("plot the SALES")[0].similarity == pytest.approx(2 / 3)
        assert (
            mesh.traces.similar("?!", min_similarity=0.0)
            == mesh.traces.similar("", min_similarity=0.0)
            == []
        )


@pytest.mark.req("TRACE-17")
@pytest.mark.parametrize(
    ("window", "days"),
    [
        (None, [1, 2, 3]), (("2026-03-01T12:00:00Z", "2026-03-02T12:00:00Z"), [1, 2]),
        (("2026-03-02", None), [2, 3]), ((None, "2026-03-02"), [1, 2]),
        (("2026-03-01T12:00:00.001Z", "2026-03-03T11:59:59.999Z"), [2]),
    ],
)  # fmt: skip
def test_a_time_window_includes_both_ends(
    place: Place, window: tuple[str | None, str | None] | None, days: list[int]
) -> None:
    with place.mesh() as mesh:
        by_id = {
            record(mesh, "plot", timestamp=f"2026-03-0{day}T12:00:00Z").trace_id: day
            for day in (1, 2, 3)
        }
        assert (
            sorted(
                by_id[match.trace_id] for match in mesh.traces.similar("plot", time_window=window)
            )
            == days
        )
        with pytest.raises(InvalidInput, match="time_window"):
            mesh.traces.similar("plot", time_window="2026")  # type: ignore[arg-type]


@pytest.mark.req("TRACE-21")
def test_a_successful_run_suggests_its_plan_and_a_learning_comes_before_it(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot", plan="Read, draw.", recovered=True)
        record(mesh, "plot", plan="Guess.", status="failure")
        record(mesh, "plot")
        assert {
            (match.success, match.suggested_approach) for match in mesh.traces.similar("plot")
        } == {
            (True, "Read, draw."), (False, None), (True, None),
        }  # fmt: skip
        sources = [memory.id for memory in place.memories("trace")]
        learning = mesh.add(
            "# Learning: plot",
            {
                "category": "insight",
                "learning_id": "one",
                "recommended_approach": "Use the template.",
            },
        )
        place.house.change(learning.id, sources=sources)
        assert {match.suggested_approach for match in mesh.traces.similar("plot")} == {
            "Use the template."
        }


@pytest.mark.req("TRACE-03")
def test_queries_cross_projects_and_never_users(place: Place) -> None:
    with place.mesh(project="one") as mesh, place.mesh(user_id="ana") as ana:
        record(mesh, "plot")
        record(mesh, "plot", project="two")
        record(ana, "plot secretly")
        assert {match.goal for match in mesh.scoped(project="three").traces.similar("plot")} == {
            "plot"
        }
        assert len(mesh.traces.similar("plot")) == 2
        assert len(mesh.traces.similar("plot", project="two")) == 1
        assert [match.goal for match in ana.traces.similar("plot")] == ["plot secretly"]
        assert len(ana.traces.experiences()) == 1
        assert len(mesh.traces.get_all(project="two")) == len(mesh.traces.get_all()) == 1, (
            "of its own project"
        )
    assert {memory.user_id for memory in place.memories("experience")} == {None, "ana"}
    assert b"secretly" not in place.system.read_bytes()
    assert "ana" not in {path.name for path in place.folder.rglob("*")}


def test_archived_traces_are_found_unless_they_are_left_out(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot")
        (memory,) = place.memories("trace")
        place.house.change(memory.id, status="archived")
        assert len(mesh.traces.similar("plot")) == 1
        assert mesh.traces.similar("plot", archived=False) == []


@pytest.mark.req("TRACE-33")
def test_an_archive_that_unpacks_to_far_more_than_it_has_is_refused_before(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot")
    archive = place.folder / "archives" / "bomb.md.gz"
    archive.parent.mkdir(exist_ok=True)
    archive.write_bytes(gzip.compress(b"x" * 30_000_000))
    assert archive.stat().st_size < 100_000
    files = markdown_files.DiskTraces(place.folder)
    assert len(files.read("archives/bomb.md.gz")) == 30_000_000  # this much is still read
    monkeypatch.setattr(markdown_files, "MAX_TRACE_BYTES", 1_000_000)
    tracemalloc.start()
    with pytest.raises(InvalidInput, match="at most 1,000,000 bytes"):
        files.read("archives/bomb.md.gz")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


# --- edits by people ---


def test_a_trace_that_people_edit_is_read_again(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot sales", tools_used=["python"])
        record(mesh, "paint the door")
        log = place.log()
        log.write_text(
            log.read_text()
            .replace("plot sales", "draw the costs")
            .replace("  - python", "  - gnuplot")
        )
        (match,) = mesh.traces.similar("draw the costs", min_similarity=0.9)
        assert match.tools_used == ("gnuplot",)
        (memory,) = [one for one in place.memories("trace") if one.content == "draw the costs"]
        assert memory.revision > 1
        assert len(place.entries()) == len(place.memories("experience")) == 2
        assert mesh.search("draw costs", mode="recall")[0].id in {
            memory.id,
            *(one.id for one in place.memories("experience")),
        }


def test_a_trace_that_people_remove_is_archived_and_one_that_comes_back_is_active(
    place: Place,
) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot sales")
        kept = record(mesh, "paint the door")
        whole = place.log().read_text()
        place.log().write_text(kept.text)
        assert mesh.traces.similar("plot sales", archived=False) == []
        (memory,) = place.memories("trace", "archived")
        assert "removed" in (mesh.history(memory.id)[-1].why or "")
        assert [each.primary_goal for each in place.entries()] == [
            "plot sales",
            "paint the door",
        ], "the log is not shortened"
        place.log().write_text(whole)
        assert len(mesh.traces.similar("plot sales", archived=False)) == 1
        assert (len(place.memories("trace")), len(place.memories("trace", "archived"))) == (2, 0)


def test_a_trace_that_people_write_is_indexed_and_gets_an_entry_of_the_log(place: Place) -> None:
    with place.mesh() as mesh:
        trace = record(mesh, "plot sales")
        place.log().write_text(
            place.log().read_text() + replace(trace, trace_id="trace-1-aaaaaa", goal="By hand").text
        )
        assert len(mesh.traces.similar("by hand", min_similarity=0.9)) == 1
        assert [entry.primary_goal for entry in place.entries()] == ["plot sales", "By hand"]
        assert len(place.memories("experience")) == 2


def test_an_invalid_section_is_a_fault_and_stays_as_it_is_and_the_others_work(place: Place) -> None:
    with place.mesh() as mesh:
        first, second = record(mesh, "plot sales"), record(mesh, "paint the door")
        broken = first.text.replace("status: success", "status: [").encode()
        place.log().write_bytes(broken + second.text.encode())
        found = mesh.traces.get_all()
        assert found == [second]
        assert [fault.line for fault in found.faults] == [1]
        assert len(place.memories("trace")) == 2, "it is still there"
        third = record(mesh, "sweep the floor")
        assert place.log().read_bytes() == broken + second.text.encode() + third.text.encode()


def test_a_new_store_over_old_files_takes_them_over_without_new_entries(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot sales")
        mesh.traces.log_experience("alone")
    before = place.bytes()
    other = Place(place.folder)
    with other.mesh() as mesh:
        assert len(mesh.traces.similar("plot sales")) == 1
        assert len(mesh.get_all()) == 3
        assert other.memories("trace")[0].metadata["experience_id"] == "exp_1"
    assert place.bytes() == before


def test_two_folders_of_traces_in_one_store_do_not_disturb_each_other_and_one_may_move(
    place: Place, tmp_path: Path
) -> None:
    other = Place(tmp_path / "other", place.house)
    with place.mesh() as mesh, other.mesh() as second:
        first = record(mesh, "plot sales")
        record(second, "paint the door")
        place.log().write_text(place.log().read_text().replace("plot sales", "plot costs"))
        other.log().write_text(other.log().read_text() + "\n")
        assert {
            match.goal for match in second.traces.similar("plot costs", min_similarity=0.0)
        } == {
            "plot sales",
            "paint the door",
        }
        assert {match.goal for match in mesh.traces.similar("plot costs", min_similarity=0.0)} == {
            "plot costs",
            "paint the door",
        }
        assert [len(place.memories(category)) for category in ("trace", "experience")] == [2, 2]
    place.folder.rename(tmp_path / "moved")
    moved = Place(tmp_path / "moved", place.house)
    with moved.mesh() as mesh:
        assert mesh.traces.get(first.trace_id) == replace(first, goal="plot costs")
        assert [len(place.memories(category)) for category in ("trace", "experience")] == [2, 2]
        (memory,) = [one for one in place.memories("trace") if one.content == "paint the door"]
        assert mesh.erase(memory.id).traces == (), "its file is elsewhere"
        assert len(place.memories("trace")) == 1


# --- crashes ---


@pytest.mark.req("TRACE-11")
@pytest.mark.parametrize("at", ["traces.appended", "traces.logged", "flow.decided", "store.apply"])
def test_what_a_crash_leaves_of_an_execution_is_completed_at_the_next_use(
    place: Place, at: str
) -> None:
    def stop(name: str) -> None:
        if name == at:
            raise SystemExit

    with place.mesh() as mesh:
        record(mesh, "first")
    if at == "store.apply":
        place.house.store.apply = lambda *a, **k: stop(at)  # type: ignore[method-assign, assignment]
    with place.mesh(step=stop) as mesh, pytest.raises(SystemExit):
        record(mesh, "second")
    place.house.store.__dict__.pop("apply", None)
    for _ in range(2):
        with place.mesh() as mesh:
            assert {match.goal for match in mesh.traces.similar("second", min_similarity=0.9)} == {
                "second"
            }
    assert [entry.primary_goal for entry in place.entries()] == ["first", "second"]
    assert sorted(one.content.partition(":")[0] for one in place.memories("experience")) == [
        "first",
        "second",
    ]
    assert len(place.memories("trace")) == 2
    assert place.memories("trace")[0].metadata["experience_id"] == "exp_2"


@pytest.mark.parametrize("which", ["log", "system"])
@pytest.mark.parametrize("length", [3, 30, 150])
def test_a_cut_tail_is_moved_aside_and_no_whole_entry_is_lost(
    place: Place, which: str, length: int
) -> None:
    with place.mesh() as mesh:
        record(mesh, "first")
    file = place.log() if which == "log" else place.system
    whole = file.read_bytes()
    tail = (
        whole.replace(b"exp_1", b"exp_2")
        if which == "system"
        else whole.replace(b"trace-", b"trace-9")
    )[:length]
    file.write_bytes(whole + tail)
    with place.mesh() as mesh:
        assert [trace.goal for trace in mesh.traces.get_all()] == ["first"], (
            "reading repairs nothing"
        )
        assert file.read_bytes() == whole + tail
        record(mesh, "second")
        assert [trace.goal for trace in mesh.traces.get_all()] == ["second", "first"]
    assert file.with_name(f"{file.name}.damaged-1").read_bytes() == tail
    assert [entry.primary_goal for entry in place.entries()] == ["first", "second"]
    assert file.read_bytes().startswith(whole)


def test_a_full_disk_is_an_error_and_leaves_no_half_trace(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    import errno
    import os

    real = os.write

    def full(opened: int, data: bytes) -> int:
        if b"trace_id" in data:
            return real(opened, data[:10])  # a disk that is nearly full takes a part
        if b"second" not in data:
            return real(opened, data)
        raise OSError(errno.ENOSPC, "No space left on device")

    with place.mesh() as mesh:
        record(mesh, "first")
        before = place.log().read_bytes()
        monkeypatch.setattr(os, "write", full)
        with pytest.raises((InvalidInput, StoreFull), match="No space left"):
            record(mesh, "second")
        monkeypatch.undo()
        assert place.log().read_bytes() == before
        record(mesh, "third")
    assert [entry.primary_goal for entry in place.entries()] == ["first", "third"]


# --- erasure ---


@pytest.mark.req("TRACE-34")
def test_erasing_reaches_the_archive_of_a_project_without_a_log(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot zebra")
        mesh.traces.archive()
        place.log().unlink()
        assert b"zebra" in place.bytes(), "the control"
        mesh.delete(place.memories("trace", "archived")[0].id)
    assert b"zebra" not in place.bytes()


@pytest.mark.req("TRACE-34")
@pytest.mark.parametrize("which", ["trace", "experience"])
def test_erasing_a_trace_or_its_entry_takes_both_out_of_every_file_and_row(
    place: Place, which: str
) -> None:
    with place.mesh() as mesh:
        kept = record(mesh, "paint the door", tool_results={"make": "kept"})
        gone = record(
            mesh,
            "plot zebra",
            plan="quartz",
            tool_results={"make": "zebra"},
            decisions=["zebra crossing"],
        )
        last = record(mesh, "sweep the floor")
        project, system = place.log().parents[1], place.system.parent
        for name, text in (
            ("archive/1.md.gz", kept.text + gone.text),
            ("long_term/archive/d.md.gz", f"- zebra [{gone.trace_id}]\n"),
        ):
            (project / name).parent.mkdir(exist_ok=True)
            (project / name).write_bytes(gzip.compress(text.encode()))
        (project / "long_term" / "decisions.md").write_text(
            f"- 2026-01-01 zebra [{gone.trace_id}]\n- other [{kept.trace_id}]\n"
        )
        (system / "archive").mkdir()
        (system / "archive" / "memory_log-1-1000.md.gz").write_bytes(
            gzip.compress(place.entries()[1].text.encode())
        )
        place.log().with_name("execution_log.md.damaged-1").write_text(
            f"---\ntrace_id: {gone.trace_id}\nzebra"
        )
        assert place.bytes().count(b"zebra") > 6, "the control"
        (memory,) = [one for one in place.memories(which) if "zebra" in one.content]
        proof = mesh.erase(memory.id)
        assert set(proof.traces) == {gone.trace_id, "exp_2"}
        for word in (b"zebra", b"quartz", gone.trace_id.encode(), b"exp_2"):
            assert word not in place.bytes()
        assert not any("zebra" in one.content for one in place.house.memories())
        assert mesh.traces.get_all(archived=True) == [last, kept]
        assert [entry.experience_id for entry in place.entries()] == ["exp_1", "exp_3"]
        assert (
            project / "long_term" / "decisions.md"
        ).read_text() == f"- other [{kept.trace_id}]\n"
        assert mesh.traces.log_experience("next").experience_id == "exp_4"
        assert len(place.memories("trace")) == 2, "the next use archives nothing"


def test_a_learning_that_is_drawn_from_an_erased_trace_alone_leaves_its_files_too(
    place: Place,
) -> None:
    section = "# Learning: zebra\n\n## Context\n"
    with place.mesh() as mesh:
        record(mesh, "plot")
        (source,) = place.memories("trace")
        given = {"category": "insight", "project": "default", "digest": section_digest(section)}
        learning = mesh.add("Learning: zebra", given, key="learning:default:1")
        place.house.change(learning.id, sources=[source.id])
        file = place.log().parents[1] / "long_term" / "learnings.md"
        file.write_text(f"{section}\n# Learning: other\n")
        assert mesh.erase(source.id).traces[-1] == "default:1"
        assert file.read_text() == "# Learning: other\n"
        assert mesh.get(learning.id) is None


def test_forgetting_a_user_removes_the_folder_of_the_user_and_nothing_of_others(
    place: Place,
) -> None:
    with place.mesh() as mesh:
        record(mesh, "paint the door")
        record(mesh.scoped(user_id="ana"), "plot zebra")
        assert b"zebra" in place.bytes()
        mesh.forget(user_id="ana")
        assert b"zebra" not in place.bytes()
        assert list((place.folder / "users").iterdir()) == []
        assert [trace.goal for trace in mesh.traces.get_all()] == ["paint the door"]
        assert [
            meta
            for meta in Meta.with_prefix(place.house.store, "traces ")
            if meta.id not in state_ids(mesh)
        ] == []


def state_ids(mesh: MemoryMesh) -> set[str]:
    return {key.id for key in state_keys(mesh._context())}


def test_decay_leaves_traces_alone(place: Place) -> None:
    with place.mesh() as mesh:
        record(mesh, "plot")
        mesh.add("A weak memory.", {"importance": 0.0})
        place.house.clock.advance(days=4000)
        assert len(mesh.graph.decay(dry_run=False).archived) == 1
    assert len(place.memories("trace")) == len(place.memories("experience")) == 1


# --- privacy ---

SECRETS = {
    "email": "bob.miller@example.org", "key": "sk-proj-AbCdEf0123456789AbCdEf0123456789AbCdEf01",
    "card": "4111 1111 1111 1111", "password": "password: hunter2-zebra",
    "token": "ghp_0123456789abcdefghijABCDEFGHIJ456789",
}  # fmt: skip
NEEDLES = (
    "bob.miller",
    "AbCdEf0123456789AbCdEf",
    "1111 1111",
    "hunter2-zebra",
    "0123456789abcdefghij",
)


def everything(tmp_path: Path) -> bytes:
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    every = [
        gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
        for path in files
    ]
    return b"\n".join([*every, *(str(path).encode() for path in files)])


@pytest.mark.req("TRACE-35", "MESH-013")
@pytest.mark.parametrize(
    "redaction", ["mask", pytest.param("pseudonym", marks=pytest.mark.deep), "off"]
)
def test_a_secret_in_any_field_is_in_no_byte_on_disk(
    place: Place, tmp_path: Path, redaction: str
) -> None:
    text = "Do it with " + ", ".join(SECRETS.values())
    values = {
        "plan": f"{text}\nbob.miller<b>@</b>example.org", "steps": [text, (text, "done")],
        "results": text, "learnings": [text], "decisions": [text], "tools_used": [text],
        "files_created": [text], "agents": [text], "tool_results": {text: text * 150},
        "project": text[:400],
    }  # fmt: skip
    with MemoryMesh(
        store=f"sqlite:///{tmp_path}/m.db",
        traces_dir=str(place.folder),
        embedder="hash",
        redaction=redaction,
    ) as mesh:
        mesh.traces.record(text, **values)  # type: ignore[arg-type]
        mesh.traces.log_experience(
            text,
            project=text,
            components_used=[text],
            output_summary=text,
            learnings_or_issues=text,
        )
        with suppress(ValueError), mesh.traces.run(text, plan=text, project=text) as run:
            run.step(text, "done")
            run.tool(text, text)
            run.created(text)
            raise ValueError(text)
        mesh.traces.similar(text, min_similarity=0.0)
        mesh.search(text)
    found = {needle for needle in NEEDLES if needle.encode() in everything(tmp_path)}
    assert found == (set(NEEDLES) if redaction == "off" else set()), (
        "without redaction all are there: the control"
    )


@pytest.mark.req("TRACE-36")
def test_in_pseudonym_mode_a_person_has_the_same_id_in_all_traces(
    place: Place, tmp_path: Path
) -> None:
    with MemoryMesh(
        store="memory://", traces_dir=str(place.folder), embedder="none", redaction="pseudonym",
        redact_names={"Bob Miller": "user-7"},
    ) as mesh:  # fmt: skip
        one = mesh.traces.record("Mail bob@example.org for Bob Miller")
        two = mesh.traces.record(
            "Call Bob Miller",
            learnings=["bob@example.org answers", "ann@example.org does not"],
            project="b",
        )
    (address,) = re.findall(r"\[EMAIL[^\]]+\]", one.goal)
    assert one.goal == f"Mail {address} for user-7"
    assert two.goal == "Call user-7"
    assert two.learnings[0] == f"{address} answers"
    assert two.learnings[1] != f"{address} does not"
    assert "ann@example.org" not in two.learnings[1]
    assert b"Miller" not in everything(tmp_path)


# --- processes ---


def record_some(folder: str, name: str, count: int, acknowledged: Connection | None = None) -> None:
    """Record executions in a process of its own, and send what was recorded."""
    with MemoryMesh(
        store=f"sqlite:///{folder}/m.db",
        agent_id=name,
        traces_dir=f"{folder}/traces",
        embedder="hash",
    ) as mesh:
        for number in range(count):
            trace = mesh.traces.record(
                f"{name} {number}", project=f"p{number % 2}", learnings=["x" * 500]
            )
            if acknowledged:
                acknowledged.send(trace.trace_id)


@pytest.mark.deep
@pytest.mark.req("TRACE-14")
def test_processes_share_the_log_and_one_that_is_killed_loses_nothing_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    spawn, names, count = multiprocessing.get_context("spawn"), ("ann", "bob", "eve"), 15
    record_some(str(tmp_path), "first", 1)
    receive, send = spawn.Pipe(duplex=False)
    killed = spawn.Process(target=record_some, args=(str(tmp_path), "killed", 1000, send))
    others = [
        spawn.Process(target=record_some, args=(str(tmp_path), name, count)) for name in names
    ]
    for process in (killed, *others):
        process.start()
    acknowledged = [receive.recv() for _ in range(5)]
    killed.kill()
    for process in (killed, *others):
        process.join()
    assert [process.exitcode for process in others] == [0, 0, 0]
    record_some(str(tmp_path), "last", 1)
    store = f"sqlite:///{tmp_path}/m.db"
    with MemoryMesh(
        store=store, agent_id="ann", traces_dir=str(tmp_path / "traces"), embedder="hash"
    ) as mesh:
        traces, entries = (
            mesh.traces.get_all(limit=10_000),
            mesh.traces.experiences(limit=10_000)[::-1],
        )
        numbers = [entry.number for entry in entries]
        assert numbers == list(range(1, len(numbers) + 1))
        assert len(numbers) == len(traces) > 50
        assert {trace.trace_id for trace in traces} >= set(acknowledged)
        assert {trace.goal for trace in traces} >= {
            f"{name} {number}" for name in names for number in range(count)
        }
        indexed = {
            memory.metadata["trace_id"]
            for memory in mesh.get_all(limit=10_000)
            if memory.category == "trace"
        }
        assert indexed == {trace.trace_id for trace in traces}
        assert traces.faults == []


def record_until(folder: str, step: str) -> None:
    """Record a second execution, and die at a step of it."""
    record_some(folder, "first", 1)
    with MemoryMesh(
        store=f"sqlite:///{folder}/m.db",
        traces_dir=f"{folder}/traces",
        embedder="hash",
        step=crash_at(step),
    ) as mesh:
        mesh.traces.record("second", tool_results={"make": "built"}, project="p0")


@pytest.mark.deep
@pytest.mark.req("TRACE-11")
@pytest.mark.parametrize(
    "step", ["traces.appended", "traces.logged", "flow.decided", "store.begun", "store.committed"]
)
def test_a_process_that_is_killed_while_it_records_leaves_one_trace_one_entry_and_two_memories(
    tmp_path: Path, step: str
) -> None:
    process = multiprocessing.get_context("spawn").Process(
        target=record_until, args=(str(tmp_path), step)
    )
    process.start()
    process.join()
    assert process.exitcode == -SIGKILL
    for _ in range(2):
        with MemoryMesh(
            store=f"sqlite:///{tmp_path}/m.db", traces_dir=str(tmp_path / "traces"), embedder="hash"
        ) as mesh:
            assert [trace.goal for trace in mesh.traces.get_all()] == ["second", "first 0"]
            assert [entry.primary_goal for entry in mesh.traces.experiences()] == [
                "second",
                "first 0",
            ]
            memories = Counter(
                (memory.category, memory.content.partition(":")[0]) for memory in mesh.get_all()
            )
            assert memories == Counter(
                (category, goal)
                for category in ("trace", "experience")
                for goal in ("first 0", "second")
            )
            assert all(isinstance(one, Sound) for one in mesh.verify())
