"""Where the files of traces are below their root, and what a project begins with."""

import re
from dataclasses import dataclass
from hashlib import sha256

DEFAULT_PROJECT = "default"
PROJECTS = "projects"
SYSTEM = "system"
SYSTEM_LOG = "system/memory_log.md"
SYSTEM_ARCHIVE = "system/archive"
ID_LENGTH = 16
FOLDER_ID = "system/.id"  # tells the traces of two folders in one store apart, also after the folder was moved
LAST_NUMBER = "system/.last_experience"  # the last number of an entry; it never falls
MAX_ENTRIES = 1000  # of the live log
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,79}(?<!\.)")
IS_HASHED = re.compile(r".*-[0-9a-f]{8}")


@dataclass(frozen=True, slots=True)
class Project:
    """A project by its name, and the paths of its files."""

    name: str

    @property
    def folder(self) -> str:
        if _SAFE.fullmatch(self.name):
            return f"{PROJECTS}/{self.name}"
        slug = re.sub(r"[^A-Za-z0-9_]+", "-", self.name)[:60].strip("-")
        return f"{PROJECTS}/{slug or 'project'}-{sha256(self.name.encode()).hexdigest()[:8]}"

    @property
    def short_term(self) -> str:
        return f"{self.folder}/memory/short_term"

    @property
    def long_term(self) -> str:
        return f"{self.folder}/memory/long_term"

    @property
    def archive(self) -> str:
        return f"{self.folder}/memory/archive"

    @property
    def log(self) -> str:
        return f"{self.short_term}/execution_log.md"

    @property
    def cache(self) -> str:
        return f"{self.short_term}/context_cache.md"

    @property
    def tool_results(self) -> str:
        return f"{self.short_term}/tool_results"

    @property
    def context(self) -> str:
        return f"{self.folder}/context.md"

    @property
    def files(self) -> dict[str, str]:
        """The files that the first use of a project creates, with their texts."""
        empty = (self.log, self.cache, *(f"{self.long_term}/{name}.md" for name in ("learnings", "patterns", "decisions")))
        return {**dict.fromkeys(empty, ""), self.context: f"# {self.name}\n"}

    @classmethod
    def of_folder(cls, name: str, context: str) -> "Project":
        """Return the project of a folder. A name that is not valid for a folder is the title of its context file."""
        title = cls(context.partition("\n")[0].removeprefix("# ").strip())
        return title if title.folder == f"{PROJECTS}/{name}" else cls(name)


def archive_of(number: int) -> str:
    """Return the archive of the log that an entry belongs to, of a thousand numbers each."""
    first = (number - 1) // MAX_ENTRIES * MAX_ENTRIES + 1
    return f"{SYSTEM_ARCHIVE}/memory_log-{first}-{first + MAX_ENTRIES - 1}.md.gz"
