"""Writes docs/benchmarks.md from the result files of the benches, or checks that it is current.

python tools/bench_docs.py [--check]
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "benchmarks.md", ROOT / "bench" / "results"
_FIGURES = ("recall@5", "recall@10", "all@10", "nDCG@10", "MRR")

_INTRO = """\
# Benchmarks

This page is made by `tools/bench_docs.py` from `bench/results/`; a test holds it current. Every table names the command that
made it. Data sets are not in the repository; benches take `--data DIR`.
"""
_QUALITY = """\
## How well memories are found

One memory for each turn or session, with the default embedder, without a language model. BM25, cosine and the plain
reciprocal rank fusion (k = 60) of the two are straightforward code over the same tokens and vectors in the same run. *ours*
is the product as it comes, with its default minimum score; the line below it shows the same without a minimum. All figures in
hundredths.

How to read it: the ranker was learnt on LongMemEval alone (its licence lets the result ship). Which features it has and other
settings were chosen on LongMemEval and on LoCoMo's conversations 1–5, so the line for 6–10 is the honest one for LoCoMo.
LongMemEval-S lite asks the questions whose evidence it was learnt on, so for that set all of our lines are in-sample.
"""
_SPEED = """\
## How fast

Times are beyond the embedding: every text and query has its vector ready. `search` is hybrid, within scope, warm, without the
search cache, ten answers read from the store; `add` is durable, deduplicated and audited. Absolute times depend on the
machine and on what else it does; its load average before and after the run stands beside each table.
"""
_PEERS = """\
## Beside others

The same texts and the same ready vectors for everyone, each in a process of its own, in one run. Not everyone does the same
work: only ours searches by words and vectors, keeps an audit chain and deduplicates; LangGraph's store keeps nothing on disk;
LanceDB is plain, without an index.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([_INTRO, *_quality(_read("quality")), *_speed(_read("speed")), *_peers(_read("speed_peers"))])


def _read(name: str) -> Any:
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def _quality(held: Mapping[str, Any] | None) -> Iterator[str]:
    if held is None:
        return
    yield _QUALITY
    yield _made(held["command"], held["commit"])
    for name, result in held["sets"].items():
        for part, table in result["parts"].items():
            yield f"**{name}, {part}** ({table['questions']:,} questions)\n"
            figures = [figure for figure in _FIGURES if figure in next(iter(table["rankers"].values()))]
            rows = [[ranker, *(f"{values[figure]:.1f}" for figure in figures)] for ranker, values in table["rankers"].items()]
            yield _table(["", *figures], rows)
            ahead = (
                f"{figure} {low:+.1f} to {high:+.1f} (against {best})" for figure, (best, low, high) in table["ahead"].items()
            )
            yield f"Ours − the best of the plain ones, 95 % of paired bootstraps: {'; '.join(ahead)}.\n"
        if wrong := result.get("wrong"):
            yield (
                f"Asked of another conversation's memories ({name}): {wrong['empty']:.1f} % answered with nothing at the default "
                f"`min_score` of {wrong['min_score']:g}; AUC of right against wrong {wrong['auc']:.4f}.\n"
            )
    yield "![recall at 10](../bench/results/quality.svg)\n"


def _speed(held: Mapping[str, Any] | None) -> Iterator[str]:
    if held is None:
        return
    yield _SPEED
    yield _made(held["made_by"], held["commit"], held)
    price = held["embedding"]
    if isinstance(price, dict):
        yield (
            f"The embedding itself: {price['single']['p50_ms']:.1f} ms for a text alone, {price['batch_per_s']:.0f} texts a "
            "second in batches.\n"
        )
    names = [
        "memories",
        "engine",
        "search p50 / p95",
        "after a write",
        "with a filter",
        "add p50 / p95",
        "bulk",
        "recall@10 of exact",
    ]
    yield _table(names, [_size(size) for size in held["sizes"]])
    yield _table(
        [
            "memories",
            "cold `stats`",
            "cold `search`, keywords",
            "cold `search`, model",
            "bytes a record: resident",
            "index files",
            "database",
        ],
        [_weight(size) for size in held["sizes"]],
    )
    yield _goals(held["goals"])
    yield "![times by size](../bench/results/speed.svg)\n"


def _size(size: Mapping[str, Any]) -> list[str]:
    return [
        f"{size['memories']:,}", str(size["engine"]), _times(size["search"]), _time(size["after_write"]), _time(size["filtered"]),
        _times(size["add"]), f"{size['ingest_per_s']:,.0f}/s", f"{100 * size['recall_at_10']:.1f} %",
    ]  # fmt: skip


def _weight(size: Mapping[str, Any]) -> list[str]:
    cold, held = size["cold_s"], size["bytes_a_record"]
    seconds = [f"{cold[name]:.2f} s" for name in ("stats", "search, keywords", "search, local model")]
    return [f"{size['memories']:,}", *seconds, *(f"{held[name]:,.0f}" for name in ("resident", "index_files", "database"))]


def _peers(held: Mapping[str, Any] | None) -> Iterator[str]:
    if held is None:
        return
    yield _PEERS
    yield _made(held["made_by"], held["commit"], held)
    yield _table(["", "durable", "search p50 / p95", "add p50 / p95", "bulk"], [_peer(peer) for peer in held["peers"]])
    yield _goals(held["goals"])


def _peer(peer: Mapping[str, Any]) -> list[str]:
    name = f"{peer['name']} {', '.join(peer['versions'].values())}"
    if peer["failure"]:
        return [name, "–", str(peer["failure"]), "–", "–"]
    durable = "yes" if peer["durable"] else "no"
    return [name, durable, _times(peer["search"]), _times(peer["add"]), f"{peer['ingest_per_s']:,.0f}/s"]


def _goals(goals: Sequence[Mapping[str, Any]]) -> str:
    rows = [[goal["what"], goal["wanted"], goal["measured"], "met" if goal["met"] else "**not met**"] for goal in goals]
    return _table(["goal", "wanted", "measured", ""], rows)


def _made(command: str, commit: str, held: Mapping[str, Any] | None = None) -> str:
    load = f", load average {held['load_average']['before']:.1f} to {held['load_average']['after']:.1f}" if held else ""
    system = f", {held['system']}" if held else ""
    return f"`{command}`, commit {commit[:7]}{system}{load}.\n"


def _times(timing: Mapping[str, float]) -> str:
    return f"{timing['p50_ms']:.2f} / {timing['p95_ms']:.2f} ms"


def _time(timing: Mapping[str, float] | None) -> str:
    return f"{timing['p50_ms']:.2f} ms" if timing else "–"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="The page of the benches' results")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is not current")
    if not parser.parse_args().check:
        PAGE.write_text(page(), encoding="utf-8")
    elif PAGE.read_text(encoding="utf-8") != page():
        sys.exit("docs/benchmarks.md is not current: run python tools/bench_docs.py")


if __name__ == "__main__":
    main()
