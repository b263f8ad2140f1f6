"""Write docs/benchmarks.md and the figures of the README from the result files of the benchmarks, or check that they are current.

python tools/bench_docs.py [--check]
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, README, RESULTS = ROOT / "docs" / "benchmarks.md", ROOT / "README.md", ROOT / "bench" / "results"
_BEGIN, _END = "<!-- figures: written by tools/bench_docs.py -->\n", "<!-- end of figures -->"
_FIGURES = ("recall@5", "recall@10", "all@10", "nDCG@10", "MRR")

_INTRO = """\
# Benchmarks

`tools/bench_docs.py` generates this page from `bench/results/`, and a test checks that it is current. Each table names the
command that produced it and the commit that it ran at; results of uncommitted changes are refused. The data sets are not in the
repository; the benchmarks take `--data DIR`.
"""
_QUALITY = """\
## How well memories are found

One memory for each turn or session, with the default embedder and without a language model. All figures are multiplied by 100.

- *BM25*, *cosine* and *RRF* (plain reciprocal rank fusion of the two, k = 60) are baselines: simple code over the same tokens and
  vectors, in the same run.
- *ours* is memory-mesh as installed, with its default minimum score. The line below it is the same without a minimum.

How to read it:

- The ranker was trained on LongMemEval alone; its licence allows shipping the result.
- Its features and other settings were chosen on LongMemEval and on LoCoMo's conversations 1–5. So conversations 6–10 are the
  honest figures for LoCoMo.
- LongMemEval-S lite has the questions whose evidence the ranker was trained on. For that set, all our figures are in-sample.
"""
_SPEED = """\
## How fast it is

All times are without the embedding: the vectors of texts and queries are computed beforehand.

- `search` uses keywords and vectors, obeys the scope, is warm, skips the search cache, and reads ten results from the store.
- `add` is durable, deduplicated and audited.
- Absolute times depend on the machine and its other work. Each table gives the load average before and after the run.
"""
_PEERS = """\
## Compared with other stores

Every store gets the same texts and the same prepared vectors, in its own process, in one run. The stores do not do the same work:

- only memory-mesh searches by words and vectors, keeps an audit chain and deduplicates;
- LangGraph's store keeps nothing on disk;
- LanceDB is used without an index.
"""
_USERS = """\
## Many users in one process

A handle is what `mesh.scoped(user_id=…)` returns. Memory is what the process holds beyond a mesh with a loaded model; for the
meshes, beyond an empty process, so the model is included. Before meshes shared the store and the embedder, 50 of them took 19 s
and 2.6 GB.
"""
_REDACTION = """\
## What redaction finds

A text counts as masked if every value in it is masked whole. A false alarm is a text in which anything else was masked.
*Harmless* texts have nothing to mask, but look like it: order and part numbers, versions, times, code.

- The vectors are those of the tests. Patterns were changed until all of them passed, so they show what is covered, not how well
  unseen texts are handled.
- The labelled sentences are those of presidio-research (MIT), with values made by a program.
- The harmless lines are those of the tests. LoCoMo's conversations and this repository's own texts have no personal values.
"""


def page() -> str:
    """Return the whole page."""
    return "\n".join(
        [
            _INTRO,
            *_quality(_read("quality")),
            *_speed(_read("speed")),
            *_peers(_read("speed_peers")),
            *_users(_read("users")),
            *_redaction(_read("redaction")),
        ]
    )


def readme() -> str:
    """Return the README with its figures."""
    before, _, rest = README.read_text(encoding="utf-8").partition(_BEGIN)
    return f"{before}{_BEGIN}{''.join(_headline(_read('quality'), _read('speed_peers')))}{_END}{rest.partition(_END)[2]}"


def _headline(quality: Mapping[str, Any] | None, speed: Mapping[str, Any] | None) -> Iterator[str]:
    if quality:
        found = {name: values["recall@10"] for name, values in quality["sets"]["locomo"]["parts"]["all"]["rankers"].items()}
        yield (
            f"**Recall** on LoCoMo, questions about long conversations: the first ten results contain {found['ours']:.1f} % of "
            f"the evidence. Keywords alone find {found['BM25']:.1f} %, and vectors alone (a vector store with the same model) "
            f"{found['cosine']:.1f} %.\n\n"
        )
    if speed:
        yield f"**Speed** with {speed['peers'][0]['memories']:,} memories, without the embedding, in one run:\n\n"
        yield (
            _table(["", "on disk", "search p50 / p95", "add p50 / p95", "bulk"], [_peer(peer) for peer in speed["peers"]]) + "\n"
        )


def _read(name: str) -> Any:
    """Return a result, or None if there is none. A result of uncommitted files is refused: nobody could measure it again."""
    path = RESULTS / f"{name}.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if result and result.get("clean") is False:
        sys.exit(f"{path.name} was measured with uncommitted changes: commit them and measure again, or restore the file")
    return result


def _quality(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _QUALITY
    yield _source(result["command"], result)
    for name, data_set in result["sets"].items():
        for part, table in data_set["parts"].items():
            yield f"**{name}, {part}** ({table['questions']:,} questions)\n"
            figures = [figure for figure in _FIGURES if figure in next(iter(table["rankers"].values()))]
            rows = [[ranker, *(f"{values[figure]:.1f}" for figure in figures)] for ranker, values in table["rankers"].items()]
            yield _table(["", *figures], rows)
            ahead = (
                f"{figure} {low:+.1f} to {high:+.1f} (against {best})" for figure, (best, low, high) in table["ahead"].items()
            )
            yield f"Ours minus the best baseline, 95 % interval of paired bootstraps: {'; '.join(ahead)}.\n"
        if wrong := data_set.get("wrong"):
            yield (
                f"Questions put to the memories of another conversation ({name}): {wrong['empty']:.1f} % get no result at the "
                f"default `min_score` of {wrong['min_score']:g}; the best scores separate own from other conversations with an "
                f"AUC of {wrong['auc']:.4f}.\n"
            )
    yield "![recall at 10](../bench/results/quality.svg)\n"


def _speed(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _SPEED
    yield _source(result["made_by"], result)
    cost = result["embedding"]
    if isinstance(cost, dict):
        yield (
            f"Embedding takes {cost['single']['p50_ms']:.1f} ms for a single text, and processes {cost['batch_per_s']:.0f} texts "
            "per second in batches.\n"
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
    yield _table(names, [_size(size) for size in result["sizes"]])
    yield _table(
        [
            "memories",
            "cold `stats`",
            "cold `search`, keywords",
            "cold `search`, model",
            "bytes per record: resident",
            "index files",
            "database",
        ],
        [_footprint(size) for size in result["sizes"]],
    )
    yield _goals(result["goals"])
    yield "![times by size](../bench/results/speed.svg)\n"


def _size(size: Mapping[str, Any]) -> list[str]:
    return [
        f"{size['memories']:,}", str(size["engine"]), _times(size["search"]), _time(size["after_write"]), _time(size["filtered"]),
        _times(size["add"]), f"{size['ingest_per_s']:,.0f}/s", f"{100 * size['recall_at_10']:.1f} %",
    ]  # fmt: skip


def _footprint(size: Mapping[str, Any]) -> list[str]:
    cold, footprint = size["cold_s"], size["bytes_a_record"]
    seconds = [f"{cold[name]:.2f} s" for name in ("stats", "search, keywords", "search, local model")]
    return [f"{size['memories']:,}", *seconds, *(f"{footprint[name]:,.0f}" for name in ("resident", "index_files", "database"))]


def _users(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "rows" not in result:
        return
    yield _USERS
    yield _source(result["made_by"], result)
    rows = [
        [row["what"], f"{row['number']:,}", f"{row['seconds']:.2f} s", f"{row['megabytes']:.0f} MB"] for row in result["rows"]
    ]
    yield _table(["", "number", "time", "memory"], rows)


def _redaction(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "vectors" not in result:
        return
    yield _REDACTION
    yield _source(result["made_by"], result)
    rows = [[*(str(row[name]) for name in ("kind", "source")), *_masked(row)] for row in result["vectors"]]
    labelled, lines = result["labelled"], result["negatives"]
    spans = labelled["spans"].items()
    rows += [[label.lower(), "labelled sentences", f"{span['found']} of {span['of']}", "–"] for label, span in spans]
    counts = {
        "labelled sentences": (sum(labelled["found_but_not_labelled"].values()), labelled["sentences"]),
        "harmless lines": (lines["redacted"], lines["lines"]),
        "LoCoMo": (sum(result["locomo"]["false_alarms"].values()), result["locomo"]["sentences"]),
        "this repository": (sum(result["repository"]["false_alarms"].values()), result["repository"]["sentences"]),
    }
    rows += [["all kinds", source, "–", f"{alarms} in {texts:,} texts"] for source, (alarms, texts) in counts.items()]
    yield _table(["kind", "source", "masked", "false alarms"], rows)
    speed = result["speed"]
    yield f"A memory of 200 characters takes {speed['memory_us']} µs, 1 MB of mixed text {speed['cpu_seconds_per_mb']:.1f} s.\n"


def _masked(row: Mapping[str, int]) -> list[str]:
    alarms = f"{row['false_alarms']} in {row['harmless']} harmless texts" if row["harmless"] else "–"
    return [f"{row['masked']} of {row['texts']}" if row["texts"] else "–", alarms]


def _peers(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _PEERS
    yield _source(result["made_by"], result)
    yield _table(["", "durable", "search p50 / p95", "add p50 / p95", "bulk"], [_peer(peer) for peer in result["peers"]])
    yield _goals(result["goals"])


def _peer(peer: Mapping[str, Any]) -> list[str]:
    name = f"{peer['name']} {', '.join(peer['versions'].values())}"
    if peer["failure"]:
        return [name, "–", str(peer["failure"]), "–", "–"]
    durable = "yes" if peer["durable"] else "no"
    return [name, durable, _times(peer["search"]), _times(peer["add"]), f"{peer['ingest_per_s']:,.0f}/s"]


def _goals(goals: Sequence[Mapping[str, Any]]) -> str:
    rows = [[goal["what"], goal["target"], goal["measured"], "met" if goal["met"] else "**not met**"] for goal in goals]
    return _table(["goal", "target", "measured", ""], rows)


def _source(command: str, result: Mapping[str, Any]) -> str:
    load = result.get("load_average")
    parts = [f"`{command}`", _commit(result), *([result["system"]] if "system" in result else [])]
    parts += [f"load average {load['before']:.1f} to {load['after']:.1f}"] if load else []
    return f"{', '.join(parts)}.\n"


def _commit(result: Mapping[str, Any]) -> str:
    """Name the commit. Older results do not say whether the files were as the commit has them."""
    if not result.get("commit"):
        return "commit not recorded"
    return f"commit {result['commit'][:7]}" + ("" if result.get("clean") else " (uncommitted changes not recorded)")


def _times(timing: Mapping[str, float]) -> str:
    return f"{timing['p50_ms']:.2f} / {timing['p95_ms']:.2f} ms"


def _time(timing: Mapping[str, float] | None) -> str:
    return f"{timing['p50_ms']:.2f} ms" if timing else "–"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write docs/benchmarks.md and the figures of the README from the results")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if the page is not current")
    check = parser.parse_args().check
    for path, text in ((PAGE, page()), (README, readme())):
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not current: run python tools/bench_docs.py")


if __name__ == "__main__":
    main()
