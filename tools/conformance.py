"""List the tests that hold each requirement: read the results of the last `make test-deep` and write docs/conformance.md.

A requirement that makes several statements may be held in part; the list then names what is missing, and it does not count as
held. The tool fails if a test of a requirement did not pass, if a resolved milestone promises an id that no passing test holds,
and with `--check` if the page differs from the one that it would write.
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
    """The ids that were promised together."""

    number: int
    title: str
    resolved: bool
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    """The ids by document and by milestone, and what is missing of those held in part."""

    documents: Sequence[Document]
    milestones: Sequence[Milestone]
    missing: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        return [id_ for document in self.documents for id_ in document.ids]


@dataclass(frozen=True, slots=True)
class Test:
    """A test function, whether all of its parameter sets passed, and the ids that it holds."""

    name: str
    passed: bool
    ids: frozenset[str]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    required = read_requirements(given.requirements)
    tests = read_tests(given.results)
    page = "\n".join(_page(required, _holders(tests))) + "\n"
    faults = [*_faults(required, tests)]
    if given.check and (not given.page.is_file() or given.page.read_text(encoding="utf-8") != page):
        faults.append(f"{given.page.name} is out of date: run `make conformance`")
    if not given.check:
        given.page.write_text(page, encoding="utf-8")
    for line in [*_summary(required, _holders(tests)), *faults]:
        print(line)
    return 1 if faults else 0


def read_requirements(path: Path) -> Requirements:
    """Return the documents with their ids, the milestones, and what is missing of ids held in part."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    documents = [Document(one["prefix"], one["title"], tuple(one["ids"])) for one in raw["documents"]]
    milestones = [Milestone(one["number"], one["title"], one["resolved"], tuple(one["holds"])) for one in raw["milestones"]]
    return Requirements(documents, milestones, raw.get("missing", {}))


def read_tests(path: Path) -> list[Test]:
    """Return the tests that hold a requirement, ordered by name."""
    raw: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tests"]
    passed: dict[str, bool] = {}
    ids: dict[str, set[str]] = {}
    for node, result in raw.items():
        name = node.split("[")[0]
        passed[name] = passed.get(name, True) and result["outcome"] == "passed"
        ids.setdefault(name, set()).update(result["ids"])
    return [Test(name, passed[name], frozenset(ids[name])) for name in sorted(ids)]


def _faults(required: Requirements, tests: Sequence[Test]) -> Iterator[str]:
    holders = _holders(tests)
    held = holders.keys() - required.missing.keys()
    named = (
        {id_ for test in tests for id_ in test.ids}
        | required.missing.keys()
        | {i for one in required.milestones for i in one.holds}
    )
    yield from (f"{test.name} did not pass; it holds {', '.join(sorted(test.ids))}" for test in tests if not test.passed)
    yield from (f"unknown requirement {id_}" for id_ in sorted(named - set(required.ids)))
    yield from (
        f"{id_} is listed as held in part, but no passing test holds it" for id_ in required.missing if id_ not in holders
    )
    for milestone in required.milestones:
        broken = [id_ for id_ in milestone.holds if id_ not in held] if milestone.resolved else []
        yield from (f"milestone {milestone.number} promises {id_}, but no passing test holds it" for id_ in broken)


def _holders(tests: Sequence[Test]) -> dict[str, list[str]]:
    """Return the names of the passing tests of each id."""
    holders: dict[str, list[str]] = {}
    for test in tests:
        for id_ in test.ids if test.passed else ():
            holders.setdefault(id_, []).append(test.name)
    return holders


def _summary(required: Requirements, holders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for document in required.documents:
        held, partly, missing = _counts(document.ids, required, holders)
        yield f"{document.prefix}: {held} of {len(document.ids)} held, {partly} in part, {missing} not yet"
        if 0 < missing < len(document.ids):
            yield f"  not yet: {' '.join(id_.removeprefix(document.prefix + '-') for id_ in document.ids if id_ not in holders)}"


def _counts(ids: Sequence[str], required: Requirements, holders: Mapping[str, Sequence[str]]) -> tuple[int, int, int]:
    """Return how many are held, held in part, and not held."""
    partly = sum(id_ in holders and id_ in required.missing for id_ in ids)
    missing = sum(id_ not in holders for id_ in ids)
    return len(ids) - partly - missing, partly, missing


def _page(required: Requirements, holders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "# Conformance"
    yield ""
    yield "Each id is one requirement of one document, and stands here with the tests that would fail if it were broken."
    yield "`make conformance` writes this page from the last run of the tests; do not edit it."
    yield ""
    yield "| document | requirements | held | in part | not yet |"
    yield "|---|---|---|---|---|"
    for document in required.documents:
        yield _line(f"[{document.title}](#{document.prefix.lower()})", document.ids, required, holders)
    yield _line("all", required.ids, required, holders)
    for document in required.documents:
        yield from _table(document, required, holders)


def _line(name: str, ids: Sequence[str], required: Requirements, holders: Mapping[str, Sequence[str]]) -> str:
    return f"| {name} | {len(ids)} | {' | '.join(str(count) for count in _counts(ids, required, holders))} |"


def _table(document: Document, required: Requirements, holders: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield ""
    yield f"## {document.prefix}"
    yield ""
    yield f"{document.title}."
    yield ""
    yield "| id | held by |"
    yield "|---|---|"
    for id_ in document.ids:
        tests = "<br>".join(dict.fromkeys(_shown(name) for name in holders.get(id_, ())))
        partly = f"in part; missing: {required.missing[id_]}<br>" if tests and id_ in required.missing else ""
        yield f"| {id_} | {partly}{tests or 'not yet'} |"


def _shown(name: str) -> str:
    """Return a test as its sentence and its file."""
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
