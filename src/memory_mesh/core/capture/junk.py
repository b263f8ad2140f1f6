"""The firewall of capture: why a text is not worth keeping.

`why_not` is the one predicate. Capture asks it about every sentence of a transcript, and `memory-mesh junk` about what a store
holds. A reason is a plain phrase that completes "not kept: …".
"""

import re
from collections.abc import Iterable

from memory_mesh.core.capture.phrases import normalized
from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.text import LazyRegex

MIN_WORDS = 3
SMALL_TALK = "small talk"
RECALLED = "a memory that was recalled"
_MAX_CHARS = 2_000  # a longer sentence is a pasted document
_PASTED_LINES = 0.5  # fraction of lines that look like the output of a program

_OUTPUT_LINE = LazyRegex(
    r"\s*(?:Traceback \(most|File \"[^\"]+\", line \d+|at [\w.$<>]+ ?\(?.*:\d+|[A-Za-z.]*(?:Error|Exception): |(?:npm|yarn|"
    r"pnpm) (?:ERR|WARN)"
    r"|\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d\d:\d\d:\d\d[ ,.]|\[?(?:DEBUG|INFO|WARN(?:ING)?|ERROR|FATAL|TRACE)\b|(?:diff --git|"
    r"@@ |index [0-9a-f]{3,}\.\.|\+\+\+ |--- [ab]/)"
    r"|[+-](?:\s|[\w\"'<{(/])[^ ]* ?[=:({;]|[-d]rw[x-]|total \d+$|\$ \S|>>> |(?:PASS|FAIL|✓|✗|●)\s|(?:not )?ok \d|"
    r"[{\[].*[}\]],?$|remote: |(?:\S+ ){0,3}={3,}|\|.*\||<[a-z!/][^>]*>)"
)
_CODE_LINE = LazyRegex(
    r"\s*(?:(?:async )?(?:def|class|function|fn|func|pub|impl|struct|enum|interface|const|let|var|import|from \S+ import|"
    r"export|#include|package|using|public|private|protected)\s.*[({;:=\"'].*"
    r"|(?:if|for|while|switch|elif|else if|catch|except)\b.*[:{]$|return\b.*;?$|[\w.\[\]]+ ?(?:=|\+=|:=) ?[^=].*[;)\]}\"']$|"
    r".*[;{}]$|(?:SELECT|INSERT|UPDATE|DELETE|CREATE|ALTER|DROP)\s.*|//.*|/\*.*|#!.*|@\w+(?:\(.*\))?$)"
)
_GREETING = LazyRegex(
    r"(?:(?:ok(?:ay)?|so|and|oh|ah|yes|yep|hey|well|great|cool|nice|perfect|awesome|super|alright|sure|lol|haha|right|good|"
    r"fine|no)[,.! ]+){0,3}"
    r"(?:hi|hello|hey|hallo|hola|bonjour|salut|moin|servus|good (?:morning|evening|afternoon|night|bot|job|point|one|idea)|"
    r"guten (?:morgen|tag|abend)|thanks?|thank you|thx|ty|cheers"
    r"|danke|merci|gracias|bye|ciao|see you|later|welcome|you'?re (?:absolutely )?(?:right|welcome)|sorry|my bad|"
    r"no (?:worries|problem|rush|hurry|need)|ok(?:ay)?|yes|yep|yeah|no|nope|sure|done|great|cool"
    r"|perfect|awesome|nice|wow|lol|haha+|hm+|oh no|congrats|of course|got it|sounds good|looks good|lgtm|works|go (?:on|"
    r"ahead)|continue|next|ready|on it|avec plaisir|bonne (?:soirée|journée)|de nada)"
    r"(?:[\s,.!…]+(?:[\w'’]+)){0,4}[\s,.!…👍🙏😀-🙏]*",
    re.IGNORECASE,
)
_QUESTION = LazyRegex(
    r".*\?[\"'”’)\]\s]*$|(?:\w+[, ]+){0,2}(?:what if|how (?:do|does|can|would|should|many|much|about)|should (?:we|i)|"
    r"is (?:it|there|that) |are (?:we|you|there) |could you|can you|would you|do (?:we|you|i) |did (?:the|you|it|we) )"
    r"(?!.*\.\s).*[^.!]$",
    re.IGNORECASE | re.DOTALL,
)
_SPECULATION = LazyRegex(
    r"\b(?:maybe|perhaps|probably|possibly|presumably|apparently|might|may (?:have|be)|could (?:be|have been)|i (?:think|"
    r"guess|suppose|assume|suspect|believe|wonder|doubt|feel like)|i'?m (?:guessing|not sure|unsure|wondering)|"
    r"just wondering|see how it (?:looks|goes|feels)|wonder(?:ing)?|not (?:sure|certain)"
    r"|no idea|dunno|don'?t know|seems? (?:to|like|that)|looks like|leaning (?:to|towards)|50/50|can'?t tell|candidates? for|"
    r"hypothes[ie]s|not (?:yet )?(?:measured|verified|confirmed|tested)|haven'?t (?:measured|verified|confirmed|tested|"
    r"checked)"
    r"|before claiming|in theory|theoretically|vielleicht|wahrscheinlich|vermutlich|möglicherweise|ich glaube|keine ahnung|"
    r"peut-être|je (?:pense|crois)|quizás|tal vez|creo que)\b",
    re.IGNORECASE,
)
_HYPOTHETICAL = LazyRegex(
    r"\b(?:what if|if we (?:ever|had|were|could|wanted)|if i (?:ever|had|were|could)|if (?:it|the \w+|that) (?:were|"
    r"was)\b.*\b(?:would|we'd|i'd)|we'?d (?:probably|expect|have to|need)|would happen|suppose|imagine|pretend|let'?s say|"
    r"hypothetically"
    r"|just curious|for the sake of argument|someday|one day we|wenn wir (?:jemals|mal)|angenommen|si on avait|imaginons|"
    r"imagina)\b",
    re.IGNORECASE,
)
_TRANSIENT = LazyRegex(
    r"\b(?:for now|right now|at the moment|currently (?:running|waiting|down|red|failing)|this once|"
    r"just (?:for )?this (?:once|time|run|one)|only this (?:once|time)|for this (?:run|screenshot|demo|test|one)|one sec|brb|"
    r"give me (?:a|ten|five|\d+)"
    r"|(?:today|tonight|tomorrow)(?!['’]s)(?: \w+){0,2}$|(?:this|tomorrow) (?:morning|afternoon|evening)|"
    r"for (?:the )?next \d+ ?(?:min|hour|sec)\w*|(?:back|leaves|starts|ready|there|done|again|call|meeting) in (?:a|ten|five|"
    r"\d+) (?:min|sec|hour)\w*|for the time being|temporarily|gerade eben|im moment|momentan|vorerst"
    r"|pour l'instant|por ahora|de momento|i'?ll revert|not today|still running|is (?:down|red|running|on fire)(?: (?:now|"
    r"again))?[.!]*$|prod is down|(?:will|'ll) be (?:back|away|in a|offline)|my (?:train|flight|bus|meeting) (?:leaves|"
    r"starts|is))\b",
    re.IGNORECASE,
)
_PLAN = LazyRegex(
    r"(?:(?:ok(?:ay)?|sure|great|right|good|yes|done|understood|got it|perfect|of course|sorry|thanks|now|next|then|first|so|"
    r"alright|interesting)[,.!:;]* )*"
    r"(?:let me|let us|i'?ll|i will|i'?m (?:going|about|now|currently|ignoring)|i am (?:going|about|now)|i'?m (?:\w+ing)\b|"
    r"next,? (?:i|step)|now (?:i|running|checking)|starting|continuing|running|reading|checking|waiting|adding|fetching|"
    r"looking|searching|opening|working"
    r"|step \d|i(?:'ve| have)? (?:updated|added|changed|created|renamed|moved|fixed|edited|refactored|removed|committed|"
    r"pushed|implemented|written|wrote|read|ran|run|opened|installed|rewrote|tidied|summari[sz]ed|translated|switched|"
    r"annotated|wrapped|finished)\b(?! (?:the \w+ )?(?:and|that)\b)"
    r"|here(?:'s| is| are)|done\b|would you like|do you want|shall i|want me to|let me know|summary of|tomorrow i|"
    r"reminder set|forwarded|logged in)",
    re.IGNORECASE,
)
_RESTATED = LazyRegex(
    r"\b(?:as i (?:recall|remember)|from (?:my )?memory|i (?:recall|remember) (?:that )?you|(?:since|as|"
    r"because) you (?:prefer|like|use|want|always|said|mentioned|told)|you (?:said|told me|mentioned|asked me)|you (?:prefer|"
    r"live|work|like)\b|per your|according to (?:my|your|the) (?:memor|notes|preferences))",
    re.IGNORECASE,
)
_REPORTED = LazyRegex(
    r"\b(?:(?:some(?:one|body)|jemand|quelqu'un|alguien|my (?:neighbou?r|friend|brother|sister|colleague|boss|uncle|aunt)|"
    r"the (?:article|ticket|readme|post|blog|mail|email|author|book|page|forum|vendor's|guide)|(?:he|she|they|people|"
    r"greg)) (?:always )?(?:on \w+ |im \w+ )?(?:says?|said|asked|swears?|claims?|claimed|wrote|thinks?|meinte|sagt|told|"
    r"a dit|dice)"
    r"|from the (?:readme|docs|article|mail|ticket)\b|according to (?:memory|my memory|the memory)|as a user i want|"
    r"i read (?:that|somewhere)|dear (?:partner|customer|sir))",
    re.IGNORECASE,
)
_ONE_OFF = LazyRegex(
    r"(?:(?:ok(?:ay)?|so|and|now|then|please|pls|also|but|just|can you|could you|hey|hi|first|next|thanks|great)[,:]? )*"
    r"(?:rename|delete|remove|undo|revert|open|close|run|rerun|re-run|restart|start|show|fix|sort|crop|bump|fill|check|look|"
    r"find|search|tell me|give me|explain|list|print|write|draft|create|make (?:the|a|it|me)|add|put|move|copy|paste|merge|"
    r"push|commit|rebase|deploy|install|update"
    r"|upgrade|change|replace|set|try|test|remind|send|forward|translate|summari[sz]e|proofread|rewrite|refactor|generate|"
    r"read|review|compare|estimate|skip|stop (?:there|here)|wait|pick|choose|ignore|export|import|upload|download|log ?in|"
    r"act as|imagine|continue|finish|draw|plot|format|use the (?:first|second|third|last))\b",
    re.IGNORECASE,
)
_STANDING = LazyRegex(
    r"\b(?:always|never|ever|every|each|any(?:thing|one)?|whenever|from now on|from here on|going forward|in future|"
    r"in the future|next time|everywhere|all (?:\w+ )?(?:\w+s)\b|only|instead|not|before|unless|without|when(?:ever)? (?:i|"
    r"you|we)|no more|must|should|don'?t|do not|immer|nie(?:mals)?|künftig|toujours|jamais|siempre|nunca)\b",
    re.IGNORECASE,
)
_SLIP = LazyRegex(
    r"\b(?:i (?:mistyped|misspelled|misspelt|forgot to|had a typo)|(?:a|my|the) (?:typo|misspelling|syntax error)|"
    r"missing (?:semicolon|comma|bracket|brace|import|parenthesis|quote|colon)|there is a typo)\b",
    re.IGNORECASE,
)
_POINTS_AT = LazyRegex(
    r"\bthe (?:left|right|first|second|third|last|other|top|bottom|upper|lower|former|latter|blue|red|green) (?:one|version|"
    r"option|layout|variant)\b|\b(?:this|that) (?:button|screenshot|variable|page|demo|line|function|draft)\b(?= (?:and|for)|"
    r"[.!]?$)",
    re.IGNORECASE,
)
_RECALLED_LINE = LazyRegex(
    r"</?(?:recalled|memory|memories|untrusted)[\w-]*[ >]|^\s*(?:relevant memories|\[memory context\]|memory context:)",
    re.IGNORECASE,
)
_ADDRESSED = LazyRegex(
    r"\b(?:ai (?:agents?|assistants?)|(?:assistants?|agents?),? (?:you must|please|must|should) (?:store|remember|save)|"
    r"ignore (?:all )?previous|system prompt)\b",
    re.IGNORECASE,
)
_JOKE = LazyRegex(
    r"[🙃😜😂🤣😅]|\bwhat could go wrong\b|\b(?:lol|haha+|lmao|rofl|jk|just kidding)\b|/s$|\boh sure\b", re.IGNORECASE
)


def why_not(text: str, *, role: str = "user", recalled: Iterable[str] = ()) -> str | None:
    """Return why a text is not worth keeping, or None if nothing speaks against it. `recalled` are memories that were shown."""
    plain = normalized(text)
    if role in ("tool", "system"):
        return "the output of a tool" if role == "tool" else "an instruction of the system"
    if is_output(text):
        return "the output of a program or code"
    if len(plain) > _MAX_CHARS:
        return "a pasted document"
    if _RECALLED_LINE.search(text) or any(says_the_same(plain, known) for known in recalled):
        return RECALLED
    if _GREETING.fullmatch(plain):
        return SMALL_TALK
    return _why_not_said(plain, role) or _why_not_safe(plain)


def is_output(text: str) -> bool:
    """Return whether a text looks like code, a log, a stack trace, a diff, a table or markup."""
    lines = [line for line in text.splitlines() if line.strip()]
    found = sum(bool(_OUTPUT_LINE.match(line) or _CODE_LINE.fullmatch(line)) for line in lines)
    return bool(lines) and found >= len(lines) * _PASTED_LINES


def _why_not_said(plain: str, role: str) -> str | None:
    """Return why a sentence is not worth keeping for the way it is said."""
    if len(plain.split()) < MIN_WORDS:
        return "too short to mean something on its own"
    checks = (
        (_QUESTION.match(plain), "a question"),
        (_JOKE.search(plain), "a joke"),
        (_SPECULATION.search(plain), "speculation"),
        (_HYPOTHETICAL.search(plain), "a hypothesis"),
        (_TRANSIENT.search(plain), "true only for the moment"),
        (_SLIP.search(plain), "a slip that was corrected"),
        (_REPORTED.search(plain), "words of somebody else"),
        (role == "assistant" and _RESTATED.search(plain), RECALLED),
        (role == "assistant" and _PLAN.match(plain), "the plan or progress of the agent"),
        (role == "user" and _POINTS_AT.search(plain), "not understandable without what was shown"),
        (role == "user" and _ONE_OFF.match(plain) and not _STANDING.search(plain), "an instruction for once"),
    )
    return next((why for found, why in checks if found), None)


def _why_not_safe(plain: str) -> str | None:
    """Return why a text must not be kept: it holds a secret, or instructions for a model."""
    from memory_mesh.core.redaction import masked  # many patterns, which most texts do not need
    from memory_mesh.core.safety.injection import detect

    if _ADDRESSED.search(plain) or detect(plain):
        return "instructions for a model"
    return "a secret" if masked(plain) != plain and _SECRET.search(plain) else None


_SECRET = LazyRegex(
    r"\b(?:password|passwort|passphrase|secret|token|api[ _-]?key|private key|credential|sk-|key)\b",
    re.IGNORECASE,
)
