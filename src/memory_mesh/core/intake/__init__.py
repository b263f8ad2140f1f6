"""Check what a caller wants to store. `gate.Layer0`, which scrubs and redacts, is imported by its path: it is slow to load."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.intake.drafts import (
    CATEGORIES, DEFAULT_CATEGORY, IMPORTANCE, TAXONOMY, Draft, Limits, columns_of, draft, normal_text, read_content,
    read_metadata,
)
from memory_mesh.core.intake.files import Selection, file_print, folder_print, is_file_print
from memory_mesh.core.intake.messages import (
    ALONE, Given, Item, Message, MessageObject, Metadata, is_list, numbered, read_items, read_one,
)
from memory_mesh.core.intake.turns import Turn, count_known
from memory_mesh.core.intake.prints import (
    fingerprint, fingerprints, has_own_print, key_prefix, key_print, read_key, updated_print,
)
from memory_mesh.core.intake.sightings import (
    Author, Kept, best_trust, every_sighting, keep_without, own_sighting, retired,
)

__all__ = ["ALONE", "CATEGORIES", "DEFAULT_CATEGORY", "IMPORTANCE", "TAXONOMY", "Author", "Draft", "Given", "Item"]
__all__ += ["Kept", "Limits", "Message", "MessageObject", "Metadata", "Selection", "Turn", "best_trust", "columns_of"]
__all__ += ["count_known", "draft", "every_sighting", "file_print", "fingerprint", "folder_print", "has_own_print"]
__all__ += ["fingerprints", "is_file_print", "is_list", "keep_without", "key_prefix", "key_print", "normal_text", "numbered"]
__all__ += ["own_sighting", "read_content", "read_items", "read_key", "read_metadata", "read_one", "retired"]
__all__ += ["updated_print"]
