"""Decide without a language model what the report of a finished run gives to a note."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache

from memory_mesh.core.errors import InvalidInput, one_of, shown
from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.language.capture.classify import is_output, topics, why_not_safe
from memory_mesh.core.language.packaged import NONE, Weights, phrases, read_weights
from memory_mesh.core.notes.files import MAX_WORDS, Appended, Note, read_note
from memory_mesh.core.notes.relevance import matching_pattern
from memory_mesh.core.text import LazyRegex, short_repr, shortened, split_sentences

# --- statements of a report ---
# Each statement is judged by itself, by a linear model over signs of its form, the heading above it
# and its vector. The weights are packaged data, learnt by `python -m bench.notes.train` from
# labelled reports, so the same report gives the same note.

KINDS = ("structure", "pattern", "constraint", "error_cause", "decision", "version")
CLASSES = (NONE, *KINDS)
_MIN_WORDS, _MAX_SENTENCE_CHARS = 4, 1_000
_BLOCK = LazyRegex(r"(```|~~~).*?(?:\1|\Z)", re.DOTALL)
_HEADING = LazyRegex(r"\s*(?:#{1,6}\s+(.+?)|\*\*(.+?)\*\*:?|__(.+?)__:?|([A-Z][\w' /-]{2,40}):)\s*")
_TEACHES = phrases(
    "explained / answered / in short / hope (that|this) helps / as is well known / as (everyone|we "
    "all) knows? / a classic / one should / the usual idiom / in general / generally speaking / "
    "best practice"
)
_BULLET = LazyRegex(r"\s*(?:[-*•]|\d+[.)])\s+")


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of a report: the heading above it, and its place among the others."""

    text: str
    heading: str = ""
    is_bullet: bool = False
    is_first: bool = False
    is_last: bool = False
    count: int = 1  # statements of the report
    teaches: bool = False  # the report explains what is common knowledge


def statements(report: str) -> list[Statement]:
    """Return the sentences of a report, without code, output, headings and scraps."""
    found = list(_report_sentences(report))
    last, teaches = len(found) - 1, _TEACHES.search(report) is not None
    return [
        Statement(text, heading, is_bullet, at == 0, at == last, len(found), teaches)
        for at, (text, heading, is_bullet) in enumerate(found)
    ]


def _report_sentences(report: str) -> Iterator[tuple[str, str, bool]]:
    heading = ""
    for line in _BLOCK.sub("\n", report).splitlines():
        if named := _HEADING.fullmatch(line):
            heading = next(filter(None, named.groups())).lower()
            continue
        bullet = _BULLET.match(line)
        for sentence in map(str.strip, split_sentences(line[bullet.end() :] if bullet else line)):
            if (
                len(sentence.split()) >= _MIN_WORDS
                and len(sentence) <= _MAX_SENTENCE_CHARS
                and not is_output(sentence)
            ):
                yield sentence, heading, bullet is not None


# --- judging ---


@dataclass(frozen=True, slots=True)
class Worth:
    """A statement that is worth a note: of which kind, and how likely."""

    text: str
    kind: str
    chance: float


@dataclass(frozen=True, slots=True)
class ReportJudge:
    """Tells which statements are worth a note."""

    weights: Weights

    def __call__(
        self, given: Sequence[Statement], vectors: Sequence[Sequence[float]] = ()
    ) -> list[Worth]:
        """Return the statements that are worth a note, in their order."""
        found: list[Worth] = []
        for at, statement in enumerate(given):
            chances = self.weights.chances(
                CLASSES, features(statement), vectors[at] if vectors else ()
            )
            chance = 1 - chances.pop(NONE)
            if chance >= self.weights.limit and not why_not_safe(statement.text):
                found.append(Worth(statement.text, max(chances, key=chances.__getitem__), chance))
        return found


@cache
def judges() -> tuple[str, ReportJudge, ReportJudge]:
    """Return the model whose vectors the weights were learnt with, the judge that uses the vectors
    of the statements, and the one that needs no embedder."""
    model, weights = read_weights("memory_mesh.core.notes")
    return model, ReportJudge(weights["vectors"]), ReportJudge(weights["plain"])


def features(statement: Statement) -> dict[str, float]:
    """Return the features of a statement by name."""
    text = statement.text
    found = {
        "always": 1.0, "length": len(text.split()) / 30, "count": min(statement.count, 10) / 10,
        "teaches": float(statement.teaches), "bullet": float(statement.is_bullet),
        "first": float(statement.is_first), "last": float(statement.is_last),
    }  # fmt: skip
    found |= {name: 1.0 for name, sign in _SIGNS.items() if sign.search(text)}
    if statement.heading:
        found["heading"] = 1.0
        found |= {
            f"heading {name}": 1.0
            for name, sign in _HEADINGS.items()
            if sign.search(statement.heading)
        }
    return found


_SIGNS = {
    "begins with I or we": phrases("i / we / my", start=True),
    "what I did": phrases("i (have|had|ran|added|fixed|checked|looked|will|did|also|then)"),
    "we": phrases("we / our"),
    "begins with what was done": phrases(
        "(also |then |and )?(added|adjusted|acknowledged|applied|built|bumped|changed|checked|"
        "cleaned|closed|collected|compared)",
        "(also |then |and )?(completed|converted|corrected|created|deleted|deployed|did|drafted|"
        "extracted|finished|fixed)",
        "(also |then |and )?(implemented|installed|introduced|looked|made|marked|merged|moved|"
        "opened|played|pushed|put|ran|read)",
        "(also |then |and )?(reduced|refactored|regenerated|registered|removed|renamed|replaced|"
        "reran|restarted|reviewed)",
        "(also |then |and )?(rewrote|sent|set|sorted|started|swapped|switched|tested|tidied|tried)",
        "(also |then |and )?(updated|uploaded|went|wired|wrote)",
        start=True,
    ),
    "begins with an instruction": phrases(
        "use / never / always / do not / don't / keep / pin / avoid / run / set / put / make sure "
        "/ call / add / remember / note",
        start=True,
    ),
    "present tense": phrases(
        "is / are / has / have / uses? / lives? / comes? / goes / runs? / reads? / holds? / "
        "expects? / contains? / returns?",
        "accepts? / allows? / loads? / calls? / writes? / keeps? / belongs? / means / follows? / "
        "sits / sends? / supports?",
        "ignores? / treats? / stores? / rejects? / drops? / starts? / ends? / carries / share[sd]? "
        "/ depends? / breaks?",
        "fails? / needs?",
    ),
    "limit": phrases(
        "must / has to / have to / needs? to / required? / requires? / mandatory / may not / not "
        "allowed / forbidden",
        "is limited / limit / at most / maximum / minimum / at least / up to / cap(s|ped)?",
    ),
    "cause": phrases(
        "because / since / so that / due to / caused / the cause / cause was / root cause / the "
        "reason / traced to / turned out",
        "that is why / which (is|are|made|makes|meant) / otherwise / stems from / comes from",
    ),
    "negation": phrases(
        "not / never / no / cannot / can't / doesn't / don't / didn't / won't / isn't / only / "
        "none / without"
    ),
    "all": phrases("every / all / each / any / always / only / never / one per / per"),
    "past tense": phrases(
        r"was / were / had / did / failed / broke / returned / made / got / became / ran / \w{3,}ed"
    ),
    "path": LazyRegex(
        r"[\w.-]+/[\w./-]*|\b\w+\.(?:py|tsx?|js|go|java|json|ya?ml|toml|xml|h|c|rs|sql|md|css|html|"
        r"sh|cfg|ini)\b"
    ),
    "identifier": LazyRegex(r"\b\w+_\w+\b|`[^`]+`|\b[a-z]+[A-Z]\w+"),
    "number of a version": LazyRegex(r"\b\d+\.\d+|\bv\d+\b"),
    "number": LazyRegex(r"\d"),
    "count": LazyRegex(
        r"(?<!over )(?<!above )(?<!than )(?<!after )(?<!every )(?<!most )(?<!within )(?<!least )"
        r"\b\d+ (?:of|out of|tests?|files?|rows?|passed|failed|errors?|warnings?|minutes?|seconds?|"
        r"ms|lines?|items?|records?|tickets?|pages?|new)\b|\d ?%",
        re.IGNORECASE,
    ),
    "bound": LazyRegex(
        r"\b(?:over|above|below|under|(?:more|less|fewer|longer|larger|older|later|newer) than|"
        r"after|every|within|up to|at (?:most|least)|beyond|exceed\w*) (?:about )?(?:\d|one|two|"
        r"three|four|five|six|seven|eight|nine|ten)",
        re.IGNORECASE,
    ),
    "refuses": phrases(
        "rejects? / rejected / refuses? / drops? / cuts? / ignores? / silently / swallows? / "
        "strips? / truncates?"
    ),
    "undecided": phrases(
        "nothing is (settled|decided) / no decision / (is|are|was) (still )?open / one theory / "
        "lean towards? / no root cause",
        "one could / would be one / my favou?rite / personally",
    ),
    "guess": phrases(
        "maybe / perhaps / might / could / seems? / seemed / suspect / suspicion / probably / "
        "presumably / possibly / looks like",
        "not sure / unclear / unknown / no idea / guess / hunch / theory / likely / may be / "
        "appears? / apparently / if i had to",
        "not confirmed / unconfirmed / untested / hypothesis / candidate / whether",
    ),
    "what comes next": phrases(
        "will / plans? / planned / tomorrow / next / later / should / todo / to do / would / want "
        "/ could you / let me know",
        "want me / happy to / going to / tonight / continue / follow-?up / pending / waiting / "
        "remaining / still / not yet / yet",
    ),
    "for the moment": phrases(
        "today / this week / this morning / right now / currently / at the moment / for now / "
        "temporar[a-z]+ / frozen",
        "until (monday|tuesday|wednesday|thursday|friday|tomorrow|next|the) / on "
        "(holiday|leave|vacation) / this afternoon",
        "yesterday / tonight / out of office",
    ),
    "well": phrases(
        "pass(es|ed|ing)? / green / done / ok / works? (now|again|fine) / clean / ready / "
        "completed? / succeeded / approved",
        "merged / finished / resolved / all good / no (errors|findings|issues|changes)",
    ),
    "question": LazyRegex(r"\?"),
    "exclamation": LazyRegex("!"),
    "ticket": phrases(r"(pr|pull request|branch|commit|ticket|issue) ?#?\d*"),
    "choice": phrases(
        "decided / decision / chose / chosen / picked / went with / go with / instead of / rather "
        "than / over / ruled out",
        "rejected / dropped / settled / given up / in favou?r / agreed / we (use|keep|stay|moved)",
    ),
    "place": phrases(
        "lives? / sits? / located / found / stored / kept / resides? / defined / in the "
        "(folder|directory|repo) / under / inside",
        "entry point / comes from / organi[sz]ed / split into / layout / one "
        "(file|module|folder|class|row|table) per",
    ),
    "convention": phrases(
        r"convention / by convention / style / naming / pattern / prefix / suffix / snake_case / "
        r"every \w+ (has|is|must|gets)",
        "are always / is always / house / standard / as a rule",
    ),
    "version": phrases(
        "version / pinned? / pins / below / above / before / upgrade / older / newer / release / "
        "compatible / incompatible",
        "depends on / dependency / requires / needs",
    ),
}
_HEADINGS = {
    "of a cause": LazyRegex("cause|why|reason|problem|explanation|diagnos|what went wrong"),
    "of findings": LazyRegex(
        "finding|note|learn|discover|worth|background|context|gotcha|observ|know|detail|analysis|"
        "insight|about"
    ),
    "of a decision": LazyRegex("decision|decid|choice|approach|design|rationale"),
    "of rules": LazyRegex(
        "convention|pattern|constraint|limit|rule|require|structure|layout|architecture|compat|"
        "version|depend"
    ),
    "of what was done": LazyRegex(
        "change|did|done|summary|progress|status|work|step|update|complet|result|verif|test|check|"
        "files"
    ),
    "of what comes next": LazyRegex(
        "next|todo|remaining|open|follow|plan|question|pending|offer|left"
    ),
}


# --- the note of a run ---

RESULTS = ("success", "failure", "partial")
_MAX_CHARS = {"agent": 1_000, "task": 100_000, "agent_output": 1_000_000, "error": 1_000_000}
_MAX_TITLE, _MAX_TASK, _MAX_ERROR = 80, 200, 300
_MAX_PATTERN_WORDS, _MAX_TAGS = 5, 3
_MIN_PATTERN = 4  # characters; shorter ones are in many other words
# What stands around a statement in Markdown: marks of quotes, tables, tasks and bold words.
_MARKS = LazyRegex(r"^(?:[>|]\s*|\[[ xX]\]\s+)+|\*\*|__(?=\W|$)|(?<!\w)__|\s*\|$")
_IMPORTANT = ("constraint", "decision", "error_cause")
# Words of tasks that say what is done, not what it is done to.
_WORK = phrases(
    "about / after / again / before / build / change / check / clean / close / create / debug / "
    "deploy / design / document",
    "error / extend / fail / failing / failed / find / fix / fixed / from / handle / implement / "
    "improve / into / investigate",
    "issue / look / make / migrate / move / open / patch / plan / prepare / problem / refactor / "
    "release / remove / rename",
    "replace / report / research / review / setup / ship / slow / solve / start / support / task / "
    "tests? / that / this / track",
    "turn / update / upgrade / verify / what / when / where / which / with / work / write",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractionInput:
    """A finished run: which agent did what, what it reported and how it ended. Without existing
    notes, the folder's are used."""

    __repr__ = short_repr

    agent: str
    task: str
    agent_output: str
    result: str = "success"
    error: str | None = None
    existing_memories: Sequence[Note] | None = None

    def __post_init__(self) -> None:
        for name, most in _MAX_CHARS.items():
            value = getattr(self, name)
            if value is None and name == "error":
                continue
            if not isinstance(value, str) or (name in ("agent", "task") and not value.strip()):
                raise InvalidInput(f"{name} is {shown(value)}", expected="a text")
            if len(value) > most:
                raise InvalidInput(
                    f"{name} has {len(value):,} characters", expected=f"at most {most:,}"
                )
        one_of("result", self.result, RESULTS)
        known = self.existing_memories
        if known is not None and not (
            isinstance(known, list | tuple) and all(isinstance(one, Note) for one in known)
        ):
            raise InvalidInput(
                f"existing_memories is {shown(known)}",
                expected="a list of notes, such as mesh.notes.load()",
            )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractionOutput:
    """Whether a run is worth a note, the note if it is, and why. `frontmatter` has the keys of a
    file."""

    __repr__ = short_repr

    should_create_memory: bool
    reasoning: str
    memory_title: str | None = None
    frontmatter: Mapping[str, object] | None = None
    content: str | None = None
    saved: Appended | None = None  # where it was written

    @property
    def note(self) -> Note:
        """The note; raises `InvalidInput` if a part is missing or invalid."""
        if not self.content or not self.content.strip() or self.frontmatter is None:
            raise InvalidInput(
                "the note has no content" if self.frontmatter else "the note has no frontmatter"
            )
        note = read_note({**self.frontmatter, "title": self.memory_title or ""}, self.content)
        if not note.when_to_use:
            raise InvalidInput("the note has no pattern in whenToUse")
        if every := next((one for one in note.when_to_use if matching_pattern([one], "")), None):
            raise InvalidInput(f"the pattern {shown(every)} matches every task")
        if (words := len(note.content.split())) > MAX_WORDS:
            raise InvalidInput(f"the note has {words:,} words", expected=f"at most {MAX_WORDS:,}")
        return note


def nothing(why: str) -> ExtractionOutput:
    """Return the output that creates no note."""
    return ExtractionOutput(should_create_memory=False, reasoning=why)


def is_known(sentence: str, existing: Iterable[Note]) -> bool:
    """Return whether an existing note says the same as a sentence."""
    return any(
        says_the_same(sentence, known)
        for note in existing
        for known in (
            note.title,
            *(part.strip().lstrip("-*# ") for part in split_sentences(note.content)),
        )
    )


def distinct(found: Iterable[Worth]) -> list[Worth]:
    """Return statements without the Markdown around them, each once."""
    texts: dict[str, Worth] = {}
    for one in found:
        text = _MARKS.sub("", one.text).strip()
        texts.setdefault(text.casefold(), replace(one, text=text))
    return list(texts.values())


def origin(task: str) -> str:
    """Return how a note names the task that it was discovered in."""
    return f"Task: {shortened(' '.join(task.split()), _MAX_TASK)}"


def note_of(run: ExtractionInput, found: Sequence[Worth], at: str) -> ExtractionOutput:
    """Return the note that holds the statements of a report that are worth one."""
    best = max(found, key=lambda each: each.chance)
    title = shortened(best.text, _MAX_TITLE).removesuffix(" …").rstrip(".,;:!- ")
    error = f"\n\nError: {shortened(' '.join(run.error.split()), _MAX_ERROR)}" if run.error else ""
    listed = [each.text for each in found]
    body = listed[0] if len(listed) == 1 else "\n".join(f"- {text}" for text in listed)
    # In a task these two are text, and in a pattern they would match other tasks.
    task = shortened(" ".join(run.task.replace("|", " ").replace("*", " ").split()), _MAX_TASK)
    words = _subject(run.task, listed)
    frontmatter = {
        "whenToUse": [
            *filter(None, ("|".join(words), task if len(task) >= _MIN_PATTERN else title))
        ],
        "tags": [*dict.fromkeys([best.kind.replace("_", "-"), *words[:_MAX_TAGS]])],
        "importance": "high" if best.kind in _IMPORTANT else "medium",
        "discoveredAt": at, "discoveredBy": run.agent, "discoveredIn": origin(run.task),
    }  # fmt: skip
    kinds = ", ".join(dict.fromkeys(each.kind.replace("_", " ") for each in found))
    count = "statement is" if len(found) == 1 else "statements are"
    return ExtractionOutput(
        should_create_memory=True, memory_title=title, frontmatter=frontmatter,
        content=f"{body}{error}",
        reasoning=f"{len(found)} {count} worth a note ({kinds}); the surest with a chance of "
                  f"{best.chance:.2f}",
    )  # fmt: skip


def _subject(task: str, statements: Sequence[str]) -> list[str]:
    """Return the words of a task that its findings are about: those that both name."""
    named = topics(" ".join(statements))
    words = [word.strip(".,;:!?()[]{}\"'`").lower() for word in task.split()]
    plain = [
        word
        for word in dict.fromkeys(words)
        if not (_WORK.fullmatch(word) or "|" in word or "*" in word)
    ]
    return [word for word in plain if topics(word) & named][:_MAX_PATTERN_WORDS]
