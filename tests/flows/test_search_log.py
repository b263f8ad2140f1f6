"""Searches in the audit chain: each gets one block, no search waits for it, and old blocks are
replaced by a checkpoint."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from threading import Thread

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Sound, parse, sealed_through
from memory_mesh.core.errors import (
    Conflict,
    InvalidInput,
    MemoryDisabled,
    StoreBusy,
    StoreFull,
    StoreReadOnly,
)
from memory_mesh.core.model import Block, Head, Key, Kind, Reader, background
from memory_mesh.core.model.background import SearchEntry, SearchLog
from memory_mesh.flows.audit import audit as trail
from memory_mesh.flows.audit.audit import Pruned
from memory_mesh.flows.context import Context
from memory_mesh.flows.search import usage
from memory_mesh.flows.search.search import Request, search
from memory_mesh.flows.upkeep import erase
from memory_mesh.flows.write import write
from memory_mesh.index import LocalIndex
from memory_mesh.stores.ram import RamStore
from memory_mesh.testing.fakes import FakeClock, no_pause, seeded_ids

from .adding import add_many


@pytest.fixture
def context(context: Context) -> Context:
    """A context whose searches leave blocks."""
    return context.with_options(audit_recalls=True)


def end(last: Block | Head) -> tuple[str, str | None]:
    return last.block_hash, last.seal


def chain(context: Context) -> str:
    return audit.chain_name(context.reader.user_id, context.reader.agent_id, recalls=True)


def note(context: Context, *queries: str, filter: str | None = None) -> None:
    for query in queries:
        usage.log_search(
            context, query=query, limit=5, filter=filter, ms=context.clock(), results=[]
        )


def told(context: Context) -> list[dict[str, object]]:
    """Context and output of each block, oldest first."""
    read = [parse(block.yamo_text) for block in trail.blocks(context, chain(context))]
    return [{**dict(block.context), **dict(block.output)} for block in read]


def texts(context: Context) -> list[object]:
    return [said["query"] for said in told(context)]


@contextmanager
def failing(context: Context, error: Exception, *, times: int = 10**6) -> Iterator[list[Exception]]:
    """A store that does not take what is written, so many times; what it raised."""
    apply, raised = context.store.apply, []

    def refuse(*args: object, **options: object) -> object:
        if len(raised) < times:
            raised.append(error)
            raise error
        return apply(*args, **options)

    context.store.apply = refuse
    yield raised
    context.store.apply = apply


# --- one block for each search ---


@pytest.mark.req("MESH-056", "MESH-057", "MESH-044")
def test_every_search_leaves_one_block_and_an_answer_from_the_cache_is_a_search(
    context: Context,
) -> None:
    add_many(context, [("Tea is at four.", None)])
    found = search(
        context, Request(query="tea at four", limit=3, filter="tags = 'x' OR pinned = false")
    )
    search(context, Request(query="tea at four", limit=3, filter="tags = 'x' OR pinned = false"))
    search(context, Request(query="zebra"))
    usage.close(context)
    score = f"{found[0].score:.2f}"
    first, again, nothing = told(context)
    assert first == again == {
        "query": "tea at four", "limit": "3", "filter": "tags = 'x' OR pinned = false",
        "timestamp": "2026-01-01T00:00:00.000Z", "results_found": "1", "top_score": score,
    }  # fmt: skip
    assert (nothing["filter"], nothing["results_found"], nothing["top_score"]) == (
        "none",
        "0",
        "0.00",
    )
    assert trail.verify(context, chain(context)) == Sound(
        chain(context), 3, *end(trail.heads(context)[-1])
    )


def test_a_search_writes_nothing_itself(context: Context) -> None:
    add_many(context, [("Tea is at four.", None)])
    with failing(context, AssertionError("a search waits for nothing")) as raised:
        search(context, Request(query="tea"))
    assert raised == []
    assert context.store.count(Kind.BLOCK) == 1
    usage.flush(context)
    assert context.store.count(Kind.BLOCK) == 2
    usage.flush(context)
    assert context.store.count(Kind.BLOCK) == 2


@pytest.mark.req("MESH-057")
def test_query_and_filter_are_masked_before_they_are_written(context: Context) -> None:
    note(context, "mail bob@example.com about tea", filter="metadata.from = 'eve@example.org'")
    usage.flush(context)
    (block,) = trail.blocks(context, chain(context))
    assert "about tea" in block.yamo_text
    assert "metadata.from" in block.yamo_text
    assert "example" not in block.yamo_text


@pytest.mark.parametrize(
    "query",
    ["half \ud83d a pair", "nul \0 inside", "a;b\nagent: x;\n", "\x1b[31m", "é" * 99_999, " "],
)
def test_whatever_was_looked_for_can_be_written(context: Context, query: str) -> None:
    note(context, query, filter=query)
    usage.flush(context)
    assert len(told(context)) == 1
    assert isinstance(trail.verify(context, chain(context)), Sound)


@pytest.mark.parametrize("off", ["enable_yamo", "audit_recalls", "enable_memory"])
def test_where_it_is_switched_off_searches_leave_nothing(context: Context, off: str) -> None:
    note(context.with_options(**{off: False}), "tea")
    usage.close(context.with_options(**{off: False}))
    usage.close(context)
    assert context.store.count(Kind.BLOCK) == 0
    note(context, "tea")
    usage.close(context)
    assert context.store.count(Kind.BLOCK) == 1


@pytest.mark.req("MESH-041")
def test_each_user_and_agent_has_a_chain_of_searches(context: Context) -> None:
    readers = [
        Reader("u", "ann"),
        Reader("u", "bob"),
        Reader("v", "ann"),
        Reader("u", "ann", "session"),
    ]
    for reader in readers:
        note(replace(context, reader=reader), f"{reader.agent_id} of {reader.user_id}")
    usage.flush(context)
    held = {reader: texts(replace(context, reader=reader)) for reader in readers[:3]}
    assert held == {
        readers[0]: ["ann of u", "ann of u"],
        readers[1]: ["bob of u"],
        readers[2]: ["ann of v"],
    }


@pytest.mark.req("MESH-043")
def test_a_clock_that_is_set_back_does_not_reorder_them(context: Context) -> None:
    for query in ("first", "second", "third"):
        note(context, query)
        usage.flush(context)
        context.clock.advance(days=-1)
    assert texts(context) == ["first", "second", "third"]
    assert isinstance(trail.verify(context, chain(context)), Sound)


# --- groups ---


def test_a_full_group_is_written_by_another_thread_and_in_the_order_of_the_searches(
    context: Context,
) -> None:
    queries = [f"query{n}" for n in range(background.LOG_BATCH)]
    note(context, *queries[:-1])
    assert context.state.queues.search_log.writer is None
    note(context, queries[-1])
    context.state.queues.search_log.writer.join()
    assert texts(context) == queries
    assert not context.state.queues.search_log.entries


def test_the_next_search_after_a_minute_has_them_written(context: Context) -> None:
    note(context, "one")
    context.clock.advance(ms=background.LOG_MAX_WAIT_MS - 1)
    note(context, "two")
    assert context.state.queues.search_log.writer is None
    context.clock.advance(ms=1)
    note(context, "three")
    context.state.queues.search_log.writer.join()
    assert texts(context) == ["one", "two", "three"]


def recall(query: str = "q", ms: int = 0) -> SearchEntry:
    return SearchEntry(
        user_id=None,
        agent_id="a",
        session_id=None,
        query=query,
        limit=1,
        filter=None,
        ms=ms,
        results=0,
        top_score=0.0,
    )


def test_long_queries_make_small_groups_and_a_group_is_never_empty() -> None:
    held = SearchLog()
    assert not held.add(recall("x" * (background.LOG_BATCH_CHARS // 2)))
    assert held.add(recall("y" * (background.LOG_BATCH_CHARS // 2)))
    assert held.add(recall("z" * (2 * background.LOG_BATCH_CHARS)))
    assert [len(held.take()) for _ in range(3)] == [2, 1, 0]
    assert held.characters == 0


def test_what_is_put_back_comes_first_and_what_has_no_room_is_the_oldest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(background, "LOG_MAX_PENDING", 3)
    held = SearchLog()
    for query in "abc":
        held.add(recall(query))
    taken = held.take()
    held.add(recall("d"))
    assert held.put_back(taken) == 1
    assert [one.query for one in held.entries] == ["b", "c", "d"]
    assert held.put_back([recall("e")]) == 1
    assert held.characters == 3


def test_threads_that_search_at_once_lose_nothing(context: Context) -> None:
    def many(n: int) -> None:
        note(context, *(f"{n} {at}" for at in range(300)))

    threads = [Thread(target=many, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    usage.close(context)
    assert sorted(texts(context)) == sorted(f"{n} {at}" for n in range(4) for at in range(300))
    assert isinstance(trail.verify(context, chain(context)), Sound)


# --- a store that does not take them ---


@pytest.mark.req("MESH-043")
def test_a_lost_race_for_the_head_is_run_again(context: Context) -> None:
    note(context, "tea")
    with failing(context, Conflict("the head moved"), times=3) as raised:
        usage.flush(context)
    assert len(raised) == 3
    assert texts(context) == ["tea"]


def test_a_store_for_reading_only_gets_nothing_and_nobody_is_warned(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    note(context, "tea")
    with failing(context, StoreReadOnly("opened for reading only")) as raised:
        usage.close(context)
    assert len(raised) == 1
    assert caplog.records == []
    assert not context.state.queues.search_log.entries


def test_entries_that_a_full_store_refuses_are_dropped_with_one_warning(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    with failing(context, StoreFull("the disk is full")):
        note(context, "one", "two")
        usage.flush(context)
        note(context, "three")
        usage.close(context)
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "2 searches left no block" in caplog.text
    assert "the disk is full" in caplog.text
    assert context.state.queues.search_log.lost == 3
    note(context, "four")
    usage.close(context)
    assert texts(context) == ["four"]


def test_entries_wait_while_the_store_is_busy_and_closing_logs_what_is_lost(
    context: Context, caplog: pytest.LogCaptureFixture
) -> None:
    with failing(context, StoreBusy("others hold it")):
        note(context, "one", "two")
        usage.flush(context)
        assert len(context.state.queues.search_log.entries) == 2
    usage.flush(context)
    assert texts(context) == ["one", "two"]
    assert caplog.records == []
    with failing(context, StoreBusy("others hold it")):
        note(context, "three")
        usage.close(context)
    assert "1 searches left no block" in caplog.text
    assert not context.state.queues.search_log.entries


# --- how long they are kept ---


def aged(context: Context, *days: float) -> None:
    """A search so many days ago, for each."""
    now = context.clock.ms
    for ago in days:
        context.clock.ms = now - round(ago * 86_400_000)
        note(context, f"{ago} days ago")
        usage.flush(context)
    context.clock.ms = now


def test_old_searches_go_and_a_checkpoint_names_the_last_of_them(context: Context) -> None:
    aged(context, 100, 95, 91, 89, 1)
    whole = trail.blocks(context, chain(context))
    done = trail.prune(context)
    left = trail.blocks(context, chain(context))
    assert (done.removed, done.broken) == (3, ())
    assert [block.id for block in left] == [whole[3].id, whole[4].id, *done.checkpoints]
    assert sealed_through(left[-1].yamo_text) == (3, *end(whole[2]))
    assert trail.verify(context, chain(context)) == Sound(chain(context), 6, *end(left[-1]))


def test_pruning_again_does_nothing_until_more_is_old(context: Context) -> None:
    aged(context, 100, 1)
    assert trail.prune(context).removed == 1
    for _ in range(2):
        assert trail.prune(context) == Pruned()
    context.clock.advance(days=91)
    note(context, "fresh")
    usage.flush(context)
    assert trail.prune(context).removed == 2  # the search, and the checkpoint behind it
    assert [block.number for block in trail.blocks(context, chain(context))] == [4, 5]
    assert isinstance(trail.verify(context, chain(context)), Sound)
    context.clock.advance(days=365)
    assert trail.prune(context).removed == 2
    context.clock.advance(days=365)
    assert trail.prune(context) == Pruned()  # a checkpoint alone stays
    assert isinstance(trail.verify(context, chain(context)), Sound)


def test_a_long_chain_is_pruned_in_steps(context: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trail, "_PRUNED_AT_ONCE", 3)
    aged(context, *[100.0] * 8, 1)
    done = trail.prune(context)
    assert (done.removed, len(done.checkpoints)) == (8, 3)
    assert [block.number for block in trail.blocks(context, chain(context))] == [9, 10, 11, 12]
    assert isinstance(trail.verify(context, chain(context)), Sound)


def test_behind_a_younger_search_an_older_one_stays_for_a_chain_has_no_gap(
    context: Context,
) -> None:
    aged(context, 100, 10, 100, 1)
    assert trail.prune(context).removed == 1
    assert [block.number for block in trail.blocks(context, chain(context))] == [2, 3, 4, 5]


def test_memories_and_other_users_keep_their_blocks(context: Context) -> None:
    add_many(context, [("old", None)])
    other = replace(context, reader=Reader("v", "ann"))
    aged(other, 100)
    aged(replace(context, reader=Reader("u", "bob")), 100)
    context.clock.advance(days=400)
    done = trail.prune(context)
    assert done.removed == 1  # bob is of the same user
    assert [verdict.number for verdict in trail.verify_all(context)] == [1, 2]
    assert texts(other) == ["100 days ago"]


@pytest.mark.req("MESH-042")
def test_a_broken_chain_is_left_as_it_is(context: Context) -> None:
    aged(context, 100, 99, 98, 1)
    blocks = trail.blocks(context, chain(context))
    # A cut that a checkpoint would cover up.
    context.store.apply((), [Key(Kind.BLOCK, blocks[0].id)])
    done = trail.prune(context)
    assert (done.removed, [broken.number for broken in done.broken]) == (0, [1])
    assert trail.blocks(context, chain(context)) == blocks[1:]


@pytest.mark.req("MESH-043")
@pytest.mark.parametrize("meddler", ["searches", "prunes"])
def test_concurrent_searches_and_pruning_break_no_chain(context: Context, meddler: str) -> None:
    aged(context, 100, 99, 1)
    find, left = context.store.find, [True] * 2

    def meddled(kind: Kind, *args: object, **options: object) -> object:
        rows = find(kind, *args, **options)
        if kind is Kind.BLOCK and left:
            left.pop()
            context.store.find = find
            aged(context, 100) if meddler == "searches" else trail.prune(context)
            context.store.find = meddled
        return rows

    context.store.find = meddled
    trail.prune(context)
    context.store.find = find
    assert left == []
    assert isinstance(trail.verify(context, chain(context)), Sound)
    assert "99 days ago" not in texts_of_searches(context)


def texts_of_searches(context: Context) -> list[object]:
    return [said.get("query") for said in told(context)]


@pytest.mark.parametrize("days", [-1, float("nan"), float("inf"), "90", None, True])
def test_a_time_that_is_none_is_refused(context: Context, days: object) -> None:
    with pytest.raises(InvalidInput, match="older_than_days"):
        trail.prune(context, older_than_days=days)


def test_where_memory_is_off_nothing_is_pruned(context: Context) -> None:
    with pytest.raises(MemoryDisabled):
        trail.prune(context.with_options(enable_memory=False))


# --- any history, any meddling ---

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("search"), st.integers(0, 2)),
        st.tuples(st.sampled_from(["add", "change", "erase"]), st.integers(0, 2)),
        st.tuples(st.just("prune"), st.just(0)),
        st.tuples(st.just("clock"), st.sampled_from([-2, 5, 100])),
    ),
    min_size=3,
    max_size=10,
)


def lived(steps: list[tuple[str, int]]) -> Context:
    """A history of two agents, with all that may happen to a chain."""
    store = RamStore()
    context = Context(
        store=store, index=LocalIndex(store, language="english"),
        clock=FakeClock(), ids=seeded_ids(), reader=Reader("u", "ann"), pause=no_pause,
    )  # fmt: skip
    add_many(context, [("the first", None)])
    note(context, "first")
    usage.flush(context)
    for n, (what, which) in enumerate(steps):
        context.clock.advance(seconds=1)
        act(replace(context, reader=Reader("u", "bob" if n % 3 == 2 else "ann")), n, what, which)
    return context


def act(context: Context, n: int, what: str, which: int) -> None:
    held = sorted(context.store.ids(Kind.MEMORY))
    if what == "clock":
        context.clock.advance(days=which)
    elif what == "search":
        note(context, *(f"query {n} {at}" for at in range(which + 1)))
        usage.flush(context)
    elif what == "prune":
        trail.prune(context)
    elif what == "add" or not held:
        add_many(context, [(f"text {n}", None)])
    elif what == "change":
        write.update(context, held[which % len(held)], content=f"changed {n}")
    else:
        erase.delete(context, [held[which % len(held)]])


# The last digits of an id, and what a block's metadata carries beside the action, no text speaks
# of.
UNSEALED = {"revision"}
SEALED = [field.name for field in fields(Block) if field.name not in UNSEALED]


def altered(block: Block, name: str, draw: Callable[[st.SearchStrategy[object]], object]) -> Block:
    was = getattr(block, name)
    if name in ("number", "memory_revision"):
        other: object = (was or 0) + draw(st.integers(-9, 9).filter(bool))
    elif name == "metadata":
        other = draw(st.sampled_from([{"action": "forged"}, {"action": None}, {}, None]))
    elif name == "id":
        other = block.id.replace(f"_{block.operation_type}_", "_other_")
    elif name == "created_at":
        other = draw(st.sampled_from(["1999-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z"]))
    elif name == "operation_type":
        other = draw(st.sampled_from(audit.OPERATIONS))
    else:
        other = draw(st.sampled_from(["forged", (was or "x")[:-1] + "?", "0" * 64]))
    return replace(block, **{name: other})


def says_as_much(one: Block, other: Block) -> bool:
    """Whether they differ in nothing that a text speaks of."""
    plain = [replace(block, metadata=None) for block in (one, other)]
    actions = [(block.metadata or {}).get("action") for block in (one, other)]
    same = plain[0] == plain[1] and actions[0] == actions[1]
    return same and not (one.operation_type == "recall" and other.metadata is not None)


@pytest.mark.req("MESH-042", "MESH-012")
@given(STEPS, st.data())
def test_any_history_is_sound_and_any_meddling_with_any_row_of_any_chain_is_found(
    steps: list[tuple[str, int]], data: st.DataObject
) -> None:
    context = lived(steps)
    assert {type(verdict) for verdict in trail.verify_all(context)} == {Sound}
    every = [Block.of(row) for row in context.store.find(Kind.BLOCK)]
    block = data.draw(st.sampled_from(every))
    meddling = data.draw(st.sampled_from(["remove", "alter", "insert", "cut the end", "head"]))
    if meddling == "remove":
        context.store.apply((), [Key(Kind.BLOCK, block.id)])
    elif meddling == "alter":
        other = altered(block, data.draw(st.sampled_from(SEALED)), data.draw)
        if says_as_much(block, other):
            return
        context.store.apply((), [Key(Kind.BLOCK, block.id)])
        context.store.apply([other.row()])
    elif meddling == "insert":
        number = data.draw(st.integers(-1, len(every) + 3))
        context.store.apply([replace(block, id="yamo_forged", number=number, revision=1).row()])
    elif meddling == "cut the end":
        end = max(
            (other for other in every if other.chain == block.chain), key=lambda other: other.number
        )
        context.store.apply((), [Key(Kind.BLOCK, end.id)])
    else:
        head = Head.of(context.store.get(Kind.HEAD, [block.chain])[block.chain])
        forged = replace(head, number=head.number - 1, revision=head.revision + 1)
        context.store.apply([forged.row()] if data.draw(st.booleans()) else (), [])
        if context.store.get(Kind.HEAD, [block.chain])[block.chain].revision == head.revision:
            context.store.apply((), [Key(Kind.HEAD, block.chain)])
    assert Broken in {type(verdict) for verdict in trail.verify_all(context)}


def test_a_write_of_many_counts_reads_the_version_of_each_partition_once(
    context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = add_many(context, [f"The lamp number {at} hangs in the hall." for at in range(5)])
    usage.count(context, [memory.id for memory in found])
    version, asked = context.store.version, list[str]()
    monkeypatch.setattr(context.store, "version", lambda name: asked.append(name) or version(name))
    usage.flush(context)
    stored = context.store.get(Kind.USAGE, [memory.id for memory in found])
    assert {row.fields["access_count"] for row in stored.values()} == {1}
    assert asked
    assert len(asked) == len({*asked})
