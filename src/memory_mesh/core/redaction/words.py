"""Words about secrets: what is called one, and what stands where a secret could stand but is none.

The lists are data. A placeholder, a type, a word such as `required` and a call that fetches the secret stay readable.
"""

import re

from memory_mesh.core.redaction.pattern import listed
from memory_mesh.core.text import LazyRegex

# How a secret is called, by how much its value may look like an ordinary word.
PASSWORDS = (
    r"pass[\s_-]?(?:word|phrase|code)|passwd|pwd|(?<=[_-])pass|(?<=[a-z])(?-i:Pass)|passwort|kennwort|contrase[nñ]a|mot\sde\spasse|senha|wachtwoord|has[lł]o"
    r"|пароль|密码|密碼|パスワード|비밀번호"
)
TOKENS = (
    r"secret(?:[\s_-]?(?:access)?[\s_-]?key)?|token|credentials?"
    r"|(?:api|app|access|auth|private|client|consumer|encryption|signing|master|account|service|shared|storage|license|ssh|deploy|webhook|session|hmac)"
    r"[\s_-]?key"
)
STEMS = listed(
    "pass pwd secret token key credential kennwort contrase senha wachtwoord haslo hasło пароль 密码 密碼 パスワード 비밀번호"
)

# Values that are no secrets: states, types, keywords, words of sentences. Compared in lower case.
NO_SECRET = frozenset(
    listed("""
    none null nil undefined true false yes no on off empty blank unset missing absent n/a na unknown default optional required
    mandatory string str text int integer number float bool boolean bytes bytearray object any dict list array map void char
    varchar varchar2 uuid date datetime secretstr union self this new await async lambda yield not return input process.env
    os.environ env raise pass continue break print assert import try with def class del global exit throw
    password passwd pwd passphrase passcode secret token tokens key apikey api_key credential credentials user username login
    email invalid valid incorrect correct wrong right expired expiring revoked rejected accepted refused blocked leaked exposed
    compromised changed reset updated rotated set saved stored hashed encrypted salted masked hidden shown redacted protected
    too not now also only never always still already here there below above see the a an your my our his her their its it is was
    are be and or but if then so to for from in into at by with without of as that this which who what when where why how
    must should may can could will would has have had needs need weak strong long short safe unsafe secure insecure simple
    complex unique same different important easy hard old current temporary permanent confidential private public shared
    case-sensitive generated stdin prompt file vault keychain keyring environment variable config settings management manager
    policy protection field fields rotation hash hashing strength length based authentication auth oauth bearer basic jwt refresh
    access session cookie csrf bcrypt argon2 argon2i argon2id scrypt pbkdf2 md5 sha1 sha-1 sha256 sha-256 sha512 sha-512 hs256
    rs256 es256 aes-256 aes256 oauth2 oauth2.0 utf-8 utf8 base64 base32 2fa mfa totp ed25519 rsa rsa2048 rsa-2048 x509 x.509
    """)
)
# Words of labels and messages about passwords.
LABELS = frozenset(
    listed("""
    password passwords passwd passphrase your my enter must should required invalid incorrect wrong forgot forgotten reset confirm
    confirmation field is are was the please not too short weak change changed new at least characters here value needed provided
    for with cannot
    """)
)
_NO_SECRET_ENDING = LazyRegex(r"[a-z]{2,}(?:ed|ing|able|ible|ful|less|ously|ly|ment|tion|ness|ive|ous|ant|ent)")
_PLACEHOLDER = LazyRegex(
    r"<.{0,64}>|\$[A-Za-z_]+|\$[({].{0,200}|\{[{%].{0,200}|\{.{0,200}\}|\[.{0,200}\]|\(.{0,200}\)"
    r"|%s|%\(\w{1,40}\)s|%[A-Z_]{1,40}%|[*x•·.…#_X?-]{3,64}|[!@&][a-z_]{1,40}|\\.{0,4}"
    r"|(?:your|insert|enter|put|replace|example|placeholder|dummy|todo|redacted|fake|sample)(?:[-_. ].{0,64}|[A-Z].{0,64})?"
    r"|.{0,64}[-_](?:here|placeholder|example)",
    re.DOTALL,
)
# What fetches a secret or points to it.
_REFERENCE = LazyRegex(
    r"os\.|process\.env|env[.:(\[]|environ|getenv|config[.\[(]|settings[.\[(]|secrets?[.\[(]|vars?\.|data\.|self\.|this\.|ctx\.|params?[.\[]"
    r"|request\.|req\.|vault:|op://|arn:|ref\+|file:|secret://|sm://|projects/|/|\./|~/|https?://",
    re.IGNORECASE,
)


def placeholder(value: str) -> bool:
    """Does the value only stand for a secret: a variable, a template, stars, `<token>`, a mask of ours?"""
    short = value.strip("\"'`")
    return not short or bool(_PLACEHOLDER.fullmatch(short) or _REFERENCE.match(short))


def plain_word(value: str) -> bool:
    """Is it a word that tells about a secret, such as `required`, `str` or `expired`?"""
    low = value.lower().rstrip(".,;:!?")
    return low in NO_SECRET or bool(_NO_SECRET_ENDING.fullmatch(low))
