"""What is asked of a language model and what comes back, whoever the provider is."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory_mesh.core.model.columns import Json


@dataclass(frozen=True, slots=True)
class Tokens:
    """How much a call takes: what is sent, and what comes back."""

    sent: int = 0
    received: int = 0


NO_TOKENS = Tokens()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question. The answer is to be JSON of the schema, where there is one; whoever asks checks it all the same."""

    operation: str  # what it is for: `extract`, `reflect`, …; accounts are kept by it
    system: str  # ours
    user: str  # holds what is not ours, behind a fence
    schema: Mapping[str, Json] | None = None
    max_tokens: int = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """What a model said."""

    text: str = field(repr=False)  # it may quote what is private
    model: str
    tokens: Tokens = NO_TOKENS
    whole: bool = True  # False: it was cut off at the most that it may say
