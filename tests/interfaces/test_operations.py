"""The table of operations agrees with the mesh in methods, parameters, types and defaults, and
exposes nothing local."""

import ast
import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from inspect import Parameter as Declared
from inspect import getmembers, isfunction, signature
from os import PathLike
from pathlib import Path
from types import FunctionType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import pytest

from memory_mesh.api.graph_methods import MemoryGraph
from memory_mesh.api.lane_methods import MemoryLane
from memory_mesh.api.mesh_methods import Mesh
from memory_mesh.api.notes_methods import MemoryNotes
from memory_mesh.api.traces_methods import MemoryTraces
from memory_mesh.core.audit import OPERATIONS as AUDIT_OPERATIONS
from memory_mesh.core.intake import TAXONOMY
from memory_mesh.core.lane.scoring import FEEDBACK
from memory_mesh.core.learning import SEVERITIES, LessonContext
from memory_mesh.core.model import MemoryType, Status
from memory_mesh.core.options import SEARCH_MODES
from memory_mesh.flows.learning.heartbeat import JOBS
from memory_mesh.flows.learning.lessons import ORDERS
from memory_mesh.flows.search.search import RANKERS
from memory_mesh.interfaces import operation as operation_types
from memory_mesh.interfaces import verbs
from memory_mesh.interfaces.calling import VIEWS
from memory_mesh.interfaces.cli import handlers
from memory_mesh.interfaces.operation import (
    LOCAL_KINDS,
    Effect,
    Extent,
    Interface,
    Kind,
    Operation,
    Parameter,
)
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.interfaces.render import graph, memories, output, records
from memory_mesh.interfaces.verbs import GROUPS, JSON, TARGET, YES

from .conftest import learnt

# The faces, by what the names of their methods begin with in the table.
FACES: dict[str, type] = {
    "": Mesh,
    "graph.": MemoryGraph,
    "lane.": MemoryLane,
    "notes.": MemoryNotes,
    "traces.": MemoryTraces,
}
# Methods that are no operation, each with the reason.
NO_OPERATION = {
    "init": "every interface opens the mesh as a context manager",
    "close": "and closes it so",
    "scoped": "the flags of the target choose the scope",
    "ingest": "another name of add",
    "clear_cache": "the cache of a command ends with the command",
    "get_cache_stats": "and is empty when it begins",
    "delete": "erase is delete with the proof, which tells whether the id was known",
    "import_memories": "a handler opens the file",
    "import_file": "likewise",
    "evaluate": "likewise, and adds the files of the store",
    "get_memories_by_pattern": "lessons shows them with their rules",
    "get_skill": "get shows skills too",
    "graph.init": "every interface opens the mesh as a context manager",
    "graph.close": "and closes it so",
    "graph.scoped": "the flags of the target choose the scope",
    "graph.search_many": "and one query at a time",
    "graph.store_many": "and one memory at a time",
    "graph.evolve": "update writes the next revision of a memory",
    "graph.extract": "extract does it for the agent of the mesh",
    "graph.ingest": "another name of extract",
    "graph.clusters": "a shell has no use for groups of ids",
    "graph.explain_supersession": "explain shows the chain",
    "lane.init": "every interface opens the mesh as a context manager",
    "lane.close": "and closes it so",
    "lane.scoped": "the flags of the target choose the scope",
    "lane.session_context": "hosts ask for it at the start of a session",
    "notes.init": "every interface opens the mesh as a context manager",
    "notes.close": "and closes it so",
    "notes.scoped": "the flags of the target choose the scope",
    "notes.find_relevant": "notes inject prints what it returns",
    "notes.format_for_prompt": "likewise",
    "notes.extract": "notes extract --dry-run shows it",
    "notes.save": "takes what an extraction returned",
    "notes.refresh": "notes watch calls it again and again",
    "notes.feedback": "agents rate the notes that they used",
    "traces.init": "every interface opens the mesh as a context manager",
    "traces.close": "and closes it so",
    "traces.scoped": "the flags of the target choose the scope",
    "traces.run": "likewise",
    "traces.log_experience": "trace record writes the log too",
    "traces.experiences": "the log is a file to read",
    "lane.on_session_event": "hosts call it with a transcript, by `host`",
}
# Parameters of methods that no entry offers, each with the reason.
NO_PARAMETER = {
    "changes seconds": "the heartbeat compares what waits longer",
    "graph.auto_compress method": "there is one",
    "lane.store entities": "the slugs suffice",
    "lane.store decay_factor": "it is computed when the memory is found",
    "lane.store provenance": "a person who types is the source",
    **dict.fromkeys(("user_id", "agent_id", "session_id"), "a flag of the target"),
    **dict.fromkeys(
        ("graph.context rerank", "graph.search rerank"),
        "weights are for programs that measure their effect",
    ),
    "graph.search status_filter": "the flags include_… name the statuses",
    "graph.summarize_episode store": "an entry of its own",
    **dict.fromkeys(
        ("traces.similar time_window", "traces.similar archived"),
        "the command makes the range of times",
    ),
    **dict.fromkeys(
        (f"traces.record {name}" for name in ("agents", "recovered", "tool_results", "timestamp")),
        "for programs",
    ),
    **dict.fromkeys(
        (f"traces.{name} project" for name in ("get_all", "plan_context", "record", "similar")),
        "likewise",
    ),
    **dict.fromkeys(("traces.consolidate project", "traces.archive project"), "likewise"),
    "verify anchor": "a path of the server",
    "progress": "given by the interface",
    "use_cache": "a command has no earlier searches",
    "heartbeat_log limit": "the command shows the latest",
    "auditor": "an entry of its own, which no server exposes",
    "source_file_path": "a handler opens the file",
}
BY_METHOD = [operation for operation in OPERATIONS if operation.method]
ANY_KIND = {
    # the types that a value of a kind may have
    Kind.TEXT: {str}, Kind.INPUT: {str}, Kind.WORDS: {str}, Kind.INTEGER: {int},
    Kind.FRACTION: {float}, Kind.OBJECT: {Mapping}, Kind.SWITCH: {bool}, Kind.DURATION: {float},
    Kind.HEAD: {tuple}, Kind.PATH: {str}, Kind.URL: {str}, Kind.TIME: {str},
}  # fmt: skip


def public(face: type, prefix: str = "") -> set[str]:
    return {prefix + name for name, _ in getmembers(face, isfunction) if not name.startswith("_")}


def every_method() -> set[str]:
    return set().union(*(public(face, prefix) for prefix, face in FACES.items()))


def method_of(operation: Operation) -> Callable[..., object]:
    prefix, dot, name = operation.method.rpartition(".")
    method: Callable[..., object] = getattr(FACES[prefix + dot], name)
    return method


def unlisted(face: type, prefix: str = "") -> set[str]:
    """Methods that are neither in the table nor excused."""
    used = {
        name for operation in OPERATIONS for name in (operation.method, operation.formatter) if name
    }
    return public(face, prefix) - used - NO_OPERATION.keys()


def types_of(annotation: object) -> set[object]:
    """The classes that an annotation admits."""
    if get_origin(annotation) in (Union, UnionType):
        return set().union(*(types_of(one) for one in get_args(annotation)))
    return {get_origin(annotation) or annotation}


def mismatches(operation: Operation) -> Iterator[str]:
    """What an entry says differently from the method that it calls."""
    method = method_of(operation)
    declared, hints = signature(method).parameters, get_type_hints(method)
    for parameter in operation.parameters:
        name = (*parameter.instead_of, parameter.into or parameter.name)[0]
        if parameter.option:
            continue
        if name not in declared:
            yield f"{operation.method} has no parameter {name}"
        elif parameter.into:
            if not types_of(hints[name]) & {Mapping}:
                yield f"{name} takes no object"
        elif parameter.instead_of:
            if not types_of(hints[name]) & {Sequence}:
                yield f"{name} takes no list"
        else:
            yield from _differences(parameter, declared[name], types_of(hints[name]))


def _differences(parameter: Parameter, declared: Declared, types: set[object]) -> Iterator[str]:
    if parameter.required != (declared.default is Declared.empty):
        yield f"{parameter.name} is required in one of them only"
    elif not parameter.required and parameter.default != declared.default:
        yield f"{parameter.name} is {declared.default!r} by default, not {parameter.default!r}"
    given = {type(value) for value in parameter.choices.values()} or ANY_KIND[parameter.kind]
    given = (
        {sequence for sequence in types if str(sequence).endswith(("Sequence'>", "Iterable'>"))}
        if parameter.repeated
        else given
    )
    types = types | {int} if float in types else types
    if not given or not given <= types:
        yield f"{parameter.name} is of type {types}, not {given}"


# --- methods ---


@pytest.mark.parametrize(("prefix", "face"), FACES.items())
def test_every_method_of_a_face_is_listed_or_excused(prefix: str, face: type) -> None:
    assert unlisted(face, prefix) == set()
    assert NO_OPERATION.keys() <= every_method()


def test_a_method_that_the_table_does_not_list_is_found() -> None:
    class Larger(Mesh):
        def search(self) -> None: ...  # type: ignore[override]

        def forecast(self) -> None: ...

    assert unlisted(Larger) == {"forecast"}
    assert unlisted(Larger, "graph.") >= {"graph.forecast", "graph.stats"}


def test_every_method_view_and_handler_that_is_named_exists() -> None:
    for operation in OPERATIONS:
        assert {operation.method, operation.formatter} - {""} <= every_method()
        names = vars(handlers) if operation.handler else VIEWS
        name = operation.handler or operation.view
        assert callable(names[name]), operation.name
        assert not name.startswith("_")


def test_every_view_is_used() -> None:
    modules = {module.__name__ for module in (memories, records, graph)}
    views = {
        name
        for name, one in VIEWS.items()
        if isinstance(one, FunctionType | partial)
        and "call" in signature(one).parameters
        and name[0] != "_"
    }
    trees = [ast.parse(path.read_text()) for path in Path(handlers.__file__).parent.glob("*.py")]
    imports = [
        node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)
    ]
    by_handlers = {one.name for node in imports if node.module in modules for one in node.names}
    named = {operation.view for operation in OPERATIONS if operation.view}
    assert named | (views & by_handlers) == views


# --- parameters ---


@pytest.mark.parametrize("operation", BY_METHOD, ids=lambda one: one.name)
def test_an_entry_agrees_with_the_method_that_it_calls(operation: Operation) -> None:
    assert list(mismatches(operation)) == []


@pytest.mark.parametrize("operation", BY_METHOD, ids=lambda one: one.name)
def test_an_entry_offers_every_parameter_of_its_method_or_it_is_excused(
    operation: Operation,
) -> None:
    offered = {parameter.into or parameter.name for parameter in operation.parameters} | {
        *operation.reader,
        *operation.fixed,
    }
    missing = signature(method_of(operation)).parameters.keys() - offered - {"self"}
    assert {
        name for name in missing if not {name, f"{operation.method} {name}"} & NO_PARAMETER.keys()
    } == set()


@pytest.mark.parametrize(
    ("parameter", "wrong"),
    [
        (Parameter("colour", "x"), "no parameter colour"),
        (Parameter("limit", "x", kind=Kind.INTEGER, default=11), "is 10 by default, not 11"),
        (Parameter("limit", "x", kind=Kind.INTEGER, required=True), "required in one of them"),
        (Parameter("limit", "x", default=10), "is of type"),
        (Parameter("status", "x", default=("active",)), "is of type"),
        (Parameter("x", "x", into="query"), "takes no object"),
        (Parameter("x", "x", instead_of=("limit",)), "takes no list"),
        (Parameter("x", "x", instead_of=("colour",)), "no parameter colour"),
    ],
    ids=lambda one: one if isinstance(one, str) else one.name,
)
def test_an_entry_that_disagrees_is_found(parameter: Parameter, wrong: str) -> None:
    search = next(operation for operation in OPERATIONS if operation.name == "search")
    (found,) = mismatches(replace(search, parameters=(parameter,)))
    assert wrong in found


def test_a_client_of_a_server_names_a_user_or_an_agent_only_to_forget_it() -> None:
    for operation in OPERATIONS:
        if operation.method and operation.exposed & {Interface.REST, Interface.MCP}:
            named = {one.name for one in operation.parameters if not one.scope}
            allowed = {"agent_id"} if operation.name.startswith("audit") else set[str]()
            assert named & {"user_id", "agent_id"} <= allowed, operation.name
            assert not {"user_id", "agent_id"} & operation.fixed.keys()


def test_the_choices_are_those_of_the_code() -> None:
    choices = {
        (operation.name, parameter.name): tuple(parameter.choices)
        for operation in OPERATIONS for parameter in operation.parameters if parameter.choices
    }  # fmt: skip
    assert choices["list", "status"] == tuple(Status)
    assert choices["delete-all", "memory_type"] == tuple(MemoryType)
    assert choices["search", "ranker"] == tuple(RANKERS)
    assert choices["search", "mode"] == SEARCH_MODES
    assert choices["lane store", "memory_type"] == TAXONOMY
    assert choices["lane feedback", "signal"] == tuple(FEEDBACK)
    assert choices["distill-lesson", "severity"] == tuple(SEVERITIES)
    assert choices["audit log", "operation"] == tuple(AUDIT_OPERATIONS)
    assert choices["heartbeat", "jobs"] == tuple(job.name for job in JOBS)
    assert {*choices["lessons", "order_by"]} == {*ORDERS} - {None}


def test_the_keys_of_a_lesson_are_fields_of_the_lesson() -> None:
    lesson = next(operation for operation in OPERATIONS if operation.name == "distill-lesson")
    keys = {parameter.name for parameter in lesson.parameters if parameter.into}
    assert keys <= LessonContext.__dataclass_fields__.keys()


def test_an_auditor_is_never_exposed_by_a_server() -> None:
    """The texts of every scope are shown on this machine only."""
    with_auditor = [
        one
        for one in OPERATIONS
        if any(parameter.name == "auditor" for parameter in one.parameters)
    ]
    assert {one.method for one in with_auditor} == {"audit_log", "audit_export"}
    assert all(one.exposed == {Interface.CLI} for one in with_auditor)


# --- the table itself ---


def test_a_name_and_a_flag_stand_once() -> None:
    names = [operation.name for operation in OPERATIONS]
    assert len(names) == len(set(names))
    for operation in OPERATIONS:
        words = [parameter.word for parameter in operation.parameters]
        assert len(words) == len(set(words)), operation.name
        assert not {JSON.word, YES.word, TARGET["store"].word, "--help"} & set(words), (
            operation.name
        )
        assert all(
            parameter.positional or parameter.word.startswith("--")
            for parameter in operation.parameters
        )


def test_only_the_last_positional_parameter_takes_several_words() -> None:
    for operation in OPERATIONS:
        *earlier, _ = [
            None,
            *(parameter for parameter in operation.parameters if parameter.positional),
        ]
        assert not any(one and (one.repeated or one.kind is Kind.WORDS) for one in earlier), (
            operation.name
        )


def test_every_command_has_a_heading_and_examples_and_every_group_has_commands() -> None:
    for command, (operation, *_) in verbs.COMMANDS.items():
        assert operation.heading
        assert all(example.startswith(command) for example in operation.examples)
    inner = {command.split()[0] for command, _ in verbs.COMMANDS.items() if " " in command}
    assert inner == GROUPS.keys()


def test_what_deletes_says_so() -> None:
    destructive = {
        operation.name for operation in OPERATIONS if operation.effect is Effect.DESTRUCTIVE
    }
    assert destructive == {
        operation.name
        for operation in OPERATIONS
        if operation.name.startswith(("decay", "delete", "forget"))
    }


# Those that need more than a memory, or read a text from standard input; test_remote.py has what
# reads.
NOT_HERE = {
    "extract", "search-for-model", "episode-summary", "episode-digest", "junk", "confirm-change",
    "undo-change",
}  # fmt: skip
ON_THE_COMMAND_LINE = [
    one
    for one in OPERATIONS if one.exposed == set(Interface) and one.extent is Extent.READER
    and one.name not in NOT_HERE
]  # fmt: skip


@pytest.mark.parametrize("operation", ON_THE_COMMAND_LINE, ids=lambda one: one.name)
def test_what_reads_works_on_a_read_only_store_and_what_writes_does_not(
    cli, operation: Operation
) -> None:
    id_ = cli("store", "--content", "The deploy key rotates.", "--store", "sqlite:///ro.db").id
    skill_id, lesson_id = learnt(cli, "--store", "sqlite:///ro.db")
    if operation.name == "end-session":  # it writes only if there is something to archive
        cli(
            "store", "a turn", "--type", "session", "--session", "s42", "--store", "sqlite:///ro.db"
        )
    first = verbs.COMMANDS[operation.command][0]
    words = next(line for line in first.examples if operation.switch in line and "<" not in line)
    words = first.examples[-1] if operation.name == "distill-lesson" else words
    words = re.sub(
        r"skill_\d\w+", skill_id, re.sub(r"lesson_\d\w+", lesson_id, re.sub(r"mem_\w+", id_, words))
    )
    said = cli(*shlex.split(words), "--store", "sqlite:///ro.db?mode=ro")
    assert said.code == (0 if operation.effect is Effect.READ else 8), said.err


def test_the_table_is_plain_data_without_imports_of_ours() -> None:
    trees = [
        ast.parse(Path(module.__file__ or "").read_text(encoding="utf-8"))
        for module in (operation_types, verbs)
    ]
    named = {
        node.module or ""
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
    }
    assert {name for name in named if name.startswith("memory_mesh")} == {
        "memory_mesh.interfaces.operation"
    }


def test_the_exit_codes_of_the_help_are_those_of_the_table() -> None:
    for exit_code, _ in output.OUTCOMES.values():
        assert str(exit_code) in output.EXIT_CODES.split()


# --- servers ---

LOCAL_NAMES = {
    "paths",
    "path",
    "file",
    "out",
    "html",
    "questions",
    "folder",
    "dir",
    "url",
    "store",
    "from_store",
    "to_store",
    "to_file",
}


def test_what_names_a_place_of_this_machine_is_of_a_local_kind() -> None:
    for operation in OPERATIONS:
        hints = get_type_hints(method_of(operation)) if operation.method else {}
        for parameter in (*operation.parameters, *TARGET.values()):
            local = parameter.name in LOCAL_NAMES or PathLike in types_of(hints.get(parameter.name))
            assert local == (parameter.kind in LOCAL_KINDS), (operation.name, parameter.name)


def test_no_server_takes_a_path_a_url_or_a_handler() -> None:
    exposed = [operation for operation in OPERATIONS if operation.exposed - {Interface.CLI}]
    assert {operation.name for operation in exposed} >= {"search", "store"}
    for operation in exposed:
        assert not operation.handler
        assert not any(parameter.kind in LOCAL_KINDS for parameter in operation.parameters)


@pytest.mark.parametrize("kind", sorted(LOCAL_KINDS))
def test_an_entry_that_would_expose_this_machine_cannot_be_made(kind: Kind) -> None:
    local = Parameter("place", "x", kind=kind)
    entry = Operation(name="x", summary="x", method="stats", view="stats", parameters=(local,))
    assert entry.exposed == {Interface.CLI}
    with pytest.raises(ValueError, match="cannot be exposed"):
        replace(entry, exposed=frozenset(Interface))
    with pytest.raises(ValueError, match="cannot be exposed"):
        Operation(name="x", summary="x", handler="demo", exposed=frozenset({Interface.MCP}))


def test_an_entry_has_a_method_and_a_view_or_a_handler() -> None:
    for wrong in ({}, {"method": "stats"}, {"method": "stats", "view": "stats", "handler": "demo"}):
        with pytest.raises(ValueError, match="needs a method"):
            Operation(name="x", summary="x", **wrong)  # type: ignore[arg-type]
