"""Templates: what a command prints, written as it looks.

A template names the fields of a record: `Ended session {session_id}: {archived:#memory} archived`.
A text is written on one line. After a colon stands how to write a value:

    {score:.2f}              a format of Python
    {text:~}, {text:~160}    the beginning of a text, with a mark where it was cut
    {text:cut 80}            the beginning of a text
    {text:raw}               a text as it is
    {ids:#}, {ids:#memory}   how many there are, alone or with a noun
    {ids:list}               the texts of a list, with commas
    {kinds:counts}           how many there are of each kind
    {pinned:yes|no}          one of two words
    {agent_id:or unknown}    a text as it is, or another word if it is empty
    {bytes:size}             a number of bytes
    {metadata:json}          JSON

`{}` is the record itself, `{n}` its number in a list. A part between `<` and `>` is left out if its
first field is empty: `<, last {last_used}>`. Another field decides in `<is_new? …>`, or with `!`
the opposite of it. Where this does not suffice, a function of the record stands in place of a
template.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from memory_mesh.interfaces.render.output import (
    RESULTS,
    Answer,
    aligned,
    answer,
    counted,
    excerpt,
    items,
    one_line,
    size,
    table,
)
from memory_mesh.interfaces.values import Call

Template = str | Callable[[Any], str]
Part = str | Callable[[Any], str | list[str]]  # the lines of a record

MASKED = "<[MemoryMesh] Masked: {redactions:counts}>"

_FIELD = re.compile(r"\{([\w.]*)(?::([^{}]*))?\}")
_OPTIONAL = re.compile(r"<(?:(!?)([\w.]*)\?)?([^<>]*)>")
_FORMS: dict[str, Callable[[Any], str]] = {
    "": lambda value: one_line(str(value)),
    "raw": str,
    "list": lambda texts: one_line(", ".join(texts)),
    "counts": lambda kinds: ", ".join(f"{count} {kind}" for kind, count in kinds.items()),
    "size": size,
    "json": lambda value: json.dumps(value, ensure_ascii=False),
}


def view(
    title: Template,
    *parts: Part,
    key: str = RESULTS,
    path: str = "",
    columns: Mapping[str, Template] | None = None,
    with_heads: bool = False,
    data: Callable[[Any], Mapping[str, object]] | None = None,
    failed: Callable[[Any], object] = lambda result: False,
    problems: Callable[[Any], list[str]] = lambda result: [],
) -> Callable[[Any, Call], Answer]:
    """Return a view: a sentence, and a line for each part that is not empty.

    `key` is the list in the data that the answer is about. With `columns`, the items of the
    result, or of the field `path`, come first, one on each line; a terminal shows them as a table,
    a pipe shows its heads only `with_heads`. The exit code is 1 if something `failed`.
    """

    def render(result: Any, call: Call) -> Answer:
        heads = tuple(columns or ())
        cells = grid(columns.values(), _value(result, path)) if columns else []
        line, lines = fill(title, result), filled(parts, result)
        return answer(
            line,
            data(result) if data else _data(result),
            [aligned([heads, *cells] if with_heads and cells else cells), *lines],
            rows=key,
            failed=failed(result),
            problems=problems(result),
            draw=(lambda: table(line.removesuffix("."), heads, cells) + "\n".join(lines))
            if columns
            else None,
        )

    return render


def each(path: str, *parts: Part) -> Callable[[Any], list[str]]:
    """Return the lines of each item of a list: a field, or with an empty path the record."""
    return lambda record: [
        line
        for n, item in enumerate(_value(record, path), start=1)
        for line in filled(parts, item, n)
    ]


def rows(*cells: Template, path: str = "") -> Callable[[Any], list[str]]:
    """Return the items of a list as columns, without heads."""
    return lambda record: [aligned(grid(cells, _value(record, path)))]


def filled(parts: Iterable[Part], record: Any, n: int = 0) -> list[str]:
    """Return the lines of a record, without empty ones."""
    lines: list[str] = []
    for part in parts:
        text = fill(part, record, n) if isinstance(part, str) else part(record)
        lines += [text] if isinstance(text, str) else text
    return [line for line in lines if line]


def fill(template: Template, record: Any, n: int = 0) -> str:
    """Return a template with the values of a record."""
    if callable(template):
        return template(record)

    def chosen(match: re.Match[str]) -> str:
        negated, name, text = match.groups()
        value = _value(record, _FIELD.findall(text)[0][0] if name is None else name)
        given = bool(value) or isinstance(value, float)  # 0.0 is a value
        return text if given != bool(negated) else ""

    def shown(match: re.Match[str]) -> str:
        return _shown(n if match[1] == "n" else _value(record, match[1]), match[2] or "")

    return _FIELD.sub(shown, _OPTIONAL.sub(chosen, template))


def grid(cells: Iterable[Template], records: Iterable[Any]) -> list[list[str]]:
    """Return the cells of each record."""
    return [[fill(cell, record) for cell in cells] for record in records]


def _data(result: Any) -> dict[str, object]:
    return asdict(result) if is_dataclass(result) else items(result)  # type: ignore[arg-type]


def _value(record: Any, path: str) -> Any:
    for name in filter(None, path.split(".")):
        record = record.get(name) if isinstance(record, Mapping) else getattr(record, name)
    return record


def _shown(value: Any, form: str) -> str:
    if form in _FORMS:
        return _FORMS[form](value)
    if form.startswith("#"):
        number = value if isinstance(value, int) else len(value or ())
        return counted(number, form[1:]) if form[1:] else str(number)
    if form.startswith("~"):
        return excerpt(value, int(form[1:] or 80))
    if form.startswith("cut "):
        return one_line(value)[: int(form[4:])]
    if form.startswith("or "):
        return str(value or form[3:])
    if "|" in form:
        return form.split("|")[0 if value else 1]
    return format(value, form)
