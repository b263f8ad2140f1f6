"""The settings of the scrubber, and its stages 1 to 3: structure, noise and normal form.

The settings are in the groups of RFC-0011. Overrides are merged deeply: unnamed settings keep their
value. The stages change only the prose, no code.
"""

import html
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

from memory_mesh.core.errors import InvalidInput, is_number, shown
from memory_mesh.core.text import CONTROL, REDUNDANT, REORDERING, LazyRegex, without_escapes

# --- settings ---

_HUMP = re.compile(r"(?<=[a-z])(?=[A-Z])")
Group = TypeVar("Group")


@dataclass(frozen=True, slots=True, kw_only=True)
class Structural:
    """Settings of stage 1."""

    strip_html: bool = True
    strip_markdown: bool = True
    collapse_whitespace: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Semantic:
    """Settings of stage 2."""

    remove_duplicates: bool = True
    remove_boilerplate: bool = True
    min_signal_ratio: float = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Normalisation:
    """Settings of stage 3."""

    headings: bool = True
    lists: bool = True
    punctuation: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunking:
    """Settings of stage 4, in tokens."""

    max_tokens: int = 500
    hard_max_tokens: int = 2000
    min_tokens: int = 10
    heading_aware: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Validation:
    """Settings of stage 6, in characters."""

    enforce_min_length: bool = True
    min_length: int = 10
    max_length: int = 1_000_000
    reject_empty: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubSettings:
    """The settings of all stages."""

    enabled: bool = True
    structural: Structural = field(default_factory=Structural)
    semantic: Semantic = field(default_factory=Semantic)
    normalisation: Normalisation = field(default_factory=Normalisation)
    chunking: Chunking = field(default_factory=Chunking)
    validation: Validation = field(default_factory=Validation)

    def merged(self, overrides: Mapping[str, object]) -> "ScrubSettings":
        """Return these settings with some replaced. Names may be in camel case, as in RFC-0011
        (`minTokens`)."""
        return _merged(self, overrides, "scrub")


# The defaults of a mesh: a memory may be short.
MESH_OVERRIDES: Mapping[str, object] = {
    "enabled": True,
    "chunking": {"minTokens": 1},
    "validation": {"enforceMinLength": False},
}


def _merged(group: Group, overrides: object, path: str) -> Group:
    if not isinstance(overrides, Mapping):
        raise InvalidInput(f"{path} is {shown(overrides)}", expected="a table of settings")
    known = {f.name: getattr(group, f.name) for f in fields(group)}  # type: ignore[arg-type]
    given: dict[str, Any] = {}
    for raw, value in overrides.items():
        name = _HUMP.sub("_", str(raw)).lower()
        if name not in known:
            raise InvalidInput(
                f"unknown setting {shown(raw)} in {path}", expected=f"one of {', '.join(known)}"
            )
        merge = _merged if is_dataclass(known[name]) else _checked
        given[name] = merge(known[name], value, f"{path}.{name}")
    return replace(group, **given)  # type: ignore[type-var]


def _checked(current: object, value: object, path: str) -> object:
    """Return the value if it has the type of the current one."""
    fits = isinstance(value, bool) if isinstance(current, bool) else is_number(value, min_=0)
    if not fits or (type(current) is int and isinstance(value, float)):
        expected = "true or false" if isinstance(current, bool) else "a number from 0"
        raise InvalidInput(f"{path} is {shown(value)}", expected=expected)
    return value


# --- code: fenced blocks and backtick spans ---

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})[^`\n]*$", re.MULTILINE)
_RUN = re.compile(r"`+")
_BLANK_LINE = re.compile(r"\n[ \t]*\n")


def change_prose(text: str, change: Callable[[str], str]) -> str:
    """Return the text with `change` applied to everything but code."""
    changed: dict[str, str] = {}  # a hostile text repeats its pieces
    parts: list[str] = []
    for piece, code in pieces(text):
        if not code and piece not in changed:
            changed[piece] = change(piece)
        parts.append(piece if code else changed[piece])
    return "".join(parts)


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
    """Yield backtick spans: from a run of backticks to the next run of equal length, without a
    blank line between them."""
    runs = [match.span() for match in _RUN.finditer(block)]
    breaks = [match.start() for match in _BLANK_LINE.finditer(block)]
    following: dict[int, int] = {}  # by length
    partner: list[int | None] = [None] * len(runs)
    for at, (start, end) in reversed(list(enumerate(runs))):
        partner[at] = following.get(end - start)
        following[end - start] = at
    at = 0
    while at < len(runs):
        closing = partner[at]
        if closing is None or (
            breaks and bisect_left(breaks, runs[at][0]) != bisect_left(breaks, runs[closing][0])
        ):
            at += 1
            continue
        yield runs[at][0], runs[closing][1]
        at = closing + 1


# --- stage 1: structure ---

_PAIRED = frozenset(
    """a abbr address article aside b big blockquote body button caption center cite code dd del
    details div dl dt em fieldset figcaption figure font footer form h1 h2 h3 h4 h5 h6 head header
    html i iframe ins kbd label legend li main mark nav noscript ol option p pre q s samp section
    select small span strike strong style script sub summary sup svg table tbody td textarea tfoot
    th thead title tr u ul var video audio""".split()  # noqa: SIM905  (a list of words)
)
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr", "source"})
_KNOWN = _PAIRED | _VOID
_BLOCK = """address article aside blockquote body center dd details div dl dt fieldset figcaption
    figure footer form header hr html main nav ol p pre section summary table tbody tfoot thead
    title ul""".split()  # noqa: SIM905
_CONTAINERS = frozenset(
    {*_BLOCK, "head", "li", "tr", "td", "th", *(f"h{level}" for level in range(1, 7))}
) - {"hr"}
# What replaces an opening and a closing tag. Other tags become nothing.
_TAG_TEXTS = {
    **dict.fromkeys(_BLOCK, ("\n\n", "\n\n")),
    **{f"h{level}": (f"\n\n{'#' * level} ", "\n\n") for level in range(1, 7)},
    "li": ("\n- ", ""),
    "br": ("\n", ""),
    "tr": ("\n", ""),
    "td": ("", " | "),
    "th": ("", " | "),
}

# Every pattern is bounded or stops at the next bracket: a megabyte of brackets or quotes is read
# about once.
_ATTRIBUTES = r"(?:\s(?:[^<>\"']|\"[^\"]{0,2000}\"|'[^']{0,2000}')*+)?"
_TAG = re.compile(
    rf"<(/?)([A-Za-z][A-Za-z0-9]{{0,10}}){_ATTRIBUTES}/?>|<!DOCTYPE[^<>]{{0,300}}>|"
    rf"<\?xml[^<>]{{0,300}}>",
    re.IGNORECASE,
)
# A page starts with its document type or root element, and another tag follows.
_PAGE = re.compile(
    r"\s*(?:<\?xml[^<>]{0,200}\?>\s*)?(?:<!DOCTYPE\s+html[^<>]{0,300}>|"
    r"<html\b[^<>]{0,2000}>)\s*<[a-z]",
    re.IGNORECASE,
)
# Code that makes markup: components and attributes of JSX and Vue, expressions of templates, PHP.
_TEMPLATE = re.compile(
    r"<[A-Z][a-z]|<[a-z][^<>]{0,2000}\s(?:className=|[\w-]+=\{|(?:v-|[@*:])[A-Za-z.-]+=|"
    r"[(\[][\w.]+[)\]]=)|\{[{%#/]|<[%?](?!xml)|\{[A-Za-z_$][\w.]{0,100}\}"
)
_HREF = re.compile(r"\bhref\s{0,5}=\s{0,5}[\"']([^\"'<>]{1,2000})[\"']", re.IGNORECASE)
_ALT = re.compile(r"\balt\s{0,5}=\s{0,5}[\"']([^\"'<>]{0,500})[\"']", re.IGNORECASE)
_COMMENT = (re.compile("<!--"), re.compile("-->"))


def _element(name: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    return re.compile(rf"<{name}\b[^<>]{{0,2000}}>", re.IGNORECASE), re.compile(
        rf"</{name}\s{{0,20}}>", re.IGNORECASE
    )


_NOT_DISPLAYED = tuple(_element(name) for name in ("script", "style", "noscript", "template"))
_COMMENT_MARK = re.compile("<!--|-->")
_PRE, _CODE, _ANCHOR = _element("pre"), _element("code"), _element("a")

_URL = r"(?:https?://|mailto:|\.{0,2}/|#)[^\s()<>]{0,2000}"
_MD_LINK = re.compile(
    rf"(?<![\w\])])(!?)\[([^\[\]\n]{{1,500}})\]\(({_URL})(?:\s\"[^\"\n]{{0,300}}\")?\)"
)
_AUTOLINK = re.compile(r"<((?:https?://|mailto:)[^\s<>]{1,2000})>")
_BOLD = re.compile(r"(?<![\w*/\\])\*\*(?=[^\s*])([^*\n]{1,1000})(?<=[^\s*])\*\*(?![\w*])")
_ITALIC = re.compile(r"(?<![\w*/\\])\*(?=\w)([^*\n]{1,1000})(?<=[\w.!?,;:'\")\]])\*(?![\w*])")
# Underscores mark emphasis only around a phrase with a space: __init__ and _private_ are names.
_UNDERSCORED = re.compile(r"(?<![\w/\\])(_{1,2})(?=[^\s_])([^_\n]{1,1000})(?<=[^\s_])\1(?!\w)")
_TABLE_RULE = re.compile(
    r"^[ \t]*\|[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?[ \t]*\n", re.MULTILINE
)

_INNER_SPACE = re.compile(r"(?<=\S)[ \t]{2,}(?=\S)")
_MANY_LINES = re.compile(r"\n{3,}")


def clean_structure(text: str, settings: ScrubSettings) -> str:
    """Stage 1: remove terminal escapes, the tags of a markup document and Markdown marks, and
    collapse whitespace."""
    rules = settings.structural
    text = without_escapes(text)
    text = text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text
    if (
        rules.strip_html
        and "<" in text
        and _is_markup("".join("x" if code else block for block, code in blocks(text)))
    ):
        text = without_tags(text)
    if rules.strip_markdown:
        text = change_prose(text, _without_markdown)
    return _collapsed(text) if rules.collapse_whitespace else text


def without_tags(text: str) -> str:
    """Return the text without its HTML tags. Code keeps them."""
    tags = _html_tags(" ".join(block for block, code in blocks(text) if not code))
    return change_prose(text, lambda piece: _tagless(piece, tags)) if tags else text


def joined_words(text: str) -> str:
    """Return all characters that are not tags, also those of comments and scripts. Code keeps
    its tags."""
    return change_prose(
        _COMMENT_MARK.sub("", text), lambda piece: html.unescape(_TAG.sub(_unknown_tag, piece))
    )


def _unknown_tag(tag: re.Match[str]) -> str:
    return "" if (tag.group(2) or "p").lower() in _KNOWN else tag.group()


def _is_markup(text: str) -> bool:
    """Return whether a text is a markup document: a page, or a fragment whose text is all inside
    closed block elements.

    Any other text with tags is about markup: `Use <b>`, `<p>a</p> is a paragraph`, a component of
    React.
    """
    for element in (_COMMENT, *_NOT_DISPLAYED):
        text = _between(text, element, lambda _opening, _inside: "")
    if _TEMPLATE.search(text):
        return False
    tags = [tag for tag in _TAG.finditer(text) if (tag.group(2) or "p").lower() in _KNOWN]
    return bool(_PAGE.match(text) and any(tag.group(1) for tag in tags)) or _is_fragment(text, tags)


def _is_fragment(text: str, tags: list[re.Match[str]]) -> bool:
    # The last end of each element.
    closed_at = {tag.group(2).lower(): tag.start() for tag in tags if tag.group(1)}
    depth: Counter[str] = Counter()
    at, inside = 0, False
    for tag in tags:
        within, words = depth.total() > 0, text[at : tag.start()].strip()
        if words and not within:
            return False
        inside, at = inside or bool(words), tag.end()
        name = (tag.group(2) or "").lower()
        if name in _CONTAINERS and not tag.group(1) and tag.start() < closed_at.get(name, 0):
            depth[name] += 1
        elif tag.group(1) and depth[name]:
            depth[name] -= 1
    return inside and not text[at:].strip()


def _html_tags(text: str) -> frozenset[str]:
    """Return the tags of a text that HTML knows, and `!` if it has comments or a document type."""
    names = {(match.group(2) or "!").lower() for match in _TAG.finditer(text)} & (_KNOWN | {"!"})
    return frozenset(names | {"!"} if "<!--" in text else names)


def _tagless(piece: str, tags: frozenset[str]) -> str:
    if "<" not in piece:
        return html.unescape(piece)
    piece = _between(piece, _COMMENT, lambda _opening, _inside: "")
    for element in _NOT_DISPLAYED:
        piece = _between(piece, element, lambda _opening, _inside: "\n")
    piece = _between(piece, _PRE, lambda _opening, inside: _fenced(inside))
    return change_prose(piece, lambda prose: _words(prose, tags))


def _words(piece: str, tags: frozenset[str]) -> str:
    piece = _between(
        piece, _CODE, lambda opening, inside: _backticked(inside) or opening + inside + "</code>"
    )
    return change_prose(piece, lambda prose: _plain(prose, tags))


def _plain(piece: str, tags: frozenset[str]) -> str:
    return html.unescape(
        _TAG.sub(lambda tag: _tag_text(tag, tags), _between(piece, _ANCHOR, _linked))
    )


def _between(
    text: str,
    element: tuple[re.Pattern[str], re.Pattern[str]],
    replacement: Callable[[str, str], str],
) -> str:
    """Return the text with each element replaced. An unclosed one ends the search, so each end
    is searched for once."""
    opens, closes = element
    out: list[str] = []
    at = 0
    while (opening := opens.search(text, at)) and (closing := closes.search(text, opening.end())):
        out += [
            text[at : opening.start()],
            replacement(opening.group(), text[opening.end() : closing.start()]),
        ]
        at = closing.end()
    return "".join([*out, text[at:]])


def _fenced(inside: str) -> str:
    """Return preformatted text as a fenced block, which later rounds leave unchanged."""
    words = html.unescape(_TAG.sub("", inside)).strip("\n")
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n\n{fence}\n{words}\n{fence}\n\n"


def _backticked(inside: str) -> str | None:
    words = html.unescape(_TAG.sub("", inside))
    return f"`{words}`" if words.strip() and "`" not in words and "\n" not in words else None


def _linked(opening: str, inside: str) -> str:
    return _with_url(inside, found.group(1)) if (found := _HREF.search(opening)) else inside


def _tag_text(tag: re.Match[str], tags: frozenset[str]) -> str:
    """Return the replacement of a tag."""
    name = (tag.group(2) or "!").lower()
    if name not in tags:
        return tag.group()
    if name == "img":
        described = _ALT.search(tag.group())
        return described.group(1) if described else ""
    return _TAG_TEXTS.get(name, ("", ""))[bool(tag.group(1))]


def _without_markdown(piece: str) -> str:
    if "](" in piece:
        piece = _MD_LINK.sub(lambda link: _with_url(link.group(2), link.group(3)), piece)
    if "<" in piece:
        piece = _AUTOLINK.sub(r"\1", piece)
    if "*" in piece:
        piece = _ITALIC.sub(r"\1", _BOLD.sub(r"\1", piece))
    if "_" in piece:
        piece = _UNDERSCORED.sub(
            lambda phrase: phrase.group(2 if " " in phrase.group(2) else 0), piece
        )
    return _TABLE_RULE.sub("", piece) if "|" in piece else piece


def _with_url(words: str, url: str) -> str:
    """Return the words of a link and its address; both carry meaning."""
    words = words.strip()
    return words if url.startswith("#") or url in words else f"{words} ({url})" if words else url


def _collapsed(text: str) -> str:
    result: list[str] = []
    for block, code in blocks(change_prose(text, lambda piece: _INNER_SPACE.sub(" ", piece))):
        trimmed = block if code else "\n".join(line.rstrip(" \t") for line in block.split("\n"))
        result.append(block if code else _MANY_LINES.sub("\n\n", trimmed))
    text = "".join(result).strip("\n").rstrip()
    return text if "\n" in text else text.strip()


# --- stage 2: noise ---

# A shorter block may repeat on purpose ("Thanks").
_MIN_DUPLICATE_CHARS = 40
# The ratio means nothing for fewer characters.
_MIN_RATIO_CHARS = 20
# Boilerplate occurs on pages, not in a note of a few paragraphs.
_PAGE_PARAGRAPHS = 4

_BOILERPLATE = re.compile(
    r"""(?:(?:we|this\ (?:web)?site)\ uses?\ cookies\b.{0,200}
    |(?:accept|reject|manage)\ (?:all\ )?cookies(?:\ .{0,40})?
    |(?:©|\(c\)|copyright)\ .{0,80}\b\d{4}\b.{0,80}
    |all\ rights\ reserved\.?
    |(?:subscribe\ to|sign\ up\ for)\ (?:our|the)\ (?:\w+\ )?newsletter.{0,80}
    |(?:skip\ to\ (?:main\ )?content|back\ to\ top|share\ (?:this|on)\b.{0,40}
      |follow\ us\ on\ .{0,60})
    |(?:privacy\ policy|terms\ of\ (?:service|use)|cookie\ policy|contact\ us|about\ us)
      (?:\s*[|·•-]\s*(?:privacy\ policy|terms\ of\ (?:service|use)|cookie\ policy
        |contact\ us|about\ us))*)""",
    re.IGNORECASE | re.VERBOSE,
)


def filter_noise(text: str, settings: ScrubSettings) -> str:
    """Stage 2: remove boilerplate, repeated and meaningless paragraphs, but never all of them."""
    if "\n" not in text:
        return text
    seen: set[str] = set()
    page = text.count("\n\n") + 1 >= _PAGE_PARAGRAPHS
    return "".join(
        block if code else _without_noise(block, settings.semantic, seen, page=page)
        for block, code in blocks(text)
    )


def _without_noise(prose: str, rules: Semantic, seen: set[str], *, page: bool) -> str:
    # Split at blank lines and keep them: a dropped paragraph takes the break after it along.
    parts = re.split(r"(\n\n+)", prose)
    pairs = (parts[at : at + 2] for at in range(0, len(parts), 2))
    return "".join(
        "".join(pair) for pair in pairs if not _is_noise(pair[0], rules, seen, page=page)
    )


def _is_noise(paragraph: str, rules: Semantic, seen: set[str], *, page: bool) -> bool:
    words = " ".join(paragraph.casefold().split())
    if not words:
        return False
    if rules.remove_duplicates and len(words) >= _MIN_DUPLICATE_CHARS:
        if words in seen:
            return True
        seen.add(words)
    if page and rules.remove_boilerplate and _BOILERPLATE.fullmatch(words):
        return True
    signs = words.replace(" ", "")
    signal = 1.0 if len(signs) < _MIN_RATIO_CHARS else sum(map(str.isalnum, signs)) / len(signs)
    return page and signal < rules.min_signal_ratio


# --- stage 3: one form ---

# `## Title ##` is a heading; `#123`, `C#7` and `#hashtag` are not, because no space follows.
HEADING = re.compile(r"^(#{1,6})[ \t]++(\S[^\n]*)$", re.MULTILINE)
_UNDERLINED = re.compile(r"(?:(?<=\n\n)|\A)([^\n#>|\-=\s][^\n]{0,200})\n={3,}[ \t]*(?=\n|\Z)")
# `+` stays because it often marks an added line in a diff, and a lone `*` because it may be a
# product.
_BULLET = re.compile(r"^([ \t]*)[•‣◦▪●∙][ \t]*(?=\S)", re.MULTILINE)
_STARRED = re.compile(r"(?:^[ ]{0,3}\*[ ]+\S[^\n]*(?:\n|\Z)){2,}", re.MULTILINE)
_STAR = re.compile(r"^([ ]{0,3})\*[ ]+", re.MULTILINE)

_REPLACED = {
    **dict.fromkeys(map(ord, "“”„‟"), '"'),
    **dict.fromkeys(map(ord, "‘’‚‛"), "'"),
    **dict.fromkeys(
        map(
            ord,
            "\u00a0\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u202f\u205f"
            "\u3000",
        ),
        " ",
    ),
    0x85: "\n",
    0x2028: "\n",
    0x2029: "\n\n",
}
# Joiners within emoji and scripts stay.
_REMOVED = LazyRegex(rf"[{CONTROL}\x0b\x0c{REDUNDANT}{REORDERING}]")


def normalise(text: str, settings: ScrubSettings) -> str:
    """Stage 3: write headings, list marks, quotes and spaces in one form each. Code is
    unchanged."""
    return change_prose(text, lambda piece: _normalised(piece, settings))


def title(heading: re.Match[str]) -> str:
    """Return the text of a heading without closing marks."""
    words = heading.group(2).rstrip()
    bare = words.rstrip("#")
    return bare.rstrip() if bare != words and bare.endswith((" ", "\t")) else words


def _normalised(piece: str, settings: ScrubSettings) -> str:
    rules = settings.normalisation
    if rules.punctuation and not piece.isascii():
        piece = unicodedata.normalize("NFC", piece)
    if rules.punctuation:
        piece = _REMOVED.sub("", piece.translate(_REPLACED))
    if rules.headings:
        piece = HEADING.sub(
            lambda found: f"{found.group(1)} {title(found)}", _UNDERLINED.sub(r"# \1", piece)
        )
    if rules.lists:
        piece = _BULLET.sub(r"\1- ", piece)
        piece = _STARRED.sub(lambda block: _STAR.sub(r"\1- ", block.group()), piece)
    return piece
