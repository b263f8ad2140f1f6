"""Texts made to be slow: the time grows with the length only. A slow one runs into the time limit."""

import pytest

from memory_mesh.core.redaction import Redactor, find

REDACTOR = Redactor(mode="pseudonym", key=b"k", names={"Ann Lee": "user-1"})
SIZE = 20_000

BOMBS = [
    *(
        "a",
        "1",
        "12 34 ",
        "123-456-7890 ",
        "+14155552671",
        "(1)",
        "4111 ",
        "2024-05-17 ",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567 ",
    ),
    *(
        ".",
        ":",
        "-",
        "@",
        "a@",
        "a.b@c.",
        "1.2.3.",
        "1.2.3.4 ",
        "1:2:3:",
        "2001:db8::",
        "://",
        "://a:b@",
        "\"'",
        "((",
        "[[[EMAIL]",
    ),
    *('password="', "password=", "password is ", "password for x ", "token=", "key", "secret is is is ", "пароль ", "curl -u a:"),
    *(
        "_token",
        "_salt",
        "dbpass=",
        "password,a\n",
        "|password|x\n",
        "copy t (password) from stdin\n",
        "passwd <<< a ",
        "passport no 1 ",
    ),
    *("card 4111.1111.", "a:b@tcp(", 'password"\n\n', "password = [[", "authorization digest ", "USER a\n", "]:587 a:"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nabcdefghijklmnopqrst\n",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----a: b ",
    ),
    *(
        "eyJ",
        "eyJaaaaaaaaaaa.",
        "sk-",
        "sk-ant-api03-",
        "ghp_",
        "xoxb-1",
        "AKIA",
        "Maaaaaaaaaaaaaaaaaaaaaaaaa.",
        "-us",
        "bearer ",
        "authorization: ",
    ),
    *(
        "DE89",
        "DE89 ",
        "tax 123456789 ",
        "123-45-6789 ",
        "tel 555 1234 ",
        "key deadbeefdeadbeefdeadbeefdeadbeef ",
        "Ann ",
        "Ann  Lee ",
    ),
    *(
        "mysql -p",
        "mysql -pa ",
        "sshpass -p ",
        "curl -u ",
        "echo a | ",
        "login: a / ",
        'auth=("a", ',
        "identified by '",
        "(password) values (",
    ),
    *(
        "kind: secret\n",
        "kind: secret\ndata:\n a: b\n",
        "data:\n",
        "cookie: a=",
        "seed phrase ",
        "abc ",
        "password: |\n  a\n",
        "<password>",
    ),
    *(
        "password = a + ",
        "password='a'\\'",
        "password=''",
        "it's a password: ",
        "pin ",
        "code is ",
        "key: ",
        "${a:",
        '"name": "password", ',
    ),
    *(
        "password is the ",
        "x as the password ",
        "x is my password ",
        '"a" == password ',
        "a:b@c:1 ",
        "://a:b/",
        "M.",
        ":AA",
        "Q~",
    ),
    *(
        "\0",
        "\ud800",
        "\u202e12",
        "ß",
        "İ",
        "\n",
        "\t",
        "é",
        "\U0001f600",
        "\u200b",
        "1\u200b",
        "１",
        "＠",
        "a\u200b@",
        "a at b dot com ",
        "(at)",
        "a(at)b.",
        " dot ",
        "DNI 12345678 ",
        "cédula 1.2",
    ),
    *("&#64;", "a&#64;", "a&#64;b.co", "&amp;", "\\x40", "4111\n1111\n", "4111.1111.1111.", "DE89  3704  ", "BSN 123.456."),
    *(
        "password::",
        "password ..... ",
        "password:::= ",
        "password → ",
        "> password ",
        "ssh a:b@",
        "a:s3cret@b ",
        "bundle_a__b=",
        "bundle_",
    ),
]

pytestmark = pytest.mark.deep  # long texts


@pytest.mark.sample(25)
@pytest.mark.timeout(120)
@pytest.mark.parametrize("bomb", BOMBS, ids=ascii)
def test_a_bomb_comes_back_redacted_once_and_for_all(bomb: str) -> None:
    text = bomb * (SIZE // len(bomb))
    redacted = REDACTOR.redact(text)
    assert len(redacted) < 4 * len(text) + 10


@pytest.mark.sample(12)
@pytest.mark.timeout(120)
@pytest.mark.parametrize(
    "lead",
    ["", "password=", 'password="', "-----BEGIN PRIVATE KEY-----", "eyJaaaaaaaaaaaa.", "://a:", "Bearer ", "tel ", "card ", "a@"],
)
@pytest.mark.parametrize("run", ["a", "1", "A1", "@", " ", "."])
def test_one_endless_run_behind_anything_comes_back(lead: str, run: str) -> None:
    redacted = REDACTOR.redact(lead + run * SIZE + "@")
    assert find(redacted) == []


@pytest.mark.timeout(120)
def test_a_line_of_a_million_characters_with_one_secret_loses_just_that() -> None:
    words = "plain words on one line, and no more than that; " * 10_000
    assert REDACTOR.redact(f"{words}ann@example.org {words}").count("[EMAIL:") == 1


def test_a_deep_value_is_walked_to_its_end() -> None:
    value: object = "ann@example.org"
    for _ in range(200):
        value = [{"deeper": value}]
    assert "ann@" not in repr(REDACTOR.redact_value(value))  # type: ignore[arg-type]
