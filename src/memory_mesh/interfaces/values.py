"""Convert the texts of flags to the values that an operation takes.

A text that does not fit raises an error that says what was expected. A `Call` is an operation with
its arguments; a `Target` names the store and the reader.
"""

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from memory_mesh.core.errors import (
    InvalidInput,
    MemoryMeshError,
    StoreMissing,
    fraction,
    nearest,
    shown,
)
from memory_mesh.interfaces.operation import Effect, Kind, Operation, Parameter
from memory_mesh.interfaces.render.output import NAME, Form, one_line

if TYPE_CHECKING:
    from memory_mesh.api.mesh import MemoryMesh

_OBJECT = 'an object such as {"source": "minutes"}'
_HEAD = re.compile(r"([1-9][0-9]{0,14}):([0-9a-f]{64})")
# At most 366 days, in each unit.
DURATION = re.compile(
    r"\s*0{0,5}(?:[1-9][0-9]{0,5}[sS]"
    r"|(?:[1-9][0-9]{0,4}|[1-4][0-9]{5}|5[01][0-9]{4}|52[0-6][0-9]{3}|5270[0-3][0-9]|527040)[mM]"
    r"|(?:[1-9][0-9]{0,2}|[1-7][0-9]{3}|8[0-6][0-9]{2}|87[0-7][0-9]|878[0-4])[hH]"
    r"|(?:[1-9][0-9]?|[12][0-9]{2}|3[0-5][0-9]|36[0-6])[dD])\s*"
)
_UNDECODED = re.compile(r"[\udc80-\udcff]")  # how Python hands over bytes that are not UTF-8
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@dataclass(frozen=True, slots=True)
class Target:
    """The store and the reader of a command; the settings supply what is not given."""

    store: str | None = None
    agent: str | None = None
    user: str | None = None
    session: str | None = None
    project: str | None = None
    preset: str | None = None

    @property
    def arguments(self) -> dict[str, str | None]:
        """The values as arguments of `MemoryMesh`."""
        scope = {
            "agent_id": self.agent,
            "user_id": self.user,
            "session_id": self.session,
            "project": self.project,
        }
        return {"store": self.store, "preset": self.preset, **scope}

    def mesh(self) -> "MemoryMesh":
        from memory_mesh.api.mesh import MemoryMesh  # help and usage errors need no store

        return MemoryMesh(**self.arguments)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """An operation with its values: `arguments` for the method, `options` for the view or the
    handler."""

    operation: Operation
    target: Target = Target()
    arguments: Mapping[str, object] = field(default_factory=dict)
    options: Mapping[str, object] = field(default_factory=dict)
    form: Form = Form.TEXT
    typed: tuple[str, ...] = ()  # the words of the command line

    @contextmanager
    def mesh(self) -> "Iterator[MemoryMesh]":
        """Open the mesh of the target. Log one line if the operation has read a store that does
        not exist yet; an error is the only line."""
        with self.target.mesh() as mesh:
            yield mesh
            if self.operation.effect is Effect.READ:
                try:
                    mesh._existing()
                except StoreMissing as missing:
                    from logging import getLogger  # 10 ms

                    getLogger("memory_mesh").warning(f"nothing is stored yet: {missing.what}")

    @property
    def scope(self) -> str:
        """The scope that it names, such as `agent planner, session s42`."""
        return ", ".join(
            f"{one.word.removeprefix('--')} {self.arguments[one.name]}"
            for one in self.operation.parameters
            if one.scope and one.name in self.arguments
        )


def read(parameter: Parameter, text: str) -> object:
    """Return the value that a text stands for."""
    if parameter.choices and text not in parameter.choices:
        expected = f"one of {', '.join(parameter.choices)}"
        hint = did_you_mean(text, parameter.choices)
        raise InvalidInput(
            f"unknown value {shown(text)} of {parameter.word}", expected=expected, remedy=hint
        )
    if parameter.choices:
        return parameter.choices[text]
    reader = _READERS.get(parameter.kind)
    return reader(text, parameter.word) if reader else text


def method_arguments(
    operation: Operation,
    values: Mapping[str, object],
    label: Callable[[Parameter], str] = attrgetter("word"),
) -> dict[str, object]:
    """Return the arguments of the method, from values by the label of their parameters.

    A parameter that is a key of an object goes into that object.
    """
    plain = [one for one in operation.parameters if not (one.into or one.option)]
    arguments = {
        (*one.instead_of, one.name)[0]: values.get(
            label(one), one.default if operation.handler else one.cli_default
        )
        for one in plain
    }
    arguments = {name: value for name, value in arguments.items() if value is not None}
    labels = {one.name: label(one) for one in plain}
    for into in {one.into for one in operation.parameters if one.into}:
        parts = [one for one in operation.parameters if one.into == into]
        keys = {one.name: values[label(one)] for one in parts if label(one) in values}
        if not keys and into not in labels:
            raise InvalidInput(
                f"{operation.command} has nothing to set",
                expected=f"one of {', '.join(map(label, parts))}",
            )
        whole: Any = arguments.get(into, {})
        if different := [name for name in keys if whole.get(name, keys[name]) != keys[name]]:
            raise InvalidInput(
                f"{labels.get(into, into)} and a flag give different values of {different[0]}",
                expected="one of them",
            )
        if keys:
            arguments[into] = {**whole, **keys}
    return arguments


def did_you_mean(word: str, known: Iterable[str], *, before: str = "") -> str:
    """Return a hint that names the most similar known word, or an empty text. `before` begins
    them all and is not compared."""
    typed = word.removeprefix(before).lower()
    names = [one.removeprefix(before) for one in known if one.startswith(before)]
    near = next((name for name in names if typed and name.startswith(typed)), "") or nearest(
        typed, names
    )
    return f"did you mean {before}{near}?" if near else ""


def confirm(question: str) -> None:
    """Ask at the terminal; every answer but yes ends the command."""
    if not sys.stdin.isatty():
        raise InvalidInput(
            "this needs a confirmation, and standard input is not a terminal", remedy="add --yes"
        )
    sys.stderr.write(f"{NAME} {one_line(question)} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise MemoryMeshError("stopped; nothing was changed")


def _input(text: str, flag: str) -> str:
    # Shells add a line break at the end of what they pipe.
    text = sys.stdin.read().removesuffix("\n") if text == "-" else text
    if wrong := _UNDECODED.search(text):
        place = len(text[: wrong.start()].encode("utf-8", "surrogateescape")) + 1
        raise InvalidInput(
            f"the text is not UTF-8 (byte {place})",
            remedy="convert it, for example with iconv -t utf-8",
        )
    return text


def _integer(text: str, flag: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise InvalidInput(f"{flag} is {shown(text, max_length=40)}", expected="a whole number")
    return int(text)


def _fraction(text: str, flag: str) -> float:
    try:
        value: object = float(text)
    except ValueError:
        value = text
    return fraction(flag, value)


def _object(text: str, flag: str) -> dict[str, object]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        near = (
            f", near {text[error.pos : error.pos + 20]!r}"
            if error.pos < len(text)
            else ", at its end"
        )
        raise InvalidInput(
            f"{flag} is not valid JSON: {error.msg} at character {error.pos}{near}",
            expected=_OBJECT,
        ) from None
    except (ValueError, RecursionError):
        raise InvalidInput(
            f"{flag} has a number that is too long, or too many levels", expected=_OBJECT
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput(f"{flag} is not a JSON object", expected=_OBJECT)
    return value


def _duration(text: str, flag: str) -> int:
    if not DURATION.fullmatch(text):
        raise InvalidInput(
            f"{flag} is {shown(text, max_length=40)}",
            expected="a duration such as 8h, 30m or 90s, at most 366d",
        )
    plain = text.strip().lower()
    return int(plain[:-1]) * _SECONDS[plain[-1]]


def _head(text: str, flag: str) -> tuple[int, str]:
    match = _HEAD.fullmatch(text.strip().lower())
    if match is None:
        raise InvalidInput(
            f"{flag} is {shown(text, max_length=80)}",
            expected="NUMBER:SEAL, as memory-mesh audit head prints it",
        )
    return int(match[1]), match[2]


_READERS: Mapping[Kind, Callable[[str, str], object]] = {
    Kind.INPUT: _input, Kind.INTEGER: _integer, Kind.FRACTION: _fraction, Kind.OBJECT: _object,
    Kind.DURATION: _duration, Kind.HEAD: _head,
}  # fmt: skip
