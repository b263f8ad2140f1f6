"""What REST and MCP have in common: their operations, the schemas of arguments, and calls.

Arguments are JSON values by the names of the parameters. A call is checked, made and rendered by
the code of the command line, so it answers with what `--json` prints there.
"""

from collections.abc import Callable, Collection, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING

from memory_mesh.core.errors import InvalidInput, is_number, shown
from memory_mesh.core.ports import no_progress
from memory_mesh.interfaces.calling import perform
from memory_mesh.interfaces.operation import Effect, Extent, Interface, Kind, Operation, Parameter
from memory_mesh.interfaces.render.output import STORED_VALUES, Answer, Form, without_nulls
from memory_mesh.interfaces.values import DURATION, Call, did_you_mean, method_arguments, read
from memory_mesh.interfaces.verbs import TABLE, completed

if TYPE_CHECKING:
    from memory_mesh.api.mesh_methods import Mesh

Schema = dict[str, object]
OPERATIONS = tuple(map(completed, TABLE))

# Fields of results that describe the machine of the server or its other users; no client sees them.
LOCAL_FIELDS = frozenset({"db_path", "source_file_path", "spent_today", "spent_in_all"})
_MAX_INTEGER = 10**18 - 1
_SCHEMAS: Mapping[Kind, Schema] = {
    Kind.INTEGER: {"type": "integer"},
    Kind.FRACTION: {"type": "number", "minimum": 0, "maximum": 1},
    Kind.OBJECT: {"type": "object"},
    Kind.SWITCH: {"type": "boolean"},
    Kind.TIME: {"type": "string", "anyOf": [{"format": "date"}, {"format": "date-time"}]},
    Kind.DURATION: {"type": "string", "format": "span", "pattern": f"^{DURATION.pattern}$"},
    Kind.HEAD: {"type": "string", "pattern": "^[1-9][0-9]{0,14}:[0-9a-f]{64}$"},
}


def exposed(interface: Interface) -> tuple[Operation, ...]:
    """Return the operations that an interface offers, in the order of the table."""
    return tuple(
        one if interface is Interface.REST else one.variants[0]
        for one in OPERATIONS
        if interface in one.exposed
    )


def name_in(interface: Interface, operation: Operation) -> str:
    """Return the name of an operation in an interface, such as `lane store`."""
    return operation.aliases.get(interface, operation.name)


def headings() -> dict[str, str]:
    """Return the heading of each operation by name: its own, or that of the command it varies."""
    found, heading = {}, ""
    for operation in OPERATIONS:
        heading = found[operation.name] = operation.heading or heading
    return found


def summary(operation: Operation) -> str:
    """Return what an operation does, as a sentence."""
    text = operation.summary[:1].upper() + operation.summary[1:]
    return text if text.endswith(".") else f"{text}."


def schema(operation: Operation) -> Schema:
    """Return the JSON schema of the arguments of an operation. What only one of its variants takes
    is not given with the others."""
    properties = {one.name: _described(one) for one in operation.parameters}
    whole: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    variants = {frozenset(one.name for one in each.parameters): _required(each)
                for each in operation.variants}  # fmt: skip
    first, *others = variants.values()
    if required := [name for name in first if all(name in one for one in others)]:
        whole["required"] = required
    if others:
        # In `allOf`, since generators of clients make no single type of alternatives.
        whole["allOf"] = [{"oneOf": [
            {"required": needed,
             "not": {"anyOf": [{"required": [name]} for name in properties if name not in taken]}}
            for taken, needed in variants.items()
        ]}]  # fmt: skip
    return whole


def call(mesh: "Mesh", operation: Operation, arguments: Mapping[str, object]) -> dict[str, object]:
    """Call an operation for the reader of a mesh, and return the answer as JSON data.

    Raises `InvalidInput` for an unknown, missing or wrong argument, and what the method raises.
    """
    return data_of(answer(mesh, operation, arguments))


def answer(mesh: "Mesh", operation: Operation, arguments: Mapping[str, object]) -> Answer:
    """Call an operation like `call`, and return the answer with its text for people and models."""
    return perform(mesh, prepare(operation, arguments), no_progress)


def data_of(done: Answer) -> dict[str, object]:
    """Return the data of an answer without what is about the server, and without null fields."""
    return {
        name: without_nulls(_without_local(part))
        for name, part in done.data.items()
        if name not in LOCAL_FIELDS
    }


def prepare(operation: Operation, arguments: Mapping[str, object]) -> Call:
    """Check the arguments of a call. Raises `InvalidInput` if one is unknown, missing or of
    another type."""
    operation = _variant(operation, arguments)
    known = {one.name: one for one in operation.parameters}
    for name in arguments:
        if name not in known:
            hint = did_you_mean(str(name), known)
            raise InvalidInput(
                f"unknown argument {shown(name)}",
                expected=", ".join(known) or "no arguments",
                remedy=hint,
            )
    if missing := [name for name in _required(operation) if name not in arguments]:
        raise InvalidInput(
            f"{', '.join(missing)} is missing", expected=", ".join(_required(operation))
        )
    values = {name: _value(known[name], value) for name, value in arguments.items()}
    options = {
        one.name: values[one.name]
        for one in operation.parameters
        if (one.option or one.shared) and one.name in values
    }
    return Call(
        operation=operation,
        arguments=method_arguments(operation, values, attrgetter("name")),
        options=options,
        form=Form.JSON,
    )


def refusal(
    operation: Operation, arguments: Collection[str] = (), *, read_only: bool, limit: Extent
) -> str:
    """Return why a caller may not call an operation with these arguments, or an empty text if it
    may."""
    if read_only and operation.effect is not Effect.READ:
        return "the token is for reading only"
    values = arguments if isinstance(arguments, Mapping) else dict.fromkeys(arguments)
    named = [one for one in operation.parameters if values.get(one.name, False) is not False]
    wide = [Extent.USER if one.scope else one.extent for one in named]
    extent = max([operation.extent, *wide])
    return "" if extent <= limit else _BEYOND[extent]


_BEYOND = {
    Extent.PROJECTS: "it reaches other projects than that of the token",
    Extent.USER: "it reaches other agents than that of the token",
    Extent.SERVER: "it reads or writes files that the users of the server share",
}


# --- parameters ---


def _variant(operation: Operation, arguments: Mapping[str, object]) -> Operation:
    """Return the variant of an operation whose first argument is given, or raise `InvalidInput`
    if that is not exactly one."""
    by_name = {one.parameters[0].name: one for one in operation.variants if one.parameters}
    named = [name for name in by_name if name in arguments]
    if len(by_name) > 1 and len(named) != 1:
        raise InvalidInput(
            f"{' and '.join(by_name)} are {'both given' if named else 'missing'}",
            expected="one of them",
        )
    return by_name[named[0]] if named else operation


def _required(operation: Operation) -> list[str]:
    return [one.name for one in operation.parameters if one.required]


def _described(parameter: Parameter) -> Schema:
    default = parameter.default if parameter.cli_default is None else parameter.cli_default
    one: Schema = dict(_SCHEMAS.get(_kind(parameter), {"type": "string"}))
    if parameter.choices and not parameter.is_yes_no:
        one["enum"] = list(parameter.choices.values())
    elif one == {"type": "integer"}:
        largest = _MAX_INTEGER if parameter.max_ is None else parameter.max_
        one |= {"minimum": parameter.min_, "maximum": largest}
    elif one == {"type": "string"}:
        one |= {} if parameter.max_ is None else {"maxLength": parameter.max_}
        one |= {} if parameter.blank else {"pattern": r"\S"}
    if parameter.kind is Kind.DURATION and default is not None:
        default = parameter.shown_default
    whole: Schema = {"type": "array", "items": one} if parameter.repeated else one
    default_help = f" (default: {parameter.default_help})" if parameter.default_help else ""
    whole = {**whole, "description": parameter.help + default_help}
    return (
        whole
        if default is None
        else {**whole, "default": list(default) if isinstance(default, tuple) else default}
    )


def _kind(parameter: Parameter) -> Kind:
    """Return the kind of the JSON value; the command line has words for true and false."""
    return Kind.SWITCH if parameter.is_yes_no else parameter.kind


def _value(parameter: Parameter, given: object) -> object:
    if not parameter.repeated:
        return _single(parameter, given)
    if not isinstance(given, list):
        raise InvalidInput(f"{parameter.name} is {shown(given)}", expected="a list")
    return [_single(parameter, item) for item in given]


def _single(parameter: Parameter, given: object) -> object:
    """Return a value of the method, or raise `InvalidInput` if the JSON value is of another
    type."""
    expected, accepts = _TYPES.get(_kind(parameter), _TEXT)
    if parameter.kind is Kind.INTEGER and isinstance(given, float) and given.is_integer():
        given = int(given)  # for JSON Schema 20.0 is an integer, too
    if parameter.choices and not parameter.is_yes_no:
        expected = f"one of {', '.join(parameter.choices)}"
        accepts = list(parameter.choices.values()).__contains__
    if not accepts(given):
        raise InvalidInput(f"{parameter.name} is {shown(given)}", expected=expected)
    return read(parameter, str(given)) if parameter.kind in (Kind.DURATION, Kind.HEAD) else given


def _is_integer(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _MAX_INTEGER


_TEXT: tuple[str, Callable[[object], bool]] = ("a text", lambda value: isinstance(value, str))
_TYPES: Mapping[Kind, tuple[str, Callable[[object], bool]]] = {
    Kind.INTEGER: ("a whole number", _is_integer),
    Kind.FRACTION: ("a number from 0 to 1", lambda value: is_number(value, min_=0, max_=1)),
    Kind.OBJECT: ("an object", lambda value: isinstance(value, Mapping)),
    Kind.SWITCH: ("true or false", lambda value: isinstance(value, bool)),
}


def _without_local(value: object) -> object:
    if isinstance(value, Mapping):
        kept = ((name, part) for name, part in value.items() if name not in LOCAL_FIELDS)
        return {
            name: part if name in STORED_VALUES else _without_local(part) for name, part in kept
        }
    return [_without_local(part) for part in value] if isinstance(value, list | tuple) else value
