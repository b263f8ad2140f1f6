"""Protection against hostile input: fences, detection of injection, addresses, trust of sources.

`fence`, `injection` and `addresses` compile many patterns and are imported by path where they are
needed. This module says how far a memory is trusted: its source sets the base trust; its content
never does.
"""

from collections.abc import Mapping
from enum import StrEnum


class Source(StrEnum):
    """Where a memory comes from."""

    USER_EXPLICIT = "user_explicit"
    SYSTEM = "system"
    TOOL_OUTPUT = "tool_output"
    USER_IMPLICIT = "user_implicit"
    DOCUMENT = "document"
    INFERENCE = "inference"  # a model inferred it


BASE_TRUST: Mapping[Source, float] = {
    Source.USER_EXPLICIT: 1.0,
    Source.SYSTEM: 0.95,
    Source.TOOL_OUTPUT: 0.85,
    Source.USER_IMPLICIT: 0.7,
    Source.DOCUMENT: 0.6,
    Source.INFERENCE: 0.5,
}
