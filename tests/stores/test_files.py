"""A folder on a disk: what is listed, in which order, and what is refused by name."""

import os
from pathlib import Path
from tempfile import TemporaryFile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import Selection
from memory_mesh.core.ports import Listed
from memory_mesh.stores.files import DiskFolder, find_bytes

FLAT, DEEP = Selection(), Selection(recursive=True)


def write(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"text of {name}")


def listed(folder: Path, wanted: Selection) -> dict[str, str | None]:
    return {one.source: one.fault for one in DiskFolder(str(folder)).files(wanted)}


def sources(folder: Path, wanted: Selection) -> list[str]:
    return [one.source for one in DiskFolder(str(folder)).files(wanted)]


@pytest.mark.req("MESH-152")
def test_files_come_by_name_and_those_of_sub_folders_behind_them(tmp_path: Path) -> None:
    write(tmp_path, "z.md", "b/y.md", "a.md", "a/x.md", "a/b/w.md", "b.md", "B.MD", "c.txt")
    assert sources(tmp_path, DEEP) == [
        "B.MD",
        "a.md",
        "b.md",
        "z.md",
        "a/x.md",
        "a/b/w.md",
        "b/y.md",
    ]
    assert sources(tmp_path, FLAT) == ["B.MD", "a.md", "b.md", "z.md"]


def test_what_is_hidden_is_not_listed(tmp_path: Path) -> None:
    write(tmp_path, "seen.md", ".hidden.md", ".git/in.md", "sub/.deep/in.md", "sub/seen.md")
    assert sources(tmp_path, DEEP) == ["seen.md", "sub/seen.md"]


def test_a_folder_is_the_same_whichever_way_it_was_reached(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "docs/a.md")
    (tmp_path / "link").symlink_to("docs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    ways = ("docs", "./docs/", "docs/../docs", "link", "~/docs", str(tmp_path / "docs"))
    assert {DiskFolder(way).root for way in ways} == {(tmp_path / "docs").resolve().as_posix()}


def test_links_are_followed_within_the_folder_and_not_out_of_it(tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    write(tmp_path, "secret.md", "elsewhere/in.md", "docs/a.md", "docs/sub/b.md")
    (docs / "inside.md").symlink_to("sub/b.md")
    (docs / "outside.md").symlink_to(tmp_path / "secret.md")
    (docs / "broken.md").symlink_to("nothing.md")
    (docs / "broken").symlink_to("nothing")
    (docs / "itself.md").symlink_to("itself.md")
    (docs / "away").symlink_to(tmp_path / "elsewhere")
    (docs / "again").symlink_to("sub")
    (docs / "sub" / "up").symlink_to(docs)
    (docs / "sub" / "over").symlink_to(tmp_path)
    found = listed(docs, DEEP)
    faults = {source: fault for source, fault in found.items() if fault}
    assert found.keys() - faults.keys() == {"a.md", "inside.md", "sub/b.md"}
    assert faults == {
        "outside.md": "it leads out of the folder",
        "broken.md": "it is a broken link: No such file or directory",
        "itself.md": "it is a broken link: Too many levels of symbolic links",
        "away/": "it leads out of the folder",
        "sub/up/": "it leads back to a folder that contains it",
        "sub/over/": "it leads back to a folder that contains it",
    }
    assert listed(docs, FLAT).keys() == {
        "a.md",
        "inside.md",
        "outside.md",
        "broken.md",
        "itself.md",
    }


def test_a_folder_beside_this_one_that_begins_with_its_name_is_outside(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "docs2/b.md")
    (tmp_path / "docs" / "b.md").symlink_to(tmp_path / "docs2" / "b.md")
    assert listed(tmp_path / "docs", FLAT) == {"a.md": None, "b.md": "it leads out of the folder"}


def test_what_is_no_file_is_named_and_never_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "folder.md").mkdir()
    assert listed(tmp_path, FLAT) == {"pipe.md": "it is not a regular file"}
    with pytest.raises(InvalidInput, match="not a regular file"):
        DiskFolder(str(tmp_path)).read("pipe.md", max_bytes=10)


def test_a_name_that_is_no_text_is_named(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.md")).write_text("x")
    assert listed(tmp_path, FLAT) == {"caf\udce9.md": "its name is not valid UTF-8"}


def test_a_sub_folder_that_cannot_be_read_is_named_and_the_others_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "a.md", "closed/b.md", "open/c.md")
    assert "closed/b.md" in sources(tmp_path, DEEP)
    real = os.scandir

    def scandir(path: str) -> object:
        if str(path).rstrip("/").endswith("closed"):
            raise PermissionError(13, "Permission denied")
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert list(DiskFolder(str(tmp_path)).files(DEEP)) == [
        Listed("a.md"),
        Listed("closed/", "it cannot be read: Permission denied"),
        Listed("open/c.md"),
    ]


def test_reading_stops_at_the_most_and_says_so(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"12345")
    folder = DiskFolder(str(tmp_path))
    assert folder.read("a.md", max_bytes=5) == b"12345"
    with pytest.raises(InvalidInput, match="too long; expected at most 4 bytes"):
        folder.read("a.md", max_bytes=4)


def test_what_became_unreadable_since_it_was_listed_is_an_error_that_says_so(
    tmp_path: Path,
) -> None:
    write(tmp_path, "docs/a.md", "secret.md")
    folder = DiskFolder(str(tmp_path / "docs"))
    assert folder.read("a.md", max_bytes=100)
    (tmp_path / "docs" / "a.md").unlink()
    with pytest.raises(InvalidInput, match="cannot be read: No such file"):
        folder.read("a.md", max_bytes=100)
    (tmp_path / "docs" / "a.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(InvalidInput, match="leads out of the folder"):
        folder.read("a.md", max_bytes=100)


def test_what_is_no_folder_is_refused(tmp_path: Path) -> None:
    write(tmp_path, "a.md")
    with pytest.raises(InvalidInput, match="is a file; expected a folder"):
        DiskFolder(str(tmp_path / "a.md"))
    for path in ("nowhere", "", "nul\0"):
        with pytest.raises(InvalidInput, match="cannot be read"):
            DiskFolder(str(tmp_path / "x" / path))


def test_folders_within_folders_have_no_depth_that_is_too_deep(tmp_path: Path) -> None:
    path = tmp_path
    for _ in range(300):
        path /= "d"
    path.mkdir(parents=True)
    (path / "a.md").write_text("deep")
    assert len(sources(tmp_path, DEEP)) == 1


# --- bytes in files ---


@given(st.binary(max_size=120), st.lists(st.integers(0, 120), max_size=4), st.integers(1, 40))
def test_samples_are_found_at_every_place_of_a_file_that_is_read_in_pieces(
    data: bytes, places: list[int], size: int
) -> None:
    inside = {data[at : at + 8 + at % 9] for at in places if at + 8 <= len(data)}
    samples = inside | {b"is not in the file", *(sample + b"\0" for sample in inside)}
    with TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr("memory_mesh.stores.files._READ_AT_ONCE", size)
        file.write(data)
        file.flush()
        assert find_bytes(file.fileno(), samples) == {
            sample for sample in samples if sample in data
        }
