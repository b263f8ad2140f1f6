"""The tests run with every Python that the package names: each is found, or is named as one that
was not."""

import re
import sys
import tomllib
from pathlib import Path

import pytest

import pythons


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any Python."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path / "pyenv"))
    return tmp_path


def test_the_package_names_the_versions_that_the_tests_are_run_with() -> None:
    root = pythons.ROOT
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = [
        one.rpartition(" ")[2]
        for one in project["classifiers"]
        if one.startswith("Programming Language :: Python :: 3.")
    ]
    assert pythons.supported() == named == ["3.11", "3.12", "3.13"]
    assert project["requires-python"] == f">={named[0]}"
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    recipe = "$(BIN)/python tools/pythons.py $(if $(filter true,$(CI)),--newest)"
    assert re.search(rf"(?m)^test-pythons:.*\n\t{re.escape(recipe)}$", makefile)
    assert "\nmake test-pythons\n" in (root / ".ci" / "run").read_text(encoding="utf-8")


def test_a_python_is_taken_from_the_path_or_else_the_newest_of_pyenv(bare: Path) -> None:
    assert pythons.find("3.12") is None
    # As pyenv's own, if the version is not switched on.
    script(bare / "bin" / "python3.12", "exit 127")
    script(bare / "pyenv" / "versions" / "3.12.9" / "bin" / "python", "echo 3.12")
    newest = script(bare / "pyenv" / "versions" / "3.12.10" / "bin" / "python", "echo 3.12")
    # Not what its name says.
    script(bare / "pyenv" / "versions" / "3.12.11" / "bin" / "python", "echo 3.11")
    assert pythons.find("3.12") == newest
    assert pythons.find("3.13") is None
    named = script(bare / "bin" / "python3.12", "echo 3.12")
    assert pythons.find("3.12") == named


def test_a_version_that_is_missing_is_named_and_is_no_failure(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pythons.main([]) == 0
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    missing = [version for version in pythons.supported() if version != running]
    out = capsys.readouterr().out
    assert all(f"Python {version}: not on this machine" in out for version in missing)
    assert f"Python {running}: that of .venv" in out


def test_a_version_whose_tests_fail_is_a_failure(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    version = next(
        one
        for one in pythons.supported()
        if one != f"{sys.version_info.major}.{sys.version_info.minor}"
    )
    python = script(bare / "bin" / f"python{version}", f"echo {version}")
    calls = bare / "calls"
    script(bare / "bin" / "make", f'echo "$@" >> {calls}')
    assert pythons.main([]) == 0
    assert calls.read_text() == f"test VENV=build/python{version} PYTHON={python}\n"
    assert f"Python {version}: passed with {python}" in capsys.readouterr().out
    script(bare / "bin" / "make", "exit 2")
    assert pythons.main([]) == 1
    assert f"Python {version}: failed" in capsys.readouterr().out


def test_in_ci_the_newest_one_is_run_and_those_between_are_named(
    bare: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    running = f"{sys.version_info.major}.{sys.version_info.minor}"
    others = [version for version in pythons.supported() if version != running]
    paths = [script(bare / "bin" / f"python{one}", f"echo {one}") for one in others]
    calls = bare / "calls"
    script(bare / "bin" / "make", f'echo "$@" >> {calls}')
    assert pythons.main(["--newest"]) == 0
    words = f"test VENV=build/python{others[-1]} PYTHON={paths[-1]} CASES=1"
    assert calls.read_text() == f"{words}\n"
    assert f"Python {others[0]}: not run, at {paths[0]}\n" in capsys.readouterr().out
