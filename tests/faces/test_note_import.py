"""Importing what people keep for coding agents: CLAUDE.md, AGENTS.md, the rules of Cursor and
skills, which are only read."""

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memory_mesh import InvalidInput, MemoryMesh
from memory_mesh.core.notes import Fault
from memory_mesh.core.notes.files import MAX_BYTES, Instruction, read_instructions
from memory_mesh.models import HashingEmbedder
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import FakeClock
from stores.files import snapshot

from .house import House

CLAUDE = """Use pnpm, never npm.

# Backend
## Errors
Return problem details.
```sh
# this is not a heading
```
## Database
Migrations are in db/migrate.
"""
RULE = """---
description: RPC: rules of the services
globs: *.{ts,tsx}, src/**
alwaysApply: true
---
Define every schema with Zod.
"""
LONG = f"description: a{' ' * 500_000}b: c"  # a pattern that tries every end would take hours
SKILL = "---\nname: deploy\ndescription: Deploy the site.\n---\nRun the deploy script.\n"


@dataclass
class Project:
    """A folder of a project, which is the working folder, and a mesh on a store in memory."""

    folder: Path
    house: House = field(default_factory=lambda: House(open_store("memory://"), clock=FakeClock()))

    def mesh(self, **options: object) -> MemoryMesh:
        return self.house.mesh("ann", **{"embedder": HashingEmbedder(), **options})

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def rows(self, status: str = "active") -> dict[str, str]:
        """The contents of the imported memories, by file and title."""
        found = [memory for memory in self.house.memories() if memory.status == status]
        return {f"{one.metadata['file']}#{one.metadata['title']}": one.content for one in found}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    return Project(tmp_path / "project")


@pytest.mark.req("NOTE-12")
def test_every_section_is_found_with_its_file_and_the_files_stay_as_they_are(
    project: Project,
) -> None:
    project.write("CLAUDE.md", CLAUDE)
    project.write(".cursor/rules/api/rpc.mdc", RULE)
    project.write(".claude/skills/deploy/SKILL.md", SKILL)
    project.write("README.md", "# Not for agents\nText.\n")
    (project.folder / "AGENTS.md").symlink_to("CLAUDE.md")
    before, mesh = snapshot(project.folder), project.mesh()
    done = mesh.notes.import_files()
    assert (done.files, done.sections.added) == ((".cursor/rules/api/rpc.mdc", "CLAUDE.md"), 4)
    same = Fault("AGENTS.md", 1, "it has the same text as CLAUDE.md, and is left out", warning=True)
    assert done.sections.faults == (same,)
    assert project.rows() == {
        "CLAUDE.md#CLAUDE.md": "CLAUDE.md\n\nUse pnpm, never npm.",
        "CLAUDE.md#Backend › Errors": (
            "Backend › Errors\n\nReturn problem details.\n```sh\n# this is not a heading\n```"
        ),
        "CLAUDE.md#Backend › Database": "Backend › Database\n\nMigrations are in db/migrate.",
        ".cursor/rules/api/rpc.mdc#RPC: rules of the services": (
            "RPC: rules of the services\n\nDefine every schema with Zod."
        ),
    }
    found = mesh.search("zod schema")[0].metadata
    assert (found["file"], found["globs"], found["always_apply"]) == (
        ".cursor/rules/api/rpc.mdc",
        ["*.{ts,tsx}", "src/**"],
        True,
    )
    assert mesh.graph.search("ann", "problem details")[0].metadata["file"] == "CLAUDE.md"
    assert [skill.name for skill in mesh.list_skills()] == ["deploy"]
    assert mesh.notes.load() == []  # they have no patterns: they are not notes of the folder
    assert snapshot(project.folder) == before


@pytest.mark.req("NOTE-12")
def test_a_second_run_takes_over_edits_renames_and_removals(project: Project) -> None:
    path = project.write("CLAUDE.md", CLAUDE)
    rule = project.write("web/.cursor/rules/rpc.mdc", RULE)
    mesh = project.mesh()
    assert mesh.notes.import_files().sections.added == 3
    assert mesh.notes.import_files(["web"]).sections.added == 1
    assert mesh.notes.import_files().sections.unchanged == 4
    path.write_text(CLAUDE.replace("pnpm", "yarn").partition("## Database")[0])
    done = mesh.notes.import_files().sections
    assert (done.updated, done.archived, done.unchanged, done.files) == (1, 1, 2, ("CLAUDE.md",))
    (gone,) = [one for one in project.house.memories() if one.status == "archived"]
    assert mesh.history(gone.id)[-1].why == "the note was removed from CLAUDE.md"
    assert mesh.search("migrations migrate") == []
    path.rename(project.folder / "AGENTS.md")
    done = mesh.notes.import_files().sections
    # A text without a heading is named by its file.
    assert (done.moved, done.updated, done.added, done.archived) == (1, 0, 1, 1)
    rule.unlink()
    # It is known, so that its end is no error.
    assert mesh.notes.import_files(["web/.cursor/rules"]).sections.archived == 1
    assert {*project.rows()} == {"AGENTS.md#AGENTS.md", "AGENTS.md#Backend › Errors"}


@pytest.mark.req("NOTE-10")
def test_what_is_outside_or_cannot_be_read_is_reported_and_skipped(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = project.write("../outside/CLAUDE.md", "# Secret\nNot for you.\n").parent
    (outside / "skills" / "x").mkdir(parents=True)
    (outside / "skills" / "x" / "SKILL.md").write_text(SKILL)
    for name in ("CLAUDE.md", "skills"):
        (project.folder / name).symlink_to(outside / name)
    project.write(".cursor/rules/large.mdc", "x" * (MAX_BYTES + 1))
    project.write(".cursor/rules/latin.mdc", "").write_bytes(b"caf\xe9")
    project.write(".cursor/rules/list.mdc", RULE.replace("RPC: rules of the services", "[a]"))
    project.write(".cursor/rules/open.mdc", "---\nglobs: a\n")
    project.write(".cursor/rules/rpc.mdc", RULE)
    mesh = project.mesh()
    done = mesh.notes.import_files()
    assert {
        (fault.file, fault.line): fault.what.partition(";")[0] for fault in done.sections.faults
    } == {
        ("CLAUDE.md", 0): "it leads out of the folder",
        ("skills", 0): "it leads out of the folder",
        (".cursor/rules/large.mdc", 0): f"it has {MAX_BYTES + 1:,} bytes",
        (".cursor/rules/latin.mdc", 0): "the file is not UTF-8 text (byte 4)",
        (".cursor/rules/list.mdc", 1): "description is a list",
        (".cursor/rules/open.mdc", 1): "the frontmatter has no end",
    }
    assert (done.files, done.skills, len(project.rows())) == ((".cursor/rules/rpc.mdc",), (), 1)
    for path in ("../outside/CLAUDE.md", str(outside), "a\0b", "nothing.md", "nothing", "/"):
        with pytest.raises(InvalidInput, match=r"outside the project|nothing to import|a path"):
            mesh.notes.import_files([path])
    with pytest.raises(InvalidInput, match="a list of paths"):
        mesh.notes.import_files("CLAUDE.md")

    real = os.stat

    def closed(path: object, *args: object, **more: object) -> os.stat_result:
        if ".cursor" in str(path):
            raise PermissionError(13, "Permission denied")
        return real(path, *args, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", closed)
    done = mesh.notes.import_files()
    assert Fault(".cursor/rules", 0, "it cannot be read: Permission denied") in done.sections.faults
    assert (done.sections.archived, len(project.rows())) == (0, 1)  # it is still there


def test_an_erased_section_stays_in_its_file_and_is_imported_again_when_it_is_edited(
    project: Project,
) -> None:
    path = project.write("CLAUDE.md", CLAUDE)
    mesh = project.mesh(notes_dir=".")  # the same folder
    mesh.notes.import_files()
    (found,) = [one for one in project.house.memories() if "pnpm" in one.content]
    proof = mesh.erase(found.id, files=True)
    assert (proof.notes, proof.notes_left) == ((), (f"{project.folder}/./CLAUDE.md#0",))
    assert path.read_text() == CLAUDE
    assert mesh.notes.import_files().sections.added == 0
    path.write_text(CLAUDE.replace("never", "not"))
    assert mesh.notes.import_files().sections.updated == 1


@pytest.mark.parametrize(
    ("text", "rule", "titles"),
    [
        ("", {}, []),
        ("# Only\n\n## headings\n", {}, []),
        ("\ufeff# A\r\ntext\r\n", {}, ["A"]),
        ("# A #\ntext\n# A\nmore", {}, ["A", "A"]),
        ("---\nglobs: [a, b]\n---\ntext", {"globs": ["a", "b"]}, ["x.mdc"]),
        ("---\nglobs:\n  - *.py\n  - '*.pyi'\n---\n# T\ntext", {"globs": ["*.py", "*.pyi"]}, ["T"]),
        ("---\ndescription:\nglobs:\nalwaysApply: false\n---\ntext", {}, ["x.mdc"]),
        (
            "---\ndescription: It's API: 1\n---\n# T\ntext",
            {"description": "It's API: 1"},
            ["It's API: 1 › T"],
        ),
    ],
)
def test_the_frontmatter_of_a_rule_is_read_as_cursor_writes_it(
    text: str, rule: dict[str, object], titles: list[str]
) -> None:
    found = [
        one for one in read_instructions("d/x.mdc", text.encode()) if isinstance(one, Instruction)
    ]
    assert [one.title for one in found] == titles
    assert all(one.other == rule for one in found)


def test_each_section_knows_its_line() -> None:
    text = "---\nglobs: a\n---\n\n\n# One\ntext\n# Two\n\n## Three\ntext\n"
    found = [
        one for one in read_instructions("x.mdc", text.encode()) if isinstance(one, Instruction)
    ]
    assert [(one.title, one.section, one.line) for one in found] == [
        ("One", 0, 6),
        ("Two › Three", 1, 10),
    ]


@pytest.mark.parametrize(
    "text",
    ["globs: {a: b}", "alwaysApply: perhaps", "globs: [a", "description: {a: b}", "- x", LONG],
)
def test_a_rule_with_a_wrong_frontmatter_is_a_fault(text: str) -> None:
    (fault,) = read_instructions("x.mdc", f"---\n{text}\n---\nText.\n".encode())
    assert isinstance(fault, Fault)
    assert (fault.line, fault.warning) == (1, False)
