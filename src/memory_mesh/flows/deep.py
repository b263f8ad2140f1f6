"""Read the best candidates of a search with the deep ranker.

An explicit request, or the option `ranker = deep`, loads the model, and a server loads it at its start. Other precise searches
of a mesh that has loaded it read too; they do not load it, which would cost a short process more than the search.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from memory_mesh.core.masks import without_masks
from memory_mesh.core.model import In, Kind, Row, all_of, visible_to
from memory_mesh.core.search import Query
from memory_mesh.flows.context import Context
from memory_mesh.flows.passages import best_passages

if TYPE_CHECKING:
    from memory_mesh.core.search.ranker import Ranking

DEEP = "deep"


def wanted(context: Context, ranker: str, mode: str) -> bool:
    """Return whether a search is to read its best candidates."""
    if context.deep is None or not _allowed(context, ranker):
        return False
    return ranker == DEEP or (mode == "precise" and context.deep.is_loaded)


def load(context: Context) -> None:
    """Load the model for the searches to come, unless the settings exclude it or it is not on this computer.

    A process that computes its vectors without the local model does not load it for this either.
    """
    if context.deep is not None and context.options.embedder == "local" and _allowed(context, context.options.ranker):
        context.deep.load()


def _allowed(context: Context, ranker: str) -> bool:
    return context.options.deep_budget_ms > 0 and ranker != "rrf"


def best_ids(ranking: "Ranking") -> list[str]:
    """Return the candidates that are read, best first."""
    from memory_mesh.core.search.deep import MAX_READ

    return [each.id for each in ranking.best(0.0, MAX_READ)]


def read_best(context: Context, ranking: "Ranking", query: Query, text: str, rows: Mapping[str, Row]) -> "Ranking":
    """Return the ranking after the best candidates were read; the same one if the model cannot be used or time is too short."""
    from memory_mesh.core.search.deep import MAX_READ, reread

    chosen = [each for each in ranking.best(0.0, MAX_READ) if each.id in rows]
    if context.deep is None or not chosen:
        return ranking
    found = [rows[each.id] for each in chosen]
    before, passages = _previous(context, found), best_passages(context, query, found)
    texts = [_text(row, passages[row.id].text if row.id in passages else None) for row in found]
    pairs = [(each, before.get(row.id, "")) for each, row in zip(texts, found, strict=True)]
    logits = context.deep.read(without_masks(text), pairs, seconds=context.options.deep_budget_ms / 1000)
    return reread(ranking, {each.at: logit for each, logit in zip(chosen, logits, strict=False)})


def _text(row: Row, passage: str | None = None) -> str:
    """Return a memory as the model learnt to read it: the speaker, then the text, or the passage that fits best."""
    speaker, text = row.fields.get("speaker"), passage or str(row.value("content") or "")
    return text if not speaker or text.startswith(f"{speaker}:") else f"{speaker}: {text}"


def _previous(context: Context, rows: Sequence[Row]) -> dict[str, str]:
    """Return by id the text of the turn before, where a memory is a numbered turn of a session and the reader can see it."""
    places = {row.id: (row.partition, str(session), int(str(turn)) - 1) for row in rows
              if (session := row.fields.get("session_id")) and (turn := row.fields.get("turn"))}  # fmt: skip
    if not places:
        return {}
    sessions, turns = {place[1] for place in places.values()}, {place[2] for place in places.values()}
    where = all_of(
        visible_to(context.reader), In("session_id", tuple(sorted(sessions))), In("turn", tuple(sorted(turns))),
        In("status", ("active",)),
    )  # fmt: skip
    found = {
        (row.partition, str(row.fields.get("session_id")), row.fields.get("turn")): _text(row)
        for row in context.store.find(Kind.MEMORY, where)
    }
    return {id_: found[place] for id_, place in places.items() if place in found}
