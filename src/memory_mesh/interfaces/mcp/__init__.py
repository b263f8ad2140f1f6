"""The MCP server: tools, resources and prompts, and the tools of the official memory server."""
