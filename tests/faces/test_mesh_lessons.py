"""Lessons through the mesh: one for each pattern, visible to the right readers, sealed, and
erased with their sources."""

import asyncio
import re
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from threading import Barrier, Thread

import pytest

from memory_mesh import AsyncMemoryMesh, MemoryMesh
from memory_mesh.core import audit
from memory_mesh.core.audit import check_lesson, parse
from memory_mesh.core.errors import InvalidInput, KeyReused, MemoryDisabled, StoreReadOnly
from memory_mesh.core.learning import LessonBlock, LessonContext
from memory_mesh.core.model import Kind, Vector
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import NEW_YEAR, Recorder

from .house import House, whole

LESSON: dict[str, object] = {
    "situation": "The deploy failed with 401.",
    "error_pattern": "token_expired",
    "oversight": "Nobody looked at the expiry.",
    "fix": "A new token.",
    "preventative_rule": "Refresh the token before a deploy.",
    "severity": "high",
    "applicable_scope": "deploys",
}
PATTERN = sha256(b"token_expireddeploys").hexdigest()[:16]
FAILURE = {
    "status": "error",
    "error_pattern": "token_expired",
    "preventative_rule": "Refresh the token first.",
}


def rows(house: House) -> dict[str, int]:
    """Everything that a lesson could be written into."""
    return {kind.value: house.store.count(kind) for kind in Kind if kind is not Kind.USAGE}


def versions(house: House) -> list[tuple[str, int]]:
    return sorted(
        (row.id, row.revision)
        for kind in Kind
        if kind is not Kind.USAGE
        for row in house.store.find(kind)
    )


def rules(found: Sequence[LessonBlock]) -> list[str]:
    return [lesson.preventative_rule for lesson in found]


# --- what is kept ---


@pytest.mark.req("MESH-146", "MESH-087", "MESH-023", "MESH-063", "MESH-066")
def test_a_lesson_is_a_memory_of_its_own_kind(house: House, mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson(LESSON)
    memory = house.memory(lesson.memory_id)
    assert (memory.memory_type, memory.tags, memory.metadata["tags"]) == (
        "lesson",
        ["#lesson_learned"],
        ["#lesson_learned"],
    )
    assert (memory.lesson_pattern_id, memory.importance, memory.confidence) == (PATTERN, 0.75, 0.7)
    assert memory.content.startswith("Refresh the token before a deploy.\n")
    assert {name: memory.metadata[name] for name in LESSON} == LESSON
    assert memory.metadata["lesson_id"] == lesson.lesson_id
    assert re.fullmatch(rf"lesson_{NEW_YEAR}_[0-9a-f]{{6}}", lesson.lesson_id)
    assert (memory.agent_id, memory.session_id, memory.reach, memory.status) == (
        "ann",
        None,
        None,
        "active",
    )


@pytest.mark.req("MESH-088")
def test_the_answer_is_the_lesson_with_its_block(mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson({**LESSON, "confidence": 0.85})
    assert (lesson.pattern_id, lesson.severity, lesson.rule_confidence) == (PATTERN, "high", 0.85)
    assert (lesson.preventative_rule, lesson.applicable_scope) == (
        "Refresh the token before a deploy.",
        "deploys",
    )
    assert lesson.wire_format
    assert mesh.distill_lesson(LessonContext(**{**LESSON, "confidence": 0.85})) == lesson  # type: ignore[arg-type]


@pytest.mark.req("MESH-146", "MESH-060", "MESH-061", "MESH-063", "MESH-064", "MESH-044")
def test_the_block_is_the_documents_and_sealed_with_the_memory(house: House) -> None:
    recorder = Recorder()
    lesson = house.mesh(step=recorder).distill_lesson(LESSON)
    (block,) = house.blocks()
    assert (block.operation_type, block.ref, block.yamo_text) == (
        "lesson",
        lesson.memory_id,
        lesson.wire_format,
    )
    said = parse(block.yamo_text)
    check_lesson(said)
    assert said.text() == block.yamo_text
    assert said.handoff == "SubconsciousReflector"
    context, output, meta = dict(said.context), dict(said.output), dict(said.meta)  # type: ignore[arg-type]
    assert (context["error_pattern"], context["original_context"]) == (
        PATTERN,
        "The deploy failed with 401.",
    )
    assert (output["lesson_id"], output["preventative_rule"]) == (
        lesson.lesson_id,
        "Refresh the token before a deploy.",
    )
    assert (meta["rationale"], meta["applicability_scope"], meta["inverse_lesson"]) == (
        "A new token.",
        "deploys",
        "none",
    )
    assert recorder.names.count("flow.applied") == 1
    assert house.sound()


@pytest.mark.req("MESH-061")
def test_what_succeeds_instead_stands_in_the_block_too(mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson(
        {**LESSON, "inverse_lesson": "Short-lived tokens that renew themselves"}
    )
    assert "\n  inverse_lesson;Short-lived tokens that renew themselves;\n" in str(
        lesson.wire_format
    )


def test_a_lesson_that_was_changed_behind_our_back_is_found(house: House, mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson(LESSON)
    assert house.sound()
    house.change(lesson.memory_id, content="Never refresh a token.")
    assert not house.sound()


@pytest.mark.req("MESH-050")
def test_no_text_of_a_lesson_can_break_out_of_its_line(house: House, mesh: MemoryMesh) -> None:
    nasty = "a;b\nhandoff: End;\r\nagent: x;\u2028meta:\u0085  prev_block;0;"
    texts = {name: f"{name} {nasty}" for name, value in LESSON.items() if name != "severity"}
    lesson = mesh.distill_lesson({**LESSON, **texts, "inverse_lesson": nasty})
    said = parse(str(lesson.wire_format))
    check_lesson(said)
    assert said.handoff == "SubconsciousReflector"
    assert ";" in str(house.memory(lesson.memory_id).metadata["preventative_rule"]), (
        "the memory keeps the original"
    )
    assert house.sound()


def test_agent_names_of_any_alphabet_can_learn(house: House) -> None:
    lesson = house.mesh("müller & söhne").distill_lesson(LESSON)
    assert str(lesson.wire_format).startswith("agent: MemoryMesh_m")
    check_lesson(parse(str(lesson.wire_format)))
    assert house.sound()


@pytest.mark.req("MESH-087", "MESH-065")
@pytest.mark.parametrize(
    "wrong",
    [
        {"severity": "urgent"}, {"severity": None}, {"confidence": 1.01}, {"confidence": "sure"},
        {"situation": ""}, {"error_pattern": "\ud800"}, {"fix": "a\0b"}, {"preventative_rule": 5},
        {"oversight": "x" * 4001}, {"trust": 1.0}, {"user_id": "bob"}, {"tags": ["x"]},
    ],
    ids=str,
)  # fmt: skip
def test_what_is_no_lesson_is_refused_and_leaves_nothing(
    house: House, mesh: MemoryMesh, wrong: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        mesh.distill_lesson({**LESSON, **wrong})
    assert not any(rows(house).values())
    mesh.distill_lesson(LESSON)
    assert any(rows(house).values()), "the same without what is wrong is kept"


def test_the_longest_lesson_can_be_kept_and_found(mesh: MemoryMesh) -> None:
    texts = {name: f"{name} " + "words and " * 398 for name in LESSON if name != "severity"}
    lesson = mesh.distill_lesson({**LESSON, **texts, "inverse_lesson": "x" * 4000})
    assert mesh.query_lessons("oversight") == [lesson]


# --- redaction ---


@pytest.mark.req("MESH-013", "MESH-128")
@pytest.mark.parametrize("mode", ["mask", "pseudonym"])
def test_no_field_of_a_lesson_keeps_a_secret(house: House, mode: str) -> None:
    texts = {
        name: f"{name} of {name}@example.org with ghp_{'a1B2' * 9}"
        for name in LESSON
        if name != "severity"
    }
    given = {**LESSON, **texts, "inverse_lesson": "ask inverse@example.org"}
    open_house = House(open_store("memory://"))
    for home, options in ((open_house, {"redaction": "off"}), (house, {"redaction": mode})):
        mesh = home.mesh(**options)
        told = mesh.distill_lesson(given)
        mesh.distill_lesson({**given, "confidence": 0.9})
        everything = repr([home.store.find(kind) for kind in Kind]) + whole(
            told, mesh.query_lessons()
        )
        kept = home is open_house
        assert ("@example.org" in everything, "ghp_" in everything) == (kept, kept)
    assert house.sound()


def test_a_lesson_with_a_secret_in_its_pattern_is_still_learnt_once(
    house: House, mesh: MemoryMesh
) -> None:
    given = {**LESSON, "error_pattern": "login of ann@example.org failed"}
    assert mesh.distill_lesson(given) == mesh.distill_lesson(given)
    assert len(house.memories()) == 1


# --- one for each pattern ---


@pytest.mark.req("MESH-144")
@pytest.mark.parametrize("sure", [0.7, 0.5, 0.0])
def test_a_lesson_that_is_known_as_surely_is_given_back_and_nothing_is_written(
    house: House, sure: float
) -> None:
    mesh = house.mesh()
    first = mesh.distill_lesson(LESSON)
    before = rows(house), versions(house)
    house.clock.advance(days=1)
    again = mesh.distill_lesson(
        {**LESSON, "preventative_rule": "Something else.", "confidence": sure}
    )
    assert again == first
    assert (rows(house), versions(house)) == before


@pytest.mark.req("MESH-144", "MESH-143")
def test_another_pattern_or_another_scope_is_another_lesson(house: House, mesh: MemoryMesh) -> None:
    mesh.distill_lesson(LESSON)
    mesh.distill_lesson({**LESSON, "error_pattern": "token_missing"})
    mesh.distill_lesson({**LESSON, "applicable_scope": "tests"})
    assert len(house.memories()) == 3
    assert (
        mesh.distill_lesson(
            {**LESSON, "error_pattern": "token_expiredde", "applicable_scope": "ploys"}
        ).pattern_id
        == PATTERN
    )
    assert len(house.memories()) == 3, "plain concatenation, as the document writes it"


@pytest.mark.req("MESH-145")
def test_a_surer_lesson_takes_the_place_of_the_other(house: House) -> None:
    recorder = Recorder()
    mesh = house.mesh(step=recorder)
    old = mesh.distill_lesson(LESSON)
    house.clock.advance(days=1)
    del recorder.names[:]
    new = mesh.distill_lesson(
        {**LESSON, "preventative_rule": "Renew tokens by night.", "confidence": 0.9}
    )
    assert recorder.names.count("flow.applied") == 1
    was, is_ = house.memory(old.memory_id), house.memory(new.memory_id)
    assert (was.status, was.superseded_by, is_.status, is_.supersedes) == (
        "superseded",
        is_.id,
        "active",
        [was.id],
    )
    told = mesh.history(old.memory_id)[-1]
    assert (told.action, told.agent_id, told.before["status"]) == ("supersede", "ann", "active")
    assert [(block.operation_type, block.ref, (block.metadata or {}).get("action"))
            for block in house.blocks()] == [
                ("lesson", was.id, None), ("retain", was.id, "supersede"), ("lesson", is_.id, None),
            ]  # fmt: skip
    assert rules(mesh.query_lessons()) == ["Renew tokens by night."]
    assert [record.id for record in mesh.get_memories_by_pattern(PATTERN)] == [is_.id]
    assert "Refresh the token before a deploy." not in [
        result.content.splitlines()[0] for result in mesh.search("token deploy")
    ]
    assert house.sound()


ODD_PATTERNS = (
    "it's",
    'say "so"',
    "100%",
    "1000",
    "a_b",
    "axb",
    "A_B",
    "%",
    "_",
    "*",
    "a\\b",
    "' OR '1'='1",
    "--",
    "[a]*",
)


@pytest.mark.req("MESH-092")
def test_a_pattern_finds_exactly_its_own_lessons_also_with_quotes_and_wildcards(
    house: House, mesh: MemoryMesh
) -> None:
    ids = {
        odd: mesh.distill_lesson({**LESSON, "error_pattern": f"error {n}"}).memory_id
        for n, odd in enumerate(ODD_PATTERNS)
    }
    for pattern, id_ in ids.items():
        house.change(id_, lesson_pattern_id=pattern)
    found = {
        pattern: [record.id for record in mesh.get_memories_by_pattern(pattern)]
        for pattern in ODD_PATTERNS
    }
    assert found == {pattern: [id_] for pattern, id_ in ids.items()}
    assert [mesh.get_memories_by_pattern(other) for other in ("%%", "a*", "100", "__", "a%")] == [
        []
    ] * 5


@pytest.mark.req("MESH-092")
@pytest.mark.parametrize("status", ["superseded", "disputed", "quarantined", "archived"])
def test_a_lesson_that_is_not_active_is_not_among_those_of_its_pattern(
    house: House, mesh: MemoryMesh, status: str
) -> None:
    lesson = mesh.distill_lesson(LESSON)
    assert [record.id for record in mesh.get_memories_by_pattern(PATTERN)] == [lesson.memory_id]
    house.change(lesson.memory_id, status=status)
    assert mesh.get_memories_by_pattern(PATTERN) == []


@pytest.mark.req("MESH-144", "MESH-145")
def test_the_comparison_is_with_the_best_of_a_pattern(house: House, mesh: MemoryMesh) -> None:
    ids = [
        mesh.distill_lesson({**LESSON, "confidence": sure}).memory_id for sure in (0.5, 0.6, 0.9)
    ]
    for id_ in ids[:2]:  # as if they had been imported: several active lessons of one pattern
        house.change(id_, status="active")
    assert [record.confidence for record in mesh.get_memories_by_pattern(PATTERN)] == [
        0.9,
        0.6,
        0.5,
    ]
    assert mesh.distill_lesson({**LESSON, "confidence": 0.8}).memory_id == ids[2]
    surest = mesh.distill_lesson({**LESSON, "confidence": 0.95})
    assert [record.id for record in mesh.get_memories_by_pattern(PATTERN)] == [surest.memory_id]
    assert set(house.memory(surest.memory_id).supersedes) == set(ids)


def test_an_erased_or_archived_lesson_can_be_learnt_again(house: House, mesh: MemoryMesh) -> None:
    first = mesh.distill_lesson(LESSON)
    mesh.delete(first.memory_id)
    second = mesh.distill_lesson(LESSON)
    house.change(second.memory_id, status="archived")
    third = mesh.distill_lesson(LESSON)
    assert len({first.memory_id, second.memory_id, third.memory_id}) == 3
    assert rules(mesh.query_lessons()) == ["Refresh the token before a deploy."]


def test_two_who_learn_the_same_at_once_leave_one_lesson(house: House) -> None:
    start = Barrier(4)
    told: list[LessonBlock] = []

    def learn(agent: str) -> None:
        mesh = house.mesh(agent)
        start.wait()
        told.append(mesh.distill_lesson(LESSON))

    threads = [Thread(target=learn, args=(f"agent{n}",)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({lesson.memory_id for lesson in told}) == 1
    assert len(told) == 4
    assert len(house.memories()) == 1
    assert house.sound()


@pytest.mark.parametrize("sure", [0.7, 0.9])
def test_what_another_learns_between_deciding_and_writing_is_decided_anew(
    house: House, sure: float
) -> None:
    learnt: list[LessonBlock] = []

    def meanwhile(step: str) -> None:
        if step == "flow.decided" and not learnt:
            learnt.append(house.mesh("bob").distill_lesson(LESSON))

    mine = house.mesh("ann", step=meanwhile).distill_lesson({**LESSON, "confidence": sure})
    assert (mine == learnt[0]) is (sure == 0.7)
    assert house.mesh().query_lessons() == [mine]
    assert house.sound()


def test_every_agent_of_a_user_knows_what_one_of_them_learnt(house: House) -> None:
    lesson = house.mesh("ann").distill_lesson(LESSON)
    assert house.mesh("bob").query_lessons() == [lesson]
    assert house.mesh("bob").distill_lesson(LESSON) == lesson
    better = house.mesh("bob").distill_lesson({**LESSON, "confidence": 0.9})
    assert house.mesh("ann").query_lessons() == [better]
    assert house.sound()


# --- idempotency keys ---


def test_a_repeated_call_under_a_key_keeps_one_lesson_and_gives_back_the_same(
    house: House, mesh: MemoryMesh
) -> None:
    first = mesh.distill_lesson(LESSON, idempotency_key="k")
    better = mesh.distill_lesson({**LESSON, "confidence": 0.9}, idempotency_key="other")
    assert mesh.distill_lesson(LESSON, idempotency_key="k").memory_id == first.memory_id
    assert mesh.distill_lesson({**LESSON, "confidence": 0.9}, idempotency_key="other") == better
    assert len(house.memories()) == 2


def test_a_key_stands_for_one_lesson(mesh: MemoryMesh) -> None:
    mesh.distill_lesson(LESSON, idempotency_key="k")
    for other in (
        {"severity": "low"},
        {"confidence": 0.9},
        {"situation": "x"},
        {"error_pattern": "y"},
    ):
        with pytest.raises(KeyReused):
            mesh.distill_lesson({**LESSON, **other}, idempotency_key="k")
    with pytest.raises(KeyReused):
        mesh.add("something else", idempotency_key="k")


def test_a_key_whose_lesson_was_erased_does_not_bring_it_back(
    house: House, mesh: MemoryMesh
) -> None:
    mesh.delete(mesh.distill_lesson(LESSON, idempotency_key="k").memory_id)
    with pytest.raises(KeyReused):
        mesh.distill_lesson(LESSON, idempotency_key="k")
    assert house.memories() == []


# --- who sees it ---


def test_lessons_of_another_user_are_never_seen_nor_compared(house: House) -> None:
    mine, theirs = house.mesh(user_id="u"), house.mesh(user_id="v")
    lesson = mine.distill_lesson({**LESSON, "confidence": 0.9})
    assert (mine.query_lessons(), mine.query_lessons("token")) == ([lesson], [lesson])
    for other in (theirs, house.mesh()):
        assert (
            other.query_lessons()
            == other.query_lessons("token")
            == other.get_memories_by_pattern(PATTERN)
            == []
        )
        assert other.get(lesson.memory_id) is None
        assert other.distill_lesson(LESSON).memory_id != lesson.memory_id
    assert house.memory(lesson.memory_id).status == "active"


def drawn(
    house: House, *, session: str | None = None, confidence: float = 0.7, **notes: object
) -> LessonBlock:
    """A lesson that ann drew from a memory of hers."""
    mesh = house.mesh("ann", session_id=session)
    mesh.add(
        f"The deploy failed, {notes} {confidence}.", {**FAILURE, "confidence": confidence, **notes}
    )
    (lesson,) = mesh.distill().learnt
    return lesson


@pytest.mark.parametrize(
    ("notes", "session", "seers"),
    [
        ({}, None, {("ann", None), ("ann", "s"), ("ann", "t"), ("bob", None), ("bob", "s")}),
        (
            {"session_id": "s"},
            None,
            {("ann", None), ("ann", "s"), ("ann", "t"), ("bob", None), ("bob", "s")},
        ),
        ({"type": "agent"}, None, {("ann", None), ("ann", "s"), ("ann", "t")}),
        ({"type": "session"}, "s", {("ann", "s")}),
    ],
    ids=["global", "global in a session", "agent", "session"],
)
def test_a_lesson_reaches_as_far_as_the_memory_that_it_was_drawn_from(
    house: House, notes: dict[str, object], session: str | None, seers: set[tuple[str, str | None]]
) -> None:
    lesson = drawn(house, session=session, **notes)
    for agent, where in [("ann", None), ("ann", "s"), ("ann", "t"), ("bob", None), ("bob", "s")]:
        mesh = house.mesh(agent, session_id=where)
        sees = (agent, where) in seers
        said = f"{agent} in {where}"
        assert bool(mesh.query_lessons()) is sees, said
        assert bool(mesh.query_lessons("refresh token")) is sees, said
        assert bool(mesh.get_memories_by_pattern(lesson.pattern_id)) is sees, said
        assert (mesh.get(lesson.memory_id) is not None) is sees, said
        assert (lesson.memory_id in [found.id for found in mesh.search("refresh token")]) is sees, (
            said
        )
        assert bool(house.mesh(agent).query_lessons(session_id=where)) is sees, said


def test_a_narrower_lesson_never_takes_the_place_of_a_wider_one(house: House) -> None:
    wide = drawn(house)
    own = drawn(house, type="agent", confidence=0.9)
    here = drawn(house, type="session", session="s", confidence=0.95)
    assert [house.memory(each.memory_id).status for each in (wide, own, here)] == ["active"] * 3
    assert house.mesh("bob").query_lessons() == [wide]
    assert [record.id for record in house.mesh("ann").get_memories_by_pattern(wide.pattern_id)] == [
        own.memory_id,
        wide.memory_id,
    ]


def test_a_wider_lesson_takes_the_place_of_narrower_ones_that_are_no_surer(house: House) -> None:
    own = drawn(house, type="agent", confidence=0.7)
    surest = drawn(house, type="session", session="s", confidence=0.95)
    wide = house.mesh("ann", session_id="s").distill_lesson(
        {**LESSON, "applicable_scope": "general"}
    )
    assert (wide.pattern_id, wide.memory_id != own.memory_id) == (own.pattern_id, True)
    assert house.memory(own.memory_id).superseded_by == wide.memory_id
    assert house.memory(surest.memory_id).status == "active"
    assert house.mesh("bob").query_lessons() == [wide], (
        "what ann alone knew does not keep bob from learning"
    )


def test_what_one_agent_may_not_see_is_not_told_to_it_by_the_cycle(house: House) -> None:
    house.mesh("bob").add(
        "Bob's deploy failed.",
        {**FAILURE, "type": "agent", "preventative_rule": "Bob's secret rule."},
    )
    house.mesh("ann").add("The deploy failed.", {**FAILURE, "error_pattern": "shared"})
    done = house.mesh("ann").distill()
    assert (rules(done.learnt), done.unseen, done.candidates) == (
        ["Refresh the token first."],
        1,
        2,
    )
    assert "secret" not in whole(done)
    assert "Bob's secret rule." in rules(house.mesh("bob").query_lessons())
    assert "Bob's secret rule." in whole(house.mesh("bob").distill())


# --- asking ---


class Concepts:
    """An embedder that knows what a few words mean."""

    model, window = "concepts", 1000
    MEANINGS = (
        ("token", "credential", "login", "401"),
        ("disk", "storage", "quota"),
        ("cat", "kitten"),
    )

    def count(self, text: str) -> int:
        return len(text.split())

    def embed(self, texts: Sequence[str]) -> list[Vector]:
        return [Vector.of(self.model, [0.01, *self._values(text.lower())]) for text in texts]

    def _values(self, text: str) -> list[float]:
        return [float(sum(word in text for word in words)) for words in self.MEANINGS]


@pytest.fixture
def taught(house: House) -> MemoryMesh:
    """Lessons of every severity, the sure and the less sure, and a memory that is no lesson."""
    mesh = house.mesh()
    for n, (severity, sure) in enumerate(
        [("low", 0.7), ("critical", 0.8), ("medium", 0.9), ("high", 0.69), ("critical", 0.7)]
    ):
        house.clock.advance(seconds=1)
        rule = f"Rule {n}: look at the deploy token."
        mesh.distill_lesson(
            {
                **LESSON,
                "error_pattern": f"p{n}",
                "preventative_rule": rule,
                "severity": severity,
                "confidence": sure,
            }
        )
    mesh.add("The deploy token is blue.")
    return mesh


@pytest.mark.req("MESH-089", "MESH-148", "MESH-147")
def test_an_empty_query_lists_the_worst_first_and_among_equals_the_newest(
    taught: MemoryMesh,
) -> None:
    for words in ("", "  "):
        assert [rule[:6] for rule in rules(taught.query_lessons(words))] == [
            "Rule 4",
            "Rule 1",
            "Rule 2",
            "Rule 0",
        ]
    assert [rule[:6] for rule in rules(taught.query_lessons(limit=2))] == ["Rule 4", "Rule 1"]
    assert taught.query_lessons("", order_by="severity DESC") == taught.query_lessons()


@pytest.mark.req("MESH-089", "MESH-148")
def test_a_lesson_query_returns_only_lessons_with_enough_confidence(
    taught: MemoryMesh, house: House
) -> None:
    found = rules(taught.query_lessons("deploy token"))
    assert sorted(rule[:6] for rule in found) == ["Rule 0", "Rule 1", "Rule 2", "Rule 4"]
    assert "Rule 3" in whole(taught.search("deploy token")), "it is kept, and a search finds it"
    assert "The deploy token is blue." in [
        result.content for result in taught.search("deploy token")
    ]
    strict = house.mesh(lesson_min_confidence=0.85)
    assert [rule[:6] for rule in rules(strict.query_lessons("deploy token"))] == ["Rule 2"]
    lenient = house.mesh(lesson_min_confidence=0.00001)
    assert len(lenient.query_lessons("deploy token")) == len(lenient.query_lessons()) == 5


@pytest.mark.req("MESH-089")
def test_by_severity_the_worst_that_bear_on_the_query_come_first(taught: MemoryMesh) -> None:
    ordered = taught.query_lessons("deploy token", order_by="severity DESC")
    assert [lesson.severity for lesson in ordered] == ["critical", "critical", "medium", "low"]
    assert [rule[:6] for rule in rules(ordered)][:2] == ["Rule 4", "Rule 1"]
    assert [
        lesson.severity
        for lesson in taught.query_lessons("deploy token", limit=1, order_by="severity DESC")
    ] == ["critical"]


@pytest.mark.req("MESH-089")
def test_the_worst_is_told_first_even_where_others_bear_on_the_query_more(
    house: House, mesh: MemoryMesh
) -> None:
    for n in range(12):
        text = f"Rotate the deploy token, variant {n}."
        mesh.distill_lesson(
            {**LESSON, "error_pattern": f"p{n}", "preventative_rule": text, "severity": "low"}
        )
    grave = {
        "preventative_rule": (
            "Tell whoever may have used it at once that a deploy token leaked, then rotate it."
        ),
        "situation": "A token leaked.",
        "severity": "critical",
    }
    mesh.distill_lesson(
        {**LESSON, "error_pattern": "leak", "applicable_scope": "everywhere", **grave}
    )
    asked = "rotate the deploy token"
    assert "critical" not in [lesson.severity for lesson in mesh.query_lessons(asked, limit=5)]
    found = mesh.query_lessons(asked, limit=5, order_by="severity DESC", mode="recall")
    assert [lesson.severity for lesson in found] == ["critical", "low", "low", "low", "low"]


@pytest.mark.req("MESH-089")
def test_a_query_finds_by_meaning(house: House) -> None:
    mesh = house.mesh(embedder=Concepts())
    mesh.distill_lesson(LESSON)
    mesh.distill_lesson(
        {
            **LESSON,
            "error_pattern": "full",
            "preventative_rule": "Watch the disk quota.",
            "situation": "No room.",
        }
    )
    asked = "my credential was refused at login"
    assert rules(mesh.query_lessons(asked))[0] == "Refresh the token before a deploy."
    assert house.mesh(embedder="none").query_lessons(asked) == [], (
        "no word of the query stands in the lesson"
    )


@pytest.mark.req("MESH-089")
def test_more_relevant_lessons_come_first(mesh: MemoryMesh) -> None:
    mesh.distill_lesson(LESSON)
    other = {
        "preventative_rule": "Clean the cache before a long build of the handbook.",
        "situation": "A build was stale.",
    }
    mesh.distill_lesson(
        {
            **LESSON,
            "error_pattern": "stale",
            "oversight": "The cache.",
            "fix": "None.",
            "applicable_scope": "builds",
            **other,
        }
    )
    assert rules(mesh.query_lessons("cache of the build"))[0].startswith("Clean the cache")
    assert rules(mesh.query_lessons("refresh a token"))[0].startswith("Refresh the token")


@pytest.mark.req("MESH-089")
def test_ten_lessons_are_told_unless_another_limit_is_given(mesh: MemoryMesh) -> None:
    for n in range(12):
        mesh.distill_lesson({**LESSON, "error_pattern": f"p{n}"})
    assert [len(mesh.query_lessons(words)) for words in ("", "token")] == [10, 10]
    assert [len(mesh.query_lessons(words, limit=11)) for words in ("", "token")] == [11, 11]


@pytest.mark.parametrize("status", ["archived", "superseded", "quarantined", "disputed"])
def test_a_lesson_that_is_not_active_is_never_returned(
    house: House, mesh: MemoryMesh, status: str
) -> None:
    lesson = mesh.distill_lesson(LESSON)
    assert mesh.query_lessons() == mesh.query_lessons("token") == [lesson]
    house.change(lesson.memory_id, status=status)
    mesh.clear_cache()
    assert (
        mesh.query_lessons()
        == mesh.query_lessons("token")
        == mesh.get_memories_by_pattern(PATTERN)
        == []
    )


def test_an_expired_lesson_is_never_returned(house: House, mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson(LESSON)
    house.change(lesson.memory_id, expires_at="2026-01-02T00:00:00.000Z")
    assert mesh.query_lessons() == [lesson]
    house.clock.advance(days=2)
    assert mesh.query_lessons() == mesh.query_lessons("token") == []


@pytest.mark.parametrize(
    "wrong",
    [
        {"query": None}, {"query": 5}, {"limit": 0}, {"limit": True}, {"limit": 10**6},
        {"order_by": "severity"}, {"order_by": 1},
    ],
    ids=str,
)  # fmt: skip
def test_a_question_that_cannot_be_asked_is_refused(
    mesh: MemoryMesh, wrong: dict[str, object]
) -> None:
    with pytest.raises(InvalidInput):
        mesh.query_lessons(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [None, 5, ["x"], "\ud800"], ids=repr)
def test_a_pattern_that_is_no_text_is_refused(mesh: MemoryMesh, wrong: object) -> None:
    assert mesh.get_memories_by_pattern("0123456789abcdef") == []
    with pytest.raises(InvalidInput):
        mesh.get_memories_by_pattern(wrong)  # type: ignore[arg-type]


def test_a_lesson_stored_by_hand_is_told_if_it_says_how_sure_it_is(mesh: MemoryMesh) -> None:
    mesh.add("Never deploy on a Friday.", {"type": "lesson"})
    assert mesh.query_lessons() == []
    sure = {
        "type": "lesson",
        "confidence": 0.8,
        "preventative_rule": "Do not deploy on Saturdays.",
        "severity": "low",
    }
    mesh.add("Saturdays are bad for deploys.", sure)
    (told,) = mesh.query_lessons()
    assert (told.preventative_rule, told.severity, told.rule_confidence, told.wire_format) == (
        "Do not deploy on Saturdays.",
        "low",
        0.8,
        None,
    )


# --- erasing ---


@pytest.mark.req("MESH-011")
def test_erasing_what_taught_a_lesson_erases_the_lesson(house: House, mesh: MemoryMesh) -> None:
    source = mesh.add("The deploy failed at the heron nest.", FAILURE)
    (lesson,) = mesh.distill().learnt
    assert house.memory(lesson.memory_id).sources == [source.id]
    assert "heron" in repr([house.store.find(kind) for kind in Kind])
    assert set(mesh.erase(source.id).memories) == {source.id, lesson.memory_id}
    assert mesh.query_lessons() == mesh.query_lessons("token") == []
    assert "heron" not in repr([house.store.find(kind) for kind in Kind])
    assert house.sound()
    assert mesh.distill().candidates == 0, "nothing is left to learn it from"


@pytest.mark.req("MESH-011")
def test_erasing_a_lesson_leaves_every_chain_sound_and_no_text_of_it(
    house: House, mesh: MemoryMesh
) -> None:
    old = mesh.distill_lesson({**LESSON, "situation": "The heron sat on the cable."})
    new = mesh.distill_lesson({**LESSON, "situation": "The heron left.", "confidence": 0.9})
    assert "heron" in repr([house.store.find(kind) for kind in Kind])
    mesh.delete(new.memory_id)
    assert house.sound()
    assert mesh.query_lessons() == [], "the one before it stays superseded"
    house.mesh("bob").delete(old.memory_id)
    assert house.sound()
    assert "heron" not in repr([house.store.find(kind) for kind in Kind])
    assert [block.yamo_text for block in house.blocks()].count("erased") == 3


# --- switches ---


@pytest.mark.req("MESH-069")
def test_without_blocks_a_lesson_has_no_wire_format(house: House) -> None:
    mesh = house.mesh(enable_yamo=False)
    lesson = mesh.distill_lesson(LESSON)
    assert lesson.wire_format is None
    assert house.blocks() == []
    assert mesh.query_lessons() == [lesson]
    better = mesh.distill_lesson({**LESSON, "confidence": 0.9})
    assert house.memory(lesson.memory_id).superseded_by == better.memory_id
    assert house.store.count(Kind.BLOCK) == 0
    assert house.mesh().distill_lesson({**LESSON, "confidence": 1}).wire_format, (
        "with blocks there is one"
    )


def test_without_memory_nothing_is_learnt_and_nothing_is_told() -> None:
    mesh = MemoryMesh(enable_memory=False)
    for learn in (lambda: mesh.distill_lesson(LESSON), mesh.distill, mesh.heartbeat):
        with pytest.raises(MemoryDisabled):
            learn()
    assert (
        mesh.query_lessons()
        == mesh.query_lessons("token")
        == mesh.get_memories_by_pattern(PATTERN)
        == []
    )
    assert mesh.heartbeat_log() == []


def test_a_store_that_is_only_read_tells_its_lessons_and_learns_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    with MemoryMesh(store=url) as mesh:
        lesson = mesh.distill_lesson(LESSON)
    with MemoryMesh(store=f"{url}?mode=ro") as reader:
        assert reader.query_lessons("token") == reader.query_lessons() == [lesson]
        assert reader.distill_lesson(LESSON) == lesson, "what is known need not be written"
        with pytest.raises(StoreReadOnly):
            reader.distill_lesson({**LESSON, "confidence": 0.9})


@pytest.mark.req("MESH-071", "MESH-068")
def test_lessons_are_learnt_with_the_defaults(mesh: MemoryMesh) -> None:
    assert mesh.distill_lesson(LESSON).wire_format
    assert [run.outcome for run in mesh.heartbeat().runs if run.job == "distillation"] == ["off"]


def test_a_lesson_given_again_counts_as_met(house: House, mesh: MemoryMesh) -> None:
    lesson = mesh.distill_lesson(LESSON)
    house.clock.advance(days=3)
    mesh.distill_lesson(LESSON)
    met = mesh.get(lesson.memory_id)
    assert met
    assert (met.access_count, met.last_accessed, met.revision) == (1, "2026-01-04T00:00:00.000Z", 1)


# --- the loop of the document ---


@pytest.mark.req("MESH-166", "MESH-071")
def test_the_loop_of_the_document_runs_as_written_and_the_next_run_knows_the_rule(
    tmp_path: Path,
) -> None:
    store, request = f"sqlite:///{tmp_path / 'memory.db'}", "deploy the billing service"

    def loop(*, fails: bool) -> list[str]:
        mesh = MemoryMesh(store=store, agent_id="MyAgent", enable_yamo=True)
        mesh.init()
        constraints = rules(mesh.query_lessons(request, limit=5))
        memories = mesh.search(request, limit=10)
        output = (
            f"Deployed the billing service, knowing {len(memories)} memories, "
            f"{'in vain' if fails else 'and it runs'}."
        )
        mesh.add(
            output,
            {
                "type": "event",
                "source": "MyAgent",
                "rationale": "it was asked for",
                "hypothesis": "it runs",
                "session_id": "s1",
            },
        )
        if fails:
            mesh.distill_lesson(
                {
                    "situation": "deploying the billing service",
                    "error_pattern": "E_MIGRATION",
                    "oversight": "the migration had not been run",
                    "fix": "ran it by hand",
                    "preventative_rule": "Run the migration before deploying the billing service.",
                    "severity": "high",
                    "applicable_scope": "MyAgent execution",
                }
            )
        mesh.close()
        return constraints

    assert loop(fails=True) == []
    assert "Run the migration before deploying the billing service." in loop(fails=False)
    with MemoryMesh(store=store, agent_id="MyAgent") as mesh:
        assert all(isinstance(verdict, audit.Sound) for verdict in mesh.verify())
        assert {block.wire_format is not None for block in mesh.query_lessons()} == {True}


def test_the_async_mesh_learns_and_tells_the_same(tmp_path: Path) -> None:
    async def learn() -> None:
        async with AsyncMemoryMesh(store=f"sqlite:///{tmp_path / 'memory.db'}") as mesh:
            lesson = await mesh.distill_lesson(LESSON)
            assert await mesh.query_lessons("token") == [lesson]
            assert [record.id for record in await mesh.get_memories_by_pattern(PATTERN)] == [
                lesson.memory_id
            ]
            assert (await mesh.heartbeat()).ok
            assert await mesh.heartbeat_log(limit=1)
            assert (await mesh.distill()).inject == (lesson,)

    asyncio.run(learn())
