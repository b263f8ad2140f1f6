"""The parts of a statement: subject, attribute and value, and its tense and negation."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

# --- types of values ---


def word_set(words: str) -> frozenset[str]:
    return frozenset(words.split())


# Doubt, hearsay, plans, conditions, habits, negation, comparison, and words that point outside the
# text: these are in no part of a statement.
_UNFIT = word_set(
    """a according again ago all allegedly almost already also although always am an and another any
    anybody anyone anything apparently appears approx approximately are around as assume average
    basically be because been before being believe believes best better between bigger both but by
    can cannot cheaper check claim claims clearly confirm considering could desired did different do
    does doubt down dummy during each earlier either ensure estimated etc eventually ever every
    everybody everyone everything evidently ex example except expected fake faster feels few fewer
    fictional finally first former formerly fortunately frankly from future generally going gonna
    greater guess had haha half has have he heard her here hers higher him his honestly hope
    hopefully hopes how however hypothetical i ideal ideally if imagine initially instead is it its
    just kidding know knows last later less let likely literally lol longer looks lower luckily
    mainly many maybe me mean means mention mentions might more most mostly much must my nearly
    neither never no nobody none nor normally not nothing obviously occasionally often old older
    only or original originally other others our over partly people perhaps planned planning plans
    please possible possibly potential potentially presumably pretend pretends pretty previous
    previously probably projected proposed quite rarely rather really reportedly roughly sadly said
    same sample say says seem seemingly seems several shall she shorter should show shows since
    slower smaller so some somebody someone something sometimes soon sounds state states such
    suggested suppose supposed supposedly sure surely target tba tbd technically temporarily
    tentative tentatively than that their them theoretically there these they think thinks this
    those though till to today todo told tomorrow tonight too total totally typical typically
    unclear under unfortunately unknown unless until up us usually verify very want wants was we
    were what whatever when whenever where whether which while who whom whose why will wish with
    without wonder worse worst would yesterday yet you younger your"""
)
# Words that say how something is, not what its value is.
_DESCRIPTIONS = word_set(
    """alive amazing ambiguous angry annoying at available away awful back bad beautiful big boring
    broken busy cheap clear close cold complex complicated confidential cool correct crazy critical
    crucial dead difficult done early easy empty expensive fair false far fast final fine flexible
    for free full fun funny gone good great happy hard helpful hidden high hot huge ill important
    impossible in internally invalid large late long low missing near necessary negotiable nervous
    new nice normal obsolete obvious off offline ok okay on online open optional out outdated
    pending perfect public ready real reasonable relevant required responsible right sad safe secret
    serious short sick similar simple slow small solid special stable steep strange strict strong
    terrible tight tiny tired true ugly unavailable unsafe unset unstable useful useless vague valid
    visible warm weak weird wrong"""
)
_MONTH = (
    r"(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|"
    r"sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)"
)
_DAY = r"(?:(?:mon|tues|wednes|thurs|fri|satur|sun)days?|mon|tue|wed|thu|fri|sat|sun)"
_NTH = r"\d{1,2}(?:st|nd|rd|th)?"
_TIME = (
    r"(?:noon|midnight|\d{1,2}(?:[:.]\d\d)?(?: ?[ap]\.?m\.?| o'clock)?(?: (?:utc|gmt|ces?t|"
    r"[ecmp][ds]?t|sharp))?)"
)
DATE = (
    rf"(?i:(?:(?:the )?(?:end|middle|start|beginning) of |early |mid[- ]?|late |next |{_DAY},? "
    rf")?(?:{_DAY}|\d{{4}}-\d\d(?:-\d\d)?|\d{{1,2}}[./]\d{{1,2}}[./]\d{{2,4}}|(?:the )?{_NTH}(?: "
    rf"of)? {_MONTH}(?:,? \d{{4}})?|{_MONTH}(?: {_NTH})?(?:,? \d{{4}})?|Q[1-4](?: \d{{4}})?|"
    rf"\d{{4}}|the \d{{1,2}}(?:st|nd|rd|th))(?:,? (?:at )?{_TIME})?)"
)
RELATIVE = (
    rf"(?i:yesterday|today|recently|this (?:morning|week|month|year|spring|summer)"
    rf"|last (?:night|week|month|year|spring|summer|autumn|fall|winter|{_DAY}|{_MONTH})"
    r"|(?:an?|two|three|four|five|six|\d{1,2}) (?:day|week|month|year)s? ago)"
)
_NUMBER = (
    r"(?:\d[\d.,]*\S*|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty|"
    r"thirty|forty|fifty|ninety)"
)
_AMOUNT = rf"(?:[$€£]|(?:usd|eur|gbp|chf) )?{_NUMBER}(?: (?!(?:in|on|at|for)\b)[\w%°/²³-]+){{0,4}}"
# Within a name.
_SMALL = word_set("of the de la le du da di del der den van von & for upon al el bin")
# "Her boss is Italian" names no boss.
_ORIGINS = word_set(
    """african american asian australian austrian belgian brazilian british canadian catholic
    chinese danish dutch english european finnish french german greek hindu indian irish italian
    japanese jewish korean mexican muslim norwegian polish portuguese russian scottish spanish
    swedish swiss turkish welsh"""
)
_ADJECTIVE = re.compile(r"[a-z]+(?:ed|ing|ly|ful|less|ous|ive|able|ible)")
_WORD = re.compile(r"[^\W_](?:[\w.'/&+#@:%$€£°-]*[^\s:,])?|&|[#@$€£+~/][\w./#@-]+")


def is_fit(text: str, max_words: int) -> bool:
    """Return whether a text consists of ordinary words, none of them of doubt, hearsay and the
    like."""
    words = text.split()
    return (
        0 < len(words) <= max_words
        and all(map(_WORD.fullmatch, words))
        and _UNFIT.isdisjoint(text.casefold().split())
    )


def is_name(text: str) -> bool:
    """Return whether every word has a capital or starts with a digit, except for "of", "de" and
    the like inside."""
    words = text.removeprefix("the ").split()
    capital = [word[0].isdigit() or any(map(str.isupper, word)) for word in words]
    fits = all(fine or word in _SMALL for fine, word in zip(capital, words, strict=True))
    return (
        bool(words)
        and capital[0]
        and capital[-1]
        and fits
        and is_fit(text, 7)
        and "/" not in text
        and not _matches(DATE, text)
    )


def is_place(text: str) -> bool:
    """Return whether a text looks like a place, with its country or not, or like a data centre:
    eu-west-1."""
    city, comma, country = text.partition(", ")
    if city.casefold() in _ORIGINS:
        return False  # "the docs are in English"
    return (is_name(city) or _matches(r"[a-z]{2,}(?:-[a-z]+)*-\d\w?", city)) and (
        not comma or is_name(country)
    )


def _is_person(text: str) -> bool:
    return (
        is_name(text)
        and not re.search(r"[\d&]", text)
        and _ORIGINS.isdisjoint(text.casefold().split())
    )


def _matches(pattern: str, text: str) -> bool:
    return bool(re.fullmatch(pattern, text, re.IGNORECASE))


def _is_plain(text: str) -> bool:
    """Return whether a value names something: not a description such as "broken", "very slow" or
    "migrating"."""
    is_described = not _DESCRIPTIONS.isdisjoint(text.casefold().split()) or _ADJECTIVE.fullmatch(
        text
    )
    return is_fit(text, 4) and not is_described


TYPES: dict[str, Callable[[str], bool]] = {
    "date": lambda value: _matches(DATE, value),
    "time": lambda value: _matches(_TIME, value),
    "amount": lambda value: (
        _matches(_AMOUNT, value) and _UNFIT.isdisjoint(value.replace(" a ", " ").casefold().split())
    ),
    "port": lambda value: _matches(r"\d{1,5}", value),
    "version": lambda value: _matches(r"(?:[a-z][\w.+#-]* )?v?\d[\w.+-]*(?: lts)?", value),
    "person": lambda value: _is_person(value) or _matches(r"the (?:[\w-]+ ){1,2}team", value),
    "place": is_place,
    "name": is_name,
    "code": lambda value: (
        is_name(value) or _matches(r"\+?\d[\d ()./-]+\d|(?=\S*[\d@._/#:-])\S+", value)
    ),
    "word": _is_plain,
    # "My car is a Golf", not "my car is at Bosch".
    "model": lambda value: (
        _matches(r"an? \S.*", value) and is_name(re.sub(r"^an? (?:new |used |old )?", "", value))
    ),
    "favourite": lambda value: (
        is_fit(re.sub(r"^an? ", "", value), 5)
        and not re.search(r"^(?:in|on|at|for) |^the$|^the .*\b[a-z]+$|/", value)
    ),
    "thing": lambda value: (
        is_fit(re.sub(r"^an? ", "", value), 4)
        and _DESCRIPTIONS.isdisjoint(value.casefold().split())
    ),
}

# --- names that tell what a change is about ---

_PLACES = word_set(
    """aachen aarhus aberdeen adelaide albania alicante amsterdam ankara antwerp argentina athens
    atlanta auckland augsburg austin austria australia baltimore bangalore bangkok barcelona basel
    bavaria beijing belfast belgium belgrade bergen berlin bern bielefeld bilbao birmingham bochum
    bologna bonn bordeaux boston bratislava brazil bremen bremerhaven brighton brisbane bristol brno
    brooklyn bruges brussels bucharest budapest bulgaria cairo calgary california cambridge canada
    canberra cardiff chemnitz chennai chicago chile china cleveland cologne colombia copenhagen
    cracow croatia cyprus dallas darmstadt delft delhi denmark denver detroit dortmund dresden dubai
    dublin duisburg durban düsseldorf edinburgh egypt eindhoven england erfurt erlangen espoo essen
    estonia finland florence florida france frankfurt freiburg galway gdansk geneva genoa germany
    ghent glasgow gothenburg graz greece grenoble groningen haarlem hamburg hannover hanover
    heidelberg helsinki honolulu houston hungary hyderabad iceland india indonesia ingolstadt
    innsbruck ireland israel istanbul italy jakarta japan jena johannesburg karachi karlsruhe kassel
    kenya kiel klagenfurt krakow kyiv kyoto lagos lahore latvia lausanne leeds leicester leiden
    leipzig leuven lille lima limerick linz lisbon lithuania liverpool ljubljana london lucerne
    luxembourg lviv lyon maastricht madrid mainz malaga malaysia malmö malta manchester manila
    mannheim marburg marseille melbourne mexico miami milan minneapolis montpellier montreal
    morocco mumbai munich münster nagoya nairobi nantes naples netherlands newcastle nigeria
    nijmegen norway norwich nottingham nuremberg odense osaka oslo osnabrück ottawa oxford
    paderborn palermo paris perth peru philadelphia philippines pittsburgh poland porto portland
    portugal potsdam poznan prague regensburg reykjavik riga rome rostock rotterdam saarbrücken
    salzburg santiago sapporo sarajevo scotland seattle seoul serbia seville shanghai sheffield
    shenzhen singapore slovakia slovenia sofia southampton spain stavanger stockholm strasbourg
    stuttgart sweden switzerland sydney taipei taiwan tallinn tampere tartu texas thailand
    thessaloniki tokyo toronto toulouse trieste trondheim tübingen turin turku uganda ukraine ulm
    uppsala utrecht valencia vancouver venice verona vienna vietnam vilnius wales warsaw wellington
    wiesbaden winnipeg winterthur wolfsburg wroclaw wuppertal würzburg zagreb zaragoza zurich
    zürich"""
) | {
    "new york", "san francisco", "los angeles", "hong kong", "new zealand", "cape town",
    "buenos aires", "tel aviv", "san diego", "rio de janeiro", "ho chi minh city", "kuala lumpur",
    "new orleans", "salt lake city", "south africa", "south korea", "united states", "the hague",
}  # fmt: skip
# What a product is, by the first word of its name.
_PRODUCTS = {
    product: kind
    for kind, products in {
        "car": """alfa audi bmw citroen citroën clio corolla corsa cupra dacia fiat ford golf honda
            hyundai jaguar jeep kia kona lexus mazda mercedes mini mitsubishi nissan octavia opel
            passat peugeot polestar polo porsche prius renault seat skoda subaru suzuki tesla
            toyota vauxhall volkswagen volvo vw yaris zoe""",
        "laptop": "chromebook macbook surface thinkpad xps zenbook",
        "browser": "brave chrome chromium edge firefox librewolf opera safari vivaldi",
        "editor": "emacs helix neovim nvim pycharm sublime vim vscode zed",
        "database": "cockroachdb mariadb mongodb mysql oracle postgres postgresql sqlite",
        "password manager": "1password bitwarden dashlane keepass keepassxc lastpass nordpass",
    }.items()
    for product in products.split()
}
# People join, start at and leave these, too, and do not work there.
_NOT_EMPLOYERS = word_set(
    """academy amnesty army association band board bumble call channel chapter choir church class
    club college committee community congress costco council course crew discord duolingo eu
    facebook federation fitness forum gmail grade greenpeace group guild gym high hinge
    instagram ios kindergarten kita labour league lesson level linkedin linux lions mastodon
    mcfit meeting mensa montessori movement music nato navy netflix network newsletter o2
    office orchestra page parliament party patreon plus premium preschool prime programme
    reddit rotary school scouts senate server signal skype slack society spotify staff step
    strava team teams telegram telekom threads tiktok tinder tv twitter un union university
    verdi verizon vodafone wechat whatsapp windows youtube zoom
    adam alex alice ana andrea andrew anna anne ben bob carl carol chris claire clara daniel david
    elena emily emma eva felix frank george hannah ian jack james jan jane jen jess jim joe john
    jonas julia kate kim laura lea leo lena lily lisa lucas lucy luke maria mark marie martin mary
    matt max mia michael mike mum nick nina olivia paul peter rachel robert sam sara sarah simon
    sophie steve susan thomas tim tom"""
)


def are_known_places(*values: str | None) -> bool:
    """Return whether values are surely places: "moved to" may also mean another employer, team
    or tool."""
    return all(
        is_place(value) and value.partition(", ")[0].removeprefix("the ").casefold() in _PLACES
        for value in values
        if value
    )


def are_employers(*values: str | None) -> bool:
    """Return whether values are names that may be those of employers."""
    return all(
        is_name(value)
        and not value[0].isdigit()
        and not are_known_places(value)
        and _NOT_EMPLOYERS.isdisjoint(value.casefold().split())
        for value in values
        if value
    )


def product_kind(phrase: str) -> str | None:
    """Return what a product is: "an old VW Golf" is a car."""
    words = phrase.casefold().split()
    plain = (word for word in words if word not in ("a", "an", "my", "our", "the", "old", "new"))
    return _PRODUCTS.get(next(plain, ""))


# --- attributes ---

# Nouns of attributes that have one value at a time, by the type of the value.
_NOUNS = {
    noun: type_
    for type_, nouns in {
        "date": "deadline birthday anniversary date expiry",
        "time": "time bedtime curfew",
        "amount": """age allowance area balance bandwidth budget capacity cost deposit dimension
            discount distance duration fare fee frequency headcount height interval length limit
            margin mileage period population premium price quota rate rent retention salary size
            temperature threshold timeout ttl volume wage weight width window""",
        "model": "car laptop van",
        "port": "port",
        "version": "version",
        "person": """accountant assignee auditor author babysitter barber boss boyfriend captain
            cardiologist carer ceo cfo chair chairman chairperson chairwoman chancellor cleaner
            coach contact coo cto dad dentist director doctor father fiancé fiancée girlfriend gp
            governor hairdresser head husband king landlady landlord lawyer lead leader manager
            mayor mechanic midwife mom mother mum nanny officer optician owner paediatrician
            pediatrician physio physiotherapist president principal queen secretary solicitor
            sponsor spouse supervisor therapist trainer treasurer vet wife""",
        "place": (
            "birthplace capital city continent country destination headquarters hometown location "
            "region venue"
        ),
        "code": """address branch bucket code directory domain email endpoint extension folder gate
            gateway host hotline id ip locale mirror number path phone plate postcode proxy queue
            registry repo repository room seat ssid subnet table timezone zone topic url channel""",
        "name": """airline bank brand browser carrier codename company currency database distributor
            editor employer engine framework insurer language licence license model name nickname os
            provider publisher registrar school supplier surname tier university vendor""",
        "word": """colour color diet format handle hostname job mode namespace occupation position
            profession protocol role status theme title type username""",
    }.items()
    for noun in nouns.split()
}
# Without an owner only these are clear enough: "Price: 5 euros" may be anything's price, "the time
# is 10:30" is soon over.
_ALONE = word_set(
    "deadline port timeout budget rent limit owner ttl retention headcount ceo cto cfo coo "
    "president mayor"
)
_UNCLEAR = ("full name", "first name", "job title", "blood type", "zip code")
# Not owners: "driver's license", "the CEO of the year".
_NOT_OWNERS = word_set("driver bachelor master men women children year month week day moment")
# Nouns of attributes that may have several values.
_PEOPLE = word_set(
    "friend brother sister son daughter child cousin uncle aunt colleague neighbour neighbor "
    "nephew niece"
)
_RELATIONS = _PEOPLE | {noun for noun, type_ in _NOUNS.items() if type_ == "person"}
_SEVERAL = {**dict.fromkeys(_PEOPLE, "person"), "hobby": "word", "interest": "word"}
_FAVOURITES = ("favourite", "favorite", "preferred")
# Not "The Magician's Nephew".
_POSSESSIVE = re.compile(r"([^']+)(?:'s|(?<=s)') ((?:.* )?(?:[a-zà-ÿ]\S*|[A-Z]+))")
_OF = re.compile(r"(?:the )?(.+?) (?:of|for) (\S.*)", re.IGNORECASE)
_OWN = re.compile(r"(my|our) (\S.*)", re.IGNORECASE)
_ARTICLE = re.compile(r"(?:the|our) ", re.IGNORECASE)
# "the docs say the port", "famous for America".
_INNER = re.compile(r" (?:at|for|in|on|(?<! of )the) ")
_USER = frozenset(("I", "The user", "the user", "User", "user"))


@dataclass(frozen=True, slots=True)
class Attribute:
    """The attribute that a phrase such as "the port of the API" names, and the type of its
    values."""

    subject: str
    predicate: str
    type: str
    exclusive: bool = True
    is_new: bool = False


def entity(phrase: str, user: str) -> str | None:
    """Return the subject that a phrase names, without its article; None if it is unclear."""
    if phrase in _USER or phrase == "We":
        return "team" if phrase == "We" else user
    if phrase.casefold().startswith("my "):
        noun, _, name = phrase[3:].partition(" ")
        if noun.casefold() in _RELATIONS and is_name(name):
            return name  # "my colleague Ana"
        return (
            f"{user}'s {phrase[3:]}"
            if is_fit(phrase[3:], 3) and phrase.split()[-1].casefold() not in _SEVERAL
            else None
        )
    rest = _without_article(phrase)
    is_clear = not re.match(
        r"(?:in|on|at|for|new|one|two|three|four|five) ", rest, re.IGNORECASE
    ) and not _INNER.search(rest)
    return rest if is_clear and is_fit(rest, 5) else None


def is_someone(phrase: str) -> bool:
    """Return whether a phrase may name a person: a name, "I", "we", "the user", or "my wife"."""
    return (
        phrase in _USER or is_name(phrase) or phrase == "We" or phrase.casefold().startswith("my ")
    )


def _without_article(phrase: str) -> str:
    return _ARTICLE.sub("", phrase, count=1) if _ARTICLE.match(phrase) else phrase


def attribute(phrase: str, user: str) -> Attribute | None:
    """Return the attribute that a phrase names: "Ana's boss", "my boss", "the port of the API",
    "the API port"."""
    if match := _POSSESSIVE.fullmatch(phrase):
        owner, noun = entity(match[1], user), match[2]
    elif match := _OWN.fullmatch(phrase):
        owner, noun = (user if match[1].casefold() == "my" else "team"), match[2]
    elif match := _OF.fullmatch(phrase):
        owner, noun = entity(match[2], user), match[1]
    else:
        found = named_attribute("", _without_article(phrase))
        if found is None or not found.exclusive or not _is_clear_alone(found.predicate.casefold()):
            return None
        return replace(found, subject=found.predicate, predicate="is")
    if owner is None or owner.split()[-1].casefold() in _NOT_OWNERS:
        return None
    return named_attribute(owner, noun) if noun != "capital" or is_name(owner) else None


def _is_clear_alone(noun: str) -> bool:
    return noun in _ALONE or (
        " " in noun and noun not in _UNCLEAR and not noun.endswith((" address", " number"))
    )


def named_attribute(subject: str, noun: str) -> Attribute | None:
    """Return the attribute of a subject that a noun names: "new boss"."""
    is_new, noun = (
        noun.startswith("new "),
        re.sub(r"^(?:new|current|present) ", "", noun, flags=re.IGNORECASE),
    )
    if not is_fit(noun, 4) or "the" in noun.split():
        return None
    first, *_, last = f"{noun} {noun}".casefold().split()
    if first in _FAVOURITES and " " in noun:
        return Attribute(subject, noun, "favourite", is_new=is_new)
    type_ = (
        "word" if noun.casefold() == "default branch" else _NOUNS.get(last) or _SEVERAL.get(last)
    )
    return Attribute(subject, noun, type_, last not in _SEVERAL, is_new) if type_ else None


# --- tense and negation ---
# A statement is rewritten to the third person present, so that each form of it is written once: "I
# used to work at Acme" becomes "I works at Acme", ended.


@dataclass(frozen=True, slots=True)
class Clause:
    """A statement, and what its tense and adverbs say about its time."""

    text: str
    starts: bool = False
    ended: bool = False
    since: str | None = None


_VERBS = {
    "work": "working", "live": "living", "reside": "residing", "speak": "speaking",
    "like": "liking", "love": "loving", "own": "owning", "enjoy": "enjoying",
    "prefer": "preferring", "use": "using", "report": "reporting", "hate": "hating",
    "dislike": "disliking", "drink": "drinking", "eat": "eating", "smoke": "smoking",
    "play": "playing",
}  # fmt: skip
_THIRD = {f"is {participle}": f"{verb}s" for verb, participle in _VERBS.items()}
_PROGRESSIVE = re.compile(rf"(.+?) ({'|'.join(_THIRD)}) (\S.*)")
_PERFECT = {
    "worked": "works",
    "lived": "lives",
    "used": "uses",
    "owned": "owns",
    "reported": "reports",
    "preferred": "prefers",
}
_BE = {"am": "is", "are": "is", "have": "has", "do": "does"}
_SHORT = (
    ("'m ", " am "), ("'re ", " are "), ("'ve ", " have "), ("n't ", " not "),
    ("last name ", "surname "),
)  # fmt: skip
_IS_SHORT = re.compile(
    r"([A-Z]\w+)'s (?=(?:now |no longer |currently )?(?:working|living|based|married|allergic|"
    r"employed|called)\b)"
)
# "Moved to Oslo last week". Not "set" and "quit", which may be commands.
_SUBJECTLESS = re.compile(
    r"(?:just |finally )?(?:moved|relocated|joined|started|left|stopped|sold|switched|changed|"
    r"upgraded|raised|lowered|increased|bumped|pushed|postponed|renamed|migrated) ",
    re.IGNORECASE,
)
_FIRST_PERSON = re.compile(
    r"(I|i|We|we) (no longer |just )?(?:(?:really|much|strongly|generally) (?=prefer|like|love|"
    r"enjoy))?(\w+)\b"
)
_SINCE = re.compile(r"^(?:since|as of|effective) |,? (?:since|as of|effective) ", re.IGNORECASE)
_MOMENT = re.compile(
    rf"({DATE}|{RELATIVE}|the (?:start|beginning) of the (?:week|month|year)|(?i:now))(?:$|,? "
    r"(?=\S))"
)
_FROM_NOW = r"(?:now|from (?:now|here|today|this (?:week|month|year))(?: on(?:wards?)?)?)"
_NOW = re.compile(
    rf"^{_FROM_NOW},? (?=\S)|,? (?:{_FROM_NOW}|effective immediately)$| now (?=\S)",
    re.IGNORECASE,
)
_PRESENT = re.compile(
    r"^(?:currently|at the moment|nowadays|these days),? (?=\S)| "
    r"(?:currently|still|officially)(?= \S)"
    r"|,? (?:currently|at the moment|at present|nowadays|these days|instead)$", re.IGNORECASE
)  # fmt: skip
_NO_LONGER = re.compile(r"(.+?) no longer (\S.*)")
_NOT_ANY_MORE = re.compile(r"(.+?) (?:does not (\w+)|is not) (.+?) (?:any ?more|any longer)")
_USED_TO = re.compile(r"(.+?) used to (\w+) (\S.*)")
_STOPPED = re.compile(
    r"(.+?) (?:has )?(?:just |recently |finally )?(?:(started|began)|stopped|quit|gave up|"
    r"given up) (\w+ing) (\S.*)"
)
_HAS_BEEN = re.compile(rf"(.+?) has (?:been|({'|'.join(_PERFECT)})) (\S.*)")


def rewritten(text: str) -> Clause:
    """Return a statement in the third person present, with its marks."""
    text, clause = f"{text} ", Clause("")
    if _SUBJECTLESS.match(text):
        text = f"I {text[0].lower()}{text[1:]}"
    for short, long in _SHORT:
        text = text.replace(short, long)
    text = _IS_SHORT.sub(r"\1 is ", text.strip(), count=1)
    since = _SINCE.search(text)
    moment = _MOMENT.match(text, since.end()) if since else None
    # At the beginning or at the end.
    if since and moment and (since.start() == 0) != (moment.end() == len(text)):
        clause = Clause(
            "", starts=True, since=None if moment[1].casefold() in ("now", "today") else moment[1]
        )
        text = text[: since.start()] + text[moment.end() :]
    if at_once := _NOW.search(text):
        clause, text = (
            replace(clause, starts=True),
            f"{text[: at_once.start()]} {text[at_once.end() :]}".strip(),
        )
    text = _PRESENT.sub("", text, count=1)
    if first := _FIRST_PERSON.match(text):
        text = _third_person(first) + text[first.end() :]
    clause = _without_tense(replace(clause, text=text))
    if progressive := _PROGRESSIVE.fullmatch(clause.text):
        return replace(clause, text=f"{progressive[1]} {_THIRD[progressive[2]]} {progressive[3]}")
    return clause


def _third_person(match: re.Match[str]) -> str:
    verb = match[3]
    return (
        f"{match[1].capitalize()} "
        f"{match[2] or ''}{_BE.get(verb) or (f'{verb}s' if verb in _VERBS else verb)}"
    )


def _without_tense(clause: Clause) -> Clause:
    text = clause.text
    if match := _NO_LONGER.fullmatch(text):
        return replace(clause, text=f"{match[1]} {match[2]}", ended=True)
    if match := _NOT_ANY_MORE.fullmatch(text):
        return replace(
            clause, text=f"{match[1]} {f'{match[2]}s' if match[2] else 'is'} {match[3]}", ended=True
        )
    if match := _USED_TO.fullmatch(text):
        return replace(
            clause,
            text=f"{match[1]} {'is' if match[2] == 'be' else f'{match[2]}s'} {match[3]}",
            ended=True,
        )
    if match := _STOPPED.fullmatch(text):
        began = bool(match[2])
        return replace(
            clause,
            text=f"{match[1]} is {match[3]} {match[4]}",
            starts=clause.starts or began,
            ended=not began,
        )
    if clause.starts and (match := _HAS_BEEN.fullmatch(text)):
        return replace(clause, text=f"{match[1]} {_PERFECT.get(match[2] or '', 'is')} {match[3]}")
    return clause
