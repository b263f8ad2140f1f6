"""The vectors of tests/data/redaction_vectors: every marked value is masked whole, and
everything else stays."""

import pytest

from memory_mesh.core.language.redaction import Redactor
from redaction_vectors import Vector, load_vectors

VECTORS = list(load_vectors())
REDACTOR = Redactor()


@pytest.mark.req("MESH-128", "MESH-129", "MESH-130")
@pytest.mark.parametrize(("kind", "source"), sorted({(one.kind, one.source) for one in VECTORS}))
def test_every_value_is_masked_whole_and_nothing_else_is(kind: str, source: str) -> None:
    vectors = [one for one in VECTORS if (one.kind, one.source) == (kind, source)]
    wrong = [
        (one.verdict(REDACTOR.redact), one.marked, REDACTOR.redact(one.text)) for one in vectors
    ]
    assert [each for each in wrong if each[0] != "right"] == []


@pytest.mark.parametrize(
    ("redacted", "verdict"),
    [
        ("mail [EMAIL] or [EMAIL] now", "right"),
        ("mail [EMAIL] or b@example.org now", "missed"),
        ("mail [EMAIL] or [EMAIL].org now", "missed"),
        ("mail [EMAIL] now", "too much"),
    ],
)
def test_a_verdict_tells_missed_values_from_other_words_masked(redacted: str, verdict: str) -> None:
    vector = Vector("email", "test", "mail «a@example.org» or «b@example.org» now")
    assert vector.text == "mail a@example.org or b@example.org now"
    assert vector.verdict(lambda _: redacted) == verdict


def test_a_harmless_text_with_a_mask_is_a_false_alarm() -> None:
    vector = Vector("phone", "test", "order 1234567")
    assert vector.verdict(lambda text: text) == "right"
    assert vector.verdict(lambda _: "order [PHONE]") == "too much"
