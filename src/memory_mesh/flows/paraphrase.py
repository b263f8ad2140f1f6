"""Questions of an evaluation that a language model writes, in other words than the memories that answer them."""

from collections.abc import Sequence

from memory_mesh.core.errors import AnswerUnreadable, BudgetSpent, CallError
from memory_mesh.core.intake import normal_text
from memory_mesh.core.model import Memory, batches
from memory_mesh.core.prompts import question as prompt
from memory_mesh.core.safety.injection import detect
from memory_mesh.flows.context import Context

_AT_ONCE = 10
_CHARS_PER_TOKEN = 4
_MAX_CHARS = 10_000  # of a memory; a question needs no more, and the evaluation has looked for secrets in these
_OLDER = "questions by rules, because the store is that of an earlier version, and counting a call of the model would upgrade it"


def paraphrased(context: Context, memories: Sequence[Memory]) -> tuple[dict[str, str], str]:
    """Return the questions that the model wrote, by the id of the memory, and why the others have none.

    Without a model there are none. After a failure the model is not asked again: a spent budget or a server that is down would
    fail for every batch.
    """
    found: dict[str, str] = {}
    if context.chat is None or not memories:
        return found, ""
    if not context.file.is_prepared():
        return found, _OLDER
    room = min(_CHARS_PER_TOKEN * context.options.llm_input_tokens // _AT_ONCE, _MAX_CHARS)
    for batch in batches(memories, _AT_ONCE):
        texts = [memory.content[:room] for memory in batch]
        asked = prompt.build_prompt(texts, context.ids.salt(), max_tokens=context.options.answer_tokens)
        try:
            questions = prompt.read_reply(context.chat.reply(asked), len(batch))
        except (CallError, BudgetSpent, AnswerUnreadable) as error:
            return found, f"questions by rules, because {error}"
        found |= {batch[at].id: text for at, text in questions.items() if _is_usable(text, texts[at])}
    return found, ""


def _is_usable(question: str, text: str) -> bool:
    """Return whether a question is more than a part of the memory, and does not instruct a model."""
    return normal_text(question.rstrip("?？")) not in normal_text(text) and not detect(question)
