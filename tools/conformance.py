"""Which requirement is held by which test: reads what the last `make test-deep` recorded and writes docs/conformance.md.

A requirement that says several things may be held in part only; the list says then what is missing, and it does not count as
held. It fails where a test that speaks for a requirement failed, where a resolved milestone should hold an id that no passing
test holds, and with `--check` where the page is not the one that it would write.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True, slots=True)
class Document:
    """One document and the ids of its requirements."""

    prefix: str
    title: str
    ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Milestone:
    """What was promised together."""

    number: int
    title: str
    resolved: bool
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """What is to be held: by document, by milestone, and what is still missing of those that are held in part."""

    documents: Sequence[Document]
    milestones: Sequence[Milestone]
    missing: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        return [id_ for document in self.documents for id_ in document.ids]


@dataclass(frozen=True, slots=True)
class Test:
    """A test function, how it ended, and what it speaks for. Of its parameters one failure is enough to fail it."""

    name: str
    passed: bool
    ids: frozenset[str]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    asked = read_requirements(given.requirements)
    tests = read_tests(given.results)
    page = "\n".join(_page(asked, _told(tests))) + "\n"
    faults = [*_faults(asked, tests)]
    if given.check and (not given.page.is_file() or given.page.read_text(encoding="utf-8") != page):
        faults.append(f"{given.page.name} is out of date: run `make conformance`")
    if not given.check:
        given.page.write_text(page, encoding="utf-8")
    for line in [*_summary(asked, _told(tests)), *faults]:
        print(line)
    return 1 if faults else 0


def read_requirements(path: Path) -> Query:
    """The documents with their ids, the milestones, and what is held in part."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    documents = [Document(one["prefix"], one["title"], tuple(one["ids"])) for one in raw["documents"]]
    milestones = [Milestone(one["number"], one["title"], one["resolved"], tuple(one["holds"])) for one in raw["milestones"]]
    return Query(documents, milestones, raw.get("missing", {}))


def read_tests(path: Path) -> list[Test]:
    """The tests that speak for a requirement, by name."""
    raw: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tests"]
    passed: dict[str, bool] = {}
    ids: dict[str, set[str]] = {}
    for node, result in raw.items():
        name = node.split("[")[0]
        passed[name] = passed.get(name, True) and result["outcome"] == "passed"
        ids.setdefault(name, set()).update(result["ids"])
    return [Test(name, passed[name], frozenset(ids[name])) for name in sorted(ids)]


def _faults(asked: Query, tests: Sequence[Test]) -> Iterator[str]:
    told = _told(tests)
    held = told.keys() - asked.missing.keys()
    named = (
        {id_ for test in tests for id_ in test.ids} | asked.missing.keys() | {i for one in asked.milestones for i in one.holds}
    )
    yield from (f"{test.name} failed and speaks for {', '.join(sorted(test.ids))}" for test in tests if not test.passed)
    yield from (f"no requirement is called {id_}" for id_ in sorted(named - set(asked.ids)))
    yield from (f"{id_} is said to be held in part and no passing test does" for id_ in asked.missing if id_ not in told)
    for milestone in asked.milestones:
        broken = [id_ for id_ in milestone.holds if id_ not in held] if milestone.resolved else []
        yield from (f"milestone {milestone.number} should hold {id_} and no passing test does" for id_ in broken)


def _told(tests: Sequence[Test]) -> dict[str, list[str]]:
    """The passing tests that speak for each id."""
    told: dict[str, list[str]] = {}
    for test in tests:
        for id_ in test.ids if test.passed else ():
            told.setdefault(id_, []).append(test.name)
    return told


def _summary(asked: Query, told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for document in asked.documents:
        held, partly, missing = _counts(document.ids, asked, told)
        yield f"{document.prefix}: {held} of {len(document.ids)} held, {partly} in part, {missing} not yet"
        if 0 < missing < len(document.ids):
            yield f"  not yet: {' '.join(id_.removeprefix(document.prefix + '-') for id_ in document.ids if id_ not in told)}"


def _counts(ids: Sequence[str], asked: Query, told: Mapping[str, Sequence[str]]) -> tuple[int, int, int]:
    """How many are held, held in part, and not held."""
    partly = sum(id_ in told and id_ in asked.missing for id_ in ids)
    missing = sum(id_ not in told for id_ in ids)
    return len(ids) - partly - missing, partly, missing


def _page(asked: Query, told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "# Conformance"
    yield ""
    yield "Each id is one requirement of one document, and stands here with the tests that would fail if it were broken."
    yield "`make conformance` writes this page from the last run of the tests; do not edit it."
    yield ""
    yield "| document | requirements | held | in part | not yet |"
    yield "|---|---|---|---|---|"
    for document in asked.documents:
        yield _line(f"[{document.title}](#{document.prefix.lower()})", document.ids, asked, told)
    yield _line("all", asked.ids, asked, told)
    for document in asked.documents:
        yield from _table(document, asked, told)


def _line(name: str, ids: Sequence[str], asked: Query, told: Mapping[str, Sequence[str]]) -> str:
    return f"| {name} | {len(ids)} | {' | '.join(str(count) for count in _counts(ids, asked, told))} |"


def _table(document: Document, asked: Query, told: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"## {document.prefix}"
    yield ""
    yield f"{document.title}."
    yield ""
    yield "| id | held by |"
    yield "|---|---|"
    for id_ in document.ids:
        tests = "<br>".join(dict.fromkeys(_shown(name) for name in told.get(id_, ())))
        partly = f"in part; missing: {asked.missing[id_]}<br>" if tests and id_ in asked.missing else ""
        yield f"| {id_} | {partly}{tests or 'not yet'} |"


def _shown(name: str) -> str:
    """A test as its sentence and its file; the same one for several stores is said once."""
    file, _, function = name.partition("::")
    sentence = function.split("::")[-1].removeprefix("test_").replace("_", " ")
    return f"{sentence} (`{file.removeprefix('tests/')}`)"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "requirements.json")
    parser.add_argument("--requirements", type=Path, default=ROOT / "conformance" / "requirements.toml")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "conformance.md")
    parser.add_argument("--check", action="store_true", help="compare the page instead of writing it")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
