"""Each pattern keeps its own promises, the page of documentation is what the code says, and five
hundred harmless lines stay."""

import subprocess
import sys
from pathlib import Path

import pytest

from memory_mesh.core.language.redaction import LABELS, PATTERNS, Pattern, Redactor, find
from redaction_docs import load_entries

ROOT = Path(__file__).parents[2]
NEGATIVES = (
    (ROOT / "tests" / "data" / "redaction_negatives.txt").read_text(encoding="utf-8").splitlines()
)
# Written to measure the patterns, all but the last 280 before these were read. ⏎ is a line break.
SAMPLE = [
    line.replace("⏎", "\n")
    for line in (ROOT / "tests" / "data" / "redaction_negatives_2.txt")
    .read_text(encoding="utf-8")
    .splitlines()
]
# Values that are a password for some, and addresses that stand for those of anyone.
MASKED_IN_SAMPLE = [
    "amqp://guest:guest@localhost:5672/",
    "http --auth user:$PW :8000/me",
    'login(username="test", password="test")',
    "Pinterest pin 4711",
    "192.0.2.0/24 is for documentation",
    "2001:db8::/32 is for documentation",
    "top passwords: 123456, qwerty, letmein",
    "POSTGRES_PASSWORD=postgres",
]
LISTED = {
    *(
        "email",
        "phone",
        "card",
        "iban",
        "ipv4",
        "ipv6",
        "jwt",
        "private_key",
        "bearer",
        "password_assignment",
        "hex_secret",
    ),
    *(
        "us_ssn",
        "de_idnr",
        "fr_nir",
        "es_dni",
        "it_codice_fiscale",
        "nl_bsn",
        "pl_pesel",
        "br_cpf",
        "in_aadhaar",
        "ca_sin",
        "au_tfn",
    ),
    *(
        "openai_key",
        "anthropic_key",
        "aws_access_key",
        "github_token",
        "gitlab_token",
        "slack_token",
        "stripe_key",
        "google_key",
    ),
}


def shown(text: str) -> list[tuple[str, str]]:
    return [(one.pattern, text[one.start : one.end]) for one in find(text)]


@pytest.mark.req("MESH-129")
def test_everything_on_the_list_has_a_pattern() -> None:
    ids = [pattern.id for pattern in PATTERNS]
    assert set(ids) >= LISTED
    assert len(ids) == len(set(ids))
    assert list(load_entries()) == ids
    assert {pattern.label for pattern in PATTERNS} == set(LABELS)


@pytest.mark.req("MESH-129", "MESH-132")
@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.id)
def test_the_examples_of_a_pattern_are_found_and_its_counter_examples_stay(
    pattern: Pattern,
) -> None:
    entry = load_entries()[pattern.id]
    assert entry.examples
    assert entry.stays
    assert entry.why.endswith(".")
    for example in entry.examples:
        assert shown(example.text) == [(pattern.id, example.masked)]
        assert Redactor().redact(example.text) == example.text.replace(
            example.masked, f"[{pattern.label}]"
        )
    for text in entry.stays:
        assert shown(text) == []


def test_nothing_is_redacted_in_five_hundred_harmless_lines() -> None:
    assert len(set(NEGATIVES)) >= 500
    assert shown("version 1.2.3.4 released to ann@example.org"), "the finder is at work"
    assert [(line, shown(line)) for line in NEGATIVES if find(line)] == []


def test_nothing_is_redacted_when_the_harmless_lines_stand_together() -> None:
    together = "\n\n".join(line for line in NEGATIVES if "BEGIN" not in line)
    assert shown(together) == []


def test_of_sixteen_hundred_harmless_texts_eight_are_masked() -> None:
    assert len(set(SAMPLE)) == 1684
    assert [text for text in SAMPLE if find(text)] == MASKED_IN_SAMPLE


@pytest.mark.req("MESH-132")
def test_the_documentation_is_made_from_the_code_and_current() -> None:
    ran = subprocess.run(
        [sys.executable, "tools/redaction_docs.py", "--check"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    page = (ROOT / "docs" / "internals" / "redaction.md").read_text(encoding="utf-8")
    assert [pattern.id for pattern in PATTERNS if f"`{pattern.id}`" not in page] == []


def test_nothing_heavy_is_loaded_before_a_candidate_is_seen() -> None:
    code = (
        "import sys; from memory_mesh.core.language.redaction import Redactor\n"
        "r = Redactor(); before = r.redact('a plain sentence of 12 words')\n"
        "heavy = [m for m in ('phonenumbers', 'stdnum', 'ipaddress', 'numpy', 'ssl') if m in "
        "sys.modules]\n"
        "after = r.redact('tel +44 20 7946 0958 and BSN 123456782')\n"
        "print(heavy, 'phonenumbers' in sys.modules, 'stdnum' in sys.modules, after)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[] True True tel [PHONE] and BSN [NATIONAL_ID]"
