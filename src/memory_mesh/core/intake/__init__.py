"""Validate, scrub and redact what a caller wants to store."""
