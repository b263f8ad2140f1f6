"""What every store asks of a change before it looks at a row."""

from collections import Counter
from collections.abc import Sequence

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model.rows import Key, Row


def once_each(puts: Sequence[Row], deletes: Sequence[Key]) -> None:
    """A key stands once in a change: of two puts of one row nobody could say which was meant."""
    for key, times in Counter([*(row.key for row in puts), *deletes]).most_common(1):
        if times == 1:
            return
        raise InvalidInput(f"{key} stands {times} times in one change", expected="once")
