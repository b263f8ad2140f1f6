"""Claims: what a caller may give, how values are normalised and compared, and the trust of
memories."""

import pytest

from claim_table import BOTH, CORROBORATED, REVIEW, ROWS, STORED, SUPERSEDED, Case, cases, expected
from memory_mesh.core.claims import (
    Claim,
    Known,
    Outcome,
    Schema,
    Window,
    base_trust,
    compute_trust,
    judge,
    read_claim,
    read_schemas,
)
from memory_mesh.core.claims.claim import NORMALIZERS
from memory_mesh.core.errors import InvalidInput, SettingsError

WINDOWS = {
    "overlap": (Window(start="2024", end="2025"), Window(start="2023", end="2024-06")),
    "touch": (Window(start="2024"), Window(end="2024")),  # the ends belong to a window
    "apart": (Window(start="2024"), Window(end="2023")),
}
SESSIONS = {
    "both global": (None, None), "session and global": ("s1", None),
    "global and session": (None, "s1"), "same session": ("s1", "s1"), "two sessions": ("s1", "s2"),
}  # fmt: skip
TRUSTS = {"more": 0.9, "equal": 0.8, "less": 0.7}
FOUND = {
    None: STORED, Outcome.CORROBORATE: CORROBORATED, Outcome.KEEP_BOTH: BOTH,
    Outcome.QUARANTINE: REVIEW, Outcome.SUPERSEDE: SUPERSEDED,
}  # fmt: skip


def claims(case: Case) -> tuple[Claim, Claim]:
    """Return the new claim of a case and the stored one."""
    new, old = (
        Claim(subject="Ana", predicate="home", value="Porto", session_id=one)
        for one in SESSIONS[str(case.scopes)]
    )
    windows = WINDOWS[str(case.windows)]
    exclusive = {
        "both": (True, True),
        "only the new one": (True, False),
        "only the stored one": (False, True),
    }
    mine, theirs = exclusive.get(str(case.exclusive), (False, False))
    value = "Porto" if case.values == "same" else "Lisbon"
    pairs = ((new, mine, windows[0], "Porto"), (old, theirs, windows[1], value))
    first, second = (
        Claim(
            subject="Ana",
            predicate="home",
            value=value,
            session_id=one.session_id,
            exclusive=own,
            window=window,
        )
        for one, own, window, value in pairs
    )
    return first, second


@pytest.mark.req(
    "GRAPH-45",
    "GRAPH-46",
    "GRAPH-47",
    "GRAPH-48",
    "GRAPH-49",
    "GRAPH-50",
    "GRAPH-51",
    "GRAPH-52",
    "GRAPH-53",
    "GRAPH-54",
    "GRAPH-56",
)
def test_every_combination_has_the_outcome_of_the_table() -> None:
    wrong = []
    for case in cases():
        new, old = claims(case)
        schema = Schema(
            cardinality=str(case.cardinality),
            conflict_policy=str(case.conflict_policy),
            dedup_policy=str(case.dedup_policy),
        )
        verdict = judge(new, TRUSTS[str(case.trust)], [Known("old", old, 0.8)], schema)
        if FOUND[verdict.outcome] != expected(case):
            wrong.append((case, verdict))
    assert wrong == []
    assert {expected(case) for case in cases()} == {STORED, CORROBORATED, BOTH, REVIEW, SUPERSEDED}
    assert all(any(row.fits(case) for case in cases()) for row, _ in ROWS)


@pytest.mark.req("GRAPH-55")
def test_of_several_outcomes_the_strictest_wins_and_all_are_recorded() -> None:
    def verdict(policy: str, *known: tuple[str, float]) -> list[str]:
        new = Claim(subject="Ana", predicate="home", value="Porto")
        stored = [
            Known(f"m{at}", Claim(subject="Ana", predicate="home", value=value), trust)
            for at, (value, trust) in enumerate(known)
        ]
        judged = judge(new, 0.8, stored, Schema(conflict_policy=policy))
        return [str(judged.outcome), *(each.outcome.value for each in judged.judgements)]

    assert verdict("supersede", ("Lisbon", 0.8), ("Rome", 0.9)) == [
        "quarantine",
        "supersede",
        "quarantine",
    ]
    assert verdict("supersede", ("Porto", 0.8), ("Rome", 0.7)) == [
        "supersede",
        "corroborate",
        "supersede",
    ]
    assert verdict("keep_both", ("Porto", 0.8), ("Rome", 0.7)) == [
        "keep_both",
        "corroborate",
        "keep_both",
    ]
    assert verdict("supersede") == ["None"]


def test_the_end_of_a_claim_ends_the_claim_of_that_value_only() -> None:
    ended = Claim(
        subject="Ana",
        predicate="home",
        value="Porto",
        exclusive=False,
        window=Window(end="2024"),
        ended=True,
    )

    def outcome(
        value: str,
        trust: float = 0.5,
        window: Window = Window(),  # noqa: B008
        session: str | None = None,
    ) -> str:
        old = Claim(subject="Ana", predicate="home", value=value, window=window, session_id=session)
        return str(judge(ended, 0.5, [Known("old", old, trust)], Schema()).outcome)

    assert outcome("Porto") == "end"
    assert outcome("Porto", trust=0.6) == "quarantine", "a less trusted memory ends nothing"
    assert outcome("Lisbon") == "None"
    assert outcome("Porto", session="s1") == "None"
    assert outcome("Porto", window=Window(end="2023")) == "None", "it ended before"
    assert outcome("Porto", window=Window(start="2025")) == "None", "it began later"


@pytest.mark.req("GRAPH-59", "GRAPH-57")
@pytest.mark.parametrize(
    ("normalize", "value", "written"),
    [
        ("currency", "$1,250.50", "USD 1250.5"), ("currency", "C$ 30", "CAD 30"),
        ("currency", "A$30", "AUD 30"), ("currency", "750", "750"), ("currency", "US$5", "USD 5"),
        ("currency", "30 EUR", "EUR 30"), ("currency", "30€", "EUR 30"),
        ("currency", "€30.00", "EUR 30"), ("currency", "£1,000,000", "GBP 1000000"),
        ("currency", "¥500", "JPY 500"), ("currency", "₹ 99", "INR 99"),
        ("currency", "usd 30", "USD 30"), ("currency", "-$5", "USD -5"),
        ("currency", "about $5", "about $5"), ("currency", "30 cats", "30 cats"),
        ("currency", "$5 USD", "$5 USD"), ("currency", "1,25", "1,25"), ("currency", "", ""),
        ("none", " Ana ", " Ana "), ("trim", " Ana ", "Ana"), ("lowercase", " Ana ", " ana "),
        ("lowercase_trim", " Ana ", "ana"), ("date", "3 March 2024", "2024-03-03"),
        ("date", "March 3rd, 2024", "2024-03-03"), ("date", "03.03.2024", "2024-03-03"),
        ("date", "2024/3/3", "2024-03-03"), ("date", "3/4/2024", "3/4/2024"),
        ("date", "31 February 2024", "31 February 2024"), ("quantity", "5km", "5 km"),
        ("quantity", "5 kilometres", "5 km"), ("quantity", "1,500 kg", "1500 kg"),
        ("quantity", "10 GB", "10 GB"), ("quantity", "10 Gb", "10 Gb"),
        ("quantity", "20 percent", "20 %"), ("quantity", "5 things", "5 things"),
    ],
)  # fmt: skip
def test_a_value_is_normalised(normalize: str, value: str, written: str) -> None:
    assert NORMALIZERS[normalize](value) == written
    assert NORMALIZERS[normalize](written) == written


@pytest.mark.req("GRAPH-58", "GRAPH-57")
def test_a_predicate_without_a_schema_has_the_default_one() -> None:
    schemas = read_schemas({"Budget": {"normalize": "currency"}})
    assert (
        schemas["rent"]
        == Schema()
        == Schema(
            cardinality="single",
            conflict_policy="supersede",
            normalize="none",
            dedup_policy="corroborate",
        )
    )
    assert schemas["budget"] == schemas["  BUDGET "] == Schema(normalize="currency")


@pytest.mark.req("GRAPH-57")
@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"cardinality": "many"}, "single, multi"),
        ({"conflict_policy": "guess"}, "supersede, require_review, keep_both"),
        ({"normalize": "uppercase"}, "lowercase_trim, currency"),
        ({"dedup_policy": None}, "corroborate, store"),
        ({"cardinalty": "multi"}, "did you mean 'cardinality'?"),
        ("multi", "a table with cardinality"),
    ],
)  # fmt: skip
def test_another_schema_is_refused(schema: object, said: str) -> None:
    with pytest.raises(SettingsError, match=said.replace("?", r"\?")):
        read_schemas({"budget": schema})


BASE = {"subject": "Ana", "predicate": "home", "value": "Porto"}


@pytest.mark.req("GRAPH-42")
def test_a_claim_is_exclusive_global_and_always_valid_unless_it_says_otherwise() -> None:
    assert read_claim(BASE, "s1") == Claim(subject="Ana", predicate="home", value="Porto")
    assert read_claim({**BASE, "scope": "session"}, "s1").session_id == "s1"
    assert read_claim({**BASE, "scope": "session", "session_id": "s2"}, "s1").session_id == "s2"
    assert read_claim({**BASE, "value": 3}, None).value == "3"
    assert read_claim({**BASE, "value": True}, None).value == "true"
    assert (
        read_claim({**BASE, "valid_from": "2024-01-01"}, None).window.start
        == "2024-01-01T00:00:00.000Z"
    )


@pytest.mark.req("GRAPH-42")
@pytest.mark.parametrize(
    "claim",
    [
        "text", {}, {**BASE, "subject": " "}, {**BASE, "predicate": None}, {**BASE, "value": []},
        {**BASE, "exclusive": "yes"}, {**BASE, "scope": None}, {**BASE, "scope": "project"},
        {**BASE, "scope": "session"}, {**BASE, "scope": "session", "session_id": ""},
        {**BASE, "scope": "global", "session_id": "s"},
        {**BASE, "valid_from": "2024-02-02", "valid_until": "2024-01-01"},
        {**BASE, "valid_from": "soon"}, {**BASE, "vaule": "x"}, {**BASE, "value": "x" * 2001},
    ],
)  # fmt: skip
def test_a_claim_that_says_too_little_is_refused(claim: object) -> None:
    with pytest.raises(InvalidInput):
        read_claim(claim, None)


@pytest.mark.req("GRAPH-60", "GRAPH-61")
def test_trust_is_that_of_the_source_with_what_was_said_since_and_its_age() -> None:
    sources = ("user_explicit", "system", "tool_output", "user_implicit", "document", "inference")
    bases = [base_trust({"source": source}) for source in sources]
    assert bases == [1.0, 0.95, 0.85, 0.7, 0.6, 0.5]
    assert base_trust({"source": "rumour"}) == base_trust({}) == base_trust(None) == 0.5
    told = [
        compute_trust(base, reinforcements=3, disputes=1, age_days=182.5).value for base in bases
    ]
    assert told == pytest.approx([1.0, 0.975, 0.875, 0.725, 0.625, 0.525])
    assert compute_trust(0.5, corroborations=3).value == pytest.approx(0.6)
    assert compute_trust(0.5, corroborations=99).value == pytest.approx(0.7)
    assert compute_trust(0.5, age_days=9999).value == pytest.approx(0.4)
    assert compute_trust(0.5, age_days=-5).value == 0.5, "a clock that was set back adds no trust"
    assert compute_trust(0.0, disputes=5).value == 0.0
