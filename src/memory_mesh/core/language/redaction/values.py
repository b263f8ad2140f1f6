"""Find the names of secrets, where their values end, and whether a value is really a secret."""

import re
from dataclasses import dataclass
from itertools import pairwise
from string import ascii_lowercase

from memory_mesh.core.language.redaction.pattern import Span, listed, stems_of
from memory_mesh.core.text import LazyRegex

# --- secret or not ---

# Values that are not secrets: states, types, keywords, words of sentences. Compared in lower case.
_NOT_SECRET = frozenset(
    listed("""
    none null nil undefined true false yes no on off empty blank unset missing absent n/a na unknown
    default optional required mandatory string str text int integer number float bool boolean bytes
    bytearray object any dict list array map void char varchar varchar2 uuid date datetime secretstr
    union self this new await async lambda yield not return input process.env os.environ env raise
    pass continue break print assert import try with def class del global exit throw mut var let
    const password passwords passwd pwd passphrase passcode secret secrets token tokens key keys
    apikey api_key credential credentials user username login email invalid valid incorrect correct
    wrong right expired expiring revoked rejected accepted refused blocked leaked exposed
    compromised changed reset updated rotated set saved stored hashed encrypted salted masked hidden
    shown redacted protected too not now also only never always still already here there below above
    see the a an your my our his her their its it is was are be and or but if then so to for from in
    into at by with without of as that this which who what when where why how must should may can
    could will would has have had needs need weak strong long short safe unsafe secure insecure
    simple complex unique same different important easy hard old current temporary permanent
    confidential private public shared case-sensitive generated stdin prompt file vault keychain
    keyring environment variable config settings management manager policy protection field fields
    rotation hash hashing strength length based authentication auth oauth bearer basic jwt refresh
    access session cookie csrf bcrypt argon2 argon2i argon2id scrypt pbkdf2 md5 sha1 sha-1 sha256
    sha-256 sha512 sha-512 hs256 rs256 es256 aes-256 aes256 oauth2 oauth2.0 utf-8 utf8 base64 base32
    2fa mfa totp ed25519 rsa rsa2048 rsa-2048 x509 x.509 latin1 latin-1 ascii utf-16 cp1252
    iso-8859-1
    passwort kennwort contraseña wachtwoord senha value values data line word words result response
    arg args argv param params random plain raw expire something nothing anything everything else
    falsch richtig abgelaufen ungültig gültig leer kurz lang schwach sicher unsicher erforderlich
    nötig notwendig geändert vergessen bekannt unbekannt gleich zu nicht noch jetzt hier immer
    unverändert verschlüsselt gespeichert incorrecte valide invalide obligatoire expiré oublié trop
    faible fort court requis vide inconnu changé erroné nécessaire incorrecta incorrecto obligatoria
    obligatorio inválida inválido válida válido errónea caducada correcta débil segura corta
    necesaria requerida muy demasiado la el que una
    errata errato sbagliata scaduta obbligatoria corretta sicura troppo debole necessaria
    incorreta obrigatória expirada correta fraca segura curta muito
    onjuist verkeerd verlopen verplicht ongeldig geldig vergeten onveilig veilig niet vereist
    wymagane nieprawidłowe błędne poprawne słabe krótkie wygasło nesprávné povinné krátké yanlış
    hatalı gerekli zorunlu geçersiz saknas glömt krävs okänt mangler glemt kreves puuttuu brak chybí
    hiányzik eksik lipsește отсутствует требуется greșită incorectă obligatorie fel felaktigt
    forkert påkrævet väärin pakollinen неправилен обязательно длинный короткий неверный верный
    правильный обязателен забыт изменён неправильный
    """)
)
# Words of labels and messages about passwords. One of the second group alone may also be part of a
# passphrase.
_LABELS = frozenset(
    listed("""
    password passwords passwd passphrase passwort kennwort contraseña senha wachtwoord enter must
    should required invalid incorrect wrong forgot forgotten reset confirm confirmation field please
    characters needed provided cannot passe
    """)
)
_WEAK_LABELS = frozenset(
    listed(
        "your my is are was the not too short weak change changed new at least here value for with"
    )
)
_NOT_SECRET_ENDING = LazyRegex(
    r"[a-z]{2,}(?:ed|ing|able|ible|ful|less|ously|ly|ment|tion|ness|ive|ous|ant|ent)"
)
_PLACEHOLDER = LazyRegex(
    r"<.{0,64}>|\$[A-Za-z_]+|\$[0-9]|\$[({].{0,200}|[#%]\{.{0,200}\}#?|\{[{%].{0,200}|\{.{0,200}\}|"
    r"\[.{0,200}\]|\(.{0,200}\)|&lt;.{0,64}&gt;|&'[a-z]{1,20}|\*(?:const|mut)|"
    r":(?:[a-z]{1,12}:){1,2}(?:`.{0,200})?|/\^.{0,200}|…{1,64}|(?i:change[-_]?(?:me|this))!?|"
    r"(?i:see|ask|use|from)[-_](?:the[-_])?(?:vault|env|keychain|keyring|wiki|docs?|readme|notes?|"
    r"below|above|files?|config|secrets?|manager|admin|ops|it|1password|lastpass|bitwarden)"
    r"|%s|%\(\w{1,40}\)s|%[A-Z_]{1,40}%|[:/]?[*x•·.…#_X?●-]{3,64}|[!@&:][a-z_]{1,40}|\\.{0,4}"
    r"|(?i:your|insert|enter|put|replace|example|placeholder|dummy|todo|redacted|fake|"
    r"sample)(?:[-_. ].{0,64}|[A-Z].{0,64})?|.{0,64}[-_](?:here|placeholder|example|"
    r"(?i:change[-_]?me)|[xX*•.]{4,64})"
    # ghp_xxxx, sk-ant-…, xoxb-your-token.
    r"|[a-z]{2,8}[-_](?:(?:ant|proj|live|test|or|v1)[-_])?(?:your[-_].{0,64})?",
    re.DOTALL,
)
# Expressions that fetch a secret or point to it.
_REFERENCE = LazyRegex(
    r"(?i)os\.(?:env|get)|process\.env|env[.:(\[]|environ|getenv|config[.\[(]|settings[.\[(]|"
    r"secrets?[.\[(]|vars?\.|data\.|self\.|this\.|ctx\.|params?[.\[]|args\.|local\.|request\.|"
    r"req\.|vault:|op://|arn:|ref\+|file:|secret://|sm://|projects/|/(?:run|etc|var|home|opt|usr|"
    r"tmp|root|mnt|srv|data|secrets?|app)/|\./|~/|https?://|\$_|@"
)
_FILE = LazyRegex(
    r"[^\s;&]{1,120}\.(?:py|js|ts|json|ya?ml|toml|txt|md|pem|key|crt|env|cfg|ini|conf|sh|html?|go|"
    r"rs|java)"
)
_LETTER = LazyRegex(r"[^\W\d_]")
_MARKED = LazyRegex(r"[\d!@#$%^&*~?;(](?:(?<=\d)|(?!$))")
DOTTED = LazyRegex(r"[A-Za-z_]\w{0,30}(?:(?:\.|->|::)[A-Za-z_]\w{0,30}){1,8}")
# A name of a variable made of words about secrets: `new_password`, `authToken`, `user_input`.
_VARIABLE = LazyRegex(
    r"(?i)[a-z0-9_]{0,24}(?:password|passwd|pwd|passphrase|secret|token|credential|input|apikey|"
    r"api_key|private_?key|passwort)s?[a-z_]{0,12}"
)
MAX_BARE = 256


def placeholder(value: str) -> bool:
    """Return whether the value only stands for a secret: a variable, a template, stars,
    `<token>`, a mask."""
    short = value.strip("\"'`")
    return not short or bool(_PLACEHOLDER.fullmatch(short) or _REFERENCE.match(short))


def plain_word(value: str) -> bool:
    """Return whether the value is a word about a secret, such as `required`, `str` or `expired`."""
    low = value.lower().rstrip(".,;:!?")
    return low in _NOT_SECRET or bool(_NOT_SECRET_ENDING.fullmatch(low))


def variable(value: str) -> bool:
    """Return whether the value is the name of a variable that contains a secret."""
    return (
        bool(_VARIABLE.fullmatch(value) or DOTTED.fullmatch(value))
        and sum(map(str.isdigit, value)) <= 1
    )


_CONSTANT = LazyRegex(r"[A-Z]{1,24}(?:_[A-Z]{1,24}){1,12}")
_CALL = LazyRegex(r"[A-Za-z_$][\w.:>$-]{0,60}(?:\(|\[)")


def called(value: str) -> bool:
    """Return whether the value is a call or an index, perhaps cut off inside its arguments."""
    return _CALL.match(value) is not None and (
        value[-1] in ")]" or value.count("(") > value.count(")") or ")." in value
    )


def looks_secret(value: str, *, min_length: int = 6) -> bool:
    """Return whether the characters are not a word: letters with digits, or with marks or
    capitals unlike a word's."""
    if (
        len(value) < min_length
        or placeholder(value)
        or plain_word(value)
        or _is_file(value)
        or not _LETTER.search(value)
    ):
        return False
    if _MARKED.search(value):
        return True
    return (
        len(value) >= 12
        and value.isalpha()
        and sum(a.islower() != b.islower() for a, b in pairwise(value)) > 0.4 * len(value)
    )


def _is_file(value: str) -> bool:
    return "." in value[-6:] and _FILE.fullmatch(value) is not None


def random_looking(value: str, *, min_length: int = 16) -> bool:
    """Return whether the value is a long run of mixed letters and digits, as only a key is."""
    core = value.rstrip("=")
    digits = sum(map(str.isdigit, core))
    return (
        len(core) >= min_length
        and 2 <= digits < len(core)
        and re.fullmatch(r"[A-Za-z0-9+/_~.-]+", core) is not None
    )


def noisy(value: str) -> bool:
    """Return whether sixteen or more characters with several kinds of marks are a generated
    secret."""
    return (
        len(value) >= 16
        and len(value.split()) < 3
        and len(set(value) & set("!@#$%^&*()|<>{}~[]?;")) >= 3
        and any(map(str.isalnum, value))
    )


def quoted_secret(value: str, *, password: bool, token_word: bool = False) -> bool:
    """Return whether a quoted value with a name of a secret is one. `token_word` is set for the
    bare name `token`."""
    if placeholder(value) or plain_word(value) or len(value) < 3 or _is_file(value):
        return False
    if " " in value.strip():
        # Several words may be a passphrase, unless they are a label or a message.
        parts = value.split()
        words = [part.lower().strip(".,:!?") for part in parts]
        labelled = (
            any(word in _LABELS for word in words)
            or sum(word in _WEAK_LABELS for word in words) > 1
        )
        labelled = labelled or all(map(plain_word, words))  # "too easy"
        return (
            (password or looks_secret(value))
            and len(parts) <= 8
            and not labelled
            and parts[-1][-1] not in ".?:"
        )
    if looks_secret(value):
        return not (DOTTED.fullmatch(value) and variable(value))
    if DOTTED.fullmatch(value) or variable(value) or (not password and _CONSTANT.fullmatch(value)):
        return False
    if value.replace("-", "").replace("_", "").isalpha():
        # One word may be a password, and a long one a secret. `token` is also a term of grammars
        # and language models.
        return (
            password or len(value) >= 20 or (len(value) >= 8 and value.isalpha() and not token_word)
        )
    return password or len(value) >= 8


# --- where a value starts ---

_ELSE = LazyRegex(
    r"[^\n;\"'=]{1,80}?(?:[(\[][\"'][^\"'\n]{0,60}[\"'][)\]])?[^\n;\"'=]{0,40}?(?:\|\||\sor\s|\?\?|"
    r"\?:)\s{0,3}(?=[\"'`])"
)
_ELSE_MARK = LazyRegex(r"(?:\|\||\sor\s|\?\?|\?:)\s{0,3}[\"'`]")
_ELSE_CHARS = 192  # how far `_ELSE` reaches


def fallback(text: str, at: int) -> re.Match[str] | None:
    """Match the operator before the literal that an expression falls back to:
    `os.environ.get("X") or "…"`."""
    near = text[at : at + _ELSE_CHARS]
    # `_ELSE` tries every split of what it reads. So first its quote and its mark are looked for.
    if not ('"' in near or "'" in near or "`" in near) or not _ELSE_MARK.search(near):
        return None
    return _ELSE.match(text, at)


# --- where a value ends ---

_PAIRS = {
    "«": "»",
    "“": "”",
    "„": "“",
    "‘": "’",
    "「": "」",
    "『": "』",
    "‹": "›",
    "&quot;": "&quot;",
}
_PAIRS |= {
    opening: opening[-1:].translate(str.maketrans("({[", ")}]"))
    for opening in ("q(", "q{", "q[", "qq(", "qq{", "qq[")
}
_PAIRS |= {"[[": "]]", '<<"': '">>'}  # Lua, Erlang
OPENING_QUOTES = tuple("\"'`«“„‘「『")
_OPENING = LazyRegex(
    r"(?:[brufLN@$]{1,2}(?=[\"'])|r#{0,2}(?=\"))?(\\{0,7})(\"\"\"|'''|[\"'`«“„‘「『‹]|&quot;|"
    r"(?<![\w])qq?[({\[]|\[\[|<<\")"
)
_JOINED = LazyRegex(
    r"\\?['\"](?=[^\s,;)}\]:=])|[ \t]{0,4}(?:\+|\.{1,2}|&|<>|\+\+)(?:[ \t]|\\?\n){0,16}(?=[\"'])"
)
_SEPARATOR = LazyRegex(r"[:=,(]\s{0,4}$|[,;]\s")
_MAX_QUOTED = 8192


def quoted(text: str, at: int) -> tuple[Span, int] | None:
    """Return the span inside a quoted value and the offset behind its closing quote.

    Quotes that are escaped or doubled inside belong to the value, and so do further parts joined to
    it.
    """
    opening = _OPENING.match(text, at)
    if opening is None:
        return None
    start, end = opening.end(), _closing(text, opening)
    if end is None or end == start:
        return None
    after = end + len(opening[1]) + len(_PAIRS.get(opening[2], opening[2]))
    for _ in range(16):
        link = _JOINED.match(text, after)
        glued = link is not None and link[0] in ("'", '"')
        part = _OPENING.match(text, after if glued else link.end()) if link else None
        stop = _closing(text, part) if part else None
        if part is None or stop is None:
            break
        end, after = stop, stop + len(part[1]) + len(_PAIRS.get(part[2], part[2]))
    return (start, end), after


def _closing(text: str, opening: re.Match[str]) -> int | None:
    """Return where the closing quote is, or None. Only marks of three characters may enclose
    several lines."""
    escape, quote = opening[1], opening[2]
    close, at = escape + _PAIRS.get(quote, quote), opening.end()
    limit = min(len(text), at + _MAX_QUOTED)
    line = text.find("\n", at, limit) if len(quote) != 3 else -1
    limit = line if line >= 0 else limit
    while True:
        end = text.find(close, at, limit)
        if end < 0:
            return None
        before = text[max(at, end - 8) : end]
        slashes = len(before) - len(before.rstrip("\\"))
        if slashes % 2 if not escape else slashes:  # an escaped quote
            at = end + len(close)
        elif (
            not escape
            and quote in "'\""
            and text[end + 1 : end + 2] == quote
            and _doubled(text, end, limit)
        ):
            at = end + 2
        elif (
            text[end + len(close) : end + len(close) + 1].isalnum()
            and quote in "'\""
            and _closed_later(text, end + 1, close, limit)
        ):
            at = end + 1  # a quote inside the value that is not escaped
        else:
            return end


def _closed_later(text: str, at: int, close: str, limit: int) -> bool:
    """Return whether a quote follows that can be the closing one, because no letter or digit
    stands behind it."""
    end = text.find(close, at, limit)
    return (
        end >= 0
        and not text[end + len(close) : end + len(close) + 1].isalnum()
        and not _SEPARATOR.search(text, at, end)
    )


def _doubled(text: str, end: int, limit: int) -> bool:
    """Return whether a doubled quote stands for one quote: something of the value follows, and
    then a quote."""
    following = text[end + 2 : end + 3]
    return (
        following not in ("", "\n", " ", ",", ";", ")", text[end])
        and text.find(text[end], end + 2, limit) > 0
    )


_CUT = LazyRegex(
    r"&(?:amp;)?[\w.%\[\]-]{1,40}=|;\s?[A-Za-z][\w ]{0,24}=|[,|][\w.-]{1,40}\s?[=:](?!/)|</|"
    r"<[a-z!]|&lt;/|[,;](?=$)|\\[nrt](?![\w])|\\?$"
)
_CUT_CHAR = LazyRegex(r"[&;,|<\\]")
# The first word of a part of a connection string that has two: `;User Id=`, and not `;pw ip=`.
_NEXT_PART = LazyRegex(
    r";(?:[A-Z][A-Za-z]{0,24}|user|data|initial|integrated|trusted|persist|max|min|ssl|"
    r"connect(?:ion)?)$"
)
_EQUALS = LazyRegex(r" [A-Za-z]{1,24} ?=")
_DIGIT = LazyRegex(r"\d")
_LAST_OF_LINE = LazyRegex(r";(?=[ \t]{0,8}(?:\r?\n|$))")
_WIDE = LazyRegex(
    r"[\u3000-\u303f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uff01\uff08\uff09\uff0c\uff1a\uff1b\uff"
    r"1f]"
)
_WORD = LazyRegex(r"\S{1,256}")
_REST = LazyRegex(r"\S*+")
# The first word of a tuple, a list or a dictionary in code: `(start`, `[asdict(one)`,
# `{**data(one)`.
_LITERAL = LazyRegex(r"[(\[{]{1,2}\*{0,2}[A-Za-z_][A-Za-z_.]{1,40}(?:\([A-Za-z_.]{0,40}\)?)?")
_BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))


def bare(text: str, at: int, name_start: int) -> Span | None:
    """Return the span of an unquoted value, or None for a placeholder.

    It ends at a blank, at the next `&name=` or `;name=`, at the quote that encloses the whole
    assignment, or at closing marks.
    """
    found = _WORD.match(text, at)
    if found is None:
        return None
    value = found[0]
    if value.isalnum() and value.isascii():
        return None if placeholder(value) else found.span()
    head = text[line_start(text, name_start) : name_start]
    for quote in "\"'`":
        if quote in value and is_open(head, quote):
            value = value[: value.index(quote)].rstrip("\\")
    if head[-1:] in ("?", "&"):
        value = re.split("[&#]", value, maxsplit=1)[0]
    if _NEXT_PART.search(value) and _EQUALS.match(text, at + len(value)):  # Password=x;User Id=y
        value = value[: value.rindex(";")]
    value = _cut(value, head)
    if not value.isascii() and value[:1] < "\u3000" and (wide := _WIDE.search(value)):
        value = value[: wide.start()]
    value = _trimmed(value)
    if placeholder(value) or _LITERAL.fullmatch(value):
        return None
    # Behind `name = value` it ends a statement. A line of prose or of YAML does not end with it, so
    # that it belongs to the value.
    assigned = text[max(0, at - 8) : at].rstrip(" \t").endswith("=")
    more = not assigned and _DIGIT.search(value) and _LAST_OF_LINE.match(text, at + len(value))
    return at, at + len(value) + bool(more)


def _cut(value: str, head: str) -> str:
    if _CUT_CHAR.search(value) and (cut := _CUT.search(value)):
        value = value[: cut.start()]
    if "](" in value and "[" in head + value[:1]:  # [password: x](https://example.org)
        value = value[: value.index("](")]
    return value


def line_start(text: str, at: int) -> int:
    """Return where the line of this offset starts, at most 256 characters before it."""
    low = max(0, at - 256)
    return max(low, text.rfind("\n", low, at) + 1)


def is_open(head: str, quote: str) -> bool:
    """Return whether a quote was opened in the line before the name and not closed. Apostrophes
    do not count."""
    if quote == "'":
        head = re.sub(r"(?<=\w)'(?=\w)", "", head)
    return head.count(quote) % 2 == 1


def _trimmed(value: str) -> str:
    value = value.rstrip(".,:?…*;")
    for opening, closing in _BRACKETS:
        while value.endswith(closing) and value.count(opening) < value.count(closing):
            value = value[:-1].rstrip(".,:?;")
    if value[-1:] in ("'", '"', "`") and value.count(value[-1]) % 2:
        value = value[:-1]
    return value


def extended(text: str, span: Span) -> Span:
    """Extend a value that is longer than `bare` reads to its end."""
    if span[1] - span[0] < MAX_BARE:
        return span
    rest = _REST.match(text, span[1])
    return span[0], rest.end() if rest else span[1]


# --- names ---
# `DB_PASSWORD`, `clientSecret`, `api key`, `Passwort`, `密码`

# The value of a password may look like an ordinary word, the value of a token may not; a PIN
# consists of digits.
_PASSWORDS = (
    r"pass[\s_-]?(?:word|phrase|wd|code)|passwor[dt]|passwd|p/w|pwd|(?<![^\W_])pw(?![^\W_])|"
    r"(?<=[_-])pass(?![a-z])|(?<![^\W_])(?-i:[Pp]ass)(?=[\"']?\s?[:=]|\sis\s)|(?<=[a-z])(?-i:Pass|"
    r"Pw|Pwd)(?![a-z])|(?<=require)pass|(?<=store)pass(?![a-z])|(?<=key)pass(?![a-z])|"
    r"(?<=[a-z])pass(?=[\"']?\s?[:=])|psk(?![a-z])|(?<=mot\sde\s)passe|kennwort|contrase[nñ]a|"
    r"(?<![^\W_])mdp(?![^\W_])|senha|(?<=palavra-)passe|wachtwoord|has[lł]o(?![a-z])|парол[ьяюе]|"
    r"密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|şifre(?:m|n|si|niz)?|lösenord(?:et)?|"
    r"adgangskoden?|passord(?:et)?|heslo(?![a-z])|jelsz[óa]v?\w{0,3}|salasana(?:ni|si)?|parola(?:m|"
    r"n|nız)?(?![a-z])|κωδικός|סיסמה|كلمة المرور|पासवर्ड|mật khẩu|kata sandi"
    r"|รหัสผ่าน"
)
_TOKENS = (
    r"secret(?:[\s_-]?(?:access)?[\s_-]?key(?:[\s_-]base)?)?|token|credentials?|"
    r"(?<![^\W_])creds?(?![^\W_])|authkey|(?<=master)auth|key|(?<=_)salt(?![a-z_])|"
    r"(?<![^\W_])clave(?![^\W_])|(?<=[:_\"'])_?auth(?=[\"']?\s?[:=])"
)
_PINS = (
    r"pinコード|(?<![^\W_])pins?(?:[\s-]?(?:code|number|nummer))?(?![^\W_])|passcode|"
    r"(?<![^\W_])otp(?![^\W_])|暗証番号|验证码|驗證碼|認証コード|인증번호|geheimzahl|code\s(?:pin|"
    r"secret|d['’]accès|de\s(?:la\s|l['’])?(?:porte|sécurité|entrée|alarme))|código\s(?:pin|"
    r"d[oa]\s(?:alarme|porta|portão|cofre)|de\s\w{4,12})|codice\s(?:pin|segreto|dell(?:a\s|"
    r"['’])(?:cassaforte|allarme|porta)|di\s\w{4,12})|code(?![^\W_])|(?<![^\W_])cv[vc]2?(?![^\W_])|"
    r"пин(?:-?код[аы]?)?(?:\s(?:от\s)?карт[ыа])?(?![^\W_])|(?<![^\W_])puk(?![^\W_])|"
    r"kartenprüf(?:nummer|ziffer)|combination(?![^\W_])"
)
# `key` and `code` are names of secrets only after one of these words.
_KEYS = listed("""
    api app access auth private priv client consumer encryption signing master account service
    shared storage license ssh deploy webhook session hmac db database wifi wi-fi wlan wpa wpa2
    network jwt crypto admin root sas function recovery secret
""")
_CODES = listed("""
    backup safe's alarm door gate entry unlock security safe lock garage verification one-time 2fa
    mfa login access confirmation authentication zugangs tür sicherheits bestätigungs entsperr
    freischalt toegangs
""")
# `dbpass=` is a password, `lowpass=` is a filter.
_GLUED = listed("""
    db database user usr my root admin ssh smtp imap pop mail email ftp sftp pg postgres sql mysql
    mongo redis wifi wlan login bind ldap proxy sudo become vault store trust cert auth svc service
    app web api http mqtt rabbit vnc rdp vpn kafka new old require key
""")
STEMS = stems_of("""
    pass pw p/w secret token key cred kennwort contrase senha wachtwoord haslo hasło parol парол
    密码 密碼 口令 パスワード 비밀번호 패스워드 암호 şifre lösenord adgangskode heslo salasana
    κωδικό סיסמה पासवर्ड mật_khẩu kata_sandi รหัสผ่าน كلمة_المرور mdp psk clave auth pin otp 暗証番号
    验证码 驗證碼 認証コード 인증번호 code geheimzahl código codice jelsz salt cvv cvc kartenprüf
    combination пин puk 비번
""")
_NAME = LazyRegex(rf"(?P<pin>{_PINS})|(?P<pw>{_PASSWORDS})|(?P<tk>{_TOKENS})", re.IGNORECASE)
# After one of these words, it is the name of something else: `max_tokens`, `primary key`,
# `compass`.
_OTHER = frozenset(
    listed("""
    pad eos bos unk sep cls mask max min num next prev previous page continuation sync stop special
    primary public cache sort partition foreign no not without host total prompt completion input
    output per by hot short
    """)
)
# Tokens that identify a request or a place in a list and give no access.
_OTHER_TOKENS = frozenset(listed("idempotency lock change starting start cursor pagination"))
_OTHER_START = frozenset(listed("com tres sur tur mon don by"))
# A name goes on after the secret's word: `password_hash` is not a password, `PASSWORD_PROD` is.
# bounded: _token_token…
_TAIL = LazyRegex(r"(?:s(?![A-Za-z]))?(?:[A-Z0-9][A-Za-z0-9]{0,40}|[_-][A-Za-z0-9]{1,40}){0,12}")
_TAIL_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_ABOUT = frozenset(
    listed("""
    hash hashes hashed hasher hashers length len min max policy field fields file files path dir
    name names id ids type types url uri expiry expires expired expire lifetime ttl age count limit
    hint reset strength prompt label regex pattern env ref version rotation algorithm algo alg
    endpoint header prefix suffix required enabled disabled enable stdin manager validator
    validators input form page error errors message protected encryption authentication auth encoder
    authenticator timeout bucket tokens index less provider source callback change changed update
    updated salt bits size format store storage scope scopes issuer audience kind mode status state
    last at in on by for map list set table column ring board word words pair fingerprint ary izer
    izers ization
    """)
)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a secret in a text. `longer` and `plural` say how it goes on after the
    secret's word."""

    kind: str
    word: str
    start: int
    end: int
    longer: bool
    plural: bool

    @property
    def is_password(self) -> bool:
        return self.kind == "pw"

    @property
    def is_key(self) -> bool:
        """Return whether it is only called a key, which many harmless values are."""
        return self.word in ("key", "auth", "salt")

    @property
    def is_vague(self) -> bool:
        """Return whether only a value that looks random belongs to it."""
        return self.is_key or (self.longer and not self.is_password)


def _is_other_token(text: str, found: re.Match[str], before: str) -> bool:
    return (
        before in _OTHER_TOKENS
        and found[0].lower() == "token"
        and not text.startswith(" to ", found.end())
    )  # "change token to …"


def name_at(text: str, place: int) -> Name | None:
    """Return the name of a secret that starts at a place."""
    found = _NAME.match(text, place)
    return _named(text, found) if found else None


def _named(text: str, found: re.Match[str]) -> Name | None:
    """Return the name, or None if the words before or after it say that it is something else."""
    start, word = found.start(), found[0].lower()
    before = text[max(0, start - 16) : start].lower()
    stripped = before.rstrip(" _-")
    if (
        word == "pass"
        and found[0].islower() == before[-1:].islower()
        and before[-1:].isalpha()
        and not before.endswith(_GLUED)
    ):
        return None
    if word in ("key", "code", "combination"):
        owner = stripped.endswith(_KEYS if word == "key" else _CODES)
        if not owner and not (found[0] == "KEY" and before[-1:] == "_"):
            return None
        word = f"api {word}" if owner else word
    last = stripped[len(stripped.rstrip(ascii_lowercase)) :]
    if (
        last in _OTHER
        or (last in _OTHER_START and stripped == before)
        or _is_other_token(text, found, last)
    ):
        return None
    if (
        word == "secret" and before[-1:] == ":" and before[-2:-1].isdigit()
    ):  # arn:aws:secretsmanager:eu-west-1:123456789012:secret:name
        return None
    tail = _TAIL.match(text, found.end()) if word.isascii() else None  # 密码123789
    rest, end = (tail[0], tail.end()) if tail else ("", found.end())
    words = _TAIL_WORD.findall(rest) if rest else []
    if any(part.lower() in _ABOUT for part in words) or (
        text[end : end + 1].isalpha() and text[end] < "\u0e00"
    ):
        return None
    longer = any(part != "s" and not part.isdigit() for part in words)
    return Name(found.lastgroup or "", word, start, end, longer, rest[:1] == "s")
