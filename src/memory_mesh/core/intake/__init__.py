"""Check what a caller wants to store. `gate.Layer0`, which scrubs and redacts, is imported by its path: it is slow to load."""

# ruff: noqa: I001  (sorted, but several names a line)
# fmt: off
from memory_mesh.core.intake.drafts import (
    CATEGORIES, DEFAULT_CATEGORY, IMPORTANCE, TAXONOMY, Draft, Limits, draft, fingerprint, normal_text, read_content,
    read_metadata,
)
from memory_mesh.core.intake.files import Selection, file_print, folder_print, is_file_print
from memory_mesh.core.intake.messages import (
    ALONE, Given, Item, Message, MessageObject, Metadata, is_list, numbered, read_items, read_one,
)
from memory_mesh.core.intake.turns import Turn, count_known

__all__ = ["ALONE", "CATEGORIES", "DEFAULT_CATEGORY", "IMPORTANCE", "TAXONOMY", "Draft", "Limits", "Selection", "draft"]
__all__ += ["fingerprint", "folder_print", "is_file_print", "normal_text", "read_content", "read_metadata"]
__all__ += ["Given", "Item", "Message", "MessageObject", "Metadata", "Turn", "count_known", "is_list", "numbered", "read_items"]
__all__ += ["file_print", "read_one"]
