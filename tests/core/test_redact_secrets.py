"""Secrets by form and by name: in headers, addresses, code, JSON, YAML, environment files,
command lines and sentences."""

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.language.redaction import Redactor, find

MASKING = Redactor()
PEM = (
    "-----BEGIN {0}PRIVATE KEY-----\n"
    + "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj\n" * 6
    + "AgEAAoIB\n"
    + "-----END {0}PRIVATE KEY-----"
)


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("password: hunter2", "password: [SECRET]"),
        ("my password is swordfish.", "my password is [SECRET]."),
        (
            "The password for the staging server is T0pS3cret!",
            "The password for the staging server is [SECRET]",
        ),
        ('the password is "hunter2"', 'the password is "[SECRET]"'),
        ("set the password to hunter2", "set the password to [SECRET]"),
        ("use password hunter2 to log in", "use password [SECRET] to log in"),
        ("Password - hunter2", "Password - [SECRET]"),
        ("Password:\nhunter2\n", "Password:\n[SECRET]\n"),
        ("password = 'pa$$w0rd'", "password = '[SECRET]'"),
        ('password = "correct horse battery staple"', 'password = "[SECRET]"'),
        ('password: str = "hunter2"', 'password: str = "[SECRET]"'),
        ('{"password":"hunter2","user":"bob"}', '{"password":"[SECRET]","user":"bob"}'),
        (r"{\"password\":\"hunter2\"}", r"{\"password\":\"[SECRET]\"}"),
        ("DB_PASSWORD=swordfish", "DB_PASSWORD=[SECRET]"),
        ("SMTP_PASS=Zx9!kk", "SMTP_PASS=[SECRET]"),
        ("PGPASSWORD=swordfish psql", "PGPASSWORD=[SECRET] psql"),
        ("Server=db;Password=Abc123;Database=x", "Server=db;Password=[SECRET];Database=x"),
        ("X-API-Key: abcd1234efgh5678", "X-API-Key: [SECRET]"),
        (
            "https://x.org/cb?access_token=abcd1234efgh&state=1",
            "https://x.org/cb?access_token=[SECRET]&state=1",
        ),
        ("mysql --password=s3cret db", "mysql --password=[SECRET] db"),
        ("cli --token abc123def456 run", "cli --token [SECRET] run"),
        ("client_secret: 's3cr3t-value-1'", "client_secret: '[SECRET]'"),
        ('my_token="AbCdEfGhIjKlMnOp"', 'my_token="[SECRET]"'),
        ("the token is abc123def456", "the token is [SECRET]"),
        ("<password>hunter2</password>", "<password>[SECRET]</password>"),
        ("Passwort: geheim123", "Passwort: [SECRET]"),
        ("пароль: qwerty123", "пароль: [SECRET]"),
        ("密码是hunter2", "密码是[SECRET]"),
        ("password: 123456", "password: [SECRET]"),
        ("export DB_PASSWORD=tr0ub4dor and call", "export DB_PASSWORD=[SECRET] and call"),
        ("password=hunter2 && psql", "password=[SECRET] && psql"),
        ("password: hunter2 & ls", "password: [SECRET] & ls"),
        ("DB_PASSWORD=swordfish && psql", "DB_PASSWORD=[SECRET] && psql"),
        ("password: tr0ub4dor and called me", "password: [SECRET] and called me"),
    ],
)
def test_what_is_called_a_secret_is_masked_and_its_name_stays(text: str, redacted: str) -> None:
    assert MASKING.redact(text) == redacted


@pytest.mark.parametrize(
    "text",
    [
        *(
            "password reset",
            "password: str",
            "password: string;",
            "password?: string",
            "password = None",
            'password = ""',
            "secret: none",
        ),
        *(
            'password = os.environ["X"]',
            "password = getpass()",
            "password = user_password",
            "password=password",
            "self.token = token",
        ),
        *(
            "connect(password=newPassword, token=authToken)",
            "token = auth.create_token(user.id)",
            "api_key = config['api_key']",
        ),
        *(
            "password: <password>",
            "password: ****",
            "TOKEN=$TOKEN",
            "TOKEN=${TOKEN}",
            "password: {{ vault_pw }}",
            "--token <token>",
        ),
        *(
            "api_key: 'your-api-key'",
            "--api-key YOUR_API_KEY",
            "password: ${{ secrets.PW }}",
            "password: !secret wifi",
            "password: %(pw)s",
        ),
        *(
            "The password is required.",
            "the token is expired",
            "your password is too short",
            "the secret is to mix it well",
            "API key is not set",
        ),
        *(
            '{"password": "This field is required."}',
            '{"forgot_password": "Forgot your password?"}',
            'token: "hello"',
            "token: 42",
        ),
        *(
            "max_tokens: 4096",
            'eos_token = "</s2>"',
            "token_count: 123456",
            "compass=north1",
            "PASS: test_login2",
            "if not password: raise",
        ),
        *(
            "grant_type=password",
            "type: password",
            "password VARCHAR(255)",
            "re-enter the password",
            "He forgot the password to his account",
        ),
        *(
            'password = "config.db.password"',
            "password <none>",
            "the key is under the mat",
            "token ring",
            "secret santa is on 24 December 2024",
            "kind: Secret",
            "password: [SECRET]",
            "self.password = password2 or None",
            "let pw=stored || fallback",
        ),
    ],
)
def test_words_types_calls_and_placeholders_stay(text: str) -> None:
    assert MASKING.redact(text) == text


VALUES = st.text(
    "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789_!", min_size=8, max_size=40
).filter(
    lambda value: (
        any(map(str.isdigit, value))
        and any(map(str.isalpha, value))
        and value[-1].isalnum()
        and value[0].isalnum()
    )
)


@pytest.mark.req("MESH-129")
@given(
    VALUES,
    st.sampled_from(
        [
            "password",
            "api_key",
            "client_secret",
            "authToken",
            "DB_PASSWORD",
            "SECRET_KEY",
            "access_token",
        ]
    ),
)
def test_any_value_with_letters_and_digits_is_gone_from_code_json_yaml_and_environment(
    value: str, name: str
) -> None:
    for text in (
        f'{name} = "{value}"',
        json.dumps({name: value, "n": 1}),
        f"{name}: {value}\n",
        f"export {name}={value}\n",
        f"--{name} {value}",
    ):
        assert value in text
        assert value not in MASKING.redact(text)
    assert value not in json.dumps(MASKING.redact_value({"settings": [{name: value}]}))


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize("kind", ["", "RSA ", "EC ", "DSA ", "OPENSSH ", "ENCRYPTED "])
def test_a_private_key_is_gone_whole_cut_off_or_escaped(kind: str) -> None:
    pem = PEM.format(kind)
    assert MASKING.redact(f"key:\n{pem}\nend of it") == "key:\n[PRIVATE_KEY]\nend of it"
    assert MASKING.redact(json.dumps({"k": pem})) == '{"k": "[PRIVATE_KEY]"}'
    assert MASKING.redact(f"{pem}\n{pem}") == "[PRIVATE_KEY]\n[PRIVATE_KEY]"
    cut = pem[: pem.index("-----END")]
    assert MASKING.redact(cut) == "[PRIVATE_KEY]\n"
    assert (
        MASKING.redact(f"{cut}\nand then he said: so be it")
        == "[PRIVATE_KEY]\n\nand then he said: so be it"
    )


@pytest.mark.req("MESH-129")
def test_a_key_with_headers_or_of_pgp_is_gone_too() -> None:
    lines = "lQOYBGVfAAABCADAbCdEfGhIjKlMnOp\n" * 4
    headed = (
        "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: "
        f"AES-128-CBC,AB12\n\n{lines}"
    )
    assert MASKING.redact(headed).strip() == "[PRIVATE_KEY]"
    pgp = (
        f"-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{lines}=abcd\n"
        "-----END PGP PRIVATE KEY BLOCK-----"
    )
    assert MASKING.redact(pgp) == "[PRIVATE_KEY]"
    public = f"-----BEGIN PGP PUBLIC KEY BLOCK-----\n\n{lines}-----END PGP PUBLIC KEY BLOCK-----"
    assert MASKING.redact(public) == public


def signed(claims: dict[str, object]) -> str:
    parts = (
        json.dumps({"alg": "HS256", "typ": "JWT"}),
        json.dumps(claims),
        "a signature of 32 bytes, or so it",
    )
    return ".".join(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts)


@pytest.mark.req("MESH-129")
@given(
    st.dictionaries(
        st.text(min_size=1, max_size=6),
        st.text(max_size=12) | st.integers(),
        min_size=1,
        max_size=4,
    )
)
def test_any_signed_token_is_gone(claims: dict[str, object]) -> None:
    token = signed(claims)
    for text in (
        f"token {token} expired",
        f"Authorization: Bearer {token}",
        f"https://x.org/?t={token}&a=1",
        f'{{"jwt": "{token}"}}',
    ):
        assert token not in MASKING.redact(text)
        assert "[JWT]" in MASKING.redact(text)


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    ("text", "redacted"),
    [
        ("Authorization: Bearer abcdef", "Authorization: Bearer [TOKEN]"),
        ("authorization: basic dXNlcjpwYXNz", "authorization: basic [TOKEN]"),
        ("Authorization: Token 9944b09199c62bcf", "Authorization: Token [TOKEN]"),
        ("-H 'Authorization: Bearer abc.def-123'", "-H 'Authorization: Bearer [TOKEN]'"),
        ("send bearer 9944b09199c62bcf9418.", "send bearer [TOKEN]."),
        ("curl -u ann:s3cret! https://x.org", "curl -u ann:[SECRET] https://x.org"),
        ("https://ann:s3cret@x.org/a", "https://[CREDENTIALS]@x.org/a"),
        ("redis://:p4ss@cache:6379/0", "redis://[CREDENTIALS]@cache:6379/0"),
        ("postgresql://ann:p@ss@db/x", "postgresql://[CREDENTIALS]@db/x"),
    ],
)
def test_headers_and_addresses_lose_their_credentials_only(text: str, redacted: str) -> None:
    assert MASKING.redact(text) == redacted


HEX = st.text("0123456789abcdef", min_size=32, max_size=64).filter(
    lambda value: len(value) % 2 == 0
)


@pytest.mark.req("MESH-129")
@given(HEX)
def test_long_hex_is_a_secret_only_where_it_is_called_one(value: str) -> None:
    for said in ("the signing key is {}", "hmac secret: {}", "a token, {}", "seed 0x{}"):
        assert value not in MASKING.redact(said.format(value))
    for said in (
        "commit {}",
        "sha256:{}",
        "{}",
        "{}  secret.txt",
        "the key's fingerprint is {}",
        "image@sha256:{}",
        "trace_id={}",
        "block_hash;{};",
    ):
        assert find(said.format(value)) == []


def test_a_uuid_is_a_key_only_where_it_is_called_one() -> None:
    uuid = "01234567-89ab-4cde-8f01-23456789abcd"
    assert MASKING.redact(f"HEROKU_API_KEY={uuid}") == "HEROKU_API_KEY=[API_KEY]"
    assert MASKING.redact(f"id={uuid}, primary key {uuid}") == f"id={uuid}, primary key {uuid}"


@pytest.mark.req("MESH-129")
def test_a_very_long_secret_is_gone_to_its_end() -> None:
    long = "a1B2" * 2000
    for text in (f'api_key = "{long}"', f"api_key={long} next", f"password: {long}"):
        assert "a1B2" not in MASKING.redact(text)
