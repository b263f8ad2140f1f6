"""Coding agents that use the memory through hooks: what they call, and how hooks are installed."""

# What each host calls: the name of its event, and the word of the command line.
EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "Stop": "stop",
    "SessionEnd": "session-end",
}
RECALL = ("session-start", "user-prompt-submit")  # the events that memories are added to


def is_hook(words: list[str]) -> bool:
    """Return whether the words of a command line are those of a hook, which never fails."""
    return words[:1] == ["host"] and words[1:2] not in (["status"], ["stop"])
