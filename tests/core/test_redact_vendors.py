"""Vendors' keys, both ways: made-up keys of each format are found wherever they stand, and what only looks like one is not."""

import random
import string

import pytest

from memory_mesh.core.redaction import PATTERNS, find, keys

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_letters,
    "H": "0123456789abcdef",
    "D": string.digits,
    "K": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
# How each vendor writes its keys, in letters of our own: {A36} is 36 letters or digits. Not taken from the code that is tested.
FORMATS = {
    "anthropic_key": ["sk-ant-api03-{W93}AA", "sk-ant-admin01-{W93}AA", "sk-ant-oat01-{W93}AA"],
    "openrouter_key": ["sk-or-v1-{H64}"],
    "openai_key": ["sk-{A20}T3BlbkFJ{A20}", "sk-proj-{W74}T3BlbkFJ{W74}", "sk-svcacct-{W60}", "sk-admin-{W60}", "sk-{A48}"],
    "github_token": ["ghp_{A36}", "gho_{A36}", "ghu_{A36}", "ghs_{A36}", "ghr_{A36}", "github_pat_{A22}_{A59}"],
    "gitlab_token": [
        "glpat-{W20}",
        "gldt-{W20}",
        "glrt-{W20}",
        "glcbt-{W24}",
        "glptt-{H40}",
        "glft-{W20}",
        "glagent-{W50}",
        "GR1348941{W20}",
    ],
    "aws_access_key": ["AKIA{U16}", "ASIA{U16}"],
    "slack_token": [
        "xoxb-{D12}-{D12}-{A24}",
        "xoxp-{D12}-{D12}-{D12}-{H32}",
        "xoxa-2-{D12}-{D12}-{A24}",
        "xapp-1-A{U10}-{D13}-{H64}",
    ],
    "slack_webhook": ["hooks.slack.com/services/T{U8}/B{U10}/{A24}"],
    "stripe_key": ["sk_live_{A24}", "sk_test_{A99}", "rk_live_{A24}", "pk_test_{A24}", "whsec_{A32}"],
    "google_key": ["AIza{W35}"],
    "google_oauth": ["GOCSPX-{W28}", "ya29.{W120}"],
    "twilio_key": ["SK{H32}", "AC{H32}"],
    "sendgrid_key": ["SG.{W22}.{W43}"],
    "mailgun_key": ["key-{H32}"],
    "mailchimp_key": ["{H32}-us1", "{H32}-us21"],
    "npm_token": ["npm_{A36}"],
    "pypi_token": ["pypi-AgEIcHlwaS5vcmc{W100}", "pypi-AgENdGVzdC5weXBpLm9yZw{W100}"],
    "rubygems_key": ["rubygems_{H48}"],
    "docker_token": ["dckr_pat_{W27}", "dckr_oat_{W32}"],
    "huggingface_token": ["hf_{L34}", "api_org_{L34}"],
    "replicate_token": ["r8_{A37}"],
    "groq_key": ["gsk_{A52}"],
    "xai_key": ["xai-{A80}"],
    "perplexity_key": ["pplx-{A48}"],
    "tavily_key": ["tvly-{A32}", "tvly-dev-{A32}"],
    "langsmith_key": ["lsv2_pt_{H32}_{H10}", "lsv2_sk_{H32}_{H10}"],
    "pinecone_key": ["pcsk_{A5}_{A63}"],
    "supabase_key": ["sbp_{H40}", "sb_secret_{W31}"],
    "digitalocean_token": ["dop_v1_{H64}", "doo_v1_{H64}", "dor_v1_{H64}"],
    "azure_storage_key": ["AccountKey={B86}==", "SharedAccessKey={B43}="],
    "azure_client_secret": ["{A3}8Q~{W34}"],
    "discord_token": ["M{A23}.{W6}.{W38}", "N{A23}.{W6}.{W27}"],
    "discord_webhook": ["discord.com/api/webhooks/{D18}/{W68}", "discordapp.com/api/webhooks/{D19}/{W68}"],
    "telegram_token": ["{D10}:AA{W33}", "{D8}:AA{W33}"],
    "databricks_token": ["dapi{H32}", "dapi{H32}-2"],
    "shopify_token": ["shpat_{H32}", "shpca_{H32}", "shppa_{H32}", "shpss_{H32}"],
    "square_token": ["sq0atp-{W22}", "sq0csp-{W43}", "EAAA{W60}"],
    "linear_key": ["lin_api_{A40}", "lin_oauth_{H64}"],
    "notion_token": ["ntn_{A46}", "secret_{A43}"],
    "airtable_token": ["pat{A14}.{H64}"],
    "figma_token": ["figd_{W40}"],
    "dropbox_token": ["sl.{W136}", "sl.u.{W140}"],
    "atlassian_token": ["ATATT3x{W180}={H8}", "ATCTT3x{W180}"],
    "vault_token": ["hvs.{W91}", "hvb.{W140}"],
    "terraform_token": ["{A14}.atlasv1.{W67}"],
    "pulumi_token": ["pul-{H40}"],
    "doppler_token": ["dp.pt.{A43}", "dp.st.dev.{A43}", "dp.sa.{A40}"],
    "postman_key": ["PMAK-{H24}-{H34}"],
    "grafana_token": ["glsa_{A32}_{H8}", "glc_{B60}="],
    "newrelic_key": ["NRAK-{U27}", "NRJS-{H19}", "NRII-{W32}"],
    "newrelic_license": ["{H36}NRAL"],
    "sentry_token": ["sntryu_{H64}", "sntrys_eyJ{B120}=_{B43}"],
    "sonar_token": ["squ_{H40}", "sqp_{H40}", "sqa_{H40}"],
    "planetscale_token": ["pscale_tkn_{W43}", "pscale_pw_{W43}", "pscale_oauth_{W32}"],
    "heroku_key": ["HRKU-AA{W58}", "HRKU-{H8}-{H4}-{H4}-{H4}-{H12}"],
    "cloudflare_origin_key": ["v1.0-{H24}-{H146}"],
    "plaid_token": ["access-production-{H8}-{H4}-{H4}-{H4}-{H12}", "access-sandbox-{H8}-{H4}-{H4}-{H4}-{H12}"],
    "buildkite_token": ["bkua_{H40}"],
    "circleci_token": ["CCIPAT_{A22}_{H40}"],
    "typeform_token": ["tfp_{W44}"],
    "contentful_token": ["CFPAT-{W43}"],
    "mapbox_token": ["sk.eyJ{W80}.{W22}", "pk.eyJ{W80}.{W22}"],
    "alibaba_key": ["LTAI{A20}"],
    "age_secret_key": ["AGE-SECRET-KEY-1{K58}"],
    "onepassword_token": ["A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}", "ops_eyJ{W200}"],
}
PLACES = [
    "{}",
    "I pasted {} into the chat, sorry.",
    'client = Client("{}")',
    '{{"auth": "{}", "n": 1}}',
    "https://example.org/cb?x={}&page=2",
    "AUTH={}\nNEXT=1",
    "- `{}`",
    "用{} 登录",
]


def made(format_: str, rng: random.Random) -> str:
    """A key of that format. It ends in a letter or digit, so that no trailing mark is in doubt."""
    parts = []
    for part in format_.replace("{", "\0{").replace("}", "}\0").split("\0"):
        if part.startswith("{"):
            alphabet = ALPHABETS[part[1]]
            part = "".join(rng.choices(alphabet, k=int(part[2:-1]) - 1)) + rng.choice(
                [char for char in alphabet if char.isalnum()]
            )
        parts.append(part)
    return "".join(parts)


def found_as(pattern: str, text: str) -> list[str]:
    return [text[one.start : one.end] for one in find(text) if one.pattern == pattern]


def test_every_vendor_has_its_formats_here() -> None:
    assert FORMATS.keys() == {pattern.id for pattern in keys.VENDORS}
    assert FORMATS.keys() <= {pattern.id for pattern in PATTERNS}


@pytest.mark.req("MESH-128")
@pytest.mark.parametrize("vendor", FORMATS)
def test_a_key_is_found_whole_wherever_it_stands(vendor: str) -> None:
    rng = random.Random(vendor)  # noqa: S311 - the same keys in every run
    for format_ in FORMATS[vendor]:
        for place in PLACES:
            key = made(format_, rng)
            text = place.format(key)
            assert found_as(vendor, text) == [key.partition("Key=")[2] if vendor == "azure_storage_key" else key], text


@pytest.mark.parametrize("vendor", FORMATS)
def test_what_only_looks_like_a_key_is_left_to_others(vendor: str) -> None:
    rng = random.Random(vendor)  # noqa: S311 - the same keys in every run
    for format_ in FORMATS[vendor]:
        key = made(format_, rng)
        assert found_as(vendor, key), "the key itself is found"
        for near in (key[: len(key) // 4 + 6], f"x{key}", key.swapcase(), key[: len(key) // 2] + " " + key[len(key) // 2 :]):
            if not excused(vendor, key, near):
                assert found_as(vendor, near) == [], near


def excused(vendor: str, key: str, near: str) -> bool:
    """Half of a long key may still be long enough, and a letter before `AccountKey=` changes nothing."""
    part = " " in near or len(near) < len(key)
    return (part and vendor in LENIENT) or (near.startswith("x") and vendor == "azure_storage_key")


# Formats without a fixed length: a part of a key is still treated as one.
LENIENT = {
    *(
        "anthropic_key",
        "openai_key",
        "gitlab_token",
        "slack_token",
        "slack_webhook",
        "stripe_key",
        "google_oauth",
        "sendgrid_key",
    ),
    *(
        "docker_token",
        "tavily_key",
        "atlassian_token",
        "vault_token",
        "grafana_token",
        "sentry_token",
        "dropbox_token",
        "discord_token",
    ),
    *("pypi_token", "alibaba_key", "supabase_key", "square_token", "onepassword_token", "mapbox_token"),
}
