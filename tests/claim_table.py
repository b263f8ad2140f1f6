"""The truth table of conflicts: the first row that fits says what happens to a new claim.
docs/internals/claims.md is written from it.

A value of None fits every case.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import product


@dataclass(frozen=True)
class Case:
    """A new claim and a stored one about the same predicate of the same subject."""

    cardinality: str | None = None
    exclusive: str | None = None
    windows: str | None = None
    scopes: str | None = None
    values: str | None = None
    dedup_policy: str | None = None
    conflict_policy: str | None = None
    trust: str | None = None

    def fits(self, case: "Case") -> bool:
        """Return whether this row of the table is about a case."""
        return all(
            mine is None or mine == theirs
            for mine, theirs in zip(asdict(self).values(), asdict(case).values(), strict=True)
        )


DIMENSIONS = {
    "cardinality": ("single", "multi"),
    "exclusive": ("both", "only the new one", "only the stored one", "neither"),
    "windows": ("overlap", "touch", "apart"),
    "scopes": (
        "both global",
        "session and global",
        "global and session",
        "same session",
        "two sessions",
    ),
    "values": ("same", "different"),
    "dedup_policy": ("corroborate", "store"),
    "conflict_policy": ("supersede", "require_review", "keep_both"),
    "trust": ("more", "equal", "less"),
}

STORED, CORROBORATED, BOTH, REVIEW, SUPERSEDED = (
    "stored",
    "corroborated",
    "kept both",
    "quarantined",
    "superseded",
)
ROWS: tuple[tuple[Case, str], ...] = (
    (Case(cardinality="multi"), STORED),
    (Case(exclusive="only the new one"), STORED),
    (Case(exclusive="only the stored one"), STORED),
    (Case(exclusive="neither"), STORED),
    (Case(windows="apart"), STORED),
    (Case(scopes="session and global"), STORED),
    (Case(scopes="global and session"), STORED),
    (Case(scopes="two sessions"), STORED),
    (Case(values="same", dedup_policy="corroborate"), CORROBORATED),
    (Case(values="same", dedup_policy="store"), STORED),
    (Case(conflict_policy="keep_both"), BOTH),
    (Case(conflict_policy="require_review"), REVIEW),
    (Case(trust="less"), REVIEW),
    (Case(), SUPERSEDED),
)
OUTCOMES = {
    STORED: "the new memory is stored; no conflict",
    CORROBORATED: "no new memory; the stored one has one more corroboration",
    BOTH: "both are active; a resolved conflict is recorded",
    REVIEW: "the new memory is quarantined; a pending conflict is recorded",
    SUPERSEDED: "the stored memory is superseded by the new one; a resolved conflict is recorded",
}


def cases() -> Iterator[Case]:
    """Yield every combination."""
    for values in product(*DIMENSIONS.values()):
        yield Case(*values)


def expected(case: Case) -> str:
    """Return what happens in a case."""
    return next(outcome for row, outcome in ROWS if row.fits(case))
