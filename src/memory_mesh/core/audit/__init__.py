"""The audit chain of RFC-0011: the wire format, the blocks of each operation, verification and export."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.audit.blocks import check_lesson, checkpoint, derived_id, fraction_text, sealed_through, subject
from memory_mesh.core.audit.chain import (
    OPERATIONS,
    Entry,
    append,
    chain_name,
    of_recalls,
    owner_of,
    quotes,
    text_hash,
    tombstone,
)
from memory_mesh.core.audit.signing import EXPORT_NAMES, as_dict, line, noted_missing, verify_export
from memory_mesh.core.audit.verify import may_read, withhold
from memory_mesh.core.audit.chain import RowsDigest, content_hash, is_altered
from memory_mesh.core.audit.signing import Anchored, Rekeyed
from memory_mesh.core.audit.verify import Broken, Sound, Verdict, sealed_content, verify_chain, verify_tail
from memory_mesh.core.audit.blocks import ERASED, WITHHELD, Seal, Yamo, parse, parse_many

__all__ = [
    "ERASED", "EXPORT_NAMES", "OPERATIONS", "WITHHELD", "Anchored", "Broken", "Entry", "Rekeyed", "RowsDigest", "Seal", "Sound",
    "Verdict", "Yamo", "append", "as_dict", "chain_name", "check_lesson", "checkpoint", "content_hash", "derived_id",
    "fraction_text", "is_altered", "line", "may_read", "noted_missing", "of_recalls", "owner_of", "parse", "parse_many",
    "quotes", "sealed_content", "sealed_through", "subject", "text_hash", "tombstone", "verify_chain",
    "verify_export", "verify_tail", "withhold",
]
