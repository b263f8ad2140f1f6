"""Secrets with a recognisable form: signed tokens, private keys, authorization headers, URL credentials, vendors' API keys."""

import re
from collections.abc import Iterator
from itertools import pairwise

from memory_mesh.core.redaction.assignments import placeholder
from memory_mesh.core.redaction.pattern import BEFORE, Cue, Page, Pattern, Span, joined, listed, occurrences, words
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
    for found in _matches(_AUTHORIZATION, page, ("authorization", "x-auth-token")):
        scheme, value = (found[1] or "").lower(), found[2]
        if not placeholder(value) and (scheme in ("bearer", "basic") or any(map(str.isdigit, value))):
            yield found.span(2)
    for found in _matches(_BEARER, page, ("bearer",)):
        value = found[1]
        if not placeholder(value) and (any(map(str.isdigit, value)) or len(value) >= 32):
            yield found.start(1), found.start(1) + len(value.rstrip("."))
    for found in _USER_FLAG.finditer(page.text) if page.holds(("curl", "wget")) else ():
        name, _, word = found[1].partition(":")
        if not placeholder(word) and not (name.isdigit() and word.isdigit()):
            yield found.span(1)


def _matches(expression: LazyRegex, page: Page, stems: tuple[str, ...]) -> Iterator[re.Match[str]]:
    return filter(None, (expression.match(page.text, place) for place in page.places(stems)))


_USERINFO = LazyRegex(r"://([^\s/@:\"'<>\[\]{}]{0,128}):([^\s/\"'<>]{1,512})@(?=[\w\[.$%{-])")
_DUMMY = frozenset({"pass", "password", "passwd", "pw", "pwd", "secret", "token", "pat", "key"})


def _url_credentials(page: Page) -> Iterator[Span]:
    """Match `user:password` in front of a host."""
    for found in _USERINFO.finditer(page.text):
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
    "key token secret", r"(?:heroku|snyk|api|auth|access|secret)[\s_-]?(?:api)?[\s_-]?(?:key|token)s?|client[\s_-]secret"
)


def _uuid_keys(page: Page) -> Iterator[Span]:
    """Match a UUID only if the words before it call it an API key."""
    for tail in _UUID_TAIL.finditer(page.text):
        start = tail.start() - 8
        whole = start >= 0 and _UUID_HEAD.match(page.text, start) and not joined(page.text[start - 1 : start])
        if whole and _UUID_CUE.near(page, (start, tail.end()), before=32, after=0):
            yield start, tail.end()


FORMS = (
    Pattern("private_key", "PRIVATE_KEY", _private_keys, hints=("private key",)),
    Pattern("url_credentials", "CREDENTIALS", _url_credentials, hints=("://",)),
    Pattern("jwt", "JWT", _jwts, long_word=True, hints=("eyj",)),
    Pattern("aws_secret_key", "API_KEY", _aws_secrets, long_word=True, hints=_AWS_CUE.stems),
    Pattern("uuid_key", "API_KEY", _uuid_keys, long_word=True, hints=_UUID_CUE.stems),
    Pattern("bearer", "TOKEN", _authorizations, hints=("bearer", "authorization", "x-auth-token", "curl", "wget")),
)
GENERAL = (Pattern("hex_secret", "SECRET", _hex_secrets, long_word=True, hints=_HEX_CUE.stems),)


# --- keys with a prefix, an alphabet and a length that their vendor chose to make them recognisable ---

# In a form: <a> a letter or digit, <w> also _ and -, <h> a hex digit.
_CLASSES = {"<a>": "[A-Za-z0-9]", "<w>": "[A-Za-z0-9_-]", "<h>": "[0-9a-f]"}


def _vendor(id_: str, prefixes: str, form: str, *, lead: int = 0) -> Pattern:
    """Return the pattern of one vendor's keys. Its prefixes are searched first, so a text without them costs one search each.

    A length such as `{36,}` is today's length or more: formats grow. `lead` is how much of the key stands before the prefix.
    """
    starts = listed(prefixes)
    for name, characters in _CLASSES.items():
        form = form.replace(name, characters)
    # No letter or digit may follow: a key inside a longer run of letters is something else, such as base64.
    regex = LazyRegex(rf"{form}(?![A-Za-z0-9])")

    def find(page: Page) -> Iterator[Span]:
        for prefix in starts:
            if prefix in page.long_words:
                yield from _with_prefix(page.text, prefix, regex, lead)
        if not starts:
            matches = regex.finditer(page.text)
            yield from (match.span() for match in matches if not joined(page.text[match.start() - 1 : match.start()]))

    return Pattern(id_, "API_KEY", find, long_word=True)


def _with_prefix(text: str, prefix: str, form: LazyRegex, lead: int) -> Iterator[Span]:
    done = 0
    for place in occurrences(text, prefix):
        # A long run of prefixes is one key and is judged once.
        if place < done or (not lead and joined(text[place - 1 : place])):
            continue
        if match := form.match(text, max(0, place - lead)):
            start, done = match.span(match.lastindex or 0)
            if not joined(text[start - 1 : start]):
                yield start, done


VENDORS = (
    _vendor("anthropic_key", "sk-ant-", "sk-ant-[a-z0-9]{2,12}-<w>{20,}+"),
    _vendor("openrouter_key", "sk-or-", "sk-or-v1-<h>{64}"),
    _vendor("openai_key", "sk-", "sk-(?:(?:proj|svcacct|admin|None)-<w>{20,}+|(?!ant-|or-)<a>{20,}+)"),
    _vendor("github_token", "ghp_ gho_ ghu_ ghs_ ghr_ github_pat_", "(?:gh[oprsu]_<a>{36,}+|github_pat_<a>{22}_<a>{59})"),
    _vendor("gitlab_token", "glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- GR1348941",
            r"(?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-|GR1348941)<w>{20,}+(?:\.[a-z0-9]{2}\.[a-z0-9]{9})?"),
    _vendor("aws_access_key", "AKIA ASIA ABIA ACCA AROA AIDA", "(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}"),
    _vendor("slack_token", "xox xapp-",
            r"(?:xoxe\.)?(?:xox[abceoprs]-(?:[0-9]-)?[A-Za-z0-9-]{20,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+)"),
    _vendor("slack_webhook", "hooks.slack.com/", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}+"),
    _vendor("stripe_key", "sk_live_ sk_test_ rk_live_ rk_test_ pk_live_ pk_test_ whsec_",
            "(?:(?:sk|rk|pk)_(?:live|test)_<a>{16,}+|whsec_[A-Za-z0-9+/=]{24,}+)"),
    _vendor("google_key", "AIza", "AIza<w>{35}"),
    _vendor("google_oauth", "GOCSPX- ya29.", r"(?:GOCSPX-<w>{28}|ya29\.<w>{20,}+)"),
    _vendor("twilio_key", "SK AC", "(?:SK|AC)<h>{32}"),
    _vendor("sendgrid_key", "SG.", r"SG\.<w>{16,}+\.<w>{16,}+"),
    _vendor("mailgun_key", "key-", "key-<h>{32}"),
    _vendor("mailchimp_key", "-us", "<h>{32}-us[0-9]{1,2}", lead=32),
    _vendor("npm_token", "npm_", "npm_<a>{36}"),
    _vendor("pypi_token", "pypi-AgE", "pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBp)<w>{50,}+"),
    _vendor("rubygems_key", "rubygems_", "rubygems_<h>{48}"),
    _vendor("docker_token", "dckr_pat_ dckr_oat_", "dckr_[po]at_<w>{27,}+"),
    _vendor("huggingface_token", "hf_ api_org_", "(?:hf_|api_org_)<a>{34}"),
    _vendor("replicate_token", "r8_", "r8_<a>{37}"),
    _vendor("groq_key", "gsk_", "gsk_<a>{52}"),
    _vendor("xai_key", "xai-", "xai-<a>{70,}+"),
    _vendor("perplexity_key", "pplx-", "pplx-<a>{40,}+"),
    _vendor("tavily_key", "tvly-", "tvly-<w>{20,}+"),
    _vendor("langsmith_key", "lsv2_", "lsv2_[a-z]{2}_<h>{32}_<h>{10}"),
    _vendor("pinecone_key", "pcsk_", "pcsk_[A-Za-z0-9_]{40,}+"),
    _vendor("supabase_key", "sbp_ sb_secret_", "(?:sbp_<h>{40}|sb_secret_<w>{20,}+)"),
    _vendor("digitalocean_token", "dop_v1_ doo_v1_ dor_v1_", "do[opr]_v1_<h>{64}"),
    _vendor("azure_storage_key", "AccountKey= SharedAccessKey=", "(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{43,88}={1,2})"),
    _vendor("azure_client_secret", "8Q~", "[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}", lead=3),
    _vendor("discord_token", "", r"[MNO]<w>{23,27}\.<w>{6}\.<w>{27,}+"),
    _vendor("discord_webhook", "discord.com/api/webhooks/ discordapp.com/api/webhooks/",
            r"discord(?:app)?\.com/api/webhooks/[0-9]{17,20}/<w>{60,}+"),
    _vendor("telegram_token", ":AA", "[^0-9]{0,2}([0-9]{8,10}:AA<w>{32,33})", lead=10),
    _vendor("databricks_token", "dapi", "dapi<h>{32}(?:-[0-9])?"),
    _vendor("shopify_token", "shpat_ shpca_ shppa_ shpss_", "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}"),
    _vendor("square_token", "sq0atp- sq0csp- EAAA", "(?:sq0atp-<w>{22}|sq0csp-<w>{43}|EAAA<w>{60})"),
    _vendor("linear_key", "lin_api_ lin_oauth_", "lin_(?:api|oauth)_<a>{40,}+"),
    _vendor("notion_token", "ntn_ secret_", "(?:ntn_<a>{43,}+|secret_<a>{43})"),
    _vendor("airtable_token", "pat", r"pat<a>{14}\.<h>{64}"),
    _vendor("figma_token", "figd_", "figd_<w>{40,}+"),
    _vendor("dropbox_token", "sl.", r"sl\.(?:u\.)?<w>{120,}+"),
    _vendor("atlassian_token", "ATATT3x ATCTT3x", "AT[AC]TT3x[A-Za-z0-9_=-]{60,}+"),
    _vendor("vault_token", "hvs. hvb. hvr.", r"hv[sbr]\.<w>{24,}+"),
    _vendor("terraform_token", ".atlasv1.", r"<a>{14}\.atlasv1\.<w>{60,}+", lead=14),
    _vendor("pulumi_token", "pul-", "pul-<h>{40}"),
    _vendor("doppler_token", "dp.", r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?<a>{40,44}"),
    _vendor("postman_key", "PMAK-", "PMAK-<h>{24}-<h>{34}"),
    _vendor("grafana_token", "glsa_ glc_", "(?:glsa_<a>{32}_[0-9A-Fa-f]{8}|glc_[A-Za-z0-9+/=]{32,}+)"),
    _vendor("newrelic_key", "NRAK- NRJS- NRII-", "(?:NRAK-[A-Z0-9]{27}|NRJS-<h>{19}|NRII-<w>{32})"),
    _vendor("newrelic_license", "NRAL", "<h>{36}NRAL", lead=36),
    _vendor("sentry_token", "sntrys_ sntryu_", "(?:sntryu_<h>{64}|sntrys_[A-Za-z0-9+/=_-]{60,}+)"),
    _vendor("sonar_token", "squ_ sqp_ sqa_", "sq[upa]_<h>{40}"),
    _vendor("planetscale_token", "pscale_", "pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}+"),
    _vendor("heroku_key", "HRKU-", "HRKU-(?:AA)?<w>{36,}+"),
    _vendor("cloudflare_origin_key", "v1.0-", r"v1\.0-<h>{24}-<h>{146}"),
    _vendor("plaid_token", "access-sandbox- access-development- access-production-",
            "access-(?:sandbox|development|production)-<h>{8}(?:-<h>{4}){3}-<h>{12}"),
    _vendor("buildkite_token", "bkua_ bkaj_", "bk(?:ua|aj)_[0-9A-Za-z]{40}"),
    _vendor("circleci_token", "CCIPAT_ CCIPRJ_", "CCIP(?:AT|RJ)_<a>{20,26}_<h>{40}"),
    _vendor("typeform_token", "tfp_", "tfp_<w>{40,}+"),
    _vendor("contentful_token", "CFPAT-", "CFPAT-<w>{43}"),
    _vendor("mapbox_token", "sk.eyJ pk.eyJ", r"[sp]k\.eyJ<w>{40,}+\.<w>{20,24}"),
    _vendor("alibaba_key", "LTAI", "LTAI<a>{12,}+"),
    _vendor("age_secret_key", "AGE-SECRET-KEY-1", "AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}"),
    _vendor("onepassword_token", "ops_eyJ A3-", "(?:ops_eyJ<w>{100,}+={0,2}|A3-[A-Z0-9]{6}-[A-Z0-9]{6}(?:-[A-Z0-9]{5}){4})"),
)  # fmt: skip
