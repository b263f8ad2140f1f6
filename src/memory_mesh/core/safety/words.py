"""The words that instructions to a language model are made of, and how they follow each other.

A rule is a row of word lists: one word of each, in this order, within one sentence and not far apart. Every list is a flat choice
without repeats inside, so that looking for it takes time in proportion to the text. All texts are compared folded: small letters,
no accents, no invisible characters.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from unicodedata import category, normalize

from memory_mesh.core.safety.injection_orders import ORDERS
from memory_mesh.core.safety.injection_tricks import TRICKS


class InjectionKind(StrEnum):
    """What an embedded instruction is after."""

    OVERRIDE = "override"  # drop the task and take another
    IMPERSONATION = "impersonation"  # speak as somebody who may give orders
    STEERING = "steering"  # dictate the answer, or what it is worth
    EXFILTRATION = "exfiltration"  # carry out what is not for others
    CONCEALED = "concealed"  # be read by the model and not by people


@dataclass(frozen=True, slots=True)
class Rule:
    """Words in a row. An order counts only where it is given, not where somebody tells of it."""

    kind: InjectionKind
    lists: tuple[str, ...]
    reach: int = 40  # characters between one word and the next
    order: bool = False


def bare(text: str) -> str:
    """Without accents. Patterns are written as people write, and compared as texts are."""
    return normalize("NFC", "".join(char for char in normalize("NFKD", text) if category(char) != "Mn"))


@cache
def words(name: str) -> re.Pattern[str]:
    """A list by its name."""
    start = "" if name in _UNSPACED else r"(?<![a-z0-9])"
    end = "" if name in _UNSPACED else r"(?![a-z0-9])"
    return re.compile(f"{start}(?:{bare(_LISTS[name])}){end}", re.MULTILINE)


# Scripts without spaces, and lists that say themselves where their words begin and end.
_UNSPACED = {
    "zh_drop",
    "zh_rules",
    "ja_rules",
    "ja_drop",
    "ko_rules",
    "ko_drop",
    "line_role",
    "template",
    "data_url",
    "forged_answer",
    "hidden_style",
    "bracket_role",
    "colon",
}

_LISTS = {**ORDERS, **TRICKS}

_FOREIGN = ("fr", "es", "pt", "it", "nl", "pl", "de", "ru")
_K = InjectionKind

RULES = (
    Rule(_K.OVERRIDE, ("drop", "before", "instructions"), order=True),
    Rule(_K.OVERRIDE, ("drop", "every", "model_rules"), reach=12, order=True),
    Rule(_K.OVERRIDE, ("drop", "instructions", "up_to_here"), reach=30, order=True),
    Rule(_K.OVERRIDE, ("drop", "told"), reach=12, order=True),
    Rule(_K.OVERRIDE, ("true_rules", "colon"), reach=3),
    Rule(_K.OVERRIDE, ("before", "prompt_of_yours", "mistaken"), reach=12),
    Rule(_K.OVERRIDE, ("instructions", "up_to_here", "mistaken"), reach=20),
    Rule(_K.OVERRIDE, ("outranks", "prompt_of_yours"), reach=16),
    Rule(_K.OVERRIDE, ("your", "new_task", "is_now"), reach=4),
    Rule(_K.OVERRIDE, ("new_task", "is_now", "to_model"), reach=12),
    Rule(_K.OVERRIDE, ("instructions", "up_to_here", "lapse"), reach=30),
    Rule(_K.OVERRIDE, ("over",)),
    Rule(_K.OVERRIDE, ("persona",)),
    Rule(_K.OVERRIDE, ("instead",), order=True),
    *(Rule(_K.OVERRIDE, (f"{at}_drop", f"{at}_before", f"{at}_rules"), reach=30) for at in _FOREIGN),
    *(Rule(_K.OVERRIDE, (f"{at}_drop", f"{at}_rules", f"{at}_before"), reach=20) for at in ("fr", "es", "pt", "it", "ru")),
    Rule(_K.OVERRIDE, ("de_before", "de_rules", "de_drop"), reach=30),
    Rule(_K.OVERRIDE, ("zh_drop", "zh_rules"), reach=15),
    Rule(_K.OVERRIDE, ("ja_rules", "ja_drop"), reach=12),
    Rule(_K.OVERRIDE, ("ko_rules", "ko_drop"), reach=12),
    Rule(_K.OVERRIDE, ("ar_drop", "ar_rules"), reach=25),
    Rule(_K.IMPERSONATION, ("template",)),
    Rule(_K.IMPERSONATION, ("line_role", "to_model"), reach=80),
    Rule(_K.IMPERSONATION, ("bracket_role", "to_model"), reach=60),
    Rule(_K.IMPERSONATION, ("forged_answer", "answer_body"), reach=60),
    Rule(_K.IMPERSONATION, ("authority", "command"), reach=80),
    Rule(_K.IMPERSONATION, ("forged_state",)),
    Rule(_K.STEERING, ("rate", "worth"), reach=60, order=True),
    Rule(_K.STEERING, ("worth_is",)),
    Rule(_K.STEERING, ("remember", "remember_this", "as_what"), reach=30, order=True),
    Rule(_K.STEERING, ("answer_verb", "answer_form", "model_noun"), reach=40, order=True),
    Rule(_K.STEERING, ("item_verb", "item", "item_says"), reach=12, order=True),
    Rule(_K.STEERING, ("keep_out", "model_noun"), reach=40, order=True),
    Rule(_K.STEERING, ("category_is",), order=True),
    Rule(_K.STEERING, ("must_be", "top"), reach=30),
    Rule(_K.STEERING, ("whoever", "ought"), reach=40),
    Rule(_K.STEERING, ("field_is", "field_is"), reach=60),
    Rule(_K.STEERING, ("your_output", "needs"), reach=20),
    Rule(_K.STEERING, ("shape", "your_answer"), reach=20, order=True),
    Rule(_K.STEERING, ("key_word", "key_name", "each_item"), reach=40),
    Rule(_K.STEERING, ("foreign_worth",)),
    Rule(_K.STEERING, ("treat", "as_trusted"), reach=40, order=True),
    Rule(_K.STEERING, ("vocative", "demand"), reach=60),
    Rule(_K.STEERING, ("texts", "fields"), reach=200),
    Rule(_K.STEERING, ("put_in", "every_answer"), reach=80, order=True),
    Rule(_K.STEERING, ("every_answer", "put_in"), reach=30),
    Rule(_K.EXFILTRATION, ("send", "treasure", "outside"), reach=80, order=True),
    Rule(_K.EXFILTRATION, ("send", "outside", "treasure"), reach=80, order=True),
    Rule(_K.EXFILTRATION, ("reveal", "hidden"), reach=30, order=True),
    Rule(_K.EXFILTRATION, ("reveal", "all_secrets", "in_memory"), reach=40, order=True),
    Rule(_K.EXFILTRATION, ("part_of",)),
    Rule(_K.EXFILTRATION, ("data_url",)),
    Rule(_K.EXFILTRATION, ("foreign_reveal", "foreign_hidden"), reach=40),
    Rule(_K.CONCEALED, ("hidden_style", "model_called"), reach=120),
)
