"""Views of upkeep: what decay, compression and hooks did."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

from memory_mesh.core.model import MemoryRecord
from memory_mesh.interfaces.render import NAME, Answer, aligned, counted, one_line, preview
from memory_mesh.interfaces.values import Call

if TYPE_CHECKING:  # every command loads the views, and few need upkeep
    from memory_mesh.core.hooks import HookStatus
    from memory_mesh.core.upkeep import Compressed, Consolidated, Decayed

_MAX_IDS = 20


def decayed(done: "Decayed", call: Call) -> Answer:
    """Render what was archived, erased and cleaned, and how to do it after a dry run."""
    would = "Would archive" if done.dry_run else "Archived"
    erased = f", {'erase' if done.dry_run else 'erased'} {len(done.erased)}" if done.erased else ""
    links = f", {'remove' if done.dry_run else 'removed'} {counted(done.links, 'broken link')}" if done.links else ""
    lines = [f"{NAME} {would} {len(done.archived)} of {counted(done.examined, 'memory')}{erased}{links}"]
    shown = [*done.archived, *(f"{id_} (erased)" for id_ in done.erased)]
    lines += shown[:_MAX_IDS] + ([f"… and {len(shown) - _MAX_IDS} more; --json shows all"] if len(shown) > _MAX_IDS else [])
    if done.dry_run and (shown or done.links):
        lines.append("Nothing was changed; add --apply to do it")
    return Answer(text="\n".join(lines), data=asdict(done))


def compressed(done: "Compressed", call: Call) -> Answer:
    """Render the digests, and what was archived."""
    archived = f", archived {counted(len(done.archived), 'memory')}" if done.archived else ""
    lines = [f"{NAME} Stored {counted(len(done.digests), 'digest')}{archived}"]
    lines += [f"{one.id} of {len(one.sources)}: {preview(one_line(one.content))}" for one in done.digests]
    return Answer(text="\n".join(lines), data=asdict(done))


def consolidated(done: "Consolidated", call: Call) -> Answer:
    """Render the steps of each phase, and how to do them after a dry run."""
    data = asdict(done)
    phases = {name: steps for name, steps in data.items() if name != "dry_run"}
    total = sum(map(len, phases.values()))
    lines = [f"{NAME} {'Would make' if done.dry_run else 'Made'} {counted(total, 'change')}"]
    for name, steps in phases.items():
        lines.append(f"{name}: {len(steps)}")
        lines += [f"  {one['action']} {one['memory_id'] or 'new'}: {one_line(one['why'])}" for one in steps[:_MAX_IDS]]
        lines += [f"  … and {len(steps) - _MAX_IDS} more; --json shows all"] if len(steps) > _MAX_IDS else []
    if done.dry_run and total:
        lines.append("Nothing was changed; add --apply to do it")
    return Answer(text="\n".join(lines), data=data)


def unarchived(memory: MemoryRecord, call: Call) -> Answer:
    return Answer(text=f"{NAME} Record {memory.id} is {memory.status}", data=asdict(memory))


def hooks(found: "Sequence[HookStatus]", call: Call) -> Answer:
    """Render what waits for each hook. The exit code of a retry is 1 if something still waits for a hook of these settings."""
    waiting, dead = sum(one.waiting for one in found), sum(one.dead_letters for one in found)
    summary = f"{NAME} {counted(len(found), 'hook')}, {counted(waiting, 'event')} waiting, {counted(dead, 'dead letter')}"
    rows = [(one_line(one.name), f"{one.waiting} waiting", f"{one.dead_letters} dead", _hook_note(one)) for one in found]
    left = any(one.waiting or one.dead_letters for one in found if one.configured)
    return Answer(
        text=f"{summary}\n{aligned(rows)}" if rows else f"{summary}; the option writethrough names some",
        data={"count": len(found), "hooks": [asdict(one) for one in found]},
        rows="hooks",
        code=1 if left and call.operation.name == "hooks retry" else 0,
    )


def _hook_note(hook: "HookStatus") -> str:
    if not hook.configured:
        return "of another program"
    if not hook.failures:
        return "ok"
    after = f", next attempt {hook.next_attempt}" if hook.waiting and hook.next_attempt else ""
    return one_line(f"failed {counted(hook.failures, 'time')}{after}: {hook.error}")
