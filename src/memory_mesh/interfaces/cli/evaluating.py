"""`memory-mesh eval`: the report of an evaluation as text, JSON and a page with charts.

The figures of the corpus of everyday use stand beside those of the store. `tools/bench_docs.py`
writes their file from the results of `bench.everyday`.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from html import escape
from typing import Any

from memory_mesh.api.settings import load
from memory_mesh.core.errors import InvalidInput, MemoryMeshError
from memory_mesh.core.language.packaged import read_data
from memory_mesh.core.search.evaluation import (
    CUTS,
    FEW,
    GIVEN,
    KNOWN,
    POSSIBLE,
    Answered,
    Evaluation,
    Finding,
    Retrieval,
    interval,
    stale,
)
from memory_mesh.interfaces.cli.doctor import permissions
from memory_mesh.interfaces.render.output import (
    NAME,
    OUTCOMES,
    Answer,
    aligned,
    counted,
    one_line,
    paint,
    preview,
    safe,
    table,
)
from memory_mesh.interfaces.values import Call

_FIGURES = ("figure", "value", "95 % interval", "questions", "remark")
_CHECKS = ("check", "found", "of", "what to do")
_CORPUS = ("kind of question", "right first", "95 % interval", "outdated above", "questions")
_MAX_MISSES = 5
_NOT_MEASURED = "not measured: give --questions FILE, or configure a language model"
_OLDER_WORDS = "asked in words of the older one, which is the worst case"
_OWN_WORDS = "an upper bound: the questions are the memories' own words, people use others"
_INVENTED = "an upper bound: the subjects are invented; on the corpus of everyday use it is {}"
_STALE = {
    GIVEN: ("outdated above current, given", ""),
    KNOWN: (
        "outdated above current, known changes",
        "changes that were not recognised are not among them; see memory-mesh changes",
    ),
    POSSIBLE: (
        "outdated above current, possible changes",
        "for a person to decide: memory-mesh changes --confirm NEWER OLDER, or --undo",
    ),
}
_BAR, _ROW, _LABEL = 300, 26, 240  # of a chart, in pixels
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 "
    "1rem;color:#1f2933;background:#fff}table{border-collapse:collapse;width:100%}td,th"
    "{text-align:left;padding:.3rem .6rem;border-bottom:1px solid #d9e0e6;vertical-align:top}svg "
    "text{font:13px system-ui,sans-serif;fill:#1f2933}.bad{color:#b42318;font-weight:600}"
)


def evaluated(found: Evaluation, call: Call) -> Answer:
    """Render an evaluation. The exit code is that of a failure if hidden text was found, or if a
    figure is below its minimum."""
    found = replace(found, hygiene=[*found.hygiene, _files(call)])
    failures = [*found.failures, *_below(found, call.options)]
    summary = (
        f"Evaluated {counted(found.memories, 'memory')} with "
        f"{counted(len(found.answered), 'question')}: "
    ) + (f"failed, {'; '.join(failures)}" if failures else "passed")
    corpus = json.loads(read_data("memory_mesh.interfaces", "everyday.json"))
    figures, checks = list(_figures(found, corpus)), list(_checks(found.hygiene))
    rows = [row[:-1] for row in figures]  # beside the figures, the remarks would be too wide
    remarks = "\n".join(f"{row[0].strip()}: {row[-1]}" for row in figures if row[-1])
    blocks = [f"{NAME} {summary}", aligned([_FIGURES[:-1], *rows]), remarks]
    expected, about = list(_expected(corpus)) if found.made else [], _about(corpus)
    blocks += [f"{about}\n{aligned([_CORPUS, *expected])}"] if expected else []
    blocks += [aligned([_CHECKS, *checks])]
    misses = [
        f"{label} above {pair.newer}: {pair.older}, for “{preview(one_line(pair.question))}”"
        for kind, label in ((GIVEN, "outdated"), (KNOWN, "outdated"), (POSSIBLE, "maybe outdated"))
        for pair in found.pairs
        if pair.is_stale and pair.kind == kind
    ] + [f"not found: {preview(one_line(one.question.text))}" for one in _missed(found.answered)]
    page = call.options.get("html")
    if isinstance(page, str):
        _write(page, _page(summary, found, figures, checks))
    written = [*_by_model(found), *([f"{NAME} The report is in {page}"] if page else [])]
    shown = misses[:_MAX_MISSES] + (
        [f"and {len(misses) - _MAX_MISSES} more, see --json"] if len(misses) > _MAX_MISSES else []
    )
    return Answer(
        text="\n\n".join([*blocks, *(["\n".join([*shown, *written])] if shown or written else [])]),
        data={"passed": not failures, "failures": failures, **_data(found), "everyday": corpus},
        code=OUTCOMES[MemoryMeshError].exit_code if failures else 0,
        draw=lambda: "\n".join(
            [
                table(summary, _FIGURES[:-1], rows),
                paint(safe(remarks)),
                *([table(about, _CORPUS, expected)] if expected else []),
                table("Hygiene", _CHECKS, checks),
                paint(safe("\n".join([*shown, *written]))),
            ]
        ),
    )


def _files(call: Call) -> Finding:
    """Return the check of `doctor` that only the owner can reach the files, as a check of the
    evaluation."""
    check = permissions(load(call.target.arguments))
    remedy = f"{check.detail}; {check.remedy}" if not check.ok else ""
    return Finding(
        name="files that others can reach",
        count=0 if check.ok else 1,
        of=1,
        remedy=one_line(remedy),
    )


def _below(found: Evaluation, options: Mapping[str, object]) -> Iterator[str]:
    """Yield the figures that are below the minimum that the caller gave, or that could not be
    measured."""
    figures = {
        "min_recall": ("recall@10", found.retrieval.recall[max(CUTS)]),
        "min_mrr": ("mean reciprocal rank", found.retrieval.mrr),
        "min_nothing": ("nothing answered by nothing", found.nothing.fraction),
    }
    for option, (name, value) in figures.items():
        least = options.get(option)
        if isinstance(least, int | float) and (value is None or value < least):
            below = f"is {_number(value)}, below {least:g}"
            yield f"{name} {'was not measured' if value is None else below}"


def _by_model(found: Evaluation) -> Iterator[str]:
    """Yield how many questions the language model wrote, and why not more."""
    if found.by_model or found.dropped:
        yield (
            f"the language model wrote {counted(found.by_model, 'question')}; {found.dropped} more "
            "reused the words of their memory, and were not asked"
        )
    if found.note:
        yield preview(one_line(found.note))


def _missed(answered: Sequence[Answered]) -> list[Answered]:
    return [one for one in answered if one.question.expected and not any(one.ranks)]


# --- rows ---


def _figures(found: Evaluation, corpus: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    real, own, nothing = found.retrieval, found.own_words, found.nothing
    source = "your questions" if not found.made else "questions of the language model"
    remark = source if real.questions else _NOT_MEASURED
    for cut, value in real.recall.items():
        yield _figure(f"recall@{cut}", value, real.questions, remark)
        remark = ""
    yield _figure("mean reciprocal rank", real.mrr, real.questions)
    for kind, one in found.by_kind.items() if len(found.by_kind) > 1 else ():
        yield _figure(f"  {one_line(kind)}: recall@10", one.recall[max(CUTS)], one.questions)
    for other in found.compared:
        low, high = other.interval
        yield (
            f"  difference with {other.setting}",
            f"{other.difference:+.2f}",
            f"{low:+.2f} to {high:+.2f}",
            str(other.questions),
            f"set {other.setting}: better on these questions" if other.is_better else "",
        )
    if found.made:
        yield _figure(
            "finds itself first by its own words", own.recall[1], own.questions, _OWN_WORDS
        )
    negative = corpus["negative"]
    empty = _number(1 - negative["answered, precise mode"] / negative["questions"])
    remarks = [_INVENTED.format(empty)] if found.made and nothing.questions else []
    if nothing.control is not None:
        remarks.append(f"precise mode finds something for {_number(nothing.control)} of the others")
    yield _figure(
        "nothing answered by nothing", nothing.fraction, nothing.questions, "; ".join(remarks)
    )
    for kind, (name, remark) in _STALE.items():
        above, pairs = stale(found.pairs, kind)
        unknown = "no pairs are known: that is not the same as no outdated answers"
        if pairs or kind == KNOWN:
            share = above / pairs if pairs else None
            words = _OLDER_WORDS if kind != GIVEN and not found.by_model else ""
            yield _figure(
                name, share, pairs, "; ".join(filter(None, (words, remark))) if pairs else unknown
            )
    times = " / ".join("–" if ms is None else f"{ms:.1f}" for ms in (found.median_ms, found.p95_ms))
    yield "median / p95 of a search, ms", times, "", str(len(found.answered)), ""


def _figure(name: str, value: float | None, count: int, remark: str = "") -> Sequence[str]:
    """Return a row with the interval of a figure, and whether it is too wide to conclude."""
    limits = interval(value, count)
    few = f"fewer than {FEW}: too few to conclude" if 0 < count < FEW else ""
    shown = f"{_number(limits[0])} to {_number(limits[1])}" if limits else ""
    return name, _number(value), shown, str(count), "; ".join(filter(None, (few, remark)))


def _about(corpus: Mapping[str, Any]) -> str:
    return (
        "To compare, not measured here: questions of the corpus of everyday use, with the default "
        f"settings ({corpus['made_by']}, commit {corpus['commit'][:7]})"
    )


def _expected(corpus: Mapping[str, Any]) -> Iterator[Sequence[str]]:
    """Yield the figures of the corpus by kind of question."""
    for kind, counts in corpus["kinds"].items():
        asked = counts["questions"]
        name, first, limits, *_ = _figure(kind, counts["first"] / asked, asked)
        yield name, first, limits, _number(counts["outdated above"] / asked), str(asked)


def _checks(hygiene: Sequence[Finding]) -> Iterator[tuple[str, str, str, str]]:
    for one in hygiene:
        ids = (
            f" ({', '.join(map(one_line, one.ids))}{', …' if one.count > len(one.ids) else ''})"
            if one.ids
            else ""
        )
        yield (
            one.name,
            str(one.count),
            str(one.of),
            f"{one.remedy}{ids}" if one.count else one.detail,
        )


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def _data(found: Evaluation) -> dict[str, object]:
    data = asdict(found)
    retrievals = {"retrieval": found.retrieval, **found.by_kind}
    shown = {name: _retrieval(one) for name, one in retrievals.items()}
    answered = [
        {"question": one.question.text, "kind": one.question.kind, "source": one.question.source,
         "expected": list(one.question.expected), "ranks": [rank or 0 for rank in one.ranks],
         "precise": one.precise, "ms": round(one.ms, 3)}
        for one in found.answered
    ]  # fmt: skip
    return {
        **data,
        "retrieval": shown.pop("retrieval"),
        "own_words": _retrieval(found.own_words),
        "by_kind": shown,
        "stale": {kind: _stale(found, kind) for kind in _STALE},
        "answered": answered,
    }


def _stale(found: Evaluation, kind: str) -> dict[str, object]:
    above, pairs = stale(found.pairs, kind)
    share = above / pairs if pairs else None
    return {"above": above, "pairs": pairs, "share": share, "interval": interval(share, pairs)}


def _retrieval(one: Retrieval) -> dict[str, object]:
    figures = {**{f"recall_at_{cut}": value for cut, value in one.recall.items()}, "mrr": one.mrr}
    limits = {name: interval(value, one.questions) for name, value in figures.items()}
    return {"questions": one.questions, **figures, "intervals": limits}


# --- the page ---


def _write(file: str, text: str) -> None:
    """Write the page to a new file that only its owner may read: it quotes memories."""
    try:
        opened = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise InvalidInput(
            f"{file} cannot be written: {error.strerror}", expected="a file that does not exist yet"
        ) from None
    with os.fdopen(opened, "w", encoding="utf-8", errors="replace", newline="\n") as page:
        page.write(text)


def _page(
    summary: str,
    found: Evaluation,
    figures: Sequence[Sequence[str]],
    checks: Sequence[Sequence[str]],
) -> str:
    recall = [(f"recall@{cut}", value) for cut, value in found.retrieval.recall.items()]
    recall += [
        ("mean reciprocal rank", found.retrieval.mrr),
        ("nothing answered by nothing", found.nothing.fraction),
    ]
    kinds = [
        (f"{kind}, {one.questions} questions", one.recall[max(CUTS)])
        for kind, one in found.by_kind.items()
    ]
    missed = "".join(f"<li>{escape(one.question.text)}</li>" for one in _missed(found.answered))
    parts = [
        f"<h1>memory-mesh eval</h1><p>{escape(summary)}</p><h2>Retrieval</h2>{bars(recall)}",
        _table(_FIGURES, figures),
        f"<h2>Recall@10 by kind</h2>{bars(kinds)}" if kinds else "",
        f"<h2>Hygiene</h2>{_table(_CHECKS, checks)}",
        f"<h2>Not found</h2><ul>{missed}</ul>" if missed else "",
    ]
    head = (
        '<meta charset="utf-8"><meta name="color-scheme" content="light"><title>memory-mesh '
        f"eval</title><style>{_STYLE}</style>"
    )
    return (
        f'<!doctype html><html lang="en"><head>{head}</head><body>{"".join(parts)}</body></html>\n'
    )


def bars(values: Sequence[tuple[str, float | None]]) -> str:
    """Return a bar chart of fractions as SVG. A figure that could not be measured has no bar."""
    rows = []
    for at, (label, value) in enumerate(values):
        top, width = at * _ROW, round((value or 0.0) * _BAR)
        rows.append(
            f'<text x="0" y="{top + 17}">{escape(label)}</text>'
            f'<rect x="{_LABEL}" y="{top + 4}" width="{width}" height="{_ROW - 8}" fill="#2f6f9f"/>'
            f'<text x="{_LABEL + width + 8}" y="{top + 17}">{_number(value)}</text>'
        )
    size = f'width="{_LABEL + _BAR + 60}" height="{max(1, len(values)) * _ROW}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" role="img" {size}>{"".join(rows)}</svg>'


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{escape(one)}</th>" for one in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{head}</tr>{body}</table>"
