"""Groups of memories that links connect."""

from collections.abc import Iterable


def connected(links: Iterable[tuple[str, str, float]], *, max_size: int | None = None) -> list[list[str]]:
    """Return the groups of connected ids, each sorted, the largest first. A link is two ids and how strong it is.

    Strong links count first. One that would make a group larger than `max_size` is left out, so that a chain of weak
    similarities does not put everything into one group.
    """
    groups: dict[str, list[str]] = {}
    for one, other, _ in sorted(links, key=lambda link: (-link[2], link[0], link[1])):
        first, second = (groups.setdefault(id_, [id_]) for id_ in (one, other))
        if first is second or (max_size is not None and len(first) + len(second) > max_size):
            continue
        larger, smaller = (first, second) if len(first) >= len(second) else (second, first)
        larger += smaller
        groups.update(dict.fromkeys(smaller, larger))
    distinct = {id(group): sorted(group) for group in groups.values()}
    return sorted((group for group in distinct.values() if len(group) > 1), key=lambda group: (-len(group), group))
