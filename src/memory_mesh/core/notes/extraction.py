"""What a finished run of an agent gives to a note: the run, and the note or the reason why there is none."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memory_mesh.core.capture.classify import topics
from memory_mesh.core.capture.phrases import phrases
from memory_mesh.core.checks import one_of
from memory_mesh.core.errors import InvalidInput, shown
from memory_mesh.core.intake.similar import says_the_same
from memory_mesh.core.notes.files import MAX_WORDS, Note, read_note
from memory_mesh.core.notes.folder import Appended
from memory_mesh.core.notes.patterns import matching_pattern
from memory_mesh.core.notes.reports import Worth
from memory_mesh.core.reprs import short_repr
from memory_mesh.core.text import LazyRegex, shortened, split_sentences

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
    "about / after / again / before / build / change / check / clean / close / create / debug / deploy / design / document",
    "error / extend / fail / failing / failed / find / fix / fixed / from / handle / implement / improve / into / investigate",
    "issue / look / make / migrate / move / open / patch / plan / prepare / problem / refactor / release / remove / rename",
    "replace / report / research / review / setup / ship / slow / solve / start / support / task / tests? / that / this / track",
    "turn / update / upgrade / verify / what / when / where / which / with / work / write",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractionInput:
    """A finished run: which agent did what, what it reported and how it ended. Without existing notes, the folder's are used."""

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
                raise InvalidInput(f"{name} has {len(value):,} characters", expected=f"at most {most:,}")
        one_of("result", self.result, RESULTS)
        known = self.existing_memories
        if known is not None and not (isinstance(known, list | tuple) and all(isinstance(one, Note) for one in known)):
            raise InvalidInput(f"existing_memories is {shown(known)}", expected="a list of notes, such as mesh.notes.load()")


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ExtractionOutput:
    """Whether a run is worth a note, the note if it is, and why. `frontmatter` has the keys of a file."""

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
            raise InvalidInput("the note has no content" if self.frontmatter else "the note has no frontmatter")
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
    return any(says_the_same(sentence, known) for note in existing for known in (note.title, *_sentences(note.content)))


def _sentences(content: str) -> list[str]:
    return [sentence.strip().lstrip("-*# ") for sentence in split_sentences(content)]


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
        "whenToUse": [*filter(None, ("|".join(words), task if len(task) >= _MIN_PATTERN else title))],
        "tags": [*dict.fromkeys([best.kind.replace("_", "-"), *words[:_MAX_TAGS]])],
        "importance": "high" if best.kind in _IMPORTANT else "medium",
        "discoveredAt": at, "discoveredBy": run.agent, "discoveredIn": origin(run.task),
    }  # fmt: skip
    kinds = ", ".join(dict.fromkeys(each.kind.replace("_", " ") for each in found))
    count = "statement is" if len(found) == 1 else "statements are"
    return ExtractionOutput(
        should_create_memory=True, memory_title=title, frontmatter=frontmatter, content=f"{body}{error}",
        reasoning=f"{len(found)} {count} worth a note ({kinds}); the surest with a chance of {best.chance:.2f}",
    )  # fmt: skip


def _subject(task: str, statements: Sequence[str]) -> list[str]:
    """Return the words of a task that its findings are about: those that both name."""
    named = topics(" ".join(statements))
    words = [word.strip(".,;:!?()[]{}\"'`").lower() for word in task.split()]
    plain = [word for word in dict.fromkeys(words) if not (_WORK.fullmatch(word) or "|" in word or "*" in word)]
    return [word for word in plain if topics(word) & named][:_MAX_PATTERN_WORDS]
