"""Run a command and fail if it used more CPU time than its budget.

    python tools/cpu_budget.py --minutes 8 -- make test

CPU time is that of the command and of every process it waited for; unlike elapsed time it hardly
depends on what else the machine does.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    given = _arguments(arguments)
    before, started = os.times(), time.monotonic()
    code = subprocess.run(given.command, check=False).returncode
    after, elapsed = os.times(), time.monotonic() - started
    used = (
        after.children_user + after.children_system - before.children_user - before.children_system
    )
    print(
        f"{' '.join(given.command)}: {used / 60:.1f} of {given.minutes:g} CPU minutes, "
        f"{elapsed / 60:.1f} minutes elapsed",
        flush=True,
    )
    if used > given.minutes * 60:
        print(
            "over budget: mark expensive tests `deep` or `sample`, see CONTRIBUTING.md",
            file=sys.stderr,
        )
        return code or 1
    return code


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--minutes", type=float, required=True, help="CPU minutes that the command may use"
    )
    parser.add_argument("command", nargs="+", help="the command and its arguments, after --")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
