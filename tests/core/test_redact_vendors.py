"""Vendors' keys, both ways: made-up keys of each format are found wherever they stand, and what
only looks like one is not."""

import random
import string

import pytest

from memory_mesh.core.language.redaction import PATTERNS, find, keys

ALPHABETS = {
    "A": string.ascii_letters + string.digits,
    "W": string.ascii_letters + string.digits + "_-",
    "B": string.ascii_letters + string.digits + "+/",
    "U": string.ascii_uppercase + string.digits,
    "L": string.ascii_letters,
    "H": "0123456789abcdef",
    "D": string.digits,
    "E": string.ascii_lowercase + string.digits,
    "K": "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L",
}
# How each vendor writes its keys, in letters of our own: {A36} is 36 letters or digits. Not taken
# from the code that is tested.
FORMATS = {
    "anthropic_key": [
        "sk-ant-api03-{W93}AA",
        "sk-ant-admin01-{W93}AA",
        "sk-ant-oat01-{W93}AA",
        "sk-ant-{A90}",
    ],
    "openrouter_key": ["sk-or-v1-{H64}"],
    "openai_key": [
        "sk-{A20}T3BlbkFJ{A20}",
        "sk-proj-{W74}T3BlbkFJ{W74}",
        "sk-svcacct-{W60}",
        "sk-admin-{W60}",
        "sk-{A48}",
        "sess-{A40}",
    ],
    "huggingface_token": ["hf_{L34}", "hf_{A34}", "api_org_{L34}"],
    "replicate_token": ["r8_{A37}"],
    "groq_key": ["gsk_{A52}"],
    "xai_key": ["xai-{A80}"],
    "perplexity_key": ["pplx-{A48}", "pplx-{H48}"],
    "fireworks_key": ["fw_{A24}"],
    "cerebras_key": ["csk-{A48}"],
    "together_key": ["tgp_v1_{W43}"],
    "nvidia_key": ["nvapi-{W64}"],
    "voyage_key": ["pa-{W43}"],
    "jina_key": ["jina_{A60}"],
    "llamacloud_key": ["llx-{A48}"],
    "elevenlabs_key": ["sk_{H48}"],
    "tavily_key": ["tvly-{A32}", "tvly-dev-{A32}"],
    "brave_search_key": ["BSA{A28}"],
    "firecrawl_key": ["fc-{H32}"],
    "langsmith_key": ["lsv2_pt_{H32}_{H10}", "lsv2_sk_{H32}_{H10}"],
    "logfire_token": ["pylf_v1_us_{A43}"],
    "pinecone_key": ["pcsk_{A5}_{A63}"],
    "kaggle_token": ["KGAT_{H32}"],
    "wandb_key": ["wandb_v1_{A40}"],
    "runpod_key": ["rpa_{U40}"],
    "e2b_key": ["e2b_{H40}"],
    "apify_token": ["apify_api_{A36}"],
    "rapidapi_key": ["{H10}msh{H15}p1{H6}jsn{H12}"],
    "github_token": [
        "ghp_{A36}",
        "gho_{A36}",
        "ghu_{A36}",
        "ghs_{A36}",
        "ghr_{A36}",
        "github_pat_{A22}_{A59}",
    ],
    "gitlab_token": [
        *(
            "glpat-{W20}",
            "gldt-{W20}",
            "glrt-{W20}",
            "glcbt-{A2}_{W20}",
            "glptt-{H40}",
            "glft-{W20}",
            "glffct-{W20}",
            "glimt-{A25}",
        ),
        *(
            "glagent-{W50}",
            "glsoat-{W20}",
            "gloas-{W64}",
            "GR1348941{W20}",
            "glpat-{A27}.01.{E2}1234567",
        ),
    ],
    "gitlab_session": ["_gitlab_session={H32}"],
    "bitbucket_token": ["ATBB{A32}"],
    "npm_token": ["npm_{A36}"],
    "pypi_token": ["pypi-AgEIcHlwaS5vcmc{W100}", "pypi-AgENdGVzdC5weXBpLm9yZw{W100}"],
    "rubygems_key": ["rubygems_{H48}"],
    "clojars_token": ["CLOJARS_{H60}"],
    "crates_token": ["cio{A32}"],
    "nuget_key": ["oy2{E43}"],
    "docker_token": ["dckr_pat_{W27}", "dckr_oat_{W32}"],
    "jfrog_token": ["AKCp{A69}", "cmVmd{A59}"],
    "circleci_token": ["CCIPAT_{A22}_{H40}", "CCIPRJ_{A22}_{H40}"],
    "buildkite_token": ["bkua_{H40}"],
    "octopus_key": ["API-{U26}"],
    "sonar_token": ["squ_{H40}", "sqp_{H40}", "sqa_{H40}"],
    "sourcegraph_token": ["sgp_{H40}", "sgp_{H16}_{H40}", "sgp_local_{H40}", "slk_{H64}"],
    "snyk_token": ["snyk_uat.{A40}"],
    "prefect_key": ["pnu_{A36}"],
    "infracost_token": ["ico-{A32}"],
    "pulumi_token": ["pul-{H40}"],
    "terraform_token": ["{A14}.atlasv1.{W67}"],
    "vault_token": ["hvs.{W91}", "hvs.{A24}", "hvb.{W140}"],
    "vault_old_token": ["s.{A23}7"],
    "doppler_token": ["dp.pt.{A43}", "dp.st.dev.{A43}", "dp.sa.{A40}"],
    "harness_token": ["pat.{W22}.{A24}.{A20}", "sat.{W22}.{A24}.{A20}"],
    "postman_key": ["PMAK-{H24}-{H34}"],
    "readme_key": ["rdme_{E70}"],
    "scalingo_token": ["tk-us-{W48}"],
    "aws_access_key": ["AKIA{U16}", "ASIA{U16}", "ABIA{U16}", "ACCA{U16}"],
    "aws_bedrock_key": ["ABSK{A110}", "bedrock-api-key-{A80}"],
    "aws_appsync_key": ["da2-{E26}"],
    "aws_mws_token": ["amzn.mws.{H8}-{H4}-{H4}-{H4}-{H12}"],
    "google_key": ["AIza{W35}"],
    "google_oauth": ["GOCSPX-{W28}", "ya29.{W120}", "1//0{W60}"],
    "firebase_key": ["AAAA{W7}:{W140}"],
    "azure_storage_key": ["AccountKey={B86}==", "SharedAccessKey={B43}="],
    "azure_client_secret": ["{A3}8Q~{W34}", "{A3}7Q~{W31}"],
    "azure_devops_token": ["{A52}JQQJ99{A18}AZDO{A4}"],
    "alibaba_key": ["LTAI{A20}"],
    "tencent_key": ["AKID{A32}"],
    "volcengine_key": ["AKLT{A40}"],
    "yandex_key": ["AQVN{W36}", "t1.{A20}.{A86}", "YCA{A37}", "y0_{A55}"],
    "scaleway_key": ["SCW{U17}"],
    "digitalocean_token": ["dop_v1_{H64}", "doo_v1_{H64}", "dor_v1_{H64}"],
    "heroku_key": ["HRKU-AA{W58}", "HRKU-{H8}-{H4}-{H4}-{H4}-{H12}"],
    "fly_token": ["fo1_{W43}", "fm2_{B120}", "fm1r_{B120}"],
    "netlify_token": ["nfp_{A36}"],
    "vercel_token": ["vcp_{A48}"],
    "render_key": ["rnd_{A28}"],
    "sanity_token": ["sk{A88}"],
    "supabase_key": ["sbp_{H40}", "sb_secret_{W31}"],
    "planetscale_token": ["pscale_tkn_{W43}", "pscale_pw_{W43}", "pscale_oauth_{W32}"],
    "neon_key": ["napi_{E64}"],
    "aiven_token": ["AVNS_{A19}"],
    "databricks_token": ["dapi{H32}", "dapi{H32}-2"],
    "clickhouse_key": ["4b1d{A38}"],
    "mongodb_key": ["mdb_sa_sk_{A40}"],
    "cloudflare_key": ["v1.0-{H24}-{H146}"],
    "tailscale_key": ["tskey-auth-{A11}CNTRL-{A32}", "tskey-api-{A12}-{A32}"],
    "defined_key": ["dnkey-{W26}-{W52}"],
    "openshift_token": ["sha256~{W43}"],
    "deno_token": ["ddp_{A36}"],
    "modal_token": ["ak-{A22}", "as-{A22}"],
    "age_secret_key": ["AGE-SECRET-KEY-1{K58}"],
    "onepassword_token": [
        "A3-{U6}-{U6}-{U5}-{U5}-{U5}-{U5}",
        "A3-{U6}-{U11}-{U5}-{U5}-{U5}",
        "ops_eyJ{W200}",
    ],
    "jwt_in_base64": ["ZXlKaGJHY2lPaU{A80}"],
    "private_key_in_base64": ["LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVktLS0tL{A80}"],
    "datadog_key": ["ddapp_{A34}"],
    "dynatrace_token": ["dt0c01.{U24}.{U64}", "dt0s16.{U24}.{U64}"],
    "grafana_token": ["glsa_{A32}_{H8}", "glc_{B60}=", "eyJrIjoi{A90}"],
    "newrelic_key": ["NRAK-{U27}", "NRJS-{H19}", "NRII-{W32}", "NRAA-{H27}"],
    "newrelic_license": ["{H36}NRAL"],
    "sentry_token": ["sntryu_{H64}", "sntrys_eyJ{B120}=_{B43}"],
    "honeycomb_key": ["hcaik_{E58}"],
    "posthog_key": ["phc_{A43}", "phx_{A43}"],
    "pagerduty_key": ["pdus+_0XBPWQQ_{A20}"],
    "rootly_token": ["rootly_{H64}"],
    "stackhawk_key": ["hawk.{A20}.{A20}"],
    "slack_token": [
        *(
            "xoxb-{D12}-{D12}-{A24}",
            "xoxp-{D12}-{D12}-{D12}-{H32}",
            "xoxa-2-{D12}-{D12}-{A24}",
            "xapp-1-A{U10}-{D13}-{H64}",
        ),
        *("xoxe.xoxp-1-{A160}", "xoxe-1-{A146}", "xoxs-{D10}-{D10}-{D10}-{H32}"),
    ],
    "slack_webhook": ["hooks.slack.com/services/T{U8}/B{U10}/{A24}"],
    "discord_token": ["M{A23}.{W6}.{W38}", "N{A23}.{W6}.{W27}", "mfa.{W84}"],
    "discord_webhook": [
        "discord.com/api/webhooks/{D18}/{W68}",
        "discordapp.com/api/webhooks/{D19}/{W68}",
    ],
    "teams_webhook": [
        (
            "webhook.office.com/webhookb2/{H8}-{H4}-{H4}-{H4}-{H12}@{H8}-{H4}-{H4}-{H4}-{H12}/"
            "IncomingWebhook/{H32}/{H8}-{H4}-{H4}-{H4}-{H12}"
        )
    ],
    "zapier_webhook": ["hooks.zapier.com/hooks/catch/{D7}/{A7}"],
    "telegram_token": ["{D10}:AA{W33}", "{D8}:AA{W33}"],
    "twilio_key": ["SK{H32}", "AC{H32}"],
    "sendgrid_key": ["SG.{W22}.{W43}"],
    "mailgun_key": ["key-{H32}", "pubkey-{H32}"],
    "mailchimp_key": ["{H32}-us1", "{H32}-us21"],
    "mandrill_key": ["md-{A22}"],
    "mailersend_token": ["mlsn.{H64}"],
    "brevo_key": ["xkeysib-{H64}-{A16}"],
    "resend_key": ["re_{A8}_{A24}"],
    "klaviyo_key": ["pk_{H34}"],
    "facebook_token": ["EAACEdEose0cBA{A150}", "EAAM{A120}"],
    "twitter_bearer": ["AAAAAAAAAAAAAAAAAAAAAA{A80}"],
    "stripe_key": [
        "sk_live_{A24}",
        "sk_test_{A99}",
        "rk_live_{A24}",
        "pk_test_{A24}",
        "whsec_{A32}",
    ],
    "square_token": ["sq0atp-{W22}", "sq0csp-{W43}", "EAAA{W60}"],
    "shopify_token": ["shpat_{H32}", "shpca_{H32}", "shppa_{H32}", "shpss_{H32}"],
    "paypal_braintree_token": ["access_token$production${E16}${H32}"],
    "razorpay_key": ["rzp_live_{A14}"],
    "flutterwave_key": ["FLWSECK_TEST-{H32}-X", "FLWSECK_TEST-{H12}", "FLWPUBK_TEST-{H32}-X"],
    "duffel_token": ["duffel_test_{W43}", "duffel_live_{W43}"],
    "easypost_key": ["EZAK{A54}", "EZTK{A54}"],
    "shippo_token": ["shippo_live_{H40}"],
    "plaid_token": [
        "access-production-{H8}-{H4}-{H4}-{H4}-{H12}",
        "access-sandbox-{H8}-{H4}-{H4}-{H4}-{H12}",
    ],
    "mercury_token": ["secret-token:mercury_production_wma_{A40}"],
    "atlassian_token": ["ATATT3x{W180}={H8}", "ATCTT3x{W180}", "ATTA{H72}"],
    "linear_key": ["lin_api_{A40}", "lin_oauth_{H64}"],
    "notion_token": ["ntn_{D11}{A35}", "secret_{A43}"],
    "airtable_token": ["pat{A14}.{H64}"],
    "figma_token": ["figd_{W40}"],
    "dropbox_token": ["sl.{W136}", "sl.u.{W140}"],
    "hubspot_token": ["pat-na1-{H8}-{H4}-{H4}-{H4}-{H12}"],
    "intercom_token": ["dG9rO{A55}"],
    "contentful_token": ["CFPAT-{W43}"],
    "typeform_token": ["tfp_{W44}", "tfp_{W59}"],
    "mapbox_token": ["sk.eyJ{W80}.{W22}", "pk.eyJ{W80}.{W22}"],
    "maxmind_key": ["{A6}_{A29}_mmk"],
    "frameio_token": ["fio-u-{W64}"],
    "adobe_secret": ["p8e-{A32}"],
    "adafruit_key": ["aio_{A28}"],
    "intra42_secret": ["s-s4t2ud-{H64}", "s-s4t2af-{H64}"],
    "authress_key": ["sc_{A20}.{A4}.acc_{A20}.{B60}"],
    "settlemint_token": ["sm_aat_{A16}", "sm_pat_{A16}", "sm_sat_{A16}"],
    "zuplo_key": ["zpka_{A48}"],
    "launchdarkly_key": ["sdk-{H8}-{H4}-{H4}-{H4}-{H12}", "api-{H8}-{H4}-{H4}-{H4}-{H12}"],
    "salesforce_token": ["00D{A15}!{A96}"],
    "zoho_token": ["1000.{H32}.{H32}"],
    "wakatime_key": ["waka_{H8}-{H4}-{H4}-{H4}-{H12}"],
    "pubnub_key": ["sec-c-{A64}"],
    "nylas_key": ["nyk_v0_{A64}"],
    "retool_token": ["retool_{A32}"],
    "beamer_key": ["b_{A44}"],
    "lob_key": ["live_{H35}", "test_{H35}", "live_pub_{H31}"],
    "gocardless_token": ["live_{A39}Z"],
}
BY_ID = {pattern.id: pattern for pattern in keys.VENDORS}
NAMED = {"azure_storage_key", "gitlab_session"}  # a name and `=` stand before these keys
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
            assert found_as(vendor, text) == [key.partition("=")[2] if vendor in NAMED else key], (
                text
            )


@pytest.mark.parametrize("vendor", FORMATS)
def test_what_only_looks_like_a_key_is_left_to_others(vendor: str) -> None:
    rng = random.Random(vendor)  # noqa: S311 - the same keys in every run
    for format_ in FORMATS[vendor]:
        key = made(format_, rng)
        assert found_as(vendor, key), "the key itself is found"
        prefix = next((known for known in BY_ID[vendor].prefixes if key.startswith(known)), "x")
        for near in (
            f"{prefix}{key[len(prefix) :][:8]}",
            f"{prefix}a-name-of-words_and_no_more_than-that",
        ):
            assert found_as(vendor, near) == [], near
        # A letter before `AccountKey=` or a host changes nothing.
        if vendor not in NAMED and "/" not in prefix:
            assert key not in found_as(vendor, f"x{key}")


@pytest.mark.req("MESH-128")
def test_half_a_key_is_hidden_too_if_its_prefix_names_the_vendor() -> None:
    rng = random.Random("halves")  # noqa: S311 - the same keys in every run
    for vendor, form in (
        ("github_token", "ghp_{A36}"),
        ("npm_token", "npm_{A36}"),
        ("sentry_token", "sntryu_{H64}"),
    ):
        key = made(form, rng)[:-6]
        assert found_as(vendor, f"it starts with {key}") == [key]
