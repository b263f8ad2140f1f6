"""How many bytes a memory takes in the file of a SQLite store."""

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from memory_mesh import MemoryMesh
from memory_mesh.models import HashingEmbedder

FIXTURES = Path(__file__).parents[1] / "data" / "stores"
COUNT = 300


def page_size(file: Path) -> int:
    with closing(sqlite3.connect(file)) as connection:
        return int(connection.execute("PRAGMA page_size").fetchone()[0])


def test_a_memory_of_a_hundred_characters_takes_less_than_4700_bytes_with_vector_and_audit_block(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    text = (
        "On day {} the harbour master wrote the tide, the wind and the names of {} boats that came "
        "into his log."
    )
    texts = [text.format(n, n * 7) for n in range(COUNT)]
    assert 95 < len(texts[7]) < 110
    with MemoryMesh(store=f"sqlite:///{file}", embedder=HashingEmbedder(384)) as mesh:
        mesh.add_many(
            [
                (text, {"speaker": "Ana", "session_id": "s1", "turn": n})
                for n, text in enumerate(texts)
            ]
        )
    with closing(sqlite3.connect(file)) as connection:
        assert connection.execute(
            "SELECT count(*), min(length(embedding)) FROM memories"
        ).fetchone() == (COUNT, 384 * 4)
    assert file.stat().st_size / COUNT < 4700


def test_a_file_of_an_earlier_version_keeps_its_page_size_and_is_written_to_and_compacted(
    tmp_path: Path,
) -> None:
    file = tmp_path / "memory.db"
    shutil.copyfile(FIXTURES / "0.3-shared.db", file)
    assert page_size(file) == 4096
    with MemoryMesh(store=f"sqlite:///{file}") as mesh:
        id_ = mesh.add("The tide was high.").id
        assert mesh.compact()
        assert mesh.get(id_) is not None
    assert page_size(file) == 4096
