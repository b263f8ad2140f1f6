"""The files of a folder that are selected, and the fingerprints by which they are recognised."""

import pytest

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.intake import Selection, file_print, folder_print, is_file_print
from memory_mesh.core.model import Reader

ANN = Reader("u", "ann", "s1")


@pytest.mark.req("MESH-152")
@pytest.mark.parametrize(
    "said", [".md", "md", " MD ", "*.md", [".md"], ("md", ".MD"), iter(["md"])]
)
def test_the_dot_is_optional_and_so_are_capitals(said: object) -> None:
    assert Selection.of(said, recursive=False) == Selection((".md",), recursive=False)


@pytest.mark.req("MESH-152")
def test_several_extensions_can_be_meant_at_once() -> None:
    wanted = Selection.of(["md", "tar.gz"], recursive=True)
    sources = ("a.md", "sub/B.MD", "c.tar.gz", "d.gz", "md", "e.md.txt")
    assert [source for source in sources if wanted.covers(source)] == [
        "a.md",
        "sub/B.MD",
        "c.tar.gz",
    ]


@pytest.mark.req("MESH-152")
def test_files_in_sub_folders_are_selected_only_if_recursive() -> None:
    assert Selection((".md",), recursive=True).covers("sub/a.md")
    assert not Selection((".md",), recursive=False).covers("sub/a.md")


@pytest.mark.parametrize("said", ["", ".", "*", " ", "a/b", "*.m*", 3, None, [], ["md", ""]])
def test_what_is_no_extension_is_refused(said: object) -> None:
    with pytest.raises(InvalidInput, match="extension"):
        Selection.of(said, recursive=False)


def test_a_file_is_the_same_for_the_same_agent_folder_and_path_alone() -> None:
    def one(
        reader: Reader = ANN, root: str = "/docs", source: str = "a.md", type_: str | None = None
    ) -> str:
        return file_print(folder_print(reader, root, type_), source)

    others = [
        one(reader=Reader("v", "ann", "s1")), one(reader=Reader("u", "bob", "s1")),
        one(reader=Reader(None, "ann", "s1")), one(root="/other"), one(source="b.md"),
        one(type_="session"),
    ]  # fmt: skip
    assert len({one(), *others}) == 7
    assert one() == one(type_="agent") == one(reader=Reader("u", "ann", "s2"))
    assert one(type_="session") != one(type_="session", reader=Reader("u", "ann", "s2"))


def test_every_file_of_a_folder_has_a_print_that_begins_with_the_folders() -> None:
    folder = folder_print(ANN, "/docs", None)
    assert file_print(folder, "a.md").startswith(folder)
    assert is_file_print(file_print(folder, "a\udcff.md"))
    assert not is_file_print("0" * 64)
    assert not is_file_print(None)
