"""Traces: what was executed, as files and as memories."""
