"""Redaction: find personal data and secrets in a text and replace them."""

from memory_mesh.core.language.redaction.engine import PATTERNS, Mode, Redactor, find, masked
from memory_mesh.core.language.redaction.pattern import Finding, Pattern
from memory_mesh.core.text import KINDS, LABELS, MASK

__all__ = [
    "KINDS",
    "LABELS",
    "MASK",
    "PATTERNS",
    "Finding",
    "Mode",
    "Pattern",
    "Redactor",
    "find",
    "masked",
]
