"""Measure reflections without a language model: the fraction of reference facts that they contain,
beside simple baselines.

    python -m bench.reflect [--data DIR]

A fact counts as contained if one statement has at least 60 % of its content words. The baselines
are the first three sentences, and the first and random sentences of at least the same length. Our
own topics are always measured: all memories are in one store, and ours has to find those of the
topic, while the baselines get them. If DIR contains `locomo/locomo10.json`, its sessions are
measured too: the memories are the turns, and the facts are the observations of the data set.
"""

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from statistics import mean
from typing import Any

from bench.commit import measured_at
from memory_mesh import MemoryMesh, ReflectionResult
from memory_mesh.core.learning import sentences
from memory_mesh.core.search import tokens

ROOT = Path(__file__).parents[2]
RESULT = ROOT / "bench" / "results" / "reflect.json"
TOPICS = Path(__file__).parent / "data" / "topics.jsonl"
CONTAINED = 0.6
BASELINES = ("lead-3", "lead", "random")
DRAWS, RESAMPLES = 20, 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Memories, and the facts that a reflection on them should contain."""

    topic: str | None  # None: a reflection on all memories
    memories: Sequence[tuple[str | None, str]]  # speaker and text
    facts: Sequence[str]

    @property
    def sentences(self) -> list[str]:
        """All sentences in the form of a statement."""
        return [
            f"{speaker}: {one}" if speaker else one
            for speaker, text in self.memories
            for one in sentences(text)
        ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Facts in reflections without a language model")
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    sets = {"own topics": topics()}
    if given.data:
        sets["LoCoMo sessions"] = list(sessions(given.data / "locomo" / "locomo10.json"))
    rows = []
    for embedder in ("local", "none"):
        for name, cases in sets.items():
            if embedder == "local" and cases[0].topic is None:
                # Without a topic nothing is searched, and vectors only sort the chosen sentences.
                continue
            row = {
                "set": name,
                "cases": len(cases),
                "facts": sum(len(case.facts) for case in cases),
                "vectors": embedder == "local",
            }
            for operation, ours in stated(cases, embedder).items():
                rows.append({**row, "operation": operation, **measure(ours, cases)})
                print(json.dumps(rows[-1]))
    command = "python -m bench.reflect" + (" --data DIR" if given.data else "")
    RESULT.write_text(
        json.dumps({"command": command, **measured_at(), "rows": rows}, indent=2) + "\n",
        encoding="utf-8",
    )


def topics() -> list[Case]:
    """Return our own topics."""
    raw = [json.loads(line) for line in TOPICS.read_text(encoding="utf-8").splitlines()]
    return [
        Case(
            topic=one["topic"],
            memories=[(None, text) for text in one["memories"]],
            facts=one["facts"],
        )
        for one in raw
    ]


def sessions(path: Path) -> Iterator[Case]:
    """Yield the sessions of LoCoMo that have at least three observations."""
    for sample in json.loads(path.read_text(encoding="utf-8")):
        talk = sample["conversation"]
        for name in talk:
            if re.fullmatch(r"session_\d+", name):
                observed = sample["observation"].get(f"{name}_observation", {}).values()
                facts = [fact for facts in observed for fact, *_ in facts]
                turns = [(turn["speaker"], turn["text"]) for turn in talk[name] if turn.get("text")]
                if len(facts) >= 3:
                    yield Case(topic=None, memories=turns, facts=facts)


def stated(cases: Sequence[Case], embedder: str) -> dict[str, list[list[str]]]:
    """Return the statements for each case, by operation: with topics from one store of all cases,
    else from a store each.

    A topic of ours has so few memories that a synthesis would quote nearly all of them; it is not
    measured.
    """
    done: dict[str, list[list[str]]] = (
        {"reflect": []} if cases[0].topic else {"reflect": [], "synthesize": []}
    )
    for together in [cases] if cases[0].topic else [[case] for case in cases]:
        with MemoryMesh("memory://", embedder=embedder, audit_recalls=False) as mesh:
            for case in together:
                # A turn has a number, so that the same words said twice are two memories.
                turns = [
                    (text, {"speaker": who, "turn": n} if who else {})
                    for n, (who, text) in enumerate(case.memories)
                ]
                mesh.add_many(turns)
            for case in together:
                done["reflect"].append(_texts(mesh.reflect(case.topic, 10 if case.topic else 100)))
                if case.topic is None:
                    done["synthesize"].append(_texts(mesh.synthesize()))
    return done


def _texts(result: ReflectionResult) -> list[str]:
    return [one.text for one in result.statements]


def measure(ours: Sequence[Sequence[str]], cases: Sequence[Case]) -> dict[str, Any]:
    """Return the percentage of contained facts of ours and of the baselines, and the 95 %
    interval of each difference."""
    found: dict[str, list[float]] = {name: [] for name in ("ours", *BASELINES)}
    for statements, case in zip(ours, cases, strict=True):
        every, length = case.sentences, sum(map(len, statements))
        found["ours"].append(contained(case.facts, statements))
        found["lead-3"].append(contained(case.facts, every[:3]))
        found["lead"].append(contained(case.facts, within(every, length)))
        found["random"].append(
            mean(contained(case.facts, within(shuffled(every, n), length)) for n in range(DRAWS))
        )
    return {
        "statements": round(mean(map(len, ours)), 1),
        "characters": round(mean(sum(map(len, one)) for one in ours)),
        **{name: round(100 * mean(values), 1) for name, values in found.items()},
        "ahead": {name: interval(found["ours"], found[name]) for name in BASELINES},
    }


def contained(facts: Sequence[str], statements: Sequence[str]) -> float:
    """Return the fraction of the facts that one of the statements contains."""
    words, wanted = ([_words(text) for text in texts] for texts in (statements, facts))
    return mean(any(len(fact & one) >= CONTAINED * len(fact) for one in words) for fact in wanted)


@cache
def _words(text: str) -> frozenset[str]:
    return frozenset(tokens(text))


def within(every: Sequence[str], length: int) -> list[str]:
    """Return the first sentences until they have at least so many characters."""
    chosen, total = list[str](), 0
    for sentence in every:
        if total >= length:
            break
        chosen.append(sentence)
        total += len(sentence)
    return chosen


def shuffled(every: Sequence[str], seed: int) -> list[str]:
    return Random(seed).sample(every, len(every))  # noqa: S311  (the same in each run)


def interval(ours: Sequence[float], other: Sequence[float]) -> list[float]:
    """Return the 95 % interval of the mean difference, by paired bootstrap over the cases."""
    differences, random = [100 * (a - b) for a, b in zip(ours, other, strict=True)], Random(0)  # noqa: S311
    means = sorted(mean(random.choices(differences, k=len(differences))) for _ in range(RESAMPLES))
    return [round(means[round(part * (RESAMPLES - 1))], 1) for part in (0.025, 0.975)]


if __name__ == "__main__":
    main()
