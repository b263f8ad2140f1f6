"""The commands of skills, as RFC-0011 spells them."""

import json
import re
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh

from .conftest import SKILL, Cli, learnt

TEA = "---\nname: tea\ndescription: Make green tea. Use it for guests.\n---\n# Tea\n"
NOT_FOUND, INVALID = 4, 2


@pytest.fixture
def skill_id(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "none")
    Path("deploy.yamo").write_text(SKILL)
    return cli("ingest-skill", "--file", "deploy.yamo").out.split()[3].rstrip(":")


@pytest.mark.req("MESH-155")
def test_a_file_is_ingested_with_a_type_and_again_as_a_new_revision(
    cli: Cli, skill_id: str
) -> None:
    assert re.fullmatch(r"skill_\d{13}_[0-9a-f]{6}", skill_id)
    Path("deploy.yamo").write_text(SKILL + "call;ana@example.org;\n")
    said = cli("ingest-skill", "--file", "deploy.yamo")
    assert said.out == (
        f"[MemoryMesh] Ingested skill {skill_id}: deploy, revision 2\n"
        "[MemoryMesh] Masked: 1 email\n"
    )
    Path("tea").mkdir()
    Path("tea/SKILL.md").write_text(TEA)
    own = json.loads(
        cli("ingest-skill", "--file", "tea", "--type", "agent", "--agent", "bob", "--json").out
    )
    assert (own["name"], own["memory_type"]) == ("tea", "agent")
    assert own["metadata"]["source"] == str(Path("tea/SKILL.md").resolve())
    assert len(json.loads(cli("list-skills", "--json").out)["results"]) == 1
    assert len(json.loads(cli("list-skills", "--json", "--agent", "bob").out)["results"]) == 2


@pytest.mark.req("MESH-155")
def test_skills_are_searched_and_listed_up_to_a_limit(cli: Cli, skill_id: str) -> None:
    for n in range(6):
        assert (
            cli("ingest-skill", f"name;deploy {n};\nintent;Deploy part {n} of the site.;").code == 0
        )
    said = cli("search-skills", "deploy", "production", "--limit", "1")
    assert said.out.splitlines() == [
        "[MemoryMesh] Found 1 skill.",
        "",
        f"--- SKILL 1: {skill_id} [SCORE: 0.35] ---",
        "deploy: Deploy the site to production.",
        "Reliability: 0.50 | Used: 0 | Keywords: 0.50 (name 0.50, intent 1.00) | Vector: none",
    ]
    assert json.loads(cli("search-skills", "deploy", "--json").out)["count"] == 5
    assert cli("search-skills", "coffee").out == "[MemoryMesh] Found 0 skills.\n"
    assert len(cli("list-skills").out.splitlines()) == 8
    assert cli("list-skills", "--limit", "2").out.splitlines()[0] == "[MemoryMesh] 2 skills."
    last = cli("list-skills").out.splitlines()[-1]
    assert last.split() == [
        skill_id,
        "0.50",
        "0",
        "deploy",
        "Deploy",
        "the",
        "site",
        "to",
        "production.",
    ]
    assert "deploy" in cli("list-skills", terminal=True).out


@pytest.mark.req("MESH-156")
def test_feedback_is_true_or_false_and_nothing_else(cli: Cli, skill_id: str) -> None:
    said = cli("skill-feedback", "--id", skill_id, "--success", "true")
    assert said.out == f"[MemoryMesh] Skill {skill_id}: reliability 0.50 → 0.60, used 1 time\n"
    assert (
        json.loads(cli("skill-feedback", "--id", skill_id, "--success", "false", "--json").out)[
            "reliability"
        ]
        == 0.4
    )
    for wrong in ("True", "yes", "1", ""):
        said = cli("skill-feedback", "--id", skill_id, "--success", wrong)
        assert (said.code, said.out) == (INVALID, "")
        assert said.err.startswith("[MemoryMesh Error] ")
    assert cli("skill-feedback", "--id", skill_id).code == INVALID
    assert cli("skill-feedback", "--id", "skill_1", "--success", "true").code == NOT_FOUND
    assert json.loads(cli("list-skills", "--json").out)["results"][0]["use_count"] == 2


@pytest.mark.req("MESH-157")
def test_pruning_takes_a_threshold_from_0_to_1_and_0_3_without_one(cli: Cli, skill_id: str) -> None:
    low = json.loads(
        cli(
            "ingest-skill", "name;b;\nintent;B.;", "--metadata", '{"reliability": 0.29}', "--json"
        ).out
    )["id"]
    at = json.loads(
        cli(
            "ingest-skill", "name;c;\nintent;C.;", "--metadata", '{"reliability": 0.3}', "--json"
        ).out
    )["id"]
    for wrong in ("1.1", "-0.1", "half", "nan"):
        assert cli("skill-prune", "--threshold", wrong).code == INVALID
    assert cli("skill-prune").out == f"[MemoryMesh] Archived 1 skill, 2 left\n{low}\n"
    with MemoryMesh() as mesh:
        assert mesh.prune_skills().ids == (), "the same default in Python"
    assert (
        cli("skill-prune", "--threshold", "0.31").out
        == f"[MemoryMesh] Archived 1 skill, 1 left\n{at}\n"
    )
    assert (
        cli("skill-prune", "--threshold", "0.0").out == "[MemoryMesh] Archived 0 skills, 1 left\n"
    )
    assert (
        cli("skill-prune", "--threshold", "1.0").out
        == f"[MemoryMesh] Archived 1 skill, 0 left\n{skill_id}\n"
    )


@pytest.mark.req("MESH-162")
def test_stats_get_history_and_delete_know_skills(cli: Cli, skill_id: str) -> None:
    assert "[MemoryMesh] Total Skills: 1\n" in cli("stats").out
    assert SKILL.strip() in cli("get", "--id", skill_id).out
    assert "add by" in cli("history", skill_id).out
    assert cli("delete", "--id", skill_id).out == f"[MemoryMesh] Deleted record {skill_id}\n"
    assert "[MemoryMesh] Total Skills: 0\n" in cli("stats").out


def test_a_file_that_is_no_skill_is_one_line_and_stores_nothing(cli: Cli, skill_id: str) -> None:
    Path("notes.md").write_text("# Notes\n")
    for path in ("notes.md", "missing.yamo", "."):
        said = cli("ingest-skill", "--file", path)
        assert (said.code, len(said.err.splitlines())) == (INVALID, 1)
    assert "--file" in cli("ingest-skill", SKILL, "--file", "deploy.yamo").err
    hint = "a file is read by `memory-mesh ingest-skill --file FILE`"
    assert hint in cli("ingest-skill", "deploy.yamo").err
    assert hint not in cli("ingest-skill", "name;deploy;").err
    assert hint not in cli("ingest-skill", "--file", "notes.md").err
    assert json.loads(cli("list-skills", "--json").out)["count"] == 1


def test_the_help_says_that_a_file_replaces_the_text(cli: Cli) -> None:
    shown = " ".join(cli("ingest-skill", "--help").out.split())
    assert "[TEXT]" in shown
    assert "required without --file" in shown
    control = cli("extract", "--help").out.partition("\n\n")[0]
    assert (control.split()[-1], "required without" in control) == ("TEXT", False)


def test_the_folders_of_the_settings_are_read_and_faults_are_named(
    cli: Cli, skill_id: str, monkeypatch
) -> None:
    assert cli("sync-skills").out == "[MemoryMesh] No folders are set in skill_directories\n"
    learnt(cli)
    monkeypatch.setenv("MEMORY_MESH_SKILL_DIRECTORIES", "skills")
    assert "pdf-forms" in cli("list-skills").out
    Path("skills/bad.yamo").write_text("nothing")
    Path("skills/pdf/SKILL.md").unlink()
    said = cli("sync-skills")
    root = Path("skills").resolve()
    assert said.code == 1
    assert (
        said.out.splitlines()[0]
        == f"[MemoryMesh] Read {root}: 0 added, 0 updated, 1 unchanged, 1 failed, 1 gone"
    )
    assert said.out.splitlines()[1].startswith(
        f"Gone: {root}/pdf/SKILL.md; its skill stays until `memory-mesh forget skill_"
    )
    assert f"{root}/bad.yamo: the skill has no intent" in said.err
