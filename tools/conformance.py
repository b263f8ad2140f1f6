"""List the tests that cover each requirement, by the results of the last `make test-deep`: writes
docs/internals/conformance.md.

A requirement with several statements may be covered in part. The list then names what is missing,
and the requirement does not count as covered. The tool fails if a test of a requirement did not
pass, if no passing test covers an id that a resolved milestone promises, and with `--check` if the
page differs from the one that it would write. `make lint` has it read the tests that pytest only
collected, which shows an old page in seconds; such a test counts as passed.
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
    """The ids that one milestone promises."""

    number: int
    title: str
    resolved: bool
    holds: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Requirements:
    """The ids by document and by milestone, and what is missing of those covered in part."""

    documents: Sequence[Document]
    milestones: Sequence[Milestone]
    missing: Mapping[str, str]

    @property
    def ids(self) -> list[str]:
        return [id_ for document in self.documents for id_ in document.ids]


@dataclass(frozen=True, slots=True)
class Test:
    """A test function, whether all of its parameter sets passed, and the ids that it covers."""

    name: str
    passed: bool
    ids: frozenset[str]


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    required = read_requirements(given.requirements)
    tests = read_tests(given.results)
    page = "\n".join(_page(required, _covering(tests))) + "\n"
    faults = [*_faults(required, tests)]
    if given.check and (not given.page.is_file() or given.page.read_text(encoding="utf-8") != page):
        faults.append(f"{given.page.name} is out of date: run `make conformance`")
    if not given.check:
        given.page.write_text(page, encoding="utf-8")
    for line in [*_summary(required, _covering(tests)), *faults]:
        print(line)
    return 1 if faults else 0


def read_requirements(path: Path) -> Requirements:
    """Return the documents with their ids, the milestones, and what is missing of ids covered in
    part."""
    raw = tomllib.loads(path.read_text(encoding="utf-8"))
    documents = [
        Document(one["prefix"], one["title"], tuple(one["ids"])) for one in raw["documents"]
    ]
    milestones = [
        Milestone(one["number"], one["title"], one["resolved"], tuple(one["holds"]))
        for one in raw["milestones"]
    ]
    return Requirements(documents, milestones, raw.get("missing", {}))


def read_tests(path: Path) -> list[Test]:
    """Return the tests that cover a requirement, ordered by name."""
    raw: Mapping[str, Mapping[str, Any]] = json.loads(path.read_text(encoding="utf-8"))["tests"]
    passed: dict[str, bool] = {}
    ids: dict[str, set[str]] = {}
    for node, result in raw.items():
        name = node.split("[")[0]
        passed[name] = passed.get(name, True) and result["outcome"] in ("passed", "collected")
        ids.setdefault(name, set()).update(result["ids"])
    return [Test(name, passed[name], frozenset(ids[name])) for name in sorted(ids)]


def _faults(required: Requirements, tests: Sequence[Test]) -> Iterator[str]:
    covering = _covering(tests)
    covered = covering.keys() - required.missing.keys()
    named = (
        {id_ for test in tests for id_ in test.ids}
        | required.missing.keys()
        | {i for one in required.milestones for i in one.holds}
    )
    yield from (
        f"{test.name} did not pass; it covers {', '.join(sorted(test.ids))}"
        for test in tests
        if not test.passed
    )
    yield from (f"unknown requirement {id_}" for id_ in sorted(named - set(required.ids)))
    yield from (
        f"{id_} is listed as covered in part, but no passing test covers it"
        for id_ in required.missing
        if id_ not in covering
    )
    for milestone in required.milestones:
        broken = (
            [id_ for id_ in milestone.holds if id_ not in covered] if milestone.resolved else []
        )
        yield from (
            f"milestone {milestone.number} promises {id_}, but no passing test covers it"
            for id_ in broken
        )


def _covering(tests: Sequence[Test]) -> dict[str, list[str]]:
    """Return the names of the passing tests of each id."""
    covering: dict[str, list[str]] = {}
    for test in tests:
        for id_ in test.ids if test.passed else ():
            covering.setdefault(id_, []).append(test.name)
    return covering


def _summary(required: Requirements, covering: Mapping[str, Sequence[str]]) -> Iterator[str]:
    for document in required.documents:
        covered, partly, missing = _counts(document.ids, required, covering)
        yield (
            f"{document.prefix}: {covered} of {len(document.ids)} covered, {partly} in part, "
            f"{missing} not yet"
        )
        if 0 < missing < len(document.ids):
            uncovered = (
                id_.removeprefix(f"{document.prefix}-")
                for id_ in document.ids
                if id_ not in covering
            )
            yield f"  not yet: {' '.join(uncovered)}"


def _counts(
    ids: Sequence[str], required: Requirements, covering: Mapping[str, Sequence[str]]
) -> tuple[int, int, int]:
    """Return how many are covered, covered in part, and not covered."""
    partly = sum(id_ in covering and id_ in required.missing for id_ in ids)
    missing = sum(id_ not in covering for id_ in ids)
    return len(ids) - partly - missing, partly, missing


def _page(required: Requirements, covering: Mapping[str, Sequence[str]]) -> Iterator[str]:
    yield "# Conformance"
    yield ""
    yield (
        "Each id is one requirement of one document, listed with the tests that fail if it "
        "is broken."
    )
    yield "`make conformance` generates this page from the last test run; do not edit it."
    yield ""
    yield "| document | requirements | covered | in part | not yet |"
    yield "|---|---|---|---|---|"
    for document in required.documents:
        yield _line(
            f"[{document.title}](#{document.prefix.lower()})", document.ids, required, covering
        )
    yield _line("all", required.ids, required, covering)
    for document in required.documents:
        yield from _table(document, required, covering)


def _line(
    name: str, ids: Sequence[str], required: Requirements, covering: Mapping[str, Sequence[str]]
) -> str:
    return (
        f"| {name} | {len(ids)} | "
        f"{' | '.join(str(count) for count in _counts(ids, required, covering))} |"
    )


def _table(
    document: Document, required: Requirements, covering: Mapping[str, Sequence[str]]
) -> Iterator[str]:
    yield ""
    yield f"## {document.prefix}"
    yield ""
    yield f"{document.title}."
    yield ""
    yield "| id | tests |"
    yield "|---|---|"
    for id_ in document.ids:
        tests = "<br>".join(dict.fromkeys(_shown(name) for name in covering.get(id_, ())))
        partly = (
            f"in part; missing: {required.missing[id_]}<br>"
            if tests and id_ in required.missing
            else ""
        )
        yield f"| {id_} | {partly}{tests or 'not yet'} |"


def _shown(name: str) -> str:
    """Return the name of a test as a sentence, with its file."""
    file, _, function = name.partition("::")
    sentence = function.split("::")[-1].removeprefix("test_").replace("_", " ")
    return f"{sentence} (`{file.removeprefix('tests/')}`)"


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--results", type=Path, default=ROOT / "build" / "requirements.json")
    parser.add_argument(
        "--requirements", type=Path, default=ROOT / "conformance" / "requirements.toml"
    )
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "internals" / "conformance.md")
    parser.add_argument(
        "--check", action="store_true", help="compare the page instead of writing it"
    )
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
