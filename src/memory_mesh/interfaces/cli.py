"""The command line, generated from the table of operations: it parses the words, calls one operation and prints the answer.

argparse reads the words. It was chosen by measurement (docs/cli.md), and only the parser of the command at hand is built.
"""

import json
import re
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NoReturn

from memory_mesh.core.errors import InvalidInput
from memory_mesh.interfaces import render
from memory_mesh.interfaces.operations import COMMANDS, GROUPS, JSON, TARGET, YES, Kind, Operation, Parameter, parameters
from memory_mesh.interfaces.render import Answer
from memory_mesh.interfaces.values import Call, Target, confirm, did_you_mean, merged, read

_HELP = {"--help", "-h"}
_ROOT_FLAGS = {
    "--version": "show the version",
    "--debug": "show the traceback of an unexpected error",
    "--help": "show this help; after a command, the help of that command",
}
_HEADINGS = ((re.compile(r"^(?:usage|[A-Z][a-z ]+):(?=$| memory-mesh)", re.MULTILINE), "1"),)


def dispatch(words: list[str]) -> int:
    """Run the command that the words name, or show help, and return the exit code."""
    if not words or words[0] in _HELP:
        return _print(root_help())
    command, rest = _resolve(words)
    if command in GROUPS:
        return _print(group_help(command))
    flags, positional = _arrange(command, rest)
    if _HELP & set(flags):
        return _print(command_help(command))
    call = _parse(command, flags, positional)
    return render.show(execute(call), as_json=call.as_json)


def _resolve(words: list[str]) -> tuple[str, list[str]]:
    """Return the command and the words after it; for a group alone, or followed by a help flag, the group."""
    first, rest = words[0], words[1:]
    if first in GROUPS:
        if not rest or rest[0] in _HELP:
            return first, []
        first, rest = f"{first} {rest[0]}", rest[1:]
    if first in COMMANDS:
        return first, rest
    from memory_mesh.core.errors import NOT_YET, not_yet

    if first in NOT_YET:
        raise not_yet(first)
    kind, known = ("flag", [*_ROOT_FLAGS]) if first.startswith("-") else ("command", [*COMMANDS, *GROUPS])
    raise InvalidInput(f"unknown {kind} {first!r:.60}", remedy=did_you_mean(first, known) or "see memory-mesh --help")


# --- parsing ---


def _arrange(command: str, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the words behind a command into flags, each joined to its value with `=`, and positional words.

    argparse by itself takes a value that begins with a dash for a flag, and does not accept flags between positional words.
    """
    known = parameters(command)
    takes_value = {one.word: one.kind is not Kind.SWITCH for one in known if not one.positional} | dict.fromkeys(_HELP, False)
    flags: list[str] = []
    positional: list[str] = []
    rest = iter(words)
    for word in rest:
        flag, equals, _ = word.partition("=")
        if word == "--":
            positional += rest
        elif not word.startswith("-") or word == "-":
            positional.append(word)
        elif flag not in takes_value:
            hint = did_you_mean(flag, takes_value) or f"see memory-mesh {command} --help"
            raise InvalidInput(f"unknown flag {flag!r:.60}", remedy=hint)
        else:
            value = next(rest, None) if takes_value[flag] and not equals else None
            flags.append(word if value is None else f"{word}={value}")
    for word in positional:
        _refuse_json(command, word, takes_value)
    return flags, positional


def _refuse_json(command: str, word: str, takes_value: Mapping[str, bool]) -> None:
    try:
        value = json.loads(word) if word.lstrip()[:1] in ("{", "[") else None
    except (ValueError, RecursionError):
        return
    if value is not None:
        keys = value if isinstance(value, dict) else ()
        flags = [f"--{key} …" for key in keys if takes_value.get(f"--{key}")]
        remedy = f"write memory-mesh {command} {' '.join(flags or ['--help'])}"
        raise InvalidInput("JSON is given instead of flags", expected="named flags", remedy=remedy)


def _parse(command: str, flags: Sequence[str], positional: Sequence[str]) -> Call:
    """Read the values, and choose the operation by the given flags."""
    entries, known = COMMANDS[command], parameters(command)
    if positional and not any(one.positional for one in known):
        raise InvalidInput(f"unexpected word {positional[0]!r:.60}", remedy=f"see memory-mesh {command} --help")
    given = vars(_parser(command).parse_args([*flags, "--", *positional] if positional else [*flags]))
    values = {one.word: _value(one, given[one.word]) for one in known if given[one.word] not in (None, [], False)}
    entry = _chosen(entries, values)
    target = {name: str(values[TARGET[name].word]) for name in entry.target if TARGET[name].word in values}
    call = Call(
        operation=entry,
        target=Target(**target),
        arguments=_arguments(entry, values),
        options={one.name: values[one.word] for one in entry.parameters if one.option and one.word in values},
        as_json=JSON.word in values,
    )
    if entry.confirm:
        _confirm(call, agreed=YES.word in values)
    return call


def _value(parameter: Parameter, given: str | list[str]) -> object:
    if parameter.kind is Kind.SWITCH:
        return not parameter.default
    if isinstance(given, str):
        return read(parameter, given)
    return " ".join(given) if parameter.kind is Kind.WORDS else [read(parameter, text) for text in given]


def _chosen(entries: tuple[Operation, ...], values: Mapping[str, object]) -> Operation:
    """Return the variant whose flag, or one of whose keys, is given; else the operation itself."""
    for entry in entries[1:]:
        if entry.switch in values or (not entry.switch and any(one.into and one.word in values for one in entry.parameters)):
            return entry
    return entries[0]


def _arguments(entry: Operation, values: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of the method. A parameter that is a key of an object goes into that object."""
    plain = [one for one in entry.parameters if not (one.into or one.option)]
    arguments = {one.name: values.get(one.word, one.default if entry.handler else one.cli_default) for one in plain}
    arguments = {name: value for name, value in arguments.items() if value is not None}
    words = {one.name: one.word for one in plain}
    for into in {one.into for one in entry.parameters if one.into}:
        keys = {one.name: values[one.word] for one in entry.parameters if one.into == into and one.word in values}
        if keys:
            arguments[into] = merged(words.get(into, into), arguments.get(into), keys)
    return arguments


def _confirm(call: Call, *, agreed: bool) -> None:
    given = ", ".join(f"{name} {value}" for name, value in call.arguments.items())
    if not given:
        flags = ", ".join(one.word for one in call.operation.parameters)
        raise InvalidInput(f"{call.operation.command} has no scope", expected=f"one of {flags}")
    if not agreed:
        confirm(call.operation.confirm.format(given=given))


# --- calling ---


def execute(call: Call) -> Answer:
    """Run an operation by its handler, or by the method of the mesh and its view."""
    operation = call.operation
    if operation.handler:
        from memory_mesh.interfaces import handlers

        handle: Callable[[Call], Answer] = getattr(handlers, operation.handler)
        return handle(call)
    from memory_mesh.interfaces import views

    view: Callable[..., Answer] = getattr(views, operation.view)
    with call.target.mesh() as mesh, render.progress(operation.progress) as progress:
        extra = {"progress": progress} if operation.progress else {}
        result = getattr(mesh, operation.method)(**call.arguments, **extra)
        if operation.formatter:
            return view(result, getattr(mesh, operation.formatter)(result))
        return view(result, call)


# --- help ---


def root_help() -> str:
    """Return the help of the whole program: every command under its heading."""
    by_heading: dict[str, list[tuple[str, str]]] = {}
    for command, entries in COMMANDS.items():
        by_heading.setdefault(entries[0].heading, []).append((command, _first_sentence(entries[0].summary)))
    width = max(map(len, COMMANDS))
    lines = ["usage: memory-mesh [--version] [--debug] [--help] COMMAND …", "", "Memory for AI agents, with an audit trail."]
    for heading, rows in by_heading.items():
        lines += ["", f"{heading}:", *_rows(rows, width)]
    lines += ["", "Flags:", *_rows(_ROOT_FLAGS.items(), width)]
    return "\n".join(
        [*lines, "", "memory-mesh COMMAND --help shows the flags of a command, with examples.", "", render.EXIT_CODES]
    )


def group_help(group: str) -> str:
    """Return the help of a group of commands."""
    inner = [(command, entries[0].summary) for command, entries in COMMANDS.items() if command.startswith(f"{group} ")]
    rows = _rows(inner, max(len(command) for command, _ in inner))
    return "\n".join([f"usage: memory-mesh {group} COMMAND …", "", GROUPS[group], "", "Commands:", *rows])


def command_help(command: str) -> str:
    """Return the help of a command: its flags, and examples."""
    entries = COMMANDS[command]
    examples = "\n".join(f"  memory-mesh {example}" for example in entries[0].examples)
    return f"{_parser(command).format_help()}\nExamples:\n{examples}"


def about(parameter: Parameter) -> str:
    """Return the help of a parameter, with its choices and its default."""
    choices = f": {', '.join(parameter.choices)}" if parameter.choices else ""
    default = f" (default: {parameter.shown_default})" if parameter.shown_default else ""
    return parameter.help + choices + default


class _Parser(ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise InvalidInput(message, remedy=f"see {self.prog} --help")


def _parser(command: str) -> _Parser:
    parser = _Parser(prog=f"memory-mesh {command}", description=COMMANDS[command][0].summary, add_help=False, allow_abbrev=False)
    own, target = parser.add_argument_group("Flags"), parser.add_argument_group("Which memory")
    for one in parameters(command):
        group, text = target if one in TARGET.values() else own, about(one).replace("%", "%%")
        if one.positional:
            several = one.repeated or one.kind is Kind.WORDS
            group.add_argument(one.word, help=text, nargs=("+" if one.required else "*") if several else None)
        elif one.kind is Kind.SWITCH:
            group.add_argument(one.word, help=text, dest=one.word, action="store_true")
        else:
            action = "append" if one.repeated else "store"
            group.add_argument(
                one.word, help=text, dest=one.word, metavar=one.shown_metavar, action=action, required=one.required
            )
    return parser


def _print(text: str) -> int:
    return render.show(Answer(text=text, data={}, draw=lambda: render.paint(text, _HEADINGS)))


def _rows(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    return [f"  {name:<{width}}  {text}" for name, text in rows]


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].partition("; ")[0].removesuffix(".") + "."
