"""The methods of `MemoryGraph`: memories of named agents, with claims, trust, conflicts and links.

The docstrings are the reference of the public API.
"""

from collections.abc import Iterable, Mapping, Sequence

from memory_mesh.api.handle import Handle
from memory_mesh.core.claims.rules import MemoryExplanation, Reviewed, Supersession
from memory_mesh.core.errors import iterable
from memory_mesh.core.graph import (
    GAP_SECONDS,
    Episode,
    GraphContext,
    GraphResults,
    MemoryLink,
    Reached,
)
from memory_mesh.core.intake import DEFAULT_CATEGORY, Metadata
from memory_mesh.core.learning import ReflectionResult
from memory_mesh.core.model import (
    MIN_IMPORTANCE,
    ClaimConflict,
    Extraction,
    GivenTime,
    Link,
    MemoryRecord,
    Status,
)
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.core.upkeep import Compressed, Consolidated, Decayed
from memory_mesh.flows.claims import review
from memory_mesh.flows.graph import links as linking
from memory_mesh.flows.graph import store as storing
from memory_mesh.flows.graph.store import BATCH_SIZE, IMPORTANCE, NewMemory, Stored, acting_as
from memory_mesh.flows.search import readable


class MemoryGraph(Handle):
    """The memories of a mesh as a graph: claims that do not contradict each other, how far each is
    trusted, and links.

    Every method that stores or searches names the agent whose memories these are. Methods that take
    the id of a memory act for the agent that it belongs to. All agents are those of the user of the
    mesh.
    """

    # --- searching ---

    def search(
        self, agent: str, query: str, *, limit: int = 10, min_similarity: float = 0.0,
        before: GivenTime | None = None, after: GivenTime | None = None,
        rerank: bool | Mapping[str, float] = True, include_all: bool = False,
        status_filter: Sequence[str] = (Status.ACTIVE,), include_superseded: bool = False,
        include_disputed: bool = False, include_quarantined: bool = False,
        session_id: str | None = None, explain: bool = False, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None,
    ) -> GraphResults:  # fmt: skip
        """Return the memories of an agent, and global ones, that are relevant to a query, highest
        score first.

        The score is 0.40 · relevance + 0.25 · confidence + 0.20 · recency + 0.15 · importance: the
        cosine of the embedding, the trust, exp(−0.01 · days since the last update), and the stored
        importance. `rerank` replaces single weights, and `rerank=False` orders by relevance.
        Memories below `min_similarity` are left out. `before` and `after` bound the time of the
        event, or else of creation, ends included.

        Each `include_…` adds a status to `status_filter`; `include_all` adds all but archived.
        Claims of a session are returned in it only, where they replace the others about the same.
        `as_of` returns what was valid at a time, as is known now; `known_at` what was stored and
        believed at a time. With `explain`, each result has `retrieved` and `rerank`; `meta` of the
        results has the counts. Raises `InvalidInput` for a blank query and for an invalid option.
        """
        from memory_mesh.flows.graph import search as searching

        request = searching.Request(
            limit=limit, min_similarity=min_similarity, before=before, after=after, rerank=rerank,
            include_all=include_all, status_filter=status_filter,
            include_superseded=include_superseded, include_disputed=include_disputed,
            include_quarantined=include_quarantined, explain=explain, as_of=as_of,
            known_at=known_at,
        )  # fmt: skip
        return searching.search_one(acting_as(self._reading(), agent, session_id), query, request)

    def search_many(
        self, agent: str, queries: Iterable[str], *, limit: int = 10, min_similarity: float = 0.0,
        before: GivenTime | None = None, after: GivenTime | None = None,
        rerank: bool | Mapping[str, float] = True, include_all: bool = False,
        status_filter: Sequence[str] = (Status.ACTIVE,), include_superseded: bool = False,
        include_disputed: bool = False, include_quarantined: bool = False,
        session_id: str | None = None, explain: bool = False, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None,
    ) -> list[GraphResults]:  # fmt: skip
        """Return what `search` returns for each query, in the order of the queries. All queries
        are embedded in one batch."""
        from memory_mesh.flows.graph import search as searching

        request = searching.Request(
            limit=limit, min_similarity=min_similarity, before=before, after=after, rerank=rerank,
            include_all=include_all, status_filter=status_filter,
            include_superseded=include_superseded, include_disputed=include_disputed,
            include_quarantined=include_quarantined, explain=explain, as_of=as_of,
            known_at=known_at,
        )  # fmt: skip
        return searching.search_many(
            acting_as(self._reading(), agent, session_id), queries, request
        )

    def context(
        self, agent: str, query: str, *, max_memories: int | None = None,
        before: GivenTime | None = None, after: GivenTime | None = None,
        max_tokens: int | None = None, explain: bool = False, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None, session_id: str | None = None,
        packing: str = "relevance", rerank: bool | Mapping[str, float] = True,
        min_score: float | None = None,
    ) -> GraphContext:  # fmt: skip
        """Return one text for the prompt of a language model: the memories of an agent that are
        relevant to a query.

        Memories one link away from those that the search finds are candidates too. All are ranked
        by the chance that they are relevant, times the composite that `search` would give a fully
        relevant memory, and packed by this value ÷ tokens; what does not fit is passed over. The
        text, headings included, has at most `max_tokens`, as the embedder counts them. Without
        `max_tokens` it has up to 15 memories that a precise search returns. It is empty if no
        memory is likely to answer the query; `min_score` sets the lowest chance instead.
        `packing="composite"` is the document's formula: the score of `search` ÷ tokens.

        The result is a `str` with `memories`, `left_out` (how many candidates by reason), `tokens`,
        and `note` if nothing fits. With `explain`, `decisions` has each candidate with its value
        and why it was left out. The other options are those of `search`. Raises `InvalidInput` for
        a blank query and for an invalid option.
        """
        from memory_mesh.flows.graph import context as contexts
        from memory_mesh.flows.graph import search as searching

        options = searching.Request(
            before=before, after=after, rerank=rerank, as_of=as_of, known_at=known_at
        )
        request = contexts.ContextRequest(
            max_memories=max_memories, max_tokens=max_tokens, min_score=min_score, packing=packing,
            search=options, explain=explain,
        )  # fmt: skip
        return contexts.build(acting_as(self._reading(), agent, session_id), query, request)

    # --- storing ---

    def store(
        self, agent: str, text: str, *, category: str = DEFAULT_CATEGORY,
        importance: float | str = IMPORTANCE, tags: Sequence[str] = (),
        event_time: GivenTime | None = None, claim: Mapping[str, object] | None = None,
        claims: str | None = None, provenance: Mapping[str, object] | None = None,
        quarantine: bool = False, on_conflict: str = "quarantine", metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Stored:  # fmt: skip
        """Store a memory of an agent, and link it to similar ones.

        `claim` is what it states: `subject`, `predicate` and `value`, and optionally `exclusive`
        (True), `scope` ("global", or "session" with `session_id`), `valid_from` and `valid_until`.
        With `claims="auto"` the claim is found in a plain text. A claim with the value of a stored
        one corroborates that memory instead. One that excludes a stored one supersedes it if its
        source is trusted as much, and otherwise waits in quarantine for a review;
        `predicate_schemas` may say otherwise. `provenance` names the `source`: user_explicit,
        system, tool_output, user_implicit, document or inference, the default.

        `quarantine` stores it quarantined in any case. With `on_conflict="keep_active"` it stays
        active although it is in conflict. Raises `InvalidInput` for an invalid text, claim or
        option; then nothing is changed.
        """
        new = NewMemory(
            text=text, category=category, importance=importance, tags=tags, event_time=event_time,
            claim=claim, claims=claims, provenance=provenance, quarantine=quarantine,
            on_conflict=on_conflict, metadata=metadata,
        )  # fmt: skip
        return storing.store(
            acting_as(self._context(), agent), [new.checked()], key=idempotency_key
        )[0]

    def store_many(
        self, agent: str, items: Iterable[str | Mapping[str, object]], *,
        embedding_batch_size: int = BATCH_SIZE, idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> list[Stored]:  # fmt: skip
        """Store many memories of an agent, all or none, each as by `store`, and return the results
        in the same order.

        An item is a text, or a mapping with `text` and the options of `store`. Texts are embedded
        in batches.
        """
        given = iterable("items", items, expected="a list of texts, or of mappings with text")
        texts = [NewMemory.of(item, at).checked(item=at) for at, item in enumerate(given)]
        context, update = acting_as(self._context(), agent), as_progress(progress)
        return storing.store(
            context, texts, key=idempotency_key, batch_size=embedding_batch_size, progress=update
        )

    def evolve(
        self, agent: str, text: str, *, category: str = DEFAULT_CATEGORY,
        importance: float | str = IMPORTANCE, tags: Sequence[str] = (),
        provenance: Mapping[str, object] | None = None, idempotency_key: str | None = None,
    ) -> Stored:  # fmt: skip
        """Store the next version of a memory: it supersedes the most similar one of the agent,
        unless that is trusted more.

        Then it is quarantined, and the conflict waits for a review. Without a similar memory it is
        stored as a new one.
        """
        new = NewMemory(
            text=text, category=category, importance=importance, tags=tags, provenance=provenance
        )
        return storing.store(
            acting_as(self._context(), agent), [new.checked(evolves=True)], key=idempotency_key
        )[0]

    def extract(
        self, agent: str, text: str, *, min_importance: float = MIN_IMPORTANCE,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> Extraction:  # fmt: skip
        """Extract memories from a text with the language model, and store each for the agent as by
        `store`.

        Memories below `min_importance` are dropped. If there is no model, or if it fails, the text
        is stored unchanged.
        """
        context, update = acting_as(self._context(), agent), as_progress(progress)
        return storing.extract(
            context, text, min_importance=min_importance, key=idempotency_key, progress=update
        )

    ingest = extract  # the name that neolata uses

    # --- links ---
    # A memory that the agent of the mesh cannot see is read for its owner, an agent of the same
    # user.

    def links(self, memory_id: str) -> list[MemoryLink]:
        """Return the links from and to a memory, most similar first, each with the memory at its
        other end.

        Links to memories that are not active, or that the reader cannot see, are left out. Raises
        `NotFound` for a memory of another user.
        """
        return linking.links(self._reading(), memory_id)

    def traverse(
        self, start_id: str, max_hops: int = 2, *, types: Sequence[str] | None = None
    ) -> list[Reached]:
        """Return the active memories within so many links of a memory, nearest first, each once
        with its distance.

        Links are followed in both directions, with `types` only those of these types. A memory that
        is not active, or that the reader cannot see, is not returned and leads nowhere. Raises
        `InvalidInput` for an unknown type and for more than 20 hops, and `NotFound` for a memory of
        another user.
        """
        return linking.traverse(self._reading(), start_id, max_hops, types)

    def clusters(self, min_size: int = 2, *, agent: str | None = None) -> list[list[MemoryRecord]]:
        """Return the groups of linked active memories that an agent can see, by default that of the
        mesh, largest first.

        In each group the memory with the most links comes first.
        """
        context = self._reading() if agent is None else acting_as(self._reading(), agent)
        groups = linking.clusters(context, min_size)
        known = {
            one.id: one
            for one in readable.records(context, [memory for group in groups for memory in group])
        }
        return [[known[memory.id] for memory in group] for group in groups]

    def link(self, source_id: str, target_id: str, type: str) -> Link:
        """Link two memories, and return the link; one that exists already is returned.

        The type is `related`, `cause` or another name. `similar`, `supersedes` and `digest_of` are
        refused: the methods that store memories make them. So are `updates`, `ends` and
        `both_hold`, which `confirm_change` and `undo_change` make. Raises `NotFound` if the reader
        of the source cannot see the target.
        """
        return linking.add_link(self._context(), source_id, target_id, type)

    def unlink(self, source_id: str, target_id: str, type: str) -> bool:
        """Remove a link that `link` added, and return whether there was one."""
        return linking.remove_link(self._context(), source_id, target_id, type)

    # --- episodes ---

    def episodes(
        self, agent: str, *, gap: float = GAP_SECONDS, since: GivenTime | None = None,
        until: GivenTime | None = None, session_id: str | None = None, limit: int = 20,
        min_similarity: float | None = None,
    ) -> list[Episode]:  # fmt: skip
        """Return the episodes of the memories that an agent can see, newest first.

        An episode is a part of one session in which no two memories are more than `gap` seconds
        apart; memories without a session are one sequence of their own. With `min_similarity` it
        also ends where the topic changes: where the cosine of the vectors of the three memories
        before and the three after is lowest, and below that. The time of a memory is that of the
        event, or else of creation. Only active memories count, no lessons and no reflections.

        `since` and `until` select the episodes that overlap this time, and `session_id` those of a
        session. Nothing is stored: the same memories give the same episodes. Raises `InvalidInput`
        for an invalid option.
        """
        from memory_mesh.flows.graph import episodes as finding

        context = acting_as(self._reading(), agent, session_id)
        boundaries = finding.Boundaries(gap=gap, min_similarity=min_similarity)
        return finding.episodes(
            context, boundaries, since=since, until=until, session_id=session_id, limit=limit
        )

    def summarize_episode(
        self, agent: str, episode: Episode | str, *, store: bool = False, gap: float = GAP_SECONDS,
        min_similarity: float | None = None, session_id: str | None = None,
    ) -> ReflectionResult:  # fmt: skip
        """Return what an episode says in a few statements, each with the memories that it is drawn
        from.

        They are quoted in the order of time, or those of the language model if there is one. With
        `store` they are kept as a memory of category `digest`, which replaces an earlier one of the
        same episode and loses the words of a source that is erased. `episode` is one that
        `episodes` returned, or its id; for an id the options are those of that call. Raises
        `NotFound` if the agent cannot see such an episode.
        """
        from memory_mesh.flows.graph import episodes as finding

        known = (
            episode.session_id
            if isinstance(episode, Episode) and session_id is None
            else session_id
        )
        context = acting_as(self._context() if store else self._reading(), agent, known)
        boundaries = finding.Boundaries(gap=gap, min_similarity=min_similarity)
        return finding.summarize(context, episode, boundaries, store=store)

    # The methods below that take an id act for the owner of the memory: any agent of the same user
    # may call them, and a memory of another user is not found. The history and the audit chain name
    # the agent that called.

    # --- feedback ---

    def reinforce(self, memory_id: str, boost: float = 0.1) -> MemoryRecord:
        """Count that a memory of this user was confirmed, and return it. Any agent of the user may
        call this.

        The boost raises its importance, up to 1. A disputed memory is active again when
        reinforcements and disputes are even, unless an active claim excludes it: then it stays
        disputed, and its history says why. Raises `NotFound` for a memory of another user.
        """
        return readable.record(
            context := self._context(), review.reinforce(context, memory_id, boost)
        )

    def dispute(self, memory_id: str, *, reason: str | None = None) -> MemoryRecord:
        """Count that a memory of this user was disputed, and return it. Any agent of the user may
        call this.

        With more disputes than reinforcements its status is `disputed`; with three more, or with a
        trust below 0.3, it is `quarantined` and waits for a review. Both are hidden from searches.
        The reason is kept in the history. Raises `NotFound` for a memory of another user.
        """
        return readable.record(
            context := self._context(), review.dispute(context, memory_id, reason)
        )

    # --- review ---

    def list_quarantined(self, *, agent: str | None = None, limit: int = 50) -> list[MemoryRecord]:
        """Return the quarantined memories of this user, of one agent where given, newest first."""
        return readable.records(
            context := self._reading(), review.list_quarantined(context, agent, limit)
        )

    def review_quarantine(
        self, memory_id: str, *, action: str, reason: str | None = None
    ) -> Reviewed:
        """Decide about a quarantined memory of this user. Any agent of the user may call this.

        `activate` makes it active, resolves its conflicts in its favour and supersedes the claims
        that exclude it, unless the policy of the predicate is `keep_both`. `reject` archives it and
        resolves its conflicts against it. `keep_both` makes it active beside the claims that
        exclude it. All of it is one change, which `undo_review` takes back. Raises `InvalidInput`
        for another action and for a memory that is not quarantined, and `NotFound` for one of
        another user.
        """
        return review.review_quarantine(self._context(), memory_id, action, reason)

    def conflicts(self, status: str = "pending") -> list[ClaimConflict]:
        """Return the conflicts between claims of this user, `pending` or `resolved`, newest
        first."""
        return review.conflicts(self._reading(), status)

    def resolve_conflict(
        self, conflict_id: str, *, keep: str, reason: str | None = None
    ) -> Reviewed:
        """Resolve a pending conflict: keep the `new` memory, the `existing` one or `both`.

        `new` activates the new memory and `existing` rejects it, as `review_quarantine` does, with
        all its conflicts. `both` resolves this conflict only; while others are pending, the new
        memory stays quarantined, and `note` of the result says so. Raises `InvalidInput` for a
        conflict that is resolved already, and `NotFound` for one of another user.
        """
        return review.resolve_conflict(self._context(), conflict_id, keep, reason)

    def undo_review(self, memory_id: str) -> Reviewed:
        """Take back the last review decision about a memory: every memory and conflict that it
        changed is as before.

        This is a new change; the history keeps the decision too. Raises `InvalidInput` if no
        decision is left to undo, if what it changed was changed again since, or if a claim that
        came since excludes one that would be active again.
        """
        return review.undo_review(self._context(), memory_id)

    # --- explanations ---

    def explain_memory(
        self, memory_id: str, *, as_of: GivenTime | None = None, known_at: GivenTime | None = None
    ) -> MemoryExplanation:
        """Explain a memory of this user: its trust in parts, claim, status, links, conflicts,
        provenance and supersessions.

        Any agent of the user may call this. What the owner of the memory cannot see is left out.
        `valid` of the result says whether the memory was valid at the time `as_of`, or is now. With
        `known_at`, everything is as it was known at a time. Raises `NotFound` for a memory of
        another user, and for one that was stored later.
        """
        from memory_mesh.flows.claims import explain as explaining

        return explaining.explain_memory(self._reading(), memory_id, as_of=as_of, known_at=known_at)

    def explain_supersession(
        self, memory_id: str, *, known_at: GivenTime | None = None
    ) -> tuple[Supersession, ...]:
        """Return the chain of supersessions that a memory of this user is part of, oldest first.

        Each step has the time, the reason and the trust of both memories at that time. With
        `known_at`, the chain is as it was known at a time. Raises `NotFound` for a memory of
        another user, and for one that was stored later.
        """
        from memory_mesh.flows.claims import explain as explaining

        return explaining.explain_supersession(self._reading(), memory_id, known_at=known_at)

    # --- the life of memories ---

    def decay(
        self, *, dry_run: bool = False, delete: bool = False, progress: Progress | None = None
    ) -> Decayed:
        """Archive the memories of this user, of all agents, that have become weak, and remove links
        to memories that are gone.

        The strength of a memory is importance × max(0.1, 0.5^(age / 30 days)) × max(0.1, 0.5^(days
        since last use / 60)) × a factor of its category, and a bonus for links and uses. Below 0.15
        it is archived; `unarchive` brings it back. With `delete`, those below 0.05 are erased for
        good instead, also those that decay archived earlier. Pinned memories and lessons stay. With
        `dry_run` nothing is changed, and the result has the same counts.
        """
        from memory_mesh.flows.upkeep import decay as decaying

        return decaying.decay(
            self._context(), dry_run=dry_run, delete=delete, progress=as_progress(progress)
        )

    def archive(self, memory_id: str, reason: str | None = None) -> MemoryRecord:
        """Archive an active or disputed memory of this user, and return it.

        Searches no longer find it; `unarchive` brings it back. Raises `InvalidInput` for a memory
        of another status, and `NotFound` for a memory of another user.
        """
        from memory_mesh.flows.upkeep import decay as decaying

        return readable.record(
            context := self._context(), decaying.archive_one(context, memory_id, reason)
        )

    def unarchive(self, memory_id: str) -> MemoryRecord:
        """Make an archived memory of this user active again, and return it. For decay, its age
        begins anew.

        Raises `InvalidInput` if it is not archived, or if an active claim excludes it, and
        `NotFound` for a memory of another user.
        """
        from memory_mesh.flows.upkeep import decay as decaying

        return readable.record(context := self._context(), decaying.unarchive(context, memory_id))

    def auto_compress(
        self, *, max_digests: int = 5, min_cluster_size: int = 3, archive_originals: bool = False,
        agent: str | None = None, method: str = "extractive", progress: Progress | None = None,
    ) -> Compressed:  # fmt: skip
        """Store digests of the largest groups of linked memories of this user, of all agents or of
        one.

        A digest quotes the main sentences of its sources and adds nothing. It has the category
        `digest`, their highest importance, all their tags and links of the type `digest_of`, is
        seen by those who see them, and is trusted no more than the least trusted one. What has a
        digest is not digested again. The originals stay active; with `archive_originals`, those
        that have a digest are archived, except pinned ones. `extractive` is the only method.
        """
        from memory_mesh.flows.upkeep import consolidate as consolidating

        return consolidating.auto_compress(
            self._context(), max_digests=max_digests, min_cluster_size=min_cluster_size,
            archive_originals=archive_originals, agent=agent, method=method,
            progress=as_progress(progress),
        )  # fmt: skip

    def consolidate(
        self,
        *,
        dry_run: bool = False,
        max_digests: int = 5,
        min_cluster_size: int = 3,
        progress: Progress | None = None,
    ) -> Consolidated:
        """Tidy up the memories of this user, of all agents, in five phases, and return what each of
        them did.

        dedupe: of memories of one scope that say the same (a cosine of at least 0.95, and the same
        words but for articles, polite words and the like) the more trusted one stays, the earlier
        one at a tie, and supersedes the other. contradictions: active claims that exclude each
        other meet the rules and policies of `store`. corroboration: a memory that one from another
        source repeats (a cosine from 0.90 to 0.95) is corroborated. compress: groups wholly older
        than 30 days get a digest. prune: memories superseded over 90 days ago, and those that are
        too weak, are archived.

        With `dry_run` nothing is changed; each phase says what it would do if it came first. A
        second run changes nothing, and continues one that was interrupted.
        """
        from memory_mesh.flows.upkeep import consolidate as consolidating

        return consolidating.consolidate(
            self._context(), dry_run=dry_run, max_digests=max_digests,
            min_cluster_size=min_cluster_size, progress=as_progress(progress),
        )  # fmt: skip
