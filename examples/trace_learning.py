"""Twelve runs of an agent become two learnings and one skill.

The agent deploys a site seven times and imports orders five times. Consolidation groups the runs by
their goals, and draws from each group what to repeat and what to avoid. The deploys succeed often
enough to become a skill; the imports do not.

    # in a folder that is removed afterwards
    python examples/trace_learning.py
    python examples/trace_learning.py --store memory.db --traces traces
"""

import argparse
from collections.abc import Sequence
from tempfile import TemporaryDirectory

from memory_mesh import MemoryMesh

DEPLOY = (
    ("Deploy the shop to production", 41_000, ""),
    ("Deploy the shop to production.", 38_000, ""),
    ("Deploy the shop to production", 52_000, "The disk of the server was full."),
    ("deploy the shop to production", 36_000, ""),
    ("Deploy the shop to production!", 44_000, ""),
    ("Deploy the shop to production", 35_000, ""),
    ("Deploy the shop to production", 39_000, ""),
)
IMPORT = (
    ("Import the orders of last month", 9_000, "The file has two headers."),
    ("Import the orders of last month", 7_000, ""),
    ("Import the orders of last month", 8_000, "Amounts with a comma are refused."),
    ("Import the orders of last month", 6_500, ""),
    ("Import the orders of last month", 9_500, "The file has two headers."),
)


def work(mesh: MemoryMesh) -> None:
    """Record twelve runs, as an agent does at the end of each."""
    for goal, milliseconds, error in DEPLOY:
        steps = [
            ("Run the tests", "done"),
            ("Build the image", "done"),
            ("Copy it to the server", "failed" if error else "done"),
        ]
        mesh.traces.record(
            goal, status="failure" if error else "success", duration_ms=milliseconds,
            tools_used=["make", "ssh"], steps=steps,
            learnings=[error or "Run the tests before the build.",
                       "Decision: Deploy from the main branch only."],
        )  # fmt: skip
    for goal, milliseconds, error in IMPORT:
        mesh.traces.record(
            goal, status="failure" if error else "success", duration_ms=milliseconds,
            tools_used=["csv"], plan="Check the header, then import in one transaction.",
            learnings=[error] if error else [],
        )  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    """Work, consolidate, and show what the next plan gets."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--store", default="memory://", help="a file such as memory.db keeps the memory"
    )
    parser.add_argument("--traces", help="the folder of the traces")
    given = parser.parse_args(words)
    with (
        TemporaryDirectory() as folder,
        MemoryMesh(given.store, traces_dir=given.traces or folder) as mesh,
    ):
        mesh.init()
        work(mesh)
        done = mesh.traces.consolidate()
        print(
            f"{done.traces} traces, {len(done.patterns)} learnings, {len(mesh.list_skills())} skill"
        )
        for pattern in done.patterns:
            print(f"\n{pattern.learning.text}")
        print(mesh.traces.plan_context("Deploy the shop to production", limit=1))


if __name__ == "__main__":
    main()
