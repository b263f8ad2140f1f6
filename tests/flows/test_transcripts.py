"""Reading the file of a transcript."""

import json
import tracemalloc
from pathlib import Path

import pytest

from memory_mesh import InvalidInput
from memory_mesh.flows.lane import capture
from memory_mesh.flows.lane.capture import open_transcript

LINE = json.dumps(
    {"type": "user", "uuid": "u", "message": {"role": "user", "content": "Use tabs — always."}},
    ensure_ascii=False,
)


def test_a_file_is_read_also_when_its_last_line_is_cut_off_or_a_line_is_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "t.jsonl"
    file.write_bytes(b"\n".join([LINE.encode(), b"x" * 3_000, LINE.encode(), LINE.encode()[:-40]]))
    monkeypatch.setattr(capture, "_MAX_LINE_BYTES", 1_000)
    monkeypatch.setattr(capture, "_CHUNK_BYTES", 700)
    transcript = open_transcript(file)
    assert [one["content"] for one in transcript] == ["Use tabs — always."] * 2
    assert transcript.skipped == 2


def test_a_file_that_cannot_be_opened_is_an_error_that_names_it(tmp_path: Path) -> None:
    for path in (tmp_path / "missing.jsonl", tmp_path, "a\0b", "~nobody-has-this-name/t.jsonl"):
        with pytest.raises(InvalidInput, match=r"the transcript '.* cannot be read"):
            open_transcript(path)


@pytest.mark.deep
def test_a_transcript_of_100_mb_needs_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl"
    output = json.dumps(
        {
            "type": "user",
            "message": {
                "role": "user",
                "content": [{"type": "tool_result", "content": "x" * 100_000}],
            },
        }
    )
    with file.open("w") as out:
        for _ in range(1_000):
            out.write(f"{LINE}\n{output}\n")
    assert file.stat().st_size > 100_000_000
    tracemalloc.start()
    assert sum(1 for _ in open_transcript(file)) == 2_000
    assert tracemalloc.get_traced_memory()[1] < 5_000_000
    tracemalloc.stop()
