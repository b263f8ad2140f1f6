"""Extract the Python examples of the pages that a newcomer reads first, each page as one program.

    python tools/page_examples.py FOLDER

`make lint` checks their types with mypy, and `check_wheel.py` runs them with the installed wheel.
"""

import argparse
import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ("README.md", "docs/quickstart.md", "docs/coming-from.md")
_BLOCK = re.compile(
    r"^```(?P<kind>python|output)\n(?P<text>.*?)^```$", flags=re.MULTILINE | re.DOTALL
)


def program(page: str) -> str:
    """Return the Python blocks of a page, in their order."""
    return "\n\n".join(_blocks(page, "python"))


def output(page: str) -> str:
    """Return what the page shows as the output of its program."""
    return "".join(_blocks(page, "output"))


def _blocks(page: str, kind: str) -> list[str]:
    found = _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8"))
    return [match["text"] for match in found if match["kind"] == kind]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    for page in PAGES:
        name = Path(page).stem.lower().replace("-", "_")
        (folder / f"{name}.py").write_text(program(page), encoding="utf-8")


if __name__ == "__main__":
    main()
