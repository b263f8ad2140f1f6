"""Protection against hostile input: trust of sources, fences, detection of prompt injection, the guard of addresses.

Only trust is exported here. `fence`, `injection` and `addresses` compile many patterns and are imported by path where they are
needed.
"""

from memory_mesh.core.safety.trust import BASE_TRUST, Source

__all__ = ["BASE_TRUST", "Source"]
