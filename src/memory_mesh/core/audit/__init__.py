"""The audit chain of RFC-0011: the wire format, the blocks of each operation, verification and export."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.audit.blocks import check_lesson, checkpoint, derived_id, fraction_text, sealed_through, subject
from memory_mesh.core.audit.chain import (
    OPERATIONS, Broken, Entry, Sound, Verdict, append, as_dict, chain_name, content_hash, line, noted_missing, of_recalls,
    owner_of, quotes, sealed_content, tombstone, verify_chain, verify_export, verify_tail,
)
from memory_mesh.core.audit.reading import may_read, withhold
from memory_mesh.core.audit.wire import ERASED, WITHHELD, Seal, Yamo, parse, parse_many

__all__ = [
    "ERASED", "OPERATIONS", "WITHHELD", "Broken", "Entry", "Seal", "Sound", "Verdict", "Yamo", "append", "as_dict",
    "chain_name", "check_lesson", "checkpoint", "content_hash", "derived_id", "fraction_text", "line", "may_read",
    "noted_missing", "of_recalls", "owner_of", "parse", "parse_many", "quotes", "sealed_content", "sealed_through",
    "subject", "tombstone", "verify_chain", "verify_export", "verify_tail", "withhold",
]
