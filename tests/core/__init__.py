"""Tests of the pure rules in `core`."""
