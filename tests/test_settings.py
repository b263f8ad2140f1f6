"""Settings: which of the five sources counts, what is refused, and that no secret is ever shown."""

from pathlib import Path

import pytest

from memory_mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.api.settings import FILE, PREFIX, load, record
from memory_mesh.core.errors import InvalidInput, SettingsError
from memory_mesh.core.options import NAMES, Options

SECRET = "sk-very-secret-0123456789"


class Place:
    """A home, a project and an environment of a test's own."""

    def __init__(self, folder: Path) -> None:
        self.home, self.project = folder / "home", folder / "project"
        self.inner = self.project / "deep" / "down"
        for made in (self.home, self.inner):
            made.mkdir(parents=True)
        self.environ = {PREFIX + "HOME": str(self.home)}

    def load(self, cwd: Path | None = None, **arguments: object) -> object:
        return load(arguments, environ=self.environ, cwd=cwd or self.project)

    def set_home(self, text: str) -> None:
        (self.home / FILE).write_text(text, encoding="utf-8")

    def set_project(self, text: str, folder: Path | None = None, *, trusted: bool = False) -> None:
        file = (folder or self.project) / FILE
        file.write_text(text, encoding="utf-8")
        if trusted:
            record(file, text.encode(), self.home)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# --- precedence ---

SOURCES = ["argument", "environment", "project", "home"]
VALUES = {
    # setting: the value in each source, as it is written there, and as it is read
    "agent_id": (["a", "e", "p", "h"], ["a", "e", "p", "h"], "YAMO_AGENT"),
    "max_content_chars": ([1, "2", 3, 4], [1, 2, 3, 4], 1_000_000),
    "busy_seconds": ([1.5, "2.5", 3, 4.0], [1.5, 2.5, 3.0, 4.0], 30.0),
    "enable_yamo": ([True, "off", True, False], [True, False, True, False], True),
    "scrub": (
        [{"enabled": True}, '{"enabled": false}', {"chunking": {"a": 1}}, {"b": {}}],
        [{"enabled": True}, {"enabled": False}, {"chunking": {"a": 1}}, {"b": {}}],
        None,
    ),
    "skill_directories": ([["a"], "e", ["p", "q"], "h"], [["a"], "e", ["p", "q"], "h"], None),
}


def toml(name: str, value: object) -> str:
    return f"{name} = {in_toml(value)}\n"


def in_toml(value: object) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {in_toml(item)}" for key, item in value.items()) + "}"
    return str(value).lower() if isinstance(value, bool) else repr(value)


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("first", range(5))
def test_argument_before_environment_before_project_before_home_before_default(
    place: Place, name: str, first: int
) -> None:
    written, read, default = VALUES[name]
    arguments = {name: written[0]} if first <= 0 else {}
    if first <= 1:
        place.environ[PREFIX + name.upper()] = str(written[1])
    if first <= 2:
        place.set_project(toml(name, written[2]), trusted=True)
    if first <= 3:
        place.set_home(toml(name, written[3]))
    loaded = place.load(**arguments)
    assert getattr(loaded.options, name) == [*read, default][first]
    assert type(getattr(loaded.options, name)) is type([*read, default][first])
    assert (
        loaded.origins[name].split(" ")[0]
        == ["argument", "environment", "file", "file", "default"][first]
    )


def test_an_origin_names_the_variable_or_the_file(place: Place) -> None:
    place.environ[PREFIX + "AGENT_ID"] = "e"
    place.set_project("session_id = 's'")
    place.set_home("user_id = 'u'")
    origins = place.load(enable_yamo=False).origins
    assert origins["agent_id"] == "environment (MEMORY_MESH_AGENT_ID)"
    assert origins["session_id"] == f"file ({place.project / FILE})"
    assert origins["user_id"] == f"file ({place.home / FILE})"
    assert (origins["enable_yamo"], origins["store"]) == ("argument", "default")


def test_each_setting_comes_from_where_it_is_set(place: Place) -> None:
    place.set_project("agent_id = 'p'\nsession_id = 'p'")
    place.set_home("agent_id = 'h'\nuser_id = 'h'")
    settings = place.load().options
    assert (settings.agent_id, settings.session_id, settings.user_id) == ("p", "p", "h")


def test_a_project_that_is_not_trusted_may_set_the_search_mode(place: Place) -> None:
    place.set_project("search_mode = 'precise'")
    assert place.load().options.search_mode == "precise"


def test_an_argument_of_none_was_not_given(place: Place) -> None:
    place.set_home("agent_id = 'h'")
    assert place.load(agent_id=None).options.agent_id == "h"
    assert place.load(enable_yamo=False).options.enable_yamo is False


# --- files ---


def test_the_files_of_agents_are_relative_to_the_project_that_names_them(place: Place) -> None:
    place.set_project(
        'note_agents = { dev = "agents/dev.yaml", ann = { max_injected = 1 } }', trusted=True
    )
    assert place.load().options.note_agents == {
        "dev": str(place.project / "agents/dev.yaml"),
        "ann": {"max_injected": 1},
    }


def test_the_nearest_project_file_counts_alone(place: Place) -> None:
    place.set_project("agent_id = 'outer'\nsession_id = 'outer'")
    assert place.load(place.inner).options.agent_id == "outer"
    place.set_project("agent_id = 'inner'", place.inner)
    settings = place.load(place.inner).options
    assert (settings.agent_id, settings.session_id) == ("inner", None)
    assert place.load(place.project).options.agent_id == "outer"


def test_a_folder_of_that_name_is_no_file(place: Place) -> None:
    (place.inner / FILE).mkdir()
    (place.home / FILE).mkdir()
    place.set_project("agent_id = 'p'")
    assert place.load(place.inner).options.agent_id == "p"


def test_a_file_that_is_project_and_home_at_once_is_read(place: Place) -> None:
    place.set_home("agent_id = 'h'")
    assert place.load(place.home).options.agent_id == "h"


@pytest.mark.parametrize(
    "text",
    [b"agent_id = ", b"\xff\xfe", b"agent_id = 'a'\nagent_id = 'b'", b"agent_id", b"[unclosed",
     b'llm_api_key = "open'],
    ids=range(6),
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_an_error_that_names_it(place: Place, text: bytes) -> None:
    for folder in (place.home, place.project):
        (folder / FILE).write_bytes(text)
        with pytest.raises(SettingsError, match="cannot be read") as refused:
            place.load()
        assert str(folder / FILE) in str(refused.value)
        (folder / FILE).unlink()


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("agent", "agent_id"),
        ("agentid", "agent_id"),
        ("enable_yammo", "enable_yamo"),
        ("stor", "store"),
    ],
)
def test_an_unknown_key_is_an_error_with_a_suggestion(place: Place, key: str, meant: str) -> None:
    for write in (place.set_project, place.set_home):
        write(f"{key} = 'x'")
        with pytest.raises(
            SettingsError, match=f"unknown option '{key}'; did you mean '{meant}'\\?"
        ):
            place.load()
        write("")


def test_an_unknown_key_like_no_other_is_an_error_too(place: Place) -> None:
    for text in ("zzz = 1", "[section]\nagent_id = 'a'"):
        place.set_project(text)
        with pytest.raises(SettingsError, match="unknown option"):
            place.load()


def test_what_is_overridden_is_checked_all_the_same(place: Place) -> None:
    place.set_home("max_content_chars = 'many'")
    with pytest.raises(
        SettingsError, match="max_content_chars 'many' is not valid; expected a whole number from 1"
    ):
        place.load(max_content_chars=5)


# --- kinds ---


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *((word, True) for word in ("1", "true", "TRUE", " yes ", "On")),
        *((word, False) for word in ("0", "false", "No", "OFF")),
    ],
)
def test_the_environment_says_yes_and_no_in_many_words(
    place: Place, text: str, value: bool
) -> None:
    place.environ[PREFIX + "ENABLE_YAMO"] = text
    assert place.load().options.enable_yamo is value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("enable_yamo", text) for text in ("", "maybe", "2", "truee", "None")),
        *(("max_content_chars", text) for text in ("", "0", "-5", "1.5", "many", "1e3", "0x10")),
        *(("busy_seconds", text) for text in ("", "-1", "soon", "nan")),
        *(("agent_id", text) for text in ("", "   ")),
        ("store", ""),
        *(("scrub", text) for text in ("", "{", "[1]", "5", "enabled")),
        *(("redaction", text) for text in ("", "maybe", "MASK")),
    ],
)
def test_the_environment_is_refused_where_it_makes_no_sense(
    place: Place, name: str, text: str
) -> None:
    place.environ[PREFIX + name.upper()] = text
    with pytest.raises(
        SettingsError,
        match=rf"environment \({PREFIX}{name.upper()}\): {name} .*is not valid; expected",
    ):
        place.load()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [("max_content_chars", " 7 ", 7), ("busy_seconds", "0", 0.0), ("busy_seconds", "1e2", 100.0)],
)
def test_the_environment_says_numbers(place: Place, name: str, text: str, value: float) -> None:
    place.environ[PREFIX + name.upper()] = text
    assert getattr(place.load().options, name) == value


def test_text_from_the_environment_is_kept_as_it_is(place: Place) -> None:
    place.environ[PREFIX + "AGENT_ID"] = " True "
    place.environ[PREFIX + "USER_ID"] = "42"
    settings = place.load().options
    assert (settings.agent_id, settings.user_id) == (" True ", "42")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(
            ("agent_id", value)
            for value in ("5", "true", "['a']", "''", "' '", "{a = 1}", "2026-01-01")
        ),
        *(("enable_yamo", value) for value in ("1", "0", "'true'", "[]")),
        *(("max_content_chars", value) for value in ("0", "-1", "1.0", "'1'", "true")),
        *(("busy_seconds", value) for value in ("-0.1", "'1'", "true", "nan", "-inf")),
        *(("skill_directories", value) for value in ("5", "[1]", "true", "{a = 1}")),
    ],
)
def test_a_file_is_refused_where_a_value_is_of_the_wrong_kind(
    place: Place, name: str, value: str
) -> None:
    place.set_home(f"{name} = {value}")
    with pytest.raises(SettingsError, match=f"{name} .*is not valid; expected"):
        place.load()


def test_every_setting_has_a_variable_and_an_explanation(place: Place) -> None:
    assert all(field.metadata["about"] for field in Options.__dataclass_fields__.values())
    place.environ[PREFIX + "NOTHING_OF_OURS"] = "ignored"
    place.environ["AGENT_ID"] = "ignored"
    assert place.load().options == Options()
    assert [name for name, _, _ in place.load().displayed()] == list(NAMES)


# --- the home folder ---


def test_without_a_store_it_is_a_file_in_the_home_folder(place: Place) -> None:
    loaded = place.load()
    assert loaded.home == place.home
    assert loaded.store_url == f"sqlite:///{place.home / 'memory.db'}"
    assert place.load(store="memory://").store_url == "memory://"


def test_the_home_folder_is_the_users_own_without_a_name(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for environ in ({}, {PREFIX + "HOME": ""}, {PREFIX + "HOME": "~/.memory-mesh"}):
        assert load({}, environ=environ, cwd=tmp_path).home == tmp_path / ".memory-mesh"
    assert load({}, environ={PREFIX + "HOME": "~/else"}, cwd=tmp_path).home == tmp_path / "else"


def test_an_unknown_home_folder_is_a_settings_error(place: Place) -> None:
    place.environ[PREFIX + "HOME"] = "~nobody-of-that-name/memory"
    with pytest.raises(SettingsError, match="MEMORY_MESH_HOME"):
        place.load()


def test_a_relative_home_is_made_absolute(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place.project)
    place.environ[PREFIX + "HOME"] = "mine"
    assert place.load().store_url == f"sqlite:///{place.project / 'mine' / 'memory.db'}"


def test_the_process_itself_is_asked_where_nothing_is_given(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place.inner)
    monkeypatch.setenv(PREFIX + "HOME", str(place.home))
    monkeypatch.setenv(PREFIX + "AGENT_ID", "e")
    place.set_project("session_id = 'p'")
    settings = load({}).options
    assert (settings.agent_id, settings.session_id) == ("e", "p")


# --- secrets ---


def test_a_secret_is_read_and_never_shown(place: Place) -> None:
    place.environ[PREFIX + "LLM_API_KEY"] = SECRET
    loaded = place.load()
    assert loaded.options.llm_api_key == SECRET
    shown = {name: (value, origin) for name, value, origin in loaded.displayed()}
    assert shown["llm_api_key"] == ("(set, not shown)", "environment (MEMORY_MESH_LLM_API_KEY)")
    for text in (repr(loaded), str(loaded), repr(loaded.options), str(loaded.displayed())):
        assert SECRET not in text
    assert {name: value for name, value, _ in place.load(llm_api_key=None).displayed()}[
        "user_id"
    ] == "-"


@pytest.mark.parametrize("wrong", [[SECRET], {"key": SECRET}, SECRET.encode(), 5])
def test_a_secret_of_the_wrong_kind_is_not_shown_in_the_error(place: Place, wrong: object) -> None:
    with pytest.raises(SettingsError, match="llm_api_key is not valid") as refused:
        place.load(llm_api_key=wrong)
    assert SECRET not in str(refused.value)


def test_a_secret_in_a_broken_file_is_not_shown(place: Place) -> None:
    for text in (
        f'llm_api_key = "{SECRET}',
        f"llm_api_key = {SECRET}",
        f'llm_api_key = ["{SECRET}"]',
        f'llm_api_kye = "{SECRET}"',
    ):
        for write in (place.set_project, place.set_home):
            write(text)
            with pytest.raises(SettingsError) as refused:
                place.load()
            assert SECRET not in str(refused.value)


# --- language models ---


def test_a_key_is_taken_from_the_providers_own_variable_where_none_is_given(place: Place) -> None:
    place.environ |= {"OPENAI_API_KEY": "sk-o", "ANTHROPIC_API_KEY": "sk-a", "CO_API_KEY": "sk-c"}
    for provider, key in (
        ("openai", "sk-o"),
        ("anthropic", "sk-a"),
        ("cohere", "sk-c"),
        ("ollama", None),
    ):
        assert place.load(llm_provider=provider).options.llm_api_key == key
    loaded = place.load(llm_provider="openai", embedder="cohere")
    assert (loaded.options.llm_api_key, loaded.options.embedding_api_key) == ("sk-o", "sk-c")
    assert loaded.origins["llm_api_key"] == "environment (OPENAI_API_KEY)"
    assert place.load(llm_provider="openai", llm_api_key="own").options.llm_api_key == "own"
    assert place.load().options.llm_api_key is None, "without a provider no key is taken up"
    place.environ["OPENAI_API_KEY"] = " "
    assert place.load(llm_provider="openai").options.llm_api_key is None


# --- mistakes are found at construction ---


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"agnet_id": "a"}, "unknown option 'agnet_id'; did you mean 'agent_id'?"),
        ({"zzz": "a"}, "unknown option 'zzz'; see memory-mesh config show"),
        ({"path": "a"}, "unknown option 'path'; did you mean 'store'?"),
        (
            {"lesson_min_confidence": 4},
            "argument: lesson_min_confidence 4.0 is not valid; expected a number from 0 to 1",
        ),
        (
            {"ranker": "lernt"},
            (
                "argument: ranker 'lernt' is not valid; expected one of learnt, rrf; did you mean "
                "'learnt'?"
            ),
        ),
        (
            {"ranker": "deep"},
            "argument: ranker 'deep' is not valid; expected one of learnt, rrf",
        ),
        (
            {"redact_names": {"Ana": 3}},
            "argument: redact_names is not valid; expected names and ids that are texts",
        ),
        (
            {"redact_names": {3: "a"}},
            "argument: redact_names is not valid; expected names and ids that are texts",
        ),
        (
            {"redact_names": {" ": "a"}},
            "argument: redact_names is not valid; expected names and ids that are texts",
        ),
        (
            {"channel_weights": {"keyword": 1}},
            (
                "argument: channel_weights {'keyword': 1} is not valid; expected numbers from 0 "
                "for keywords and vectors"
            ),
        ),
        (
            {"channel_weights": {"vectors": "1"}},
            (
                "argument: channel_weights {'vectors': '1'} is not valid; expected numbers from 0 "
                "for keywords and vectors"
            ),
        ),
        (
            {"llm_timeout": 0},
            "argument: llm_timeout 0.0 is not valid; expected seconds above 0, at most 86400",
        ),
    ],
)
def test_a_wrong_option_is_an_error_before_anything_is_opened(
    options: dict[str, object], message: str
) -> None:
    for mesh in (MemoryMesh, AsyncMemoryMesh):
        with pytest.raises(SettingsError) as refused:
            mesh(**options)
        assert str(refused.value) == message


def test_a_stemmer_language_that_does_not_exist_is_an_error_with_a_suggestion(place: Place) -> None:
    with pytest.raises(
        SettingsError,
        match=r"stemmer_language 'germna' is not valid; expected one of .*did you mean 'german.\?",
    ):
        place.load(stemmer_language="germna")
    assert place.load(stemmer_language="german").options.stemmer_language == "german"


def test_options_made_by_hand_are_validated_too() -> None:
    with pytest.raises(SettingsError, match="lesson_min_confidence 4"):
        Options(lesson_min_confidence=4.0)
    assert type(Options(busy_seconds=5).busy_seconds) is float


def test_a_wrong_setting_of_the_scrubber_is_an_error_at_construction() -> None:
    with pytest.raises(InvalidInput, match="unknown setting 'structrual' in scrub"):
        MemoryMesh(store="memory://", scrub={"structrual": {}})


def test_an_unknown_variable_is_one_warning_line(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.load()
    assert caplog.messages == []
    place.environ |= {PREFIX + "AGNET_ID": "a", PREFIX + "ZZZ": "b"}
    for _ in range(3):
        place.load()
    assert caplog.messages == [
        (
            f"ignored unknown environment variables {PREFIX}AGNET_ID, {PREFIX}ZZZ; did you mean "
            f"{PREFIX}AGENT_ID?"
        )
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("BOGUS", f"{PREFIX}BOGUS"),  # not similar to USER_ID, only with the prefix
        ("HOM", f"{PREFIX}HOM; did you mean {PREFIX}HOME?"),
        ("A\x1b[31m\nB", f"'{PREFIX}A\\x1b[31m\\nB'"),
    ],
)
def test_the_warning_is_one_safe_line_with_a_good_suggestion(
    place: Place, caplog: pytest.LogCaptureFixture, name: str, message: str
) -> None:
    place.environ[PREFIX + name] = "x"
    place.load()
    assert caplog.messages == [f"ignored unknown environment variable {message}"]


@pytest.mark.parametrize(
    "kinds",
    [{"": False}, {0: False}, {None: False}, {"EMAIL": False}, {"email": 0}, {"email": "off"}, []],
)
def test_kinds_of_redaction_that_do_not_exist_are_refused(place: Place, kinds: object) -> None:
    place.load(redaction_kinds={"email": False})
    with pytest.raises(SettingsError, match="redaction_kinds"):
        place.load(redaction_kinds=kinds)


@pytest.mark.parametrize("name", ["agent_id", "max_content_chars", "llm_timeout", "embedder"])
@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["large", "small"])
def test_a_number_with_thousands_of_digits_is_refused(place: Place, name: str, value: int) -> None:
    with pytest.raises(SettingsError, match=f"{name} int that cannot be shown is not valid"):
        place.load(**{name: value})


def test_a_home_that_cannot_be_looked_into_is_an_error(place: Place) -> None:
    place.environ[PREFIX + "HOME"] = "/" + "a" * 3000
    with pytest.raises(SettingsError, match="cannot be read"):
        place.load()


# --- presets ---

LANE = {
    "store": "~/.opencode/memories.db", "embedder": "lmstudio",
    "embedding_model": "mixedbread-ai/mxbai-embed-large-v1",
    "embedding_url": "http://127.0.0.1:1234", "min_score_threshold": 0.2,
}  # fmt: skip


@pytest.mark.req("LANE-40")
@pytest.mark.parametrize("source", ["argument", "environment", "home", "trusted project"])
def test_the_preset_of_the_lane_has_the_documents_defaults(
    place: Place, source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    if source == "environment":
        place.environ[PREFIX + "PRESET"] = "lane"
    elif source == "home":
        place.set_home('preset = "lane"')
    elif source == "trusted project":
        place.set_project('preset = "lane"', trusted=True)
    found = place.load(**({"preset": "lane"} if source == "argument" else {}))
    assert {name: getattr(found.options, name) for name in LANE} == LANE
    assert {found.origins[name] for name in LANE} == {"preset (lane)"}
    assert found.store_url == f"sqlite:///{tmp_path}/.opencode/memories.db"


@pytest.mark.req("LANE-41")
def test_the_database_of_memory_lane_is_opened_only_when_asked_for(place: Place) -> None:
    assert place.load().store_url == f"sqlite:///{place.home}/memory.db"
    place.set_project('preset = "lane"')
    with pytest.raises(SettingsError, match="preset cannot be set by a project's file"):
        place.load()


@pytest.mark.req("LANE-41")
def test_every_value_that_is_given_counts_more_than_the_preset(place: Place) -> None:
    place.set_home('preset = "lane"\nmin_score_threshold = 0.4\ndb_dir = "yamo"')
    found = place.load(embedding_model="other")
    assert (found.options.min_score_threshold, found.options.embedding_model) == (0.4, "other")
    assert (found.options.store, found.options.embedder) == (None, "lmstudio")
    assert found.store_url.startswith("lancedb:///")
    place.environ[PREFIX + "EMBEDDER"] = "local"
    assert [getattr(place.load().options, name)
            for name in ("embedder", "embedding_model", "embedding_url")] == [
                "local", None, None,
            ]  # fmt: skip


@pytest.mark.req("LANE-40")
@pytest.mark.parametrize(
    ("name", "option", "value"),
    [
        ("db_path", "store", "/x/memories.db"), ("dbPath", "store", "/x/memories.db"),
        ("embeddingModel", "embedding_model", "m"),
        ("lm_studio_url", "embedding_url", "http://127.0.0.1:1"),
        ("lmStudioUrl", "embedding_url", "http://127.0.0.1:1"),
        ("minScoreThreshold", "min_score_threshold", 0.3),
        ("min_score_threshold", "min_score_threshold", 0.3),
    ],
)  # fmt: skip
def test_the_names_of_memory_lane_are_accepted(
    place: Place, name: str, option: str, value: object
) -> None:
    assert getattr(place.load(**{name: value}).options, option) == value
    place.set_home(f"{name} = {value!r}")
    assert getattr(place.load().options, option) == value
    if name.islower():
        place.environ[PREFIX + name.upper()] = str(value)
        assert place.load().origins[option] == f"environment ({PREFIX + name.upper()})"
    if option == "store":
        with pytest.raises(SettingsError, match=f"both store and {name} are given"):
            place.load(store="a.db", **{name: "b.db"})
        place.set_project(f'{name} = "/y.db"')
        with pytest.raises(SettingsError, match="cannot be set by a project's file"):
            place.load()


def test_a_store_below_the_home_of_the_user_is_found(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert place.load(store="~/own.db").store_url == f"sqlite:///{tmp_path}/own.db"
