"""Separate code from prose: fenced blocks and backtick spans. The other stages change only the prose."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_RUN = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def change_prose(text: str, change: Callable[[str], str]) -> str:
    """Return the text with `change` applied to everything but code."""
    return "".join(piece if code else change(piece) for piece, code in pieces(text))


def pieces(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the text in pieces of prose (False) and code (True), in order."""
    for block, fenced in blocks(text):
        if fenced or "`" not in block:
            yield block, fenced
            continue
        at = 0
        for start, end in _spans(block):
            yield block[at:start], False
            yield block[start:end], True
            at = end
        yield block[at:], False


def blocks(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the text cut at fenced blocks only. An unclosed fence reaches to the end."""
    if "```" not in text and "~~~" not in text:
        yield text, False
        return
    at, fence, start = 0, "", 0
    for match in _FENCE.finditer(text):
        mark = match.group(1)
        if not fence:
            yield text[at : match.start()], False
            fence, start = mark, match.start()
        elif mark[0] == fence[0] and len(mark) >= len(fence) and match.group().strip() == mark:
            yield text[start : match.end()], True
            fence, at = "", match.end()
    yield (text[start:], True) if fence else (text[at:], False)


def _spans(block: str) -> Iterator[tuple[int, int]]:
    """Yield backtick spans: from a run of backticks to the next run of equal length, without a blank line between them."""
    runs = [match.span() for match in _RUN.finditer(block)]
    breaks = [match.start() for match in _BLANK_LINE.finditer(block)]
    partner = _partners(runs)
    at = 0
    while at < len(runs):
        closing = partner[at]
        if closing is None or bisect_left(breaks, runs[at][0]) != bisect_left(breaks, runs[closing][0]):
            at += 1
            continue
        yield runs[at][0], runs[closing][1]
        at = closing + 1


def _partners(runs: list[tuple[int, int]]) -> list[int | None]:
    """Return for each run the next one of equal length."""
    following: dict[int, int] = {}
    partner: list[int | None] = [None] * len(runs)
    for at in range(len(runs) - 1, -1, -1):
        length = runs[at][1] - runs[at][0]
        partner[at] = following.get(length)
        following[length] = at
    return partner
