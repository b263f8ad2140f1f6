"""Layer 0, the scrubber of RFC-0011: six stages that clean a text before it is stored.

1 structural cleaning → 2 semantic filtering → 3 normalisation → 4 chunking → 5 annotation → 6
validation.

A memory is mostly plain text, and damaging it is worse than leaving a stray asterisk. So tags are
removed only from a markup document (`List<int>`, `a < b` and `use <b>` are none), Markdown is
changed only where its marks are unambiguous, and code, fenced or in backticks, loses only the
escape sequences of terminals. The first three stages repeat until nothing changes, so scrubbing is
idempotent. A stage that would leave nothing is skipped.

The settings are in the groups of RFC-0011. Overrides are merged deeply: unnamed settings keep their
value.
"""

import html
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from itertools import chain
from typing import Any, TypeVar

from memory_mesh.core.errors import InvalidInput, is_number, shown
from memory_mesh.core.language.packaged import Expressions, WordSets
from memory_mesh.core.text import (
    CONTROL,
    REDUNDANT,
    REORDERING,
    LazyRegex,
    TokenCounter,
    estimate,
    is_blank,
    without_escapes,
)

_RE, _WORDS = Expressions(__name__), WordSets(__name__)

# --- settings ---

_HUMP = LazyRegex(r"(?<=[a-z])(?=[A-Z])")
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
    for match in _RE.fence.finditer(text):
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
    runs = [match.span() for match in _RE.run.finditer(block)]
    breaks = [match.start() for match in _RE.blank_line.finditer(block)]
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

# What replaces an opening and a closing tag. Other tags become nothing.
_TAG_TEXTS = {
    **dict.fromkeys(_WORDS.block, ("\n\n", "\n\n")),
    **{f"h{level}": (f"\n\n{'#' * level} ", "\n\n") for level in range(1, 7)},
    "li": ("\n- ", ""),
    "br": ("\n", ""),
    "tr": ("\n", ""),
    "td": ("", " | "),
    "th": ("", " | "),
}

_COMMENT = (LazyRegex("<!--"), LazyRegex("-->"))


def _element(name: str) -> tuple[LazyRegex, LazyRegex]:
    return LazyRegex(rf"(?i)<{name}\b[^<>]{{0,2000}}>"), LazyRegex(rf"(?i)</{name}\s{{0,20}}>")


_NOT_DISPLAYED = tuple(_element(name) for name in ("script", "style", "noscript", "template"))
_PRE, _CODE, _ANCHOR = _element("pre"), _element("code"), _element("a")


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
    prose = " ".join(block for block, code in blocks(text) if not code)
    names = {(tag.group(2) or "!").lower() for tag in _RE.tag.finditer(prose)}
    tags = names & (_WORDS.known | {"!"})  # those that HTML knows, `!` for a document type
    if "<!--" in prose:
        tags.add("!")
    return change_prose(text, lambda piece: _tagless(piece, frozenset(tags))) if tags else text


def joined_words(text: str) -> str:
    """Return all characters that are not tags, also those of comments and scripts. Code keeps
    its tags."""

    def without_known_tags(piece: str) -> str:
        return html.unescape(_RE.tag.sub(lambda tag: "" if _is_known(tag) else tag.group(), piece))

    return change_prose(_RE.comment_mark.sub("", text), without_known_tags)


def _is_known(tag: re.Match[str]) -> bool:
    return (tag.group(2) or "p").lower() in _WORDS.known


def _is_markup(text: str) -> bool:
    """Return whether a text is a markup document: a page, or a fragment whose text is all inside
    closed block elements.

    Any other text with tags is about markup: `Use <b>`, `<p>a</p> is a paragraph`, a component of
    React.
    """
    for element in (_COMMENT, *_NOT_DISPLAYED):
        text = _between(text, element, lambda _opening, _inside: "")
    if _RE.template.search(text):
        return False
    tags = list(filter(_is_known, _RE.tag.finditer(text)))
    is_page = _RE.page.match(text) and any(tag.group(1) for tag in tags)
    return bool(is_page) or _is_fragment(text, tags)


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
        if name in _WORDS.containers and not tag.group(1) and tag.start() < closed_at.get(name, 0):
            depth[name] += 1
        elif tag.group(1) and depth[name]:
            depth[name] -= 1
    return inside and not text[at:].strip()


def _tagless(piece: str, tags: frozenset[str]) -> str:
    """Return a piece of prose without tags: preformatted text and code become code of Markdown."""
    if "<" not in piece:
        return html.unescape(piece)
    piece = _between(piece, _COMMENT, lambda _opening, _inside: "")
    for element in _NOT_DISPLAYED:
        piece = _between(piece, element, lambda _opening, _inside: "\n")
    piece = _between(piece, _PRE, lambda _opening, inside: _fenced(inside))
    piece = change_prose(piece, lambda prose: _between(prose, _CODE, _backticked))
    return change_prose(
        piece,
        lambda prose: html.unescape(
            _RE.tag.sub(lambda tag: _tag_text(tag, tags), _between(prose, _ANCHOR, _linked))
        ),
    )


def _between(
    text: str,
    element: tuple[LazyRegex, LazyRegex],
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
    words = html.unescape(_RE.tag.sub("", inside)).strip("\n")
    longest = max((len(run) for run in re.findall("`+", words)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"\n\n{fence}\n{words}\n{fence}\n\n"


def _backticked(opening: str, inside: str) -> str:
    words = html.unescape(_RE.tag.sub("", inside))
    if not words.strip() or "`" in words or "\n" in words:
        return f"{opening}{inside}</code>"
    return f"`{words}`"


def _linked(opening: str, inside: str) -> str:
    return _with_url(inside, found.group(1)) if (found := _RE.href.search(opening)) else inside


def _tag_text(tag: re.Match[str], tags: frozenset[str]) -> str:
    """Return the replacement of a tag."""
    name = (tag.group(2) or "!").lower()
    if name not in tags:
        return tag.group()
    if name == "img":
        described = _RE.alt.search(tag.group())
        return described.group(1) if described else ""
    return _TAG_TEXTS.get(name, ("", ""))[bool(tag.group(1))]


def _without_markdown(piece: str) -> str:
    if "](" in piece:
        piece = _RE.md_link.sub(lambda link: _with_url(link.group(2), link.group(3)), piece)
    if "<" in piece:
        piece = _RE.autolink.sub(r"\1", piece)
    if "*" in piece:
        piece = _RE.italic.sub(r"\1", _RE.bold.sub(r"\1", piece))
    if "_" in piece:
        piece = _RE.underscored.sub(
            lambda phrase: phrase.group(2 if " " in phrase.group(2) else 0), piece
        )
    return _RE.table_rule.sub("", piece) if "|" in piece else piece


def _with_url(words: str, url: str) -> str:
    """Return the words of a link and its address; both carry meaning."""
    words = words.strip()
    return words if url.startswith("#") or url in words else f"{words} ({url})" if words else url


def _collapsed(text: str) -> str:
    result: list[str] = []
    for block, code in blocks(change_prose(text, lambda piece: _RE.inner_space.sub(" ", piece))):
        trimmed = block if code else "\n".join(line.rstrip(" \t") for line in block.split("\n"))
        result.append(block if code else _RE.many_lines.sub("\n\n", trimmed))
    text = "".join(result).strip("\n").rstrip()
    return text if "\n" in text else text.strip()


# --- stage 2: noise ---

# A shorter block may repeat on purpose ("Thanks").
_MIN_DUPLICATE_CHARS = 40
# The ratio means nothing for fewer characters.
_MIN_RATIO_CHARS = 20
# Boilerplate occurs on pages, not in a note of a few paragraphs.
_PAGE_PARAGRAPHS = 4


def filter_noise(text: str, settings: ScrubSettings) -> str:
    """Stage 2: remove boilerplate, repeated and meaningless paragraphs, but never all of them."""
    if "\n" not in text:
        return text
    seen: set[str] = set()
    page = text.count("\n\n") + 1 >= _PAGE_PARAGRAPHS
    kept: list[str] = []
    for block, code in blocks(text):
        # Split at blank lines and keep them: a dropped paragraph takes the break after it along.
        parts = [block] if code else re.split(r"(\n\n+)", block)
        for at in range(0, len(parts), 2):
            if code or not _is_noise(parts[at], settings.semantic, seen, page=page):
                kept += parts[at : at + 2]
    return "".join(kept)


def _is_noise(paragraph: str, rules: Semantic, seen: set[str], *, page: bool) -> bool:
    words = " ".join(paragraph.casefold().split())
    if not words:
        return False
    if rules.remove_duplicates and len(words) >= _MIN_DUPLICATE_CHARS:
        if words in seen:
            return True
        seen.add(words)
    if page and rules.remove_boilerplate and _RE.boilerplate.fullmatch(words):
        return True
    signs = words.replace(" ", "")
    signal = 1.0 if len(signs) < _MIN_RATIO_CHARS else sum(map(str.isalnum, signs)) / len(signs)
    return page and signal < rules.min_signal_ratio


# --- stage 3: one form ---


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
        piece = _RE.heading.sub(
            lambda found: f"{found.group(1)} {title(found)}", _RE.underlined.sub(r"# \1", piece)
        )
    if rules.lists:
        piece = _RE.bullet.sub(r"\1- ", piece)
        piece = _RE.starred.sub(lambda block: _RE.star.sub(r"\1- ", block.group()), piece)
    return piece


# --- the whole, and stages 4 to 6: chunks ---

_STAGES = (clean_structure, filter_noise, normalise)
# Each round removes one layer of markup. Only a text built for it needs more rounds.
_MAX_ROUNDS = 40
# Where to cut, best place first: between paragraphs, lines, sentences, words.
_CUTS = tuple(
    LazyRegex(cut) for cut in (r"\n\n+", r"\n", r"(?<=[.!?。！？])\s+|(?<=[。！？])", r"\s+")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """A piece of a text and its position."""

    text: str
    start: int
    end: int
    section: tuple[str, ...]
    tokens: int
    source: str | None = None
    timestamp: str | None = None
    content_hash: str = ""


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """The result of the scrubber."""

    text: str
    chunks: tuple[Chunk, ...]


def scrub(
    text: str,
    settings: ScrubSettings,
    *,
    source: str | None = None,
    at: str | None = None,
    count: TokenCounter = estimate,
) -> Scrubbed:
    """Return the clean text and its chunks."""
    clean = cleaned(text, settings)
    chunks = annotate(split_chunks(clean, settings.chunking, count), source, at)
    return Scrubbed(clean, validate(chunks, settings) if settings.enabled else chunks)


def annotate(
    chunks: tuple[Chunk, ...], source: str | None = None, at: str | None = None
) -> tuple[Chunk, ...]:
    """Stage 5: add source, timestamp and content hash to each chunk."""
    return tuple(
        replace(
            chunk,
            source=source,
            timestamp=at,
            content_hash=sha256(chunk.text.encode("utf-8", "replace")).hexdigest(),
        )
        for chunk in chunks
    )


def validate(chunks: tuple[Chunk, ...], settings: ScrubSettings) -> tuple[Chunk, ...]:
    """Stage 6: reject chunks that are empty or too long, or too short if a minimum is enforced."""
    return tuple(chunk for chunk in chunks if _is_valid_chunk(chunk.text, settings.validation))


def _is_valid_chunk(chunk: str, rules: Validation) -> bool:
    shortest = rules.min_length if rules.enforce_min_length else 0
    return shortest <= len(chunk) <= rules.max_length and bool(
        chunk.strip() or not rules.reject_empty
    )


def has_valid_chunk(clean: str, settings: ScrubSettings) -> bool:
    """Return whether a clean text that is not blank has a valid chunk."""
    if not settings.enabled:
        return True
    if "#" in clean or estimate(clean) > settings.chunking.max_tokens:
        return any(
            _is_valid_chunk(chunk.text, settings.validation)
            for chunk in _chunks(clean, settings.chunking, estimate)
        )
    # One chunk: it is short and has no heading.
    return _is_valid_chunk(clean.lstrip("\n").rstrip(), settings.validation)


def cleaned(text: str, settings: ScrubSettings) -> str:
    """Return the clean text: stages 1 to 3."""
    if not settings.enabled:
        return text
    for _ in range(_MAX_ROUNDS):
        before = text
        # Most texts have no special characters, and no spaces side by side or at their ends. One
        # pattern for all is slower.
        clean = "  " not in text and not text.startswith(" ") and not text.endswith(" ")
        for stage in () if clean and not _RE.special.search(text) else _STAGES:
            cleaner = stage(text, settings)
            text = text if is_blank(cleaner) else cleaner
        if text == before:
            return text
    raise InvalidInput("the text has too many layers of markup", expected=f"at most {_MAX_ROUNDS}")


def split_chunks(text: str, rules: Chunking, count: TokenCounter) -> tuple[Chunk, ...]:
    """Stage 4: split a text into chunks of a bounded number of tokens, at natural places. Each
    section starts a new chunk."""
    return tuple(_chunks(text, rules, count))


def _chunks(text: str, rules: Chunking, count: TokenCounter) -> Iterator[Chunk]:
    for start, end, path in heading_sections(text) if rules.heading_aware else [(0, len(text), ())]:
        for begin, stop, tokens in _packed(text, start, end, rules, count):
            lines = text[begin:stop].lstrip("\n")
            first, words = stop - len(lines), lines.rstrip()
            if words:
                yield Chunk(
                    text=words, start=first, end=first + len(words), section=path, tokens=tokens
                )


def heading_sections(text: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Yield the start and end of each section, and the headings above it."""
    path: list[tuple[int, str]] = []
    begin = 0
    for at, level, name in _headings(text):
        if text[begin:at].strip():
            yield begin, at, tuple(name for _, name in path)
        path = [*(above for above in path if above[0] < level), (level, name)]
        begin = at
    yield begin, len(text), tuple(name for _, name in path)


def section_at(text: str, at: int) -> tuple[str, ...]:
    """Return the headings above a position, outermost first; a heading at the position is one of
    them."""
    return next((path for start, end, path in heading_sections(text) if start <= at < end), ())


def is_heading(text: str) -> bool:
    """Return whether a text consists of headings."""
    return not _RE.heading.sub("", text).strip()


def _headings(text: str) -> Iterator[tuple[int, int, str]]:
    at = 0
    for block, code in blocks(text):
        if not code:
            yield from (
                (at + found.start(), len(found.group(1)), title(found))
                for found in _RE.heading.finditer(block)
            )
        at += len(block)


def _packed(
    text: str, start: int, end: int, rules: Chunking, count: TokenCounter
) -> Iterator[tuple[int, int, int]]:
    """Join neighbouring pieces as long as they fit. A piece that is too small joins the one
    before it."""
    begin, size = start, 0
    for at, _, tokens in _pieces(text, start, end, count(text[start:end]), rules, count, 0):
        joined = size + tokens
        if (
            at > begin
            and joined > rules.max_tokens
            and (tokens >= rules.min_tokens or joined > rules.hard_max_tokens)
        ):
            yield begin, at, size
            begin, joined = at, tokens
        size = joined
    yield begin, end, size


def _pieces(
    text: str, start: int, end: int, tokens: int, rules: Chunking, count: TokenCounter, depth: int
) -> Iterator[tuple[int, int, int]]:
    """Yield the span in pieces of at most `max_tokens`; a piece without a place to cut may reach
    `hard_max_tokens`."""
    if tokens <= rules.max_tokens or (depth == len(_CUTS) and tokens <= rules.hard_max_tokens):
        yield start, end, tokens
        return
    at, deeper = start, min(depth + 1, len(_CUTS))
    cuts = (
        (cut.end() for cut in _CUTS[depth].finditer(text, start, end))
        if depth < deeper
        else ((start + end) // 2,)
    )
    for stop in chain(cuts, [end]):
        tokens = count(text[at:stop])
        if tokens <= rules.max_tokens:  # most pieces: they need no generator of their own
            yield at, stop, tokens
        else:
            yield from _pieces(text, at, stop, tokens, rules, count, deeper)
        at = stop
