"""Find personal data and secrets in a text and replace them."""

from memory_mesh.core.masks import KINDS, LABELS, MASK
from memory_mesh.core.redaction.engine import PATTERNS, Mode, Redactor, find, masked
from memory_mesh.core.redaction.pattern import Finding, Pattern

__all__ = ["KINDS", "LABELS", "MASK", "PATTERNS", "Finding", "Mode", "Pattern", "Redactor", "find", "masked"]
