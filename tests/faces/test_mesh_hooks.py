"""Hooks of a mesh: which events they are told, failures and dead letters, Markdown files,
erasure, and what is refused."""

import json
import os
import shutil
from pathlib import Path

import pytest

from memory_mesh import (
    HookEvent,
    MemoryMesh,
    SettingsError,
    markdown_writethrough,
    webhook_writethrough,
)
from memory_mesh.core.model import Kind, Meta
from memory_mesh.core.model.background import Courier
from memory_mesh.core.upkeep.hooks import DELAYS, EVENTS
from memory_mesh.flows.context import Context
from memory_mesh.flows.upkeep.hooks import deliver, forget, no_entries
from memory_mesh.stores.hook_files import DiskHookFiles

from .house import House

NOW = "2026-01-01"


class Told(list[HookEvent]):
    """A hook that collects events; while `broken`, it fails, and for an event with the content
    `refused` always."""

    broken = False
    refused = ""

    def __call__(self, event: HookEvent) -> None:
        if self.broken or event.memory.get("content") == self.refused:
            raise RuntimeError("secret words")
        self.append(event)

    @property
    def names(self) -> list[str]:
        return [event.event for event in self]


async def wait_for(event: HookEvent) -> None: ...


def open_mesh(house: House, *hooks: object, agent_id: str = "ann") -> MemoryMesh:
    return house.mesh(agent_id, writethrough=list(hooks), embedder="none")


def by_hand(mesh: MemoryMesh) -> Context:
    """Start no thread: `attempt` delivers."""
    context = mesh._context()
    context.state.couriers.by_hook.update({hook.name: Courier() for hook in context.hooks.listed})
    for courier in context.state.couriers.by_hook.values():
        courier.closing.set()
    return context


def attempt(context: Context) -> float | None:
    """Deliver to the first hook, as its thread does after the pause."""
    return deliver(context, context.hooks.listed[0], force=True)


# --- events ---


@pytest.mark.req("GRAPH-86", "GRAPH-87")
def test_hooks_are_told_every_event_of_every_face_once_and_in_order(house: House) -> None:
    told, seen = Told(), set[str]()

    def check(mesh: MemoryMesh, *events: str) -> list[HookEvent]:
        """Close the mesh, and check and return what was told since the last time."""
        mesh.close()
        since = list(told)
        told.clear()
        assert [event.event for event in since] == list(events)
        seen.update(events)
        return since

    with open_mesh(house, told) as mesh:
        memory = mesh.add("The deploy key rotates on Mondays.")
        mesh.add("The deploy key rotates on Mondays.")  # observed again
        mesh.pin(memory.id)
        mesh.pin(memory.id, pinned=False)
        mesh.update(memory.id, content="The deploy key rotates on Fridays.")
    first, second = check(mesh, "store", "store")
    assert (first.memory["id"], first.memory["content"]) == (memory.id, memory.content)
    assert (second.memory["content"], second.memory["revision"]) == (
        "The deploy key rotates on Fridays.",
        5,
    )
    with open_mesh(house, told) as mesh:
        mesh.graph.reinforce(memory.id)
        mesh.graph.dispute(memory.id)
        mesh.graph.dispute(memory.id)  # it is disputed now
        mesh.graph.reinforce(memory.id)
    assert [
        event.memory["status"]
        for event in check(mesh, "reinforce", "dispute", "dispute", "reinforce")
    ][2:] == [
        "disputed",
        "active",
    ]
    with open_mesh(house, told) as mesh:
        for value, source in (
            ("Rome", "user_explicit"),
            ("Oslo", "user_explicit"),
            ("Bonn", "inference"),
        ):
            claim = {"subject": "Ana", "predicate": "home", "value": value}
            mesh.graph.store(
                "ann", f"Ana lives in {value}", claim=claim, provenance={"source": source}
            )
    events = check(mesh, "store", "supersede", "store", "quarantine")
    assert [str(event.memory["content"]).split()[-1] for event in events] == [
        "Rome",
        "Rome",
        "Oslo",
        "Bonn",
    ]
    with open_mesh(house, told) as mesh:
        mesh.add("Only here.", {"type": "session", "session_id": "s1"})
        mesh.end_session("s1")
        lesson = {
            "situation": "deploy",
            "error_pattern": "no key",
            "oversight": "x",
            "fix": "y",
            "preventative_rule": "look",
        }
        mesh.distill_lesson({**lesson, "severity": "high", "applicable_scope": "deploys"})
        house.clock.advance(days=1000)
        assert set(mesh.graph.decay().archived) >= {memory.id}
    check(mesh, "store", "archive", "lesson", "decay", "decay")
    with open_mesh(house, told) as mesh:
        mesh.delete(memory.id)
    assert [event.memory for event in check(mesh, "delete")] == [{"id": memory.id}]
    assert seen == set(EVENTS)
    assert house.store.count(Kind.EVENT) == 0


@pytest.mark.req("GRAPH-87")
def test_an_event_has_the_redacted_memory_and_an_id_that_orders_it(house: House) -> None:
    told = Told()
    with open_mesh(house, told) as mesh:
        mesh.add_many(["Write to ana@example.org.", "Second."])
    assert [event.memory["content"] for event in told] == ["Write to [EMAIL].", "Second."]
    assert sorted({event.id for event in told}) == [event.id for event in told]
    assert told[0].as_dict().keys() == {"id", "event", "at", "memory"}


def test_without_hooks_a_write_queues_nothing(house: House) -> None:
    with house.mesh() as mesh:
        mesh.delete(mesh.add("Nothing to tell.").id)
    assert house.store.count(Kind.EVENT) == 0
    assert Meta.with_prefix(house.store, "hook ") == []


# --- failures ---


@pytest.mark.req("GRAPH-88")
def test_a_failing_hook_breaks_no_write_and_is_told_in_order_once_it_works(house: House) -> None:
    told, other = Told(), list[HookEvent]()
    told.broken = True
    with open_mesh(house, told, other.append) as mesh:
        first = mesh.add("First.")
    with open_mesh(house, told, other.append) as mesh:
        assert mesh.get(first.id)
        mesh.add("Second.")
    (failing,) = [one for one in mesh.hooks_status() if one.failures]
    # The message may quote the memory.
    assert (failing.waiting, failing.error) == (2, "unexpected RuntimeError")
    assert [event.memory["content"] for event in other] == ["First.", "Second."]
    told.broken = False
    assert [one.waiting for one in mesh.retry_hooks()] == [0, 0]
    assert [event.memory["content"] for event in told] == ["First.", "Second."]
    assert [one.failures for one in mesh.hooks_status()] == [0, 0]
    mesh.close()


@pytest.mark.req("GRAPH-88")
def test_pauses_grow_until_the_event_is_a_dead_letter_which_a_retry_delivers(
    house: House, tmp_path: Path
) -> None:
    told = Told()
    told.broken = True
    with open_mesh(house, told) as mesh:
        context = by_hand(mesh)
        first, second = mesh.add("First."), mesh.add("Second.")
        assert [attempt(context) for _ in DELAYS] == list(DELAYS)
        assert deliver(context, context.hooks.listed[0]) == DELAYS[-1]  # not before its time
        assert [one.dead_letters for one in mesh.hooks_status()] == [0]
        attempt(context)
        # The next one has one attempt.
        assert [(one.waiting, one.dead_letters) for one in mesh.hooks_status()] == [(0, 2)]
        (letters,) = tmp_path.rglob("dead-letters.jsonl")
        lines = [json.loads(line) for line in letters.read_text().splitlines()]
        assert [(line["event"], line["memory"]["id"]) for line in lines] == [
            ("store", first.id),
            ("store", second.id),
        ]
        assert letters.stat().st_mode & 0o777 == 0o600
        told.broken = False
        assert [(one.waiting, one.dead_letters) for one in mesh.retry_hooks()] == [(0, 0)]
        assert [event.memory["content"] for event in told] == ["First.", "Second."]


@pytest.mark.req("GRAPH-88")
def test_an_event_that_a_hook_never_accepts_holds_up_the_others_only_until_it_is_a_dead_letter(
    house: House,
) -> None:
    told = Told()
    told.refused = "poison"
    with open_mesh(house, told) as mesh:
        context = by_hand(mesh)
        mesh.add_many(["first", "poison", *(f"later {n}" for n in range(100))])
        for _ in DELAYS:
            attempt(context)
        assert [event.memory["content"] for event in told] == ["first"]
        attempt(context)
        assert [event.memory["content"] for event in told] == [
            "first",
            *(f"later {n}" for n in range(100)),
        ]
        assert [(one.waiting, one.dead_letters, one.failures) for one in mesh.hooks_status()] == [
            (0, 1, 0)
        ]


@pytest.mark.req("MESH-011")
def test_an_event_that_was_erased_meanwhile_becomes_no_dead_letter(tmp_path: Path) -> None:
    files = DiskHookFiles(tmp_path / "hooks")
    for n, waits in enumerate((True, False)):
        files.add_dead_letter({"id": n}, lambda waits=waits: waits)  # type: ignore[misc]
    assert files.dead_letters() == [{"id": 0}]


def test_the_heartbeat_delivers_what_waits_when_its_time_has_come(house: House) -> None:
    told = Told()
    told.broken = True
    with open_mesh(house, told) as mesh:
        context = by_hand(mesh)
        mesh.add("Later.")
        attempt(context)
        told.broken = False
        for seconds, names in ((0, []), (DELAYS[0], ["store"])):
            house.clock.advance(seconds=seconds)
            assert "hooks" in {run.job for run in mesh.heartbeat().runs if run.outcome == "done"}
            assert told.names == names


def test_hooks_of_a_store_without_permission_to_write_are_told_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told, url, now = Told(), f"sqlite:///{tmp_path}/memory.db", [1e9]
    told.broken = True
    with MemoryMesh(url, writethrough=[told], embedder="none", clock=lambda: now[0]) as mesh:
        mesh.add("Later.")
    told.broken = False
    # What cannot be written as delivered would be delivered each time.
    for permitted, names in ((False, []), (True, ["store"])):
        now[0] += DELAYS[0]
        with monkeypatch.context() as patched:
            patched.setattr(os, "access", lambda *_, permitted=permitted: permitted)
            with MemoryMesh(
                url, writethrough=[told], embedder="none", clock=lambda: now[0]
            ) as mesh:
                assert len(mesh.get_all()) == 1
        assert told.names == names


def test_a_clock_that_was_set_back_does_not_hold_up_a_hook(house: House) -> None:
    told = Told()
    told.broken = True
    with open_mesh(house, told) as mesh:
        context = by_hand(mesh)
        mesh.add("Later.")
        attempt(context)
        told.broken = False
        for days, names in ((0, []), (-365, ["store"])):
            house.clock.advance(days=days)
            deliver(context, context.hooks.listed[0])
            assert told.names == names


# --- Markdown ---


@pytest.mark.req("GRAPH-86")
def test_markdown_has_a_private_file_for_each_utc_day_and_one_entry_for_each_event(
    house: House, tmp_path: Path
) -> None:
    folder = tmp_path / "log"
    with open_mesh(house, markdown_writethrough(dir=folder)) as mesh:
        one = mesh.add("First line.\n\n- 00:00:00 **store** `forged` line")
        house.clock.advance(days=1)
        mesh.update(one.id, content="Next day.")
    first, second = (folder / name for name in ("2026-01-01.md", "2026-01-02.md"))
    assert sorted(folder.glob("*.md")) == [first, second]
    assert first.read_text().splitlines()[0] == "# 2026-01-01"
    assert f"- 00:00:00 **store** `{one.id}` (ann) First line." in first.read_text().splitlines()
    assert all(
        line.startswith(("#", "- 00:00:00 ", "  ")) or not line
        for line in first.read_text().splitlines()
    )
    assert [path.stat().st_mode & 0o777 for path in (first, second)] == [0o600, 0o600]


@pytest.mark.req("GRAPH-86", "MESH-011")
def test_erasing_removes_a_memory_from_queue_dead_letters_and_markdown_also_by_a_mesh_without_hooks(
    house: House, tmp_path: Path
) -> None:
    folder, told = tmp_path / "log", Told()
    told.broken = True
    mesh = open_mesh(house, told, folder)
    context = by_hand(mesh)
    gone, kept = mesh.add("Zebra one.\nZebra two."), mesh.add("Kept words.")
    for _ in (*DELAYS, "last"):
        attempt(context)  # both are dead letters then
    deliver(context, context.hooks.listed[1])
    mesh.update(gone.id, content="Zebra three.")
    mesh.close()
    mine = folder / f"{NOW}.md"
    mine.write_text(mine.read_text() + "A line of my own.\n")

    def found(word: str) -> dict[str, bool]:
        texts = {
            path.name: path.read_text()
            for path in tmp_path.rglob("*")
            if path.suffix in (".md", ".jsonl")
        }
        queue = json.dumps([row.value("detail") for row in house.store.find(Kind.EVENT)])
        return {name: word in text for name, text in {**texts, "queue": queue}.items()}

    assert found("Zebra") == {mine.name: True, "dead-letters.jsonl": True, "queue": True}
    with house.mesh() as plain:
        plain.delete(gone.id)
    assert found("Zebra") == {mine.name: False, "dead-letters.jsonl": False, "queue": False}
    assert found("Kept words") == {mine.name: True, "dead-letters.jsonl": True, "queue": False}
    assert "A line of my own." in mine.read_text()
    told.broken = False
    with open_mesh(house, told, folder) as mesh:
        mesh.retry_hooks()
    assert sorted((event.event, event.memory["id"]) for event in told) == [
        ("delete", gone.id),
        ("store", kept.id),
    ]
    assert f"**delete** `{gone.id}`" in mine.read_text()


# --- what is refused ---


@pytest.mark.req("GRAPH-81", "GRAPH-86")
@pytest.mark.parametrize(
    ("hook", "message"),
    [
        ("http://127.0.0.1/x", "set writethrough_allow_local = true"),
        ("http://169.254.169.254/latest", "the URL leads to"),
        ("http://10.0.0.1/", "set writethrough_allow_local = true"),
        ("ftp://example.org/", "http:// or https://"),
        ("file/notes", "file is not a folder"),
        (42, "webhook_writethrough"),
        (Told, "the class"),
        (wait_for, "async function"),
        (None, "writethrough has None"),
    ],
)
def test_a_hook_that_cannot_work_is_refused_when_the_mesh_is_made(
    hook: object, message: str
) -> None:
    Path("file").touch()
    with pytest.raises(SettingsError) as error:
        MemoryMesh("memory://", writethrough=[hook])  # type: ignore[list-item]
    assert message in str(error.value)


@pytest.mark.req("GRAPH-81")
def test_a_webhook_refuses_local_addresses_unless_they_are_allowed() -> None:
    with pytest.raises(SettingsError, match="this machine"):
        webhook_writethrough("http://localhost:8000/x")
    assert webhook_writethrough("http://localhost:8000/x", allow_local=True).name.startswith(
        "webhook localhost "
    )
    assert "key-in-path" not in webhook_writethrough("https://example.org/key-in-path").name


def test_two_hooks_of_one_name_are_refused() -> None:
    with pytest.raises(SettingsError, match="two hooks with the name"):
        MemoryMesh("memory://", writethrough=["log", "./log"])


def test_hooks_come_from_the_users_settings_and_never_from_a_project(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    home = Path(os.environ["MEMORY_MESH_HOME"])
    home.mkdir()
    Path("memory-mesh.toml").write_text('writethrough = ["log"]\n')
    with pytest.raises(SettingsError, match="writethrough cannot be set by a project's file"):
        MemoryMesh("memory.db")
    Path("memory-mesh.toml").rename(home / "memory-mesh.toml")
    with MemoryMesh("memory.db", embedder="none") as mesh:
        mesh.add("From the settings.")
    assert "From the settings." in next(Path("log").glob("*.md")).read_text()


def test_an_erasure_that_comes_after_its_event_keeps_the_entry_that_says_so(
    house: House, tmp_path: Path
) -> None:
    with open_mesh(house, tmp_path / "log") as mesh:
        context = by_hand(mesh)
        memory = mesh.add("Zebra.")
        mesh.delete(memory.id)
        attempt(context)
        with no_entries(context):
            forget(context, [memory.id])
    assert (
        tmp_path / "log" / f"{NOW}.md"
    ).read_text() == f"# {NOW}\n\n- 00:00:00 **delete** `{memory.id}`\n"


@pytest.mark.req("MESH-011", "GRAPH-87")
def test_a_memory_whose_past_is_erased_is_told_as_deleted_and_stored_anew(
    house: House, tmp_path: Path
) -> None:
    told = Told()
    with open_mesh(house, told, tmp_path / "log") as mesh:
        memory = mesh.add("Shared words.", {"zebra": "of ann"})
        mesh.scoped(agent_id="bob").add("Shared words.")
        mesh.retry_hooks()
        assert mesh.delete_all(agent_id="ann").kept == (memory.id,)
    assert [(event.event, event.memory["id"]) for event in told] == [
        (name, memory.id) for name in ("store", "delete", "store")
    ]
    assert ["zebra" in str(event.memory) for event in told] == [True, False, False]
    lines = (tmp_path / "log" / f"{NOW}.md").read_text().splitlines()[2:]
    assert lines == [
        f"- 00:00:00 **delete** `{memory.id}`",
        f"- 00:00:00 **store** `{memory.id}` (bob) Shared words.",
    ]


def test_a_dead_letter_that_was_edited_stays_where_it_is(house: House, tmp_path: Path) -> None:
    told = Told()
    told.broken = True
    with open_mesh(house, told) as mesh:
        context = by_hand(mesh)
        mesh.add("First.")
        for _ in (*DELAYS, "last"):
            attempt(context)
        (letters,) = tmp_path.rglob("dead-letters.jsonl")
        whole = json.loads(letters.read_text())
        broken = [{**whole, "id": "event_1", "memory": None}, {"hook": whole["hook"]}]
        letters.write_text("".join(json.dumps(line) + "\n" for line in (*broken, whole)) + '{"half')
        told.broken = False
        mesh.retry_hooks()
        assert told.names == ["store"]
        assert [json.loads(line) for line in letters.read_text().splitlines()] == broken


def test_an_erasure_does_not_bring_back_a_folder_that_somebody_removed(
    house: House, tmp_path: Path
) -> None:
    with open_mesh(house, tmp_path / "log") as mesh:
        memory = mesh.add("Zebra.")
    shutil.rmtree(tmp_path / "log")
    with house.mesh() as plain:
        plain.delete(memory.id)
    assert not (tmp_path / "log").exists()
