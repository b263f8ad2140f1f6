"""The parts of a statement: who or what it is about, which attribute it names, and whether a value is of the attribute's type."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Doubt, hearsay, plans, conditions, habits, negation, comparison, and words that point outside the text: these are in no part of
# a statement.
_UNFIT = word_set(
    """a according again ago all almost already also although always am an and another any anybody anyone anything apparently
    appears approx approximately are around as assume average be because been before being believe believes best better between
    both but by can cannot claim claims considering could did different do does down dummy during each either estimated etc ever
    every everybody everyone everything ex example except expected fake feels few fictional first former formerly from future
    going gonna guess had half has have he heard her here hers him his hope hopes how however hypothetical i ideal if imagine
    instead is it its just know knows last less let likely looks mainly many maybe me mean means mention mentions might more
    most mostly much must my nearly neither never no nobody none nor not nothing often old only or original other others our
    over partly people perhaps planned planning plans please possible possibly potential presumably pretty previous previously
    probably proposed quite rarely rather really reportedly roughly said same sample say says seem seems several shall she
    should show shows since so some somebody someone something sometimes soon sounds state states such suggested suppose
    supposed sure tba tbd temporarily tentative tentatively than that their them there these they think thinks this those though
    till to todo told tomorrow too total typical unclear under unknown unless until up us usually very want wants was we were
    what when whenever where whether which while who whom whose why will wish with without worse worst would yet you your"""
)
# Words that say how something is, not what its value is.
_DESCRIPTIONS = word_set(
    """alive amazing ambiguous angry annoying at available away awful back bad beautiful big boring broken busy cheap clear
    close cold complex complicated confidential cool correct crazy critical crucial dead difficult done early easy empty
    expensive fair false far fast final fine flexible for free full fun funny gone good great happy hard helpful hidden high hot
    huge ill important impossible in invalid large late long low missing near necessary negotiable nervous new nice normal
    obsolete obvious off offline ok okay on online open optional out outdated pending perfect public ready real reasonable
    relevant required responsible right sad safe secret serious short sick similar simple slow small solid special stable steep
    strange strict strong terrible tight tiny tired true ugly unavailable unsafe unset unstable useful useless vague valid
    visible warm weak weird wrong"""
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?"
    r"|dec(?:ember)?)"
)
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun)"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_TIME = r"(?:noon|midnight|\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?| o'clock)?(?: (?:utc|gmt|ces?t|[ecmp][ds]?t|sharp))?)"
DATE = (
    rf"(?:(?:the )?(?:end|middle|start|beginning) of |early |mid[- ]?|late |next |{_DAY},? )?(?:{_DAY}|\d{{4}}-\d\d(?:-\d\d)?"
    rf"|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|(?:the )?{_NTH}(?: of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH}(?: {_NTH})?(?:,? \d{{4}})?"
    rf"|Q[1-4](?: \d{{4}})?|\d{{4}}|the \d{{1,2}}(?:st|nd|rd|th))(?:,? (?:at )?{_TIME})?"
)
RELATIVE = (
    rf"(?:yesterday|today|recently|this (?:morning|week|month|year|spring|summer)"
    rf"|last (?:night|week|month|year|spring|summer|autumn|fall|winter|{_DAY}|{_MONTH}))"
)
_NUMBER = r"(?:\d[\d.,]*\S*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|thirty|forty|fifty|ninety)"
_AMOUNT = rf"(?:[$€£]|(?:usd|eur|gbp|chf) )?{_NUMBER}(?: (?!(?:in|on|at|for)\b)[\w%°/²³-]+){{0,4}}"
_SMALL = word_set("of the de la le du da di del der den van von & for upon al el bin")  # within a name
_WORD = re.compile(r"[^\W_][\w.'/&+#@:%$€£°-]*|[&#@$€£+~/][\w./#@-]+")


def is_fit(text: str, max_words: int) -> bool:
    """Return whether a text consists of ordinary words, none of them of doubt, hearsay and the like."""
    words = text.split()
    return 0 < len(words) <= max_words and all(map(_WORD.fullmatch, words)) and _UNFIT.isdisjoint(text.casefold().split())


def is_name(text: str) -> bool:
    """Return whether every word has a capital or starts with a digit, except for "of", "de" and the like inside."""
    words = text.removeprefix("the ").split()
    capital = [word[0].isdigit() or any(map(str.isupper, word)) for word in words]
    fits = all(fine or word in _SMALL for fine, word in zip(capital, words, strict=True))
    return bool(words) and capital[0] and capital[-1] and fits and is_fit(text, 7) and not _matches(DATE, text)


def is_place(text: str) -> bool:
    """Return whether a text looks like a place, with its country or not, or like a data centre: eu-west-1."""
    city, comma, country = text.partition(", ")
    return (is_name(city) or _matches(r"[a-z]{2,}(?:-[a-z]+)*-\d\w?", city)) and (not comma or is_name(country))


def _matches(pattern: str, text: str) -> bool:
    return bool(re.fullmatch(pattern, text, re.IGNORECASE))


def _is_plain(text: str) -> bool:
    """Return whether a value names something: not a description such as "broken", "very slow" or "migrating"."""
    is_described = not _DESCRIPTIONS.isdisjoint(text.casefold().split()) or re.fullmatch(r"[a-z]+(?:ed|ing|ly)", text)
    return is_fit(text, 4) and not is_described


TYPES: dict[str, Callable[[str], bool]] = {
    "date": lambda value: _matches(DATE, value),
    "time": lambda value: _matches(_TIME, value),
    "amount": lambda value: _matches(_AMOUNT, value) and _UNFIT.isdisjoint(value.replace(" a ", " ").casefold().split()),
    "port": lambda value: _matches(r"\d{1,5}", value),
    "version": lambda value: _matches(r"(?:[a-z][\w.+#-]* )?v?\d[\w.+-]*(?: lts)?", value),
    "person": lambda value: (is_name(value) and not re.search(r"\d", value)) or _matches(r"the (?:[\w-]+ ){1,2}team", value),
    "place": is_place,
    "name": is_name,
    "code": lambda value: is_name(value) or _matches(r"\+?\d[\d ()./-]+\d", value) or (" " not in value and _is_plain(value)),
    "word": _is_plain,
    "favourite": lambda value: is_fit(value, 5) and not re.match(r"(?:in|on|at|for) |the [a-z]", value),
    "thing": lambda value: is_fit(re.sub(r"^an? ", "", value), 4) and _DESCRIPTIONS.isdisjoint(value.casefold().split()),
}

# Nouns of attributes that have one value at a time, by the type of the value.
_NOUNS = {
    noun: type_
    for type_, nouns in {
        "date": "deadline birthday anniversary date expiry",
        "time": "time bedtime curfew",
        "amount": """age price cost rent salary budget limit timeout height weight size capacity quota ttl retention length
            width fee fare discount deposit threshold temperature headcount wage balance mileage duration
            interval population""",
        "port": "port",
        "version": "version",
        "person": """boss manager ceo cto cfo coo owner wife husband spouse fiancée fiancé girlfriend boyfriend landlord
            landlady dentist doctor lead leader head chair chairman chairwoman chairperson president
            director author mother father mum mom dad supervisor captain principal mayor king queen
            assignee vet""",
        "place": "capital headquarters hometown birthplace location region venue destination city country continent",
        "code": """email phone number url hostname host ip address username handle branch id plate postcode code ssid domain
            endpoint extension bucket path directory folder repo repository channel namespace room seat
            gate""",
        "name": """employer company bank database framework provider registrar carrier currency timezone zone license licence
            editor browser engine model plan tier brand airline nickname name codename surname language""",
        "word": "colour color diet theme mode status role type format protocol title occupation job profession position",
    }.items()
    for noun in nouns.split()
}
# Nouns of attributes that may have several values.
_PEOPLE = word_set("friend brother sister son daughter child cousin uncle aunt colleague neighbour neighbor nephew niece")
_SEVERAL = {**dict.fromkeys(_PEOPLE, "person"), "hobby": "word", "interest": "word"}
_FAVOURITES = ("favourite", "favorite", "preferred")
_POSSESSIVE = re.compile(r"(.+?)(?:'s|(?<=s)') (\S.*)")
_OF = re.compile(r"(?:the )?(.+?) (?:of|for) (\S.*)", re.IGNORECASE)
_OWN = re.compile(r"(my|our) (\S.*)", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|our) ", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Attribute:
    """The attribute that a phrase such as "the port of the API" names, and the type of its values."""

    subject: str
    predicate: str
    type: str
    exclusive: bool = True
    is_new: bool = False


def entity(phrase: str, user: str) -> str | None:
    """Return the subject that a phrase names, without its article; None if it is unclear."""
    if phrase in ("I", "We"):
        return user if phrase == "I" else "team"
    if phrase.casefold().startswith("my "):
        rest = phrase[3:]
        return f"{user}'s {rest}" if is_fit(rest, 3) and rest.split()[-1].casefold() not in _SEVERAL else None
    rest = _ARTICLE.sub("", phrase, count=1) if _ARTICLE.match(phrase) else phrase
    return rest if is_fit(rest, 5) and not re.match(r"(?:in|on|at|for|new) ", rest, re.IGNORECASE) else None


def is_someone(phrase: str) -> bool:
    """Return whether a phrase may name a person: a name, "I", "we", or "my wife"."""
    return phrase in ("I", "We") or is_name(phrase) or phrase.casefold().startswith("my ")


def attribute(phrase: str, user: str) -> Attribute | None:
    """Return the attribute that a phrase names: "Ana's boss", "my boss", "the port of the API", "the API port"."""
    if match := _POSSESSIVE.fullmatch(phrase):
        owner, noun = entity(match[1], user), match[2]
    elif match := _OWN.fullmatch(phrase):
        owner, noun = (user if match[1].casefold() == "my" else "team"), match[2]
    elif match := _OF.fullmatch(phrase):
        owner, noun = entity(match[2], user), match[1]
    else:
        found = _named("", _ARTICLE.sub("", phrase, count=1) if _ARTICLE.match(phrase) else phrase)
        return replace(found, subject=found.predicate, predicate="is") if found and found.exclusive else None
    return _named(owner, noun) if owner else None


def _named(subject: str, noun: str) -> Attribute | None:
    is_new, noun = noun.startswith("new "), re.sub(r"^(?:new|current|official|present) ", "", noun)
    if not is_fit(noun, 4) or "the" in noun.split():
        return None
    first, *_, last = f"{noun} {noun}".casefold().split()
    exclusive = last not in _SEVERAL
    type_ = "favourite" if first in _FAVOURITES and " " in noun else _NOUNS.get(last) or _SEVERAL.get(last)
    return Attribute(subject, noun, type_, exclusive, is_new) if type_ else None
