"""Tell which of the ten types of memory a text is, or that it is none.

A linear model decides over cues, what the text answers, and its vector. The weights are packaged
data, learnt by `python -m bench.capture.train` from labelled pieces of transcripts. They are the
same in every run, so the same transcript gives the same memories. There are two tables: with the
vectors of the local model, and without vectors.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from memory_mesh.core.language.data import NONE, Vector, Weights, read_weights
from memory_mesh.core.text import LazyRegex

# --- phrases ---


def phrases(*alternatives: str, start: bool = False) -> LazyRegex:
    """Return a pattern of the phrases that ` / ` separates, in any case; `start` only finds them
    at the beginning."""
    each = [
        phrase.strip() for text in alternatives for phrase in text.split(" / ") if phrase.strip()
    ]
    source = "|".join(each).replace("(", "(?:").replace("(?:?", "(?")
    before = "^" if start else r"(?<![\w-])"
    return LazyRegex(f"{before}(?:{source})(?!\\w)", re.IGNORECASE)


def normalized(text: str) -> str:
    """Return a text on one line, with plain apostrophes, as phrases expect it."""
    return " ".join(text.split()).replace("’", "'")


# --- cues ---
# Cues are kinds of speech acts, not single sentences. Each type has strong cues (2 points and more)
# and weak ones (1 point), which count only beside a strong one. English first, with the most usual
# forms of German, French and Spanish. The classifier learns how much the points of each type count.

STRONG, WEAK = 2, 1

# Signs of trouble: what an insight explains and what a pattern repeats.
_TROUBLE = (
    r"(fail(s|ed|ing|ure)?|flak(y|es)|break(s|ing)?|broke|broken|crash(es|ed|ing)?|slow(er|ness|"
    r"down)?|hang(s|ing)?|hung|stuck|leak(s|ed|ing)?|time(s|d)? ?outs?"
    r"|timing out|drop(s|ped)?( off| out)?|lost|los(es|ing)|missing|wrong|duplicat(e|es|ed)|"
    r"error(s|ed)?|bug|outages?|spam|blurry|floues?|corrupt(s|ed)?|choke(s|d)?|denied"
    r"|out of (date|memory|sync)|latency|happen(s|ed|ing)?|affected|empty|crooked|wobbly|dies|died|"
    r"stall(s|ed)?|reject(s|ed)?|late|delay(s|ed)?|stale|churn(ed)?|growth|spike(s|d)?)"
)
_AGENT = (
    r"(agents?|assistants?|bots?|planner|coder|tester|reviewer|researcher|subagents?|sub-agents?|"
    r"copilot|claude( session)?|session|crawler|scheduler|orchestrator|instance)"
)

CUES: dict[str, tuple[tuple[int, LazyRegex], ...]] = {
    "cross_agent": (
        (6, phrases(
            r"(tell|inform|warn|remind|let|ask|brief) (the|all|every|our|any|other|your)( "
            rf"\w+){{0,3}} {_AGENT}",
            r"(note|message|heads-up|heads up|info|hint|memo|word|fyi|reminder) (for|to) (the|all|"
            rf"any|every|whichever|whatever|our|other)( \w+){{0,3}} {_AGENT}",
            r"(pass|hand|relay|forward)(ing|ed)? (this |that |it |over |on )*(on )?to (the|all|"
            rf"any|every|our|other)( [\w-]+){{0,3}} {_AGENT}",
            r"(for )?(whichever|whatever|any|every|all|each|next|other|the other)( \w+)? (agents?|"
            r"assistants?|bots?|sub-?agents?)(?! (that|which) (is|are) installed)",
            rf"the( [\w-]+){{1,3}} {_AGENT}( [\w-]+){{0,4}} (should|must|needs? to|has to|ought to|"
            r"will need to) (also )?(know|hear|be told|learn|see|avoid|not|never|always|use|stop|"
            r"take)",
            r"all of you / (you|agents) (share|all share) / (other|parallel) (agents|sessions|"
            r"assistants)",
            r"(der|den|dem|die) [\w-]*(agent|assistent|bot)\w* (muss|soll|sollte|sagen|bescheid) / "
            r"(l'agent|l'assistant|el agente|el asistente|al agente) (\w+ )*(doit|debe|sache|sepa)",
        )),
    ),
    "gap": (
        (STRONG, phrases(
            r"none of (my|our|the|your) (\w+ )?tools / (there's|there is|there isn't|there are|i "
            r"have|i've got|you have|we have|has) (no|any)( \w+){0,3} (tool|tools|way|command|"
            r"option|api|endpoint|integration|emulator|simulator|connector|plugin|support|access|"
            r"permission|permissions|credentials|method|means|flag|hook|export|function|feature|"
            r"interface|driver|sdk|button|subcommand)",
            r"(i|you|we|it|he|she|they|agent|assistant|bot) (can't|cannot|can not|couldn't|could "
            r"not|am unable to|are unable to|is unable to|aren't able to|isn't able to) (\w+ "
            r")?(see|open|read|reach|access|edit|run|play|hear|view|connect|send|check|"
            r"render|test|browse|fetch|print|sign|log|write|create|export|query|verify|watch|"
            r"listen|control|book|pay|call|scan|parse|execute|install|download|upload|"
            r"talk)(?![^.]* yet)",
            r"no access to / (don't|doesn't|do not|does not|won't) (have|get|let (me|us)|give (me|"
            r"us)|offer|ship|provide|expose|support|allow)( \w+){0,3} (access|tools?|way|commands?|"
            r"options?|apis?|emulator|permissions?|exports?|webhooks?|hooks?)",
            r"(we're|we are|i'm|i am|what's|what we're|what is|what i'm|still|sorely) (lacking|"
            r"missing) / "
            r"is not available in (this|the|my) (environment|sandbox) / (no|without a) (\w+ "
            r")?(tool|connector|integration|api|plugin) (for (that|this|it)|configured|"
            r"available|installed|here) / there isn't one / (nothing|no tool|nobody) (tells|warns|"
            r"alerts|notices|checks|monitors|catches|watches) / not (supported|possible) (here|"
            r"from here|yet|in this) / (has|have) to (stay|remain|be done) (manual|by hand) / "
            r"remains manual",
            r"there('s| is| are) no [^.,]{2,40},? so [^.]* (can't|cannot|has to|have to|isn't|"
            r"won't|must) / (no|without an?) [\w ]{2,30}(emulator|runner|simulator|device|sandbox|"
            r"licen[cs]e) / what's missing( \w+){0,4} is / (nobody|no one) has built / (we|i) "
            r"(badly |really )?need a (tool|way|script) (to|that|for)",
            r"ich (kann|konnte) (hier )?(nicht|kein\w*) / du kannst (hier )?(nicht|kein\w*) / "
            r"kein(e|en)? (zugriff|werkzeug|möglichkeit|schnittstelle) / je ne peux pas / tu ne "
            r"peux pas / pas (d'|de moyen|d'accès|d'outil) / no (puedo|puedes) / no (hay|tengo|"
            r"tienes) (\w+ )?(forma|manera|acceso|herramienta)",
        )),
        (WEAK, phrases(
            r"from (here|this sandbox|inside the sandbox) / by hand / manually / shame / only (do|"
            r"draft|reason|see|read) / (can|could) only / that won't change"
        )),
    ),
    "pattern_seed": (
        (STRONG, phrases(
            r"(every|each|any) ?time / whenever / (once|yet) again / same (\w+ ){0,3}as / (usually|"
            r"typically|tends? to) / immer wieder / (à )?chaque fois / (cada|otra) vez / (jedes "
            r"mal|jedesmal)"
        )),
        (3, phrases(
            r"(every|each) time you / (two|three|four|five|six|seven|eight|\d+) (of|out of) the "
            r"last (two|three|four|five|six|seven|eight|ten|\d+) / (second|third|fourth|fifth|"
            r"sixth|seventh|\dth) ([\w-]+ ){0,4}in (a|one|two|three|four|\d+) (days?|weeks?|"
            r"months?|sprints?|releases?|years?) / (every|each) (month|week|day|release|sprint|"
            r"quarter|monday|tuesday|wednesday|thursday|friday)( \w+){0,3} since / as it has been "
            r"/ on all (two|three|four|five|\d+) / (wrong|broken|late|down|missing|failing|out of "
            r"date) again, / (the )?(second|third|fourth|fifth|sixth|2nd|3rd|4th|5th|nth|"
            r"umpteenth) (time|incident|week|day|release|sprint|month|outage|run|one|update|"
            r"attempt|failure)( \w+){0,4} (this|in a row|already|now|straight|running|since|with|"
            r"whose|that|we|i|where) / in a row",
            r"(keeps?|kept) (\w+ )?(happening|failing|breaking|crashing|coming back|forgetting|"
            r"getting|timing out|asking|doing|running|losing|dropping|showing up|popping up|"
            r"returning|hitting) / (and|here we go|there it is|schon wieder) again",
            r"(three|four|five|six|seven|several|many|[3-9]|\d\d) (or \w+ )?times (now|this|in|"
            r"since|already|so far|over|last|running|during) / same (\w+ ){0,3}as (on |last |the |"
            r"before|yesterday|in )+ / (always|usually|invariably|without fail|like clockwork) (on "
            r")?(mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?|after|"
            r"before|around|when|during|at the end|the first)",
            r"(jedes mal|jedesmal|schon wieder|immer wieder|zum (dritten|vierten|fünften) mal) / "
            r"(à )?chaque fois / encore une fois / (cada|otra) vez / the last (three|four|five|six|"
            r"\d) (did|times|were|all|of them)",
        )),
        (WEAK, phrases(
            rf"{_TROUBLE} / again / once more / (third|fourth|fifth) / nobody / (twice|two times|"
            r"often|usually|typically|tends? to|habit|recurring|regularly)"
        )),
    ),
    "insight": (
        (3, phrases(
            r"turn(s|ed) out / (the )?(root|real|actual|underlying|true) (cause|reason|problem|"
            r"issue|culprit|bottleneck) / (the )?(culprit|cause|reason|explanation|trick)( "
            r"\w+){0,6} (is|was|were|turned out|being|lies|lay)\b / the (trick|catch|gotcha|"
            r"secret) (with|is|to|was|here)",
            r"(that|this|which) (explains|is why|was why|caused|causes) / that's why / (explains|"
            r"explaining) why / (finally |now i |i )(understand|understood|get|see|know|figured "
            r"out|worked out|found out|realised|realized|discovered|learned|noticed) (why|what "
            r"(causes?|caused|it was|happened)|that|it) / got it finally / found it / mystery "
            r"solved / figured (it )?out",
            r"it (wasn't|isn't|was not|is not|was never) (the )?[\w -]{2,40}[,;:–—-]+ ?(it's|it "
            r"was|but|it is) / (price|size|age|it|content|load|memory) is not it / what they (all "
            r")?have in common / nothing to do with / (the|our) (whole|entire) (gain|difference|"
            r"effect|problem)",
        )),
        (STRONG, phrases(
            rf"{_TROUBLE}( [^.;]{{0,90}})? (because|since (?!jan|feb|mar|apr|may|jun|jul|aug|sep|"
            r"oct|nov|dec|last|yester|mon|tue|wed|thu|fri|sat|sun|\d|i |we |then|the move)|due to|"
            r"caused by|thanks to|as soon as) / (came|stemmed|stems|originates?|originated) from "
            r"/ (raising|lowering|moving|switching|disabling|enabling|setting|adding|removing|"
            rf"changing|replacing|increasing|upgrading|releasing|pinning|turning) [^.]{{3,60}} "
            r"(removed|fixe[sd]|solve[sd]|cured|eliminate[sd]|stopped|brings?|brought|cut|halved|"
            r"helped|closes?|gets? rid|makes? (it|them)) / lines? up (exactly )?with / not "
            rf"because of [^.]{{2,60}} but / nailed it / (fixed|solved|cured) (it|the|that) / (was|"
            rf"were|is|are) (caused|triggered) by / because of the / (only|never) {_TROUBLE} (when|"
            r"if|between|after|on|with|while|for|during)",
            r"es lag (an|am|daran) / (der|die) (grund|ursache) (war|ist|dafür) / stellte sich "
            r"heraus / endlich (verstanden|gefunden) / (j'ai|on a) (enfin )?(compris|trouvé) / (la "
            r"cause|le problème|la raison) (était|venait|est) / resulta que / resultó que / (la "
            r"causa|el motivo|el problema) (era|es|fue) / por fin (entendí|entiendo)",
        )),
        (WEAK, phrases(
            rf"because / since / so that / {_TROUBLE} / (brings?|brought|dropped|went|down) (\w+ "
            r")?(down )?(to|from) / (it was|it's) the / (only|mostly|almost|nearly) / which / "
            r"interesting / after (looking|moving|switching|changing|removing|adding)"
        )),
    ),
    "confidence": (
        (STRONG, phrases(
            r"(works?|worked|working|ran|runs?|went|held up|performed) (flawlessly|perfectly|"
            r"beautifully|great|end to end|like a charm|first time|reliably|every time|fine in "
            r"production|as (expected|intended|advertised)|without (a|any|one|a single) \w+) / (is|"
            r"was|are|were|have been|has been|now|been) (verified|confirmed|proven|validated|"
            r"battle-tested)",
            r"(works?|worked|went|goes|running|runs) (really |very |super |so )(well|smoothly|"
            r"nicely|fine) / went smoothly / (is|that's|that is) (the|a|my|our) keeper / keeper "
            r"recipe / \d+ (of|out of) \d+ [\w ]{2,30} (right|correct|correctly|passed|good|"
            r"perfect) / (is|are) proven / (can|could|happy to) confirm / (workaround|fix|setup|"
            r"approach|config\w*|recipe|patch) (\w+ ){0,4}(holds|works|sticks|did it|does it|"
            r"solved it) / (confirmed|verified|double-checked|validated|proved|proven)( that|:| "
            r"by| with| against| on| in| it) / (exactly|just) (right|what (i|we) (needed|wanted)) "
            r"/ (was|is|were|turned out|came out) (perfect|spot on|flawless|exactly right|ideal) / "
            r"(best|cleanest|smoothest|fastest|easiest) [\w ]{1,30} (ever|so far|yet|in years|"
            r"we've had|i've (seen|had))",
            r"(zero|no|0|not (one|a single)) (\w+ )?(downtime|retries|retry|errors?|failures?|"
            r"complaints?|timeouts?|dropouts?|regressions?|incidents?|issues|problems|losses|"
            r"warnings|rejections?|defects) (in|over|since|after|for|during|and|across) / without "
            r"(a|one|any|a single) (hitch|retry|error|failure|complaint|problem)",
            r"(it|that|this|they) stays?(?! \w) / chapeau / (clearly|definitely|without a doubt) "
            r"the (thing|one|way|right) / (can|could) (be )?(safely )?(rely|relied|count|counted) "
            r"on / (wouldn't|would not) change a (word|thing|line) / rock[- ]solid / (funktioniert|"
            r"lief|läuft) (einwandfrei|perfekt|tadellos|super) / (fonctionne|marche|marché) "
            r"(parfaitement|très bien) / (funciona|funcionó) (perfecto|perfectamente|muy bien)",
            r"(row counts|checksums?|results|numbers|totals|sums) (all )?match(es|ed)?",
        )),
        (WEAK, phrases(
            r"flawless(ly)? / perfect(ly)? / beautiful(ly)? / verified / confirmed / checked / "
            r"zero downtime / the first time / end to end / soak / stable / passed / (two|three|"
            r"several|\d+) (people|directors|customers|colleagues|clients|users) / wrote to me "
            r"/ worked"
        )),
    ),
    "workflow_note": (
        (STRONG, phrases(
            r"first[, ][^.;]{3,120}[,;.] ?(and )?then / (then|afterwards|after that|next)[, "
            r"][^.]{3,120}[,;.] ?(and )?(then|finally|afterwards|only then|last)",
            r"how (i|we|you) \w+( [\w-]+){0,3}( here)?: / (releases?|deploys?|invoices?|contracts?|"
            r"hotfix(es)?|tickets?|reviews?|onboarding|backups?|migrations?|orders?|incidents?|"
            r"refunds?|drafts?|chapters?)( \w+){0,2}: [^.]*, / (only|and only) (then|after that) / "
            r"go(es)? to \w+ first",
            r"(the way|how) (a |an |the |we |our |to )?[\w ]{1,30}(works?|goes|go|run|release|"
            r"deploy|ship|get in|gets done|is done|are done|happens?|publish|review|merge)( (here|"
            r"with|in|for|around)\b[^:.]*)?[:,] / (process|workflow|procedure|routine|checklist|"
            r"steps|drill|order|ritual|pipeline|flow) (is|goes|for|here|:)",
            r"(to|for|before|when|after) (a |an |the |each |every |any |we )?(releas|deploy|"
            r"publish|ship|merg|onboard|rollback|rolling back|migration|invoic|hotfix|review|order|"
            r"upgrade|import|backup|print|submi|sign|clos|hir|post)\w*[^.]{0,60}[,:;] ?(we|you|i|"
            r"somebody|someone|first|run|always|bump|open|ask|tag|the|it|it's|\w+ (approves?|"
            r"signs?|checks?|reviews?|has|runs?|gets?|posts?|sends?|must|needs))\b[^.]*(,|then|and|"
            r"before|after)",
            r"(somebody|someone|whoever|we|you|the \w+) (has|have|needs?|must) to (post|announce|"
            r"sign off|approve|tag|notify|update|inform|run|ping|tell|fill|file|log)\b / (goes|go|"
            r"gets?|is sent|are sent) (to|through|"
            r"past) [\w ]{2,30} before / part of (the )?(done|definition of done) / (in|dans|in "
            r"dieser|en) (that|this|un autre|einer anderen|este) (order|ordre|reihenfolge|orden) / "
            r"signs? off",
            r"(runs?|sends?|opens?|goes|gets?|checks?|signs?|approves?|reviews?|exports?|merges?|"
            r"posts?|cuts?|bumps?|tags?|builds?|uploads?|collects?)\b[^.]{3,100}[,;]? (and )?(then|"
            r"afterwards|after that) / \w+, \w+,? (and )?then / from the (tag|main|release "
            r"branch), not",
            r"(opens|creates|triggers|kicks off|starts) (a|the) (pr|pull request|build|job|publish|"
            r"deploy|release|pipeline|ticket|sync)\w* / cherry-pick(s|ed)? (it )?(back|into|onto) "
            r"/ (d'abord|on commence par)[^.]*(ensuite|puis|après) / ensuite on / (zuerst|"
            r"erst)[^.]*(dann|danach) / (primero)[^.]*(luego|después)",
        )),
        (WEAK, phrases(
            r"then / before / after / afterwards / (the|a|every) (release|deploy|hotfix|sprint|"
            r"invoice|ticket|chapter|draft)\w* / (on|by) (monday|tuesday|wednesday|thursday|"
            r"friday)s? / (nightly|weekly|every) / merged by hand / never publish / pre-commit / "
            r"ci runs / from the tag / steps?"
        )),
    ),
    "decision": (
        (3, phrases(
            r"(we'll|we will|we're going to|we are going to|i'll|i'm going to|we|i) (go|be going|"
            r"stick|stay|proceed) (with|for|on) / (we|team|board|they|i)('ve| have| all| both| "
            r"finally| just| now)* (decided|chose|chosen|picked|opted|settled|agreed|voted|"
            r"resolved)( on| to| for| that| against|:| in favou?r| yesterday| today|\b) / made up "
            r"(my|our) minds? / slept on it",
            r"(?<!had )(it's |that's |is |so |ok )?(decided|agreed|settled|final decision|decision|"
            r"entschieden|décidé|decidido)( in| at| on| with|[:.,]) / decision (is|made|was|"
            r"stands) / (that|this|it)('s| is) (final|settled|decided|a done deal|set in stone) / "
            r"(final|end of) (answer|discussion|story|debate) / don't want to (revisit|reopen|"
            r"discuss) / (things|points|questions|items) (settled|decided|agreed) / (\w+|\w+ \w+) "
            r"it is(?= *[,.;!–—-]|$)",
            r"(we're|we are|i'm|i am) (staying|sticking|dropping|ditching|abandoning|"
            r"standardi[sz]ing|retiring|postponing|adopting|settling|killing|scrapping|not (going "
            r"to|doing|using|running|building|rewriting|supporting|moving|switching|migrating|"
            r"adding|buying|hiring)) / (we've|we have|i've|i have) (settled|dropped|chosen|"
            r"abandoned|switched|standardi[sz]ed|picked|gone with|committed) / (we|i) (roll our "
            r"own|pre-register|won't support|will not support) / (stays|is cancelled|gets "
            r"cancelled|is out|is dropped|wins)(?= *[,.;!]|$)",
            r"wir (bleiben bei|nehmen|haben (uns )?(\w+ )?(entschieden|beschlossen)|gehen mit|"
            r"setzen auf|verzichten auf|wechseln) / on (garde|part sur|a décidé|reste sur|prend|"
            r"abandonne|choisit|passe à) / (nos quedamos con|hemos decidido|decidimos|vamos con|"
            r"optamos por|usaremos)",
        )),
        (STRONG, phrases(
            r"let's (go with|use|keep|do|freeze|drop|take|pick|choose|move|switch|standardi[sz]e|"
            r"store|leave|build|split|adopt|ship|target|support|host) / go(ing)? with / (we'll|we "
            r"will|we're going to|we are going to) (\w+ )?(use|keep|price|host|store|support|"
            r"target|move|run|ship|write|build|put|do|drop|take|offer|sell|charge|pay|buy|rent|"
            r"split|merge|publish|only) / we (keep|stay|stick|drop|skip|leave out|do the|are "
            r"using) / (we're|we are|i'm|i am) (going|switching|moving|keeping|choosing|picking) / "
            r"(not|never) (going to )?(support|ship|offer)(ing)?",
        )),
        (WEAK, phrases(
            r"(adr|rfc) \d+ / instead of / rather than / everything else / (only|stays?|remains?|"
            r"final) / after (talking|discussing|the call|the meeting) / no (\w+ ){1,3}(in there|"
            r"keys|service|more) / (in|for) (the first|this) (release|year|version|quarter) / so "
            r"please / i('d| would) rather / because / (everything|all|everywhere) / don't want / "
            r"module / (the|our) (team|board|client|customer)s? / freeze / too (expensive|slow|"
            r"risky|much)"
        )),
    ),
    "correction": (
        (STRONG, phrases(
            r"use [\w./`@:|\[\] -]{1,50}(,| and| here,|;|\.)? ?(not|never|instead of|rather than) "
            r"[\w./`-]+ / (not|isn't|wasn't|aren't|it's not) [\w./' -]{1,40}[,;:.–—-]+ ?(it's|it "
            r"is|but|use|they're|we're|she's|he's) / instead of [\w./`' -]{2,40} (use|take|write|"
            r"do|put|call) / (it's|it is|they're|she's|he's|"
            r"that's) [\w.%/' -]{1,40}, not",
            r"(that's|thats|that is|this is|these are|those are|it's|it is) (wrong|incorrect|not "
            r"(right|correct|how|what|the|it|true)|the (old|wrong|outdated)|(the )?old one|ancient|"
            r"outdated|out of date|backwards|false|a mistake) / (is|are) (out of date|outdated|"
            r"wrong|dead|obsolete|gone|deprecated|ancient)(?! link) / not how (we|i|it|commit|"
            r"things|this)",
            r"(stop|quit) (\w+ing|that) / (please )?(undo|revert) (that|this|it) / (you keep|you "
            r"always|you've again|you again|you did it again|why (did|do|are|have) you|i (already "
            r")?told you|i (already )?said|how often|as i said|again, ) / (don't|do not|dont|never|"
            r"please don't) (ever )?(\w+[ -]?){1,3} (for me|without|to "
            r"a|on|in|the|my|to|any|when|again)",
            r"there's no [\w ./]{2,40} (any ?more|any longer|here) / (we|it|that|they) (left|moved "
            r"(to|off|away)|went to|dropped|switched (to|from|away)|migrated|renamed|replaced) / "
            r"since (the move|january|february|march|april|may|june|july|august|september|october|"
            r"november|december|we (switched|moved|migrated)|last) / "
            r"too (\w+ ){0,2}for me / is the odd one out / only live under / (that|it) should (be|"
            r"have been|say|read)",
            r"(nein|falsch)[,.!] / (non|faux)[,.!] / no[,.] (usa|es|utiliza) / (nicht|kein\w*) [\w "
            r"]{2,30}, sondern / mejor (de|en|con|usa) [\w ]{1,30}, (nunca|no) / pas [\w "
            r"]{2,30}, mais",
        )),
    ),
    "commitment": (
        (3, phrases(
            r"from (now|here|today|this point) on / going forward / in future / for the future / "
            r"for next time / henceforth / (désormais|dorénavant|à partir de maintenant) / (de "
            r"ahora en adelante|a partir de ahora) / (ab jetzt|künftig|in zukunft)"
        )),
        (STRONG, phrases(
            r"as (a )?(general )?rule / (my|our|one|house|the) (\w+ )?rules?( \w+){0,4}( is|:) / "
            r"by default / keep (that|this|it) in mind / please (always|never) / (i|we|you|should|"
            r"must|to) (always|never) / ((?<=[.:;!–—] )|(?<=and )|(?<=but )|(?<=so )|^)(always|"
            r"never) \w+ / (don't|do not|dont) ever / no [\w -]{3,40} without (asking|my|checking|"
            r"a|telling) / without asking (me|first) / (ask|check with) me (first|before)",
            r"i(('d| would)( much| really)?)? (prefer|rather) / i('d)? (like|love|want|expect|"
            r"need)( my| your| all| every| answers| code| it when| things| short| plain) / i (hate|"
            r"can't stand|cannot stand|don't like|do not like|dislike|loathe|detest|don't want|do "
            r"not want|despise) / (what|the way) i (like|want|prefer|need|expect) / (my|our) "
            r"(preference|preferred|favou?rite) / (drives me (mad|crazy)|(pet peeve)) / i never "
            r"(write|use|want|do|work|eat|take|read|say|sign)",
            r"(when|whenever|if|any ?time|every time) (i|you|we) (ask|write|make|answer|send|"
            r"commit|touch|change|book|plan|draft|reply|refactor|look|suggest|show|give|create|add|"
            r"review|report|quote|schedule|summari[sz]e)[\w ,']*[,:] / (any|every|all|each) [\w "
            r"-]{1,40} (you|that|which) (\w+ )?(make|write|send|create|produce|do|goes|go|give|"
            r"book|suggest|generate)\b / every time, / (max|maximum|at most|no more than|under|up "
            r"to|below) ~?\d+ (words|lines|characters|pages|sentences|minutes) / before you (touch|"
            r"change|edit|commit|delete|send|push|merge|start)",
            r"(anything|everything|whatever) (that )?(you|we|i) (write|make|send|create|do|produce|"
            r"put|post|say|publish|build)|in (all )?my (projects|repos?|code|team|documents|emails|"
            r"mails|texts|drafts|calendar) / no exceptions / (when|whenever) (booking|writing|"
            r"planning|sending|drafting|naming|committing|reviewing|answering|replying|ordering|"
            r"scheduling|refactoring|summari[sz]ing)\b / when you (plan|book|write|send|draft|"
            r"merge|commit|name|review|answer|reply|order|schedule|make|create|summari[sz]e|look|"
            r"quote|cook|touch|change)\b / "
            r"keep it that way / throughout(,| please| and) / (please )?(leave|keep) [\w ]{2,30} "
            r"out of / (british|american|metric|imperial|celsius|24-hour|us|uk) (spelling|units|"
            r"english|time|format)? / (measurements|temperatures|prices|dates|times|units|answers|"
            r"replies|comments|amounts) in / i don't (drink|eat|work|fly|drive|read|take|do|use|"
            r"answer) / i can't think in",
            r"(ab jetzt|künftig|in zukunft|ich (möchte|bevorzuge|will|mag keine?|hasse)|bitte "
            r"(immer|nie|niemals|keine)|grundsätzlich|(immer|niemals) ) / (désormais|dorénavant|à "
            r"partir de maintenant|je (préfère|veux|déteste)|toujours|jamais) / (de ahora en "
            r"adelante|a partir de ahora|prefiero|quiero que|siempre|nunca)",
            r"(i'm|i am|we're|we are) (keeping|colou?r ?blind|allergic|vegetarian|vegan|lactose|"
            r"left-handed|dyslexic|deaf|gluten) / (has|have) (a )?(bad |severe )?(\w+ )?allergy / "
            r"(tabs|spaces|metric|british|american|dark mode|markdown)[\w ]*, please / "
            r"everywhere\. / i will not / i won't (merge|accept|sign|read|approve)",
        )),
        (WEAK, phrases(
            r"please / only / no / never / always / for me / under my name / so don't / just / "
            r"(white|black|plain) / short / keep / should"
        )),
    ),
    "learning": (
        (STRONG, phrases(
            r"fyi / for (your information|context|the record|background|reference) / just so "
            r"you know / "
            r"(so )?you (should )?know[,:] / heads[- ]up / good to know / (worth|be) (knowing|"
            r"noting|aware) / noted( from| that|:) / note that / keep in mind that / as "
            r"(background|context) / (for )?historic(al)? reasons / til / learned (that|today) / i "
            r"learnt / by the way, (the|our|we|my) / (documentation|docs|manual|vendor|support|"
            r"changelog|spec|their reply|source) (says?|states?|confirms?|confirmed)",
            r"(is|are|was|were) (stored|kept|located|hosted|deployed|refreshed|mirrored|synced|"
            r"rotated|generated|served|managed|owned|maintained|billed|encrypted|backed up|capped|"
            r"limited|called|named|built|emulated|self[- ]hosted|installed|written|defined|"
            r"configured) (in|on|at|from|by|under|with|to|every|as|into|via|using|per|through|"
            r"everywhere|only|nightly|weekly|daily) / (only|still) supports? / supports? (up to|"
            r"only|at most) / (lives?|sits?|resides?) (in|on|under|at|behind) / what (the|our) [\w "
            r"]{2,30} call / (means|stands for|refers to) / (owns|maintains|is responsible for|is "
            r"in charge of|takes care of) ",
            r"(the|our|their|its) [\w' -]{2,40} (is|are) (a|an|the|under|about|around|at|in|on|"
            r"only|now|roughly|limited|\d)[\w .,'/-]* ?\d / (rate |size |time |word )?limit (is|"
            r"of) / i('m| am) an? (\w+ )?(nurse|geologist|teacher|doctor|designer|developer|"
            r"engineer|student|lawyer|writer|researcher|freelancer|accountant|manager|architect|"
            r"scientist|photographer|translator|farmer|baker|musician|carpenter|biologist|"
            r"journalist|librarian|pharmacist|plumber|electrician|therapist|chef|founder)",
            r"my (son|daughter|wife|husband|partner|mother|father|mom|mum|dad|kids?|children|team|"
            r"manager|boss|dog|cat|brother|sister|employer|company|laptop|machine|office|editor|"
            r"supervisor|advisor)( \w+){0,2} (is|are|starts?|lives?|works?|goes|has|have|runs?|"
            r"uses?) / i (work|live) (with|at|in|for|as|on) / we (use|run|host|have|work|deploy|"
            r"sell|store|pay) / i taught myself / (unser\w*|mein\w*|der|die|das) [\w-]+ (ist|läuft|"
            r"liegt|heißt|hat|wird|sind) / (notre|nos|le|la|les) [\w-]+ (est|sont|tourne|se "
            r"trouve) / (nuestr[oa]s?|el|la|los) [\w-]+ (es|está|corre|se llama)",
        )),
        (STRONG, phrases(
            r"(background|context|for info|info): / [A-Z][a-z]+ is (our|the|my) \w+ / (docs?|"
            r"documentation|manual|vendor|changelog|release notes|api docs|spec) (\w+ )?(mentions?|"
            r"says?|states?|confirms?|list) / (nodes|servers|machines|runners|boxes|cluster|"
            r"clients|services?) (run|use|are on|have) / (listens?|listening) on / requires? (an?|"
            r"at least|the) / (gets?|get|is|are|will be) (switched off|deprecated|retired|sunset|"
            r"shut down|removed) / (starts?|ends?|opens?|closes?) (in|at|on) (january|february|"
            r"march|april|may|june|july|august|september|october|november|december|monday|tuesday|"
            r"wednesday|thursday|friday|saturday|sunday|\d)"
            r" / (published|exported|imported|uploaded|delivered|sent|dropped|synced) (to|from|as|"
            r"on|by|via|into) / has (asthma|diabetes|an? \w+ allergy) / has to go past / only "
            r"reachable / (comes?|arrives?) from \w+ as",
        )),
        (WEAK, LazyRegex(r"\d")),
        (WEAK, LazyRegex(
            r"[\w.-]+/[\w.-]*|`[^`]+`|CODE|\b\w+\.(?:py|ts|js|json|ya?ml|toml|md|css|go|rs|csv|"
            r"sql)\b|\b[A-Z]{2,}\b|\b[a-z]+_[a-z_]+\b"
        )),
        (WEAK, phrases(
            r"(is|are) / has / have / owns / (only|except|so) / every (sunday|monday|night|week|"
            r"day|month|year) / (except|whereas|whilst|but)"
        )),
    ),
}  # fmt: skip


# --- the classifier ---

CLASSES = (NONE, *CUES)
_MAX_STRONG_AND_WEAK = 3
_CONTEXT_LENGTH = 3  # characters at the end of a message that show whether it asks


@dataclass(frozen=True, slots=True)
class Judge:
    """Tells how likely a text is of each type, and of none."""

    weights: Weights
    vector: Vector | None = None

    def __call__(self, text: str, *, role: str, answered: str = "") -> dict[str, float]:
        """Return the chances by class. `answered` is the message of the assistant that a user
        answers."""
        values = features(text, role=role, answered=answered)
        return self.weights.chances(CLASSES, values, self.vector(text) if self.vector else ())


def judge_without_vectors() -> Judge:
    """Return the judge that needs no embedder."""
    return Judge(_read_weights()[1]["plain"])


def judge_with_vectors(vector: Vector) -> Judge:
    """Return the judge that uses vectors of the model that `model_of_vectors` names."""
    return Judge(_read_weights()[1]["vectors"], vector)


def model_of_vectors() -> str:
    """Return the model whose vectors the weights were learnt with."""
    return _read_weights()[0]


def features(text: str, *, role: str, answered: str = "") -> dict[str, float]:
    """Return the features of a text by name: the points of the cues, its length and form, and
    what it answers."""
    plain = without_quotes(text)
    found = {"always": 1.0, f"role {role}": 1.0, "length": len(plain.split()) / 30}
    for name, cues in CUES.items():
        points = [own for own, cue in cues if cue.search(plain)]
        if (strong := max(points, default=0)) > 1:  # weak cues count beside a strong one
            found[f"cue {name}"] = (strong + min(points.count(1), 2)) / _MAX_STRONG_AND_WEAK
            found |= {f"cue {name} {own}": 1.0 for own in points if own > 1}
    found |= {f"text {name}": 1.0 for name, sign in _SIGNS.items() if sign.search(plain)}
    if answered and role == "user":
        found |= dict.fromkeys(_answer_features(plain, normalized(answered)), 1.0)
    return found


def _answer_features(plain: str, answered: str) -> Iterator[str]:
    yield "answers"
    if "?" in answered[-_CONTEXT_LENGTH:]:
        yield "answers a question"
    else:
        yield "answers a statement"
        yield from (f"answer {name}" for name, sign in _ANSWERS.items() if sign.search(plain))
        if topics(answered) & topics(plain):
            yield "answer on the same topic"
    if OFFER.search(answered):
        yield "answers an offer"


def topics(text: str) -> set[str]:
    """Return the words of a text that carry its topic, cut to their first letters: a plural is
    the same word."""
    return {
        word.strip(".-")[:6].removesuffix("s") for word in re.findall(r"[\w.-]{4,}", text.lower())
    } - _COMMON


def without_quotes(text: str) -> str:
    """Return a text on one line without the words of others and without code."""
    return _INLINE_CODE.sub("CODE", _QUOTED.sub("QUOTE", normalized(text)))


@cache
def _read_weights() -> tuple[str, dict[str, Weights]]:
    return read_weights("memory_mesh.core.language.capture")


_COMMON = frozenset({
    "with", "that", "this", "have", "will", "from", "your", "they", "what", "when", "then", "than",
    "it'", "just", "like", "more", "some", "into", "should", "would", "could", "which", "also",
    "only", "same", "very", "here", "there", "please", "about",
})  # fmt: skip
_QUOTED = LazyRegex(
    r"\"[^\"\n]{8,}?\"|“[^”\n]{8,}?”|„[^“\n]{8,}?“|«[^»\n]{8,}?»|(?<!\w)['‘](?=\w)(?:[^'’\n]|"
    r"['’](?=\w)){8,200}?['’](?!\w)"
)
_INLINE_CODE = LazyRegex(r"`[^`\n]+`")
_SIGNS = {"number": LazyRegex(r"\d"), "question": LazyRegex(r"\?")}
OBJECTS = phrases(
    r"(no|nope|nah|nein|non|wrong|not|actually|hm,? that's not|please undo|stop|don't|do not|never|"
    r"that's not|thats not|this is not)"
    r"(?! (worries|problem|need|rush|idea|thanks|hurry|bad|sure))[ ,.!:;]+\w+ / (still )?too \w+",
    start=True,
)
_ANSWERS = {
    "agrees": phrases(
        r"(right|yes|yep|yeah|good|great|thanks|thank you|thx|ok(ay)?|beautiful|perfect|wow|"
        r"exactly|nice|cool|awesome|lovely|excellent)",
        r"(true|correct|ja|oui|sí|super|sure|works|brilliant)",
        start=True,
    ),
    "objects": OBJECTS,
}
OFFER = phrases(
    r"(\w+ )?or [^?\n]{2,80}\? / (options|candidates|alternatives|choices|approaches|variants|"
    r"proposal|suggestions?)( \w+){0,3}( are|:| is| for)",
    r"(remaining|possible) (options|candidates|choices) / we could / either / (which|what) (one|of|"
    r"would you|do you prefer)",
    r"shall (i|we) / should (i|we|the|it) / i('d| would)? (suggest|recommend|propose|go for) / my "
    r"(proposal|suggestion|recommendation)",
)
