"""Prepare the training of the judge: pairs of statements, and the weights of the model, in one
file.

    python -m bench.train_judge.prepare --model DIR --out FILE [--vectors FILE] [--every 1]

bench/updates has the pairs and the lines. DIR has the model.safetensors and tokenizer.json of
all-MiniLM-L6-v2. Needs no GPU, and takes some minutes: the local model embeds all texts, to find
the nearest ones. `--vectors` is where these vectors are cached. With `--every`, only one world and
one written pair in so many are used.

Which pairs there are:

- written: as the authors wrote them, with their labels.
- swapped: pairs that both hold, or are unrelated, the other way round. A change is left out: the
  older state, stated after the newer one, would change it back.
- crossed: the older statement of a pair and a near newer statement of another pair of the same
  author. An author has written about some people and things several times, so two that share a
  name or are nearer than MAX_CROSSED are left out: they may be a change by chance.
- lined, beside: two statements of a line, which one author wrote about the same people and things.
  The author has named all changes, so the others hold side by side.
- changed: an outdated memory of a world and the one that is current, by the questions about it.
- near: each memory of a world and its NEAREST older ones. Those that may state a change again are
  doubtful and left out (`_labels`). A world also has changes that no question asks about:
  `checked.jsonl` has the labels of the 672 pairs of `train` and `choose` that looked most like one
  to a small model and were then read (7 in 100 were a change, 8 were unclear). Of the others, those
  with a word of change count less, unless the newer memory answers a question about a change: then
  the author has named what it makes outdated (3 in 100 of those that were read were a change).
"""

import argparse
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, islice
from pathlib import Path
from typing import Any

import numpy as np

from bench.everyday.worlds import CHANGED, SPLITS, World, read_worlds
from bench.quality.sets import Said
from bench.quality.vectors import local, matrix
from bench.train_judge.data import CHANGE, CLASSES, NO_CHANGE, Pair, Prepared, write
from bench.train_reader.__main__ import base_weights, tokenizer_of
from bench.updates.__main__ import read as read_among
from memory_mesh.models.judge import cut

NEAREST = 8
CROSSED, MAX_CROSSED, MAX_ALIKE = 2, 0.42, 0.6  # per statement, and cosines
SEVERAL_ANSWERS = 0.5  # weight of a change that several memories together state
CHANGE_WORDS_WEIGHT = 0.3  # of a pair that was not read and whose newer memory has such a word
CHANGE_WORDS = re.compile(
    r"\b(now|no longer|any ?more|instead|moved?|moving|switch\w*|chang\w+|replac\w+|cancel\w*|quit"
    r"|stopped|sold|gave up|new|since|left|over|done|finished|gone|closed|from \w+day on|not)\b",
    re.IGNORECASE,
)
UPDATES = Path(__file__).parents[1] / "updates"
CHECKED = Path(__file__).with_name("checked.jsonl")
_NAME = re.compile(r"\b[A-Z]\w{2,}")
_ROLES = ("user", "assistant")


class Texts:
    """All texts, their places and their vectors."""

    def __init__(self, vectors: Path | None) -> None:
        self._places: dict[str, int] = {}
        self.embedder = local(vectors)

    def place(self, text: str) -> int:
        """Return the place of a text; a new one is put at the end."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> list[str]:
        """Return the texts, by their places."""
        return list(self._places)

    def cosines(self, texts: Sequence[str], others: Sequence[str]) -> np.ndarray:
        """Return how near texts are to others, a row for each text."""
        rows: np.ndarray = matrix(self.embedder, texts) @ matrix(self.embedder, others).T
        return rows


def written(file: Path, texts: Texts, every: int) -> Iterator[Pair]:
    """Yield the pairs of an author: as they are, swapped, and crossed."""
    rows = list(_rows(file))[::every]
    for row in rows:
        older, newer = texts.place(row["older"]), texts.place(row["newer"])
        classes = [CLASSES.index(row["label"])]
        pair = Pair(older=older, newer=newer, classes=classes, source="written",
                    author=file.stem, is_implied=bool(row["implicit"]))  # fmt: skip
        yield pair
        if not pair.is_change:
            yield replace(pair, older=newer, newer=older, classes=NO_CHANGE, source="swapped")
    yield from _crossed(rows, texts, file.stem)


def _crossed(rows: Sequence[dict[str, Any]], texts: Texts, author: str) -> Iterator[Pair]:
    olders, newers = ([row[name] for row in rows] for name in ("older", "newer"))
    near, alike = texts.cosines(olders, newers), texts.cosines(olders, olders)
    near[(alike > MAX_ALIKE) | (near > MAX_CROSSED)] = -1.0
    for older, cosines in zip(olders, near, strict=True):
        others = [newers[at] for at in np.argsort(-cosines) if cosines[at] > 0]
        names = set(_NAME.findall(older))
        strangers = (newer for newer in others if names.isdisjoint(_NAME.findall(newer)))
        for newer in islice(strangers, CROSSED):
            yield Pair(older=texts.place(older), newer=texts.place(newer), classes=NO_CHANGE,
                       source="crossed", author=author)  # fmt: skip


def lined(file: Path, texts: Texts, every: int) -> Iterator[Pair]:
    """Yield all pairs of the statements of each line of an author."""
    for row in list(_rows(file))[::every]:
        places = [texts.place(statement) for statement in row["statements"]]
        changes = {(older, newer): (label, how) for older, newer, label, how in row["changes"]}
        for older, newer in combinations(range(len(places)), 2):
            label, how = changes.get((older, newer), ("", ""))
            yield Pair(
                older=places[older], newer=places[newer], author=file.stem,
                classes=[CLASSES.index(label)] if label else NO_CHANGE,
                source="lined" if label else "beside", is_implied=how == "implied",
            )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Labels:
    """What is known about the pairs of a world, by the ids of the older and the newer memory."""

    world: str
    changes: dict[tuple[str, str], tuple[bool, float]]  # whether it is implied, and the weight
    doubtful: set[tuple[str, str]]
    answers: set[str]  # memories that answer a question about a change
    checked: Mapping[str, str]  # labels by the names of pairs

    def pair(self, older: Said, newer: Said) -> Pair:
        """Return the classes, the source and the weight of two memories; the caller fills in the
        rest."""
        ids = (older.id, newer.id)
        pair = Pair(older=0, newer=0, classes=NO_CHANGE, source="near", author="",
                    name=" ".join([self.world, *ids]))  # fmt: skip
        if label := self.checked.get(pair.name):
            if label in ("said", "implied"):
                return replace(pair, classes=CHANGE, source="changed",
                               is_implied=label == "implied")  # fmt: skip
            return replace(pair, weight=0.0 if label == "unclear" else 1.0)
        if ids in self.changes:
            implied, weight = self.changes[ids]
            return replace(pair, classes=CHANGE, source="changed", is_implied=implied,
                           weight=weight)  # fmt: skip
        if ids in self.doubtful:
            return replace(pair, weight=0.0)
        if newer.id not in self.answers and CHANGE_WORDS.search(newer.text):
            return replace(pair, weight=CHANGE_WORDS_WEIGHT)
        return pair


def of_worlds(split: str, texts: Texts, every: int) -> Iterator[Pair]:
    """Yield the pairs of the worlds of a split."""
    checked = {row["pair"]: row["label"] for row in _rows(CHECKED)}
    for world in read_worlds([split])[::every]:
        labels = _labels(world, checked)
        for pair in _near(world.memories, labels, texts):
            yield replace(pair, author=world.author, split=split)


def among(texts: Texts) -> Iterator[Pair]:
    """Yield the pairs of the memory of one person: what was the case first, then the other
    memories, then what is new."""
    world, kinds = read_among()
    changes = {two: (kind == "implied", 1.0) for two, kind in kinds.items() if kind != "both"}
    labels = Labels("among", changes, set(), {said.id for said in world.memories}, {})
    for pair in _near(world.memories, labels, texts):
        yield replace(pair, author="among", split="among")


def _near(memories: Sequence[Said], labels: Labels, texts: Texts) -> Iterator[Pair]:
    """Yield each memory with its nearest older ones, and the changes that are not among these."""
    cosines = texts.cosines(*[[said.text for said in memories]] * 2)
    near = {(older, newer) for newer in range(len(memories))
            for older in np.argsort(-cosines[newer, :newer])[:NEAREST].tolist()}  # fmt: skip
    at = {said.id: place for place, said in enumerate(memories)}
    changes = {(at[older], at[newer]) for older, newer in labels.changes}
    for older, newer in sorted(near | changes):
        pair = labels.pair(memories[older], memories[newer])
        places = [texts.place(_shown(memories[place])) for place in (older, newer)]
        if places[0] != places[1]:
            yield replace(pair, older=places[0], newer=places[1],
                          is_near=(older, newer) in near)  # fmt: skip


def _labels(world: World, checked: Mapping[str, str]) -> Labels:
    """Return what the questions say. An outdated memory is changed by the answer. Other memories
    after the first answer may state the change too; those before it do not."""
    ids = [said.id for said in world.memories]
    labels = Labels(world.name, {}, set(), set(), checked)
    for question in world.questions:
        gold, outdated = (sorted(some, key=ids.index) for some in (question.gold, question.stale))
        for older in outdated:
            answers = [newer for newer in gold if ids.index(newer) > ids.index(older)]
            after = ids[ids.index((answers or [older])[0]) :]
            labels.doubtful.update((older, newer) for newer in [*outdated, *after])
            if question.kind in CHANGED:
                weight = 1.0 if len(gold) == 1 else SEVERAL_ANSWERS
                implied = question.kind == CHANGED[1]
                labels.changes.update({(older, newer): (implied, weight) for newer in answers})
                labels.answers.update(answers)
    return labels


def _shown(said: Said) -> str:
    """Return the text as the judge reads it: with the name of the speaker, where several speak."""
    return said.text if said.speaker in (None, *_ROLES) else f"{said.speaker}: {said.text}"


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())


def main() -> None:
    given = _arguments()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    texts, pairs = Texts(given.vectors), list[Pair]()
    for file in sorted(UPDATES.glob("u*.jsonl")):
        pairs += written(file, texts, given.every)
    for file in sorted(UPDATES.glob("l*.jsonl")):
        pairs += lined(file, texts, given.every)
    for split in SPLITS:
        pairs += of_worlds(split, texts, given.every)
    pairs += among(texts)
    texts.embedder.save()
    encoded = tokenizer_of(given.model).encode_batch(texts.all(), add_special_tokens=False)
    tokens = [cut(encoding.ids) for encoding in encoded]
    prepared = Prepared(
        texts=texts.all(), tokens=np.concatenate(tokens), pairs=pairs,
        lengths=np.array([len(text) for text in tokens]),
        base={name: value for name, value in base_weights(given.model).items()
              if "pooler" not in name},
    )  # fmt: skip
    write(prepared, given.out)
    for group, count in sorted(Counter(map(_group, pairs)).items()):
        print(f"{group}: {count}")
    print(f"{len(texts.all())} texts, {given.out.stat().st_size / 2**20:.1f} MiB")


def _group(pair: Pair) -> str:
    """Return under what a pair is counted."""
    label = "/".join(CLASSES[number] for number in pair.classes)
    near = "near" if pair.is_near else "not near"
    implied = ", implied" if pair.is_implied else ""
    place = f", {near}, weight {pair.weight}" if pair.source in ("changed", "near") else ""
    return f"{pair.split}, {pair.source}, {label}{implied}{place}"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.train_judge.prepare", description="Prepare the training of the judge"
    )
    for name in ("model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--vectors", type=Path)
    parser.add_argument("--every", type=int, default=1)
    return parser.parse_args()


if __name__ == "__main__":
    main()
