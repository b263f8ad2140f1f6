"""The methods of `mesh.graph` for episodes."""

from typing import TYPE_CHECKING

from memory_mesh.core.graph import GAP_SECONDS, Episode
from memory_mesh.core.lazy import LazyModule
from memory_mesh.core.learning import ReflectionResult
from memory_mesh.core.model import GivenTime
from memory_mesh.faces.handle import Handle
from memory_mesh.flows.graph import acting_as

if TYPE_CHECKING:
    from memory_mesh.flows import episodes as finding
else:
    finding = LazyModule("memory_mesh.flows.episodes")


class Episodic(Handle):
    """A mesh whose memories can be read as conversations and stretches of work."""

    def episodes(
        self, agent: str, *, gap: float = GAP_SECONDS, since: GivenTime | None = None, until: GivenTime | None = None,
        session_id: str | None = None, limit: int = 20, min_similarity: float | None = None,
    ) -> list[Episode]:  # fmt: skip
        """Return the episodes of the memories that an agent can see, newest first.

        An episode is a part of one session in which no two memories are more than `gap` seconds apart; memories without a
        session are one sequence of their own. With `min_similarity` it also ends where the topic changes: where the cosine
        of the vectors of the three memories before and the three after is lowest, and below that. The time of a memory is that
        of the event, or else of creation. Only active memories count, no lessons and no reflections.

        `since` and `until` select the episodes that overlap this time, and `session_id` those of a session. Nothing is stored:
        the same memories give the same episodes. Raises `InvalidInput` for an invalid option.
        """
        context = acting_as(self._reading(), agent, session_id)
        boundaries = finding.Boundaries(gap=gap, min_similarity=min_similarity)
        return finding.episodes(context, boundaries, since=since, until=until, session_id=session_id, limit=limit)

    def summarize_episode(
        self, agent: str, episode: Episode | str, *, store: bool = False, gap: float = GAP_SECONDS,
        min_similarity: float | None = None, session_id: str | None = None,
    ) -> ReflectionResult:  # fmt: skip
        """Return what an episode says in a few statements, each with the memories that it is drawn from.

        They are quoted in the order of time, or those of the language model if there is one. With `store` they are kept as a
        memory of category `digest`, which replaces an earlier one of the same episode and loses the words of a source that is
        erased. `episode` is one that `episodes` returned, or its id; for an id the options are those of that call. Raises
        `NotFound` if the agent cannot see such an episode.
        """
        known = episode.session_id if isinstance(episode, Episode) and session_id is None else session_id
        context = acting_as(self._context() if store else self._reading(), agent, known)
        boundaries = finding.Boundaries(gap=gap, min_similarity=min_similarity)
        return finding.summarize(context, episode, boundaries, store=store)
