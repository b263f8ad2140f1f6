"""Reading the audit trail within scope: a block shows its text only to readers who may see what the text quotes.

A block quotes the memory or lesson that it records, or the query of a search. For other readers its text is withheld: id, number
and hashes stay, so that an export can still be verified.
"""

from dataclasses import replace

from memory_mesh.core.audit.blocks import CHECKPOINT, REKEY, SEAL_OLD, has_intent
from memory_mesh.core.audit.chain import quotes
from memory_mesh.core.audit.verify import sealed_content
from memory_mesh.core.audit.wire import WITHHELD
from memory_mesh.core.model import Block, Reader, Row, visible


def withhold(block: Block) -> Block:
    """Return the block without its text and metadata.

    Also without the hash of the content: it is the only part of the text that cannot be guessed, so with it a guess of the rest
    could be tested against the hash of the block.
    """
    return replace(block, yamo_text=WITHHELD, metadata=None, session_id=None, content_hash=None)


def may_read(reader: Reader, block: Block, memory: Row | None, first_revision: int) -> bool:
    """Return whether the reader may see the text of a block.

    `memory` is the row that it refers to, and `first_revision` the first revision from which on the reader could see it.
    """
    if block.user_id != reader.user_id:
        return False
    if not quotes(block) or _is_bookkeeping(block):
        return True
    if block.ref is None:
        # A search of an earlier version has no seal, and its session is not known.
        known = block.seal is not None and block.session_id in (None, reader.session_id)
        return known and block.agent_id == reader.agent_id
    revision, _ = sealed_content(block.yamo_text) or (0, "")
    return memory is not None and visible(reader, memory) and revision >= first_revision


def _is_bookkeeping(block: Block) -> bool:
    """Return whether a block records no memory and no search, such as a checkpoint or the reading of an auditor."""
    named = block.operation_type == "retain" or has_intent(block.yamo_text, CHECKPOINT, REKEY, SEAL_OLD)
    return block.ref is None and named
