"""Changes that people say outright: what they supersede or end, and what only sounds like one."""

import pytest

from memory_mesh.core.claims.patterns import Statement, find_statement
from memory_mesh.core.intake import folded_text


def key(statement: Statement | None) -> tuple[str, str]:
    """Return the subject and the predicate, as claims compare them."""
    assert statement is not None
    return folded_text(statement.subject), folded_text(statement.predicate)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Berlin.", "I moved to Munich."),
        ("I live in Berlin.", "We moved to Munich."),
        ("I live in Berlin.", "Moved to Munich last month."),
        ("I live in Berlin.", "I moved back to Munich for work."),
        ("I live in Berlin.", "I left Berlin for Munich."),
        ("I live in Berlin.", "I relocated to Limburg two weeks ago."),
        ("We live in Ghent.", "We've finally moved to Antwerp!"),
        ("Ana lives in Oslo.", "Ana has moved to Bergen."),
        ("I work at Siemens.", "I started at Bosch last week."),
        ("I work at Siemens.", "I started my new job at Bosch on Monday."),
        ("I work at Siemens.", "I joined Bosch as an engineer."),
        ("I work at Siemens.", "I left Siemens for Bosch."),
        ("I work at Siemens.", "I joined BMW."),
        ("I work at Siemens.", "I've started working for Bosch."),
        ("Ana works at Acme.", "Ana left Acme to join Globex."),
        ("Ana works at Acme.", "Ana left Acme and now works at Globex."),
        ("My job is teacher.", "I now work as a nurse."),
        ("My bank is Sparkasse.", "I switched banks to GLS."),
        ("My bank is Sparkasse.", "I switched from Sparkasse to GLS as my bank."),
        ("Our database is MySQL.", "We migrated from MySQL to Postgres."),
        ("My browser is Chrome.", "I switched from Chrome to Firefox."),
        ("My car is a Golf.", "I sold the Golf and bought a Hyundai Kona."),
        ("My car is a Golf.", "Sold the Golf, bought a Kona."),
        ("My car is a Golf.", "I traded in my Golf for a Kona."),
        ("My car is a Golf.", "My new car is a Kona."),
        ("My dentist is Dr. Gill.", "Mia is my new dentist."),
        ("My dentist is Dr. Gill.", "My new dentist is Mia."),
        ("My dentist is Dr. Gill.", "My dentist is now Mia."),
        ("My manager is Tom.", "I have a new manager, Priya."),
        ("Acme's auditor is Marchetti.", "Acme has a new auditor: Bräuer."),
        ("Acme's CEO is Ruth.", "Leo took over as CEO of Acme."),
        ("Acme's CEO is Ruth.", "Leo is now CEO of Acme."),
        ("The standup is at 9:30.", "The standup was moved to 10:30."),
        ("The standup is at 9:30.", "The standup is now at 10:30 instead of 9:30."),
        ("The deadline is April 20.", "The deadline has been pushed to May 3."),
        ("The launch is on March 3.", "The launch slipped to March 10."),
        ("The review is on Monday.", "The review was rescheduled to Tuesday."),
        ("Our office is in Berlin.", "Our office was relocated to Hamburg."),
        ("The wiki is in Confluence.", "We moved the wiki to Notion."),
        ("The limit is 300.", "The limit was raised to 500."),
        ("The limit is 300.", "They lowered the limit to 200."),
        ("The timeout is 30 seconds.", "We bumped the timeout to 60 seconds."),
        ("The budget is 5,000 euros.", "The budget was cut to 4,000 euros."),
        ("My rent is 1,200.", "My landlord increased my rent to 1,450."),
        ("Rent is 1,200.", "Rent went up to 1,450."),
        ("Postgres is on version 14.", "Postgres is now at version 16."),
        ("Postgres is on version 14.", "We upgraded to Postgres 16."),
        ("Postgres is on version 14.", "We upgraded from Postgres 14 to 16 last week."),
        ("Python is on version 3.10.", "We're on Python 3.12 now."),
        ("The API is on version 2.3.", "We upgraded the API to version 2.4."),
        ("My name is Anna Schmidt.", "I changed my name to Anna Weber."),
        ("My last name is Schmidt.", "I changed my last name to Weber."),
        ("Ana's name is Ana Schmidt.", "Ana changed her name to Ana Weber."),
    ],
)
def test_a_change_has_the_subject_and_predicate_of_what_it_replaces(older: str, newer: str) -> None:
    before, after = find_statement(older), find_statement(newer)
    assert key(before) == key(after)
    assert before is not None
    assert after is not None
    assert before.exclusive
    assert after.exclusive
    assert after.starts
    assert not after.ended
    assert before.value != after.value


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I work at Acme.", "I quit Acme."),
        ("I work at Acme.", "I quit my job at Acme last month."),
        ("I work at Acme.", "I left Acme for good."),
        ("I live in Oslo.", "I moved away from Oslo."),
        ("I live in Oslo.", "We no longer live in Oslo."),
        ("I drink coffee.", "I gave up drinking coffee."),
        ("I play chess.", "I've given up playing chess."),
        ("We use Jira.", "We stopped using Jira last week."),
        ("The office is in Berlin.", "The office isn't in Berlin anymore."),
    ],
)
def test_an_end_has_the_value_of_what_is_over(older: str, newer: str) -> None:
    before, after = find_statement(older), find_statement(newer)
    assert key(before) == key(after)
    assert before is not None
    assert after is not None
    assert after.ended
    assert before.value == after.value


@pytest.mark.parametrize("adverb", ["now", "these days", "currently", "nowadays", "at the moment"])
@pytest.mark.parametrize(
    "text", ["I live in Munich", "I work at Bosch", "The API is on version 2.4"]
)
def test_adverbs_of_the_present_change_no_part_of_a_statement(text: str, adverb: str) -> None:
    plain = find_statement(text)
    for marked in (f"{text} {adverb}", f"{adverb.capitalize()} {text[0].lower()}{text[1:]}"):
        found = find_statement(marked)
        assert key(found) == key(plain)
        assert found is not None
        assert plain is not None
        assert found.value == plain.value


@pytest.mark.parametrize(
    ("before", "after", "since"),
    [
        ("Since last week", "since last week", "last week"),
        ("As of Monday", "as of Monday", "Monday"),
        ("Since two weeks ago", "since two weeks ago", "two weeks ago"),
    ],
)
@pytest.mark.parametrize(
    "text", ["I live in Munich", "I work at Bosch", "The API is on version 2.4"]
)
def test_a_beginning_changes_no_other_part_of_a_statement(
    text: str, before: str, after: str, since: str
) -> None:
    for marked in (f"{before} {text}", f"{text} {after}"):
        found = find_statement(marked)
        assert key(found) == key(find_statement(text))
        assert found is not None
        assert found.starts
        assert found.since == since


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("We moved to Munich, the flat is tiny.", "Munich"),
        ("We moved to Munich. The kids love it!", "Munich"),
        ("We moved to Munich last week because my wife found a job there.", "Munich"),
        ("The standup was moved to 10:30, it collided with the demo.", "10:30"),
        ("Coverage limit is now 85, Priyanka raised it after the outage.", "85"),
    ],
)
def test_a_change_may_be_followed_by_a_comment(text: str, value: str) -> None:
    found = find_statement(text)
    assert found is not None
    assert found.value == value


@pytest.mark.parametrize(
    "text", ["I left Acme. My boss was awful.", "We stopped using yarn, the builds use pnpm."]
)
def test_an_end_with_a_comment_is_no_claim(text: str) -> None:
    assert find_statement(text) is None


@pytest.mark.parametrize(
    ("text", "subject", "predicate"),
    [
        ("My wife moved to Munich.", "user's wife", "residence"),
        ("My sister Ines moved to Munich.", "Ines", "residence"),
        ("We moved the meeting to Munich.", "meeting", "location"),
        ("Our office moved to Munich.", "office", "location"),
        ("Tom sold the Golf and bought a Kona.", "Tom", "car"),
        ("Ana: I moved to Munich.", "Ana", "residence"),
    ],
)
def test_a_change_of_others_is_not_one_of_the_speaker(
    text: str, subject: str, predicate: str
) -> None:
    assert key(find_statement(text)) == (folded_text(subject), predicate)


PLANS_AND_WISHES = (
    "I want to move to Munich.",
    "I'd like to move to Munich.",
    "I'm moving to Munich.",
    "We plan to move to Munich.",
    "I'm going to move to Munich next year.",
    "I wish I had moved to Munich.",
    "I will join Bosch in May.",
    "I hope to join Bosch.",
    "As of next Monday I work at Bosch.",
    "I want to sell the Golf and buy a Kona.",
    "Mia will be my new dentist.",
    "I need a new dentist.",
    "The standup will be moved to 10:30.",
    "The limit should be raised to 500.",
    "Raise the limit to 500.",
    "Set the limit to 500.",
    "We are upgrading to Postgres 16.",
    "I want to change my name to Anna.",
    "Quit smoking cigars.",
)
DOUBTS_AND_HEARSAY = (
    "If we moved to Munich, we would need a car.",
    "Did we move to Munich?",
    "We might have moved to Munich.",
    "We haven't moved to Munich.",
    "I never moved to Munich.",
    "We almost moved to Munich.",
    "I moved to Munich, I think.",
    "I moved to Munich. Just kidding.",
    "We moved to Munich, so to speak.",
    "Tom says we moved to Munich.",
    "Tom said: I moved to Munich.",
    "They moved to Munich.",
    "I would switch from Chrome to Firefox.",
    "Is Mia my new dentist?",
    "Mia is not my new dentist.",
    "Mia could be my new dentist.",
    "The standup was not moved to 10:30.",
    "Tom claims the limit was raised to 500.",
    "I didn't quit Acme.",
    "I can't stop drinking coffee.",
    "The example raised the limit to 500.",
)
PAST_OR_PASSING = (
    "I lived in Munich.",
    "When I lived in Munich, I had a bike.",
    "I moved to Munich for a month.",
    "I moved to Munich, but only for the summer.",
    "I moved to Munich. We moved on to Oslo in May.",
    "I started at Bosch. It lasted two days.",
    "I switched to Teams for a day.",
    "I switched to decaf for good.",
    "We switched to English for the call.",
    "Mia was my new dentist.",
    "The standup was moved to 10:30 today.",
    "I live in Munich now and then.",
    "The standup moved to 10:30, on Fridays to 11:00.",
)
SOMETHING_ELSE = (
    "My sister moved to Munich.",
    "My boss moved to Sales.",
    "We moved to Slack.",
    "We moved to Friday.",
    "The port authority moved to GCC 13.",
    "I moved to the third floor.",
    "I joined the gym.",
    "I joined Tinder.",
    "I joined Anna for lunch.",
    "I joined Bosch as a paying customer.",
    "The meeting started at Bosch.",
    "Production started at Tesla.",
    "I started at 9:30.",
    "I left Vim for Emacs.",
    "We left AWS for Hetzner.",
    "Tom left Anna for Julia.",
    "I left my keys at Bosch.",
    "I sold my bike and bought a Kona.",
    "I sold the Golf and bought a Trek.",
    "I switched from Chrome to Vim.",
    "My car is at Bosch.",
    "My car is a mess.",
    "The wiki is in German.",
    "I have a new friend, Bob.",
    "We have a new channel, ops-alerts.",
    "We are on page 12.",
    "We upgraded to the Pro plan.",
    "I went up to Munich.",
    "The level changed to 5.",
    "I gave up.",
    "Now I know.",
)


@pytest.mark.parametrize(
    "text", [*PLANS_AND_WISHES, *DOUBTS_AND_HEARSAY, *PAST_OR_PASSING, *SOMETHING_ELSE]
)
def test_what_only_sounds_like_a_change_is_no_claim(text: str) -> None:
    assert find_statement(text) is None
