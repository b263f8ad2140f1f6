"""Use the server through langchain-mcp-adapters, and print what it answers as JSON.

Arguments: the connection as JSON.
"""

import asyncio
import json
import sys
from importlib.metadata import version

from langchain_core.tools import ToolException
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.prompts import load_mcp_prompt
from langchain_mcp_adapters.resources import load_mcp_resources
from langchain_mcp_adapters.tools import load_mcp_tools
from mcp import McpError

FACT = "The deploy key rotates on Mondays."


async def main() -> None:
    client = MultiServerMCPClient({"memory": json.loads(sys.argv[1])})
    async with client.session("memory") as session:  # else each call starts a server
        tools = {tool.name: tool for tool in await load_mcp_tools(session)}
        (recent,) = await load_mcp_resources(session, uris=["memory-mesh://recent"])
        remembered = await tools["remember"].ainvoke({"content": FACT})
        recalled = await tools["recall"].ainvoke({"query": "when does the key rotate?"})
        try:
            refused = _text(await tools["forget"].ainvoke({"id": "mem_0"}))
        except ToolException as error:
            refused = str(error)
        (message,) = await load_mcp_prompt(session, "what_do_you_know", arguments={"topic": "key"})
        listed = (await session.list_resources()).resources
        (text,) = (await session.read_resource(listed[-1].uri)).contents
        templates = (await session.list_resource_templates()).resourceTemplates
        prompts = (await session.list_prompts()).prompts
        structured = (await session.call_tool("recall", {"query": "key"})).structuredContent
        errors = []
        for call in (
            session.read_resource("memory-mesh://memory/none"),
            session.call_tool("none", {}),
            session.get_prompt("none"),
        ):
            try:
                await call
            except McpError as error:
                errors.append(error.error.code)
    print(
        json.dumps(
            {
                "version": version("mcp"),
                "tools": sorted(tools),
                "empty": recent.as_string(),
                "remembered": _text(remembered),
                "recalled": _text(recalled),
                "refused": refused,
                "prompt": message.content,
                "resource": text.text,
                "templates": [one.uriTemplate for one in templates],
                "prompts": [one.name for one in prompts],
                "count": structured["count"],
                "errors": errors,
            }
        )
    )


def _text(content: object) -> str:
    parts = content if isinstance(content, list) else [{"text": content}]
    return "".join(part["text"] for part in parts)


asyncio.run(main())
