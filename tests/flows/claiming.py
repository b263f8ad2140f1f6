"""Memories with claims and conflicts between them, written as they would be after any history."""

from dataclasses import replace
from typing import Any

from memory_mesh.core.claims import Claim, Window
from memory_mesh.core.graph import link
from memory_mesh.core.model import ClaimConflict, Kind, Memory, iso
from memory_mesh.flows.context import Context

from .adding import add_many


def stored(context: Context, text: str, **columns: Any) -> Memory:
    """Store a text, and set columns of its memory that only a longer history would set."""
    (memory,) = add_many(context, [(text, {"type": columns.pop("memory_type", "agent")})])
    return change(context, memory.id, **columns)


def claimed(context: Context, value: str, *, window: Window = Window(), **columns: Any) -> Memory:  # noqa: B008  (frozen)
    """Store a memory with the claim that the budget of Apollo is a value."""
    claim = Claim(subject="Apollo", predicate="budget", value=value, window=window)
    return stored(context, f"The budget of Apollo is {value}.", **claim.columns, **columns)


def change(context: Context, memory_id: str, **columns: Any) -> Memory:
    """Set columns of a memory."""
    memory = read(context, memory_id)
    changed = replace(memory, **columns, revision=memory.revision + 1)
    context.store.apply([changed.row(replaces=memory.revision)])
    return read(context, memory_id)


def connect(context: Context, one: Memory, other: Memory, link_type: str = "related") -> str:
    """Store a link, and return its id."""
    made = link(one, other, link_type, context.clock())
    context.store.apply([made.row(one.partition)])
    return made.id


def read(context: Context, memory_id: str) -> Memory:
    return Memory.of(context.store.get(Kind.MEMORY, [memory_id])[memory_id])


def conflict(context: Context, new: Memory, existing: Memory) -> ClaimConflict:
    """Store a pending conflict."""
    ms = context.clock()
    one = ClaimConflict(
        id=context.ids.new("conflict", ms), created_at=iso(ms), ref=new.id, target=existing.id,
        why="the values differ", detail={"policy": "supersede"}, user_id=new.user_id,
        agent_id=new.agent_id,
    )  # fmt: skip
    context.store.apply([one.row(new.partition)])
    return one


def conflict_row(context: Context, id_: str) -> ClaimConflict:
    return ClaimConflict.of(context.store.get(Kind.CONFLICT, [id_])[id_])
