"""The MCP server: tools from the table of operations, resources, prompts, and the tools of the official memory server."""
