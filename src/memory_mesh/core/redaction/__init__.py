"""Find personal data and secrets in a text and replace them."""

from memory_mesh.core.redaction.engine import PATTERNS, Mode, Redactor, find, masked
from memory_mesh.core.redaction.pattern import LABELS, MASK, Finding, Pattern

__all__ = ["LABELS", "MASK", "PATTERNS", "Finding", "Mode", "Pattern", "Redactor", "find", "masked"]
