"""An explained search as text: what was asked, what each memory has to say for itself, and what was left out."""

from dataclasses import asdict

from memory_mesh.core.search import Explained, Explanation
from memory_mesh.interfaces import render
from memory_mesh.interfaces.render import NAME, Answer


def answer(told: Explanation) -> Answer:
    """The explanation as a command says it."""
    lines = [
        f"{NAME} {len(told.answers)} answers of {told.candidates} candidates, among {told.documents} memories",
        *_asked(told),
    ]
    for n, found in enumerate(told.answers, start=1):
        lines += ["", f"--- MEMORY {n}: {found.result.id} [IMPORTANCE: {found.result.score:.2f}] ---", *_said(found)]
    if told.nearly:
        lines += ["", f"Below the minimum score of {told.min_score:.2f}:"]
        lines += [
            f"  {found.result.score:.2f}  {found.result.id}  {render.one_line(found.result.content)[:80]}"
            for found in told.nearly
        ]
    return Answer(text="\n".join(lines), data=_data(told))


def _asked(told: Explanation) -> list[str]:
    vectors = f"vectors of {told.model}" if told.model else "no vectors"
    left_out = ", ".join(f"{count} by {reason}" for reason, count in sorted(told.left_out.items())) or "nothing"
    return [
        f"Asked: {render.one_line(told.query)[:200]}",
        f"Words: {', '.join(told.tokens[:20]) or 'none'}",
        f"Ranker: {told.ranker}, keywords and {vectors}, minimum score {told.min_score:.2f}",
        f"Left out: {left_out}",
    ]


def _said(found: Explained) -> list[str]:
    channels = [(name, f"rank {placing.rank}", f"{placing.score:.3f}") for name, placing in found.channels.items()]
    features = ", ".join(f"{name} {value:.2f}" for name, value in found.features.items() if value)
    return [
        render.one_line(found.result.content)[:200],
        *render.aligned(channels).splitlines(),
        *([f"Features: {features}"] if features else []),
    ]


def _data(told: Explanation) -> dict[str, object]:
    return {
        **{name: value for name, value in asdict(told).items() if name not in ("answers", "nearly")},
        "answers": [_plain(found) for found in told.answers],
        "nearly": [_plain(found) for found in told.nearly],
    }


def _plain(found: Explained) -> dict[str, object]:
    channels = {name: asdict(placing) for name, placing in found.channels.items()}
    return {**render.plain(found.result), "channels": channels, "features": dict(found.features)}
