"""Draw SVG charts of lines: over logarithmic axes, from 0 to 1, over days or minutes. They suit
a light and a dark background."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from math import ceil, floor, log10
from typing import Protocol

_WIDTH, _HEIGHT = 760, 440
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 210, 48, 56
# Distinct for colour-blind readers.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#999933")
_INK, _GRID = "#7a7a7a", "#7a7a7a"


@dataclass(frozen=True, slots=True)
class Line:
    """A line of the chart. A dashed line is a goal, not a measurement."""

    name: str
    points: Sequence[tuple[float, float]]
    dashed: bool = False


def chart(title: str, lines: Sequence[Line], *, x: str, y: str) -> str:
    """Return the chart of these lines as SVG; all values must be above zero."""
    across = _LogAxis([at for line in lines for at, _ in line.points], _LEFT, _WIDTH - _RIGHT)
    up = _LogAxis([at for line in lines for _, at in line.points], _HEIGHT - _BOTTOM, _TOP)
    return _draw(title, lines, across, up, x=x, y=y)


def unit_chart(title: str, lines: Sequence[Line], *, x: str, y: str) -> str:
    """Return the chart of these lines as SVG; all values must be from 0 to 1."""
    return _draw(
        title,
        lines,
        _UnitAxis(_LEFT, _WIDTH - _RIGHT),
        _UnitAxis(_HEIGHT - _BOTTOM, _TOP),
        x=x,
        y=y,
    )


def day_chart(title: str, lines: Sequence[Line], *, days: int, y: str) -> str:
    """Return the chart of these lines as SVG: values from 0 to 1, over so many days."""
    across = _UnitAxis(_LEFT, _WIDTH - _RIGHT, most=days, ticks=range(0, days + 1, 30))
    return _draw(title, lines, across, _UnitAxis(_HEIGHT - _BOTTOM, _TOP), x="days", y=y)


def rank_chart(title: str, lines: Sequence[Line], *, ranks: int, y: str) -> str:
    """Return the chart of these lines as SVG: values from 0 to 1, over the first results, 1 to
    so many."""
    across = _UnitAxis(
        _LEFT - (_WIDTH - _RIGHT - _LEFT) / (ranks - 1),
        _WIDTH - _RIGHT,
        most=ranks,
        ticks=range(1, ranks + 1),
    )
    return _draw(title, lines, across, _UnitAxis(_HEIGHT - _BOTTOM, _TOP), x="first results", y=y)


def time_chart(
    title: str, lines: Sequence[Line], *, minutes: float, y: str, x: str = "minutes"
) -> str:
    """Return the chart of these lines as SVG: values from 0 to the largest, over so many minutes
    (or `x`), without dots."""
    most = max((value for line in lines for _, value in line.points), default=1.0) or 1.0
    across = _UnitAxis(
        _LEFT,
        _WIDTH - _RIGHT,
        most=minutes,
        ticks=[tick for tick in _steps(minutes) if tick <= minutes],
    )
    up = _UnitAxis(_HEIGHT - _BOTTOM, _TOP, most=max(_steps(most)), ticks=_steps(most))
    return _draw(title, lines, across, up, x=x, y=y, dots=False)


def _steps(most: float) -> list[float]:
    """Return round values from 0 to `most` or a little above, about five."""
    power = 10.0 ** floor(log10(most / 5))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= most / 5)
    return [at * step for at in range(ceil(most / step - 1e-9) + 1)]


class _Axis(Protocol):
    """The place of a value on the page, and the values that are marked."""

    @property
    def ticks(self) -> Sequence[float]: ...

    def at(self, value: float) -> float: ...


class _UnitAxis:
    """A linear axis from 0 to 1, or to `most`."""

    def __init__(
        self,
        start: float,
        end: float,
        *,
        most: float = 1.0,
        ticks: Sequence[float] = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0),
    ) -> None:
        self._start, self._scale = start, (end - start) / most
        self.ticks = ticks

    def at(self, value: float) -> float:
        return round(self._start + value * self._scale, 1)


class _LogAxis:
    """A logarithmic axis between two powers of ten."""

    def __init__(self, values: Iterable[float], start: float, end: float) -> None:
        logs = [log10(value) for value in values]
        self.low, self.high = floor(min(logs) + 1e-9), ceil(max(logs) - 1e-9)
        self.high = max(self.high, self.low + 1)
        self._start, self._scale = start, (end - start) / (self.high - self.low)

    def at(self, value: float) -> float:
        return round(self._start + (log10(value) - self.low) * self._scale, 1)

    @property
    def ticks(self) -> list[float]:
        return [10.0**power for power in range(self.low, self.high + 1)]


def _draw(
    title: str,
    lines: Sequence[Line],
    across: _Axis,
    up: _Axis,
    *,
    x: str,
    y: str,
    dots: bool = True,
) -> str:
    middle = (_TOP + _HEIGHT - _BOTTOM) / 2
    parts = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            'font-family="sans-serif" font-size="13">'
        ),
        _text(_LEFT, 24, title, size=16),
        *_grid(across, up),
        _text((_LEFT + _WIDTH - _RIGHT) / 2, _HEIGHT - 14, x, anchor="middle"),
        f'<g transform="rotate(-90 18 {middle})">{_text(18, middle, y, anchor="middle")}</g>',
        *_draw_lines(lines, across, up, dots=dots),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _grid(across: _Axis, up: _Axis) -> Iterator[str]:
    for value in across.ticks:
        yield _rule(across.at(value), _TOP, across.at(value), _HEIGHT - _BOTTOM)
        yield _text(across.at(value), _HEIGHT - _BOTTOM + 20, _number(value), anchor="middle")
    for value in up.ticks:
        yield _rule(_LEFT, up.at(value), _WIDTH - _RIGHT, up.at(value))
        yield _text(_LEFT - 8, up.at(value) + 4, _number(value), anchor="end")


def _draw_lines(lines: Sequence[Line], across: _Axis, up: _Axis, *, dots: bool) -> Iterator[str]:
    for at, line in enumerate(lines):
        colour = _COLOURS[at % len(_COLOURS)]
        dash = ' stroke-dasharray="6 5"' if line.dashed else ""
        points = [(across.at(right), up.at(high)) for right, high in line.points]
        path = " ".join(f"{right},{high}" for right, high in points)
        yield f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"{dash}/>'
        if dots:
            yield from (
                f'<circle cx="{right}" cy="{high}" r="3.5" fill="{colour}"/>'
                for right, high in points
            )
        key = _TOP + 8 + 22 * at
        start = _WIDTH - _RIGHT + 18
        yield (
            f'<line x1="{start}" y1="{key}" x2="{start + 24}" y2="{key}" stroke="{colour}" '
            f'stroke-width="2"{dash}/>'
        )
        yield _text(start + 32, key + 4, line.name)


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{_GRID}" stroke-opacity="0.3"/>'


def _text(x: float, y: float, words: str, *, anchor: str = "start", size: int = 13) -> str:
    return (
        f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}" '
        f'fill="{_INK}">{escape(words)}</text>'
    )


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"
