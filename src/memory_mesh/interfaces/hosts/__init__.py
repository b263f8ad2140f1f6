"""Coding agents that use the memory through hooks: what they call, and how hooks are installed."""

# What each host calls: the name of its event, and the word of the command line.
EVENTS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "user-prompt-submit",
    "Stop": "stop",
    "SessionEnd": "session-end",
}
