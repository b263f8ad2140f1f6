"""Run one command and turn whatever comes of it into text, one error line and an exit code."""

import os
import sys
from collections.abc import Sequence

import typer
from typer.main import get_command

from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.interfaces.cli import app
from memory_mesh.interfaces.render import Answer, complain, outcome, show, speak_utf8
from memory_mesh.settings import use_colour

_INTERRUPTED = 130  # typer catches Ctrl-C and answers with this
_PIPE_CLOSED = 141  # what shells expect when the reader of a pipe has gone


def run(words: Sequence[str]) -> int:
    """Run one command and give its exit code."""
    speak_utf8()
    colour = use_colour()
    try:
        said = get_command(app).main(list(words), prog_name="memory-mesh", standalone_mode=False)
    except typer.TyperException as error:
        return complain(error.format_message(), error.exit_code, colour=colour)
    except MemoryMeshError as error:
        return complain(str(error), outcome(error).exit_code, colour=colour)
    except typer.Abort:
        return complain("stopped; nothing was changed", 1, colour=colour)
    if said == _INTERRUPTED:
        raise KeyboardInterrupt
    return _shown(said, colour=colour) if isinstance(said, Answer) else int(said or 0)


def _shown(answer: Answer, *, colour: bool) -> int:
    try:
        return show(answer, colour=colour)
    except BrokenPipeError:
        _give_up_output()
        return _PIPE_CLOSED
    except OSError as error:  # a full disk behind `>`
        _give_up_output()
        return complain(f"the answer cannot be written: {error.strerror}", 1, colour=colour)


def _give_up_output() -> None:
    """Nobody hears the rest (`| head -1`), and Python shall not try once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
