"""Words in: what a flag says, read into what the mesh takes, or an error that says what to mend."""

import json
import sys
from typing import Any

import typer

from memory_mesh.core.errors import InvalidInput
from memory_mesh.interfaces.render import NAME

_OBJECT = 'an object such as {"source": "minutes"}'


def text(content: str) -> str:
    """The text of a flag, or of standard input without the line end that shells add."""
    return sys.stdin.read().removesuffix("\n") if content == "-" else content


def notes(text: str | None) -> dict[str, Any] | None:
    """A JSON object from a flag, or an error that shows where it stops making sense."""
    if text is None:
        return None
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        near = f", near {text[error.pos : error.pos + 20]!r}" if error.pos < len(text) else ", at its end"
        raise InvalidInput(f"--metadata is no JSON: {error.msg} at character {error.pos}{near}", expected=_OBJECT) from None
    except (ValueError, RecursionError):
        raise InvalidInput("--metadata has numbers or levels beyond measure", expected=_OBJECT) from None
    if not isinstance(value, dict):
        raise InvalidInput("--metadata is no JSON object", expected=_OBJECT)
    return value


def together(notes: dict[str, Any] | None, said: dict[str, Any]) -> dict[str, Any]:
    merged = dict(notes or {})
    for name, value in said.items():
        if value is not None and merged.setdefault(name, value) != value:
            raise InvalidInput(f"--metadata and a flag give different {name}", expected="one of them")
    return merged


def whole(text: str, flag: str) -> int:
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise InvalidInput(f"{flag} is {text!r:.40}", expected="a whole number")
    return int(text)


def share(text: str, flag: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= 1:
        raise InvalidInput(f"{flag} is {text!r:.40}", expected="a number from 0 to 1")
    return number


def statuses(given: list[str] | None) -> tuple[str, ...]:
    return tuple(given) if given else ("active",)


def ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise InvalidInput("this is asked before it is done, and nobody is there to answer", remedy="say --yes")
    sys.stderr.write(f"{NAME} {question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise typer.Abort
