"""Mutation testing of the requirements: the list of bugs fits the code, and only a failed test
of the id counts as caught."""

import json
from pathlib import Path

import pytest

import mutants

ROOT = Path(__file__).parents[1]


def test_every_bug_fits_the_code_and_every_requirement_with_a_test_has_one() -> None:
    bugs, files = [*mutants.read(ROOT)], mutants.files_of_tests(ROOT)
    assert len({bug.id for bug in bugs} - {""}) > 150
    assert [
        *mutants.unfit(bugs, ROOT),
        *mutants.untested(bugs, files),
        *mutants.without_bug(bugs, files),
    ] == []


def test_the_page_lists_every_bug_and_none_of_a_requirement_survived() -> None:
    page = (ROOT / "docs" / "internals" / "mutations.md").read_text(encoding="utf-8")
    assert [
        bug.label for bug in mutants.read(ROOT) if f"{bug.name} | `{bug.file}` |" not in page
    ] == []
    requirements = page.partition("## Requirements")[2].partition("## Stores")[0]
    assert "| survived |" not in requirements
    count = sum(bool(bug.id) for bug in mutants.read(ROOT))
    assert f"{count} of {count} bugs that break a requirement" in page
    chosen = mutants.caught_before(ROOT)  # what is tried first, by the page
    assert [
        bug.label for bug in mutants.read(ROOT) if bug.id and (bug.name, bug.file) not in chosen
    ] == []


CODE = """
def add(one, two):
    return one + two
"""
TESTS = """
import pytest
from memory_mesh import numbers

@pytest.mark.req("ONE-1")
def test_two_and_two_are_four(): assert numbers.add(2, 2) == 4

@pytest.mark.req("ONE-2")
def test_it_can_be_called(): numbers.add(1, 2)

def test_without_an_id(): assert numbers.add(1, 1) == 2
"""
BUG = (
    '[[mutant]]\nid = "{id}"\nname = "{name}"\nfile = "numbers.py"\nold = "{old}"\nnew = "{new}"\n'
)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A small project that can be mutated; its tests carry two requirements."""
    for name in ("src/memory_mesh/core", "tests/mutants", "conformance", "docs"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    (tmp_path / "src/memory_mesh/__init__.py").touch()
    (tmp_path / "src/memory_mesh/core/errors.py").write_text(
        "class MemoryMeshError(Exception): pass\n"
    )
    (tmp_path / "src/memory_mesh/numbers.py").write_text(CODE)
    (tmp_path / "tests/test_numbers.py").write_text(TESTS)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\nmarkers = ["req(*ids): ids"]\n'
        'addopts = "-p no:schemathesis -p no:langsmith_plugin"\n'
    )
    (tmp_path / "conformance/requirements.toml").write_text(
        '[[documents]]\nids = ["ONE-1", "ONE-2"]\n'
    )
    return tmp_path


def put_bugs(project: Path, *bugs: tuple[str, str, str]) -> None:
    texts = [BUG.format(id=id_, name=f"{old} is {new}", old=old, new=new) for id_, old, new in bugs]
    (project / "tests/mutants/requirements.toml").write_text("\n".join(texts))


@pytest.mark.deep
def test_a_bug_is_caught_by_an_assertion_of_a_test_with_its_id_and_by_nothing_else(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put_bugs(
        project,
        ("ONE-1", "one +", "one -"),
        ("ONE-2", "one +", "one /"),
        ("ONE-2", "return one", "return ("),
    )
    assert mutants.main([], project) == 1
    said = capsys.readouterr().out
    assert "1 of 3 bugs that break a requirement were caught" in said
    # A test without the id would have failed; a syntax error is not caught either.
    assert said.count("survived: ONE-2") == 2
    results = json.loads((project / "build/mutants.json").read_text())
    assert [result["caught_by"] for result in results] == [
        "tests/test_numbers.py::test_two_and_two_are_four",
        None,
        None,
    ]
    page = (project / "docs/internals/mutations.md").read_text()
    assert (
        "| ONE-1 | one + is one - | `numbers.py` | two and two are four (`tests/test_numbers.py`) |"
        in page
    )
    assert (project / "src/memory_mesh/numbers.py").read_text() == CODE


@pytest.mark.deep
def test_where_all_are_caught_the_page_is_compared_in_ci(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests/test_numbers.py").write_text(
        TESTS.replace("numbers.add(1, 2)", "assert numbers.add(1, 2) == 3")
    )
    put_bugs(project, ("ONE-1", "one + two", "one - two"), ("ONE-2", "one + two", "one * two"))
    assert mutants.main(["--check"], project) == 1
    assert (
        "docs/internals/mutations.md is out of date: run `make mutants`" in capsys.readouterr().out
    )
    assert mutants.main([], project) == 0
    assert mutants.main(["--check"], project) == 0
    assert mutants.main(["ONE-2"], project) == 0
    assert "1 of 1 bugs that break a requirement" in capsys.readouterr().out


@pytest.mark.deep
def test_a_bug_that_was_caught_is_tried_again_if_its_file_or_its_test_has_changed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests/test_numbers.py").write_text(
        TESTS.replace("numbers.add(1, 2)", "assert numbers.add(1, 2) == 3")
    )
    put_bugs(project, ("ONE-1", "one + two", "one - two"), ("ONE-2", "one + two", "one * two"))
    bugs = [*mutants.read(project)]
    assert [*mutants.changed(bugs, project)] == bugs
    assert mutants.main([], project) == 0
    assert [*mutants.changed(bugs, project)] == []
    code, tests = project / "src/memory_mesh/numbers.py", project / "tests/test_numbers.py"
    code.write_text(code.read_text() + "# changed\n")
    assert [*mutants.changed(bugs, project)] == bugs
    assert mutants.main(["--changed", "--check"], project) == 0
    assert "2 of 2 bugs that break a requirement" in capsys.readouterr().out
    assert [*mutants.changed(bugs, project)] == bugs  # CI writes nothing
    assert mutants.main(["--changed"], project) == 0
    assert [*mutants.changed(bugs, project)] == []
    tests.write_text(tests.read_text() + "\ndef test_another(): pass\n")
    assert [*mutants.changed(bugs, project)] == []
    tests.write_text(tests.read_text().replace("add(2, 2)", "add(3, 1)"))
    assert [*mutants.changed(bugs, project)] == bugs[:1]


USED = """
CASES = [1, 2]
OTHER = 3

@pytest.fixture
def number(): return base()

def base(): return 5

@pytest.fixture(autouse=True)
def quiet(): silence()

@pytest.mark.parametrize("case", CASES)
def test_it(number, case): assert number

class TestAll:
    def test_in_a_class(self): pass

def test_other(): assert OTHER
"""


@pytest.mark.parametrize(
    ("old", "new", "concerned"),
    [
        ("assert number", "assert not number", ["test_it"]),
        ("[1, 2]", "[1]", ["test_it"]),
        ("return base()", "return base(), 1", ["test_it"]),
        ("return 5", "return 6", ["test_it"]),
        ("OTHER = 3", "OTHER = 4", ["test_other"]),
        ("pass", "assert True", ["test_in_a_class"]),
        ("silence()", "stay()", ["test_it", "test_in_a_class", "test_other"]),
        ("\ndef test_other", "\n# It is short.\ndef test_other", []),
        ("\ndef test_other", "\ndef test_new(): pass\n\ndef test_other", []),
    ],
)
def test_a_change_concerns_the_tests_that_use_what_is_changed(
    old: str, new: str, concerned: list[str]
) -> None:
    tests = ["test_it", "test_in_a_class", "test_other"]
    changed = USED.replace(old, new)
    assert changed != USED
    assert [
        test for test in tests if mutants._code_of(changed, test) != mutants._code_of(USED, test)
    ] == concerned


def test_of_a_test_that_another_file_defines_the_whole_file_counts() -> None:
    assert mutants._code_of(USED, "test_of_the_contract") == USED


@pytest.mark.deep
def test_a_test_that_fails_without_a_bug_catches_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests/test_numbers.py").write_text(TESTS.replace("== 4", "== 5"))
    put_bugs(project, ("ONE-1", "one + two", "one - two"), ("ONE-2", "one + two", "one * two"))
    assert mutants.main(["ONE-1"], project) == 1
    assert "test_two_and_two_are_four fails without a bug" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bugs", "said"),
    [
        ([("ONE-1", "one + two", "one"), ("ONE-2", "one + two", "two")], ""),
        ([("ONE-1", "one + two", "one")], "ONE-2 has a test but no bug"),
        (
            [("ONE-1", "one", "two"), ("ONE-2", "one + two", "two")],
            "its old text occurs 2 times: ONE-1 one is two",
        ),
        (
            [("ONE-1", "three", "two"), ("ONE-2", "one + two", "two")],
            "its old text occurs 0 times: ONE-1 three is two",
        ),
        (
            [
                ("ONE-1", "one + two", "one"),
                ("ONE-2", "one + two", "two"),
                ("ONE-3", "one + two", "two"),
            ],
            "ONE-3 has a bug",
        ),
    ],
)
def test_a_list_that_does_not_fit_is_named_before_anything_runs(
    project: Path, bugs: list[tuple[str, str, str]], said: str
) -> None:
    put_bugs(project, *bugs)
    found, files = [*mutants.read(project)], mutants.files_of_tests(project)
    faults = [
        *mutants.unfit(found, project),
        *mutants.untested(found, files),
        *mutants.without_bug(found, files),
    ]
    assert (len(faults), said in "".join(faults)) == (int(bool(said)), True)
