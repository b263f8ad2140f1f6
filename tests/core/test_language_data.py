"""The data files of the language work: every entry is used, and every use has its entry."""

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from memory_mesh.core import language
from memory_mesh.core.language.packaged import (
    Expressions,
    Tables,
    WordLists,
    WordSets,
    read_entries,
)

FOLDER = Path(language.__file__).parent
MODULES = [
    path
    for path in sorted(FOLDER.rglob("*.py"))
    if (path.parent / "data" / f"{path.stem}.toml").exists() and path.stem != "injection"
]
USE = re.compile(r"(?:_RE|_WORDS|_LISTS|_PHRASES|_OPENINGS|Tables\(__name__\))\.([a-z]\w*)")
REFERENCE = re.compile(r"\{\{(\w+)\}\}")


def entries_of(path: Path) -> dict[str, str]:
    return tomllib.loads((path.parent / "data" / f"{path.stem}.toml").read_text("utf-8"))


def name_of(path: Path) -> str:
    return ".".join(("memory_mesh.core.language", *path.relative_to(FOLDER).with_suffix("").parts))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_data_file_has_what_its_module_uses_and_nothing_else(path: Path) -> None:
    entries = entries_of(path)
    used = {*USE.findall(path.read_text("utf-8")), *REFERENCE.findall("".join(entries.values()))}
    # Of capture, by their names.
    cues = {name for name in entries if name.startswith(("cue_", "sign_"))}
    assert used | cues == entries.keys()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_a_data_file_is_read_as_toml_says(path: Path) -> None:
    read = {name: text.removeprefix("\n") for name, text in read_entries(name_of(path)).items()}
    assert read == entries_of(path)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_every_expression_compiles(path: Path) -> None:
    module = import_module(name_of(path))
    for name in re.findall(r"_RE\.([a-z]\w*)", path.read_text("utf-8")):
        re.compile(getattr(module._RE, name).source)


def test_entries_are_read_as_expressions_words_and_tables() -> None:
    module = "memory_mesh.core.language.redaction.pairs"
    assert Expressions(module).break_.fullmatch("\r\n")
    assert Expressions(module).reads.source == Expressions(module).reader.source + r"[^\n]{0,100}$"
    assert WordSets(module).pin_columns == {"pin", "cvv", "cvc", "otp"}
    assert "| pass" in WordLists(module).column_stems
    assert ["sshpass", "separate=-p", "glued=-p"] in Tables(module).commands


def test_an_entry_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(AttributeError, match="no entry 'nothing'"):
        Expressions("memory_mesh.core.language.redaction.pairs").nothing.search("x")
