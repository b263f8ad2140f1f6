"""The triggers of the SQLite store: what has to happen when another program writes to the file.

Memory Lane may have the file open and write to `memories` at any time. It knows neither our columns nor the log of moves, so
triggers log its replacements, changes and deletions within its own transaction. A row without a partition waits to be taken up
(see `lane`). While one of our own transactions changes memories, it has a row in `mesh_meta`, which no other connection sees.
"""

WRITING = "writing"  # the key of that row

# A process of an earlier version may have the file open and would append blocks without a seal. The function is known only to
# connections of this version, so the statement fails there and its name is the message.
UPGRADE = "upgrade_memory_mesh"

_COLUMNS = ("content", "metadata", "collection", "tags", "embedding", "valid_from", "valid_until", "superseded_by", "keywords")
_CHANGED = " OR ".join(f"NEW.{name} IS NOT OLD.{name}" for name in (*_COLUMNS, "created_at"))
_BY_ANOTHER = f"NOT EXISTS (SELECT 1 FROM mesh_meta WHERE key = '{WRITING}')"


def _log(partition: str, id_: str) -> str:
    """Return the statements that log the move of a memory, as `moves.record_moves` does."""
    return f"""UPDATE partitions SET version = version + 1, nonce = lower(hex(randomblob(8))) WHERE partition = {partition};
    INSERT INTO moves SELECT partition, version, nonce, 'memory', {id_} FROM partitions WHERE partition = {partition};"""


# As SQLite stores them. Never change one: a file with any other trigger is refused.
TRIGGERS = (
    f"""CREATE TRIGGER blocks_need_a_seal BEFORE INSERT ON yamo_blocks WHEN NEW.seal IS NULL
  BEGIN SELECT {UPGRADE}(); END""",
    f"""CREATE TRIGGER memories_replaced BEFORE INSERT ON memories WHEN NEW.partition IS NULL
  BEGIN
    {_log("(SELECT partition FROM memories WHERE id = NEW.id)", "NEW.id")}
  END""",
    # A sealed content that was changed stays as it is: reads withhold it, and `verify` reports it.
    f"""CREATE TRIGGER memories_changed AFTER UPDATE OF {", ".join((*_COLUMNS, "created_at"))} ON memories
  WHEN OLD.partition IS NOT NULL AND (OLD.salt IS NULL OR NEW.content IS OLD.content) AND {_BY_ANOTHER} AND ({_CHANGED})
  BEGIN
    {_log("OLD.partition", "OLD.id")}
    UPDATE memories SET partition = NULL,
      model = CASE WHEN NEW.content IS OLD.content AND NEW.embedding IS OLD.embedding THEN model END
    WHERE id = NEW.id;
  END""",
    f"""CREATE TRIGGER memories_deleted AFTER DELETE ON memories WHEN OLD.partition IS NOT NULL AND {_BY_ANOTHER}
  BEGIN
    {_log("OLD.partition", "OLD.id")}
  END""",
)
