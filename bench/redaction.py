"""Measure the redactor: values found and false alarms by kind and source, and speed.

    python -m bench.redaction [--data DIR] [--hostile]

The vectors and harmless lines of the tests are always measured. DIR may contain
`presidio_research/*.json` (labelled sentences) and `locomo/locomo10.json` (conversations). The
result has counts only; misses and findings are printed for a person to judge.
"""

import argparse
import json
import os
import platform
import re
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from memory_mesh.core.language.redaction import PATTERNS, Finding, Redactor, find

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tools"))
from redaction_vectors import load_secrets, load_vectors  # noqa: E402

RESULT = ROOT / "bench" / "results" / "redaction.json"
NEGATIVES = ROOT / "tests" / "data" / "redaction_negatives.txt"

# Label of the data set → the fraction that must be found, and the patterns that may find it.
REQUIRED = {
    "EMAIL_ADDRESS": (1.0, {"email", "email_spelled"}),
    "CREDIT_CARD": (1.0, {"card"}),
    "IBAN_CODE": (1.0, {"iban"}),
    "US_SSN": (1.0, {"us_ssn"}),
    "IP_ADDRESS": (1.0, {"ipv4", "ipv6"}),
    "PHONE_NUMBER": (0.95, {"phone"}),
}
KIND_OF = {pattern.id: pattern.kind for pattern in PATTERNS}
# Files of this repository with examples of redacted values.
EXAMPLES = re.compile(
    r"(?:src/memory_mesh/core/language/redact|tests/core/test_redact|tests/data/redact|"
    r"tools/redaction|bench/redaction|docs/redaction|docs/outgoing|"
    r"src/memory_mesh/core/language/safety/addresses|CHANGELOG|bench/capture/|bench/notes/|"
    r"bench/hygiene/|docs/hygiene)"
)
# Other values in this repository that are meant to be found.
EXPECTED = re.compile(
    r"@(?:db\.)?example\.|hunter2|heron-(?:lamp-)?42|zanzibar|sk-very-secret|\+1 604 696 527\d|"
    r"4539 9889 1572 0591|GB29NWBK60161331926819|48\.90\.248\.226|756\.9217\.0769\.85|"
    r"169\.254\.169\.254|ann@mail\.com|\+47 22 00 00 01",
    re.IGNORECASE,
)
# The picture URLs of LoCoMo contain signed tokens, so masking them is correct.
TRUE_IN_LOCOMO = frozenset({"jwt"})
SENTENCES_PER_ALARM = 2000
_END = re.compile(r"(?<=[.!?])\s+|\n+")
MEGABYTE = 1_000_000
MEMORY = (
    "We agreed to move the stand-up to 9:30 on Mondays, and Ann will write the summary. The "
    "staging database runs on port 5433 since the upgrade, and Bob keeps the backup schedule in "
    "the shared folder for now."
)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure redaction: recall, false alarms, speed")
    parser.add_argument("--data", type=Path, default=Path("data"))
    parser.add_argument(
        "--hostile",
        action="store_true",
        help="also time hostile texts of 1 MB and a line of 100 MB",
    )
    options = parser.parse_args()
    labelled = [
        row
        for path in sorted((options.data / "presidio_research").glob("*.json"))
        for row in read(path)
    ]
    chats = options.data / "locomo" / "locomo10.json"
    chat = list(texts(read(chats))) if chats.is_file() else []
    own = own_texts()
    by_pattern: dict[str, Counter[str]] = {pattern.id: Counter() for pattern in PATTERNS}
    result = {
        "vectors": vectors(),
        "labelled": spans(labelled, by_pattern),
        "negatives": negatives(by_pattern),
        "locomo": alarms("locomo", chat, by_pattern, lambda one, _: one.pattern in TRUE_IN_LOCOMO),
        "repository": alarms(
            "repository", own, by_pattern, lambda _, value: EXPECTED.search(value)
        ),
        "speed": speed([row["full_text"] for row in labelled], chat, own),
    }
    if options.hostile:
        result["hostile"] = hostile()
    show(by_pattern)
    keep(result, by_pattern, hostile_too=options.hostile)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def texts(value: Any) -> Iterator[str]:
    """Yield every text in a value once."""
    seen: set[str] = set()
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, str) and item not in seen:
            seen.add(item)
            yield item
        elif isinstance(item, dict):
            stack.extend(item.values())
        elif isinstance(item, list):
            stack.extend(item)


def own_texts() -> list[str]:
    """Return the texts of this repository, except tests and files with examples: their values
    are made to be found."""
    listed = subprocess.run(
        ["git", "ls-files", "-co", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    paths = [
        ROOT / name
        for name in listed.splitlines()
        if not EXAMPLES.match(name) and not name.startswith(("bench/results/", "tests/"))
    ]
    contents = [path.read_bytes() for path in paths if path.is_file() and path != NEGATIVES]
    # With NUL it is not a text.
    return [content.decode(errors="replace") for content in contents if b"\0" not in content]


def vectors() -> list[dict[str, Any]]:
    """Count, by kind and source, the texts whose values are all masked, and the texts in which
    something else was masked.

    The list of secrets marks the secret alone. A user name masked with it is no false alarm, so
    these are not counted there.
    """
    rows: dict[tuple[str, str], Counter[str]] = {}
    redact = Redactor().redact
    for vector in (*load_secrets(), *load_vectors()):
        counts = rows.setdefault((vector.kind, vector.source), Counter())
        verdict = vector.verdict(redact)
        counts["texts" if vector.values else "harmless"] += 1
        counts["masked"] += bool(vector.values) and verdict != "missed"
        counts["false_alarms"] += verdict == "too much" and vector.kind != "secret"
        if verdict == "missed" or (verdict == "too much" and vector.kind != "secret"):
            print(f"{verdict} ({vector.kind}): {vector.marked!r}")
    names = ("texts", "masked", "harmless", "false_alarms")
    return [
        {"kind": kind, "source": source, **{name: row[name] for name in names}}
        for (kind, source), row in sorted(rows.items())
    ]


def spans(rows: list[dict[str, Any]], by_pattern: dict[str, Counter[str]]) -> dict[str, Any]:
    """Count the labelled spans that a finding covers, and print the missed ones."""
    total, covered, others = Counter[str](), Counter[str](), Counter[str]()
    for row in rows:
        text, found = row["full_text"], find(row["full_text"])
        labelled = [
            (span["entity_type"], span["start_position"], span["end_position"])
            for span in row["spans"]
        ]
        for label, start, end in labelled:
            if label in REQUIRED:
                hit = any(one.start <= start and end <= one.end for one in found)
                total[label] += 1
                covered[label] += hit
                if not hit:
                    print(f"missed {label}: {text[max(0, start - 40) : end + 20]!r}")
        for one in found:
            label = next(
                (
                    label
                    for label, start, end in labelled
                    if start < one.end and one.start < end and label in REQUIRED
                ),
                None,
            )
            right = label is not None and one.pattern in REQUIRED[label][1]
            by_pattern[one.pattern]["labelled" if right else "labelled, other"] += 1
            if not right:
                others[one.pattern] += 1
                print(
                    f"not labelled as such ({one.pattern}): "
                    f"{text[max(0, one.start - 40) : one.end + 20]!r}"
                )
    print()
    for label, (fraction, _) in REQUIRED.items():
        verdict = (
            "as required" if covered[label] >= fraction * total[label] else f"BELOW {fraction:.0%}"
        )
        print(f"{label:<16}{covered[label]:>5} of {total[label]:<5} {verdict}")
    found_of = {label: {"found": covered[label], "of": total[label]} for label in REQUIRED}
    return {"sentences": len(rows), "spans": found_of, "found_but_not_labelled": dict(others)}


def negatives(by_pattern: dict[str, Counter[str]]) -> dict[str, int]:
    lines = NEGATIVES.read_text(encoding="utf-8").splitlines()
    fired = [(line, one) for line in lines for one in find(line)]
    for line, one in fired:
        by_pattern[one.pattern]["negatives"] += 1
        print(f"redacted in a harmless line ({one.pattern}): {line!r}")
    print(f"\nharmless lines: {len(lines)}, redacted: {len(fired)}")
    return {"lines": len(lines), "redacted": len(fired)}


def alarms(
    where: str,
    sources: Iterable[str],
    by_pattern: dict[str, Counter[str]],
    is_expected: Callable[[Finding, str], object],
) -> dict[str, Any]:
    """Print and count the findings in each sentence, expected or not."""
    sentences, true, false = 0, Counter[str](), Counter[str]()
    for text in sources:
        for sentence in filter(None, map(str.strip, _END.split(text))):
            sentences += 1
            for one in find(sentence):
                value = sentence[one.start : one.end]
                expected = is_expected(one, value)
                (true if expected else false)[one.pattern] += 1
                by_pattern[one.pattern][where] += 1
                around = sentence[max(0, one.start - 30) : one.end + 20]
                print(
                    f"{where}, {'expected' if expected else 'FALSE ALARM?'} ({one.pattern}): "
                    f"{around!r:.140}"
                )
    max_alarms = sentences / SENTENCES_PER_ALARM
    count = sum(false.values())
    verdict = "fewer" if count < max_alarms else "NOT FEWER"
    print(
        f"\n{where}: {sentences} sentences, {count} false alarms ({verdict} than {max_alarms:.1f})"
    )
    return {"sentences": sentences, "fired_as_meant": dict(true), "false_alarms": dict(false)}


def speed(*sources: list[str]) -> dict[str, float]:
    """Time 1 MB of labelled sentences, conversations, code and documents in equal parts; best of
    five."""
    sources = tuple(filter(None, sources))
    part = MEGABYTE // len(sources)
    mixed = "\n".join("\n".join(source)[:part] for source in sources)
    mixed = (mixed * (MEGABYTE // len(mixed) + 1))[:MEGABYTE]
    redactor = Redactor(mode="pseudonym", key=b"bench")
    best = min(timed(redactor.redact, mixed) for _ in range(5))
    looking = min(timed(find, mixed) for _ in range(5))
    short = min(
        timed(lambda text: [redactor.redact(text) for _ in range(1000)], MEMORY) for _ in range(5)
    )
    print(
        f"\n1 MB of mixed text: {best:.2f} s of CPU ({1 / best:.1f} MB/s), find alone "
        f"{looking:.2f} s"
    )
    print(f"a memory of {len(MEMORY)} characters: {short * 1000:.0f} µs")
    return {
        "cpu_seconds_per_mb": round(best, 3),
        "mb_per_second": round(1 / best, 2),
        "find_cpu_seconds": round(looking, 3),
        "memory_us": round(short * 1000),
    }


def timed(work: Callable[[str], object], text: str) -> float:
    """Return the CPU seconds of this process, which other processes affect little."""
    started = time.process_time()
    work(text)
    return time.process_time() - started


def hostile() -> dict[str, Any]:
    """Time texts built to be slow, 1 MB each, and one line of 100 MB."""
    redactor = Redactor(mode="pseudonym", key=b"bench")
    bombs = [
        "a",
        "1",
        "12 34 ",
        ".",
        ":",
        "-",
        "@",
        "a.b@c.",
        "1.2.3.4 ",
        "://a:b@",
        "password=",
        'password="',
        "token=",
        "key",
        "eyJ",
        "sk-ant-api03-",
    ]
    bombs += [
        "-----BEGIN PRIVATE KEY-----",
        "tel 555 1234 ",
        "tax 123456789 ",
        "4111 ",
        "a@b.co ",
        "+14155552671",
        "\ud800",
        "\0",
        "\u202e12",
        "ß",
    ]
    times = {
        ascii(bomb): round(
            timed(redactor.redact, (bomb * (MEGABYTE // len(bomb) + 1))[:MEGABYTE]), 2
        )
        for bomb in bombs
    }
    worst = max(times, key=lambda bomb: times[bomb])
    line = ("plain words on one line, and no more than that; " * (100 * MEGABYTE // 48))[
        : 100 * MEGABYTE
    ] + " ann@example.org"
    long = timed(redactor.redact, line)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(
        f"\nhostile texts of 1 MB: slowest {worst} in {times[worst]:.1f} s; a line of 100 MB: "
        f"{long:.0f} s; peak memory {peak} MB"
    )
    return {
        "cpu_seconds_for_1_mb": times,
        "cpu_seconds_for_a_line_of_100_mb": round(long, 1),
        "peak_mb": peak,
    }


def show(by_pattern: dict[str, Counter[str]]) -> None:
    columns = ["labelled", "labelled, other", "negatives", "locomo", "repository"]
    print(f"\n{'pattern':<24}" + "".join(f"{column:>17}" for column in columns))
    fired = {id_: counts for id_, counts in by_pattern.items() if counts}
    for id_, counts in fired.items():
        print(f"{id_:<24}" + "".join(f"{counts[column]:>17}" for column in columns))
    print(f"{len(by_pattern) - len(fired)} more patterns did not fire")


def keep(result: dict[str, Any], by_pattern: dict[str, Counter[str]], *, hostile_too: bool) -> None:
    kept = {
        "made_by": "python -m bench.redaction --data DIR" + (" --hostile" if hostile_too else ""),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores",
        **measured_at(),
        "patterns": len(by_pattern),
        **result,
        "by_pattern": {id_: dict(counts) for id_, counts in by_pattern.items() if counts},
    }
    RESULT.parent.mkdir(parents=True, exist_ok=True)
    RESULT.write_text(json.dumps(kept, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
