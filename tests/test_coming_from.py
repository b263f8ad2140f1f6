"""The page for those who know one of the five documents: every name of ours that it shows
exists."""

import re
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from inspect import signature
from pathlib import Path

import pytest

import memory_mesh
from interfaces.test_operations import FACES
from memory_mesh.core.claims.claim import Schema
from memory_mesh.core.options import Options
from memory_mesh.interfaces.operation import Interface
from memory_mesh.interfaces.remote import OPERATIONS
from memory_mesh.stores.registry import open_store

PAGE = Path(__file__).parents[1] / "docs" / "internals" / "documents.md"
OPTIONS = {field.name for field in fields(Options)} | {field.name for field in fields(Schema)}
CALL = re.compile(r"(?P<name>[\w.]+)(?:\((?P<arguments>[^)]*)\))?")
URL = re.compile(r"(?:json|supabase|memory)://\S*")


def rows() -> Iterator[tuple[str, str]]:
    """The two cells of each row."""
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if line.startswith("| ") and not line.endswith("| memory-mesh |"):
            left, right = line.strip("| ").split(" | ")
            yield left, right


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def fault(name: str) -> str | None:
    """What is wrong with a name of ours; None if it exists."""
    if name.startswith("memory-mesh "):
        return command_fault(name)
    if URL.fullmatch(name):
        return None if open_scheme(name) else "no store has this URL"
    if name.startswith("memory_mesh."):
        module, _, attribute = name.rpartition(".")
        return None if hasattr(import_module(module), attribute) else "no such name in the module"
    match = CALL.fullmatch(name)
    if match is None:
        return "not a name, a call, a command or a URL"
    first, *rest = match["name"].split(".")
    if not rest and first in OPTIONS:
        return None
    return call_fault(first, rest, match["arguments"] or "")


def call_fault(first: str, rest: list[str], arguments: str) -> str | None:
    if first == "mesh":
        prefix = f"{rest.pop(0)}." if len(rest) > 1 else ""
        target: object = FACES[prefix]
    elif first in memory_mesh.__all__:
        target = getattr(memory_mesh, first)
    else:
        return "not a name of memory_mesh"
    for part in rest:
        if not hasattr(target, part) and part not in getattr(target, "__dataclass_fields__", ()):
            return f"no {part}"
        target = getattr(target, part, None)
    wanted = re.findall(r"(\w+)=", arguments)
    known = signature(target).parameters if wanted and callable(target) else {}
    return next((f"no argument {one}" for one in wanted if one not in known), None)


def command_fault(text: str) -> str | None:
    words = [word for word in text.split()[1:] if not word.startswith("--")]
    flags = {word for word in text.split() if word.startswith("--")}
    found = [
        one
        for one in OPERATIONS
        if (one.aliases or {}).get(Interface.CLI, one.name).split(" --")[0] == " ".join(words)
    ]
    known = {
        f"--{(each.flag or each.name).strip('-').replace('_', '-')}"
        for one in found
        for each in one.parameters
    }
    return None if found and flags <= known else f"unknown command or flags {flags - known}"


def open_scheme(url: str) -> bool:
    if not url.startswith("memory:"):
        return url.partition(":")[0] in ("json", "supabase")
    open_store(url).close()
    return True


def test_every_name_of_ours_on_the_page_exists() -> None:
    every = [name for _, right in rows() for name in names(right)]
    assert len(every) > 200
    assert {name: why for name in every if (why := fault(name))} == {}


@pytest.mark.parametrize(
    "wrong",
    ["mesh.serch", "mesh.graph.store(evnt=…)", "MemoryMash", "LessonBlock.wire",
     "memory-mesh stroe", "memory-mesh get --idd", "enable_yam", "memory_mesh.core.ports.Shop",
     "a b"],
)  # fmt: skip
def test_a_name_that_does_not_exist_is_found(wrong: str) -> None:
    assert fault(wrong)


def test_the_names_of_the_documents_are_on_the_page() -> None:
    theirs = (
        "create_memory createMemory json_storage estimate_tokens compute_trust eventTime whenToUse "
        "suggestedApproach lmStudioUrl search_all orphans enableYamo distillLesson match_pattern "
        "memory_lane_store experience_id"
    )
    left = " ".join(left for left, _ in rows())
    assert [name for name in theirs.split() if name not in left] == []
