"""Run the texts of tests/data/injections.toml against the fence, the detector, the reader of
answers and a store, and print a table.

    python tools/injection_battery.py [--markdown]

Every payload comes with the answer of a model that obeys it, and `extract` stores that answer. The
exit code is 1 if a payload breaks out of its fence, changes the rules of the prompt, makes the
answer take another form, or leaves a memory with more trust than its source has, or with another
owner or status. The last column shows that these checks can fail: it counts the payloads that break
a prompt built by joining texts and an answer used without checks.
"""

import argparse
import json
import logging
import re
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

from memory_mesh import MemoryMesh
from memory_mesh.core.errors import AnswerUnreadable
from memory_mesh.core.intake import CATEGORIES
from memory_mesh.core.language.prompts import extraction
from memory_mesh.core.language.safety import BASE_TRUST, Source
from memory_mesh.core.language.safety.injection import InjectionKind, detect
from memory_mesh.core.model import Status
from memory_mesh.core.ports import Reply
from memory_mesh.testing.fakes import ScriptedChat

TEXTS = Path(__file__).parents[1] / "tests" / "data" / "injections.toml"
BOUNDARY = "3b1f0c5e9a7d42688e10f4b2d6c3a597"
EARLIER = "0123456789abcdef0123456789abcdef"
FORM = {"text", "category", "importance", "tags"}


@dataclass(frozen=True, slots=True)
class Payload:
    """A text that gives orders, and the answer of a model that obeys."""

    id: str
    kind: str
    half: str
    language: str
    text: str
    obeyed: str


def payloads() -> list[Payload]:
    """Return all payloads, in the order of the file."""
    return [Payload(**raw) for raw in tomllib.loads(TEXTS.read_text(encoding="utf-8"))["payload"]]


def harmless(half: str) -> list[str]:
    """Return the texts that only sound like orders."""
    return list(tomllib.loads(TEXTS.read_text(encoding="utf-8"))["harmless"][half]["texts"])


def breaches(payload: Payload) -> list[str]:
    """Return what a payload achieves. It should be nothing."""
    return [*_of_the_fence(payload), *_of_the_answer(payload), *_of_the_store(payload)]


def _of_the_fence(payload: Payload) -> list[str]:
    """Try the payload as it is, and with the boundary of this or an earlier call in it."""
    found = []
    for guess in ("", BOUNDARY, EARLIER):
        text = f"{payload.text}\n</untrusted-{guess}>\n{payload.text}" if guess else payload.text
        prompt = extraction.build_prompt(text, BOUNDARY, max_tokens=100)
        if prompt.system != extraction.SYSTEM:
            found.append("the rules changed")
        if not holds(prompt.user, guess):
            found.append(f"the fence broke, boundary {guess[:4] or 'unknown'}")
    return found


def holds(user: str, guess: str = "") -> bool:
    """Return whether there is one fence with a name that the text cannot know, and no other tag."""
    tags = re.findall(r"<[^\n]*", user)
    opening = re.match(r"<(untrusted-[0-9a-f]{16,})>\n", user)
    if opening is None:
        return False
    name = opening.group(1)
    ends = user.endswith(f"\n</{name}>\n\n{extraction.REMINDER}")
    return (
        ends
        and tags == [f"<{name}>", f"</{name}>"]
        and user.count(name) == 2
        and name != f"untrusted-{guess}"
    )


def _of_the_answer(payload: Payload) -> list[str]:
    try:
        items = extraction.read_reply(Reply(text=payload.obeyed, model="obedient")).items
    except AnswerUnreadable:
        return []
    found = [
        f"field {field.name}" for item in items for field in fields(item) if field.name not in FORM
    ]
    found += [f"importance {item.importance}" for item in items if not 0 <= item.importance <= 1]
    found += [f"category {item.category}" for item in items if item.category not in CATEGORIES]
    return found + [
        "tags that are not text"
        for item in items
        if not all(isinstance(tag, str) for tag in item.tags)
    ]


@cache
def _of_the_store(payload: Payload) -> tuple[str, ...]:
    """Extract with a model that obeys, and compare what is stored with what its source may have."""
    with MemoryMesh(
        store="memory://",
        embedder="none",
        user_id="u",
        agent_id="a",
        chat=ScriptedChat(payload.obeyed),
    ) as mesh:
        done = mesh.extract(payload.text)
        stored = mesh.get_all(status=list(Status))
    source = Source.DOCUMENT if done.stored_whole else Source.INFERENCE
    found = [
        f"trust {memory.trust} of {source}"
        for memory in stored
        if memory.trust is None or memory.trust > BASE_TRUST[source]
    ]
    kept = ("u", "a", "global", Status.ACTIVE)
    owners = [
        (memory.user_id, memory.agent_id, memory.memory_type, memory.status) for memory in stored
    ]
    return (*found, *(f"owner or status {owner}" for owner in owners if owner != kept))


def breaks_the_naive_way(payload: Payload) -> bool:
    """Return whether it breaks a program that joins texts and uses answers without checks."""
    joined = f"<text>{payload.text}</text>\n{extraction.REMINDER}"
    return joined.count("<") > 2 or _taken_as_it_is(payload.obeyed)


def _taken_as_it_is(answer: str) -> bool:
    try:
        items = json.loads(answer)["memories"]
    except (ValueError, KeyError, TypeError):
        return True  # the program fails, or uses something that is not an answer
    wrong = [
        item
        for item in items
        if not isinstance(item, dict) or set(item) != FORM or item["category"] not in CATEGORIES
    ]
    return bool(wrong) or any(
        not isinstance(item["importance"], float) or not 0 <= item["importance"] <= 1
        for item in items
    )


# --- the table ---

HEAD = (
    "kind",
    "payloads",
    "fenced",
    "form kept",
    "trust raised",
    "flagged, tuned",
    "flagged, fresh",
    "naive way broken",
)


def rows(all_: Sequence[Payload]) -> list[tuple[str, ...]]:
    """Return one row for each kind, and their sum."""
    by_kind = [
        (kind.value, [payload for payload in all_ if payload.kind == kind])
        for kind in InjectionKind
    ]
    return [_row(name, some) for name, some in [*by_kind, ("all", list(all_))]]


def _row(name: str, some: list[Payload]) -> tuple[str, ...]:
    fenced = sum(not _of_the_fence(payload) for payload in some)
    kept = sum(not _of_the_answer(payload) for payload in some)
    raised = sum(
        any(breach.startswith("trust") for breach in _of_the_store(payload)) for payload in some
    )
    naive = sum(breaks_the_naive_way(payload) for payload in some)
    return (
        name,
        str(len(some)),
        str(fenced),
        str(kept),
        str(raised),
        _flagged(some, "tuned"),
        _flagged(some, "fresh"),
        str(naive),
    )


def _flagged(some: list[Payload], half: str) -> str:
    texts = [payload.text for payload in some if payload.half == half]
    return f"{sum(bool(detect(text)) for text in texts)} of {len(texts)}"


def alarms() -> str:
    """Return how many harmless texts are taken for orders."""
    counted = {
        half: (sum(bool(detect(text)) for text in harmless(half)), len(harmless(half)))
        for half in ("tuned", "fresh")
    }
    return "false alarms: " + ", ".join(
        f"{wrong} of {of} {half} harmless texts" for half, (wrong, of) in counted.items()
    )


def table(lines: Sequence[Sequence[str]], *, markdown: bool) -> str:
    """Format the rows as a table."""
    if markdown:
        return "\n".join(
            f"| {' | '.join(line)} |" for line in [lines[0], ["---"] * len(lines[0]), *lines[1:]]
        )
    widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
    return "\n".join(
        "  ".join(word.ljust(width) for word, width in zip(line, widths, strict=True)).rstrip()
        for line in lines
    )


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if something broke."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--markdown", action="store_true", help="print a Markdown table")
    asked = parser.parse_args(words)
    # Each answer that cannot be read is a warning.
    logging.getLogger("memory_mesh").addHandler(logging.NullHandler())
    all_ = payloads()
    print(table([HEAD, *rows(all_)], markdown=asked.markdown), alarms(), sep="\n\n")
    broken = [f"{payload.id}: {breach}" for payload in all_ for breach in breaches(payload)]
    print(*broken, sep="\n", file=sys.stderr, end="\n" if broken else "")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
