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

from memory_mesh.core.language.linear import NONE, Vector, Weights, read_weights
from memory_mesh.core.text import LazyRegex

# --- phrases ---


def phrases(*alternatives: str, start: bool = False) -> LazyRegex:
    """Return a pattern of the phrases that ` / ` separates, in any case; `start` only finds them at the beginning."""
    each = [phrase.strip() for text in alternatives for phrase in text.split(" / ") if phrase.strip()]
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
    r"(fail(s|ed|ing|ure)?|flak(y|es)|break(s|ing)?|broke|broken|crash(es|ed|ing)?|slow(er|ness|down)?|hang(s|ing)?|hung|"
    r"stuck|leak(s|ed|ing)?|time(s|d)? ?outs?"
    r"|timing out|drop(s|ped)?( off| out)?|lost|los(es|ing)|missing|wrong|duplicat(e|es|ed)|error(s|ed)?|bug|outages?|spam|"
    r"blurry|floues?|corrupt(s|ed)?|choke(s|d)?|denied"
    r"|out of (date|memory|sync)|latency|happen(s|ed|ing)?|affected|empty|crooked|wobbly|dies|died|stall(s|ed)?|reject(s|"
    r"ed)?|late|delay(s|ed)?|stale|churn(ed)?|growth|spike(s|d)?)"
)
_AGENT = (
    r"(agents?|assistants?|bots?|planner|coder|tester|reviewer|researcher|subagents?|sub-agents?|copilot|claude( session)?|"
    r"session|crawler|scheduler|orchestrator|instance)"
)

CUES: dict[str, tuple[tuple[int, LazyRegex], ...]] = {
    "cross_agent": (
        (6, phrases(
            rf"(tell|inform|warn|remind|let|ask|brief) (the|all|every|our|any|other|your)( \w+){{0,3}} {_AGENT}",
            rf"(note|message|heads-up|heads up|info|hint|memo|word|fyi|reminder) (for|to) (the|all|any|every|whichever|"
            rf"whatever|our|other)( \w+){{0,3}} {_AGENT}",
            rf"(pass|hand|relay|forward)(ing|ed)? (this |that |it |over |on )*(on )?to (the|all|any|every|our|"
            rf"other)( [\w-]+){{0,3}} {_AGENT}",
            r"(for )?(whichever|whatever|any|every|all|each|next|other|the other)( \w+)? (agents?|assistants?|bots?|"
            r"sub-?agents?)(?! (that|which) (is|are) installed)",
            rf"the( [\w-]+){{1,3}} {_AGENT}( [\w-]+){{0,4}} (should|must|needs? to|has to|ought to|"
            rf"will need to) (also )?(know|hear|be told|learn|see|avoid|not|never|always|use|stop|take)",
            r"all of you / (you|agents) (share|all share) / (other|parallel) (agents|sessions|assistants)",
            r"(der|den|dem|die) [\w-]*(agent|assistent|bot)\w* (muss|soll|sollte|sagen|bescheid) / (l'agent|l'assistant|"
            r"el agente|el asistente|al agente) (\w+ )*(doit|debe|sache|sepa)",
        )),
    ),
    "gap": (
        (STRONG, phrases(
            r"none of (my|our|the|your) (\w+ )?tools / (there's|there is|there isn't|there are|i have|i've got|you have|"
            r"we have|has) (no|any)( \w+){0,3} (tool|tools|way|command|option|api|endpoint|integration|emulator|simulator|"
            r"connector|plugin|support|access|permission|permissions|credentials|method|means|flag|hook|export|function|"
            r"feature|interface|driver|sdk|button|subcommand)",
            r"(i|you|we|it|he|she|they|agent|assistant|bot) (can't|cannot|can not|couldn't|could not|am unable to|"
            r"are unable to|is unable to|aren't able to|isn't able to) (\w+ )?(see|open|read|reach|access|edit|run|play|hear|"
            r"view|connect|send|check|"
            r"render|test|browse|fetch|print|sign|log|write|create|export|query|verify|watch|listen|control|book|pay|call|"
            r"scan|parse|execute|install|download|upload|talk)(?![^.]* yet)",
            r"no access to / (don't|doesn't|do not|does not|won't) (have|get|let (me|us)|give (me|us)|offer|ship|provide|"
            r"expose|support|allow)( \w+){0,3} (access|tools?|way|commands?|options?|apis?|emulator|permissions?|exports?|"
            r"webhooks?|hooks?)",
            r"(we're|we are|i'm|i am|what's|what we're|what is|what i'm|still|sorely) (lacking|missing) / "
            r"is not available in (this|the|my) (environment|sandbox) / (no|without a) (\w+ )?(tool|connector|integration|"
            r"api|plugin) (for (that|this|it)|configured|"
            r"available|installed|here) / there isn't one / (nothing|no tool|nobody) (tells|warns|alerts|notices|checks|"
            r"monitors|catches|watches) / not (supported|possible) (here|from here|yet|in this) / (has|have) to (stay|remain|"
            r"be done) (manual|by hand) / remains manual",
            r"there('s| is| are) no [^.,]{2,40},? so [^.]* (can't|cannot|has to|have to|isn't|won't|must) / (no|"
            r"without an?) [\w ]{2,30}(emulator|runner|simulator|device|sandbox|licen[cs]e) / what's missing( \w+){0,4} is / "
            r"(nobody|no one) has built / (we|i) (badly |really )?need a (tool|way|script) (to|that|for)",
            r"ich (kann|konnte) (hier )?(nicht|kein\w*) / du kannst (hier )?(nicht|kein\w*) / kein(e|en)? (zugriff|werkzeug|"
            r"möglichkeit|schnittstelle) / je ne peux pas / tu ne peux pas / pas (d'|de moyen|d'accès|d'outil) / no (puedo|"
            r"puedes) / no (hay|tengo|tienes) (\w+ )?(forma|manera|acceso|herramienta)",
        )),
        (WEAK, phrases(
            r"from (here|this sandbox|inside the sandbox) / by hand / manually / shame / only (do|draft|reason|see|read) / "
            r"(can|could) only / that won't change"
        )),
    ),
    "pattern_seed": (
        (STRONG, phrases(
            r"(every|each|any) ?time / whenever / (once|yet) again / same (\w+ ){0,3}as / (usually|typically|tends? to) / "
            r"immer wieder / (à )?chaque fois / (cada|otra) vez / (jedes mal|jedesmal)"
        )),
        (3, phrases(
            r"(every|each) time you / (two|three|four|five|six|seven|eight|\d+) (of|out of) the last (two|three|four|five|"
            r"six|seven|eight|ten|\d+) / (second|third|fourth|fifth|sixth|seventh|\dth) ([\w-]+ ){0,4}in (a|one|two|three|"
            r"four|\d+) (days?|weeks?|months?|sprints?|releases?|years?) / (every|each) (month|week|day|release|sprint|"
            r"quarter|monday|tuesday|wednesday|thursday|friday)( \w+){0,3} since / as it has been / on all (two|three|"
            r"four|five|\d+) / (wrong|broken|late|down|missing|failing|out of date) again, / (the )?(second|third|fourth|"
            r"fifth|sixth|2nd|3rd|4th|5th|nth|umpteenth) (time|incident|week|day|release|sprint|month|outage|run|one|update|"
            r"attempt|failure)( \w+){0,4} (this|in a row|already|now|straight|running|since|with|whose|that|we|i|where) / "
            r"in a row",
            r"(keeps?|kept) (\w+ )?(happening|failing|breaking|crashing|coming back|forgetting|getting|timing out|asking|"
            r"doing|running|losing|dropping|showing up|popping up|returning|hitting) / (and|here we go|there it is|"
            r"schon wieder) again",
            r"(three|four|five|six|seven|several|many|[3-9]|\d\d) (or \w+ )?times (now|this|in|since|already|so far|over|"
            r"last|running|during) / same (\w+ ){0,3}as (on |last |the |before|yesterday|in )+ / (always|usually|"
            r"invariably|without fail|like clockwork) (on )?(mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|"
            r"sundays?|after|before|around|when|during|at the end|the first)",
            r"(jedes mal|jedesmal|schon wieder|immer wieder|zum (dritten|vierten|fünften) mal) / (à )?chaque fois / "
            r"encore une fois / (cada|otra) vez / the last (three|four|five|six|\d) (did|times|were|all|of them)",
        )),
        (WEAK, phrases(
            rf"{_TROUBLE} / again / once more / (third|fourth|fifth) / nobody / (twice|two times|often|usually|typically|"
            rf"tends? to|habit|recurring|regularly)"
        )),
    ),
    "insight": (
        (3, phrases(
            r"turn(s|ed) out / (the )?(root|real|actual|underlying|true) (cause|reason|problem|issue|culprit|bottleneck) / "
            r"(the )?(culprit|cause|reason|explanation|trick)( \w+){0,6} (is|was|were|turned out|being|lies|lay)\b / "
            r"the (trick|catch|gotcha|secret) (with|is|to|was|here)",
            r"(that|this|which) (explains|is why|was why|caused|causes) / that's why / (explains|explaining) why / "
            r"(finally |now i |i )(understand|understood|get|see|know|figured out|worked out|found out|realised|realized|"
            r"discovered|learned|noticed) (why|what (causes?|caused|it was|happened)|that|it) / got it finally / found it / "
            r"mystery solved / figured (it )?out",
            r"it (wasn't|isn't|was not|is not|was never) (the )?[\w -]{2,40}[,;:–—-]+ ?(it's|it was|but|it is) / (price|"
            r"size|age|it|content|load|memory) is not it / what they (all )?have in common / nothing to do with / (the|"
            r"our) (whole|entire) (gain|difference|effect|problem)",
        )),
        (STRONG, phrases(
            rf"{_TROUBLE}( [^.;]{{0,90}})? (because|since (?!jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec|last|yester|mon|"
            rf"tue|wed|thu|fri|sat|sun|\d|i |we |then|the move)|due to|caused by|thanks to|as soon as) / (came|stemmed|stems|"
            rf"originates?|originated) from / (raising|lowering|moving|switching|disabling|enabling|setting|adding|removing|"
            rf"changing|replacing|increasing|upgrading|releasing|pinning|turning) [^.]{{3,60}} (removed|fixe[sd]|solve[sd]|"
            rf"cured|eliminate[sd]|stopped|brings?|brought|cut|halved|helped|closes?|gets? rid|makes? (it|them)) / "
            rf"lines? up (exactly )?with / not because of [^.]{{2,60}} but / nailed it / (fixed|solved|cured) (it|the|"
            rf"that) / (was|were|is|are) (caused|triggered) by / because of the / (only|never) {_TROUBLE} (when|if|between|"
            rf"after|on|with|while|for|during)",
            r"es lag (an|am|daran) / (der|die) (grund|ursache) (war|ist|dafür) / stellte sich heraus / endlich (verstanden|"
            r"gefunden) / (j'ai|on a) (enfin )?(compris|trouvé) / (la cause|le problème|la raison) (était|venait|est) / "
            r"resulta que / resultó que / (la causa|el motivo|el problema) (era|es|fue) / por fin (entendí|entiendo)",
        )),
        (WEAK, phrases(
            rf"because / since / so that / {_TROUBLE} / (brings?|brought|dropped|went|down) (\w+ )?(down )?(to|from) / "
            rf"(it was|it's) the / (only|mostly|almost|nearly) / which / interesting / after (looking|moving|switching|"
            rf"changing|removing|adding)"
        )),
    ),
    "confidence": (
        (STRONG, phrases(
            r"(works?|worked|working|ran|runs?|went|held up|performed) (flawlessly|perfectly|beautifully|great|end to end|"
            r"like a charm|first time|reliably|every time|fine in production|as (expected|intended|advertised)|without (a|"
            r"any|one|a single) \w+) / (is|was|are|were|have been|has been|now|been) (verified|confirmed|proven|validated|"
            r"battle-tested)",
            r"(works?|worked|went|goes|running|runs) (really |very |super |so )(well|smoothly|nicely|fine) / went smoothly / "
            r"(is|that's|that is) (the|a|my|our) keeper / keeper recipe / \d+ (of|out of) \d+ [\w ]{2,30} (right|correct|"
            r"correctly|passed|good|perfect) / (is|are) proven / (can|could|happy to) confirm / (workaround|fix|setup|"
            r"approach|config\w*|recipe|patch) (\w+ ){0,4}(holds|works|sticks|did it|does it|solved it) / (confirmed|"
            r"verified|double-checked|validated|proved|proven)( that|:| by| with| against| on| in| it) / (exactly|"
            r"just) (right|what (i|we) (needed|wanted)) / (was|is|were|turned out|came out) (perfect|spot on|flawless|"
            r"exactly right|ideal) / (best|cleanest|smoothest|fastest|easiest) [\w ]{1,30} (ever|so far|yet|in years|"
            r"we've had|i've (seen|had))",
            r"(zero|no|0|not (one|a single)) (\w+ )?(downtime|retries|retry|errors?|failures?|complaints?|timeouts?|"
            r"dropouts?|regressions?|incidents?|issues|problems|losses|warnings|rejections?|defects) (in|over|since|after|"
            r"for|during|and|across) / without (a|one|any|a single) (hitch|retry|error|failure|complaint|problem)",
            r"(it|that|this|they) stays?(?! \w) / chapeau / (clearly|definitely|without a doubt) the (thing|one|way|right) / "
            r"(can|could) (be )?(safely )?(rely|relied|count|counted) on / (wouldn't|would not) change a (word|thing|line) / "
            r"rock[- ]solid / (funktioniert|lief|läuft) (einwandfrei|perfekt|tadellos|super) / (fonctionne|marche|"
            r"marché) (parfaitement|très bien) / (funciona|funcionó) (perfecto|perfectamente|muy bien)",
            r"(row counts|checksums?|results|numbers|totals|sums) (all )?match(es|ed)?",
        )),
        (WEAK, phrases(
            r"flawless(ly)? / perfect(ly)? / beautiful(ly)? / verified / confirmed / checked / zero downtime / "
            r"the first time / end to end / soak / stable / passed / (two|three|several|\d+) (people|directors|customers|"
            r"colleagues|clients|users) / wrote to me / worked"
        )),
    ),
    "workflow_note": (
        (STRONG, phrases(
            r"first[, ][^.;]{3,120}[,;.] ?(and )?then / (then|afterwards|after that|next)[, ][^.]{3,120}[,;.] ?(and )?(then|"
            r"finally|afterwards|only then|last)",
            r"how (i|we|you) \w+( [\w-]+){0,3}( here)?: / (releases?|deploys?|invoices?|contracts?|hotfix(es)?|tickets?|"
            r"reviews?|onboarding|backups?|migrations?|orders?|incidents?|refunds?|drafts?|chapters?)( \w+){0,2}: [^.]*, / "
            r"(only|and only) (then|after that) / go(es)? to \w+ first",
            r"(the way|how) (a |an |the |we |our |to )?[\w ]{1,30}(works?|goes|go|run|release|deploy|ship|get in|gets done|"
            r"is done|are done|happens?|publish|review|merge)( (here|with|in|for|around)\b[^:.]*)?[:,] / (process|workflow|"
            r"procedure|routine|checklist|steps|drill|order|ritual|pipeline|flow) (is|goes|for|here|:)",
            r"(to|for|before|when|after) (a |an |the |each |every |any |we )?(releas|deploy|publish|ship|merg|onboard|"
            r"rollback|rolling back|migration|invoic|hotfix|review|order|upgrade|import|backup|print|submi|sign|clos|hir|"
            r"post)\w*[^.]{0,60}[,:;] ?(we|you|i|somebody|someone|first|run|always|bump|open|ask|tag|the|it|it's|"
            r"\w+ (approves?|signs?|checks?|reviews?|has|runs?|gets?|posts?|sends?|must|needs))\b[^.]*(,|then|and|before|"
            r"after)",
            r"(somebody|someone|whoever|we|you|the \w+) (has|have|needs?|must) to (post|announce|sign off|approve|tag|notify|"
            r"update|inform|run|ping|tell|fill|file|log)\b / (goes|go|gets?|is sent|are sent) (to|through|"
            r"past) [\w ]{2,30} before / part of (the )?(done|definition of done) / (in|dans|in dieser|en) (that|this|"
            r"un autre|einer anderen|este) (order|ordre|reihenfolge|orden) / signs? off",
            r"(runs?|sends?|opens?|goes|gets?|checks?|signs?|approves?|reviews?|exports?|merges?|posts?|cuts?|bumps?|tags?|"
            r"builds?|uploads?|collects?)\b[^.]{3,100}[,;]? (and )?(then|afterwards|after that) / \w+, \w+,? (and )?then / "
            r"from the (tag|main|release branch), not",
            r"(opens|creates|triggers|kicks off|starts) (a|the) (pr|pull request|build|job|publish|deploy|release|pipeline|"
            r"ticket|sync)\w* / cherry-pick(s|ed)? (it )?(back|into|onto) / (d'abord|on commence par)[^.]*(ensuite|puis|"
            r"après) / ensuite on / (zuerst|erst)[^.]*(dann|danach) / (primero)[^.]*(luego|después)",
        )),
        (WEAK, phrases(
            r"then / before / after / afterwards / (the|a|every) (release|deploy|hotfix|sprint|invoice|ticket|chapter|"
            r"draft)\w* / (on|by) (monday|tuesday|wednesday|thursday|friday)s? / (nightly|weekly|every) / merged by hand / "
            r"never publish / pre-commit / ci runs / from the tag / steps?"
        )),
    ),
    "decision": (
        (3, phrases(
            r"(we'll|we will|we're going to|we are going to|i'll|i'm going to|we|i) (go|be going|stick|stay|proceed) (with|"
            r"for|on) / (we|team|board|they|i)('ve| have| all| both| finally| just| now)* (decided|chose|chosen|picked|opted|"
            r"settled|agreed|voted|resolved)( on| to| for| that| against|:| in favou?r| yesterday| today|\b) / made up (my|"
            r"our) minds? / slept on it",
            r"(?<!had )(it's |that's |is |so |ok )?(decided|agreed|settled|final decision|decision|entschieden|décidé|"
            r"decidido)( in| at| on| with|[:.,]) / decision (is|made|was|stands) / (that|this|it)('s| is) (final|settled|"
            r"decided|a done deal|set in stone) / (final|end of) (answer|discussion|story|debate) / don't want to (revisit|"
            r"reopen|discuss) / (things|points|questions|items) (settled|decided|agreed) / (\w+|\w+ \w+) it is(?= *[,.;!–—-]|"
            r"$)",
            r"(we're|we are|i'm|i am) (staying|sticking|dropping|ditching|abandoning|standardi[sz]ing|retiring|postponing|"
            r"adopting|settling|killing|scrapping|not (going to|doing|using|running|building|rewriting|supporting|moving|"
            r"switching|migrating|adding|buying|hiring)) / (we've|we have|i've|i have) (settled|dropped|chosen|abandoned|"
            r"switched|standardi[sz]ed|picked|gone with|committed) / (we|i) (roll our own|pre-register|won't support|"
            r"will not support) / (stays|is cancelled|gets cancelled|is out|is dropped|wins)(?= *[,.;!]|$)",
            r"wir (bleiben bei|nehmen|haben (uns )?(\w+ )?(entschieden|beschlossen)|gehen mit|setzen auf|verzichten auf|"
            r"wechseln) / on (garde|part sur|a décidé|reste sur|prend|abandonne|choisit|passe à) / (nos quedamos con|"
            r"hemos decidido|decidimos|vamos con|optamos por|usaremos)",
        )),
        (STRONG, phrases(
            r"let's (go with|use|keep|do|freeze|drop|take|pick|choose|move|switch|standardi[sz]e|store|leave|build|split|"
            r"adopt|ship|target|support|host) / go(ing)? with / (we'll|we will|we're going to|we are going to) (\w+ )?(use|"
            r"keep|price|host|store|support|target|move|run|ship|write|build|put|do|drop|take|offer|sell|charge|pay|buy|rent|"
            r"split|merge|publish|only) / we (keep|stay|stick|drop|skip|leave out|do the|are using) / (we're|we are|i'm|"
            r"i am) (going|switching|moving|keeping|choosing|picking) / (not|never) (going to )?(support|ship|offer)(ing)?",
        )),
        (WEAK, phrases(
            r"(adr|rfc) \d+ / instead of / rather than / everything else / (only|stays?|remains?|final) / after (talking|"
            r"discussing|the call|the meeting) / no (\w+ ){1,3}(in there|keys|service|more) / (in|for) (the first|"
            r"this) (release|year|version|quarter) / so please / i('d| would) rather / because / (everything|all|"
            r"everywhere) / don't want / module / (the|our) (team|board|client|customer)s? / freeze / too (expensive|slow|"
            r"risky|much)"
        )),
    ),
    "correction": (
        (STRONG, phrases(
            r"use [\w./`@:|\[\] -]{1,50}(,| and| here,|;|\.)? ?(not|never|instead of|rather than) [\w./`-]+ / (not|isn't|"
            r"wasn't|aren't|it's not) [\w./' -]{1,40}[,;:.–—-]+ ?(it's|it is|but|use|they're|we're|she's|he's) / "
            r"instead of [\w./`' -]{2,40} (use|take|write|do|put|call) / (it's|it is|they're|she's|he's|"
            r"that's) [\w.%/' -]{1,40}, not",
            r"(that's|thats|that is|this is|these are|those are|it's|it is) (wrong|incorrect|not (right|correct|how|what|the|"
            r"it|true)|the (old|wrong|outdated)|(the )?old one|ancient|outdated|out of date|backwards|false|a mistake) / (is|"
            r"are) (out of date|outdated|wrong|dead|obsolete|gone|deprecated|ancient)(?! link) / not how (we|i|it|commit|"
            r"things|this)",
            r"(stop|quit) (\w+ing|that) / (please )?(undo|revert) (that|this|it) / (you keep|you always|you've again|"
            r"you again|you did it again|why (did|do|are|have) you|i (already )?told you|i (already )?said|how often|"
            r"as i said|again, ) / (don't|do not|dont|never|please don't) (ever )?(\w+[ -]?){1,3} (for me|without|to a|on|in|"
            r"the|my|to|any|when|again)",
            r"there's no [\w ./]{2,40} (any ?more|any longer|here) / (we|it|that|they) (left|moved (to|off|away)|went to|"
            r"dropped|switched (to|from|away)|migrated|renamed|replaced) / since (the move|january|february|march|april|may|"
            r"june|july|august|september|october|november|december|we (switched|moved|migrated)|last) / "
            r"too (\w+ ){0,2}for me / is the odd one out / only live under / (that|it) should (be|have been|say|read)",
            r"(nein|falsch)[,.!] / (non|faux)[,.!] / no[,.] (usa|es|utiliza) / (nicht|kein\w*) [\w ]{2,30}, sondern / "
            r"mejor (de|en|con|usa) [\w ]{1,30}, (nunca|no) / pas [\w ]{2,30}, mais",
        )),
    ),
    "commitment": (
        (3, phrases(
            r"from (now|here|today|this point) on / going forward / in future / for the future / for next time / "
            r"henceforth / (désormais|dorénavant|à partir de maintenant) / (de ahora en adelante|a partir de ahora) / "
            r"(ab jetzt|künftig|in zukunft)"
        )),
        (STRONG, phrases(
            r"as (a )?(general )?rule / (my|our|one|house|the) (\w+ )?rules?( \w+){0,4}( is|:) / by default / keep (that|"
            r"this|it) in mind / please (always|never) / (i|we|you|should|must|to) (always|never) / ((?<=[.:;!–—] )|"
            r"(?<=and )|(?<=but )|(?<=so )|^)(always|never) \w+ / (don't|do not|dont) ever / no [\w -]{3,40} without (asking|"
            r"my|checking|a|telling) / without asking (me|first) / (ask|check with) me (first|before)",
            r"i(('d| would)( much| really)?)? (prefer|rather) / i('d)? (like|love|want|expect|need)( my| your| all| every|"
            r" answers| code| it when| things| short| plain) / i (hate|can't stand|cannot stand|don't like|do not like|"
            r"dislike|loathe|detest|don't want|do not want|despise) / (what|the way) i (like|want|prefer|need|expect) / (my|"
            r"our) (preference|preferred|favou?rite) / (drives me (mad|crazy)|(pet peeve)) / i never (write|use|want|do|work|"
            r"eat|take|read|say|sign)",
            r"(when|whenever|if|any ?time|every time) (i|you|we) (ask|write|make|answer|send|commit|touch|change|book|plan|"
            r"draft|reply|refactor|look|suggest|show|give|create|add|review|report|quote|schedule|"
            r"summari[sz]e)[\w ,']*[,:] / (any|every|all|each) [\w -]{1,40} (you|that|which) (\w+ )?(make|write|send|create|"
            r"produce|do|goes|go|give|book|suggest|generate)\b / every time, / (max|maximum|at most|no more than|under|up to|"
            r"below) ~?\d+ (words|lines|characters|pages|sentences|minutes) / before you (touch|change|edit|commit|delete|"
            r"send|push|merge|start)",
            r"(anything|everything|whatever) (that )?(you|we|i) (write|make|send|create|do|produce|put|post|say|publish|"
            r"build)|in (all )?my (projects|repos?|code|team|documents|emails|mails|texts|drafts|calendar) / no exceptions / "
            r"(when|whenever) (booking|writing|planning|sending|drafting|naming|committing|reviewing|answering|replying|"
            r"ordering|scheduling|refactoring|summari[sz]ing)\b / when you (plan|book|write|send|draft|merge|commit|name|"
            r"review|answer|reply|order|schedule|make|create|summari[sz]e|look|quote|cook|touch|change)\b / "
            r"keep it that way / throughout(,| please| and) / (please )?(leave|keep) [\w ]{2,30} out of / (british|american|"
            r"metric|imperial|celsius|24-hour|us|uk) (spelling|units|english|time|format)? / (measurements|temperatures|"
            r"prices|dates|times|units|answers|replies|comments|amounts) in / i don't (drink|eat|work|fly|drive|read|take|do|"
            r"use|answer) / i can't think in",
            r"(ab jetzt|künftig|in zukunft|ich (möchte|bevorzuge|will|mag keine?|hasse)|bitte (immer|nie|niemals|keine)|"
            r"grundsätzlich|(immer|niemals) ) / (désormais|dorénavant|à partir de maintenant|je (préfère|veux|déteste)|"
            r"toujours|jamais) / (de ahora en adelante|a partir de ahora|prefiero|quiero que|siempre|nunca)",
            r"(i'm|i am|we're|we are) (keeping|colou?r ?blind|allergic|vegetarian|vegan|lactose|left-handed|dyslexic|deaf|"
            r"gluten) / (has|have) (a )?(bad |severe )?(\w+ )?allergy / (tabs|spaces|metric|british|american|dark mode|"
            r"markdown)[\w ]*, please / everywhere\. / i will not / i won't (merge|accept|sign|read|approve)",
        )),
        (WEAK, phrases(
            r"please / only / no / never / always / for me / under my name / so don't / just / (white|black|plain) / short / "
            r"keep / should"
        )),
    ),
    "learning": (
        (STRONG, phrases(
            r"fyi / for (your information|context|the record|background|reference) / just so you know / "
            r"(so )?you (should )?know[,:] / heads[- ]up / good to know / (worth|be) (knowing|noting|aware) / noted( from|"
            r" that|:) / note that / keep in mind that / as (background|context) / (for )?historic(al)? reasons / til / "
            r"learned (that|today) / i learnt / by the way, (the|our|we|my) / (documentation|docs|manual|vendor|support|"
            r"changelog|spec|their reply|source) (says?|states?|confirms?|confirmed)",
            r"(is|are|was|were) (stored|kept|located|hosted|deployed|refreshed|mirrored|synced|rotated|generated|served|"
            r"managed|owned|maintained|billed|encrypted|backed up|capped|limited|called|named|built|emulated|self[- ]hosted|"
            r"installed|written|defined|configured) (in|on|at|from|by|under|with|to|every|as|into|via|using|per|through|"
            r"everywhere|only|nightly|weekly|daily) / (only|still) supports? / supports? (up to|only|at most) / (lives?|"
            r"sits?|resides?) (in|on|under|at|behind) / what (the|our) [\w ]{2,30} call / (means|stands for|refers to) / "
            r"(owns|maintains|is responsible for|is in charge of|takes care of) ",
            r"(the|our|their|its) [\w' -]{2,40} (is|are) (a|an|the|under|about|around|at|in|on|only|now|roughly|limited|"
            r"\d)[\w .,'/-]* ?\d / (rate |size |time |word )?limit (is|of) / i('m| am) an? (\w+ )?(nurse|geologist|teacher|"
            r"doctor|designer|developer|engineer|student|lawyer|writer|researcher|freelancer|accountant|manager|architect|"
            r"scientist|photographer|translator|farmer|baker|musician|carpenter|biologist|journalist|librarian|pharmacist|"
            r"plumber|electrician|therapist|chef|founder)",
            r"my (son|daughter|wife|husband|partner|mother|father|mom|mum|dad|kids?|children|team|manager|boss|dog|cat|"
            r"brother|sister|employer|company|laptop|machine|office|editor|supervisor|advisor)( \w+){0,2} (is|are|starts?|"
            r"lives?|works?|goes|has|have|runs?|uses?) / i (work|live) (with|at|in|for|as|on) / we (use|run|host|have|work|"
            r"deploy|sell|store|pay) / i taught myself / (unser\w*|mein\w*|der|die|das) [\w-]+ (ist|läuft|liegt|heißt|hat|"
            r"wird|sind) / (notre|nos|le|la|les) [\w-]+ (est|sont|tourne|se trouve) / (nuestr[oa]s?|el|la|los) [\w-]+ (es|"
            r"está|corre|se llama)",
        )),
        (STRONG, phrases(
            r"(background|context|for info|info): / [A-Z][a-z]+ is (our|the|my) \w+ / (docs?|documentation|manual|vendor|"
            r"changelog|release notes|api docs|spec) (\w+ )?(mentions?|says?|states?|confirms?|list) / (nodes|servers|"
            r"machines|runners|boxes|cluster|clients|services?) (run|use|are on|have) / (listens?|listening) on / "
            r"requires? (an?|at least|the) / (gets?|get|is|are|will be) (switched off|deprecated|retired|sunset|shut down|"
            r"removed) / (starts?|ends?|opens?|closes?) (in|at|on) (january|february|march|april|may|june|july|august|"
            r"september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|\d)"
            r" / (published|exported|imported|uploaded|delivered|sent|dropped|synced) (to|from|as|on|by|via|into) / "
            r"has (asthma|diabetes|an? \w+ allergy) / has to go past / only reachable / (comes?|arrives?) from \w+ as",
        )),
        (WEAK, LazyRegex(r"\d")),
        (WEAK, LazyRegex(
            r"[\w.-]+/[\w.-]*|`[^`]+`|CODE|\b\w+\.(?:py|ts|js|json|ya?ml|toml|md|css|go|rs|csv|sql)\b|\b[A-Z]{2,}\b|"
            r"\b[a-z]+_[a-z_]+\b"
        )),
        (WEAK, phrases(
            r"(is|are) / has / have / owns / (only|except|so) / every (sunday|monday|night|week|day|month|year) / (except|"
            r"whereas|whilst|but)"
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
        """Return the chances by class. `answered` is the message of the assistant that a user answers."""
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
    """Return the features of a text by name: the points of the cues, its length and form, and what it answers."""
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
    """Return the words of a text that carry its topic, cut to their first letters: a plural is the same word."""
    return {word.strip(".-")[:6].removesuffix("s") for word in re.findall(r"[\w.-]{4,}", text.lower())} - _COMMON


def without_quotes(text: str) -> str:
    """Return a text on one line without the words of others and without code."""
    return _INLINE_CODE.sub("CODE", _QUOTED.sub("QUOTE", normalized(text)))


@cache
def _read_weights() -> tuple[str, dict[str, Weights]]:
    return read_weights("memory_mesh.core.language.capture")


_COMMON = frozenset({
    "with", "that", "this", "have", "will", "from", "your", "they", "what", "when", "then", "than", "it'", "just", "like", "more",
    "some", "into", "should", "would", "could", "which", "also", "only", "same", "very", "here", "there", "please", "about",
})  # fmt: skip
_QUOTED = LazyRegex(
    r"\"[^\"\n]{8,}?\"|“[^”\n]{8,}?”|„[^“\n]{8,}?“|«[^»\n]{8,}?»|(?<!\w)['‘](?=\w)(?:[^'’\n]|['’](?=\w)){8,200}?['’](?!\w)"
)
_INLINE_CODE = LazyRegex(r"`[^`\n]+`")
_SIGNS = {"number": LazyRegex(r"\d"), "question": LazyRegex(r"\?")}
OBJECTS = phrases(
    r"(no|nope|nah|nein|non|wrong|not|actually|hm,? that's not|please undo|stop|don't|do not|never|that's not|thats not|"
    r"this is not)"
    r"(?! (worries|problem|need|rush|idea|thanks|hurry|bad|sure))[ ,.!:;]+\w+ / (still )?too \w+",
    start=True,
)
_ANSWERS = {
    "agrees": phrases(
        r"(right|yes|yep|yeah|good|great|thanks|thank you|thx|ok(ay)?|beautiful|perfect|wow|exactly|nice|cool|awesome|lovely|"
        r"excellent)",
        r"(true|correct|ja|oui|sí|super|sure|works|brilliant)",
        start=True,
    ),
    "objects": OBJECTS,
}
OFFER = phrases(
    r"(\w+ )?or [^?\n]{2,80}\? / (options|candidates|alternatives|choices|approaches|variants|proposal|"
    r"suggestions?)( \w+){0,3}( are|:| is| for)",
    r"(remaining|possible) (options|candidates|choices) / we could / either / (which|what) (one|of|would you|do you prefer)",
    r"shall (i|we) / should (i|we|the|it) / i('d| would)? (suggest|recommend|propose|go for) / my (proposal|suggestion|"
    r"recommendation)",
)
