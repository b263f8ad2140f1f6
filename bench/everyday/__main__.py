"""Measure everyday memory.

    python -m bench.everyday [--splits test] [--sizes one,ten,all] [--data DIR] [--vectors FILE] [--out FOLDER]

The worlds are files of this repository. `one` asks each world alone, `ten` puts ten worlds into one store of one user, and `all`
puts all of them there together with the turns of LoCoMo, for which DIR is needed. FILE keeps vectors between runs. A run with
the split `test` and the size `one` among others writes `everyday.json` to FOLDER, and a picture of the reliability of the scores.
"""

import argparse
import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.everyday.measuring import Asked, ask, calibration, nothing, table, worst
from bench.everyday.worlds import SPLITS, World, WorldError, agreement, read_worlds, together
from bench.quality.nothing import read_mixed
from bench.quality.reliability import diagram
from bench.quality.sets import locomo_turns
from bench.quality.vectors import KeptEmbedder, local
from memory_mesh.core.model import batches

RESULTS = Path(__file__).parents[1] / "results"
SIZES = ("one", "ten", "all")
_TEN = 10
_REPORTED = ("test", "one")  # the split and the size without which there is no result file


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.everyday", description="How well everyday memories are found")
    parser.add_argument("--splits", default=",".join(SPLITS), help="some of train, choose, test")
    parser.add_argument("--sizes", default="one,ten", help="some of one, ten, all (which needs --data)")
    parser.add_argument("--data", type=Path, help="the folder with LoCoMo")
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    splits, sizes = given.splits.split(","), given.sizes.split(",")
    for name, chosen, known in (("splits", splits, SPLITS), ("sizes", sizes, SIZES)):
        if unknown := {*chosen} - {*known}:
            parser.error(f"unknown {name}: {', '.join(sorted(unknown))}; known are {', '.join(known)}")
    if "all" in sizes and not given.data:
        parser.error("the size `all` needs --data, for LoCoMo")
    try:
        worlds = {split: read_worlds([split]) for split in splits}
    except WorldError as error:
        parser.error(str(error))
    embedder = local(given.vectors)
    results: dict[str, Any] = {}
    misses: list[dict[str, Any]] | None = None
    for split, some in worlds.items():
        for size in sizes:
            asked = ask_all(f"{split}, {size}", grouped(some, size, given.data), embedder)
            results.setdefault(split, {})[size] = measured(f"{split}, {size}", asked, alone=size == "one")
            if (split, size) == _REPORTED:
                misses = worst(asked)
            embedder.save()
    if misses is not None:
        data = " --data DIR" if "all" in sizes else ""
        keep(results, misses, f"{parser.prog} --splits {given.splits} --sizes {given.sizes}{data}", given.out)


def grouped(worlds: Sequence[World], size: str, data: Path | None) -> list[World]:
    """Return the worlds as the stores of one size."""
    if size == "one":
        return list(worlds)
    if size == "ten":
        return [together(some, f"ten-{number}") for number, some in enumerate(batches(worlds, _TEN))]
    noise = [said for space in locomo_turns(data or Path()) for said in space.memories]
    everything = together(worlds, "all")
    renamed = [replace(said, id=f"noise/{number}", session=f"noise/{said.session}") for number, said in enumerate(noise)]
    return [replace(everything, memories=[*renamed, *everything.memories])]


def ask_all(title: str, worlds: Sequence[World], embedder: KeptEmbedder) -> list[Asked]:
    """Ask all questions, and print how many were asked."""
    asked: list[Asked] = []
    for number, each in enumerate(ask(worlds, embedder, read_mixed().unrelated), 1):
        asked.append(each)
        if number % 500 == 0:
            print(f"{title}: {number:,} questions", flush=True)
    return asked


def measured(title: str, asked: Sequence[Asked], *, alone: bool) -> dict[str, Any]:
    """Print the table and return the figures.

    Among the memories of other people a question without an answer may have one, so those count only where worlds are alone.
    """
    result = {"table": table(asked)}
    if alone:
        result |= {"nothing": nothing(asked), "calibration": calibration(asked)}
    show(title, result)
    return result


def show(title: str, result: dict[str, Any]) -> None:
    """Print the figures: right first, in three, missing in ten, and an outdated memory above the current one."""
    print(f"\n{title}, in percent of the questions{'first':>12s}{'in three':>10s}{'missing':>9s}{'outdated above':>16s}")
    for part, row in result["table"].items():
        print(f"  {part} ({row['questions']})")
        for ranker, counts in row["rankers"].items():
            shares = "".join(f"{100 * counts[name] / row['questions']:10.1f}" for name in counts)
            print(f"    {ranker:20s}{'':12s}{shares}")
    for name, row in result.get("nothing", {}).items():
        print(f"  {name} ({row['questions']}): answered {row['answered']}, area under the curve {row['auc']}")
    for name, curve in result.get("calibration", {}).items():
        print(f"  {name}: expected calibration error {curve['error']}")


def keep(results: dict[str, Any], misses: Sequence[dict[str, Any]], command: str, folder: Path) -> None:
    """Write the result, and draw the reliability of the scores."""
    head = {"made_by": command, "python": platform.python_version(), **measured_at()}
    result = {**head, "splits": results, "worst": misses, "agreement": agreement()}
    (folder / "everyday.json").write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    split, size = _REPORTED
    (folder / "everyday_reliability.svg").write_text(diagram(results[split][size]["calibration"]), encoding="utf-8")


if __name__ == "__main__":
    main()
