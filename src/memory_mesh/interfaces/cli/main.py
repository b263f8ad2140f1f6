"""The entry point of the command line.

Almost everything is loaded inside `main`, so that Ctrl-C ends in one line from the first moment on.
"""

import sys
from types import TracebackType
from typing import TYPE_CHECKING

from memory_mesh.interfaces.hosts import is_hook

if TYPE_CHECKING:
    from memory_mesh.interfaces.render.output import Form


def main() -> None:
    """Run the installed command."""
    if "--debug" not in sys.argv:
        sys.excepthook = _report_bug
    if hook := is_hook(sys.argv[1:]):
        from memory_mesh.interfaces.hosts import deadline

        deadline.begin(sys.argv[2:])
    try:
        code = deadline.ask(sys.argv[2:]) if hook else None
        code = run(sys.argv[1:]) if code is None else code
    except KeyboardInterrupt:
        sys.stderr.write("[MemoryMesh Error] interrupted\n")
        code = 130  # what shells expect
    if hook:
        deadline.leave(code)
    sys.exit(code)


def run(words: list[str]) -> int:
    """Run one command and return its exit code."""
    from memory_mesh.interfaces.render import output

    output.prepare_streams()
    while words[:1] == ["--debug"]:  # `main` has seen it
        words = words[1:]
    if words[:1] == ["--version"]:  # needs neither the table of operations nor a parser
        from memory_mesh import __version__

        return output.show(output.Answer(text=f"{output.NAME} memory-mesh {__version__}", data={}))
    from memory_mesh.core.errors import MemoryMeshError
    from memory_mesh.interfaces.cli.parser import dispatch

    try:
        return dispatch(words)
    except MemoryMeshError as error:
        code = output.complain(error, _form(words))
        return 0 if is_hook(words) else code  # Claude Code takes other codes for a veto


def _form(words: list[str]) -> "Form":
    """Return the form that the words ask for, also if they cannot be parsed."""
    from memory_mesh.interfaces.render.output import Form

    flags = words[: words.index("--")] if "--" in words else words
    return next((form for form in Form if f"--{form}" in flags), Form.TEXT)


def _report_bug(
    kind: type[BaseException], error: BaseException, trace: TracebackType | None
) -> None:
    """Report an unexpected error in one line, without its message, which might quote private
    values."""
    sys.stderr.write(
        f"[MemoryMesh Error] unexpected {kind.__name__}: this is a bug in memory-mesh; please "
        "report it with the output of the same command after memory-mesh --debug\n"
    )
