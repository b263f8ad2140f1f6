"""What a memory says, in one word: an open vocabulary. Any word may be a category; these are the ones that we give ourselves."""

# The ten types of the learning taxonomy.
TAXONOMY = (
    "correction",
    "decision",
    "commitment",
    "insight",
    "learning",
    "confidence",
    "pattern_seed",
    "cross_agent",
    "workflow_note",
    "gap",
)
# Those of the claims and links; what both have stands above.
GENERAL = ("fact", "finding", "preference", "event", "task", "digest")

CATEGORIES = (*GENERAL, *TAXONOMY)
DEFAULT = "fact"

_KNOWN = frozenset(CATEGORIES)


def known(category: str) -> bool:
    """Whether it is one of ours."""
    return category in _KNOWN
