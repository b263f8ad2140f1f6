"""Every option of a memory, written once: name, type, default, description and limits.

The groups are frozen dataclasses and `Options` is all of them together, so every option has one
flat name: the argument of `MemoryMesh`, the key in a file and, in capitals after `MEMORY_MESH_`,
the environment variable. `api/settings.py` reads values from these places, `api/build.py` builds a
mesh from them, flows read them from their context, type checkers know the constructor of a mesh by
them, and `docs/settings.md` is generated from this table.
"""

from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from enum import StrEnum
from types import NoneType, UnionType
from typing import Any, get_args, get_origin

from memory_mesh.core.errors import (
    InvalidInput,
    SettingsError,
    is_number,
    nearest,
    shown,
    suggestion,
)
from memory_mesh.core.text import KINDS, shown_url, without_passwords

CHAT_PROVIDERS = ("openai", "anthropic", "cohere", "ollama", "lmstudio", "llamacpp")
EMBEDDERS = ("local", "hash", "none", "openai", "cohere", "ollama", "lmstudio")
SEARCH_MODES = ("recall", "precise")
DEFAULT_ANSWER_TOKENS = 2048
# Defaults of other systems, by the name of the preset; every value that is given otherwise counts
# more.
PRESETS: Mapping[str, Mapping[str, object]] = {
    "lane": {
        "store": "~/.opencode/memories.db", "embedder": "lmstudio",
        "embedding_model": "mixedbread-ai/mxbai-embed-large-v1",
        "embedding_url": "http://127.0.0.1:1234", "min_score_threshold": 0.2,
    },
}  # fmt: skip
# The names of Memory Lane for options of ours.
ALIASES = {
    "db_path": "store", "dbPath": "store", "lm_studio_url": "embedding_url",
    "lmStudioUrl": "embedding_url", "embeddingModel": "embedding_model",
    "minScoreThreshold": "min_score_threshold",
}  # fmt: skip
_MAX_NUMBER = 10**12  # larger values are typing mistakes, and some would overflow


class Project(StrEnum):
    """What the file of a project may do with an option.

    The author of that file may not be the user, so it sets names and preferences, and nothing that
    decides where data goes or what protects it: an option is closed to it unless its declaration
    says otherwise.
    """

    NO = "no"
    YES = "yes"
    LOWER = "lower it"  # a number not above the user's own, or false
    ON = "switch it on"
    INSIDE = "a folder inside the project"


def option(
    default: Any, about: str, *, choices: tuple[str, ...] = (),
    check: Callable[[Any], str] | None = None, secret: bool = False, project: Project = Project.NO,
) -> Any:  # fmt: skip
    """Declare an option. `check` returns what was expected, or "" for a valid value. A `secret`
    is never displayed."""
    metadata = {
        "about": about,
        "choices": choices,
        "check": check,
        "secret": secret,
        "project": project,
    }
    return field(default=default, repr=not secret, metadata=metadata)


def _fraction(value: float) -> str:
    return "" if is_number(value, min_=0, max_=1) else "a number from 0 to 1"


def _seconds_of_a_call(value: float) -> str:
    return "" if 0 < value <= 86_400 else "seconds above 0, at most 86400"


def _port(value: int) -> str:
    return "" if value <= 65_535 else "a port, at most 65535"


def _piece_tokens(value: int) -> str:
    return "" if value >= 100 else "at least 100 tokens: each piece of a text is a call of its own"


def _stemmer(value: str) -> str:
    import Stemmer  # the default is not checked, so that it loads nothing

    languages = tuple(sorted(Stemmer.algorithms()))
    return "" if value in languages else _choices(value, languages)


def _names(value: dict[object, object]) -> str:
    texts = all(isinstance(text, str) and text.strip() for pair in value.items() for text in pair)
    return "" if texts else "names and ids that are texts"


def _kinds(value: dict[object, object]) -> str:
    if unknown := [kind for kind in value if kind not in KINDS]:
        return _choices(unknown[0], KINDS)
    return (
        "" if all(isinstance(on, bool) for on in value.values()) else "true or false for each kind"
    )


def _weights(value: dict[object, object]) -> str:
    numbers = all(is_number(weight, min_=0, max_=_MAX_NUMBER) for weight in value.values())
    return (
        ""
        if numbers and value.keys() <= {"keywords", "vectors"}
        else "numbers from 0 for keywords and vectors"
    )


def _intents(value: dict[object, object]) -> str:
    texts = all(isinstance(words, str) and words.strip() for words in value)
    lists = all(
        isinstance(types, list) and all(isinstance(type_, str) for type_ in types)
        for types in value.values()
    )
    return "" if texts and lists else "words, and for each a list of types"


def _agents(value: dict[str, object]) -> str:
    from memory_mesh.core.notes import read_agent  # only a program with such agents needs it

    try:
        for name, given in value.items():
            if not (isinstance(given, str) and given.strip()):  # a path
                read_agent(name, given)
    except InvalidInput as error:
        return f"valid agents: {error}"
    return ""


def _schemas(value: dict[str, object]) -> str:
    from memory_mesh.core.claims.claim import read_schemas  # only a program with schemas needs it

    try:
        read_schemas(value)
    except SettingsError as error:
        return f"valid schemas: {error}"
    return ""


# Only `Options` is instantiated. Generating the methods of the groups too would double the import
# time of this module.
@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ScopeOptions:
    """Whose memories are read and written."""

    agent_id: str = option(
        "YAMO_AGENT", "the agent that reads and writes; the default is the agent without a name",
        project=Project.YES,
    )  # fmt: skip
    user_id: str | None = option(None, "the user whose memories these are")
    session_id: str | None = option(None, "the session that reads and writes", project=Project.YES)
    project: str | None = option(
        None,
        "the project of new memories; searches and lists show it and memories without a project",
        project=Project.YES,
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class StoreOptions:
    """Where memories are stored."""

    store: str | None = option(
        None, "the file or URL of the store; by default memory.db in the home folder"
    )
    store_key: str | None = option(
        None, "the key of a Supabase store; by default from SUPABASE_KEY", secret=True
    )
    db_dir: str | None = option(None, "the folder of a LanceDB store, instead of store")
    preset: str | None = option(
        None,
        "lane: the database and the embedding model of Memory Lane, an older memory of coding "
        "agents, unless they are set otherwise",
        choices=tuple(PRESETS),
    )
    busy_seconds: float = option(30.0, "how long to wait for other processes")
    must_exist: bool = option(
        False,
        "raise `StoreMissing` for a store that does not exist, instead of reading it as empty",
    )
    enable_memory: bool = option(True, "store memories at all")
    deduplicate: bool = option(
        True, "count a text that is stored already instead of storing it again"
    )
    claims: str = option(
        "off",
        "auto: plain statements such as \"Ana works at Acme\" become claims, which supersede "
        "each other",
        choices=("off", "auto"), project=Project.NO,
    )  # fmt: skip
    update_judge: str = option(
        "local",
        "what recognises that a memory changes an older one: local, a small model on this "
        "computer; model, which also asks the language model where the small one is unsure; off",
        choices=("local", "model", "off"),
    )
    predicate_schemas: dict[str, object] | None = option(
        None,
        "how claims exclude each other, by predicate (what they say of a subject): cardinality, "
        "conflict_policy, normalize, dedup_policy",
        check=_schemas,
    )
    duplicate_similarity: float = option(
        0.85,
        "the lowest cosine of two interactions that count as one, if their words say the same",
        check=_fraction,
    )
    max_content_chars: int = option(
        1_000_000, "the longest text of one memory, in characters", project=Project.LOWER
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class PrivacyOptions:
    """What is cleaned and masked before it is stored."""

    redaction: str = option(
        "mask",
        "how personal data and secrets are replaced: mask, pseudonym or off",
        choices=("mask", "pseudonym", "off"),
    )
    redaction_kinds: dict[str, bool] | None = option(
        None, f"false for each kind that is not masked: {', '.join(KINDS)}", check=_kinds
    )
    redact_names: dict[str, str] | None = option(
        None, "names and the ids that replace them", check=_names, secret=True
    )
    program_data_redaction: str = option(
        "secrets",
        "what is masked in the items of a session and the values of a LangGraph store: secrets, or "
        "all that is masked in other memories",
        choices=("secrets", "all"),
    )
    scrub: dict[str, object] | None = option(
        None, "what is removed of a text, such as tags of markup, by group"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class SearchOptions:
    """How memories are found and ranked."""

    ranker: str = option(
        "learnt",
        "how results are ranked: learnt, by a small model; rrf, by reciprocal rank fusion",
        choices=("learnt", "rrf"), project=Project.YES,
    )  # fmt: skip
    search_mode: str = option(
        "recall",
        "what searches leave out: recall, very little; precise, what is probably irrelevant",
        choices=SEARCH_MODES, project=Project.YES,
    )  # fmt: skip
    channel_weights: dict[str, float] | None = option(
        None,
        "weights of keywords and vectors under rrf; 1 each by default",
        check=_weights,
        project=Project.YES,
    )
    min_score_threshold: float = option(
        0.2, "the lowest similarity of what `lane find` shows; with a filter by entity it is 0.15",
        check=_fraction, project=Project.YES,
    )  # fmt: skip
    intent_words: dict[str, list[str]] | None = option(
        None,
        "by words of a query of `lane find`: the types of memories that it asks for",
        check=_intents,
        project=Project.YES,
    )
    stemmer_language: str = option(
        "english",
        "the language whose word endings make no difference",
        check=_stemmer,
        project=Project.YES,
    )
    index_max_memories: int = option(
        100_000,
        "how many memories of a reader in a server store are indexed in the memory of a process; "
        "more are searched by the server",
    )
    index_memory_mb: int = option(
        1024, "how many megabytes the index of a server store may take in each process"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class EmbeddingOptions:
    """What turns texts into vectors."""

    embedder: str = option(
        "local", f"what computes the vectors: {', '.join(EMBEDDERS)}", choices=EMBEDDERS
    )
    embedding_model: str | None = option(
        None, "the model of a remote embedder; by default the provider's usual one"
    )
    embedding_api_key: str | None = option(
        None, "its API key; by default from the provider's own variable", secret=True
    )
    embedding_url: str | None = option(None, "another address that speaks the provider's protocol")
    embedding_fallbacks: str | list[str] | None = option(
        None,
        "tried in order when the embedder fails: a URL that serves the same model, or local, "
        "ollama, lmstudio; by default local, if the server runs the same model, all-MiniLM-L6-v2",
    )
    embedding_allow_local: bool | None = option(None, "allow an address on this machine or network")
    embedding_window: int | None = option(
        None, "how many tokens of a text the model reads; known for the usual models"
    )
    embedding_price: float | None = option(None, "dollars for a million tokens embedded")
    model_path: str | None = option(None, "the folder that holds the local model")
    offline: bool = option(False, "never download the local model", project=Project.ON)
    cache_dir: str | None = option(
        None, "the folder for files that can be downloaded or built again, such as the local model"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LlmOptions:
    """The language model, if there is one."""

    enable_llm: bool = option(True, "use the language model if one is set", project=Project.LOWER)
    llm_provider: str | None = option(
        None, f"who runs the language model: {', '.join(CHAT_PROVIDERS)}", choices=CHAT_PROVIDERS
    )
    llm_model: str | None = option(None, "the name of the language model")
    llm_api_key: str | None = option(
        None,
        "its API key; by default from the provider's own variable, such as OPENAI_API_KEY",
        secret=True,
    )
    llm_base_url: str | None = option(None, "another address that speaks the provider's protocol")
    llm_allow_local: bool | None = option(
        None, "allow an address on this machine or network; on by default for local providers"
    )
    llm_max_tokens: int | None = option(
        None, f"the longest answer in tokens; {DEFAULT_ANSWER_TOKENS} by default"
    )
    llm_input_tokens: int = option(
        3000, "longer texts are sent in pieces of this many tokens", check=_piece_tokens
    )
    llm_timeout: float = option(
        60.0,
        "the longest time of one call in seconds, retries included",
        check=_seconds_of_a_call,
        project=Project.LOWER,
    )
    llm_requests_per_minute: int | None = option(
        None, "the largest number of calls in a minute", project=Project.LOWER
    )
    llm_daily_tokens: int | None = option(
        None, "the largest number of tokens of all calls of a day (UTC)", project=Project.LOWER
    )
    llm_daily_cost: float | None = option(
        None,
        "the highest cost of all calls of a day in dollars; needs the prices",
        project=Project.LOWER,
    )
    llm_price_sent: float | None = option(None, "dollars for a million tokens sent")
    llm_price_received: float | None = option(None, "dollars for a million tokens received")

    @property
    def answer_tokens(self) -> int:
        """The longest answer in tokens."""
        return self.llm_max_tokens or DEFAULT_ANSWER_TOKENS


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class AuditOptions:
    """What the audit chain records."""

    enable_yamo: bool = option(True, "write audit blocks")
    audit_recalls: bool = option(True, "write audit blocks of searches")
    recall_retention_days: int = option(90, "how many days audit blocks of searches are kept")
    audit_key_file: str | None = option(
        None,
        "the file of the key that signs the chains, the same for all writers; by default audit.key "
        "in the home",
    )
    audit_anchor: str | None = option(
        None, "a file or URL to which the maintenance jobs (`heartbeat`) write the last blocks"
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class LearningOptions:
    """Lessons, decay, skills and heritage."""

    enable_wisdom_distillation: bool = option(
        False, "derive lessons from failures in the maintenance jobs (`heartbeat`)"
    )
    lesson_min_confidence: float = option(
        0.7, "lessons with less confidence are not returned", check=_fraction
    )
    lesson_retention_days: int = option(365, "lessons not seen for this many days are archived")
    decay_enabled: bool = option(
        False,
        "let the maintenance jobs (`heartbeat`) archive weak memories and consolidate; otherwise "
        "they only report them",
    )
    skill_directories: str | list[str] | None = option(None, "folders of skill files")
    enable_heritage_tracking: bool = option(
        False, "record what led to a memory, its heritage, when it is added"
    )
    max_heritage_depth: int = option(5, "how many entries of a heritage are kept")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class HookOptions:
    """What is called after every change."""

    writethrough: str | list[str] | None = option(
        None,
        "hooks: folders for Markdown files, and URLs that events are posted to; in Python "
        "also functions",
        secret=True,
    )
    writethrough_allow_local: bool = option(False, "allow URLs of hooks on this machine or network")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class FolderOptions:
    """Folders of Markdown files."""

    notes_dir: str | None = option(
        None,
        "the folder of notes, which every search then reads too; for mesh.notes .rawko/memories "
        "by default",
        project=Project.INSIDE,
    )  # fmt: skip
    note_agents: dict[str, object] | None = option(
        None,
        "by agent: max_injected, min_importance and specialty (tags) of its notes, or the path of "
        "its YAML file",
        check=_agents,
    )  # fmt: skip
    note_closeness: float = option(
        0.5, "the lowest cosine of a plain-language pattern of a note and a task that it matches",
        check=_fraction, project=Project.YES,
    )  # fmt: skip
    note_extraction_every: int = option(
        1, "extract a note of one in so many runs of an agent", project=Project.YES
    )
    traces_dir: str | None = option(
        None,
        "the folder of execution traces and of the experience log; if not set, traces in the home "
        "folder for its memory.db, and memory.db-traces beside any other one",
    )
    trace_similarity: float = option(
        0.75,
        "the lowest cosine of two goals of traces that are consolidated together",
        check=_fraction,
        project=Project.YES,
    )


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class HostOptions:
    """Hooks of coding agents."""

    host_seconds: float = option(
        2.5, "how long a hook may take until it answers empty", check=_seconds_of_a_call
    )
    host_idle_seconds: float = option(
        900.0,
        "how long the process that answers hooks waits for the next one; with 0, none is used",
    )
    host_max_tokens: int = option(2000, "the longest text of memories that a hook adds, in tokens")


@dataclass(frozen=True, kw_only=True, init=False, repr=False, eq=False)
class ServerOptions:
    """The REST server."""

    server_host: str = option(
        "127.0.0.1", "the address that `serve` listens on; one that others can reach needs a token"
    )
    server_port: int = option(8710, "the port that `serve` listens on", check=_port)
    server_names: str | list[str] | None = option(
        None,
        "further names of the server that the header Host may have, such as memory.example.org",
    )
    server_max_body: int = option(8_388_608, "the largest body of a request, in bytes")
    server_max_stream: int = option(
        268_435_456, "the largest body of a streamed ingestion, in bytes"
    )
    server_requests_per_minute: int = option(6000, "how many requests a token may make in a minute")
    server_agent_writes_per_day: int | None = option(
        None, "how many writes the server accepts from an agent in a day (UTC)"
    )
    server_threads: int = option(8, "how many requests are worked on at once")
    server_heartbeat_seconds: float = option(
        3600.0, "how often the server runs the maintenance jobs that are due; 0 never runs them"
    )
    server_max_connections: int = option(
        1000,
        "how many connections may be open; never more than half of the files that the process "
        "may open",
    )
    server_wait_seconds: float = option(
        30.0,
        "how long the server waits for the headers of a request, and for a body that is slower "
        "than 1 KiB a second",
        check=_seconds_of_a_call,
    )
    server_shutdown_seconds: float = option(
        30.0, "how long requests may take after the server was asked to end"
    )


@dataclass(frozen=True, kw_only=True, repr=False)
class Options(
    ServerOptions, HostOptions, FolderOptions, HookOptions, LearningOptions, AuditOptions,
    LlmOptions, EmbeddingOptions, SearchOptions, PrivacyOptions, StoreOptions, ScopeOptions,
):  # fmt: skip
    """All options, in the order of this module: fields of the last base come first. Constructing
    it validates every value."""

    def __post_init__(self) -> None:
        for name in NAMES:
            value = getattr(self, name)
            if value != BY_NAME[name].default:
                object.__setattr__(self, name, validate(name, value))

    def __repr__(self) -> str:
        given = (name for name in NAMES if getattr(self, name) != BY_NAME[name].default)
        return f"Options({', '.join(f'{name}={self.shown(name)}' for name in given)})"

    def shown(self, name: str) -> str:
        """Return the value of an option for display, without secrets and the passwords of URLs."""
        value = getattr(self, name)
        if value is None:
            return "-"
        if BY_NAME[name].metadata["secret"]:
            return "(set, not shown)"
        return (
            shown_url(value)
            if isinstance(value, str) and "://" in value
            else without_passwords(str(value))
        )


BY_NAME: Mapping[str, Field[Any]] = {f.name: f for f in fields(Options)}
NAMES = tuple(BY_NAME)
SCOPE_NAMES = tuple(f.name for f in fields(ScopeOptions))
EMBEDDING_NAMES = tuple(f.name for f in fields(EmbeddingOptions))

# What each type accepts, in words and as a check.
_TYPES: Mapping[type, tuple[str, Callable[[Any], bool]]] = {
    str: ("a non-empty text", lambda value: isinstance(value, str) and bool(value.strip())),
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: (
        "a whole number from 1, at most 10^12",
        lambda value: isinstance(value, int) and is_number(value, min_=1, max_=_MAX_NUMBER),
    ),
    float: (
        "a number from 0, at most 10^12",
        lambda value: isinstance(value, float) and 0 <= value <= _MAX_NUMBER,
    ),
    list: (
        "a text or a list of texts",
        lambda value: (
            isinstance(value, str)
            or (isinstance(value, list) and all(isinstance(item, str) for item in value))
        ),
    ),
    dict: ("a table (in the environment: a JSON object)", lambda value: isinstance(value, dict)),
}


_NAMES_OF_STORE = ("path", "file", "url", "uri", "db", "database")  # in other libraries


def checked_name(name: str) -> str:
    """Return the name of the option that a name stands for, or raise a `SettingsError` that
    suggests the nearest one."""
    if (known := ALIASES.get(name, name)) in BY_NAME:
        return known
    near = "store" if name in _NAMES_OF_STORE else nearest(name, NAMES)
    raise SettingsError(
        f"unknown option {shown(name)}",
        remedy=f"did you mean {near!r}?" if near else "see memory-mesh config show",
    )


def by_option(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return values by the names of their options, or raise a `SettingsError` if two names stand
    for one."""
    named: dict[str, str] = {}
    for name in given:
        if (other := named.setdefault(checked_name(name), name)) != name:
            raise SettingsError(
                f"both {other} and {name} are given",
                expected="one of them: they are the same option",
            )
    return {option: given[name] for option, name in named.items()}


def validate(name: str, value: Any) -> Any:
    """Return the value as the option stores it, or raise a `SettingsError` that says what was
    expected."""
    metadata, kind = BY_NAME[checked_name(name)].metadata, kind_of(name)
    if kind is float and type(value) is int and abs(value) <= _MAX_NUMBER:
        value = float(value)
    description, accepts = _TYPES[kind]
    expected = "" if accepts(value) else description
    if metadata["choices"] and value not in metadata["choices"]:
        expected = _choices(value, metadata["choices"])
    if not expected and metadata["check"]:
        expected = metadata["check"](value)
    if expected:
        given = "" if metadata["secret"] else f" {shown(value)}"
        raise SettingsError(f"{name}{given} is not valid", expected=expected)
    return value


def kind_of(name: str) -> type:
    """Return the Python type of an option's values: `list` for a path or list of paths, `float`
    also for whole numbers."""
    annotation: Any = BY_NAME[name].type
    parts = get_args(annotation) if isinstance(annotation, UnionType) else [annotation]
    kinds: list[type] = [get_origin(part) or part for part in parts if part is not NoneType]
    return list if list in kinds else kinds[0]


def _choices(value: object, choices: tuple[str, ...]) -> str:
    return "; ".join(filter(None, (f"one of {', '.join(choices)}", suggestion(value, choices))))
