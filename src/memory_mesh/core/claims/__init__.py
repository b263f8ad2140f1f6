"""Claims: what they state, when they exclude each other, and how far memories are trusted.

`patterns`, which finds claims in plain texts, compiles many patterns and is imported by its path.
"""

from memory_mesh.core.claims.claim import (
    DEFAULT,
    Claim,
    Schema,
    Schemas,
    Window,
    check_window,
    overlapping,
    read_claim,
    read_schemas,
    read_window,
)
from memory_mesh.core.claims.rules import (
    Judgement,
    Known,
    Outcome,
    Trust,
    Verdict,
    base_trust,
    compute_trust,
    excludes,
    excluding_pairs,
    judge,
    judge_trust,
    trust_of,
)

__all__ = [
    "DEFAULT",
    "Claim",
    "Judgement",
    "Known",
    "Outcome",
    "Schema",
    "Schemas",
    "Trust",
    "Verdict",
    "Window",
    "base_trust",
]
__all__ += [
    "check_window",
    "compute_trust",
    "excludes",
    "excluding_pairs",
    "judge",
    "judge_trust",
    "overlapping",
    "read_claim",
    "read_schemas",
    "read_window",
    "trust_of",
]
