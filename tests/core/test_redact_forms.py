"""Secrets in code, configuration, sentences of many languages, commands and addresses: nothing of
them is left.

`tests/data/redaction_secrets.txt` has one text per line: «…» marks the secrets and ⏎ a line break.
"""

import re
from itertools import pairwise
from pathlib import Path

import pytest

from memory_mesh.core.language.redaction import MASK, Redactor, find

LINES = (
    (Path(__file__).parents[1] / "data" / "redaction_secrets.txt")
    .read_text(encoding="utf-8")
    .splitlines()
)
VECTORS = [line for line in LINES if line and not line.startswith("## ")]
MASKING = Redactor()
MARKS = "&;'(),#@$!%^*~?/=+"
QUOTED = (
    *(
        "password = {}",
        "DB_PASSWORD={}",
        "password: {}",
        '{{"password": {}}}',
        "--password {}",
        "setPassword({})",
        "mysql -p{}",
    ),
    *(
        'put("password", {})',
        "user.password += {}",
        "var password string = {}",
        "curl -u ann:{}",
        "sshpass -p {} ssh host",
    ),
)


def marked(line: str) -> tuple[str, list[str], str]:
    """Return the text, its secrets, and the text without them."""
    secret = r"«([^«»\s](?:[^«»]*[^«»\s])?)»"
    line = line.replace("⏎", "\n")
    return re.sub(secret, r"\1", line), re.findall(secret, line), re.sub(secret, "\0", line)


def remains(secret: str, redacted: str, rest: str) -> list[str]:
    """Return the parts of the secret, four characters long, that can still be read and do not
    belong to the rest of the text."""
    size = min(4, len(secret))
    parts = (secret[at : at + size] for at in range(len(secret) - size + 1))
    return [part for part in parts if part in MASK.sub("\0", redacted) and part not in rest]


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize("line", VECTORS)
def test_nothing_of_a_secret_is_left_in_any_form(line: str) -> None:
    text, secrets, rest = marked(line)
    assert secrets
    assert all(secret in text for secret in secrets)
    redacted = MASKING.redact(text)
    assert [left for secret in secrets for left in remains(secret, redacted, rest)] == [], redacted
    assert MASKING.redact(redacted) == redacted
    assert (
        len(re.sub(r"\s", "", redacted)) >= len(re.sub(r"\s", "", rest.replace("\0", ""))) - 16
    ), "the rest of the text stays"


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    "mark",
    [
        "&",
        ";",
        "'",
        "(",
        ")",
        ",",
        "#",
        "@",
        "$",
        "!",
        "%",
        "^",
        "*",
        "~",
        "|",
        "<",
        ">",
        "?",
        "/",
        "=",
        "+",
        " ",
    ],
)
def test_a_quoted_password_is_masked_whole_whatever_marks_are_in_it(mark: str) -> None:
    password = f"aB3{mark}dE6{mark}gH9"
    quote = "'" if mark != "'" else '"'
    for form in (
        "password = {}",
        "DB_PASSWORD={}",
        "password: {}",
        '{{"password": {}}}',
        "--password {}",
        "setPassword({})",
        "mysql -p{}",
    ):
        text = form.format(f"{quote}{password}{quote}")
        assert password in text
        assert remains(password, MASKING.redact(text), "") == [], text


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize("mark", MARKS)
def test_an_unquoted_password_of_an_environment_file_is_masked_whole(mark: str) -> None:
    password = f"aB3{mark}dE6{mark}gH9"
    text = f"HOST=db\nDB_PASSWORD={password}\nPORT=1"
    assert MASKING.redact(text) == "HOST=db\nDB_PASSWORD=[SECRET]\nPORT=1"


def test_the_finds_of_all_forms_together_do_not_overlap() -> None:
    found = find("\n\n".join(marked(line)[0] for line in VECTORS))
    assert len(found) > len(VECTORS) * 0.9
    assert all(one.end <= following.start for one, following in pairwise(found))
