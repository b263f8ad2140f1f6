"""Stage 1, structural cleaning: HTML and Markdown marks out, what they say stays, whitespace collapsed."""

import html
import re
from collections.abc import Callable

from memory_mesh.core.scrubbing.code import blocks, outside
from memory_mesh.core.scrubbing.settings import ScrubSettings

_PAIRED = frozenset(
    """a abbr address article aside b big blockquote body button caption center cite code dd del details div dl dt em
    fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header html i iframe ins kbd label legend li main
    mark nav noscript ol option p pre q s samp section select small span strike strong style script sub summary sup svg
    table tbody td textarea tfoot th thead title tr u ul var video audio""".split()  # noqa: SIM905  (a list of words)
)
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr", "source"})
# Browsers close these by themselves, so old pages leave them open.
_LEFT_OPEN = frozenset({"p", "li", "td", "tr", "th", "dd", "dt", "option", "body", "html", "head"})
_BLOCK = frozenset(
    """address article aside blockquote body center dd details div dl dt fieldset figcaption figure footer form header hr
    html main nav ol p pre section summary table tbody tfoot thead title ul""".split()  # noqa: SIM905
)
_CELL = frozenset({"td", "th"})

# Every pattern is bounded, or stops at the next bracket: a megabyte of brackets or quotes is read about once.
_ATTRIBUTES = r"(?:\s(?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}')*+)?"
_TAG = re.compile(rf"<(/?)([A-Za-z][A-Za-z0-9]{{0,10}}){_ATTRIBUTES}/?>|<!DOCTYPE[^<>]{{0,300}}>", re.IGNORECASE)
_HREF = re.compile(r"\bhref\s{0,5}=\s{0,5}[\"']([^\"'<>]{1,2000})[\"']", re.IGNORECASE)
_ALT = re.compile(r"\balt\s{0,5}=\s{0,5}[\"']([^\"'<>]{0,500})[\"']", re.IGNORECASE)
_COMMENT = (re.compile("<!--"), re.compile("-->"))


def _element(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(rf"<{name}\b[^<>]{{0,2000}}>", re.IGNORECASE), re.compile(rf"</{name}\s{{0,20}}>", re.IGNORECASE)


_UNSEEN = tuple(_element(name) for name in ("script", "style", "noscript", "template"))
_PRE, _CODE, _ANCHOR = _element("pre"), _element("code"), _element("a")

_URL = r"(?:https?://|mailto:|\.{0,2}/|#)[^\s()<>]{0,2000}"
_MD_LINK = re.compile(rf"(?<![\w\])])(!?)\[([^\[\]\n]{{1,500}})\]\(({_URL})(?:\s\"[^\"\n]{{0,300}}\")?\)")
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,2000})>")
_BOLD = re.compile(r"(?<![\w*/\\])\*\*(?=[^\s*])([^*\n]{1,1000})(?<=[^\s*])\*\*(?![\w*])")
_ITALIC = re.compile(r"(?<![\w*/\\])\*(?=\w)([^*\n]{1,1000})(?<=[\w.!?,;:'\")\]])\*(?![\w*])")
# With underscores only where a space shows that it is a phrase: __init__ and _private_ are names.
_UNDERSCORED = re.compile(r"(?<![\w/\\])(_{1,2})(?=[^\s_])([^_\n]{1,1000})(?<=[^\s_])\1(?!\w)")
_TABLE_RULE = re.compile(r"^[ \t]*\|[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*\n", re.MULTILINE)

_INNER_SPACE = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_MANY_LINES = re.compile(r"\n{3,}")


def clean(text: str, settings: ScrubSettings) -> str:
    """The text without markup."""
    rules = settings.structural
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    if rules.strip_html and "<" in text:
        text = _without_html(text)
    if rules.strip_markdown:
        text = outside(text, _without_markdown)
    return _collapsed(text) if rules.collapse_whitespace else text


def _without_html(text: str) -> str:
    prose = " ".join(block for block, code in blocks(text) if not code)
    tags = _html_tags(prose)
    if not tags:
        return text
    return outside(text, lambda piece: _tagless(piece, tags))


def _html_tags(text: str) -> frozenset[str]:
    """The tags that make this text HTML: known ones that open and close, and those that need not close. Empty: no HTML."""
    opened, closed = set[str](), set[str]()
    for match in _TAG.finditer(text):
        if name := (match.group(2) or "").lower():
            (closed if match.group(1) else opened).add(name)
    paired = opened & closed & _PAIRED
    void = opened & _VOID
    loose = (opened | closed) & _LEFT_OPEN if paired or void else set[str]()
    comment = {"!"} if "<!--" in text or "<!doctype" in text[:2000].lower() else set[str]()
    return frozenset(paired | void | loose | comment)


def _tagless(piece: str, tags: frozenset[str]) -> str:
    if "<" not in piece:
        return html.unescape(piece)
    for unseen in (_COMMENT, *_UNSEEN):
        piece = _between(piece, unseen, lambda _opening, _inside: "\n")
    piece = _between(piece, _PRE, lambda _opening, inside: _fenced(inside))
    return outside(piece, lambda prose: _words(prose, tags))


def _words(piece: str, tags: frozenset[str]) -> str:
    piece = _between(piece, _CODE, lambda opening, inside: _backticked(inside) or opening + inside + "</code>")
    return outside(piece, lambda prose: _plain(prose, tags))


def _plain(piece: str, tags: frozenset[str]) -> str:
    piece = _between(piece, _ANCHOR, _linked)
    return html.unescape(_TAG.sub(lambda tag: _instead(tag, tags), piece))


def _between(text: str, element: tuple[re.Pattern[str], re.Pattern[str]], instead: Callable[[str, str], str]) -> str:
    """The text with each element replaced; one that never closes ends the search, so each end is looked for once."""
    opens, closes = element
    out: list[str] = []
    at = 0
    while (opening := opens.search(text, at)) and (closing := closes.search(text, opening.end())):
        out += [text[at : opening.start()], instead(opening.group(), text[opening.end() : closing.start()])]
        at = closing.end()
    return "".join([*out, text[at:]])


def _fenced(inside: str) -> str:
    """Preformatted text, as code that later rounds leave alone."""
    words = html.unescape(_TAG.sub("", inside)).strip("\n")
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n\n{fence}\n{words}\n{fence}\n\n"


def _backticked(inside: str) -> str | None:
    words = html.unescape(_TAG.sub("", inside))
    return f"`{words}`" if words.strip() and "`" not in words and "\n" not in words else None


def _linked(opening: str, inside: str) -> str:
    found = _HREF.search(opening)
    return _with_url(inside, found.group(1)) if found else inside


def _instead(tag: re.Match[str], tags: frozenset[str]) -> str:
    """What stands where a tag stood."""
    name = (tag.group(2) or "!").lower()
    if name not in tags:
        return tag.group()
    if name == "img":
        described = _ALT.search(tag.group())
        return described.group(1) if described else ""
    opening = not tag.group(1)
    if name[0] == "h" and name[1:].isdecimal():
        return f"\n\n{'#' * int(name[1:])} " if opening else "\n\n"
    if name in ("li", "br", "tr"):
        return {"li": "\n- ", "br": "\n", "tr": "\n"}[name] if opening else ""
    if name in _CELL:
        return "" if opening else " | "
    return "\n\n" if name in _BLOCK else ""


def _without_markdown(piece: str) -> str:
    if "](" in piece:
        piece = _MD_LINK.sub(lambda link: _with_url(link.group(2), link.group(3)), piece)
    if "<" in piece:
        piece = _AUTOLINK.sub(r"\1", piece)
    if "*" in piece:
        piece = _ITALIC.sub(r"\1", _BOLD.sub(r"\1", piece))
    if "_" in piece:
        piece = _UNDERSCORED.sub(lambda phrase: phrase.group(2 if " " in phrase.group(2) else 0), piece)
    return _TABLE_RULE.sub("", piece) if "|" in piece else piece


def _with_url(words: str, url: str) -> str:
    """A link's words and where it leads; losing either would lose what was said."""
    words = words.strip()
    return words if url.startswith("#") or url in words else f"{words} ({url})" if words else url


def _line_ends(block: str) -> str:
    return "\n".join(line.rstrip(" \t") for line in block.split("\n"))


def _collapsed(text: str) -> str:
    text = outside(text, lambda piece: _INNER_SPACE.sub(" ", piece))
    lines = [block if code else _MANY_LINES.sub("\n\n", _line_ends(block)) for block, code in blocks(text)]
    text = "".join(lines).strip("\n").rstrip()
    return text if "\n" in text else text.strip()
