"""The firewall of capture: why a text is not worth keeping.

`why_not` judges every sentence of a transcript. `why_stored_is_junk` is the part of it that
`memory-mesh junk` asks about stored memories. A reason is a plain phrase that completes "not kept:
…".
"""

import re
from collections.abc import Iterable

from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.language.capture.classify import normalized, phrases
from memory_mesh.core.text import LazyRegex, hides_secret

MIN_WORDS = 3
SMALL_TALK = "small talk"
RECALLED = "a memory that was recalled"
_MAX_CHARS = 2_000  # a longer sentence is a pasted document
_PASTED_LINES = 0.5  # fraction of lines that look like the output of a program

_OUTPUT_LINE = LazyRegex(
    r"\s*(?:Traceback \(most|File \"[^\"]+\", line \d+|at [\w.$<>]+ ?\(?.*:\d+|[A-Za-z.]*(?:Error|"
    r"Exception): |(?:npm|yarn|pnpm) (?:ERR|WARN)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d[ ,.]|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|"
    r"FATAL|TRACE)\b|(?:diff --git|@@ |index [0-9a-f]{3,}\.\.|\+\+\+ |--- [ab]/)"
    r"|[+-](?:\s|[\w\"'<{(/])[^ ]* ?[=:({;]|[-d]rw[x-]|total \d+$|\$ \S|>>> |(?:PASS|FAIL|✓|✗|●)\s|"
    r"(?:not )?ok \d|[{\[].*[}\]],?$|remote: |(?:\S+ ){0,3}={3,}|\|.*\||<[a-z!/][^>]*>)"
)
_CODE_LINE = LazyRegex(
    r"\s*(?:(?:async )?(?:def|class|function|fn|func|pub|impl|struct|enum|interface|const|let|var|"
    r"import|from \S+ import|export|#include|package|using|public|private|"
    r"protected)\s.*[({;:=\"'].*"
    r"|(?:if|for|while|switch|elif|else if|catch|except)\b.*[:{]$|return\b.*;?$|[\w.\[\]]+ ?(?:=|"
    r"\+=|:=) ?[^=].*[;)\]}\"']$|.*[;{}]$|(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\s.*|"
    r"//.*|/\*.*|#!.*|@\w+(?:\(.*\))?$)"
)
# --- how things are said ---
# A phrase of the tables is a regular expression; ` / ` separates them.

_FILLERS = (
    r"((ok(ay)?|so|and|oh|ah|yes|yep|hey|well|great|cool|nice|perfect|awesome|super|alright|sure|"
    r"right|good|fine|no)[,.! ]+){0,3}"
)
_GREETING = phrases(
    rf"{_FILLERS}(hi|hello|hey|hallo|hola|bonjour|salut|moin|servus|guten (morgen|tag|abend)|bye|"
    r"ciao|see you|cheers|sorry)",
    rf"{_FILLERS}(good (morning|evening|afternoon|night|bot|job|point|one|idea)|thanks?|thank you|"
    r"thx|ty|danke|merci|gracias)",
    rf"{_FILLERS}(you're (absolutely )?(right|welcome)|no (worries|problem|rush|hurry|need)|sounds "
    r"good|looks good|avec plaisir)",
    rf"{_FILLERS}(my bad|congrats|welcome|of course|de nada|bonne (soirée|journée)|done|wow|great|"
    r"perfect|awesome|nice|cool)",
    start=True,
)
_REPLY = phrases(
    _FILLERS
    + (
        r"(ok(ay)?|yes|yep|yeah|no|nope|sure|hm+|oh no|got it|lgtm|works|go (on|ahead)|continue|"
        r"next|ready|on it|later)"
    ),
    start=True,
)
_MAX_GREETING_WORDS, _MAX_REPLY_WORDS = 4, 1  # after the phrase
_QUESTION = LazyRegex(r".*\?[\"'”’)\]\s]*$", re.DOTALL)
_ASKS = phrases(
    r"(\w+[, ]+){0,2}(what if|how (do|does|can|would|should|many|much|about)|should (we|i)|is (it|"
    r"there|that)|are (we|you|there))",
    r"(\w+[, ]+){0,2}((could|can|would) you|do (we|you|i)|did (the|you|it|we))",
    start=True,
)
_SPECULATION = phrases(
    "maybe / perhaps / probably / possibly / presumably / apparently / might / may (have|be) / "
    "could (be|have been) / in theory",
    "i (think|guess|suppose|assume|suspect|believe|wonder|doubt|feel like) / i'm (guessing|not "
    "sure|unsure|wondering) / wondering",
    "not (sure|certain) / no idea / dunno / don't know / seems? (to|like|that) / looks like / "
    "leaning (to|towards) / 50/50 / can't tell",
    "candidates? for / hypothes[ie]s / not (yet )?(measured|verified|confirmed|tested) / before "
    "claiming / theoretically",
    "haven't (measured|verified|confirmed|tested|checked) / see how it (looks|goes|feels)",
    "vielleicht / wahrscheinlich / vermutlich / möglicherweise / ich glaube / keine ahnung / "
    "peut-être / je (pense|crois) / quizás",
    "tal vez / creo que",
)
_HYPOTHETICAL = phrases(
    "what if / if (we|i) (ever|had|were|could|wanted) / we'd (probably|expect|have to|need) / "
    "would happen / suppose / imagine / pretend",
    r"if (it|the \w+|that) (were|was)\b.*(would|we'd|i'd) / let's say / hypothetically / just "
    r"curious / "
    r"for the sake of argument",
    "someday / one day we / wenn wir (jemals|mal) / angenommen / si on avait / imaginons / imagina",
)
_TRANSIENT = phrases(
    "for now / right now / at the moment / currently (running|waiting|down|red|failing) / this "
    "once / for the time being / temporarily",
    "just (for )?this (once|time|run|one) / only this (once|time) / for this "
    "(run|screenshot|demo|test|one) / one sec / brb / not today",
    r"give me (a|ten|five|\d+) / (today|tonight|tomorrow)(?!'s)( \w+){0,2}$ / (this|tomorrow) "
    r"(morning|afternoon|evening) / still running",
    r"for (the )?next \d+ ?(min|hour|sec)\w* / (back|leaves|starts|ready|there|done|again) in (a|"
    r"ten|five|\d+) (min|sec|hour)\w*",
    r"i'll revert / is (down|red|running|on fire)( (now|again))?[.!]*$ / (will|i'll) be "
    r"(back|away|offline)",
    "my (train|flight|bus|meeting) (leaves|starts|is) / gerade eben / im moment / momentan / "
    "vorerst / pour l'instant / por ahora",
    "de momento",
)
_PLAN = phrases(
    r"((ok(ay)?|sure|great|right|good|yes|done|understood|got it|perfect|of course|sorry|thanks|"
    r"now|next|then|first|so|alright)[,.!:;]* )*"
    r"(let me|let us|i'll|i will|i'm (going|about|now|currently)|i am (going|about|now)|i'm \w+ing|"
    r"next,? (i|step)|now (i|running|checking)"
    r"|starting|continuing|running|reading|checking|waiting|adding|fetching|looking|searching|"
    r"opening|working|step \d|here('s| is| are)"
    r"|i('ve| have)? (updated|added|changed|created|renamed|moved|fixed|edited|refactored|removed|"
    r"committed|pushed|implemented|written"
    r"|wrote|read|ran|run|opened|installed|rewrote|tidied|summari[sz]ed|translated|switched|"
    r"annotated|wrapped|finished)(?! (the \w+ )?(and|that)\b)|done|would you like|do you want|"
    r"shall i|want me to|let me know|summary of|tomorrow i)",
    start=True,
)
_RESTATED = phrases(
    "as i (recall|remember) / from (my )?memory / i (recall|remember) (that )?you / you (said|told "
    "me|mentioned|asked me) / per your",
    "(since|as|because) you (prefer|like|use|want|always|said|mentioned|told) / you "
    "(prefer|live|work|like)",
    r"according to (my|your|the) (memory|memories|notes|preferences) / according to memory",
)
_REPORTED = phrases(
    r"(some(one|body)|jemand|quelqu'un|alguien|he|she|they|people|my (neighbou?r|friend|brother|"
    r"sister|colleague|boss|uncle|aunt)"
    r"|the (article|ticket|readme|post|blog|mail|email|author|book|page|forum|guide))( always)?( "
    r"(on|im) \w+)?"
    r" (says?|said|asked|swears?|claims?|claimed|wrote|thinks?|meinte|sagt|told|a dit|dice)",
    "from the (readme|docs|article|mail|ticket) / as a user i want / i read (that|somewhere)",
)
_ONE_OFF = phrases(
    r"((ok(ay)?|so|and|now|then|please|pls|also|but|just|can you|could you|hey|hi|first|next|"
    r"thanks|great)[,:]? )*(rename|delete|remove|undo|revert|open|close|run|rerun|re-run|restart|"
    r"start|show|fix|sort|crop|bump|fill|check|look|find|search"
    r"|tell me|give me|explain|list|print|write|draft|create|make (the|a|it|me)|add|put|move|copy|"
    r"paste|merge|push|commit|rebase|deploy"
    r"|install|update|upgrade|change|replace|set|try|test|remind|send|forward|translate|"
    r"summari[sz]e|proofread|rewrite|refactor|generate"
    r"|read|review|compare|estimate|skip|stop (there|here)|wait|pick|choose|ignore|export|import|"
    r"upload|download|log ?in|act as|imagine"
    r"|continue|finish|draw|plot|format|use the (first|second|third|last))",
    start=True,
)
_STANDING = phrases(
    "always / never / ever / every / each / any(thing|one)? / whenever / from now on / from here "
    "on / going forward / in (the )?future",
    r"next time / everywhere / all (\w+ )?\w+s / only / instead / not / before / unless / without "
    r"/ when(ever)? (i|you|we) / no more",
    "must / should / don't / do not / immer / nie(mals)? / künftig / toujours / jamais / siempre "
    "/ nunca",
)
_SLIP = phrases(
    "i (mistyped|misspelled|misspelt|forgot to|had a typo) / (a|my|the) (typo|misspelling|syntax "
    "error) / there is a typo",
    "missing (semicolon|comma|bracket|brace|import|parenthesis|quote|colon)",
)
_POINTS_AT = phrases(
    "the (left|right|first|second|third|last|other|top|bottom|upper|lower|former|latter) "
    "(one|version|option|layout|variant)",
    "(this|that) (button|screenshot|variable|page|demo|line|function|draft)(?= (and|for)|[.!]?$)",
)
_RECALLED_LINE = LazyRegex(
    r"</?(?:recalled|memory|memories|untrusted)[\w-]*[ >]|^\s*(?:relevant memories|\[memory "
    r"context\]|memory context:)",
    re.IGNORECASE,
)
_ADDRESSED = phrases(
    "ai (agents?|assistants?) / (assistants?|agents?),? (you must|please|must|should) "
    "(store|remember|save) / ignore (all )?previous",
    "system prompt",
)
_JOKE = LazyRegex(
    r"[🙃😜😂🤣😅]|\b(?:lol|haha+|lmao|rofl|jk|just kidding)\b|/s$|\boh sure\b", re.IGNORECASE
)
_SECRET = phrases(
    "password / passwort / passphrase / secret / token / api[ _-]?key / private key / credential "
    "/ sk / key"
)


def why_not(text: str, *, role: str = "user", recalled: Iterable[str] = ()) -> str | None:
    """Return why a text is not worth keeping, or None if nothing speaks against it. `recalled`
    are memories that were shown."""
    plain = normalized(text)
    if role in ("tool", "system"):
        return "the output of a tool" if role == "tool" else "an instruction of the system"
    if is_output(text):
        return "the output of a program or code"
    if len(plain) > _MAX_CHARS:
        return "a pasted document"
    if _RECALLED_LINE.search(text) or any(says_the_same(plain, known) for known in recalled):
        return RECALLED
    if _is_small_talk(plain):
        return SMALL_TALK
    return (
        _why_not_by_form(plain, role)
        or why_not_safe(plain)
        or ("a secret" if hides_secret(plain) else None)
    )


def why_stored_is_junk(text: str) -> str | None:
    """Return why a stored text should not be in a memory, or None. Milder than `why_not`: it may
    be stored on purpose."""
    plain = normalized(text)
    if is_output(text):
        return "the output of a program or code"
    if _RECALLED_LINE.search(text):
        return RECALLED
    if _is_small_talk(plain):
        return SMALL_TALK
    return "a question" if _QUESTION.match(plain) and ". " not in plain else why_not_safe(plain)


def is_output(text: str) -> bool:
    """Return whether a text looks like code, a log, a stack trace, a diff, a table or markup."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = sum(bool(_OUTPUT_LINE.match(line) or _CODE_LINE.fullmatch(line)) for line in lines)
    return bool(lines) and found >= len(lines) * _PASTED_LINES


def _why_not_by_form(plain: str, role: str) -> str | None:
    """Return why a sentence is not worth keeping for the way it is said."""
    if len(plain.split()) < MIN_WORDS:
        return "too short to mean something on its own"
    checks = (
        (_QUESTION.match(plain) or _asks(plain), "a question"),
        (_JOKE.search(plain), "a joke"),
        (_SPECULATION.search(plain), "speculation"),
        (_HYPOTHETICAL.search(plain), "a hypothesis"),
        (_TRANSIENT.search(plain), "true only for the moment"),
        (_SLIP.search(plain), "a slip that was corrected"),
        (_REPORTED.search(plain), "words of somebody else"),
        (role == "assistant" and _RESTATED.search(plain), RECALLED),
        (role == "assistant" and _PLAN.match(plain), "the plan or progress of the agent"),
        (role == "user" and _POINTS_AT.search(plain), "not understandable without what was shown"),
        (
            role == "user" and _ONE_OFF.match(plain) and not _STANDING.search(plain),
            "an instruction for once",
        ),
    )
    return next((why for found, why in checks if found), None)


def _is_small_talk(plain: str) -> bool:
    """Return whether a sentence is hardly more than a greeting, thanks, or yes and no."""
    tables = ((_GREETING, _MAX_GREETING_WORDS), (_REPLY, _MAX_REPLY_WORDS))
    found = ((table.match(plain), most) for table, most in tables)
    return any(match and len(plain[match.end() :].split()) <= most for match, most in found)


def _asks(plain: str) -> bool:
    """Return whether a sentence asks without a question mark, as in "should we use Redis"."""
    return plain[-1:] not in ".!" and ". " not in plain and _ASKS.search(plain) is not None


def why_not_safe(plain: str) -> str | None:
    """Return why a text must not be kept: it holds a secret, or instructions for a model."""
    # Many patterns, which most texts do not need.
    from memory_mesh.core.language.redaction import masked
    from memory_mesh.core.language.safety.injection import detect

    if _ADDRESSED.search(plain) or detect(plain):
        return "instructions for a model"
    return "a secret" if masked(plain) != plain and _SECRET.search(plain) else None
