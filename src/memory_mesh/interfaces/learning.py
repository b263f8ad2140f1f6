"""`memory-mesh lessons`, `distill` and `heartbeat`, as people read them."""

import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Never

from memory_mesh.core.cancel import wait
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.learning import Distilled, Heartbeat, JobRun, LessonBlock
from memory_mesh.faces.mesh import Mesh
from memory_mesh.interfaces.render import NAME, Answer, aligned, one_line, table

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
_LONGEST = 366 * 86_400
_SPAN = re.compile(r"([0-9]{1,6})([smhd])")


def lessons(found: Sequence[LessonBlock]) -> Answer:
    """Lessons, one on a line: how bad, how sure, the rule, where it applies."""
    rows = [_row(lesson) for lesson in found]
    text = f"{NAME} {len(found)} lessons." + (f"\n{aligned(rows)}" if rows else "")
    heads = ("severity", "sure", "rule", "applies to")
    return Answer(
        text=text,
        data={"count": len(found), "lessons": [asdict(lesson) for lesson in found]},
        drawn=(lambda: table(f"{len(found)} lessons", heads, rows)) if rows else None,
    )


def learnt(lesson: LessonBlock) -> Answer:
    """One lesson that was given by hand, or the better one that is known already."""
    rule = one_line(lesson.preventative_rule)
    told = f"Lesson {lesson.lesson_id} of pattern {lesson.pattern_id}, {lesson.rule_confidence:.2f} sure: {rule}"
    return Answer(text=f"{NAME} {told}", data=asdict(lesson))


def cycle(done: Distilled) -> Answer:
    """What a distillation cycle did."""
    lines = [
        f"{NAME} Scanned {done.scanned} blocks: {done.candidates} candidates, {len(done.learnt) + done.unseen} learnt, "
        f"{done.known} known, {len(done.skipped)} skipped"
    ]
    lines += [f"Learnt: {one_line(lesson.preventative_rule)}" for lesson in done.learnt]
    lines += [f"Learnt for others, who alone may see it: {done.unseen}"] if done.unseen else []
    lines += [f"Skipped: {one.memory_id}, because {one_line(one.reason)}" for one in done.skipped]
    if done.inject:
        lines += ["", "To begin the next session with:", aligned([_row(lesson) for lesson in done.inject])]
    return Answer(text="\n".join(lines), data=asdict(done))


def heartbeat(beat: Heartbeat) -> Answer:
    """What each job did; exit 1 where one failed."""
    failed = sum(not run.ok for run in beat.runs)
    done = sum(run.outcome == "done" for run in beat.runs)
    rows = [_run_row(run) for run in beat.runs]
    summary = f"Heartbeat: {done} done, {failed} failed, {len(beat.runs) - done - failed} not run"
    return Answer(
        text=f"{NAME} {summary}\n{aligned(rows)}",
        data={"ok": beat.ok, "runs": [asdict(run) for run in beat.runs]},
        code=0 if beat.ok else 1,
        drawn=lambda: table(summary, ("job", "outcome", "what it did"), rows),
    )


def runs(found: Sequence[JobRun]) -> Answer:
    """Earlier runs, newest first."""
    rows = [(run.began, *_run_row(run)) for run in found]
    text = f"{NAME} {len(found)} runs." + (f"\n{aligned(rows)}" if rows else "")
    return Answer(text=text, data={"count": len(found), "runs": [asdict(run) for run in found]})


def seconds(text: str) -> int:
    """A span of time such as 8h, 30m or 90s."""
    found = _SPAN.fullmatch(text.strip().lower())
    span = int(found[1]) * _UNITS[found[2]] if found else 0
    if not 0 < span <= _LONGEST:
        raise InvalidInput(f"--every is {text!r:.40}", expected="a span of time such as 8h, 30m or 90s, up to 366d")
    return span


def watch(
    mesh: Mesh,
    every: int,
    show: Callable[[Answer], object],
    *,
    jobs: Sequence[str] | None = None,
    force: bool = False,
    pause: Callable[[float], None] = wait,
) -> Never:
    """Beat until somebody stops it; a beat that fails is told, and the next one comes all the same."""
    while True:
        show(heartbeat(mesh.heartbeat(jobs=jobs, force=force)))
        sys.stdout.flush()
        pause(every)


def _row(lesson: LessonBlock) -> tuple[str, str, str, str]:
    scope = one_line(lesson.applicable_scope)
    return lesson.severity, f"{lesson.rule_confidence:.2f}", one_line(lesson.preventative_rule), scope


def _run_row(run: JobRun) -> tuple[str, str, str]:
    return run.job, str(run.outcome), one_line(run.detail)
