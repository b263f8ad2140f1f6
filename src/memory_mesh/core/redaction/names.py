"""Names of secrets in a text: `DB_PASSWORD`, `clientSecret`, `api key`, `Passwort`, `密码`."""

import re
from dataclasses import dataclass
from string import ascii_lowercase

from memory_mesh.core.redaction.pattern import listed, stems_of
from memory_mesh.core.text import LazyRegex

# The value of a password may look like an ordinary word, the value of a token may not; a PIN consists of digits.
_PASSWORDS = (
    r"pass[\s_-]?(?:word|phrase|wd|code)|passwor[dt]|passwd|p/w|pwd|(?<![^\W_])pw(?![^\W_])|(?<=[_-])pass(?![a-z])"
    r"|(?<![^\W_])(?-i:[Pp]ass)(?=[\"']?\s?[:=]|\sis\s)|(?<=[a-z])(?-i:Pass|Pw|Pwd)(?![a-z])|(?<=require)pass|(?<=store)pass(?![a-z])"
    r"|(?<=key)pass(?![a-z])|(?<=[a-z])pass(?=[\"']?\s?[:=])|psk(?![a-z])|(?<=mot\sde\s)passe|kennwort|contrase[nñ]a|(?<![^\W_])mdp(?![^\W_])|senha"
    r"|(?<=palavra-)passe|wachtwoord|has[lł]o(?![a-z])|парол[ьяюе]|密码|密碼|口令|パスワード|비밀번호|비번|패스워드|암호|şifre(?:m|n|si|niz)?|lösenord(?:et)?"
    r"|adgangskoden?|passord(?:et)?|heslo(?![a-z])|jelsz[óa]v?\w{0,3}|salasana(?:ni|si)?|parola(?:m|n|nız)?(?![a-z])|κωδικός"
    r"|סיסמה|كلمة المرور|पासवर्ड|mật khẩu|kata sandi"
    r"|รหัสผ่าน"
)
_TOKENS = (
    r"secret(?:[\s_-]?(?:access)?[\s_-]?key(?:[\s_-]base)?)?|token|credentials?|(?<![^\W_])creds?(?![^\W_])|authkey"
    r"|(?<=master)auth|key|(?<=_)salt(?![a-z_])|(?<![^\W_])clave(?![^\W_])|(?<=[:_\"'])_?auth(?=[\"']?\s?[:=])"
)
_PINS = (
    r"pinコード|(?<![^\W_])pins?(?:[\s-]?(?:code|number|nummer))?(?![^\W_])|passcode|(?<![^\W_])otp(?![^\W_])|暗証番号|验证码|驗證碼"
    r"|認証コード|인증번호|geheimzahl|code\s(?:pin|secret|d['’]accès|de\s(?:la\s|l['’])?(?:porte|sécurité|entrée|alarme))|código\s(?:pin|d[oa]\s(?:alarme|porta|portão|cofre)|de\s\w{4,12})|codice\s(?:pin|segreto|dell(?:a\s|['’])(?:cassaforte|allarme|porta)|di\s\w{4,12})|code(?![^\W_])"
    r"|(?<![^\W_])cv[vc]2?(?![^\W_])|пин(?:-?код[аы]?)?(?:\s(?:от\s)?карт[ыа])?(?![^\W_])|(?<![^\W_])puk(?![^\W_])|kartenprüf(?:nummer|ziffer)|combination(?![^\W_])"
)
# `key` and `code` are names of secrets only after one of these words.
_KEYS = listed("""
    api app access auth private priv client consumer encryption signing master account service shared storage license ssh deploy
    webhook session hmac db database wifi wi-fi wlan wpa wpa2 network jwt crypto admin root sas function recovery secret
""")
_CODES = listed("""
    backup safe's alarm door gate entry unlock security safe lock garage verification one-time 2fa mfa login access confirmation
    authentication zugangs tür sicherheits bestätigungs entsperr freischalt toegangs
""")
# `dbpass=` is a password, `lowpass=` is a filter.
_GLUED = listed("""
    db database user usr my root admin ssh smtp imap pop mail email ftp sftp pg postgres sql mysql mongo redis wifi wlan login
    bind ldap proxy sudo become vault store trust cert auth svc service app web api http mqtt rabbit vnc rdp vpn kafka new
    old require key
""")
STEMS = stems_of("""
    pass pw p/w secret token key cred kennwort contrase senha wachtwoord haslo hasło parol парол 密码 密碼 口令 パスワード
    비밀번호 패스워드 암호 şifre lösenord adgangskode heslo salasana κωδικό סיסמה पासवर्ड mật_khẩu kata_sandi รหัสผ่าน
    كلمة_المرور mdp psk clave auth pin otp 暗証番号 验证码 驗證碼 認証コード 인증번호 code geheimzahl código codice jelsz
    salt cvv cvc kartenprüf combination пин puk 비번
""")
_NAME = LazyRegex(rf"(?P<pin>{_PINS})|(?P<pw>{_PASSWORDS})|(?P<tk>{_TOKENS})", re.IGNORECASE)
# After one of these words, it is the name of something else: `max_tokens`, `primary key`, `compass`.
_OTHER = frozenset(
    listed("""
    pad eos bos unk sep cls mask max min num next prev previous page continuation sync stop special primary public cache sort
    partition foreign no not without host total prompt completion input output per by hot short
    """)
)
# Tokens that identify a request or a place in a list and give no access.
_OTHER_TOKENS = frozenset(listed("idempotency lock change starting start cursor pagination"))
_OTHER_START = frozenset(listed("com tres sur tur mon don by"))
# A name goes on after the secret's word: `password_hash` is not a password, `PASSWORD_PROD` is.
_TAIL = LazyRegex(r"(?:s(?![A-Za-z]))?(?:[A-Z0-9][A-Za-z0-9]{0,40}|[_-][A-Za-z0-9]{1,40}){0,12}")  # bounded: _token_token…
_TAIL_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+")
_ABOUT = frozenset(
    listed("""
    hash hashes hashed hasher hashers length len min max policy field fields file files path dir name names id ids type types url
    uri expiry expires expired expire lifetime ttl age count limit hint reset strength prompt label regex pattern env ref version
    rotation algorithm algo alg endpoint header prefix suffix required enabled disabled enable stdin manager
    validator validators input form page error errors message protected encryption authentication auth encoder authenticator
    timeout bucket tokens index less provider source callback change changed update updated salt bits size format store storage
    scope scopes issuer audience kind mode status state last at in on by for map list set table column ring board word words pair
    fingerprint ary izer izers ization
    """)
)


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a secret in a text. `longer` and `plural` say how it goes on after the secret's word."""

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
        before in _OTHER_TOKENS and found[0].lower() == "token" and not text.startswith(" to ", found.end())
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
    if word == "pass" and found[0].islower() == before[-1:].islower() and before[-1:].isalpha() and not before.endswith(_GLUED):
        return None
    if word in ("key", "code", "combination"):
        owner = stripped.endswith(_KEYS if word == "key" else _CODES)
        if not owner and not (found[0] == "KEY" and before[-1:] == "_"):
            return None
        word = f"api {word}" if owner else word
    last = stripped[len(stripped.rstrip(ascii_lowercase)) :]
    if last in _OTHER or (last in _OTHER_START and stripped == before) or _is_other_token(text, found, last):
        return None
    if (
        word == "secret" and before[-1:] == ":" and before[-2:-1].isdigit()
    ):  # arn:aws:secretsmanager:eu-west-1:123456789012:secret:name
        return None
    tail = _TAIL.match(text, found.end()) if word.isascii() else None  # 密码123789
    rest, end = (tail[0], tail.end()) if tail else ("", found.end())
    words = _TAIL_WORD.findall(rest) if rest else []
    if any(part.lower() in _ABOUT for part in words) or (text[end : end + 1].isalpha() and text[end] < "\u0e00"):
        return None
    longer = any(part != "s" and not part.isdigit() for part in words)
    return Name(found.lastgroup or "", word, start, end, longer, rest[:1] == "s")
