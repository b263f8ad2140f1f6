"""Stage 2, semantic filtering: blocks that say nothing, or say it again, go. Never all of them."""

import re

from memory_mesh.core.scrubbing.code import blocks
from memory_mesh.core.scrubbing.settings import ScrubSettings, Semantic

# A shorter block that comes twice may be meant twice ("Thanks").
_WORTH_COMPARING = 40
# Few characters have no ratio worth speaking of.
_WORTH_WEIGHING = 20
# Boilerplate belongs to pages; a note of a few paragraphs has none.
_A_PAGE = 4

_BOILERPLATE = re.compile(
    r"""(?:(?:we|this\ (?:web)?site)\ uses?\ cookies\b.{0,200}
    |(?:accept|reject|manage)\ (?:all\ )?cookies(?:\ .{0,40})?
    |(?:©|\(c\)|copyright)\ .{0,80}\b\d{4}\b.{0,80}
    |all\ rights\ reserved\.?
    |(?:subscribe\ to|sign\ up\ for)\ (?:our|the)\ (?:\w+\ )?newsletter.{0,80}
    |(?:skip\ to\ (?:main\ )?content|back\ to\ top|share\ (?:this|on)\b.{0,40}|follow\ us\ on\ .{0,60})
    |(?:privacy\ policy|terms\ of\ (?:service|use)|cookie\ policy|contact\ us|about\ us)
      (?:\s*[|·•-]\s*(?:privacy\ policy|terms\ of\ (?:service|use)|cookie\ policy|contact\ us|about\ us))*)""",
    re.IGNORECASE | re.VERBOSE,
)


def filtered(text: str, settings: ScrubSettings) -> str:
    """The text without noise."""
    if "\n" not in text:
        return text
    seen: set[str] = set()
    page = text.count("\n\n") + 1 >= _A_PAGE
    return "".join(block if code else _kept(block, settings.semantic, seen, page=page) for block, code in blocks(text))


def _kept(prose: str, rules: Semantic, seen: set[str], *, page: bool) -> str:
    # Cut at blank lines, which stay where they are: dropping a paragraph takes the break behind it along.
    parts = re.split(r"(\n\n+)", prose)
    kept: list[str] = []
    for at in range(0, len(parts), 2):
        if _is_noise(parts[at], rules, seen, page=page):
            continue
        kept.extend(parts[at : at + 2])
    return "".join(kept)


def _is_noise(paragraph: str, rules: Semantic, seen: set[str], *, page: bool) -> bool:
    words = " ".join(paragraph.casefold().split())
    if not words:
        return False
    if rules.remove_duplicates and len(words) >= _WORTH_COMPARING:
        if words in seen:
            return True
        seen.add(words)
    if page and rules.remove_boilerplate and _BOILERPLATE.fullmatch(words):
        return True
    return page and _signal(words) < rules.min_signal_ratio


def _signal(words: str) -> float:
    """How much of it is letters and digits."""
    signs = words.replace(" ", "")
    return 1.0 if len(signs) < _WORTH_WEIGHING else sum(map(str.isalnum, signs)) / len(signs)
