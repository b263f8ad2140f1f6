"""Reading the transcripts of Claude Code and opencode as plain messages."""

import json

import pytest

from memory_mesh.core.language.capture import Transcript, recalled_block


def said(role: str, content: object, **more: object) -> dict[str, object]:
    """A line of Claude Code."""
    message = {"role": role, "content": content}
    return {
        "type": role,
        "uuid": "u1",
        "timestamp": "2026-11-01T09:00:00.000Z",
        "sessionId": "s",
        "message": message,
        **more,
    }


def part(kind: str, **more: object) -> dict[str, object]:
    return {"id": "prt_1", "type": kind, **more}


def opencode(role: str, *parts: dict[str, object], **info: object) -> dict[str, object]:
    return {
        "info": {"id": "msg_1", "role": role, "time": {"created": 1_793_523_600_000}, **info},
        "parts": list(parts),
    }


def read(*records: object) -> list[tuple[str, str]]:
    return [
        (one["role"], one["content"])
        for one in Transcript(json.dumps(record) + "\n" for record in records)
    ]


def test_a_message_keeps_its_role_text_id_and_time() -> None:
    expected = {
        "role": "user",
        "content": "Use tabs.",
        "id": "u1",
        "timestamp": "2026-11-01T09:00:00.000Z",
    }
    assert list(Transcript([json.dumps(said("user", "Use tabs."))])) == [expected]
    assert list(Transcript([json.dumps(opencode("user", part("text", text="Use tabs.")))])) == [
        expected | {"id": "msg_1"}
    ]
    assert list(Transcript(['{"role": "user", "content": "Use tabs."}'])) == [
        {"role": "user", "content": "Use tabs."}
    ]


TABLE = [
    (
        "parts",
        [said("assistant", [part("text", text="One."), part("text", text="Two.")])],
        [("assistant", "One.\n\nTwo.")],
    ),
    (
        "thoughts",
        [said("assistant", [part("thinking", thinking="Hm."), part("text", text="Done.")])],
        [("assistant", "Done.")],
    ),
    ("calls", [said("assistant", [part("tool_use", name="Bash", input={"command": "ls"})])], []),
    (
        "results",
        [
            said(
                "user",
                [
                    part("tool_result", tool_use_id="t1", content=[part("text", text="a b")]),
                    part("text", text="Go on."),
                ],
            )
        ],
        [("tool", "a b"), ("user", "Go on.")],
    ),
    (
        "long results",
        [said("user", [part("tool_result", content="x" * 9_000)])],
        [("tool", "x" * 4_000)],
    ),
    ("meta", [said("user", "Caveat", isMeta=True)], []),
    ("subagents", [said("user", "Find the bug in the parser", isSidechain=True)], []),
    ("compacted", [said("user", "This session continues another", isCompactSummary=True)], []),
    (
        "other types",
        [{"type": "summary", "summary": "Tabs"}, {"type": "attachment", "attachment": {}}],
        [],
    ),
    (
        "reminders",
        [said("user", "Use tabs.<system-reminder>Be brief.</system-reminder> Always.")],
        [("user", "Use tabs. Always.")],
    ),
    (
        "commands",
        [said("user", "<command-name>/clear</command-name>\n<command-args></command-args>")],
        [],
    ),
    (
        "interruptions",
        [said("user", [part("text", text="[Request interrupted by user for tool use]")])],
        [],
    ),
    (
        "recalled",
        [said("assistant", f"Tabs.\n{recalled_block('Use spaces.')}\nDone.")],
        [("assistant", "Tabs.\n\nDone.")],
    ),
    ("recalled, cut off", [said("user", recalled_block("Use spaces.")[:-9])], []),
    ("half a surrogate pair", [said("user", "a \ud83d b")], [("user", "a ? b")]),
    ("a NUL", [said("user", "a \0 b")], [("user", "a ? b")]),
    ("no text", [said("user", None), said("user", 5), said("user", [5, part("text", text=5)])], []),
    (
        "unknown role",
        [{"role": "narrator", "content": "Once"}, {"role": ["user"], "content": "Twice"}],
        [],
    ),
    (
        "opencode",
        [
            opencode(
                "assistant",
                part("step-start"),
                part("reasoning", text="Hm."),
                part("text", text="Done."),
                part("text", text="added by a program", synthetic=True),
                part("text", text="not for the model", ignored=True),
                part("tool", callID="c1", state={"status": "completed", "output": "ok"}),
                part("tool", callID="c2", state={"status": "error", "error": "no such file"}),
                part("tool", callID="c3", state={"status": "running"}),
            )
        ],
        [("assistant", "Done."), ("tool", "ok"), ("tool", "no such file")],
    ),
    ("opencode summary", [opencode("assistant", part("text", text="So far …"), summary=True)], []),
    (
        "opencode, odd",
        [
            {"parts": 5},
            {"info": [], "parts": [5, part("text", text="x")]},
            opencode("user", time="x"),
        ],
        [],
    ),
    (
        "one line",
        [{"info": {}, "messages": [opencode("user", part("text", text="A"))]}, [said("user", "B")]],
        [("user", "A"), ("user", "B")],
    ),
]


@pytest.mark.req("LANE-34")
@pytest.mark.parametrize(
    ("records", "messages"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_only_what_the_user_and_the_agent_said_and_the_outputs_of_tools_are_read(
    records: list[object], messages: list[tuple[str, str]]
) -> None:
    assert read(*records) == messages


@pytest.mark.parametrize("indent", [None, 1, 2, 4])
@pytest.mark.parametrize("whole", ["export", "list"])
def test_a_document_of_several_lines_is_read_element_by_element(
    whole: str, indent: int | None
) -> None:
    diffs = {"diffs": [{"file": "a.py", "before": "{\n", "after": "    {\n    }\n"}]}
    messages = [
        opencode("user", part("text", text=f"{n} {{\n    {{\n  }}"), summary=diffs)
        for n in range(3)
    ]
    document = {
        "info": {"id": "ses_1", "summary": diffs},
        "messages": messages,
        "todos": [{"content": "x"}],
    }
    text = "\ufeff" + json.dumps(document if whole == "export" else messages, indent=indent)
    transcript = Transcript(text.splitlines(keepends=True))
    assert [one["content"][0] for one in transcript] == ["0", "1", "2"]
    assert transcript.skipped == 0
    cut = Transcript(text[: text.rindex('"2 {') + 9].splitlines())
    assert [one["content"][0] for one in cut] == (["0", "1"] if indent else [])
    assert cut.skipped == 1


@pytest.mark.req("LANE-34")
def test_what_cannot_be_read_is_skipped_and_counted() -> None:
    good = json.dumps(said("user", "Use tabs."))
    broken = [
        "{",
        "nonsense",
        "5",
        '"text"',
        "[" * 100_000,
        '{"type": "user"}',
        '{"n": ' + "9" * 5_000 + "}",
        good[:-20],
    ]
    transcript = Transcript([good, "", " \n", *broken[1:], good, good[:30]])
    assert [one["content"] for one in transcript] == ["Use tabs."] * 2
    assert transcript.skipped == len(broken[1:]) + 1
    assert list(Transcript([])) == []


def test_a_message_of_many_lines_is_read_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    messages = [
        opencode("user", part("text", text="A")),
        opencode("user", part("text", text="B" * 400)),
    ]
    lines = json.dumps(messages, indent=1).splitlines()
    assert len(list(Transcript(lines))) == 2
    monkeypatch.setattr("memory_mesh.core.language.capture.transcripts._MAX_RECORD_CHARS", 300)
    transcript = Transcript(lines)
    assert [one["content"] for one in transcript] == ["A"]
    assert transcript.skipped == 1
