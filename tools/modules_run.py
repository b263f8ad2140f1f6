"""Count the modules of the package that run in one `add` and in one `search`, and the switches
between them.

    python tools/modules_run.py [--json] [--switches N]

Opens a store in a temporary folder with the default settings, adds some memories, and repeats each
operation until everything is loaded. Then lists the distinct modules of `memory_mesh` whose
functions run in one call. A switch is a call of a function by one of another module. Background
threads are not counted.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType

PACKAGE = "memory_mesh"
WARM_UP = 3
TEXTS = (
    "Ana Silva moved to Lisbon in March and works as a nurse.",
    "The deploy key of the staging server rotates every Monday.",
    "The team agreed to ship the search index on Friday.",
    "Tomás prefers tea to coffee, and never drinks after six.",
    "The build broke because the cache held an old wheel.",
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument(
        "--json", action="store_true", help="print one JSON object: module names by operation"
    )
    parser.add_argument(
        "--switches", type=int, default=0, metavar="N", help="list the N most frequent switches"
    )
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        os.environ["MEMORY_MESH_HOME"] = home
        modules = measure(Path(home) / "memory.db")
    if options.json:
        found = {name: {**asdict(run), "switches": run.switches} for name, run in modules.items()}
        print(json.dumps(found, indent=1))
        return
    for operation, run in modules.items():
        print(
            f"{operation}: {len(run.modules)} modules, {run.switches} switches",
            *run.modules,
            sep="\n  ",
        )
        for switch in sorted(run.calls, key=lambda switch: -run.calls[switch])[: options.switches]:
            print(f"  {run.calls[switch]:4d}  {switch}")


@dataclass(frozen=True, slots=True)
class Run:
    """The modules whose functions ran in one call, and how often one called a function of
    another."""

    modules: list[str]
    calls: dict[str, int]  # how often each switch happened, by "caller -> function"

    @property
    def switches(self) -> int:
        return sum(self.calls.values())


def measure(store: Path) -> dict[str, Run]:
    """Return the modules that run in one warm `add` and in one warm `search`."""
    from memory_mesh import MemoryMesh

    with MemoryMesh(store=f"sqlite:///{store}") as mesh:
        for number, text in enumerate(TEXTS):
            mesh.add(text, {"session_id": "s1", "turn": number})
        for number in range(WARM_UP):
            mesh.add(f"Note {number}: the index was rebuilt in the night.")
        added = modules_run(
            lambda: mesh.add("The backup of the database runs at four in the morning.")
        )
        # Other queries, so that no answer comes from the search cache.
        for number in range(WARM_UP):
            mesh.search(f"When is the index shipped? {number}")
        return {
            "add": added,
            "search": modules_run(lambda: mesh.search("Who works as a nurse in Lisbon?")),
        }


def modules_run(call: Callable[[], object]) -> Run:
    """Call a function, and return what ran of the package in this thread."""
    names: set[str] = set()
    calls: Counter[str] = Counter()

    def profile(frame: FrameType, event: str, _argument: object) -> None:
        name = _module(frame)
        if event == "call" and name:
            names.add(name)
            caller = frame.f_back
            if caller is not None and _module(caller) not in ("", name):
                calls[f"{_place(caller)} -> {_place(frame)}"] += 1

    sys.setprofile(profile)
    try:
        call()
    finally:
        sys.setprofile(None)
    return Run(sorted(names), dict(calls))


def _module(frame: FrameType) -> str:
    name = str(frame.f_globals.get("__name__", ""))
    return name if name == PACKAGE or name.startswith(f"{PACKAGE}.") else ""


def _place(frame: FrameType) -> str:
    return f"{_module(frame).removeprefix(f'{PACKAGE}.')}:{frame.f_code.co_qualname}"


if __name__ == "__main__":
    main()
