"""Views of the lane: what was stored, found and rated."""

from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.core.model import MemoryRecord
from memory_mesh.interfaces.graph_views import claim_outcome
from memory_mesh.interfaces.render import NAME, Answer, counted, masked, one_line, preview, table
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:  # every command loads the views, and few need the lane
    from memory_mesh.core.capture import Judgement, JunkFound
    from memory_mesh.core.lane import LaneResult, LaneResults
    from memory_mesh.flows.graph import Stored

_COLUMNS = ("score", "type", "confidence", "id", "text")


def lane_stored(done: "Stored", call: Call) -> Answer:
    """Render what became of the memory: it is new, was observed before, supersedes others or is quarantined."""
    memory = done.memory
    line = f"{NAME} Ingested record {done.id}"
    line += "" if done.is_new else f", observed {counted(memory.times_observed, 'time')}"
    return Answer(text=line + claim_outcome(memory) + masked(memory.redactions), data=asdict(done))


def lane_found(found: "LaneResults", call: Call) -> Answer:
    """Render results with the parts of their scores; for a terminal as a table."""
    title = f"Found {counted(len(found), 'memory')}" + (f" about {' or '.join(found.entities)}" if found.entities else "")
    lines = [f"{NAME} {title}"]
    for one in found:
        lines += [f"{one.score:.2f}  {one_line(one.memory_type)}  {one.id}  {_parts(one)}", f"      {one_line(one.content)}"]
    rows = [
        (f"{one.score:.2f}", one.memory_type, f"{one.effective_confidence} %", one.id, preview(one_line(one.content), 160))
        for one in found
    ]
    return Answer(
        text="\n".join(lines),
        data={"count": len(found), "entities": found.entities, "results": [asdict(one) for one in found]},
        rows="results",
        draw=lambda: table(title, _COLUMNS, rows) if rows else f"{NAME} {title}",
    )


def lane_rated(memory: MemoryRecord, call: Call) -> Answer:
    score = f"feedback score {memory.feedback_score:.2f} after {counted(memory.feedback_count, 'rating')}"
    return Answer(text=f"{NAME} Record {memory.id} has the {score}", data=asdict(memory))


def judged(found: "Judgement", call: Call) -> Answer:
    """Render what would be kept, and the rest with the reasons."""
    lines = [f"{NAME} Would keep {counted(len(found.kept), 'memory')}"]
    lines += [f"{one_line(one.memory_type)}: {preview(one_line(one.content))}" for one in found.kept]
    lines += [f"not kept, {one.why}: {preview(one_line(one.text))}" for one in found.not_kept]
    return Answer(text="\n".join(lines), data=asdict(found), rows="kept")


def junk_found(found: "list[JunkFound]", call: Call) -> Answer:
    """Render what should not be in the memory, and how to archive it after a dry run."""
    done = sum(one.archived for one in found)
    lines = [f"{NAME} Archived {counted(done, 'memory')}" if done else f"{NAME} Found {counted(len(found), 'memory')} of junk"]
    lines += [f"{one.id}  {one.why}: {preview(one_line(one.content))}" for one in found]
    if found and not call.arguments.get("archive"):
        lines.append("Nothing was changed; add --archive to archive them")
    data = {"count": len(found), "archived": done, "results": [asdict(one) for one in found]}
    return Answer(text="\n".join(lines), data=data, rows="results")


def _parts(result: "LaneResult") -> str:
    """Return how a score comes about; factors of 1 are left out."""
    parts = result.parts
    factors = {
        "weight": parts.weight,
        "decay": parts.decay_factor,
        "feedback": parts.feedback_score,
        "intent": parts.intent_boost,
    }
    shown = [f"{name} {value:g}" for name, value in factors.items() if value != 1]
    return f"= {' × '.join([f'similarity {parts.similarity:.2f}', *shown])}"
