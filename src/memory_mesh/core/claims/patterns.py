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
    Clause,
    attribute,
    entity,
    is_fit,
    is_name,
    is_place,
    is_someone,
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
_CORRECTED = re.compile(r", not [\w.:-]+$")  # "the port is 8080, not 8081"
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

    "I" and "my" are the speaker, or "user"; "we" and "our" are "team".
    """
    text = (
        _LEAD.sub("", text.strip().replace("’", "'").replace("`", ""), count=1)
        if len(text) <= MAX_CHARS
        else ""
    )
    if not text or _NO_STATEMENT.search(text):
        return None
    text = _CORRECTED.sub("", " ".join(text.split()).rstrip("!").removesuffix("."))
    if turn := _TURN.match(text):
        role = turn[1].casefold()
        if role in _ASSISTANTS:
            return None
        speaker, text = speaker if role in _USERS else turn[1], text[turn.end() :]
    return _found(rewritten(text), (speaker or "").strip() or "user")


def _found(clause: Clause, user: str) -> Statement | None:
    changed, when = _when(clause.text)
    found = _first(_CHANGES, changed, user)
    if found is None:
        found, when = _first(_STATES, clause.text, user), None
    if found is None or (clause.ended and found.starts):
        return None
    starts, ended = found.starts or clause.starts, found.ended or clause.ended
    return replace(found, starts=starts and not ended, ended=ended, since=clause.since or when)


def _first(forms: _Forms, clause: str, user: str) -> Statement | None:
    return next(filter(None, (form(clause, user) for form in forms)), None)


# Verbs between a subject and a value: the predicate (empty: the verb itself), the type of the
# value, whether only one value at a time can be true, and whether the subject is a person (None: it
# is not).
_VERBS = tuple(
    (re.compile(rf"(.+?) ({verb}) (\S.*)"), predicate, type_, exclusive, of_people)
    for verb, predicate, type_, exclusive, of_people in (
        (r"works (?:at|for)|is employed (?:at|by)", "employer", "name", True, True),
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
    )
)  # fmt: skip


def _verb_form(clause: str, user: str) -> Statement | None:
    """Ana works at Acme."""
    for pattern, predicate, type_, exclusive, of_people in _VERBS:
        if match := pattern.fullmatch(clause):
            if predicate == "name" and not re.match(r"(?:my|our) ", match[1], re.IGNORECASE):
                continue  # "the game is called Go" may be about any game
            value = match[3].removeprefix(f"{predicate} ")  # "port 8080", "version 3"
            fits = TYPES[type_](value) and (
                of_people is False or is_someone(match[1]) == bool(of_people)
            )
            if fits and (subject := entity(match[1], user)):
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
_IS_OF = re.compile(r"(.+?) is ((?:the|our|my|[^']+(?:'s|s')) \S.*)")


def _attribute_form(clause: str, user: str) -> Statement | None:
    """Ana's boss is Bob. The deadline is Friday. Port: 8080. Bob is Ana's boss."""
    if (match := _LABEL.fullmatch(clause) or _IS.fullmatch(clause)) and (
        found := _stated(attribute(match[1], user), match[2])
    ):
        return found
    named = attribute(match[2], user) if (match := _IS_OF.fullmatch(clause)) else None
    return _stated(named, match[1]) if match and named and named.exclusive else None


def _stated(found: Attribute | None, value: str, **marks: object) -> Statement | None:
    """Return the statement that an attribute has a value, if it is of the attribute's type."""
    if found is None or not TYPES[found.type](value):
        return None
    stated = Statement(
        subject=found.subject,
        predicate=found.predicate,
        value=value,
        exclusive=found.exclusive,
        starts=found.is_new,
    )
    return replace(stated, **marks)  # type: ignore[arg-type]


_AGE = re.compile(r"(.+?) (is|(?:just )?turned) (\d{1,3})( years old)?")
_EVENT = re.compile(
    r"((?:[Tt]he|[Oo]ur) .+?|(?i:breakfast|lunch|dinner|stand-?up|retro|planning|demo|sync|launch|"
    r"kick-?off|training)) is (?:at|on|in) (\S.*)"
)
# "The restaurant is in Rome" may be about any restaurant.
_PLACED = re.compile(
    r"our .+|.+ (?:office|offsite|retreat|conference|workshop|summit|wedding|party|servers?|"
    r"database|cluster|data|backups?)",
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
_BEFORE_WHEN = re.compile(r",? (?=on |in |yesterday|today|recently|this |last )", re.IGNORECASE)
_DID = r"(?:has )?(?:just |recently )?"
_CHANGED = (
    r"(?P<verb>changed|moved|raised|lowered|increased|reduced|decreased|updated|upgraded|bumped|"
    r"extended|pushed(?: back)?|postponed|delayed|renamed|migrated|switched|set)"
)
_ACTIVE = re.compile(rf"(?P<s>I|We|[A-Z]\S+) {_DID}{_CHANGED} (?P<p>(?!from |to ).+?){_TO}")
_PASSIVE = re.compile(
    rf"(?P<p>.+?) (?:(?:was|has been|got|has) )?(?:just |recently )?"
    rf"(?:{_CHANGED}|went(?: up| down)?|rose|dropped|fell|slipped){_TO}"
)
_MOVED = re.compile(rf"(?P<s>.+?) {_DID}(?:moved|relocated){_TO}")
_SWITCHED = re.compile(
    rf"(?P<s>I|We|[A-Z]\S+) {_DID}(?:switched|moved|migrated|changed) from (?P<a>.+?) to "
    r"(?P<v>.+?) for (?P<p>.+)"
)
_INSTEAD = re.compile(r"(?P<s>I|We|[A-Z]\S+) uses (?P<v>.+?) instead of (?P<a>.+?) for (?P<p>.+)")
_LEFT = re.compile(rf"(?P<s>.+?) {_DID}(?:left|quit|resigned from) (?P<v>.+)")
_SUCCEEDED = re.compile(
    rf"(?P<v>.+?) {_DID}(?:replaced|succeeded|took over from|replaces|succeeds) (?P<a>.+?) "
    r"as (?P<p>.+)"
)
_BECAME = re.compile(
    rf"(?P<v>.+?) {_DID}(?:was (?:appointed|named|made|elected)|became|become) (?P<p>.+)(?P<a>)"
)
_PLACES = word_set(
    """amsterdam athens atlanta auckland austin austria australia bangalore bangkok barcelona basel
    beijing belgium berlin bern boston brazil brisbane brooklyn brussels bucharest budapest
    california cairo canada chicago chile china cologne copenhagen dallas delhi denmark denver dubai
    dublin edinburgh england finland florence florida france frankfurt geneva germany ghent glasgow
    greece hamburg helsinki houston hungary india ireland israel istanbul italy japan kenya krakow
    kyiv kyoto lagos leipzig lima lisbon london lyon madrid manchester marseille melbourne mexico
    miami milan montreal mumbai munich nairobi naples netherlands norway nuremberg oslo oxford paris
    perth philadelphia poland porto portland portugal prague rome rotterdam salzburg santiago
    scotland seattle seoul shanghai singapore sofia spain stockholm stuttgart sweden switzerland
    sydney taipei tallinn texas tokyo toronto turin utrecht valencia vancouver vienna vilnius wales
    warsaw zurich zürich"""
) | {
    "new york",
    "san francisco",
    "los angeles",
    "hong kong",
    "new zealand",
    "cape town",
    "buenos aires",
    "tel aviv",
}


def _are_known_places(*values: str | None) -> bool:
    """Return whether values are surely places: "moved to" may also mean another employer, team
    or tool."""
    return all(
        is_place(value) and value.partition(", ")[0].removeprefix("the ").casefold() in _PLACES
        for value in values
        if value
    )


def _change_form(clause: str, user: str) -> Statement | None:
    """The deadline moved from Monday to Friday. We moved the wiki from Confluence to Notion."""
    match = _ACTIVE.fullmatch(clause) or _PASSIVE.fullmatch(clause)
    if not match or not is_someone(match.groupdict().get("s", "I")):
        return None
    thing, value, previous = match["p"], match["v"], match["a"]
    marks = {"starts": True, "previous": previous}
    if found := attribute(thing, user):
        return _stated(found, value, **marks)
    if not re.match(r"(?:the|our|my) |[^\W\da-z]", thing):
        return None  # "we moved on to Friday"
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
    **dict.fromkeys(("moved", "migrated"), ("time", "date", "location")),
    **dict.fromkeys(("pushed", "pushed back", "postponed", "delayed"), ("time", "date")),
    "renamed": ("name",),
}


def _changed_kind(verb: str, value: str) -> str | None:
    """Return the attribute that a verb changes to a value: a version, a name, a time, a date or
    a location."""
    return next(
        (kind for kind in _VERB_KINDS.get(verb, ()) if TYPES[_KIND_TYPES[kind]](value)), None
    )


def _moved_form(clause: str, user: str) -> Statement | None:
    """Ana moved from Oslo to Berlin. The office moved to Lisbon."""
    if not (match := _MOVED.fullmatch(clause)) or not (subject := entity(match["s"], user)):
        return None
    if not _are_known_places(match["v"], match["a"]):
        return None
    predicate = "residence" if is_someone(match["s"]) else "location"
    return _stated(
        Attribute(subject, predicate, "place"), match["v"], starts=True, previous=match["a"]
    )


# "For speed" tells why, "for chat" tells what for.
_REASONS = re.compile(
    r".*(?:\b(?:reasons?|fun|speed|performance|costs?|price|compliance|money|privacy|comfort|"
    r"convenience|ease)|ity|ness)"
)


def _switched_form(clause: str, user: str) -> Statement | None:
    """We switched from Slack to Teams for chat. We use Teams instead of Slack for chat."""
    match = _SWITCHED.fullmatch(clause) or _INSTEAD.fullmatch(clause)
    if not match or not is_someone(match["s"]) or not TYPES["thing"](match["a"]):
        return None
    subject, purpose = entity(match["s"], user), re.sub(r"^(?:the|our|my) ", "", match["p"])
    if not subject or not is_fit(purpose, 3) or _REASONS.fullmatch(purpose):
        return None
    return _stated(
        Attribute(subject, purpose, "thing"), match["v"], starts=True, previous=match["a"]
    )


def _left_form(clause: str, user: str) -> Statement | None:
    """Ana left Acme."""
    if (
        not (match := _LEFT.fullmatch(clause))
        or not is_someone(match["s"])
        or _are_known_places(match["v"])
    ):
        return None
    subject = entity(match["s"], user)
    return (
        _stated(Attribute(subject, "employer", "name"), match["v"], ended=True) if subject else None
    )


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
_CHANGES: _Forms = (_moved_form, _switched_form, _left_form, _successor_form, _change_form)
_STATES: _Forms = (_preference_form, _verb_form, _attribute_form, _age_form, _event_form)
