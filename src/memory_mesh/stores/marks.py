"""The mark of a partition's state: its version, and a word that no other state of that version has.

The version alone would not do: where a backup is restored and written to, the same number comes round again.
"""

import re

BEGINNING = "0:"  # the mark of a partition to which nobody has written
KEPT = 20_000  # moves of each partition; who holds an older mark reads the partition anew

_MARK = re.compile(r"(\d{1,16}):[0-9a-f]*", re.ASCII)


def mark_of(version: int, word: str) -> str:
    return f"{version}:{word}" if version else BEGINNING


def version_in(mark: str | None) -> int | None:
    """The version that a mark names; None for what is no mark."""
    found = _MARK.fullmatch(mark) if mark else None
    return int(found[1]) if found else None
