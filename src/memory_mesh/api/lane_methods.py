"""The methods of `MemoryLane`: what an agent learnt, by type, with entities, decay and feedback.

The docstrings are the reference of the public API.
"""

from collections.abc import Iterable, Mapping, Sequence
from os import PathLike

from memory_mesh.api.handle import Handle
from memory_mesh.core.errors import whole_number
from memory_mesh.core.intake import Metadata
from memory_mesh.core.lane import DEFAULT_CONFIDENCE, LaneResults, NewLaneMemory
from memory_mesh.core.language.capture import CaptureReport, Judgement, JunkFound
from memory_mesh.core.model import GivenTime, MemoryRecord
from memory_mesh.core.ports import Progress, no_progress
from memory_mesh.flows.graph.store import Stored
from memory_mesh.flows.lane import lane
from memory_mesh.flows.search import readable


class MemoryLane(Handle):
    """The memories of a mesh as a lane: learnings of ten types, which fade without use and rise
    with feedback.

    It stores memories that every agent of the user sees, and finds those of every other part of
    the mesh.
    """

    def store(
        self, content: str, *, memory_type: str, confidence_score: float = DEFAULT_CONFIDENCE,
        entity_slugs: Iterable[str] | None = None, entities: Sequence[Mapping[str, object]] = (),
        tags: Sequence[str] = (), collection: str | None = None, source_chunk: str | None = None,
        valid_from: GivenTime | None = None, valid_until: GivenTime | None = None,
        supersedes: Sequence[str] = (), decay_factor: float = 1.0,
        provenance: Mapping[str, object] | None = None, metadata: Metadata | None = None,
        idempotency_key: str | None = None,
    ) -> Stored:  # fmt: skip
        """Store what was learnt, or count it as observed again if it is known.

        `memory_type` is correction, decision, commitment, insight, learning, confidence,
        pattern_seed, cross_agent, workflow_note or gap. `confidence_score` is 0 to 100.
        `entity_slugs` are what it is about, such as `project:atlas`; by default they are found in
        the text. `collection` groups memories, and is the project of the mesh by default.
        `source_chunk` is the text that it was learnt from. Outside `valid_from` and `valid_until`
        it is not found.

        It takes the place of the memories in `supersedes`, unless one is trusted more: then it is
        quarantined, and the conflict waits for a review. `provenance` names the `source`, as in
        `graph.store`. Raises `InvalidInput` for an invalid value, and `NotFound` for an unknown id
        in `supersedes`; then nothing is stored.
        """
        new = NewLaneMemory(
            memory_type=memory_type, confidence_score=confidence_score, decay_factor=decay_factor,
            entity_slugs=entity_slugs, entities=entities, tags=tags, collection=collection,
            source_chunk=source_chunk, valid_from=valid_from, valid_until=valid_until,
            metadata=metadata,
        )  # fmt: skip
        return lane.store(
            self._context(), content, new, supersedes=supersedes, provenance=provenance,
            key=idempotency_key
        )  # fmt: skip

    def find(
        self, query: str, *, limit: int = 10, collection: str | None = None,
        entities: Sequence[str] = (), min_score: float | None = None,
        memory_types: Sequence[str] = (), include_superseded: bool = False,
        include_expired: bool = False, as_of: GivenTime | None = None,
    ) -> LaneResults:  # fmt: skip
        """Return the memories that are relevant to a query, highest score first.

        The score is similarity × weight of the type × decay × feedback × 1.15 if the words of the
        query ask for the type. The decay follows the last time that a memory was found: under 7
        days 1, then 0.8, from 30 days 0.6, from 90 days 0.4. `parts` of a result has all of them.
        Memories with a similarity below `min_score` are left out: by default below 0.2, and with
        `entities` below 0.15.

        `entities` are `type:slug`, or a slug that has one type; a memory with one of them suffices.
        `memory_types` are the types to return. Superseded memories, and those that are not valid
        now, are left out unless `include_superseded` or `include_expired` is set; `as_of` returns
        what was valid at a time. Without `collection`, all are searched. Raises `NotFound` for an
        entity that no memory has, and `InvalidInput` for an ambiguous one.
        """
        request = lane.Request(
            limit=limit, collection=collection, entities=entities, min_score=min_score,
            memory_types=memory_types, include_superseded=include_superseded,
            include_expired=include_expired, as_of=as_of,
        )  # fmt: skip
        return lane.find(self._reading(), query, request)

    def feedback(self, id: str, signal: str) -> MemoryRecord:
        """Rate a memory: `helpful` multiplies its feedback score by 1.1, `harmful` by 0.5, within
        0.1 and 3.

        The score is a factor of its rank in `find`; its trust and its importance stay. Raises
        `NotFound` for an unknown id.
        """
        return readable.record(context := self._reading(), lane.feedback(context, id, signal))

    def on_session_event(
        self,
        event: str,
        transcript: str | PathLike[str] | Iterable[Mapping[str, object]],
        *,
        session_id: str | None = None,
        progress: Progress | None = None,
    ) -> CaptureReport:
        """Learn from a session: store what its new messages say that is worth keeping, and report
        what was not kept and why.

        `event` is `session.idle`, or `session.deleted`, which also ends the session as
        `end_session` does. `transcript` is the path of a transcript of Claude Code or opencode, or
        a list of messages with `role` and `content`. A message is read once: `session_id` names the
        session whose cursor is used. Greetings, questions, speculation, output of tools, secrets
        and recalled memories are not kept. With a language model it finds the memories; else a
        deterministic extractor does.
        """
        # Only the end of a session needs it.
        from memory_mesh.flows.lane.capture import on_session_event

        return on_session_event(
            self._context(), event, transcript, session_id=session_id,
            progress=progress or no_progress
        )  # fmt: skip

    def judge(self, messages: Sequence[Mapping[str, object]]) -> Judgement:
        """Return what `on_session_event` would keep of some messages, and what it would not keep
        and why. Nothing is stored.

        Messages have `role` and `content`. The deterministic extractor judges them, also if there
        is a language model, and without regard to what is known already. Raises `InvalidInput` for
        a message that is not an object.
        """
        from memory_mesh.flows.lane.capture import judge  # loads the tables of capture

        return judge(self._reading(), messages)

    def junk(
        self, *, archive: bool = False, limit: int = 100, newest: int | None = None
    ) -> list[JunkFound]:
        """Return stored memories that should not be there, oldest first, each with the reason; with
        `archive`, archive them.

        These are output of programs, small talk, questions, secrets, instructions for a model,
        recalled text, and memories that say the same as an older one. With `newest`, only so many
        of the newest memories are judged, which bounds the time. Of a long text the first 20,000
        characters are judged. Turns of conversations, lessons, reflections, pinned memories and
        those with a key stay. `graph.unarchive` brings an archived one back.
        """
        from memory_mesh.flows.lane.capture import junk  # loads the tables of capture

        return junk(
            self._context() if archive else self._reading(),
            apply=archive,
            limit=limit,
            newest=newest,
        )

    def session_context(self, *, max_tokens: int = 2000) -> str:
        """Return what the memory knows that matters, as data for a language model, to begin a
        session with.

        Pinned memories come first, then the others by weight of their type × decay × feedback, as
        many as fit into `max_tokens`. They are those of every type, of the project of the mesh and
        without a project, that are valid now; turns of conversations are left out. They are fenced
        as by `MemoryMesh.format_for_model`. Without memories the text is empty. Being shown here
        does not count as a use.
        """
        from memory_mesh.flows.lane.lane import session_context  # only hosts need it

        return session_context(self._reading(), whole_number("max_tokens", max_tokens))
