"""Views of reflections and of the heritage of a memory."""

from collections.abc import Mapping
from dataclasses import asdict

from memory_mesh.core.learning import ReflectionResult
from memory_mesh.core.model import MemoryRecord
from memory_mesh.interfaces.render import NAME, Answer, counted, one_line, paint, safe
from memory_mesh.interfaces.values import Call

_TITLES = {"intentChain": "Intents", "hypotheses": "Hypotheses", "rationales": "Rationales"}


def reflection(done: ReflectionResult, call: Call) -> Answer:
    """Render the statements of a reflection, each with its sources, or say that nothing was found."""
    note = [f"{NAME} Note: {one_line(done.note)}"] if done.note else []
    if done.id is None:
        return Answer(text="\n".join(note), data=asdict(done))
    name = "Synthesis" if call.operation.name == "synthesize" else "Reflection"
    lines: list[str] = []
    for each in (done, *done.others):
        about = f" on {one_line(each.topic)}" if each.topic else ""
        about += f" in {one_line(str(each.project))}" if done.others else ""
        how = f"{counted(len(each.sources), 'source')}, confidence {each.confidence:.2f}, {each.method}"
        lines += [f"{NAME} {name} {each.id}{about}: {how}", *statement_lines(each)]
    return Answer(text="\n".join([*lines, *note]), data=asdict(done))


def statement_lines(done: ReflectionResult) -> list[str]:
    """Return the statements of a result, each with its sources."""
    return [f"- {one_line(one.text)} [{', '.join(one.sources)}]" for one in done.statements]


def heritage(nothing: None, call: Call) -> Answer:
    id_ = call.arguments["memory_id"]
    return Answer(text=f"{NAME} Heritage of {id_} set", data={"memory_id": id_})


def heritage_lines(memory: MemoryRecord) -> list[str]:
    """Return the heritage of a memory as indented lines."""
    chains = _chains(memory)
    lines = [line for title, texts in chains.items() for line in (f"  {title}", *(f"    {text}" for text in texts))]
    return ["Heritage", *lines] if chains else []


def heritage_tree(memory: MemoryRecord) -> str:
    """Return the heritage of a memory as a tree for a terminal."""
    from rich.console import Console  # 50 ms that only a terminal pays
    from rich.text import Text
    from rich.tree import Tree

    tree = Tree(Text("Heritage", "bold"), guide_style="dim")
    for title, texts in _chains(memory).items():
        branch = tree.add(Text(title, "cyan"))
        for text in texts:
            branch.add(Text(text))
    console = Console(force_terminal=True)
    with console.capture() as captured:
        console.print(tree)
    return captured.get().rstrip("\n")


def with_heritage(memory: MemoryRecord, before: list[str], after: list[str], data: Mapping[str, object]) -> Answer:
    """Return the answer that shows a memory: lines before and after its heritage, which a terminal shows as a tree."""

    def draw() -> str:
        head, tail = ("\n".join(lines) for lines in (before, after))
        return "\n".join([paint(safe(head)), *([heritage_tree(memory)] if _chains(memory) else []), safe(tail)])

    return Answer(text="\n".join([*before, *heritage_lines(memory), *after]), data=data, draw=draw)


def _chains(memory: MemoryRecord) -> dict[str, list[str]]:
    """Return the lists of a heritage that are not empty, by title. Another program may have written anything there."""
    stored = memory.heritage_chain or {}
    lists = {title: value for key, title in _TITLES.items() if isinstance(value := stored.get(key), list)}
    return {title: [one_line(str(text)) for text in texts] for title, texts in lists.items() if texts}
