"""The file of a project is untrusted input: it sets names and preferences, until the user trusts
exactly this file."""

import json
import os
import stat
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from multiprocessing import get_context
from pathlib import Path

import pytest

from memory_mesh import MemoryMesh
from memory_mesh.api.settings import FILE, PREFIX, Settings, Trust, load, recorded, trust, untrust
from memory_mesh.core.errors import SettingsError
from memory_mesh.core.options import BY_NAME, NAMES, Project, kind_of

# What a project may set, with a value that it may give. Every option that is not named here is
# refused, also a new one.
ALLOWED = {
    "agent_id": ("'planner'", "planner"),
    "session_id": ("'s42'", "s42"),
    "project": ("'apollo'", "apollo"),
    "max_content_chars": ("5000", 5000),
    "ranker": ("'rrf'", "rrf"),
    "search_mode": ("'precise'", "precise"),
    "min_score_threshold": ("0.3", 0.3),
    "intent_words": ("{lack = ['gap']}", {"lack": ["gap"]}),
    "channel_weights": ("{keywords = 2}", {"keywords": 2}),
    "stemmer_language": ("'german'", "german"),
    "offline": ("true", True),
    "enable_llm": ("false", False),
    "llm_timeout": ("5.0", 5.0),
    "llm_requests_per_minute": ("10", 10),
    "llm_daily_tokens": ("1000", 1000),
    "llm_daily_cost": ("0.5", 0.5),
    "notes_dir": ("'notes'", "PROJECT/notes"),
    "note_closeness": ("0.7", 0.7),
    "note_extraction_every": ("3", 3),
    "trace_similarity": ("0.8", 0.8),
}
ATTACKS = {
    "store": "'sqlite:///theirs.db'", "db_dir": "'theirs'", "redaction": "'off'",
    "enable_yamo": "false", "audit_recalls": "false", "recall_retention_days": "1",
    "model_path": "'model'", "cache_dir": "'cache'", "embedder": "'openai'",
    "embedding_url": "'https://theirs.example/v1'", "llm_provider": "'openai'",
    "llm_base_url": "'https://theirs.example/v1'", "llm_allow_local": "true",
    "llm_api_key": "'theirs'", "user_id": "'ana'", "skill_directories": "['skills']",
    "traces_dir": "'traces'", "enable_memory": "false", "lesson_retention_days": "1",
    "decay_enabled": "true",
}  # fmt: skip


class Place:
    """A home and a project of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.home, self.project = folder, folder / "home", folder / "project"
        self.file = self.project / FILE
        for made in (self.home, self.project):
            made.mkdir()

    def write(self, text: str) -> None:
        self.file.write_text(text, encoding="utf-8")

    def load(self, cwd: Path | None = None, **arguments: object) -> Settings:
        return load(arguments, environ={PREFIX + "HOME": str(self.home)}, cwd=cwd or self.project)

    def refused(self, cwd: Path | None = None) -> str:
        with pytest.raises(SettingsError) as error:
            self.load(cwd)
        return str(error.value)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place(tmp_path)
    monkeypatch.setenv(PREFIX + "HOME", str(made.home))
    return made


def any_value(name: str) -> str:
    """A value of the option's kind in TOML; whether it makes sense does not matter."""
    return {bool: "true", int: "1", float: "1.0", dict: "{}", list: "['x']"}.get(
        kind_of(name), "'x'"
    )


# --- what a project may set ---


@pytest.mark.parametrize("name", NAMES)
def test_a_project_sets_names_and_preferences_and_every_other_option_is_refused(
    place: Place, name: str
) -> None:
    if name in ALLOWED:
        text, value = ALLOWED[name]
        place.write(f"{name} = {text}")
        found = place.load()
        assert getattr(found.options, name) == (
            str(place.project / "notes") if name == "notes_dir" else value
        )
        assert found.origins[name] == f"file ({place.file})"
        return
    place.write(f"{name} = {ATTACKS.get(name, any_value(name))}")
    message = place.refused()
    assert f"file ({place.file}): {name} cannot be set by a project's file" in message
    assert str(place.home / FILE) in message
    assert f"memory-mesh config trust {place.file}" in message
    assert "\n" not in message


def test_an_option_is_closed_to_projects_unless_its_declaration_opens_it() -> None:
    assert {name for name in NAMES if BY_NAME[name].metadata["project"] is not Project.NO} == set(
        ALLOWED
    )


def test_every_refused_name_is_named_at_once_and_no_value_is_shown(place: Place) -> None:
    place.write(
        "agent_id = 'a'\nstore = 'mysql://bob:hunter2@host/db'\nllm_api_key = 'hunter2'\n"
        "redaction = ['hunter2']"
    )
    message = place.refused()
    assert "store, llm_api_key, redaction cannot be set" in message
    assert "agent_id" not in message
    assert "hunter2" not in message


@pytest.mark.parametrize("name", ATTACKS)
def test_the_home_file_may_set_what_a_project_may_not(place: Place, name: str) -> None:
    (place.home / FILE).write_text(f"{name} = {ATTACKS[name]}")
    assert place.load().origins[name] == f"file ({place.home / FILE})"


def test_a_refusal_opens_no_mesh_and_creates_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.write(f"store = 'sqlite:///{place.project / 'theirs.db'}'\nredaction = 'off'")
    monkeypatch.chdir(place.project)
    with pytest.raises(SettingsError, match="store, redaction cannot be set"):
        MemoryMesh()
    assert {path.name for path in place.folder.rglob("*")} == {"home", "project", FILE}
    place.write("agent_id = 'planner'")
    with MemoryMesh(embedder="none") as mesh:
        mesh.add("My mail is ana@example.org.")
        (stored,) = mesh.get_all()
        assert stored.content.startswith("My mail is ")
        assert "ana@example.org" not in str(asdict(stored))
    assert (place.home / "memory.db").exists()
    assert not (place.project / "theirs.db").exists()


def test_a_file_above_the_working_folder_is_refused_alike(place: Place) -> None:
    inner = place.project / "deep" / "down"
    inner.mkdir(parents=True)
    place.write("redaction = 'off'")
    assert "redaction cannot be set" in place.refused(inner)


# --- limits ---

LIMITS = [
    name
    for name in ALLOWED
    if BY_NAME[name].metadata["project"] is Project.LOWER and kind_of(name) is not bool
]


@pytest.mark.parametrize("name", LIMITS)
def test_a_project_lowers_the_limits_of_the_user_and_cannot_raise_them(
    place: Place, name: str
) -> None:
    (place.home / FILE).write_text(f"{name} = 20")
    for lower in (20, 19):
        place.write(f"{name} = {lower}")
        assert getattr(place.load().options, name) == lower
    place.write(f"{name} = 21")
    message = place.refused()
    assert f"file ({place.file}): {name} 21" in message
    assert "goes beyond your own 20" in message
    assert str(place.home / FILE) in message


@pytest.mark.parametrize(
    ("name", "default"), [("max_content_chars", "1000000"), ("llm_timeout", "60.0")]
)
def test_a_project_cannot_raise_a_default_limit(place: Place, name: str, default: str) -> None:
    place.write(f"{name} = {default}1")
    assert f"goes beyond your own {default}" in place.refused()


def test_a_project_switches_downloads_off_and_cannot_switch_them_on(place: Place) -> None:
    for own in ("", "offline = true"):
        (place.home / FILE).write_text(own)
        place.write("offline = false")
        assert "offline false: a project's file can only switch it on" in place.refused()


def test_a_project_cannot_enable_the_language_model_that_the_user_disabled(place: Place) -> None:
    (place.home / FILE).write_text("enable_llm = false")
    place.write("enable_llm = true")
    assert "enable_llm True goes beyond your own False" in place.refused()


# --- folders ---


@pytest.mark.parametrize("path", ["notes", "./a/../notes", "notes/", "."])
def test_a_folder_inside_the_project_counts_from_its_file(place: Place, path: str) -> None:
    inner = place.project / "deep"
    inner.mkdir()
    place.write(f"notes_dir = '{path}'")
    expected = place.project if path == "." else place.project / "notes"
    assert place.load(inner).options.notes_dir == str(expected)


@pytest.mark.parametrize(
    "path",
    [
        "..",
        "../other",
        "/etc",
        "~",
        "~/notes",
        "notes/../../home",
        "link",
        "link/deeper",
        "../project-b",
    ],
)
def test_a_folder_outside_the_project_is_refused_also_through_a_link(
    place: Place, path: str
) -> None:
    (place.project / "link").symlink_to(place.home)
    (place.folder / "project-b").mkdir()
    place.write(f"notes_dir = '{path}'")
    assert "is not inside the project" in place.refused()


@pytest.mark.parametrize("path", ["a\\u0000b", "~nobody-of-that-name/x"])
def test_a_folder_that_cannot_exist_is_a_settings_error(place: Place, path: str) -> None:
    place.write(f'notes_dir = "{path}"')
    assert "notes_dir" in place.refused()


@pytest.mark.parametrize(
    "text", ["a = " + "[" * 10_000, "agent_id = '" + "x" * 2**20 + "'"], ids=["deep", "long"]
)
def test_a_hostile_file_is_one_line_of_error(place: Place, text: str) -> None:
    place.write(text)
    message = place.refused()
    assert f"{place.file} cannot be read" in message
    assert len(message) < 500


# --- trust ---


def test_a_trusted_file_sets_every_option_until_it_changes(place: Place) -> None:
    place.write("redaction = 'off'\nstore = 'memory://'")
    place.refused()
    assert trust(str(place.file)) == (place.file, ["redaction", "store"])
    found = place.load()
    assert (found.options.redaction, found.options.store, found.project.trust) == (
        "off",
        "memory://",
        Trust.YES,
    )
    place.write("redaction = 'off'\nstore = 'memory:// '")
    message = place.refused()
    assert (
        f"file ({place.file}, changed since you trusted it): redaction, store cannot be set"
        in message
    )
    trust(str(place.project))  # the folder will do
    assert place.load().project.trust is Trust.YES


def test_a_changed_file_with_harmless_options_is_used_with_a_warning(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.write("agent_id = 'a'")
    trust(str(place.file))
    assert place.load().project.trust is Trust.YES
    assert caplog.messages == []
    place.write("agent_id = 'b'")
    assert (place.load().options.agent_id, place.load().project.trust) == ("b", Trust.CHANGED)
    assert f"{place.file} was changed after it was trusted" in caplog.messages[0]


def test_trust_in_one_file_is_none_in_a_copy_or_a_link_elsewhere(place: Place) -> None:
    place.write("redaction = 'off'")
    trust(str(place.file))
    for name in ("copy", "link", "moved"):
        (place.folder / name).mkdir()
    (place.folder / "copy" / FILE).write_bytes(place.file.read_bytes())
    (place.folder / "link" / FILE).symlink_to(place.file)
    for name in ("copy", "link"):
        assert "redaction cannot be set" in place.refused(place.folder / name)
    (place.folder / "way").symlink_to(place.project)  # the same folder by another path
    assert place.load(place.folder / "way").options.redaction == "off"
    place.file.rename(place.folder / "moved" / FILE)
    assert "redaction cannot be set" in place.refused(place.folder / "moved")


def test_a_record_of_another_file_is_no_trust(place: Place) -> None:
    place.write("redaction = 'off'")
    trust(str(place.file))
    (record,) = (place.home / "trusted").iterdir()
    for text in (
        "{}",
        "[]",
        "\xff",
        "",
        json.dumps(json.loads(record.read_bytes()) | {"path": "/other/memory-mesh.toml"}),
    ):
        record.write_text(text, encoding="latin-1")
        assert "redaction cannot be set" in place.refused()


def test_trust_ends_with_untrust(place: Place) -> None:
    place.write("redaction = 'off'")
    with pytest.raises(SettingsError, match="is not trusted"):
        untrust(str(place.file))
    trust(str(place.file))
    assert [(one.path, one.trust) for one in recorded(place.home)] == [(place.file, Trust.YES)]
    assert untrust(str(place.project)) == place.file
    assert recorded(place.home) == []
    assert "redaction cannot be set" in place.refused()


def test_the_record_is_private(place: Place) -> None:
    place.home.rmdir()
    place.write("redaction = 'off'")
    old = os.umask(0)
    try:
        trust(str(place.file))
    finally:
        os.umask(old)
    (record,) = (place.home / "trusted").iterdir()
    assert stat.S_IMODE(record.stat().st_mode) == 0o600
    assert [stat.S_IMODE(folder.stat().st_mode) for folder in (record.parent, place.home)] == [
        0o700,
        0o700,
    ]


@pytest.mark.parametrize("text", [None, "agnet_id = 'x'", "store = 5", "store = "])
def test_a_file_that_is_missing_or_wrong_is_not_trusted(place: Place, text: str | None) -> None:
    if text is not None:
        place.write(text)
    with pytest.raises(SettingsError):
        trust(str(place.file))
    assert recorded(place.home) == []


def trust_in_a_process(home: str, file: str) -> None:
    os.environ[PREFIX + "HOME"] = home
    trust(file)


@pytest.mark.deep
def test_processes_that_trust_at_once_lose_nothing(place: Place) -> None:
    files = [place.folder / f"p{number}" / FILE for number in range(4)]
    for file in files:
        file.parent.mkdir()
        file.write_text("redaction = 'off'")
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for done in [
            pool.submit(trust_in_a_process, str(place.home), str(file)) for file in files * 2
        ]:
            done.result()
    assert [(one.path, one.trust) for one in recorded(place.home)] == [
        (file, Trust.YES) for file in files
    ]
    assert len(list((place.home / "trusted").iterdir())) == len(files)


@pytest.mark.parametrize(
    "text",
    [
        "max_content_chars = " + "9" * 5000,
        "max_content_chars = 0x" + "f" * 10_000,
        "ranker = 0x" + "f" * 10_000,
        "agent_id" + ".a" * 2000 + " = 1",
        "agent_id = " + "[" * 10_000,
    ],
)
def test_a_value_that_cannot_be_displayed_is_refused_with_one_line(place: Place, text: str) -> None:
    place.write("agent_id = 5")
    assert "agent_id 5 is not valid" in place.refused()
    place.write(text)
    assert len(place.refused().splitlines()) == 1


def test_a_file_that_would_take_minutes_to_parse_is_refused_before(place: Place) -> None:
    place.write("agent_id = 'planner'\n#" + "." * 16_000)
    assert place.load().options.agent_id == "planner"
    place.write("agent_id" + ".a" * 100_000 + " = 1")
    assert "it is too long for a project's file, at most 16,384 bytes" in place.refused()


def test_a_trusted_file_may_be_longer(place: Place) -> None:
    place.write("agent_id = 'planner'\n#" + "." * 20_000)
    place.refused()
    trust(str(place.file))
    assert place.load().options.agent_id == "planner"


def test_a_link_that_cannot_be_resolved_is_no_file(place: Place) -> None:
    place.file.symlink_to("/" + "a" * 3000)
    with pytest.raises(OSError, match="too long"):
        place.file.stat()
    assert place.load().project is None
