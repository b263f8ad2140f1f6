"""Recognise what changed, and let people see and correct it.

New memories are compared with older ones in the background, when nobody has written for a moment.
What is judged is what the store's feed of changes names since the last time. So nothing more is
written when a memory is added, and a process that ends leaves the rest to the next one, or to the
heartbeat. A crash loses nothing: at worst some memories are judged twice.
"""

import logging
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from hashlib import sha256
from operator import attrgetter

from memory_mesh.core import model
from memory_mesh.core.claims import trust_of
from memory_mesh.core.claims.updates import (
    ASSISTANT,
    BOTH_HOLD,
    CONFIRMED,
    DECIDED,
    ENDS,
    MAY_UPDATE,
    MIN_COSINE,
    NEAREST,
    UPDATES,
    Update,
    Updates,
    can_change,
    is_judged,
    is_named,
    lines,
    link_type,
    reason,
    said_at,
    same_readers,
    same_session,
    says_something,
    stated_changes,
    statement,
)
from memory_mesh.core.errors import InvalidInput, MemoryMeshError, StoreError, number, shown
from memory_mesh.core.graph import link
from memory_mesh.core.model import (
    ANYTHING,
    Compare,
    In,
    Key,
    Kind,
    Link,
    Memory,
    MemoryRecord,
    Meta,
    Reader,
    Row,
    all_of,
    batches,
    equals,
    iso,
    millis,
    partitions,
    visible_to,
)
from memory_mesh.core.model.background import uncancellable
from memory_mesh.core.ports import Likely, PairJudge
from memory_mesh.core.search import Query
from memory_mesh.flows.audit.chains import own_audit_rows
from memory_mesh.flows.context import (
    Context,
    Plan,
    commit,
    find_memory,
    intact,
    read_once,
    require_memory,
)
from memory_mesh.flows.graph.links import read_active
from memory_mesh.flows.search.readable import records
from memory_mesh.flows.search.reads import checked_limit
from memory_mesh.flows.search.search import (
    Request,
    checked_query,
    known_newer,
    links_of_changes,
    read_updates,
    search,
)
from memory_mesh.flows.write.revisions import revise

_POOL = 40  # candidates of each channel
_BY_VECTORS = 4  # of those that are compared; the others share most words
_AT_ONCE = 20  # memories until the progress is stored
_READ_AT_ONCE = 500
_ABOUT = 20  # memories about a subject
_MOST_LIKELY = 0.9999  # only a person is certain
_MAX_SECONDS = 3600.0  # in which a caller waits for memories to be judged
_log = logging.getLogger("memory_mesh")

GoOn = Callable[[], bool]


def _always() -> bool:
    return True


# --- in the background ---


def judge_quietly(context: Context, go_on: GoOn) -> None:
    """Compare what is new with what is older. What fails is left to the next process, or to the
    heartbeat."""
    try:
        with uncancellable():
            judge_new(context, go_on)
    except StoreError:
        return  # such as a store that was closed or is busy
    except MemoryMeshError as error:
        if "judge" not in context.state.warned:
            context.state.warned.add("judge")
            _log.warning("changes are not recognised: %s", error)


def judge_for(context: Context, seconds: float) -> int:
    """Call `judge_new` for about so long; the next call goes on."""
    end = context.clock() + 1000 * seconds
    return judge_new(context, lambda: context.clock() < end, wait=seconds)


def judge_new(context: Context, go_on: GoOn = _always, *, wait: float = -1) -> int:
    """Compare the memories that are new or changed since the last time with older ones, and link
    them to what they change. Return how many were judged; none if another thread judges longer than
    `wait` seconds."""
    judge, running = context.models.judge, context.state.queues.changes.running
    if judge is None or not context.options.enable_memory or not context.file.is_prepared():
        return 0
    if not running.acquire(timeout=wait):
        return 0
    try:
        names = partitions(context.reader)
        return sum(_Partition(context, judge, name).run(go_on) for name in names)
    finally:
        running.release()


@dataclass(frozen=True, slots=True)
class _Progress:
    """How far a partition was judged: all that changed until the mark `since`; and of what changed
    from there, at least until `mark`, the memories up to `cursor` (None: all)."""

    since: str | None = None
    mark: str | None = None
    cursor: str | None = ""
    at: str = ""  # the time of `since`
    next_at: str = ""  # the time of `mark`

    @classmethod
    def of(cls, detail: dict[str, model.Value]) -> "_Progress":
        if not isinstance(detail.get("at"), str):  # none is stored yet, or somebody edited it
            return cls()
        since, mark, cursor = (
            str(value) if (value := detail.get(name)) is not None else None
            for name in ("since", "mark", "cursor")
        )
        return cls(since, mark, cursor, str(detail["at"]), str(detail.get("next_at") or ""))


@dataclass(frozen=True, slots=True)
class _Partition:
    """The memories of a partition that are to be judged."""

    context: Context
    judge: PairJudge
    name: str

    def run(self, go_on: GoOn) -> int:
        """Judge what is new, oldest first, and return how many memories that were."""
        done, judged = _Progress.of(self._meta().detail), 0
        while True:
            at, mark = iso(self.context.clock()), self._mark(done.mark)
            if done.cursor is None:
                if mark == done.mark:
                    return judged
                # What changed since the mark is next.
                done = _Progress(done.mark, mark, "", done.at, at)
            elif done.mark is None:
                done = replace(done, mark=mark, next_at=at)
            waiting = [row for row in self._changed(done.since, done.at)
                       if _position(row) > (done.cursor or "")]  # fmt: skip
            for some in batches(waiting, _AT_ONCE):
                for row in some:
                    if not (go_on() and _judge_memory(self.context, self.judge, row.id)):
                        return judged
                    judged += 1
                done = replace(done, cursor=_position(some[-1]))
                self._store(done)
            done = _Progress(done.mark, done.mark, None, done.next_at)
            self._store(done)

    def _mark(self, since: str | None) -> str:
        return self.context.store.changes(self.name, since).mark

    def _changed(self, since: str | None, at: str) -> list[Row]:
        """Return the memories whose text is new since a mark or a time, oldest first."""
        store = self.context.store
        keys = store.changes(self.name, since).keys if since else None
        if keys is None:  # unknown
            newer = Compare("updated_at", ">=", at) if at else ANYTHING
            ids = store.ids(Kind.MEMORY, all_of(equals("partition", self.name), newer))
        else:
            ids = list(dict.fromkeys(key.id for key in keys if key.kind is Kind.MEMORY))
        rows = [
            row for row in _rows(self.context, ids)
            if row.partition == self.name
            and (row.revision == 1 or str(row.value("updated_at") or "") >= at)
        ]  # fmt: skip
        return sorted(rows, key=_position)

    def _meta(self) -> Meta:
        return Meta.read(self.context.store, progress_of(self.name))

    def _store(self, done: _Progress) -> None:
        detail: dict[str, model.Value] = {**asdict(done)}
        commit(self.context, lambda: Plan(None, [self._meta().row(detail, at=done.next_at)]))


def progress_of(partition: str) -> str:
    """Return the name under which the progress of a partition is stored. The name of a user is not
    stored with it."""
    return f"judged {sha256(partition.encode()).hexdigest()[:16]}"


def _position(row: Row) -> str:
    return f"{row.created_at} {row.id}"


def _rows(context: Context, ids: Sequence[str]) -> Iterable[Row]:
    for some in batches(ids, _READ_AT_ONCE):
        yield from context.store.get(Kind.MEMORY, some).values()


# --- one memory ---


def _judge_memory(
    context: Context, judge: PairJudge, memory_id: str, *, with_newer: bool = True
) -> bool:
    """Compare a memory with older ones, and link it to those that it changes. If its text was
    edited, the newer ones that changed the old text are judged again first. Return whether the
    judge can be used."""
    sound = intact(context, _rows(context, [memory_id]))
    if not sound or not is_judged(newer := Memory.of(sound[0])) or _is_talk(context, newer):
        return True
    owner = Reader(newer.user_id, newer.agent_id, newer.session_id, newer.project)
    reading, is_edited = replace(context, reader=owner), newer.revision > 1
    if is_edited and with_newer:
        again = [link.ref for link in _links_at(reading, "target", newer.id)]
        if not all(_judge_memory(context, judge, id_, with_newer=False) for id_ in again):
            return False
    older = nearest_older(reading, newer) if says_something(newer) else []
    if says_something(newer) and (is_edited or not with_newer):  # it may have links
        older += _linked(reading, newer, without={memory.id for memory in older})
    compared = [(statement(memory), statement(newer)) for memory in older]
    found = judge.judge(compared) if compared else []
    if compared and not found:
        return False
    stated = stated_changes(newer, older)
    likely = {
        memory.id: max(said, stated.get(memory.id, said), key=attrgetter("change"))
        for memory, said in zip(older, found, strict=True)
    }
    if any(map(link_type, likely.values())) or is_edited or not with_newer:
        commit(reading, lambda: _plan_links(reading, newer.id, likely, judge.version))
    return True


def nearest_older(context: Context, newer: Memory) -> list[Memory]:
    """Return the older memories that a memory may change: the nearest by vectors, and those that
    share most words and are not far."""
    query = Query(
        tokens=newer.keywords, vector=newer.vector, reader=context.reader, at=iso(context.clock())
    )
    snapshot = context.index.snapshot(context.reader)
    pool = snapshot.candidates(query, size=_POOL)
    cosines = dict(zip(pool.ids, pool.signals["vectors"].tolist(), strict=True))
    ids = [id_ for id_ in pool.ids if newer.vector is None or cosines[id_] >= MIN_COSINE]
    changed = read_updates(context, snapshot.data_version)
    # What this memory itself changed is judged again.
    others, at = known_newer(context, changed, ids) - {newer.id}, iso(context.clock())
    unchanged = [id_ for id_ in ids if not changed.changed_by(id_, others, at)]
    current = {memory.id: memory for memory in _older(context, newer, unchanged)}

    def best(signal: str) -> list[str]:
        scored = zip(pool.signals[signal].tolist(), pool.ids, strict=True)
        return [id_ for score, id_ in sorted(scored, reverse=True) if score > 0 and id_ in current]

    chosen = dict.fromkeys([*best("vectors")[:_BY_VECTORS], *best("keywords"), *best("vectors")])
    return [current[id_] for id_ in list(chosen)[:NEAREST]]


def _older(context: Context, newer: Memory, ids: Sequence[str]) -> list[Memory]:
    """Return those of these memories that a newer one can change."""
    memories = map(Memory.of, intact(context, _rows(context, ids)))
    return [
        memory for memory in memories if can_change(newer, memory) and not _is_talk(context, memory)
    ]


def _is_talk(context: Context, memory: Memory) -> bool:
    """Return whether a memory is a turn of a conversation of people, and no assistant takes part in
    any: the judge takes their half-sentences for changes."""
    if memory.session_id is None or memory.turn is None or not is_named(memory):
        return False
    where = all_of(equals("partition", memory.partition), equals("speaker", ASSISTANT))
    return read_once(
        context, context.store.data_version(), ("talk", memory.partition),
        lambda: not context.store.find(Kind.MEMORY, where, limit=1),
    )  # fmt: skip


def _linked(context: Context, newer: Memory, *, without: Container[str]) -> list[Memory]:
    """Return the memories that a memory changed or may have changed, as far as it still can."""
    targets = [link.target for link in _links_at(context, "ref", newer.id)]
    return _older(context, newer, [id_ for id_ in targets if id_ not in without])


def _plan_links(
    context: Context, newer_id: str, likely: Mapping[str, Likely], version: str
) -> Plan[None]:
    """Link a memory to those of the compared ones that it changes, and to no others of them. What a
    person decided stays, and so does what is trusted more."""
    seen = {name: context.store.version(name) for name in partitions(context.reader)}
    known = {link.id: link for link in _links_at(context, "ref", newer_id)}
    ids = [newer_id, *likely, *(link.target for link in known.values())]
    memories = {row.id: Memory.of(row) for row in intact(context, _rows(context, ids))}
    newer, ms = memories.pop(newer_id, None), context.clock()
    if newer is None or not is_judged(newer):
        return Plan(None)
    # Said the other way round, it is decided, too.
    back = _links_at(context, "target", newer_id)
    decided = {link.target for link in known.values() if link.similarity == CONFIRMED}
    decided |= {link.ref for link in back}
    trust = trust_of(newer, ms).value
    made = [
        _link(newer, older, type_, min(says.change, _MOST_LIKELY))
        for id_, says in likely.items()
        if (type_ := link_type(says)) is not None
        and id_ not in decided
        and (older := memories.get(id_)) is not None
        and can_change(newer, older)
        # What is said next about the same is seldom a change.
        and not (type_ == MAY_UPDATE and same_session(newer, older))
        and trust_of(older, ms).value <= trust
    ]
    # What a person decided holds since the newer memory does, too.
    made += [replace(link, created_at=said_at(newer)) for link in known.values()
             if link.similarity == CONFIRMED]  # fmt: skip
    # What cannot be compared now, such as an archived memory, keeps its link.
    gone = [
        link
        for link in known.values()
        if link.similarity
        and link.id not in {other.id for other in made}
        and (
            link.target in likely
            or not says_something(newer)
            or ((older := memories.get(link.target)) and is_judged(older)
                and not can_change(newer, older))
        )
    ]  # fmt: skip
    told = [link for link in made if link.id not in known and link.link_type != MAY_UPDATE]
    return Plan(
        None,
        [
            *(_history(context, newer, told, version) if told else ()),
            *_rewritten(made, known, newer.partition),
        ],
        [Key(Kind.LINK, link.id) for link in sorted(gone, key=lambda link: link.id)],
        seen,
    )


def _rewritten(made: Iterable[Link], known: Mapping[str, Link], partition: str) -> list[Row]:
    """Return the rows of links that are new, or not as they were."""
    rows = list[Row]()
    for one in made:
        before = known.get(one.id)
        if before is None:
            rows.append(one.row(partition))
        elif (before.created_at, before.similarity) != (one.created_at, one.similarity):
            new = replace(one, revision=before.revision + 1)
            rows.append(new.row(partition, replaces=before.revision))
    return rows


def _links_at(context: Context, end: str, memory_id: str) -> list[Link]:
    """Return the links of a memory to those that it changed or may have changed (`ref`), or from
    those that changed it (`target`)."""
    where = all_of(equals(end, memory_id), In("link_type", (*DECIDED, MAY_UPDATE)))
    rows = context.store.find(Kind.LINK, all_of(visible_to(context.reader), where))
    return [Link.of(row) for row in rows]


def _link(newer: Memory, older: Memory, type_: str, likely: float) -> Link:
    """Return a link that begins when the newer memory does."""
    return link(newer, older, type_, millis(said_at(newer)), round(likely, 4))


def _history(context: Context, newer: Memory, made: Sequence[Link], version: str) -> list[Row]:
    """Return the next revision of a memory, whose history names the links, and its audit block."""
    links = [reason(one.link_type, one.target, one.similarity or 0.0, version) for one in made]
    revised, change, entry = revise(
        context, context.clock(), newer, action="changes", detail={"links": links}
    )
    return [revised.row(replaces=newer.revision), change, *own_audit_rows(context, [entry])]


# --- for people ---


def changes(
    context: Context, about: str | None = None, *, limit: int = 100, seconds: float = 5.0
) -> list[Update]:
    """Return what changed, newest first: all of it, or the lines of a memory, or of the memories
    that a search for a subject finds. Memories that wait are judged first, for so many seconds, if
    the judge needs no download."""
    most, judge = checked_limit(limit), context.models.judge
    number("seconds", seconds, min_=0.0, max_=_MAX_SECONDS, expected="0 to 3600 seconds")
    if judge is not None and judge.is_ready():
        with suppress(StoreError):  # it can be read only, or is busy
            context.file.check_writable()
            if about is not None and find_memory(context, about):
                _judge_memory(context, judge, about)
            judge_for(context, seconds)
    links = links_of_changes(context)
    if about is not None:
        links = _of_lines(links, _ids_about(context, about))
    links.sort(key=lambda one: (one.created_at, one.ref, one.target), reverse=True)
    found = list[Update]()
    for some in batches(links, _READ_AT_ONCE):
        found += _updates(context, some)
        if len(found) >= most:
            break
    return found[:most]


def _updates(context: Context, links: Sequence[Link]) -> list[Update]:
    """Return the changes of links between memories that are active and visible to the reader."""
    memories = read_active(context, [id_ for one in links for id_ in (one.ref, one.target)])
    return _updates_of(links, records(context, [*memories.values()]))


def _updates_of(links: Sequence[Link], memories: Iterable[MemoryRecord]) -> list[Update]:
    seen = {one.id: one for one in memories}
    return [
        Update(
            newer=seen[one.ref], older=seen[one.target], type=one.link_type,
            probability=one.similarity or 0.0, at=one.created_at,
        )
        for one in links if seen.keys() >= {one.ref, one.target}
    ]  # fmt: skip


def _of_lines(links: Sequence[Link], ids: set[str]) -> list[Link]:
    """Return the links of the lines of these memories."""
    line = lines(links)
    wanted = {line[id_] for id_ in ids if id_ in line}
    wanted_ids = ids | {id_ for id_ in line if line[id_] in wanted}
    return [one for one in links if {one.ref, one.target} & wanted_ids]


def _ids_about(context: Context, about: str) -> set[str]:
    subject = checked_query(about)
    if find_memory(context, subject):
        return {subject}
    request = Request(query=subject, limit=_ABOUT, mode="precise")
    return {result.id for result in search(context, request)}


def confirm(context: Context, newer_id: str, older_id: str) -> Update:
    """Say that the newer memory ends the older one, if the judge found that, or else replaces
    it."""
    return _decide(context, newer_id, older_id, None)


def undo(context: Context, newer_id: str, older_id: str) -> Update:
    """Say that both memories hold."""
    return _decide(context, newer_id, older_id, BOTH_HOLD)


def _decide(context: Context, newer_id: str, older_id: str, decided: str | None) -> Update:
    """Store what a person says of two memories. The judge does not decide on them again."""

    def plan() -> Plan[Update]:
        seen = {name: context.store.version(name) for name in partitions(context.reader)}
        newer, older = require_memory(context, newer_id), require_memory(context, older_id)
        if newer.id == older.id:
            raise InvalidInput(f"{shown(newer_id)} is both memories", expected="two memories")
        if not same_readers(newer, older):
            raise InvalidInput(
                f"{newer_id} and {older_id} are not visible to the same agents, sessions and "
                "projects", expected="two memories of one scope",
            )  # fmt: skip
        if said_at(newer) < said_at(older):
            raise InvalidInput(
                f"{newer_id} was said before {older_id}", expected="the newer memory first"
            )
        back = [link for link in _links_at(context, "ref", older_id) if link.target == newer_id]
        if decided is None and said_at(newer) == said_at(older):
            others = (link for link in links_of_changes(context) if link not in back)
            if older_id in Updates.of(others).newer_than([newer_id]):
                raise InvalidInput(
                    f"{older_id} is the newer one by other changes", remedy="undo these first"
                )
        links = [one for one in _links_at(context, "ref", newer_id) if one.target == older_id]
        known = {one.link_type: one for one in links}
        type_ = decided or (ENDS if ENDS in known else UPDATES)
        made, same = _link(newer, older, type_, CONFIRMED), known.pop(type_, None)
        [answer] = _updates_of([made], records(context, [newer, older]))
        if same and (same.similarity, same.created_at) == (CONFIRMED, made.created_at):
            return Plan(answer)
        before = same.revision if same else 0
        row = replace(made, revision=before + 1).row(newer.partition, replaces=before)
        # Said the other way round, it is taken back.
        gone = [Key(Kind.LINK, one.id) for one in (*known.values(), *back)]
        return Plan(answer, [*_history(context, newer, [made], "a person"), row], gone, seen)

    return commit(context, plan)
