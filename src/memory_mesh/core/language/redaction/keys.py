"""Find keys and credentials that have a form of their own, and the keys of vendors.

Private keys, signed tokens, authorization headers, credentials in URLs, keys beside a cue word.
"""

import re
from base64 import b64decode
from collections.abc import Callable, Iterator
from itertools import pairwise

from memory_mesh.core.language.redaction.pattern import (
    BEFORE,
    Cue,
    Page,
    Pattern,
    Span,
    Surroundings,
    joined,
    listed,
    occurrences,
    words,
)
from memory_mesh.core.language.redaction.values import (
    looks_secret,
    placeholder,
    random_looking,
    variable,
)
from memory_mesh.core.text import LazyRegex

_JWT = LazyRegex(
    r"eyJ[A-Za-z0-9_-]{10,16384}+\.[A-Za-z0-9_-]{0,16384}+\.[A-Za-z0-9_-]{0,16384}+(?:\."
    r"[A-Za-z0-9_-]{0,16384}+){0,2}"
)


def _jwts(page: Page) -> Iterator[Span]:
    """Match base64 of `{"…` with at least two more parts."""
    text = page.text
    for place in occurrences(text, "eyJ"):
        head = text[place - 1 : place]
        found = None if joined(head) or head in tuple("_-") else _JWT.match(text, place)
        if found and found[0].count(".") in (2, 4):
            yield found.span()


_PUTTY = LazyRegex(r"Private-Lines: \d{1,3}\r?\n((?:[A-Za-z0-9+/=]{1,80}+(?:\r?\n|$)){1,80}+)")
_JWK = LazyRegex(r"\"(?:d|p|q|dp|dq|qi|k)\"\s{0,2}:\s{0,2}\"([A-Za-z0-9_-]{16,2048})\"")
_BEGIN = LazyRegex(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = LazyRegex(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_MAX_BLOCK = 64 * 1024
_KEY_LINE = LazyRegex(r"[A-Za-z0-9+/=]{16}")
# The lines of a block without an END: headers, then base64, with real or escaped line breaks.
_BREAK = r"(?:\s|\\[nrt])"
_CUT_OFF = LazyRegex(
    rf"{_BREAK}{{0,64}}+(?:[A-Za-z-]{{2,32}}: "
    rf"[^\n\\]{{0,128}}+{_BREAK}{{1,64}}+){{0,8}}(?:[A-Za-z0-9+/=]{{16,4096}}+{_BREAK}{{0,64}}+)"
    rf"{{0,2048}}+(?:[A-Za-z0-9+/]{{1,15}}={{0,2}}(?![^\s\"'\\]))?"
)


def _private_keys(page: Page) -> Iterator[Span]:
    """Match from BEGIN to END; without an END, as far as the text looks like a key."""
    text = page.text
    begins = [found.span() for found in _BEGIN.finditer(text)]
    for (start, after), (following, _) in pairwise([*begins, (len(text), len(text))]):
        # Searching no further than the next BEGIN keeps the time linear.
        end = _END.search(text, after, min(following, after + _MAX_BLOCK))
        cut_off = _CUT_OFF.match(text, after, following)
        span = start, end.end() if end else after + len(cut_off[0].rstrip() if cut_off else "")
        # Without a line of a key it is only mentioned, as in `_END = "-----END PRIVATE KEY-----"`.
        if _KEY_LINE.search(text, after, span[1]) or (end and text[after] not in "\"'`"):
            yield span
    if page.holds(("private-lines",)):
        yield from (
            (found.start(1), found.start(1) + len(found[1].rstrip()))
            for found in _PUTTY.finditer(text)
        )
    if page.holds(('"kty"',)):
        yield from (found.span(1) for found in _JWK.finditer(text))


_AUTHORIZATION = LazyRegex(
    r"(?i:authorization|x-auth-token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:(bearer|basic|token|digest|"
    r"apikey|negotiate)\s{1,3})?((?:[^\s\"',;<>]|;(?=[^\s\"'])){4,4096}+)"
)
_METAVARIABLE = LazyRegex(r"[A-Z_]{0,40}(?:TOKEN|KEY|JWT|SECRET|CREDENTIALS)[A-Z_]{0,40}")
_BEARER = LazyRegex(r"(?i:bearer)[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,4096}+)")


def _authorizations(page: Page) -> Iterator[Span]:
    """Match the value after `Authorization:` or `Bearer`."""
    for found in _matches(_AUTHORIZATION, page, ("authorization", "x-auth-token")):
        scheme, value = (
            (found[1] or "").lower(),
            found[2].rstrip("`.") if "`" in found[2][-2:] else found[2],
        )
        named = (
            len(value) < 4
            or _METAVARIABLE.fullmatch(value)
            or ("." not in value and variable(value))
        )
        if (
            not placeholder(value)
            and not named
            and (scheme in ("bearer", "basic") or any(map(str.isdigit, value)))
        ):
            yield found.start(2), found.start(2) + len(value)
    for found in _matches(_BEARER, page, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))
    yield from _schemes(page)


_BASIC = LazyRegex(r"(?i:basic)[ \t]{1,3}([A-Za-z0-9+/]{8,1024}={0,2})(?![\w+/])")
_DIGEST_RESPONSE = LazyRegex(
    r"(?i:digest)[ \t][^\n]{0,512}?(?<!\w)response=\"?([0-9a-fA-F]{32,128})"
)


def _schemes(page: Page) -> Iterator[Span]:
    """Match `Basic` with base64 of `user:password` wherever it stands, and the response of
    `Digest`."""
    yield from (
        found.span(1) for found in _matches(_BASIC, page, ("basic ",)) if _has_colon(found[1])
    )
    yield from (found.span(1) for found in _matches(_DIGEST_RESPONSE, page, ("digest ",)))


def _has_colon(value: str) -> bool:
    try:
        return b":" in b64decode(value)
    except ValueError:
        return False


def _matches(expression: LazyRegex, page: Page, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    return filter(None, (expression.match(page.text, place) for place in page.places(stems)))


_AT = "[@＠]"
_USERINFO = LazyRegex(
    rf"[:：](?://|／／)([^\s/@＠:：\"'<>\[\]{{}}]{{0,128}})[:：]([^\s\"<>]{{1,512}}){_AT}(?="
    rf"[\w\[.$%{{-])"
)
_TOKEN_AS_USER = LazyRegex(rf"://([A-Za-z0-9_.~%-]{{16,512}}){_AT}(?=[\w.-])")
_BEFORE_HOST = LazyRegex(rf"{_AT}(?=[\w.-])(?<=[^ \n\t'\"(=/<>@]{{3}}.)")
_WITHOUT_SCHEME = LazyRegex(r"(?:[\w.-]{1,40}/)?[\w.%+-]{1,64}:([^/\"'<>@]{3,128})")
_HOST = LazyRegex(
    r"[\w.-]{1,128}(?::[0-9]{2,5}|/)|(?:[A-Za-z][\w-]{0,60}|"
    r"[0-9]{1,3}(?:\.[0-9]{1,3}){3})(?![\w.@:/-]\w|[\w@({\[])"
)
_NO_USERS = frozenset(
    listed("npm workspace jsr mailto pkg docker xmpp sip tag branch commit sha1 sha256 sha512")
)
_ORACLE = LazyRegex(r"(?i)jdbc:oracle:\w{2,6}:[\w$#]{1,64}/([^\s@/]{1,128})@")
_GO = LazyRegex(r"(?<![\w.%+-])[\w.%+-]{1,64}:([^\s\"'`]{3,128})$")
_DUMMY = frozenset({"pass", "password", "passwd", "pw", "pwd", "secret", "token", "pat", "key"})


def _url_credentials(page: Page) -> Iterator[Span]:
    """Match `user:password` in front of a host, or a token in the place of the user."""
    surroundings = Surroundings(page, before=0, after=1300)
    yield from filter(
        None,
        (surroundings.judge(place, _userinfo) for place in page.places(("://", "：//", "：／／"))),
    )
    for place in page.places(("@tcp(", "@unix(")):  # Go
        if (found := _GO.search(page.text, max(0, place - 200), place)) and _is_password(found[1]):
            yield found.span(1)
    for found in _matches(_ORACLE, page, ("jdbc:oracle",)):
        if _is_password(found[1]):
            yield found.span(1)
    surroundings = Surroundings(page, before=176, after=200)
    hosts = _BEFORE_HOST.finditer(page.text)
    yield from filter(None, (surroundings.judge(found.start(), _without_scheme) for found in hosts))
    yield from _logins(page)


def _userinfo(text: str, place: int) -> Span | None:
    found = _USERINFO.match(text, place)
    if found and _is_password(found[2]):
        return found.start(1), found.end(2)
    token = _TOKEN_AS_USER.match(text, place)
    return token.span(1) if token and random_looking(token[1]) else None


# Commands to which a host is given, so that `user:password@host` is a login. Those of the second
# list need a path after the host: `scp host:notes@old .` copies a file.
_TO_HOST = LazyRegex(
    r"(?<![\w.-])(?:(ssh|sftp|ftp|lftp|telnet|mosh|ncat?|svn|hg|psql|curl|wget|mysql\w{0,6}|"
    r"mongo\w{0,6}|redis-cli|smbclient)|scp|rsync|git|sshfs)[ \t](?=[^\n|;&]{0,160}$)"
)
_LOGIN = LazyRegex(r"[\"']?[\w.+-]{1,64}:([^\s/\"']{1,128})")
_LOGIN_REACH = 384  # characters of a command and its login
_LOGIN_END = LazyRegex(r"@(?=[\w.\[-])(?<=[^\s/\"']@)")
_ANY_HOST, _WITH_PATH = LazyRegex(r"[\w\[]"), LazyRegex(r"[\w.-]{1,128}[:/]")


def _logins(page: Page) -> Iterator[Span]:
    """Yield the passwords of `ssh user:password@host`."""
    surroundings = Surroundings(page, before=_LOGIN_REACH, after=160)
    ends = (found.start() for found in _LOGIN_END.finditer(page.text))
    ends = (at for at in ends if page.text.find(":", max(0, at - 200), at) >= 0)
    return filter(None, (surroundings.judge(at, _login) for at in ends))


def _login(text: str, at: int) -> Span | None:
    low = max(0, at - 200)
    word = max(text.rfind(" ", low, at), text.rfind("\t", low, at), text.rfind("\n", low, at)) + 1
    login = _LOGIN.match(text, word, at)
    if login is None or login.end() < at or login[0].partition(":")[0] in _NO_USERS:
        return None
    command = _TO_HOST.search(text, max(0, word - 160), word)
    host = _ANY_HOST if command and command[1] else _WITH_PATH
    return (
        login.span(1) if command and host.match(text, at + 1) and _is_password(login[1]) else None
    )


def _is_password(value: str) -> bool:
    port = value.partition("/")[0].isdigit() and "/" in value  # https://host:8443/a@b
    return not port and "//" not in value and value.lower() not in _DUMMY and not placeholder(value)


def _without_scheme(text: str, at: int) -> Span | None:
    """Match `user:password` before a host, if the password looks like one."""
    head = text[max(0, at - 170) : at]
    word = head[max(map(head.rfind, (" ", "\n", "\t", "'", '"', "(", "=")), default=-1) + 1 :]
    if (
        ":" not in word
        or "//" in word
        or word.partition(":")[0] in _NO_USERS
        or not _HOST.match(text, at + 1)
    ):
        return None
    found = _WITHOUT_SCHEME.fullmatch(word)
    if found is None or not looks_secret(found[1]) or found[1].lower() in _DUMMY:
        return None
    return at - len(found[1]), at


_LONG_HEX = LazyRegex(r"[0-9a-fA-F][0-9a-fA-F]{31,511}+")
_HEX_CUE = Cue(
    "key secret token pass credential seed hmac private signing encryption",
    r"\w{0,20}?(?:key|secret|token|passphrase|password|credential|seed|hmac)s?(?:_?(?:hex|base16|"
    r"value))?|private|signing|encryption",
)
_DIGEST = words(
    r"\w{0,20}?(?:hash|digest|checksum|sum|sha|sha_?\d{1,3}|md5|commit|etag|fingerprint|revision|"
    r"rev|tree|blob|block|head|parent|object)|\w{0,20}?(?:id|uuid)|git|merge|cherry.?pick|image|"
    r"layer|container|integrity|public"
)
_HEX_REACH = 40


def _hex_secrets(page: Page) -> Iterator[Span]:
    """Match 32 or more hex digits after a word such as key, secret or token, unless a word for a
    digest is nearer."""
    text = page.text
    for found in _LONG_HEX.finditer(text):
        start, end = found.span()
        head = text[max(0, start - 2) : start]
        if (joined(head[-1:]) and head != "0x") or joined(text[end : end + 1]):
            continue
        window = max(0, start - _HEX_REACH), start
        near = _HEX_CUE.near(page, found.span(), before=_HEX_REACH, after=0)
        if near and _last(_HEX_CUE.words, text, window) > _last(_DIGEST, text, window):
            yield start, end


def _last(cue: LazyRegex, text: str, window: Span) -> int:
    """Return where the last of the words in the window ends, or -1."""
    return max((found.end() for found in cue.finditer(text, *window)), default=-1)


_AWS_SECRET = LazyRegex(r"[A-Za-z0-9/+][A-Za-z0-9/+]{39}(?![A-Za-z0-9/+=])")
_AWS_CUE = Cue("aws amazon secret", r"aws|amazon|secret(?:_?access)?_?key|secret")


def _aws_secrets(page: Page) -> Iterator[Span]:
    """Match 40 characters of base64 near a cue word. Hex digits alone are the hash of a commit."""
    text = page.text
    for stretch in page.around(_AWS_CUE.stems, 0, BEFORE + 48):
        for found in _AWS_SECRET.finditer(text, *stretch):
            head, value = text[found.start() - 1 : found.start()], found[0]
            mixed = any(map(str.isdigit, value)) and not value.isupper() and not value.islower()
            if (
                mixed
                and head not in tuple("/+.-_")
                and not joined(head)
                and _AWS_CUE.near(page, found.span(), after=0)
            ):
                yield found.span()


_UUID_TAIL = LazyRegex(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-])")
_UUID_HEAD = LazyRegex(r"[0-9a-fA-F]{8}")
_UUID_CUE = Cue(
    "key token secret",
    r"(?:heroku|snyk|api|auth|access|secret)[\s_-]?(?:api)?[\s_-]?(?:key|token)s?|"
    r"client[\s_-]secret",
)


def _uuid_keys(page: Page) -> Iterator[Span]:
    """Match a UUID only if the words before it call it an API key."""
    for tail in _UUID_TAIL.finditer(page.text):
        start = tail.start() - 8
        whole = (
            start >= 0
            and _UUID_HEAD.match(page.text, start)
            and not joined(page.text[start - 1 : start])
        )
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


FORMS = (
    Pattern(
        "private_key", "PRIVATE_KEY", _private_keys, hints=("private key", "private-lines", '"kty"')
    ),
    Pattern("url_credentials", "CREDENTIALS", _url_credentials, hints=("@", "＠")),
    Pattern("jwt", "JWT", _jwts, long_word=True, hints=("eyj",)),
    Pattern("aws_secret_key", "API_KEY", _aws_secrets, long_word=True, hints=_AWS_CUE.stems),
    Pattern("uuid_key", "API_KEY", _uuid_keys, long_word=True, hints=_UUID_CUE.stems),
    Pattern("bearer", "TOKEN", _authorizations, hints=("bearer", "authorization", "x-auth-token")),
)
GENERAL = (Pattern("hex_secret", "SECRET", _hex_secrets, long_word=True, hints=_HEX_CUE.stems),)


# --- keys of vendors ---
# A vendor chose a prefix, an alphabet and a length to make its keys recognisable. Each row of the
# table gives the prefixes and the form of one vendor's keys. The lengths are minima below the
# documented ones: formats grow, and half a key is still worth hiding. The engine searches the
# prefixes first, so that a row costs one substring search per prefix.

# In a form: <a> letters and digits, <w> also _ and -, <b> base64, <h> hex digits, <u> capitals and
# digits, <id> a UUID.
_CLASSES = {
    "<a>": "[A-Za-z0-9]", "<w>": "[A-Za-z0-9_-]", "<b>": "[A-Za-z0-9+/_=-]", "<h>": "[0-9a-fA-F]",
    "<u>": "[A-Z0-9]", "<id>": "[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
}  # fmt: skip
_SIMPLE = re.compile(r"([awbhu])(\d+)")


def _vendor(
    id_: str, prefixes: str, form: str, *, lead: int = 0, capitals: bool = False
) -> Pattern:
    """Return the pattern of one vendor's keys.

    A form such as `a30` means one of the prefixes and then at least 30 characters of the class;
    other forms are regular expressions with the classes. `lead` is how much of the key stands
    before the prefix. With `capitals`, a key may consist of capitals alone.
    """
    starts = listed(prefixes)
    if simple := _SIMPLE.fullmatch(form):
        form = rf"(?:{'|'.join(map(re.escape, starts))})<{simple[1]}>{{{simple[2]},}}+"
    for name, characters in _CLASSES.items():
        form = form.replace(name, characters)
    # No letter or digit may follow: a key inside a longer run of letters is something else, such as
    # base64.
    regex = LazyRegex(rf"{form}(?![A-Za-z0-9])")
    is_key = _varied if capitals else _random

    def find(page: Page) -> Iterator[Span]:
        for prefix in starts:
            if prefix in page.long_words:
                yield from _with_prefix(page.text, prefix, regex, lead, is_key)

    return Pattern(id_, "API_KEY", find, prefixes=starts)


def _with_prefix(
    text: str, prefix: str, form: LazyRegex, lead: int, is_key: Callable[[str], bool]
) -> Iterator[Span]:
    done = 0
    for place in occurrences(text, prefix):
        # A long run of prefixes is one key and is judged once.
        if place < done or (not lead and joined(text[place - 1 : place])):
            continue
        if match := form.match(text, max(0, place - lead)):
            start, done = match.span(match.lastindex or 0)
            if not joined(text[start - 1 : start]) and is_key(
                text[start:done][0 if lead else len(prefix) :]
            ):
                yield start, done


def _random(body: str) -> bool:
    """Return whether these characters are a key rather than the words of a name such as
    `npm_config_user_agent`."""
    return (
        any(map(str.isdigit, body))
        or sum(a.islower() != b.islower() for a, b in pairwise(body) if (a + b).isalpha()) > 3
    )


def _varied(body: str) -> bool:
    """Return whether these characters are not a row of crosses, which stands for a key."""
    return len(set(body)) > 3


VENDORS = (
    # --- language models and search ---
    _vendor("anthropic_key", "sk-ant-", "w20"),
    _vendor("openrouter_key", "sk-or-", "w20"),
    _vendor("openai_key", "sk- sess-",
            "(?:sk-(?:(?:[A-Za-z0-9]{2,16}-){1,3}<w>{20,}+|(?!ant-|or-)<a>{20,}+)|sess-<a>{30,}+)"),
    _vendor("huggingface_token", "hf_ api_org_", "a30"),
    _vendor("replicate_token", "r8_", "a30"),
    _vendor("groq_key", "gsk_", "a30"),
    _vendor("xai_key", "xai-", "a40"),
    _vendor("perplexity_key", "pplx-", "a30"),
    _vendor("fireworks_key", "fw_", "a20"),
    _vendor("cerebras_key", "csk-", "a30"),
    _vendor("together_key", "tgp_v1_", "w30"),
    _vendor("nvidia_key", "nvapi-", "w30"),
    _vendor("voyage_key", "pa-", "pa-<w>{40,}+"),
    _vendor("jina_key", "jina_", "w30"),
    _vendor("llamacloud_key", "llx-", "a30"),
    _vendor("elevenlabs_key", "sk_", "sk_(?:car_)?<h>{32,}+"),
    _vendor("tavily_key", "tvly-", "w16"),
    _vendor("brave_search_key", "BSA", "BSA(?=<w>{0,27}[0-9])<w>{28}"),
    _vendor("firecrawl_key", "fc-", "fc-<h>{32,}+"),
    _vendor("langsmith_key", "lsv2_ ls__", "w24"),
    _vendor("logfire_token", "pylf_v", "w24"),
    _vendor("pinecone_key", "pcsk_", "w30"),
    _vendor("kaggle_token", "KGAT_", "a24"),
    _vendor("wandb_key", "wandb_v1_", "w24"),
    _vendor("runpod_key", "rpa_", "a30"),
    _vendor("e2b_key", "e2b_", "h30"),
    _vendor("apify_token", "apify_api_", "a24"),
    _vendor("rapidapi_key", "msh", "<a>{10}msh<a>{12,18}p1<a>{4,8}jsn<a>{10,14}", lead=10),
    # --- code, packages and builds ---
    _vendor("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_",
            "(?:gh[oprsu]_<a>{30,}+|github_pat_<w>{40,}+)"),
    _vendor("gitlab_token",
            "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glffct- glimt- glagent- glsoat- "
            "gloas- GR1348941",
            r"(?:gl(?:pat|dt|rtr?|cbt|ptt|ft|ffct|imt|agent|soat|oas)-|"
            r"GR1348941)<w>{16,}+(?:\.[a-z0-9]{2}\.?[a-z0-9]{7,9})?"),
    _vendor("gitlab_session", "_gitlab_session=", "_gitlab_session=(<a>{24,}+)"),
    _vendor("bitbucket_token", "ATBB", "ATBB<a>{24,}+"),
    _vendor("npm_token", "npm_", "a30"),
    _vendor("pypi_token", "pypi-AgE", "w40"),
    _vendor("rubygems_key", "rubygems_", "a30"),
    _vendor("clojars_token", "CLOJARS_", "a40"),
    _vendor("crates_token", "cio", "cio<a>{32}"),
    _vendor("nuget_key", "oy2", "oy2[a-z0-9]{43}"),
    _vendor("docker_token", "dckr_pat_ dckr_oat_", "w20"),
    _vendor("jfrog_token", "AKCp cmVmd", "(?:AKCp<a>{60,}+|cmVmd<a>{50,}+)"),
    _vendor("circleci_token", "CCIPAT_ CCIPRJ_", "w30"),
    _vendor("buildkite_token", "bkua_ bkaj_ bkct_ bkpt_", "a30"),
    _vendor("octopus_key", "API-", "API-<u>{24,32}", capitals=True),
    _vendor("sonar_token", "squ_ sqp_ sqa_", "a30"),
    _vendor("sourcegraph_token", "sgp_ sgph_ sgs_ slk_",
            "(?:sg(?:ph?|s)_(?:(?:<h>{16}|local)_)?<h>{40,}+|slk_<h>{40,}+)"),
    _vendor("snyk_token", "snyk_uat. snyk_sat.", "w24"),
    _vendor("prefect_key", "pnu_ pnb_", "a24"),
    _vendor("infracost_token", "ico-", "a24"),
    _vendor("pulumi_token", "pul-", "h30"),
    _vendor("terraform_token", ".atlasv1.", r"<a>{14}\.atlasv1\.<b>{30,}+", lead=14),
    _vendor("vault_token", "hvs. hvb. hvr.", r"hv[sbr]\.<w>{20,}+"),
    _vendor("vault_old_token", "s.", r"s\.(?=[A-Za-z]*[0-9])<a>{24}(?!\.)"),
    _vendor("doppler_token", "dp.",
            r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?<a>{30,}+"),
    _vendor("harness_token", "pat. sat.", r"[ps]at\.<w>{18,24}\.<a>{20,26}\.<a>{16,24}"),
    _vendor("postman_key", "PMAK-", "w40"),
    _vendor("readme_key", "rdme_", "a50"),
    _vendor("scalingo_token", "tk-us-", "w40"),
    # --- clouds, hosting and databases ---
    _vendor("aws_access_key", "AKIA ASIA ABIA ACCA AROA AIDA AGPA AIPA ANPA ANVA A3T",
            "(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA|AROA|AIDA|AGPA|AIPA|ANPA|ANVA)<u>{16}",
            capitals=True),
    _vendor("aws_bedrock_key", "ABSK bedrock-api-key-",
            "(?:ABSK<b>{90,}+|bedrock-api-key-<b>{40,}+)"),
    _vendor("aws_appsync_key", "da2-", "da2-[a-z0-9]{26}"),
    _vendor("aws_mws_token", "amzn.mws.", r"amzn\.mws\.<id>"),
    _vendor("google_key", "AIza", "AIza<w>{30,}+"),
    _vendor("google_oauth", "GOCSPX- ya29. 1//0",
            r"(?:GOCSPX-<w>{20,}+|ya29\.<w>{20,}+|1//0<w>{40,}+)"),
    _vendor("firebase_key", "AAAA", "AAAA<w>{7}:<w>{100,}+"),
    _vendor("azure_storage_key", "AccountKey= SharedAccessKey=",
            "(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{40,88}={0,2})"),
    _vendor("azure_client_secret", "Q~", r"[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{28,40}",
            lead=4),
    _vendor("azure_devops_token", "AZDO", "<a>{76}AZDO<a>{4}", lead=76),
    _vendor("alibaba_key", "LTAI", "a12"),
    _vendor("tencent_key", "AKID", "AKID<a>{28,}+"),
    _vendor("volcengine_key", "AKLT", "AKLT<b>{28,}+"),
    _vendor("yandex_key", "AQVN t1. YC y0_",
            r"(?:AQVN<w>{30,}+|t1\.<b>{8,}+\.<b>{60,}+|YC[AM]<w>{36,}+|y0_<w>{40,}+)"),
    _vendor("scaleway_key", "SCW", "SCW<u>{17}", capitals=True),
    _vendor("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", "h40"),
    _vendor("heroku_key", "HRKU-", "w30"),
    _vendor("fly_token", "fo1_ fm1a_ fm1r_ fm2_ FlyV1",
            r"(?:FlyV1\s)?(?:fo1_<w>{30,}+|fm(?:1[ar]|2)_[A-Za-z0-9+/=_,-]{60,}+)"),
    _vendor("netlify_token", "nfp_ nfc_ nfo_ nfu_ nfb_", "a30"),
    _vendor("vercel_token", "vcp_ vci_ vca_ vcr_ vck_ vercel_blob_rw_", "w20"),
    _vendor("render_key", "rnd_", "a20"),
    _vendor("sanity_token", "sk", "sk<a>{78,}+"),
    _vendor("supabase_key", "sbp_ sb_secret_ sb_publishable_",
            "(?:sbp_(?:v0_)?<h>{36,}+|sb_(?:secret|publishable)_<w>{20,}+)"),
    _vendor("planetscale_token", "pscale_", r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_=.-]{24,}+"),
    _vendor("neon_key", "napi_", "a40"),
    _vendor("aiven_token", "AVNS_ aivenv1", "(?:AVNS_<w>{15,}+|aivenv1<b>{40,}+)"),
    _vendor("databricks_token", "dapi dkea dose", "d(?:api|kea|ose)<h>{32}(?:-[0-9])?"),
    _vendor("clickhouse_key", "4b1d", "4b1d<a>{38}"),
    _vendor("mongodb_key", "mdb_sa_sk_", "w30"),
    _vendor("cloudflare_key", "v1.0- cfut_ cfat_ cfk_",
            r"(?:v1\.0-<h>{24}-<h>{100,}+|cf(?:ut|at|k)_<w>{30,}+)"),
    _vendor("tailscale_key", "tskey-", "w20"),
    _vendor("defined_key", "dnkey-", "w40"),
    _vendor("openshift_token", "sha256~", "sha256~<w>{40,}+"),
    _vendor("deno_token", "ddp_ ddo_", "a30"),
    _vendor("modal_token", "ak- as-", "a[ks]-[A-Za-z0-9]{22}"),
    # --- secrets managers ---
    _vendor("age_secret_key", "AGE-SECRET-KEY-1",
            "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{50,}+"),
    _vendor("onepassword_token", "ops_eyJ A3-",
            "(?:ops_eyJ<b>{60,}+|A3-<u>{6}-(?:<u>{11}|<u>{6}-<u>{5})(?:-<u>{5}){3})"),
    _vendor("jwt_in_base64", "ZXlK", "ZXlK[A-Za-z0-9+/]{60,}+={0,2}"),
    _vendor("private_key_in_base64", "LS0tLS1CRUdJTi",
            "LS0tLS1CRUdJTi(?=[A-Za-z0-9+/]{0,48}(?:UFJJVkFURSBLRV|BSSVZBVEUgS0VZ|QUklWQVRFIEtFW))"
            "<b>{40,}+"),
    # --- monitoring ---
    _vendor("datadog_key", "ddapp_ ddpat_", "w24"),
    _vendor("dynatrace_token", "dt0", r"dt0[a-z][0-9]{2}\.<a>{24}\.<a>{40,}+"),
    _vendor("grafana_token", "glsa_ glc_ eyJrIjoi",
            "(?:glsa_<a>{24,}+(?:_<h>{8})?|glc_<b>{32,}+|eyJrIjoi<b>{50,}+)"),
    _vendor("newrelic_key", "NRAK- NRJS- NRII- NRAA- NRRA-",
            "(?:NRAK|NRII|NRAA|NRRA)-<w>{24,}+|NRJS-<h>{16,}+"),
    _vendor("newrelic_license", "NRAL", "<h>{36}NRAL", lead=36),
    _vendor("sentry_token", "sntrys_ sntryu_ sntryi_", "b40"),
    _vendor("honeycomb_key", "hcaik_ hcbik_ hcxik_ hcaok_ hcxmk_", "a24"),
    _vendor("posthog_key", "phc_ phx_ phs_", "a30"),
    _vendor("pagerduty_key", "pdus+ pdeu+", r"pd(?:us|eu)\+[A-Za-z0-9_+-]{16,}+"),
    _vendor("rootly_token", "rootly_", "h40"),
    _vendor("stackhawk_key", "hawk.", r"hawk\.<w>{16,24}\.<w>{16,24}"),
    # --- messages and mail ---
    _vendor("slack_token", "xox xapp-",
            r"(?:xoxe\.)?(?:xox[abcdeoprs]-(?:[0-9]-)?[A-Za-z0-9%/+=-]{16,}+|"
            r"xapp-[0-9]-[A-Za-z0-9-]{16,}+)"),
    _vendor("slack_webhook", "hooks.slack.com/",
            r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}+"),
    _vendor("discord_token", ".",
            r"[\s\S]{0,28}?(?<![A-Za-z0-9_.-])(mfa\.<w>{60,}+|[MNO]<w>{22,27}\.<w>{6}\.<w>{27,}+)",
            lead=28),
    _vendor("discord_webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
            r"discord(?:app)?\.com/api/webhooks/[0-9]{16,20}/<w>{40,}+"),
    _vendor("teams_webhook", "webhook.office.com/",
            r"webhook\.office\.com/webhookb2/<id>@<id>/IncomingWebhook/<w>{24,}+/<id>"),
    _vendor("zapier_webhook", "hooks.zapier.com/hooks/catch/",
            r"hooks\.zapier\.com/hooks/catch/[0-9]{4,}/<a>{5,}+"),
    _vendor("telegram_token", ":AA", r"[\s\S]{0,12}?(?<![0-9A-Za-z])([0-9]{6,12}:AA<w>{30,36})",
            lead=12),
    _vendor("twilio_key", "SK AC", "(?:SK|AC)<h>{32}"),
    _vendor("sendgrid_key", "SG.", r"SG\.<w>{16,}+\.<w>{16,}+"),
    _vendor("mailgun_key", "key- pubkey-", "(?:pub)?key-<h>{32}"),
    _vendor("mailchimp_key", "-us", "<h>{32}-us[0-9]{1,2}", lead=32),
    _vendor("mandrill_key", "md-", "md-<w>{22}"),
    _vendor("mailersend_token", "mlsn.", r"mlsn\.<a>{40,}+"),
    _vendor("brevo_key", "xkeysib- xsmtpsib-", "w40"),
    _vendor("resend_key", "re_", "re_<a>{6,10}_<a>{20,}+"),
    _vendor("klaviyo_key", "pk_", "pk_<h>{34}"),
    _vendor("facebook_token", "EAA", "EAA(?:CEdEose0cBA<a>{16,}+|<a>{80,}+)"),
    _vendor("twitter_bearer", "AAAAAAAAAAAAAAAAAAAA", "A{20,}[A-Za-z0-9%]{40,}+"),
    # --- payments and shops ---
    _vendor("stripe_key",
            "sk_live_ sk_test_ sk_prod_ rk_live_ rk_test_ rk_prod_ pk_live_ pk_test_ whsec_",
            "(?:[srp]k_(?:live|test|prod)_<a>{10,}+|whsec_<b>{20,}+)"),
    _vendor("square_token", "sq0atp- sq0csp- sq0idp- EAAA",
            "(?:sq0(?:atp|csp|idp)-<w>{20,}+|EAAA<w>{56,64})"),
    _vendor("shopify_token", "shpat_ shpca_ shppa_ shpss_ shptka_", "a28"),
    _vendor("paypal_braintree_token", "access_token$",
            r"access_token\$(?:production|sandbox)\$<a>{12,}\$<h>{28,}"),
    _vendor("razorpay_key", "rzp_live_ rzp_test_", "a14"),
    _vendor("flutterwave_key", "FLWSECK FLWPUBK",
            "FLW(?:SEC|PUB)K(?:_TEST)?-[A-Za-z0-9]{12,}+(?:-X)?"),
    _vendor("duffel_token", "duffel_test_ duffel_live_", "b30"),
    _vendor("easypost_key", "EZAK EZTK", "EZ[AT]K<a>{40,}+"),
    _vendor("shippo_token", "shippo_live_ shippo_test_", "a30"),
    _vendor("plaid_token", "access-sandbox- access-development- access-production-",
            "access-(?:sandbox|development|production)-<id>"),
    _vendor("mercury_token", "secret-token:mercury_", "w30"),
    # --- applications ---
    _vendor("atlassian_token", "ATATT3 ATCTT3 ATTA", "(?:AT[AC]TT3<b>{50,}+|ATTA<a>{60,}+)"),
    _vendor("linear_key", "lin_api_ lin_oauth_ lin_wh_", "a30"),
    _vendor("notion_token", "ntn_ secret_", "(?:ntn_<a>{36,}+|secret_<a>{43})"),
    _vendor("airtable_token", "pat", r"pat<a>{14}\.<a>{40,}+"),
    _vendor("figma_token", "figd_ figo_", "w30"),
    _vendor("dropbox_token", "sl.", r"sl\.(?:u\.)?<b>{60,}+"),
    _vendor("hubspot_token", "pat-na pat-eu", r"pat-(?:na|eu)[0-9]-<id>"),
    _vendor("intercom_token", "dG9rO", "dG9rO<b>{40,}+"),
    _vendor("contentful_token", "CFPAT-", "w30"),
    _vendor("typeform_token", "tfp_", r"tfp_[A-Za-z0-9_.=-]{30,}+"),
    _vendor("mapbox_token", "sk.eyJ pk.eyJ tk.eyJ", r"[spt]k\.eyJ<w>{20,}+\.<w>{6,}+"),
    _vendor("maxmind_key", "_mmk", "<a>{6}_<a>{29}_mmk", lead=36),
    _vendor("frameio_token", "fio-u-", "w40"),
    _vendor("adobe_secret", "p8e-", "p8e-<w>{28,}+"),
    _vendor("adafruit_key", "aio_", "aio_<a>{26,}+"),
    _vendor("intra42_secret", "s-s4t2ud- s-s4t2af-", "h40"),
    _vendor("authress_key", "sc_ ext_ scauth_ authress_",
            r"(?:sc|ext|scauth|authress)_[A-Za-z0-9]{5,30}\.[A-Za-z0-9]{4,6}\.acc[_-][A-Za-z0-9-]"
            r"{10,32}\.<b>{30,}+"),
    _vendor("settlemint_token", "sm_aat_ sm_pat_ sm_sat_", "a16"),
    _vendor("zuplo_key", "zpka_", "w24"),
    _vendor("launchdarkly_key", "sdk- mob- api-", "(?:sdk|mob|api)-<id>"),
    _vendor("salesforce_token", "00D", r"00D<a>{12,15}![A-Za-z0-9._]{60,}+"),
    _vendor("zoho_token", "1000.", r"1000\.<h>{32}\.<h>{32}"),
    _vendor("wakatime_key", "waka_", "waka_<id>"),
    _vendor("pubnub_key", "sec-c- pub-c- sub-c-", "(?:sec|pub|sub)-c-<w>{30,}+"),
    _vendor("nylas_key", "nyk_v0_", "a30"),
    _vendor("retool_token", "retool_", "retool_<w>{20,}+"),
    _vendor("beamer_key", "b_", "b_<b>{44}"),
    _vendor("lob_key", "live_ test_", "(?:live|test)_(?:pub_)?<h>{31,40}"),
    _vendor("gocardless_token", "live_ sandbox_", "(?:live|sandbox)_<w>{40}"),
)  # fmt: skip
