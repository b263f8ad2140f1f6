"""Tests of the adapters for other libraries."""
