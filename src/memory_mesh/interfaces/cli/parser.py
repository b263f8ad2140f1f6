"""The command line, made from the table of operations: parse, call one operation, print.

argparse formats the help of a command. It does not read the words: it takes a value that begins
with a dash for a flag, loses the value `--`, and does not accept flags between positional words.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from memory_mesh.core.errors import InvalidInput, MemoryMeshError, shown
from memory_mesh.interfaces.operation import Kind, Operation, Parameter
from memory_mesh.interfaces.render import output
from memory_mesh.interfaces.render.output import Answer, Form
from memory_mesh.interfaces.values import (
    Call,
    Target,
    confirm,
    did_you_mean,
    method_arguments,
    read,
)
from memory_mesh.interfaces.verbs import (
    CHANGE,
    COMMANDS,
    DELETE,
    GROUPS,
    JSON,
    JSONL,
    LEARN,
    MAINTAIN,
    READ,
    REVIEW,
    SETUP,
    STORE,
    TARGET,
    YES,
    entries_of,
    parameters,
)

if TYPE_CHECKING:
    from argparse import ArgumentParser


_HELP = {"--help", "-h"}
_ROOT_FLAGS = {
    "--version": "show the version",
    "--debug": "show the traceback of an unexpected error",
    "--help": "show this help; after a command, the help of that command",
}
# Words of other programs, and what they are here.
_SYNONYMS = {
    "add": "store", "put": "store", "save": "store", "remember": "store", "upsert": "store",
    "ingest": "store", "find": "search", "query": "search", "recall": "search", "ask": "search",
    "show": "get", "ls": "list", "get-all": "list", "rm": "forget", "remove": "forget",
    "erase": "forget", "edit": "update", "set": "update", "version": "--version",
}  # fmt: skip
# What one begins with; `memory-mesh help --all` lists every command.
_FIRST = ("store", "search", "list", "forget", "init", "console")
# What `memory-mesh help TOPIC` explains: the commands under a heading.
_TOPICS = {
    "storing": STORE, "reading": READ, "reviewing": REVIEW, "learning": LEARN, "changing": CHANGE,
    "deleting": DELETE, "maintaining": MAINTAIN, "setup": SETUP,
}  # fmt: skip
_ALL = "--all"
_BEGINNING = ("usage: memory-mesh [--version] [--debug] [--help] COMMAND …", "")
_ABOUT = "Memory for AI agents, with an audit trail."
_START = "Start with: memory-mesh demo"
_ABOUT_FLAGS = "memory-mesh COMMAND --help shows the flags of a command, with examples."
_HEADINGS = ((re.compile(r"^(?:usage|[A-Z][a-z ]+):(?=$| memory-mesh)", re.MULTILINE), "1"),)


def dispatch(words: list[str]) -> int:
    """Run the command that the words name, or show help, and return the exit code."""
    if words[:1] == ["--"]:
        words = words[1:]
    if words in (["help", _ALL], *([flag, _ALL] for flag in _HELP)):
        return _print(full_help())
    if words[:1] == ["help"]:
        if len(words) == 2 and words[1] in _TOPICS:
            return _print(topic_help(words[1]))
        words = [*words[1:], "--help"]
    if not words or words[0] in _HELP:
        return _print(first_help())
    command, rest = _resolve(words)
    if command in GROUPS:
        return _print(group_help(command))
    given, positional = _arrange(command, rest)
    if _HELP & given.keys():
        return _print(command_help(command))
    call = _parse(command, given | _named(command, positional, given), words)
    with output.warnings_shown(call.form):
        return output.show(execute(call), call.form)


def _resolve(words: list[str]) -> tuple[str, list[str]]:
    """Return the command and the words after it; for a group alone, or followed by a help flag,
    the group."""
    first, rest, group = words[0], words[1:], ""
    if first in GROUPS:
        if not rest or rest[0] in _HELP:
            return first, []
        group, first, rest = f"{first} ", rest[0], rest[1:]
    if group + first in COMMANDS:
        return group + first, rest
    if first.startswith("-") and first != "-":
        flags = _HELP if group else _ROOT_FLAGS
        raise _unknown_flag(
            first, flags, f"flags stand behind their command; see memory-mesh {group}--help"
        )
    synonym = _SYNONYMS.get(group + first)
    known = (*COMMANDS, *GROUPS, *(_TOPICS if rest == ["--help"] else ()))
    hint = (
        f"did you mean {synonym}?" if synonym else did_you_mean(group + first, known, before=group)
    )
    hint = hint or f"see memory-mesh {group}--help"
    raise InvalidInput(f"unknown command {shown(group + first)}", remedy=hint)


# --- parsing ---


def _arrange(command: str, words: Sequence[str]) -> tuple[dict[str, list[str]], list[str]]:
    """Split the words after a command into flags, each with its texts, and positional words.

    Flags may stand before, between and behind positional words. A flag takes the next word as its
    value, whatever it is.
    """
    known = parameters(command)
    takes_value = {
        one.word: one.kind is not Kind.SWITCH for one in known if not one.positional
    } | dict.fromkeys(_HELP, False)
    given: dict[str, list[str]] = {}
    positional: list[str] = []
    behind: list[str] = []  # of a `--`, taken as they are
    rest = iter(words)
    for word in rest:
        flag, equals, value = word.partition("=")
        if word == "--":
            behind = list(rest)
        elif not word.startswith("-") or word == "-":
            positional.append(word)
        elif flag not in takes_value:
            raise _unknown_flag(flag, takes_value, _place(word, flag, command))
        elif not takes_value[flag]:
            given.setdefault(flag, [])
            if equals:
                raise InvalidInput(f"{flag} takes no value", expected=flag)
        else:
            given.setdefault(flag, []).append(value if equals else _next(flag, rest, command))
    for word in positional:
        _refuse_json(command, word, takes_value)
    return given, [*positional, *behind]


def _place(word: str, flag: str, command: str) -> str:
    if " " in word:
        return "write -- before a text that begins with a dash"
    return (
        "write it before the command"
        if flag in _ROOT_FLAGS
        else f"see memory-mesh {command} --help"
    )


def _next(flag: str, rest: Iterator[str], command: str) -> str:
    value = next(rest, None)
    if value is None:
        raise InvalidInput(f"{flag} has no value", remedy=f"see memory-mesh {command} --help")
    return value


def _named(command: str, words: list[str], given: Mapping[str, object]) -> dict[str, list[str]]:
    """Return the positional words by parameter, or raise `InvalidInput` if there are too many,
    or a required value is missing."""
    named: dict[str, list[str]] = {}
    missing: list[str] = []
    own = {one.word: one for one in _chosen(command, given).parameters}
    needed = {word for word, one in own.items() if one.required}
    see = f"see memory-mesh {command} --help"
    for one in parameters(command):
        if words and (one.bare or (one.positional and one.word in own)):
            count = len(words) if one.repeated or one.kind is Kind.WORDS else 1
            named[one.word], words = words[:count], words[count:]
            if one.word in given:
                twice = (
                    f"{one.shown_metavar} is given twice: as {shown(named[one.word][0])} and by "
                    f"{one.word}"
                )
                raise InvalidInput(twice, expected="one of them")
            see = "write a text of several words in quotes" if one.kind is Kind.INPUT else see
        elif one.word in needed and one.word not in given:
            missing.append(one.label)
    if words:
        raise InvalidInput(
            f"unexpected word {shown(words[0])}",
            expected=" ".join(missing),
            remedy=_out(command, given) or see,
        )
    if missing:
        raise InvalidInput(f"{', '.join(missing)} is missing", remedy=see)
    return named


def _out(command: str, given: Mapping[str, object]) -> str:
    """Return how to name the file that a command writes; empty for a command that writes none,
    or if one is given."""
    writes = any(one.word == "--out" for one in parameters(command))
    return "write --out before the name of the file" if writes and "--out" not in given else ""


def _unknown_flag(flag: str, known: Iterable[str], otherwise: str) -> InvalidInput:
    return InvalidInput(
        f"unknown flag {shown(flag)}", remedy=did_you_mean(flag, known, before="--") or otherwise
    )


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


def _parse(command: str, given: Mapping[str, list[str]], typed: Sequence[str]) -> Call:
    """Read the values, and choose the operation by the given flags."""
    values = {
        one.word: _value(one, given[one.word]) for one in parameters(command) if one.word in given
    }
    entry = _chosen(command, values)
    _refuse_unused(command, entry, values)
    flags = {TARGET[name].word: name for name in entry.target}
    scope = {one.word for one in entry.parameters if one.scope}
    one_memory = {"--id", "--key"} & values.keys()
    if entry.method == "erase" and not one_memory:
        raise _no_memory(entry, {word: value for word, value in values.items() if word in flags})
    # `forget --agent planner` forgets what the agent stored, and `forget ID --agent planner` a
    # memory that it can see. A user is always also that of the mesh.
    reader = {
        flags[word]: str(value)
        for word, value in values.items()
        if word in flags and (one_memory or word == "--user" or word not in scope)
    }
    named = flags.keys() & scope if one_memory else ()
    call = Call(
        operation=entry,
        target=Target(**reader),
        arguments=method_arguments(
            entry, {word: value for word, value in values.items() if word not in named}
        ),
        options={
            one.name: values[one.word]
            for one in entry.parameters
            if (one.option or one.shared) and one.word in values
        },
        form=_form(values),
        typed=tuple(typed),
    )
    if entry.confirm and not one_memory:
        _confirm(call, agreed=YES.word in values)
    return call


def _no_memory(entry: Operation, reader: Mapping[str, object]) -> InvalidInput:
    names = [
        f"{word} {value}" for word, value in reader.items() if word not in ("--store", "--preset")
    ]
    return InvalidInput(
        f"{entry.command} has no ID",
        expected="ID, or --key KEY",
        remedy=f"memory-mesh forget {' '.join(names) or '--agent NAME'} erases a whole scope",
    )


def _form(values: Mapping[str, object]) -> Form:
    if JSON.word in values and JSONL.word in values:
        raise InvalidInput(f"{JSON.word} and {JSONL.word} are both given", expected="one of them")
    return Form.JSON if JSON.word in values else Form.JSONL if JSONL.word in values else Form.TEXT


def _value(parameter: Parameter, given: list[str]) -> object:
    if parameter.kind is Kind.SWITCH:
        return not (parameter.default if parameter.cli_default is None else parameter.cli_default)
    if parameter.kind is Kind.WORDS:
        return " ".join(given)
    return (
        [read(parameter, text) for text in given]
        if parameter.repeated
        else read(parameter, given[-1])
    )


def _chosen(command: str, values: Mapping[str, object]) -> Operation:
    """Return the variant whose flag, or one of whose keys, is given; else the operation itself."""
    entries = entries_of(command)
    for entry in entries[1:]:
        if entry.switch in values or (
            not entry.switch and any(one.into and one.word in values for one in entry.parameters)
        ):
            return entry
    return entries[0]


def _refuse_unused(command: str, entry: Operation, values: Mapping[str, object]) -> None:
    """Raise `InvalidInput` for a flag of another variant of the command: it would have no
    effect."""
    words = {
        other.name: {other.switch, *(one.word for one in other.parameters)}
        for other in entries_of(command)
    }
    for word in values.keys() - words[entry.name]:
        switches = [other.switch for other in entries_of(command) if word in words[other.name]]
        if switches:
            own = {"", word}.intersection(switches)
            needs = (
                f"cannot be used with {entry.switch}" if own else f"needs {' or '.join(switches)}"
            )
            raise InvalidInput(f"{word} {needs}", remedy=f"see memory-mesh {command} --help")


def _confirm(call: Call, *, agreed: bool) -> None:
    if not call.scope:
        known = [one for one in call.operation.parameters if one.kind is not Kind.SWITCH]
        expected = f"one of {', '.join(one.label for one in known)}"
        raise InvalidInput(f"{call.operation.command} has nothing to erase", expected=expected)
    named = [one.name for one in call.operation.parameters if one.scope]
    is_user = [name for name in named if name in call.arguments] == ["user_id"]
    what = "all memories, searches and traces" if is_user else "all memories"
    if not agreed:
        confirm(call.operation.confirm.format(what=what, scope=call.scope))


# --- calling ---


def execute(call: Call) -> Answer:
    """Run an operation by its handler, or by the method of the mesh and its view."""
    operation = call.operation
    if operation.handler:
        from memory_mesh.interfaces.cli import handlers

        handle: Callable[[Call], Answer] = getattr(handlers, operation.handler)
        return handle(call)
    from memory_mesh.interfaces.calling import perform

    with call.mesh() as mesh, output.progress(operation.progress) as progress:
        answer = perform(mesh, call, progress)
    if not answer.code and operation.name in ("stats", "search", "list"):
        explain_empty(call.target, answer)
    return answer


# --- help ---


def first_help() -> str:
    """Return the help of a newcomer, which fits a screen: the commands one begins with, and the
    topics of all."""
    first = [
        (name, re.split("[,:.] ", COMMANDS[name][0].summary)[0].rstrip(".") + ".")
        for name in _FIRST
    ]
    topics = [
        (topic, ", ".join(dict.fromkeys(command.split()[0] for command in _of_topic(topic))))
        for topic in _TOPICS
    ]
    width = max(map(len, _TOPICS))
    rest = (
        f"memory-mesh help TOPIC explains the commands of a topic, memory-mesh help {_ALL} all "
        f"{len(COMMANDS)}; memory-mesh COMMAND --help shows the flags of one."
    )
    return "\n".join(
        [
            *_BEGINNING,
            *_wrapped(f"{_ABOUT} {_START}"),
            *("", "First commands:", *_rows(first, width)),
            *("", "Topics:", *_rows(topics, width, max_lines=1)),
            *("", *_wrapped(rest)),
        ]
    )


def topic_help(topic: str) -> str:
    """Return the help of a topic: its commands."""
    rows = _of_topic(topic)
    lines = [f"{_TOPICS[topic]}:", *_rows(rows.items(), max(map(len, rows)))]
    return "\n".join([*_BEGINNING, *lines, "", *_wrapped(_ABOUT_FLAGS)])


def full_help() -> str:
    """Return the help of the whole program: every command under its heading."""
    width = max(map(len, COMMANDS))
    lines = [*_BEGINNING, *_wrapped(_ABOUT), _START, ""]
    for topic, heading in _TOPICS.items():
        lines += [f"{heading}:", *_rows(_of_topic(topic).items(), width), ""]
    lines += ["Flags:", *_rows(_ROOT_FLAGS.items(), width), "", *_wrapped(_ABOUT_FLAGS)]
    return "\n".join([*lines, "", *_wrapped(output.EXIT_CODES)])


def _of_topic(topic: str) -> dict[str, str]:
    """Return the commands of a topic, each with the first sentence of its summary."""
    return {
        command: _first_sentence(entries[0].summary)
        for command, entries in COMMANDS.items()
        if entries[0].heading == _TOPICS[topic]
    }


def group_help(group: str) -> str:
    """Return the help of a group of commands."""
    inner = [
        (command, entries[0].summary)
        for command, entries in COMMANDS.items()
        if command.startswith(f"{group} ")
    ]
    rows = _rows(inner, max(len(command) for command, _ in inner))
    return "\n".join(
        [
            f"usage: memory-mesh {group} COMMAND …",
            "",
            *_wrapped(GROUPS[group]),
            "",
            "Commands:",
            *rows,
        ]
    )


def command_help(command: str) -> str:
    """Return the help of a command: its flags, and examples."""
    examples = "\n".join(f"  memory-mesh {example}" for example in COMMANDS[command][0].examples)
    return f"{_formatter(command).format_help()}\nExamples:\n{examples}"


def about(parameter: Parameter) -> str:
    """Return the help of a parameter, with how to give it, its choices and its default."""
    choices = f": {', '.join(parameter.choices)}" if parameter.choices else ""
    default = f" (default: {parameter.shown_default})" if parameter.shown_default else ""
    return parameter.shown_help + choices + default


def _formatter(command: str) -> "ArgumentParser":
    """Return a parser that is only used to format the help of a command."""
    from argparse import ArgumentParser  # only help needs it

    parser = ArgumentParser(
        prog=f"memory-mesh {command}", description=COMMANDS[command][0].summary, add_help=False
    )
    words, own, target = (
        parser.add_argument_group(title) for title in ("Arguments", "Flags", "Which memory")
    )
    for one in parameters(command):
        group, text = target if one in TARGET.values() else own, about(one).replace("%", "%%")
        if one.positional or one.bare:
            several = one.repeated or one.kind is Kind.WORDS
            text += f"; also {one.word} {one.shown_metavar}" if one.bare else ""
            number = ("+" if one.required else "*") if several else None if one.required else "?"
            words.add_argument(one.shown_metavar, help=text, nargs=number)
        elif one.kind is Kind.SWITCH:
            group.add_argument(one.word, help=text, action="store_true")
        else:
            group.add_argument(
                one.word, help=text, metavar=one.shown_metavar, required=one.required
            )
    return parser


def _print(text: str) -> int:
    return output.show(Answer(text=text, data={}, draw=lambda: output.paint(text, _HEADINGS)))


def _rows(rows: Iterable[tuple[str, str]], width: int, max_lines: int | None = None) -> list[str]:
    """Return names and texts in two columns, as wide as the terminal."""
    lines: list[str] = []
    for name, text in rows:
        first, *others = _wrapped(text, width + 4, max_lines)
        lines += [f"  {name:<{width}}  {first.lstrip()}", *others]
    return lines


def _wrapped(text: str, indent: int = 0, max_lines: int | None = None) -> list[str]:
    from shutil import get_terminal_size  # 8 ms that only help pays
    from textwrap import wrap

    columns = max(get_terminal_size().columns - 2, indent + 16)
    return wrap(
        text,
        columns,
        initial_indent=" " * indent,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
        max_lines=max_lines,
        placeholder=" …",
    )


def _first_sentence(text: str) -> str:
    return text.partition(". ")[0].partition("; ")[0].removesuffix(".") + "."


# --- hints ---
# What is added to an empty answer, on standard error: why it may be empty, and what to do.

OTHER_USERS = "the store has memories of other users only; add --user NAME to read those of one"


def explain_empty(target: Target, answer: Answer) -> None:
    """Log one line if the answer is empty because no user was named and every memory belongs to
    one.

    A command that reads as a user never says whether others have memories.
    """
    if answer.data.get("total_memories") or answer.data.get(answer.rows):
        return
    # Most commands need none of these.
    import logging
    from contextlib import closing

    from memory_mesh.api.settings import load
    from memory_mesh.core import model
    from memory_mesh.stores import open_store, store_file

    with suppress(MemoryMeshError):  # of a hint; the command itself has worked
        settings = load(target.arguments)
        file = store_file(settings.store_url)
        if (
            settings.options.user_id is not None
            or not settings.options.enable_memory
            or (file and not file.exists())
        ):
            return
        options = settings.options
        with closing(
            open_store(settings.store_url, busy_seconds=options.busy_seconds, key=options.store_key)
        ) as store:
            without_user = model.IsNull("user_id")
            if not store.find(model.Kind.MEMORY, without_user, limit=1) and store.find(
                model.Kind.MEMORY, model.Not(without_user), limit=1
            ):
                logging.getLogger("memory_mesh").warning(OTHER_USERS)
