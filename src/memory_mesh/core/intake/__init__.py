"""Check what a caller wants to store, and recognise what is stored already.

`gate.Layer0`, which scrubs and redacts, is imported by its path: it is slow to load.
"""

from memory_mesh.core.intake.drafts import (
    CATEGORIES,
    DEFAULT_CATEGORY,
    IMPORTANCE,
    TAXONOMY,
    Draft,
    Limits,
    draft,
    read_content,
    read_metadata,
)
from memory_mesh.core.intake.messages import (
    PLAIN,
    SINGLE,
    Item,
    Message,
    MessageObject,
    Metadata,
    NewText,
    Terms,
    Turn,
    count_known,
    is_list,
    numbered,
    read_interaction,
    read_items,
    read_texts,
)
from memory_mesh.core.intake.prints import (
    EXPERIENCE_KEY,
    LEARNING_KEY,
    NOTE_KEY,
    TRACE_KEY,
    Author,
    Kept,
    Selection,
    best_trust,
    companion_key,
    every_sighting,
    file_print,
    fingerprint,
    fingerprints,
    folded_text,
    folder_print,
    found_by,
    has_own_print,
    is_file_print,
    is_note,
    is_of_traces,
    keep_without,
    key_prefix,
    normal_text,
    own_sighting,
    read_key,
    retired,
    updated_print,
)

__all__ = [
    "CATEGORIES", "DEFAULT_CATEGORY", "EXPERIENCE_KEY", "IMPORTANCE", "LEARNING_KEY", "NOTE_KEY",
    "PLAIN", "SINGLE", "TAXONOMY", "TRACE_KEY", "Author", "Draft", "Item", "Kept", "Limits",
    "Message", "MessageObject", "Metadata", "NewText", "Selection", "Terms", "Turn", "best_trust",
    "companion_key", "count_known", "draft", "every_sighting", "file_print", "fingerprint",
    "fingerprints", "folded_text", "folder_print", "found_by", "has_own_print", "is_file_print",
    "is_list", "is_note", "is_of_traces", "keep_without", "key_prefix", "normal_text", "numbered",
    "own_sighting", "read_content", "read_interaction", "read_items", "read_key", "read_metadata",
    "read_texts", "retired", "updated_print",
]  # fmt: skip
