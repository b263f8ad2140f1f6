"""Names that the documents promise and this version lacks. Using one raises `NotYet`; nothing is silently ignored."""

from memory_mesh.core.errors import NotYet

# Name → the feature that will bring it. Delete this module with its last entry.
NOT_YET = {
    # methods and faces
    "reflect": "reflection",
    "synthesize": "reflection",
    "insert_heritage": "heritage",
    "ingest_skill": "skills",
    "search_skills": "skills",
    "list_skills": "skills",
    "update_skill_reliability": "skills",
    "prune_skills": "skills",
    "graph": "the graph face",
    "lane": "the lane face",
    "notes": "the notes face",
    "traces": "the traces face",
    # commands
    "ingest-skill": "skills",
    "search-skills": "skills",
    "list-skills": "skills",
    "skill-feedback": "skills",
    "skill-prune": "skills",
    # options
    "skill_directories": "skills",
    "db_dir": "the LanceDB store",
    "enable_heritage_tracking": "heritage",
    "max_heritage_depth": "heritage",
    "notes_dir": "the notes face",
    "traces_dir": "the traces face",
    # stores
    "lancedb": "the LanceDB store",
    "s3": "the LanceDB store",
    "postgresql": "the PostgreSQL store",
    "supabase": "the Supabase store",
    "json": "the JSON store",
}


def not_yet(name: str) -> NotYet:
    """Return the error for a name in `NOT_YET`."""
    return NotYet(f"{name} is not in this version", remedy=f"it comes with {NOT_YET[name]}")
