"""Write the tables of docs/internals/outgoing.md, or check that they are current.

python tools/battery_docs.py [--check]
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "internals" / "outgoing.md"
BATTERIES = ("ssrf", "injection")


def main() -> int:
    """Write the page, or with --check compare it; return 1 if it is stale."""
    parser = argparse.ArgumentParser(description="Write the tables of docs/internals/outgoing.md")
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is stale"
    )
    arguments = parser.parse_args()
    old = PAGE.read_text(encoding="utf-8")
    new = old
    for name in BATTERIES:
        new = _filled(new, name, _table(name))
    if arguments.check and new != old:
        sys.stderr.write("docs/internals/outgoing.md is stale; run python tools/battery_docs.py\n")
        return 1
    if not arguments.check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


def _table(name: str) -> str:
    run = [sys.executable, str(ROOT / "tools" / f"{name}_battery.py"), "--markdown"]
    return subprocess.run(run, capture_output=True, text=True, check=True, cwd=ROOT).stdout.strip()


def _filled(page: str, name: str, table: str) -> str:
    begin, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{table}\n\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    sys.exit(main())
