"""The masks that redaction writes into a text, such as `[EMAIL]` or `[EMAIL:1a2b3c4d]`.

A separate, light module: search and the options need the masks, but not the patterns that find values.
"""

from memory_mesh.core.text import LazyRegex

LABELS = (
    "API_KEY", "CARD", "CREDENTIALS", "EMAIL", "IBAN", "IP", "JWT", "NATIONAL_ID", "PHONE", "PRIVATE_KEY", "SECRET", "TOKEN",
    "US_SSN",
)  # fmt: skip
KINDS = tuple(label.lower() for label in LABELS)  # as options and reports name them
_SECRETS = frozenset({"API_KEY", "CREDENTIALS", "JWT", "PRIVATE_KEY", "SECRET", "TOKEN"})  # the other labels are personal data
MASK = LazyRegex(rf"\[({'|'.join(LABELS)}|REDACTED)(?::([0-9a-f]{{8}}))?\]")


def hides_value(text: str) -> bool:
    """Return whether a mask replaces a value of the text that can no longer be told from other values."""
    return "[" in text and any(mask[2] is None for mask in MASK.finditer(text))


def hides_secret(text: str) -> bool:
    """Return whether a mask or pseudonym replaces a secret of the text."""
    return "[" in text and any(mask[1] in _SECRETS for mask in MASK.finditer(text))


def without_masks(text: str, *, keep_pseudonyms: bool = False) -> str:
    """Return the text without its masks: they replace what was written, and are not words of it.

    A pseudonym stands for one value, so `keep_pseudonyms` leaves its digits.
    """
    if "[" not in text:
        return text
    return MASK.sub(lambda mask: f" {mask[2] or ''} " if keep_pseudonyms else " ", text)
