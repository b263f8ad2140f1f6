"""`memory-mesh model`: where the local model is, having it before it is needed, and whether models answer."""

from dataclasses import asdict

from memory_mesh.flows.health import Checked
from memory_mesh.interfaces.grammar import Who
from memory_mesh.interfaces.progress import bar
from memory_mesh.interfaces.render import NAME, Answer, aligned, one_line, size
from memory_mesh.models import MODEL, ModelStatus, State, find_model, model_status
from memory_mesh.settings import Settings, load
from memory_mesh.wiring.build import model_paths


def status() -> Answer:
    """What is there; nothing is loaded, made or fetched."""
    loaded = load({})
    return _answer(loaded, model_status(model_paths(loaded)))


def fetch() -> Answer:
    """Have the model ready; where it is already, nothing is done."""
    loaded = load({})
    paths = model_paths(loaded)
    with bar() as progress:
        find_model(paths, retry=True, progress=progress)
    return _answer(loaded, model_status(paths))


def checked(who: Who) -> Answer:
    """Ask each model that is set for a sign of life."""
    with who.mesh() as mesh:
        found = mesh.check_models()
    failed = [one for one in found if not one.ok]
    rows = [("FAILED" if not one.ok else "ok" if one.model else "-", one.part, _told(one)) for one in found]
    summary = f"{len(failed)} of the models gave no answer" if failed else "Every model that is set answers"
    return Answer(
        text=f"{NAME} {summary}\n{aligned(rows)}",
        data={"ok": not failed, "checks": [asdict(one) for one in found]},
        code=1 if failed else 0,
    )


def _told(one: Checked) -> str:
    named = f"{one.model} {one.detail}" if one.model else one.detail
    return one_line(f"{named}; {one.remedy}" if one.remedy else named)


def _answer(loaded: Settings, found: ModelStatus) -> Answer:
    rows = [("folder", str(found.folder))]
    rows += [("size", size(found.size))] if found.size else []
    rows += [("sums", "right")] if found.usable else []
    rows += [(name, told) for name, told in (("detail", found.detail), ("remedy", found.remedy)) if told]
    if loaded.options.embedder != "local":
        rows.append(("unused", f"embedder is {loaded.options.embedder}, by {loaded.origins['embedder']}"))
    return Answer(
        text=f"{NAME} {MODEL} is {found.state}\n{aligned(rows)}",
        data=_data(loaded, found),
        code=0 if found.state is State.READY else 1,
    )


def _data(loaded: Settings, found: ModelStatus) -> dict[str, object]:
    return {
        "model": MODEL, "state": str(found.state), "folder": str(found.folder), "size": found.size,
        "sums": found.usable, "detail": found.detail, "remedy": found.remedy, "embedder": loaded.options.embedder,
    }  # fmt: skip
