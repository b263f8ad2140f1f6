"""The methods of `MemoryGraph`: memories of named agents, with claims, trust, conflicts and links.

The docstrings are the reference of the public API; `tools/stubs.py` copies them to the asynchronous graph.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from memory_mesh.core.checks import iterable
from memory_mesh.core.intake import Metadata
from memory_mesh.core.model import MIN_IMPORTANCE, Extraction
from memory_mesh.core.ports import Progress, as_progress
from memory_mesh.faces.reviewing import Reviewing
from memory_mesh.flows import graph
from memory_mesh.flows.graph import BATCH_SIZE, NewMemory, Stored, acting_as


class MemoryGraph(Reviewing):
    """The memories of a mesh as a graph: claims that do not contradict each other, how far each is trusted, and links.

    Every method that stores or searches names the agent whose memories these are. Methods that take the id of a memory act for
    the agent that it belongs to. All agents are those of the user of the mesh.
    """

    # --- storing ---

    def store(
        self, agent: str, text: str, *, category: str = "fact", importance: float | str = 0.7, tags: Sequence[str] = (),
        event_time: str | date | None = None, claim: Mapping[str, object] | None = None, claims: str | None = None,
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
        self, agent: str, text: str, *, category: str = "fact", importance: float | str = 0.7, tags: Sequence[str] = (),
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
