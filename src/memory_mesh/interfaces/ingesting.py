"""How `ingest-dir` tells what it did: a summary, a line for each file that failed, and what to do about those that are gone."""

import sys
from collections.abc import Sequence
from dataclasses import asdict

from memory_mesh.flows.folders import Gone, Ingested
from memory_mesh.interfaces.grammar import Who
from memory_mesh.interfaces.progress import bar
from memory_mesh.interfaces.render import NAME, Answer, complain, one_line
from memory_mesh.settings import use_colour

_MOST_LINES = 20


def ingested(who: Who, path: str, *, extension: Sequence[str], type_: str | None, recursive: bool) -> Answer:
    """Ingest a folder, and say how it went; exit 1 where a file failed."""
    with who.mesh() as mesh, bar() as drawn:
        progress = drawn if sys.stderr.isatty() else _line
        done = mesh.ingest_dir(path, extension=extension, type=type_, recursive=recursive, progress=progress)
    colour = use_colour()
    for failed in done.failed:
        complain(f"{failed.source}: {failed.reason}", 1, colour=colour)
    text = "\n".join([f"{NAME} {_summary(done)}", *_empty(done, extension, recursive=recursive), *_gone(done.gone)])
    return Answer(text=text, data=asdict(done), code=1 if done.failed else 0)


def _line(what: str, done: int, of: int) -> None:
    """In a pipe: a line for each batch but the last, behind which the summary comes anyway."""
    if done < of:
        sys.stderr.write(f"{NAME} {done} of {of} {what}\n")
        sys.stderr.flush()


def _summary(done: Ingested) -> str:
    counts = f"{done.added} added, {done.updated} updated, {done.unchanged} unchanged, {len(done.failed)} failed"
    return f"Ingested {one_line(done.root)}: {counts}, {len(done.gone)} gone"


def _empty(done: Ingested, extension: Sequence[str], *, recursive: bool) -> list[str]:
    """What somebody may have meant who gets nothing."""
    if done.added or done.updated or done.unchanged or done.failed:
        return []
    deeper = "" if recursive else ", --recursive for sub-folders"
    return [f"No file here ends with {', '.join(extension)}; say --extension for others{deeper}."]


def _gone(gone: Sequence[Gone]) -> list[str]:
    lines = [
        f"Gone: {one_line(one.source)}; its memory stays until `memory-mesh delete --id {one.id}`" for one in gone[:_MOST_LINES]
    ]
    left = len(gone) - len(lines)
    return [*lines, f"… and {left} more; --json lists them all"] if left else lines
