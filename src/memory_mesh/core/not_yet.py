"""Names that the documents promise and this version lacks. Using one raises `NotYet`; nothing is silently ignored."""

from memory_mesh.core.errors import NotYet

# Feature → the methods, faces, commands, options and stores that it will bring. Delete this module with its last entry.
_FEATURES = {
    "reflection": "reflect synthesize",
    "heritage": "insert_heritage enable_heritage_tracking max_heritage_depth",
    "skills": "ingest_skill search_skills list_skills update_skill_reliability prune_skills skill_directories"
    " ingest-skill search-skills list-skills skill-feedback skill-prune",
    "the graph face": "graph",
    "the lane face": "lane",
    "the notes face": "notes notes_dir",
    "the traces face": "traces traces_dir",
    "the LanceDB store": "lancedb s3 db_dir",
    "the PostgreSQL store": "postgresql",
    "the Supabase store": "supabase",
    "the JSON store": "json",
}
NOT_YET = {name: feature for feature, names in _FEATURES.items() for name in names.split()}


def not_yet(name: str) -> NotYet:
    """Return the error for a name in `NOT_YET`."""
    return NotYet(f"{name} is not in this version", remedy=f"it comes with {NOT_YET[name]}")
