"""Find passwords and secrets by their names: in code, settings, markup, commands and sentences.

Only the value is masked. How much evidence name and form must give depends on the value: `password
= "hunter2"` is clear, `token = next_token` is code, `the password is required` is a sentence.
Placeholders, types, words such as `required` and calls that fetch a secret stay readable.
"""

from collections.abc import Callable, Iterator
from string import ascii_letters, digits

from memory_mesh.core.language.packaged import Expressions
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

_RE = Expressions(__name__)
_SHORT, _POSTAL, _MAX_LINES = 3, 6, 256
_IDENTIFIER = f"{ascii_letters}{digits}_.-"
_Accepts = Callable[[str, Name, int, Span], Span | None]


def before(text: str, name: Name) -> Span | None:
    """Match a value before its name: `use hunter2 as the password`, `hunter2 is my password`,
    `"hunter2" == password`."""
    near = text[max(0, name.start - 48) : name.start]
    # Each form with words of which one must stand near.
    forms = (
        (_RE.as_, (" as ", " als ", " comme ", " como ", " come ")),
        (_RE.is_, (" is ", " ist ", " est ", " es ")),
        (_RE.compared, ("==", "!=")),
        (_RE.keyed, ("forKey", "withKey")),
    )
    for form, cues in forms if _RE.before_cue.search(near) else ():
        if any(cue in near for cue in cues) and (
            found := form.search(text, max(0, name.start - 120), name.start)
        ):
            start, end = found.span(1)
            start, end = (
                (start + 1, end - 1) if text[start] in "\"'“" and end - start > 2 else (start, end)
            )
            sure = (
                form is not _RE.is_
                and text[start - 1] in "\"'“"
                and not plain_word(text[start:end])
            )
            return (start, end) if sure or looks_secret(text[start:end]) else None
    return None


def find_assignments(page: Page) -> Iterator[Span]:
    """Yield the value after each name of a secret, if it looks like a secret."""
    done, surroundings = 0, Surroundings(page, before=256, after=1024, far=_RE.far)
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
        and (digits := _RE.wide_digits.match(text, name.end))
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
        _RE.assigned.match(text, name.end)
        or _RE.stated.match(text, name.end)
        or _RE.beside.match(text, name.end)
    )
    link = link or _RE.it_is.match(text, name.end)
    at = link.end() if link else name.end
    if link is not None and text[name.end - 1] in "sS" and not set(":=") & set(link[0]):
        return None  # pins 12 and 13
    if article := _RE.article.match(text, at):
        at = article.end()
    opened = 1 if text[at : at + 1] in ("'", '"', "`", "「") else 0
    pin = _RE.digits.match(text, at + opened) or _RE.wide_digits.match(text, at + opened)
    min_length = 3 if name.word != "pin" else 4
    if pin is None or sum(map(str.isdigit, pin[0])) < min_length or _RE.unit.match(text, pin.end()):
        if name.word == "passcode" and (stated := _stated(text, name)):
            return stated
        before = _RE.pin_before.search(text, max(0, name.start - 64), name.start)
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
        (_RE.listed_element, _RE.element)
        if is_tag
        else (_RE.named_element, _RE.escaped_element, _RE.listed_element)
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
    if opening := _RE.block.match(text, name.end):
        start, end = opening.end(), _block_end(text, opening.end(), _indent(text, name))
        start += len(text[start:end]) - len(text[start:end].lstrip())
        return (
            (start, end)
            if start < end and not placeholder(text[start:end].partition("\n")[0])
            else None
        )
    if link := _RE.next_line.match(text, name.end):
        span = bare(text, link.end(), name.start)  # a clear secret alone on the line below the name
        value = text[slice(*span)] if span else ""
        code = (
            not span
            or (called(value) and value[-1] == ")")
            or not _RE.line_end.match(text, span[1])
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
        row = _RE.block_line.match(text, at)
        if row is None or row.end() == at or (row[1] and row.start(1) - at <= indent):
            break
        end, at = row.end(1) if row[1] else end, row.end()
    return end


def _assigned(text: str, name: Name) -> Span | None:
    link = _RE.assigned.match(text, name.end) or _RE.variable_block.match(text, name.end)
    if (
        link
        and link[0].strip()[-1:] in tuple(">→")
        and _RE.menu.search(text, max(0, name.start - 8), name.start)
    ):
        return None
    if (
        link is None
        and name.is_password
        and text[name.start : name.end].islower()
        and text[name.start - 1 : name.start] not in tuple("$.>:")
    ):
        link = _RE.scope.match(text, name.end)
    if link is None and text[name.end : name.end + 1] == '"':
        link = _RE.form_part.match(text, name.end)
    if link is None and (pair := _RE.pair.match(text, name.end)):
        link = pair if _RE.pair_name.search(text, max(0, name.start - 48), name.start) else None
    span = _secret(text, name, link.end(), _accept_assigned) if link else None
    if span is None and (returned := _RE.returned.match(text, name.end)):
        return _secret(text, name, returned.end(), _accept_assigned)
    return span


def _argument(text: str, name: Name) -> Span | None:
    """Match the argument after a quoted name, or the only argument of a call: `put("password",
    "…")`, `setPassword("…")`."""
    low = max(0, name.start - 100)
    link = _RE.argument.match(text, name.end)
    if link and not _RE.in_call.search(text, low, name.start):
        return None
    if link is None and text[name.start : name.end].isupper():
        link = _RE.constant_argument.match(text, name.end)
    if link is None and (called := _RE.called.match(text, name.end)):
        link = None if _RE.fetched.search(text, max(low, name.start - 24), name.start) else called
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
    link = _RE.stated.match(text, name.end)
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
        _RE.it_is.match(text, name.end)
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
    link = _RE.beside.match(text, name.end)
    if name.word.startswith("парол") and (of := _RE.of_what.match(text, name.end)):
        link = of
    if (
        link
        and link[0] == "|"
        and _RE.expression.search(text, line_start(text, name.start), name.start)
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
    if default := _RE.default.match(text, at):
        return (
            default.span(1) if not placeholder(default[1]) and not plain_word(default[1]) else None
        )
    if link := (
        None
        if sentence
        else _RE.wrapper.match(text, at)
        or _RE.wrapper_default.match(text, at)
        or fallback(text, at)
    ):
        at = link.end()
    broken = _RE.break_.match(text, at)  # a line break between an operator and a quoted value
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
    if name.word == "token" and _RE.number.fullmatch(value):
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
    if name.word == "token" and _RE.number.fullmatch(value):
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
    while more := _RE.more_words.match(text, end):
        end = more.end()
    return span[0], end


def _accept_assigned(text: str, name: Name, at: int, span: Span) -> Span | None:
    value = text[slice(*span)]
    if value.isdigit():
        enough = len(value) >= (4 if name.is_password else 8) and name.word not in ("token", "pass")
        return extended(text, span) if enough and not _RE.unit.match(text, span[1]) else None
    if (
        name.is_password
        and looks_secret(value, min_length=_SHORT)
        and _RE.line_end.match(text, span[1])
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
    written = text[name.start : name.end]
    tight = text[at - 1] == "=" and text[at - 2 : at - 1] not in ("=", " ")
    if _in_code(text, value, span[1]) and not (tight and written.isupper()):
        return None
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
    if tight and _RE.separated.match(text, span[1]):
        return extended(text, span)
    return _whole_line(text, name, at, span) if _RE.line_end.match(text, span[1]) else None


def _passphrase(text: str, name: Name, at: int, span: Span) -> Span | None:
    """Accept several words that fill the rest of a line which starts with the name, unless they
    are a sentence."""
    found = (
        _RE.passphrase.match(text, span[0])
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
    ends = name.is_password and not name.plural and _RE.sentence_end.match(text, span[1])
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
        and not _RE.unit.match(text, span[1])
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
            if name.is_password and 4 <= len(value) <= 12 and _RE.sentence_end.match(text, span[1])
            else None
        )
    metavar = value.isupper() and not any(map(str.isdigit, value))  # --password PASSWORD
    allowed = len(value) >= 4 and not metavar and not variable(value) and _expects_value(text, name)
    return (
        extended(text, span)
        if allowed and (_is_option(text, name) or _RE.line_end.match(text, span[1]))
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
    if _RE.directive.search(text, low, name.start) and (
        written.isupper() or "_" in text[low : name.end].rpartition("\n")[2]
    ):
        return True
    if quote and name.word.startswith("pass") and _RE.sql.search(text, low, name.start):
        return True
    return any(form.search(text, low, name.start) for form in (_RE.login, _RE.lisp))


def _is_option(text: str, name: Name) -> bool:
    low = max(0, name.start - 48)
    return "-" in text[low : name.start] and _RE.flag.search(text, low, name.start) is not None


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
    if not sentence and not constant and value.isidentifier() and _in_code(text, value, end):
        return True
    return variable(value)


def _in_code(text: str, value: str, end: int) -> bool:
    """Return whether an operator follows, as behind a variable: `password = given or default`. A
    value with a digit right behind `=`, or behind a colon, is rather a secret before other words.
    """
    start = end - len(value)
    spaced = text[start - 2 : start] == "= "
    return (spaced or not any(map(str.isdigit, value))) and bool(_RE.code_after.match(text, end))


PATTERNS = (Pattern("password_assignment", "SECRET", find_assignments, hints=STEMS),)
