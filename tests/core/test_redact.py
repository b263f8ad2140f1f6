"""The redactor as a whole: what it writes, in both modes, for any text and any value, and that
twice is the same as once."""

import json
import re
from datetime import date, time
from hashlib import blake2b
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.language.redaction import KINDS, MASK, Redactor, engine, find
from memory_mesh.core.language.redaction.engine import PATTERNS
from memory_mesh.core.language.redaction.pattern import Page
from redaction_docs import load_entries

MASKING = Redactor()
NAMES = {"Ann Lee": "user-1", "Ann": "user-2", "Zoë": "user-3"}
ALIASING = Redactor(mode="pseudonym", key=b"a key of the test", names=NAMES)

PIECES = [
    *(example.text for entry in load_entries().values() for example in entry.examples),
    *(example.masked for entry in load_entries().values() for example in entry.examples),
    *(text for entry in load_entries().values() for text in entry.stays),
    *(
        "[EMAIL]",
        "[PHONE:12345678]",
        "[SECRET]",
        "password",
        "token is ",
        "tel ",
        "call me at ",
        "card ",
        "tax id ",
        "version ",
        "key ",
    ),
    *(
        "Bearer ",
        "Authorization: ",
        "://",
        "--password ",
        "export ",
        "Ann  Lee",
        "ANN",
        "zoe\u0308",
        "密码",
        "电话",
        "İ",
        "ß",
        "\ud800",
        "\0",
        "\u202e",
    ),
    *" \n:=\"'`-.@+()/,_\\{}[]<>$%&*#!?0123456789abx",
]
# Texts that look like what we redact, cut and glued at random: far nastier than random letters.
NASTY = st.lists(
    st.builds(
        lambda at, length: PIECES[at][:length],
        st.integers(0, len(PIECES) - 1),
        st.sampled_from([200, 30, 8]),
    ),
    max_size=8,
).map("".join)


@given(NASTY)
def test_redacting_a_redacted_text_changes_nothing(text: str) -> None:
    for redactor in (MASKING, ALIASING):
        once = redactor.redact(text)
        assert redactor.redact(once) == once
        assert find(once) == []


@given(st.text(st.characters(), max_size=200))
def test_any_text_is_accepted(text: str) -> None:
    redacted = ALIASING.redact(text)
    assert ALIASING.redact(redacted) == redacted


@given(NASTY)
def test_finds_lie_in_the_text_from_left_to_right_and_apart(text: str) -> None:
    found = find(text)
    assert all(0 <= one.start < one.end <= len(text) for one in found)
    assert all(one.end <= following.start for one, following in pairwise(found))


@given(
    st.recursive(
        NASTY | st.integers() | st.none() | st.booleans(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NASTY, inner, max_size=3),
        max_leaves=5,
    )
)
def test_redacting_a_redacted_value_changes_nothing(value) -> None:
    once = ALIASING.redact_value(value)
    assert ALIASING.redact_value(once) == once


@pytest.mark.req("MESH-128")
@pytest.mark.parametrize(
    ("secret", "mask"),
    [
        ("ann.lee@example.org", "[EMAIL]"),
        ("+44 20 7946 0958", "[PHONE]"),
        ("4111 1111 1111 1111", "[CARD]"),
        ("ghp_" + "aB3dE6gH9k" * 4, "[API_KEY]"),
    ],
)
def test_addresses_phones_cards_and_keys_are_gone_from_text_and_values(
    secret: str, mask: str
) -> None:
    assert [f"See {secret} now"[one.start : one.end] for one in find(f"See {secret} now")] == [
        secret
    ]
    assert MASKING.redact(f"See {secret} now.") == f"See {mask} now."
    value = {
        "note": [f"see {secret}"],
        f"about {secret}": {"deep": secret},
        "count": 3,
        "on": True,
        "none": None,
    }
    assert secret in json.dumps(value)
    assert secret not in json.dumps(MASKING.redact_value(value))
    assert MASKING.redact_value(value) == {
        "note": [f"see {mask}"],
        f"about {mask}": {"deep": mask},
        "count": 3,
        "on": True,
        "none": None,
    }


@pytest.mark.req("MESH-131")
def test_a_pseudonym_is_the_same_for_the_same_person_and_key_and_differs_for_others() -> None:
    other_key = Redactor(mode="pseudonym", key=b"another key")
    ann = ALIASING.redact("ann.lee@example.org")
    assert MASK.fullmatch(ann)
    assert ann.startswith("[EMAIL:")
    assert ALIASING.redact("write to ANN.Lee@Example.org!") == f"write to {ann}!"
    assert ALIASING.redact("bob@example.org") != ann
    assert other_key.redact("ann.lee@example.org") != ann
    assert Redactor(mode="pseudonym", key=b"a key of the test").redact("ann.lee@example.org") == ann
    assert MASKING.redact("ann.lee@example.org") == "[EMAIL]"


@pytest.mark.req("MESH-131")
@pytest.mark.parametrize(
    ("one", "same"),
    [
        ("+1 212 555 0123", "(212) 555-0123"),
        ("+44 161 496 0000", "tel +441614960000"),
        ("4111 1111 1111 1111", "4111-1111-1111-1111"),
        ("DE89 3704 0044 0532 0130 00", "de89370400440532013000"),
        ("2001:db8:0:0:0:0:0:1", "2001:db8::1"),
        ("SSN 512-34-6789", "SSN 512 34 6789"),
    ],
)
def test_another_spelling_of_the_same_value_has_the_same_pseudonym(one: str, same: str) -> None:
    masks = [MASK.search(ALIASING.redact(text)) for text in (one, same)]
    assert masks[0]
    assert masks[1]
    assert masks[0][0] == masks[1][0]


def test_two_passwords_that_differ_in_case_have_two_pseudonyms() -> None:
    assert ALIASING.redact("password: Hunter2") != ALIASING.redact("password: hunter2")


@pytest.mark.req("MESH-131")
def test_names_become_ids_in_both_modes_as_whole_words_the_longest_first() -> None:
    masking = Redactor(names=NAMES)
    for redactor in (masking, ALIASING):
        assert (
            redactor.redact("ANN LEE met Ann, Zoë and zoe\u0308.")
            == "user-1 met user-2, user-3 and user-3."
        )
        assert redactor.redact("Ann \n Lee's annual Annex") == "user-1's annual Annex"
    assert masking.redact("ann@example.org is Ann's") == "[EMAIL] is user-2's"
    assert masking.redact_value({"Ann": ["Zoë"]}) == {"user-2": ["user-3"]}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"mode": "pseudonym"}, "need a key"),
        ({"mode": "pseudonym", "key": b""}, "need a key"),
        ({"mode": "hide"}, "mode is 'hide'"),
        ({"off": frozenset({"phones"})}, "unknown kind 'phones'"),
        ({"names": {"Ann": "Ann-1"}}, "redacted itself"),
        ({"names": {"Ann": "ann@example.org"}}, "redacted itself"),
        ({"names": {" ": "user-1"}}, "redacted itself"),
    ],
)
def test_a_redactor_that_could_not_keep_its_word_is_refused(options, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Redactor(**options)


def test_a_kind_that_is_off_stays_and_the_others_are_masked() -> None:
    text = "ann@example.org, tel +44 20 7946 0958, from 203.0.113.42"
    assert MASKING.redact(text) == "[EMAIL], tel [PHONE], from [IP]"
    partial = Redactor(off=frozenset({"email", "ip"}))
    assert partial.redact(text) == "ann@example.org, tel [PHONE], from 203.0.113.42"
    assert partial.redact_value({"email": "ann@example.org", "phone": 4673395}) == {
        "email": "ann@example.org",
        "phone": "[PHONE]",
    }
    assert Redactor(off=frozenset(KINDS)).redact(text) == text


def test_a_count_names_kinds_and_never_counts_masks_that_were_there() -> None:
    text = "[EMAIL] wrote: ann@example.org, bob@example.org and Ann Lee, +44 20 7946 0958"
    redactor = Redactor(names=NAMES)
    assert redactor.count(text, redactor.redact(text)) == {"email": 2, "name": 1, "phone": 1}
    assert redactor.count("nothing", redactor.redact("nothing")) == {}
    assert ALIASING.count(text, ALIASING.redact(text)) == {"email": 2, "name": 1, "phone": 1}


ODD = st.sampled_from(["\u200b", "\u2060", "\u00ad", "\ufeff", "\u200d", "\ufe0f", "\u202e"])


@given(
    st.lists(
        ODD | st.sampled_from(["ann", "@", "example", ".", "org", " ", "é", "ßx"]), max_size=24
    ).map("".join)
)
def test_invisible_characters_inside_hide_nothing_and_no_character_outside_is_lost(
    text: str,
) -> None:
    plain = "".join(
        char for char in text if char not in "\u200b\u2060\u00ad\ufeff\u200d\ufe0f\u202e"
    )
    redacted = "".join(
        char
        for char in MASKING.redact(text)
        if char not in "\u200b\u2060\u00ad\ufeff\u200d\ufe0f\u202e"
    )
    assert redacted == MASKING.redact(plain)


def test_another_script_of_the_same_value_has_the_same_pseudonym() -> None:
    assert ALIASING.redact("ａｎｎ＠ｅｘａｍｐｌｅ．ｏｒｇ") == ALIASING.redact("ann@example.org")
    assert ALIASING.redact("card ４１１１１１１１１１１１１１１１") == ALIASING.redact(
        "card 4111111111111111"
    )
    assert ALIASING.redact("+44\u200b 20 7946 0958") == ALIASING.redact("+44 20 7946 0958")


def test_neither_key_nor_names_are_shown() -> None:
    assert "test" not in repr(ALIASING)
    assert "Ann" not in repr(ALIASING)


def test_a_key_is_a_cue_for_its_value() -> None:
    value = {
        "password": "swordfish",
        "phone": "467 3395",
        "tel": 2125550123,
        "card": 4222222222222,
        "size": 4222222222222,
        "n": 7,
    }
    assert MASKING.redact_value(value) == {
        "password": "[SECRET]",
        "phone": "[PHONE]",
        "tel": "[PHONE]",
        "card": "[CARD]",
        "size": 4222222222222,
        "n": 7,
    }
    assert MASKING.redact_value({"token": {"inner": "plain words"}, "password": None}) == {
        "token": {"inner": "plain words"},
        "password": None,
    }


def test_keys_that_become_equal_keep_their_values() -> None:
    value = {"a@example.org": 1, "b@example.org": 2, "[EMAIL] 2": 3, "c@example.org": 4}
    redacted = MASKING.redact_value(value)
    assert isinstance(redacted, dict)
    assert sorted(map(str, redacted.values())) == ["1", "2", "3", "4"]
    assert all("@" not in key for key in redacted)


def test_the_longer_of_two_finds_wins_and_of_equal_ones_the_more_specific() -> None:
    key = "ghp_" + "aB3dE6gH9k" * 4
    assert [one.pattern for one in find(f"token = '{key}'")] == ["github_token"]
    assert [one.pattern for one in find(f"password = '{key} and more'")] == ["password_assignment"]
    assert [one.pattern for one in find("postgresql://ann:pa55@example.org/db")] == [
        "url_credentials"
    ]


def test_the_label_of_a_mask_is_no_cue() -> None:
    assert find("[PHONE] 467 3395") == []
    assert find("[SECRET]: hunter2") == []
    assert [one.pattern for one in find("phone 467 3395")] == ["phone"]


def test_what_masking_uncovers_is_masked_too_also_in_a_long_text() -> None:
    words = "plain words and nothing else, " * 400
    glued = "ann@example.org+14155552671"
    assert [one.pattern for one in find(glued)] == ["email"]
    assert MASKING.redact(glued) == "[EMAIL][PHONE]"
    long = f"{words}{glued} {words}bob@example.org {words}"
    assert MASKING.redact(long) == f"{words}[EMAIL][PHONE] {words}[EMAIL] {words}"


def test_a_text_that_never_comes_to_rest_is_kept_out_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_mesh.core.language.redaction.engine._MAX_ROUNDS", 1)
    assert MASKING.redact("ann@example.org") == "[REDACTED]"
    assert MASKING.redact_value({"password": "hunter2"}) == {"password": "[REDACTED]"}
    assert MASKING.redact("nothing here") == "nothing here"


def test_a_redactor_remembers_digests_of_clean_texts_only_and_keeps_them_to_itself() -> None:
    one, other = Redactor(), Redactor()
    value = {
        "speaker": "Zacharias",
        "password": "hunter2",
        "note": "clean words, " * 9,
    }
    first = one.redact_value(value)
    assert one.redact_value(value) == first == {**value, "password": "[SECRET]"}
    assert {len(digest) for digest in one._clean} == {16}
    assert blake2b(b"speaker\0Zacharias", digest_size=16, person=b"value").digest() in one._clean
    assert blake2b(b"password\0hunter2", digest_size=16, person=b"value").digest() not in one._clean
    assert other._clean == set()


def test_two_keys_of_an_object_are_not_remembered_as_a_key_and_its_value() -> None:
    redactor, keys = Redactor(), {"password": "the first", "hunter2": "the second"}
    assert redactor.redact_value({"password": "hunter2"}) == {"password": "[SECRET]"}
    assert redactor.redact_value(keys) == Redactor().redact_value(keys) == keys
    assert redactor.redact_value({"password": "hunter2"}) == {"password": "[SECRET]"}


def test_what_a_redactor_remembers_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("memory_mesh.core.language.redaction.engine._MAX_REMEMBERED", 10)
    redactor = Redactor()
    for number in range(100):
        redactor.redact_value(f"word {number}")
    assert len(redactor._clean) <= 10


WORDS = st.sampled_from(PIECES) | st.text(max_size=8)
METADATA = st.dictionaries(WORDS, WORDS, max_size=4)


@given(st.lists(METADATA, max_size=4))
def test_what_a_redactor_remembers_changes_no_result(values: list[dict[str, str]]) -> None:
    used = Redactor()
    twice = [used.redact_value(value) for value in [*values, *values]]  # type: ignore[arg-type]
    assert twice == 2 * [Redactor().redact_value(value) for value in values]  # type: ignore[arg-type]


@given(
    key=st.sampled_from(sorted(engine._TIME_KEYS)),
    day=st.dates(date(1000, 1, 1), date(2999, 12, 31)),
    at=st.times().map(time.isoformat) | st.times().map(lambda at: at.isoformat(timespec="minutes")),
    sign=st.sampled_from("T "),
    zone=st.sampled_from(["", "Z", "+00:00", "+05:30", "-11:00"]),
)
def test_no_pattern_finds_anything_in_a_time_so_it_is_not_searched(
    key: str, day: date, at: str, sign: str, zone: str
) -> None:
    for text in (str(day), f"{day}{sign}{at}{zone}"):
        assert engine._TIME.fullmatch(text)
        assert find(text) == find(f"{key}: {text}") == []


def test_a_name_is_replaced_in_a_time_too_and_a_time_key_may_hold_a_secret() -> None:
    assert Redactor(names={"2024": "the-year"}).redact_value({"event_time": "2024-05-01"}) == {
        "event_time": "the-year-05-01"
    }
    assert MASKING.redact_value({"event_time": "ann@example.org"}) == {"event_time": "[EMAIL]"}


@given(
    st.lists(
        st.sampled_from(PIECES) | st.text(alphabet="0123456789 .-+/Aa:", max_size=12), max_size=3
    ).map(" ".join)
)
def test_the_number_of_digits_that_a_pattern_requires_hides_nothing_that_it_would_find(
    text: str,
) -> None:
    page = Page(text)
    for pattern in PATTERNS:
        assert page.digits >= pattern.digits or not list(pattern.finds(page))


@given(st.text(alphabet="aZ0.\u3000\u200b\x1c \n", max_size=80))
def test_the_long_words_are_all_runs_of_sixteen_characters_and_more(text: str) -> None:
    assert Page(text).long_words == "\n".join(re.findall(r"(?<!\S)\S{16,}", text))
