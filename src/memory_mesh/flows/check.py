"""Asking the models for a sign of life: one short answer, one vector."""

from dataclasses import dataclass

from memory_mesh.core.errors import MemoryMeshError
from memory_mesh.flows.context import Context
from memory_mesh.flows.embed import embedded


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """How it stands with one model."""

    part: str  # language model, embedder
    model: str | None = None  # None: there is none, and none is wanted
    ok: bool = True
    detail: str
    remedy: str = ""


def check(context: Context) -> tuple[Checked, ...]:
    """Each model that is set, tried now."""
    return _chat(context), _embedder(context)


def _chat(context: Context) -> Checked:
    from memory_mesh.core.prompts.answers import build_check_prompt, read_check_reply

    part = "language model"
    if context.chat is None:
        return Checked(part=part, detail="none is set; memories are kept and found without one")
    began = context.clock()
    try:
        reply = context.chat.reply(build_check_prompt())
        read_check_reply(reply)
    except MemoryMeshError as error:
        return _failed(part, context.chat.model, error)
    used = f"{reply.tokens.sent} tokens sent, {reply.tokens.received} received"
    return Checked(part=part, model=context.chat.model, detail=f"answers as asked, in {context.clock() - began} ms, {used}")


def _embedder(context: Context) -> Checked:
    if context.embedder is None:
        return Checked(part="embedder", detail="none is set; memories are found by their words")
    began = context.clock()
    try:
        vector = embedded(context.embedder, ["a sign of life"])[0]
    except MemoryMeshError as error:
        return _failed("embedder", context.embedder.model, error)
    told = f"gives {vector.dimension} numbers, in {context.clock() - began} ms"
    return Checked(part="embedder", model=context.embedder.model, detail=told)


def _failed(part: str, model: str, error: MemoryMeshError) -> Checked:
    expected = f"; expected {error.expected}" if error.expected else ""
    return Checked(part=part, model=model, ok=False, detail=error.what + expected, remedy=error.remedy)
