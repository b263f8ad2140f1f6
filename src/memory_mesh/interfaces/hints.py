"""What the command line adds to an empty answer, on standard error: why it may be empty, and what to do."""

import logging
from contextlib import closing, suppress

from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.core.model import IsNull, Kind, Not
from memory_mesh.interfaces.render import Answer
from memory_mesh.interfaces.values import Target
from memory_mesh.settings import load
from memory_mesh.stores import open_store, store_file

OTHER_USERS = "the store has memories of other users only; add --user NAME to read those of one"
_log = logging.getLogger("memory_mesh")


def explain_empty(target: Target, answer: Answer) -> None:
    """Log one line if the answer is empty because no user was named and every memory belongs to one.

    A command that reads as a user never says whether others have memories.
    """
    found = answer.data.get(answer.rows or "total_memories")
    if not found and _has_users_only(target):
        _log.warning(OTHER_USERS)


def _has_users_only(target: Target) -> bool:
    with suppress(MemoryMeshError):  # of a hint; the command itself has worked
        settings = load(target.arguments)
        file = store_file(settings.store_url)
        if settings.options.user_id is not None or not settings.options.enable_memory or (file and not file.exists()):
            return False
        options = settings.options
        with closing(open_store(settings.store_url, busy_seconds=options.busy_seconds, key=options.store_key)) as store:
            without_user = IsNull("user_id")
            return not store.find(Kind.MEMORY, without_user, limit=1) and bool(
                store.find(Kind.MEMORY, Not(without_user), limit=1)
            )
    return False
