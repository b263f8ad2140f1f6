"""The size of the package: what counts, and what happens when it outgrows its bounds."""

import sys
from pathlib import Path

import pytest

import house


def test_imports_docstrings_and_dots_are_no_statements() -> None:
    text = (
        '"""Doc."""\nimport os\nfrom a import (\n    b,\n)\n\n\ndef f(x: int) -> int:\n'
        '    """Doc."""\n'
    )
    text += "    if x:\n        return 1\n    return 2\n"
    size = house.size_of(text)
    assert (size.modules, size.lines, size.imports, size.statements) == (1, 12, 4, 4)
    assert house.size_of("class A:\n    def f(self) -> None: ...\n").statements == 2
    assert house.size_of("x = 1\n" * 3).statements == 3


def test_a_line_is_long_from_101_columns() -> None:
    assert house.size_of(f"x = '{'a' * 94}'\n").long_lines == 0
    assert house.size_of(f"x = '{'a' * 95}'\n").long_lines == 1


def test_sizes_are_added_up_by_folder(tmp_path: Path) -> None:
    for name in ("one/a.py", "one/two/b.py", "c.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    found = house.sizes(tmp_path)
    assert {folder: size.statements for folder, size in found.items()} == {".": 1, "one": 2}


def run(monkeypatch: pytest.MonkeyPatch, *words: str) -> int:
    monkeypatch.setattr(sys, "argv", ["house.py", *words])
    return house.main()


@pytest.mark.parametrize(("statements", "modules", "code"), [(1, 1, 0), (0, 1, 1), (1, 0, 1)])
def test_a_check_fails_above_a_bound_and_says_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    statements: int,
    modules: int,
    code: int,
) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    bounds = tmp_path / "bounds.toml"
    bounds.write_text(f"statements = {statements}\nmodules = {modules}\n")
    monkeypatch.setattr(house, "BOUNDS", bounds)
    assert run(monkeypatch, "--check", "--source", str(tmp_path)) == code
    assert ("raise the bound there with the reason" in capsys.readouterr().err) == bool(code)
    assert run(monkeypatch, "--source", str(tmp_path)) == 0
