"""Layer 0: every text is cleaned and redacted before it reaches a store."""

import inspect
import json
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory_mesh import MemoryMesh
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.core.errors import InvalidInput, SettingsError
from memory_mesh.core.intake import gate
from memory_mesh.flows.mirror.folders import read_all

SECRETS = {
    "email": "bob.weaver@example.org",
    "phone": "+1 604 696 5272",
    "card": "4539 9889 1572 0591",
    "iban": "GB29NWBK60161331926819",
    "ip": "48.90.248.226",
    "key": "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8",
    "password": "password: hunter2-and-more",
}
SECRET_WORDS = {**SECRETS, "password": "hunter2-and-more"}


def meshes(tmp_path: Path, **options: object) -> MemoryMesh:
    return MemoryMesh(embedder="hash", store=f"sqlite:///{tmp_path / 'memory.db'}", **options)


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.glob("memory.db*")))


def found_in_files(folder: Path) -> set[str]:
    data = bytes_of(folder)
    return {name for name, secret in SECRET_WORDS.items() if secret.encode() in data}


DETAILS = "My details are: " + ", ".join(f"{name} {secret}" for name, secret in SECRETS.items())
NOTES = {
    "hypothesis": DETAILS,
    "tags": [f"tag {SECRETS['email']}", SECRETS["key"]],
    "deep": {"er": [DETAILS, {"card": SECRETS["card"]}]},
    f"key {SECRETS['email']}": "value",
    "password": "hunter2-and-more",
    "speaker": SECRETS["email"],
    "error_pattern": DETAILS,
    "status": DETAILS,
}


def tell_of_secrets() -> None:
    with MemoryMesh("told.db", writethrough=["log"]) as mesh:
        mesh.add(DETAILS, dict(NOTES))
        mesh.retry_hooks()
    assert "**store**" in next(Path("log").glob("*.md")).read_text()


def folder_of_secrets() -> Path:
    """A folder whose name, file and file's name hold secrets."""
    folder = Path(f"mail of {SECRETS['email']}")
    folder.mkdir()
    (folder / f"{SECRETS['card']} {SECRETS['iban']}.md").write_text(DETAILS)
    return folder


LESSON_TEXTS = (
    "situation",
    "error_pattern",
    "oversight",
    "fix",
    "preventative_rule",
    "applicable_scope",
    "inverse_lesson",
)
FAILED = {**dict.fromkeys(LESSON_TEXTS, DETAILS), "status": "error", "severity": "high"}


def lesson_of_secrets() -> dict[str, object]:
    return {**dict.fromkeys(LESSON_TEXTS, DETAILS), "severity": "high"}


LINE = {
    "id": "mem_1", "content": DETAILS + " imported", "metadata": NOTES, "created_at": "2026-01-01",
    "updated_at": "2026-01-01", "tags": [SECRETS["email"]], "speaker": SECRETS["email"],
    "category": DETAILS, "heritage_chain": {"of": DETAILS}, "revision": 2,
    "history": [{"revision": 2, "at": "2026-01-01", "action": "update", "why": DETAILS,
                 "before": {"content": DETAILS}}],
}  # fmt: skip


SKILL = (
    f"name;{SECRETS['email']} {SECRETS['key']};\nintent;{DETAILS};\ndescription;{DETAILS};\n"
    f"tags;{SECRETS['card']};\n{DETAILS}\n"
)


def skills_of_secrets(mesh: MemoryMesh) -> object:
    """Read a folder of skills whose name, files and files' names hold secrets."""
    folder = folder_of_secrets()
    (folder / f"{SECRETS['card']} {SECRETS['iban']}.yamo").write_text(SKILL)
    context = mesh._context()
    return read_all(context.with_options(skill_directories=str(folder)))


def export_of_mem0() -> Path:
    """A file of another program that holds secrets."""
    file = Path("mem0.json")
    file.write_text(
        json.dumps({"results": [{"id": "one", "memory": DETAILS, "metadata": {"x": DETAILS}}]})
    )
    return file


def restored(mesh: MemoryMesh) -> None:
    """Copy what was stored to another store."""
    mesh.add(DETAILS)
    mesh.backup("copy.db")
    with MemoryMesh("memory.db2.db", embedder="hash") as other:
        other.restore("copy.db")


# Every method of the face that writes, called with secrets wherever it takes a text.
WRITES: dict[str, Callable[[MemoryMesh, str], object]] = {
    "add": lambda mesh, _: mesh.add(DETAILS, dict(NOTES), idempotency_key=DETAILS),
    "ingest": lambda mesh, _: mesh.ingest(DETAILS + " again", dict(NOTES), key=DETAILS[:400]),
    "add_many": lambda mesh, _: mesh.add_many(
        [
            (DETAILS + " once", dict(NOTES)),
            (DETAILS + " more", None),
            (DETAILS + " more", {"x": DETAILS}),
        ]
    ),
    "ingest_dir": lambda mesh, _: mesh.ingest_dir(folder_of_secrets(), type=SECRETS["email"]),
    "extract": lambda mesh, _: mesh.extract(
        DETAILS + " in short", metadata=dict(NOTES), idempotency_key=DETAILS + "x"
    ),
    "distill_lesson": lambda mesh, _: mesh.distill_lesson(
        lesson_of_secrets(), idempotency_key=DETAILS + "l"
    ),
    "ingest_skill": lambda mesh, _: mesh.ingest_skill(
        SKILL, dict(NOTES), f"{SECRETS['email']}.yamo", idempotency_key=DETAILS
    ),
    "sync_skills": lambda mesh, _: skills_of_secrets(mesh),
    "search_skills": lambda mesh, _: (mesh.ingest_skill(SKILL), mesh.search_skills(DETAILS)),
    "update_skill_reliability": lambda mesh, _: mesh.update_skill_reliability(
        mesh.ingest_skill(SKILL).id, success=True, idempotency_key=DETAILS
    ),
    "prune_skills": lambda mesh, _: (
        mesh.ingest_skill(SKILL, {"reliability": 0.1}),
        mesh.prune_skills(),
    ),
    "lesson_to_skill": lambda mesh, _: mesh.lesson_to_skill(
        mesh.distill_lesson(lesson_of_secrets()).lesson_id
    ),
    "query_lessons": lambda mesh, _: mesh.query_lessons(DETAILS),
    "distill": lambda mesh, _: (mesh.add(DETAILS + " failed", FAILED), mesh.distill()),
    "reflect": lambda mesh, _: (
        mesh.add(DETAILS),
        mesh.reflect(DETAILS, idempotency_key=DETAILS + "r"),
    ),
    "synthesize": lambda mesh, _: (
        mesh.add(DETAILS),
        mesh.synthesize(DETAILS, idempotency_key=DETAILS + "s"),
    ),
    "insert_heritage": lambda mesh, id_: mesh.insert_heritage(
        id_, {"intent_chain": [DETAILS], "hypotheses": [DETAILS], "rationales": [DETAILS]}
    ),
    "end_session": lambda mesh, _: (
        mesh.add(DETAILS, {"type": "session", "session_id": "s1"}),
        mesh.end_session("s1"),
    ),
    "heartbeat": lambda mesh, _: (
        mesh.add(DETAILS + " failed", FAILED),
        mesh.heartbeat(force=True),
    ),
    "retry_hooks": lambda mesh, _: tell_of_secrets(),
    "update": lambda mesh, id_: mesh.update(
        id_, content=DETAILS, metadata=dict(NOTES), why=DETAILS, idempotency_key=DETAILS + "u"
    ),
    "pin": lambda mesh, id_: mesh.pin(id_),
    "erase": lambda mesh, id_: mesh.erase(id_),
    "delete": lambda mesh, id_: mesh.delete(id_),
    "delete_all": lambda mesh, _: mesh.delete_all(project="none"),
    "import_memories": lambda mesh, _: mesh.import_memories(
        [next(mesh.export()), json.dumps(LINE)]
    ),
    "import_file": lambda mesh, _: mesh.import_file(export_of_mem0()),
    "restore": lambda mesh, _: restored(mesh),
    "forget": lambda mesh, _: mesh.forget(user_id="ana", verify=True),
    "backup": lambda mesh, _: mesh.backup("copy.db"),
    "compact": lambda mesh, _: mesh.compact(),
    "changes": lambda mesh, _: mesh.changes(DETAILS),
    "confirm_change": lambda mesh, id_: mesh.confirm_change(mesh.add(DETAILS).id, id_),
    "undo_change": lambda mesh, id_: mesh.undo_change(mesh.add(DETAILS).id, id_),
    "search": lambda mesh, _: mesh.search(DETAILS),
    "reembed": lambda mesh, _: mesh.reembed(),
    "audit_anchor": lambda mesh, _: mesh.audit_anchor("anchors"),
    "audit_rekey": lambda mesh, _: mesh.audit_rekey(),
    "audit_log": lambda mesh, _: mesh.audit_log(auditor=DETAILS[:200]),
    "audit_export": lambda mesh, _: [*mesh.audit_export(auditor=DETAILS[:200])],
}
READS = {
    "init", "close", "scoped", "get", "get_all", "history", "sightings", "explain", "stats",
    "users", "verify", "format_results", "clear_cache",
    "get_cache_stats", "check_models", "format_for_model", "get_memories_by_pattern",
    "heartbeat_log", "hooks_status",
    "audit_heads", "export", "export_store", "get_skill", "list_skills", "evaluate",
}  # fmt: skip


@pytest.mark.req("MESH-013")
def test_every_method_that_writes_is_walked_below() -> None:
    public = {
        name for name, _ in inspect.getmembers(Mesh, inspect.isfunction) if not name.startswith("_")
    }
    assert public == READS | WRITES.keys()


@pytest.mark.req("MESH-013", "MESH-128", "MESH-129")
@pytest.mark.parametrize("method", WRITES)
def test_no_write_leaves_a_secret_in_any_file(method: str, tmp_path: Path) -> None:
    with meshes(tmp_path) as mesh:
        known = mesh.add("Something to change")
        WRITES[method](mesh, known.id)
        assert found_in_files(tmp_path) == set()
    assert found_in_files(tmp_path) == set()


@pytest.mark.parametrize(
    "method",
    ["add", "ingest", "add_many", "ingest_dir", "extract", "distill_lesson", "distill", "update",
     "ingest_skill", "sync_skills", "import_file"],
)  # fmt: skip
def test_with_redaction_off_the_same_writes_leave_all_of_them(method: str, tmp_path: Path) -> None:
    with meshes(tmp_path, redaction="off") as mesh:
        known = mesh.add("Something to change")
        WRITES[method](mesh, known.id)
    assert found_in_files(tmp_path) == set(SECRET_WORDS)


LOCAL = st.text("abcdefghjkmnpqrstuvwxyz", min_size=6, max_size=12)
GENERATED = st.fixed_dictionaries(
    {
        "email": st.builds("{}.{}@{}.org".format, LOCAL, LOCAL, LOCAL),
        "token": st.text(
            "abcdefghijkmnopqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789", min_size=36, max_size=36
        ).map("ghp_{}".format),
        # Loopback addresses (127.…) are kept on purpose.
        "ip": st.tuples(st.integers(128, 250), *[st.integers(60, 250)] * 3).map(
            lambda parts: ".".join(map(str, parts))
        ),
        "phone": st.integers(2_000_000, 9_999_999).map(
            lambda n: f"+41 79 {n // 10000:03d} {n // 100 % 100:02d} {n % 100:02d}"
        ),
    }
)


@pytest.mark.req("MESH-013", "MESH-128")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(GENERATED, st.sampled_from(["content", "metadata", "both"]))
def test_no_redacted_value_of_any_record_is_in_any_byte_of_the_store(
    tmp_path_factory: pytest.TempPathFactory, values: dict[str, str], place: str
) -> None:
    text = "; ".join(f"{name} {value}" for name, value in values.items())
    content = text if place != "metadata" else "nothing to hide"
    metadata = (
        {"note": text, "list": [{"x": value} for value in values.values()]}
        if place != "content"
        else None
    )
    data: dict[str, bytes] = {}
    for mode in ("mask", "off"):
        folder = tmp_path_factory.mktemp(mode)
        with meshes(folder, redaction=mode) as mesh:
            mesh.add(content, metadata)
        data[mode] = bytes_of(folder)
    assert all(value.encode() in data["off"] for value in values.values())
    assert not any(value.encode() in data["mask"] for value in values.values())


@pytest.mark.req("MESH-014")
def test_boilerplate_that_holds_an_address_leaves_no_address(mesh: MemoryMesh) -> None:
    stored = mesh.add("Privacy policy contact: bob@example.com")
    assert stored.content == "Privacy policy contact: [EMAIL]"


@pytest.mark.req("MESH-014")
def test_where_scrubbing_fails_the_redacted_text_is_stored(
    mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise InvalidInput("no")

    monkeypatch.setattr(gate, "cleaned", fails)
    assert mesh.add("<p>write to bob@example.com</p>").content == "<p>write to [EMAIL]</p>"


@pytest.mark.req("MESH-014")
def test_where_redaction_fails_nothing_is_stored(
    mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> str:
        raise RuntimeError("broken")

    with monkeypatch.context() as patch:
        patch.setattr(gate.Redactor, "redact", fails)
        with pytest.raises(RuntimeError):
            mesh.add("write to bob@example.com")
    assert mesh.get_all() == []


@pytest.mark.req("MESH-014")
def test_markup_cannot_hide_an_address(mesh: MemoryMesh) -> None:
    assert mesh.add("<p>write to bob<b>@</b>example.com</p>").content == "write to [EMAIL]"
    assert mesh.add("<p>or to jim&#64;example.com</p>").content == "or to [EMAIL]"


@pytest.mark.req("MESH-075", "MESH-030")
def test_what_is_stored_and_answered_is_the_scrubbed_text(mesh: MemoryMesh) -> None:
    stored = mesh.add("<p>The <b>build</b> is green</p>")
    assert stored.content == "The build is green"
    assert mesh.get(stored.id) == stored
    assert [hit.content for hit in mesh.search("build")] == ["The build is green"]


@pytest.mark.req("MESH-127")
def test_a_greeting_is_stored_as_it_is(mesh: MemoryMesh) -> None:
    assert mesh.add("Hi").content == "Hi"


@pytest.mark.req("MESH-130")
def test_a_version_number_is_stored_unchanged(mesh: MemoryMesh) -> None:
    assert mesh.add("version 1.2.3.4 released").content == "version 1.2.3.4 released"


def test_storing_what_was_stored_is_a_second_sighting(mesh: MemoryMesh) -> None:
    first = mesh.add("<p>Ask bob@example.com</p>")
    assert mesh.add(first.content).id == first.id


def test_what_says_whose_a_memory_is_stays_as_it_is(mesh: MemoryMesh) -> None:
    for session in ("+1 604 696 5272", "+1 604 696 5273"):
        mesh.add(f"note {session[-1]}", {"type": "session", "session_id": session})
    assert [found.content for found in mesh.get_all(session_id="+1 604 696 5272")] == ["note 2"]


@pytest.mark.req("MESH-013")
def test_an_error_quotes_no_secret(mesh: MemoryMesh) -> None:
    with pytest.raises(InvalidInput) as caught:
        mesh.add("x", {"importance": SECRETS["email"]})
    assert "[EMAIL]" in str(caught.value)
    assert SECRETS["email"] not in f"{caught.value!r} {caught.value.what}"


def test_the_scrubbers_settings_merge_with_the_meshs_own(tmp_path: Path) -> None:
    with meshes(tmp_path, scrub={"structural": {"stripMarkdown": False}}) as mesh:
        assert mesh.add("<p>**Hi**</p>").content == "**Hi**"
    with (
        pytest.raises(InvalidInput, match="unknown setting 'nonsense' in scrub"),
        meshes(tmp_path, scrub={"nonsense": 1}) as mesh,
    ):
        pass


# --- pseudonyms ---


@pytest.mark.req("MESH-131")
def test_the_same_person_is_the_same_token_over_restarts(tmp_path: Path) -> None:
    contents = []
    for text in ("ask bob@example.com", "Bob@Example.com knows", "jim@example.com does not"):
        with meshes(tmp_path, redaction="pseudonym") as mesh:
            contents.append(mesh.add(text).content)
    first, second, other = (
        next(word for word in text.split() if word.startswith("[EMAIL:")) for text in contents
    )
    assert first == second != other
    assert found_in_files(tmp_path) == set()


@pytest.mark.req("MESH-131")
def test_the_key_is_its_owners_alone_and_another_key_gives_other_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contents = set()
    for name in ("one", "two"):
        monkeypatch.setenv("MEMORY_MESH_HOME", str(tmp_path / name))
        (tmp_path / name).mkdir()
        with meshes(tmp_path / name, redaction="pseudonym") as mesh:
            contents.add(mesh.add("bob@example.com").content)
        assert stat.S_IMODE((tmp_path / name / "pseudonym.key").stat().st_mode) == 0o600
    assert len(contents) == 2


def test_a_lost_key_is_noticed_and_not_replaced(tmp_path: Path) -> None:
    with meshes(tmp_path, redaction="pseudonym") as mesh:
        mesh.add("bob@example.com")
    key = tmp_path / "home" / "pseudonym.key"
    stored = key.read_bytes()
    key.unlink()
    with pytest.raises(SettingsError, match="lost"), meshes(tmp_path, redaction="pseudonym"):
        pass
    assert not key.exists()
    key.write_bytes(bytes(32))
    with pytest.raises(SettingsError, match="not the one"), meshes(tmp_path, redaction="pseudonym"):
        pass
    key.write_bytes(stored)
    with meshes(tmp_path, redaction="pseudonym") as mesh:
        assert mesh.add("bob@example.com").times_observed == 2


@pytest.mark.parametrize("mode", ["mask", "pseudonym"])
def test_names_become_the_ids_that_the_settings_give(tmp_path: Path, mode: str) -> None:
    with meshes(tmp_path, redaction=mode, redact_names={"Ada Lovelace": "person-1"}) as mesh:
        assert (
            mesh.add("ada  lovelace wrote it", {"by": "Ada Lovelace"}).content
            == "person-1 wrote it"
        )
    assert b"ovelace" not in bytes_of(tmp_path)


@pytest.mark.parametrize("mode", ["mask", "pseudonym"])
def test_an_id_that_would_be_redacted_itself_is_refused(tmp_path: Path, mode: str) -> None:
    with (
        pytest.raises(InvalidInput, match="redact_names: name 1"),
        meshes(tmp_path, redaction=mode, redact_names={"Ada": "ada@example.org"}) as mesh,
    ):
        mesh.add("Ada wrote it")


def test_an_unknown_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="mask, pseudonym, off"):
        meshes(tmp_path, redaction="blur")
