"""The server of the SDK in its version 1, with the interface of that of version 2.

Packages such as langchain-mcp-adapters need `mcp<2`. The models of the protocol are those of
`mcp_types` in both; here they become those of version 1.
"""

from collections.abc import Awaitable, Callable
from typing import Any

import mcp.types
import mcp_types as v2
from mcp.server.lowlevel import server as lowlevel
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.shared.exceptions import McpError  # type: ignore[attr-defined]
from starlette.applications import Starlette
from starlette.routing import Route

v1: Any = mcp.types
_Handler = Callable[[Any, Any], Awaitable[v2.Result]]
# What `Server` is given for a request, the request, and its parameters.
_REQUESTS: tuple[tuple[str, Any, type[v2.RequestParams]], ...] = (
    ("on_list_tools", v1.ListToolsRequest, v2.PaginatedRequestParams),
    ("on_call_tool", v1.CallToolRequest, v2.CallToolRequestParams),
    ("on_list_resources", v1.ListResourcesRequest, v2.PaginatedRequestParams),
    ("on_list_resource_templates", v1.ListResourceTemplatesRequest, v2.PaginatedRequestParams),
    ("on_read_resource", v1.ReadResourceRequest, v2.ReadResourceRequestParams),
    ("on_list_prompts", v1.ListPromptsRequest, v2.PaginatedRequestParams),
    ("on_get_prompt", v1.GetPromptRequest, v2.GetPromptRequestParams),
)


class MCPError(McpError):  # type: ignore[misc]
    """An error of the protocol."""

    def __init__(self, code: int, message: str, data: Any = None) -> None:
        super().__init__(v1.ErrorData(code=code, message=message, data=data))
        self.code, self.message = code, message


class Server(lowlevel.Server[Any]):
    """A server with a handler for each request."""

    def __init__(self, name: str, *, version: str, instructions: str, **handlers: _Handler) -> None:
        super().__init__(name, version=version, instructions=instructions)
        for key, request, params in _REQUESTS:
            self.request_handlers[request] = self._answering(handlers[key], params)  # type: ignore[attr-defined]

    def _answering(self, handler: _Handler, kind: type[v2.RequestParams]) -> Any:
        async def answer(request: Any) -> Any:
            given = request.params and kind.model_validate(_plain(request.params))
            result = await handler(self.request_context, given)  # type: ignore[attr-defined]
            made = getattr(v1, type(result).__name__).model_validate(_plain(result))
            return v1.ServerResult(made)

        return answer

    def streamable_http_app(self, *, host: str, stateless_http: bool) -> Any:  # type: ignore[override]
        """Return an ASGI application without checks of hosts, which `Guard` does."""
        from mcp.server.fastmcp.server import (  # type: ignore[import-not-found]
            StreamableHTTPASGIApp,
        )

        manager: Any = StreamableHTTPSessionManager(self, stateless=stateless_http)
        route = Route("/mcp", StreamableHTTPASGIApp(manager))
        return Starlette(routes=[route], lifespan=lambda _: manager.run())


def _plain(model: Any) -> Any:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True, exclude={"result_type"})
