"""Write docs/benchmarks.md, docs/internals/benchmarks.md and the figures of README.md and other pages
from the results, or check that they are current.

python tools/bench_docs.py [--check]
"""

import argparse
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from itertools import chain
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE, RESULTS = ROOT / "docs" / "benchmarks.md", ROOT / "bench" / "results"
DETAILS, README = ROOT / "docs" / "internals" / "benchmarks.md", ROOT / "README.md"
CONTEXT, LIFECYCLE = ROOT / "docs" / "context.md", ROOT / "docs" / "lifecycle.md"
CAPTURE, NOTES = ROOT / "docs" / "capture.md", ROOT / "docs" / "notes.md"
TRACES, SCALE = ROOT / "docs" / "traces.md", ROOT / "docs" / "scale.md"
CONSOLE = ROOT / "docs" / "console.md"
EXPECTED = ROOT / "src" / "memory_mesh" / "interfaces" / "data" / "everyday.json"
HYGIENE = ROOT / "docs" / "internals" / "hygiene.md"
SOAK = ROOT / "docs" / "internals" / "soak.md"
TRIED = ROOT / "bench" / "tried.md"
_BEGIN, _END = "<!-- figures: written by tools/bench_docs.py -->\n", "<!-- end of figures -->"
_SOAKED = ("resident_mb", "handles", "threads", "cpu_ms")
_FIGURES = ("recall@5", "recall@10", "all@10", "nDCG@10", "MRR", "first")
_BY_KIND = ("recall@5", "recall@10", "nDCG@10", "first")
# Parts with a table of their own; most settings were chosen on conversations 1–5.
_SHOWN = ("all", "conversations 6–10")
_RANKS = (1, 2, 3, 5, 10)
_FIRST_VIEW = 1000  # milliseconds
_IN_SAMPLE = ("longmemeval-s-lite", "longmemeval-oracle-turns", "fact-consolidation")
_QUALITY_GOALS = (
    ("locomo", "all", "recall@5", 82),
    ("locomo", "all", "recall@10", 90),
    ("locomo", "multi-hop", "recall@10", 68),
    ("locomo", "open domain", "recall@10", 65),
    ("locomo-sessions", "all", "recall@5", 93),
    ("locomo-sessions", "all", "recall@10", 97),
    ("longmemeval-s-lite", "all", "recall@5", 95),
    ("longmemeval-s-lite", "all", "nDCG@10", 93),
    ("fact-consolidation", "all", "first", 99),
)

_SUMMARY = """\
# Benchmarks

How well memories are found and how fast it is, on data that anyone can get. Every figure comes from a result file in
`bench/results/`, with the command and the commit that made it. [All tables](internals/benchmarks.md) has the rest: every set, kind
of question, interval and goal, and what is not fair about each figure.
"""
_FOUND = """\
## How well memories are found

Questions about long conversations (LoCoMo): one memory for each turn, no language model. The figures say how much of the evidence is in
the first five or ten results, and how often the first result is right, in percent.

- *BM25*, *cosine* and *RRF* are the plain ways: keywords, vectors, and both. They use the same words and the same model.
- Most settings were chosen on half of the conversations. On the other half ours finds {held:.1f} % in ten.
"""
_FOUND_PEERS = """\
Other stores, in a run of their own, at an earlier commit: compare them with *ours* of that run. They get the same texts and the same vectors as ours
and search as their documentation shows. mem0 searches by vectors here: its channels for keywords and entities need models that it
downloads.
"""
_SETS = """\
The same on other sets, recall@10 of ours and of the best plain way. *In-sample*: the ranker was trained on these questions, or a rule
was chosen with them in view, so do not expect as much from your own data.
"""
_DAILY = """\
## Everyday memory

Invented months of chats with an assistant and of notes at work, by authors who wrote nothing else. Each cell is the percentage of
questions whose first result is right, and of those with a right one among the first three. *Changed*: an older memory says
something that no longer holds.
"""
_DAILY_PEERS = """\
Other stores, all questions with an answer, in a run of their own at an earlier commit, with *ours* of that run:
"""
_EMPTY = """\
## Questions that nothing answers

A search should then return nothing. `precise` mode does so for this part of unrelated questions (trivia, code, cooking), asked of
small stores of mixed memories; `recall` mode is meant to return more. The right column has questions that a memory does answer.
"""
_PROBABILITY = """\
## Is the score a probability?

Nearly, on English talk: of the results that score 0.7, about 70 % should be right. The mean distance between the score and the
fraction that is right (expected calibration error): {errors}.
"""
_QUICK = """\
## How fast it is

Without the embedding, which takes {single:.0f} ms for a text on this machine. `search` compares words and vectors and obeys the scope; `add`
is durable, free of duplicates and audited. *Cold* is a new process with the local model.
"""
_SHORT = """\
## Many users in one process

A handle of `mesh.scoped(user_id=…)` costs microseconds and next to no memory:
[figures](internals/benchmarks.md#many-users-in-one-process).

## Claims from plain text

Of {sentences} sentences by a writer who did not know the rules, the rules found {found} of {claims} claims, and {right} of them were right.
[What was labelled](internals/benchmarks.md#claims-from-plain-text).

## What redaction finds

{masked} of {texts} values in the tests are masked; in {lines:,} lines that only look like personal data, {alarms} were masked wrongly. The
patterns were made for these tests, so this shows what is covered.
[By kind](internals/benchmarks.md#what-redaction-finds).

## What reflections contain

Reflections without a language model contain more of the facts of a topic than its first sentences do:
[how it was measured](internals/benchmarks.md#what-reflections-contain).

## Texts made to be slow

The slowest text that was tried takes {slowest:.0f} seconds for a million characters:
[paths and texts](internals/benchmarks.md#texts-made-to-be-slow).

## What was tried and did not help

Models, signals and shortcuts that were measured and left out, and the limits of speed:
[the list](internals/benchmarks.md#what-was-tried-and-did-not-help).
"""
_ELSEWHERE = """\
## More

[All stores](scale.md) side by side, [hygiene](hygiene.md), and [your own questions on your own store](eval.md).
"""
_INTRO = """\
# Benchmarks: all tables

The tables behind the [page of benchmarks](../benchmarks.md). `tools/bench_docs.py` generates both from `bench/results/`, and a test checks
that they are current. Each table names the command that produced it and the commit that it ran at; results of uncommitted changes are
refused. The data sets are not in the repository; the benchmarks take `--data DIR`.
"""
_QUALITY = """\
## How well memories are found

One memory for each turn, session or statement, with the default embedder and without a language model. All figures are
multiplied by 100.

- *ours* is memory-mesh as installed: `search` in its default mode, `recall`. The lines below it are the same search in `precise`
  mode and without a minimum score. The modes only differ in the score below which results are left out.
- *BM25*, *cosine* and *RRF* (plain reciprocal rank fusion of the two, k = 60) are baselines: simple code over the same tokens and
  vectors, in the same run. Cosine sees the first 256 tokens of a text, as the model does; ours embeds long texts in passages.
- Other stores get the same texts and the same vectors as ours in the same run, which was an earlier one; they have one store for each
  conversation, and search as their documentation shows. mem0's own keyword and entity channels need models that it downloads; here it searches by vectors.

How to read it:

- *recall@k* is the fraction of the evidence in the first k results, *all@10* the fraction of questions with all of it, and
  *first* the fraction whose first result is right.
- The ranker was trained on LongMemEval, as it is and rewritten as talk of two people; its licence allows shipping the result.
  Questions of other open data served as questions that no memory answers; NOTICE names them. LoCoMo's licence does not allow
  shipping, so no weight was learnt from it.
- Most settings were chosen on LoCoMo's conversations 1–5. Four were not: the latest features that tell whether any memory
  answers, the weight of questions with swapped names, the minimum score of `precise` mode, and the data for the calibration
  curve. About 20 variants of these were compared with the figures of conversations 6–10 in view. So conversations 6–10 are not
  fully held out: their figures for questions that nothing answers, for `precise` mode and for calibration are optimistic.
- The two LongMemEval sets have the questions whose evidence the ranker was trained on. For them all our figures are in-sample.
- *longmemeval-oracle-turns* is one store with every turn of all 940 evidence sessions, the assistant's long replies included.
- *fact-consolidation* has numbered statements, of which later ones contradict earlier ones; only the newest counts. They
  are stored one by one, and nothing marks an older one as superseded. The rule that puts the newest first was adjusted three
  times after looking at its failures on this set, so the figures are in-sample.
"""
_CURVES = """\
### By the number of results

LoCoMo, one memory for each turn. Chroma, mem0 and LangGraph rank by the cosine of the same vectors, so their curve is that of
*cosine*.
"""
_KINDS = """\
### By kind of question

Each cell has our figure, the best baseline for it, and the 95 % interval of the difference (paired bootstraps over questions).
**Bold** cells are below a baseline by more than chance.
"""
_NOTHING = """\
### Questions that nothing answers

A search should return nothing if no memory answers the question.

- *Wrong conversation*: LoCoMo's questions asked of the memories of the next conversation. Their names are unknown there, which
  makes it easy. *Its names in the question*: the same with the names of its speakers put in place of the right ones. A few of
  these questions have an answer by chance.
- *AUC* is the chance that a question with an answer gets a higher best score than one without. *recall@5 kept* is what the cut
  leaves of the evidence that was in the first five results.
"""
_MIXED = """\
Unrelated questions (trivia, code, cooking and so on, in several languages) asked of stores of mixed memories. *Found first* are
control questions that one of the memories answers.
"""
_RELIABILITY = """\
### Is the score a probability?

Results are grouped by score, with the ten best results of each question. If scores are probabilities, then the fraction of right
results is the mean score.

- *Own conversation*: the questions of LoCoMo's conversations 6–10. No weight was learnt from them. The calibration curve was
  learnt on LongMemEval's whole chats; that was chosen with the errors on conversations 6–10 in view, so they are not held out.
- *Own, and swapped names*: the same, and as many questions that nothing answers, with names that occur in the conversation.
- *Mixed memories*: the unrelated questions of the section above and their control questions.
- Evidence is labelled sparsely: a result that answers the question but is not in the labels counts as wrong.
"""
_EVERYDAY = """\
## Everyday memory

What people told an assistant and what agents noted at work over months, and what is asked later: invented
worlds of chats and notes, written by language models; `bench/everyday/README.md` explains the kinds of questions.
The encoder learnt on the worlds of `train`, the ranker and the calibration on those of `choose`. The figures are those of `test`,
whose authors wrote nothing else; its worlds in other languages than English are Chinese, Japanese, Arabic and Hindi.
"""
_EVERYDAY_CELLS = """\
Each cell, in percent of the questions: right first / right in three / missing in ten. *Outdated*: an outdated memory stands above
the current one, or without it. Our modes leave out low scores, the plain rankers do not.
"""
_EVERYDAY_PEERS = """\
Other stores get the same texts and the same vectors, a store for each world, or one for ten, and search as their documentation
shows. mem0 searches by vectors, as in the tables of LoCoMo, and leaves out similarities below 0.1 by default; the others leave
out nothing. *Ours* is the default mode, asked again in the same run.
"""
_EVERYDAY_FIGURES = ("first", "in three", "missing")
_EVERYDAY_SIZES = {
    "one": "Each world alone",
    "ten": "Ten worlds in one store",
    "all": "All worlds of the split and the turns of LoCoMo in one store",
}
_SPEED = """\
## How fast it is

All times are without the embedding: the vectors of texts and queries are computed beforehand.

- `search` uses keywords and vectors, obeys the scope, is warm, skips the search cache, and reads ten results from the store.
- `add` is durable, deduplicated and audited.
- Absolute times depend on the machine and its other work. Each table gives the load average before and after the run.
- `python -m bench.speed --sizes 1m --agents 1000` measures a million memories, of one agent and spread over a thousand.
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
_STORES = """\
## SQLite and LanceDB

Both stores in one run, without the embedding:
"""
_REST = """\
## Searches over REST

Searches by clients on the same machine, each connection asking one question after another, with the local model:
"""
_REFLECT = """\
## What reflections contain

The percentage of reference facts that reflections without a language model contain. A fact counts if one statement has at least
60 % of its content words.

- *lead-3* are the first three sentences. *Lead* and *random* are the first and random sentences until they are at least as long
  as ours; random is the mean of 20 draws. The brackets are 95 % intervals of the difference, by paired bootstrap over the cases.
- *Own topics* are ours, with five facts each. All memories are in one store: ours has to find those of the topic, and the
  baselines get them. The rule was chosen on these topics and on LoCoMo, so the figures are in-sample.
- *LoCoMo sessions*: the memories are the turns, and the facts are the observations of the data set, worded differently.
  Without a topic vectors do not change which sentences are chosen, so the sessions are measured without them.
"""
_UPDATES = """\
### What changed

The memory of one person (`bench/updates/among.jsonl`, by an author of its own): 40 changes that are said and 40 that are implied, 15 that are over, 40 pairs
that both hold, 20 questions about the time before a change, and 260 other memories. Nothing learnt on it; it was looked at once, before short
statements got a rule of their own ([what was tried](#what-was-tried-and-did-not-help)). How many questions have an answer first, and an outdated memory above it:
"""

_CLAIMS = """\
## Claims from plain text

How well the claims that are found without a language model agree with the labels of sentences. A claim is right if all of it is:
subject, predicate, value, whether only one value can be true, whether it starts, and whether it ended. Precision is the fraction
of the found claims that are right, recall the fraction of the labelled claims that are found.

- *Own* sentences were written together with the rules, so their figures only show that the rules do what they were made for.
- *Blind* sentences were written and labelled by someone who did not know the rules. After the first look classes of errors were
  fixed with these sentences in view, such as words of irony and nouns that were not known.
- The *second look* is the figure to trust: sentences of another writer who did not know the rules. None of them was a reason
  to change a rule, nor was a label changed; forms of changes were added later, with other texts in view. Forms that the rules do not
  know are missed; a missed statement is stored as a memory without a claim.
- FactConsolidation has statements of which later ones contradict earlier ones. *First*: the newest one is the first result.
  *Above older*: it is above the statement that it replaces. The set was in view when the order was chosen.
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
_HOSTILE = """\
## Texts made to be slow

Processor time of one text on each path that reads texts, without the time of an embedder. The texts repeat a short piece, or have
pseudo-random parts, so that no two pieces are equal. Each row has the slowest of those that this run tried:
"""


def page() -> str:
    """Return the page of the tables for builders."""
    return "\n".join(
        [
            _INTRO,
            *_quality(_read("quality"), _read("quality_peers")),
            *_everyday(_read("everyday"), _read("everyday_peers")),
            *_updates(_read("updates")),
            *_tried(),
            *_speed(_read("speed")),
            *_peers(_read("speed_peers")),
            *_stores(_read("speed_stores")),
            *_rest(_read("rest")),
            *_users(_read("users")),
            *_reflect(_read("reflect")),
            *_claims(_read("claims")),
            *_redaction(_read("redaction")),
            *_hostile(_read("hostile")),
        ]
    )


def summary() -> str:
    """Return the page of benchmarks for users: the headline tables, and links to the others."""
    quality, speed = _read("quality"), _read("speed")
    parts = [
        _SUMMARY,
        *_found(quality, _read("quality_peers")),
        *_daily(_read("everyday"), _read("everyday_peers")),
        *_empty(quality),
        *_quick(speed),
        *_compared(_read("speed_peers")),
        *_met(quality, speed),
        *_short(_read("claims"), _read("redaction"), _read("hostile")),
        _ELSEWHERE,
    ]
    return "\n".join(parts)


def _found(quality: Mapping[str, Any] | None, peers: Mapping[str, Any] | None) -> Iterator[str]:
    if quality is None or "locomo" not in quality["sets"]:
        return
    parts = quality["sets"]["locomo"]["parts"]
    held = parts.get("conversations 6–10", parts["all"])["rankers"]["ours"]["recall@10"]
    yield _FOUND.format(held=held)
    rankers = parts["all"]["rankers"].items()
    rows = [(name, row) for name, row in rankers if "," not in name]
    yield _recall("LoCoMo", rows)
    yield "![recall by the number of results, at an earlier commit](images/recall.svg)\n"
    if peers and (stores := peers["sets"].get("locomo", {}).get("stores")):
        yield _FOUND_PEERS
        yield _recall(
            "LoCoMo, earlier",
            [(_with_versions(name, row), row["figures"]) for name, row in stores.items()
             if "figures" in row],
        )  # fmt: skip
    yield _SETS
    yield _table(["set", "questions", "ours", "best plain way"], list(_best(quality["sets"])))


def _recall(title: str, rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    figures = ("recall@5", "recall@10", "first")
    return _table(
        [title, *figures],
        [[name, *(f"{row[figure]:.1f}" for figure in figures)] for name, row in rows],
    )


def _with_versions(name: str, row: Mapping[str, Any]) -> str:
    return name if name == "ours" else f"{name} {_versions(row)}"


def _best(sets: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, data_set in sets.items():
        table = data_set["parts"]["all"]
        best = max(
            (values["recall@10"], ranker)
            for ranker, values in table["rankers"].items()
            if not ranker.startswith("ours")
        )
        ours = table["rankers"]["ours"]["recall@10"]
        yield [_set(name), f"{table['questions']:,}", f"{ours:.1f}", f"{best[0]:.1f} ({best[1]})"]


def _daily(result: Mapping[str, Any] | None, peers: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _DAILY
    table = result["splits"]["test"]["one"]["table"]
    names = [name for name in table["all with an answer"]["rankers"] if "," not in name]
    rows = [
        [f"{kind.replace('_', ', ')} ({table[kind]['questions']:,})",
         *(_first_and_three(table[kind], name) for name in names)]
        for kind in ("all with an answer", "without change", "changed_explicit", "changed_implicit")
    ]  # fmt: skip
    yield _table(["questions", *names], rows)
    if peers:
        figures = peers["splits"]["test"]["one"]
        stores = {name: row for name, row in figures["stores"].items() if "failure" not in row}
        every = figures["table"]["all with an answer"]
        yield _DAILY_PEERS
        yield _table(
            ["ours", *(f"{name} {_versions(row)}" for name, row in stores.items())],
            [[_first_and_three(every, name) for name in ("ours", *stores)]],
        )


def _first_and_three(row: Mapping[str, Any], name: str) -> str:
    counts = row["rankers"][name]
    return " / ".join(_percent(counts[part], row["questions"]) for part in ("first", "in three"))


def _empty(quality: Mapping[str, Any] | None) -> Iterator[str]:
    if quality is None:
        return
    if mixed := quality.get("nothing", {}).get("mixed"):
        yield _EMPTY
        rows = [
            [f"{row['memories']:,}", *reversed(_percents(row["empty"])),
             f"{row['controls']['precise']:.1f} %"]
            for row in mixed
        ]  # fmt: skip
        yield _table(["memories", "empty, precise", "empty, recall", "found first, precise"], rows)
    if reliability := quality.get("reliability"):
        errors = ", ".join(f"{group['error']:.3f} ({name})" for name, group in reliability.items())
        yield _PROBABILITY.format(errors=errors)
        yield "![reliability of the score](../bench/results/reliability.svg)\n"


def _quick(speed: Mapping[str, Any] | None) -> Iterator[str]:
    if speed is None:
        return
    yield _QUICK.format(single=speed["embedding"]["single"]["p50_ms"])
    rows = [
        [
            f"{size['memories']:,}", _times(size["search"]), _times(size["add"]),
            f"{size['ingest_per_s']:,.0f}/s", f"{size['cold_s']['search, local model']:.2f} s",
            *(f"{size['bytes_a_record'][part]:,.0f}" for part in ("resident", "database")),
        ]
        for size in speed["sizes"]
    ]  # fmt: skip
    names = ["memories", "search p50 / p95", "add p50 / p95", "bulk", "cold search",
             "memory, bytes each", "disk, bytes each"]  # fmt: skip
    yield _table(names, rows)
    yield "![times by size](../bench/results/speed.svg)\n"


def _compared(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _PEERS
    yield _peer_table(result)


def _met(quality: Mapping[str, Any] | None, speed: Mapping[str, Any] | None) -> Iterator[str]:
    if quality is None or speed is None:
        return
    goals = list(_quality_goals(quality))
    of_quality, of_speed = (
        f"{sum(goal['met'] for goal in some)} of {len(some)}" for some in (goals, speed["goals"])
    )
    yield "## Goals\n"
    yield (
        f"The project set itself goals: {of_quality} of "
        f"[quality](internals/benchmarks.md#goals-of-quality) and {of_speed} of "
        "[speed](internals/benchmarks.md#how-fast-it-is) are met.\n"
    )


def _short(
    claims: Mapping[str, Any] | None,
    redaction: Mapping[str, Any] | None,
    hostile: Mapping[str, Any] | None,
) -> Iterator[str]:
    if not (claims and redaction and hostile):
        return
    vectors, negatives = redaction["vectors"], redaction["negatives"]
    look = claims["second_look"]
    yield _SHORT.format(
        **{name: look[name] for name in ("sentences", "claims", "found", "right")},
        masked=sum(row["masked"] for row in vectors),
        texts=sum(row["texts"] for row in vectors),
        lines=negatives["lines"],
        alarms=negatives["redacted"],
        slowest=max(row["cpu_seconds"] for row in hostile["rows"]),
    )


def readme() -> str:
    """Return the README with its figures."""
    return _with_figures(README, _headline(_read("quality"), _read("speed_peers")))


def scale() -> str:
    """Return the page that compares the stores with its figures."""
    return _with_figures(SCALE, _all_stores(_read("stores")))


def context() -> str:
    """Return the page of contexts with its figures."""
    return _with_figures(CONTEXT, _contexts(_read("context")))


def lifecycle() -> str:
    """Return the page of the life of memories with its figures."""
    return _with_figures(LIFECYCLE, _upkeep(_read("upkeep")))


def capture() -> str:
    """Return the page of capture with its figures."""
    return _with_figures(CAPTURE, _captured(_read("capture")))


def traces() -> str:
    """Return the page of traces with its figures."""
    return _with_figures(TRACES, _traces(_read("traces")))


def console() -> str:
    """Return the page of the web console with its figures."""
    return _with_figures(CONSOLE, _console(_read("console")))


def _console(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "rows" not in result:
        return
    yield f"{_source(result['made_by'], result)}\n"
    slow = [
        f"{row['what']} ({row['ms']:,.0f} ms)"
        for row in result["rows"]
        if "search" not in row["what"] and row["ms"] >= _FIRST_VIEW
    ]
    yield (
        "Goal: every first view in less than a second. "
        f"{'Not met: ' + ', '.join(slow) if slow else 'Met'}.\n\n"
    )
    rows = [
        [row["what"], f"{row['ms']:,.0f} ms", f"{row['cpu_ms']:,.0f} ms"] for row in result["rows"]
    ]
    yield _table(
        [f"{result['memories']:,} memories in SQLite", "until it is shown", "CPU of the server"],
        rows,
    )


def hygiene() -> str:
    """Return the page of hygiene with its figures."""
    return _with_figures(HYGIENE, _hygiene(_read("hygiene")))


def _hygiene(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "parts" not in result:
        return
    rows = [row for part in result["parts"] for row in part["rows"]]
    trials = sum(row["trials"] for row in rows if row["system"] == "memory-mesh")
    bad = sum(row["bad"] for row in rows if row["system"] == "memory-mesh")
    yield f"memory-mesh: {bad:,} bad of {trials:,} trials. {result['system']}.\n\n"
    shown = [
        [
            row["what"],
            row["system"],
            f"{row['bad']:,} of {row['trials']:,}",
            _control(row),
            row["note"],
        ]
        for row in rows
    ]
    yield f"{_table(['bad if', 'system', 'bad', 'controls', ''], shown)}\n"
    yield "![bad trials by check and system](../../bench/results/hygiene.svg)\n\n"
    yield "Measured by, and at which commit:\n\n"
    yield "".join(f"- `{part['command']}`, {_commit(part)}\n" for part in result["parts"]) + "\n"


def soak() -> str:
    """Return the page of the soak test with its figures."""
    return _with_figures(SOAK, chain(_soak(_read("soak")), _soak_alone(_read("soak_alone"))))


def _soak(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "growth" not in result:
        return
    checked, calls, failed = (
        result["checked"],
        sum(result["calls"].values()),
        sum(result["errors"].values()),
    )
    yield f"{_source(result['command'], result)}\n"
    yield (
        f"{calls:,} calls, {failed:,} failed. {checked['lost']:,} of {checked['kept']:,} "
        "memories lost, "
    )
    yield (
        f"{checked['returned']:,} of {checked['deleted']:,} deleted ones came back, "
        f"{checked['broken']} chains broken. "
    )
    yield f"Growing beyond its limit: {', '.join(result['growing']) or 'nothing'}.\n\n"
    rows = [
        [
            name,
            f"{result['calls'][name]:,}",
            *(f"{part[of]['before']:,.0f} → {part[of]['after']:,.0f}" for of in _SOAKED),
        ]
        for name, part in result["growth"].items()
    ]
    names = ["process", "calls", "memory, MB", "handles", "threads", "CPU of a call, ms"]
    yield f"{_table(names, rows)}\n"
    for part, what in (
        ("resident", "memory"),
        ("handles", "open files and sockets"),
        ("cpu", "CPU time of a call"),
        ("p50", "latency"),
    ):
        yield f"![{what} of each process over the minutes](../../bench/results/soak_{part}.svg)\n\n"


def _soak_alone(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield f"One kind of call alone, on a REST server: {_source(result['command'], result)}\n"
    yield (
        f"{len(result['errors']):,} calls failed. Growing beyond its limit: "
        f"{', '.join(result['growing']) or 'nothing'}.\n\n"
    )
    rows = []
    for name, part in result["growth"].items():
        own, (before, after) = (
            result["samples"][name],
            (part["resident_mb"][at] for at in ("before", "after")),
        )
        private = (
            f"{own[0]['anon_mb']:,.0f} → {own[len(own) // 2]['anon_mb']:,.0f} → "
            f"{own[-1]['anon_mb']:,.0f}"
        )
        rows.append([name, f"{result['calls']:,}", f"{before:,.0f} → {after:,.0f}", private])
    head = [
        "calls, embedder",
        "calls",
        "memory, MB, second → last quarter",
        "without files, MB, at the start → middle → end",
    ]
    yield f"{_table(head, rows)}\n"
    yield (
        "![memory of a server without files over the calls, for each "
        "kind](../../bench/results/soak_alone.svg)\n\n"
    )


def _control(row: Mapping[str, Any]) -> str:
    return (
        f"{row['control']:,} of {row['controls']:,}"
        if row["valid"]
        else f"**invalid**: {row['control']} of {row['controls']}"
    )


def _rest(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _REST
    yield _source(result["made_by"], result)
    rows = [
        [
            f"{row['connections']}", f"{row['requests']:,}", f"{row['errors']}",
            f"{row['per_second']:,.0f}", _times(row), f"{row['cpu_ms']:.2f} ms",
        ]
        for row in result["rows"]
    ]  # fmt: skip
    yield _table(
        ["connections", "requests", "errors", "per second", "p50 / p95", "CPU of the server"], rows
    )


def _traces(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield f"{_source(result['command'], result)}\n"
    names = list(dict.fromkeys(row["what"] for row in result["rows"]))
    times = {(row["what"], row["traces"]): f"{row['cpu_ms']:,.1f} ms" for row in result["rows"]}
    sizes = dict.fromkeys(row["traces"] for row in result["rows"])
    rows = [[f"{size:,}", *(times[name, size] for name in names)] for size in sizes]
    yield f"{_table(['traces', *names], rows)}\n"
    yield "![CPU time by the number of traces](../bench/results/traces.svg)\n\n"


def _captured(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield "| pieces | judge | precision | recall | same type |\n|---|---|---|---|---|\n"
    names = {
        "own": "seen by the author of the rules",
        "second": "learnt from",
        "third": "learnt from",
        "blind": "unseen",
        "everyday_blind": "statements of everyday chats, unseen",
    }
    for name, judges in result["files"].items():
        for judge, score in judges.items():
            shares = " | ".join(
                f"{100 * score[key]:.1f} %" for key in ("precision", "recall", "same_type")
            )
            by = "with vectors" if judge == "vectors" else "without"
            yield f"| {score['pieces']} {names[name]} | {by} | {shares} |\n"
    counted = result["messages"]
    rows = [
        [kind.replace("_", " "), f"{each['messages']}"]
        + [_percent(judge[kind]["kept"], judge[kind]["messages"]) for judge in counted.values()]
        for kind, each in counted["vectors"].items()
    ]
    header = ["messages of users in chats, by the questions that ask for them", "messages",
              "kept with vectors", "without"]  # fmt: skip
    yield f"\n{_table(header, rows)}\n\n`{result['command']}` at {result['commit']}.\n"


def notes() -> str:
    """Return the page of notes with the figures of the judge of reports."""
    return _with_figures(NOTES, _extracted(_read("notes")))


def _extracted(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield "| reports of a writer who had not seen the rules | precision | recall |\n|---|---|---|\n"
    for judges in result["files"].values():
        for judge, score in judges.items():
            by = "with the vectors of the local model" if judge == "vectors" else "without vectors"
            yield (
                f"| {score['reports']}, {by} | {100 * score['precision']:.1f} % | "
                f"{100 * score['recall']:.1f} % |\n"
            )
    yield f"\n`{result['command']}` at {result['commit']}.\n"


def _with_figures(page: Path, figures: Iterable[str]) -> str:
    before, begin, rest = page.read_text(encoding="utf-8").partition(_BEGIN)
    _, end, after = rest.partition(_END)
    if not (begin and end):
        sys.exit(f"{page.name} has no place for figures: {_BEGIN}{_END}")
    return f"{before}{begin}{''.join(figures)}{end}{after}"


def _curves(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "curves" not in result:
        return
    yield _CURVES
    yield _source(result["command"], result)
    rows = [
        [name, *(f"{curve[at - 1]:.1f}" for at in _RANKS)]
        for name, curve in result["curves"].items()
    ]
    yield _table(["", *(f"recall@{at}" for at in _RANKS)], rows)
    yield "![recall by the number of results](../images/recall.svg)\n"


def _headline(quality: Mapping[str, Any] | None, speed: Mapping[str, Any] | None) -> Iterator[str]:
    if quality:
        found = {
            name: values["recall@10"]
            for name, values in quality["sets"]["locomo"]["parts"]["all"]["rankers"].items()
        }
        yield (
            "**Recall** on LoCoMo, questions about long conversations: the first ten results "
            f"contain {found['ours']:.1f} % of the evidence. Keywords alone find "
            f"{found['BM25']:.1f} %, and vectors alone (a vector store with the same model) "
            f"{found['cosine']:.1f} %.\n\n"
        )
    if speed:
        yield (
            f"**Speed** with {speed['peers'][0]['memories']:,} memories, without the embedding, in "
            "one run:\n\n"
        )
        yield (
            _table(
                ["", "on disk", "search p50 / p95", "add p50 / p95", "bulk"],
                [_peer(peer) for peer in speed["peers"]],
            )
            + "\n"
        )


def _read(name: str) -> Any:
    """Return a result, or None if there is none. A result of uncommitted files is refused:
    nobody could measure it again."""
    path = RESULTS / f"{name}.json"
    result = json.loads(path.read_text(encoding="utf-8")) if path.exists() else None
    if result and result.get("clean") is False:
        sys.exit(
            f"{path.name} was measured with uncommitted changes: commit them and measure again, or "
            "restore the file"
        )
    return result


def _quality(result: Mapping[str, Any] | None, peers: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _QUALITY
    yield _source(result["command"], result)
    if peers:
        yield f"Other stores: {_source(peers['command'], peers)}"
    for name, data_set in result["sets"].items():
        for part, table in data_set["parts"].items():
            if part in _SHOWN:
                stores = (
                    peers["sets"].get(name, {}).get("stores", {}) if peers and part == "all" else {}
                )
                yield from _rankers(f"{_set(name)}, {part}", table, stores)
    yield "![recall at 10](../../bench/results/quality.svg)\n"
    yield from _curves(_read("recall"))
    yield _KINDS
    yield _table(["set", "kind", "questions", *_BY_KIND], list(_kinds(result["sets"])))
    if "violations" in result:
        shown = [
            f"{_set(each['set'])}, {each['part']}: {each['figure']} "
            f"({each['low']:+.1f} to {each['high']:+.1f} against {each['baseline']})"
            for each in result["violations"]
        ]
        yield (
            "Below a baseline by more than chance, of all figures, sets and kinds: "
            f"{'; '.join(shown) or 'none'}.\n"
        )
    if nothing := result.get("nothing"):
        yield from _nothing(nothing, result["min_scores"])
    if reliability := result.get("reliability"):
        yield from _reliability(reliability)
    if goals := list(_quality_goals(result)):
        yield "### Goals of quality\n"
        yield _goals(goals)


def _everyday(result: Mapping[str, Any] | None, peers: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    sizes, second = result["splits"]["test"], result["agreement"]["test"]
    same = (
        f"{second['equal']:,} of {second['asked']:,} questions "
        f"({_percent(second['equal'], second['asked'])} %)"
    )
    yield _EVERYDAY
    yield (
        f"{second['authors']} authors wrote the {second['worlds']} worlds of `test`. Second "
        f"authors, who did not see the answers, named exactly the same memories for {same}; then "
        f"{second['mended']} questions were mended and {second['dropped']} dropped.\n"
    )
    yield _source(result["made_by"], result)
    yield _EVERYDAY_CELLS
    for size, figures in sizes.items():
        yield from _everyday_size(size, figures["table"])
    if peers:
        yield from _everyday_peers(peers)
    yield from _everyday_scores(sizes["one"])
    yield from _everyday_misses(result["worst"])


def expected() -> str:
    """Return the figures of everyday memory that `memory-mesh eval` shows beside its own."""
    result = _read("everyday")
    if result is None:
        return EXPECTED.read_text(encoding="utf-8")
    alone = result["splits"]["test"]["one"]
    kinds = {
        kind: {"questions": row["questions"]}
        | {name: row["rankers"]["ours"][name] for name in ("first", "outdated above")}
        for kind, row in alone["table"].items()
    }
    negative = alone["nothing"]["negative"]
    answered = {"answered, precise mode": negative["answered"]["ours, precise mode"]}
    written = {name: result[name] for name in ("made_by", "commit")} | {
        "kinds": kinds, "negative": {"questions": negative["questions"], **answered}
    }  # fmt: skip
    return json.dumps(written, indent=1) + "\n"


def _everyday_size(size: str, table: Mapping[str, Any]) -> Iterator[str]:
    whole = table["all with an answer"]
    yield f"**{_EVERYDAY_SIZES[size]}**\n"
    yield from _everyday_table(table, list(whole["rankers"]), "plain ranker")
    ours, precise = whole["rankers"]["ours"], whole["rankers"]["ours, precise mode"]
    first, in_three = (
        _percent(ours[name] - precise[name], whole["questions"]) for name in ("first", "in three")
    )
    missing = _percent(precise["missing"] - ours["missing"], whole["questions"])
    yield (
        f"What `precise` mode loses, of all {whole['questions']:,} questions with an answer: "
        f"{first} % are no longer right first and {in_three} % no longer right in three; {missing} "
        "% more are missing.\n"
    )


def _everyday_peers(result: Mapping[str, Any]) -> Iterator[str]:
    """Yield what other stores find, with their versions, and why the ones that failed have no
    column."""
    yield _EVERYDAY_PEERS
    yield _source(result["made_by"], result)
    for size, figures in result["splits"]["test"].items():
        stores = {store: row for store, row in figures["stores"].items() if "failure" not in row}
        yield f"**{_EVERYDAY_SIZES[size]}, other stores**\n"
        yield from _everyday_table(
            figures["table"],
            ["ours", *(f"{store} {_versions(row)}" for store, row in stores.items())],
            "other store",
        )
        if failed := [
            f"{store} ({row['failure']})"
            for store, row in figures["stores"].items()
            if store not in stores
        ]:
            yield f"Not measured: {'; '.join(failed)}.\n"


def _everyday_table(table: Mapping[str, Any], names: Sequence[str], other: str) -> Iterator[str]:
    """Yield the figures by kind, with a column for each name, and how far ours is from the best
    of the others."""
    rows = [
        [
            f"{kind} ({row['questions']:,})",
            *(_everyday_cell(kind, counts, row["questions"]) for counts in row["rankers"].values()),
        ]
        for kind, row in table.items()
    ]
    yield _table(["questions", *names], rows)
    ahead = table["without change"]["ahead"]
    apart = (
        f"{figure} {low:+.1f} to {high:+.1f} (against {best})"
        for figure, (best, low, high) in ahead.items()
    )
    yield (
        f"Ours minus the best {other} without change, 95 % interval of paired bootstraps: "
        f"{'; '.join(apart)}.\n"
    )


def _everyday_cell(kind: str, counts: Mapping[str, int], questions: int) -> str:
    cell = " / ".join(_percent(counts[name], questions) for name in _EVERYDAY_FIGURES)
    return (
        f"{cell}, outdated {_percent(counts['outdated above'], questions)}"
        if kind.startswith("changed")
        else cell
    )


def _percent(count: int, total: int) -> str:
    return f"{100 * count / total:.1f}"


def _everyday_scores(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield whether scores are probabilities, and what questions get that nothing answers, each
    world alone."""
    yield (
        "**Is the score a probability?** The ten best results of each question, and what the "
        "labels say about them.\n"
    )
    errors = [
        [name, f"{curve['results']:,}", f"{curve['error']:.4f}"]
        for name, curve in figures["calibration"].items()
    ]
    yield _table(["worlds", "results", "expected calibration error"], errors)
    yield (
        "![reliability of the score, everyday memory](../../bench/results/everyday_reliability.svg)\n"
    )
    yield (
        "**Questions without an answer**: *negative* ones are about their world, *unrelated* ones "
        "trivia, code and so on.\n"
    )
    rows = [
        [
            f"{name} ({row['questions']:,})",
            *(
                f"{_percent(row['answered'][mode], row['questions'])} %"
                for mode in ("ours", "ours, precise mode")
            ),
            f"{row['auc']:.4f}",
        ]
        for name, row in figures["nothing"].items()
    ]
    yield _table(
        ["questions", "answered, default mode", "answered, precise mode", "area under the curve"],
        rows,
    )


def _everyday_misses(misses: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    yield (
        "**The worst misses** of the default mode, each world alone, without questions of what "
        "changed: missing memories before low places, and among these the highest score of a wrong "
        "result first.\n"
    )
    rows = [
        [
            f"{miss['kind']}, {miss['world']}",
            *(_words(miss[name] or "nothing") for name in ("question", "gold", "first")),
            str(miss["place"] or "–"), f"{miss['score']:.2f}",
        ]
        for miss in misses
    ]  # fmt: skip
    yield _table(
        [
            "kind, world",
            "question",
            "right memory",
            "first result",
            "place of the right one",
            "highest score",
        ],
        rows,
    )


def _words(text: str) -> str:
    """Return a text for a cell of a table, with the characters escaped that mean something in
    Markdown."""
    return re.sub(r"([\\`*_\[\]|])", r"\\\1", escape(" ".join(text.split()), quote=False))


def _tried() -> Iterator[str]:
    """Yield the section that people write: a list, in bench/tried.md."""
    if TRIED.exists():
        yield "## What was tried and did not help\n"
        yield _FROM_SPEED.sub(_reached, TRIED.read_text(encoding="utf-8"))


_FROM_SPEED = re.compile(r"\{(goal|reached):([^{}]+)\}")


def _reached(name: re.Match[str]) -> str:
    """Return a goal of speed and what was reached, or the latter alone: all of them come from
    one run."""
    goals = {goal["what"]: goal for goal in (_read("speed") or {"goals": []})["goals"]}
    goal = goals.get(name[2], {"target": "", "measured": "not measured"})
    return (
        f"{name[2]} {goal['target']} | {goal['measured']}"
        if name[1] == "goal"
        else str(goal["measured"])
    )


def _rankers(title: str, table: Mapping[str, Any], stores: Mapping[str, Any]) -> Iterator[str]:
    yield f"**{title}** ({table['questions']:,} questions)\n"
    figures = [figure for figure in _FIGURES if figure in next(iter(table["rankers"].values()))]
    rows = [
        [ranker, *(f"{values[figure]:.1f}" for figure in figures)]
        for ranker, values in table["rankers"].items()
    ]
    yield _table(["", *figures], rows)
    ahead = (
        f"{figure} {low:+.1f} to {high:+.1f} (against {best})"
        for figure, (best, low, high) in table["ahead"].items()
    )
    yield f"Ours minus the best baseline, 95 % interval of paired bootstraps: {'; '.join(ahead)}.\n"
    if stores:
        yield "Other stores, with *ours* of the same run:\n"
        yield _table(["", *figures], [_store(store, row, figures) for store, row in stores.items()])
    if apart := {
        store: row["ahead"]["recall@10"] for store, row in stores.items() if "ahead" in row
    }:
        shown = (
            f"{low:+.1f} to {high:+.1f} (against {store})" for store, (low, high) in apart.items()
        )
        yield f"Ours minus other stores, recall@10: {'; '.join(shown)}.\n"


def _store(store: str, row: Mapping[str, Any], figures: Sequence[str]) -> list[str]:
    if "failure" in row:
        return [store, *[row["failure"]] * len(figures)]
    figured = (f"{row['figures'][figure]:.1f}" for figure in figures)
    return [_with_versions(store, row), *figured]


def _kinds(sets: Mapping[str, Any]) -> Iterator[list[str]]:
    for name, data_set in sets.items():
        for part, table in data_set["parts"].items():
            if part != "all" and not part.startswith("conversations"):
                yield [
                    _set(name),
                    part,
                    f"{table['questions']:,}",
                    *(_against(table, figure) for figure in _BY_KIND),
                ]


def _set(name: str) -> str:
    return f"{name} (in-sample)" if name in _IN_SAMPLE else name


def _against(table: Mapping[str, Any], figure: str) -> str:
    if figure not in table["ahead"]:
        return "–"
    best, low, high = table["ahead"][figure]
    cell = (
        f"{table['rankers']['ours'][figure]:.1f}, {best} {table['rankers'][best][figure]:.1f} "
        f"({low:+.1f} to {high:+.1f})"
    )
    return f"**{cell}**" if high < 0 else cell


def _nothing(nothing: Mapping[str, Any], cuts: Mapping[str, float]) -> Iterator[str]:
    yield _NOTHING
    yield (
        f"`recall` leaves out scores below {cuts['recall']:g}, `precise` below "
        f"{cuts['precise']:g}.\n"
    )
    rows = [
        [
            name,
            part,
            f"{row['auc']:.4f}",
            *_percents(row["empty"]),
            f"{parts['recall@5 kept']['precise']:.1f} %",
        ]
        for part, parts in nothing.items()
        if part != "mixed"
        for name, row in parts.items()
        if name != "recall@5 kept"
    ]
    yield _table(
        ["questions", "of", "AUC", "empty, recall", "empty, precise", "recall@5 kept, precise"],
        rows,
    )
    if mixed := nothing.get("mixed"):
        yield _MIXED
        names = [
            "memories",
            "questions",
            "empty, recall",
            "empty, precise",
            "highest score",
            "above 0.3",
            "found first, precise",
        ]
        yield _table(names, [_mixed(row) for row in mixed])
        sizes = [f"empty, precise; highest, over {row['memories']}" for row in mixed]
        yield _table(
            ["kind", "questions", *sizes], [_mixed_kind(kind, mixed) for kind in mixed[0]["kinds"]]
        )


def _mixed(row: Mapping[str, Any]) -> list[str]:
    found = f"{row['controls']['precise']:.1f} % of {row['controls']['questions']}"
    start = [f"{row['memories']:,}", f"{row['questions']:,}", *_percents(row["empty"])]
    return [*start, f"{row['highest']:.3f}", str(row["high"]), found]


def _mixed_kind(kind: str, mixed: Sequence[Mapping[str, Any]]) -> list[str]:
    rows = [row["kinds"][kind] for row in mixed]
    return [
        kind,
        str(rows[0]["questions"]),
        *(f"{row['empty']['precise']:.1f} %; {row['highest']:.3f}" for row in rows),
    ]


def _percents(empty: Mapping[str, float]) -> list[str]:
    return [f"{empty[mode]:.1f} %" for mode in ("recall", "precise")]


def _reliability(groups: Mapping[str, Any]) -> Iterator[str]:
    yield _RELIABILITY
    yield "![reliability of the score](../../bench/results/reliability.svg)\n"
    rows = [[f"{low:g}–{high:g}", *cells] for low, high, cells in _bins(list(groups.values()))]
    rows.append(
        [
            "expected calibration error",
            *(f"{group['error']:.4f} ({group['results']:,})" for group in groups.values()),
        ]
    )
    yield "Each cell: mean score → fraction that is right (number of results).\n"
    yield _table(["score", *groups], rows)


def _bins(groups: Sequence[Mapping[str, Any]]) -> Iterator[tuple[float, float, list[str]]]:
    for bins in zip(*(group["bins"] for group in groups), strict=True):
        cells = [
            f"{each['predicted']:.3f} → {each['observed']:.3f} ({each['results']:,})"
            if each["results"]
            else "–"
            for each in bins
        ]
        yield bins[0]["from"], bins[0]["to"], cells


def _quality_goals(result: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, part, figure, target in _QUALITY_GOALS:
        table = result["sets"].get(name, {}).get("parts", {}).get(part)
        if table and figure in table["rankers"]["ours"]:
            yield _goal(f"{name}, {part}: {figure}", table["rankers"]["ours"][figure], target)
    nothing = result.get("nothing", {})
    if swapped := nothing.get("all", {}).get("wrong conversation, its names in the question"):
        yield _goal("names swapped: AUC", 100 * swapped["auc"], 90)
        yield _goal("names swapped: empty in precise mode", swapped["empty"]["precise"], 80)
        yield _goal("recall@5 kept in precise mode", nothing["all"]["recall@5 kept"]["precise"], 85)
    for row in nothing.get("mixed", ()):
        yield _goal(
            f"unrelated questions over {row['memories']} memories: empty in precise mode",
            row["empty"]["precise"],
            95,
        )
        yield {
            "what": f"unrelated questions over {row['memories']} memories: scores above 0.3",
            "target": "0", "measured": str(row["high"]), "met": row["high"] == 0,
        }  # fmt: skip


def _goal(what: str, measured: float, target: float) -> dict[str, Any]:
    return {
        "what": what,
        "target": f"≥ {target:g}",
        "measured": f"{measured:.1f}",
        "met": measured >= target,
    }


def _speed(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _SPEED
    yield _source(result["made_by"], result)
    cost = result["embedding"]
    if isinstance(cost, dict):
        yield (
            f"Embedding takes {cost['single']['p50_ms']:.1f} ms for a single text, and processes "
            f"{cost['batch_per_s']:.0f} texts per second in batches.\n"
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
    yield "![times by size](../../bench/results/speed.svg)\n"


def _size(size: Mapping[str, Any]) -> list[str]:
    return [
        f"{size['memories']:,}", str(size["engine"]), _times(size["search"]),
        _time(size["after_write"]), _time(size["filtered"]), _times(size["add"]),
        f"{size['ingest_per_s']:,.0f}/s", f"{100 * size['recall_at_10']:.1f} %",
    ]  # fmt: skip


def _footprint(size: Mapping[str, Any]) -> list[str]:
    cold, footprint = size["cold_s"], size["bytes_a_record"]
    seconds = [
        f"{cold[name]:.2f} s" for name in ("stats", "search, keywords", "search, local model")
    ]
    return [
        f"{size['memories']:,}",
        *seconds,
        *(f"{footprint[name]:,.0f}" for name in ("resident", "index_files", "database")),
    ]


def _stores(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _STORES
    yield _source(result["made_by"], result)
    names = [
        "store",
        "memories",
        "open",
        "add p50 / p95",
        "search p50 / p95",
        "bulk",
        "delete p50 / p95",
        "bytes on disk per memory",
    ]
    yield _table(names, [_store_speed(row) for row in result["stores"]])


def _store_speed(row: Mapping[str, Any]) -> list[str]:
    footprint = row["bytes_a_record"]
    return [
        row["store"], f"{row['memories']:,}", f"{footprint['open_ms']:.0f} ms", _times(row["add"]),
        _times(row["search"]), f"{row['ingest_per_s']:,.0f}/s", _times(row["delete"]),
        f"{footprint['database']:,.0f}",
    ]  # fmt: skip


def _all_stores(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    columns, stores = ("contract", "processes", "crash"), result["stores"]
    parts = [part for row in stores for part in (*row["tests"].values(), *row["sizes"])]
    if any(part["clean"] is False for part in parts):
        sys.exit(
            "stores.json was measured with uncommitted changes: commit them and measure these "
            "parts again"
        )
    commits = ", ".join(sorted({str(part["commit"])[:7] for part in parts}))
    loads = [part["load_average"][at] for part in parts for at in ("before", "after")]
    load = f"load average {min(loads):.1f} to {max(loads):.1f}"
    yield f"`{result['made_by']}`, {result['system']}, at the commits {commits}, {load}.\n\n"
    rows = [
        [row["store"], *(_tested(row["tests"].get(column)) for column in columns)] for row in stores
    ]
    if any(store["tests"] for store in stores):
        yield f"{_table(['store', 'contract', 'several processes', 'crash'], rows)}\n"
    names = [
        "store",
        "memories",
        "bulk",
        "add",
        "search",
        "filtered search",
        "memory, bytes each",
        "disk, bytes each",
    ]
    sizes = [(row["store"], one) for row in stores for one in row["sizes"]]
    yield f"{_table(names, [_at_size(store, one) for store, one in sizes if 'times' in one])}\n"
    left_out = [
        f"- {store} with {one['memories']:,} was not measured: {one['left_out']}\n"
        for store, one in sizes
        if "left_out" in one
    ]
    yield from (*left_out, "\n") if left_out else ()
    for name, title in _STORE_CHARTS.items():
        yield f"![{title}](../bench/results/stores_{name}.svg)\n"


_STORE_CHARTS = {
    "insert": "Memories stored per second",
    "search": "Milliseconds per search",
    "filtered": "Milliseconds per search with a filter",
    "memory": "Memory of a process that searches",
    "disk": "Disk per memory",
}


def _tested(found: Mapping[str, int] | None) -> str:
    if not found or not found["passed"] + found["failed"]:
        return "–"
    return (
        f"{found['passed']} passed"
        if not found["failed"]
        else f"**{found['failed']} failed**, {found['passed']} passed"
    )


def _at_size(store: str, one: Mapping[str, Any]) -> list[str]:
    times = one["times"]
    timed = [
        f"{times[name]['p50_ms']:.1f} / {times[name]['cpu_p50_ms']:.1f} ms"
        for name in ("add", "search", "filtered")
    ]
    kept = ["–" if one[name] is None else f"{one[name]:,.0f}" for name in ("resident", "disk")]
    return [store, f"{one['memories']:,}", f"{times['bulk_per_s']:,.0f}/s", *timed, *kept]


def _contexts(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield f"{_source(result['command'], result)}\n"
    for part in _SHOWN:
        ways, ahead = result["parts"][part]["ways"], result["parts"][part]["ahead"]
        budgets = list(next(iter(ways.values())))
        names = [part, *(f"{int(budget):,} tokens" for budget in budgets)]
        rows = [
            [way, *(f"{found[budget][0]:.1f} %" for budget in budgets)]
            for way, found in ways.items()
        ]
        yield f"{_table(names, rows)}\n"
        for way, intervals in ahead.items():
            shown = (
                f"{int(budget):,}: {low:+.1f} to {high:+.1f}"
                for budget, (low, high) in intervals.items()
            )
            yield f"- `context` minus {way}: {'; '.join(shown)}\n"
        yield "\n"
    yield "![questions with all evidence](../bench/results/context.svg)\n\n"


def _upkeep(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield f"{_source(result['command'], result)}\n"
    rows = [
        [
            row["what"],
            f"{row['memories']:,}",
            f"{row['cpu_seconds']:.2f} s",
            f"{row['changes']:,}",
            f"{row['peak_megabytes']:.0f} MB",
        ]
        for row in result["rows"]
    ]
    yield f"{_table(['', 'memories', 'CPU time', 'changes', 'peak memory of the process'], rows)}\n"
    yield "![CPU time by size](../bench/results/upkeep.svg)\n\n"


def _users(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "rows" not in result:
        return
    yield _USERS
    yield _source(result["made_by"], result)
    rows = [
        [row["what"], f"{row['number']:,}", f"{row['seconds']:.2f} s", f"{row['megabytes']:.0f} MB"]
        for row in result["rows"]
    ]
    yield _table(["", "number", "time", "memory"], rows)


def _reflect(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _REFLECT
    yield _source(result["command"], result)
    heads = ["set", "cases", "", "found by", "characters", "ours", "lead-3", "lead", "random"]
    yield _table(heads, [_reflected(row) for row in result["rows"]])


def _reflected(row: Mapping[str, Any]) -> list[str]:
    others = [f"{row[name]} [{low:+} to {high:+}]" for name, (low, high) in row["ahead"].items()]
    by = "words and vectors" if row["vectors"] else "words"
    return [
        row["set"],
        str(row["cases"]),
        f"`{row['operation']}`",
        by,
        str(row["characters"]),
        str(row["ours"]),
        *others,
    ]


def _updates(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _UPDATES
    yield _source(result["made_by"], result)
    rankers, kinds = result["rankers"], result["links"]["kinds"]
    yield _table(
        ["questions", *rankers],
        [
            [f"{kind} ({row['pairs']})",
             *(f"{table[kind]['first']} / {table[kind]['outdated above']}"
               for table in rankers.values())]
            for kind, row in kinds.items()
        ],
    )  # fmt: skip
    yield _table(
        ["pairs", "likely: people see it", "only possible"],
        [[kind, str(row["likely"]), str(row["possible"])] for kind, row in kinds.items()],
    )
    other = result["links"]
    yield (
        f"Other links per 1,000 memories: {other['other likely links per 1,000']} likely and "
        f"{other['other possible links per 1,000']} possible. Comparing takes "
        f"{result['judge_ms_of_cpu_a_memory']} ms of processor time a memory, in the "
        "background. The worst mistakes:\n"
    )
    for one in result["worst"]:
        if "link" in one:
            yield f"- {one['link']} ({one['probability']}): “{one['newer']}” → “{one['older']}”"
        else:
            yield f"- “{one['question']}”: first “{one['first']}”, right “{one['right']}”"
    yield ""


def _claims(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "files" not in result:
        return
    yield _CLAIMS
    yield _source(result["command"], result)
    files = result["files"]
    rows = {
        "own": files["own"],
        "blind, first look": result["first_look"],
        "blind": files["blind"],
        "own and blind": files["together"],
        "second look": result["second_look"],
    }
    heads = ("sentences", "claims", "found", "right", "precision", "recall")
    yield _table(
        ["labelled", *heads],
        [[name, *(str(row[head]) for head in heads)] for name, row in rows.items()],
    )
    figures = ("facts", "questions", "first", "above_older")
    facts = [
        [size, *(f"{row[figure]:,}" for figure in figures)]
        for size, row in (result["facts"] or {}).items()
    ]
    yield _table(["FactConsolidation", "facts", "questions", "first", "above older"], facts)


def _redaction(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None or "vectors" not in result:
        return
    yield _REDACTION
    yield _source(result["made_by"], result)
    rows = [
        [*(str(row[name]) for name in ("kind", "source")), *_masked(row)]
        for row in result["vectors"]
    ]
    labelled, lines = result["labelled"], result["negatives"]
    spans = labelled["spans"].items()
    rows += [
        [label.lower(), "labelled sentences", f"{span['found']} of {span['of']}", "–"]
        for label, span in spans
    ]
    counts = {
        "labelled sentences": (
            sum(labelled["found_but_not_labelled"].values()),
            labelled["sentences"],
        ),
        "harmless lines": (lines["redacted"], lines["lines"]),
        "LoCoMo": (sum(result["locomo"]["false_alarms"].values()), result["locomo"]["sentences"]),
        "this repository": (
            sum(result["repository"]["false_alarms"].values()),
            result["repository"]["sentences"],
        ),
    }
    rows += [
        ["all kinds", source, "–", f"{alarms} in {texts:,} texts"]
        for source, (alarms, texts) in counts.items()
    ]
    yield _table(["kind", "source", "masked", "false alarms"], rows)
    speed = result["speed"]
    yield (
        f"A memory of 200 characters takes {speed['memory_us']} µs, 1 MB of mixed text "
        f"{speed['cpu_seconds_per_mb']:.1f} s.\n"
    )


def _hostile(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    rows = result.get("rows", [])
    yield _HOSTILE
    yield ", ".join(_code(text) for text in dict.fromkeys(row["text"] for row in rows)) + ".\n"
    yield _source(result.get("made_by", ""), result)
    sizes = sorted({row["characters"] for row in rows})
    heads = [
        "path",
        *(
            f"{size:,} characters: {what}"
            for size in sizes
            for what in ("slowest text", "seconds", "median")
        ),
    ]
    paths = dict.fromkeys(row["path"] for row in rows)
    yield _table(
        heads,
        [
            [path, *chain.from_iterable(_slowest(rows, path, size) for size in sizes)]
            for path in paths
        ],
    )


def _slowest(rows: Sequence[Mapping[str, Any]], path: str, size: int) -> list[str]:
    times = sorted(
        (row["cpu_seconds"], row["text"])
        for row in rows
        if (row["path"], row["characters"]) == (path, size)
    )
    if not times:
        return ["–", "–", "–"]
    return [_code(times[-1][1]), f"{times[-1][0]:.2f}", f"{times[len(times) // 2][0]:.2f}"]


def _code(text: str) -> str:
    """Return a text as code, in which a backtick and a bar may stand."""
    return f"`` {text} ``".replace("|", "¦")


def _masked(row: Mapping[str, int]) -> list[str]:
    alarms = (
        f"{row['false_alarms']} in {row['harmless']} harmless texts" if row["harmless"] else "–"
    )
    return [f"{row['masked']} of {row['texts']}" if row["texts"] else "–", alarms]


def _peers(result: Mapping[str, Any] | None) -> Iterator[str]:
    if result is None:
        return
    yield _PEERS
    yield _source(result["made_by"], result)
    yield _peer_table(result)
    yield _goals(result["goals"])


def _peer_table(result: Mapping[str, Any]) -> str:
    rows = [
        [*_peer(peer), f"{peer['disk_bytes']:,.0f}" if peer.get("disk_bytes") else "–"]
        for peer in result["peers"]
    ]
    names = ["", "durable", "search p50 / p95", "add p50 / p95", "bulk", "bytes on disk per record"]
    return _table(names, rows)


def _peer(peer: Mapping[str, Any]) -> list[str]:
    name = f"{peer['name']} {_versions(peer)}"
    if peer["failure"]:
        return [name, "–", str(peer["failure"]), "–", "–"]
    durable = "yes" if peer["durable"] else "no"
    return [
        name,
        durable,
        _times(peer["search"]),
        _times(peer["add"]),
        f"{peer['ingest_per_s']:,.0f}/s",
    ]


def _versions(row: Mapping[str, Any]) -> str:
    """Return the version of a store, and those of the libraries below it with their names."""
    first, *below = row["versions"].items()
    return ", ".join([first[1], *(f"{name} {version}" for name, version in below)])


def _goals(goals: Sequence[Mapping[str, Any]]) -> str:
    rows = [
        [goal["what"], goal["target"], goal["measured"], "met" if goal["met"] else "**not met**"]
        for goal in goals
    ]
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
    return f"commit {result['commit'][:7]}" + (
        "" if result.get("clean") else " (uncommitted changes not recorded)"
    )


def _times(timing: Mapping[str, float]) -> str:
    return f"{timing['p50_ms']:.2f} / {timing['p95_ms']:.2f} ms"


def _time(timing: Mapping[str, float] | None) -> str:
    return f"{timing['p50_ms']:.2f} ms" if timing else "–"


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [names, ["---"] * len(names), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description="Write docs/benchmarks.md, and the figures of the README and other pages"
    )
    parser.add_argument(
        "--check", action="store_true", help="change nothing; fail if the page is not current"
    )
    check = parser.parse_args().check
    pages = (
        (PAGE, summary),
        (DETAILS, page),
        (README, readme),
        (SCALE, scale),
        (CONTEXT, context),
        (LIFECYCLE, lifecycle),
        (CAPTURE, capture),
        (NOTES, notes),
        (TRACES, traces),
        (CONSOLE, console),
        (HYGIENE, hygiene),
        (SOAK, soak),
        (EXPECTED, expected),
    )
    for path, text in ((path, write()) for path, write in pages):
        if not check:
            path.write_text(text, encoding="utf-8")
        elif path.read_text(encoding="utf-8") != text:
            sys.exit(f"{path.name} is not current: run python tools/bench_docs.py")


if __name__ == "__main__":
    main()
