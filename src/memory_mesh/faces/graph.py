"""The methods of `MemoryGraph`: memories of named agents, with claims, trust, conflicts and links.

The docstrings are the reference of the public API; `tools/stubs.py` copies them to the asynchronous graph.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from memory_mesh.core.checks import iterable
from memory_mesh.core.graph import GraphContext, GraphResults
from memory_mesh.core.intake import DEFAULT_CATEGORY, Metadata
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.model import MIN_IMPORTANCE, Extraction, GivenTime, Status
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.faces.episodes import Episodic
from memory_mesh.faces.lifecycle import Lifecycle
from memory_mesh.faces.linking import Linking
from memory_mesh.faces.reviewing import Reviewing
from memory_mesh.flows import graph
from memory_mesh.flows.graph import BATCH_SIZE, IMPORTANCE, NewMemory, Stored, acting_as

if TYPE_CHECKING:
    from memory_mesh.flows import graph_context as contexts
    from memory_mesh.flows import graph_search as searching
else:
    contexts = LazyModule("memory_mesh.flows.graph_context")
    searching = LazyModule("memory_mesh.flows.graph_search")


class MemoryGraph(Linking, Episodic, Reviewing, Lifecycle):
    """The memories of a mesh as a graph: claims that do not contradict each other, how far each is trusted, and links.

    Every method that stores or searches names the agent whose memories these are. Methods that take the id of a memory act for
    the agent that it belongs to. All agents are those of the user of the mesh.
    """

    # --- searching ---

    def search(
        self, agent: str, query: str, *, limit: int = 10, min_similarity: float = 0.0, before: GivenTime | None = None,
        after: GivenTime | None = None, rerank: bool | Mapping[str, float] = True, include_all: bool = False,
        status_filter: Sequence[str] = (Status.ACTIVE,), include_superseded: bool = False, include_disputed: bool = False,
        include_quarantined: bool = False, session_id: str | None = None, explain: bool = False,
        as_of: GivenTime | None = None, known_at: GivenTime | None = None,
    ) -> GraphResults:  # fmt: skip
        """Return the memories of an agent, and global ones, that are relevant to a query, highest score first.

        The score is 0.40 · relevance + 0.25 · confidence + 0.20 · recency + 0.15 · importance: the cosine of the embedding, the
        trust, exp(−0.01 · days since the last update), and the stored importance. `rerank` replaces single weights, and
        `rerank=False` orders by relevance. Memories below `min_similarity` are left out. `before` and `after` bound the time of
        the event, or else of creation, ends included.

        Each `include_…` adds a status to `status_filter`; `include_all` adds all but archived. Claims of a session are returned
        in it only, where they replace the others about the same. `as_of` returns what was valid at a time, as is known now;
        `known_at` what was stored and believed at a time. With `explain`, each result has `retrieved` and `rerank`; `meta` of the
        results has the counts. Raises `InvalidInput` for a blank query and for an invalid option.
        """
        request = searching.Request(
            limit=limit, min_similarity=min_similarity, before=before, after=after, rerank=rerank, include_all=include_all,
            status_filter=status_filter, include_superseded=include_superseded, include_disputed=include_disputed,
            include_quarantined=include_quarantined, explain=explain, as_of=as_of, known_at=known_at,
        )  # fmt: skip
        return searching.search_one(acting_as(self._reading(), agent, session_id), query, request)

    def search_many(
        self, agent: str, queries: Iterable[str], *, limit: int = 10, min_similarity: float = 0.0,
        before: GivenTime | None = None, after: GivenTime | None = None, rerank: bool | Mapping[str, float] = True,
        include_all: bool = False, status_filter: Sequence[str] = (Status.ACTIVE,), include_superseded: bool = False,
        include_disputed: bool = False, include_quarantined: bool = False, session_id: str | None = None, explain: bool = False,
        as_of: GivenTime | None = None, known_at: GivenTime | None = None,
    ) -> list[GraphResults]:  # fmt: skip
        """Return what `search` returns for each query, in the order of the queries. All queries are embedded in one batch."""
        request = searching.Request(
            limit=limit, min_similarity=min_similarity, before=before, after=after, rerank=rerank, include_all=include_all,
            status_filter=status_filter, include_superseded=include_superseded, include_disputed=include_disputed,
            include_quarantined=include_quarantined, explain=explain, as_of=as_of, known_at=known_at,
        )  # fmt: skip
        return searching.search_many(acting_as(self._reading(), agent, session_id), queries, request)

    def context(
        self, agent: str, query: str, *, max_memories: int | None = None, before: GivenTime | None = None,
        after: GivenTime | None = None, max_tokens: int | None = None, explain: bool = False, as_of: GivenTime | None = None,
        known_at: GivenTime | None = None, session_id: str | None = None, packing: str = "relevance",
        rerank: bool | Mapping[str, float] = True, min_score: float | None = None,
    ) -> GraphContext:  # fmt: skip
        """Return one text for the prompt of a language model: the memories of an agent that are relevant to a query.

        Memories one link away from those that the search finds are candidates too. All are ranked by the chance that they are
        relevant, times the composite that `search` would give a fully relevant memory, and packed by this value ÷ tokens; what
        does not fit is passed over. The text, headings included, has at most `max_tokens`, as the embedder counts them. Without
        `max_tokens` it has up to 15 memories that a precise search returns. It is empty if no memory is likely to answer the
        query; `min_score` sets the lowest chance instead. `packing="composite"` is the document's formula: the score of
        `search` ÷ tokens.

        The result is a `str` with `memories`, `left_out` (how many candidates by reason), `tokens`, and `note` if nothing fits.
        With `explain`, `decisions` has each candidate with its value and why it was left out. The other options are those of
        `search`. Raises `InvalidInput` for a blank query and for an invalid option.
        """
        options = searching.Request(before=before, after=after, rerank=rerank, as_of=as_of, known_at=known_at)
        request = contexts.ContextRequest(
            max_memories=max_memories, max_tokens=max_tokens, min_score=min_score, packing=packing, search=options,
            explain=explain,
        )  # fmt: skip
        return contexts.build(acting_as(self._reading(), agent, session_id), query, request)

    # --- storing ---

    def store(
        self, agent: str, text: str, *, category: str = DEFAULT_CATEGORY, importance: float | str = IMPORTANCE,
        tags: Sequence[str] = (),
        event_time: GivenTime | None = None, claim: Mapping[str, object] | None = None, claims: str | None = None,
        provenance: Mapping[str, object] | None = None, quarantine: bool = False, on_conflict: str = "quarantine",
        metadata: Metadata | None = None, idempotency_key: str | None = None,
    ) -> Stored:  # fmt: skip
        """Store a memory of an agent, and link it to similar ones.

        `claim` is what it states: `subject`, `predicate` and `value`, and optionally `exclusive` (True), `scope` ("global", or
        "session" with `session_id`), `valid_from` and `valid_until`. With `claims="auto"` the claim is found in a plain text. A
        claim with the value of a stored one corroborates that memory instead. One that excludes a stored one supersedes it if
        its source is trusted as much, and otherwise waits in quarantine for a review; `predicate_schemas` may say otherwise.
        `provenance` names the `source`: user_explicit, system, tool_output, user_implicit, document or inference, the default.

        `quarantine` stores it quarantined in any case. With `on_conflict="keep_active"` it stays active although it is in
        conflict. Raises `InvalidInput` for an invalid text, claim or option; then nothing is changed.
        """
        new = NewMemory(
            text=text, category=category, importance=importance, tags=tags, event_time=event_time, claim=claim, claims=claims,
            provenance=provenance, quarantine=quarantine, on_conflict=on_conflict, metadata=metadata,
        )  # fmt: skip
        return graph.store(acting_as(self._context(), agent), [new.checked()], key=idempotency_key)[0]

    def store_many(
        self, agent: str, items: Iterable[str | Mapping[str, object]], *, embedding_batch_size: int = BATCH_SIZE,
        idempotency_key: str | None = None, progress: Progress | None = None,
    ) -> list[Stored]:  # fmt: skip
        """Store many memories of an agent, all or none, each as by `store`, and return the results in the same order.

        An item is a text, or a mapping with `text` and the options of `store`. Texts are embedded in batches.
        """
        given = iterable("items", items, expected="a list of texts, or of mappings with text")
        texts = [NewMemory.of(item, at).checked(item=at) for at, item in enumerate(given)]
        context, update = acting_as(self._context(), agent), as_progress(progress)
        return graph.store(context, texts, key=idempotency_key, batch_size=embedding_batch_size, progress=update)

    def evolve(
        self, agent: str, text: str, *, category: str = DEFAULT_CATEGORY, importance: float | str = IMPORTANCE,
        tags: Sequence[str] = (),
        provenance: Mapping[str, object] | None = None, idempotency_key: str | None = None,
    ) -> Stored:  # fmt: skip
        """Store the next version of a memory: it supersedes the most similar one of the agent, unless that is trusted more.

        Then it is quarantined, and the conflict waits for a review. Without a similar memory it is stored as a new one.
        """
        new = NewMemory(text=text, category=category, importance=importance, tags=tags, provenance=provenance)
        return graph.store(acting_as(self._context(), agent), [new.checked(evolves=True)], key=idempotency_key)[0]

    def extract(
        self, agent: str, text: str, *, min_importance: float = MIN_IMPORTANCE, idempotency_key: str | None = None,
        progress: Progress | None = None,
    ) -> Extraction:  # fmt: skip
        """Extract memories from a text with the language model, and store each for the agent as by `store`.

        Memories below `min_importance` are dropped. If there is no model, or if it fails, the text is stored unchanged.
        """
        context, update = acting_as(self._context(), agent), as_progress(progress)
        return graph.extract(context, text, min_importance=min_importance, key=idempotency_key, progress=update)

    ingest = extract  # the name that neolata uses
