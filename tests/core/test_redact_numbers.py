"""Numbers of people: phones as libphonenumber knows them, cards with their Luhn sum, IBANs and
ids with their check sums."""

import random
import re
from importlib import import_module
from string import ascii_uppercase

import phonenumbers
import pytest
from phonenumbers import PhoneNumberFormat as Form
from phonenumbers import PhoneNumberType as Kind

from memory_mesh.core.language.redaction import Redactor, find, phone
from redaction_docs import load_entries

MASKING = Redactor()
SEED = 20240517
RNG = random.Random(SEED)  # noqa: S311 - the same numbers in every run


@pytest.fixture(autouse=True)
def same_numbers_in_any_order_of_tests() -> None:
    RNG.seed(SEED)


def shown(text: str) -> list[tuple[str, str]]:
    return [(one.pattern, text[one.start : one.end]) for one in find(text)]


def digits(count: int) -> str:
    return "".join(RNG.choices("0123456789", k=count))


# --- phones ---


def examples() -> list[phonenumbers.PhoneNumber]:
    regions = sorted(phonenumbers.SUPPORTED_REGIONS)
    made = (
        phonenumbers.example_number_for_type(region, kind)
        for region in regions
        for kind in (Kind.FIXED_LINE, Kind.MOBILE)
    )
    return [number for number in made if number]


@pytest.mark.req("MESH-128", "MESH-129")
@pytest.mark.parametrize(
    ("form", "lead"),
    [(Form.E164, "it is "), (Form.INTERNATIONAL, "it is "), (Form.NATIONAL, "Phone: ")],
)
def test_the_numbers_of_every_region_are_found_whole(form: int, lead: str) -> None:
    written = [phonenumbers.format_number(number, form) for number in examples()]
    written = [number for number in written if sum(map(str.isdigit, number)) >= 7]
    assert len(written) > 400
    assert [
        number for number in written if shown(f"{lead}{number} today") != [("phone", number)]
    ] == []


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("Mobile: 041-412-293", "041-412-293"),
        ("Fax: 001-420-335-7509x38548", "001-420-335-7509x38548"),
        ("69 987 88 37 office", "69 987 88 37"),
        ("(37) 788-063-Office", "(37) 788-063"),
        ("They're not answering at 71-33-52-22", "71-33-52-22"),
        ("stop sending messages to 699 956 915", "699 956 915"),
        ("Phone:\n60-56-85-91\n\nE-mail:", "60-56-85-91"),
        ("my number changed: (212) 555-0123.", "(212) 555-0123"),
        ("212.555.0123", "212.555.0123"),
        ("0044 20 7946 0958", "0044 20 7946 0958"),
        ("tel:+442079460958", "+442079460958"),
        ("Room 12 (212) 555-0123", "(212) 555-0123"),
        ("call Bob at 4673395 tonight", "4673395"),
        ("电话13800138000", "13800138000"),
        ("tel 00999 123 4567", "00999 123 4567"),
        ("phone ٠٢٠ ٧٩٤٦ ٠٩٥٨", "٠٢٠ ٧٩٤٦ ٠٩٥٨"),
    ],
)
def test_a_plus_a_cue_word_or_a_known_form_makes_a_phone_number(text: str, number: str) -> None:
    assert shown(text) == [("phone", number)]


@pytest.mark.parametrize(
    "text",
    [
        *("4673395", "46733951", "5403926876", "442079460958", "1-2-3-4-5-6-7"),
        *(
            "call me on 2024-05-17",
            "phone on 17.05.2024 10:30",
            "the office was open 1990-1995",
            "Office 365 2019",
            "called from 2010 to 2015",
        ),
        *(
            "we reached 1 234 567 users",
            "call costs $123 456 789",
            "phone order 1234567",
            "x+14155552671",
            "+123",
            "+0 000 000 000",
        ),
        *(
            "200-200-0000",
            "999-999-9999",
            "+999 999 999 999",
            "86 025 741 906",
            "1 85 05 78 006 084 97",
            "0.2125550123",
            "212-555-0123-44",
            "10 20 30 40 50 60 70",
        ),
    ],
)
def test_without_those_digits_are_digits(text: str) -> None:
    assert shown(text) == []


def spoilt(number: str) -> str:
    """The number with some other digits."""
    return "".join(
        RNG.choice("0123456789") if char.isdigit() and RNG.random() < 0.15 else char
        for char in number
    )


@pytest.mark.parametrize("region", sorted({*phone._LISTS.regions, *phone._LISTS.without_trunk}))
def test_no_region_is_passed_over_in_which_a_number_is_valid(region: str) -> None:
    made = [
        phonenumbers.example_number_for_type(region, kind)
        for kind in (Kind.FIXED_LINE, Kind.MOBILE, Kind.TOLL_FREE)
    ]
    forms = [
        phonenumbers.format_number(one, form)
        for one in filter(None, made)
        for form in (Form.NATIONAL, Form.E164)
    ]
    for number in (re.sub(r"\D", "", spoilt(form)) for form in forms for _ in range(20)):
        if phonenumbers.is_valid_number(phonenumbers.parse(number, region)):
            assert phone._of_region(region).fullmatch(number), number


def test_the_quicker_way_finds_the_same_numbers_with_a_plus_possible() -> None:
    for code in phonenumbers.COUNTRY_CODE_TO_REGION_CODE:
        for number in (
            f"+{code}{RNG.choice(('', '0', '(0) '))}{digits(RNG.randrange(5, 12))}"
            for _ in range(12)
        ):
            assert phone._is_possible(number) == phone._international(number), number
    assert not any(map(phone._is_possible, ("+0000000", "+(0)1495551234", "+2100551234")))


# --- cards ---


def with_luhn(start: str, length: int) -> str:
    body = start + digits(length - len(start) - 1)
    total = sum(
        int(char) if at % 2 else sum(divmod(2 * int(char), 10))
        for at, char in enumerate(reversed(body))
    )
    return body + str(-total % 10)


NETWORKS = [
    ("4", 16),
    ("51", 16),
    ("2221", 16),
    ("2720", 16),
    ("34", 15),
    ("37", 15),
    ("6011", 16),
    ("65", 16),
    ("36", 14),
    ("3528", 16),
    ("62", 16),
]
BESIDE_A_CUE = [("4", 13), ("4", 19), ("50", 12), ("58", 18), ("67", 12), ("06", 12), ("9", 17)]


def spaced(number: str) -> str:
    sizes = [4, 6, 5] if len(number) == 15 else [4, 6, 4] if len(number) == 14 else [4, 4, 4, 4]
    parts, at = [], 0
    for size in sizes:
        parts.append(number[at : at + size])
        at += size
    return RNG.choice(" -").join(parts)


@pytest.mark.req("MESH-128", "MESH-129")
@pytest.mark.parametrize(("start", "length"), NETWORKS)
def test_a_card_of_a_network_is_found_with_and_without_groups_and_only_with_a_valid_sum(
    start: str, length: int
) -> None:
    for _ in range(20):
        card = with_luhn(start, length)
        for written in (card, spaced(card)):
            assert shown(f"paid with {written}, thanks") == [("card", written)]
            wrong = written[:-1] + str((int(written[-1]) + 5) % 10)
            assert "card" not in dict(shown(f"paid with {wrong}, thanks"))
            assert "card" not in dict(shown(f"my card is {wrong}"))


@pytest.mark.parametrize(("start", "length"), BESIDE_A_CUE)
def test_other_lengths_are_cards_only_beside_a_word_for_them(start: str, length: int) -> None:
    for _ in range(20):
        card = with_luhn(start, length)
        assert shown(f"card number {card} is lost") == [("card", card)]
        assert "card" not in dict(shown(f"the value {card} is odd"))


def test_a_security_code_behind_a_card_is_no_part_of_it() -> None:
    assert (
        MASKING.redact("4111 1111 1111 1111 123 and 12 4111 1111 1111 1111")
        == "[CARD] 123 and 12 [CARD]"
    )


# --- IBAN ---


def iban(country: str, bban: str) -> str:
    turned = "".join(str(int(char, 36)) for char in f"{bban}{country}00")
    return f"{country}{98 - int(turned) % 97:02d}{bban}"


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    ("country", "form"),
    [
        ("DE", "d18"),
        ("GB", "a4d14"),
        ("FR", "d10a2d11"),
        ("NL", "a4d10"),
        ("NO", "d11"),
        ("BE", "d12"),
        ("IT", "a1d22"),
        ("MT", "a4d5a9d9"),
        ("PL", "d24"),
    ],
)
def test_an_iban_is_found_in_any_case_and_grouping_and_only_with_valid_check_digits(
    country: str, form: str
) -> None:
    for _ in range(20):
        bban = account(form)
        whole = iban(country, bban)
        grouped = " ".join(whole[at : at + 4] for at in range(0, len(whole), 4))
        for written in (whole, whole.lower(), grouped):
            assert shown(f"send it to {written} today") == [("iban", written)]
        wrong = f"{country}{(int(whole[2:4]) + 1) % 97 + 2:02d}{bban}"
        assert "iban" not in dict(shown(f"send it to {wrong} today"))


def account(form: str) -> str:
    """A random account number: d3 is three digits, a4 four letters."""
    parts = [(kind, int(count)) for kind, count in re.findall(r"([da])(\d+)", form)]
    return "".join(
        digits(count) if kind == "d" else "".join(RNG.choices(ascii_uppercase, k=count))
        for kind, count in parts
    )


# --- national ids ---

# The ids whose check sum stdnum knows, under the name of its module.
MODULES = dict(
    pair.split(":")
    for pair in [
        "gb_nhs:gb.nhs",
        "ca_sin:ca.sin",
        "au_tfn:au.tfn",
        "de_idnr:de.idnr",
        "ch_ahv:ch.ssn",
        "fr_nir:fr.nir",
        "nl_bsn:nl.bsn",
        "es_dni:es.dni",
        "es_nie:es.nie",
        "pt_nif:pt.nif",
        "it_codice_fiscale:it.codicefiscale",
        "pl_pesel:pl.pesel",
        "cz_rc:cz.rc",
        "bg_egn:bg.egn",
        "hr_oib:hr.oib",
        "baltic_code:ee.ik",
        "fi_hetu:fi.hetu",
        "tr_kimlik:tr.tckimlik",
        "il_id:il.idnr",
        "in_aadhaar:in_.aadhaar",
        "cn_ric:cn.ric",
        "kr_rrn:kr.rrn",
        "jp_my_number:jp.in_",
        "th_pin:th.pin",
        "br_cpf:br.cpf",
        "cl_rut:cl.rut",
        "mx_curp:mx.curp",
        "be_nn:be.nn",
        "se_personnummer:se.personnummer",
        "no_fodselsnummer:no.fodselsnummer",
        "za_id:za.idnr",
        "gr_amka:gr.amka",
        "ro_cnp:ro.cnp",
        "at_vnr:at.vnr",
    ]
)


@pytest.mark.one_in_ci(2)
@pytest.mark.req("MESH-129")
@pytest.mark.parametrize("id_", MODULES)
def test_an_id_is_found_if_its_check_sum_holds_and_only_then(id_: str) -> None:
    example = load_entries()[id_].examples[0]
    valid = import_module(f"stdnum.{MODULES[id_]}").is_valid
    right = wrong = 0
    for _ in range(2000):
        tail = [
            RNG.choice("0123456789") if char.isdigit() else char for char in example.masked[-5:]
        ]
        if example.masked[-1].isalpha():
            tail[-1] = RNG.choice("ABCDEFGHJKLMNPRSTVWXYZ")
        number = example.masked[:-5] + "".join(tail)
        # Stdnum asks for the date of today: it leaves out those who would be born in 2085.
        if id_ == "be_nn":
            number = "05" + number[2:]
        sound = valid(number)
        if (right if sound else wrong) < 5:
            assert (id_ in dict(shown(example.text.replace(example.masked, number)))) == sound, (
                number
            )
            right, wrong = right + sound, wrong + (not sound)
    assert right == wrong == 5


@pytest.mark.req("MESH-129")
@pytest.mark.parametrize(
    "text",
    ["123-45-6789", "my SSN is 123456789", "social security number 123 45 6789", "123‑45‑6789"],
)
def test_a_social_security_number_is_found_by_form_or_cue(text: str) -> None:
    assert [pattern for pattern, _ in shown(text)] == ["us_ssn"]


@pytest.mark.parametrize(
    "text",
    [
        "000-12-3456",
        "666-12-3456",
        "123-00-4567",
        "123-45-0000",
        "A123-45-6789",
        "123-45-67890",
        "1123-45-6789",
        "lot 123 45 6789",
    ],
)
def test_what_no_one_was_given_is_no_social_security_number(text: str) -> None:
    assert "us_ssn" not in dict(shown(text))


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("code melli 012-345678-9", "012-345678-9"),
        ("nric S 1234567 D", "S 1234567 D"),
        ("taiwan national id A-123456789", "A-123456789"),
        ("219516205512303705", "219516205512303705"),  # of a county that stdnum does not know
    ],
)
def test_an_id_with_other_groups_or_of_an_unknown_place_is_masked_and_no_error(
    text: str, number: str
) -> None:
    assert [value for _, value in shown(text)] == [number]
