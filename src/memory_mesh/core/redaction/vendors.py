"""API keys and tokens that vendors made recognisable: a prefix, an alphabet, a length.

Each row is data: the prefixes are looked for first, so that a text without them costs one search each. A length written `{36,}`
is what the vendor gives out today or more; formats grow.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import chain

from memory_mesh.core.redaction.pattern import Example, Page, Pattern, Span, filler, joined, occurrences
from memory_mesh.core.text import LazyRegex

_HEX = "0a1b2c3d4e5f6789"
_LETTERS = "aBcDeFgHiJkLmNoPqRsT"
_CAPITALS = "A2B3C4D5E6F7GHIJKLMN"
_DIGITS = "7305918264"


@dataclass(frozen=True, slots=True)
class _Key:
    """Its id, whose it is, what it is known by, its form, a made-up one, and how much of it stands before what it is known by."""

    id: str
    vendor: str
    prefixes: tuple[str, ...]
    form: str
    sample: str
    lead: int = 0


def _f(length: int) -> str:
    return filler(length)


def _h(length: int) -> str:
    return filler(length, _HEX)


_W = r"[A-Za-z0-9_-]"
_KEYS = (
    _Key("anthropic_key", "Anthropic", ("sk-ant-",), rf"sk-ant-[a-z0-9]{{2,12}}-{_W}{{20,}}+", "sk-ant-api03-" + _f(93)),
    _Key("openrouter_key", "OpenRouter", ("sk-or-",), r"sk-or-v1-[0-9a-f]{64}", "sk-or-v1-" + _h(64)),
    _Key("openai_key", "OpenAI", ("sk-",), rf"sk-(?:(?:proj|svcacct|admin|None)-{_W}{{20,}}+|(?!ant-|or-)[A-Za-z0-9]{{20,}}+)",
         "sk-proj-" + _f(64)),
    _Key("github_token", "GitHub", ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
         r"(?:gh[oprsu]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59})", "ghp_" + _f(36)),
    _Key("gitlab_token", "GitLab",
         ("glpat-", "gldt-", "glrt-", "glrtr-", "glcbt-", "glptt-", "glft-", "glimt-", "glagent-", "glsoat-", "GR1348941"),
         rf"(?:gl(?:pat|dt|rtr?|cbt|ptt|ft|imt|agent|soat)-|GR1348941){_W}{{20,}}+(?:\.[a-z0-9]{{2}}\.[a-z0-9]{{9}})?",
         "glpat-" + _f(20)),
    _Key("aws_access_key", "AWS access key id", ("AKIA", "ASIA", "ABIA", "ACCA", "AROA", "AIDA"),
         r"(?:AKIA|ASIA|ABIA|ACCA|AROA|AIDA)[A-Z0-9]{16}", "AKIA" + filler(16, _CAPITALS)),
    _Key("slack_token", "Slack", ("xox", "xapp-"),
         r"(?:xoxe\.)?(?:xox[abceoprs]-(?:[0-9]-)?[A-Za-z0-9-]{20,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+)",
         "xoxb-" + filler(12, _DIGITS) + "-" + _f(24)),
    _Key("slack_webhook", "Slack webhook", ("hooks.slack.com/",),
         r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}+",
         "hooks.slack.com/services/T" + filler(8, _CAPITALS) + "/B" + filler(8, _CAPITALS) + "/" + _f(24)),
    _Key("stripe_key", "Stripe", ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "pk_live_", "pk_test_", "whsec_"),
         r"(?:(?:sk|rk|pk)_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/=]{24,}+)", "sk_live_" + _f(24)),
    _Key("google_key", "Google API", ("AIza",), rf"AIza{_W}{{35}}", "AIza" + _f(35)),
    _Key("google_oauth", "Google OAuth", ("GOCSPX-", "ya29."), rf"(?:GOCSPX-{_W}{{28}}|ya29\.{_W}{{20,}}+)",
         "GOCSPX-" + _f(28)),
    _Key("twilio_key", "Twilio", ("SK", "AC"), r"(?:SK|AC)[0-9a-f]{32}", "SK" + _h(32)),
    _Key("sendgrid_key", "SendGrid", ("SG.",), rf"SG\.{_W}{{16,}}+\.{_W}{{16,}}+", "SG." + _f(22) + "." + _f(43)),
    _Key("mailgun_key", "Mailgun", ("key-",), r"key-[0-9a-f]{32}", "key-" + _h(32)),
    _Key("mailchimp_key", "Mailchimp", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}", _h(32) + "-us12", lead=32),
    _Key("npm_token", "npm", ("npm_",), r"npm_[A-Za-z0-9]{36}", "npm_" + _f(36)),
    _Key("pypi_token", "PyPI", ("pypi-AgE",), rf"pypi-AgE(?:IcHlwaS5vcmc|NdGVzdC5weXBp){_W}{{50,}}+",
         "pypi-AgEIcHlwaS5vcmc" + _f(70)),
    _Key("rubygems_key", "RubyGems", ("rubygems_",), r"rubygems_[0-9a-f]{48}", "rubygems_" + _h(48)),
    _Key("docker_token", "Docker Hub", ("dckr_pat_", "dckr_oat_"), rf"dckr_[po]at_{_W}{{27,}}+", "dckr_pat_" + _f(27)),
    _Key("huggingface_token", "Hugging Face", ("hf_", "api_org_"), r"(?:hf_|api_org_)[A-Za-z0-9]{34}",
         "hf_" + filler(34, _LETTERS)),
    _Key("replicate_token", "Replicate", ("r8_",), r"r8_[A-Za-z0-9]{37}", "r8_" + _f(37)),
    _Key("groq_key", "Groq", ("gsk_",), r"gsk_[A-Za-z0-9]{52}", "gsk_" + _f(52)),
    _Key("xai_key", "xAI", ("xai-",), r"xai-[A-Za-z0-9]{70,}+", "xai-" + _f(80)),
    _Key("perplexity_key", "Perplexity", ("pplx-",), r"pplx-[A-Za-z0-9]{40,}+", "pplx-" + _f(48)),
    _Key("tavily_key", "Tavily", ("tvly-",), rf"tvly-{_W}{{20,}}+", "tvly-dev-" + _f(32)),
    _Key("langsmith_key", "LangSmith", ("lsv2_",), r"lsv2_[a-z]{2}_[0-9a-f]{32}_[0-9a-f]{10}",
         "lsv2_pt_" + _h(32) + "_" + _h(10)),
    _Key("pinecone_key", "Pinecone", ("pcsk_",), r"pcsk_[A-Za-z0-9_]{40,}+", "pcsk_" + _f(6) + "_" + _f(60)),
    _Key("supabase_key", "Supabase", ("sbp_", "sb_secret_"), rf"(?:sbp_[0-9a-f]{{40}}|sb_secret_{_W}{{20,}}+)",
         "sbp_" + _h(40)),
    _Key("digitalocean_token", "DigitalOcean", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[0-9a-f]{64}",
         "dop_v1_" + _h(64)),
    _Key("azure_storage_key", "Azure storage", ("AccountKey=", "SharedAccessKey="),
         r"(?:Account|SharedAccess)Key=([A-Za-z0-9+/]{43,88}={1,2})", "AccountKey=" + _f(86) + "=="),
    _Key("azure_client_secret", "Azure client secret", ("8Q~",), r"[A-Za-z0-9_~.-]{3}8Q~[A-Za-z0-9_~.-]{31,34}",
         "a1B8Q~" + _f(34), lead=3),
    _Key("discord_token", "Discord bot", (), rf"[MNO][A-Za-z0-9_-]{{23,27}}\.{_W}{{6}}\.{_W}{{27,}}+",
         "M" + _f(23) + "." + _f(6) + "." + _f(38)),
    _Key("discord_webhook", "Discord webhook", ("discord.com/api/webhooks/", "discordapp.com/api/webhooks/"),
         rf"discord(?:app)?\.com/api/webhooks/[0-9]{{17,20}}/{_W}{{60,}}+",
         "discord.com/api/webhooks/" + filler(18, _DIGITS) + "/" + _f(68)),
    _Key("telegram_token", "Telegram bot", (":AA",), rf"[^0-9]{{0,2}}([0-9]{{8,10}}:AA{_W}{{32,33}})",
         filler(10, _DIGITS) + ":AA" + _f(33), lead=10),
    _Key("databricks_token", "Databricks", ("dapi",), r"dapi[0-9a-f]{32}(?:-[0-9])?", "dapi" + _h(32)),
    _Key("shopify_token", "Shopify", ("shpat_", "shpca_", "shppa_", "shpss_"), r"shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32}",
         "shpat_" + _h(32)),
    _Key("square_token", "Square", ("sq0atp-", "sq0csp-", "EAAA"), rf"(?:sq0atp-{_W}{{22}}|sq0csp-{_W}{{43}}|EAAA{_W}{{60}})",
         "sq0csp-" + _f(43)),
    _Key("linear_key", "Linear", ("lin_api_", "lin_oauth_"), r"lin_(?:api|oauth)_[A-Za-z0-9]{40,}+", "lin_api_" + _f(40)),
    _Key("notion_token", "Notion", ("ntn_", "secret_"), r"(?:ntn_[A-Za-z0-9]{43,}+|secret_[A-Za-z0-9]{43})", "ntn_" + _f(46)),
    _Key("airtable_token", "Airtable", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}", "pat" + _f(14) + "." + _h(64)),
    _Key("figma_token", "Figma", ("figd_",), rf"figd_{_W}{{40,}}+", "figd_" + _f(40)),
    _Key("dropbox_token", "Dropbox", ("sl.",), rf"sl\.(?:u\.)?{_W}{{120,}}+", "sl.u." + _f(140)),
    _Key("atlassian_token", "Atlassian", ("ATATT3x", "ATCTT3x"), r"AT[AC]TT3x[A-Za-z0-9_=-]{60,}+", "ATATT3x" + _f(180)),
    _Key("vault_token", "HashiCorp Vault", ("hvs.", "hvb.", "hvr."), rf"hv[sbr]\.{_W}{{24,}}+", "hvs." + _f(95)),
    _Key("terraform_token", "Terraform Cloud", (".atlasv1.",), rf"[A-Za-z0-9]{{14}}\.atlasv1\.{_W}{{60,}}+",
         _f(14) + ".atlasv1." + _f(67), lead=14),
    _Key("pulumi_token", "Pulumi", ("pul-",), r"pul-[0-9a-f]{40}", "pul-" + _h(40)),
    _Key("doppler_token", "Doppler", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.(?:[a-z0-9_-]{2,35}\.)?[A-Za-z0-9]{40,44}",
         "dp.pt." + _f(43)),
    _Key("postman_key", "Postman", ("PMAK-",), r"PMAK-[0-9a-f]{24}-[0-9a-f]{34}", "PMAK-" + _h(24) + "-" + _h(34)),
    _Key("grafana_token", "Grafana", ("glsa_", "glc_"), r"(?:glsa_[A-Za-z0-9]{32}_[0-9A-Fa-f]{8}|glc_[A-Za-z0-9+/=]{32,}+)",
         "glsa_" + _f(32) + "_" + _h(8)),
    _Key("newrelic_key", "New Relic", ("NRAK-", "NRJS-", "NRII-"),
         r"(?:NRAK-[A-Z0-9]{27}|NRJS-[0-9a-f]{19}|NRII-[A-Za-z0-9_-]{32})", "NRAK-" + filler(27, _CAPITALS)),
    _Key("newrelic_license", "New Relic", ("NRAL",), r"[0-9a-f]{36}NRAL", _h(36) + "NRAL", lead=36),
    _Key("sentry_token", "Sentry", ("sntrys_", "sntryu_"), r"(?:sntryu_[0-9a-f]{64}|sntrys_[A-Za-z0-9+/=_-]{60,}+)",
         "sntryu_" + _h(64)),
    _Key("sonar_token", "SonarQube", ("squ_", "sqp_", "sqa_"), r"sq[upa]_[0-9a-f]{40}", "squ_" + _h(40)),
    _Key("planetscale_token", "PlanetScale", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_.-]{32,}+",
         "pscale_tkn_" + _f(43)),
    _Key("heroku_key", "Heroku", ("HRKU-",), rf"HRKU-(?:AA)?{_W}{{36,}}+", "HRKU-AA" + _f(58)),
    _Key("cloudflare_origin_key", "Cloudflare origin CA", ("v1.0-",), r"v1\.0-[0-9a-f]{24}-[0-9a-f]{146}",
         "v1.0-" + _h(24) + "-" + _h(146)),
    _Key("plaid_token", "Plaid", ("access-sandbox-", "access-development-", "access-production-"),
         r"access-(?:sandbox|development|production)-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}",
         "access-production-" + _h(8) + "-" + _h(4) + "-" + _h(4) + "-" + _h(4) + "-" + _h(12)),
    _Key("buildkite_token", "Buildkite", ("bkua_", "bkaj_"), r"bk(?:ua|aj)_[0-9A-Za-z]{40}", "bkua_" + _h(40)),
    _Key("circleci_token", "CircleCI", ("CCIPAT_", "CCIPRJ_"), r"CCIP(?:AT|RJ)_[A-Za-z0-9]{20,26}_[0-9a-f]{40}",
         "CCIPAT_" + _f(22) + "_" + _h(40)),
    _Key("typeform_token", "Typeform", ("tfp_",), rf"tfp_{_W}{{40,}}+", "tfp_" + _f(44)),
    _Key("contentful_token", "Contentful", ("CFPAT-",), rf"CFPAT-{_W}{{43}}", "CFPAT-" + _f(43)),
    _Key("mapbox_token", "Mapbox", ("sk.eyJ", "pk.eyJ"), rf"[sp]k\.eyJ{_W}{{40,}}+\.{_W}{{20,24}}",
         "sk.eyJ" + _f(80) + "." + _f(22)),
    _Key("alibaba_key", "Alibaba Cloud", ("LTAI",), r"LTAI[A-Za-z0-9]{12,}+", "LTAI" + _f(20)),
    _Key("age_secret_key", "age", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}",
         "AGE-SECRET-KEY-1" + filler(58, "QPZRY9X8GF2TVDW0S3JN")),
    _Key("onepassword_token", "1Password", ("ops_eyJ", "A3-"),
         rf"(?:ops_eyJ{_W}{{100,}}+={{0,2}}|A3-[A-Z0-9]{{6}}-[A-Z0-9]{{6}}(?:-[A-Z0-9]{{5}}){{4}})",
         "A3-" + "-".join(filler(n, _CAPITALS) for n in (6, 6, 5, 5, 5, 5))),
)  # fmt: skip


@cache
def _expression(form: str) -> LazyRegex:
    # No letter or digit on either side: a key inside a longer run of letters is some other thing, such as base64.
    return LazyRegex(rf"{form}(?![A-Za-z0-9])")


def _finder(key: _Key) -> Callable[[Page], Iterator[Span]]:
    def finds(page: Page) -> Iterator[Span]:
        if key.prefixes:
            return chain.from_iterable(_from(page.text, prefix, key) for prefix in key.prefixes if prefix in page.long_words)
        return (
            found.span()
            for found in _expression(key.form).finditer(page.text)
            if not joined(page.text[found.start() - 1 : found.start()])
        )

    return finds


def _from(text: str, prefix: str, key: _Key) -> Iterator[Span]:
    form, done = _expression(key.form), 0
    for place in occurrences(text, prefix):
        # A long run of prefixes is one key, looked at once.
        if place < done or (not key.lead and joined(text[place - 1 : place])):
            continue
        found = form.match(text, max(0, place - key.lead))
        if found:
            start, done = found.span(found.lastindex or 0)
            if not joined(text[start - 1 : start]):
                yield start, done


def _pattern(key: _Key) -> Pattern:
    masked = key.sample.removeprefix("AccountKey=")
    return Pattern(
        id=key.id,
        label="API_KEY",
        why=f"A key or token of {key.vendor} acts for its owner.",
        finds=_finder(key),
        long_word=True,
        examples=(Example(f'export KEY="{key.sample}" # rotate', masked),),
        counter_examples=(masked[: 12 + len(key.sample) // 8],),
    )


PATTERNS = tuple(_pattern(key) for key in _KEYS)
