"""Write the tables of tools and the transcript of a session into docs/mcp.md, or check that they
are current.

python tools/mcp_transcript.py [--check]

The transcript is that of the official SDK's client with `memory-mesh mcp` as a process of its own,
in an empty memory. Ids, times and the names of fences differ from run to run: they are replaced by
fixed ones.
"""

import argparse
import asyncio
import json
import os
import re
import sys
import tempfile
from pathlib import Path

from mcp import Client, StdioServerParameters, stdio_client

from memory_mesh.interfaces.mcp.server import TOOLSETS, OperationTools

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "mcp.md"
TOOLS = ("<!-- tools, written by tools/mcp_transcript.py -->\n", "<!-- end of the tools -->")
TRANSCRIPT = (
    "<!-- transcript, written by tools/mcp_transcript.py -->\n",
    "<!-- end of the transcript -->",
)
CALLS: tuple[tuple[str, dict[str, object]], ...] = (
    ("remember", {"content": "Ana's deploy key rotates every Monday.", "tags": ["ops"]}),
    ("remember", {"content": "Ana's deploy key rotates every Monday."}),
    ("recall", {"query": "when does the deploy key rotate?"}),
    ("feedback", {"id": "ID", "signal": "helpful"}),
    ("recall", {"query": 7}),
    ("forget", {"id": "ID"}),
    ("recall", {"query": "when does the deploy key rotate?"}),
)
FIXED = (
    (re.compile(r"mem_\d{13}_[0-9a-f]{6}"), "mem_1760000000000_3fa9c2"),
    (re.compile(r"^\d+ \w{3} \d{4}, ", re.MULTILINE), "1 Jan 2026, "),
    (re.compile(r"memory-\d{6}"), "memory-472911"),
)


def main() -> int:
    """Write the page, or with --check compare it; return 1 if it is stale."""
    parser = argparse.ArgumentParser(
        description="Write the tools and the transcript of docs/mcp.md"
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; fail if the page is stale"
    )
    check = parser.parse_args().check
    old = PAGE.read_text(encoding="utf-8")
    new = _replaced(
        _replaced(old, TOOLS, tables()), TRANSCRIPT, f"```text\n{asyncio.run(transcript())}\n```"
    )
    if check and new != old:
        sys.stderr.write("docs/mcp.md is stale; run python tools/mcp_transcript.py\n")
        return 1
    if not check:
        PAGE.write_text(new, encoding="utf-8")
    return 0


def tables() -> str:
    """Return the tools of each toolset in Markdown."""
    default = [tool.name for tool in OperationTools().listed()]
    lines = ["| `--toolset` | tools |", "|---|---|", f"| (always) | {_listed(default)} |"]
    for name in TOOLSETS:
        added = [tool.name for tool in OperationTools((name,)).listed() if tool.name not in default]
        shown = (
            _listed(added) if name != "all" else f"all {len(added)} operations that servers offer"
        )
        lines.append(f"| `{name}` | {shown} |")
    return "\n".join(lines)


async def transcript() -> str:
    """Return what a client and the server exchange, one line for each message of the client."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith("MEMORY_MESH_")
        }
        environment = {**kept, "MEMORY_MESH_HOME": folder, "MEMORY_MESH_EMBEDDER": "none"}
        command = StdioServerParameters(
            command=sys.executable, args=["-m", "memory_mesh", "mcp"], env=environment
        )
        lines, id_ = [], ""
        async with Client(stdio_client(command)) as client:
            lines += [
                "> tools/list",
                ", ".join(tool.name for tool in (await client.list_tools()).tools),
            ]
            for name, arguments in CALLS:
                given = {key: id_ if value == "ID" else value for key, value in arguments.items()}
                result = await client.call_tool(name, given)
                text = "\n".join(block.text for block in result.content if block.type == "text")
                id_ = id_ or text.split()[-1]
                lines += [
                    f"\n> {name} {json.dumps(given)}",
                    f"{'error: ' if result.is_error else ''}{text}",
                ]
    shown = "\n".join(lines)
    for pattern, fixed in FIXED:
        shown = pattern.sub(fixed, shown)
    return shown


def _listed(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _replaced(page: str, marks: tuple[str, str], text: str) -> str:
    begin, end = marks
    before, _, rest = page.partition(begin)
    return f"{before}{begin}\n{text}\n\n{end}{rest.partition(end)[2]}"


if __name__ == "__main__":
    sys.exit(main())
