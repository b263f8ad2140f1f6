"""Write the tables of docs/settings.md from `core/options.py`, or check that they are current.

    python tools/settings_docs.py [--check]

The tables stand between the two marks of the page; the text around them is written by hand.
"""

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

from memory_mesh.api.settings import PREFIX
from memory_mesh.core.options import Options

PAGE = Path(__file__).parents[1] / "docs" / "settings.md"
BEGIN, END = "<!-- options: begin -->", "<!-- options: end -->"


def main() -> int:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="only compare")
    check = parser.parse_args().check
    old = PAGE.read_text(encoding="utf-8")
    new = re.sub(
        f"{BEGIN}.*{END}", lambda _: "\n".join([BEGIN, *tables(), END]), old, flags=re.DOTALL
    )
    if check and new != old:
        sys.stderr.write("docs/settings.md is stale: run python tools/settings_docs.py\n")
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


def tables() -> Iterator[str]:
    """Yield the lines of a table for each group of options."""
    for group in reversed(Options.__bases__):
        title = (group.__doc__ or "").rstrip(".")
        yield f"\n### {title}\n"
        yield (
            "| option | environment variable | default | a project may set it | meaning |\n"
            "|---|---|---|---|---|"
        )
        for option in fields(group):
            default = "–" if option.default is None else f"`{option.default}`"
            variable, metadata = PREFIX + option.name.upper(), option.metadata
            yield (
                f"| `{option.name}` | `{variable}` | {default} | {metadata['project']} | "
                f"{metadata['about']} |"
            )
    yield ""


if __name__ == "__main__":
    sys.exit(main())
