"""Heritage: the intents, hypotheses and rationales that led to a memory, oldest first, in its column `heritage_chain`."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from memory_mesh.core.checks import listed
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.model import BY_NAME, Value, fault
from memory_mesh.core.reprs import short_repr

# The names of RFC-0011 in a stored chain and in Python, and the metadata key that `add` takes an entry from.
KEYS = {"intentChain": "intent_chain", "hypotheses": "hypotheses", "rationales": "rationales"}
_FROM_METADATA = {"intentChain": "intent", "hypotheses": "hypothesis", "rationales": "rationale"}
_MAX_TEXT_LENGTH, _MAX_ENTRIES = 4000, 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class HeritageChain:
    """What led to a memory."""

    __repr__ = short_repr

    intent_chain: tuple[str, ...] = ()  # the intents of agents
    hypotheses: tuple[str, ...] = ()  # what was expected
    rationales: tuple[str, ...] = ()  # why it was decided

    @classmethod
    def parse(cls, given: object) -> Self:
        """Check the caller's chain and return it. The lists also go by the names of RFC-0011."""
        if isinstance(given, HeritageChain):
            given = {name: getattr(given, name) for name in KEYS.values()}
        expected = f"an object with lists of texts: {', '.join(KEYS.values())}"
        if not isinstance(given, Mapping) or not given:
            raise InvalidInput(f"the heritage is {shown(given)}", expected=expected)
        lists: dict[str, tuple[str, ...]] = {}
        for key, value in given.items():
            name = KEYS.get(key, key) if isinstance(key, str) else ""
            if name not in KEYS.values() or name in lists:
                raise InvalidInput(f"unknown or repeated field {shown(key)} in the heritage", expected=expected)
            lists[name] = _texts(f"the heritage's {name}", value)
        return cls(**lists)

    def stored(self, max_depth: int) -> dict[str, Value]:
        """Return the column: of each list the last entries."""
        return {key: list(getattr(self, name)[-max_depth:]) for key, name in KEYS.items()}


def added_heritage(metadata: Mapping[str, Value], max_depth: int) -> dict[str, Value] | None:
    """Return the heritage of a new memory: the chain in its metadata `heritage`, and its own intent, hypothesis and rationale."""
    given = metadata.get("heritage")
    chain = HeritageChain() if given is None else HeritageChain.parse(given)
    own = {key: metadata.get(name) for key, name in _FROM_METADATA.items()}
    lists = {
        KEYS[key]: (*getattr(chain, KEYS[key]), *([text] if isinstance(text, str) and text.strip() else []))
        for key, text in own.items()
    }
    return HeritageChain(**lists).stored(max_depth) if any(lists.values()) else None


def _texts(name: str, value: object) -> tuple[str, ...]:
    texts = listed(name, value, expected="a list of texts")
    if len(texts) > _MAX_ENTRIES:
        raise InvalidInput(f"{name} has {len(texts):,} entries", expected=f"at most {_MAX_ENTRIES:,}")
    for text in texts:
        if not isinstance(text, str) or not text.strip() or len(text) > _MAX_TEXT_LENGTH or fault(BY_NAME["content"], text):
            expected = f"a non-empty text of at most {_MAX_TEXT_LENGTH:,} characters"
            raise InvalidInput(f"an entry of {name} is {shown(text)}", expected=expected)
    return tuple(texts)
