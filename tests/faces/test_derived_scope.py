"""What is derived from memories is visible to no reader who cannot see all of its sources, in
every part of the scope."""

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import InvalidInput, NotFound
from memory_mesh.core.model import Kind, Memory, Reader, Row, equals, visible
from memory_mesh.interfaces.operation import Effect
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store

from .house import House, whole

USERS, AGENTS, SESSIONS, PROJECTS = (
    (None, "uma"),
    ("ann", "bob"),
    (None, "s1", "s2"),
    (None, "p1", "p2"),
)
TYPES = ("global", "agent", "session")
# Each source has one of these words, which no other text has, so that it is found wherever it was
# copied to.
WORDS = ("zanzibar", "quokka", "walrus", "ocelot", "narwhal", "axolotl", "wombat", "lemur")
READERS = [
    Reader(user, agent, session, project, only_project=only)
    for user, agent, session, project in product(USERS, AGENTS, SESSIONS, PROJECTS)
    for only in ([False, True] if project else [False])
]
Source = tuple[str | None, str, str | None, str | None, str]
Verb = Callable[[MemoryMesh], object]
SOURCES: st.SearchStrategy[Source] = st.tuples(
    *map(st.sampled_from, (USERS, AGENTS, SESSIONS, PROJECTS, TYPES))
)  # type: ignore[arg-type]


class World:
    """A store with one memory for each source, and one trace if a folder is given for them."""

    def __init__(self, sources: list[Source], folder: Path | None = None) -> None:
        self.house, self.folder = House(open_store("memory://")), folder
        self.owners: dict[str, list[Row]] = {}
        for source, word in zip(sources, WORDS, strict=False):
            self.house.clock.advance(seconds=60)
            self._store(source, word)

    def _store(self, source: Source, word: str) -> None:
        user, agent, session, project, type_ = source
        mesh = self.mesh(Reader(user, agent, session, project))
        kind = "global" if type_ == "session" and session is None else type_
        metadata = {
            "type": kind,
            "status": "error",
            "error_pattern": f"deploy of {word}",
            "preventative_rule": f"Check {word}.",
        }
        text = (
            f"It turned out that the deploy of the {word} server failed because its token "
            "had expired."
        )
        record = mesh.graph.store(agent, text, metadata=metadata, category="finding")
        self.owners[word] = self.house.store.find(Kind.MEMORY, equals("id", record.id))
        if self.folder:  # every agent of the user sees traces, so they have a word of their own
            other = word[::-1]
            mesh.traces.record(
                "Deploy the server",
                decisions=[f"Deploy {other} at night."],
                learnings=[f"Use the {other}."],
            )
            self.owners[other] = [
                row for row in self.house.store.find(Kind.MEMORY) if other in whole(row.fields)
            ]

    def mesh(self, reader: Reader) -> MemoryMesh:
        traces = {"traces_dir": str(self.folder / str(reader.user_id))} if self.folder else {}
        base = self.house.mesh(
            str(reader.agent_id), embedder=HashingEmbedder(), user_id=reader.user_id, **traces
        )
        return base.scoped(
            session_id=reader.session_id, project=reader.project, only_project=reader.only_project
        )

    def rows(self) -> Iterator[Row]:
        for kind in (Kind.MEMORY, Kind.SKILL):
            yield from self.house.store.find(kind)

    def derived(self) -> list[Row]:
        """Every row that names sources, or has the word of a memory that it is not."""
        return [
            row
            for row in self.rows()
            if row.value("sources") or any(True for _ in self.copied(row))
        ]

    def copied(self, row: Row) -> Iterator[Row]:
        """The sources whose word a row has."""
        text = whole(row.fields)
        for word, rows in self.owners.items():
            if word in text and row.id not in {own.id for own in rows}:
                yield rows[0]

    def leaks(self) -> list[tuple[Reader, str, str]]:
        """Each reader that sees something derived and not all of its sources."""
        stored = {row.id: row for row in self.rows()}
        found = []
        for row in self.derived():
            sources = [stored[id_] for id_ in Memory.of(row).sources if id_ in stored]
            for reader in READERS:
                hidden = [one for one in (*sources, *self.copied(row)) if not visible(reader, one)]
                if hidden and visible(reader, row):
                    found.append((reader, row.id, hidden[0].id))
        return found

    def shown(self, answer: object, reader: Reader) -> list[str]:
        """The words of other projects in what a reader of one project was answered."""
        text = whole(answer)
        hidden = {
            word
            for word, rows in self.owners.items()
            if rows[0].value("project") not in (None, reader.project)
        }
        return [word for word in hidden if word in text] if reader.only_project else []


def digest_episodes(mesh: MemoryMesh) -> object:
    agent = mesh.reader.agent_id or "ann"
    return [
        mesh.graph.summarize_episode(agent, each, store=True) for each in mesh.graph.episodes(agent)
    ]


def lessons_to_skills(mesh: MemoryMesh) -> object:
    return mesh.distill(), [
        mesh.lesson_to_skill(lesson.memory_id) for lesson in mesh.query_lessons(limit=50)
    ]


def each_project(mesh: MemoryMesh, run: Callable[[str], object]) -> object:
    answers = []
    for project in ("default", "p1", "p2"):
        try:
            answers.append(run(project))
        except (InvalidInput, NotFound) as error:
            # There is none, or the reader is of another project only.
            answers.append(str(error.what))
    return answers


def keep_decisions(mesh: MemoryMesh) -> object:
    return each_project(
        mesh,
        lambda name: [
            mesh.traces.keep_decisions(each.trace_id)
            for each in mesh.traces.get_all(project=name, limit=50)
        ],
    )


def capture(mesh: MemoryMesh) -> object:
    """The assistant repeats what it recalled, as it does when it answers a question about the
    past."""
    said = [memory.content for memory in mesh.search("deploy", limit=50)]
    return mesh.lane.on_session_event(
        "session.idle", [{"role": "assistant", "content": text} for text in said]
    )


DERIVING: dict[str, Verb] = {
    "reflect": lambda mesh: [
        mesh.reflect("deploy", 50),
        mesh.reflect(lookback=50, include_reflections=True),
    ],
    "synthesize": lambda mesh: [
        mesh.synthesize("deploy"),
        mesh.synthesize(include_reflections=True),
    ],
    "episode-digest": digest_episodes,
    "distill": lambda mesh: mesh.distill(),
    "lesson-to-skill": lessons_to_skills,
    "consolidate": lambda mesh: mesh.graph.consolidate(min_cluster_size=2),
    "compress": lambda mesh: mesh.graph.auto_compress(min_cluster_size=2),
    "heartbeat": lambda mesh: mesh.heartbeat(force=True),
    "trace consolidate": lambda mesh: each_project(
        mesh, lambda name: mesh.traces.consolidate(name)
    ),
    "trace archive": lambda mesh: each_project(mesh, lambda name: mesh.traces.archive(name)),
    "trace retention": lambda mesh: mesh.traces.retention(),
    "trace decisions": keep_decisions,
    "host claude-code": capture,
}
# These write what the caller gives, move whole memories, or change and erase them: no text comes
# from another memory.
NOT_DERIVING = {
    "store", "store-messages", "store-many", "ingest-dir", "extract", "graph store", "lane store",
    "notes add", "notes extract", "notes import", "notes sync", "notes watch", "trace record",
    "trace-record", "distill-lesson", "ingest-skill", "ingest-skill-file", "sync-skills",
    "skill-feedback", "skill-prune", "heritage", "update", "pin", "end-session", "archive",
    "unarchive", "graph link", "graph unlink", "lane feedback", "reinforce", "dispute", "review",
    "review-activate", "review-reject", "review-keep-both", "review-undo", "resolve-conflict",
    "confirm-change", "undo-change",
    "delete", "delete-all", "forget", "compact", "decay", "junk", "reembed", "import", "copy",
    "restore", "migrate", "postgres prepare", "postgres grant", "postgres distribute",
    "hooks retry", "audit log-all", "audit export-all", "audit anchor", "audit rekey",
    "doctor-repair", "host stop", "config trust", "config untrust", "model fetch", "model check",
    "init", "mcp", "serve", "console", "token create", "token revoke",
}  # fmt: skip
# The same jobs, again and again; another host.
SAME = {"heartbeat-watch": "heartbeat", "host opencode": "host claude-code"}
NONE = (None, "ann", None, None, "global")
IN_P1, IN_P2 = (None, "ann", None, "p1", "global"), (None, "ann", None, "p2", "global")


def test_every_operation_that_writes_is_known_to_derive_or_not() -> None:
    writing = {one.name for one in OPERATIONS if one.effect is not Effect.READ}
    assert DERIVING.keys() | NOT_DERIVING | SAME.keys() == writing
    assert not DERIVING.keys() & NOT_DERIVING


@pytest.mark.parametrize("verb", DERIVING)
def test_what_is_derived_is_found_by_its_words_and_its_sources(verb: str, tmp_path: Path) -> None:
    """The control of the property: each verb derives something, and the test sees it."""
    world = World([IN_P1, IN_P1, IN_P1], tmp_path)
    reader = Reader(None, "ann", None, None)
    if (
        verb == "host claude-code"
    ):  # what the assistant repeats is not kept, so it says something new
        new = "It turned out that the zanzibar server was slow because its disk was full."
        world.mesh(reader).lane.on_session_event(
            "session.idle", [{"role": "assistant", "content": new}]
        )
    elif verb == "consolidate":
        world.house.clock.advance(days=40)
    DERIVING[verb](world.mesh(reader))
    assert world.derived() or verb == "trace retention"  # its first move is after a day


@pytest.mark.parametrize("verb", DERIVING)
@pytest.mark.parametrize(
    "reader",
    [Reader(None, "ann"), Reader(None, "ann", None, "p1", only_project=True)],
    ids=["any", "p1"],
)
def test_memories_of_several_projects_give_one_result_each(
    verb: str, reader: Reader, tmp_path: Path
) -> None:
    world = World([IN_P1, IN_P2, NONE, IN_P1, IN_P2, NONE], tmp_path)
    world.house.clock.advance(days=40)
    answer = DERIVING[verb](world.mesh(reader))
    assert world.leaks() == []
    assert world.shown(answer, reader) == []


@pytest.mark.deep
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    sources=st.lists(SOURCES, min_size=2, max_size=8),
    calls=st.lists(
        st.tuples(st.sampled_from(sorted(DERIVING)), st.sampled_from(READERS)),
        min_size=1,
        max_size=4,
    ),
    days=st.sampled_from([0, 2, 40]),
)
def test_no_reader_sees_what_is_derived_from_memories_that_it_cannot_see(
    sources: list[Source],
    calls: list[tuple[str, Reader]],
    days: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    traced = any(verb.startswith("trace") for verb, _ in calls)
    world = World(sources, tmp_path_factory.mktemp("traces") if traced else None)
    world.house.clock.advance(days=days)
    for verb, reader in calls:
        answer = DERIVING[verb](world.mesh(reader))
        assert world.leaks() == []
        assert world.shown(answer, reader) == []


@pytest.mark.req("MESH-025")
@pytest.mark.parametrize("verb", ["reflect", "synthesize"])
def test_a_repeated_call_with_a_key_returns_the_result_of_each_project(
    house: House, verb: str
) -> None:
    for project in ("p1", "p2", "p2"):
        house.mesh(project=project).add(
            f"The deploy of {project} broke at {len(house.memories())} o'clock."
        )
    house.mesh().add("Every deploy needs a reviewer.")
    first = getattr(house.mesh(), verb)("deploy", idempotency_key="k")
    assert [one.project for one in (first, *first.others)] == ["p2", "p1"]
    assert all("reviewer" in one.content for one in (first, *first.others))
    count = len(house.memories())
    house.mesh(project="p1").add("The deploy of p1 broke again.")
    again = getattr(house.mesh(), verb)("deploy", idempotency_key="k")
    assert whole(again) == whole(first)
    assert len(house.memories()) == count + 1
    assert house.sound()


def test_the_same_lesson_of_two_projects_is_learnt_in_each(house: House) -> None:
    failure = {
        "status": "error",
        "error_pattern": "token expired",
        "preventative_rule": "Refresh the token.",
    }
    for project in ("p1", "p2"):
        house.mesh(project=project).add(f"The deploy of {project} failed.", failure)
    assert len(house.mesh().distill().learnt) == 2
    for project in ("p1", "p2"):
        (lesson,) = house.mesh().scoped(project=project, only_project=True).query_lessons()
        assert lesson.preventative_rule == "Refresh the token."


def test_what_a_user_says_again_is_stored_in_the_users_words_not_in_those_of_a_private_memory(
    house: House,
) -> None:
    said = "We decided to deploy the server on Mondays, because its token had expired."
    house.mesh().add(
        "we decided to deploy the SERVER on Mondays because its token had expired",
        {"type": "agent"},
    )
    report = house.mesh().lane.on_session_event("session.idle", [{"role": "user", "content": said}])
    assert [memory.content for memory in report.kept] == [said]


BY_ID: dict[str, Callable[[MemoryMesh, str], object]] = {
    "explain_memory": lambda mesh, id_: mesh.graph.explain_memory(id_),
    "explain_supersession": lambda mesh, id_: mesh.graph.explain_supersession(id_),
    "links": lambda mesh, id_: mesh.graph.links(id_),
    "traverse": lambda mesh, id_: mesh.graph.traverse(id_),
    "reinforce": lambda mesh, id_: mesh.graph.reinforce(id_),
    "dispute": lambda mesh, id_: mesh.graph.dispute(id_),
    "archive": lambda mesh, id_: mesh.graph.archive(id_),
    "review_quarantine": lambda mesh, id_: mesh.graph.review_quarantine(id_, action="activate"),
}


@pytest.mark.parametrize("verb", BY_ID)
def test_a_handle_of_one_project_reviews_no_memory_of_another(house: House, verb: str) -> None:
    status = "quarantined" if verb == "review_quarantine" else "active"
    own, other = (
        house.mesh(project=name).add(f"The deploy of {name} failed.", {"type": "agent"})
        for name in ("p1", "p2")
    )
    for one in (own, other):
        house.change(one.id, status=status)
    narrow = house.mesh("bob").scoped(project="p1", only_project=True)
    BY_ID[verb](house.mesh("bob"), other.id)  # the control: any agent of the user may
    house.change(other.id, status=status)
    revision = house.memory(other.id).revision
    with pytest.raises(NotFound):
        BY_ID[verb](narrow, other.id)
    assert house.memory(other.id).revision == revision
    BY_ID[verb](narrow, own.id)


def test_a_handle_of_one_project_lists_and_keeps_up_nothing_of_another(house: House) -> None:
    failure = {"status": "error", "error_pattern": "token expired"}
    for project in ("p1", "p2"):
        mesh = house.mesh(project=project)
        for value in ("Rome", "Faro"):
            claim = {"subject": project, "predicate": "office", "value": value}
            mesh.graph.store(
                "ann",
                f"The office of {project} is in {value}.",
                claim=claim,
                quarantine=value == "Faro",
            )
        mesh.add(f"The deploy of {project} failed.", failure)  # without a rule, so it is skipped
    narrow = house.mesh().scoped(project="p1", only_project=True)
    for call, count in (
        (lambda mesh: mesh.graph.list_quarantined(), 2),
        (lambda mesh: mesh.graph.conflicts(), 2),
        (lambda mesh: mesh.distill().skipped, 2),
    ):
        assert len(call(house.mesh())) == count, "the control"
        (one,) = call(narrow)
        id_ = getattr(one, "memory_id", None) or getattr(one, "ref", None) or one.id
        assert house.memory(id_).project == "p1"
    house.clock.advance(days=3650)
    assert (
        narrow.graph.decay(dry_run=True).examined * 2
        == house.mesh().graph.decay(dry_run=True).examined
        > 0
    )


def test_a_handle_of_one_project_reads_no_trace_of_another(house: House, tmp_path: Path) -> None:
    mesh = house.mesh(traces_dir=str(tmp_path / "traces"))
    own, other = (mesh.traces.record(f"Deploy {name}", project=name) for name in ("p1", "p2"))
    assert mesh.traces.get(other.trace_id)
    assert len(mesh.traces.experiences()) == 2
    narrow = mesh.scoped(project="p1", only_project=True).traces
    assert narrow.get(own.trace_id)
    assert narrow.get(other.trace_id) is None
    assert [each.project_name for each in narrow.experiences()] == ["p1"]
    for call in (narrow.get_all, narrow.consolidate, narrow.archive):
        with pytest.raises(InvalidInput, match="of the project p1 only"):
            call(project="p2")  # type: ignore[operator]
    house.clock.advance(days=2)
    assert {move.project for move in mesh.traces.retention(dry_run=True).moves} == {"p1", "p2"}
    for dry_run in (True, False):
        assert {move.project for move in narrow.retention(dry_run=dry_run).moves} == {"p1"}
    assert {move.project for move in mesh.traces.retention().moves} == {"p2"}
