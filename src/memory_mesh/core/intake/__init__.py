"""Check what a caller wants to store. `gate.Layer0`, which scrubs and redacts, is imported by its path: it is slow to load."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
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
from memory_mesh.core.intake.prints import Selection, file_print, folder_print, is_file_print
from memory_mesh.core.intake.messages import (
    PLAIN,
    SINGLE,
    Item,
    Message,
    MessageObject,
    Metadata,
    NewText,
    Terms,
    is_list,
    numbered,
    read_interaction,
    read_items,
    read_texts,
)
from memory_mesh.core.intake.prints import folded_text, normal_text
from memory_mesh.core.intake.messages import Turn, count_known
from memory_mesh.core.intake.prints import (
    EXPERIENCE_KEY,
    LEARNING_KEY,
    NOTE_KEY,
    TRACE_KEY,
    companion_key,
    fingerprint,
    fingerprints,
    found_by,
    has_own_print,
    is_note,
    is_of_traces,
    key_prefix,
    read_key,
    updated_print,
)
from memory_mesh.core.intake.prints import Author, Kept, best_trust, every_sighting, keep_without, own_sighting, retired

__all__ = ["CATEGORIES", "DEFAULT_CATEGORY", "IMPORTANCE", "PLAIN", "SINGLE", "TAXONOMY", "Author", "Draft", "Item", "Kept"]
__all__ += ["Limits", "Message", "MessageObject", "Metadata", "NewText", "Selection", "Terms", "Turn", "best_trust"]
__all__ += ["count_known", "draft", "every_sighting", "file_print", "fingerprint", "fingerprints", "folded_text", "folder_print"]
__all__ += ["found_by", "has_own_print", "is_file_print", "is_list", "keep_without", "key_prefix", "normal_text", "numbered"]
__all__ += ["own_sighting", "read_content", "read_interaction", "read_items", "read_key", "read_metadata", "read_texts"]
__all__ += ["EXPERIENCE_KEY", "LEARNING_KEY", "NOTE_KEY", "TRACE_KEY", "companion_key"]
__all__ += ["is_note", "is_of_traces", "retired", "updated_print"]
