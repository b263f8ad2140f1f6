"""The way in. It loads the commands itself, so that Ctrl-C ends in one line from the first moment on."""

import sys
from types import TracebackType


def main() -> None:
    """The installed command."""
    if "--debug" not in sys.argv:
        sys.excepthook = _unexpected
    try:
        from memory_mesh.interfaces.run import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("[MemoryMesh Error] interrupted\n")
        code = 130  # what shells expect
    sys.exit(code)


def _unexpected(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """An error of ours, not of the user's: one line, without values that might be private."""
    sys.stderr.write(
        f"[MemoryMesh Error] unexpected {kind.__name__}; this is a mistake in memory-mesh: please report it, with what the "
        "same command shows after memory-mesh --debug\n"
    )
