"""The methods of `MemoryMesh`. Each parses its arguments and calls one flow.

The docstrings are the reference of the public API; `tools/stubs.py` copies them to the asynchronous mesh.
It is over 500 lines because all methods stand in one class, with their docstrings.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Never, Self, overload
from weakref import ref

from memory_mesh.core import checks
from memory_mesh.core.audit import Anchored, Rekeyed, Verdict
from memory_mesh.core.checks import whole_number
from memory_mesh.core.errors import NOT_YET, InvalidInput, not_yet
from memory_mesh.core.intake import Item, Message, Metadata, NewText, Selection, is_list, read_items, read_texts
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock, LessonContext, Spending
from memory_mesh.core.model import (
    MIN_IMPORTANCE,
    BackedUp,
    Block,
    Change,
    Extraction,
    Head,
    Imported,
    MemoryRecord,
    Reader,
    SearchResult,
    Sighting,
    Status,
)
from memory_mesh.core.options import validate
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.search import CacheStats, Explanation
from memory_mesh.core.search.passages import fitting
from memory_mesh.core.text import shortened, shown_url
from memory_mesh.flows import embed, erase, filters, folders, lessons, models, search, sightings, usage, write
from memory_mesh.flows.context import Context, SharedContext, Source
from memory_mesh.flows.embed import Reembedded
from memory_mesh.flows.erase import Erasure, Forgotten
from memory_mesh.flows.filters import Filter
from memory_mesh.flows.folders import Ingested
from memory_mesh.flows.models import Checked
from memory_mesh.flows.search import Request

# Methods of other libraries, and what to call here.
_ELSEWHERE = {
    "upsert": "add(…, key=…)", "put": "add(…, key=…)", "store": "add", "remember": "add", "query": "search", "recall": "search",
    "count": "stats().total_memories", "clear": "delete_all or forget", "reset": "delete_all or forget",
}  # fmt: skip


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


class Mesh:
    """The memory of one agent. The first call opens the store; use it as a context manager, or call `close`.

    The first write creates the file of the store, and so does `init`. Reading a named file that does not exist raises
    `StoreMissing`.
    """

    def __init__(self, source: Source, scope: Mapping[str, str | None], root: "ref[Mesh] | None" = None) -> None:
        self._source, self._scope = source, scope
        self._root = root or ref(self)  # the mesh that this handle was made from
        self._shared: SharedContext | None = None
        self._opened: tuple[Context, Context] | None = None  # the shared context, and the same with the reader of this mesh
        self._closed = False

    def __repr__(self) -> str:
        scope = "".join(f", {name}={value!r}" for name, value in self._scope.items() if value is not None)
        return f"{type(self).__name__}({self._source.url!r}{scope})"

    # --- lifecycle ---

    def scoped(
        self, *, user_id: str | None = None, agent_id: str | None = None, session_id: str | None = None,
        project: str | None = None,
    ) -> Self:  # fmt: skip
        """Return a handle for another user, agent, session or project on the same store. What is not given is inherited.

        A handle has all methods of a mesh, and takes a few microseconds to make. Closing one closes nothing that others use, and
        the store stays open until this mesh is closed too.
        Raises `SettingsError` for a blank name.
        """
        names = {"user_id": user_id, "agent_id": agent_id, "session_id": session_id, "project": project}
        given = {name: validate(name, value) for name, value in names.items() if value is not None}
        handle = copy(self)  # also of a subclass, with what that adds
        Mesh.__init__(handle, self._source, {**self._scope, **given}, self._root)
        return handle

    def init(self) -> None:
        """Open the store now instead of at the first use, and create its file if there is none."""
        self._context().file.create_file()

    def close(self) -> None:
        """Write what is pending and close the store, unless other meshes use it. A later call opens it again.

        A store that was passed to the constructor as an object stays open.
        """
        shared, opened, self._opened, self._closed = self._shared, self._opened, None, True
        if shared and opened:
            try:
                if shared.value is opened[0]:
                    usage.flush(opened[1])
            finally:
                shared.release(self)

    def __enter__(self) -> Self:
        self._context()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    # --- writing ---

    @overload
    def add(
        self, content: str | Message, metadata: Metadata | None = None, *, key: str | None = None,
        deduplicate: bool | None = None, idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> MemoryRecord: ...  # fmt: skip
    @overload
    def add(
        self, content: Sequence[Message], metadata: Metadata | None = None, *, deduplicate: bool | None = None,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> list[MemoryRecord]: ...  # fmt: skip
    def add(
        self, content: Item, metadata: Metadata | None = None, *, key: str | None = None, deduplicate: bool | None = None,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> MemoryRecord | list[MemoryRecord]:  # fmt: skip
        """Store a text, a chat message or a list of messages, and return its memory, or the list of new memories.

        They are durable when the call returns. If the same text is stored in the same scope already, that memory is counted as
        observed again and returned; with `deduplicate=False` it is stored again. `key` is a key of your own: what is stored under
        it in this scope is replaced by a new revision of the same memory. A call repeated with the same `idempotency_key` stores
        nothing and returns the same.

        A message has `role` and `content`, and may have `name`, `timestamp` and `metadata`. It becomes the next turn of its
        session, which `metadata` or the mesh names. Of a list, only what follows the stored turns is added, so an agent may send
        its whole history again. System messages and messages without text are left out.

        Raises `InvalidInput` for invalid content or metadata, and `KeyReused` if the idempotency key was used for another
        request.
        """
        records = self._add(read_texts(content, metadata, key), deduplicate, idempotency_key, progress)
        return records if is_list(content) else records[-1]

    ingest = add  # the name that RFC-0011 uses

    def add_many(
        self, items: Iterable[Item], metadata: Metadata | None = None, *, deduplicate: bool | None = None,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        """Store many items, all or none, and return their memories in the same order.

        An item is anything that `add` takes: a text, a pair of text and metadata, a mapping with `content`, `metadata` and `key`,
        a message or a list of messages. `metadata` is added to all of them. Of messages, only the new ones are stored and
        returned.

        Raises what `add` raises; the message names the position of the invalid item, from 0.
        """
        return self._add(read_items(items, metadata), deduplicate, idempotency_key, progress)

    def _add(
        self, texts: Sequence[NewText], deduplicate: object, idempotency_key: str | None, progress: Progress | None
    ) -> list[MemoryRecord]:
        update = as_progress(progress)
        context = self._context()
        memories = write.add(context, texts, deduplicate=deduplicate, idempotency_key=idempotency_key, progress=update)
        return [memory.record() for memory in memories]

    def ingest_dir(
        self, path: str | PathLike[str], *, extension: str | Sequence[str] = ".md", type: str | None = None,
        recursive: bool = False, progress: Progress | None = None,
    ) -> Ingested:  # fmt: skip
        """Store each file of a folder as one memory, with its path in the folder as the metadata `source`.

        A second run adds new files, updates changed ones, skips the rest, and lists the memories of missing files in `gone`.
        Files that cannot be stored are listed in `failed`. Raises `InvalidInput` if the folder cannot be read.
        """
        selection = Selection.of(extension, recursive=recursive)
        return folders.ingest(self._context(), checks.path("path", path), selection, type_=type, progress=as_progress(progress))

    def extract(
        self, text: str, *, min_importance: float = MIN_IMPORTANCE, metadata: Metadata | None = None,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> Extraction:  # fmt: skip
        """Extract memories from a text with the language model, and store them with the given metadata.

        Memories below `min_importance` are dropped. If there is no model, or if it fails, the text is stored unchanged and
        `stored_whole` of the result says why. Raises what `add` raises.
        """
        from memory_mesh.flows.extract import extract  # loads prompts and injection patterns

        update = as_progress(progress)
        return extract(
            self._context(), text, min_importance=min_importance, metadata=metadata, key=idempotency_key, progress=update
        )

    def update(
        self, id: str, *, content: str | None = None, metadata: Metadata | None = None, why: str | None = None,
        idempotency_key: str | None = None,
    ) -> MemoryRecord:  # fmt: skip
        """Change the content or the metadata of a memory, and return the new revision.

        Metadata keys that are given are set, keys with the value None are removed, and other keys are kept. `why` is stored in
        the history. Raises `NotFound` if the memory is not visible, and what `add` raises.
        """
        return write.update(self._context(), id, content=content, metadata=metadata, why=why, key=idempotency_key).record()

    def pin(self, id: str, *, pinned: bool = True) -> MemoryRecord:
        """Pin a memory, so that it never decays, or unpin it. Raises `NotFound` if it is not visible."""
        return write.set_columns(self._context(), id, action="pin" if pinned else "unpin", pinned=pinned).record()

    def delete(self, id: str | None = None, *, key: str | None = None) -> None:
        """Erase a memory for good, named by its id or by the key of your own. Does nothing if there is none.

        No call finds it any more. Its bytes are freed later, together with those of other deletions: when the store is closed
        or opened, and by `compact`, `erase` and the heartbeat.
        """
        context = self._context()
        named = search.named(context, id, key)
        if named is not None:
            erase.delete(context, [named])

    def erase(self, id: str | None = None, *, key: str | None = None) -> Erasure:
        """Erase a memory for good, free its bytes, and return what was erased and the audit blocks that record it."""
        context = self._context()
        named = search.named(context, id, key)
        return erase.erase(context, [] if named is None else [named])

    def delete_all(
        self, *, user_id: str | None = None, agent_id: str | None = None, session_id: str | None = None,
        project: str | None = None, memory_type: str | None = None,
    ) -> Erasure:  # fmt: skip
        """Erase all memories of a scope, whichever agent of this user wrote them.

        A memory whose text an agent or session outside the scope stored too is kept for that one, and listed in `kept`.
        Raises `InvalidInput` if no scope is given, or if `user_id` is not the user of this mesh.
        """
        scope = {"user_id": user_id, "agent_id": agent_id, "session_id": session_id, "project": project}
        return erase.erase_all(self._context(), {**scope, "memory_type": memory_type})

    def forget(self, *, user_id: str, verify: bool = False) -> Forgotten:
        """Erase everything of a user for good: memories of every agent, session and status, searches and idempotency keys.

        With `verify`, look afterwards for a part of each erased text in the files of the store; `check` of the result says
        what was found. Raises `InvalidInput` on the mesh of another user.
        """
        from memory_mesh.flows.forget import forget

        return forget(self._flushed(), user_id, verify=verify)

    # --- reading ---

    def get(self, id: str | None = None, *, key: str | None = None, session_id: str | None = None) -> MemoryRecord | None:
        """Return a memory of any status by its id, or the current one with a key of your own; None if it is not visible."""
        context = self._in_session(session_id)
        named = search.named(context, id, key)
        memory = None if named is None else search.get(context, named)
        return memory.record() if memory else None

    def get_all(
        self, limit: int | None = None, *, filter: Filter | None = None, status: Sequence[str] = (Status.ACTIVE,),
        after: str | None = None, session_id: str | None = None,
    ) -> list[MemoryRecord]:  # fmt: skip
        """Return the visible memories with one of these statuses, newest first.

        `after` is the id of the last memory of a page: the next page begins behind it, whatever was stored or erased since.
        `filter` is an SQL condition such as `importance > 0.5 AND tags = 'ops'`, or a mapping of columns and metadata keys to the
        value, or a list of values, that they must have. Raises `InvalidFilter` if it is not valid.
        """
        where, context = filters.where_of(filter), self._in_session(session_id)
        memories = search.get_all(context, limit=limit, where=where, statuses=status, after=after)
        return [memory.record() for memory in memories]

    def history(self, id: str, *, session_id: str | None = None) -> list[Change]:
        """Return the changes of a memory, oldest first. Raises `NotFound` if it is not visible."""
        return search.history(self._in_session(session_id), id)

    def sightings(self, id: str, *, session_id: str | None = None) -> list[Sighting]:
        """Return the agents and sessions that stored the text of a memory, oldest first.

        Raises `NotFound` if the memory is not visible.
        """
        return sightings.sightings(self._in_session(session_id), id)

    def search(
        self, query: str, limit: int = 10, filter: Filter | None = None, *, use_cache: bool = True,
        mode: str | None = None, min_score: float | None = None, status: Sequence[str] = (Status.ACTIVE,),
        session_id: str | None = None, ranker: str | None = None, max_chars: int | None = None,
    ) -> list[SearchResult]:  # fmt: skip
        """Return the memories that are most relevant to a query, highest score first, or an empty list.

        `mode` says what is left out: "recall" very little, for programs that rank the results themselves; "precise" what is
        probably irrelevant, for prompts. The default is the option `search_mode`, "recall". `min_score`, if given, replaces the
        minimum score of the mode. A long memory has a `passage`, the piece of its content that fits the query best. With
        `max_chars`, results are returned while their texts (the passage, or the content of a short memory) have at most so many
        characters together; a first one that is longer is shortened. Raises `InvalidInput` for a blank query, and
        `InvalidFilter` for an invalid filter.
        """
        request = Request(
            query=query, limit=limit, statuses=status, mode=mode, min_score=min_score, ranker=ranker, max_chars=max_chars
        ).with_filter(filter)
        return search.search(self._in_session(session_id), request, use_cache=use_cache)

    def explain(
        self, query: str, limit: int = 10, filter: Filter | None = None, *, mode: str | None = None,
        min_score: float | None = None, status: Sequence[str] = (Status.ACTIVE,), session_id: str | None = None,
        ranker: str | None = None,
    ) -> Explanation:  # fmt: skip
        """Search, and return for each result its rank in every channel and its features, and how many were left out and why."""
        request = Request(query=query, limit=limit, statuses=status, mode=mode, min_score=min_score, ranker=ranker).with_filter(
            filter
        )
        return search.explain(self._in_session(session_id), request)

    def reembed(self, *, progress: Progress | None = None) -> Reembedded:
        """Give every memory of the store a vector of the current embedder's model.

        Embeds memories that are pending or have a vector of another model. A run that was stopped continues where it was;
        searches switch to the new model at once. Raises `SettingsError` without an embedder, `EmbeddingError` if it fails.
        """
        return embed.reembed(self._context(), as_progress(progress))

    # --- lessons and scheduled jobs ---

    def distill_lesson(self, context: LessonContext | Metadata, *, idempotency_key: str | None = None) -> LessonBlock:
        """Store the lesson of a failure and return it.

        A known lesson of the same pattern with at least the same confidence is returned instead; one with less confidence is
        superseded. Raises `InvalidInput` for an incomplete context.
        """
        return lessons.distill_lesson(self._context(), context, key=idempotency_key)

    def query_lessons(
        self, query: str = "", *, limit: int = 10, order_by: str | None = None, mode: str = "precise",
        session_id: str | None = None,
    ) -> list[LessonBlock]:  # fmt: skip
        """Return the lessons relevant to a query with their scores, or all of them for an empty query, most severe first.

        `order_by` is "relevance" or "severity DESC". With a query, `mode` says what is left out, as in `search`. Lessons below
        the option `lesson_min_confidence` are always left out.
        """
        return lessons.query(self._in_session(session_id), query, limit=limit, order_by=order_by, mode=mode)

    def get_memories_by_pattern(self, pattern_id: str) -> list[MemoryRecord]:
        """Return the lessons of a pattern as memories, highest confidence first."""
        return [memory.record() for memory in lessons.by_pattern(self._reading(), pattern_id)]

    def heartbeat(self, *, jobs: Sequence[str] | None = None, force: bool = False) -> Heartbeat:
        """Run the scheduled jobs that are due, and return their results.

        `jobs` names the only ones to run; `force` runs them even if they are not due. The guard runs first: if it finds damage,
        no other job runs. Each job is run by one process at a time.
        """
        from memory_mesh.flows.heartbeat import beat  # loads all jobs

        return beat(self._context(), jobs=jobs, force=force)

    def heartbeat_log(self, *, limit: int = 20) -> list[JobRun]:
        """Return the latest runs of the scheduled jobs, newest first."""
        from memory_mesh.flows.heartbeat import log

        return log(self._reading(), limit=limit)

    def distill(self) -> Distilled:
        """Distill lessons from the failures of the last day now, and return what was distilled and skipped."""
        return lessons.run_distillation(self._context())

    # --- diagnostics ---

    def stats(self) -> MemoryStats:
        """Return how many memories are visible by status, where they are stored, and what paid models cost."""
        context = self._reading()
        counts = search.count_by_status(context)
        today, in_all = models.spending(context.state.ledger, context.clock())
        return MemoryStats(
            total_memories=sum(counts.values()),
            total_skills=0,
            db_path=shown_url(context.store.url),
            connected=context.options.enable_memory,
            by_status=counts,
            spent_today=today,
            spent_in_all=in_all,
        )

    def check_models(self) -> tuple[Checked, ...]:
        """Send one short request to the language model and one to the embedder, and return the results."""
        return models.check_models(self._context())

    def clear_cache(self) -> None:
        """Remove all results from the search cache."""
        self._context().state.cache.clear()

    def get_cache_stats(self) -> CacheStats:
        """Return the size, hits and misses of the search cache. It keeps up to 500 results for five minutes each."""
        return self._context().state.cache.stats()

    def compact(self) -> bool:
        """Free the bytes of deleted and replaced memories now, and return whether they are freed.

        Closing a store does it too, unless its file is larger than 512 MiB.
        """
        return self._context().store.compact()

    # --- moving ---

    def export(self, *, progress: Progress | None = None) -> Iterator[str]:
        """Yield the memories that this agent and session can see, of every status, as lines of JSON, oldest first.

        The first line names the format; docs/transfer.md describes it. Vectors are not exported.
        """
        from memory_mesh.flows import transfer

        return transfer.export(self._flushed(), as_progress(progress))

    def import_memories(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Store the memories of an export with their ids, times and scope, and return what was stored, skipped and failed.

        A memory that is stored already is skipped; if it differs, its line fails and nothing is changed. So does a
        line of another user. Each batch of 500 lines is written at once. Raises `InvalidInput` if the first line is not that of
        an export.
        """
        from memory_mesh.flows import transfer

        return transfer.import_memories(self._context(), lines, as_progress(progress))

    def backup(self, file: str | PathLike[str], *, progress: Progress | None = None) -> BackedUp:
        """Copy the file of the store to a new file, as it is at one moment, while others read and write.

        Raises `InvalidInput` if the file exists or cannot be written, and for a store without a file.
        """
        from memory_mesh.flows import transfer

        return transfer.backup(self._flushed(), checks.path("file", file), as_progress(progress))

    # --- audit ---

    def verify(
        self, *, agent_id: str | None = None, recalls: bool | None = None, head: tuple[int, str] | None = None,
        anchor: str | PathLike[str] | None = None, progress: Progress | None = None,
    ) -> list[Verdict]:  # fmt: skip
        """Verify the audit chains of this user, and return `Sound` or `Broken` for each.

        A `Broken` names the first block that was changed. `agent_id` selects the chains of one agent; `recalls` selects only
        the chains of searches (True) or only the others (False). `head` is the number and the seal (or hash) of an earlier head,
        and `anchor` a file of `audit_anchor`, whose heads are all compared. `Sound.signature` says whether the signature of the
        chain was checked, and why not.
        """
        from memory_mesh.flows.anchor import verify
        from memory_mesh.flows.audit import ChainSelection

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        file = None if anchor is None else checks.path("anchor", anchor)
        return verify(self._reading(), selection, noted=head, file=file, progress=as_progress(progress))

    def audit_heads(self, *, agent_id: str | None = None, recalls: bool | None = None) -> list[Head]:
        """Return the last block of each audit chain of this user.

        Store it elsewhere: `verify(head=…)` then detects if the end of the chain was removed.
        """
        from memory_mesh.flows.audit import ChainSelection, heads

        return heads(self._flushed(), ChainSelection(agent_id=agent_id, recalls=recalls))

    def audit_anchor(self, to: str | PathLike[str] | None = None) -> Anchored:
        """Append the heads of this user's chains to a file, or send them to a URL. The default is the option `audit_anchor`.

        `verify(anchor=…)` compares them later, and finds an older copy of the store. Raises `InvalidInput` for a file that cannot
        be used, and `CallError` if the URL cannot be called.
        """
        from memory_mesh.flows.anchor import anchor

        return anchor(self._flushed(), None if to is None else checks.path("to", to))

    def audit_rekey(self) -> Rekeyed:
        """Make a new key for the signatures of the audit chains, and move every chain of this user to it.

        The old key stays in the key file. Raises `SettingsError` if a chain is signed with a key that is not in the file.
        """
        from memory_mesh.flows.rekey import rekey

        return rekey(self._flushed())

    def audit_log(
        self, limit: int = 20, *, operation: str | None = None, agent_id: str | None = None, recalls: bool | None = None,
        auditor: str | None = None,
    ) -> list[Block]:  # fmt: skip
        """Return the latest audit blocks of this user, newest first.

        Texts of memories and queries that this agent and session may not see are `withheld`. `auditor`, the name of a person,
        shows all of them; an audit block records that first.
        """
        from memory_mesh.flows.audit import ChainSelection, log

        selection = ChainSelection(agent_id=agent_id, recalls=recalls)
        return log(self._flushed(), selection=selection, operation=operation, limit=limit, auditor=auditor)

    def audit_export(
        self, *, as_json: bool = True, agent_id: str | None = None, recalls: bool | None = None, auditor: str | None = None,
        progress: Progress | None = None,
    ) -> Iterator[str]:  # fmt: skip
        """Yield the audit chains of this user as lines of JSON, which can be verified without the store, or in wire format.

        Texts are withheld as in `audit_log`; the wire format leaves out such blocks. `auditor` shows all of them.
        """
        from memory_mesh.flows.audit import ChainSelection, export

        selection, update = ChainSelection(agent_id=agent_id, recalls=recalls), as_progress(progress)
        return export(self._flushed(), selection=selection, as_json=as_json, auditor=auditor, progress=update)

    # --- formatting ---

    def format_results(self, results: Sequence[SearchResult], *, max_chars: int | None = None) -> str:
        """Return search results as the text block that RFC-0011 defines for prompts, with the whole contents.

        With `max_chars` the texts are limited as by `search`, and a long memory is shown by its passage.
        """
        from memory_mesh.core.safety.fence import format_block  # loads many patterns

        results = _checked_results(results)
        if max_chars is None:
            return format_block((result, result.content) for result in results)
        kept = fitting(results, whole_number("max_chars", max_chars)) or results[:1]
        return format_block((result, shortened(result.excerpt, max_chars)) for result in kept)

    def format_for_model(self, results: Sequence[SearchResult], *, max_tokens: int | None = None) -> str:
        """Return search results as data for a language model; of a long memory, the passage that fits the query.

        They stand between random tags that no memory can close, with a notice that they contain no instructions. Memories that
        look like prompt injection are marked. With `max_tokens`, the whole text has at most so many tokens, as the embedder
        counts them, or else of four characters each. The best results are kept, and the text says how many were left out; if
        not even the first one fits, it is cut.
        """
        from memory_mesh.core.safety.fence import fence_memories  # loads many patterns

        context, budget = self._context(), None if max_tokens is None else whole_number("max_tokens", max_tokens)
        return fence_memories(
            _checked_results(results),
            context.ids.salt(),
            max_tokens=budget,
            count=embed.token_counter(context),
        )

    # --- internals ---

    if not TYPE_CHECKING:  # otherwise type checkers would accept every misspelt method

        def __getattr__(self, name: str) -> Never:
            if name in NOT_YET:
                raise not_yet(name)
            hint = f"; use {_ELSEWHERE[name]}" if name in _ELSEWHERE else ""
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}{hint}")

    def _context(self) -> Context:
        """Return the context; open it first if needed."""
        shared, opened = self._shared, self._opened
        if shared is None or opened is None or shared.value is not opened[0]:  # not open, or not since a fork
            reader, root = Reader(**self._scope), self._root()
            if root is not None and root is not self and not root._closed:
                root._context()  # so that closing this handle leaves the store open for the next one
            self._shared = shared = self._source.find()
            context = shared.use(self)
            self._opened, self._closed = (context, replace(context, reader=reader)), False
            return self._opened[1]
        return opened[1]

    def _reading(self) -> Context:
        """Return the context, or raise `StoreMissing` if the file of a store that was named does not exist."""
        context = self._context()
        context.file.require_file()
        return context

    def _flushed(self) -> Context:
        """Return the context after all audit blocks of earlier searches are written."""
        context = self._reading()
        if self._shared:
            self._shared.flush()
        return context

    def _in_session(self, session_id: str | None) -> Context:
        context = self._reading()
        return context if session_id is None else replace(context, reader=replace(context.reader, session_id=session_id))


def _checked_results(given: object) -> list[SearchResult]:
    expected = "the results of search"
    results = checks.listed("results", given, expected=expected)
    for result in results:
        if not isinstance(result, SearchResult):
            raise InvalidInput(f"a result is {type(result).__name__}", expected=expected)
    return results
