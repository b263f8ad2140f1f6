"""What a write reports about masked values, kinds that are switched off, and masks that must not
match each other in search."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import SettingsError
from memory_mesh.core.language.redaction import KINDS
from memory_mesh.core.search import tokens
from memory_mesh.testing import ScriptedChat

TEXT = "Ann: ann@example.org or bob@example.org, tel +44 20 7946 0958"


def mesh_in(folder: Path, **options: object) -> MemoryMesh:
    return MemoryMesh(
        **{"embedder": "hash", "store": f"sqlite:///{folder / 'memory.db'}", **options}
    )


@pytest.mark.req("MESH-128")
def test_add_reports_kinds_and_counts_and_never_a_value(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        record = mesh.add(
            TEXT, {"tags": ["host 203.0.113.42"], "card": 4111111111111111, "note": "[EMAIL]"}
        )
        assert record.redactions == {"card": 1, "email": 2, "ip": 1, "phone": 1}
        assert "ann@" not in json.dumps(asdict(record))
        assert mesh.add("nothing to mask").redactions == {}
        stored = mesh.get(record.id)
        assert stored == record, "what a write reports is not part of the memory"
        assert stored.redactions == {}


def test_each_memory_of_a_batch_reports_its_own_masks_also_when_it_is_known(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        items = [
            ("mail ann@example.org", None),
            ("plain words", None),
            ("mail bob@example.org", None),
        ]
        reported = [record.redactions for record in mesh.add_many(items)]
        assert reported == [{"email": 1}, {}, {"email": 1}]
        assert [record.times_observed for record in mesh.add_many(items)] == [3, 2, 4], (
            "both addresses became the same text"
        )


def test_update_and_extract_report_what_they_masked(tmp_path: Path) -> None:
    answer = (
        '{"memories": [{"text": "Ann has a new address", "category": "fact", "importance": 0.9}]}'
    )
    with mesh_in(tmp_path, chat=ScriptedChat(answer)) as mesh:
        record = mesh.add("Ann moved")
        updated = mesh.update(record.id, content=TEXT, metadata={"phone": "467 3395"})
        assert updated.redactions == {"email": 2, "phone": 2}
        extraction = mesh.extract(TEXT)
        assert extraction.redactions == {"email": 2, "phone": 1}
        assert extraction.memories
    with mesh_in(tmp_path, enable_llm=False) as mesh:
        assert mesh.extract(TEXT + " again").redactions == {"email": 2, "phone": 1}


def test_a_kind_switched_off_is_stored_and_the_others_are_masked(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        assert "203.0.113.42" not in mesh.add("ann@example.org pinged 203.0.113.42").content, (
            "by default all kinds are masked"
        )
    with mesh_in(tmp_path, redaction_kinds={"ip": False, "phone": True}) as mesh:
        record = mesh.add("ann@example.org pinged 203.0.113.42 and called +44 20 7946 0958")
        assert record.content == "[EMAIL] pinged 203.0.113.42 and called [PHONE]"
        assert record.redactions == {"email": 1, "phone": 1}


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        ({"emial": False}, "did you mean 'email'"),
        ({"ip": "no"}, "true or false"),
        ({"zzz": False}, "one of api_key, "),
    ],
)
def test_an_unknown_kind_is_an_error_that_names_the_nearest(
    tmp_path: Path, kinds: dict[str, object], expected: str
) -> None:
    with pytest.raises(SettingsError, match="redaction_kinds") as failure:
        mesh_in(tmp_path, redaction_kinds=kinds)
    assert expected in str(failure.value)
    assert not (tmp_path / "memory.db").exists()


def test_the_file_of_a_project_cannot_switch_a_kind_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("memory-mesh.toml").write_text("[redaction_kinds]\nemail = false\n")
    with pytest.raises(SettingsError, match="redaction_kinds"):
        mesh_in(tmp_path)


# --- masks in texts and queries ---


def test_a_masked_query_finds_no_memory_by_its_mask(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        for name in ("Ann", "Bob", "Cleo"):
            mesh.add(f"{name} wrote from {name.lower()}@example.org")
        assert mesh.search("who wrote something")
        assert mesh.search("zoe@example.com", min_score=0.0) == []
        assert mesh.search("[EMAIL]", min_score=0.0) == []
        named = mesh.explain("Cleo zoe@example.com", min_score=0.0)
        assert named.tokens == ["cleo"]
        assert named.answers[0].result.content.startswith("Cleo")


def test_a_mask_in_a_query_does_not_move_its_vector(tmp_path: Path) -> None:
    with mesh_in(tmp_path) as mesh:
        mesh.add("The address of the office is ann@example.org")
        mesh.add("The office is closed on Mondays")
        plain, masked = (
            {hit.content: hit.similarity for hit in mesh.search(query, min_score=0.0)}
            for query in ("when is the office closed", "when is the office closed bob@example.com")
        )
        assert plain == masked


def test_a_pseudonym_stays_a_word_so_that_the_same_person_is_found(tmp_path: Path) -> None:
    with mesh_in(tmp_path, redaction="pseudonym") as mesh:
        mesh.add("zoe@example.com likes tea")
        mesh.add("ann@example.org likes coffee")
        assert [
            hit.content.split("] ")[1] for hit in mesh.search("ann@example.org", min_score=0.0)
        ] == ["likes coffee"]


def test_masks_are_no_keywords_and_words_beside_them_are() -> None:
    assert tokens("mail [EMAIL] to Ann's phone [PHONE]") == ["mail", "ann", "phone"]
    assert tokens("mail [EMAIL:0a1b2c3d]") == ["mail", "0a1b2c3d"]
    assert tokens("[REDACTED] list[int] [TODO]") == ["list", "int", "todo"]
    assert all(tokens(f"[{kind.upper()}]") == [] for kind in KINDS)
