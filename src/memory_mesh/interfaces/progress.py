"""How long work shows how far it has come: a bar on a terminal, nothing in a pipe, where the answer itself tells it."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from memory_mesh.core.ports import Progress, no_progress


@contextmanager
def bar() -> Iterator[Progress]:
    """A listener that draws on standard error, so that standard output stays what programs read."""
    if not sys.stderr.isatty():
        yield no_progress
        return
    # Rich takes a moment to load, and most commands are done before it would be.
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Drawn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Drawn(*columns, console=Console(stderr=True), transient=True) as drawn:
        tasks = {}

        def listen(what: str, done: int, of: int) -> None:
            if what not in tasks:
                tasks[what] = drawn.add_task(what, total=of)
            drawn.update(tasks[what], completed=done, total=of)

        yield listen
