"""The HTTP client for all outgoing calls. It connects only to addresses that were checked."""

from memory_mesh.net.client import ALLOW_LOCAL_REMEDY, HttpClient, Response, System

__all__ = ["ALLOW_LOCAL_REMEDY", "HttpClient", "Response", "System"]
