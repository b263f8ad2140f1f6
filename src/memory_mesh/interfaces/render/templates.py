"""Templates: what a command prints, written as it looks.

A template names the fields of a record: `Ended session {session_id}: {archived:#memory} archived`.
A text is written on one line. After a colon stands how to write a value:

    {score:.2f}            a format of Python
    {text:~}, {text:~160}  the beginning of a text
    {text:raw}             a text as it is
    {ids:#}, {ids:#memory} how many there are, alone or with a noun
    {ids:list}             the texts of a list, with commas
    {pinned:yes|no}        one of two words
    {agent_id:or unknown}  another word for an empty value
    {bytes:size}           a number of bytes

`{}` is the record itself. A part between `<` and `>` is left out if its first field is empty:
`<, last {last_used}>`. Another field decides in `<is_new? …>`, or with `!` the opposite of it.
Where this does not suffice, a function of the record stands in place of a template.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, is_dataclass
from operator import attrgetter
from typing import Any

from memory_mesh.interfaces.render.output import (
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
Lines = Callable[[Any], list[str]]  # the lines of a record

_FIELD = re.compile(r"\{([\w.]*)(?::([^{}]*))?\}")
_OPTIONAL = re.compile(r"<(?:(!?)([\w.]*)\?)?([^<>]*)>")


def view(
    title: Template,
    *parts: str | Lines,
    key: str = "",
    columns: Mapping[str, Template] | None = None,
    with_heads: bool = False,
    data: Callable[[Any], Mapping[str, object]] | None = None,
    failed: Template = "",
    problems: Lines | None = None,
) -> Callable[[Any, Call], Answer]:
    """Return a view: a sentence, and a line for each part that is not empty.

    `key` is the name of the list in the data. With `columns`, the items of the result come first,
    one on each line; a terminal shows them as a table, a pipe shows its heads only `with_heads`.
    The exit code is 1 if `failed` has a text.
    """

    def render(result: Any, call: Call) -> Answer:
        heads, cells = tuple(columns or ()), tuple((columns or {}).values())
        rows = [[fill(cell, item) for cell in cells] for item in result] if cells else []
        line, lines = fill(title, result), list[str]()
        for part in parts:
            lines += [fill(part, result)] if isinstance(part, str) else part(result)
        grid = aligned([heads, *rows] if with_heads and rows else rows)
        below = "\n".join(filter(None, lines))
        return answer(
            line,
            data(result) if data else _data(result, key),
            [grid, below],
            rows=key,
            failed=fill(failed, result),
            problems=problems(result) if problems else (),
            draw=(lambda: table(line.removesuffix("."), heads, rows) + below) if heads else None,
        )

    return render


def each(path: str, template: Template) -> Lines:
    """Return the lines of a list: that of a field, or with an empty path the record itself."""
    return lambda record: [fill(template, item) for item in _value(record, path)]


def rows(*cells: Template, path: str = "") -> Lines:
    """Return the items of a list as columns, without heads."""
    return lambda record: [
        aligned([[fill(cell, item) for cell in cells] for item in _value(record, path)])
    ]


def fill(template: Template, record: Any) -> str:
    """Return a template with the values of a record."""
    if callable(template):
        return template(record)

    def chosen(match: re.Match[str]) -> str:
        negated, name, text = match.groups()
        name = _FIELD.findall(text)[0][0] if name is None else name
        value = _value(record, name)
        given = bool(value) or isinstance(value, float)
        return text if given != bool(negated) else ""

    def shown(match: re.Match[str]) -> str:
        return _shown(_value(record, match[1]), match[2] or "")

    return _FIELD.sub(shown, _OPTIONAL.sub(chosen, template))


def _data(result: Any, key: str) -> dict[str, object]:
    return asdict(result) if is_dataclass(result) else items(key, result)  # type: ignore[arg-type]


def _value(record: Any, path: str) -> Any:
    return attrgetter(path)(record) if path else record


def _shown(value: Any, form: str) -> str:
    if form.startswith("#"):
        number = value if isinstance(value, int) else len(value)
        return counted(number, form[1:]) if form[1:] else str(number)
    if form.startswith("~"):
        return excerpt(value, int(form[1:] or 80))
    if form.startswith("or "):
        return one_line(value) if value else form[3:]
    if "|" in form:
        return form.split("|")[0 if value else 1]
    if form == "size":
        return size(value)
    if form in ("", "raw", "list"):
        text = ", ".join(value) if form == "list" else str(value)
        return text if form == "raw" else one_line(text)
    return format(value, form)
