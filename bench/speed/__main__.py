"""What a write, a search and a memory cost, beyond the embedding.

    python -m bench.speed [--sizes 1k,10k,100k] [--out FILE]
    python -m bench.speed --peers [--sizes 5k] [--out FILE]

One run: the same texts, and the same vectors made beforehand, for every size and for everyone. The first form measures
memory-mesh by size and draws the curve beside the file; the second measures memory-mesh beside others that are installed.
Run it on a machine that does nothing else: the result notes how busy it was.
"""

import argparse
import sys
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.speed import cold, comparing, report
from bench.speed.embedding import Price, price
from bench.speed.goals import Run, goals
from bench.speed.measuring import alone
from bench.speed.ours import measured, url, weighed
from bench.speed.peers import PEERS

_UNITS = {"k": 1_000, "m": 1_000_000}
_QUERY = "what was said about the stand in the spring"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.speed", description="Speed by size, and beside others")
    parser.add_argument("--sizes", help="how many memories, e.g. 1k,10k,100k; beside others 5k")
    parser.add_argument("--peers", action="store_true", help="beside others instead of by size")
    parser.add_argument("--out", type=Path, help="where the result goes, as JSON")
    options = parser.parse_args()
    text = options.sizes or ("5k" if options.peers else "1k,10k,100k")
    sizes = [_size(word) for word in text.split(",")]
    made_by = f"python -m bench.speed{' --peers' if options.peers else ''} --sizes {text}"
    if options.peers:
        beside_others(sizes, options.out or report.RESULTS / "speed_peers.json", made_by)
    else:
        by_size(sizes, options.out or report.RESULTS / "speed.json", made_by)


def by_size(sizes: list[int], out: Path, made_by: str) -> None:
    """Measure, show, keep and draw what memory-mesh costs at each size."""
    before = report.load()
    cost = alone(price)
    runs = [_run(size, with_model=isinstance(cost, Price)) for size in sizes]
    found = goals(runs, cost)
    report.show_sizes(runs, cost)
    report.show_goals(found)
    report.keep(
        out, made_by, before,
        embedding=asdict(cost) if isinstance(cost, Price) else cost,
        sizes=report.sizes_json(runs),
        goals=[asdict(goal) for goal in found],
    )  # fmt: skip
    report.draw(out.with_suffix(".svg"), runs)


def beside_others(sizes: list[int], out: Path, made_by: str) -> None:
    """Measure, show and keep what the same costs elsewhere."""
    before = report.load()
    results = [[comparing.compared(name, size) for name in PEERS] for size in sizes]
    found = [goal for of_size in results for goal in comparing.against_the_fastest(of_size)]
    for of_size in results:
        report.show_peers(of_size)
    report.show_goals(found)
    kept = [asdict(result) for of_size in results for result in of_size]
    report.keep(out, made_by, before, peers=kept, goals=[asdict(goal) for goal in found])


def _run(size: int, *, with_model: bool) -> Run:
    print(f"measuring {size:,} memories …", file=sys.stderr)
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        figures = alone(measured, size, Path(folder))
        weight = alone(weighed, Path(folder))
        return Run(figures, weight, cold.commands(url(Path(folder)), _QUERY, with_model=with_model))


def _size(word: str) -> int:
    text, unit = word.strip().lower(), 1
    if text[-1:] in _UNITS:
        text, unit = text[:-1], _UNITS[text[-1]]
    if not text.isdecimal() or not int(text):
        raise SystemExit(f"--sizes: {word!r} is no number of memories; say 500, 10k or 1m")
    return int(text) * unit


if __name__ == "__main__":
    main()
