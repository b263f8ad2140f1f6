"""Decay archives what is weak and nothing else, tells the same in a dry run, and an archived
memory can come back."""

from dataclasses import replace
from typing import Any

import pytest

from memory_mesh.core.errors import Cancelled, ContentAltered, InvalidInput, NotFound
from memory_mesh.core.model import Change, Key, Kind, Memory, Reader, Status, equals
from memory_mesh.core.upkeep import Decayed
from memory_mesh.flows.claims.review import reinforce
from memory_mesh.flows.context import Context
from memory_mesh.flows.learning import heartbeat
from memory_mesh.flows.search import usage
from memory_mesh.flows.upkeep import decay as decaying
from memory_mesh.flows.upkeep.decay import archive_one, decay, unarchive
from memory_mesh.flows.write.revisions import archive
from memory_mesh.testing.fakes import FakeClock

from .claiming import change, claimed, connect, read, stored

WEAK = {"weak", "weakest", "of bob"}


def pass_days(context: Context, days: float) -> None:
    assert isinstance(context.clock, FakeClock)
    context.clock.advance(days=days)


def contents(context: Context) -> dict[str, Any]:
    """Every row of the store, to compare."""
    kinds = (Kind.MEMORY, Kind.CHANGE, Kind.LINK, Kind.BLOCK, Kind.HEAD, Kind.META)
    return {f"{row.kind} {row.id}": row for kind in kinds for row in context.store.find(kind)}


def aged(context: Context) -> dict[str, Memory]:
    """Memories of which some are weak after 60 days, of two agents."""
    bob = replace(context, reader=Reader("u", "bob"))
    every = {
        "weak": stored(context, "Ana likes red shoes.", importance=0.7),
        "weakest": stored(context, "Ana saw a cat.", importance=0.3),
        "of bob": stored(bob, "Bob likes blue shoes.", importance=0.3, memory_type="agent"),
        "pinned": stored(context, "Ana is allergic to nuts.", importance=0.1, pinned=True),
        "important": stored(context, "Ana lives in Rome.", importance=1.0, category="preference"),
        "linked": stored(context, "Ana works at Acme.", importance=0.7),
        "lesson": stored(context, "Check the token first.", importance=0.1, memory_type="lesson"),
        "disputed": stored(context, "Ana hates tea.", importance=0.1, status=Status.DISPUTED.value),
        "foreign": stored(
            replace(context, reader=Reader("v", "ann")), "Cy likes tea.", importance=0.1
        ),
    }
    for other in ("important", "pinned", "lesson"):
        connect(context, every[other], every["linked"])
    pass_days(context, 60)
    return every


@pytest.mark.req("GRAPH-31", "GRAPH-32", "MESH-010")
def test_weak_memories_of_the_user_are_archived_and_no_other(context: Context) -> None:
    every = aged(context)
    seen: list[tuple[str, int, int]] = []
    done = decay(context, progress=lambda *step: seen.append(step))
    assert {*done.archived} == {every[name].id for name in WEAK}
    assert (done.erased, done.links, done.examined, done.dry_run) == ((), 0, 5, False)
    statuses = {name: read(context, memory.id).status for name, memory in every.items()}
    assert statuses == {
        name: "archived" if name in WEAK else memory.status for name, memory in every.items()
    }
    assert [(what, done_) for what, done_, _ in seen] == [("judging", 5), ("archiving", 3)]
    (last,) = context.store.get(
        Kind.CHANGE, [f"{every['weak'].id}#{read(context, every['weak'].id).revision}"]
    ).values()
    assert (Change.of(last).action, Change.of(last).why) == ("decay", "strength 0.087")
    heartbeat.guard(context)  # the chains are sound
    assert decay(context).archived == ()


@pytest.mark.req("GRAPH-31", "GRAPH-36")
@pytest.mark.parametrize("delete", [False, True])
def test_a_dry_run_tells_the_same_and_changes_nothing(context: Context, delete: bool) -> None:
    every = aged(context)
    broken = connect(context, every["weak"], replace(every["weak"], id="gone"))
    before = contents(context)
    told = decay(context, dry_run=True, delete=delete)
    assert contents(context) == before
    done = decay(context, delete=delete)
    assert told == replace(done, dry_run=True)
    assert (done.links, len(done.archived), len(done.erased)) == (
        1,
        1 if delete else 3,
        2 if delete else 0,
    )
    assert contents(context) != before
    assert not context.store.get(Kind.LINK, [broken])
    assert len(context.store.find(Kind.LINK)) == 3  # the others stay


@pytest.mark.req("GRAPH-36")
def test_only_with_the_flag_the_weakest_are_erased_also_those_that_decay_archived_earlier(
    context: Context,
) -> None:
    every = aged(context)
    other = stored(context, "Ana saw a dog.", importance=0.1)
    archive(context, Kind.MEMORY, [other.id], lambda memory: "the session ended")
    decay(context)
    pass_days(context, 30)
    done = decay(context, delete=True)
    assert {*done.erased} == {every[name].id for name in WEAK}
    assert {*done.archived} == {every[name].id for name in ("important", "linked")}
    left = {memory.id for memory in map(Memory.of, context.store.find(Kind.MEMORY))}
    gone = {name for name, memory in every.items() if memory.id not in left}
    assert gone == WEAK
    assert other.id in left  # not archived by decay
    assert not context.store.find(Kind.CHANGE, equals("ref", every["weakest"].id))
    heartbeat.guard(context)  # the chains are sound


@pytest.mark.req("GRAPH-31")
@pytest.mark.parametrize("end", ["ref", "target"])
def test_a_link_from_or_to_a_memory_that_is_gone_is_removed_and_gives_no_strength(
    context: Context, end: str
) -> None:
    weak, other = (
        stored(context, "Ana saw a cat.", importance=0.1),
        stored(context, "Ana saw a dog.", importance=0.9),
    )
    connect(context, *((weak, other) if end == "target" else (other, weak)))
    assert decay(context, dry_run=True).archived == ()
    context.store.apply(deletes=[Key(Kind.MEMORY, other.id)])
    assert decay(context) == Decayed(examined=1, archived=(weak.id,), links=1)
    assert context.store.find(Kind.LINK) == []


@pytest.mark.req("GRAPH-34", "GRAPH-35")
def test_a_memory_that_was_reinforced_after_a_while_outlives_its_twin(context: Context) -> None:
    one, twin = (
        stored(context, "Ana likes red shoes.", importance=0.7),
        stored(context, "Ana likes blue shoes.", importance=0.7),
    )
    pass_days(context, 10)
    reinforce(context, one.id, 0.0)
    pass_days(context, 60)
    assert decay(context).archived == (twin.id,)


@pytest.mark.req("GRAPH-31")
def test_a_memory_that_was_used_or_changed_since_it_was_judged_is_left_alone(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [
        stored(context, f"Ana saw {what}.", importance=0.1) for what in ("a cat", "a dog", "a cow")
    ]
    judged = decaying.find_weak

    def meanwhile(*args: Any, **options: Any) -> Any:
        found = judged(*args, **options)
        change(context, names[0].id, pinned=True)
        usage.count(context, [names[1].id])
        return found

    monkeypatch.setattr(decaying, "find_weak", meanwhile)
    assert decay(context).archived == (names[2].id,)


@pytest.mark.req("GRAPH-36")
def test_a_memory_that_is_reinforced_at_the_moment_of_its_erasure_is_kept(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [stored(context, f"Ana saw {what}.", importance=0.01) for what in ("a cat", "a dog")]
    apply, calls = context.store.apply, list[int]()

    def meanwhile(*args: Any, **options: Any) -> Any:
        if not calls:
            calls.append(1)
            reinforce(context, names[0].id, 0.0)
        return apply(*args, **options)

    monkeypatch.setattr(context.store, "apply", meanwhile)
    assert decay(context, delete=True).erased == (names[1].id,)
    assert read(context, names[0].id).reinforcements == 1
    heartbeat.guard(context)


@pytest.mark.req("GRAPH-31")
def test_an_interrupted_run_is_continued_by_the_next_one(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(decaying, "_AT_ONCE", 2)
    for n in range(5):
        stored(context, f"Ana saw cat number {n}.", importance=0.1)

    def cancel(what: str, done: int, of: int) -> None:
        if (what, done) == ("archiving", 4):
            raise Cancelled("enough")

    with pytest.raises(Cancelled):
        decay(context, progress=cancel)
    assert context.store.count(Kind.MEMORY, equals("status", "archived")) == 4
    assert len(decay(context).archived) == 1


@pytest.mark.parametrize("option", ["dry_run", "delete"])
def test_a_switch_is_true_or_false(context: Context, option: str) -> None:
    with pytest.raises(InvalidInput, match=option):
        decay(context, **{option: "yes"})  # type: ignore[arg-type]


def test_an_archived_memory_comes_back_and_decay_leaves_it_for_a_while(context: Context) -> None:
    memory = stored(context, "Ana likes red shoes.", importance=0.7)
    pass_days(context, 400)
    assert decay(context).archived == (memory.id,)
    back = unarchive(replace(context, reader=Reader("u", "bob")), memory.id)
    assert (back.status, read(context, memory.id).status) == ("active", "active")
    pass_days(context, 30)
    assert decay(context).archived == ()
    pass_days(context, 30)
    assert decay(context).archived == (memory.id,)


def test_a_claim_comes_back_only_if_no_active_one_excludes_it(context: Context) -> None:
    old = claimed(context, "500", status=Status.ARCHIVED.value)
    new = claimed(context, "700")
    with pytest.raises(InvalidInput, match=new.id):
        unarchive(context, old.id)
    assert read(context, old.id) == old
    change(context, new.id, status=Status.SUPERSEDED.value)
    assert unarchive(context, old.id).status == "active"


def test_only_an_archived_memory_of_the_user_is_unarchived(context: Context) -> None:
    memory = stored(context, "Ana likes tea.")
    with pytest.raises(InvalidInput, match="is active, not archived"):
        unarchive(context, memory.id)
    change(context, memory.id, status=Status.ARCHIVED.value)
    with pytest.raises(NotFound):
        unarchive(replace(context, reader=Reader("v", "ann")), memory.id)


def test_a_person_archives_an_active_or_disputed_memory_and_the_history_says_why(
    context: Context,
) -> None:
    memory = stored(context, "Ana likes tea.")
    with pytest.raises(NotFound):
        archive_one(replace(context, reader=Reader("v", "ann")), memory.id)
    assert (
        archive_one(replace(context, reader=Reader("u", "bob")), memory.id, "she moved").status
        == "archived"
    )
    (last,) = context.store.get(
        Kind.CHANGE, [f"{memory.id}#{read(context, memory.id).revision}"]
    ).values()
    assert (Change.of(last).action, Change.of(last).why) == ("archive", "she moved")
    for status in (Status.ARCHIVED, Status.QUARANTINED, Status.SUPERSEDED):
        change(context, memory.id, status=status.value)
        with pytest.raises(InvalidInput, match=f"is {status.value}"):
            archive_one(context, memory.id)
    change(context, memory.id, status=Status.DISPUTED.value)
    assert archive_one(context, memory.id).status == "archived"
    assert unarchive(context, memory.id).status == "active"


def test_an_archived_memory_that_was_altered_outside_comes_not_back_and_is_not_erased(
    context: Context,
) -> None:
    altered, other = (
        stored(context, f"Ana saw {what}.", importance=0.01) for what in ("a cat", "a dog")
    )
    assert {*decay(context).archived} == {altered.id, other.id}
    archived = read(context, altered.id)
    forged = replace(archived, content="Ana owes Eve money.")
    context.store.apply([forged.row(replaces=archived.revision)])
    with pytest.raises(ContentAltered, match=altered.id):
        unarchive(context, altered.id)
    assert decay(context, delete=True).erased == (other.id,)
    assert read(context, altered.id) == forged, "evidence for audit verify"
    context.store.apply([archived.row(replaces=forged.revision)])  # restored from a backup
    assert unarchive(context, altered.id).status == "active"


@pytest.mark.req("GRAPH-31", "MESH-138")
def test_the_heartbeat_reports_what_is_weak_and_archives_it_only_when_switched_on(
    context: Context,
) -> None:
    memory = stored(context, "Ana saw a cat.", importance=0.1)
    connect(context, memory, replace(memory, id="gone"))

    def beat(*, enabled: bool) -> str:
        beaten = heartbeat.beat(
            context.with_options(decay_enabled=enabled), jobs=["decay"], force=True
        )
        return {run.job: run.detail for run in beaten.runs}["decay"]

    told = (
        "1 of 1 memories are weak; set decay_enabled to archive them, 1 links to missing "
        "memories found"
    )
    assert (beat(enabled=False), read(context, memory.id).status) == (told, "active")
    old = stored(context, "Ana sold the cat.", status=Status.SUPERSEDED.value)
    pass_days(context, 91)
    told = told.replace(" weak", " weak, 1 were superseded over 90 days ago")
    assert (beat(enabled=False), read(context, old.id).status) == (told, "superseded")
    done = "1 of 1 memories archived, 1 links to missing memories removed"
    assert (beat(enabled=True), read(context, memory.id).status) == (done, "archived")
