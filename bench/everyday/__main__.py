"""Measure everyday memory.

    python -m bench.everyday [--splits test] [--sizes one,ten,all] [--data DIR] [--vectors FILE]
        [--out FOLDER]
    python -m bench.everyday --peers [--splits test] [--sizes one,ten] [--vectors FILE]
        [--out FOLDER]

The worlds are files of this repository. `one` asks each world alone, `ten` puts ten worlds into one
store of one user, and `all` puts all of them there together with the turns of LoCoMo, for which DIR
is needed. FILE keeps vectors between runs. A run with the split `test` and the size `one` among
others writes `everyday.json` to FOLDER, and a picture of the reliability of the scores. The second
form measures the retrieval of other stores with the same vectors, and writes `everyday_peers.json`;
it needs the packages of `make bench-peers`.
"""

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bench.commit import measured_at
from bench.everyday.measuring import Asked, ask, ask_peers, calibration, nothing, table, worst
from bench.everyday.worlds import SPLITS, World, WorldError, agreement, read_worlds, together
from bench.quality.evaluating import OURS
from bench.quality.nothing import read_mixed
from bench.quality.reliability import diagram
from bench.quality.sets import locomo_turns
from bench.quality.vectors import KeptEmbedder, local
from memory_mesh.core.model import batches

RESULTS = Path(__file__).parents[1] / "results"
SIZES = ("one", "ten", "all")
_TEN = 10
_REPORTED = ("test", "one")  # the split and the size without which there is no result file

Stores = Mapping[tuple[str, str], Sequence[World]]  # what each store holds, by split and size


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.everyday", description="How well everyday memories are found"
    )
    parser.add_argument(
        "--splits", help="some of train, choose, test (default: all; with --peers test)"
    )
    parser.add_argument(
        "--sizes", default="one,ten", help="some of one, ten, all (which needs --data)"
    )
    parser.add_argument(
        "--peers", action="store_true", help="measure the retrieval of other stores"
    )
    parser.add_argument("--data", type=Path, help="the folder with LoCoMo")
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument("--out", type=Path, default=RESULTS, help="the folder of the result file")
    given = parser.parse_args()
    splits = (given.splits or ("test" if given.peers else ",".join(SPLITS))).split(",")
    sizes = given.sizes.split(",")
    for name, chosen, known in (("splits", splits, SPLITS), ("sizes", sizes, SIZES)):
        if unknown := {*chosen} - {*known}:
            parser.error(
                f"unknown {name}: {', '.join(sorted(unknown))}; known are {', '.join(known)}"
            )
    if "all" in sizes and not given.data:
        parser.error("the size `all` needs --data, for LoCoMo")
    try:
        worlds = {split: read_worlds([split]) for split in splits}
    except WorldError as error:
        parser.error(str(error))
    embedder = local(given.vectors)
    command = (
        f"{parser.prog}{' --peers' if given.peers else ''} --splits {','.join(splits)} --sizes "
        f"{given.sizes}"
    )
    command += " --data DIR" if "all" in sizes else ""
    stores = {
        (split, size): grouped(some, size, given.data)
        for split, some in worlds.items()
        for size in sizes
    }
    measure_all = measure_peers if given.peers else measure
    measure_all(stores, embedder, command, given.out)


def measure(stores: Stores, embedder: KeptEmbedder, command: str, folder: Path) -> None:
    """Measure ours and the plain rankers, and write the result if what is reported is among what
    was run."""
    results: dict[str, Any] = {}
    misses: list[dict[str, Any]] | None = None
    for (split, size), worlds in stores.items():
        asked = ask_all(f"{split}, {size}", worlds, embedder)
        results.setdefault(split, {})[size] = measured(
            f"{split}, {size}", asked, alone=size == "one"
        )
        if (split, size) == _REPORTED:
            misses = worst(asked)
        embedder.save()
    if misses is not None:
        keep(results, misses, command, folder)


def measure_peers(stores: Stores, embedder: KeptEmbedder, command: str, folder: Path) -> None:
    """Measure other stores and ours, and write the result if what is reported is among what was
    run."""
    results: dict[str, Any] = {}
    for (split, size), worlds in stores.items():
        asked, about = ask_peers(worlds, embedder)
        embedder.save()
        failed = {peer: each["failure"] for peer, each in about.items() if "failure" in each}
        if len(failed) == len(about):
            sys.exit(f"no other store could be measured: {json.dumps(failed)}")
        result = {
            "stores": about,
            "table": table(asked, [OURS], [peer for peer in about if peer not in failed]),
        }
        results.setdefault(split, {})[size] = result
        show(f"{split}, {size}", result)
        for peer, failure in failed.items():
            print(f"  {peer}: {failure}")
    if _REPORTED in stores:
        write(folder / "everyday_peers.json", command, splits=results)


def grouped(worlds: Sequence[World], size: str, data: Path | None) -> list[World]:
    """Return the worlds as the stores of one size."""
    if size == "one":
        return list(worlds)
    if size == "ten":
        return [
            together(some, f"ten-{number}") for number, some in enumerate(batches(worlds, _TEN))
        ]
    noise = [said for space in locomo_turns(data or Path()) for said in space.memories]
    everything = together(worlds, "all")
    renamed = [
        replace(said, id=f"noise/{number}", session=f"noise/{said.session}")
        for number, said in enumerate(noise)
    ]
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

    Among the memories of other people a question without an answer may have one, so those count
    only where worlds are alone.
    """
    result = {"table": table(asked)}
    if alone:
        result |= {"nothing": nothing(asked), "calibration": calibration(asked)}
    show(title, result)
    return result


def show(title: str, result: dict[str, Any]) -> None:
    """Print the figures: right first, in three, missing in ten, and an outdated memory above the
    current one."""
    print(
        f"\n{title}, in percent of the "
        f"questions{'first':>12s}{'in three':>10s}{'missing':>9s}{'outdated above':>16s}"
    )
    for part, row in result["table"].items():
        print(f"  {part} ({row['questions']})")
        for ranker, counts in row["rankers"].items():
            shares = "".join(f"{100 * counts[name] / row['questions']:10.1f}" for name in counts)
            print(f"    {ranker:40s}{shares}")
    for name, row in result.get("nothing", {}).items():
        print(
            f"  {name} ({row['questions']}): answered {row['answered']}, area under the curve "
            f"{row['auc']}"
        )
    for name, curve in result.get("calibration", {}).items():
        print(f"  {name}: expected calibration error {curve['error']}")


def keep(
    results: dict[str, Any], misses: Sequence[dict[str, Any]], command: str, folder: Path
) -> None:
    """Write the result, and draw the reliability of the scores."""
    write(folder / "everyday.json", command, splits=results, worst=misses, agreement=agreement())
    split, size = _REPORTED
    (folder / "everyday_reliability.svg").write_text(
        diagram(results[split][size]["calibration"]), encoding="utf-8"
    )


def write(path: Path, command: str, **result: object) -> None:
    """Write a result, after the command and the commit."""
    head = {"made_by": command, "python": platform.python_version(), **measured_at()}
    path.write_text(
        json.dumps({**head, **result}, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


if __name__ == "__main__":
    main()
