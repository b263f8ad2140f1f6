"""Claims from plain text without a language model: find the one statement that a short text makes.

A wrong exclusive claim would supersede a true memory, so the rules prefer precision: the text as a
whole has to match a form, the value has to be of the type of its attribute (a deadline is a date,
an owner is a name), and no part may contain a word of doubt, hearsay, plan, condition or negation.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from memory_mesh.core.claims.phrases import (
    DATE,
    RELATIVE,
    TYPES,
    Attribute,
    are_employers,
    are_known_places,
    attribute,
    entity,
    is_fit,
    is_name,
    is_place,
    is_someone,
    named_attribute,
    product_kind,
    rewritten,
    word_set,
)

MAX_CHARS = 200  # a longer text is rarely one plain statement; this also bounds the time


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A statement about a subject: the value of an attribute or a relation."""

    subject: str
    predicate: str
    value: str
    exclusive: bool = True  # only one value at a time can be true
    starts: bool = False  # begins at the time of the text, or at `since`
    ended: bool = False  # over at the time of the text
    previous: str | None = None  # the value that this one replaces: "moved from A to B"
    # The words of a beginning other than the time of the text: "last Monday".
    since: str | None = None


_Forms = tuple[Callable[[str, str], Statement | None], ...]

_NO_STATEMENT = re.compile(r"[?;…*\"“”()\[\]{}<>|\n]|\.\.| [–—-]+ |--")
# "The port is 8080, not 8081", "the stand-up is at 10:30 instead of 9:30".
_CORRECTED = re.compile(r"(?:, not|,? (?:instead of|rather than)) [\w.:-]+(?: [\w.:-]+)?$")
_USERS, _ASSISTANTS = (
    frozenset(("user", "human")),
    frozenset(("assistant", "ai", "bot", "model", "system")),
)
_TURN = re.compile(r"([A-Za-z]\w*): (?=(?:I|We|My|Our)\b)")
_LEAD = re.compile(
    r"^(?:(?:fyi|btw|by the way|note|(?:quick )?update|heads up|correction|actually|for the record|"
    r"for what it's worth|reminder|til|just so you know|thanks)(?:[,:!]| [–—-])? |(?:please "
    r")?(?:remember|note)(?: that|:) )(?=\S)",
    re.IGNORECASE,
)


def find_statement(text: str, *, speaker: str | None = None) -> Statement | None:
    """Return the statement of a text that is one plain statement as a whole, else None.

    A change may be followed by a comment. "I" and "my" are the speaker, or "user"; "we" and "our"
    are "team", except that "we" live where the speaker lives.
    """
    text = (
        _LEAD.sub("", text.strip().replace("’", "'").replace("`", ""), count=1)
        if len(text) <= MAX_CHARS
        else ""
    )
    if not text or _NO_STATEMENT.search(text):
        return None
    text = " ".join(text.split()).rstrip("!").removesuffix(".")
    if turn := _TURN.match(text):
        role = turn[1].casefold()
        if role in _ASSISTANTS:
            return None
        speaker, text = speaker if role in _USERS else turn[1], text[turn.end() :]
    user = (speaker or "").strip() or "user"
    return _found(text, user) or _commented(text, user)


# What may follow a change: its reason, its consequence, another sentence. Not another value: "the
# stand-up moved to 10:30, on Fridays to 11:00".
_COMMENT = re.compile(
    r"(?:[.!,](?: and)?|(?= (?:because|so|after|thanks to) )) (?:(?i:because|since|so|after|"
    r"thanks to|which|see|please|he|she|it|it's|they|i|i'm|we|we're|the|my|our|his|her|their|this|"
    r"there)\b|[A-Z]\w+ (?:has|is|was|\w+ed)\b)"
)
# In a comment these words may doubt the change, limit it, take it back or tell of another one.
_LIMITS = word_set(
    """again allegedly also although anymore apparently assume back before believe but cancelled
    claims could didn disaster doubt dream either ended except fake false fired guess hear heard
    hope however idea if instead joke joked joking kidding lasted later left lie lied longer maybe
    might mistake moved not only or over perhaps plan planned plans probably quit returned reverted
    rolled rumor rumour said say says seems should sometimes soon speak suppose supposedly tell
    temporarily temporary then think thinks though till told too undid undone unless until usually
    want wanted wants week weekend weekends wish would wrong yet"""
)


def _commented(text: str, user: str) -> Statement | None:
    """Return the change that a text begins with, if the rest is a comment: "We moved to Oslo, the
    flat is tiny". Not an end: its memory is not valid any more, and the comment may be."""
    comment = _COMMENT.search(text)
    if comment is None or not _TOLD.search(text, 0, comment.start()):
        return None
    if not _LIMITS.isdisjoint(re.findall(r"[a-z]+", text[comment.start() :].casefold())):
        return None
    found = _found(text[: comment.start()], user)
    return found if found and found.starts else None


def _found(text: str, user: str) -> Statement | None:
    clause = rewritten(_CORRECTED.sub("", text))
    changed, when = _when(clause.text)
    found = _first(_CHANGES, changed, user) if _TOLD.search(changed) else None
    if found is None:
        # "I started working at Acme last week"
        state, when = (changed, when) if clause.starts or clause.ended else (clause.text, None)
        found = _first(_STATES, state, user)
    if found is None or (clause.ended and found.starts) or _is_passing(found, clause.since or when):
        return None
    starts, ended = found.starts or clause.starts, found.ended or clause.ended
    return replace(found, starts=starts and not ended, ended=ended, since=clause.since or when)


def _is_passing(found: Statement, since: str | None) -> bool:
    """Return whether a change is planned, or holds for a day: "moved to 11:00 today"."""
    words = (since or "").casefold()
    return words.startswith("next ") or (
        found.predicate == "time" and words.startswith(("today", "this "))
    )


def _first(forms: _Forms, clause: str, user: str) -> Statement | None:
    return next(filter(None, (form(clause, user) for form in forms)), None)


# Verbs between a subject and a value: the predicate (empty: the verb itself), the type of the
# value, whether only one value at a time can be true, and whether the subject is a person (None: it
# is not).
_VERB_ROWS = (
    (r"works (?:at|for)|is employed (?:at|by)", "employer", "name", True, True),
    (r"works as an?", "job", "word", True, True),
    (r"lives in|resides in", "residence", "place", True, True),
    (r"(?<=^I )is (?:based|located) in", "residence", "place", True, True),
    (r"is married to", "spouse", "person", True, True),
    (r"reports to", "manager", "person", True, True),
    (r"speaks|likes|loves|enjoys|hates|dislikes|drinks|eats|smokes|plays", "", "favourite",
     False, True),
    (r"is allergic to", "allergic to", "thing", False, True),
    (r"is a citizen of", "citizen of", "place", False, True),
    (r"was born on", "born on", "date", True, True),
    (r"was born in", "born in", "date", True, True),
    (r"was born in", "born in", "place", True, True),
    ((r"uses(?= port )|listens on(?= \d)|(?:(?:runs|listens) |is (?:(?:running|listening|"
      r"exposed|available) )?)on(?= port )"),
     "port", "port", True, False),
    (r"(?:runs(?: on)?|is (?:on|at|running)|uses)(?= version )", "version", "version", True,
     False),
    (r"owns|uses", "", "thing", False, False),
    (r"is owned by", "owner", "person", True, False),
    (r"belongs to", "owner", "person", True, None),
    (r"is led by|is headed by", "led by", "person", True, False),
    (r"is called|is named", "name", "name", True, False),
    (r"is (?:located|based|headquartered|hosted|situated) in", "location", "place", True,
     False),
    (r"is hosted (?:on|at|by|with)", "hosted on", "name", True, False),
    (r"costs", "price", "amount", True, False),
    (r"weighs", "weight", "amount", True, False),
    (r"is due(?: on| by| in)?", "deadline", "date", True, False),
    (r"expires(?: on| in)?", "expires", "date", True, False),
    (r"(?:starts|begins) at", "start time", "time", True, False),
    (r"(?:starts|begins) (?:on|in)", "start date", "date", True, False),
    (r"(?:ends|finishes) at", "end time", "time", True, False),
    (r"opens at", "opening time", "time", True, False),
    (r"closes at", "closing time", "time", True, False),
)  # fmt: skip
_VERBS = tuple(
    (re.compile(rf"(.+?) ({verb}) (\S.*)"), predicate, type_, exclusive, of_people)
    for verb, predicate, type_, exclusive, of_people in _VERB_ROWS
)
# Most texts have none of the verbs, and are not tried with each pattern.
_ANY_VERB = re.compile(rf" (?:{'|'.join(verb for verb, *_ in _VERB_ROWS)}) ")


def _verb_form(clause: str, user: str) -> Statement | None:
    """Ana works at Acme."""
    if not _ANY_VERB.search(clause):
        return None
    for pattern, predicate, type_, exclusive, of_people in _VERBS:
        if match := pattern.fullmatch(clause):
            if predicate == "name" and not re.match(r"(?:my|our) ", match[1], re.IGNORECASE):
                continue  # "the game is called Go" may be about any game
            value = match[3].removeprefix(f"{predicate} ")  # "port 8080", "version 3"
            fits = TYPES[type_](value) and (
                of_people is False or is_someone(match[1]) == bool(of_people)
            )
            is_family = predicate == "residence" and match[1] == "We"
            if fits and (subject := entity("I" if is_family else match[1], user)):
                return Statement(
                    subject=subject,
                    predicate=predicate or match[2],
                    value=value,
                    exclusive=exclusive,
                )
    return None


_IS = re.compile(r"(.+?)(?: is| are| =)(?: (?:on|at|in|set to))? (\S.*)")
# Not "Dish Name: Soup": a field of a form.
_LABEL = re.compile(r"(\S+(?: (?![A-Z][a-z])\S+)*): (\S.*)")
_IS_OF = re.compile(
    r"(.+?) is ((?:the|our|my|[^']+(?:'s|s')|(?:C[EFOT]O|captain|chair|head|mayor|president) of) "
    r"\S.*)"
)


def _attribute_form(clause: str, user: str) -> Statement | None:
    """Ana's boss is Bob. The deadline is Friday. Port: 8080. Bob is Ana's boss."""
    if (match := _LABEL.fullmatch(clause) or _IS.fullmatch(clause)) and (
        found := _stated(attribute(match[1], user), match[2])
    ):
        return found
    named = attribute(match[2], user) if (match := _IS_OF.fullmatch(clause)) else None
    return _stated(named, match[1]) if match and named and named.exclusive else None


_ARTICLE = re.compile(r"^(?:an?|my|our|the) (?:new |used |old )?")


def _stated(found: Attribute | None, value: str, **marks: object) -> Statement | None:
    """Return the statement that an attribute has a value, if it is of the attribute's type."""
    if found is None or not TYPES[found.type](value):
        return None
    stated = Statement(
        subject=found.subject,
        predicate=found.predicate,
        value=_ARTICLE.sub("", value) if found.type == "model" else value,
        exclusive=found.exclusive,
        starts=found.is_new,
    )
    return replace(stated, **marks)  # type: ignore[arg-type]


_AGE = re.compile(r"(.+?) (is|(?:just )?turned) (\d{1,3})( years old)?")
_EVENT = re.compile(
    r"((?:[Tt]he|[Oo]ur) .+?|(?i:breakfast|lunch|dinner|stand-?up|retro|planning|demo|sync|launch|"
    r"kick-?off|training)) (?:is|are) (?:at|on|in) (\S.*)"
)
# "The restaurant is in Rome" may be about any restaurant.
_PLACED = re.compile(
    r"our .+|.+ (?:office|offsite|retreat|conference|workshop|summit|wedding|party|servers?|"
    r"database|cluster|data|backups?|docs|wiki)",
    re.IGNORECASE,
)
_KINDS = {"time": "time", "date": "date", "place": "location"}


def _age_form(clause: str, user: str) -> Statement | None:
    """Ana is 34. My son Ben is 4 years old."""
    if not (match := _AGE.fullmatch(clause)) or not (subject := entity(match[1], user)):
        return None
    if not (match[1] == "I" or is_name(match[1]) or (match[4] and is_someone(match[1]))):
        return None
    return Statement(subject=subject, predicate="age", value=match[3], starts=match[2] != "is")


def _event_form(clause: str, user: str) -> Statement | None:
    """The stand-up is at 9:30. The offsite is in Lisbon."""
    if not (match := _EVENT.fullmatch(clause)) or not (subject := entity(match[1], user)):
        return None
    kind = next((name for type_, name in _KINDS.items() if TYPES[type_](match[2])), None)
    if kind is None or (kind == "location" and not _PLACED.fullmatch(match[1])):
        return None
    return Statement(subject=subject, predicate=kind, value=match[2])


_WHEN = re.compile(rf",? (?:(?:on|in) (?P<date>{DATE})|(?P<relative>{RELATIVE}))")
_TO = r"(?: from (?P<a>.+?))? to (?P<v>.+)"
_BEFORE_WHEN = re.compile(
    r",? (?=on |in |yesterday|today|recently|this |last |\w+ \w+ ago)", re.IGNORECASE
)
_DID = r"(?:has )?(?:just |recently |finally )?"
_CHANGES_TO = (
    "changed|moved|raised|lowered|increased|reduced|decreased|updated|upgraded|bumped|extended|"
    "pushed back|pushed|postponed|delayed|renamed|migrated|switched|set|cut|shortened|adjusted|"
    "shifted|slipped|rescheduled|brought forward|relocated"
)
_GOES_TO = "went up|went down|went|gone up|gone down|rose|risen|dropped|fell|fallen"
# Every change has one of these words: the patterns of changes are not tried without.
_TOLD = re.compile(
    rf"\b(?:{_CHANGES_TO}|{_GOES_TO}|joined|started|began|left|quit|stopped|gave up|given up|"
    r"resigned|sold|swapped|traded|replace[ds]|succeed(?:s|ed)|took over|appointed|elected|made|"
    r"named|became|become|instead|is on|new|now|no longer|any ?more|since|as of|from)\b"
)
# Who else changes things. Not "the plan" and "the example", which only may.
_AGENT = (
    r"(?:They|(?:The|My|Our) (?:agency|airline|bank|board|boss|city|clinic|client|committee|"
    r"company|council|court|customer|doctor|insurer|landlord|manager|organisers?|provider|school|"
    r"team|vet))"
)
_ACTIVE = re.compile(
    rf"(?P<s>I|We|{_AGENT}|[A-Z]\S+) {_DID}(?P<verb>{_CHANGES_TO}) (?P<p>(?!from |to ).+?){_TO}"
)
_PASSIVE = re.compile(
    rf"(?P<p>.+?) (?:(?:was|has been|got|has) )?(?:just |recently |finally )?"
    rf"(?:(?P<verb>{_CHANGES_TO})|{_GOES_TO}){_TO}"
)
_SWITCHED = re.compile(
    rf"(?P<s>I|We|[A-Z]\S+) {_DID}(?:switched|(?:switched|moved|migrated|changed) from (?P<a>.+?))"
    r" to (?P<v>.+?) for (?P<p>(?(a)|(?!the )).+)"  # "to English for the call" is soon over
)
_INSTEAD = re.compile(r"(?P<s>I|We|[A-Z]\S+) uses (?P<v>.+?) instead of (?P<a>.+?) for (?P<p>.+)")
_SUCCEEDED = re.compile(
    rf"(?P<v>.+?) {_DID}(?:replaced|succeeded|took over from|replaces|succeeds) (?P<a>.+?) "
    r"as (?P<p>.+)"
)
_BECAME = re.compile(
    rf"(?P<v>.+?) {_DID}(?:was (?:appointed|named|made|elected)|became|become|took over as) "
    r"(?P<p>.+)(?P<a>)"
)


_OWN_NAME = re.compile(r"^(?:his|her|their) (?=(?:name|surname|email|address|phone number)$)")


def _change_form(clause: str, user: str) -> Statement | None:
    """The deadline moved from Monday to Friday. We moved the wiki from Confluence to Notion."""
    match = _ACTIVE.fullmatch(clause) or _PASSIVE.fullmatch(clause)
    agent = match.groupdict().get("s", "I") if match else ""
    if not match or not (is_someone(agent) or re.fullmatch(_AGENT, agent)):
        return None
    thing, previous = _OWN_NAME.sub(f"{agent}'s ", match["p"]), match["a"]
    value = match["v"].removeprefix("version ")
    marks = {"starts": True, "previous": previous}
    if found := attribute(thing, user):
        # "My boss moved to Oslo" is about where they are, not who.
        is_named = found.type != "person" or match["verb"] in ("changed", "switched")
        return _stated(found, value, **marks) if is_named else None
    if not re.match(r"(?!(?:I|We)$)(?:(?:the|our|my) |[^\W\da-z])", thing):
        return None  # "we moved on to Friday", "we upgraded to the new plan"
    kind, subject = _changed_kind(match["verb"] or "", value), entity(thing, user)
    if (
        kind is None
        or subject is None
        or (previous and _changed_kind(match["verb"], previous) != kind)
    ):
        return None
    if kind == "location" and is_someone(thing):
        return None
    return _stated(Attribute(subject, kind, _KIND_TYPES[kind]), value, **marks)


_KIND_TYPES = {predicate: type_ for type_, predicate in _KINDS.items()} | {
    "version": "version",
    "name": "code",
}
_VERB_KINDS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("upgraded", "updated", "bumped"), ("version",)),
    **dict.fromkeys(("moved", "migrated", "shifted"), ("time", "date", "location")),
    **dict.fromkeys(
        ("pushed", "pushed back", "postponed", "delayed", "slipped", "rescheduled",
         "brought forward", "changed", "set"),
        ("time", "date"),
    ),
    "relocated": ("location",),
    "renamed": ("name",),
}  # fmt: skip


def _changed_kind(verb: str, value: str) -> str | None:
    """Return the attribute that a verb changes to a value: a version, a name, a time, a date or
    a location."""
    return next(
        (
            kind
            for kind in _VERB_KINDS.get(verb, ())
            if TYPES[_KIND_TYPES[kind]](value)
            # "They moved to GCC 13", "the level changed to 5"
            and not (kind == "location" and re.search(r" \d", value))
            and not (verb in ("changed", "set") and value.isdigit())
        ),
        None,
    )


# Changes of home and work: the predicate, what the values have to be, and whether the value is
# over.
_PERSONAL = tuple(
    (re.compile(rf"(?P<s>.+?) {_DID}{change}"), predicate, fits, ended)
    for change, predicate, fits, ended in (
        (rf"moved(?: back| house)?{_TO}", "residence", are_known_places, False),
        (rf"relocated{_TO}", "residence", lambda *values: all(map(is_place, values)), False),
        (r"left (?P<a>.+?) for (?P<v>.+)", "residence", are_known_places, False),
        (r"moved (?:away from|out of) (?P<v>.+)", "residence", are_known_places, True),
        ((r"(?:left|quit) (?P<a>.+?) (?:for|to join|and (?:has )?(?:joined|works? (?:at|for))) "
          r"(?P<v>.+)"),
         "employer", are_employers, False),
        ((r"(?:joined|(?:started|began)(?: at| (?:work|(?:my|an?)(?: new)? job) (?:at|with))) "
          r"(?P<v>.+?)(?: as an? (?!.*(?:customer|guest|member|student|volunteer))[\w -]+)?"),
         "employer", are_employers, False),
        ((r"(?:left|quit|resigned from)(?: (?:my|the|his|her) job (?:at|with))? "
          r"(?P<v>(?!.* for ).+)"),
         "employer", are_employers, True),
    )
)  # fmt: skip
_MOTIVE = re.compile(
    r" for (?:good|work|love|family reasons|(?:my|his|her|a) (?:new )?(?:boyfriend|career|family|"
    r"girlfriend|husband|job|partner|studies|wife))$"
)


def _personal_form(clause: str, user: str) -> Statement | None:
    """Ana moved from Oslo to Berlin. The office moved to Lisbon. I joined Acme. Ana left Acme."""
    clause = _MOTIVE.sub("", clause)
    for pattern, predicate, fits, ended in _PERSONAL:
        if not (match := pattern.fullmatch(clause)):
            continue
        value, previous = str(match["v"]), match.groupdict().get("a")
        if not fits(*filter(None, (value, previous))):
            continue
        # Not "production started at Acme".
        is_person = is_someone(match["s"]) and not re.search(r"(?:ing|ion|ment|work)$", match["s"])
        is_family = match["s"] == "We"
        is_product = product_kind(value) not in (None, "car")  # "I left Vim for Emacs"
        if predicate == "employer" and (is_family or is_product or not is_person):
            return None
        subject = entity("I" if is_family else match["s"], user)
        type_ = "name" if predicate == "employer" else "place"
        named = subject and Attribute(subject, predicate if is_person else "location", type_)
        return _stated(named or None, value, starts=not ended, ended=ended, previous=previous)
    return None


# "For speed" tells why, "for chat" tells what for.
_REASONS = re.compile(
    r".*(?:\b(?:reasons?|fun|speed|performance|costs?|price|compliance|money|privacy|comfort|"
    r"convenience|ease|weeks|months|years|summer|winter)|ity|ness)"
)


def _switched_form(clause: str, user: str) -> Statement | None:
    """We switched from Slack to Teams for chat. We use Teams instead of Slack for chat."""
    match = _SWITCHED.fullmatch(clause) or _INSTEAD.fullmatch(clause)
    if not match or not is_someone(match["s"]) or not TYPES["thing"](match["a"] or match["v"]):
        return None
    subject, purpose = entity(match["s"], user), re.sub(r"^(?:the|our|my) ", "", match["p"])
    if not subject or not is_fit(purpose, 3) or not TYPES["thing"](purpose):
        return None
    if _REASONS.fullmatch(purpose) or are_known_places(match["v"]):
        return None
    return _stated(
        Attribute(subject, purpose, "thing"), match["v"], starts=True, previous=match["a"]
    )


# Changes of what someone has. With `p` the attribute is named, else the products tell it.
_REPLACED = tuple(
    re.compile(rf"(?P<s>(?:The |Our |My )?\S+) {_DID}{change}")
    for change in (
        (r"(?:has|got|has got) a new (?P<p>[^,:]+?)(?:[,:]| called| named) (?P<v>.+)"),
        (r"(?:switched|changed) (?P<p>bank|dentist|doctor|insurer|lawyer|provider|supplier|vet)s"
         rf"{_TO}"),
        rf"(?:switched|changed){_TO} as (?:my|our|his|her) (?P<p>.+)",
        (r"sold (?P<a>.+?)(?: for \S+(?: euros| dollars| pounds)?)?,?(?: and)? (?:bought|got) "
         r"(?P<v>.+)"),
        r"(?:swapped|traded in|traded|replaced) (?P<a>.+?) (?:for|with) (?P<v>.+)",
        r"(?:switched|moved|migrated|changed) from (?P<a>.+?) to (?P<v>.+)",
    )
)  # fmt: skip
# Other things may be new ones among several: "we have a new channel".
_SINGLE = (" number", " address", " email", " name", " job", " car", " bank")


def _replaced_form(clause: str, user: str) -> Statement | None:
    """I have a new boss, Priya. I switched to GLS as my bank. I sold the Golf and bought a Kona."""
    for match in filter(None, (pattern.fullmatch(clause) for pattern in _REPLACED)):
        parts, subject = match.groupdict(), entity(match["s"], user)
        noun, previous = parts.get("p"), _ARTICLE.sub("", parts.get("a") or "")
        if noun is None:
            noun = product_kind(match["v"])
            if noun not in (product_kind(previous), previous):
                continue
        found = named_attribute(subject, noun) if subject and noun else None
        if (
            found
            and found.exclusive
            and (found.type == "person" or parts.get("a") or f" {noun}".endswith(_SINGLE))
        ):
            return _stated(found, match["v"], starts=True, previous=previous or None)
    return None


# "To Postgres 16", "from Postgres 14 to 16".
_UPGRADED = re.compile(
    rf"(?:I|We) (?:(?P<did>{_DID}(?:upgraded|updated)(?: from (?:(?P<m>[A-Za-z]\S*) )?"
    r"(?P<a>\d\S*))? to)|is on) (?:(?P<n>[A-Za-z]\S*) )?(?:version )?(?P<v>v?\d\S*)"
)


def _upgraded_form(clause: str, user: str) -> Statement | None:
    """We upgraded to Postgres 16. We are on Python 3.12."""
    match = _UPGRADED.fullmatch(clause)
    # "We are on page 12" is about a book.
    if not match or not (match["did"] or re.search(r"\d\.\d", match["v"])):
        return None
    subject = entity(match["n"] or match["m"] or "", user)
    named = Attribute(subject, "version", "version") if subject else None
    return _stated(named, match["v"], starts=bool(match["did"]), previous=match["a"])


def _successor_form(clause: str, user: str) -> Statement | None:
    """Bob replaced Ana as CEO of Acme. Bob became the CEO of Acme."""
    match = _SUCCEEDED.fullmatch(clause) or _BECAME.fullmatch(clause)
    if not match or not (found := attribute(match["p"], user)) or found.type != "person":
        return None
    return _stated(found, match["v"], starts=True, previous=match["a"] or None)


_PREFERS = re.compile(
    r"(?:(?:For|for) (?:my |our )?(?P<before>[\w -]+?),? )?(?P<s>I|We|we|[Tt]he user|[A-Z]\S*) "
    r"prefers? (?P<v>.+?)(?: (?:over|to) (?P<w>.+?))?(?: for (?:my |our )?(?P<p>[\w -]+?))?"
)


def _preference_form(clause: str, user: str) -> Statement | None:
    """I prefer tea. For editors I prefer vim: one at a time."""
    if not (match := _PREFERS.fullmatch(clause)):
        return None
    someone, purpose = match["s"].replace("we", "We"), match["before"] or match["p"]
    if not (subject := entity(someone, user)) or not is_someone(someone):
        return None
    if not all(TYPES["favourite"](value) for value in (match["v"], match["w"]) if value):
        return None
    if purpose and (not is_fit(purpose, 3) or _REASONS.fullmatch(purpose)):
        return None
    predicate = f"preferred {purpose}" if purpose else "prefers"
    return Statement(
        subject=subject, predicate=predicate, value=match["v"], exclusive=bool(purpose)
    )


def _when(clause: str) -> tuple[str, str | None]:
    """Return a clause without the time at its end, and the time: "Ana moved to Oslo in May"."""
    for at in (place.start() for place in _BEFORE_WHEN.finditer(clause)):
        if match := _WHEN.fullmatch(clause, at):
            return clause[:at], match["date"] or match["relative"]
    return clause, None


# Each returns the statement of a clause in the third person present, or None. A change may tell
# when it was.
_CHANGES: _Forms = (
    _personal_form,
    _switched_form,
    _replaced_form,
    _upgraded_form,
    _successor_form,
    _change_form,
)
_STATES: _Forms = (_preference_form, _verb_form, _attribute_form, _age_form, _event_form)
