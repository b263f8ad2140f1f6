"""Measure claims from plain text.

    python -m bench.claims [--data DIR] [--vectors FILE] [--out FOLDER]

Prints precision and recall on the labelled sentences of tests/data/claims, with every wrong and
every missed claim: `own` was written with the rules, `blind` by someone who did not know them. The
first figures on `blind` are kept as `first_look`; later ones come after classes of errors were
fixed. `second_look` has the figures on the sentences of a second writer who did not know the rules;
no rule was changed because of them. If DIR contains `memagentbench/Conflict_Resolution.parquet`,
the single-hop questions of FactConsolidation are asked too: how often the newest fact is the first
result, and how often it is above the fact that it replaces. FILE keeps vectors between runs. The
result is written to FOLDER; without DIR the figures of FactConsolidation in it stay.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from bench.claims.facts import measure_facts
from bench.claims.labelled import SECOND_LOOK, SEEN, Verdict, judge, read, score
from bench.commit import measured_at

RESULTS = Path(__file__).parents[1] / "results"
BLIND = "blind"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.claims", description="Claims from plain text"
    )
    parser.add_argument("--data", type=Path, help="the folder of the data sets")
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    path = given.out / "claims.json"
    before = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    verdicts = {file.stem: [judge(sentence) for sentence in read(file)] for file in SEEN}
    second = [judge(sentence) for sentence in read(SECOND_LOOK)]
    for name, some in {**verdicts, "second look": second}.items():
        show(name, some)
    files = {name: score(some) for name, some in verdicts.items()}
    files["together"] = score([verdict for some in verdicts.values() for verdict in some])
    result: dict[str, Any] = {
        "command": "python -m bench.claims" + (" --data DIR" if given.data else ""),
        **measured_at(),
        "files": files,
        "first_look": before.get("first_look") or {**files[BLIND], **measured_at()},
        "second_look": score(second),
        "facts": measure_facts(given.data, given.vectors) if given.data else before.get("facts"),
    }
    print(
        json.dumps(
            {key: result[key] for key in ("files", "first_look", "second_look", "facts")}, indent=1
        )
    )
    path.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def show(name: str, verdicts: list[Verdict]) -> None:
    """Print what was found wrongly, and what was not found."""
    print(f"\n{name}")
    for verdict in verdicts:
        if verdict.found and not verdict.is_right:
            print(
                f"  wrong ({', '.join(verdict.differs) or 'no claim'}): {verdict.sentence.text} → "
                f"{verdict.found}"
            )
    for verdict in verdicts:
        if verdict.sentence.claim and not verdict.found:
            print(f"  missed: {verdict.sentence.text}")


if __name__ == "__main__":
    main()
