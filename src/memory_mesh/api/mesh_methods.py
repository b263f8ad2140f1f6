"""The methods of `MemoryMesh`. Each parses its arguments and calls one flow.

The docstrings are the reference of the public API.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, overload

from memory_mesh.api.handle import with_session
from memory_mesh.api.learning_methods import Auditing, Learning
from memory_mesh.core import errors
from memory_mesh.core.claims.updates import Update
from memory_mesh.core.errors import InvalidInput, whole_number
from memory_mesh.core.intake import (
    Item,
    Message,
    Metadata,
    NewText,
    Selection,
    is_list,
    read_items,
    read_texts,
)
from memory_mesh.core.learning import Spending, is_block
from memory_mesh.core.model import (
    MIN_IMPORTANCE,
    BackedUp,
    Change,
    Checked,
    Copied,
    EndedSession,
    Extraction,
    FileImport,
    Filter,
    Forgotten,
    GivenTime,
    Imported,
    Ingested,
    MemoryRecord,
    Reembedded,
    SearchResult,
    Sighting,
    Status,
    UserCount,
)
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.search import CacheStats, Explanation
from memory_mesh.core.search.passages import fitting
from memory_mesh.core.text import short_repr, shortened, shown_url
from memory_mesh.flows.context import Context, count_by_status, count_by_user, count_skills
from memory_mesh.flows.learning import models

if TYPE_CHECKING:
    from memory_mesh.api.graph_methods import MemoryGraph
    from memory_mesh.api.lane_methods import MemoryLane
    from memory_mesh.api.notes_methods import MemoryNotes
    from memory_mesh.api.traces_methods import MemoryTraces


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """How many memories a user has, where they are stored, and what paid models cost."""

    __repr__ = short_repr

    total_memories: int
    total_skills: int
    db_path: str
    connected: bool
    by_status: dict[str, int]
    spent_today: tuple[Spending, ...] = ()  # by all users of the store, since midnight UTC
    spent_in_all: tuple[Spending, ...] = ()

    @property
    def status(self) -> str:
        return "connected" if self.connected else "disconnected"


class Mesh(Learning, Auditing):
    """The memory of one agent. The first call opens the store; use it as a context manager, or call
    `close`.

    The first write creates the file of the store, and so does `init`. Until then reads find
    nothing and create nothing; with the option `must_exist` every call raises `StoreMissing`.
    """

    # --- writing ---

    @overload
    def add(
        self, content: str | Message, metadata: Metadata | None = None, *, key: str | None = None,
        deduplicate: bool | None = None, idempotency_key: str | None = None,
        progress: Progress | None = None, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryRecord: ...  # fmt: skip
    @overload
    def add(
        self, content: Sequence[Message], metadata: Metadata | None = None, *,
        deduplicate: bool | None = None, idempotency_key: str | None = None,
        progress: Progress | None = None, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None,
    ) -> list[MemoryRecord]: ...  # fmt: skip
    def add(
        self, content: Item, metadata: Metadata | None = None, *, key: str | None = None,
        deduplicate: bool | None = None, idempotency_key: str | None = None,
        progress: Progress | None = None, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None,
    ) -> MemoryRecord | list[MemoryRecord]:  # fmt: skip
        """Store a text, a chat message or a list of messages, and return its memory, or the list of
        new memories.

        They are durable when the call returns. If the same text is stored in the same scope
        already, that memory is counted as observed again and returned; with `deduplicate=False` it
        is stored again. `key` is a key of your own: what is stored under it in this scope is
        replaced by a new revision of the same memory. A call repeated with the same
        `idempotency_key` stores nothing and returns the same.

        A message has `role` and `content`, and may have `name`, `timestamp` and `metadata`. It
        becomes the next turn of its session, which `metadata` or the mesh names. Of a list, only
        what follows the stored turns is added, so an agent may send its whole history again. System
        messages and messages without text are left out. A text that is the whole block of a lesson
        (RFC-0011, §3.5), as another store wrote it, is stored as that lesson.

        `user_id`, `agent_id` and `session_id` say whose memory it is, for this call: as with
        `scoped(…).add`, but a mesh of one user refuses another one.

        Raises `InvalidInput` for invalid content or metadata, and `KeyReused` if the idempotency
        key was used for another request.
        """
        texts = read_texts(content, metadata, key)
        context = with_session(self._context_of(user_id, agent_id), session_id)
        records = self._add(context, texts, deduplicate, idempotency_key, progress)
        return records if is_list(content) else records[-1]

    ingest = add  # the name that RFC-0011 uses

    def add_many(
        self, items: Iterable[Item], metadata: Metadata | None = None, *,
        deduplicate: bool | None = None, idempotency_key: str | None = None,
        progress: Progress | None = None, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        """Store many items, all or none, and return their memories in the same order.

        An item is anything that `add` takes: a text, a pair of text and metadata, a mapping with
        `content`, `metadata` and `key`, a message or a list of messages. `metadata` is added to all
        of them. Of messages, only the new ones are stored and returned.

        Raises what `add` raises; the message names the position of the invalid item, from 0.
        """
        texts = read_items(items, metadata)
        context = with_session(self._context_of(user_id, agent_id), session_id)
        return self._add(context, texts, deduplicate, idempotency_key, progress)

    @staticmethod
    def _add(
        context: Context,
        texts: Sequence[NewText],
        deduplicate: object,
        idempotency_key: str | None,
        progress: Progress | None,
    ) -> list[MemoryRecord]:
        from memory_mesh.flows.search import readable
        from memory_mesh.flows.write import write

        update = as_progress(progress)
        memories = []
        if len(texts) == 1 and not context.is_program_data and is_block(texts[0].content):
            from memory_mesh.flows.learning import lessons

            memories = lessons.received(context, texts, idempotency_key)
        memories = memories or write.add(
            context,
            texts,
            deduplicate=deduplicate,
            idempotency_key=idempotency_key,
            progress=update,
        )
        return readable.records(context, memories)

    def ingest_dir(
        self, path: str | PathLike[str], *, extension: str | Sequence[str] = ".md",
        type: str | None = None, recursive: bool = False, progress: Progress | None = None,
    ) -> Ingested:  # fmt: skip
        """Store each file of a folder as one memory, with its path in the folder as the metadata
        `source`.

        A second run adds new files, updates changed ones, skips the rest, and lists the memories of
        missing files in `gone`. Files that cannot be stored are listed in `failed`. Raises
        `InvalidInput` if the folder cannot be read.
        """
        from memory_mesh.flows.mirror import folders

        selection = Selection.of(extension, recursive=recursive)
        return folders.ingest(
            self._context(),
            errors.path("path", path),
            selection,
            type_=type,
            progress=as_progress(progress),
        )

    def extract(
        self, text: str, *, min_importance: float = MIN_IMPORTANCE,
        metadata: Metadata | None = None, idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Extraction:  # fmt: skip
        """Extract memories from a text with the language model, and store them with the given
        metadata.

        Memories below `min_importance` are dropped. If there is no model, or if it fails, the text
        is stored unchanged and `stored_whole` of the result says why. Raises what `add` raises.
        """
        # Loads prompts and injection patterns.
        from memory_mesh.flows.write.conversations import extract

        update = as_progress(progress)
        return extract(
            self._context(),
            text,
            min_importance=min_importance,
            metadata=metadata,
            key=idempotency_key,
            progress=update,
        )

    def update(
        self, id: str, *, content: str | None = None, metadata: Metadata | None = None,
        why: str | None = None, idempotency_key: str | None = None,
    ) -> MemoryRecord:  # fmt: skip
        """Change the content or the metadata of a memory, and return the new revision.

        Metadata keys that are given are set, keys with the value None are removed, and other keys
        are kept. `why` is stored in the history. Raises `NotFound` if the memory is not visible,
        and what `add` raises.
        """
        from memory_mesh.flows.search import readable
        from memory_mesh.flows.write import write

        context = self._context()
        memory = write.update(
            context, id, content=content, metadata=metadata, why=why, key=idempotency_key
        )
        return readable.record(context, memory)

    def pin(self, id: str, *, pinned: bool = True) -> MemoryRecord:
        """Pin a memory, so that it never decays, or unpin it. Raises `NotFound` if it is not
        visible."""
        from memory_mesh.flows.search import readable
        from memory_mesh.flows.write import write

        action, context = "pin" if pinned else "unpin", self._context()
        return readable.record(
            context, write.set_columns(context, id, action=action, pinned=pinned)
        )

    def forget(
        self, id: str | None = None, *, key: str | None = None, user_id: str | None = None,
        agent_id: str | None = None, session_id: str | None = None, project: str | None = None,
        memory_type: str | None = None, files: bool = False, verify: bool = False,
    ) -> Forgotten:  # fmt: skip
        """Erase a memory for good, or everything in a scope, free the bytes, and return what was
        erased. Give an id, the key of your own, or a scope.

        A scope is of every agent of this user, and each further name narrows it. A memory that an
        agent or session outside it stored too is kept for that one, and listed in `kept`. A user
        alone is forgotten with all searches, idempotency keys and traces; a mesh without a user may
        name any user. An unknown id is not an error: `memories` is empty then.

        The memory of a note that `mesh.notes` wrote is also taken out of its file; with `files`,
        one that people wrote too. With `verify`, look everywhere before and after; `check` of the
        result says what was found. Raises `InvalidInput` for another user, for an empty name, and
        unless one of id, key and scope is given.
        """
        from memory_mesh.flows.upkeep.forget import forget, is_whole_user

        names = {"user_id": user_id, "agent_id": agent_id, "session_id": session_id}
        names |= {"project": project, "memory_type": memory_type}
        context = self._existing()
        context = self._flushed() if is_whole_user(names) else context
        return forget(context, id, key, names, files=files, verify=verify)

    def erase(
        self, id: str | None = None, *, key: str | None = None, files: bool = False,
        verify: bool = False
    ) -> Forgotten:  # fmt: skip
        """Call `forget` with an id or a key."""
        return self.forget(id, key=key, files=files, verify=verify)

    def delete(self, id: str | None = None, *, key: str | None = None, files: bool = False) -> None:
        """Erase a memory or skill like `forget`, but free its bytes later, together with those of
        other deletions: when the store is closed or opened, and by `forget`, `compact` and the
        heartbeat. It takes a few milliseconds in a store of any size.
        """
        from memory_mesh.flows.search import reads
        from memory_mesh.flows.upkeep import erase

        context = self._existing()
        erase.delete(context, reads.to_erase(context, id, key), files=files)

    def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None,
        session_id: str | None = None, project: str | None = None, memory_type: str | None = None,
    ) -> Forgotten:  # fmt: skip
        """Call `forget` with a scope."""
        return self.forget(
            user_id=user_id, agent_id=agent_id, session_id=session_id, project=project,
            memory_type=memory_type,
        )  # fmt: skip

    def end_session(self, session_id: str) -> EndedSession:
        """Archive the memories and skills of type `session` that this agent stored in a session,
        and return their ids.

        Those of other types stay active. A session that ended already has nothing left to archive.
        Raises `NotFound` if this agent has no memory and no skill of the session.
        """
        from memory_mesh.flows.write.conversations import end_session

        return end_session(self._reading(), session_id)

    # --- other faces ---

    @property
    def lane(self) -> "MemoryLane":
        """The memories as a lane of learnings: ten types, decay, feedback and entities, filled
        at the end of sessions."""
        from memory_mesh.api.lane_methods import MemoryLane  # most meshes do not use it

        return MemoryLane(self._source, self._scope, self._root)

    @property
    def notes(self) -> "MemoryNotes":
        """The notes of a folder: Markdown files that are injected into the prompts of agents
        when they fit the task."""
        from memory_mesh.api.notes_methods import MemoryNotes  # most meshes do not use it

        return MemoryNotes(self._source, self._scope, self._root)

    @property
    def traces(self) -> "MemoryTraces":
        """The traces of executions and the experience log: what was done, how it went, and what
        was done for similar goals."""
        from memory_mesh.api.traces_methods import MemoryTraces  # most meshes do not use it

        return MemoryTraces(self._source, self._scope, self._root)

    @property
    def graph(self) -> "MemoryGraph":
        """The memories as a graph: claims that do not contradict each other, trust, conflicts
        and links."""
        from memory_mesh.api.graph_methods import MemoryGraph  # most meshes do not use it

        return MemoryGraph(self._source, self._scope, self._root)

    # --- reading ---

    def get(
        self, id: str | None = None, *, key: str | None = None, user_id: str | None = None,
        agent_id: str | None = None, session_id: str | None = None,
    ) -> MemoryRecord | None:  # fmt: skip
        """Return a memory of any status by its id, or the current one with a key of your own; None
        if it is not visible.

        The id of a skill returns its text as a memory; `get_skill` returns the skill.
        """
        from memory_mesh.flows.search import readable, reads

        context = self._in_session(session_id, user_id, agent_id)
        named = reads.named(context, id, key)
        return (
            readable.record(context, memory)
            if named is not None and (memory := reads.get(context, named))
            else None
        )

    def get_all(
        self, limit: int | None = None, *, filter: Filter | None = None,
        status: Sequence[str] = (Status.ACTIVE,), after: str | None = None,
        user_id: str | None = None, agent_id: str | None = None, session_id: str | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        """Return the visible memories with one of these statuses that are valid now, newest first.

        `after` is the id of the last memory of a page: the next page begins behind it, whatever was
        stored or erased since. `filter` is an SQL condition such as `importance > 0.5 AND tags =
        'ops'`, or a mapping of columns and metadata keys to the value, or a list of values, that
        they must have. Raises `InvalidFilter` if it is not valid.
        """
        from memory_mesh.flows.search import filters, readable, reads

        where = filters.where_of(filter)
        context = self._in_session(session_id, user_id, agent_id)
        memories = reads.get_all(context, limit=limit, where=where, statuses=status, after=after)
        if not memories:
            reads.log_unknown_keys(context, where)
        return readable.records(context, memories)

    def history(self, id: str, *, session_id: str | None = None) -> list[Change]:
        """Return the changes of a memory or skill, oldest first. Raises `NotFound` if it is not
        visible."""
        from memory_mesh.flows.search import reads

        return reads.history(self._in_session(session_id), id)

    def sightings(self, id: str, *, session_id: str | None = None) -> list[Sighting]:
        """Return the agents and sessions that stored the text of a memory, oldest first.

        Raises `NotFound` if the memory is not visible.
        """
        from memory_mesh.flows.write import prepare

        return prepare.sightings(self._in_session(session_id), id)

    def search(
        self, query: str, limit: int = 10, filter: Filter | None = None, *, use_cache: bool = True,
        mode: str | None = None, min_score: float | None = None,
        status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None,
        ranker: str | None = None, max_chars: int | None = None, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None, user_id: str | None = None, agent_id: str | None = None,
    ) -> list[SearchResult]:  # fmt: skip
        """Return the memories that are most relevant to a query, highest score first, or an empty
        list.

        `mode` says what is left out: "recall" very little; "precise" what is probably irrelevant.
        The default is the option `search_mode`, "recall". `result.relevant` says whether "precise"
        returns a result too. `min_score`, if given, replaces the minimum score of the mode. A
        long memory has a `passage`, the piece of its content that fits the query best. With
        `max_chars`, results are returned while their texts (the passage, or the content of a short
        memory) have at most so many characters together; a first one that is longer is shortened.
        What is not valid now, or at a time that the query names, is left out; `as_of` returns what
        was valid at a time, as is known now, and `known_at` what was stored and believed then.
        `user_id`, `agent_id` and `session_id` say whose memories are searched, as for `add`. Raises
        `InvalidInput` for a blank query, and `InvalidFilter` for an invalid filter.
        """
        from memory_mesh.flows.search import reads, search

        request = search.Request(
            query=query, limit=limit, statuses=status, mode=mode, min_score=min_score,
            ranker=ranker, max_chars=max_chars, as_of=as_of, known_at=known_at,
        ).with_filter(filter)  # fmt: skip
        context = self._in_session(session_id, user_id, agent_id)
        results = search.search(context, request, use_cache=use_cache)
        if not results:
            reads.log_unknown_keys(context, request.where)
        return results

    def explain(
        self, query: str, limit: int = 10, filter: Filter | None = None, *, mode: str | None = None,
        min_score: float | None = None, status: Sequence[str] = (Status.ACTIVE,),
        session_id: str | None = None, ranker: str | None = None, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None, user_id: str | None = None, agent_id: str | None = None,
    ) -> Explanation:  # fmt: skip
        """Search, and return for each result its rank in every channel and its features, and how
        many were left out and why."""
        from memory_mesh.flows.search import reads, search

        request = search.Request(
            query=query, limit=limit, statuses=status, mode=mode, min_score=min_score,
            ranker=ranker, as_of=as_of, known_at=known_at,
        ).with_filter(filter)  # fmt: skip
        context = self._in_session(session_id, user_id, agent_id)
        explanation = search.explain(context, request)
        if not explanation.answers:
            reads.log_unknown_keys(context, request.where)
        return explanation

    # --- what changed ---

    def changes(
        self, about: str | None = None, *, limit: int = 100, session_id: str | None = None,
        seconds: float = 5.0,
    ) -> list[Update]:  # fmt: skip
        """Return which newer memories replace or end what older ones say, newest first.

        `about` is the id of a memory, or a subject in words: then only the changes that are
        connected with that memory, or with what a search for the subject finds, are returned. Each
        has both memories, the `type` (`updates`: the newer one replaces the older one, `ends`: it
        says that something is over, `both_hold`: the change was undone), the `probability` (1 if a
        person decided) and the time `at` since when the newer one holds. New memories are compared
        first, for up to so many `seconds`.
        """
        from memory_mesh.flows.claims import updates

        return updates.changes(self._in_session(session_id), about, limit=limit, seconds=seconds)

    def confirm_change(self, newer: str, older: str) -> Update:
        """Say that a newer memory replaces or ends what an older one says, and return the change.

        `newer` and `older` are the ids of the memories, also of two that were not recognised. Both
        stay; searches rank the newer one above the older one. Raises `NotFound` if one of them is
        not visible, and `InvalidInput` if the first one is older than the second one.
        """
        from memory_mesh.flows.claims import updates

        return updates.confirm(self._context(), newer, older)

    def undo_change(self, newer: str, older: str) -> Update:
        """Say that both memories hold: the newer one does not replace or end what the older one
        says. It is not recognised again.

        Raises what `confirm_change` raises, which also takes an undone change back.
        """
        from memory_mesh.flows.claims import updates

        return updates.undo(self._context(), newer, older)

    # --- vectors ---

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every memory of the store a vector of the current embedder's model.

        Embeds memories that are pending or have a vector of another model. A run that was stopped
        continues where it was; searches switch to the new model at once. Raises `SettingsError`
        without an embedder, `EmbeddingError` if it fails.
        """
        from memory_mesh.flows.write import embed

        return embed.reembed(self._context(), as_progress(progress))

    # --- diagnostics ---

    def stats(self) -> MemoryStats:
        """Return how many memories are visible by status, where they are stored, and what paid
        models cost."""
        context = self._reading()
        counts = count_by_status(context)
        today, in_all = models.spending(context.state.ledger, context.clock())
        return MemoryStats(
            total_memories=sum(counts.values()),
            total_skills=count_skills(context),
            db_path=shown_url(context.store.url),
            connected=context.options.enable_memory,
            by_status=counts,
            spent_today=today,
            spent_in_all=in_all,
        )

    def users(self) -> list[UserCount]:
        """Return the users of the store with the number of their memories, most first; a mesh of
        one user only that one."""
        return count_by_user(self._reading())

    def check_models(self) -> tuple[Checked, ...]:
        """Send one short request to the language model and one to the embedder, and return the
        results."""
        return models.check_models(self._context())

    def clear_cache(self) -> None:
        """Remove all results from the search cache."""
        self._context().state.cache.clear()

    def get_cache_stats(self) -> CacheStats:
        """Return the size, hits and misses of the search cache. It keeps up to 500 results for
        five minutes each."""
        return self._context().state.cache.stats()

    def compact(self) -> bool:
        """Free the bytes of deleted and replaced memories now, and return whether they are freed.

        Closing a store does it too, unless its file is larger than 512 MiB.
        """
        return self._context().store.compact()

    # --- moving ---

    def export(self, *, progress: Progress | None = None) -> Iterator[str]:
        """Yield the memories that this agent and session can see, of every status, as lines of
        JSON, oldest first.

        The first line names the format; docs/transfer.md describes it. Vectors are not exported.
        """
        from memory_mesh.flows.transfer import transfer

        return transfer.export(self._flushed(), as_progress(progress))

    def import_memories(
        self, lines: Iterable[str], *, progress: Progress | None = None
    ) -> Imported:
        """Store the memories of an export with their ids, times and scope, and return what was
        stored, skipped and failed.

        A memory that is stored already is skipped; if it differs, its line fails and nothing is
        changed. So does a line of another user. Each batch of 500 lines is written at once. Raises
        `InvalidInput` if the first line is not that of an export.
        """
        from memory_mesh.flows.transfer import transfer

        return transfer.import_memories(self._context(), lines, as_progress(progress))

    def export_store(
        self, *, vectors: bool = True, progress: Progress | None = None
    ) -> Iterator[str]:
        """Yield the whole store as lines of JSON: all users, audit chains and history included.
        `import_file` reads them.

        Equal stores of all kinds give equal lines. Without vectors, the import computes them.
        Raises `StoreBusy` before the last line if the store was written to meanwhile.
        """
        from memory_mesh.flows.transfer import moving

        return moving.export(self._flushed(), bool(vectors), as_progress(progress))

    def import_file(
        self, file: str | PathLike[str], *, format: str | None = None,
        progress: Progress | None = None
    ) -> FileImport:  # fmt: skip
        """Import an export, an archive, or the memories of another program, and return what was
        stored, skipped and failed.

        Reads the JSON of mem0, of the MCP memory server and of ChatGPT, databases of Memory Lane,
        folders of neolata-mem and blocks of lessons. The format is detected; `format` names the one
        that is expected. An archive needs an empty store. An import that was stopped can be run
        again: nothing is stored twice. Raises `InvalidInput` for another file.
        """
        from memory_mesh.flows.transfer import transfer

        return transfer.import_file(
            self._context(), errors.path("file", file), format, as_progress(progress)
        )

    def restore(self, file: str | PathLike[str], *, progress: Progress | None = None) -> Copied:
        """Copy a backup, or the archive of a store, into this store, which must be empty. A run
        that was stopped continues.

        The copy is verified by counts, digests and its audit chains. Raises `InvalidInput` if the
        store is not empty.
        """
        from memory_mesh.flows.transfer import transfer

        return transfer.restore(self._context(), errors.path("file", file), as_progress(progress))

    def backup(self, file: str | PathLike[str], *, progress: Progress | None = None) -> BackedUp:
        """Copy the file of the store to a new file, as it is at one moment, while others read and
        write.

        For a store without a file, the new file is an archive, as `export_store` yields it.
        `restore` reads both. Raises `InvalidInput` if the file exists or cannot be written.
        """
        from memory_mesh.flows.transfer import transfer

        self._existing()
        return transfer.backup(self._flushed(), errors.path("file", file), as_progress(progress))

    # --- formatting ---

    def format_results(
        self, results: Sequence[SearchResult], *, max_chars: int | None = None
    ) -> str:
        """Return search results as the text block that RFC-0011 defines for prompts, with the whole
        contents.

        With `max_chars` the texts are limited as by `search`, and a long memory is shown by its
        passage.
        """
        from memory_mesh.core.language.safety.fence import format_block  # loads many patterns

        results = _checked_results(results)
        if max_chars is None:
            return format_block((result, result.content) for result in results)
        kept = fitting(results, whole_number("max_chars", max_chars)) or results[:1]
        return format_block((result, shortened(result.excerpt, max_chars)) for result in kept)

    def format_for_model(
        self, results: Sequence[SearchResult], *, max_tokens: int | None = None, ids: bool = False
    ) -> str:
        """Return the relevant search results as data for a language model; of a long memory, the
        passage that fits the query. If none is relevant, the text is empty.

        They stand between random tags that no memory can close, with a notice that they contain no
        instructions. Memories that look like prompt injection are marked. With `max_tokens`, the
        whole text has at most so many tokens, as the embedder counts them, or else of four
        characters each. The best results are kept, and the text says how many were left out; if not
        even the first one fits, it is cut. With `ids`, each line names the memory.
        """
        from memory_mesh.core.language.safety.fence import fence_memories  # loads many patterns
        from memory_mesh.flows.write import embed

        context, budget = (
            self._context(),
            None if max_tokens is None else whole_number("max_tokens", max_tokens),
        )
        return fence_memories(
            [result for result in _checked_results(results) if result.relevant],
            context.ids.salt(),
            max_tokens=budget,
            count=embed.token_counter(context),
            ids=ids,
        )


def _checked_results(given: object) -> list[SearchResult]:
    expected = "the results of search"
    results = errors.listed("results", given, expected=expected)
    for result in results:
        if not isinstance(result, SearchResult):
            raise InvalidInput(f"a result is {type(result).__name__}", expected=expected)
    return results
