"""Exports of audit chains can be verified without the store."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from memory_mesh.core import audit
from memory_mesh.core.audit import Broken, Entry, Sound
from memory_mesh.core.audit.blocks import retain
from memory_mesh.core.audit.chain import block_seal
from memory_mesh.core.audit.signing import EXPORT_NAMES, line, verify_export
from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import Block, iso
from memory_mesh.testing.fakes import NEW_YEAR

FOLDER = Path(__file__).parents[1] / "data" / "stores"


def entry(ms: int, memory: str, agent: str) -> Entry:
    said = {
        "memory_type": "global",
        "content": f"{memory}\u2028\x85 é",
        "hypothesis": "none",
        "action": "add",
        "revision": 1,
    }
    return Entry(
        id=f"yamo_retain_{ms}_aaaaaa",
        operation_type="retain",
        ms=ms,
        write=lambda seal: retain(seal, agent=agent, memory_id=memory, at=iso(ms), **said),
        ref=memory,
        metadata={"action": "add"},
    )


def chain(agent: str, count: int = 3) -> list[Block]:
    entries = [entry(NEW_YEAR + n, f"mem_{agent}{n}", agent) for n in range(count)]
    return audit.append(audit.chain_name("u", agent), None, entries)[0]


def lines(*blocks: Block) -> list[str]:
    return [line(block) + "\n" for block in blocks]


def test_every_chain_of_an_export_is_told_of() -> None:
    ann, bob = chain("ann"), chain("bob", 2)
    found = verify_export([*lines(*ann), "\n", *lines(*bob)])
    assert found == [
        Sound(one[0].chain, len(one), one[-1].block_hash, one[-1].seal) for one in (ann, bob)
    ]


@pytest.mark.req("MESH-037")
def test_a_line_has_the_columns_of_the_documents_table_and_is_one_line() -> None:
    (block,) = chain("ann", 1)
    text = line(block)
    assert len(text.splitlines()) == 1
    assert list(json.loads(text)) == list(EXPORT_NAMES)
    assert EXPORT_NAMES[:8] == (
        "id",
        "agent_id",
        "operation_type",
        "yamo_text",
        "timestamp",
        "block_hash",
        "prev_hash",
        "metadata",
    )
    assert json.loads(text)["yamo_text"] == block.yamo_text


@pytest.mark.req("MESH-042")
@pytest.mark.parametrize("name", [name for name in EXPORT_NAMES if name != "metadata"])
def test_an_altered_line_is_found(name: str) -> None:
    texts = lines(*chain("ann"))
    said = json.loads(texts[1])
    altered = {"number": 7, "memory_revision": 7, "timestamp": iso(0), "id": "yamo_retain_1_aaaaaa"}
    said[name] = altered.get(name, "altered")
    texts[1] = json.dumps(said)
    assert any(isinstance(found, Broken) for found in verify_export(texts))


@pytest.mark.req("MESH-042")
def test_a_line_that_is_gone_doubled_or_moved_is_found() -> None:
    one, two, three = lines(*chain("ann"))
    for meddled in (
        [two, three],
        [one, three],
        [one, one, two, three],
        [one, three, two],
        [three, two, one],
    ):
        assert any(isinstance(found, Broken) for found in verify_export(meddled))


@pytest.mark.req("MESH-042")
def test_a_cut_end_is_found_by_a_noted_head_of_whichever_chain() -> None:
    ann, bob = chain("ann"), chain("bob")
    noted = (3, bob[2].block_hash)
    assert {type(found) for found in verify_export(lines(*ann, *bob), noted=noted)} == {Sound}
    cut = verify_export(lines(*ann, *bob[:2]), noted=noted)
    assert [type(found) for found in cut] == [Sound, Sound, Broken]


@pytest.mark.parametrize("text", ["no JSON", "[]", "{}", "7", '{"id": 1}', "[" * 100_000])
def test_what_is_no_block_is_refused_with_its_line(text: str) -> None:
    with pytest.raises(InvalidInput, match="line 2 is no"):
        verify_export([*lines(*chain("ann", 1)), text])


@pytest.mark.parametrize("name", EXPORT_NAMES)
def test_a_value_of_a_wrong_type_is_refused_by_its_name(name: str) -> None:
    said = json.loads(line(chain("ann", 1)[0]))
    with pytest.raises(InvalidInput, match=name):
        verify_export([json.dumps({**said, name: ["odd"]})])


@pytest.mark.parametrize("texts", [[], ["\n", "  \n"]], ids=["no line", "empty lines"])
@pytest.mark.parametrize("noted", [None, (0, ""), (1, "0" * 64)])
def test_an_empty_export_is_an_error(texts: list[str], noted: tuple[int, str] | None) -> None:
    with pytest.raises(InvalidInput, match="the export is empty"):
        verify_export(texts, noted=noted)


@pytest.mark.req("MESH-042")
def test_a_chain_that_is_given_twice_is_found() -> None:
    ann, bob = lines(*chain("ann")), lines(*chain("bob"))
    assert {type(found) for found in verify_export([*ann, *bob])} == {Sound}
    for given in (
        [*ann, *bob, *ann],
        [*ann, *bob, *lines(*chain("ann", 1))],
        [ann[0], bob[0], *ann[1:], *bob[1:]],
    ):
        assert "the chain is given twice" in [
            found.reason for found in verify_export(given) if isinstance(found, Broken)
        ]
    assert any(isinstance(found, Broken) for found in verify_export([*ann, *ann]))


@pytest.mark.req("MESH-042")
def test_withheld_blocks_are_verified_by_hash_and_seal_and_counted() -> None:
    ann = chain("ann", 4)
    held_back = [audit.withhold(block) if block.number in (1, 3) else block for block in ann]
    noted = (2, ann[1].seal)
    (found,) = verify_export(lines(*held_back), noted=noted)
    assert (found.number, found.withheld, found.newer) == (4, 2, 2)
    for name in ("block_hash", "seal", "digest", "id", "created_at", "operation_type"):
        forged = [*held_back[:2], replace(held_back[2], **{name: iso(0)}), held_back[3]]
        assert any(isinstance(verdict, Broken) for verdict in verify_export(lines(*forged))), name
    assert isinstance(verify_export(lines(held_back[0], *held_back[2:]))[0], Broken)


@pytest.mark.req("MESH-042")
def test_a_noted_hash_of_a_withheld_block_is_sound_with_a_caution() -> None:
    ann = [audit.withhold(block) for block in chain("ann", 2)]
    noted = chain("bob", 2)[1]
    blocks = [
        replace(ann[0], block_hash="0" * 64),
        replace(ann[1], block_hash=noted.block_hash, prev_hash="0" * 64),
    ]
    first = replace(blocks[0], seal=block_seal(blocks[0], None))
    forged = lines(first, replace(blocks[1], seal=block_seal(blocks[1], first.seal)))
    (found,) = verify_export(forged, noted=(2, noted.block_hash))
    assert "does not bind what was before a withheld block" in found.caution
    assert any(
        isinstance(verdict, Broken) for verdict in verify_export(forged, noted=(2, noted.seal))
    )
    (found,) = verify_export(lines(*chain("bob", 2)), noted=(2, noted.block_hash))
    assert found.caution == ""


@pytest.mark.req("MESH-042")
def test_a_text_that_is_withheld_in_a_store_is_a_break() -> None:
    ann = chain("ann", 3)
    assert isinstance(audit.verify_chain(ann[0].chain, ann), Sound)
    assert isinstance(audit.verify_chain(ann[0].chain, [audit.withhold(ann[0]), *ann[1:]]), Broken)


@pytest.mark.req("MESH-042")
def test_an_export_of_an_earlier_version_is_still_verified() -> None:
    text = (FOLDER / "0.1-export.jsonl").read_text(encoding="utf-8").splitlines()
    assert "seal" not in json.loads(text[0])
    assert {type(found) for found in verify_export(text)} == {Sound}
    assert any(isinstance(found, Broken) for found in verify_export([text[0], *text[2:]]))
