"""The HTTP client for all outgoing calls. It connects only to addresses that were checked."""

from memory_mesh.net.client import HttpClient, Response
from memory_mesh.net.system import ALLOW_LOCAL_REMEDY, System

__all__ = ["ALLOW_LOCAL_REMEDY", "HttpClient", "Response", "System"]
