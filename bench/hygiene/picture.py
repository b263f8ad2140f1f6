"""Draw the percentage of bad trials by check and system as bars."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from bench.picture import _COLOURS, _rule, _text

_LEFT, _WIDTH, _SCALE, _BAR, _GAP = 330, 900, 400, 16, 14


def bars(parts: Sequence[Mapping[str, Any]]) -> str:
    """Return one group of bars for each figure that more than one system has, as SVG."""
    groups = {title: rows for title, rows in _groups(parts).items() if len(rows) > 1}
    names = list(dict.fromkeys(name for rows in groups.values() for name in rows))
    colours = dict(zip(names, _COLOURS, strict=False))
    height = 60 + sum(_BAR * len(rows) + _GAP for rows in groups.values())
    body = "\n".join(_drawn(groups, colours, height))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        'font-family="sans-serif" role="img" aria-label="Percentage of bad trials by check and '
        f'system">\n{body}\n</svg>\n'
    )


def _groups(parts: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    """Return the percentage of each system by what is counted, over the valid rows."""
    counted: dict[str, dict[str, tuple[int, int]]] = {}
    for row in (row for part in parts for row in part["rows"] if row["valid"]):
        bad, trials = counted.setdefault(row["what"], {}).get(row["system"], (0, 0))
        counted[row["what"]][row["system"]] = (bad + row["bad"], trials + row["trials"])
    return {
        what: {name: 100 * bad / trials for name, (bad, trials) in rows.items()}
        for what, rows in counted.items()
    }


def _drawn(
    groups: Mapping[str, Mapping[str, float]], colours: Mapping[str, str], height: int
) -> Iterator[str]:
    yield _text(20, 24, "Bad trials in percent: shorter is better, none is right", size=16)
    for tick in (0, 25, 50, 75, 100):
        at = _LEFT + tick * _SCALE / 100
        yield _rule(at, 40, at, height - 20)
        yield _text(at, height - 4, f"{tick} %", anchor="middle", size=11)
    top = 44
    for title, rows in groups.items():
        yield _text(_LEFT - 10, top + _BAR * len(rows) / 2 + 4, title, anchor="end", size=12)
        for name, percent in rows.items():
            width = max(percent * _SCALE / 100, 1.5)
            size = f'width="{width:.1f}" height="{_BAR - 4}"'
            yield f'<rect x="{_LEFT}" y="{top + 2}" {size} fill="{colours.get(name, "#777777")}"/>'
            yield _text(_LEFT + width + 6, top + _BAR - 4, f"{name} {percent:.1f}", size=11)
            top += _BAR
        top += _GAP
