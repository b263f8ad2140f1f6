"""What every answer of a language model has to hold, whatever the protocol that it came by."""

from memory_mesh.core.errors import AnswerUnreadable
from memory_mesh.core.model.columns import Json
from memory_mesh.core.ports import Prompt, Reply, Tokens
from memory_mesh.core.text import estimate

_MOST_TOKENS = 10**9  # no model reads or writes more in one call; a server that says so is wrong


def reply_of(text: str, prompt: Prompt, model: str, *, cut: bool, sent: int | None, received: int | None) -> Reply:
    """The reply, if there is anything in it. What the server did not count is estimated."""
    if not text.strip():
        raise unreadable(model, "it was cut off before it said anything" if cut else "it says nothing")
    tokens = Tokens(
        estimate(prompt.system) + estimate(prompt.user) if sent is None else sent,
        estimate(text) if received is None else received,
    )
    return Reply(text=whole_characters(text), model=model, tokens=tokens, complete=not cut)


def unreadable(model: str, why: str) -> AnswerUnreadable:
    """The error for an answer of no use; it quotes nothing, for an answer may hold what is private."""
    remedy = "try again, raise the limit on tokens, or choose another model"
    return AnswerUnreadable(f"the answer of {model} cannot be used: {why}", expected="a text", remedy=remedy)


def counted(usage: Json, name: str) -> int | None:
    """A number of tokens as a server says it; None where it says none that can be true."""
    said = usage.get(name) if isinstance(usage, dict) else None
    # A truth value is a whole number to Python. Nothing is not true either: there is no empty request, and no empty answer.
    return said if isinstance(said, int) and not isinstance(said, bool) and 1 <= said <= _MOST_TOKENS else None


def whole_characters(text: str) -> str:
    """A text without halves of characters, which JSON can spell and nothing can write down."""
    return text.encode(errors="replace").decode()
