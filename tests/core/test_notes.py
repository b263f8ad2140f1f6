"""Notes without files: patterns, frontmatter and sections, points, and the text of a prompt."""

import json
import re
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory_mesh.core.errors import InvalidInput
from memory_mesh.core.model import millis
from memory_mesh.core.notes import (
    IMPORTANCES,
    SEPARATOR,
    Fault,
    MatchContext,
    Note,
    file_name,
    find_relevant,
    format_for_prompt,
    matching_pattern,
    rate,
    read_sections,
    truncated,
)

STRUCTURE = """---
title: "Authentication Module Structure"
whenToUse:
  - "auth|authentication|login|security"
  - "When implementing security features"
tags: [auth, codebase-structure, important]
importance: high
discoveredAt: 2026-01-23T10:30:00Z
discoveredBy: planner
discoveredIn: "Task: Implement user authentication"
---

# Authentication Module Structure

One-sentence summary.
"""
LAYOUT = """---
title: "Project File Organization"
whenToUse:
  - "exploring|navigate|find.*file"
  - "When understanding project structure"
tags: [structure, codebase, important]
importance: critical
discoveredAt: 2026-01-23T10:30:00Z
discoveredBy: planner
---

# Project File Organization

```
├── src/
│   ├── api/          # HTTP endpoints
└── package.json
```
"""
OAUTH = """---
title: "OAuth2 Integration Was Too Broad"
whenToUse: ["oauth|social.*auth", "considering auth approaches"]
tags: [failures, auth, scope]
importance: high
discoveredAt: 2026-01-23T10:45:00Z
discoveredBy: developer
---

# Why OAuth2 Was Rejected
"""
MIDDLEWARE = """---
title: "Express Middleware Pattern"
whenToUse: ["middleware|interceptor", "writing Express handlers"]
tags: [patterns, conventions, express]
importance: high
discoveredAt: 2026-01-23T10:40:00Z
discoveredBy: developer
---

```typescript
export function middlewareName(req, res, next) {
  try {
    return res.status(401).json({ error: "Unauthorized" });
  }
}
```
"""
NOW = millis("2026-01-24T00:00:00Z")


def note_of(text: str) -> Note:
    """The only note of a text without faults."""
    (note,) = read_sections("n.md", text)
    assert isinstance(note, Note)
    return note


def with_lines(*lines: str) -> str:
    """The text of a note with more lines in its frontmatter."""
    return STRUCTURE.replace("importance: high", "\n".join(["importance: high", *lines]))


def made(title: str = "A title", **values: object) -> Note:
    given: dict[str, object] = {
        "when_to_use": ("auth",), "importance": "low", "discovered_at": "2020-01-01T00:00:00.000Z",
        "discovered_by": "planner", **values,
    }  # fmt: skip
    return Note(title=title, **given)  # type: ignore[arg-type]


def matches(pattern: str, text: str) -> bool:
    return matching_pattern([pattern], text) is not None


# --- patterns ---


@pytest.mark.req(
    "NOTE-39",
    "NOTE-40",
    "NOTE-41",
    "NOTE-42",
    "NOTE-44",
    "NOTE-45",
    "NOTE-46",
    "NOTE-47",
    "NOTE-48",
)
@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("auth|login|security", "add login page", True),
        ("auth|login|security", "add user page", False),
        ("implement.*auth", "implement authentication", True),
        ("implement.*auth", "auth module", False), ("implement.*auth", "implementauth", True),
        ("implement.*auth", "auth to implement", False), ("LOG*Page", "the login page", True),
        ("ogi", "login", True), ("implement*auth", "please implement the auth", True),
        ("When implementing security", "security features task", True),
        ("When implementing security", "database task", False),
        ("  LOGIN  ", "Add Login Page", True), ("auth|", "any task", False),
        ("|", "any task", False), ("", "any", False), ("  OGI  ", "LOGIN", True),
        ("log*page", "The LOGIN Page", True), ("auth|OGI", "Add LOGIN", True),
        (" | login ", "login", True), ("social.*auth|sso", "add social google auth", True),
        ("a*b|c", "xxc", True), ("*.md file(", "read the x.md file(s)", True),
        ("*.md file(", "read the xmd file", False), ("[a-z]+", "abc", False), ("a.c", "abc", False),
        ("*", "anything", True), ("login page", "the login page", True),
        ("When task mentions authentication", "fix authentication of users", True),
        ("when task mentions", "a task", False),
        ("considering auth approaches", "consider an approach to auth", True),
        ("considering auth approaches", "auth", False),
    ],
)  # fmt: skip
def test_patterns(pattern: str, text: str, expected: bool) -> None:
    assert matches(pattern, text) is expected


@pytest.mark.req("NOTE-45")
def test_a_plain_pattern_also_matches_when_it_is_close_to_the_task() -> None:
    assert matching_pattern(
        ["Storing invoices"], "bill the customer", lambda pattern: pattern == "Storing invoices"
    )
    for pattern in ("Storing*", "invoice|storing", "alpha"):
        assert matching_pattern([pattern], "bill the customer", lambda pattern: True) is None


@pytest.mark.req("NOTE-43")
@given(
    st.text(alphabet="a*.|()[]{}+?^$\\ \n", max_size=40), st.text(alphabet="ab.( \n日", max_size=40)
)
def test_no_pattern_can_fail(pattern: str, text: str) -> None:
    try:
        matches(pattern, text)
    except re.error as error:
        pytest.fail(f"{pattern!r}: {error}")


@pytest.mark.req("NOTE-43")
def test_no_pattern_takes_long() -> None:
    begun = time.process_time()
    assert not matches("a*" * 500 + "b", "a" * 100_000)
    assert not matches("|".join(["x" * 50] * 500), "x" * 49 + "y" * 100_000)
    assert time.process_time() - begun < 5  # a regular expression would take years


# --- files ---


@pytest.mark.req("NOTE-05", "NOTE-06", "NOTE-07")
def test_the_example_has_all_its_fields() -> None:
    note = note_of(STRUCTURE)
    assert (note.title, note.importance, note.discovered_by) == (
        "Authentication Module Structure",
        "high",
        "planner",
    )
    assert note.when_to_use == (
        "auth|authentication|login|security",
        "When implementing security features",
    )
    assert note.tags == ("auth", "codebase-structure", "important")
    assert (note.discovered_at, note.discovered_in) == (
        "2026-01-23T10:30:00.000Z",
        "Task: Implement user authentication",
    )
    assert note.content == "# Authentication Module Structure\n\nOne-sentence summary."
    more = note_of(
        STRUCTURE.replace("importance", "source: docs\nrelatedMemories: [a.md, b.md]\nimportance")
    )
    assert (more.source, more.related_memories) == ("docs", ("a.md", "b.md"))


@pytest.mark.req("NOTE-49", "NOTE-50", "NOTE-51")
def test_the_three_examples_of_the_document() -> None:
    layout, oauth, middleware = map(note_of, (LAYOUT, OAUTH, MIDDLEWARE))
    assert (layout.importance, layout.discovered_by, layout.tags) == (
        "critical",
        "planner",
        ("structure", "codebase", "important"),
    )
    assert layout.content in LAYOUT
    assert (
        (oauth.importance, oauth.discovered_by)
        == (middleware.importance, middleware.discovered_by)
        == ("high", "developer")
    )
    assert '    return res.status(401).json({ error: "Unauthorized" });\n' in middleware.content
    tasks = {
        "find the file": layout,
        "add social google auth": oauth,
        "write logging middleware": middleware,
    }
    for task, note in tasks.items():
        assert matching_pattern(note.when_to_use, task) == note.when_to_use[0]


@pytest.mark.req("NOTE-09")
@pytest.mark.parametrize(
    "text",
    [
        STRUCTURE.replace("\n", "\r\n"), "\ufeff" + STRUCTURE, STRUCTURE.replace("T10:30:00Z", ""),
        STRUCTURE.replace("T10:30:00Z", " 10:30:00"),
        STRUCTURE.replace("importance", "# a comment\nimportance"),
    ],
)  # fmt: skip
def test_files_of_other_editors_are_read(text: str) -> None:
    note = note_of(text)
    assert note.title == "Authentication Module Structure"
    assert note.discovered_at.startswith("2026-01-23T")


@pytest.mark.req("NOTE-40")
def test_one_pattern_may_be_a_text() -> None:
    assert matching_pattern(["one", "two"], "number two") == "two"
    assert note_of(
        OAUTH.replace('["oauth|social.*auth", "considering auth approaches"]', "oauth|sso")
    ).when_to_use == ("oauth|sso",)


@pytest.mark.req("NOTE-06", "NOTE-08", "NOTE-10")
@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ("# no frontmatter", 1, "there is no frontmatter; expected --- on the first line"),
        ("", 1, "there is no frontmatter"),
        ("---\ntitle: x\n", 1, "the frontmatter has no end"),
        (
            STRUCTURE.replace("importance: high", "importance: urgent"),
            1,
            "expected one of low, medium, high, critical",
        ),
        (
            STRUCTURE.replace("importance: high", "importance: High"),
            1,
            "expected one of low, medium, high, critical",
        ),
        (STRUCTURE.replace('title: "', 'name: "'), 1, "title missing in the frontmatter"),
        (STRUCTURE.replace("whenToUse:", "when:"), 1, "whenToUse missing in the frontmatter"),
        (STRUCTURE.replace("tags: [", "labels: ["), 1, "tags missing in the frontmatter"),
        (STRUCTURE.replace("discoveredAt:", "at:"), 1, "discoveredAt missing in the frontmatter"),
        (STRUCTURE.replace("importance: high\n", ""), 1, "importance missing in the frontmatter"),
        (
            STRUCTURE.replace("discoveredBy: planner\n", ""),
            1,
            "discoveredBy missing in the frontmatter",
        ),
        (
            STRUCTURE.replace("[auth, codebase-structure, important]", "[auth"),
            1,
            "not valid YAML, line 7",
        ),
        (
            with_lines(
                "a: &a [b, c]",
                *(
                    f"{name}: &{name} [{', '.join(['*' + before] * 30)}]"
                    for before, name in pairwise("abcdef")
                ),
            ),
            1,
            "repeats its parts too often",
        ),
        (with_lines("a: &a [b, *a]"), 1, "the frontmatter"),
        (with_lines("a: " + "[" * 101 + "]" * 101), 1, "not valid YAML"),
        (with_lines("claim: {subject: api, value: 1}"), 1, "claim.predicate"),
        (with_lines("claim: [a]"), 1, "claim is ['a']"),
        (with_lines("claim: {subject: [a], predicate: b, value: 1}"), 1, "claim.subject"),
        (
            with_lines("claim: {subject: a, predicate: b, value: 1, exclusive: perhaps}"),
            1,
            "exclusive is 'perhaps'",
        ),
        (with_lines("validFrom: 2026-03-01", "validUntil: 2026-02-01"), 1, "is before validFrom"),
        (
            STRUCTURE.replace("2026-01-23T10:30:00Z", "yesterday"),
            1,
            "discoveredAt 'yesterday' is not a time",
        ),
        (
            STRUCTURE.replace("[auth, codebase-structure, important]", "auth"),
            1,
            "tags is not a list of texts",
        ),
        (
            STRUCTURE.replace('"Authentication Module Structure"', "[a]"),
            1,
            "title is a list; expected text",
        ),
        ("\n\n" + STRUCTURE.replace("planner", "{a: b}"), 3, "discoveredBy is a dict"),
    ],
)
def test_what_is_wrong_is_named_with_its_line(text: str, line: int, what: str) -> None:
    (fault,) = read_sections("n.md", text)
    assert isinstance(fault, Fault)
    assert (fault.file, fault.line, fault.warning) == ("n.md", line, False)
    assert what in fault.what


def test_each_of_many_sections_knows_its_line() -> None:
    text = SEPARATOR.join(["---\na: b\n---\n\nText."] * 50)
    lines = [each.line for each in read_sections("n.md", text)]
    assert lines == [*range(1, 50 * 8, 8)]


def test_a_claim_that_does_not_exclude_others_is_read_and_written() -> None:
    note = note_of(with_lines("claim: {subject: api, predicate: port, value: 8080, exclusive: no}"))
    assert note.claim == {
        "subject": "api",
        "predicate": "port",
        "value": "8080",
        "exclusive": False,
    }
    assert note_of(note.text).claim == note.claim


@pytest.mark.req("NOTE-11")
def test_a_long_note_is_used_with_a_warning() -> None:
    note, warning = read_sections("n.md", STRUCTURE + "word " * 2001)
    assert isinstance(note, Note)
    assert isinstance(warning, Fault)
    assert warning.warning
    assert "expected at most 2,000" in warning.what


@pytest.mark.req("NOTE-23", "NOTE-10")
def test_each_section_is_a_note_of_its_own_and_a_wrong_one_spoils_no_other() -> None:
    wrong = OAUTH.replace("importance: high", "importance: none")
    with_line = STRUCTURE + "\n---\n\nBelow a line across the page.\n"
    sections = list(read_sections("n.md", with_line + SEPARATOR + wrong + SEPARATOR + LAYOUT))
    assert [type(each).__name__ for each in sections] == ["Note", "Fault", "Note"]
    first, fault, last = sections
    assert isinstance(first, Note)
    assert isinstance(fault, Fault)
    assert isinstance(last, Note)
    assert first.content.endswith("Below a line across the page.")
    lines = (with_line + SEPARATOR + wrong + SEPARATOR + LAYOUT).split("\n")
    assert lines[fault.line] == 'title: "OAuth2 Integration Was Too Broad"'
    assert lines[last.line] == 'title: "Project File Organization"'
    assert (first.section, last.section) == (0, 2)


# What YAML and Markdown give a meaning to, and characters that are not displayed.
TEXTS = st.text(
    alphabet="aB9 :#'\"-[]{}é日😀\\,&*!|>%@`~\u2028\x85\ufeff", min_size=1, max_size=12
).map(lambda text: f"x{text}y")


@pytest.mark.req("NOTE-20")
@given(
    st.builds(
        made, TEXTS, when_to_use=st.lists(TEXTS, min_size=1, max_size=3).map(tuple),
        tags=st.lists(TEXTS, max_size=3).map(tuple), importance=st.sampled_from(IMPORTANCES),
        discovered_by=TEXTS, discovered_in=st.none() | TEXTS, source=st.none() | TEXTS,
        related_memories=st.lists(TEXTS, max_size=2).map(tuple), deprecated=st.booleans(),
        content=TEXTS, valid_until=st.none() | st.just("2027-01-01T00:00:00.000Z"),
    )
)  # fmt: skip
def test_what_is_written_is_read_again(note: Note) -> None:
    (again,) = read_sections("", note.text)
    assert again == note
    assert isinstance(again, Note)
    assert again.text == note.text


@pytest.mark.req("NOTE-11", "NOTE-20", "NOTE-22")
@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Authentication Module Structure", "authentication-module-structure.md"),
        ("OAuth2: too broad!", "oauth2-too-broad.md"), ("../../etc/passwd", "etc-passwd.md"),
        ("C:\\Windows", "c-windows.md"), ("Größe", "grosse.md"), ("CON", "note-con.md"),
        ("設計メモ", "設計メモ.md"), ("!!!", "note-e84c538e.md"), ("..", "note-5ec1f7e7.md"),
    ],
)  # fmt: skip
def test_the_name_of_a_file_is_the_title_in_kebab_case(title: str, name: str) -> None:
    assert file_name(title) == name


@pytest.mark.req("NOTE-22")
@given(st.text(max_size=300))
def test_every_title_gives_a_usable_name(title: str) -> None:
    name = file_name(title)
    assert 3 < len(name.encode("utf-8", "replace")) < 140
    assert not {"/", "\\", "\0", ":", "*"} & {*name}
    assert not name.startswith((".", "-"))


# --- relevance ---


@pytest.mark.req("NOTE-29", "NOTE-34")
def test_importance_gives_5_to_30_points() -> None:
    ratings = [rate(made(importance=each), MatchContext(task="x"), ms=NOW) for each in IMPORTANCES]
    assert [rating.score for rating in ratings] == [5, 15, 25, 30]


@pytest.mark.req("NOTE-30", "NOTE-54")
@pytest.mark.parametrize(
    ("hours", "points"), [(0, 10), (23.9, 10), (24, 5), (71.9, 5), (72, 0), (50_000, 0), (-5, 10)]
)
def test_recent_notes_get_points(hours: float, points: int) -> None:
    at = (datetime(2026, 1, 24, tzinfo=UTC) - timedelta(hours=hours)).isoformat()
    assert rate(made(discovered_at=at), MatchContext(task="x"), ms=NOW).recency == points


@pytest.mark.req("NOTE-31")
@pytest.mark.parametrize(
    ("task", "points"),
    [
        ("Fix the login", 5), ("fix LOGIN login", 5), ("log a fix", 0),
        ("login pages broken users", 10), ("auth module structure login pages again", 20),
        ("authenticate", 0),
    ],
)  # fmt: skip
def test_long_words_of_the_task_in_the_title_give_points(task: str, points: int) -> None:
    note = made("Login pages of the auth module, and their structure")
    assert rate(note, MatchContext(task=task), ms=NOW).keyword == points


@pytest.mark.req("NOTE-32", "NOTE-33", "NOTE-34")
def test_shared_tags_and_the_same_discoverer_give_points() -> None:
    note = made(
        "Login pages auth structure",
        tags=("a", "b", "c", "d"),
        importance="critical",
        discovered_at="2026-01-24T00:00:00Z",
    )
    for tags, points in (((), 0), (("A",), 5), (("a", "b", "x"), 10), (("a", "b", "c", "d"), 15)):
        assert rate(note, MatchContext(task="x"), ms=NOW, specialty=tags).specialty == points
    best = MatchContext(task="login pages auth structure", agent_name="planner")
    assert rate(note, best, ms=NOW, specialty="abcd").score == 85
    assert rate(note, MatchContext(task="x", agent_name="other"), ms=NOW).discoverer == 0


@pytest.mark.req("NOTE-03", "NOTE-25", "NOTE-26", "NOTE-27")
def test_matching_notes_are_ordered_by_their_points_and_cut() -> None:
    notes = [made(f"note {number}", importance=IMPORTANCES[number % 4]) for number in range(8)]
    notes.append(made("other", importance="critical", when_to_use=("database",)))
    context = MatchContext(task="auth")
    found = [each.note.title for each in find_relevant(notes, context, ms=NOW)]
    assert found == ["note 3", "note 7", "note 2", "note 6", "note 1"]
    assert [each.note.title for each in find_relevant(notes, context, ms=NOW, max_notes=1)] == [
        "note 3"
    ]
    equal = [made(title) for title in ("b", "c", "a")]
    assert [each.note.title for each in find_relevant(equal, context, ms=NOW)] == ["b", "c", "a"]
    high = find_relevant(notes, context, ms=NOW, max_notes=None, min_importance="high")
    assert {each.note.importance for each in high} == {"high", "critical"}
    assert len(find_relevant(notes, context, ms=NOW, max_notes=None)) == 8
    for other in (
        MatchContext(task="x", agent_name="auth-bot"),
        MatchContext(task="x", current_plan="do auth"),
    ):
        assert len(find_relevant(notes, other, ms=NOW, max_notes=None)) == 8
    with pytest.raises(InvalidInput, match="expected one of low"):
        find_relevant(notes, context, ms=NOW, min_importance="urgent")


# --- the prompt ---


@pytest.mark.req("NOTE-01", "NOTE-35")
def test_the_prompt_has_the_shape_of_the_document() -> None:
    assert format_for_prompt([]) == ""
    assert format_for_prompt([note_of(OAUTH), made(content="Text.")]) == (
        "## Background Knowledge from Previous Runs\n\n"
        "### OAuth2 Integration Was Too Broad\n*Importance: HIGH*\n*Discovered by: developer*\n\n"
        "# Why OAuth2 Was Rejected\n\n### A title\n*Importance: LOW*\n*Discovered by: "
        "planner*\n\nText.\n\n"
    )


@pytest.mark.req("NOTE-36")
@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("x" * 500, "x" * 500), ("x" * 501, "x" * 500 + "..."),
        ("y" * 300 + "\n\n" + "z " * 200, "y" * 300 + "..."),
        ("y" * 100 + "\n\n" + "z " * 250, "y" * 100 + "\n\n" + ("z " * 199).strip() + "..."),
    ],
)  # fmt: skip
def test_a_long_content_is_cut_after_a_paragraph_or_a_word(content: str, expected: str) -> None:
    assert truncated(content) == expected


@pytest.mark.req("NOTE-37")
def test_a_budget_leaves_out_the_last_notes_first() -> None:
    notes = [made(str(number), content="word " * 20) for number in range(3)]
    whole = format_for_prompt(notes)
    assert format_for_prompt(notes, max_tokens=len(whole)) == whole
    assert format_for_prompt(notes, max_tokens=len(whole) - 1) == format_for_prompt(notes[:2])
    assert format_for_prompt(notes, max_tokens=10) == ""


# --- two hundred notes as people write them ---


def written(random: Random) -> str:
    """A note in one of the forms that people use: quotes or none, lists of both kinds, dates,
    comments, and keys of their own."""
    words = [
        "auth",
        "login: twice",
        "C# & more",
        "日本",
        "it's",
        'a "b"',
        "x|y",
        "find.*file",
        "- dash",
        "100 %",
        "no",
        "2026-01-01",
    ]
    some = [json.dumps(random.choice(words), ensure_ascii=False) for _ in range(3)]
    keys = [
        f"title: {some[0]}",
        random.choice(
            [
                "whenToUse: [{}, {}]",
                "whenToUse:\n  - {}\n  - {}  # when it matters",
                "whenToUse: {}",
            ]
        ).format(*some[1:]),
        random.choice(["tags: []", "tags: [a, b c]", f"tags:\n  - {some[1]}"]),
        f"importance: {random.choice(IMPORTANCES)}",
        (
            "discoveredAt: "
            f"2026-01-23{random.choice(['', 'T10:30:00Z', ' 10:30:00', 'T10:30:00+02:00'])}"
        ),
        f"discoveredBy: {some[2]}",
    ]
    more = [
        "discoveredIn: a task", "source: https://x.example/a?b=c#d", "relatedMemories: [other.md]",
        "deprecated: true", "validUntil: 2027-01-01", "claim: {subject: a, predicate: b, value: 3}",
        "owner: 'me: too'", "levels: [1, {a: b}]",
    ]  # fmt: skip
    keys += random.sample(more, random.randrange(4))
    random.shuffle(keys)
    body = random.choice(
        [
            "Plain text.",
            "# Heading\n\n- a\n\n---\n\nbelow a line",
            "```py\ndef f():\n    return '---'\n```",
            "日本 \u2028 é",
        ]
    )
    return "\n".join(["---", *keys, "---", "", body, ""])


@pytest.mark.req("NOTE-20", "NOTE-23")
def test_two_hundred_notes_are_parsed_written_and_parsed_again_without_a_loss() -> None:
    random = Random(18)  # noqa: S311  (the same notes in every run)
    texts = [written(random) for _ in range(200)]
    assert len({*texts}) == 200
    # Four sections in each file, some with the line ends of Windows and a mark at the beginning.
    for at in range(0, 200, 4):
        file = SEPARATOR.join(texts[at : at + 4])
        file = "\ufeff" + file.replace("\n", "\r\n") if at % 8 else file
        first = [one for one in read_sections("n.md", file) if isinstance(one, Note)]
        for text, note in zip(texts[at : at + 4], first, strict=True):
            assert f"title: {json.dumps(note.title, ensure_ascii=False)}\n" in text
            assert note.other.keys() == {key for key in ("owner", "levels") if f"\n{key}:" in text}
        new = SEPARATOR.join(note.text for note in first)
        second = [one for one in read_sections("n.md", new) if isinstance(one, Note)]
        assert [replace(note, line=0) for note in second] == [
            replace(note, line=0) for note in first
        ]
        assert SEPARATOR.join(note.text for note in second) == new
