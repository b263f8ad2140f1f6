"""Vectors through the mesh: what is embedded, when, by which model, and what happens when
embedding fails."""

import logging
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path

import pytest

from memory_mesh import MemoryContextManager, MemoryMesh
from memory_mesh.core.errors import EmbeddingError, InvalidInput, ModelMismatch, SettingsError
from memory_mesh.core.model import Kind, Row, Vector
from memory_mesh.models import CachedEmbedder, FallbackEmbedder, HashingEmbedder, model_files
from memory_mesh.stores import open_store
from memory_mesh.testing.fakes import DownEmbedder, RecordingEmbedder

from .house import House

LONG = "\n\n".join(
    f"Paragraph {n} is about nothing in particular, and says so at some length in plain words."
    for n in range(60)
)
NEEDLE = "The zeppelin hangar was painted turquoise."


class Narrow(HashingEmbedder):
    """As a real model: it sees the first words of a text only."""

    window = 128


@pytest.fixture
def recorder() -> RecordingEmbedder:
    return RecordingEmbedder(Narrow())


@pytest.fixture
def mesh(house: House, recorder: RecordingEmbedder) -> MemoryMesh:
    return house.mesh(embedder=recorder)


def vector_of(house: House, id_: str) -> Vector | None:
    return house.memory(id_).vector


def passages_of(house: House, id_: str) -> list[str]:
    return [row.id for row in house.store.find(Kind.PASSAGE) if row.value("ref") == id_]


# --- what is embedded ---


def test_a_memory_keeps_its_vector_and_the_name_of_its_model(
    house: House, mesh: MemoryMesh
) -> None:
    stored = mesh.add("The deploy key rotates on Mondays.")
    vector = vector_of(house, stored.id)
    assert vector is not None
    assert (vector.model, vector.dimension) == ("hashing/256", 256)
    assert not stored.pending


@pytest.mark.req("MESH-027", "MESH-128")
def test_the_embedder_sees_only_what_layer_0_let_through(
    mesh: MemoryMesh, recorder: RecordingEmbedder
) -> None:
    secrets = (
        "ann@example.org",
        "4111 1111 1111 1111",
        "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789ABCD",
        "+41 44 668 18 00",
    )
    stored = mesh.add(
        f"<p><b>Reach</b> Ann: mail {secrets[0]}, card {secrets[1]}, key {secrets[2]}, phone "
        f"{secrets[3]}.</p>"
    )
    mesh.update(stored.id, content=f"Now reach Ann by {secrets[0]}.")
    mesh.search(f"who has {secrets[0]} or the card {secrets[1]}?")
    seen = " ".join(recorder.texts)
    assert "Reach Ann" in seen
    assert "who has" in seen
    assert not [secret for secret in secrets if secret in seen]
    assert "<b>" not in seen


@pytest.mark.req("MESH-076")
def test_many_are_embedded_in_one_batch_and_come_out_as_single_ones_do(
    house: House, mesh: MemoryMesh
) -> None:
    texts = [f"fact number {n} about the harbour" for n in range(5)]
    batches = RecordingEmbedder(HashingEmbedder())
    many = house.mesh("bob", embedder=batches).add_many(
        [(text, {"type": "agent"}) for text in texts]
    )
    single = [mesh.add(text, {"type": "agent"}) for text in texts]
    assert [len(batch) for batch in batches.batches] == [5]
    assert [vector_of(house, one.id) for one in many] == [
        vector_of(house, one.id) for one in single
    ]
    assert [one.content for one in many] == [one.content for one in single]


def test_what_is_known_already_is_not_embedded_again(
    mesh: MemoryMesh, recorder: RecordingEmbedder
) -> None:
    mesh.add("Ana prefers tea.")
    mesh.add("Ana prefers tea.")
    mesh.add("ana  prefers Tea.", idempotency_key="k")
    mesh.add("ana  prefers Tea.", idempotency_key="k")
    assert recorder.texts == ["Ana prefers tea."]


def test_a_decision_that_is_made_again_embeds_nothing_twice(
    house: House, recorder: RecordingEmbedder
) -> None:
    other = house.mesh("bob", embedder=HashingEmbedder())
    races = iter(["first", "second"])

    def meddle(step: str) -> None:
        if step == "flow.embedded" and (word := next(races, None)):
            other.add(f"bob was quicker: {word}")

    house.mesh(embedder=recorder, step=meddle).add("Ana prefers tea.")
    assert recorder.texts == ["Ana prefers tea."]
    assert len(house.memories()) == 3


def test_a_changed_text_gets_a_new_vector_and_changed_metadata_does_not(
    house: House, mesh: MemoryMesh
) -> None:
    stored = mesh.add("Ana prefers tea.")
    first = vector_of(house, stored.id)
    mesh.update(stored.id, metadata={"mood": "certain"})
    assert vector_of(house, stored.id) == first
    mesh.update(stored.id, content="Ana prefers coffee.")
    assert (
        vector_of(house, stored.id) == HashingEmbedder().embed(["Ana prefers coffee."])[0] != first
    )


def test_without_an_embedder_nothing_waits_for_one(house: House) -> None:
    stored = house.mesh(embedder="none").add("Ana prefers tea.")
    assert vector_of(house, stored.id) is None
    assert not stored.pending


@pytest.mark.req("MESH-137")
def test_making_a_mesh_and_reading_by_id_embeds_nothing(
    house: House, recorder: RecordingEmbedder
) -> None:
    stored = house.mesh(embedder=HashingEmbedder()).add("Ana prefers tea.")
    mesh = house.mesh(embedder=recorder)
    mesh.init()
    assert mesh.get(stored.id)
    assert mesh.stats().total_memories == 1
    mesh.delete(stored.id)
    assert recorder.texts == []
    mesh.search("tea")
    assert recorder.texts == ["tea"]


# --- long texts ---


@pytest.mark.req("MESH-120")
def test_every_part_of_a_long_memory_is_found_and_the_memory_once(
    house: House, mesh: MemoryMesh
) -> None:
    long = mesh.add(f"{LONG}\n\n{NEEDLE}")
    for n in range(20):
        mesh.add(f"The quay number {n} was built of granite.")
    assert len(passages_of(house, long.id)) >= 2
    found = mesh.search(NEEDLE, ranker="rrf")
    assert [hit.id for hit in found].count(long.id) == 1
    assert found[0].id == long.id
    assert found[0].similarity is not None
    assert found[0].similarity > 0.6  # its own beginning says nothing of zeppelins


@pytest.mark.req("MESH-125")
def test_a_stored_passage_names_its_source_section_place_hash_and_time(
    house: House, mesh: MemoryMesh
) -> None:
    text = "".join(f"## Part {n}\n\n{LONG[:500]}\n\n" for n in range(4)) + f"## Hangar\n\n{NEEDLE}"
    long = mesh.add(text, {"source": "guide.md"})
    rows = sorted(house.store.find(Kind.PASSAGE), key=lambda row: int(str(row.value("text_start"))))
    assert len(rows) >= 3
    for row in rows:
        part = long.content[row.value("text_start") : row.value("text_end")]  # type: ignore[misc]
        assert (row.value("source"), row.created_at) == ("guide.md", long.updated_at)
        assert row.value("content_hash") == sha256(part.encode()).hexdigest()
    assert rows[-1].value("section") == ["Hangar"]
    assert NEEDLE in long.content[rows[-1].value("text_start") : rows[-1].value("text_end")]  # type: ignore[misc]
    mesh.update(long.id, metadata={"source": "moved.md", "type": "agent"})
    moved = house.store.find(Kind.PASSAGE)
    assert {row.value("source") for row in moved} == {"moved.md"}
    assert {str(row.value("content_hash")) for row in moved} == {
        str(row.value("content_hash")) for row in rows
    }


@pytest.mark.req("MESH-125")
def test_a_passage_that_validation_rejects_is_not_embedded(
    house: House, recorder: RecordingEmbedder
) -> None:
    text = f"{LONG}\n\n# A\n\nNo."
    house.mesh(embedder=recorder).add(text)
    assert any(part.endswith("No.") for part in recorder.texts)
    strict = RecordingEmbedder(Narrow())
    house.mesh(
        "strict",
        embedder=strict,
        scrub={"validation": {"enforce_min_length": True, "min_length": 10}},
    ).add(text, {"type": "agent"})
    assert len(strict.texts) >= 2
    assert not any(part.endswith("No.") for part in strict.texts)


@pytest.mark.req("MESH-125")
def test_a_text_below_an_enforced_minimum_is_refused(house: House) -> None:
    rules = {"validation": {"enforce_min_length": True, "min_length": 10}}
    with pytest.raises(InvalidInput, match="2 characters") as error:
        house.mesh(scrub=rules).add("Hi")
    assert "10 to" in str(error.value.expected)
    assert house.mesh().search("Hi") == []
    assert house.mesh().add("Hi").content == "Hi"


def test_passages_go_with_the_text_they_were_cut_from(house: House, mesh: MemoryMesh) -> None:
    long = mesh.add(f"{LONG}\n\n{NEEDLE}")
    assert passages_of(house, long.id)
    mesh.update(long.id, content="short now")
    assert passages_of(house, long.id) == []
    mesh.update(long.id, content=f"{NEEDLE}\n\n{LONG}")
    assert passages_of(house, long.id)
    mesh.delete(long.id)
    assert house.store.find(Kind.PASSAGE) == []


def test_passages_follow_their_memory_into_another_scope(house: House, mesh: MemoryMesh) -> None:
    long = mesh.add(f"{LONG}\n\n{NEEDLE}")
    stranger = house.mesh("bob", embedder=Narrow())
    assert stranger.search(NEEDLE, ranker="rrf")
    mesh.update(long.id, metadata={"type": "agent"})
    rows = house.store.find(Kind.PASSAGE)
    assert rows
    assert {row.partition for row in rows} == {house.memory(long.id).partition}
    assert {row.value("memory_type") for row in rows} == {"agent"}
    assert stranger.search(NEEDLE, ranker="rrf") == []
    assert mesh.search(NEEDLE, ranker="rrf")[0].id == long.id


# --- no vector to be had ---


@pytest.mark.req("MESH-016", "MESH-115")
def test_while_the_embedder_is_down_memories_are_stored_found_by_keyword_and_repaired_later(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    down = house.mesh(embedder=DownEmbedder("hashing/256"))
    with caplog.at_level(logging.WARNING, "memory_mesh"):
        stored = down.add("Ana prefers tea.")
    assert stored.pending
    assert vector_of(house, stored.id) is None
    assert "reembed" in caplog.text
    assert [hit.id for hit in down.search("tea")] == [stored.id]
    assert down.search("tea")[0].similarity is None
    mesh = house.mesh(embedder=HashingEmbedder())
    assert mesh.reembed().embedded == 1
    again = mesh.get(stored.id)
    assert again
    assert not again.pending
    assert again.revision == stored.revision
    assert vector_of(house, stored.id) == HashingEmbedder().embed(["Ana prefers tea."])[0]
    assert mesh.reembed().embedded == 0


def test_a_long_memory_is_stored_too_while_the_embedder_is_down(house: House) -> None:
    class Gone(DownEmbedder):
        def count(self, text: str) -> int:
            raise EmbeddingError("its tokenizer is gone with it")

    stored = house.mesh(embedder=Gone("hashing/256")).add(f"{LONG}\n\n{NEEDLE}")
    assert stored.pending
    assert house.mesh(embedder="none").search("zeppelin")[0].id == stored.id


def test_an_answer_by_keywords_alone_is_not_kept_for_later(house: House) -> None:
    house.mesh(embedder=HashingEmbedder()).add("Ana prefers tea.")
    down = house.mesh(embedder=DownEmbedder("hashing/256"))
    assert down.search("tea")
    assert down.get_cache_stats().size == 0


def test_repairing_with_an_embedder_that_is_down_says_so_and_loses_nothing(house: House) -> None:
    down = house.mesh(embedder=DownEmbedder("hashing/256"))
    stored = down.add("Ana prefers tea.")
    with pytest.raises(EmbeddingError):
        down.reembed()
    assert house.memory(stored.id).pending
    with pytest.raises(SettingsError, match="no embedder"):
        house.mesh(embedder="none").reembed()


@pytest.mark.req("MESH-135")
def test_a_fallback_of_another_model_leaves_the_memory_waiting_and_the_query_to_keywords(
    house: House,
) -> None:
    house.mesh(embedder=HashingEmbedder()).add("Bob prefers coffee.")
    mixed = FallbackEmbedder([DownEmbedder("hashing/256"), HashingEmbedder(dimension=64)])
    mesh = house.mesh(embedder=mixed)
    stored = mesh.add("Ana prefers tea.")
    assert stored.pending
    assert vector_of(house, stored.id) is None
    assert mesh.search("tea", ranker="rrf")[0].similarity is None


@pytest.mark.req("MESH-135")
def test_a_fallback_of_the_same_model_is_as_good(house: House) -> None:
    mesh = house.mesh(embedder=FallbackEmbedder([DownEmbedder("hashing/256"), HashingEmbedder()]))
    assert not mesh.add("Ana prefers tea.").pending


def test_an_outage_of_the_embedder_is_logged_once_and_the_next_one_again(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    class Flaky(HashingEmbedder):
        down = True

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            return DownEmbedder().embed(texts) if self.down else super().embed(texts)

    embedder = Flaky()
    mesh = house.mesh(embedder=embedder)
    for lines in (1, 2):
        embedder.down = True
        mesh.add_many([(f"tea number {lines}", None)])
        mesh.add(f"coffee number {lines}")
        assert caplog.text.count("stored without vectors") == lines
        embedder.down = False
        assert not mesh.add(f"water number {lines}").pending


def test_offline_without_a_model_memories_are_stored_and_found_by_keywords_with_one_line(
    house: House, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        model_files, "SOURCES", {"a way": lambda into: pytest.fail("it was downloaded")}
    )
    monkeypatch.setattr(model_files, "find_package", lambda package: None)
    monkeypatch.setenv("MEMORY_MESH_OFFLINE", "1")
    mesh = house.mesh(embedder="local", cache_dir=str(tmp_path / "empty"))
    assert mesh.add("Ana prefers tea.").pending
    mesh.add("Ben prefers coffee.")
    assert [hit.content for hit in mesh.search("tea")] == ["Ana prefers tea."]
    [line] = caplog.messages
    assert "offline is set" in line
    assert "memory-mesh model fetch" in line
    assert "\n" not in line


# --- another model ---


@pytest.mark.req("MESH-017")
def test_a_store_of_another_model_is_searched_by_keywords_and_one_line_names_the_remedy(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    stored = house.mesh(embedder=HashingEmbedder()).add("Ana prefers tea.")
    before = vector_of(house, stored.id)
    mesh = house.mesh(embedder=HashingEmbedder(dimension=64))
    with caplog.at_level(logging.WARNING, "memory_mesh"):
        first, second = mesh.search("tea"), mesh.search("Ana")
    assert [hit.id for hit in (*first, *second)] == [stored.id, stored.id]
    assert first[0].similarity is None
    assert caplog.text.count("reembed") == 1
    assert vector_of(house, stored.id) == before


@pytest.mark.req("MESH-017")
def test_writing_a_vector_of_another_model_is_refused_and_names_the_command(house: House) -> None:
    stored = house.mesh(embedder=HashingEmbedder()).add("Ana prefers tea.")
    mesh = house.mesh(embedder=HashingEmbedder(dimension=64))
    with pytest.raises(ModelMismatch, match=r"hashing/256.*hashing/64.*memory-mesh reembed"):
        mesh.add("Bob prefers coffee.")
    with pytest.raises(ModelMismatch):
        mesh.update(stored.id, content="Ana prefers coffee.")
    assert [memory.content for memory in house.memories()] == ["Ana prefers tea."]
    mesh.update(stored.id, metadata={"mood": "certain"})  # needs no vector


def test_of_two_first_writers_with_different_models_the_later_one_is_refused(house: House) -> None:
    class Late(HashingEmbedder):
        """While it embeds for the first time, somebody else writes with another model."""

        def embed(self, texts: Sequence[str]) -> list[Vector]:
            if not house.memories():
                house.mesh(user_id="bob", embedder=HashingEmbedder()).add("Bob prefers tea.")
            return super().embed(texts)

    with pytest.raises(ModelMismatch, match=r"hashing/256.*hashing/64"):
        house.mesh(user_id="ann", embedder=Late(dimension=64)).add("Ann rides her bicycle.")
    assert [memory.content for memory in house.memories()] == ["Bob prefers tea."]
    house.mesh(user_id="bob", embedder=HashingEmbedder()).add("Bob bought a kettle.")


@pytest.mark.req("MESH-017")
def test_after_a_change_of_model_all_is_as_before_under_the_new_one(house: House) -> None:
    old = house.mesh(embedder=Narrow())
    ids = [old.add(f"fact number {n} about the harbour").id for n in range(3)]
    long = old.add(f"{LONG}\n\n{NEEDLE}", {"type": "agent"})
    other = house.mesh("bob", user_id="eve", embedder=HashingEmbedder()).add(
        "another user's memory"
    )
    mesh = house.mesh(embedder=Narrow(dimension=64))
    reports: list[tuple[str, int, int]] = []
    done = mesh.reembed(progress=lambda what, n, of: reports.append((what, n, of)))
    assert (done.model, done.embedded, done.changed_from) == ("hashing/64", 5, "hashing/256")
    assert reports[-1] == ("storing", 5, 5)
    rows = [*house.store.find(Kind.MEMORY), *house.store.find(Kind.PASSAGE)]
    assert {row.vector.model for row in rows if row.vector} == {"hashing/64"}
    assert all(row.vector for row in rows)
    assert sorted(passages_of(house, long.id)) == sorted(
        f"{long.id}.{n}" for n in range(1, len(passages_of(house, long.id)) + 1)
    )
    assert mesh.search(NEEDLE, ranker="rrf")[0].id == long.id
    assert {vector_of(house, id_) is not None for id_ in (*ids, other.id)} == {True}
    assert not mesh.add("and a new one").pending
    with pytest.raises(ModelMismatch):
        old.add("the old model is over")
    assert house.sound()


@pytest.mark.deep
@pytest.mark.sample(4)
@pytest.mark.parametrize("dies_at", ["reembed.embedding", "reembed.switched", "reembed.storing"])
@pytest.mark.parametrize("after", [1, 2])
def test_a_change_of_model_that_is_stopped_goes_on_where_it_was(
    house: House, dies_at: str, after: int
) -> None:
    old = house.mesh(embedder=HashingEmbedder())
    texts = [f"fact number {n} about the harbour" for n in range(150)]
    old.add_many([(text, None) for text in texts])
    steps = 0

    def die(step: str) -> None:
        nonlocal steps
        steps += step == dies_at
        if steps == after:
            raise KeyboardInterrupt

    target = RecordingEmbedder(HashingEmbedder(dimension=64))
    try:
        house.mesh(embedder=target, step=die).reembed()
    except KeyboardInterrupt:
        assert steps == after
    # In between, whichever model the store has, its searches find.
    model = next(
        row.value("detail") for row in house.store.find(Kind.META) if row.id == "embedding"
    )
    current = (
        HashingEmbedder() if model == {"model": "hashing/256"} else HashingEmbedder(dimension=64)
    )
    found = house.mesh(embedder=current).search(texts[7], ranker="rrf", limit=3)
    assert found[0].content == texts[7]
    assert found[0].similarity == pytest.approx(1.0, abs=0.02)
    house.mesh(embedder=target).reembed()
    assert {memory.vector.model for memory in house.memories() if memory.vector} == {"hashing/64"}
    assert house.store.find(Kind.PASSAGE) == []
    assert sorted(target.texts) == sorted(texts)  # nothing twice


def test_what_is_stored_changed_or_erased_during_a_change_of_model_comes_out_right(
    house: House,
) -> None:
    old = house.mesh(embedder=HashingEmbedder())
    stored = [old.add(f"fact number {n} about the harbour").id for n in range(4)]

    def meddle(step: str) -> None:
        if step == "reembed.embedding" and not happened:
            happened.append(step)
            old.add("stored meanwhile")
            old.update(stored[0], content="changed meanwhile")
            old.delete(stored[1])

    happened: list[str] = []
    mesh = house.mesh(embedder=HashingEmbedder(dimension=64), step=meddle)
    mesh.reembed()
    assert happened
    new = HashingEmbedder(dimension=64)
    assert {memory.content: memory.vector for memory in house.memories()} == {
        text: new.embed([text])[0]
        for text in (
            "stored meanwhile",
            "changed meanwhile",
            "fact number 2 about the harbour",
            "fact number 3 about the harbour",
        )
    }
    assert house.store.find(Kind.PASSAGE) == []


def test_a_memory_erased_while_its_vector_is_made_leaves_no_vector_behind(house: House) -> None:
    old = house.mesh(embedder=HashingEmbedder())
    stored = [old.add(f"fact number {n} about the harbour").id for n in range(3)]

    class Erasing(HashingEmbedder):
        def embed(self, texts: list[str]) -> list[Vector]:
            old.delete(stored[1])
            return super().embed(texts)

    house.mesh(embedder=Erasing(dimension=64)).reembed()
    assert {memory.id for memory in house.memories()} == {stored[0], stored[2]}
    assert house.store.find(Kind.PASSAGE) == []


def test_vectors_of_an_unknown_model_are_kept_until_they_are_replaced(house: House) -> None:
    mesh = house.mesh(embedder="none")
    stored = mesh.add("Ana prefers tea.")
    foreign = Vector.of("unknown/3", [1.0, 0.0, 0.0])
    house.change(stored.id, vector=foreign)
    new = house.mesh(embedder=HashingEmbedder())
    assert [hit.id for hit in new.search("tea")] == [stored.id]
    new.add("Bob prefers coffee.")
    assert vector_of(house, stored.id) == foreign
    assert new.reembed().embedded == 1
    assert vector_of(house, stored.id) == HashingEmbedder().embed(["Ana prefers tea."])[0]


@pytest.mark.req("MESH-006")
def test_with_the_same_clock_ids_and_embedder_the_same_calls_leave_equal_records(
    tmp_path: Path,
) -> None:
    def run(name: str) -> list[Row]:
        house = House(open_store(f"sqlite:///{tmp_path / name}.db"))
        mesh = house.mesh(embedder=HashingEmbedder())
        first = mesh.add("Ana prefers tea.", {"session_id": "s"})
        mesh.add_many([("Bob prefers coffee.", None), ("Ana prefers tea.", {"session_id": "s"})])
        house.clock.advance(days=1)
        mesh.update(first.id, content="Ana prefers green tea.")
        mesh.search("tea", ranker="rrf")
        mesh.close()
        rows = [row for kind in Kind for row in house.store.find(kind)]
        house.store.close()
        return rows

    assert run("one") == run("two")
    assert len(run("three")) > 5


@pytest.mark.req("MESH-005")
def test_being_found_sets_the_time_of_access_and_no_other(house: House, mesh: MemoryMesh) -> None:
    stored = mesh.add(
        "Ana prefers tea.",
        {"event_time": "2025-06-01", "valid_from": "2025-06-02", "valid_until": "2027-06-03"},
    )
    house.clock.advance(days=1)
    mesh.search("tea")
    names = (
        "created_at",
        "updated_at",
        "event_time",
        "valid_from",
        "valid_until",
        "last_observed",
        "expires_at",
    )
    found = mesh.get(stored.id)
    assert found
    assert [getattr(found, name) for name in names] == [getattr(stored, name) for name in names]
    assert (stored.last_accessed, found.last_accessed) == (None, "2026-01-02T00:00:00.000Z")
    house.clock.advance(days=1)
    mesh.add(
        "Ana prefers tea.",
        {"event_time": "2025-06-01", "valid_from": "2025-06-02", "valid_until": "2027-06-03"},
    )
    again = mesh.get(stored.id)
    assert again
    assert (again.last_observed, again.last_accessed) == (
        "2026-01-03T00:00:00.000Z",
        "2026-01-02T00:00:00.000Z",
    )


def test_a_change_decided_before_a_change_of_model_does_not_put_the_old_vector_back(
    house: House,
) -> None:
    stored = house.mesh(embedder=HashingEmbedder()).add("Ana prefers tea.")
    happened: list[str] = []

    def meddle(step: str) -> None:
        if step == "flow.decided" and not happened:
            happened.append(step)
            house.mesh(embedder=HashingEmbedder(dimension=64)).reembed()

    house.mesh(embedder="none", step=meddle).pin(stored.id)
    assert happened
    assert house.memory(stored.id).pinned
    assert (
        house.memory(stored.id).vector
        == HashingEmbedder(dimension=64).embed(["Ana prefers tea."])[0]
    )


class Renewed(HashingEmbedder):
    """The model of a new version, which can still run the one before."""

    def __init__(self) -> None:
        super().__init__(64)
        self.before: list[HashingEmbedder] = []

    def of_model(self, model: str) -> HashingEmbedder | None:
        if model == HashingEmbedder().model:
            self.before = self.before or [HashingEmbedder()]
            return self.before[0]
        return None


def test_a_store_of_an_older_model_goes_on_with_it_until_it_is_changed(house: House) -> None:
    house.mesh(embedder=HashingEmbedder()).add("The kite is green.")
    mesh = house.mesh(embedder=Renewed())
    second = mesh.add("The kayak is red.")
    assert vector_of(house, second.id).model == "hashing/256"
    assert mesh.explain("kite").model == "hashing/256"
    assert MemoryContextManager(mesh=mesh).health_check().problems == ()
    done = mesh.reembed()
    assert (done.model, done.embedded, done.changed_from) == ("hashing/64", 2, "hashing/256")
    assert mesh.explain("kite").model == vector_of(house, second.id).model == "hashing/64"


def test_a_cached_embedder_keeps_the_embedder_of_an_older_model() -> None:
    cached = CachedEmbedder(Renewed())
    assert cached.of_model("hashing/256") is cached.of_model("hashing/256")
    assert cached.of_model("another") is None
    assert CachedEmbedder(HashingEmbedder()).of_model("hashing/64") is None
