"""The methods of `MemoryNotes`: Markdown files that are injected into prompts when they fit.

The docstrings are the reference of the public API.
"""

from collections.abc import Mapping, Sequence
from os import PathLike

from memory_mesh.api.handle import Handle
from memory_mesh.core.model import GivenTime, MemoryRecord
from memory_mesh.core.notes import Appended, Fault, MatchContext, Note, Notes, Relevance, Synced
from memory_mesh.core.notes.extraction import ExtractionInput, ExtractionOutput
from memory_mesh.core.notes.files import Imported
from memory_mesh.flows.notes import index as note_index
from memory_mesh.flows.notes import notes as flow
from memory_mesh.flows.notes.notes import NewNote
from memory_mesh.flows.search import readable


class MemoryNotes(Handle):
    """The notes of a folder: Markdown files with frontmatter, which people edit and review.

    The folder is `notes_dir`, by default `.rawko/memories` under the working folder, the place that
    the design of the notes (SPEC-0009) names. The files are the truth, and are only ever added
    to. Every valid section is a memory too, so that `search` and the other parts of the mesh find
    it.
    """

    # --- reading ---

    def load(self) -> Notes:
        """Return all notes, by file and section. `faults` of the result is what is wrong in the
        files.

        Without a folder there are no notes. A section that is not valid is skipped, and the others
        are returned.
        """
        return flow.load(self._context())

    def lint(self) -> list[Fault]:
        """Return what is wrong in the files, with file and line. Those with `warning` do not
        keep a note from being used."""
        return sorted(flow.load(self._context()).faults, key=lambda fault: (fault.file, fault.line))

    def match(
        self, task: str, agent_name: str = "", current_plan: str | None = None
    ) -> list[Relevance]:
        """Return every note whose patterns match a task, an agent's name or its plan, with the
        parts of its score.

        `rank` is the order: the points, raised or lowered by feedback. Deprecated notes, those that
        are not valid now, and those whose memory is disputed, superseded, quarantined or erased are
        left out.
        """
        return flow.match(self._context(), MatchContext.of(task, agent_name, current_plan))

    def find_relevant(
        self, task: str, agent_name: str = "", current_plan: str | None = None, *,
        max_memories: int | None = None, min_importance: str | None = None,
    ) -> list[Note]:  # fmt: skip
        """Return the notes to inject into the prompt of an agent, the most relevant first.

        What is not given comes from the option `note_agents`; without it, at most 5 notes of every
        importance are returned.
        """
        return flow.find_relevant(
            self._context(),
            MatchContext.of(task, agent_name, current_plan),
            max_memories,
            min_importance,
        )

    def format_for_prompt(self, notes: Sequence[Note], *, max_tokens: int | None = None) -> str:
        """Return notes as a part of a prompt; the text is empty without notes. With `max_tokens`
        the last ones are left out."""
        return flow.format_for_prompt(self._context(), notes, max_tokens)

    def build_agent_prompt(
        self, agent: str = "", *, task: str, current_plan: str | None = None,
        system_prompt: str = "", max_memories: int | None = None, min_importance: str | None = None,
        max_tokens: int | None = None,
    ) -> str:  # fmt: skip
        """Return the prompt of an agent, followed by the notes that its task needs."""
        return flow.build_agent_prompt(
            self._context(), MatchContext.of(task, agent, current_plan),
            system_prompt=system_prompt, max_memories=max_memories, min_importance=min_importance,
            max_tokens=max_tokens,
        )  # fmt: skip

    # --- writing ---

    def append(
        self, title: str, content: str, *, when_to_use: str | Sequence[str] | None = None,
        tags: Sequence[str] = (), importance: str = "medium", discovered_by: str | None = None,
        discovered_at: GivenTime | None = None, discovered_in: str | None = None,
        source: str | None = None, related_memories: Sequence[str] = (),
        valid_from: GivenTime | None = None, valid_until: GivenTime | None = None,
        claim: Mapping[str, str] | None = None,
    ) -> Appended:  # fmt: skip
        """Add a note to the file of its title, and return where it is. What is in the file stays as
        it is.

        `when_to_use` are patterns: `auth|login`, `implement.*auth`, or plain language; by default
        the title. By default the agent of the mesh discovered it, now. Secrets and personal data
        are masked before the file is written. Raises `InvalidInput` for an invalid value, or if the
        folder cannot be written.
        """
        given = {
            "title": title, "whenToUse": when_to_use, "tags": tags,
            "importance": importance, "discoveredBy": discovered_by, "discoveredAt": discovered_at,
            "source": source, "discoveredIn": discovered_in, "relatedMemories": related_memories,
            "validFrom": valid_from, "validUntil": valid_until, "claim": claim,
        }  # fmt: skip
        return flow.append(
            self._context(),
            {name: value for name, value in given.items() if value is not None},
            content,
        )

    def save(self, output: NewNote) -> Appended | None:
        """Append what an extraction found, and return where it is.

        Returns None if `should_create_memory` is false, the note is not valid, or a note says the
        same already.
        """
        return flow.save(self._context(), output)

    def extract(self, run: ExtractionInput) -> ExtractionOutput:
        """Return the note that a finished run of an agent is worth, or why it is worth none.
        Nothing is written.

        Worth a note are the structure of the code base, patterns, constraints, causes of errors,
        decisions, and versions. Without a language model a deterministic judge reads the report;
        the answer of a model is checked, and an unusable one gives none.
        """
        return flow.extract(self._context(), run)

    def extract_and_save(
        self, *, agent: str, task: str, agent_output: str, result: str = "success",
        error: str | None = None, dry_run: bool = False,
    ) -> ExtractionOutput:  # fmt: skip
        """Call this after each run of an agent: extract the note that the run is worth, and save it
        unless it is known.

        `result` is `success`, `failure` or `partial`. `saved` of the answer is where the note is;
        `dry_run` writes nothing. The option `note_extraction_every` leaves out runs.
        """
        run = ExtractionInput(
            agent=agent, task=task, agent_output=agent_output, result=result, error=error
        )
        return flow.extract_and_save(self._context(), run, dry_run=dry_run)

    def sync(self) -> Synced:
        """Bring the memories of the notes up to date, and return what changed.

        This also happens by itself: at every use of the notes and, if `notes_dir` is set, at every
        read of the mesh.
        """
        return note_index.sync(self._context())

    def import_files(self, paths: Sequence[str | PathLike[str]] = ()) -> Imported:
        """Store the sections of the files that people keep for coding agents as memories, so that
        searches find them.

        Without paths these are `CLAUDE.md`, `AGENTS.md`, `.cursor/rules/*.mdc`, and the skills in
        `.claude/skills` and `skills` of the working folder. A path is a file or a folder in it.
        What was imported before is brought up to date: edited sections are replaced, removed ones
        archived. The files are only read, and nothing outside the working folder is. Raises
        `InvalidInput` if there is nothing at a path, or it is outside the working folder.
        """
        return flow.import_files(self._context(), paths)

    def refresh(self) -> Synced | None:
        """Do what `sync` does if a file changed since the last time, and return what changed; None
        if nothing did.

        Files that did not change are not read. A store that cannot be written now is logged, and
        the next call tries again.
        """
        return note_index.refresh(self._context())

    def feedback(self, file: str, section: int, signal: str) -> MemoryRecord:
        """Rate a note by its file and section: `helpful` or `harmful`. It counts for its rank, and
        survives edits.

        Raises `NotFound` if there is no such note.
        """
        context = self._context()
        return readable.record(
            context, note_index.feedback(context, flow.load(context), file, section, signal)
        )
