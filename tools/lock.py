"""Write lock.txt: every package that `make setup` installs, with its version and the hashes of its
files.

    python tools/lock.py            # needs uv, and a package index: see `make lock`
    python tools/lock.py --check    # needs nothing: is lock.txt complete, and does it fit
                                    # constraints.txt and pyproject.toml?

The versions are those of constraints.txt. One file serves every supported Python and system: what
only some of them need has a condition.
"""

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
FILE, CONSTRAINTS, PROJECT = ROOT / "lock.txt", ROOT / "constraints.txt", ROOT / "pyproject.toml"
HEADER = """\
# What `make setup` installs, with the hashes of the files; `make lock` writes it from \
pyproject.toml and constraints.txt.
"""
# They build and install the package itself.
BUILDERS = ("pip", "hatchling", "editables")
_ENTRY = re.compile(r"(?m)^(?P<what>[^\s#].*?)(?P<hashes>(?: \\\n    --hash=\S+)*)$")


def main(arguments: list[str]) -> None:
    """Write the file, or check it."""
    if arguments == ["--check"]:
        if found := list(faults(FILE.read_text(encoding="utf-8"))):
            sys.exit("\n".join(found))
        return
    if arguments:
        sys.exit(__doc__)
    words = [
        "uv", "pip", "compile", "--quiet", "--universal", "--generate-hashes", "--python-version",
        "3.11", "--no-header", "--no-annotate", "--no-emit-index-url", "--no-emit-find-links",
        "--constraint", str(CONSTRAINTS), "--extra", "dev", str(PROJECT), "-",
    ]  # fmt: skip
    done = subprocess.run(
        words, input="\n".join(BUILDERS), capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(done.stderr)
    text = HEADER + done.stdout
    if found := list(faults(text)):
        sys.exit("\n".join(found))
    FILE.write_text(text, encoding="utf-8")


def faults(text: str) -> Iterator[str]:
    """Yield what is wrong with a lock file."""
    tested = {
        one.name: str(one.specifier)
        for one in map(_requirement, CONSTRAINTS.read_text(encoding="utf-8").splitlines())
        if one
    }
    pinned: dict[str, Requirement] = {}
    for entry in _ENTRY.finditer(text):
        one, hashes = (
            Requirement(entry["what"].rstrip(" \\")),
            re.findall(r"--hash=(\S+)", entry["hashes"]),
        )
        name = canonicalize_name(one.name)
        pinned[name] = one
        if not re.fullmatch(r"==[^=*,]+", str(one.specifier)):
            yield f"{name} has no exact version"
        if not hashes or not all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes):
            yield f"{name} has no valid hash"
        if tested.get(name, str(one.specifier)) != str(one.specifier):
            yield (
                f"{name} is {one.specifier}, but constraints.txt has {tested[name]}: run make lock"
            )
    if "://" in text:
        yield "the file names an address"
    for asked in _asked():
        found = pinned.get(canonicalize_name(asked.name))
        if found is None:
            yield f"{asked.name} is missing: run make lock"
        elif not asked.specifier.contains(str(found.specifier)[2:]):
            yield (
                f"{asked.name}{found.specifier} is not {asked.specifier}, which "
                "pyproject.toml asks for"
            )


def _asked() -> Iterator[Requirement]:
    """Yield what the package, its build and its developers ask for, without the package itself."""
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    names = [
        "dev",
        *next(
            iter(Requirement(one).extras for one in extras["dev"] if one.startswith("memory-mesh["))
        ),
    ]
    lines = [*project["build-system"]["requires"], *project["project"]["dependencies"], *BUILDERS]
    for one in map(Requirement, [*lines, *(line for name in names for line in extras[name])]):
        if one.name != "memory-mesh":
            yield one


def _requirement(line: str) -> Requirement | None:
    if not line.strip() or line.startswith("#"):
        return None
    one = Requirement(line)
    one.name = canonicalize_name(one.name)
    return one


if __name__ == "__main__":
    main(sys.argv[1:])
