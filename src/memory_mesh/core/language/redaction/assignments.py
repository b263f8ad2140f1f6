"""Find passwords and secrets by their names: in code, settings, markup, commands and sentences.

Only the value is masked. How much evidence name and form must give depends on the value: `password
= "hunter2"` is clear, `token = next_token` is code, `the password is required` is a sentence.
Placeholders, types, words such as `required` and calls that fetch a secret stay readable.
"""

from collections.abc import Callable, Iterator
from string import ascii_letters, digits

from memory_mesh.core.language.redaction.pattern import Page, Pattern, Span, Surroundings
from memory_mesh.core.language.redaction.values import (
    OPENING_QUOTES,
    STEMS,
    Name,
    bare,
    called,
    extended,
    fallback,
    is_open,
    line_start,
    looks_secret,
    name_at,
    noisy,
    placeholder,
    plain_word,
    quoted,
    quoted_secret,
    random_looking,
    variable,
)  # fmt: skip
from memory_mesh.core.text import LazyRegex

# --- values before their name ---
# `use hunter2 as the password`, `hunter2 is my password`

_AS = LazyRegex(
    r"(?i)(?:with|using|use|enter|type(?:\sin)?|try|via|to|mit|nimm|avec|con|"
    r"usa)\s{1,3}([\"'“][^\"'”\n]{1,64}[\"'”]|\S{1,64})\s{1,3}(?:as|als|comme|como|"
    r"come)\s{1,3}(?:the|my|your|our|his|her|its|a|das|mein|le|la|mon|el|mi|"
    r"il)?\s{0,3}(?:[\w-]{1,20}\s)?$"
)
_IS = LazyRegex(
    r"(?i)(?:^|[\s(])([^\s(]{5,64})\s{1,3}(?:is|ist|est|es)\s{1,3}(?:the|my|our|your|his|her|das|"
    r"mein|le|mon|mi|la)\s{1,3}(?:[\w-]{1,20}\s){0,2}$"
)
_KEYED = LazyRegex(r"[\"']([^\"'\n]{3,128})[\"'],\s?(?:for|with)[kK]ey\s?[:=]\s?[\"'][\w.-]{0,40}$")
_COMPARED = LazyRegex(r"[\"']([^\"'\n]{3,128})[\"']\s{0,3}[=!]={1,2}\s{0,3}[\w.$]{0,40}$")
# Each form with words of which one must stand near.
_BEFORE = (
    (_AS, (" as ", " als ", " comme ", " como ", " come ")),
    (_IS, (" is ", " ist ", " est ", " es ")),
    (_COMPARED, ("==", "!=")),
    (_KEYED, ("forKey", "withKey")),
)
_BEFORE_CUE = LazyRegex("[=!]=|Key| (?:als|as|com[eo]|comme|is|ist|est|es) ")


def before(text: str, name: Name) -> Span | None:
    """Match a value before its name: `use hunter2 as the password`, `hunter2 is my password`,
    `"hunter2" == password`."""
    near = text[max(0, name.start - 48) : name.start]
    for form, cues in _BEFORE if _BEFORE_CUE.search(near) else ():
        if any(cue in near for cue in cues) and (
            found := form.search(text, max(0, name.start - 120), name.start)
        ):
            start, end = found.span(1)
            start, end = (
                (start + 1, end - 1) if text[start] in "\"'“" and end - start > 2 else (start, end)
            )
            sure = form is not _IS and text[start - 1] in "\"'“" and not plain_word(text[start:end])
            return (start, end) if sure or looks_secret(text[start:end]) else None
    return None


# --- limits ---

_SHORT, _POSTAL, _MAX_LINES = 3, 6, 256

# --- between a name and its value ---
_TYPE = (
    r"&?(?:'\w+ )?[A-Za-z_*][\w.:*]{0,30}(?:[<\[][^=\n]{0,30}[>\]])?\??(?: ?\| ?[\w.]{1,20}){0,2}!?"
)
_OPERATOR = r"(?:[+.?!|&:;<~^%*/-]{0,6}={1,8}+(?!>)(?:[ ][:=](?=[ ]))?|={1,3}>|<-|＝)"
_ASSIGNED = LazyRegex(
    r"(?:\[\w{0,8}\])?(?:\\{0,7}[\"'`]|[\])}]|\*\*|&quot;){0,3}(?:[ \t]{0,24}|[ .]{3,40})"
    rf"(?:(?::[ \t]{{0,2}}(?:constant )?{_TYPE}[ \t]{{0,2}}(?=[:+.?]?=)"
    rf"|(?<![\"'`])[ \t](?:[Aa]s )?{_TYPE}(?:\([0-9, ]{{1,8}}\))?[ \t]{{0,3}}(?==[ "
    rf"\t]{{0,3}}[N@]?[\"'`]))?{_OPERATOR}"
    r"|:(?![:/=]|[ ][:=][ ]|[a-z]{2,12}:`|\?\w{1,40}\})|:{2,8}+(?=[ \t])|:{3,8}+(?![:/=])"
    r"|:[ ][:=](?=[ ])|[：≔≡∶꞉←→⇒⇨➔➜⟶]|[ \t][~-]{1,3}>[ \t])"
    r"\*{0,2}[ \t]{0,8}"
)
# password::s3cret, not Password::sha3().
_SCOPE = LazyRegex(r"(?:::|->)(?=[^\s:(>]{0,40}[0-9][^\s:(>]{0,40}(?:[\s,;]|$))")
_MENU = LazyRegex(r"(?:>|→|»)[ \t]{0,4}$")  # Settings → Password → Change
# name="password" value="…", {"name": "PASSWORD", "value": "…"}, and the same over two lines.
_PAIR = LazyRegex(
    r"\\{0,7}[\"']?[ \t]{0,4},?\s{0,20}(?:-\s)?(?:\\{0,7}[\"'])?(?:[vV]alue|VALUE|"
    r"[dD]efault)\\{0,7}[\"']?\s{0,4}[:=]\s{0,4}"
)
_PAIR_NAME = LazyRegex(r"[:=]\s{0,4}\\{0,7}[\"']?[\w.:-]{0,40}$")
_VARIABLE_BLOCK = LazyRegex(r"[\"']\s{0,4}\{[^{}]{0,200}?(?<!\w)default\s{0,8}=\s{0,8}")
_ARGUMENT = LazyRegex(
    r"\\{0,7}[\"'][ \t]{0,4},\s{0,32}(?:\w{1,20}\s?=\s?[\w.]{1,40},\s{0,32}){0,3}(?:default\s?[=:]"
    r"\s?)?"
)
_CONSTANT_ARGUMENT = LazyRegex(r"[ \t]{0,2},[ \t]{0,4}(?=[\"'])")
_CALLED = LazyRegex(r"(?:\(|\{)[ \t]{0,4}(?=[@bruLN$]?[\"'`])")
_FETCHED = LazyRegex(
    r"(?i)(?:get|fetch|load|read|lookup|find|ask|prompt|decrypt|reveal|retrieve|resolve|forgot|"
    r"reset|check|verify|validate|create)_?\w{0,12}$"
)
_RETURNED = LazyRegex(
    r"(?:[^\n=;\"'{}]{0,40}\{\s{0,8}return\s{1,4}|(?::\s?\w{1,30})?\sby\slazy\s?\{\s{0,8}"
    r"|(?::\s?\w{1,30})?\s{1,8}(?:\{[^{}\n\"']{1,40}\}|get\(\))\s{0,2}=\s{0,2})(?=[\"'`])"
)
# The body of a part of a form.
_FORM_PART = LazyRegex(r"\"\r?\n(?:Content-[^\n]{1,80}\n)?\r?\n(?=\S)")
_IN_CALL = LazyRegex(r"\w\([^()\n]{0,80}$")
_ELEMENT = LazyRegex(
    r"(?:\s[^<>]{0,120})?>\s{0,4}(?:<!\[CDATA\[)?([^\n]{1,256}?)(?:\]\]>)?\s{0,8}</"
)
_ESCAPED_ELEMENT = LazyRegex(r"&gt;([^\n]{1,256}?)&lt;/")
_CDATA = r"(?:<!\[CDATA\[(?=[^\n]{1,256}?\]\]>))?"
_NAMED_ELEMENT = LazyRegex(
    rf"\\?[\"'][^<>]{{0,60}}>\s{{0,16}}(?:<value>)?{_CDATA}((?<=CDATA\[)[^\n]{{1,256}}?(?=\]\]>)|"
    rf"[^<>\n]{{1,256}}(?=</))"
)
_LISTED_ELEMENT = LazyRegex(
    rf"</(?:\w{{1,12}}:)?(?:key|name|property)>\s{{0,16}}<(?:string|data|"
    rf"value)>{_CDATA}((?<=CDATA\[)[^\n]{{1,256}}?(?=\]\]>)|[^<>]{{1,512}}(?=</))"
)
_BLOCK = LazyRegex(r"[\"']?:[ \t]{1,4}[|>][+-]?[0-9]?[ \t]{0,4}\r?\n")
_BLOCK_LINE = LazyRegex(r"[ \t]*([^\r\n]*)\r?\n?")
_NEXT_LINE = LazyRegex(r"[\"']?:[ \t]{0,4}\r?\n[ \t]{0,16}")
_LINKS = (
    r"is|was|has|je|are|will\sbe|(?:might|may|could|should|must)\sbe|reads|ist|war|lautet|heißt|"
    r"est|était|es|era|será|c['’]est|este|è|é|foi|luidt|jest|brzmi|to|as|auf|är|er|on|это|—|–|-"
)
_OF = (
    r"for|to|of|on|at|in|from|von|vom|für|fürs|zum|zur|des|der|meine[rs]|unsere[rs]"
    r"|du|de|d|del|della|al|do|da|van|voor|para|pour|per|от|к|для|till|na|k"
)
_STATED = LazyRegex(
    rf"['’]s\s{{1,3}}|(?:\s(?:nov[ao]|nuov[ao]|"
    rf"nueva))?(?:\s{{1,3}}(?:{_OF})[\s'’](?P<of>[^.\n:=?!]{{1,40}}?))?(?:\s{{1,3}}(?P<link>"
    rf"{_LINKS})(?:\s(?:now|still|currently|simply|just|jetzt|maintenant|"
    rf"ahora))?(?:\s(?:been\s)?(?:set|changed|updated|reset|rotated|switched)\sto)?:?\s{{1,3}}"
    r"|(?:是|为|為|は|が|는|은|이)[\s:：]{0,2}|(?:\sтакой)?\s?[:：=](?![:/])\s{0,3})"
)
_IT_IS = LazyRegex(r"[^\n.!?:=\"']{0,32}?[,;?]?\s(?:and\s)?it(?:\sis|['’]s)(?:\snow)?:?\s{1,3}")
_BESIDE = LazyRegex(
    r"(?:\\{0,7}[\"']|\*)?(?:[ \t]{1,8}(?:[-–—(|][ \t]{0,4}|[0-9]{1,2}[ \t](?=\S{5}))?|[ "
    r"\t]{0,4}\|[ \t]{0,4})"
)
# Russian has no word between a name and its value.
_OF_WHAT = LazyRegex(r"\s(?:от|для|к)\s\S{1,20}\s")
_FLAG = LazyRegex(r"(?:^|\s)--?[\w.-]{0,40}$")
_DIRECTIVE = LazyRegex(
    r"(?i)(?:^|\n)[ \t]{0,8}(?:(?:env|arg|setx?|setenv|export|proxy_set_header|set_config|"
    r"redis\.)[ \t]{1,4}[\w.-]{0,40}|[\w.-]{0,40})$"
)
_LOGIN = LazyRegex(r"(?i)\blogin[ \t]{1,4}\S{1,64}\s{1,4}$")
_LISP = LazyRegex(
    r"(?:\((?:setq|defvar|defparameter|defconst|define|def|setf|let)[ \t]{1,4}[\w*:/.-]{0,40}|(?:^|"
    r"[\s({]):[\w-]{0,40})$"
)
_SQL = LazyRegex(r"(?i)(?:with|encrypted|login|role|user|new|old|identified)\s{1,3}$")
_DEFAULT = LazyRegex(r"[\"']?\$\{[\w.]{1,60}:[-=]?(?!\?)([^{}\s]{2,128})\}")
_WRAPPER = LazyRegex(
    r"(?![\w.:]{0,24}(?:get|fetch|load|read|lookup|find|decrypt))(?:new\s|&|"
    r"\*)?[\w.:]{0,24}(?:[Ss]tring|[Ss]tr|[Ss]ecret|[Pp]assword|Some|Just|Ok|of|from|valueOf|bytes|"
    r"b64decode|decode|encode|literal|Text|ConvertTo-SecureString)"
    r"(?:\([ \t]{0,2}|[ \t]{1,2})(?=[bruLN@$]?[\"'`])"
)
_WRAPPER_DEFAULT = LazyRegex(
    r"(?:fromMaybe[ \t]|(?:[\w.]{1,24}\.)?(?:[Ff]ield|[Oo]ption|[Aa]rgument|[Cc]olumn|attr\.ib)\("
    r"(?:[^()\n\"']{0,40},\s?)?default\s?=\s?)(?=[\"'])"
)
_BREAK = LazyRegex(r"[(\\]?[ \t]{0,4}\r?\n[ \t]{0,32}(?=[\"'`])")
_CODE_AFTER = LazyRegex(r"\s{0,2}(?:\?|\|\||&&|\bor\b|\band\b|\bif\b)\s")
_UNIT = LazyRegex(
    r"(?i)\s{0,2}(?:-|–|to|characters?|chars?|letters?|digits?|symbols?|words?|bits?|bytes?|"
    r"minutes?|days?|hours?|seconds?|times?|%)"
)
# tokens: 12k/200k, and a colour
_NUMBER = LazyRegex(
    r"(?![0-9]{8,12}$)[0-9.,]{1,12}[kKmMB]?(?:/[0-9.,]{1,12}[kKmMB]?)?|#[0-9a-fA-F]{6}"
)
_DIGITS = LazyRegex(r"[0-9](?:[ -]?[0-9]){2,11}[#A-Z]?(?![\w.%]\w|\w|:)")
_PIN_BEFORE = LazyRegex(
    r"(?i)(?<![^\W_])(?:G-)?([0-9]{4,8})\s(?:is|as|ist|est)\s(?:the|your|my|our|ihr|dein|"
    r"votre)\s(?:[\w-]{1,20}\s){0,2}$"
)
_ARTICLE = LazyRegex(r"(?:le|the|der|die|das|el|la|il|o|a)\s")
_WIDE_DIGITS = LazyRegex(r"[0-9]{3,12}(?![0-9A-Za-z])")
_LINE_END = LazyRegex(r"[.,;]{0,2}[ \t]{0,8}(?:\r?\n|$|[\"'`)}\]]|#|//|\|)")
_SENTENCE_END = LazyRegex(r"[.!]?[ \t]{0,4}(?:\r?\n|$|[.!;)。！，입])")
_MORE_WORDS = LazyRegex(r"[ ](?![(#/|-]|\w{1,40}:)(?=\S{0,40}[\d!@$%^&*~;])\S{1,40}")
_FAR = LazyRegex(r"[\"'`«“„‘「『‹&\[<({|>]")  # quotes and brackets enclose values of any length
_EXPRESSION = LazyRegex(r"[\"'`({^]")  # grep "password|token1"
_IDENTIFIER = f"{ascii_letters}{digits}_.-"

_Accepts = Callable[[str, Name, int, Span], Span | None]


def find_assignments(page: Page) -> Iterator[Span]:
    """Yield the value after each name of a secret, if it looks like a secret."""
    done, surroundings = 0, Surroundings(page, before=256, after=1024, far=_FAR)
    for place in dict.fromkeys(page.places(STEMS)):
        span = surroundings.judge(place, _value) if place >= done else None
        if span is not None and span[0] < span[1]:
            done = span[1]
            yield span


def _value(text: str, place: int) -> Span | None:
    """Return the span of the secret that belongs to the name at a place, or None."""
    name = name_at(text, place)
    if name is None:
        return None
    if name.kind == "pin":
        return _pin(text, name)
    following = text[name.end : name.end + 1]
    if (
        following.isdigit()
        and not name.word.isascii()
        and (digits := _WIDE_DIGITS.match(text, name.end))
    ):
        return digits.span() if name.is_password and len(digits[0]) >= 4 else None
    for form, starts in _FORMS:
        span = form(text, name) if following in starts else None
        if span is not None:
            return span
    return before(text, name) if name.is_password else None


def _pin(text: str, name: Name) -> Span | None:
    """Match four or more digits: `PIN: 4821`, `the alarm code for the office is 1234`, `passcode
    991122`."""
    link = (
        _ASSIGNED.match(text, name.end)
        or _STATED.match(text, name.end)
        or _BESIDE.match(text, name.end)
    )
    link = link or _IT_IS.match(text, name.end)
    at = link.end() if link else name.end
    if link is not None and text[name.end - 1] in "sS" and not set(":=") & set(link[0]):
        return None  # pins 12 and 13
    if article := _ARTICLE.match(text, at):
        at = article.end()
    opened = 1 if text[at : at + 1] in ("'", '"', "`", "「") else 0
    pin = _DIGITS.match(text, at + opened) or _WIDE_DIGITS.match(text, at + opened)
    min_length = 3 if name.word != "pin" else 4
    if pin is None or sum(map(str.isdigit, pin[0])) < min_length or _UNIT.match(text, pin.end()):
        if name.word == "passcode" and (stated := _stated(text, name)):
            return stated
        before = _PIN_BEFORE.search(text, max(0, name.start - 64), name.start)
        return before.span(1) if before else None
    # The code of a place in India.
    postal = name.word == "pin code" and len(pin[0]) == _POSTAL and at - name.end == 1
    return None if postal else pin.span()


# --- forms: each returns the span of the secret, or None ---


def _markup(text: str, name: Name) -> Span | None:
    """Match XML: an element, an element or attribute pair named like the secret, an entry of a
    property list."""
    _, tag, start = text[max(0, name.start - 40) : name.start].rpartition("<")
    is_tag = tag and not start.strip(f"{_IDENTIFIER}:")
    if not is_tag and text[name.end : name.end + 1] in ("", " "):
        return None
    for form in (
        (_LISTED_ELEMENT, _ELEMENT)
        if is_tag
        else (_NAMED_ELEMENT, _ESCAPED_ELEMENT, _LISTED_ELEMENT)
    ):
        if found := form.match(text, name.end):
            # Nothing else in this element is its secret.
            return found.span(1) if _is_content(found[1], name) else (0, 0)
    return None


def _is_content(value: str, name: Name) -> bool:
    value = value.strip()
    return (
        not placeholder(value)
        and not plain_word(value)
        and (name.is_password or looks_secret(value))
        and "<" not in value[:1]
    )


def _block(text: str, name: Name) -> Span | None:
    """Match the lines of a YAML block scalar, or a value alone on the line below the name."""
    if opening := _BLOCK.match(text, name.end):
        start, end = opening.end(), _block_end(text, opening.end(), _indent(text, name))
        start += len(text[start:end]) - len(text[start:end].lstrip())
        return (
            (start, end)
            if start < end and not placeholder(text[start:end].partition("\n")[0])
            else None
        )
    if link := _NEXT_LINE.match(text, name.end):
        span = bare(text, link.end(), name.start)  # a clear secret alone on the line below the name
        value = text[slice(*span)] if span else ""
        code = (
            not span or (called(value) and value[-1] == ")") or not _LINE_END.match(text, span[1])
        )
        return extended(text, span) if span and looks_secret(value) and not code else None
    return None


def _indent(text: str, name: Name) -> int:
    line = text[line_start(text, name.start) : name.start]
    return len(line) - len(line.lstrip(" \t-"))


def _block_end(text: str, at: int, indent: int) -> int:
    """Return where the lines end that are indented by more."""
    end = at
    for _ in range(_MAX_LINES):
        row = _BLOCK_LINE.match(text, at)
        if row is None or row.end() == at or (row[1] and row.start(1) - at <= indent):
            break
        end, at = row.end(1) if row[1] else end, row.end()
    return end


def _assigned(text: str, name: Name) -> Span | None:
    link = _ASSIGNED.match(text, name.end) or _VARIABLE_BLOCK.match(text, name.end)
    if (
        link
        and link[0].strip()[-1:] in tuple(">→")
        and _MENU.search(text, max(0, name.start - 8), name.start)
    ):
        return None
    if (
        link is None
        and name.is_password
        and text[name.start : name.end].islower()
        and text[name.start - 1 : name.start] not in tuple("$.>:")
    ):
        link = _SCOPE.match(text, name.end)
    if link is None and text[name.end : name.end + 1] == '"':
        link = _FORM_PART.match(text, name.end)
    if link is None and (pair := _PAIR.match(text, name.end)):
        link = pair if _PAIR_NAME.search(text, max(0, name.start - 48), name.start) else None
    span = _secret(text, name, link.end(), _accept_assigned) if link else None
    if span is None and (returned := _RETURNED.match(text, name.end)):
        return _secret(text, name, returned.end(), _accept_assigned)
    return span


def _argument(text: str, name: Name) -> Span | None:
    """Match the argument after a quoted name, or the only argument of a call: `put("password",
    "…")`, `setPassword("…")`."""
    low = max(0, name.start - 100)
    link = _ARGUMENT.match(text, name.end)
    if link and not _IN_CALL.search(text, low, name.start):
        return None
    if link is None and text[name.start : name.end].isupper():
        link = _CONSTANT_ARGUMENT.match(text, name.end)
    if link is None and (called := _CALLED.match(text, name.end)):
        link = None if _FETCHED.search(text, max(low, name.start - 24), name.start) else called
    found = quoted(text, link.end()) if link else None
    if found is None or text[found[1] : found[1] + 1] not in (")", ",", "}", " ", "\n", ";"):
        return None
    value = text[slice(*found[0])]
    return (
        found[0]
        if value[:1] != "-" and quoted_secret(value, password=name.is_password, token_word=True)
        else None
    )


def _stated(text: str, name: Name) -> Span | None:
    link = _STATED.match(text, name.end)
    if link is None or (link["of"] is None and link[0].strip() in (":", "=", "：")):
        return None
    doubtful = link["link"] in ("to", "are", "as", "on", "auf", "-") or (
        link["link"] or ""
    ).endswith("be")
    accept = _accept_changed if doubtful else _accept_stated
    return _secret(text, name, link.end(), accept, sentence=True)


def _referred(text: str, name: Name) -> Span | None:
    """Match a password in the next clause: `the password was rotated, it is now hunter2`."""
    link = (
        _IT_IS.match(text, name.end)
        if name.is_password and "it" in text[name.end : name.end + 48]
        else None
    )
    span = bare(text, link.end(), name.start) if link else None
    return (
        span
        if span and looks_secret(text[slice(*span)]) and any(map(str.isdigit, text[slice(*span)]))
        else None
    )


def _besides(text: str, name: Name) -> Span | None:
    link = _BESIDE.match(text, name.end)
    if name.word.startswith("парол") and (of := _OF_WHAT.match(text, name.end)):
        link = of
    if (
        link
        and link[0] == "|"
        and _EXPRESSION.search(text, line_start(text, name.start), name.start)
    ):
        return None
    return _beside(text, name, link.end(), table="|" in link[0]) if link else None


# Each form with the characters that may follow the name.
_FORMS: tuple[tuple[Callable[[str, Name], Span | None], str], ...] = (
    (_markup, "><&\"'\\ "),
    (_block, ":\"'"),
    (_assigned, ":=：＝ \t\"'`\\[]()*&+.?!|<~-,{}\n;^%/≔≡∶꞉←→⇒⇨➔➜⟶"),
    (_argument, "\"'\\(,{ "),
    (_stated, " \t\n'’:：=是为為はが는은이"),
    (_besides, " \t|\"'\\*"),
    (_referred, " ,;"),
)

# --- values ---


def _secret(
    text: str, name: Name, at: int, accept: _Accepts, *, sentence: bool = False
) -> Span | None:
    """Return the span of a quoted secret, of a bare value that looks like one, or of one that
    `accept` takes by its context."""
    if default := _DEFAULT.match(text, at):
        return (
            default.span(1) if not placeholder(default[1]) and not plain_word(default[1]) else None
        )
    if link := (
        None
        if sentence
        else _WRAPPER.match(text, at) or _WRAPPER_DEFAULT.match(text, at) or fallback(text, at)
    ):
        at = link.end()
    broken = _BREAK.match(text, at)  # a line break between an operator and a quoted value
    if found := quoted(text, broken.end() if broken else at):
        return found[0] if _accept_quoted(text, name, found[0]) else None
    quote = text[at : at + 1] if text[at : at + 1] in OPENING_QUOTES else ""
    if text[at : at + 2] in ('""', "''") or (
        quote and is_open(text[line_start(text, name.start) : name.start], quote)
    ):
        return None
    span = bare(text, at + len(quote), name.start)
    if span is None or span[0] == span[1]:
        return None
    value = text[slice(*span)]
    if name.is_vague and not random_looking(value, min_length=12 if name.word == "auth" else 16):
        return None
    if name.word == "token" and _NUMBER.fullmatch(value):
        return None
    if (
        looks_secret(value)
        and not _code(text, name, value, span[1], sentence=sentence)
        and not (name.plural and sentence)
    ):
        return _with_more_words(text, name, extended(text, span))
    return accept(text, name, at, span)


def _accept_quoted(text: str, name: Name, span: Span) -> bool:
    value = text[slice(*span)]
    if name.is_vague:
        return random_looking(value, min_length=12) or noisy(value)
    if name.word == "token" and _NUMBER.fullmatch(value):
        return False
    named = name.word in ("credentials", "credential", "creds", "cred")
    return quoted_secret(
        value,
        password=name.is_password and not name.plural,
        token_word=name.word == "token" or named,
    )


def _with_more_words(text: str, name: Name, span: Span) -> Span:
    """Extend a password on a line of its own over further words that no sentence contains:
    `Tr0ub4dor &3`."""
    if not name.is_password or text[line_start(text, name.start) : name.start].strip(" \t-\"'"):
        return span
    end = span[1]
    while more := _MORE_WORDS.match(text, end):
        end = more.end()
    return span[0], end


def _accept_assigned(text: str, name: Name, at: int, span: Span) -> Span | None:
    value = text[slice(*span)]
    if value.isdigit():
        enough = len(value) >= (4 if name.is_password else 8) and name.word not in ("token", "pass")
        return extended(text, span) if enough and not _UNIT.match(text, span[1]) else None
    if (
        name.is_password
        and looks_secret(value, min_length=_SHORT)
        and _LINE_END.match(text, span[1])
        and not called(value)
    ):
        return span
    return _word_as_secret(text, name, at, span)


def _word_as_secret(text: str, name: Name, at: int, span: Span) -> Span | None:
    """Accept a value of letters in an environment file or a URL, or as a password alone on its
    line."""
    value = text[slice(*span)]
    if name.is_password and (phrase := _passphrase(text, name, at, span)):
        return phrase
    if (
        len(value) < 4
        or plain_word(value)
        or variable(value)
        or called(value)
        or not any(map(str.isalpha, value))
    ):
        return None
    if _CODE_AFTER.match(text, span[1]) and not name.word.isupper():
        return None
    written = text[name.start : name.end]
    tight = text[at - 1] == "=" and text[at - 2 : at - 1] not in ("=", " ")
    if tight and (
        written.isupper()
        or (name.is_password and (text[name.start - 1 : name.start] in "?&;." or "." in value))
    ):
        return extended(text, span)
    if (
        not name.is_password
        or name.word == "pass"
        or (value[:1].isupper() and written.islower() and ":" in text[name.end : at])
    ):
        return None  # password: Password
    if tight and _SEPARATED.match(text, span[1]):
        return extended(text, span)
    return _whole_line(text, name, at, span) if _LINE_END.match(text, span[1]) else None


_SEPARATED = LazyRegex(r"[;&]\s?\w{2,24}(?: \w{2,12})?=|;?[\"']|[ \t]")
_PASSPHRASE = LazyRegex(r"(?:[a-z]{3,12} ){2,9}[a-z]{3,12}[ \t]{0,4}(?:\r?\n|$)")


def _passphrase(text: str, name: Name, at: int, span: Span) -> Span | None:
    """Accept several words that fill the rest of a line which starts with the name, unless they
    are a sentence."""
    found = (
        _PASSPHRASE.match(text, span[0])
        if ":" in text[name.end : at] and not _line_before(text, name)
        else None
    )
    words = found[0].split() if found else []
    return (
        (span[0], span[0] + len(" ".join(words)))
        if found and sum(map(plain_word, words)) <= len(words) // 4
        else None
    )


def _whole_line(text: str, name: Name, at: int, span: Span) -> Span | None:
    """Accept a word that fills the rest of a line, unless it may be a variable: `password =
    line`."""
    value, spaced = text[slice(*span)], text[at - 2 : at] == "= "
    ends_in_code = text[span[1] : span[1] + 1] in (";", ",", ")")
    identifier = "_" in value or value != value.lower()
    return (
        None
        if spaced and (_line_before(text, name) or ends_in_code or identifier)
        else extended(text, span)
    )


def _line_before(text: str, name: Name) -> str:
    """Return what stands in the line before the name, apart from marks of lists and the rest of
    the identifier."""
    return text[line_start(text, name.start) : name.start].strip(" \t-\"'$@%").rstrip(_IDENTIFIER)


def _accept_stated(text: str, name: Name, at: int, span: Span) -> Span | None:
    value = text[slice(*span)]
    ends = name.is_password and not name.plural and _SENTENCE_END.match(text, span[1])
    if value.isdigit():
        return span if ends and len(value) >= 4 else None
    return (
        span
        if ends
        and len(value) >= 5
        and value.isalpha()
        and value < "\u0e00"
        and not plain_word(value)
        else None
    )


def _accept_changed(text: str, name: Name, at: int, span: Span) -> Span | None:
    """After `to`, a word may be a verb: only digits are accepted beyond clear secrets."""
    value = text[slice(*span)]
    return (
        span
        if name.is_password
        and value.isdigit()
        and len(value) >= 4
        and not _UNIT.match(text, span[1])
        else None
    )


def _beside(text: str, name: Name, at: int, *, table: bool) -> Span | None:
    """Accept a value after the name without any sign between them: `--password s3same`, `key
    (abc123)`, `ENV PASSWORD x`."""
    if name.is_key or name.plural:
        return None
    if found := quoted(text, at):
        value = text[slice(*found[0])]
        accepted = quoted_secret(value, password=name.is_password) and _expects_value(
            text, name, quote=True
        )
        return found[0] if accepted or looks_secret(value) else None
    span = bare(text, at, name.start)
    value = text[slice(*span)] if span else ""
    if span is None or value[:1] in ("", "-", "=") or plain_word(value):
        return None
    min_length = (
        5 if name.is_password and (table or value.isalnum()) else 6 if name.is_password else 12
    )
    if (
        len(value) >= min_length
        and looks_secret(value, min_length=min_length)
        and not _code(text, name, value, span[1], sentence=True)
    ):
        return extended(text, span)
    if value.isdigit() and not name.word.isascii():  # şifrem 7731: no word stands between them
        return (
            span
            if name.is_password and 4 <= len(value) <= 12 and _SENTENCE_END.match(text, span[1])
            else None
        )
    metavar = value.isupper() and not any(map(str.isdigit, value))  # --password PASSWORD
    allowed = len(value) >= 4 and not metavar and not variable(value) and _expects_value(text, name)
    return (
        extended(text, span)
        if allowed and (_is_option(text, name) or _LINE_END.match(text, span[1]))
        else None
    )


def _expects_value(text: str, name: Name, *, quote: bool = False) -> bool:
    """Return whether the words before a name say that its value follows: an option, `ENV`,
    `login x`, `(setq`, `WITH`."""
    low = max(0, name.start - 64)
    if _is_option(text, name):
        return True
    if not name.is_password:
        return False
    written = text[name.start : name.end]
    if _DIRECTIVE.search(text, low, name.start) and (
        written.isupper() or "_" in text[low : name.end].rpartition("\n")[2]
    ):
        return True
    if quote and name.word.startswith("pass") and _SQL.search(text, low, name.start):
        return True
    return any(form.search(text, low, name.start) for form in (_LOGIN, _LISP))


def _is_option(text: str, name: Name) -> bool:
    low = max(0, name.start - 48)
    return "-" in text[low : name.start] and _FLAG.search(text, low, name.start) is not None


def _code(text: str, name: Name, value: str, end: int, *, sentence: bool) -> bool:
    """Return whether the value is a call, an index or a dotted name, which fetches the secret."""
    tight = text[end - len(value) - 1] == "="
    constant = tight and (
        text[name.start : name.end].isupper()
        or text[name.start - 1 : name.start] in (";", "&", "?")
    )
    # password: s3cret(1)
    literal = text[end - len(value) - 2] == ":" and any(map(str.isdigit, value.partition("(")[0]))
    if called(value) and not constant and not literal:
        return True
    if not sentence and value.isidentifier() and _CODE_AFTER.match(text, end):
        return True
    return variable(value)


PATTERNS = (Pattern("password_assignment", "SECRET", find_assignments, hints=STEMS),)
