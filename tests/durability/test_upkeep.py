"""Decay, compression and consolidation that are killed at any step: the next run completes them,
and nothing is lost."""

import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from operator import attrgetter
from pathlib import Path
from signal import SIGKILL
from typing import Any

import pytest

from memory_mesh.testing.fakes import Recorder

from . import children
from .children import Child, url
from .sound import Contents, assert_sound, contents_of
from .upkeep import fill, opened

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "decay": ("graph.decay", {}),
    "decay and delete": ("graph.decay", {"delete": True}),
    "auto_compress": ("graph.auto_compress", {"archive_originals": True}),
    "consolidate": ("graph.consolidate", {}),
}
STEPS = [
    "store.begun",
    "store.deleted",
    "store.put",
    "store.counted",
    "store.committed",
    "flow.applied",
]
COMMITS = {"decay": 1, "decay and delete": 2, "auto_compress": 2, "consolidate": 6}
KILLED = [
    (name, step, nth)
    for name, commits in COMMITS.items()
    for nth in range(1, commits + 1)
    for step in STEPS
]
KILLED += [("consolidate", "flow.validated", 1), ("auto_compress", "flow.validated", 1)]
KILLED += [("decay and delete", f"store.{step}", 1) for step in ("rewritten", "truncated", "freed")]


@pytest.fixture(autouse=True)
def program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(children, "PROGRAMS", Path(__file__).with_name("upkeep.py"))


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store in which every kind of upkeep has something to do."""
    file = tmp_path_factory.mktemp("filled") / "memory.db"
    fill(url(file))
    return file


@pytest.fixture
def file(filled: Path, tmp_path: Path) -> Path:
    """A copy of that store."""
    return Path(shutil.copy(filled, tmp_path))


@pytest.fixture(scope="module")
def whole(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    """What that store contains after a run that is not killed."""

    @cache
    def outcome_of(name: str) -> Any:
        file = Path(shutil.copy(filled, tmp_path_factory.mktemp("whole")))
        perform(file, name)
        return outcome(file)

    return outcome_of


def perform(file: Path, name: str, step: Any = lambda _: None) -> Any:
    method, arguments = CALLS[name]
    with opened(url(file), step=step) as mesh:
        return attrgetter(method)(mesh)(**arguments)


def outcome(file: Path) -> Any:
    """What a store contains, without ids and times."""
    found = contents_of(file)
    texts = {row["id"]: row["content"] for row in found.memories}
    names = ("status", "corroborations", "times_observed", "tags")
    memories = Counter(
        (row["content"], texts.get(row["superseded_by"]), *(str(row[name]) for name in names))
        for row in found.memories
    )
    return memories, Counter(_others(found, texts))


def _others(found: Contents, texts: dict[str, str]) -> Iterator[tuple[str, ...]]:
    for row in found.records:
        if row["kind"] in ("link", "conflict", "change"):
            more = json.loads(row["extra"] or "{}")
            what = [str(more.get(name)) for name in ("link_type", "action", "status")]
            yield (
                row["kind"],
                texts.get(row["ref"], ""),
                texts.get(str(more.get("target")), ""),
                *what,
            )


@pytest.mark.deep
@pytest.mark.parametrize("name", CALLS)
def test_the_steps_are_those_at_which_a_run_is_killed(file: Path, name: str) -> None:
    recorder = Recorder()
    perform(file, name, recorder)
    seen = Counter(recorder.names)
    assert {
        (step, nth) for step in seen for nth in range(1, seen[step] + 1) if step != "flow.decided"
    } == {(step, nth) for killed, step, nth in KILLED if killed == name}


@pytest.mark.deep
@pytest.mark.req("GRAPH-31", "GRAPH-37", "GRAPH-39")
@pytest.mark.parametrize(("name", "step", "nth"), KILLED)
def test_a_run_killed_at_any_step_is_completed_by_the_next_and_a_third_changes_nothing(
    file: Path, whole: Callable[[str], Any], name: str, step: str, nth: int
) -> None:
    before = outcome(file)
    with Child("run", store=url(file), call=CALLS[name], crash=(step, nth)) as child:
        assert (child.rest(), child.end()) == ([], -SIGKILL)
    assert_sound(file)
    first = (step, nth) in [(step, 1) for step in STEPS[:4]] or (
        step == "flow.validated" and name == "auto_compress"
    )
    assert (outcome(file) == before) is first, "a step is one change: nothing of it, or all"
    perform(file, name)
    assert_sound(file)
    assert outcome(file) == whole(name) != before
    done = contents_of(file)
    perform(file, name)
    assert contents_of(file) == done
    erased = {"A cloud passed.", "The rent is 700."} if name == "decay and delete" else set()
    texts = {content for content, *_ in before[0]}
    assert {row["content"] for row in done.memories} >= texts - erased
    assert erased <= texts - {row["content"] for row in done.memories}
