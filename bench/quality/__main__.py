"""Measure search quality.

    python -m bench.quality --data DIR [--sets locomo,locomo-sessions,…] [--vectors FILE]
        [--out FOLDER]
    python -m bench.quality --peers --data DIR [--sets locomo] [--vectors FILE] [--out FOLDER]

DIR has the folders of the data sets. "Ours" is the product as installed; the others are plain code
over the same tokens and vectors. Most settings were chosen on LoCoMo's conversations 1–5, so 6–10
are also shown separately; `bench.train_ranker` names those for which 6–10 were in view too. The
second form measures the retrieval of other stores with the same vectors. FILE keeps vectors between
runs. FactConsolidation and the other stores need the packages of `make bench-peers`. A run of all
sets writes its result to FOLDER.
"""

import argparse
from pathlib import Path

from bench.quality import report
from bench.quality.comparing import measure_peers
from bench.quality.evaluating import Evaluation
from bench.quality.nothing import read_mixed
from bench.quality.sets import SETS
from bench.quality.vectors import local


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.quality", description="How well memories are found"
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument(
        "--sets", help=f"some of {', '.join(SETS)} (default: all; with --peers locomo)"
    )
    parser.add_argument(
        "--peers", action="store_true", help="measure the retrieval of other stores"
    )
    parser.add_argument("--vectors", type=Path, help="a file that keeps vectors between runs")
    parser.add_argument(
        "--out", type=Path, default=report.RESULTS, help="the folder of the result files"
    )
    options = parser.parse_args()
    names = (options.sets or ("locomo" if options.peers else ",".join(SETS))).split(",")
    if unknown := set(names) - set(SETS):
        parser.error(f"unknown sets {', '.join(sorted(unknown))}; known are {', '.join(SETS)}")
    embedder = local(options.vectors)
    command = (
        f"python -m bench.quality{' --peers' if options.peers else ''} --data DIR --sets "
        f"{','.join(names)}"
    )
    if options.peers:
        report.keep_peers(
            measure_peers({name: SETS[name](options.data) for name in names}, embedder),
            command,
            options.out,
        )
        return
    evaluation = Evaluation(embedder)
    for name in names:
        report.show(name, evaluation.measure(name, SETS[name](options.data)))
        embedder.save()
    evaluation.measure_mixed(read_mixed())
    embedder.save()
    report.show_nothing(evaluation.nothing)
    report.show_violations(evaluation.sets)
    if set(names) == set(SETS):
        report.keep(evaluation, command, options.out)


if __name__ == "__main__":
    main()
