"""Find what is worth keeping in a transcript, without a language model.

The firewall drops sentences that are not worth keeping for what they are; of the others a
classifier tells the type, or that there is none. In doubt nothing is kept: a junk memory costs more
than a missed one.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from memory_mesh.core.lane.entities import find_entities
from memory_mesh.core.language.capture.classify import (
    MIN_WORDS,
    RECALLED,
    SMALL_TALK,
    Judge,
    is_output,
    judge_without_vectors,
    normalized,
    objects,
    offers,
    topics,
    why_not,
)
from memory_mesh.core.language.packaged import NONE, Expressions, Phrases
from memory_mesh.core.model import MemoryRecord
from memory_mesh.core.text import short_repr, shortened, split_sentences

_RE, _PHRASES = Expressions(__name__), Phrases(__name__)

# --- reports ---

# Begins the name of the entry that tells what was read of a session; the user and the session
# follow as JSON.
CURSOR = "capture "


@dataclass(frozen=True, slots=True, repr=False)
class NotKept:
    """A text that was not kept, and why."""

    __repr__ = short_repr

    text: str
    why: str
    message: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CaptureReport:
    """What a run kept, and what it did not keep and why."""

    __repr__ = short_repr

    kept: list[MemoryRecord] = field(default_factory=list)
    not_kept: list[NotKept] = field(default_factory=list)  # the first 500
    superseded: list[str] = field(default_factory=list)
    archived: list[str] = field(default_factory=list)  # by the end of the session
    new_messages: int = 0
    cursor: int = 0  # messages of the session that were read so far
    note: str | None = None  # what was left for the next run, or could not be read


@dataclass(frozen=True, slots=True, repr=False)
class WouldKeep:
    """A statement that capture would keep, and as which type."""

    __repr__ = short_repr

    content: str
    memory_type: str
    confidence_score: int
    message: int


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Judgement:
    """What capture would keep of some messages, and what it would not keep and why. Nothing was
    stored."""

    __repr__ = short_repr

    kept: list[WouldKeep] = field(default_factory=list)  # the first 200
    not_kept: list[NotKept] = field(default_factory=list)  # the first 500


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class JunkFound:
    """A stored memory that should not be in a memory, and why; `archived` if it was archived
    just now."""

    __repr__ = short_repr

    id: str
    content: str
    why: str
    archived: bool = False


# --- extraction ---

# Of an assistant only what it found out, not what it would like to do or what the user wants.
_OF_USER_ONLY = ("correction", "decision", "commitment")
# A shorter sentence, or one that points back, says nothing without the sentence before it. So many
# sentences are judged together at most.
_MIN_OWN_WORDS, _MAX_TOGETHER = 4, 3
_MAX_CONTENT, _MAX_CHUNK, _MAX_PREVIOUS = 400, 1_500, 400
_ROLE_PLAY_MESSAGES = 6
_MAX_MESSAGE = 20_000  # characters
_UNCERTAIN = "nothing shows that it is worth keeping"
_GROUNDED = 0.6
_MIN_SHARED, _SHARED = 2, 0.75  # words of a sentence that stand in a recalled memory too
_SHORT_ANSWER = 8  # words; a shorter one needs the question to be understood


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a transcript: its number, its role, and whether an earlier run has read it
    already."""

    number: int
    role: str
    content: str
    is_new: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """A memory that was found, with the part of the transcript that it comes from."""

    content: str
    memory_type: str
    confidence_score: int
    source_chunk: str
    message: int
    role: str
    entities: tuple[str, ...] = ()


@dataclass(slots=True)
class _Session:
    """What the reading of a message depends on."""

    before: list[Message] = field(default_factory=list)  # the last messages of user and assistant
    recalled: list[str] = field(default_factory=list)
    # Of the last messages, until the user does not withdraw them.
    waiting: list[Captured] = field(default_factory=list)
    judge: Judge = field(default_factory=judge_without_vectors)
    # The user asked for work on a text: neither text nor answer says anything about the user.
    about_text: bool = False
    role_play: int = 0

    @property
    def answered(self) -> str:
        """The message of the assistant that the next message answers."""
        return (
            self.before[-1].content if self.before and self.before[-1].role == "assistant" else ""
        )


def extract(
    messages: Iterable[Message], *, recalled: Sequence[str] = (), judge: Judge | None = None
) -> Iterator[Captured | NotKept]:
    """Yield what is worth keeping of the new messages, and what is not kept with the reason.
    Reads one message at a time."""
    session = _Session(recalled=list(recalled), judge=judge or judge_without_vectors())
    for message in messages:
        if message.role == "system":
            session.recalled += (
                line.strip(" -*•\t") for line in message.content.splitlines() if line.strip()
            )
        if message.role not in ("user", "assistant"):
            continue
        if message.role == "user":
            yield from _settle(session, message)
        for found in _read(session, message) if message.is_new else ():
            if isinstance(found, Captured):
                session.waiting.append(found)
            else:
                yield found
        session.before = [*session.before[-2:], message]
        session.role_play = max(0, session.role_play - 1)
    yield from session.waiting


def _settle(session: _Session, message: Message) -> Iterator[Captured | NotKept]:
    """Yield what was found before this message of the user, unless it withdraws it, and note
    what this message asks for."""
    text = normalized(message.content)
    withdrawn = "withdrawn" if _PHRASES.withdrawn.search(text) else ""
    objected = "the user objected" if objects(text) else ""
    for found in session.waiting:
        why = withdrawn or (objected if found.role == "assistant" else "")
        yield NotKept(found.content, why, found.message) if why else found
    session.waiting = []
    session.about_text = _PHRASES.about_text.search(text) is not None
    if _PHRASES.role_play.search(text):
        session.role_play = _ROLE_PLAY_MESSAGES


# --- one message ---


def _read(session: _Session, message: Message) -> Iterator[Captured | NotKept]:
    whole = shortened(message.content, _MAX_CONTENT)
    if session.about_text or session.role_play:
        yield NotKept(whole, "part of a text or of a role play", message.number)
        return
    if message.role == "user" and _PHRASES.withdrawn.search(normalized(message.content)):
        yield NotKept(whole, "withdrawn", message.number)
        return
    if len(message.content) > _MAX_MESSAGE:
        yield NotKept(whole, "a pasted document", message.number)
        return
    usable: list[str] = []
    judged: dict[str, str | None] = {}  # a hostile message repeats its sentences
    for sentence in sentences(message.content):
        if sentence not in judged:
            recalled = RECALLED if _is_recalled(sentence, session.recalled) else None
            judged[sentence] = why_not(sentence, role=message.role) or recalled
        if why := judged[sentence]:
            yield NotKept(shortened(sentence, _MAX_CONTENT), why, message.number)
        else:
            usable.append(sentence)
    if message.role == "user" and (proposal := _accepted(session, message.content)):
        yield captured(proposal, "decision", message, before=session.before[-2:])
    else:
        yield from _judge(session, message, usable)


def _judge(
    session: _Session, message: Message, usable: Sequence[str]
) -> Iterator[Captured | NotKept]:
    """Yield a memory of each statement of a message that is worth keeping, and the other
    statements as not kept."""
    for text in dict.fromkeys(statements(usable)):
        chances = session.judge(text, role=message.role, answered=session.answered)
        chance = 1 - chances.pop(NONE)
        possible = [name for name in chances if message.role == "user" or name not in _OF_USER_ONLY]
        if chance >= session.judge.weights.limit:
            name = max(possible, key=chances.__getitem__)
            yield _found(session, message, text, name, chance)
        else:
            yield NotKept(shortened(text, _MAX_CONTENT), _UNCERTAIN, message.number)


def statements(usable: Sequence[str]) -> list[str]:
    """Return what the sentences of a message state: each one, together with those after it that
    mean nothing without it."""
    found: list[list[str]] = []
    for sentence in usable:
        if (
            found
            and len(found[-1]) < _MAX_TOGETHER
            and (len(sentence.split()) < _MIN_OWN_WORDS or _RE.points_back.match(sentence))
        ):
            found[-1].append(sentence)
        else:
            found.append([sentence])
    return [" ".join(some) for some in found]


def _found(session: _Session, message: Message, content: str, name: str, chance: float) -> Captured:
    if (
        name == "decision"
        and len(content.split()) < _SHORT_ANSWER
        and (offer := _offered(session.answered))
    ):
        content = f"{offer} {content}"
    return captured(content, name, message, before=session.before[-2:], chance=chance)


def captured(
    content: str,
    name: str,
    message: Message,
    *,
    before: Sequence[Message] = (),
    chance: float = 0.8,
) -> Captured:
    """Return a memory of a message, cleaned, with the messages before it as part of its source."""
    quoted = [
        f"{each.role}: {shortened(each.content, _MAX_PREVIOUS)}"
        for each in before
        if not is_output(each.content)
    ]
    cleaned = shortened(_RE.filler.sub("", " ".join(content.split())), _MAX_CONTENT)
    return Captured(
        content=cleaned[:1].upper() + cleaned[1:] if cleaned[1:2].islower() else cleaned,
        memory_type=name,
        confidence_score=round(100 * chance * (1 if message.role == "user" else 0.8)),
        source_chunk=shortened(
            "\n".join([*quoted, f"{message.role}: {message.content}"]), _MAX_CHUNK
        ),
        message=message.number,
        role=message.role,
        entities=tuple(find_entities(message.content)),
    )


def is_grounded(text: str, content: str) -> bool:
    """Return whether most words of a text, as a model wrote it, stand in the message that it
    names."""
    words = topics(text)
    return len(words & topics(content)) >= _GROUNDED * len(words)


def _accepted(session: _Session, text: str) -> str | None:
    """Return the one proposal of the assistant that a message accepts without naming it."""
    if not _RE.accepts.fullmatch(normalized(text)) or not session.answered:
        return None
    proposals = [
        each
        for each in sentences(session.answered)
        if _PHRASES.proposes.search(each) and not each.endswith("?")
    ]
    return proposals[0] if len(proposals) == 1 else None


def _offered(answered: str) -> str:
    """Return the sentence in which the assistant asked for a choice."""
    asked = [sentence for sentence in sentences(answered) if offers(normalized(sentence))]
    return asked[-1] if asked else ""


# --- texts ---


def sentences(text: str) -> list[str]:
    """Return the sentences of a message, without code blocks, quoted lines and marks of lists. A
    few words go with the next, and so does an abbreviation."""
    found: list[str] = []
    for sentence in (
        _RE.bullet.sub("", sentence).strip()
        for sentence in split_sentences(_RE.block.sub("\n", text))
    ):
        few = found and len(found[-1].split()) < MIN_WORDS and not found[-1].endswith("?")
        if (few and why_not(found[-1]) != SMALL_TALK) or (
            found and _RE.abbreviation.search(found[-1])
        ):
            found[-1] += f" {sentence}"
        elif sentence:
            found.append(sentence)
    return found


def _is_recalled(text: str, recalled: Sequence[str]) -> bool:
    words = topics(text)
    return any(
        len(words & topics(line)) >= max(_MIN_SHARED, _SHARED * len(words)) for line in recalled
    )
