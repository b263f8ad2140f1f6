"""The passage of a long memory that a search returns with it."""

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh import MemoryMesh, Passage, SearchResult
from memory_mesh.core.errors import EmbeddingError, InvalidInput
from memory_mesh.core.model import ANYTHING, In, Kind, Where
from memory_mesh.models import HashingEmbedder
from memory_mesh.testing.fakes import DownEmbedder, RecordingEmbedder

from .house import House

FILLER = "\n\n".join(
    f"Paragraph {n} is about nothing in particular, and says so at some length in plain words."
    for n in range(60)
)
NEEDLE = "The zeppelin hangar was painted turquoise."
LONG = f"# Guide\n\n## Weather\n\n{FILLER}\n\n## Hangar\n\n{NEEDLE}\n\n## End\n\n{FILLER}"


class Narrow(HashingEmbedder):
    """As a real model: it sees the first words of a text only."""

    window = 128


EMBEDDERS = {
    "a small window": Narrow,
    "a large window": HashingEmbedder,
    "keywords only": None,
    "down": DownEmbedder,
}


@pytest.fixture(params=EMBEDDERS)
def mesh(request: pytest.FixtureRequest, house: House) -> MemoryMesh:
    embedder = EMBEDDERS[request.param]
    return house.mesh(embedder=embedder() if embedder else None)


def found(
    mesh: MemoryMesh, query: str = "what colour is the zeppelin hangar?", **options: object
) -> SearchResult:
    (hit,) = mesh.search(query, min_score=0.0, **options)  # type: ignore[arg-type]
    return hit


def passage(mesh: MemoryMesh, query: str = "what colour is the zeppelin hangar?") -> Passage:
    hit = found(mesh, query)
    assert hit.passage is not None
    assert hit.content[hit.passage.start : hit.passage.end] == hit.passage.text
    return hit.passage


def test_a_hit_on_a_long_memory_carries_the_passage_that_fits(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    best = passage(mesh)
    assert NEEDLE in best.text
    assert len(best.text) < 1100
    assert best.section == ("Guide", "Hangar")
    assert passage(mesh, "guide to the weather").section == ("Guide", "Weather")


def test_a_short_memory_has_no_passage_and_costs_no_read(
    house: House, mesh: MemoryMesh, monkeypatch: pytest.MonkeyPatch
) -> None:
    mesh.add(NEEDLE)
    reads: list[Where] = []
    find = house.store.find

    def recorded(kind: Kind, where: Where = ANYTHING, **options: object) -> object:
        reads.extend(
            [where]
            if kind is Kind.PASSAGE and isinstance(where, In) and where.column == "ref"
            else []
        )
        return find(kind, where, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(house.store, "find", recorded)
    assert found(mesh).passage is None
    assert reads == []
    mesh.add(f"{LONG} zeppelin")
    mesh.add(f"{LONG} hangar")
    assert (
        sum(hit.passage is not None for hit in mesh.search("zeppelin hangar", min_score=0.0)) == 2
    )
    assert len(reads) == 1


def test_a_memory_of_one_passage_has_none(house: House) -> None:
    mesh = house.mesh(embedder=Narrow())
    # Longer than the bytes of the window, shorter than its tokens.
    mesh.add(f"{FILLER[:300]} {NEEDLE}")
    assert house.store.find(Kind.PASSAGE) == []
    assert found(mesh).passage is None


def test_the_passage_is_that_of_the_current_content(mesh: MemoryMesh) -> None:
    stored = mesh.add(LONG)
    assert NEEDLE in passage(mesh).text
    mesh.update(stored.id, content=f"{FILLER}\n\nThe zeppelin hangar is white now.")
    assert "white now" in passage(mesh).text
    mesh.update(stored.id, content=NEEDLE)
    assert found(mesh).passage is None


@pytest.mark.req("MESH-113")
def test_the_cache_returns_the_same_passage_for_the_same_limit(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    first, again, fresh = found(mesh), found(mesh), found(mesh, use_cache=False)
    assert first.passage is not None
    assert first.passage == again.passage == fresh.passage
    assert [len(found(mesh, max_chars=limit).excerpt) <= limit for limit in (30, 60, 30)] == [
        True
    ] * 3
    assert found(mesh).passage == first.passage


def test_vectors_choose_where_the_words_do_not(house: House) -> None:
    mesh = house.mesh(embedder=Narrow())
    mesh.add(f"{FILLER}\n\n## Hangar\n\nZeppelins everywhere.\n\n## End\n\n{FILLER}")
    # The hashing embedder compares groups of letters; no word of the query is in the text.
    assert "Zeppelins" in passage(mesh, "zeppeliner").text


@pytest.mark.parametrize("missing", ["text_start", "text_end", "content_hash"])
def test_passages_without_their_place_are_split_again(house: House, missing: str) -> None:
    mesh = house.mesh(embedder=Narrow())
    mesh.add(LONG)
    rows = house.store.find(Kind.PASSAGE)
    assert rows
    older = [
        replace(
            row,
            revision=row.revision + 1,
            replaces=row.revision,
            fields={**row.fields, missing: None},
        )
        for row in rows
    ]
    house.store.apply(older)
    assert NEEDLE in passage(mesh).text


def test_places_that_belong_to_another_text_are_not_used(house: House) -> None:
    mesh = house.mesh(embedder=Narrow())
    stored = mesh.add(LONG)
    rows = house.store.find(Kind.PASSAGE)
    moved = [
        replace(
            row,
            revision=2,
            replaces=1,
            fields={**row.fields, "text_start": 3, "text_end": 9, "section": ["Forged"]},
        )
        for row in rows
    ]
    house.store.apply(moved)
    best = passage(mesh)
    assert NEEDLE in best.text
    assert best.section == ("Guide", "Hangar")
    assert stored.content[best.start : best.end] == best.text


def test_no_passage_of_a_content_that_is_not_the_sealed_one_is_shown(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(store=f"sqlite:///{file}", embedder=Narrow()) as mesh:
        mesh.add(LONG)
        assert NEEDLE in passage(mesh).text
    with sqlite3.connect(file) as connection:
        connection.execute("UPDATE memories SET content = replace(content, 'turquoise', 'black')")
    connection.close()
    with MemoryMesh(store=f"sqlite:///{file}", embedder=Narrow()) as mesh:
        assert mesh.search("what colour is the zeppelin hangar?", min_score=0.0) == []


def test_a_passage_is_found_while_the_store_changes_to_another_model(house: House) -> None:
    house.mesh(embedder=Narrow()).add(LONG)

    class Wide(Narrow):
        def __init__(self) -> None:
            super().__init__(64)

    def stop(name: str) -> None:
        if name == "reembed.switched":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        house.mesh(embedder=Wide(), step=stop).reembed()
    assert {row.vector.model for row in house.store.find(Kind.PASSAGE) if row.vector} == {
        "hashing/64",
        "hashing/256",
    }
    assert NEEDLE in passage(house.mesh(embedder=Wide())).text
    assert NEEDLE in passage(house.mesh(embedder=None)).text


def test_explain_shows_the_passage_too(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    (explained,) = mesh.explain("zeppelin hangar", min_score=0.0).answers
    assert explained.result.passage is not None
    assert NEEDLE in explained.result.passage.text


def test_only_the_query_is_embedded(house: House) -> None:
    recorder = RecordingEmbedder(Narrow())
    mesh = house.mesh(embedder=recorder)
    mesh.add(LONG)
    recorder.batches.clear()
    passage(mesh)
    assert len(recorder.texts) == 1


PIECES = [
    "東京都庁に行った。", "🦊👩\u200d💻 fox ", "word ", "\n\n", "\n## Titel\n\n",
    "```\ncode\n```\n", "naïve e\u0301 ", "한국어 문장. ",
    "x" * 90,
]  # fmt: skip
CONTENTS = st.lists(st.sampled_from(PIECES), min_size=20, max_size=120).map("".join)
QUERIES = st.sampled_from(["fox", "東京都", "word", "한국어", "naïve", "zzz"])


@pytest.mark.parametrize("embedder", [Narrow, None])
@given(text=CONTENTS, query=QUERIES)
def test_offsets_are_those_of_the_content_whatever_it_is(
    embedder: type[Narrow] | None, text: str, query: str
) -> None:
    with MemoryMesh(store="memory://", embedder=embedder() if embedder else None) as mesh:
        mesh.add(f"{text} {query} end of the text")
        for hit in mesh.search(query, min_score=0.0):
            shown = hit.passage
            assert shown is None or (
                0 <= shown.start < shown.end and hit.content[shown.start : shown.end] == shown.text
            )


# --- max_chars ---


def shown(hits: list[SearchResult]) -> int:
    return sum(len(hit.excerpt) for hit in hits)


def test_results_are_returned_while_their_texts_fit(house: House) -> None:
    mesh = house.mesh()
    for n in range(5):
        mesh.add(f"Zeppelin number {n} is in the hangar.")
    every = mesh.search("zeppelin hangar", min_score=0.0)
    assert len(every) == 5
    for max_chars in (1, 34, 35, 36, 69, 70, 71, 174, 175, 1000):
        hits = mesh.search("zeppelin hangar", min_score=0.0, max_chars=max_chars)
        assert [hit.id for hit in hits] == [hit.id for hit in every[: len(hits)]]
        assert 0 < shown(hits) <= max_chars
        assert len(hits) == 5 or shown(every[: len(hits) + 1]) > max_chars


def test_a_long_memory_counts_with_its_passage(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    best = passage(mesh)
    (hit,) = mesh.search("zeppelin hangar", min_score=0.0, max_chars=len(best.text))
    assert hit.passage == best
    assert hit.content == found(mesh).content


def test_a_first_result_that_is_too_long_is_shortened_to_the_part_that_fits(
    mesh: MemoryMesh,
) -> None:
    mesh.add(f"{FILLER[:900]} {NEEDLE} {FILLER[900:1500]}")
    hit = found(mesh, max_chars=80)
    assert hit.passage is not None
    assert "turquoise" in hit.excerpt
    assert len(hit.excerpt) <= 80
    assert hit.content[hit.passage.start : hit.passage.end] == hit.excerpt


def test_a_heading_alone_is_no_passage(mesh: MemoryMesh) -> None:
    mesh.add(
        "# Zeppelin hangar\n\n## Colour of the zeppelin hangar\n\nIt was painted turquoise.\n\n"
        f"## End\n\n{FILLER}"
    )
    assert "turquoise" in passage(mesh).text
    assert found(mesh, max_chars=40).excerpt == "It was painted turquoise."


@given(text=CONTENTS, query=QUERIES, max_chars=st.integers(1, 300))
def test_a_shortened_result_keeps_the_limit_and_its_offsets(
    text: str, query: str, max_chars: int
) -> None:
    with MemoryMesh(store="memory://", embedder=None) as mesh:
        mesh.add(f"{text} {query} end of the text")
        for hit in mesh.search(query, min_score=0.0, max_chars=max_chars):
            assert len(hit.excerpt) <= max_chars
            assert (
                hit.passage is None
                or hit.content[hit.passage.start : hit.passage.end] == hit.excerpt
            )


def test_results_that_do_not_fit_are_not_counted_as_used(house: House) -> None:
    mesh = house.mesh()
    stored = [mesh.add(f"Zeppelin number {n} is in the hangar.") for n in range(2)]
    (hit,) = mesh.search("zeppelin", min_score=0.0, max_chars=50)
    counts = {record.id: found.access_count for record in stored if (found := mesh.get(record.id))}
    assert counts == {record.id: int(record.id == hit.id) for record in stored}


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True, "9"])
def test_a_limit_that_is_no_whole_number_is_refused(house: House, wrong: int) -> None:
    mesh = house.mesh()
    with pytest.raises(InvalidInput, match="max_chars"):
        mesh.search("zeppelin", max_chars=wrong)
    with pytest.raises(InvalidInput, match="max_tokens"):
        mesh.format_for_model([], max_tokens=wrong)


# --- prompts ---


def test_a_prompt_gets_the_passage_with_its_section_and_place(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    hit = found(mesh)
    assert hit.passage is not None
    prompt = mesh.format_for_model([replace(hit, relevant=True)])
    assert NEEDLE in prompt
    assert "Paragraph 3 is" not in prompt
    assert "Paragraph 3 is" in hit.content
    assert ", from Guide / Hangar: " in prompt


@pytest.mark.req("MESH-018")
@pytest.mark.parametrize("max_tokens", [5, 60, 140, 200, 300, 1000])
def test_a_prompt_keeps_the_budget_of_the_embedders_tokenizer(
    house: House, max_tokens: int
) -> None:
    class Words(HashingEmbedder):
        def count(self, text: str) -> int:
            return len(text.split())

    mesh = house.mesh(embedder=Words())
    for n in range(6):
        mesh.add(
            f"Zeppelin number {n} is in the hangar, which is painted turquoise, as everybody knows "
            "who was there."
        )
    hits = [replace(hit, relevant=True) for hit in mesh.search("zeppelin", min_score=0.0)]
    prompt = mesh.format_for_model(hits, max_tokens=max_tokens)
    assert len(prompt.split()) <= max_tokens
    assert prompt == "" or prompt.count(": Zeppelin") == 6 or "Left out: " in prompt


class Unknown(HashingEmbedder):
    """As an embedder behind a server: its tokenizer is not known."""

    counts_too_many = True

    def count(self, text: str) -> int:
        return len(text)


@pytest.mark.req("MESH-018")
def test_without_a_tokenizer_a_token_has_four_characters(house: House) -> None:
    for embedder in (None, BrokenCounter(), Unknown()):
        mesh = house.mesh(embedder=embedder)
        mesh.add_many([f"{NEEDLE} Its number is {n}." for n in range(9)])
        hits = [replace(hit, relevant=True) for hit in mesh.search("zeppelin", min_score=0.0)]
        whole = mesh.format_for_model(hits)
        assert NEEDLE in whole
        assert len(mesh.format_for_model(hits, max_tokens=-(-len(whole) // 4))) == len(whole)
        assert len(mesh.format_for_model(hits, max_tokens=-(-len(whole) // 4) - 1)) < len(whole)


class BrokenCounter(DownEmbedder):
    """An embedder whose tokenizer cannot be loaded."""

    def count(self, text: str) -> int:
        raise EmbeddingError("no tokenizer")


def test_an_embedder_that_cannot_tell_its_window_does_not_break_a_search(house: House) -> None:
    class Failing(DownEmbedder):
        def __getattribute__(self, name: str) -> object:
            if name == "window" and opened:
                raise RuntimeError("no window")
            return super().__getattribute__(name)

    house.mesh(embedder=None).add(LONG)
    opened: list[bool] = []
    mesh = house.mesh(embedder=Failing())
    mesh.init()
    opened.append(True)
    assert NEEDLE in passage(mesh).text


def test_the_documents_block_has_whole_contents_unless_it_is_limited(mesh: MemoryMesh) -> None:
    mesh.add(LONG)
    hit = found(mesh)
    assert hit.content in mesh.format_results([hit])
    limited = mesh.format_results([hit, hit], max_chars=1200)
    assert NEEDLE in limited
    assert limited.count("--- MEMORY") == 1 + (2 * len(hit.excerpt) <= 1200)
    assert hit.content not in limited
    assert len(mesh.format_results([hit], max_chars=50)) < len(limited)
