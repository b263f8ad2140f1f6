"""Secrets with a recognisable form: signed tokens, private keys, authorization headers, URL credentials, vendors' API keys."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain, pairwise

from memory_mesh.core.redaction.assignments import placeholder
from memory_mesh.core.redaction.pattern import (
    BEFORE,
    Cue,
    Page,
    Pattern,
    Span,
    filler,
    joined,
    listed,
    marked,
    occurrences,
    words,
)
from memory_mesh.core.text import LazyRegex

_JWT = LazyRegex(
    r"eyJ[A-Za-z0-9_-]{10,16384}+\.[A-Za-z0-9_-]{0,16384}+\.[A-Za-z0-9_-]{0,16384}+(?:\.[A-Za-z0-9_-]{0,16384}+){0,2}"
)


def _jwts(page: Page) -> Iterator[Span]:
    """Match base64 of `{"…` with at least two more parts."""
    text = page.text
    for place in occurrences(text, "eyJ"):
        head = text[place - 1 : place]
        found = None if joined(head) or head in tuple("_-") else _JWT.match(text, place)
        if found and found[0].count(".") in (2, 4):
            yield found.span()


_BEGIN = LazyRegex(r"-{4,5} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_END = LazyRegex(r"-{4,5} ?END [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}")
_MAX_BLOCK = 64 * 1024
# The lines of a block without an END: headers, then base64, with real or escaped line breaks.
_BREAK = r"(?:\s|\\[nrt])"
_CUT_OFF = LazyRegex(
    rf"{_BREAK}{{0,64}}+(?:[A-Za-z-]{{2,32}}: [^\n\\]{{0,128}}+{_BREAK}{{1,64}}+){{0,8}}"
    rf"(?:[A-Za-z0-9+/=]{{16,4096}}+{_BREAK}{{0,64}}+){{0,2048}}+(?:[A-Za-z0-9+/]{{1,15}}={{0,2}}(?![^\s\"'\\]))?"
)


def _private_keys(page: Page) -> Iterator[Span]:
    """Match from BEGIN to END; without an END, as far as the text looks like a key."""
    text = page.text
    begins = [found.span() for found in _BEGIN.finditer(text)]
    for (start, after), (following, _) in pairwise([*begins, (len(text), len(text))]):
        # Searching no further than the next BEGIN keeps the time linear.
        end = _END.search(text, after, min(following, after + _MAX_BLOCK))
        cut_off = _CUT_OFF.match(text, after, following)
        yield start, end.end() if end else after + len(cut_off[0].rstrip() if cut_off else "")


_AUTHORIZATION = LazyRegex(
    r"(?i:authorization|x-auth-token)[\"']?\s{0,3}[:=]\s{0,3}[\"']?(?i:(bearer|basic|token|digest|apikey|negotiate)\s{1,3})?([^\s\"',;<>]{4,4096}+)"
)
_BEARER = LazyRegex(r"(?i:bearer)[ \t]{1,3}([A-Za-z0-9._~+/=-]{8,4096}+)")
_USER_FLAG = LazyRegex(r"(?:-u|--user|--proxy-user)[ =]{1,2}[\"']?([^\s\"':]{1,128}:[^\s\"']{1,256})")


def _authorizations(page: Page) -> Iterator[Span]:
    """Match the value after `Authorization:`, `Bearer` or `curl -u`."""
    yield from _headers(page)
    yield from _bearers(page)
    if page.holds(("curl", "wget")):
        yield from _flags(page.text)


def _headers(page: Page) -> Iterator[Span]:
    for found in _matches(_AUTHORIZATION, page, ("authorization", "x-auth-token")):
        scheme, value = (found[1] or "").lower(), found[2]
        if not placeholder(value) and (scheme in ("bearer", "basic") or any(map(str.isdigit, value))):
            yield found.span(2)


def _bearers(page: Page) -> Iterator[Span]:
    for found in _matches(_BEARER, page, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))


def _matches(expression: LazyRegex, page: Page, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    for place in page.places(stems):
        found = expression.match(page.text, place)
        if found:
            yield found


def _flags(text: str) -> Iterator[Span]:
    for found in _USER_FLAG.finditer(text):
        name, _, word = found[1].partition(":")
        if not placeholder(word) and not (name.isdigit() and word.isdigit()):
            yield found.span(1)


_USERINFO = LazyRegex(r"://([^\s/@:\"'<>\[\]{}]{0,128}):([^\s/\"'<>]{1,512})@(?=[\w\[.$%{-])")
_DUMMY = frozenset({"pass", "password", "passwd", "pw", "pwd", "secret", "token", "pat", "key"})


def _url_credentials(page: Page) -> Iterator[Span]:
    """Match `user:password` in front of a host."""
    text = page.text
    for found in _USERINFO.finditer(text):
        if found[2].lower() not in _DUMMY and not placeholder(found[2]):
            yield found.start(1), found.end(2)


_LONG_HEX = LazyRegex(r"[0-9a-fA-F][0-9a-fA-F]{31,511}+")
_HEX_CUE = Cue(
    "key secret token pass credential seed hmac private signing encryption",
    r"\w{0,20}?(?:key|secret|token|passphrase|password|credential|seed|hmac)s?(?:_?(?:hex|base16|value))?|private|signing|encryption",
)
_DIGEST = words(
    r"\w{0,20}?(?:hash|digest|checksum|sum|sha|sha_?\d{1,3}|md5|commit|etag|fingerprint|revision|rev|tree|blob|block|head|parent|object)"
    r"|\w{0,20}?(?:id|uuid)|git|merge|cherry.?pick|image|layer|container|integrity|public"
)
_HEX_REACH = 40


def _hex_secrets(page: Page) -> Iterator[Span]:
    """Match 32 or more hex digits after a word such as key, secret or token, unless a word for a digest is nearer."""
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
            if mixed and head not in tuple("/+.-_") and not joined(head) and _AWS_CUE.near(page, found.span(), after=0):
                yield found.span()


_UUID_TAIL = LazyRegex(r"-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?![\w-])")
_UUID_HEAD = LazyRegex(r"[0-9a-fA-F]{8}")
_UUID_CUE = Cue(
    "key token secret",
    r"(?:heroku|snyk|api|auth|access|secret)[\s_-]?(?:api)?[\s_-]?(?:key|token)s?|client[\s_-]secret",
)


def _uuid_keys(page: Page) -> Iterator[Span]:
    """Match a UUID only if the words before it call it an API key."""
    for tail in _UUID_TAIL.finditer(page.text):
        start = tail.start() - 8
        whole = start >= 0 and _UUID_HEAD.match(page.text, start) and not joined(page.text[start - 1 : start])
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


_HEX = filler(64, "4f3c2b1a0d9e8f76")
_SHORT_JWT = f"eyJ{filler(33)}.eyJ{filler(40)}.{filler(43)}"
_AWS_SAMPLE = filler(40, "a1B/c3D4e5+F6g7H8i9J")
_UUID_SAMPLE = "01234567-89ab-4cde-8f01-23456789abcd"
FORMS = (
    Pattern(
        id="private_key", label="PRIVATE_KEY", finds=_private_keys, hints=("private key",),
        why="The holder of a private key acts as its owner. Public keys and certificates stay.",
        examples=marked(
            f"key:\n«-----BEGIN RSA PRIVATE KEY-----\n{filler(64)}\n-----END RSA PRIVATE KEY-----»\n",
            f"«-----BEGIN PRIVATE KEY-----\n{filler(64)}\n{filler(30)}»",
        ),
        counter_examples=(f"-----BEGIN PUBLIC KEY-----\n{filler(64)}\n-----END PUBLIC KEY-----", "keep your private key safe"),
    ),
    Pattern(
        id="url_credentials", label="CREDENTIALS", finds=_url_credentials, hints=("://",),
        why="A user name and password in front of a host give access to it.",
        examples=marked("postgresql://«ann:pa55»@db.example.org:5432/app"),
        counter_examples=(
            "https://example.org:8443/a@b", "postgresql://user:password@host/db", "redis://:${REDIS_PASSWORD}@cache:6379",
        ),
    ),
    Pattern(
        id="jwt", label="JWT", finds=_jwts, long_word=True, hints=("eyj",),
        why="A signed token logs its bearer in, and its middle part contains readable personal data.",
        examples=marked(f"token «{_SHORT_JWT}» expired"),
        counter_examples=("eyJhbGciOiJIUzI1NiJ9 alone", "keyJoints.and.more"),
    ),
    Pattern(
        id="aws_secret_key", label="API_KEY", finds=_aws_secrets, long_word=True, hints=_AWS_CUE.stems,
        why="The secret half of an AWS key: forty characters of base64 near a cue word.",
        examples=marked(f"AWS secret access key «{_AWS_SAMPLE}»"),
        counter_examples=("secret of commit " + filler(40, "0a1b2c3d4e5f6789"), f"value {_AWS_SAMPLE}"),
    ),
    Pattern(
        id="uuid_key", label="API_KEY", finds=_uuid_keys, long_word=True, hints=_UUID_CUE.stems,
        why="Heroku and some others issue UUIDs as keys. A UUID without a cue word is an id and stays.",
        examples=marked(f"HEROKU_API_KEY is «{_UUID_SAMPLE}»"),
        counter_examples=(f"request {_UUID_SAMPLE}", f"primary key {_UUID_SAMPLE}"),
    ),
    Pattern(
        id="bearer", label="TOKEN", finds=_authorizations, hints=("bearer", "authorization", "x-auth-token", "curl", "wget"),
        why="An authorization header or a bearer token gives the access of a login.",
        examples=marked(
            f"curl -H 'Authorization: Bearer «{filler(24)}»' …", f"Authorization: Basic «{filler(20)}==»",
            "curl -u «ann:s3cret!» https://example.org",
        ),
        counter_examples=(
            "the bearer of good news", "Authorization: Bearer <token>", "Authorization: Bearer $TOKEN",
            "docker run -u 1000:1000 curl",
        ),
    ),
)  # fmt: skip
GENERAL = (
    Pattern(
        id="hex_secret", label="SECRET", finds=_hex_secrets, long_word=True, hints=_HEX_CUE.stems,
        why="Long hex digits called a key, a secret or a token. Without such a word they are a hash or an id.",
        examples=marked(f"the signing key is «{_HEX}»", f"from the seed 0x«{_HEX[:32]}»"),
        counter_examples=(
            f"commit {_HEX[:40]}", f"sha256:{_HEX}", f"the key's fingerprint is {_HEX[:32]}", f"{_HEX}  secret.txt",
        ),
    ),
)  # fmt: skip


# --- keys with a prefix, an alphabet and a length that their vendor chose to make them recognisable ---

# In a form: <a> a letter or digit, <w> also _ and -, <h> a hex digit. In a sample <a36> stands for 36 made-up characters.
_CLASSES = {"<a>": "[A-Za-z0-9]", "<w>": "[A-Za-z0-9_-]", "<h>": "[0-9a-f]"}
_ALPHABETS = {
    "a": "a1B2c3D4e5F6g7H8i9J0", "c": "A2B3C4D5E6F7GHIJKLMN", "d": "7305918264", "h": "0a1b2c3d4e5f6789",
    "k": "QPZRY9X8GF2TVDW0S3JN", "l": "aBcDeFgHiJkLmNoPqRsT",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Key:
    """One vendor's key format. The prefixes are searched first, so a text without them costs one search per prefix.

    A length such as `{36,}` is today's length or more: formats grow. `lead` is how much of the key stands before the prefix.
    """

    id: str
    vendor: str
    prefixes: str  # separated by spaces
    form: str
    sample: str
    lead: int = 0


_KEYS = (
    _Key("anthropic_key", "Anthropic", "sk-ant-", "sk-ant-[a-z0-9]{2,12}-<w>{20,}+", "sk-ant-api03-<a93>"),
    _Key("openrouter_key", "OpenRouter", "sk-or-", "sk-or-v1-<h>{64}", "sk-or-v1-<h64>"),
    _Key("openai_key", "OpenAI", "sk-", "sk-(?:(?:proj|svcacct|admin|None)-<w>{20,}+|(?!ant-|or-)<a>{20,}+)", "sk-proj-<a64>"),
    _Key("github_token", "GitHub", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "(?:gh[oprsu]_<a>{36,}+|github_pat_<a>{22}_<a>{59})",
         "ghp_<a36>"),
    _Key("gitlab_token", "GitLab", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- GR1348941",
         r"(?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-|GR1348941)<w>{20,}+(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?", "glpat-<a20>"),
    _Key("aws_access_key", "AWS access key id", "AKIA ASIA ABIA ACCA AROA AIDA", "(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}",
         "AKIA<c16>"),
    _Key("slack_token", "Slack", "xox xapp-",
         r"(?:xoxe\.)?(?:xox[abceoprs]-(?:[0-9]-)?[A-Za-z0-9-]{20,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+)", "xoxb-<d12>-<a24>"),
    _Key("slack_webhook", "Slack webhook", "hooks.slack.com/",
         r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}+",
         "hooks.slack.com/services/T<c8>/B<c8>/<a24>"),
    _Key("stripe_key", "Stripe", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_",
         "(?:(?:sk|rk|pk)_(?:live|test)_<a>{16,}+|whsec_[A-Za-z0-9+/=]{24,}+)", "sk_live_<a24>"),
    _Key("google_key", "Google API", "AIza", "AIza<w>{35}", "AIza<a35>"),
    _Key("google_oauth", "Google OAuth", "GOCSPX- ya29.", r"(?:GOCSPX-<w>{28}|ya29\.<w>{20,}+)", "GOCSPX-<a28>"),
    _Key("twilio_key", "Twilio", "SK AC", "(?:SK|AC)<h>{32}", "SK<h32>"),
    _Key("sendgrid_key", "SendGrid", "SG.", r"SG\.<w>{16,}+\.<w>{16,}+", "SG.<a22>.<a43>"),
    _Key("mailgun_key", "Mailgun", "key-", "key-<h>{32}", "key-<h32>"),
    _Key("mailchimp_key", "Mailchimp", "-us", "<h>{32}-us[0-9]{1,2}", "<h32>-us12", lead=32),
    _Key("npm_token", "npm", "npm_", "npm_<a>{36}", "npm_<a36>"),
    _Key("pypi_token", "PyPI", "pypi-AgE", "pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBp)<w>{50,}+", "pypi-AgEIcHlwaS5vcmc<a70>"),
    _Key("rubygems_key", "RubyGems", "rubygems_", "rubygems_<h>{48}", "rubygems_<h48>"),
    _Key("docker_token", "Docker Hub", "dckr_pat_ dckr_oat_", "dckr_[po]at_<w>{27,}+", "dckr_pat_<a27>"),
    _Key("huggingface_token", "Hugging Face", "hf_ api_org_", "(?:hf_|api_org_)<a>{34}", "hf_<l34>"),
    _Key("replicate_token", "Replicate", "r8_", "r8_<a>{37}", "r8_<a37>"),
    _Key("groq_key", "Groq", "gsk_", "gsk_<a>{52}", "gsk_<a52>"),
    _Key("xai_key", "xAI", "xai-", "xai-<a>{70,}+", "xai-<a80>"),
    _Key("perplexity_key", "Perplexity", "pplx-", "pplx-<a>{40,}+", "pplx-<a48>"),
    _Key("tavily_key", "Tavily", "tvly-", "tvly-<w>{20,}+", "tvly-dev-<a32>"),
    _Key("langsmith_key", "LangSmith", "lsv2_", "lsv2_[a-z]{2}_<h>{32}_<h>{10}", "lsv2_pt_<h32>_<h10>"),
    _Key("pinecone_key", "Pinecone", "pcsk_", "pcsk_[A-Za-z0-9_]{40,}+", "pcsk_<a6>_<a60>"),
    _Key("supabase_key", "Supabase", "sbp_ sb_secret_", "(?:sbp_<h>{40}|sb_secret_<w>{20,}+)", "sbp_<h40>"),
    _Key("digitalocean_token", "DigitalOcean", "dop_v1_ doo_v1_ dor_v1_", "do[opr]_v1_<h>{64}", "dop_v1_<h64>"),
    _Key("azure_storage_key", "Azure storage", "AccountKey= SharedAccessKey=",
         "(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{43,88}={1,2})", "AccountKey=<a86>=="),
    _Key("azure_client_secret", "Azure client secret", "8Q~", "[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}", "a1B8Q~<a34>",
         lead=3),
    _Key("discord_token", "Discord bot", "", r"[MNO]<w>{23,27}\.<w>{6}\.<w>{27,}+", "M<a23>.<a6>.<a38>"),
    _Key("discord_webhook", "Discord webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
         r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/<w>{60,}+", "discord.com/api/webhooks/<d18>/<a68>"),
    _Key("telegram_token", "Telegram bot", ":AA", "[^0-9]{0,2}([0-9]{8,10}:AA<w>{32,33})", "<d10>:AA<a33>", lead=10),
    _Key("databricks_token", "Databricks", "dapi", "dapi<h>{32}(?:-[0-9])?", "dapi<h32>"),
    _Key("shopify_token", "Shopify", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}", "shpat_<h32>"),
    _Key("square_token", "Square", "sq0atp- sq0csp- EAAA", "(?:sq0atp-<w>{22}|sq0csp-<w>{43}|EAAA<w>{60})", "sq0csp-<a43>"),
    _Key("linear_key", "Linear", "lin_api_ lin_oauth_", "lin_(?:api|oauth)_<a>{40,}+", "lin_api_<a40>"),
    _Key("notion_token", "Notion", "ntn_ secret_", "(?:ntn_<a>{43,}+|secret_<a>{43})", "ntn_<a46>"),
    _Key("airtable_token", "Airtable", "pat", r"pat<a>{14}\.<h>{64}", "pat<a14>.<h64>"),
    _Key("figma_token", "Figma", "figd_", "figd_<w>{40,}+", "figd_<a40>"),
    _Key("dropbox_token", "Dropbox", "sl.", r"sl\.(?:u\.)?<w>{120,}+", "sl.u.<a140>"),
    _Key("atlassian_token", "Atlassian", "ATATT3x ATCTT3x", "AT[AC]TT3x[A-Za-z0-9_=-]{60,}+", "ATATT3x<a180>"),
    _Key("vault_token", "HashiCorp Vault", "hvs. hvb. hvr.", r"hv[sbr]\.<w>{24,}+", "hvs.<a95>"),
    _Key("terraform_token", "Terraform Cloud", ".atlasv1.", r"<a>{14}\.atlasv1\.<w>{60,}+", "<a14>.atlasv1.<a67>", lead=14),
    _Key("pulumi_token", "Pulumi", "pul-", "pul-<h>{40}", "pul-<h40>"),
    _Key("doppler_token", "Doppler", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?<a>{40,44}", "dp.pt.<a43>"),
    _Key("postman_key", "Postman", "PMAK-", "PMAK-<h>{24}-<h>{34}", "PMAK-<h24>-<h34>"),
    _Key("grafana_token", "Grafana", "glsa_ glc_", "(?:glsa_<a>{32}_[0-9A-Fa-f]{8}|glc_[A-Za-z0-9+/=]{32,}+)", "glsa_<a32>_<h8>"),
    _Key("newrelic_key", "New Relic", "NRAK- NRJS- NRII-", "(?:NRAK-[A-Z0-9]{27}|NRJS-<h>{19}|NRII-<w>{32})", "NRAK-<c27>"),
    _Key("newrelic_license", "New Relic", "NRAL", "<h>{36}NRAL", "<h36>NRAL", lead=36),
    _Key("sentry_token", "Sentry", "sntrys_ sntryu_", "(?:sntryu_<h>{64}|sntrys_[A-Za-z0-9+/=_-]{60,}+)", "sntryu_<h64>"),
    _Key("sonar_token", "SonarQube", "squ_ sqp_ sqa_", "sq[upa]_<h>{40}", "squ_<h40>"),
    _Key("planetscale_token", "PlanetScale", "pscale_", "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}+", "pscale_tkn_<a43>"),
    _Key("heroku_key", "Heroku", "HRKU-", "HRKU-(?:AA)?<w>{36,}+", "HRKU-AA<a58>"),
    _Key("cloudflare_origin_key", "Cloudflare origin CA", "v1.0-", r"v1\.0-<h>{24}-<h>{146}", "v1.0-<h24>-<h146>"),
    _Key("plaid_token", "Plaid", "access-sandbox- access-development- access-production-",
         "access-(?:sandbox|development|production)-<h>{8}(?:-<h>{4}){3}-<h>{12}", "access-production-<h8>-<h4>-<h4>-<h4>-<h12>"),
    _Key("buildkite_token", "Buildkite", "bkua_ bkaj_", "bk(?:ua|aj)_[0-9A-Za-z]{40}", "bkua_<h40>"),
    _Key("circleci_token", "CircleCI", "CCIPAT_ CCIPRJ_", "CCIP(?:AT|RJ)_<a>{20,26}_<h>{40}", "CCIPAT_<a22>_<h40>"),
    _Key("typeform_token", "Typeform", "tfp_", "tfp_<w>{40,}+", "tfp_<a44>"),
    _Key("contentful_token", "Contentful", "CFPAT-", "CFPAT-<w>{43}", "CFPAT-<a43>"),
    _Key("mapbox_token", "Mapbox", "sk.eyJ pk.eyJ", r"[sp]k\.eyJ<w>{40,}+\.<w>{20,24}", "sk.eyJ<a80>.<a22>"),
    _Key("alibaba_key", "Alibaba Cloud", "LTAI", "LTAI<a>{12,}+", "LTAI<a20>"),
    _Key("age_secret_key", "age", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
         "AGE-SECRET-KEY-1<k58>"),
    _Key("onepassword_token", "1Password", "ops_eyJ A3-",
         "(?:ops_eyJ<w>{100,}+={0,2}|A3-[A-Z0-9]{6}-[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4})", "A3-<c6>-<c6>-<c5>-<c5>-<c5>-<c5>"),
)  # fmt: skip


@cache
def _regex(form: str) -> LazyRegex:
    for name, characters in _CLASSES.items():
        form = form.replace(name, characters)
    # No letter or digit may follow: a key inside a longer run of letters is something else, such as base64.
    return LazyRegex(rf"{form}(?![A-Za-z0-9])")


def _finder(key: _Key) -> Callable[[Page], Iterator[Span]]:
    prefixes = listed(key.prefixes)

    def find(page: Page) -> Iterator[Span]:
        if prefixes:
            return chain.from_iterable(_with_prefix(page.text, prefix, key) for prefix in prefixes if prefix in page.long_words)
        matches = _regex(key.form).finditer(page.text)
        return (match.span() for match in matches if not joined(page.text[match.start() - 1 : match.start()]))

    return find


def _with_prefix(text: str, prefix: str, key: _Key) -> Iterator[Span]:
    form, done = _regex(key.form), 0
    for place in occurrences(text, prefix):
        # A long run of prefixes is one key and is judged once.
        if place < done or (not key.lead and joined(text[place - 1 : place])):
            continue
        match = form.match(text, max(0, place - key.lead))
        if match:
            start, done = match.span(match.lastindex or 0)
            if not joined(text[start - 1 : start]):
                yield start, done


def _pattern(key: _Key) -> Pattern:
    sample = re.sub(r"<([a-z])(\d+)>", lambda run: filler(int(run[2]), _ALPHABETS[run[1]]), key.sample)
    masked = sample.removeprefix("AccountKey=")
    return Pattern(
        id=key.id,
        label="API_KEY",
        why=f"A key or token of {key.vendor} gives the access of its owner.",
        finds=_finder(key),
        long_word=True,
        examples=marked(f'export KEY="{sample.removesuffix(masked)}«{masked}»" # rotate'),
        counter_examples=(masked[: 12 + len(sample) // 8],),
    )


VENDORS = tuple(_pattern(key) for key in _KEYS)
SPECIFIC = (*FORMS, *VENDORS)
