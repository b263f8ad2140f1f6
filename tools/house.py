"""Measure the size of the package: modules, lines and statements of each folder, and the bound of
the statements.

    python tools/house.py [--check] [--json] [--source FOLDER]

A statement is one of Python's syntax tree, without imports, docstrings and `...`: it counts the
same however lines are broken. `tools/house.toml` has the bound, and the reason for each time that
it was raised. With `--check` the tool fails if there are more statements or modules than that.
"""

import argparse
import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

ROOT = Path(__file__).parents[1]
BOUNDS = Path(__file__).with_suffix(".toml")
COLUMNS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The size of some modules."""

    modules: int = 0
    lines: int = 0
    long_lines: int = 0  # more than COLUMNS columns
    imports: int = 0  # lines of imports
    statements: int = 0

    def __add__(self, other: "Size") -> "Size":
        names = [field.name for field in fields(self)]
        return Size(**{name: getattr(self, name) + getattr(other, name) for name in names})


def main() -> int:
    """Print the sizes. Return 1 if `--check` finds more than the bounds allow."""
    parser = argparse.ArgumentParser(description="The size of the package, by folder")
    parser.add_argument("--check", action="store_true", help="fail if it has outgrown its bounds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--source", type=Path, default=ROOT / "src" / "memory_mesh", help="another package"
    )
    options = parser.parse_args()
    folders = sizes(options.source)
    total = sum(folders.values(), Size())
    bounds = tomllib.loads(BOUNDS.read_text(encoding="utf-8"))
    if options.json:
        print(
            json.dumps(
                {name: asdict(size) for name, size in {**folders, "all": total}.items()}, indent=1
            )
        )
    else:
        show({**folders, "all": total}, bounds)
    return 1 if options.check and any(outgrown(total, bounds)) else 0


def sizes(package: Path) -> dict[str, Size]:
    """Return the size of each folder at the top of a package; `.` has its loose modules."""
    found: dict[str, Size] = {}
    for path in sorted(package.rglob("*.py")):
        folder, *inner = path.relative_to(package).parts
        name = folder if inner else "."
        found[name] = found.get(name, Size()) + size_of(path.read_text(encoding="utf-8"))
    return found


def size_of(text: str) -> Size:
    """Return the size of one module."""
    tree, lines = ast.parse(text), text.splitlines()
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    imports = [node for node in statements if isinstance(node, ast.Import | ast.ImportFrom)]
    constants = [
        node
        for node in statements
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    ]
    return Size(
        modules=1,
        lines=len(lines),
        long_lines=sum(len(line) > COLUMNS for line in lines),
        imports=sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in imports),
        statements=len(statements) - len(imports) - len(constants),
    )


def outgrown(total: Size, bounds: dict[str, int]) -> Iterator[str]:
    """Yield what is more than its bound, and say so on standard error."""
    for name in ("statements", "modules"):
        if (count := getattr(total, name)) > bounds[name]:
            sys.stderr.write(
                f"the package has {count:,} {name}, and {BOUNDS.name} allows {bounds[name]:,}: "
                "simplify, or raise the bound there with the reason\n"
            )
            yield name


def show(sizes_: dict[str, Size], bounds: dict[str, int]) -> None:
    """Print a table."""
    names = [field.name for field in fields(Size)]
    print(f"{'folder':14s}" + "".join(f"{name.replace('_', ' '):>12s}" for name in names))
    for folder, size in sizes_.items():
        print(f"{folder:14s}" + "".join(f"{getattr(size, name):12,d}" for name in names))
    print(f"bounds: {bounds['modules']:,} modules, {bounds['statements']:,} statements")


if __name__ == "__main__":
    sys.exit(main())
