"""Secrets and personal data that redaction misses, and harmless texts that it changes: the
corpus of `bench.redaction`."""

from collections.abc import Iterator

from bench.hygiene.record import OURS, Row, Run, Tally
from bench.hygiene.shared import tests
from bench.redaction import NEGATIVES
from memory_mesh.core.language.redaction import Redactor, find

NAME = "redaction"


def check(run: Run) -> Iterator[Row]:
    if OURS not in run.systems:
        return
    corpus = tests("redaction_vectors")
    vectors = [*corpus.load_secrets(), *corpus.load_vectors()]
    vectors = vectors[:: len(vectors) // 50] if run.quick else vectors
    missed = Tally(NAME, "secrets and personal data that were not masked")
    alarms = Tally(NAME, "harmless texts that were changed")
    redact = Redactor().redact
    for vector in vectors:
        verdict = vector.verdict(redact)
        if vector.values:
            missed.trial(good=verdict != "missed", example=f"{vector.kind} from {vector.source}")
            missed.expect(vector.verdict(lambda text: text) == "missed")
        elif vector.kind != "secret":
            alarms.trial(good=verdict != "too much", example=vector.marked)
    for line in NEGATIVES.read_text(encoding="utf-8").splitlines():
        alarms.trial(good=not find(line), example=line)
    alarms.expect(find("Write to ann@example.org."))
    yield missed.row()
    yield alarms.row()
