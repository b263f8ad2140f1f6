"""The audit chain of RFC-0011: blocks, seals, signatures, verification and export."""

from memory_mesh.core.audit.blocks import (
    ERASED,
    WITHHELD,
    Seal,
    Yamo,
    check_lesson,
    checkpoint,
    derived_id,
    fraction_text,
    parse,
    parse_many,
    sealed_through,
    subject,
)
from memory_mesh.core.audit.chain import (
    OPERATIONS,
    Entry,
    RowsDigest,
    append,
    chain_name,
    of_recalls,
    owner_of,
    quotes,
    text_hash,
    tombstone,
)
from memory_mesh.core.audit.signing import (
    EXPORT_NAMES,
    Anchored,
    Rekeyed,
    as_dict,
    line,
    noted_missing,
    verify_export,
)
from memory_mesh.core.audit.verify import (
    Broken,
    Sound,
    Verdict,
    may_read,
    sealed_content,
    verify_chain,
    verify_tail,
    withhold,
)

__all__ = [
    "ERASED", "EXPORT_NAMES", "OPERATIONS", "WITHHELD", "Anchored", "Broken", "Entry", "Rekeyed",
    "RowsDigest", "Seal", "Sound", "Verdict", "Yamo", "append", "as_dict", "chain_name",
    "check_lesson", "checkpoint", "derived_id", "fraction_text", "line", "may_read",
    "noted_missing", "of_recalls", "owner_of", "parse", "parse_many", "quotes", "sealed_content",
    "sealed_through", "subject", "text_hash", "tombstone", "verify_chain", "verify_export",
    "verify_tail", "withhold",
]  # fmt: skip
