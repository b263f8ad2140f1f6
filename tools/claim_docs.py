"""Write the truth table of conflicts into docs/internals/claims.md from the table of the tests, or
check that it is current.

python tools/claim_docs.py [--check]
"""

import argparse
import runpy
import sys
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "internals" / "claims.md"
BEGIN, END = "<!-- written by tools/claim_docs.py -->\n", "<!-- end of the table -->"
NAMES = {
    "cardinality": "cardinality", "exclusive": "exclusive", "windows": "windows",
    "scopes": "scopes (new and stored)", "values": "values", "dedup_policy": "dedup policy",
    "conflict_policy": "conflict policy", "trust": "trust of the new one",
}  # fmt: skip


def main() -> int:
    """Write the page, or with --check compare it; return 1 if it is stale."""
    parser = argparse.ArgumentParser(description="Write the table of docs/internals/claims.md")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is stale"
    )
    check = parser.parse_args().check
    old = PAGE.read_text(encoding="utf-8")
    before, _, rest = old.partition(BEGIN)
    new = f"{before}{BEGIN}\n{table()}\n\n{END}{rest.partition(END)[2]}"
    if check and new != old:
        sys.stderr.write("docs/internals/claims.md is stale; run python tools/claim_docs.py\n")
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


def table() -> str:
    """Return the table in Markdown, one row for each outcome and its condition."""
    tested = runpy.run_path(str(ROOT / "tests" / "claim_table.py"))
    lines = ["| | if | then |", "|---|---|---|"]
    for at, (row, outcome) in enumerate(tested["ROWS"], start=1):
        given = (
            ", ".join(f"{NAMES[name]}: {value}" for name, value in asdict(row).items() if value)
            or "in all other cases"
        )
        lines.append(f"| {at} | {given} | **{outcome}**: {tested['OUTCOMES'][outcome]} |")
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
