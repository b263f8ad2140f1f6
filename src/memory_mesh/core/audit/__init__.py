"""The audit chain: wire format, blocks, verification, export."""
