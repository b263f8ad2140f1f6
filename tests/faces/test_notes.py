"""The notes of a folder: read, checked, matched, injected, added to, and found by the searches
of every face."""

import asyncio
import multiprocessing
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memory_mesh import (
    AsyncMemoryMesh,
    InvalidInput,
    MemoryMesh,
    NotFound,
    SettingsError,
    StoreFull,
)
from memory_mesh.core.model import Kind, Vector
from memory_mesh.core.notes import SEPARATOR, Note, Relevance
from memory_mesh.core.notes.files import MAX_BYTES
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock

from .house import House

LOGIN = """---
title: "Login rules"
whenToUse:
  - "auth|login"
tags: [auth]
importance: high
discoveredAt: 2025-12-31T20:00:00Z
discoveredBy: planner
---

Sessions end after fifteen minutes.
"""
TREE = """---
title: "Project layout"
whenToUse: ["find.*file"]
tags: []
importance: critical
discoveredAt: 2025-01-01
discoveredBy: planner
---

```
├── src/
│   ├── api/          # HTTP endpoints
└── package.json
```
"""


def made(title: str, text: str = LOGIN, **values: str) -> str:
    """A note with another title; values replace those of its frontmatter."""
    text = text.replace("Login rules", title)
    for name, value in values.items():
        text = "\n".join(
            f"{name}: {value}" if line.startswith(f"{name}:") else line for line in text.split("\n")
        )
    return text


@dataclass
class Place:
    """A folder of notes, and meshes on one store in memory."""

    folder: Path
    house: House = field(default_factory=lambda: House(open_store("memory://"), clock=FakeClock()))

    def mesh(self, **options: object) -> MemoryMesh:
        return self.house.mesh(
            "ann", **{"notes_dir": str(self.folder), "embedder": HashingEmbedder(), **options}
        )

    def write(self, name: str, text: str) -> Path:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, status: str = "active") -> dict[str, str]:
        """The ids of the memories of notes, by file and section."""
        found = [memory for memory in self.house.memories() if memory.status == status]
        return {f"{one.metadata['file']}#{one.metadata['section']}": one.id for one in found}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path / "notes")


def titles(found: Sequence[Note] | Sequence[Relevance]) -> list[str]:
    return [(one.note if isinstance(one, Relevance) else one).title for one in found]


@dataclass
class Output:
    """What an extraction returns."""

    should_create_memory: bool = True
    memory_title: str | None = "Token rules"
    frontmatter: Mapping[str, object] | None = field(
        default_factory=lambda: {"whenToUse": "token", "tags": ["auth"]}
    )
    content: str | None = "Tokens end after an hour."


# --- reading ---


@pytest.mark.req("NOTE-04")
def test_the_folder_is_a_setting_and_else_below_the_working_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    mesh = MemoryMesh("memory://", embedder="none")
    assert mesh.notes.load() == []
    assert (
        mesh.notes.append("Login rules", "Sessions end.", when_to_use="login").file
        == "login-rules.md"
    )
    assert (tmp_path / ".rawko" / "memories" / "login-rules.md").is_file()
    assert titles(mesh.notes.load()) == ["Login rules"]
    other = MemoryMesh("memory://", embedder="none", notes_dir="mine")
    assert other.notes.load() == []
    other.notes.append("Other", "Text.", when_to_use="x")
    assert {*os.listdir("mine")} == {".lock", "other.md"}


@pytest.mark.req("NOTE-10", "NOTE-11")
def test_lint_names_every_fault_with_its_file_and_the_other_notes_work(
    place: Place, tmp_path: Path
) -> None:
    (tmp_path / "outside.md").write_text(LOGIN)
    texts = {
        "a-good.md": LOGIN, "b-broken.md": made("Broken", importance="urgent"),
        "c-no-frontmatter.md": "# Hello", "d-long.md": made("Long") + "word " * 2001,
        "E_Name.md": made("Name"), "f-two.md": made("Login rules"),
        "g-yaml.md": LOGIN.replace("[auth]", "[auth"),
    }  # fmt: skip
    paths = [place.write(name, text) for name, text in texts.items()]
    paths += [place.write("h-large.md", LOGIN + "x" * MAX_BYTES), place.folder / "i-latin.md"]
    paths[-1].write_bytes("é".encode("latin-1"))
    (place.folder / "j-out.md").symlink_to(tmp_path / "outside.md")
    (place.folder / "inner").mkdir()
    (place.folder / "inner" / "k.md").write_text(LOGIN)
    before = [path.read_bytes() for path in paths]
    found = place.mesh().notes
    assert sorted(titles(found.load())) == ["Login rules", "Login rules", "Long", "Name"]
    said = {(fault.file, fault.line, fault.warning): fault.what for fault in found.lint()}
    assert {key: what.partition(";")[0] for key, what in said.items()} == {
        ("E_Name.md", 1, True): "the name of the file is not in kebab case",
        ("b-broken.md", 1, False): "importance is 'urgent'",
        ("c-no-frontmatter.md", 1, False): "there is no frontmatter",
        ("d-long.md", 1, True): "the note has 2,006 words",
        ("f-two.md", 1, True): "the title is also that of a-good.md, line 1",
        ("g-yaml.md", 1, False): "the frontmatter is not valid YAML, line 6",
        ("h-large.md", 0, False): f"it has {MAX_BYTES + len(LOGIN):,} bytes",
        ("i-latin.md", 0, False): "the file is not UTF-8 text (byte 1)",
        ("j-out.md", 0, False): "it leads out of the folder",
    }
    assert [path.read_bytes() for path in paths] == before
    assert len(place.rows()) == 4


def test_a_folder_that_cannot_be_read_is_a_fault(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    notes = MemoryMesh("memory://", notes_dir=str(tmp_path / "file"), embedder="none").notes
    assert "is a file" in notes.lint()[0].what
    with pytest.raises(InvalidInput, match="cannot be written"):
        notes.append("Title", "Text.", when_to_use="x")


# --- matching ---


@pytest.mark.req("NOTE-25", "NOTE-26", "NOTE-27", "NOTE-28", "NOTE-32")
def test_the_notes_that_a_task_needs(place: Place, tmp_path: Path) -> None:
    for number, importance in enumerate(("low", "medium", "high", "critical") * 2):
        place.write(f"n{number}.md", made(f"Note {number}", importance=importance))
    place.write("other.md", TREE)
    (tmp_path / "dev.yaml").write_text(
        "name: developer\nmemory:\n  maxInjected: 7\n  minImportance: medium\n"
    )
    agents = {
        "planner": {"max_injected": 2, "min_importance": "low", "specialty": ["auth"]},
        "dev": str(tmp_path / "dev.yaml"),
    }
    notes = place.mesh(note_agents=agents).notes
    assert titles(notes.find_relevant("add a login")) == [
        "Note 3",
        "Note 7",
        "Note 2",
        "Note 6",
        "Note 1",
    ]
    assert len(notes.match("add a login")) == 8
    assert titles(notes.find_relevant("x", "planner", "then login")) == ["Note 3", "Note 7"]
    assert len(notes.find_relevant("login", "dev")) == 6  # without those of low importance
    assert titles(notes.find_relevant("login", "dev", max_memories=1, min_importance="low")) == [
        "Note 3"
    ]
    assert len(notes.find_relevant("x", "auth-bot", max_memories=9)) == 8
    (best, *_) = notes.match("login", "planner")
    parts = (
        best.importance,
        best.recency,
        best.keyword,
        best.specialty,
        best.discoverer,
        best.score,
    )
    assert (best.pattern, parts) == ("auth|login", (30, 10, 0, 5, 10, 55))
    for wrong in ({"max_memories": -1}, {"min_importance": "urgent"}):
        with pytest.raises(InvalidInput):
            notes.find_relevant("login", **wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "wrong",
    [{"max_injected": -1}, {"colour": 1}, {"min_importance": "urgent"}, {"specialty": "a"}, 5],
)
def test_a_wrong_configuration_of_an_agent_is_refused(wrong: object) -> None:
    with pytest.raises(SettingsError, match="note_agents"):
        MemoryMesh("memory://", note_agents={"dev": wrong})


def test_the_file_of_an_agent_may_name_its_specialty(place: Place, tmp_path: Path) -> None:
    place.write("login.md", LOGIN)
    (tmp_path / "dev.yaml").write_text("name: dev\nspecialty: [auth]\nmemory: {maxInjected: 7}\n")
    (found,) = place.mesh(note_agents={"dev": str(tmp_path / "dev.yaml")}).notes.match(
        "login", "dev"
    )
    assert found.specialty == 5


@pytest.mark.parametrize(
    "text", ["memory: [", "memory: {colour: red}", "memory: 5", "root:x:0:0", ""]
)
def test_a_wrong_file_of_an_agent_is_reported(place: Place, tmp_path: Path, text: str) -> None:
    (tmp_path / "dev.yaml").write_text(text)
    with pytest.raises(InvalidInput, match="dev") as refused:
        place.mesh(note_agents={"dev": str(tmp_path / "dev.yaml")}).notes.find_relevant(
            "login", "dev"
        )
    assert "root" not in str(refused.value)
    with pytest.raises(InvalidInput, match=r"none\.yaml"):
        place.mesh(note_agents={"dev": str(tmp_path / "none.yaml")}).notes.find_relevant(
            "login", "dev"
        )


class TwoDirections(HashingEmbedder):
    """Texts about money point nearly the same way."""

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.seen = [*getattr(self, "seen", []), *texts]
        return [
            Vector.of(
                self.model, [1.0, 1.5 if "customer" in text else 0.0, float("sun" in text) * 9]
            )
            for text in texts
        ]


@pytest.mark.req("NOTE-45")
def test_a_plain_pattern_matches_a_task_that_is_close(place: Place) -> None:
    place.write("money.md", LOGIN.replace("auth|login", "Storing invoices"))
    embedder = TwoDirections()
    for closeness, count in ((0.5, 1), (0.6, 0)):  # the cosine is 0.55
        notes = place.mesh(embedder=embedder, note_closeness=closeness).notes
        assert (len(notes.match("bill the customer")), len(notes.match("watch the sun"))) == (
            count,
            0,
        )
    assert embedder.seen.count("Storing invoices") == 2  # once for each mesh
    assert place.mesh(embedder="none").notes.match("bill the customer") == []


@pytest.mark.req("NOTE-01", "NOTE-37", "NOTE-38")
def test_a_prompt_is_the_same_for_the_same_files_task_and_agent(place: Place) -> None:
    place.write("a.md", made("First", importance="critical"))
    place.write("b.md", made("Second"))
    mesh = place.mesh()
    prompt = mesh.notes.build_agent_prompt(
        "dev", task="add a login", current_plan="none", system_prompt="You build."
    )
    assert prompt.startswith(
        "You build.\n\n## Background Knowledge from Previous Runs\n\n### First\n"
        "*Importance: CRITICAL*\n"
    )
    assert mesh.notes.format_for_prompt(mesh.notes.find_relevant("add a login")) in prompt
    mesh.notes.find_relevant("something else")
    mesh.search("login sessions")
    again = Place(place.folder).mesh()
    for notes in (mesh.notes, again.notes):
        assert (
            notes.build_agent_prompt("dev", task="add a login", system_prompt="You build.")
            == prompt
        )
    assert (
        mesh.notes.build_agent_prompt("dev", task="paint", system_prompt="You build.")
        == "You build."
    )
    short = mesh.notes.build_agent_prompt("dev", task="add a login", max_tokens=40)
    assert "First" in short
    assert "Second" not in short
    for wrong in (["x"], None, mesh.notes.load()[0]):
        with pytest.raises(InvalidInput, match=r"notes? is"):
            mesh.notes.format_for_prompt(wrong)  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match="system_prompt"):
        mesh.notes.build_agent_prompt("dev", task="add a login", system_prompt=5)  # type: ignore[arg-type]


# --- writing ---


@pytest.mark.req("NOTE-20", "NOTE-21", "NOTE-23")
def test_a_note_is_appended_and_what_was_there_stays_byte_for_byte(place: Place) -> None:
    notes = place.mesh().notes
    first = notes.append(
        "Login rules",
        "Sessions end.",
        when_to_use=["login", "auth"],
        tags=["a b"],
        discovered_in="T: 1",
    )
    path = place.folder / first.file
    assert (first.file, first.section, first.created) == ("login-rules.md", 0, True)
    assert path.read_text() == notes.load()[0].text
    assert path.read_text() == (
        '---\ntitle: "Login rules"\nwhenToUse:\n  - "login"\n  - "auth"\ntags: [a b]\n'
        "importance: medium\ndiscoveredAt: 2026-01-01T00:00:00.000Z\ndiscoveredBy: ann\n"
        'discoveredIn: "T: 1"\n---\n\nSessions end.\n'
    )
    (place.folder / "empty.md").touch()
    assert notes.append("Empty", "Text.", when_to_use="x").created
    assert (place.folder / "empty.md").read_bytes().startswith(b"---\ntitle: ")
    (place.folder / "empty.md").unlink()
    theirs = b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n") + b"\r\nTheir own line"
    path.write_bytes(theirs)
    path.chmod(0o640)
    second = notes.append("Login rules", "Never log tokens.", when_to_use="token")
    assert (second.file, second.section, second.created) == ("login-rules.md", 1, False)
    added = notes.load()[1]
    assert path.read_bytes() == theirs + SEPARATOR.encode() + added.text.encode()
    assert path.stat().st_mode & 0o777 == 0o640
    assert (titles(notes.find_relevant("token")), added.discovered_at) == (
        ["Login rules"],
        "2026-01-01T00:00:00.000Z",
    )
    assert len(place.rows()) == 2


def test_a_note_needs_a_title_and_a_text_only(place: Place) -> None:
    notes = place.mesh().notes
    notes.append("Login rules", "Sessions end after fifteen minutes.")
    (note,) = notes.load()
    assert (note.when_to_use, note.importance, note.tags) == (("Login rules",), "medium", ())
    assert (note.discovered_by, note.discovered_at[:4]) == ("ann", "2026")
    assert [found.note for found in notes.match("Which rules hold at a login?")] == [note]
    assert notes.match("Paint the door") == []


@pytest.mark.req("NOTE-22")
@pytest.mark.parametrize("title", ["../../up", "/etc/passwd", "設計", "..", "\u202e"])
def test_no_title_leads_out_of_the_folder(place: Place, title: str) -> None:
    done = place.mesh().notes.append(title, "Text.", when_to_use="x")
    assert {
        path.relative_to(place.folder.parent).as_posix()
        for path in place.folder.parent.rglob("*.md")
    } == {f"notes/{done.file}"}


def test_a_link_is_not_written_through(place: Place, tmp_path: Path) -> None:
    place.write("x.md", LOGIN)
    (tmp_path / "outside.md").write_text("theirs")
    (place.folder / "login-rules.md").symlink_to(tmp_path / "outside.md")
    with pytest.raises(InvalidInput, match="is a link"):
        place.mesh().notes.append("Login rules", "Text.", when_to_use="x")
    assert (tmp_path / "outside.md").read_text() == "theirs"


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"title": " "}, "title"), ({"content": " "}, "content is blank"),
        ({"when_to_use": []}, "no pattern"), ({"importance": "urgent"}, "importance"),
        ({"discovered_at": "soon"}, "discoveredAt"), ({"tags": [1]}, "tags"),
        ({"content": f"Text.{SEPARATOR}{LOGIN}"}, "without the frontmatter of another"),
        ({"content": "a\0b"}, "NUL"), ({"tags": "auth"}, "tags is not a list"),
        ({"related_memories": "a.md"}, "relatedMemories is not a list"),
        ({"when_to_use": None, "title": " "}, "title"),
        ({"title": "long " * 5_000}, "the frontmatter has 25"),
    ],
)  # fmt: skip
def test_an_invalid_note_is_not_written(
    place: Place, changes: dict[str, object], what: str
) -> None:
    given: dict[str, object] = {"title": "Title", "content": "Text.", "when_to_use": "x", **changes}
    with pytest.raises(InvalidInput, match=what):
        place.mesh().notes.append(**given)  # type: ignore[arg-type]
    assert not list(place.folder.parent.rglob("*.md"))


@pytest.mark.parametrize(
    ("existing", "what"), [(b"x" * MAX_BYTES, "at most 1,000,000"), (b"\xff", "is not UTF-8")]
)
def test_a_file_that_could_not_be_read_again_is_not_written(
    place: Place, existing: bytes, what: str
) -> None:
    path = place.write("title.md", "")
    path.write_bytes(existing)
    with pytest.raises(InvalidInput, match=what):
        place.mesh().notes.append("Title", "Text.", when_to_use="x")
    assert path.read_bytes() == existing


@pytest.mark.req("NOTE-24")
def test_secrets_are_masked_before_the_file_is_written(place: Place) -> None:
    mail, key = "ana.lima@example.com", "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    hidden = "mail ana.<b>lima</b>@exam<i>ple</i>.com"
    done = place.mesh().notes.append(
        f"Ask {mail}", f"**Use** {key}, or {hidden}.", when_to_use=[mail], tags=[key],
        discovered_by=mail, discovered_in=key, source=mail, related_memories=[key],
        claim={"subject": mail, "predicate": "owns", "value": key},
    )  # fmt: skip
    text = (place.folder / done.file).read_text() + done.file
    assert text.count("[EMAIL]") >= 5
    assert [secret for secret in ("ana.", "lima", "ghp_", "exam<i>") if secret in text] == []
    plain = place.mesh().notes.append("Plain", "**Use** the *key* `x`.\n\n- one\n", when_to_use="x")
    assert "**Use** the *key* `x`.\n\n- one" in (place.folder / plain.file).read_text()


@pytest.mark.req("NOTE-19", "NOTE-52")
def test_what_an_extraction_found_is_saved_once_if_it_is_valid(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    notes = place.mesh().notes
    wrong = [
        Output(should_create_memory=False), Output(memory_title=None), Output(content=None),
        Output(content=" "), Output(frontmatter=None),
        Output(frontmatter={"whenToUse": "x", "importance": "urgent"}),
    ]  # fmt: skip
    assert [notes.save(output) for output in wrong] == [None] * len(wrong)
    assert not place.folder.exists()
    assert caplog.text.count("the extracted note is not kept") == len(wrong) - 1
    done = notes.save(Output())
    assert done is not None
    assert (done.file, done.created) == ("token-rules.md", True)
    assert (notes.load()[0].discovered_by, notes.load()[0].importance) == ("ann", "medium")
    again = [
        Output(),
        Output(content="tokens  End after an hour."),
        Output(memory_title="Other", content=Output().content),
    ]
    assert [notes.save(output) for output in again] == [None] * 3
    more = notes.save(Output(content="Tokens are signed."))
    assert more is not None
    assert (more.file, more.section, len(notes.load())) == ("token-rules.md", 1, 2)


def append_some(folder: str, name: str, count: int) -> None:
    mesh = MemoryMesh("memory://", notes_dir=folder, embedder="none", agent_id=name)
    for number in range(count):
        mesh.notes.append("Login rules", f"Rule {number} of {name}.", when_to_use="login")


@pytest.mark.deep
@pytest.mark.req("NOTE-21")
def test_processes_that_append_to_one_file_lose_nothing(place: Place) -> None:
    spawn, names = multiprocessing.get_context("spawn"), ("ann", "bob", "eve")
    processes = [
        spawn.Process(target=append_some, args=(str(place.folder), name, 20)) for name in names
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0, 0]
    found = [note.content for note in place.mesh().notes.load()]
    assert sorted(found) == sorted(
        f"Rule {number} of {name}." for name in names for number in range(20)
    )
    for name in names:
        assert [text for text in found if name in text] == [
            f"Rule {number} of {name}." for number in range(20)
        ]


# --- erasing ---


@pytest.mark.req("NOTE-02")
def test_erasing_takes_out_what_the_program_wrote_and_reports_what_people_wrote(
    place: Place,
) -> None:
    path = place.write("token-rules.md", "\ufeff" + made("Token rules").replace("\n", "\r\n"))
    theirs = path.read_bytes()
    mesh = place.mesh()
    for text in ("One hour.", "Two hours.", "Three hours."):
        mesh.notes.append("Token rules", text, when_to_use="token")
    whole = path.read_bytes()
    assert mesh.erase(place.rows()["token-rules.md#2"]).notes == (
        f"{place.folder}/token-rules.md#2",
    )
    assert b"Two hours" not in path.read_bytes()
    assert whole.startswith(path.read_bytes()[: len(theirs) + 20])
    assert [note.content for note in mesh.notes.load()][1:] == ["One hour.", "Three hours."]
    # Now a person wrote it.
    path.write_bytes(path.read_bytes().replace(b"Three hours", b"Four hours"))
    edited = place.mesh().erase(found_id(mesh, "Four hours"))
    assert (edited.notes, edited.notes_left) == ((), (f"{place.folder}/token-rules.md#2",))
    mesh.delete(found_id(mesh, "One hour"))
    left = theirs + SEPARATOR.encode() + mesh.notes.load()[1].text.encode()
    assert path.read_bytes() == left
    proof = mesh.erase(found_id(mesh, "fifteen minutes"))
    assert (len(proof.memories), proof.notes, path.read_bytes()) == (1, (), left)
    assert mesh.search("fifteen minutes") == []  # it does not come back
    again = mesh.erase(proof.memories[0], files=True)
    assert (again.memories, again.notes_left, len(again.notes)) == ((), (), 1)
    assert path.read_bytes() == b"\xef\xbb\xbf" + left.removeprefix(theirs + SEPARATOR.encode())
    assert mesh.erase(edited.memories[0], files=True).notes == (f"{place.folder}/token-rules.md#1",)
    assert not path.exists()


@pytest.mark.req("NOTE-02")
def test_erasing_reaches_notes_that_are_deprecated_or_not_valid_any_more(place: Place) -> None:
    mesh, end = place.mesh(), "2026-01-02"
    mesh.notes.append("Ours", "One hour.", when_to_use="token", valid_until=end)
    place.write("theirs.md", made("Theirs"))
    ours, theirs = found_id(mesh, "One hour"), found_id(mesh, "fifteen minutes")
    place.write("theirs.md", made("Theirs").replace("---\n\n", "deprecated: true\n---\n\n"))
    place.house.clock.advance(days=2)
    assert mesh.notes.sync().archived == 2
    assert mesh.erase(ours).notes == (f"{place.folder}/ours.md#0",)
    assert mesh.erase(theirs).notes_left == (f"{place.folder}/theirs.md#0",)
    assert [path.name for path in place.folder.glob("*.md")] == ["theirs.md"]
    assert mesh.erase(theirs, files=True).notes == (f"{place.folder}/theirs.md#0",)
    assert not [*place.folder.glob("*.md")]


@pytest.mark.parametrize("scope", [{"agent_id": "ann"}, {"user_id": "u"}])
def test_a_scope_takes_notes_that_people_wrote_out_of_their_files_only_with_files(
    place: Place, scope: dict[str, str]
) -> None:
    for files, left in ((False, ["theirs.md"]), (True, [])):
        mesh = place.mesh(user_id="u")
        place.write("theirs.md", made("Theirs").replace("fifteen", "forty" if files else "fifteen"))
        assert found_id(mesh, "minutes")
        proof = mesh.forget(**scope, files=files)
        assert len(proof.notes if files else proof.notes_left) == 1
        assert [path.name for path in place.folder.glob("*.md")] == left


@pytest.mark.req("NOTE-02")
@pytest.mark.parametrize("files", [False, True])
def test_a_note_that_stays_in_its_file_is_not_indexed_again_for_a_forgotten_user(
    place: Place, files: bool
) -> None:
    path = place.write("login.md", LOGIN)
    place.write("later.md", made("Later").replace("fifteen", "ninety"))
    for user_id in ("ana", "bob"):
        assert found_id(place.mesh(user_id=user_id), "fifteen minutes")
        assert titles(place.mesh(user_id=user_id).notes.match("add a login page"))
    ana = place.mesh(user_id="ana")
    ana.erase(found_id(ana, "ninety minutes"))  # its section stays in the file too
    proof = ana.forget(user_id="ana", files=files)
    names = (f"{place.folder}/later.md#0", f"{place.folder}/login.md#0")
    assert tuple(sorted(proof.notes if files else proof.notes_left)) == names
    assert (proof.notes_left if files else proof.notes) == ()
    assert path.exists() is not files

    def seen(user_id: str, **options: object) -> tuple[int, int]:
        mesh = place.mesh(user_id=user_id, **options)
        mesh.notes.sync()
        return len(mesh.search("minutes")), len(mesh.notes.match("add a login page"))

    assert [seen("ana"), seen("ana", project="shop")] == [(0, 0)] * 2
    assert seen("bob") == ((0, 0) if files else (2, 2))
    if not files:
        path.rename(path.with_name("moved.md"))
        place.write("new.md", made("New").replace("fifteen", "forty"))
        assert (seen("ana"), seen("bob")) == ((1, 1), (3, 3))
        assert len(ana.forget(user_id="ana").notes_left) == 3
        assert seen("ana") == (0, 0)
        place.write("new.md", made("New").replace("fifteen", "sixty"))
        assert seen("ana") == (1, 1)  # it was edited
        taken = ana.forget(user_id="ana", files=True).notes
        assert {place.rpartition("/")[2] for place in taken} == {
            "later.md#0", "moved.md#0", "new.md#0"
        }  # fmt: skip
        assert not [*place.folder.glob("*.md")]


@pytest.mark.req("NOTE-02")
def test_the_index_keeps_nothing_of_what_was_taken_out(place: Place) -> None:
    ann = place.mesh(user_id="ann")
    ann.notes.append("Secret project", "One hour.", when_to_use="token")
    ann.notes.append("Other", "Two hours.", when_to_use="token")
    place.write("login.md", LOGIN)

    def kept() -> str:
        return str([row.value("detail") for row in place.house.store.find(Kind.META)])

    id_ = found_id(ann, "One hour")
    assert all(word in kept() for word in ("secret-project", "login-rules"))
    ann.delete(id_)
    assert "secret-project" not in kept()
    ann.notes.sync()
    assert "secret-project" not in kept()
    forgotten = ann.forget(user_id="ann")
    assert (len(forgotten.notes), len(forgotten.notes_left)) == (1, 1)
    assert "login-rules" not in kept()
    assert [path.name for path in place.folder.glob("*.md")] == ["login.md"]


def found_id(mesh: MemoryMesh, query: str) -> str:
    return mesh.search(query)[0].id


@pytest.mark.req("NOTE-02")
def test_no_other_operation_removes_or_rewrites_a_note(place: Place) -> None:
    path = place.write("login.md", LOGIN)
    mesh = place.mesh()
    mesh.notes.append("Token rules", "One hour.", when_to_use="token")
    before = {one.name: one.read_bytes() for one in place.folder.glob("*.md")}
    id_ = place.rows()["login.md#0"]
    mesh.update(id_, content="Another text.")
    mesh.pin(id_)
    mesh.graph.dispute(id_)
    mesh.notes.feedback("login.md", 0, "harmful")
    mesh.notes.sync()
    mesh.heartbeat(force=True)
    mesh.graph.consolidate()
    place.house.clock.advance(days=4000)
    mesh.graph.decay(delete=True)
    assert {one.name: one.read_bytes() for one in place.folder.glob("*.md")} == before
    assert path.exists()
    proof = mesh.delete_all(agent_id="ann")
    assert {one.name for one in place.folder.glob("*.md")} == {"login.md"}  # the control
    assert (len(proof.notes), len(proof.notes_left)) == (1, 1)


# --- the index ---


@pytest.mark.req("NOTE-12", "NOTE-49")
def test_every_search_finds_a_note_as_its_file_is_now(place: Place) -> None:
    mesh = place.mesh()
    place.write("login.md", LOGIN + SEPARATOR + TREE)
    for found in (
        mesh.search("fifteen minutes"),
        mesh.graph.search("bob", "fifteen minutes"),
        mesh.lane.find("fifteen minutes"),
    ):
        assert found[0].content == "Login rules\n\nSessions end after fifteen minutes."
        note = mesh.get(found[0].id)
        assert note is not None
        assert (note.metadata["file"], note.metadata["section"], note.category) == (
            "login.md",
            0,
            "note",
        )
    (tree,) = [one for one in mesh.get_all() if one.metadata["section"] == 1]
    assert TREE.split("---\n\n")[1].strip() in tree.content
    assert tree.importance == 1.0
    login = mesh.search("fifteen minutes")[0].id
    place.write("login.md", LOGIN.replace("fifteen", "ninety"))
    assert mesh.search("ninety minutes")[0].id == login
    assert "fifteen" not in str(mesh.search("fifteen minutes"))
    assert place.rows("archived").keys() == {"login.md#1"}
    assert mesh.history(tree.id)[-1].why == "the note was removed from login.md"
    (place.folder / "login.md").unlink()
    assert mesh.search("ninety minutes") == []
    place.write("login.md", LOGIN.replace("fifteen", "ninety"))
    assert mesh.search("ninety minutes")[0].id == login  # with its past


def test_nothing_is_written_while_nothing_changes(place: Place) -> None:
    place.write("login.md", LOGIN)
    mesh = place.mesh()
    assert mesh.notes.sync().added == 1
    before = mesh.get_all()[0], len(place.house.blocks())
    for _ in range(2):
        assert place.mesh().notes.sync().unchanged == 1
        place.mesh().get_all()
    assert (mesh.get_all()[0], len(place.house.blocks())) == before
    os.utime(place.folder / "login.md", (0, 0))
    done = mesh.notes.sync()
    assert (done.unchanged, done.updated, done.added) == (1, 0, 0)


def test_without_the_setting_only_the_notes_themselves_read_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = Place(tmp_path / ".rawko" / "memories")
    place.write("login.md", LOGIN)
    mesh = place.house.mesh("ann", embedder="none")
    assert mesh.get_all() == []
    assert mesh.notes.sync().added == 1
    assert len(mesh.get_all()) == 1


@pytest.mark.req("NOTE-12", "NOTE-53")
@pytest.mark.parametrize(
    ("change", "moved"),
    [
        (lambda place: (place.folder / "login.md").rename(place.folder / "other.md"), "other.md#0"),
        (lambda place: place.write("login.md", made("Rules of login")), "login.md#0"),
        (lambda place: place.write("login.md", TREE + SEPARATOR + LOGIN), "login.md#1"),
        (
            lambda place: place.write("login.md", made("Login rules", importance="low")),
            "login.md#0",
        ),
    ],
)
def test_feedback_counts_for_the_rank_and_survives_edits_and_renames(
    place: Place, change: object, moved: str
) -> None:
    place.write("login.md", LOGIN)
    place.write("zebra.md", made("Zebra", importance="medium"))
    mesh = place.mesh()
    for _ in range(9):
        mesh.notes.feedback("zebra.md", 0, "helpful")
    mesh.notes.feedback("login.md", 0, "harmful")
    assert [(one.note.file, one.score, one.rank) for one in mesh.notes.match("login")] == [
        ("zebra.md", 25, round(25 * 1.1**9, 6)), ("login.md", 40, 20.0),
    ]  # fmt: skip
    before = place.rows()["login.md#0"]
    change(place)  # type: ignore[operator]
    assert mesh.notes.match("login")[-1].feedback == 0.5
    assert place.rows()[moved] == before
    assert "feedback" not in (place.folder / moved.partition("#")[0]).read_text()
    with pytest.raises(NotFound, match=r"'none\.md'"):
        mesh.notes.feedback("none.md", 0, "helpful")


@pytest.mark.req("NOTE-53")
def test_a_note_whose_memory_is_disputed_or_erased_is_not_injected_until_it_is_edited(
    place: Place,
) -> None:
    path = place.write("login.md", LOGIN)
    place.write("erased.md", made("Erased"))
    mesh = place.mesh()
    assert titles(mesh.notes.find_relevant("login")) == ["Login rules", "Erased"]
    rows, before = place.rows(), path.read_bytes()
    for _ in range(3):
        mesh.graph.dispute(rows["login.md#0"], reason="it is wrong")
    mesh.delete(rows["erased.md#0"])
    assert mesh.notes.find_relevant("login") == []
    assert mesh.search("fifteen minutes") == []
    assert path.read_bytes() == before
    path.rename(place.folder / "renamed.md")
    assert mesh.notes.find_relevant("login") == []  # it says the same
    place.write("renamed.md", made("Login rules") + "\nChecked again.\n")
    assert titles(mesh.notes.find_relevant("login")) == ["Login rules"]


def test_the_claim_of_a_note_is_judged_as_any_other(place: Place) -> None:
    mesh = place.mesh()
    known = {
        "claim": {"subject": "session", "predicate": "length", "value": "60"},
        "provenance": {"source": "user_explicit"},
    }
    mesh.graph.store("ann", "Sessions take 60 minutes.", category="fact", **known)  # type: ignore[arg-type]
    stated = "claim:\n  subject: session\n  predicate: length\n  value: 15\n---\n\nSessions"
    place.write("login.md", LOGIN.replace("---\n\nSessions", stated))
    place.write(
        "wrong.md",
        made("Wrong").replace("---\n\nSessions", "claim:\n  colour: red\n---\n\nSessions"),
    )
    place.write("other.md", made("Other"))
    done = mesh.notes.sync()
    assert [(fault.file, "unknown key 'colour'" in fault.what) for fault in done.faults] == [
        ("wrong.md", True)
    ]
    assert place.rows("quarantined").keys() == {"login.md#0"}
    assert titles(mesh.notes.find_relevant("login")) == ["Other"]


@pytest.mark.req("NOTE-54")
def test_no_note_ends_by_age_but_by_what_it_says(place: Place) -> None:
    place.write("login.md", made("Old", discoveredAt="2001-01-01"))
    place.write("until.md", LOGIN.replace("importance", "validUntil: 2026-02-01\nimportance"))
    place.write(
        "later.md", made("Later").replace("importance", "validFrom: 2026-02-01\nimportance")
    )
    place.write("gone.md", made("Gone").replace("importance", "deprecated: true\nimportance"))
    mesh = place.mesh()
    assert (titles(mesh.notes.match("login")), sorted(place.rows())) == (
        ["Login rules", "Old"],
        ["login.md#0", "until.md#0"],
    )
    place.house.clock.advance(days=4000)
    assert titles(mesh.notes.match("login")) == ["Later", "Old"]
    weak = mesh.add("A passing remark.", {"importance": 0.1}).id
    place.house.clock.advance(days=400)
    assert mesh.graph.decay().archived == (weak,)
    assert sorted(place.rows()) == ["later.md#0", "login.md#0"]


def test_an_unreadable_file_keeps_its_memories(place: Place) -> None:
    path = place.write("login.md", LOGIN)
    mesh = place.mesh()
    mesh.notes.sync()
    path.write_bytes(b"\xff\xfe" + LOGIN.encode())
    assert mesh.notes.sync().archived == 0
    path.write_text(made("Login rules", importance="urgent"))
    assert mesh.notes.sync().archived == 1


def test_users_and_projects_have_their_own_memories_of_a_folder(place: Place) -> None:
    place.write("login.md", LOGIN)
    mesh = place.mesh()
    for scope in ({}, {"user_id": "eve"}, {"project": "p"}):
        found = mesh.scoped(**scope).get_all()  # type: ignore[arg-type]
        assert {one.project for one in found} >= {scope.get("project")}
        assert {one.user_id for one in found} == {scope.get("user_id")}


def test_a_read_only_store_still_matches_and_a_missing_one_is_not_created(tmp_path: Path) -> None:
    place = Place(tmp_path / "notes")
    place.write("login.md", LOGIN)
    url = f"sqlite:///{tmp_path}/m.db"
    with MemoryMesh(url, notes_dir=str(place.folder), embedder="none") as missing:
        assert titles(missing.notes.load()) == ["Login rules"]
        assert titles(missing.notes.find_relevant("login")) == ["Login rules"]
        assert not (tmp_path / "m.db").exists()
        missing.add("something")
    with MemoryMesh(f"{url}?mode=ro", notes_dir=str(place.folder), embedder="none") as mesh:
        assert titles(mesh.notes.find_relevant("login")) == ["Login rules"]
        assert [one.content for one in mesh.get_all()] == ["something"]


def test_a_store_that_cannot_be_written_is_still_read(
    place: Place, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    mesh = place.mesh()
    mesh.add("something")

    def full(*args: object, **more: object) -> None:
        raise StoreFull("the disk is full")

    place.write("login.md", LOGIN)
    with monkeypatch.context() as patched:
        patched.setattr(place.house.store, "apply", full)
        assert [one.content for one in mesh.get_all()] == ["something"]
        assert titles(mesh.notes.find_relevant("login")) == ["Login rules"]
        assert "the notes are not indexed: the disk is full" in caplog.text
    assert len(mesh.get_all()) == 2


def test_the_notes_of_an_asynchronous_mesh(place: Place) -> None:
    async def run() -> list[Note]:
        async with AsyncMemoryMesh(
            "memory://", notes_dir=str(place.folder), embedder="none"
        ) as mesh:
            await mesh.notes.append("Login rules", "Sessions end.", when_to_use="login")
            return await mesh.notes.find_relevant("login")

    assert titles(asyncio.run(run())) == ["Login rules"]
