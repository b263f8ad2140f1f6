"""Fetch the JavaScript libraries of the console into web/vendor, or check that what is there is
what was fetched.

    python tools/vendor_console.py            # needs npm, which fetches the packages
    python tools/vendor_console.py --check    # needs nothing: compares the files with the hashes in
                                              # vendor/versions.json

Each package has a version and the SHA-512 of its archive; an archive with another hash is refused.
Only the files below are taken, as they are, with the licence beside them.
"""

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
VENDOR = ROOT / "src/memory_mesh/interfaces/console/web/vendor"
VERSIONS = "versions.json"


@dataclass(frozen=True)
class Package:
    """A package of the npm registry, and what the console takes of it: the path in the archive,
    and the name here."""

    name: str
    version: str
    sha512: str  # of the archive, in base64, as the registry publishes it
    licence: str
    files: dict[str, str]


PACKAGES = (
    Package(
        "htm", "3.1.1",
        "983Vyg8NwUE7JkZ6NmOqpCZ+sh1bKv2iYTlUkzlWmA5JD2acKoxd4KVxbMmxX/85mtfdnDmTFoNKcg5DGAvxNQ==",
        "Apache-2.0", {"preact/standalone.module.js": "htm.js", "LICENSE": "htm.LICENSE.txt"},
    ),
    # Its code is a part of the file of htm; only its licence is taken from here.
    Package(
        "preact", "10.29.0",
        "wSAGyk2bYR1c7t3SZ3jHcM6xy0lcBcDel6lODcs9ME6Th++Dx2KU+6D3HD8wMMKGA8Wpw7OMd3/4RGzYRpzwRg==",
        "MIT", {"LICENSE": "preact.LICENSE.txt"},
    ),
    Package(
        "uplot", "1.6.32",
        "KIMVnG68zvu5XXUbC4LQEPnhwOxBuLyW1AHtpm6IKTXImkbLgkMy+jabjLgSLMasNuGGzQm/ep3tOkyTxpiQIw==",
        "MIT",
        {"dist/uPlot.esm.js": "uplot.js", "dist/uPlot.min.css": "uplot.css",
         "LICENSE": "uplot.LICENSE.txt"},
    ),
    Package(
        "cytoscape", "3.34.4",
        "msY99tMY8iWTg+sIPGfSqDcPNOt4xcj+v/K/7qUFaCUxxlqnMkUYLBjRUzn9W5CU/R2hrmtJa5+UtovrEM2ctg==",
        "MIT", {"dist/cytoscape.esm.min.mjs": "cytoscape.js", "LICENSE": "cytoscape.LICENSE.txt"},
    ),
)  # fmt: skip


def main(arguments: list[str]) -> None:
    """Fetch or check, as the arguments say."""
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    if arguments:
        problems = check(VENDOR)
        sys.exit("\n".join(problems) or None)
    VENDOR.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        listed = [fetch(package, Path(folder)) for package in PACKAGES]
    (VENDOR / VERSIONS).write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


def fetch(package: Package, folder: Path) -> dict[str, object]:
    """Fetch a package, copy its files, and return what `versions.json` says about it."""
    spec = f"{package.name}@{package.version}"
    done = subprocess.run(
        ["npm", "pack", "--silent", spec], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{spec} cannot be fetched:\n{done.stderr}")
    archive = folder / f"{package.name}-{package.version}.tgz"
    found = base64.b64encode(hashlib.sha512(archive.read_bytes()).digest()).decode()
    if found != package.sha512:
        sys.exit(f"{spec} has the SHA-512 {found}, and {package.sha512} was expected")
    with tarfile.open(archive) as opened:
        for path, name in package.files.items():
            content = opened.extractfile(f"package/{path}")
            if content is None:
                sys.exit(f"{spec} has no file {path}")
            (VENDOR / name).write_bytes(content.read())
    return described(package)


def described(package: Package) -> dict[str, object]:
    """Return the version, the licence and the hash of each file of a package, from the files
    that are there."""
    hashes = {
        name: hashlib.sha512((VENDOR / name).read_bytes()).hexdigest()
        for name in package.files.values()
    }
    return {
        "name": package.name,
        "version": package.version,
        "licence": package.licence,
        "sha512": hashes,
    }


def check(vendor: Path) -> list[str]:
    """Return what is wrong with the files in the folder: changed, missing, or of no package."""
    listed = json.loads((vendor / VERSIONS).read_text(encoding="utf-8"))
    problems = []
    if [(one["name"], one["version"]) for one in listed] != [
        (one.name, one.version) for one in PACKAGES
    ]:
        problems.append(f"{VERSIONS} lists other versions than tools/vendor_console.py")
    known = {name: hash_ for one in listed for name, hash_ in one["sha512"].items()}
    there = {path.name: path for path in vendor.iterdir() if path.name != VERSIONS}
    for name in sorted(known.keys() | there.keys()):
        if name not in there:
            problems.append(f"{name} is missing")
        elif name not in known:
            problems.append(f"{name} belongs to no package")
        elif hashlib.sha512(there[name].read_bytes()).hexdigest() != known[name]:
            problems.append(f"{name} was changed")
    return problems


if __name__ == "__main__":
    main(sys.argv[1:])
