"""Measure the cost of a write, of a search and of a stored memory, without the embedding.

    python -m bench.speed [--sizes 1k,10k,100k] [--agents 1000] [--out FILE]
    python -m bench.speed --stores sqlite,lancedb [--sizes 10k,100k] [--out FILE]
    python -m bench.speed --peers [--sizes 5k] [--out FILE]

All sizes and all stores get the same texts, with vectors computed beforehand, in one run. The first
form measures memory-mesh by size and draws a chart beside the result file; `--agents` measures each
size once more, spread over so many agents. More than 200,000 memories are written without audit
blocks. The second form compares the stores of memory-mesh and prints the table of
docs/internals/benchmarks.md. The third form measures memory-mesh beside other stores that are
installed. Run it on an otherwise idle machine; the result records the load average.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.speed import comparing, report
from bench.speed.embedding import EmbeddingCost, measure_embedding
from bench.speed.goals import Run, goals, store_goals
from bench.speed.large import FROM, measure_large
from bench.speed.measuring import in_fresh_process
from bench.speed.ours import STORES, measure, measure_cold_start, measure_footprint, url
from bench.speed.peers import PEERS

_UNITS = {"k": 1_000, "m": 1_000_000}
_QUERY = "what was said about the stand in the spring"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.speed", description="Speed by size, and beside other stores"
    )
    parser.add_argument(
        "--sizes", help="numbers of memories (default: 1k,10k,100k; with --peers 5k)"
    )
    parser.add_argument(
        "--agents",
        type=int,
        help="measure each size also with the memories spread over so many agents",
    )
    parser.add_argument(
        "--peers",
        action="store_true",
        help="compare with other stores instead of measuring by size",
    )
    parser.add_argument(
        "--stores", help="compare these stores of memory-mesh, such as sqlite,lancedb"
    )
    parser.add_argument("--out", type=Path, help="the result file, as JSON")
    options = parser.parse_args()
    text = options.sizes or (
        "5k" if options.peers else "10k,100k" if options.stores else "1k,10k,100k"
    )
    sizes = [parse_size(word) for word in text.split(",")]
    form = " --peers" if options.peers else f" --stores {options.stores}" if options.stores else ""
    spread = f" --agents {options.agents}" if options.agents else ""
    command = f"python -m bench.speed{form} --sizes {text}{spread}"
    if options.stores:
        measure_stores(
            sizes,
            options.stores.split(","),
            options.out or report.RESULTS / "speed_stores.json",
            command,
        )
    elif options.peers:
        measure_peers(sizes, options.out or report.RESULTS / "speed_peers.json", command)
    else:
        cases = [
            (size, agents)
            for size in sizes
            for agents in (1, *([options.agents] if options.agents else []))
        ]
        measure_sizes(cases, options.out or report.RESULTS / "speed.json", command)


def measure_sizes(cases: list[tuple[int, int]], out: Path, command: str) -> None:
    """Measure memory-mesh at each size, with so many agents; print, store and draw the result."""
    load_before = report.load_average()
    cost = in_fresh_process(measure_embedding)
    runs = [_run(*case, with_model=isinstance(cost, EmbeddingCost)) for case in cases]
    checked = goals(runs, cost)
    report.show_sizes(runs, cost)
    report.show_goals(checked)
    report.write(
        out, command, load_before,
        embedding=asdict(cost) if isinstance(cost, EmbeddingCost) else cost,
        sizes=report.sizes_json(runs),
        goals=[asdict(goal) for goal in checked],
    )  # fmt: skip
    report.draw(out.with_suffix(".svg"), runs)


def measure_stores(sizes: list[int], stores: list[str], out: Path, command: str) -> None:
    """Measure the stores at each size, the first one as the default; print the table and store
    the result."""
    if unknown := {*stores} - {*STORES}:
        raise SystemExit(
            f"--stores: {min(unknown)!r} is unknown; expected some of {', '.join(STORES)}"
        )
    load_before = report.load_average()
    runs = {
        (store, size): _run(size, store=store, with_model=False, changes_from=1)
        for size in sizes
        for store in stores
    }
    checked = [
        goal
        for (store, size), run in runs.items()
        if store != stores[0]
        for goal in store_goals(run, runs[stores[0], size], store)
    ]
    report.show_stores(runs)
    report.show_goals(checked)
    figures = [
        {"store": store, **one}
        for (store, _), run in runs.items()
        for one in report.sizes_json([run])
    ]
    report.write(
        out, command, load_before, stores=figures, goals=[asdict(goal) for goal in checked]
    )


def measure_peers(sizes: list[int], out: Path, command: str) -> None:
    """Measure memory-mesh and the other stores; print and store the result."""
    load_before = report.load_average()
    by_size = [[comparing.measure_peer(name, size) for name in PEERS] for size in sizes]
    checked = [goal for results in by_size for goal in comparing.goals_against_peers(results)]
    for results in by_size:
        report.show_peers(results)
    report.show_goals(checked)
    peers = [asdict(result) for results in by_size for result in results]
    report.write(out, command, load_before, peers=peers, goals=[asdict(goal) for goal in checked])


def _run(
    size: int, agents: int = 1, *, with_model: bool, store: str = "sqlite", **options: int
) -> Run:
    print(f"measuring {size:,} memories of {agents:,} agents in {store} …", file=sys.stderr)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if size > FROM or agents > 1:
            figures = in_fresh_process(measure_large, size, agents, Path(folder))
        else:
            figures = in_fresh_process(measure, size, Path(folder), store, **options)
        if agents > 1:  # bytes and commands are those of a single agent
            return Run(figures)
        footprint = in_fresh_process(measure_footprint, Path(folder), store)
        return Run(
            figures,
            footprint,
            measure_cold_start(url(Path(folder), store), _QUERY, with_model=with_model),
        )


def parse_size(word: str) -> int:
    text, unit = word.strip().lower(), 1
    if text[-1:] in _UNITS:
        text, unit = text[:-1], _UNITS[text[-1]]
    if not text.isdecimal() or not int(text):
        raise SystemExit(f"--sizes: {word!r} is not a number of memories; expected 500, 10k or 1m")
    return int(text) * unit


if __name__ == "__main__":
    main()
