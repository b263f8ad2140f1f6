"""Each check of the hygiene benchmark can fail: a broken system makes its figure other than
zero, or the row invalid."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from bench.hygiene import __main__ as hygiene
from bench.hygiene import (
    deleted,
    duplicates,
    full_disk,
    hidden,
    junk,
    killed,
    places,
    processes,
    redaction,
    supersession,
    tampering,
    unrelated,
)
from bench.hygiene.picture import bars
from bench.hygiene.record import OURS, Row, Run, Tally

from memory_mesh import MemoryMesh

QUICK = Run(quick=True, systems=["fake"])


class Fake:
    """A system in this process, in one file, that may be broken in one way."""

    deletes = answers_all = answers_none = deduplicates = loses = judges = forgets = False

    def __init__(self, name: str, folder: Path, *, model: str = "hash") -> None:
        self._file = folder / "texts.json"
        self._texts: dict[str, str] = (
            json.loads(self._file.read_text()) if self._file.exists() else {}
        )

    def __enter__(self) -> "Fake":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def add(self, key: str, text: str) -> None:
        if not (self.deduplicates and text in self._texts.values()):
            self._texts[key] = text
        self._file.write_text(json.dumps(self._texts))

    def capture(self, session: str, messages: Sequence[tuple[str, str]]) -> None:
        for number, (_, text) in enumerate(messages):
            if not (
                self.forgets or (self.judges and (messages, True) in junk.conversations(QUICK))
            ):
                self.add(f"{session} {number}", text)

    def delete(self, key: str) -> None:
        if self.deletes:
            del self._texts[key]
        self._file.write_text(json.dumps(self._texts))

    def texts(self) -> list[str]:
        return list(self._texts.values())

    def search(self, query: str) -> list[str]:
        if self.answers_none:
            return []
        found = [text for text in self._texts.values() if set(text.split()) & set(query.split())]
        return list(self._texts.values()) if self.answers_all else found

    def end(self) -> None:
        pass

    def send(self, calls: Iterable[tuple[str, ...]]) -> None:
        self._calls = [*calls]

    def answers(self, count: int) -> list[None]:
        for _, key, text in self._calls[: count - self.loses]:
            self.add(key, text)
        return [None] * count

    def kill(self) -> None:
        pass

    def rest(self) -> list[None]:
        return []


def fake(monkeypatch: pytest.MonkeyPatch, module: Any, **how: bool) -> None:
    monkeypatch.setattr(module, "Remote", type("Broken", (Fake,), how))


@pytest.mark.parametrize("deletes", [True, False])
def test_a_system_that_keeps_deleted_texts_in_its_files_is_found(
    monkeypatch: pytest.MonkeyPatch, deletes: bool
) -> None:
    fake(monkeypatch, deleted, deletes=deletes)
    (row,) = deleted.check(QUICK)
    assert row.valid
    assert (row.bad == 0) is deletes


@pytest.mark.deep
def test_a_memory_that_is_not_deleted_is_found_by_every_reader_and_in_the_bytes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(MemoryMesh, "erase", lambda *_: None)
    monkeypatch.setattr(MemoryMesh, "delete", lambda *_: None)
    read, left = deleted.ours(QUICK, "sqlite")
    assert read.valid
    assert left.bad == left.trials > 0
    assert read.bad > read.trials / 2


@pytest.mark.deep
@pytest.mark.parametrize("whole", [True, False])
@pytest.mark.parametrize("asked", [hidden.methods, hidden.pages])
def test_a_hidden_text_that_reaches_a_method_or_a_page_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, asked: Callable[..., Row], whole: bool
) -> None:
    world = hidden.tests("faces.test_hidden_memories")
    if not whole:
        # Nothing gets its status: all of it is shown.
        monkeypatch.setattr(world, "put", lambda *_, **__: None)
    row = asked("memory", hidden.world("memory://"), str(tmp_path))
    assert (row.bad == 0) is whole
    assert row.valid or not whole


def test_a_write_that_is_acknowledged_and_not_stored_is_found(tmp_path: Path) -> None:
    file = tmp_path / "memory.db"
    with MemoryMesh(f"sqlite:///{file}", embedder="hash") as mesh:
        mesh.add("It was stored.")
    tally = Tally("processes", "lost")
    place = places.Place(f"sqlite:///{file}", lambda: places.is_sound(file))
    processes._compare(tally, place, Counter(["It was stored.", "It was not."]))
    assert (tally.trials, tally.bad, tally.examples) == (3, 1, ["It was not.: 0 times"])


@pytest.mark.parametrize(
    ("how", "bad", "valid"), [("answers_all", True, True), ("answers_none", False, False)]
)
def test_a_system_that_answers_everything_is_bad_and_one_that_answers_nothing_invalid(
    monkeypatch: pytest.MonkeyPatch, how: str, bad: bool, valid: bool
) -> None:
    fake(monkeypatch, unrelated, **{how: True})
    (row,) = unrelated.check(QUICK)
    assert (row.bad > 0, row.valid) == (bad, valid)


@pytest.mark.parametrize("deduplicates", [True, False])
def test_a_system_that_keeps_duplicates_is_found(
    monkeypatch: pytest.MonkeyPatch, deduplicates: bool
) -> None:
    fake(monkeypatch, duplicates, deduplicates=deduplicates)
    (row,) = duplicates.check(QUICK)
    assert row.valid
    assert (row.bad == 0) is deduplicates


def test_texts_with_another_meaning_that_are_merged_are_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(duplicates.WAYS, "merges all", lambda mesh, one, _: mesh.add(one))
    row = duplicates.merged(QUICK, "merges all")
    assert row.bad == row.trials > 0
    assert row.valid


@pytest.mark.parametrize(
    ("how", "bad", "valid"),
    [({}, True, True), ({"judges": True}, False, True), ({"forgets": True}, False, False)],
)
def test_a_system_that_keeps_junk_is_found_and_one_that_keeps_nothing_is_invalid(
    monkeypatch: pytest.MonkeyPatch, how: dict[str, bool], bad: bool, valid: bool
) -> None:
    fake(monkeypatch, junk, **how)
    row = junk.captured(QUICK, "fake", "generated", junk.conversations(QUICK))
    assert (row.bad == row.trials > 0, row.valid) == (bad, valid)


def test_a_statement_that_is_called_junk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    row = junk.archived(QUICK)
    assert (row.bad, row.valid) == (0, True)
    monkeypatch.setattr(junk, "statements", junk._greetings)
    assert junk.archived(QUICK).bad > 0


@pytest.mark.parametrize("loses", [True, False])
def test_a_system_that_loses_an_acknowledged_text_is_found(
    monkeypatch: pytest.MonkeyPatch, loses: bool
) -> None:
    fake(monkeypatch, killed, loses=loses)
    (row,) = killed.check(QUICK)
    assert row.valid
    assert (row.bad > 0) is loses


@pytest.mark.deep
def test_a_kill_after_which_a_memory_is_gone_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_MESH_EMBEDDER", "hash")
    store = killed.OPERATIONS["store"]
    assert [killed.at_steps(QUICK, "store", store).bad for _ in range(2)] == [0, 0]
    found = iter([{"mem_1": "It was there before."}, {}] * 2)
    monkeypatch.setattr(killed, "texts", lambda _: next(found))
    row = killed.at_steps(QUICK, "store", store)
    assert row.valid
    assert row.bad == row.trials == 2


class NoDisk:
    """A program that acknowledges every text, and stores none."""

    def __init__(self, program: str, *, calls: list[object], **_: object) -> None:
        self._calls = calls

    def __enter__(self) -> "NoDisk":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def rest(self) -> list[dict[str, bool]]:
        return [{"ok": True} for _ in self._calls]

    def end(self) -> int:
        return 0


def test_a_text_that_a_full_disk_swallows_is_found_and_a_disk_that_is_not_full_is_no_trial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(full_disk.tests("durability.children"), "Child", NoDisk)
    (row,) = full_disk.check(Run(quick=True, systems=[OURS]))
    assert row.bad > 0
    assert not row.valid


def test_a_claim_that_does_not_supersede_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(mesh: MemoryMesh, person: str, place: str, *, guessed: bool) -> None:
        mesh.scoped(agent_id="ann").add(supersession._sentence(person, place))

    assert supersession.histories(QUICK).bad == 0
    monkeypatch.setattr(supersession, "_say", say)
    assert supersession.histories(QUICK).bad > 0


def test_a_system_that_answers_with_the_stale_text_first_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fake(monkeypatch, supersession, answers_all=True)
    (row,) = supersession.check(QUICK)
    assert row.valid
    assert row.bad == row.trials > 0


def test_a_redactor_that_masks_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redaction.Redactor, "redact", lambda _, text: text)
    missed, _ = redaction.check(Run(quick=True, systems=[OURS]))
    assert missed.valid
    assert missed.bad == missed.trials > 0


def test_an_edit_that_verification_does_not_see_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(quick=True, systems=[OURS])
    (row,) = tampering.check(run)
    assert (row.bad, row.valid) == (0, True)
    monkeypatch.setattr(tampering, "is_verified", lambda _: True)
    (row,) = tampering.check(run)
    assert row.bad == row.trials > 0
    monkeypatch.setattr(tampering, "is_verified", lambda _: False)
    (row,) = tampering.check(run)  # the control: a store that was rewritten as it is verifies
    assert not row.valid


@pytest.mark.parametrize("kind", ["json", "lancedb"])
@pytest.mark.deep
def test_other_programs_edit_each_kind_of_store(tmp_path: Path, kind: str) -> None:
    store = tmp_path / places.FILES[kind]
    with MemoryMesh(f"{kind}:///{store}", agent_id="ann", embedder="none") as mesh:
        mesh.add_many([(text, None) for text in tampering._TEXTS])
        mesh.compact()
    edits = [*tampering.edits()]
    # A deletion, a change, an exchange of blocks, and one of memories.
    for edit in (edits[0], edits[1], edits[9], edits[-1]):
        with tampering.copied(store) as copy:
            assert tampering._all_of(tampering.EDITORS[kind], edit, copy)
            assert not tampering.is_verified(f"{kind}:///{copy}")
    assert tampering.is_verified(f"{kind}:///{store}")


# --- the record ---


def row(check: str = "deleted", *, bad: int = 0, control: int = 1, system: str = OURS) -> Row:
    return Row(
        check=check, what="left", system=system, trials=4, bad=bad, control=control, controls=1
    )


def test_a_row_whose_control_fails_is_invalid_and_so_is_one_without_controls_or_trials() -> None:
    assert row().valid
    assert not row(control=0).valid
    assert not Tally("deleted", "left").row().valid


def test_a_check_that_is_run_again_replaces_its_own_rows_only(tmp_path: Path) -> None:
    out, run = tmp_path / "hygiene.json", Run(quick=True, systems=[OURS])
    for name, bad in (("hidden", 1), ("deleted", 2), ("hidden", 3)):
        made = row(name, bad=bad)
        assert list(hygiene.measure(name, run, out, lambda _, made=made: [made])) == [made]  # type: ignore[misc]
    parts = json.loads(out.read_text())["parts"]
    assert [(part["check"], [one["bad"] for one in part["rows"]]) for part in parts] == [
        ("hidden", [3]),
        ("deleted", [2]),
    ]


def test_the_picture_has_a_bar_for_each_system_of_a_figure_that_several_have() -> None:
    rows = [row(bad=1), row(bad=2, system="chroma"), row(system="mem0", control=0)]
    made = bars(
        [
            {
                "rows": [
                    {**{name: getattr(one, name) for name in Row.__slots__}, "valid": one.valid}
                    for one in rows
                ]
            }
        ]
    )
    assert made.count("<rect") == 2
    assert "memory-mesh 25.0" in made
    assert "mem0" not in made
